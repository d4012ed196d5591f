/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_queue.c - a queue from inside: what it leaves, what memory it needs, and what
 * others may write into it.
 */

#include <sys/mman.h>

#include "base/clock.h"
#include "tests/kit/entries.h"
#include "tests/unit/forked.h"
#include "tests/unit/short_memory.h"
#include "worker/queue/queue_inner.h"
#include "worker/queue/user.h"
#include "worker/queue/wake.h"

TestSuite(queue, .timeout = 60);

#define ALLOCATIONS 60

static struct xr_queue *
queue_of(const struct xr_queue_opts *opts)
{
	struct xr_queue *q = NULL;

	NEED(xr_queue_new(opts, &q, NULL) == XR_OK);
	return q;
}

#define QUEUE(...) \
	queue_of(&(struct xr_queue_opts){ \
		.size = sizeof(struct xr_queue_opts), \
		__VA_ARGS__ })

/* --- what it leaves --------------------------------------------------------------------- */

static unsigned
mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned n = 0;

	NEED(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		n += strstr(line, "xrun-queue") != NULL;
	fclose(f);
	return n;
}

/* One that was slept at has a thread, and descriptors of those who use it. */
static void
use(void)
{
	struct xr_queue *q = QUEUE(.lanes = 2), *lane = NULL;
	struct xr_queue_buf buf = { 0 };
	int fd;

	EXPECT_EQ(xr_queue_lane(q, 1, &lane, NULL), XR_OK);
	EXPECT_EQ(xr_queue_put_bytes(lane, "abc", 3, 0, NULL), XR_OK);
	EXPECT_EQ(xr_queue_get_bytes(q, &buf, 0, NULL), XR_OK);
	free(buf.data);
	buf.data = NULL;
	EXPECT_EQ(xr_queue_get_bytes(q, &buf, NS_PER_MS / 2, NULL),
		XR_E_TIMEOUT);
	EXPECT_EQ(xr_queue_fd(q, &fd, NULL), XR_OK);
	xr_queue_free(q);
	xr_queue_free(lane);
}

FORKED_TEST(queue, a_thousand_leave_no_descriptor_thread_or_mapping)
{
	unsigned fds, threads;

	use();
	fds = entries("/proc/self/fd");
	threads = entries("/proc/self/task");
	for (int i = 0; i < 1000; i++)
		use();
	EXPECT_EQ(entries("/proc/self/fd"), fds);
	EXPECT_EQ(entries("/proc/self/task"), threads);
	EXPECT_EQ(mappings(), 0);
}

/* --- how it wakes ------------------------------------------------------------------------ */

/* Each later ring then costs no system call. */
FORKED_TEST(queue, a_ring_without_a_sleeper_disarms)
{
	static struct wake w; /* aligned */

	EXPECT_EQ(wake_arm(&w), 0);
	EXPECT(w.armed & WAKE_ARMED);
	wake_ring(&w, 1);
	EXPECT_EQ(w.rung, 1);
	EXPECT(!(w.armed & WAKE_ARMED));
	wake_ring(&w, 1);
	EXPECT_EQ(w.rung, 1);
}

/* --- memory ----------------------------------------------------------------------------- */

static enum xr_status
all_of_it(void)
{
	struct xr_queue_opts opts = { .size = sizeof(opts), .redeliver = true };
	struct xr_queue_buf buf = { 0 };
	struct xr_value *v = NULL, *got = NULL;
	struct xr_queue *q = NULL;
	enum xr_status status;
	size_t count = 1;

	status = xr_queue_new(&opts, &q, NULL);
	if (status != XR_OK)
		return status;
	status = xr_queue_put_bytes(q, "abc", 3, 0, NULL);
	if (status == XR_OK)
		status = xr_queue_get_bytes(q, &buf, 0, NULL);
	free(buf.data);
	v = status == XR_OK ? xr_value_new_text("abc", 3) : NULL;
	if (status == XR_OK && v == NULL)
		status = XR_E_NOMEM;
	if (status == XR_OK)
		status = xr_queue_put_many(q, &v, &count, 0, NULL);
	if (status == XR_OK)
		status = xr_queue_get_many(q, &got, &count, 0, NULL);
	if (status == XR_OK)
		xr_value_unref(got);
	buf.data = NULL;
	if (status == XR_OK &&
		xr_queue_get_bytes(q, &buf, NS_PER_MS / 10, NULL) !=
			XR_E_TIMEOUT)
		status = XR_E_NOMEM;
	xr_value_unref(v);
	xr_queue_free(q);
	return status;
}

