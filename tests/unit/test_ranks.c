/* SPDX-License-Identifier: Apache-2.0 */
/* test_ranks.c - sets of ranks: read, written, walked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/ranks.h"

#define OUT 4096

/* The set that @text means in a job of @size, written again; or the status. */
static enum xr_status
again(uint32_t size, const char *text, char out[OUT], struct xr_error *err)
{
	struct buf b = { 0 };
	struct ranks set;
	enum xr_status status;

	cr_assert_eq(ranks_init(&set, size), XR_OK);
	status = ranks_parse(&set, text, err);
	ranks_put(&set, &b);
	snprintf(out, OUT, "%s", buf_text(&b));
	buf_fini(&b);
	ranks_fini(&set);
	return status;
}

Test(ranks, lists_are_read_and_written_in_order)
{
	static const struct {
		const char *text, *out;
	} rows[] = { { "0", "0" }, { "7", "7" }, { "0,3-7", "0,3-7" },
		{ "-1", "7" }, { "-8", "0" }, { "-2--1", "6-7" },
		{ "5,4,3", "3-5" }, { "0-7", "0-7" }, { "3-3", "3" },
		{ "1,1,1-2", "1-2" }, { "4--2", "4-6" }, { "007", "7" },
		{ "0,2,4,6", "0,2,4,6" } };
	char out[OUT];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(again(8, rows[i].text, out, NULL), XR_OK, "%s",
			rows[i].text);
		cr_expect_str_eq(out, rows[i].out);
	}
}

Test(ranks, what_is_no_list_is_refused_and_adds_nothing)
{
	static const char *const rows[] = { "", ",", "0,", ",0", "0,,1", "a",
		"1-", "-", "--1", "-0", "1-2-3", "0 ", " 0", "+1", "3-1",
		"-1--2", "0x1", "1;2", "1-a", "\xff" };
	struct xr_error err;
	char out[OUT];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(again(8, rows[i], out, &err), XR_E_INVAL, "%s",
			rows[i]);
		cr_expect_str_eq(out, "none");
	}
}

