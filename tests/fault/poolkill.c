/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poolkill.c - workers of a pool that are killed at any moment.
 *
 *   poolkill [--rounds N] [--seed N] shared|p2p PAGE
 *
 * A round is one kill -9 of a worker, some microseconds after the one before, while calls
 * and maps are submitted all the time. Each ends within ten seconds, once: with what it
 * should, or with XR_E_WORKER_LOST, as often as workers were killed at most. What is not
 * said to be idempotent begins once, and what ends well has been done once. At the end the
 * pool has its size again. PAGE is a file for what workers note.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/mman.h>

#include <xrun/func.h>
#include <xrun/pool.h>
#include <xrun/proc.h>

#include "tests/prog/line.h"
#include "tests/prog/prog.h"

#define WORKERS 4
#define SOON    XR_SECONDS(10)
#define ROW     (1u << 22) /* tasks */
#define BATCH   64
#define LONG    150 /* tasks of a long map */
#define TWICE   4   /* every so many tasks may run again */

struct page {
	_Atomic uint8_t begun[ROW], done[ROW], told[ROW];
};

static struct page *page;
static struct xr_error err;
static int64_t rounds = 50, seed = 1;
static uint64_t chance;
static uint32_t next_task, kills, lost, well;

#define EXPECT(x) \
	do { \
		if (!(x)) { \
			fprintf(stderr, "VIOLATION line %d: %s: %s\n", \
				__LINE__, #x, err.text); \
			_exit(1); \
		} \
	} while (0)

static uint64_t
draw(uint64_t below)
{
	chance ^= chance << 13;
	chance ^= chance >> 7;
	chance ^= chance << 17;
	return chance % below;
}

static int64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void
open_page(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	EXPECT(fd != -1 && ftruncate(fd, sizeof(*page)) == 0);
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		0);
	EXPECT(page != MAP_FAILED);
	close(fd);
}

/* Some work, of which the page knows. */
static enum xr_status
step(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t i = 0, until;

	(void)ctx;
	if (page == NULL)
		open_page(getenv("POOLKILL_PAGE"));
	xr_value_get_i64(xr_value_at(args, 0), &i);
	atomic_fetch_add(&page->begun[i], 1);
	until = now_ns() + (i * 7919 % 5 == 0 ? 100000 : 2000);
	while (now_ns() < until)
		;
	atomic_fetch_add(&page->done[i], 1);
	return xr_reply(call, xr_value_new_i64(i * 3 + 1));
}

static enum xr_status
tell(struct xr_value *value, void *ctx)
{
	(void)value;
	atomic_fetch_add((_Atomic uint8_t *)ctx, 1);
	return XR_OK;
}

/* --- what is submitted ------------------------------------------------------------------- */

struct sent {
	struct xr_future *future;
	uint32_t first, count; /* tasks: one, or of a map */
};

/* Chunks of a long map do not fit into a cell of the queue. */
static struct sent
submit(struct xr_pool *pool, bool is_map)
{
	bool is_long = is_map && draw(2) == 0;
	struct sent s = { .first = next_task,
		.count = is_long ? LONG :
			is_map   ? 20 :
				   1 };
	struct xr_pool_task t = { .size = sizeof(t), .name = "step" };
	enum xr_status status;

	t.args = xr_value_new_list();
	for (uint32_t i = 0; i < s.count; i++)
		xr_value_append(t.args, xr_value_new_i64(s.first + i));
	next_task += s.count;
	EXPECT(next_task < ROW);
	t.timeout = SOON;
	t.callback = t.error_callback = tell;
	t.ctx = (void *)&page->told[s.first];
	if (!is_map && s.first % TWICE == 0)
		t.flags = XR_POOL_IDEMPOTENT;
	if (is_map) {
		t.flags = XR_POOL_CHUNK;
		t.chunk = is_long ? LONG / 3 : 4;
	}
	status = is_map ? xr_pool_map_async(pool, &t, &s.future, &err) :
			  xr_pool_apply_async(pool, &t, &s.future, &err);
	EXPECT(status == XR_OK);
	xr_value_unref(t.args);
	return s;
}

