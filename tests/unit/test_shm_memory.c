/* SPDX-License-Identifier: Apache-2.0 */
/* test_shm_memory.c - blocks of the arena, what is lent of them, and what is held
 * of others: each by itself, in one process that plays two. */
#include <sys/mman.h>
#include <sys/stat.h>

#include "segment/owner.h"
#include "segment/sweep.h"
#include "tests/unit/forked.h"
#include "worker/shm/arena.h"
#include "worker/shm/hold.h"
#include "worker/shm/loan.h"
#include "worker/shm/ring.h"
#include "worker/shm/span.h"

#define RANKS  2
#define LENDER 0
#define USER   1

static struct segment_map map;
static struct arena arena[RANKS];
static struct ring_head *head; /* from the lender to the user */
static struct loans loans;
static struct lender *lender;
static _Atomic uint64_t attached;

static void
make_all(void)
{
	const struct segment_wish wish = {
		.job = "k7m2",
		.ranks = RANKS,
		.most = UINT64_C(64) << 20,
	};
	struct segment_tag tag = { .fd = segment_create(&wish) };
	struct stat st;

	NEED(tag.fd != -1 && fstat(tag.fd, &st) == 0);
	tag.inode = st.st_ino;
	NEED(segment_map(&tag, &map));
	for (uint32_t i = 0; i < RANKS; i++) {
		atomic_store(&segment_slot(&map, i)->claim,
			segment_claim_word(1, SEGMENT_HELD,
				(uint32_t)getpid()));
		NEED(arena_init(&arena[i], &map, i, 1));
	}
	head = arena_alloc(&arena[LENDER], ring_bytes(RING_LINES));
	NEED(head != NULL);
	ring_make(head, RING_LINES);
	loans_init(&loans, head);
}

static uint64_t
offset_of(const void *at)
{
	return (uint64_t)((const char *)at - map.base);
}

/* --- the arena ------------------------------------------------------------ */

FORKED_TEST(shm_memory, each_size_has_room_and_no_block_meets_another)
{
	static char *at[3000];
	static size_t size[3000];
	uint32_t count = 0;

	make_all();
	for (size_t len = 0; len < 5000; len += 1 + len / 50)
		size[count++] = len;
	size[count++] = ARENA_LARGE;
	size[count++] = ARENA_LARGE + 1;
	size[count++] = 3 * SEGMENT_SPAN;
	for (uint32_t i = 0; i < count; i++) {
		at[i] = arena_alloc(&arena[LENDER], size[i]);
		NEED(at[i] != NULL);
		EXPECT((uintptr_t)at[i] % ARENA_ALIGN == 0);
		EXPECT(arena_room(size[i]) >= size[i]);
		EXPECT(arena_room(size[i]) <= size[i] + size[i] / 4 + 64 ||
			size[i] > ARENA_LARGE);
		memset(at[i], (int)i, size[i]);
	}
	for (uint32_t i = 0; i < count; i++) {
		for (size_t j = 0; j < size[i]; j += 1 + j / 9)
			EXPECT(at[i][j] == (char)i);
		arena_unref(&arena[LENDER], at[i]);
	}
	arena_unref(&arena[LENDER], head);
	arena_trim(&arena[LENDER], 0);
	/* Those of one size may keep a span. */
	EXPECT(segment_spans_taken(&map) <= ARENA_CLASSES);
}

FORKED_TEST(shm_memory, a_reference_is_to_what_lies_in_one_block)
{
	char *at, *large;

	make_all();
	at = arena_alloc(&arena[LENDER], 1000);
	large = arena_alloc(&arena[LENDER], 2 * SEGMENT_SPAN);
	EXPECT(arena_ref(&arena[LENDER], at, 1000));
	EXPECT(arena_ref(&arena[LENDER], at + 999, 1));
	EXPECT(!arena_ref(&arena[LENDER], at, arena_room(1000) + 1));
	EXPECT(!arena_ref(&arena[LENDER], at, UINT64_MAX));
	EXPECT(!arena_ref(&arena[USER], at, 1));
	EXPECT(!arena_ref(&arena[LENDER], &map, 1));
	EXPECT(!arena_ref(&arena[LENDER], map.base, 1));
	EXPECT(arena_ref(&arena[LENDER], large + SEGMENT_SPAN + 5, 7));
	for (int i = 0; i < 3; i++)
		arena_unref(&arena[LENDER], at);
	EXPECT(!arena_ref(&arena[LENDER], at, 1)); /* nobody's */
	arena_unref(&arena[LENDER], large);
	EXPECT(arena_ref(&arena[LENDER], large, 1)); /* one was left */
}