Test(ranks, a_rank_that_is_not_there_is_named)
{
	struct xr_error err;
	char out[OUT];

	cr_expect_eq(again(8, "0,8", out, &err), XR_E_RANGE);
	cr_expect_str_eq(err.text, "'8': the ranks are 0 to 7");
	cr_expect_str_eq(out, "none");
	cr_expect_eq(again(8, "-9", out, &err), XR_E_RANGE);
	cr_expect_eq(again(8, "6-9", out, &err), XR_E_RANGE);
	cr_expect_str_eq(err.text, "'6-9': the ranks are 0 to 7");
	cr_expect_eq(again(1, "-2", out, &err), XR_E_RANGE);
	cr_expect_str_eq(err.text, "'-2': the only rank is 0");
	cr_expect_eq(again(8, "18446744073709551616", out, &err), XR_E_RANGE);
	cr_expect_eq(again(8, "4294967296", out, &err), XR_E_RANGE);
	cr_expect_eq(again(0, "0", out, &err), XR_E_RANGE);
	cr_expect_eq(again(8, "5-3", out, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "'5-3' runs backwards");
	cr_expect_eq(again(8, "0,x", out, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text,
		"'x' is not a rank or a range such as 0,3-7,-1");
}

Test(ranks, every_truncation_is_a_list_or_refused)
{
	static const char text[] = "0,13-17,-1,2-3,-4--3";
	char *cut, out[OUT];

	for (size_t n = 0; n < sizeof(text); n++) {
		enum xr_status status;

		cut = strndup(text, n); /* so that a sanitizer sees the end */
		status = again(20, cut, out, NULL);
		if (n == 0 || strchr(",-", text[n - 1]) != NULL)
			cr_expect_eq(status,
				n < sizeof(text) - 1 ? XR_E_INVAL : XR_OK, "%s",
				cut);
		else
			cr_expect(status == XR_OK || strcmp(cut, "0,13-1") == 0,
				"%s", cut);
		free(cut);
	}
}

Test(ranks, any_set_reads_back_as_it_was_written)
{
	unsigned seed = 1;
	char first[OUT], second[OUT];

	for (uint32_t size = 1; size < 200; size += 7) {
		struct ranks set;
		struct buf b = { 0 };

		cr_assert_eq(ranks_init(&set, size), XR_OK);
		ranks_add(&set, (uint32_t)rand_r(&seed) % size);
		for (uint32_t r = 0; r < size; r++)
			if (rand_r(&seed) & 8)
				ranks_add(&set, r);
		ranks_put(&set, &b);
		snprintf(first, OUT, "%s", buf_text(&b));
		cr_expect_eq(again(size, first, second, NULL), XR_OK);
		cr_expect_str_eq(first, second);
		buf_fini(&b);
		ranks_fini(&set);
	}
}

Test(ranks, walking_meets_every_member_once)
{
	static const uint32_t members[] = { 0, 1, 63, 64, 127, 128, 129 };
	struct ranks set;
	size_t n = 0;

	cr_assert_eq(ranks_init(&set, 130), XR_OK);
	for (size_t i = 0; i < 7; i++)
		ranks_add(&set, members[i]);
	RANKS_EACH(r, &set)
		cr_expect_eq(r, members[n++]);
	cr_expect_eq(n, 7);
	cr_expect_eq(ranks_count(&set), 7);
	cr_expect(ranks_has(&set, 129));
	cr_expect_not(ranks_has(&set, 62));
	cr_expect_not(ranks_has(&set, 130));
	cr_expect_eq(ranks_next(&set, 2), 63);
	cr_expect_eq(ranks_next(&set, 130), 130);
	ranks_fini(&set);
}

Test(ranks, the_empty_set_is_none)
{
	struct ranks set;
	struct buf b = { 0 };

	cr_assert_eq(ranks_init(&set, 0), XR_OK);
	ranks_put(&set, &b);
	cr_expect_str_eq(buf_text(&b), "none");
	cr_expect_eq(ranks_count(&set), 0);
	cr_expect_eq(ranks_next(&set, 0), 0);
	buf_fini(&b);
	ranks_fini(&set);
}

Test(ranks, a_list_is_checked_whatever_ranks_there_are)
{
	static const char *const good[] = { "0", "0,4-7,-1", "-3--1", "2--1",
		"4294967295" };
	static const char *const bad[] = { "", "a", "0,", "5-3", "-1--3", "1-",
		"-0", "0,,1" };
	char text[] = "10,4-7,-1";
	struct xr_error err;

	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cr_expect_eq(ranks_check(good[i], &err), XR_OK, "%s", good[i]);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(ranks_check(bad[i], &err), XR_E_INVAL, "%s",
			bad[i]);
	for (size_t len = strlen(text); len-- > 0;) {
		text[len] = '\0';
		cr_expect_eq(ranks_check(text, &err) == XR_OK,
			len > 0 && strchr(",-", text[len - 1]) == NULL, "%s",
			text);
	}
}

/* The first of a word, alone in it, and the last. */
Test(ranks, members_are_found_wherever_a_word_begins_or_ends)
{
	static const uint32_t members[] = { 0, 63, 64, 127, 128, 191, 192,
		199 };
	struct xr_error err;

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		struct ranks set;

		cr_assert_eq(ranks_init(&set, 200), XR_OK);
		cr_expect_eq(ranks_next(&set, 0), 200);
		ranks_add(&set, members[i]);
		cr_expect_eq(ranks_count(&set), 1);
		for (uint32_t r = 0; r < 200; r++) {
			cr_expect_eq(ranks_next(&set, r),
				r <= members[i] ? members[i] : 200, "%u", r);
			cr_expect_eq(ranks_has(&set, r), r == members[i]);
		}
		cr_expect_eq(ranks_next(&set, 200), 200);
		cr_expect_eq(ranks_next(&set, 201), 200);
		cr_expect_not(ranks_has(&set, 200));
		ranks_fini(&set);
	}
	/* From the first to the last, whatever that is. */
	cr_expect_eq(ranks_check("0--1", &err), XR_OK);
	cr_expect_eq(ranks_check("1--1", &err), XR_OK);
	cr_expect_eq(ranks_check("-1-0", &err), XR_OK);
	cr_expect_eq(ranks_check("1-0", &err), XR_E_INVAL);
	cr_expect_eq(ranks_check("-1--2", &err), XR_E_INVAL);
}
