/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - pools, by the acceptance checks: what they are asked, and what they refuse.
 *
 *   POOL_PAGE=FILE pool CASE [FLAVOUR]
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#include <sys/wait.h>

#include <xrun/proc.h>
#include <xrun/tensor.h>

#include "tests/prog/pool_rig.h"

static const struct flavour flavours[] = {
	{ "base", XR_POOL_PROCESSES, XR_POOL_SHARED, false, false },
	{ "pool", XR_POOL_PROCESSES, XR_POOL_SHARED, false, true },
	{ "p2p", XR_POOL_PROCESSES, XR_POOL_P2P, false, true },
	{ "ctx", XR_POOL_PROCESSES, XR_POOL_SHARED, true, true },
	{ "thread", XR_POOL_THREADS, XR_POOL_SHARED, false, true },
	{ "ctx-thread", XR_POOL_THREADS, XR_POOL_SHARED, true, true },
};

/* --- all calls ---------------------------------------------------------------------- */

static void
expect_weights(const struct xr_value *values, int64_t n)
{
	EXPECT(xr_value_count(values) == (size_t)n);
	for (int64_t i = 0; i < n; i++)
		EXPECT(rig_result(xr_value_at(values, (size_t)i)) == 20 * i);
}

static void
expect_maps(struct xr_pool *pool, int64_t n)
{
	struct xr_pool_task t = rig_task("weigh", rig_numbers(n));
	struct xr_value *values = NULL;
	struct xr_future *future;

	EXPECT(xr_pool_map(pool, &t, SOON, &values, &rig_err) == XR_OK);
	expect_weights(values, n);
	xr_value_unref(values);
	EXPECT(xr_pool_map_async(pool, &t, &future, &rig_err) == XR_OK);
	EXPECT(xr_future_wait(future, SOON, &values, &rig_err) == XR_OK);
	expect_weights(values, n);
	xr_value_unref(values);
	xr_future_unref(future);
	rig_done(&t);
}

static void
expect_starmaps(struct xr_pool *pool)
{
	struct xr_pool_task t = rig_task("plus", xr_value_new_list());
	struct xr_value *values = NULL;
	struct xr_future *future;

	for (int64_t i = 0; i < 5; i++)
		EXPECT(xr_value_append(t.args, rig_two(19 * i, i)) == XR_OK);
	EXPECT(xr_pool_starmap(pool, &t, SOON, &values, &rig_err) == XR_OK);
	expect_weights(values, 5);
	xr_value_unref(values);
	EXPECT(xr_pool_starmap_async(pool, &t, &future, &rig_err) == XR_OK);
	EXPECT(xr_future_wait(future, SOON, &values, &rig_err) == XR_OK);
	expect_weights(values, 5);
	xr_value_unref(values);
	xr_future_unref(future);
	rig_done(&t);
}

static void
expect_iterators(struct xr_pool *pool)
{
	struct xr_pool_task t = rig_task("weigh", rig_numbers(5));
	struct xr_pool_iter *iter;
	struct xr_value *value;
	int64_t sum = 0;

	for (int chunk = 1; chunk <= 3; chunk++) {
		t.flags = XR_POOL_CHUNK;
		t.chunk = chunk;
		EXPECT(xr_pool_imap(pool, &t, &iter, &rig_err) == XR_OK);
		for (int64_t i = 0; i < 5; i++) {
			EXPECT(xr_pool_iter_next(iter, SOON, &value,
				       &rig_err) == XR_OK);
			EXPECT(rig_result(value) == 20 * i);
			xr_value_unref(value);
		}
		EXPECT(xr_pool_iter_next(iter, 0, &value, &rig_err) ==
			XR_E_END);
		xr_pool_iter_free(iter);
	}
	EXPECT(xr_pool_imap_unordered(pool, &t, &iter, &rig_err) == XR_OK);
	while (xr_pool_iter_next(iter, SOON, &value, &rig_err) == XR_OK) {
		sum += rig_result(value);
		xr_value_unref(value);
	}
	EXPECT(rig_err.status == XR_E_END && sum == 20 * 10);
	xr_pool_iter_free(iter);
	rig_done(&t);
}

static void
all_calls(void)
{
	struct xr_pool *pool = rig_pool();

	for (int64_t i = 0; i < 5; i++) {
		EXPECT(rig_call(pool, "weigh", i) == 20 * i);
		EXPECT(rig_get(rig_async(pool, "weigh", i)) == 20 * i);
	}
	EXPECT(rig_call(pool, "later", 4) == -4);
	expect_maps(pool, 5);
	expect_starmaps(pool);
	expect_iterators(pool);
	rig_end(pool);
}

