/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - threads that use pools, and start processes, under the thread sanitizer. TAP.
 *
 * Workers that are processes are executed, with a module (pool_module.c): what is looked at
 * is their parent. OPERATIONS is how many calls, 4000 otherwise; `threads` leaves the parts
 * with processes out.
 */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/func.h>
#include <xrun/pool.h>
#include <xrun/proc.h>

#define THREADS 4
#define WORKERS 2
#define SOON    XR_SECONDS(60)

static char module[PATH_MAX + 32];
static enum xr_pool_kind kind;
static uint32_t tasks; /* of the pool; 0: as many as usual */
static struct xr_pool *pool;
static struct xr_pool_iter *iter;
static uint32_t each; /* calls of a thread */
static _Atomic uint32_t heard, lost, items;
static atomic_bool wrong;
static int test;

static void
claim(bool holds, const char *what)
{
	printf("%sok %d - %s\n", holds ? "" : "not ", ++test, what);
}

static void
check(bool holds)
{
	if (!holds)
		atomic_store(&wrong, true);
}

static enum xr_status
add_one(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t n = 0;

	(void)ctx;
	xr_value_get_i64(xr_value_at(args, 0), &n);
	return xr_reply(call, xr_value_new_i64(n + 1));
}

/* --- rig ---------------------------------------------------------------------- */

static struct xr_pool *
pool_new(void)
{
	const struct xr_pool_opts opts = {
		.size = sizeof(opts),
		.kind = kind,
		.workers = WORKERS,
		.tasks = tasks,
		.module = kind == XR_POOL_PROCESSES ? module : NULL,
	};
	struct xr_pool *p = NULL;
	struct xr_error err = { 0 };

	if (xr_pool_new(&opts, &p, &err) == XR_OK)
		return p;
	fprintf(stderr, "%s\n", err.text);
	exit(2);
}

static struct xr_value *
list_of(int64_t from, int64_t count)
{
	struct xr_value *list = xr_value_new_list();

	for (int64_t i = 0; i < count; i++)
		xr_value_append(list, xr_value_new_i64(from + i));
	return list;
}

static bool
is_number(const struct xr_value *value, int64_t want)
{
	int64_t n = -1;

	return xr_value_get_i64(value, &n) == XR_OK && n == want;
}