FORKED_TEST(queue, each_allocation_may_fail)
{
	unsigned failed = 0;

	for (unsigned n = 1; n < ALLOCATIONS; n++) {
		enum xr_status status;

		was_short = false;
		until_short = n;
		status = all_of_it();
		until_short = 0;
		EXPECT(status == (was_short ? XR_E_NOMEM : XR_OK));
		failed += was_short;
	}
	EXPECT(failed > 8);
}

FORKED_TEST(queue, an_item_stays_where_there_is_no_memory_for_it)
{
	struct xr_queue *q = QUEUE(0);
	struct xr_queue_buf buf = { 0 };

	EXPECT_EQ(xr_queue_put_bytes(q, "abc", 3, 0, NULL), XR_OK);
	until_short = 1;
	EXPECT_EQ(xr_queue_get_bytes(q, &buf, 0, NULL), XR_E_NOMEM);
	until_short = 0;
	EXPECT_EQ(xr_queue_get_bytes(q, &buf, 0, NULL), XR_OK);
	EXPECT_EQ(buf.len, 3);
	free(buf.data);
	xr_queue_free(q);
}

/* --- what others write -------------------------------------------------------------------- */

static uint64_t
chance(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Any word of all that is shared, but what says what it is, which is read once. Small
 * numbers, words that could be, and others. */
static void
scribble(const struct hall *h, uint64_t *state)
{
	uint64_t words = h->plan.lanes_at / 8 + h->plan.data_at / 8;
	uint64_t from = sizeof(struct hall_head) / 8, what = chance(state);
	_Atomic uint64_t *at = (_Atomic uint64_t *)(void *)h->base;
	uint64_t i = from + chance(state) % (words - from);

	/* Cells are most of what there is; ends and blocks come as often. */
	if (what % 4 == 0)
		i = h->plan.lanes_at / 8 + chance(state) % 48;
	if (what % 3 == 0)
		atomic_store(&at[i], chance(state));
	else if (what % 3 == 1)
		atomic_store(&at[i], chance(state) % 2048);
	else
		atomic_store(&at[i],
			cell_word((enum cell_phase)(chance(state) % 4),
				(uint32_t)(chance(state) % 8192),
				chance(state) % 4));
}

/* Whatever comes of it: calls end, and nothing is touched that is not theirs. */
static void
bear(enum xr_queue_kind kind, uint64_t seed)
{
	struct xr_queue *q = QUEUE(.kind = kind, .items = 8, .bytes = 16 << 10);
	static const char data[3000];
	uint64_t state = seed * 2 + 1;

	for (int i = 0; i < 400; i++) {
		struct xr_queue_buf buf = { 0 };
		struct xr_value *v = NULL;

		for (int n = 0; n < 3; n++)
			scribble(q->hall, &state);
		xr_queue_put_bytes(q, data, chance(&state) % sizeof(data), 0,
			NULL);
		if (i % 2 == 0 && xr_queue_get_bytes(q, &buf, 0, NULL) == XR_OK)
			free(buf.data);
		if (i % 2 == 1 && xr_queue_get(q, &v, 0, NULL) == XR_OK)
			xr_value_unref(v);
		xr_queue_count(q);
	}
	xr_queue_free(q);
}

FORKED_TEST(queue, what_others_write_into_it_leads_nowhere)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		bear(XR_QUEUE_ANY, seed);
		bear(XR_QUEUE_P2P, seed);
	}
}

