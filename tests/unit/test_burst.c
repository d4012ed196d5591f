/* SPDX-License-Identifier: Apache-2.0 */
/* test_burst.c - equal lines of several ranks become one. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "launcher/log/burst.h"
#include "tests/unit/short_memory.h"

#define STREAMS 2 /* a rank: 2 * rank is its stdout */

static struct burst burst;
static struct buf text;

static void
begin(void)
{
	cr_assert(burst_init(&burst, 0, 8, STREAMS));
}

static void
end(void)
{
	burst_fini(&burst);
	buf_fini(&text);
}

TestSuite(burst, .init = begin, .fini = end);

/* True if it joined another. */
static bool
say(uint32_t stream, const char *line, int64_t ms)
{
	struct span span = { line, strlen(line) };

	if (burst_join(&burst, stream, span, ms * 1000000))
		return true;
	buf_clear(&text);
	buf_put_text(&text, line);
	burst_add(&burst, stream, &text, ms * 1000000);
	return false;
}

static void
expect_set(uint32_t i, const char *want)
{
	struct buf set = { 0 };

	ranks_put(&burst_at(&burst, i)->set, &set);
	cr_expect_str_eq(buf_text(&set), want);
	buf_fini(&set);
}

Test(burst, equal_lines_of_other_ranks_join)
{
	cr_expect_not(say(0, "a", 0));
	cr_expect_not(say(2, "b", 1));
	cr_expect(say(4, "a", 2));
	cr_expect(say(6, "a", 3));
	cr_expect(say(14, "b", 3));
	cr_expect_eq(burst.count, 2);
	cr_expect_eq(burst_at(&burst, 0)->members, 3);
	expect_set(0, "0,2-3");
	expect_set(1, "1,7");
}

Test(burst, a_rank_joins_no_line_of_its_own)
{
	say(0, "a", 0);
	cr_expect_not(say(0, "a", 1));
	cr_expect(say(2, "a", 1));
	cr_expect(say(2, "a", 1));
	cr_expect_eq(burst.count, 2);
	expect_set(0, "0-1");
	expect_set(1, "0-1");
	cr_expect_not(say(2, "a", 1));
}

Test(burst, a_rank_s_lines_stay_in_their_order)
{
	say(0, "a", 0);
	say(0, "b", 0);
	cr_expect(say(2, "b", 1));
	cr_expect_not(say(2, "a", 1));
	cr_expect_eq(burst.count, 3);
}

Test(burst, standard_output_and_error_stay_apart)
{
	say(0, "a", 0);
	cr_expect_not(say(3, "a", 0));
	cr_expect(say(5, "a", 0));
	cr_expect(say(2, "a", 0));
}

Test(burst, what_comes_later_is_of_another_burst)
{
	say(0, "a", 0);
	cr_expect(say(2, "a", 99));
	cr_expect_not(say(4, "a", 100));
}

Test(burst, texts_of_other_lengths_and_empty_ones_are_told_apart)
{
	say(0, "", 0);
	cr_expect_not(say(2, "a", 0));
	cr_expect_not(say(4, "ab", 0));
	cr_expect(say(6, "", 0));
}

Test(burst, the_ring_goes_round_and_forgets)
{
	for (uint32_t i = 0; i < 5 * BURST_LINES; i++) {
		char line[16];

		snprintf(line, sizeof(line), "%u", i);
		cr_expect_not(say(0, line, i));
		cr_expect(say(2, line, i));
		expect_set(burst.count - 1, "0-1");
		if (burst.count == BURST_LINES)
			burst_drop(&burst, 1 + i % BURST_LINES);
	}
	burst_drop(&burst, burst.count);
	cr_expect_eq(burst.count, 0);
	cr_expect_not(say(4, "319", 319));
}

Test(burst, a_clock_that_was_set_back_is_another_burst_too)
{
	say(0, "a", 1000);
	cr_expect(say(2, "a", 901));
	cr_expect_not(say(4, "a", 900));
}

Test(burst, what_is_known_of_a_line)
{
	struct burst_line *line;

	say(2, "first", 0);
	say(5, "text", 7);
	cr_expect_eq(burst.last, 2);
	cr_expect_eq(burst.said[2], 1);
	cr_expect_eq(burst.said[5], 2);
	line = burst_at(&burst, 1);
	cr_expect_str_eq(buf_text(&line->text), "text");
	cr_expect_eq(line->number, 2);
	cr_expect_eq(line->ns, 7000000);
	cr_expect_eq(line->stream, 5);
	cr_expect_eq(line->members, 1);
	cr_expect_null(line->set.word);
	cr_expect_not(line->out);
	cr_expect(say(7, "text", 8));
	cr_expect_eq(line->members, 2);
	cr_expect_not(line->wider);
	expect_set(1, "2-3");
	line->out = true;
	cr_expect(say(9, "text", 8));
	cr_expect(line->wider);
	cr_expect_eq(burst.said[9], 2);
	expect_set(1, "2-4");
	line->rows = 3;
	line->wall = 4;
	burst_drop(&burst, 2);
	cr_expect_eq(burst.head, 2);
	cr_expect_not(line->out);
	cr_expect_not(line->wider);
	cr_expect_eq(line->rows, 0);
	cr_expect_eq(line->wall, 0);
	cr_expect_eq(line->members, 0);
	cr_expect_eq(line->text.len, 0);
	cr_expect_not_null(line->set.word, "it is kept");
	cr_expect_eq(ranks_count(&line->set), 0);
}

Test(burst, ranks_have_their_numbers_in_the_job)
{
	burst_fini(&burst);
	cr_assert(burst_init(&burst, 70, 3, STREAMS));
	say(1, "a", 0);
	cr_expect(say(5, "a", 0));
	expect_set(0, "70,72");
	cr_expect_eq(burst_at(&burst, 0)->set.size, 73);
	/* All of the memory of a set is clean for the next. */
	burst_drop(&burst, 1);
	cr_expect_eq(ranks_count(&burst_at(&burst, BURST_LINES - 1)->set), 0);
}

Test(burst, much_memory_of_a_line_is_given_back)
{
	say(0, "a", 0);
	buf_room(&burst_at(&burst, 0)->text, 4000);
	cr_assert_leq(burst_at(&burst, 0)->text.cap, 8192);
	burst_drop(&burst, 1);
	cr_expect_not_null(burst.line[0].text.data);
	say(0, "b", 0);
	buf_room(&burst_at(&burst, 0)->text, 8192);
	cr_assert_gt(burst_at(&burst, 0)->text.cap, 8192);
	burst_drop(&burst, 1);
	cr_expect_null(burst.line[1].text.data);
	cr_expect_eq(burst.line[1].text.cap, 0);
}

Test(burst, without_memory_for_a_set_a_line_is_not_joined)
{
	say(0, "a", 0);
	until_short = 1;
	cr_expect_not(burst_join(&burst, 2, (struct span){ "a", 1 }, 0));
	cr_expect(was_short);
	cr_expect_eq(burst_at(&burst, 0)->members, 1);
	cr_expect_eq(burst.said[2], 0);
	cr_expect(burst_join(&burst, 2, (struct span){ "a", 1 }, 0));
	expect_set(0, "0-1");
	burst_fini(&burst);
	until_short = 1;
	cr_expect_not(burst_init(&burst, 0, 8, STREAMS));
}
