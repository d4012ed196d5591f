/* SPDX-License-Identifier: Apache-2.0 */
/* test_shm_span.c - spans of the arena: which are taken, what stands in the map, and what
 * is given back (worker/shm/span.c). Another process interferes where the test says so. */
#include <sys/mman.h>
#include <sys/stat.h>

#include "segment/owner.h"
#include "tests/unit/forked.h"
#include "tests/unit/seccomp.h"
#include "worker/shm/mark.h"
#include "worker/shm/span.h"

#define SLOT 1
#define GEN  7

TestSuite(shm_span, .timeout = 60);

static struct segment_map map;
static uint32_t spans;

void __wrap_mark_hit(void);

/* What another does between two spans of a run. */
static void (*between)(void);

void
__wrap_mark_hit(void)
{
	if (between != NULL)
		between();
}

static void
make_map(void)
{
	const struct segment_wish wish = {
		.job = "k7m2",
		.ranks = 2,
		.most = UINT64_C(64) << 20,
	};
	struct segment_tag tag = { .fd = segment_create(&wish) };
	struct stat st;

	NEED(tag.fd != -1 && fstat(tag.fd, &st) == 0);
	tag.inode = st.st_ino;
	NEED(segment_map(&tag, &map));
	spans = map.plan.spans;
	NEED(spans >= 16);
}

static uint64_t
word(uint32_t i)
{
	return atomic_load(&segment_spans(&map)[i]);
}

static void
set_word(uint32_t i, uint64_t to)
{
	atomic_store(&segment_spans(&map)[i], to);
}

/* Expects @count spans from @first on that are a run of ours. */
static void
expect_run(uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		EXPECT_EQ(word(first + i),
			i == 0 ? segment_span_word(SLOT, GEN, SEGMENT_SPAN_RUN,
					 count) :
				 segment_span_word(SLOT, GEN, SEGMENT_SPAN_REST,
					 0));
}

static void
expect_hints(uint32_t low, uint32_t top)
{
	EXPECT_EQ(atomic_load(&segment_shared(&map)->low), low);
	EXPECT_EQ(atomic_load(&segment_shared(&map)->top), top);
}

static uint32_t
take(uint32_t run)
{
	return span_take(&map, SLOT, GEN, run);
}

static void
give(uint32_t first, uint32_t count)
{
	span_give(&map, SLOT, GEN, (struct span_run){ first, count });
}

#define OTHERS segment_span_word(0, 3, SEGMENT_SPAN_RUN, 1)

FORKED_TEST(shm_span, the_first_that_are_free_are_taken)
{
	make_map();
	EXPECT_EQ(take(3), 0);
	expect_run(0, 3);
	expect_hints(0, 3);
	EXPECT_EQ(take(1), 3);
	expect_run(3, 1);
	expect_hints(4, 4);
	EXPECT_EQ(take(2), 4);
	expect_run(4, 2);
	expect_hints(4, 6);
	EXPECT_EQ(word(6), 0);
	give(0, 3);
	for (uint32_t i = 0; i < 3; i++)
		EXPECT_EQ(word(i), 0);
	expect_run(3, 1);
	expect_hints(0, 6);
	EXPECT_EQ(take(2), 0);
	EXPECT_EQ(take(2), 6); /* 2 is free, and alone */
	EXPECT_EQ(take(1), 2);
	expect_hints(3, 8);
}

FORKED_TEST(shm_span, a_run_has_from_one_to_all_spans)
{
	make_map();
	EXPECT_EQ(take(0), SPAN_NONE);
	EXPECT_EQ(take(spans + 1), SPAN_NONE);
	EXPECT_EQ(take(spans), 0);
	expect_run(0, spans);
	expect_hints(0, spans);
	EXPECT_EQ(take(1), SPAN_NONE);
	give(0, spans);
	for (uint32_t i = 0; i < spans; i++)
		EXPECT_EQ(word(i), 0);
	EXPECT_EQ(take(spans - 1), 0);
	EXPECT_EQ(take(2), SPAN_NONE);
	EXPECT_EQ(take(1), spans - 1);
	expect_hints(spans, spans);
}

FORKED_TEST(shm_span, a_run_is_where_enough_are_free_behind_each_other)
{
	make_map();
	set_word(1, OTHERS);
	set_word(4, OTHERS);
	set_word(8, OTHERS);
	EXPECT_EQ(take(3), 5);
	expect_run(5, 3);
	EXPECT_EQ(take(4), 9);
	EXPECT_EQ(take(2), 2);
	EXPECT_EQ(take(1), 0);
	EXPECT_EQ(word(1), OTHERS);
	EXPECT_EQ(word(4), OTHERS);
	EXPECT_EQ(word(8), OTHERS);
}

