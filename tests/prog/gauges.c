/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gauges.c - a rank with pools and queues, for who looks at them from outside:
 * tests/e2e/gauges.bats.
 *
 *   gauges CASE [threads]
 *
 * It says that it is ready when all of the case is as it will be, and rests until a
 * signal ends it. Pools are of two workers, processes or threads.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include <xrun/func.h>
#include <xrun/job.h>
#include <xrun/pool.h>
#include <xrun/proc.h>
#include <xrun/prof.h>
#include <xrun/queue.h>
#include <xrun/store.h>

#include "tests/prog/expect.h"
#include "tests/prog/prog.h"

#define WORKERS 2
#define SOON    XR_SECONDS(20)

static enum xr_pool_kind kind;

/* --- functions ---------------------------------------------------------------- */

/* 0 fails; anything else takes so many ms. */
static enum xr_status
nap(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t ms = 0;

	(void)call;
	(void)ctx;
	xr_value_get_i64(xr_value_at(args, 0), &ms);
	if (ms == 0)
		return XR_E_INVAL;
	usleep((unsigned)ms * 1000);
	return XR_OK;
}

static void
know(const char *name, xr_func_fn *fn)
{
	const struct xr_func f = { .size = sizeof(f), .name = name, .fn = fn };

	EXPECT(xr_fn_register(&f, &err) == XR_OK);
}

/* --- pools -------------------------------------------------------------------- */

static struct xr_pool *
make(const char *name)
{
	const struct xr_pool_opts o = {
		.size = sizeof(o),
		.kind = kind,
		.workers = WORKERS,
		.name = name,
	};
	struct xr_pool *pool;

	EXPECT(xr_pool_new(&o, &pool, &err) == XR_OK);
	return pool;
}

/* @count times @ms; @zeros of them fail. */
static struct xr_value *
list_of(int64_t ms, int64_t count, int64_t zeros)
{
	struct xr_value *list = xr_value_new_list();

	for (int64_t i = 0; i < count; i++)
		EXPECT(xr_value_append(list,
			       xr_value_new_i64(i < zeros ? 0 : ms)) == XR_OK);
	return list;
}

static struct xr_future *
begin(struct xr_pool *pool, const char *name, int64_t ms)
{
	struct xr_pool_task t = { .size = sizeof(t), .name = name };
	struct xr_future *future;

	t.args = list_of(ms, 1, 0);
	EXPECT(xr_pool_apply_async(pool, &t, &future, &err) == XR_OK);
	xr_value_unref(t.args);
	return future;
}

static enum xr_status
end(struct xr_future *future)
{
	enum xr_status status = xr_future_wait(future, SOON, NULL, &err);

	xr_future_unref(future);
	return status;
}

static void
map(struct xr_pool *pool, int64_t ms, int64_t items, int64_t chunk)
{
	struct xr_pool_task t = { .size = sizeof(t),
		.name = "nap",
		.flags = XR_POOL_CHUNK,
		.chunk = chunk };
	struct xr_future *future;

	t.args = list_of(ms, items, 0);
	EXPECT(xr_pool_map_async(pool, &t, &future, &err) == XR_OK);
	xr_value_unref(t.args);
	if (ms < 1000)
		EXPECT(end(future) == XR_OK);
}

static void
iterate(struct xr_pool *pool, int64_t items, int64_t zeros)
{
	struct xr_pool_task t = { .size = sizeof(t), .name = "nap" };
	struct xr_pool_iter *iter;
	struct xr_value *value;

	t.args = list_of(1, items, zeros);
	EXPECT(xr_pool_imap_unordered(pool, &t, &iter, &err) == XR_OK);
	xr_value_unref(t.args);
	while (xr_pool_iter_next(iter, SOON, &value, &err) != XR_E_END)
		xr_value_unref(value);
	xr_pool_iter_free(iter);
}

/* 10 calls, 3 of which fail; a map of 4 chunks; 5 items one by one, of which one
 * fails. */
