/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_pool_tell.c - what pools tell of their tasks: to who looks on from outside, and in
 * profiles.
 *
 * Tasks take as long as the test says: the clock has its own time on top.
 */
#include <xrun/prof.h>

#include <sys/stat.h>

#include "segment/gauge.h"
#include "segment/member.h"
#include "segment/owner.h"
#include "worker/pool/job.h"
#include "worker/pool/tell.h"
#include "worker/rpc/prof.h"

#include "tests/unit/pool_rig.h" /* after those with a parameter `pool` */

TestSuite(pool_tell, .timeout = 60);

#define LONG \
	XR_SECONDS(600) /* what is measured is in its bucket, though late */
#define US       INT64_C(1000)
#define IN(x, a) ((x) >= (uint64_t)(a) && (x) < (uint64_t)(a) + XR_SECONDS(100))

int64_t __real_clock_now(void);
int64_t __wrap_clock_now(void);

static _Atomic int64_t later;
static struct gauge_row *row;

int64_t
__wrap_clock_now(void)
{
	return __real_clock_now() + atomic_load(&later);
}

static void
pass(int64_t ns)
{
	atomic_fetch_add(&later, ns);
}

/* This process is rank 0 of a job. */
static void
be_rank(void)
{
	const struct segment_wish wish = { .job = "k7m2", .ranks = 1 };
	int fd = segment_create(&wish);
	struct stat st;
	char text[64];

	NEED(fd != -1 && fstat(fd, &st) == 0);
	snprintf(text, sizeof(text), "%d:%llu", fd,
		(unsigned long long)st.st_ino);
	setenv("XRUN_SEGMENT_FD", text, 1);
	setenv("XRUN_LOCAL_RANK", "0", 1);
	pass(XR_SECONDS(100000));
}

static uint64_t
timed(void)
{
	uint64_t all = 0;

	for (int i = 0; i < GAUGE_TIMES; i++)
		all += atomic_load(&row->time[i]);
	return all;
}

static uint64_t
timed_long(void)
{
	return atomic_load(&row->time[gauge_bucket(LONG)]);
}

/* --- functions ------------------------------------------------------------------------- */

static _Atomic uint64_t open_seen;

static enum xr_status
lasts(struct xr_call *c, struct xr_value *args, void *ctx)
{
	(void)ctx;
	await((uint32_t)number(xr_value_at(args, 0)));
	atomic_store(&open_seen, atomic_load(&row->open));
	check(ledger_has(&pool->ledger, 0));
	pass(LONG);
	return xr_reply(c, xr_value_new_i64(getpid()));
}

static enum xr_status
fails(struct xr_call *c, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	return xr_reply_fail(c, XR_E_CLOSED, "closed");
}

/* Waits for one of its pool, which runs meanwhile, on the same thread. */
static enum xr_status
waits(struct xr_call *c, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	check(get(post("lasts", 0), XR_TIMEOUT_NEVER, NULL) == XR_OK);
	check(ledger_has(&pool->ledger, 0));
	return xr_reply(c, xr_value_new_nil());
}

static void
begin_told(const struct xr_pool_opts *opts)
{
	be_rank();
	known("lasts", lasts);
	known("fails", fails);
	known("waits", waits);
	NEED(xr_pool_new(opts, &pool, NULL) == XR_OK);
	row = pool->gauge;
	NEED(row != NULL);
}

/* With one thread. */
static void
begin_thread(void)
{
	const struct xr_pool_opts opts = { .size = sizeof(opts),
		.kind = XR_POOL_THREADS,
		.name = "threads",
		.workers = 1,
		.tasks = 7 };

	begin_told(&opts);
}

static void
counted(uint64_t done, uint64_t failed)
{
	EXPECT_EQ(atomic_load(&row->done), done);
	EXPECT_EQ(atomic_load(&row->failed), failed);
	EXPECT_EQ(atomic_load(&row->open), 0);
}

/* --- threads ---------------------------------------------------------------------------- */

