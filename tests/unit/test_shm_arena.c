/* SPDX-License-Identifier: Apache-2.0 */
/* test_shm_arena.c - the heap of a process in the segment: which block and which span is
 * given, what is kept, and when it goes back (worker/shm/arena.c). The clock is the
 * test's. */
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "segment/owner.h"
#include "tests/unit/forked.h"
#include "tests/unit/short_memory.h"
#include "worker/shm/arena.h"
#include "worker/shm/span.h"

#define SLOT 1
#define GEN  7
#define MIB  (UINT64_C(1) << 20)

TestSuite(shm_arena, .timeout = 60);

static struct segment_map map;
static struct arena arena;
static int64_t now = 1000 * NS_PER_S;

int64_t __wrap_clock_now(void);

int64_t
__wrap_clock_now(void)
{
	return now;
}

static void
make_arena(uint64_t most)
{
	const struct segment_wish wish = {
		.job = "k7m2",
		.ranks = 2,
		.most = most,
	};
	struct segment_tag tag = { .fd = segment_create(&wish) };
	struct stat st;

	NEED(tag.fd != -1 && fstat(tag.fd, &st) == 0);
	tag.inode = st.st_ino;
	NEED(segment_map(&tag, &map));
	atomic_store(&segment_slot(&map, SLOT)->claim,
		segment_claim_word(GEN, SEGMENT_HELD, (uint32_t)getpid()));
	atomic_store(&segment_slot(&map, 0)->claim,
		segment_claim_word(4, SEGMENT_FREE, 0));
	NEED(arena_init(&arena, &map, SLOT, GEN));
}

static void *
take(size_t len)
{
	void *at = arena_alloc(&arena, len);

	NEED(at != NULL);
	return at;
}

static void
give(const void *at)
{
	arena_unref(&arena, at);
}

/* Which span @at is in. */
static uint32_t
span_of(const void *at)
{
	return (uint32_t)(((const char *)at - map.base - map.plan.arena) /
		SEGMENT_SPAN);
}

static uint32_t
taken(void)
{
	return segment_spans_taken(&map);
}

/* --- sizes ------------------------------------------------------------------------------ */

FORKED_TEST(shm_arena, there_are_four_sizes_a_doubling)
{
	static const uint32_t sizes[] = { 64, 128, 192, 256, 320, 384, 448, 512,
		640, 768, 896, 1024, 1280, 1536, 1792, 2048 };
	size_t len = 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (; len <= sizes[i]; len++)
			EXPECT_EQ(arena_room(len), sizes[i]);
	EXPECT_EQ(arena_room(896 << 10), 896 << 10);
	EXPECT_EQ(arena_room((896 << 10) + 1), MIB);
	EXPECT_EQ(arena_room(MIB), MIB);
	EXPECT_EQ(arena_room(MIB + 1), SEGMENT_SPAN);
	EXPECT_EQ(arena_room(SEGMENT_SPAN), SEGMENT_SPAN);
	EXPECT_EQ(arena_room(SEGMENT_SPAN + 1), 2 * SEGMENT_SPAN);
}

/* --- blocks ------------------------------------------------------------------------------- */

FORKED_TEST(shm_arena, the_block_that_was_freed_last_is_used_first)
{
	char *at[4];

	make_arena(64 * MIB);
	for (int i = 0; i < 4; i++)
		at[i] = take(100);
	for (int i = 1; i < 4; i++)
		EXPECT_EQ(at[i] - at[0], 128 * i);
	give(at[1]);
	give(at[3]);
	give(at[0]);
	EXPECT(take(100) == at[0]);
	EXPECT(take(100) == at[3]);
	EXPECT(take(100) == at[1]);
	EXPECT(take(100) == at[0] + 4 * 128);
	EXPECT_EQ(taken(), 1);
	EXPECT(span_of(take(300)) == 1); /* another size */
	EXPECT_EQ(taken(), 2);
}