FORKED_TEST(queue, one_whose_head_is_nonsense_is_refused)
{
	struct xr_queue *q = QUEUE(0), *other = NULL;
	struct hall_head *head = q->hall->head;
	int fds[XR_QUEUE_FDS];
	const uint32_t wrong[] = { 0, UINT32_MAX };

	xr_queue_fds(q, fds);
	for (int i = 0; i < 2; i++) {
		struct hall_head was = *head;

		head->items = wrong[i];
		EXPECT_EQ(xr_queue_adopt(fds, &other, NULL), XR_E_INVAL);
		head->items = was.items;
		head->lanes = wrong[i];
		EXPECT_EQ(xr_queue_adopt(fds, &other, NULL), XR_E_INVAL);
		head->lanes = was.lanes;
		head->blocks = wrong[i];
		EXPECT_EQ(xr_queue_adopt(fds, &other, NULL), XR_E_INVAL);
		head->blocks = was.blocks;
		head->block = wrong[i];
		EXPECT_EQ(xr_queue_adopt(fds, &other, NULL), XR_E_INVAL);
		head->block = was.block;
	}
	head->version++;
	EXPECT_EQ(xr_queue_adopt(fds, &other, NULL), XR_E_VERSION);
	head->version--;
	head->space++;
	EXPECT_EQ(xr_queue_adopt(fds, &other, NULL), XR_E_NOTFOUND);
	head->space--;
	EXPECT_EQ(xr_queue_adopt(fds, &other, NULL), XR_OK);
	xr_queue_free(other);
	xr_queue_free(q);
}

/* --- what changes while somebody looks ------------------------------------------------------- */

#define EDGE 29 /* the first cell of the second page of a lane */

static struct hall *watched;

static void
fill_cell(struct hall *h, uint32_t i, char what)
{
	struct cell *cell = &h->lane[0].cell[i];

	atomic_store(&cell->len, 1);
	atomic_store(&cell->owner, 0);
	cell->body[0] = (uint8_t)what;
	atomic_store(&cell->state, cell_word(CELL_FULL, 0, 0));
}

static void
guard(int protection)
{
	char *page = (char *)&watched->lane[0].cell[EDGE];

	NEED(mprotect(page, HALL_PAGE, protection) == 0);
}

/* A writer that had claimed the cell before puts that, and one more. */
static void
put_two(int signo)
{
	(void)signo;
	guard(PROT_READ | PROT_WRITE);
	fill_cell(watched, EDGE - 1, '1');
	fill_cell(watched, EDGE, '2');
	atomic_store(&watched->lane[0].ends->tail, EDGE + 1);
}

/* Between a reader's look at a cell that is claimed, and that at the next. */
FORKED_TEST(queue, AC_U1_what_was_passed_over_and_filled_meanwhile_is_first)
{
	const struct sigaction act = { .sa_handler = put_two };
	struct xr_queue *q = QUEUE(.items = 64);
	struct xr_queue_buf buf = { 0 };

	watched = q->hall;
	NEED((uintptr_t)&watched->lane[0].cell[EDGE] % HALL_PAGE == 0);
	for (int i = 0; i < EDGE - 1; i++) {
		buf = (struct xr_queue_buf){ 0 };
		NEED(xr_queue_put_bytes(q, "0", 1, 0, NULL) == XR_OK);
		NEED(xr_queue_get_bytes(q, &buf, 0, NULL) == XR_OK);
		free(buf.data);
	}
	atomic_store(&watched->lane[0].cell[EDGE - 1].state,
		cell_word(CELL_CLAIMED, who_word(9, 1), 0));
	NEED(sigaction(SIGSEGV, &act, NULL) == 0);
	guard(PROT_NONE);
	for (char want = '1'; want <= '2'; want++) {
		buf = (struct xr_queue_buf){ 0 };
		EXPECT_EQ(xr_queue_get_bytes(q, &buf, 0, NULL), XR_OK);
		EXPECT(buf.len == 1 && *(char *)buf.data == want);
		free(buf.data);
	}
	xr_queue_free(q);
}