/* Two at the same time, each with many. */
static void
many(void)
{
	struct xr_pool *pools[2] = { rig_pool(), rig_pool() };
	struct xr_pool_task t = rig_task("weigh", rig_numbers(50000));
	struct xr_future *futures[2];
	struct xr_value *values;

	t.flags = XR_POOL_CHUNK;
	t.chunk = 1;
	for (int i = 0; i < 2; i++)
		EXPECT(xr_pool_map_async(pools[i], &t, &futures[i], &rig_err) ==
			XR_OK);
	for (int i = 0; i < 2; i++) {
		EXPECT(xr_future_wait(futures[i], SOON, &values, &rig_err) ==
			XR_OK);
		expect_weights(values, 50000);
		xr_value_unref(values);
		xr_future_unref(futures[i]);
		rig_end(pools[i]);
	}
	rig_done(&t);
}

/* --- who was given what ------------------------------------------------------------------ */

static void
refusals(void)
{
	struct xr_pool_opts o = rig_opts();
	struct xr_pool *pool = NULL;
	struct xr_value *wrong = rig_numbers(WORKERS + 1);

	o.flags = XR_POOL_CONTEXT;
	o.contexts = wrong;
	EXPECT(xr_pool_new(&o, &pool, &rig_err) == XR_E_INVAL);
	o = rig_opts();
	o.initializer = "nobody";
	EXPECT(xr_pool_new(&o, &pool, &rig_err) == XR_E_NO_FUNCTION);
	o = rig_opts();
	o.workers = XR_POOL_WORKERS_MAX + 1;
	EXPECT(xr_pool_new(&o, &pool, &rig_err) == XR_E_RANGE);
	o = rig_opts();
	o.size--;
	EXPECT(xr_pool_new(&o, &pool, &rig_err) == XR_E_INVAL);
	o = rig_opts();
	o.method = "witchcraft";
	EXPECT(xr_pool_new(&o, &pool, &rig_err) == XR_E_INVAL);
	EXPECT(pool == NULL);
	xr_value_unref(wrong);
}

static void
refused_tasks(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_pool_task t = rig_task("weigh", rig_numbers(7)), bad = t;
	struct xr_pool_iter *iter;
	struct xr_future *future;

	for (int chunk = -1; chunk < 1; chunk++) {
		bad.flags = XR_POOL_CHUNK;
		bad.chunk = chunk;
		EXPECT(xr_pool_map_async(pool, &bad, &future, &rig_err) ==
			XR_E_INVAL);
		EXPECT(xr_pool_imap(pool, &bad, &iter, &rig_err) == XR_E_INVAL);
	}
	bad.flags = 0;
	bad.chunk = 1;
	EXPECT(xr_pool_imap(pool, &bad, &iter, &rig_err) == XR_E_INVAL);
	EXPECT(strstr(rig_err.text, "no XR_POOL_CHUNK") != NULL);
	bad = t;
	bad.name = "weigh";
	bad.func = NULL;
	bad.timeout = -5;
	EXPECT(xr_pool_map_async(pool, &bad, &future, &rig_err) == XR_E_INVAL);
	bad.timeout = 0;
	bad.name = "nobody";
	EXPECT(xr_pool_map_async(pool, &bad, &future, &rig_err) ==
		XR_E_NO_FUNCTION);
	EXPECT(strstr(rig_err.text, "nobody") != NULL);
	EXPECT(xr_pool_starmap_async(pool, &t, &future, &rig_err) ==
		XR_E_INVAL);
	EXPECT(rig_call(pool, "weigh", 1) == 20);
	rig_done(&t);
	rig_end(pool);
	xr_pool_close(NULL);
	xr_pool_free(NULL);
}

static void
states(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_pool_task t = rig_task("weigh", rig_one(1));
	struct xr_future *future;

	EXPECT(xr_pool_state(pool) == XR_POOL_RUNNING);
	EXPECT(xr_pool_join(pool, 0, &rig_err) == XR_E_STATE);
	EXPECT(xr_pool_size(pool) == WORKERS);
	xr_pool_close(pool);
	EXPECT(xr_pool_state(pool) == XR_POOL_CLOSED);
	EXPECT(xr_pool_apply_async(pool, &t, &future, &rig_err) == XR_E_STATE);
	EXPECT(xr_pool_join(pool, SOON, &rig_err) == XR_OK);
	EXPECT(xr_pool_terminate(pool, SOON, &rig_err) == XR_OK);
	EXPECT(xr_pool_state(pool) == XR_POOL_TERMINATED);
	xr_pool_close(pool);
	EXPECT(xr_pool_state(pool) == XR_POOL_TERMINATED);
	EXPECT(xr_pool_map_async(pool, &t, &future, &rig_err) == XR_E_STATE);
	EXPECT(xr_pool_join(pool, SOON, &rig_err) == XR_OK);
	EXPECT(xr_pool_join(pool, -2, &rig_err) == XR_E_INVAL);
	xr_pool_free(pool);
	rig_done(&t);
}