FORKED_TEST(shm_memory, a_full_arena_says_so_and_has_what_the_dead_had)
{
	uint32_t spans;
	void *at, *last = NULL;

	make_all();
	spans = map.plan.spans;
	for (uint32_t i = 0;
		(at = arena_alloc(&arena[i % 2], SEGMENT_SPAN)) != NULL; i++)
		last = at;
	EXPECT_EQ(segment_spans_taken(&map), spans);
	EXPECT(arena_alloc(&arena[LENDER], 3 * SEGMENT_SPAN) == NULL);
	/* The other dies. */
	atomic_store(&segment_slot(&map, USER)->claim,
		segment_claim_word(2, SEGMENT_FREE, 0));
	arena[LENDER].swept = 0;
	at = arena_alloc(&arena[LENDER], SEGMENT_SPAN);
	EXPECT(at != NULL && last != NULL);
	EXPECT(segment_spans_taken(&map) < spans);
}

FORKED_TEST(shm_memory, what_the_map_says_is_anothers_is_not_given_away)
{
	uint64_t theirs = segment_span_word(USER, 1, SEGMENT_SPAN_RUN, 1);
	uint32_t span;
	char *at;

	make_all();
	at = arena_alloc(&arena[LENDER], 2 * SEGMENT_SPAN);
	span = (uint32_t)((offset_of(at) - map.plan.arena) / SEGMENT_SPAN);
	at[SEGMENT_SPAN] = 'x';
	/* Somebody wrote over the map. */
	atomic_store(&segment_spans(&map)[span + 1], theirs);
	arena_unref(&arena[LENDER], at);
	arena_trim(&arena[LENDER], 0);
	EXPECT(atomic_load(&segment_spans(&map)[span + 1]) == theirs);
	EXPECT_EQ(at[SEGMENT_SPAN], 'x');
}

#define NOBODY INT32_MAX /* no process has that number */

/* What stands behind the last slot is none, whatever it looks like. */
FORKED_TEST(shm_memory, a_sweep_frees_the_slots_of_the_dead_and_nothing_behind)
{
	uint64_t claim, free_word;
	struct segment_swept swept;
	struct segment_slot *behind;
	uint32_t span;

	make_all();
	claim = segment_claim_word(1, SEGMENT_HELD, NOBODY);
	behind = segment_slot(&map, map.plan.slots);
	span = span_take(&map, USER, 1, 1);
	NEED(span != SPAN_NONE);
	atomic_store(&segment_slot(&map, USER)->claim, claim);
	atomic_store(&behind->claim, claim);
	swept = span_sweep(&map, LENDER, 1, UINT32_MAX);
	EXPECT(atomic_load(&behind->claim) == claim);
	free_word = atomic_load(&segment_slot(&map, USER)->claim);
	EXPECT_EQ(segment_state(free_word), SEGMENT_FREE);
	EXPECT(swept.freed >= 1);
	EXPECT(atomic_load(&segment_spans(&map)[span]) == 0);
	EXPECT(segment_has(atomic_load(&segment_slot(&map, LENDER)->claim), 1));
}

/* --- loans ---------------------------------------------------------------- */

static int
lend(void *data, uint64_t len, void *token)
{
	const struct loan loan = {
		.data = data,
		.len = len,
		.token = token,
		.has_token = token != NULL,
	};

	return loans_take(&loans, &loan, LOAN_LOUD);
}

FORKED_TEST(shm_memory, loans_end_when_their_words_do_and_not_before)
{
	struct loan_end ends[RING_LOANS];
	int index[3];

	make_all();
	for (int i = 0; i < 3; i++)
		index[i] = lend(arena_alloc(&arena[LENDER], 64), 64, NULL);
	EXPECT_EQ(loans_collect(&loans, ends, 9, LOANS_ENDED), 0);
	atomic_store(&head->loan[index[1]], LOAN_NONE);
	EXPECT_EQ(loans_collect(&loans, ends, 9, LOANS_ENDED), 0);
	atomic_fetch_add(&head->done, 1); /* now it is to be looked at */
	EXPECT_EQ(loans_collect(&loans, ends, 9, LOANS_ENDED), 1);
	EXPECT_EQ(atomic_load(&loans.count), 2);
	EXPECT_EQ(loans_collect(&loans, ends, 9, LOANS_ALL), 2);
	EXPECT_EQ(atomic_load(&loans.count), 0);
}

