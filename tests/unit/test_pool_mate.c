/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_mate.c - workers that are threads and take tasks from a queue: how they start, what
 * they do, and what they end with. */
#include <poll.h>
#include <pthread.h>

#include <sys/resource.h>

#include <xrun/func.h>
#include <xrun/pool.h>
#include <xrun/proc.h>

#include "base/clock.h"
#include "tests/unit/forked.h"
#include "tests/unit/short_memory.h"
#include "worker/pool/job.h"
#include "worker/pool/mate.h"
#include "worker/rpc/future.h"

TestSuite(pool_mate, .timeout = 60);

#define SOON    XR_SECONDS(15)
#define SOON_MS 15000

static struct xr_pool *pool;
static struct xr_error error;

/* --- threads that cannot be had --------------------------------------------------------------- */

static int create_error;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
	void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
	void *(*fn)(void *), void *arg);

int
__wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
	void *(*fn)(void *), void *arg)
{
	return create_error != 0 ? create_error :
				   __real_pthread_create(thread, attr, fn, arg);
}

/* --- a pool whose workers the test starts ------------------------------------------------------- */

static enum xr_status
start_none(struct xr_pool *p, void *ctx, struct xr_error *err)
{
	(void)p;
	(void)ctx;
	(void)err;
	return XR_OK;
}

static enum xr_status
end_none(struct xr_pool *p, int64_t time, void *ctx, struct xr_error *err)
{
	(void)p;
	(void)time;
	(void)ctx;
	(void)err;
	return XR_OK;
}

static enum xr_status
twice(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t n = 0;

	(void)ctx;
	xr_value_get_i64(xr_value_at(args, 0), &n);
	return xr_reply(call, xr_value_new_i64(2 * n));
}

static enum xr_status
fails(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	return xr_reply_fail(call, XR_E_EXISTS, "there");
}

static void
begin(const char *worker, uint64_t max_tasks, const char *initializer)
{
	const struct xr_func funcs[] = {
		{ .size = sizeof(funcs[0]), .name = "twice", .fn = twice },
		{ .size = sizeof(funcs[0]), .name = "fails", .fn = fails },
	};
	const struct xr_pool_ops ops = { .size = sizeof(ops),
		.worker = worker,
		.repopulate = start_none,
		.terminate_workers = end_none,
		.join_workers = end_none };
	const struct xr_pool_opts o = { .size = sizeof(o),
		.kind = XR_POOL_THREADS,
		.name = "mates",
		.workers = 2,
		.tasks = 4,
		.max_tasks = max_tasks,
		.initializer = initializer,
		.ops = &ops };

	xr_module_static(funcs, 2, NULL);
	NEED(xr_pool_new(&o, &pool, NULL) == XR_OK);
	EXPECT(pool->by_mates && pool->gang == NULL);
	memset(&error, 0, sizeof(error));
}