FORKED_TEST(pool_tell, a_pool_has_a_row_until_it_is_freed)
{
	struct stat st;

	begin_thread();
	EXPECT_EQ(row->kind, GAUGE_THREADS);
	EXPECT_STR(row->name, "threads");
	EXPECT_EQ(row->parts, 1);
	EXPECT_EQ(row->room, 7);
	EXPECT_EQ(row->fd, pool->ledger.fd);
	NEED(fstat(pool->ledger.fd, &st) == 0);
	EXPECT_EQ(row->inode, st.st_ino);
	EXPECT_EQ(row->live, 1);
	pass(LONG);
	EXPECT_EQ(atomic_load(&row->spent), 0);
	end();
	EXPECT_EQ(row->live, 0);
	EXPECT(IN(atomic_load(&row->spent), LONG));
	EXPECT_EQ(atomic_load(&row->busy), 0);
	counted(0, 0);
}

FORKED_TEST(pool_tell, the_tasks_of_a_thread_are_counted_and_measured)
{
	begin_thread();
	EXPECT_EQ(get(post("lasts", 0), XR_TIMEOUT_NEVER, NULL), XR_OK);
	EXPECT_EQ(get(post("fails", 0), XR_TIMEOUT_NEVER, NULL), XR_E_CLOSED);
	xr_pool_close(pool);
	EXPECT_EQ(xr_pool_join(pool, XR_TIMEOUT_NEVER, &error), XR_OK);
	EXPECT_EQ(open_seen, 1);
	EXPECT(!ledger_has(&pool->ledger, 0));
	EXPECT(IN(atomic_load(&row->busy), LONG));
	EXPECT_EQ(timed_long(), 1);
	EXPECT_EQ(timed(), 2);
	counted(2, 1);
	end();
}

FORKED_TEST(pool_tell, what_runs_inside_of_a_task_costs_no_time_of_its_thread)
{
	begin_thread();
	EXPECT_EQ(get(post("waits", 0), XR_TIMEOUT_NEVER, NULL), XR_OK);
	xr_pool_close(pool);
	EXPECT_EQ(xr_pool_join(pool, XR_TIMEOUT_NEVER, &error), XR_OK);
	EXPECT_EQ(open_seen, 2);
	EXPECT(IN(atomic_load(&row->busy), LONG));
	EXPECT_EQ(timed_long(), 2);
	EXPECT_EQ(timed(), 2);
	counted(2, 0);
	end();
}

static struct xr_value *
iterated(const char *name, int64_t count, uint32_t chunk)
{
	struct xr_pool_task t = { .size = sizeof(t),
		.name = name,
		.args = xr_value_new_list(),
		.flags = XR_POOL_CHUNK,
		.chunk = chunk };
	struct xr_value *v = xr_value_new_list(), *item;
	struct xr_pool_iter *iter;

	for (int64_t i = 0; i < count; i++)
		NEED(xr_value_append(t.args, xr_value_new_i64(0)) == XR_OK);
	NEED(xr_pool_imap(pool, &t, &iter, NULL) == XR_OK);
	for (int64_t i = 0; i < count; i++) {
		item = NULL;
		xr_pool_iter_next(iter, XR_TIMEOUT_NEVER, &item, NULL);
		NEED(xr_value_append(v,
			     item != NULL ? item : xr_value_new_nil()) ==
			XR_OK);
	}
	xr_pool_iter_free(iter);
	xr_value_unref(t.args);
	return v;
}

FORKED_TEST(pool_tell, a_chunk_of_an_iterator_has_failed_with_one_of_its_items)
{
	begin_thread();
	xr_value_unref(iterated("lasts", 4, 2));
	xr_value_unref(iterated("fails", 1, 1));
	xr_pool_close(pool);
	EXPECT_EQ(xr_pool_join(pool, XR_TIMEOUT_NEVER, &error), XR_OK);
	counted(3, 1);
	EXPECT_EQ(timed(), 3);
	EXPECT_EQ(atomic_load(&row->busy) / XR_SECONDS(600), 4);
	end();
}

