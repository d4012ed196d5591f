/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shm.c - what several threads share of the plane of shared memory, under the
 * thread sanitizer: a ring, whose ends are two threads; loans that are taken by one
 * and collected by another; an arena from which all have blocks, and give those of
 * others back; and sweeps, while others come and go.
 *
 * The plane itself is one a process, so threads are no ranks here: each end has
 * what one rank has of it.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "segment/owner.h"
#include "segment/sweep.h"
#include "worker/shm/arena.h"
#include "worker/shm/hold.h"
#include "worker/shm/loan.h"
#include "worker/shm/ring.h"
#include "worker/shm/span.h"
#include "worker/shm/window.h"

#define MESSAGES 20000
#define BLOCKS   4000
#define THREADS  4
#define ROUNDS   200
#define SLOTS    8

static int failures;
static struct segment_map map;

static void
check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "# %s\n", what);
	__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
}

static void
result(int number, const char *name)
{
	static int before;

	printf("%s %d - %s\n", failures == before ? "ok" : "not ok", number,
		name);
	before = failures;
}

static void
make_segment(void)
{
	const struct segment_wish wish = {
		.job = "k7m2",
		.ranks = SLOTS,
		.most = UINT64_C(256) << 20,
	};
	struct segment_tag tag = { .fd = segment_create(&wish) };
	struct stat st;

	check(fstat(tag.fd, &st) == 0, "fstat");
	tag.inode = st.st_ino;
	check(segment_map(&tag, &map), "map");
	for (uint32_t i = 0; i < SLOTS; i++)
		atomic_store(&segment_slot(&map, i)->claim,
			segment_claim_word(1, SEGMENT_HELD,
				(uint32_t)getpid()));
}

/* --- a ring, with loans over it ------------------------------------------- */

static struct arena arena[2];
static struct ring_head *head;
static struct loans loans;
static struct lender *lender;
static _Atomic bool written;

/* Lends a block with each message that there is a loan for. */
static bool
post(struct ring_out *out, uint64_t number)
{
	const struct ring_word w = { .len = sizeof(struct ring_ref),
		.type = RING_HANDLE };
	struct ring_ref ref = { .len = 64 };
	enum ring_state state;
	struct ring_record *r = ring_reserve(out, ring_lines(w), &state);
	struct loan loan = { .len = 64 };
	uint64_t *data;
	int index;

	if (r == NULL)
		return false;
	data = arena_alloc(&arena[0], 64);
	loan.data = data;
	*data = number;
	index = loans_take(&loans, &loan, LOAN_LOUD);
	if (index == -1) {
		arena_unref(&arena[0], data);
		return false;
	}
	ref.loan = (uint32_t)index;
	ref.offset = (uint64_t)((char *)data - map.base);
	memcpy(r->body, &ref, sizeof(ref));
	r->record.corr = number;
	ring_publish(out, w, ring_lines(w));
	ring_ahead(out);
	return true;
}

static void *
write_all(void *ctx)
{
	struct ring_out out;
	uint64_t number = 0;

	(void)ctx;
	ring_write(&out, head, RING_LINES);
	while (number < MESSAGES)
		if (post(&out, number))
			number++;
		else
			sched_yield();
	atomic_store(&written, true);
	return NULL;
}

static void *
collect_all(void *ctx)
{
	struct loan_end ends[16];
	uint32_t count, all = 0;

	(void)ctx;
	while (all < MESSAGES) {
		count = loans_collect(&loans, ends, 16, LOANS_ENDED);
		for (uint32_t i = 0; i < count; i++)
			arena_unref(&arena[0], ends[i].data);
		all += count;
		if (count == 0)
			sched_yield();
	}
	return NULL;
}

/* What is read is held, and given back by another thread. */
static struct hold *_Atomic box;

static void *
give_back(void *ctx)
{
	uint32_t count = 0;
	struct hold *h;

	(void)ctx;
	while (count < MESSAGES) {
		h = atomic_exchange(&box, NULL);
		if (h == NULL) {
			sched_yield();
			continue;
		}
		hold_unref(h);
		count++;
	}
	return NULL;
}

static void
read_one(struct ring_in *in, struct ring_word w, uint32_t lines,
	uint64_t number)
{
	struct ring_record *r = ring_line(head, in->at, in->lines);
	struct ring_ref ref;
	struct hold *h, *none = NULL;

	check(w.type == RING_HANDLE && r->record.corr == number, "in order");
	memcpy(&ref, r->body, sizeof(ref));
	ring_consume(in, lines);
	h = hold_new(lender, &ref);
	check(h != NULL && *(const uint64_t *)h->data == number, "lent");
	while (!atomic_compare_exchange_weak(&box, &none, h)) {
		none = NULL;
		sched_yield();
	}
}