FORKED_TEST(shm_arena, a_full_span_is_followed_by_another)
{
	char *at[5];

	make_arena(64 * MIB);
	for (int i = 0; i < 5; i++) {
		at[i] = take(MIB);
		EXPECT_EQ(span_of(at[i]), i / 2);
	}
	EXPECT_EQ(taken(), 3);
	/* One of two that is empty serves others; the last of a size stays. */
	give(at[0]);
	EXPECT_EQ(arena.kept_bytes, 0);
	give(at[1]);
	EXPECT_EQ(arena.kept_bytes, SEGMENT_SPAN);
	EXPECT_EQ(span_of(take(100)), 0);
	EXPECT_EQ(arena.kept_bytes, 0);
	give(at[2]);
	give(at[4]); /* its span is empty, and there is that of the third */
	EXPECT_EQ(arena.kept_bytes, SEGMENT_SPAN);
	give(at[3]);
	EXPECT_EQ(arena.kept_bytes, SEGMENT_SPAN);
	EXPECT(take(MIB) == at[3] || take(MIB) == at[2]);
	EXPECT_EQ(taken(), 3);
}

FORKED_TEST(shm_arena, a_block_lives_as_long_as_it_has_references)
{
	char *at, *next;

	make_arena(64 * MIB);
	at = take(100);
	next = take(100);
	EXPECT(arena_ref(&arena, at, 128));
	EXPECT(!arena_ref(&arena, at, 129));
	EXPECT(!arena_ref(&arena, at + 1, 128));
	EXPECT(arena_ref(&arena, at + 127, 1));
	EXPECT(!arena_ref(&arena, next + 128, 1)); /* never given */
	EXPECT(!arena_ref(&arena, map.base + map.plan.arena - 1, 1));
	EXPECT(!arena_ref(&arena, map.base + map.plan.size, 0));
	EXPECT(!arena_ref(&arena, map.base + map.plan.size - 1, 1));
	give(at);
	give(at);
	EXPECT(take(100) != at);
	give(at);
	EXPECT(!arena_ref(&arena, at, 1));
	EXPECT(take(100) == at);
	EXPECT(arena_ref(&arena, at, 1));
	atomic_store(&atomic_load(&arena.span[0])->block[0].refs, UINT32_MAX);
	EXPECT(!arena_ref(&arena, at, 1)); /* it would be none */
	EXPECT_EQ(atomic_load(&atomic_load(&arena.span[0])->block[0].refs),
		UINT32_MAX);
}

FORKED_TEST(shm_arena, nothing_is_in_a_span_behind_its_last_block)
{
	char *at;

	make_arena(64 * MIB);
	at = take(600 << 10); /* 640 KiB: three of them, and 128 KiB */
	EXPECT_EQ(arena_room(600 << 10), 640 << 10);
	take(600 << 10);
	take(600 << 10);
	EXPECT(arena_ref(&arena, at + 3 * (640 << 10) - 1, 1));
	EXPECT(!arena_ref(&arena, at + 3 * (640 << 10), 1));
	EXPECT_EQ(span_of(take(600 << 10)), 1);
}

/* --- runs ------------------------------------------------------------------------------------ */

FORKED_TEST(shm_arena, a_large_block_is_a_run_of_spans)
{
	char *at, *other;

	make_arena(64 * MIB);
	at = take(2 * SEGMENT_SPAN + 1);
	EXPECT_EQ(taken(), 3);
	EXPECT_EQ(span_of(at), 0);
	EXPECT(arena_ref(&arena, at, 3 * SEGMENT_SPAN));
	EXPECT(!arena_ref(&arena, at, 3 * SEGMENT_SPAN + 1));
	give(at + 3 * SEGMENT_SPAN - 1);
	other = take(MIB + 1);
	EXPECT_EQ(span_of(other), 3);
	EXPECT(arena_alloc(&arena,
		       (uint64_t)(ARENA_RUN_MAX + 1) * SEGMENT_SPAN) == NULL);
	EXPECT(arena_alloc(&arena, map.plan.spans * SEGMENT_SPAN) == NULL);
	give(at);
	EXPECT_EQ(arena.kept_bytes, 3 * SEGMENT_SPAN);
	EXPECT_EQ(taken(), 4);
	for (int i = 0; i < 3; i++)
		EXPECT(atomic_load(&arena.span[i]) == NULL);
	/* One that is too small, and one that is much too large. */
	EXPECT_EQ(span_of(take(4 * SEGMENT_SPAN)), 4);
	EXPECT_EQ(span_of(take(2 * SEGMENT_SPAN)), 8);
	EXPECT_EQ(span_of(take(3 * SEGMENT_SPAN)), 0);
	EXPECT_EQ(arena.kept_bytes, 0);
}

