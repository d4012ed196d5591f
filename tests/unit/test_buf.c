/* SPDX-License-Identifier: Apache-2.0 */
/* test_buf.c - growing bytes. */
#include <string.h>
#include <wchar.h>

#include <criterion/criterion.h>

#include "base/buf.h"
#include "tests/unit/short_memory.h"

Test(buf, text_is_always_terminated)
{
	struct buf b = { 0 };

	cr_assert_str_eq(buf_text(&b), "");
	buf_put(&b, "ab", 2);
	buf_fmt(&b, "%d", 42);
	buf_put_char(&b, '!');
	cr_assert_str_eq(buf_text(&b), "ab42!");
	cr_assert_eq(b.len, 5);
	buf_fini(&b);
}

Test(buf, the_first_failure_sticks)
{
	struct buf b = { .max = 4 };

	buf_put_text(&b, "abcd");
	cr_assert_eq(b.bad, XR_OK);
	buf_put_char(&b, 'e');
	cr_assert_eq(b.bad, XR_E_RANGE);
	buf_clear(&b);
	buf_put_text(&b, "x");
	cr_assert_eq(b.bad, XR_OK);
	cr_assert_str_eq(b.data, "x");
	buf_fini(&b);
}

Test(buf, a_length_that_would_wrap_is_refused)
{
	struct buf b = { 0 };

	buf_put_text(&b, "abc");
	cr_assert_null(buf_room(&b, SIZE_MAX - 1));
	cr_assert_neq(b.bad, XR_OK);
	buf_fini(&b);
}

/* One byte of it is the 0 at the end. */
Test(buf, room_is_64_bytes_and_doubles)
{
	static const char bytes[1000] = "";
	static const struct {
		size_t len, cap;
	} rows[] = {
		{ 0, 64 },
		{ 1, 64 },
		{ 63, 64 },
		{ 64, 128 },
		{ 127, 128 },
		{ 128, 256 },
		{ 1000, 1024 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf b = { 0 };

		buf_put(&b, bytes, rows[i].len);
		cr_expect_eq(b.len, rows[i].len);
		cr_expect_eq(b.cap, rows[i].cap, "%zu", rows[i].len);
		/* What fits is not allocated again. */
		until_short = 1;
		buf_put(&b, bytes, rows[i].cap - 1 - rows[i].len);
		cr_expect_eq(b.bad, XR_OK);
		cr_expect_eq(until_short, 1);
		buf_put_char(&b, 'x');
		cr_expect_eq(b.bad, XR_E_NOMEM);
		cr_expect_eq(b.len, rows[i].cap - 1);
		cr_expect_eq(b.cap, rows[i].cap);
		buf_fini(&b);
		cr_expect_null(b.data);
		cr_expect_eq(b.cap, 0);
		cr_expect_eq(b.bad, XR_OK);
	}
}

Test(buf, a_limit_is_reached_and_not_passed)
{
	struct buf b = { .max = 100 };

	cr_expect_not_null(buf_room(&b, 100));
	cr_expect_eq(b.len, 100);
	cr_expect_eq(b.data[100], '\0');
	cr_expect_null(buf_room(&b, 1));
	cr_expect_eq(b.bad, XR_E_RANGE);
	cr_expect_eq(b.len, 100);
	/* Even what would fit is not written any more. */
	b.len = 0;
	buf_put_text(&b, "x");
	buf_fmt(&b, "%d", 7);
	cr_expect_eq(b.len, 0);
	cr_expect_eq(b.bad, XR_E_RANGE);
	buf_clear(&b);
	cr_expect_eq(b.bad, XR_OK);
	cr_expect_eq(b.max, 100);
	cr_expect_str_eq(buf_text(&b), "");
	buf_put_text(&b, "abc");
	buf_clear(&b);
	cr_expect_str_eq(b.data, "");
	cr_expect_eq(b.len, 0);
	buf_fini(&b);
	buf_clear(&b); /* nothing to empty */
	cr_expect_null(b.data);
}

/* A character that the locale does not have. */
Test(buf, what_cannot_be_printed_is_bad)
{
	struct buf b = { 0 };

	buf_put_text(&b, "abc");
	buf_fmt(&b, "%ls", L"\x100");
	cr_expect_eq(b.bad, XR_E_INVAL);
	cr_expect_str_eq(b.data, "abc");
	buf_clear(&b);
	b.bad = XR_E_RANGE;
	buf_fmt(&b, "%ls", L"\x100");
	cr_expect_eq(b.bad, XR_E_RANGE, "the first counts");
	buf_fini(&b);
	b.bad = XR_OK;
	until_short = 1;
	buf_fmt(&b, "%s", "x");
	cr_expect_eq(b.bad, XR_E_NOMEM);
	cr_expect_eq(b.len, 0);
	buf_fini(&b);
}

Test(buf, what_is_larger_than_all_memory_is_refused)
{
	struct buf b = { 0 };

	cr_expect_null(buf_room(&b, SIZE_MAX / 2 + 1));
	cr_expect_eq(b.bad, XR_E_NOMEM);
	buf_clear(&b);
	cr_expect_null(buf_room(&b, SIZE_MAX - 1));
	cr_expect_eq(b.bad, XR_E_NOMEM);
	buf_clear(&b);
	/* A text without bytes is one. */
	buf_fmt(&b, "%s", "");
	cr_expect_eq(b.bad, XR_OK);
	cr_expect_eq(b.len, 0);
	cr_assert_not_null(b.data);
	cr_expect_str_eq(b.data, "");
	buf_fini(&b);
}