static void
expect_value(const struct sent *s, const struct xr_value *value)
{
	int64_t i = -1;

	if (s->count == 1) {
		EXPECT(xr_value_get_i64(value, &i) == XR_OK);
		EXPECT(i == s->first * INT64_C(3) + 1);
		return;
	}
	EXPECT(xr_value_count(value) == s->count);
	for (uint32_t k = 0; k < s->count; k++) {
		EXPECT(xr_value_get_i64(xr_value_at(value, k), &i) == XR_OK);
		EXPECT(i == (s->first + k) * INT64_C(3) + 1);
	}
}

static void
settle(const struct sent *s)
{
	bool twice = s->count == 1 && s->first % TWICE == 0;
	struct xr_value *value = NULL;
	enum xr_status status = xr_future_wait(s->future, SOON, &value, &err);

	EXPECT(status == XR_OK || status == XR_E_WORKER_LOST);
	if (status == XR_OK)
		expect_value(s, value);
	else
		lost++;
	well += status == XR_OK;
	for (uint32_t i = s->first; i < s->first + s->count; i++) {
		EXPECT(page->begun[i] <= (twice ? 3 : 1));
		EXPECT(status != XR_OK || page->done[i] >= 1);
	}
	EXPECT(page->told[s->first] == 1);
	xr_value_unref(value);
	xr_future_unref(s->future);
}

/* --- who is killed ------------------------------------------------------------------------- */

static void
kill_one(struct xr_pool *pool)
{
	int32_t pids[WORKERS];
	uint32_t n = xr_pool_pids(pool, pids, WORKERS);

	if (n == 0 || kill(pids[draw(n)], SIGKILL) == -1)
		return;
	kills++;
}

static void
play(struct xr_pool *pool)
{
	struct sent batch[BATCH];
	int64_t due = now_ns();

	while (kills < (uint32_t)rounds) {
		for (int i = 0; i < BATCH; i++) {
			batch[i] = submit(pool, draw(8) == 0);
			if (now_ns() < due)
				continue;
			kill_one(pool);
			due = now_ns() + (int64_t)draw(3000000);
		}
		for (int i = 0; i < BATCH; i++) {
			if (kills < (uint32_t)rounds && now_ns() >= due) {
				kill_one(pool);
				due = now_ns() + (int64_t)draw(3000000);
			}
			settle(&batch[i]);
		}
	}
}

static void
await_size(struct xr_pool *pool)
{
	int64_t until = now_ns() + SOON;

	while (xr_pool_size(pool) != WORKERS && now_ns() < until)
		usleep(1000);
	EXPECT(xr_pool_size(pool) == WORKERS);
}

int
main(int argc, char **argv)
{
	const struct prog_opt table[] = {
		{ "rounds", PROG_NUM, &rounds, "kills" },
		{ "seed", PROG_NUM, &seed, "of chance" },
		{ 0 },
	};
	const struct xr_func func = { .size = sizeof(func),
		.name = "step",
		.schema = "i",
		.fn = step };
	struct xr_pool_opts o = { .size = sizeof(o), .workers = WORKERS };
	struct xr_pool *pool = NULL;
	int at = prog_opts(argc, argv, table);

	EXPECT(xr_fn_register(&func, &err) == XR_OK);
	EXPECT(xr_init(&err) == XR_OK);
	if (at + 2 != argc)
		prog_die(0, "usage: poolkill [OPTION]... shared|p2p PAGE");
	alarm((unsigned)(60 + rounds));
	chance = (uint64_t)seed * 2 + 1;
	unlink(argv[at + 1]);
	open_page(argv[at + 1]);
	setenv("POOLKILL_PAGE", argv[at + 1], 1);
	if (strcmp(argv[at], "p2p") == 0)
		o.routing = XR_POOL_P2P;
	/* Some are killed before they have taken a task, which is no crash loop. */
	o.start_failures = 1000;
	EXPECT(xr_pool_new(&o, &pool, &err) == XR_OK);
	play(pool);
	await_size(pool);
	xr_pool_close(pool);
	EXPECT(xr_pool_join(pool, SOON, &err) == XR_OK);
	xr_pool_free(pool);
	EXPECT(lost <= kills);
	printf("ok %s: %u workers were killed; %u results, %u of them lost\n",
		argv[at], kills, well + lost, lost);
	return 0;
}