FORKED_TEST(shm_arena, of_runs_that_are_kept_the_smallest_that_fits_is_used)
{
	const uint32_t run[] = { 5, 4, 5, 6 };
	char *at[4];

	make_arena(128 * MIB);
	for (int i = 0; i < 4; i++)
		at[i] = take(run[i] * SEGMENT_SPAN);
	for (int i = 0; i < 4; i++)
		give(at[i]);
	EXPECT_EQ(arena.kept_bytes, 20 * SEGMENT_SPAN);
	EXPECT(take(4 * SEGMENT_SPAN) == at[1]);
	EXPECT(take(4 * SEGMENT_SPAN) == at[2]); /* 5 is not much too large */
	EXPECT(take(5 * SEGMENT_SPAN) == at[0]);
	EXPECT(take(5 * SEGMENT_SPAN) == at[3]);
	EXPECT_EQ(arena.kept_bytes, 0);
	give(at[3]);
	EXPECT(take(4 * SEGMENT_SPAN) != at[3]); /* 6 is */
}

FORKED_TEST(shm_arena, what_is_kept_has_a_limit_and_the_oldest_goes)
{
	static char *at[40];
	uint32_t last;

	make_arena(256 * MIB);
	EXPECT_EQ(arena.kept_max, 64 * MIB);
	for (int i = 0; i < 40; i++)
		at[i] = take(SEGMENT_SPAN);
	EXPECT_EQ(taken(), 40);
	for (int i = 0; i < 40; i++)
		give(at[i]);
	EXPECT_EQ(arena.kept_bytes, 64 * MIB);
	EXPECT_EQ(taken(), 32);
	for (uint32_t i = 0; i < 40; i++)
		EXPECT_EQ(atomic_load(&segment_spans(&map)[i]) != 0, i >= 8);
	arena_trim(&arena, 3 * SEGMENT_SPAN);
	EXPECT_EQ(taken(), 3);
	last = span_of(take(SEGMENT_SPAN));
	EXPECT_EQ(last, 39); /* freed last */
	arena_trim(&arena, 0);
	EXPECT_EQ(taken(), 1);
	EXPECT(arena.kept == NULL);
}

FORKED_TEST(shm_arena, of_a_large_arena_a_sixteenth_is_kept)
{
	make_arena(4096 * MIB);
	if (map.plan.spans > 1024)
		EXPECT_EQ(arena.kept_max, map.plan.spans * SEGMENT_SPAN / 16);
	else
		EXPECT_EQ(arena.kept_max, 64 * MIB);
}

/* --- retiring -------------------------------------------------------------------------------- */

static int64_t due;
static unsigned asked;

static void
retire(int64_t when)
{
	due = when;
	asked++;
}

FORKED_TEST(shm_arena, what_is_not_used_for_a_second_or_two_goes_back)
{
	char *at[6];
	int64_t begun = now, next;

	make_arena(64 * MIB);
	arena_on_retire(&arena, retire);
	for (int i = 0; i < 6; i++)
		at[i] = take(SEGMENT_SPAN);
	for (int i = 0; i < 4; i++)
		give(at[i]);
	EXPECT_EQ(asked, 0); /* 8 MiB */
	EXPECT_EQ(arena_retire(&arena, now), INT64_MAX);
	give(at[4]);
	give(at[5]);
	EXPECT_EQ(asked, 1);
	EXPECT_EQ(due, begun + NS_PER_S);
	EXPECT_EQ(arena_retire(&arena, due - 1), due);
	EXPECT_EQ(taken(), 6);
	/* Something was used or freed meanwhile. */
	next = arena_retire(&arena, due);
	EXPECT_EQ(next, due + NS_PER_S);
	EXPECT_EQ(taken(), 6);
	next = arena_retire(&arena, next);
	EXPECT_EQ(next, due + NS_PER_S); /* a run at a time */
	EXPECT_EQ(taken(), 5);
	give(take(SEGMENT_SPAN));
	EXPECT_EQ(arena_retire(&arena, next), next + NS_PER_S);
	EXPECT_EQ(taken(), 5);
	EXPECT_EQ(arena_retire(&arena, next + NS_PER_S), INT64_MAX);
	EXPECT_EQ(taken(), 4);
	EXPECT_EQ(asked, 1);
	EXPECT_EQ(arena_retire(&arena, INT64_MAX), INT64_MAX);
	EXPECT_EQ(taken(), 4);
	at[0] = take(SEGMENT_SPAN);
	at[1] = take(5 * SEGMENT_SPAN);
	now = begun + 50 * NS_PER_S;
	give(at[1]);
	EXPECT_EQ(asked, 2);
	EXPECT_EQ(due, now + NS_PER_S);
}