static void *
read_all(void *ctx)
{
	struct ring_in in;
	struct ring_word w;
	uint32_t lines;
	uint64_t number = 0;

	(void)ctx;
	ring_read(&in, head, RING_LINES);
	while (number < MESSAGES) {
		enum ring_state state = ring_peek(&in, &w, &lines);

		check(state != RING_BROKEN, "broken");
		if (state != RING_OK)
			sched_yield();
		else if (w.type == RING_SKIP)
			ring_consume(&in, lines);
		else
			read_one(&in, w, lines, number++);
	}
	return NULL;
}

static void
try_ring(void)
{
	static void *(*const does[])(void *) = { write_all, read_all,
		collect_all, give_back };
	pthread_t thread[4];

	head = arena_alloc(&arena[0], ring_bytes(RING_LINES));
	ring_make(head, RING_LINES);
	loans_init(&loans, head);
	lender = lender_new(&map, 1, 1, 0,
		segment_ring_word((uint64_t)((char *)head - map.base), 1, 1));
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, does[i], NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	check(atomic_load(&loans.count) == 0, "all came back");
	lender_close(lender, false);
	lender_unref(lender);
	pthread_mutex_destroy(&loans.lock);
	arena_unref(&arena[0], head);
	result(1, "a ring, and what is lent over it");
}

/* --- an arena ------------------------------------------------------------- */

static uint64_t *_Atomic shelf[64];

static void *
swap_blocks(void *ctx)
{
	unsigned seed = (unsigned)(uintptr_t)ctx;
	struct arena *a = &arena[0];

	for (int i = 0; i < BLOCKS; i++) {
		size_t len = 8 +
			(size_t)rand_r(&seed) %
				(i % 100 == 0 ? 3u << 20 : 5000u);
		uint64_t *mine = arena_alloc(a, len), *other;

		check(mine != NULL, "alloc");
		*mine = (uintptr_t)mine;
		check(arena_ref(a, mine, len), "ref");
		arena_unref(a, mine);
		other = atomic_exchange(&shelf[rand_r(&seed) % 64], mine);
		if (other == NULL)
			continue;
		check(*other == (uintptr_t)other, "nobody else's");
		arena_unref(a, other);
	}
	return NULL;
}

static void
try_arena(void)
{
	pthread_t thread[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, swap_blocks, (void *)(i + 1));
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 64; i++)
		if (shelf[i] != NULL)
			arena_unref(&arena[0], shelf[i]);
	arena_trim(&arena[0], 0);
	result(2, "blocks that another thread gives back");
}

/* --- dying, and sweeping -------------------------------------------------- */

/* Each has a slot, takes spans, dies of it, and sweeps as its next life. */
static void *
die_and_sweep(void *ctx)
{
	uint32_t slot = 2 + (uint32_t)(uintptr_t)ctx;
	struct segment_slot *s = segment_slot(&map, slot);

	for (int i = 0; i < ROUNDS; i++) {
		uint32_t gen = segment_gen(atomic_load(&s->claim));
		uint32_t first = span_take(&map, slot, gen, 3);

		check(first != SPAN_NONE, "take");
		if (i % 2 == 0)
			span_give(&map, slot, gen,
				(struct span_run){ first, 3 });
		check(segment_take(s, atomic_load(&s->claim), SEGMENT_HELD,
			      (uint32_t)getpid()),
			"nobody else's");
		span_sweep(&map, slot, gen + 1, 2);
	}
	return NULL;
}

static void
try_sweep(void)
{
	uint32_t before = segment_spans_taken(&map);
	pthread_t thread[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, die_and_sweep, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	span_sweep(&map, 0, 1, UINT32_MAX);
	check(segment_spans_taken(&map) == before, "nothing leaks");
	result(3, "spans of the dead, swept by several");
}

/* --- windows -------------------------------------------------------------- */

#define BODY (1000003u)

static struct window window;
static unsigned char from[BODY], to[BODY];

static void *
feed(void *ctx)
{
	const struct xr_part part = { from, BODY };
	struct window_end end = { .window = &window };

	(void)ctx;
	while (end.done < BODY)
		if (window_feed(&end, &part, 1, BODY) == WINDOW_SAME)
			sched_yield();
	return NULL;
}

static void
try_windows(void)
{
	struct window_end end = { .window = &window };
	pthread_t thread;

	for (uint32_t i = 0; i < BODY; i++)
		from[i] = (unsigned char)(i * 7 + i / 251);
	pthread_create(&thread, NULL, feed, NULL);
	while (end.done < BODY)
		if (window_take(&end, to, BODY) == WINDOW_SAME)
			sched_yield();
	pthread_join(thread, NULL);
	check(memcmp(from, to, BODY) == 0, "all bytes");
	result(4, "a body through windows");
}

int
main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..4\n");
	make_segment();
	for (uint32_t i = 0; i < 2; i++)
		check(arena_init(&arena[i], &map, i, 1), "arena");
	try_ring();
	try_arena();
	try_sweep();
	try_windows();
	return failures != 0;
}