/* Not with one of another chunk. */
FORKED_TEST(pool_tell, a_chunk_has_its_own_items_only)
{
	uint8_t items[] = { JOB_ERROR, JOB_VALUE, JOB_VALUE, JOB_ERROR };
	struct job job = { .item = items };
	static struct task t; /* ASan aligns no variable of a stack to 64 */
	struct job_part part = { .task = &t, .done = 2 };

	t = (struct task){ .job = &job, .first = 1 };
	begin_thread();
	tell_over(pool, &part);
	counted(1, 0);
	part.done = 3;
	tell_over(pool, &part);
	counted(2, 1);
	t.first = 0;
	part.done = 1;
	tell_over(pool, &part);
	counted(3, 2);
	EXPECT_EQ(timed(), 3);
	part.error = numbers(0, 0);
	part.done = 0;
	tell_over(pool, &part);
	counted(4, 3);
	EXPECT_EQ(timed(), 3);
	part.ns = 1;
	tell_over(pool, &part);
	counted(5, 4);
	EXPECT_EQ(timed(), 4);
	xr_value_unref(part.error);
	end();
}

/* --- loops ------------------------------------------------------------------------------ */

static _Atomic uint64_t parts, since_seen;

static void
run_part(uint64_t from, uint64_t to, uint32_t worker, void *ctx)
{
	(void)from;
	(void)to;
	(void)worker;
	atomic_fetch_add(&parts, 1);
	if (ctx == NULL)
		return;
	atomic_store(&open_seen, atomic_load(&row->open));
	atomic_store(&since_seen,
		(uint64_t)atomic_load(&pool->ledger.place[0].since));
	pass(LONG);
}

/* Its parts take long, if it is not @brief. */
static void
loop(uint64_t count, bool brief)
{
	const struct xr_pool_loop l = { .size = sizeof(l),
		.fn = run_part,
		.ctx = brief ? NULL : (void *)&parts,
		.count = count };

	check(xr_pool_for(pool, &l, NULL) == XR_OK);
}

static enum xr_status
loops(struct xr_call *c, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	loop(1, false);
	check(ledger_has(&pool->ledger, 0));
	return xr_reply(c, xr_value_new_nil());
}

FORKED_TEST(pool_tell, a_part_of_a_loop_is_a_task_of_the_seat_that_it_is_on)
{
	int64_t before;

	begin_thread();
	known("loops", loops);
	before = __wrap_clock_now();
	loop(1, false);
	EXPECT_EQ(open_seen, 1);
	EXPECT(since_seen >= (uint64_t)before);
	EXPECT(since_seen <= (uint64_t)(__wrap_clock_now() - LONG));
	EXPECT(!ledger_has(&pool->ledger, 0));
	EXPECT(IN(atomic_load(&row->busy), LONG));
	EXPECT_EQ(timed_long(), 1);
	EXPECT_EQ(timed(), 1);
	counted(1, 0);
	/* On that of a task, which has the time of both. */
	EXPECT_EQ(get(post("loops", 0), XR_TIMEOUT_NEVER, NULL), XR_OK);
	xr_pool_close(pool);
	EXPECT_EQ(xr_pool_join(pool, XR_TIMEOUT_NEVER, &error), XR_OK);
	EXPECT_EQ(open_seen, 1);
	EXPECT(IN(atomic_load(&row->busy), 2 * LONG));
	EXPECT_EQ(timed_long(), 2);
	EXPECT_EQ(timed(), 2);
	counted(3, 0);
	end();
}

static enum xr_status
holds(struct xr_call *c, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	atomic_store(&stage, 1);
	while (atomic_load(&stage) < 2)
		sched_yield();
	return xr_reply(c, xr_value_new_nil());
}