FORKED_TEST(shm_arena, without_anybody_who_retires_little_is_kept)
{
	char *at[10];

	make_arena(64 * MIB);
	for (int i = 0; i < 10; i++)
		at[i] = take(SEGMENT_SPAN);
	for (int i = 0; i < 10; i++)
		give(at[i]);
	EXPECT_EQ(taken(), 10);
	arena_on_retire(&arena, retire);
	EXPECT_EQ(asked, 1); /* what there is already */
	EXPECT_EQ(taken(), 10);
	arena_on_retire(&arena, NULL);
	EXPECT_EQ(taken(), 4);
	EXPECT_EQ(arena.kept_max, ARENA_IDLE);
	EXPECT_EQ(arena_retire(&arena, INT64_MAX), INT64_MAX);
	give(take(6 * SEGMENT_SPAN));
	EXPECT_EQ(arena.kept_bytes <= ARENA_IDLE, true);
	arena_on_retire(&arena, retire);
	EXPECT_EQ(arena.kept_max, 64 * MIB);
	EXPECT_EQ(asked, 1);
}

/* --- a full arena ------------------------------------------------------------------------------ */

FORKED_TEST(shm_arena,
	a_full_arena_gives_back_what_it_keeps_and_looks_for_the_dead)
{
	uint64_t theirs = segment_span_word(0, 3, SEGMENT_SPAN_RUN, 1);
	uint32_t spans, i;
	char *first, *at;

	make_arena(64 * MIB);
	spans = map.plan.spans;
	first = take(3 * SEGMENT_SPAN);
	for (i = 3; i < spans; i++)
		take(SEGMENT_SPAN);
	EXPECT(arena_alloc(&arena, SEGMENT_SPAN) == NULL);
	EXPECT_EQ(arena.swept, now);
	/* What is kept is too large by much, and goes back for this. */
	give(first);
	EXPECT_EQ(arena.kept_bytes, 3 * SEGMENT_SPAN);
	at = take(SEGMENT_SPAN);
	EXPECT_EQ(span_of(at), 0);
	EXPECT_EQ(arena.kept_bytes, 0);
	take(2 * SEGMENT_SPAN);
	/* The spans of one who is not there: they are looked for each 10 ms. */
	give(at);
	arena_trim(&arena, 0);
	atomic_store(&segment_spans(&map)[0], theirs);
	now += 10 * NS_PER_MS - 1;
	EXPECT(arena_alloc(&arena, SEGMENT_SPAN) == NULL);
	EXPECT_EQ(atomic_load(&segment_spans(&map)[0]), theirs);
	now++;
	EXPECT(arena_alloc(&arena, SEGMENT_SPAN) != NULL);
	EXPECT_EQ(arena.swept, now);
}

FORKED_TEST(shm_arena, without_memory_nothing_is_given_and_nothing_is_lost)
{
	make_arena(64 * MIB);
	until_short = 1;
	EXPECT(arena_alloc(&arena, 100) == NULL);
	EXPECT_EQ(taken(), 0);
	until_short = 2;
	EXPECT(arena_alloc(&arena, 100) == NULL);
	EXPECT_EQ(taken(), 1); /* it is kept */
	EXPECT_EQ(arena.kept_bytes, SEGMENT_SPAN);
	until_short = 1;
	EXPECT(arena_alloc(&arena, SEGMENT_SPAN) == NULL);
	EXPECT_EQ(arena.kept_bytes, SEGMENT_SPAN);
	EXPECT_EQ(span_of(take(100)), 0);
	EXPECT_EQ(taken(), 1);
	until_short = 1;
	EXPECT(!arena_init(&arena, &map, SLOT, GEN));
}