static void
sizes(void)
{
	struct xr_pool_opts o = rig_opts();
	struct xr_pool *pool;
	int32_t pids[4] = { -1, -1, -1, -1 };

	o.contexts = NULL;
	o.workers = 0;
	pool = rig_pool_of(&o);
	EXPECT((long)xr_pool_size(pool) == sysconf(_SC_NPROCESSORS_ONLN));
	rig_end(pool);
	o.workers = 3;
	pool = rig_pool_of(&o);
	EXPECT(xr_pool_pids(pool, pids, 4) == 3);
	for (int i = 0; i < 3; i++)
		EXPECT(rig_threads() ? pids[i] == 0 : pids[i] > 0);
	EXPECT(pids[3] == -1);
	rig_end(pool);
}

/* A pool is no value that travels; threads have what a function is bound to itself. */
static void
no_travel(void)
{
	struct xr_pool_task t = rig_task(NULL, rig_one(1));
	struct xr_pool *pool = rig_pool();
	struct xr_value *value = xr_pool_value(pool), *got = NULL;
	struct xr_encoded *encoded = NULL;

	EXPECT(xr_pool_of(value) == pool);
	EXPECT(xr_encode(value, NULL, &encoded, &rig_err) == XR_E_ENCODE);
	EXPECT(strstr(rig_err.text, "xr.pool") != NULL);
	t.func = xr_fn_bind("pid", xr_value_ref(value));
	EXPECT(xr_pool_apply(pool, &t, XR_SECONDS(20), &got, &rig_err) ==
		(rig_threads() ? XR_OK : XR_E_ENCODE));
	xr_value_unref(got);
	rig_done(&t);
	xr_value_unref(value);
	rig_end(pool);
}