FORKED_TEST(shm_memory, there_are_so_many_loans_and_no_more)
{
	struct loan_end ends[RING_LOANS];
	void *data;

	make_all();
	data = arena_alloc(&arena[LENDER], 64);
	for (int i = 0; i < RING_LOANS; i++)
		EXPECT(lend(data, 64, NULL) >= 0);
	EXPECT_EQ(lend(data, 64, NULL), -1);
	loans_back(&loans, 77);
	EXPECT_EQ(lend(data, 64, NULL), 77);
	EXPECT_EQ(loans_collect(&loans, ends, 100, LOANS_ALL), 100);
	EXPECT_EQ(loans_collect(&loans, ends, RING_LOANS, LOANS_ALL),
		RING_LOANS - 100);
}

/* Who only might write yet has nothing more to be told of, but keeps blocks. */
FORKED_TEST(shm_memory, who_reads_no_more_keeps_blocks_and_no_tokens)
{
	struct loan_end ends[9];
	int token, other;
	void *data;

	make_all();
	data = arena_alloc(&arena[LENDER], 64);
	EXPECT(lend(NULL, 5000, &token) >= 0); /* private memory */
	EXPECT(lend(data, 64, &other) >= 0);
	EXPECT(lend(data, 64, NULL) >= 0);
	EXPECT_EQ(loans_collect(&loans, ends, 9, LOANS_READ), 2);
	EXPECT(ends[0].token == &token && ends[0].data == NULL);
	EXPECT(ends[1].token == &other && ends[1].data == NULL);
	EXPECT_EQ(atomic_load(&loans.count), 2);
	EXPECT_EQ(loans_collect(&loans, ends, 9, LOANS_READ), 0);
	EXPECT_EQ(loans_collect(&loans, ends, 9, LOANS_ALL), 2);
	EXPECT(!ends[0].has_token && ends[0].data == data);
}

FORKED_TEST(shm_memory, only_what_was_lent_comes_back_as_it)
{
	char *data;
	int index;

	make_all();
	data = arena_alloc(&arena[LENDER], 1000);
	index = lend(data + 100, 500, NULL);
	NEED(index >= 0);
	EXPECT(loans_covers(&loans, (uint32_t)index, &arena[LENDER], data + 100,
		500));
	EXPECT(loans_covers(&loans, (uint32_t)index, &arena[LENDER], data + 599,
		1));
	EXPECT(!loans_covers(&loans, (uint32_t)index, &arena[LENDER], data + 99,
		5));
	EXPECT(!loans_covers(&loans, (uint32_t)index, &arena[LENDER],
		data + 599, 2));
	EXPECT(!loans_covers(&loans, (uint32_t)index, &arena[LENDER],
		data + 100, UINT64_MAX));
	EXPECT(!loans_covers(&loans, (uint32_t)index + 1, &arena[LENDER],
		data + 100, 5));
	EXPECT(!loans_covers(&loans, RING_LOANS, &arena[LENDER], data + 100,
		5));
}

/* --- loans that nobody waits for any more ---------------------------------- */

static uint64_t
word_of(int index)
{
	return atomic_load(&head->loan[index]);
}