static struct xr_pool *
work(void)
{
	struct xr_pool *pool = make("work");

	for (int i = 0; i < 10; i++)
		EXPECT((end(begin(pool, "nap", i < 3 ? 0 : 1)) == XR_OK) ==
			(i >= 3));
	map(pool, 1, 10, 3);
	iterate(pool, 5, 1);
	return pool;
}

static void
done(void)
{
	work();
}

static void
killed(void)
{
	work();
	xr_job_ready();
	raise(SIGKILL);
}

/* 5 calls, and a map of 100 chunks: two of all are in hand. */
static void
busy(void)
{
	struct xr_pool *pool = make("work");

	for (int i = 0; i < 5; i++)
		begin(pool, "nap", 600000);
	map(pool, 600000, 100, 1);
}

/* The same, and it is ended. */
static void
ended(void)
{
	struct xr_pool *pool = make("work");

	begin(pool, "nap", 600000);
	map(pool, 600000, 1000, 1);
	EXPECT(xr_pool_terminate(pool, 0, &err) == XR_OK);
}

static void
idle(void)
{
	EXPECT(end(begin(make("work"), "nap", 1)) == XR_OK);
}

/* --- loops ---------------------------------------------------------------------- */

/* @ctx: how many parts there were, if anybody asks. */
static void
part(uint64_t begin, uint64_t end, uint32_t worker, void *ctx)
{
	(void)worker;
	if (ctx == NULL)
		pause();
	usleep((unsigned)(end - begin) * 1000);
	atomic_fetch_add((_Atomic uint64_t *)ctx, 1);
}

static void
quick(uint64_t begin, uint64_t end, uint32_t worker, void *ctx)
{
	(void)worker;
	(void)begin;
	(void)end;
	atomic_fetch_add((_Atomic uint64_t *)ctx, 1);
}

/* A loop of parts of a ms or more, and one that is short 1000 times; how many parts there were
 * is in the file parts. */
static void
looped(void)
{
	_Atomic uint64_t parts = 0, brief = 0;
	struct xr_pool_loop loop = { .size = sizeof(loop),
		.fn = part,
		.ctx = &parts,
		.count = 40 };
	struct xr_pool_loop short_loop = { .size = sizeof(loop),
		.fn = quick,
		.ctx = &brief,
		.count = 8 };
	struct xr_pool *pool = make("work");
	FILE *file = fopen("parts", "w");

	EXPECT(xr_pool_for(pool, &loop, &err) == XR_OK);
	for (int i = 0; i < 1000; i++)
		EXPECT(xr_pool_for(pool, &short_loop, &err) == XR_OK);
	EXPECT(file != NULL && fprintf(file, "%lu %lu\n", parts, brief) > 0);
	EXPECT(fclose(file) == 0);
}

/* A loop whose parts do not end. */
static void *
go_round(void *pool)
{
	const struct xr_pool_loop loop = { .size = sizeof(loop),
		.fn = part,
		.count = 2 };

	xr_pool_for(pool, &loop, NULL);
	return NULL;
}

static void
looping(void)
{
	pthread_t thread;

	EXPECT(pthread_create(&thread, NULL, go_round, make("work")) == 0);
}

/* Three pools of 10 calls, one after the other; and two at a time. */
static void
again(void)
{
	for (int i = 0; i < 3; i++) {
		struct xr_pool *pool = make("work");

		for (int k = 0; k < 10; k++)
			EXPECT(end(begin(pool, "nap", 1)) == XR_OK);
		xr_pool_free(pool);
	}
	make("twin");
	EXPECT(end(begin(make("twin"), "nap", 1)) == XR_OK);
}

/* Its task is lost, and what comes then is not. */
static void
lost(void)
{
	struct xr_pool *pool = make("work");

	EXPECT(end(begin(pool, "die", 1)) == XR_E_WORKER_LOST);
	EXPECT(end(begin(pool, "nap", 1)) == XR_OK);
}

/* --- profiles ------------------------------------------------------------------- */

static void
begin_trace(void)
{
	EXPECT(xr_prof_begin(XR_PROF_PROCESS, &err) == XR_OK);
}