static struct mate *
start(uint32_t i)
{
	int fd = -1;

	NEED(mate_start(pool, i, &fd, &error) == XR_OK);
	EXPECT(pool->place[i].mate != NULL);
	EXPECT_EQ(mate_fd(pool->place[i].mate), fd);
	EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	EXPECT((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
	return pool->place[i].mate;
}

static bool
has_told(const struct mate *m, int ms)
{
	struct pollfd p = { .fd = mate_fd(m), .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* Of the one at @i, which ends. */
static enum xr_status
end_of(uint32_t i)
{
	struct mate *m = pool->place[i].mate;
	int fd = mate_fd(m);
	enum xr_status status;
	uint64_t word = 0;

	NEED(has_told(m, SOON_MS));
	EXPECT(mate_has_ended(m));
	EXPECT_EQ(read(fd, &word, sizeof(word)), sizeof(word));
	EXPECT_EQ(word, 1);
	pool->place[i].mate = NULL;
	memset(&error, 0xff, sizeof(error));
	status = mate_free(m, &error);
	EXPECT_EQ(fcntl(fd, F_GETFD), -1);
	return status;
}

/* --- its function --------------------------------------------------------------------------------- */

static _Atomic bool may_end;
static bool leaves;

static enum xr_status
ends(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	int64_t until = clock_now() + SOON;

	EXPECT_EQ(ordinal, 1);
	EXPECT(xr_pool_of(arg) == pool && ctx == &may_end);
	EXPECT(pool->place[1].mate != NULL);
	while (!atomic_load(&may_end) && clock_now() < until)
		sched_yield();
	if (leaves)
		pthread_exit(NULL);
	snprintf(err->text, sizeof(err->text), "bye");
	return err->status = XR_E_CLOSED;
}

FORKED_TEST(pool_mate, what_its_function_ends_with_is_told)
{
	struct mate *m;

	NEED(xr_proc_register("ends", ends, &may_end, NULL) == XR_OK);
	begin("ends", 0, NULL);
	m = start(1);
	EXPECT(!mate_has_ended(m));
	EXPECT(!has_told(m, 0));
	atomic_store(&may_end, true);
	EXPECT_EQ(end_of(1), XR_E_CLOSED);
	EXPECT_EQ(error.status, XR_E_CLOSED);
	EXPECT_STR(error.text, "bye");
	leaves = true;
	start(1);
	EXPECT_EQ(end_of(1), XR_E_WORKER_LOST);
	EXPECT_STR(error.text, "mates/1 has ended its thread");
	xr_pool_free(pool);
}

static int
lowest_fd(void)
{
	int fd = dup(STDOUT_FILENO);

	close(fd);
	return fd;
}

static void
expect_none(enum xr_status status, const char *text)
{
	int fd = -7, lowest;

	lowest = lowest_fd();
	EXPECT_EQ(mate_start(pool, 1, &fd, &error), status);
	until_short = 0;
	EXPECT_STR(error.text, text);
	EXPECT_EQ(fd, -7);
	EXPECT(pool->place[1].mate == NULL);
	EXPECT_EQ(lowest_fd(), lowest);
}

FORKED_TEST(pool_mate, one_that_cannot_be_started_leaves_nothing)
{
	struct rlimit limit, none;

	begin("unknown", 0, NULL);
	expect_none(XR_E_NO_FUNCTION, "unknown is not registered");
	xr_pool_free(pool);
	begin(NULL, 0, NULL);
	until_short = 1;
	expect_none(XR_E_NOMEM, "out of memory");
	create_error = EAGAIN;
	expect_none(XR_E_SYS,
		"pthread_create: Resource temporarily unavailable");
	create_error = 0;
	NEED(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	none = limit;
	none.rlim_cur = (rlim_t)lowest_fd();
	NEED(setrlimit(RLIMIT_NOFILE, &none) == 0);
	EXPECT_EQ(mate_start(pool, 1, &(int){ -7 }, &error), XR_E_SYS);
	NEED(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	EXPECT_STR(error.text, "eventfd: Too many open files");
	EXPECT(pool->place[1].mate == NULL);
	xr_pool_free(pool);
}

/* --- tasks ------------------------------------------------------------------------------------------ */

static struct xr_future *
submit(int64_t n)
{
	struct xr_value *args = xr_value_new_list();
	const struct xr_pool_task t = { .size = sizeof(t),
		.name = "twice",
		.args = args };
	struct xr_future *f = NULL;

	NEED(xr_value_append(args, xr_value_new_i64(n)) == XR_OK);
	NEED(xr_pool_apply_async(pool, &t, &f, NULL) == XR_OK);
	xr_value_unref(args);
	return f;
}

static void
expect_result(struct xr_future *f, int64_t want)
{
	struct xr_value *value = NULL;
	int64_t n = -1;

	EXPECT_EQ(xr_future_wait(f, SOON, &value, &error), XR_OK);
	xr_value_get_i64(value, &n);
	EXPECT_EQ(n, want);
	xr_value_unref(value);
	xr_future_unref(f);
}

FORKED_TEST(pool_mate, one_that_may_do_three_tasks_ends_with_the_third)
{
	struct xr_future *f[4];

	begin(NULL, 3, NULL);
	pool->place[0].life = 4;
	for (int i = 0; i < 4; i++)
		f[i] = submit(10 + i);
	start(0);
	EXPECT_EQ(end_of(0), XR_OK);
	EXPECT_EQ(pool->ledger.place[0].ready, 5);
	EXPECT_EQ(xr_queue_count(pool->in[0]), 1);
	for (int i = 0; i < 3; i++)
		expect_result(f[i], 2 * (10 + i));
	EXPECT_EQ(xr_future_wait(f[3], 0, NULL, NULL), XR_E_TIMEOUT);
	/* The one behind it. */
	pool->place[0].life++;
	start(0);
	expect_result(f[3], 26);
	EXPECT_EQ(pool->ledger.place[0].ready, 6);
	xr_pool_close(pool);
	EXPECT_EQ(end_of(0), XR_OK);
	xr_pool_free(pool);
}

/* It answers in its own name, before it says so. */
FORKED_TEST(pool_mate, an_answer_says_whose_it_is)
{
	struct result_head head;
	struct xr_queue_buf buf = { .data = &head, .room = sizeof(head) };
	const struct ledger_who who = { 1, 3 };
	struct xr_future *f;
	uint64_t word;

	begin(NULL, 1, NULL);
	pool->place[1].life = 3;
	f = submit(1);
	start(1);
	EXPECT_EQ(end_of(1), XR_OK);
	word = pool->ledger.task[0].word;
	if (ledger_phase(word) == LEDGER_FREE) { /* the keeper was faster */
		expect_result(f, 2);
		xr_pool_free(pool);
		return;
	}
	EXPECT_EQ(ledger_phase(word), LEDGER_ANSWERED);
	EXPECT(ledger_is_of(word, who));
	EXPECT_EQ(xr_queue_get_bytes(pool->out, &buf, 0, NULL), XR_OK);
	EXPECT_EQ(buf.len, sizeof(head));
	EXPECT_EQ(head.index, 0);
	EXPECT_EQ(head.gen, ledger_gen(word));
	EXPECT_EQ(head.place, 1);
	EXPECT_EQ(xr_queue_put_bytes(pool->out, &head, sizeof(head), 0, NULL),
		XR_OK);
	expect_result(f, 2);
	xr_pool_free(pool);
}

FORKED_TEST(pool_mate, what_is_no_task_is_passed_over)
{
	const struct task_head none[2] = { { .index = 3 }, { .index = 4 } };
	struct xr_future *f;

	begin(NULL, 1, NULL);
	for (size_t len = sizeof(none[0]) - 1; len <= sizeof(none[0]) + 1;
		len++)
		EXPECT_EQ(xr_queue_put_bytes(pool->in[0], &none[0], len, 0,
				  NULL),
			XR_OK);
	EXPECT_EQ(xr_queue_put_bytes(pool->in[0], &none[1], sizeof(none[1]), 0,
			  NULL),
		XR_OK);
	f = submit(5);
	atomic_store(&pool->ledger.head->starved, 1);
	start(0);
	EXPECT_EQ(end_of(0), XR_OK);
	EXPECT_EQ(pool->ledger.head->starved, 0);
	EXPECT_EQ(xr_queue_count(pool->in[0]), 0);
	expect_result(f, 10);
	xr_pool_free(pool);
}

FORKED_TEST(pool_mate, one_whose_initializer_fails_takes_no_task)
{
	struct xr_future *f;

	begin(NULL, 0, "fails");
	f = submit(5);
	start(0);
	EXPECT_EQ(end_of(0), XR_E_EXISTS);
	EXPECT_STR(error.text, "there");
	EXPECT_EQ(pool->ledger.place[0].ready, 0);
	EXPECT_EQ(xr_queue_count(pool->in[0]), 1);
	xr_future_unref(f);
	xr_pool_free(pool);
}