FORKED_TEST(pool_tell, a_part_on_no_seat_takes_no_time_of_any)
{
	struct xr_future *f;

	begin_thread();
	known("holds", holds);
	f = post("holds", 0);
	while (atomic_load(&stage) < 1)
		sched_yield();
	loop(1, false);
	EXPECT_EQ(open_seen, 1);
	EXPECT_EQ(atomic_load(&row->busy), 0);
	EXPECT_EQ(timed(), 0);
	EXPECT_EQ(atomic_load(&row->done), 1);
	atomic_store(&stage, 2);
	EXPECT_EQ(get(f, XR_TIMEOUT_NEVER, NULL), XR_OK);
	end();
}

/* The first says that they are short, so the others are not measured. */
FORKED_TEST(pool_tell, parts_of_short_loops_are_counted_only)
{
	begin_thread();
	for (int i = 0; i < 100; i++)
		loop(50, true);
	EXPECT(parts >= 100);
	EXPECT(timed() <= parts);
	counted(parts, 0);
	end();
}

/* --- profiles ---------------------------------------------------------------------------- */

static int64_t
number_in(const struct xr_value *event, const char *key)
{
	return number(xr_value_find(event, key, strlen(key)));
}

/* One of a task that took LONG, after which @open others were not over. */
static void
expect_event(const struct xr_value *event, const char *key, int64_t open)
{
	size_t len = 0;
	const char *is = xr_value_data(xr_value_find(event, "key", 3), &len);
	int64_t took = number_in(event, "end") - number_in(event, "start");

	NEED(is != NULL);
	EXPECT_STR(is, key);
	EXPECT(IN((uint64_t)took, LONG));
	EXPECT_EQ(number_in(event, "open"), open);
}

static struct xr_value *
profile(size_t count)
{
	struct xr_value *events = NULL;

	EXPECT_EQ(xr_prof_end(XR_PROF_PROCESS, &events, NULL), XR_OK);
	EXPECT_EQ(xr_value_count(events), count);
	return events;
}

FORKED_TEST(pool_tell, a_profile_has_the_tasks_of_threads_and_how_many_are_open)
{
	struct xr_future *f[3];
	struct xr_value *events;
	int64_t before;

	begin_thread();
	NEED(xr_prof_begin(XR_PROF_PROCESS, NULL) == XR_OK);
	before = __wrap_clock_now();
	for (int i = 0; i < 3; i++)
		f[i] = post("lasts", 1);
	atomic_store(&stage, 1);
	get_all(f, 3);
	xr_pool_close(pool);
	EXPECT_EQ(xr_pool_join(pool, XR_TIMEOUT_NEVER, &error), XR_OK);
	events = profile(3);
	for (int i = 0; i < 3; i++)
		expect_event(xr_value_at(events, (size_t)i),
			"pool#threads: lasts", 2 - i);
	EXPECT(number_in(xr_value_at(events, 0), "start") >= before);
	EXPECT(number_in(xr_value_at(events, 2), "end") <= __wrap_clock_now());
	EXPECT(number_in(xr_value_at(events, 0), "thread") != prof_thread());
	xr_value_unref(events);
	end();
}

/* --- results of other processes ----------------------------------------------------------- */

static enum xr_status
start_none(struct xr_pool *p, void *ctx, struct xr_error *err)
{
	(void)p;
	(void)ctx;
	(void)err;
	return XR_OK;
}

/* The test takes its tasks, and answers as its worker. */
static void
begin_process(void)
{
	static const struct xr_pool_ops ops = { .size = sizeof(ops),
		.repopulate = start_none };
	const struct xr_pool_opts opts = { .size = sizeof(opts),
		.name = "processes",
		.workers = 1,
		.tasks = 7,
		.ops = &ops };

	begin_told(&opts);
}