/* What was is in the file trace. */
static void
end_trace(void)
{
	struct xr_value *events, *json;
	FILE *file = fopen("trace", "w");
	size_t len = 0;

	EXPECT(xr_prof_end(XR_PROF_PROCESS, &events, &err) == XR_OK);
	EXPECT(xr_prof_trace(events, &json, &err) == XR_OK);
	EXPECT(file != NULL && fputs(xr_value_data(json, &len), file) >= 0);
	EXPECT(fclose(file) == 0);
}

static void
traced(void)
{
	begin_trace();
	work();
	end_trace();
}

/* --- queues ------------------------------------------------------------------- */

static struct xr_queue *
queue(uint32_t items)
{
	const struct xr_queue_opts o = { .size = sizeof(o), .items = items };
	struct xr_queue *q;

	EXPECT(xr_queue_new(&o, &q, &err) == XR_OK);
	return q;
}

static void
put(struct xr_queue *q, int count)
{
	for (int i = 0; i < count; i++)
		EXPECT(xr_queue_put_bytes(q, "item", 4, SOON, &err) == XR_OK);
}

static void
get(struct xr_queue *q, int count)
{
	for (int i = 0; i < count; i++) {
		struct xr_queue_buf buf = { .data = NULL };

		EXPECT(xr_queue_get_bytes(q, &buf, SOON, &err) == XR_OK);
		free(buf.data);
	}
}

static void
by_child(struct xr_queue *q)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		struct xr_queue *own = queue(4);

		get(q, 1);
		put(q, 3);
		put(own, 1);
		_exit(0);
	}
	EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
}

/* One is full, one has a name, one is freed. */
static void
queues(void)
{
	struct xr_queue *full = queue(8), *jobs = queue(100), *freed;
	struct xr_store *store = NULL;

	put(full, 6);
	by_child(full);
	EXPECT(xr_queue_put_bytes(full, "", 0, 0, &err) == XR_E_TIMEOUT);
	EXPECT(xr_store_open(NULL, NULL, &store, &err) == XR_OK);
	EXPECT(xr_queue_share(jobs, store, "jobs", &err) == XR_OK);
	put(jobs, 5);
	get(jobs, 2);
	freed = queue(10);
	put(freed, 3);
	get(freed, 1);
	xr_queue_free(freed);
}

/* 6 come at once and 4 go, of which the file trace tells; of as many as a profile has no room
 * for, too. */
static void
moved(void)
{
	struct xr_queue *q = queue(8), *busy = queue(8);
	const struct xr_part six[6] = { { "a", 1 }, { "b", 1 }, { "c", 1 },
		{ "d", 1 }, { "e", 1 }, { "f", 1 } };
	size_t n = 6;

	begin_trace();
	EXPECT(xr_queue_put_many_bytes(q, six, &n, 0, &err) == XR_OK);
	get(q, 4);
	for (int i = 0; i < 600000; i++) {
		put(busy, 1);
		get(busy, 1);
	}
	end_trace();
}

/* More than there is room to tell of. */
static void
many(void)
{
	for (int i = 0; i < 25; i++)
		put(queue(8), 1);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} cases[] = {
		{ "done", done },
		{ "killed", killed },
		{ "busy", busy },
		{ "ended", ended },
		{ "idle", idle },
		{ "again", again },
		{ "lost", lost },
		{ "traced", traced },
		{ "queues", queues },
		{ "many", many },
		{ "looped", looped },
		{ "looping", looping },
		{ "moved", moved },
	};
	bool any = false;

	know("nap", nap);
	know("die", die);
	EXPECT(xr_init(&err) == XR_OK);
	rank = xr_job_rank();
	if (argc > 2 && strcmp(argv[2], "threads") == 0)
		kind = XR_POOL_THREADS;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc < 2 || strcmp(cases[i].name, argv[1]) != 0)
			continue;
		cases[i].fn();
		any = true;
	}
	if (!any)
		prog_die(0, "usage: gauges CASE [threads]");
	xr_job_ready();
	for (;;)
		pause();
}