/* Each by a thread of its own. */
static void
all_of(void *(*fn)(void *), uint32_t count)
{
	pthread_t thread[THREADS];

	for (uintptr_t i = 0; i < count; i++)
		if (pthread_create(&thread[i], NULL, fn, (void *)i) != 0)
			exit(2);
	for (uint32_t i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
}

/* --- calls -------------------------------------------------------------------- */

static enum xr_status
hear(struct xr_value *value, void *ctx)
{
	(void)value;
	(void)ctx;
	atomic_fetch_add(&heard, 1);
	return XR_OK;
}

static void
call(int64_t n)
{
	struct xr_pool_task t = { .size = sizeof(t),
		.name = "add_one",
		.callback = n % 3 == 0 ? hear : NULL };
	struct xr_future *future = NULL;
	struct xr_value *value = NULL;

	t.args = list_of(n, 1);
	if (n % 2 == 0) {
		check(xr_pool_apply(pool, &t, SOON, &value, NULL) == XR_OK);
	} else {
		check(xr_pool_apply_async(pool, &t, &future, NULL) == XR_OK);
		check(xr_future_wait(future, SOON, &value, NULL) == XR_OK);
	}
	check(is_number(value, n + 1));
	xr_future_unref(future);
	xr_value_unref(value);
	xr_value_unref(t.args);
}

static void
map(int64_t n)
{
	struct xr_pool_task t = { .size = sizeof(t), .name = "add_one" };
	struct xr_value *value = NULL;

	t.args = list_of(n, 20);
	check(xr_pool_map(pool, &t, SOON, &value, NULL) == XR_OK);
	for (int64_t i = 0; i < 20; i++)
		check(is_number(xr_value_at(value, (size_t)i), n + i + 1));
	xr_value_unref(value);
	xr_value_unref(t.args);
}

/* With a look from outside now and then. */
static void *
use(void *number)
{
	int64_t from = (int64_t)(uintptr_t)number * 1000000;
	int32_t pids[WORKERS];

	for (int64_t i = 0; i < each; i++) {
		if (i % 16 == 5)
			map(from + i);
		else
			call(from + i);
		if (i % 64 == 9)
			check(xr_pool_size(pool) <= WORKERS &&
				xr_pool_pids(pool, pids, WORKERS) <= WORKERS);
	}
	return NULL;
}

/* --- iterators ---------------------------------------------------------------- */

static void *
take(void *unused)
{
	struct xr_value *value = NULL;

	(void)unused;
	while (xr_pool_iter_next(iter, SOON, &value, NULL) == XR_OK) {
		atomic_fetch_add(&items, 1);
		xr_value_unref(value);
	}
	return NULL;
}

static void
iterate(void)
{
	struct xr_pool_task t = { .size = sizeof(t), .name = "add_one" };

	t.args = list_of(0, 1000);
	check(xr_pool_imap_unordered(pool, &t, &iter, NULL) == XR_OK);
	xr_value_unref(t.args);
	all_of(take, THREADS);
	xr_pool_iter_free(iter);
	check(items == 1000);
}

/* --- ends --------------------------------------------------------------------- */

/* Who dies takes one call with it. */
static void *
use_up(void *unused)
{
	struct xr_pool_task t = { .size = sizeof(t) };
	struct xr_value *value;
	enum xr_status status;

	(void)unused;
	t.args = list_of(0, 1);
	for (int i = 0; i < 12; i++) {
		value = NULL;
		t.name = i % 4 == 3 ? "die" : "add_one";
		status = xr_pool_apply(pool, &t, SOON, &value, NULL);
		check(status == (i % 4 == 3 ? XR_E_WORKER_LOST : XR_OK));
		atomic_fetch_add(&lost, status == XR_E_WORKER_LOST);
		xr_value_unref(value);
	}
	xr_value_unref(t.args);
	return NULL;
}

/* Threads that run yet are not waited for. */
static void
end_now(void)
{
	enum xr_status status = xr_pool_terminate(pool, 0, NULL);

	check(status == XR_OK ||
		(kind == XR_POOL_THREADS && status == XR_E_TIMEOUT));
}

/* Others end it while some wait for what it has in hand. */
static void *
end_soon(void *number)
{
	struct xr_pool_task t = { .size = sizeof(t), .name = "add_one" };
	struct xr_future *future;

	if (number == NULL) {
		end_now();
		return NULL;
	}
	t.args = list_of(0, 1);
	while (xr_pool_apply_async(pool, &t, &future, NULL) == XR_OK) {
		enum xr_status status =
			xr_future_wait(future, SOON, NULL, NULL);

		check(status == XR_OK || status == XR_E_CANCELLED);
		xr_future_unref(future);
	}
	xr_value_unref(t.args);
	return NULL;
}

static void *
make_and_end(void *unused)
{
	struct xr_pool_task t = { .size = sizeof(t), .name = "add_one" };

	(void)unused;
	t.args = list_of(4, 1);
	for (int i = 0; i < 5; i++) {
		struct xr_value *value = NULL;
		struct xr_pool *own = pool_new();

		check(xr_pool_apply(own, &t, SOON, &value, NULL) == XR_OK);
		check(is_number(value, 5));
		xr_value_unref(value);
		xr_pool_close(own);
		check(xr_pool_join(own, SOON, NULL) == XR_OK);
		xr_pool_free(own);
	}
	xr_value_unref(t.args);
	return NULL;
}

/* --- tasks inside of tasks ----------------------------------------------------- */

static _Atomic uint32_t leaves;

static struct xr_future *
nest_async(int64_t depth)
{
	struct xr_pool_task t = { .size = sizeof(t), .name = "nest" };
	struct xr_future *future = NULL;

	t.args = list_of(depth, 1);
	check(xr_pool_apply_async(pool, &t, &future, NULL) == XR_OK);
	xr_value_unref(t.args);
	return future;
}

static void
nest_here(int64_t depth)
{
	struct xr_pool_task t = { .size = sizeof(t), .name = "nest" };
	enum xr_status status;

	t.args = list_of(depth, 1);
	status = xr_pool_apply(pool, &t, XR_TIMEOUT_NEVER, NULL, NULL);
	check(status == XR_OK || status == XR_E_STATE);
	xr_value_unref(t.args);
}

/* Two, of which it waits for that first which was posted first. */
static void
nest_two(int64_t depth)
{
	struct xr_future *one = nest_async(depth), *two = nest_async(depth);

	xr_future_wait(one, XR_TIMEOUT_NEVER, NULL, NULL);
	xr_future_wait(two, XR_TIMEOUT_NEVER, NULL, NULL);
	xr_future_unref(one);
	xr_future_unref(two);
}

/* It calls two others; a few leaves end the thread that they are on, and with it who waits for
 * them there. */
static enum xr_status
nest(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t depth = 0;

	(void)ctx;
	xr_value_get_i64(xr_value_at(args, 0), &depth);
	if (depth == 0 && atomic_fetch_add(&leaves, 1) % 64 == 9)
		pthread_exit(NULL);
	if (depth > 0 && depth % 2 == 0) {
		nest_here(depth - 1);
		nest_here(depth - 1);
	} else if (depth > 0) {
		nest_two(depth - 1);
	}
	return xr_reply(call, xr_value_new_i64(depth));
}

/* Not by a thread of ours, which would end, too. */
static void *
nest_all(void *unused)
{
	struct xr_pool_task t = { .size = sizeof(t), .name = "nest" };

	(void)unused;
	t.args = list_of(4, 1);
	for (uint32_t i = 0; i < each / 16; i++) {
		enum xr_status status =
			xr_pool_apply(pool, &t, SOON, NULL, NULL);

		check(status == XR_OK || status == XR_E_STATE);
	}
	xr_value_unref(t.args);
	return NULL;
}

static void
play_nested(const char *what)
{
	leaves = 0;
	pool = pool_new();
	all_of(nest_all, THREADS);
	xr_pool_free(pool);
	claim(!wrong && leaves > each, what);
}

/* --- processes ---------------------------------------------------------------- */

/* Some fail, one is killed. */
static void *
start_some(void *number)
{
	struct xr_proc_opts opts = { .size = sizeof(opts),
		.func = "end_with",
		.module = module };
	struct xr_proc_end end = { .size = sizeof(end) };

	for (uint32_t i = 0; i < 6; i++) {
		struct xr_proc *proc = NULL;

		opts.ordinal = (uint32_t)(uintptr_t)number * 100 + i;
		opts.arg =
			xr_value_new_i64(i == 2 ? -1 : (int64_t)opts.ordinal);
		check(xr_proc_start(&opts, &proc, NULL) == XR_OK);
		check(xr_proc_wait(proc, SOON, &end, NULL) == XR_OK);
		check(end.code == (i == 2 ? 17 : 0));
		check((xr_proc_report(proc, 0) != NULL) == (i == 2));
		xr_proc_free(proc);
		xr_value_unref(opts.arg);
	}
	return NULL;
}

/* --- all ---------------------------------------------------------------------- */

static void
play(const char *what)
{
	char text[128];

	pool = pool_new();
	heard = items = 0;
	all_of(use, THREADS);
	iterate();
	snprintf(text, sizeof(text), "%s: calls, maps and an iterator", what);
	claim(!wrong && heard > 0, text);
	all_of(end_soon, THREADS);
	xr_pool_free(pool);
	all_of(make_and_end, 2);
	snprintf(text, sizeof(text), "%s: made and ended", what);
	claim(!wrong, text);
}

/* Who start by a module, and what else begins and ends with processes. */
static void
play_processes(void)
{
	kind = XR_POOL_PROCESSES;
	play("processes");
	pool = pool_new();
	all_of(use_up, THREADS);
	claim(!wrong && lost == 3 * THREADS, "workers that die");
	xr_pool_free(pool);
	all_of(start_some, THREADS);
	claim(!wrong, "processes that threads start");
}

static void
play_threads(void)
{
	kind = XR_POOL_THREADS;
	play("threads");
	play_nested("threads: tasks inside of tasks");
	tasks = 4;
	play_nested("threads: more tasks inside of tasks than there may be");
}

int
main(int argc, char **argv)
{
	const char *operations = getenv("OPERATIONS");
	bool threads_only = argc > 1 && strcmp(argv[1], "threads") == 0;
	const struct xr_func one = { .size = sizeof(one),
		.name = "add_one",
		.fn = add_one };
	const struct xr_func two = { .size = sizeof(two),
		.name = "nest",
		.fn = nest };
	ssize_t n = readlink("/proc/self/exe", module, PATH_MAX);

	puts(threads_only ? "1..4" : "1..8");
	if (n <= 0 || xr_fn_register(&one, NULL) != XR_OK ||
		xr_fn_register(&two, NULL) != XR_OK || xr_init(NULL) != XR_OK)
		return 2;
	snprintf(strrchr(module, 0x2f), 32, "/pool_module.so");
	each = (uint32_t)(operations != NULL ? strtol(operations, NULL, 10) :
					       4000) /
		THREADS;
	if (!threads_only)
		play_processes();
	play_threads();
	return 0;
}