/* One that began at @began and took @ns; of @count items. */
static enum xr_status
answer(int64_t began, int64_t ns, uint32_t count)
{
	struct xr_future *f = post("fails", 0);
	struct xr_queue_buf buf = { 0 };
	struct task_head task;
	struct result_head *head;
	char data[256];
	struct load l;

	NEED(xr_queue_get_bytes(pool->in[0], &buf, SOON, NULL) == XR_OK);
	NEED(buf.len >= sizeof(task));
	memcpy(&task, buf.data, sizeof(task));
	free(buf.data);
	xr_queue_done(pool->in[0]);
	EXPECT(ledger_take(&pool->ledger, task.index, task.gen,
		(struct ledger_who){ 0, 1 }));
	head = &(struct result_head){ .index = task.index,
		.gen = task.gen,
		.count = count,
		.began = (uint32_t)(began / US),
		.ns = (uint64_t)ns };
	load_init(&l);
	EXPECT(pack_add(&l.pack, NULL));
	EXPECT_EQ(load_head(&l, head, sizeof(*head)), XR_OK);
	buf.len = 0;
	for (size_t i = 0; i < l.count; buf.len += l.all[i++].len)
		memcpy(data + buf.len, l.all[i].data, l.all[i].len);
	EXPECT_EQ(xr_queue_put_bytes(pool->out, data, buf.len, SOON, NULL),
		XR_OK);
	load_fini(&l);
	return get(f, XR_TIMEOUT_NEVER, NULL);
}

FORKED_TEST(pool_tell, tasks_of_processes_took_what_their_results_say)
{
	begin_process();
	EXPECT_EQ(row->kind, GAUGE_PROCESSES);
	EXPECT_STR(row->name, "processes");
	EXPECT_EQ(answer(0, LONG, 1), XR_OK);
	counted(1, 0);
	EXPECT_EQ(timed_long(), 1);
	EXPECT_EQ(answer(0, 0, 1), XR_OK);
	counted(2, 0);
	EXPECT_EQ(atomic_load(&row->time[0]), 1);
	/* One that cannot be read; and where it is not even known how long it took. */
	EXPECT_EQ(answer(0, LONG, 3), XR_E_PROTO);
	counted(3, 1);
	EXPECT_EQ(timed_long(), 2);
	EXPECT_EQ(answer(0, 0, 3), XR_E_PROTO);
	counted(4, 2);
	EXPECT_EQ(timed(), 3);
	EXPECT_EQ(atomic_load(&row->busy), 2 * LONG);
	xr_pool_free(pool);
}

/* Of @event, which took @ns: when it began. */
static int64_t
start_in(const struct xr_value *event, int64_t ns)
{
	EXPECT_EQ(number_in(event, "end") - number_in(event, "start"), ns);
	return number_in(event, "start");
}

FORKED_TEST(pool_tell, a_profile_has_the_tasks_of_processes_when_they_ran)
{
	const int64_t hours = XR_SECONDS(5000); /* more than 32 bits of us */
	struct xr_value *events;
	int64_t now, end[2];

	begin_process();
	NEED(xr_prof_begin(XR_PROF_PROCESS, NULL) == XR_OK);
	now = __wrap_clock_now();
	EXPECT_EQ(answer(now - 2 * LONG, LONG, 1), XR_OK);
	/* What would have ended later than now ended now. */
	EXPECT_EQ(answer(now - LONG, LONG + XR_SECONDS(200), 1), XR_OK);
	EXPECT_EQ(answer(now - hours, hours, 1), XR_OK);
	end[1] = __wrap_clock_now();
	events = profile(3);
	EXPECT_EQ(start_in(xr_value_at(events, 1), LONG),
		(now - 2 * LONG) / US * US);
	expect_event(xr_value_at(events, 1), "pool#processes: fails", 0);
	end[0] = start_in(xr_value_at(events, 2), LONG + XR_SECONDS(200)) +
		LONG + XR_SECONDS(200);
	EXPECT(end[0] >= now && end[0] <= end[1]);
	end[0] = start_in(xr_value_at(events, 0), hours) + hours;
	EXPECT(end[0] >= now && end[0] <= end[1]);
	/* No worker is known: it is the thread that took the result. */
	EXPECT(number_in(xr_value_at(events, 0), "thread") >= getpid());
	xr_value_unref(events);
	xr_pool_free(pool);
}
