/* SPDX-License-Identifier: Apache-2.0 */
/* test_leave.c - the keys that leave a rank's terminal, among others. */
#include <string.h>

#include <criterion/criterion.h>

#include "base/buf.h"
#include "launcher/cmd/leave.h"

/* What goes on of @typed, in pieces of @piece bytes; "!" behind it: they leave. */
static void
expect(const char *typed, size_t piece, const char *want)
{
	struct leave l = { 0 };
	struct buf got = { 0 };
	size_t len = strlen(typed), n, part;
	bool leaves = false;
	char out[64];

	for (size_t at = 0; at < len && !leaves; at += part) {
		part = len - at < piece ? len - at : piece;
		leaves = leave_pass(&l, typed + at, part, out, &n);
		cr_expect_leq(n, part + 1);
		buf_put(&got, out, n);
	}
	buf_put(&got, out, leave_let_go(&l, out));
	cr_expect_eq(leave_let_go(&l, out), 0);
	buf_put_text(&got, leaves ? "!" : "");
	cr_expect_str_eq(buf_text(&got), want);
	buf_fini(&got);
}

Test(leave, both_keys_leave_and_one_alone_goes_on)
{
	for (size_t piece = 1; piece < 8; piece++) {
		expect("ls\n", piece, "ls\n");
		expect("ls\020\021rm", piece, "ls!");
		expect("\020x", piece, "\020x");
		expect("\021\020", piece, "\021\020");
		expect("\020\020\021", piece, "\020!");
		expect("\020\020\020", piece, "\020\020\020");
		expect("a\020b\021c", piece, "a\020b\021c");
	}
}
