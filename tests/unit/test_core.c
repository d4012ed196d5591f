/* SPDX-License-Identifier: Apache-2.0 */
/* test_core.c - names of core files. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "proc/core.h"

static const struct core dead = {
	.pid = 4711,
	.sig = 11,
	.program = "/home/a/train_a_very_long_name",
};

static const char *
expand(const char *pattern, bool add_pid)
{
	static char out[64];

	memset(out, 'x', sizeof(out));
	return core_expand(pattern, add_pid, &dead, out, sizeof(out)) ? out :
									NULL;
}

Test(core, a_pattern_names_the_file)
{
	char host[64], want[80];

	cr_expect_str_eq(expand("core", false), "core");
	cr_expect_str_eq(expand("core", true), "core.4711");
	cr_expect_str_eq(expand("core.%p", true), "core.4711");
	cr_expect_str_eq(expand("/var/%s-%i-%I-%P", false),
		"/var/11-4711-4711-4711");
	cr_expect_str_eq(expand("%P", true), "4711.4711");
	cr_expect_str_eq(expand("%%%e", false), "%train_a_very_lo");
	snprintf(want, sizeof(want), "%u/%u", getuid(), getgid());
	cr_expect_str_eq(expand("%u/%g", false), want);
	cr_assert_eq(gethostname(host, sizeof(host)), 0);
	cr_expect_str_eq(expand("%h", false), host);
}

Test(core, what_is_not_known_is_not_guessed)
{
	cr_expect_null(expand("core.%t", false));
	cr_expect_null(expand("%c", false));
	cr_expect_null(expand("core%", false));
}

Test(core, a_name_that_does_not_fit_is_none)
{
	char out[8];

	for (size_t cap = 0; cap <= sizeof(out); cap++) {
		cr_expect_eq(core_expand("core.%s", false, &dead, out, cap),
			cap >= 8, "%zu", cap);
		cr_expect_eq(core_expand("co", true, &dead, out, cap), cap >= 8,
			"%zu", cap);
	}
}