/* What the reader has not ended yet stays out until it does. */
FORKED_TEST(shm_memory, what_is_void_is_told_once_and_read_no_more)
{
	struct loan_end ends[9];
	int token[3], index[3];
	void *data;

	make_all();
	data = arena_alloc(&arena[LENDER], 64);
	index[0] = lend(NULL, 5000, &token[0]); /* private memory */
	index[1] = lend(NULL, 5000, &token[1]);
	index[2] = lend(data, 64, &token[2]);
	atomic_store(&head->loan[index[1]], LOAN_WINDOW);
	EXPECT_EQ(loans_asked(&loans), (uint32_t)index[1] + 1);
	atomic_store(&loans.feeding, (uint32_t)index[1] + 1);
	EXPECT(!loans_void(&loans, &ends));
	EXPECT(loans_void(&loans, &token[0]));
	EXPECT_EQ(word_of(index[0]), LOAN_VOID);
	EXPECT_EQ(atomic_load(&loans.feeding), (uint32_t)index[1] + 1);
	EXPECT_EQ(word_of(index[1]), LOAN_WINDOW);
	EXPECT(loans_void(&loans, &token[1]));
	EXPECT_EQ(word_of(index[1]), LOAN_VOID);
	EXPECT_EQ(atomic_load(&loans.feeding), 0);
	/* Even if the reader asks for it just now. */
	atomic_store(&head->loan[index[1]], LOAN_WINDOW);
	EXPECT_EQ(loans_asked(&loans), 0);
	EXPECT(loans_void(&loans, &token[2]));
	EXPECT_EQ(word_of(index[2]), LOAN_LOUD); /* a block of ours */
	for (int i = 0; i < 3; i++)
		EXPECT(!loans_void(&loans, &token[i]));
	EXPECT_EQ(atomic_load(&loans.count), 3);
	EXPECT_EQ(loans_collect(&loans, ends, 9, LOANS_ALL), 3);
	for (int i = 0; i < 3; i++)
		EXPECT(!ends[i].has_token);
}

/* The reader has ended it, and nobody has looked yet: it is no more out than that. */
FORKED_TEST(shm_memory, what_has_ended_before_it_is_void_comes_back)
{
	struct loan_end ends[9];
	int token, index;

	make_all();
	index = lend(NULL, 5000, &token);
	atomic_store(&head->loan[index], LOAN_NONE);
	EXPECT(loans_void(&loans, &token));
	EXPECT_EQ(word_of(index), LOAN_NONE);
	atomic_fetch_add(&head->done, 1);
	EXPECT_EQ(loans_collect(&loans, ends, 9, LOANS_ENDED), 1);
	EXPECT(!ends[0].has_token);
}

FORKED_TEST(shm_memory, all_that_have_a_token_are_void_one_by_one)
{
	void *token = NULL;
	int tokens[2];

	make_all();
	EXPECT(!loans_void_any(&loans, &token));
	lend(NULL, 10, NULL);
	lend(NULL, 5000, &tokens[0]);
	lend(NULL, 10, NULL);
	lend(NULL, 5000, &tokens[1]);
	for (int i = 0; i < 2; i++) {
		EXPECT(loans_void_any(&loans, &token));
		EXPECT(token == &tokens[i]);
	}
	EXPECT(!loans_void_any(&loans, &token));
	EXPECT_EQ(atomic_load(&loans.count), 4);
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(word_of(i), i % 2 == 1 ? LOAN_VOID : LOAN_LOUD);
}

/* A sender waits for room: only what would have ended in silence is to ring. */
FORKED_TEST(shm_memory, quiet_loans_become_loud_and_no_others)
{
	static const enum loan_word was[] = { LOAN_QUIET, LOAN_LOUD, LOAN_NONE,
		LOAN_WINDOW, LOAN_VOID, LOAN_QUIET };
	const struct loan loan = { .len = 10 };

	make_all();
	for (int i = 0; i < 6; i++) {
		EXPECT_EQ(loans_take(&loans, &loan, LOAN_QUIET), i);
		atomic_store(&head->loan[i], was[i]);
	}
	loans_all_loud(&loans);
	for (int i = 0; i < 6; i++)
		EXPECT_EQ(word_of(i),
			was[i] == LOAN_QUIET ? LOAN_LOUD : was[i]);
}

/* --- holds ---------------------------------------------------------------- */

static struct ring_ref
borrow(void **data)
{
	int index;

	*data = arena_alloc(&arena[LENDER], 1000);
	index = lend(*data, 1000, NULL);
	return (struct ring_ref){ offset_of(*data), 1000, (uint32_t)index, 0 };
}

static uint64_t
ring_word(void)
{
	return segment_ring_word(offset_of(head), 1, 1);
}

static void
read_ring(void)
{
	make_all();
	atomic_store(segment_dir(&map, USER, LENDER), ring_word());
	lender = lender_new(&map, USER, 1, LENDER, ring_word());
	NEED(lender != NULL);
	lender_attach(lender, &attached);
}

