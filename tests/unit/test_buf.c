/* SPDX-License-Identifier: Apache-2.0 */
/* test_buf.c - growing bytes. */
#include <string.h>

#include <criterion/criterion.h>

#include "base/buf.h"

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