/* --- claims of the dead ------------------------------------------------------------------- */

/* A user that is no process any more, with a claim in each phase. */
static uint32_t
make_dead(struct hall *h, uint32_t user)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	NEED(pid > 0 && waitpid(pid, NULL, 0) == pid);
	atomic_store(&h->users[user].start, 1);
	atomic_store(&h->users[user].word,
		(uint64_t)USER_THERE << 60 | (uint64_t)7 << 32 | (uint32_t)pid);
	return who_word(user, 7);
}

static unsigned
blocks_in_use(const struct hall *h)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < h->plan.blocks; i++)
		n += atomic_load(&h->lane[0].owner[i]) != 0;
	return n;
}

FORKED_TEST(queue, what_the_dead_had_is_free_once_though_several_sweep)
{
	struct xr_queue *q = QUEUE(.items = 8);
	struct hall *h = q->hall;
	uint32_t dead = make_dead(h, 5);
	const struct xr_part part = { "0123456789", 10 };
	const struct crate_load load = { &part, 1, 10 };
	struct crate put, left;
	struct user_id id;

	/* One that it had put, one that it was about to, one that it was getting. */
	NEED(crate_pack(h, h->lane, dead, &load, &put) == XR_OK);
	NEED(crate_pack(h, h->lane, dead, &load, &left) == XR_OK);
	atomic_store(&h->lane[0].cell[0].state, cell_word(CELL_FULL, 0, 0));
	atomic_store(&h->lane[0].cell[0].owner, put.owner);
	atomic_store(&h->lane[0].cell[0].first, put.first);
	atomic_store(&h->lane[0].cell[0].len, 10);
	atomic_store(&h->lane[0].cell[1].state,
		cell_word(CELL_CLAIMED, dead, 0));
	atomic_store(&h->lane[0].cell[2].state, cell_word(CELL_TAKEN, dead, 0));
	NEED(user_at(h, 5, &id) && id.who == dead);
	EXPECT_EQ(blocks_in_use(h), 2);
	for (int i = 0; i < 3; i++)
		user_sweep(h, 5, &id);
	EXPECT_EQ(blocks_in_use(h), 1);
	EXPECT(!user_at(h, 5, &id));
	EXPECT(atomic_load(&h->lane[0].cell[0].state) ==
		cell_word(CELL_FULL, 0, 0));
	EXPECT(atomic_load(&h->lane[0].cell[1].state) ==
		cell_word(CELL_FREE, 0, 1));
	EXPECT(atomic_load(&h->lane[0].cell[2].state) ==
		cell_word(CELL_FREE, 0, 1));
	xr_queue_free(q);
}

FORKED_TEST(queue, there_is_room_for_as_many_users_as_it_says)
{
	struct xr_queue *q = QUEUE(0);
	struct hall *h = q->hall;
	struct xr_error err = { 0 };

	/* All are there, and live: they are this one's parent. */
	for (uint32_t i = 1; i < HALL_USERS; i++) {
		atomic_store(&h->users[i].start, user_start(getppid()));
		atomic_store(&h->users[i].word,
			(uint64_t)USER_THERE << 60 | (uint32_t)getppid());
	}
	EXPECT_EQ(xr_queue_put_bytes(q, "x", 1, 0, &err), XR_E_RANGE);
	EXPECT(strstr(err.text, "1023 processes") != NULL);
	make_dead(h, 700);
	EXPECT_EQ(xr_queue_put_bytes(q, "x", 1, 0, &err), XR_OK);
	xr_queue_free(q);
}