static uint32_t
table(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < SEGMENT_HOLDS; i++)
		count += atomic_load(&segment_holds(&map, USER)[i]) != 0;
	return count;
}

FORKED_TEST(shm_memory, the_last_reference_gives_a_loan_back)
{
	struct ring_ref ref;
	struct hold *h;
	void *data;

	read_ring();
	ref = borrow(&data);
	h = hold_new(lender, &ref);
	EXPECT(hold_find(lender, (char *)data + 999, 1) == h);
	EXPECT(hold_find(lender, (char *)data + 999, 2) == NULL);
	hold_unref(h);
	EXPECT_EQ(atomic_load(&head->loan[ref.loan]), LOAN_LOUD);
	hold_unref(h);
	EXPECT_EQ(atomic_load(&head->loan[ref.loan]), LOAN_NONE);
	EXPECT_EQ(atomic_load(&head->done), 1);
	EXPECT(hold_find(lender, data, 1) == NULL);
	lender_close(lender, false);
	lender_unref(lender);
}

FORKED_TEST(shm_memory, a_ring_is_let_go_with_the_last_hold)
{
	struct ring_ref ref;
	struct hold *h;
	void *data;

	read_ring();
	ref = borrow(&data);
	h = hold_new(lender, &ref);
	lender_close(lender, false);
	EXPECT_EQ(atomic_load(&head->gone), 1);
	EXPECT(atomic_load(segment_dir(&map, USER, LENDER)) == ring_word());
	EXPECT(attached == ring_word());
	lender_unref(lender);
	hold_unref(h);
	EXPECT_EQ(atomic_load(segment_dir(&map, USER, LENDER)), 0);
	EXPECT_EQ(attached, 0);
}

FORKED_TEST(shm_memory, holds_of_the_dead_stand_in_the_table_until_they_end)
{
	struct ring_ref ref[3];
	struct hold *h[3];
	void *data[3];

	read_ring();
	for (int i = 0; i < 3; i++) {
		ref[i] = borrow(&data[i]);
		h[i] = hold_new(lender, &ref[i]);
	}
	/* He dies, and nobody sweeps but the last who held something. */
	atomic_store(&segment_slot(&map, LENDER)->claim,
		segment_claim_word(2, SEGMENT_FREE, 0));
	lender_close(lender, true);
	EXPECT_EQ(atomic_load(segment_dir(&map, USER, LENDER)), 0);
	EXPECT_EQ(table(), 3);
	span_sweep(&map, USER, 1, UINT32_MAX);
	EXPECT(segment_spans_taken(&map) > 0);
	memset(data[2], 1, 1000);
	for (int i = 0; i < 3; i++)
		hold_unref(h[i]);
	EXPECT_EQ(table(), 0);
	EXPECT_EQ(segment_spans_taken(&map), 0);
	lender_unref(lender);
}

FORKED_TEST(shm_memory, where_the_table_is_full_the_ring_stays)
{
	struct hold *h[2];
	struct ring_ref ref;
	void *data;

	read_ring();
	for (uint32_t i = 1; i < SEGMENT_HOLDS; i++)
		atomic_store(&segment_holds(&map, USER)[i],
			segment_hold_word(64, 1));
	ref = borrow(&data);
	for (int i = 0; i < 2; i++)
		h[i] = hold_new(lender, &ref);
	lender_close(lender, true);
	EXPECT(atomic_load(segment_dir(&map, USER, LENDER)) == ring_word());
	EXPECT_EQ(table(), SEGMENT_HOLDS - 1);
	hold_unref(h[0]);
	hold_unref(h[1]);
	EXPECT_EQ(atomic_load(segment_dir(&map, USER, LENDER)), 0);
	lender_unref(lender);
}

FORKED_TEST(shm_memory, what_an_earlier_life_held_is_written_over)
{
	struct ring_ref ref;
	struct hold *h;
	void *data;

	read_ring();
	for (uint32_t i = 0; i < SEGMENT_HOLDS; i++)
		atomic_store(&segment_holds(&map, USER)[i],
			segment_hold_word(64, 7));
	ref = borrow(&data);
	h = hold_new(lender, &ref);
	lender_close(lender, true);
	EXPECT_EQ(atomic_load(segment_dir(&map, USER, LENDER)), 0);
	hold_unref(h);
	EXPECT_EQ(table(), SEGMENT_HOLDS - 1);
	lender_unref(lender);
}