FORKED_TEST(shm_span, hints_that_are_wrong_cost_time_only)
{
	make_map();
	for (uint32_t i = 1; i < spans; i++)
		set_word(i, OTHERS);
	for (uint32_t low = 0; low < 2 * spans; low++) {
		atomic_store(&segment_shared(&map)->low, low);
		EXPECT_EQ(take(1), 0);
		expect_hints(1, 1);
		give(0, 1);
		expect_hints(0, 1);
	}
	/* The top is a sweep's, and never falls. */
	atomic_store(&segment_shared(&map)->top, 9);
	EXPECT_EQ(take(1), 0);
	expect_hints(1, 9);
	/* Where it begins to look: what lies before is left. */
	set_word(3, 0);
	set_word(5, 0);
	atomic_store(&segment_shared(&map)->low, 4);
	EXPECT_EQ(take(1), 5);
	expect_hints(6, 9);
	give(5, 1);
	expect_hints(5, 9);
	atomic_store(&segment_shared(&map)->low, 2);
	set_word(7, segment_span_word(SLOT, GEN, SEGMENT_SPAN_RUN, 1));
	give(7, 1);
	expect_hints(2, 9);
}

/* --- giving back ------------------------------------------------------------------------- */

FORKED_TEST(shm_span, what_is_given_back_is_empty_and_others_memory_stays)
{
	make_map();
	EXPECT_EQ(take(4), 0);
	set_word(0, segment_span_word(SLOT, GEN, SEGMENT_SPAN_RUN, 1));
	set_word(1, segment_span_word(SLOT, GEN, SEGMENT_SPAN_RUN, 2));
	set_word(3, segment_span_word(SLOT, GEN, SEGMENT_SPAN_RUN, 1));
	memset(span_data(&map, 0), 'x', 4 * SEGMENT_SPAN);
	errno = ENOTTY;
	give(1, 2);
	EXPECT_EQ(errno, ENOTTY);
	EXPECT_EQ(span_data(&map, 1)[-1], 'x');
	EXPECT_EQ(span_data(&map, 1)[0], 0);
	EXPECT_EQ(span_data(&map, 3)[-1], 0);
	EXPECT_EQ(span_data(&map, 3)[0], 'x');
	EXPECT(word(0) != 0 && word(1) == 0 && word(2) == 0 && word(3) != 0);
}

FORKED_TEST(shm_span, what_cannot_be_emptied_is_given_back_too)
{
	make_map();
	EXPECT_EQ(take(2), 0);
	NEED(seccomp_refuse(SYS_madvise, EINVAL) == 0);
	errno = ENOTTY;
	give(0, 2);
	EXPECT_EQ(errno, ENOTTY);
	EXPECT(word(0) == 0 && word(1) == 0);
}

/* Expects that @first is not given back, as the map says another thing of it. */
static void
expect_kept(uint32_t first, uint32_t count)
{
	uint64_t before[4];

	span_data(&map, first)[5] = 'x';
	for (uint32_t i = 0; i < 4; i++)
		before[i] = word(i);
	give(first, count);
	for (uint32_t i = 0; i < 4; i++)
		EXPECT_EQ(word(i), before[i]);
	EXPECT_EQ(span_data(&map, first)[5], 'x');
}

FORKED_TEST(shm_span, what_the_map_says_is_not_ours_stays)
{
	make_map();
	EXPECT_EQ(take(2), 0);
	expect_kept(0, 1);
	expect_kept(0, 3);
	expect_kept(1, 1);
	expect_kept(1, 2);
	set_word(0, segment_span_word(0, GEN, SEGMENT_SPAN_RUN, 2));
	expect_kept(0, 2);
	set_word(0, segment_span_word(SLOT, GEN + 1, SEGMENT_SPAN_RUN, 2));
	expect_kept(0, 2);
	set_word(0, segment_span_word(SLOT, GEN, SEGMENT_SPAN_REST, 2));
	expect_kept(0, 2);
	set_word(0, segment_span_word(SLOT, GEN, SEGMENT_SPAN_RUN, 2));
	set_word(1, OTHERS);
	expect_kept(0, 2);
	set_word(1, segment_span_word(SLOT, GEN, SEGMENT_SPAN_REST, 0));
	give(0, 2);
	EXPECT(word(0) == 0 && word(1) == 0);
}

/* --- another ------------------------------------------------------------------------------- */

static uint32_t taken_by_other;

/* Before the third span of the run, another takes that. */
static void
take_third(void)
{
	static unsigned times;

	if (++times == 3)
		set_word(taken_by_other, OTHERS);
}

FORKED_TEST(shm_span, a_run_that_another_has_part_of_is_taken_behind_it)
{
	make_map();
	mark_at = MARK_TAKEN;
	between = take_third;
	taken_by_other = 2;
	EXPECT_EQ(take(4), 4);
	expect_run(4, 4);
	EXPECT(word(0) == 0 && word(1) == 0 && word(3) == 0);
	EXPECT_EQ(word(2), OTHERS);
	expect_hints(0, 8);
}

/* Between two that are given back, somebody writes over the map. */
static void
write_over(void)
{
	set_word(1, OTHERS);
}

FORKED_TEST(shm_span, what_another_has_meanwhile_is_not_given_away)
{
	make_map();
	EXPECT_EQ(take(3), 0);
	mark_at = MARK_GIVEN;
	between = write_over;
	give(0, 3);
	EXPECT_EQ(word(0), 0);
	EXPECT_EQ(word(1), OTHERS);
	EXPECT_EQ(word(2), 0);
}