/* In a child made by fork() there is none. */
static void
forked(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_pool_task t = rig_task("weigh", rig_one(1));
	struct xr_future *future;
	int status;
	pid_t child;

	EXPECT(rig_call(pool, "weigh", 2) == 40);
	child = fork();
	if (child == 0) {
		EXPECT(xr_pool_apply_async(pool, &t, &future, &rig_err) ==
			XR_E_STATE);
		EXPECT(xr_pool_terminate(pool, 0, &rig_err) == XR_E_STATE);
		_exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
	EXPECT(rig_call(pool, "weigh", 3) == 60);
	rig_done(&t);
	rig_end(pool);
}

/* A child may free what it has not, whatever threads of its parent were at. */
static void
forked_and_freed(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_pool_task t = rig_task("weigh", rig_numbers(1000));

	for (int i = 0; i < 20; i++) {
		struct xr_future *future = NULL;
		struct xr_value *values = NULL;
		int status;
		pid_t child;

		t.flags = XR_POOL_CHUNK;
		t.chunk = 1;
		EXPECT(xr_pool_map_async(pool, &t, &future, &rig_err) == XR_OK);
		child = fork();
		if (child == 0) {
			xr_pool_free(pool);
			_exit(0);
		}
		EXPECT(waitpid(child, &status, 0) == child && status == 0);
		EXPECT(xr_future_wait(future, SOON, &values, &rig_err) ==
			XR_OK);
		xr_value_unref(values);
		xr_future_unref(future);
	}
	rig_done(&t);
	rig_end(pool);
}

/* --- many submit --------------------------------------------------------------------------- */

struct submitter {
	struct xr_pool *pool;
	int64_t first, count;
	pthread_t thread;
};

static void *
submit(void *ctx)
{
	struct submitter *s = ctx;
	struct xr_future **futures = calloc((size_t)s->count, sizeof(*futures));

	for (int64_t i = 0; i < s->count; i++)
		futures[i] = rig_async(s->pool, "weigh", s->first + i);
	for (int64_t i = 0; i < s->count; i++)
		EXPECT(rig_get(futures[i]) == 20 * (s->first + i));
	free(futures);
	return NULL;
}

static void
submitters_of(int64_t count)
{
	struct xr_pool *pool = rig_pool();
	struct submitter all[8];

	for (int i = 0; i < 8; i++) {
		all[i] = (struct submitter){ pool, i * 100000, count, 0 };
		EXPECT(pthread_create(&all[i].thread, NULL, submit, &all[i]) ==
			0);
	}
	for (int i = 0; i < 8; i++)
		pthread_join(all[i].thread, NULL);
	rig_end(pool);
}

static void
submitters(void)
{
	submitters_of(10000);
}

static void
submitters_some(void)
{
	submitters_of(2500);
}

/* --- resources --------------------------------------------------------------------------------- */

static long
count_lines(const char *path)
{
	FILE *f = fopen(path, "re");
	long n = 0;
	int c;

	EXPECT(f != NULL);
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static long
count_files(void)
{
	long n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return n;
}

static long
count_children(void)
{
	char path[64], text[4096];
	long n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children",
		(int)getpid());
	f = fopen(path, "re");
	EXPECT(f != NULL);
	while (fscanf(f, "%4095s", text) == 1)
		n++;
	fclose(f);
	return n;
}

static long
count_threads(void)
{
	char line[128];
	long n = -1;
	FILE *f = fopen("/proc/self/status", "re");

	while (fgets(line, sizeof(line), f) != NULL)
		sscanf(line, "Threads: %ld", &n);
	fclose(f);
	return n;
}

/* What there is after the first pools, there is after the last: the zygote, above all. */
static void
cycles_of(uint32_t pools)
{
	long files = 0, maps = 0, children = 0, threads = 0;

	for (uint32_t i = 0; i <= pools; i++) {
		struct xr_pool *pool = rig_pool();

		if (i % 50 == 0)
			EXPECT(rig_call(pool, "weigh", 1) == 20);
		rig_end(pool);
		if (i != 50)
			continue;
		files = count_files();
		maps = count_lines("/proc/self/maps");
		children = count_children();
		threads = count_threads();
	}
	EXPECT(count_files() == files);
	/* A sanitizer has some more or less; one each would be 75 or more. */
	EXPECT(count_lines("/proc/self/maps") <= maps + 50);
	EXPECT(count_children() == children && children <= 1);
	EXPECT(count_threads() == threads && threads == 1);
}

static void
cycles(void)
{
	cycles_of(rig_many(1000));
}

static void
cycles_some(void)
{
	cycles_of(150);
}

/* A few: what has been made by fork is gone, too. */
static void
cycles_short(void)
{
	for (int i = 0; i < 20; i++) {
		struct xr_pool *pool = rig_pool();

		EXPECT(rig_call(pool, "weigh", 1) == 20);
		rig_end(pool);
	}
	EXPECT(count_children() == 0 && count_threads() == 1);
}

/* What this process has come to know they know; but not of one that has threads. */
static void
forks(void)
{
	struct xr_pool_opts o = rig_opts();
	struct xr_pool *pool = NULL, *other = NULL;
	int32_t pids[WORKERS];

	o.method = "fork";
	rig_secret = 4711;
	pool = rig_pool_of(&o);
	rig_secret = 1;
	EXPECT(rig_call(pool, "secret", 0) == 4711);
	EXPECT(xr_pool_pids(pool, pids, WORKERS) == WORKERS);
	for (int i = 0; i < WORKERS; i++)
		EXPECT(kill(pids[i], SIGKILL) == 0);
	EXPECT(rig_call(pool, "secret", 0) == 4711);
	EXPECT(xr_pool_new(&o, &other, &rig_err) == XR_E_STATE);
	rig_end(pool);
}

static const struct rig_case cases[] = {
	{ "all-calls", all_calls },
	{ "many", many },
	{ "refusals", refusals },
	{ "refused-tasks", refused_tasks },
	{ "states", states },
	{ "sizes", sizes },
	{ "no-travel", no_travel },
	{ "forked", forked },
	{ "forked-and-freed", forked_and_freed },
	{ "submitters", submitters },
	{ "submitters-some", submitters_some },
	{ "cycles", cycles },
	{ "cycles-some", cycles_some },
	{ "cycles-short", cycles_short },
	{ "forks", forks },
	{ NULL, NULL },
};

int
main(int argc, char **argv)
{
	rig_register();
	EXPECT(xr_init(&rig_err) == XR_OK);
	for (size_t i = 0; i < sizeof(flavours) / sizeof(flavours[0]); i++)
		if (argc > 2 && strcmp(flavours[i].name, argv[2]) == 0)
			flavour = &flavours[i];
	if (argc == 2)
		flavour = &flavours[0];
	if (flavour == NULL ||
		(!rig_run(cases, argv[1]) && !rig_run(result_cases, argv[1]) &&
			!rig_run(end_cases, argv[1]) &&
			!rig_run(op_cases, argv[1]))) {
		fprintf(stderr, "usage: pool CASE [FLAVOUR]\n");
		return 2;
	}
	return 0;
}