FORKED_TEST(shm_memory, a_reader_is_there_for_its_link_and_its_holds)
{
	struct ring_ref ref[2];
	struct hold *h[2];
	uint64_t next;
	void *data[2];

	read_ring();
	next = ring_word() + RING_ALIGN;
	EXPECT_EQ(lender->refs, 1);
	for (int i = 0; i < 2; i++) {
		ref[i] = borrow(&data[i]);
		h[i] = hold_new(lender, &ref[i]);
		EXPECT_EQ(lender->refs, 2 + i);
	}
	EXPECT(hold_find(lender, data[0], 1000) == h[0]);
	EXPECT(hold_find(lender, data[0], 1001) == NULL);
	EXPECT_EQ(lender->refs, 3);
	hold_unref(h[0]);
	EXPECT_EQ(lender->refs, 3);
	hold_unref(h[0]);
	EXPECT_EQ(lender->refs, 2);
	EXPECT(hold_find(lender, data[1], 1) == h[1]);
	hold_unref(h[1]);
	hold_unref(h[1]);
	EXPECT_EQ(lender->refs, 1);
	/* The link is open, so the ring stays, without any hold. */
	EXPECT(attached == ring_word());
	EXPECT(atomic_load(segment_dir(&map, USER, LENDER)) == ring_word());
	EXPECT_EQ(atomic_load(&head->gone), 0);
	EXPECT_EQ(atomic_load(&head->done), 2);
	ref[0] = borrow(&data[0]);
	h[0] = hold_new(lender, &ref[0]);
	lender_close(lender, true);
	EXPECT(lender->moved && lender->over && lender->head == NULL);
	EXPECT_EQ(attached, 0);
	/* Another ring comes in its place. */
	attached = next;
	atomic_store(segment_dir(&map, USER, LENDER), next);
	lender_return(lender, (uint32_t)ref[0].loan);
	EXPECT_EQ(atomic_load(&head->loan[ref[0].loan]), LOAN_LOUD);
	hold_unref(h[0]);
	EXPECT_EQ(table(), 0);
	EXPECT(attached == next);
	EXPECT(atomic_load(segment_dir(&map, USER, LENDER)) == next);
	EXPECT_EQ(lender->refs, 1);
	lender_unref(lender);
}

FORKED_TEST(shm_memory, a_loan_without_a_hold_is_given_back_by_its_number)
{
	struct ring_ref ref[2];
	void *data[2];

	read_ring();
	for (int i = 0; i < 2; i++)
		ref[i] = borrow(&data[i]);
	lender_return(lender, (uint32_t)ref[1].loan);
	EXPECT_EQ(atomic_load(&head->loan[ref[0].loan]), LOAN_LOUD);
	EXPECT_EQ(atomic_load(&head->loan[ref[1].loan]), LOAN_NONE);
	EXPECT_EQ(atomic_load(&head->done), 1);
	EXPECT(!lender_close(lender, false));
	EXPECT_EQ(atomic_load(segment_dir(&map, USER, LENDER)), 0);
	lender_unref(lender);
}

/* The writer sleeps, and is woken for what is not quiet. */
FORKED_TEST(shm_memory, the_end_of_a_loan_wakes_its_lender_unless_it_is_quiet)
{
	struct segment_bell *bell;
	struct ring_ref ref;
	uint32_t rung;
	void *data;

	read_ring();
	bell = &segment_slot(&map, LENDER)->bell;
	atomic_store(&bell->asleep, 1);
	for (int i = 0; i < 4; i++) {
		bool quiet = i % 2 == 0;

		ref = borrow(&data);
		if (quiet)
			atomic_store(&head->loan[ref.loan], LOAN_QUIET);
		rung = atomic_load(&bell->rung);
		if (i < 2)
			hold_unref(hold_new(lender, &ref));
		else
			lender_return(lender, (uint32_t)ref.loan);
		EXPECT_EQ(atomic_load(&bell->rung) != rung, !quiet);
	}
	rung = atomic_load(&bell->rung);
	lender_close(lender, false);
	EXPECT(atomic_load(&bell->rung) != rung);
	lender_unref(lender);
}
