/* SPDX-License-Identifier: Apache-2.0 */
/* pool_end.c - pools, by the acceptance checks: workers that end, and pools that do. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include <sys/wait.h>

#include "tests/prog/late.h"
#include "tests/prog/pool_rig.h"

/* The process that runs wait(i), once it does. */
static pid_t
runner_of(uint32_t i)
{
	rig_await(2 * i, 1);
	return (pid_t)atomic_load(&rig_word[RIG_WORDS - 1 - i]);
}

/* wait(i) does not wait, or not any more. */
static void
release(uint32_t i)
{
	rig_post(2 * i + 1);
}

/* --- workers that end --------------------------------------------------------------------- */

static void
killed(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_future *futures[10];
	struct late late;

	for (uint32_t i = 0; i < 10; i++) {
		if (i != 3)
			release(i);
		futures[i] = rig_async(pool, "wait", i);
	}
	late_begin(&late);
	EXPECT(kill(runner_of(3), SIGKILL) == 0);
	EXPECT(rig_fails(futures[3]) == XR_E_WORKER_LOST);
	EXPECT(late_end(&late) < XR_SECONDS(0.5));
	EXPECT(strstr(rig_err.text, "SIGKILL") != NULL);
	for (uint32_t i = 0; i < 10; i++)
		if (i != 3)
			EXPECT(rig_get(futures[i]) == i);
	rig_until(xr_pool_size(pool) == WORKERS);
	EXPECT(rig_call(pool, "weigh", 1) == 20);
	rig_end(pool);
}

/* What waits in the queue of one who is dead is its follower's. */
static void
killed_with_tasks(void)
{
	struct xr_pool_opts o = rig_opts();
	struct xr_future *futures[20], *first;
	struct xr_pool *pool;

	o.workers = 1;
	o.contexts = NULL;
	o.flags = 0;
	pool = rig_pool_of(&o);
	first = rig_async(pool, "wait", 0);
	for (int64_t i = 0; i < 20; i++)
		futures[i] = rig_async(pool, "weigh", i);
	EXPECT(kill(runner_of(0), SIGKILL) == 0);
	EXPECT(rig_fails(first) == XR_E_WORKER_LOST);
	for (int64_t i = 0; i < 20; i++)
		EXPECT(rig_get(futures[i]) == 20 * i);
	rig_end(pool);
}

/* The end of one with nothing to do is nobody's. */
static void
killed_idle(void)
{
	struct xr_pool *pool = rig_pool();
	int32_t pids[WORKERS], now[WORKERS];

	EXPECT(rig_call(pool, "weigh", 1) == 20);
	EXPECT(xr_pool_pids(pool, pids, WORKERS) == WORKERS);
	for (int i = 0; i < WORKERS; i++)
		EXPECT(kill(pids[i], SIGKILL) == 0);
	rig_until(xr_pool_pids(pool, now, WORKERS) == WORKERS &&
		now[0] != pids[0] && now[1] != pids[1]);
	EXPECT(rig_call(pool, "weigh", 2) == 40);
	rig_end(pool);
}

/* The only child of this process, which makes the others. */
static pid_t
zygote(void)
{
	char path[64];
	int pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children",
		(int)getpid());
	f = fopen(path, "re");
	EXPECT(f != NULL && fscanf(f, "%d", &pid) == 1);
	fclose(f);
	return pid;
}

/* All workers end with the zygote, and others come of another one. */
static void
killed_zygote(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_future *future = rig_async(pool, "wait", 0);
	int32_t pids[WORKERS], now[WORKERS];

	rig_await(0, 1);
	EXPECT(xr_pool_pids(pool, pids, WORKERS) == WORKERS);
	EXPECT(kill(zygote(), SIGKILL) == 0);
	EXPECT(rig_fails(future) == XR_E_WORKER_LOST);
	rig_until(xr_pool_pids(pool, now, WORKERS) == WORKERS &&
		now[0] != pids[0] && now[1] != pids[1]);
	for (int64_t i = 0; i < 20; i++)
		EXPECT(rig_call(pool, "weigh", i) == 20 * i);
	rig_end(pool);
}

static void
exits(void)
{
	struct xr_pool *pool = rig_pool();

	EXPECT(rig_fails(rig_async(pool, "leave", 3)) == XR_E_WORKER_LOST);
	EXPECT(strstr(rig_err.text, "exit code 3") != NULL);
	EXPECT(rig_fails(rig_async(pool, "leave", 0)) == XR_E_WORKER_LOST);
	EXPECT(rig_fails(rig_async(pool, "die", SIGABRT)) == XR_E_WORKER_LOST);
	EXPECT(strstr(rig_err.text, "SIGABRT") != NULL);
	EXPECT(rig_call(pool, "weigh", 1) == 20);
	rig_end(pool);
}

/* What may run twice does, and no more than three times. */
static void
idempotent(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_pool_task t = rig_task("wait", rig_one(0));
	struct xr_future *future;

	t.flags = XR_POOL_IDEMPOTENT;
	EXPECT(xr_pool_apply_async(pool, &t, &future, &rig_err) == XR_OK);
	EXPECT(kill(runner_of(0), SIGKILL) == 0);
	rig_await(0, 2);
	release(0);
	EXPECT(rig_get(future) == 0);
	EXPECT(atomic_load(&rig_word[0]) == 2);
	rig_done(&t);
	t = rig_task("die", rig_one(SIGKILL));
	t.flags = XR_POOL_IDEMPOTENT;
	EXPECT(xr_pool_apply_async(pool, &t, &future, &rig_err) == XR_OK);
	EXPECT(rig_fails(future) == XR_E_WORKER_LOST);
	rig_done(&t);
	rig_end(pool);
}

static int
compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void
max_tasks(void)
{
	struct xr_pool_opts o = rig_opts();
	struct xr_pool *pool;
	int64_t pids[12];

	o.max_tasks = 1;
	pool = rig_pool_of(&o);
	for (int i = 0; i < 12; i++)
		pids[i] = rig_call(pool, "pid", i);
	qsort(pids, 12, sizeof(pids[0]), compare);
	for (int i = 1; i < 12; i++)
		EXPECT(rig_threads() || pids[i] != pids[i - 1]);
	rig_end(pool);
}

/* Any of its workers is killed while they end anyway; all tasks end. */
static void
max_tasks_killed(void)
{
	struct xr_pool_opts o = rig_opts();
	struct xr_future *futures[200];
	struct xr_pool *pool;
	uint32_t lost = 0;
	int32_t pid[1];

	o.max_tasks = 2;
	pool = rig_pool_of(&o);
	for (int i = 0; i < 200; i++) {
		futures[i] = rig_async(pool, "pid", i);
		if (i % 20 == 7 && xr_pool_pids(pool, pid, 1) > 0)
			kill(pid[0], SIGKILL);
	}
	for (int i = 0; i < 200; i++) {
		enum xr_status status = rig_fails(futures[i]);

		EXPECT(status == XR_OK || status == XR_E_WORKER_LOST);
		lost += status != XR_OK;
	}
	EXPECT(lost <= 10);
	rig_end(pool);
}

/* Whoever has a place has its context. */
static void
contexts(void)
{
	struct xr_pool *pool = rig_pool();
	bool seen[WORKERS] = { false };

	for (int turn = 0; turn < 3; turn++) {
		struct xr_pool_task t = rig_task("weigh", rig_numbers(100));
		struct xr_value *values = NULL;
		int32_t pids[WORKERS], now[WORKERS];

		EXPECT(xr_pool_map(pool, &t, SOON, &values, &rig_err) == XR_OK);
		for (size_t i = 0; i < 100; i++) {
			const char *c =
				xr_value_data(xr_value_at(xr_value_at(values,
								  i),
						      0),
					&(size_t){ 0 });

			EXPECT(rig_result(xr_value_at(values, i)) ==
				20 * (int64_t)i);
			seen[c[1] - '0'] = true;
		}
		xr_value_unref(values);
		rig_done(&t);
		if (rig_threads())
			continue;
		EXPECT(xr_pool_pids(pool, pids, WORKERS) == WORKERS);
		EXPECT(kill(pids[turn % WORKERS], SIGKILL) == 0);
		rig_until(xr_pool_pids(pool, now, WORKERS) == WORKERS &&
			now[turn % WORKERS] != pids[turn % WORKERS]);
	}
	EXPECT(seen[0] || seen[1]);
	rig_end(pool);
}

/* Each place has its own: both wait at once. */
static void
places(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_future *futures[WORKERS];
	struct xr_value *values[WORKERS];

	for (int64_t i = 0; i < WORKERS; i++)
		futures[i] = rig_async(pool, "wait", i);
	for (uint32_t i = 0; i < WORKERS; i++)
		rig_await(2 * i, 1);
	for (uint32_t i = 0; i < WORKERS; i++) {
		release(i);
		EXPECT(xr_future_wait(futures[i], SOON, &values[i], &rig_err) ==
			XR_OK);
	}
	EXPECT(!xr_value_equal(xr_value_at(values[0], 0),
		xr_value_at(values[1], 0)));
	for (uint32_t i = 0; i < WORKERS; i++) {
		xr_value_unref(values[i]);
		xr_future_unref(futures[i]);
	}
	rig_end(pool);
}

/* --- beginning ------------------------------------------------------------------------------- */

static void
initializer(void)
{
	struct xr_pool_opts o = rig_opts();
	struct xr_value *args = rig_one(10);
	struct xr_pool *pool;

	o.contexts = NULL;
	o.flags = 0;
	o.initializer = "greet";
	o.initargs = args;
	pool = rig_pool_of(&o);
	rig_await(1000, WORKERS);
	EXPECT(atomic_load(&rig_word[1001]) == 10 * WORKERS);
	EXPECT(rig_call(pool, "weigh", 1) == 20);
	xr_value_unref(args);
	rig_end(pool);
}

/* Its error is everybody's, and nobody is started for ever. */
static void
bad_initializer(void)
{
	struct xr_pool_opts o = rig_opts();
	struct xr_pool *pool = NULL;
	struct xr_pool_task t = rig_task("weigh", rig_one(1));
	struct xr_future *future = NULL;
	enum xr_status status;

	o.initializer = "refuse";
	status = xr_pool_new(&o, &pool, &rig_err);
	if (status == XR_OK)
		status = xr_pool_apply_async(pool, &t, &future, &rig_err);
	if (status == XR_OK)
		status = rig_fails(future);
	EXPECT(status == XR_E_DEVICE);
	EXPECT(strstr(rig_err.text, "no device for me") != NULL);
	EXPECT(xr_pool_apply_async(pool, &t, &future, &rig_err) == XR_E_DEVICE);
	EXPECT(xr_pool_join(pool, SOON, &rig_err) == XR_OK);
	EXPECT(atomic_load(&rig_word[1000]) <= WORKERS + 4);
	rig_done(&t);
	xr_pool_free(pool);
}

/* --- ending --------------------------------------------------------------------------------------- */

static void
drain(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_future *futures[100], *first[WORKERS];

	for (uint32_t i = 0; i < WORKERS; i++)
		first[i] = rig_async(pool, "wait", i);
	for (int64_t i = 0; i < 100; i++)
		futures[i] = rig_async(pool, "weigh", i);
	xr_pool_close(pool);
	EXPECT(xr_pool_join(pool, XR_SECONDS(0.05), &rig_err) == XR_E_TIMEOUT);
	for (uint32_t i = 0; i < WORKERS; i++)
		release(i);
	EXPECT(xr_pool_join(pool, SOON, &rig_err) == XR_OK);
	for (int64_t i = 0; i < 100; i++) {
		EXPECT(xr_future_done(futures[i]));
		EXPECT(rig_get(futures[i]) == 20 * i);
	}
	for (uint32_t i = 0; i < WORKERS; i++)
		EXPECT(rig_get(first[i]) == i);
	xr_pool_free(pool);
}

static void
terminate(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_future *futures[100];
	struct late late;

	for (int64_t i = 0; i < 100; i++)
		futures[i] =
			rig_async(pool, rig_threads() ? "heed" : "deaf", i);
	rig_await(0, 1);
	late_begin(&late);
	EXPECT(xr_pool_terminate(pool, XR_SECONDS(0.3), &rig_err) == XR_OK);
	EXPECT(late_end(&late) < XR_SECONDS(1.3));
	for (int64_t i = 0; i < 100; i++) {
		EXPECT(xr_future_done(futures[i]));
		EXPECT(rig_fails(futures[i]) == XR_E_CANCELLED);
	}
	EXPECT(xr_pool_size(pool) == 0);
	if (rig_threads()) /* those that ran were told, others never ran */
		EXPECT(atomic_load(&rig_word[1]) == 1 &&
			atomic_load(&rig_word[2 * 99]) == 0);
	xr_pool_free(pool);
}

/* A thread's function that is deaf is not waited for for ever. */
static void
deaf_thread(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_future *future = rig_async(pool, "wait", 0);

	rig_await(0, 1);
	EXPECT(xr_pool_terminate(pool, XR_SECONDS(0.1), &rig_err) ==
		XR_E_TIMEOUT);
	EXPECT(rig_fails(future) == XR_E_CANCELLED);
	release(0);
	EXPECT(xr_pool_join(pool, SOON, &rig_err) == XR_OK);
	xr_pool_free(pool);
}

static void
cancel(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_future *running[WORKERS], *waiting;

	for (uint32_t i = 0; i < WORKERS; i++)
		running[i] = rig_async(pool, "heed", i);
	for (uint32_t i = 0; i < WORKERS; i++)
		rig_await(2 * i, 1);
	waiting = rig_async(pool, "wait", 50);
	EXPECT(xr_future_cancel(waiting) == XR_OK);
	EXPECT(rig_fails(waiting) == XR_E_CANCELLED);
	for (uint32_t i = 0; i < WORKERS; i++) {
		EXPECT(xr_future_cancel(running[i]) == XR_OK);
		EXPECT(rig_fails(running[i]) == XR_E_CANCELLED);
		rig_await(2 * i + 1, 1);
	}
	EXPECT(rig_call(pool, "weigh", 2) == 40);
	EXPECT(atomic_load(&rig_word[100]) == 0);
	rig_end(pool);
}

/* As many as may wait do. */
static void
full(void)
{
	struct xr_pool_opts o = rig_opts();
	struct xr_pool_task t = rig_task("weigh", rig_one(1));
	struct xr_future *futures[8], *more = NULL;
	struct xr_pool *pool;
	struct late late;
	int64_t from;

	o.tasks = 8;
	pool = rig_pool_of(&o);
	for (int64_t i = 0; i < 8; i++)
		futures[i] = rig_async(pool, "wait", i);
	t.timeout = XR_SECONDS(0.1);
	late_begin(&late);
	from = rig_now();
	EXPECT(xr_pool_apply_async(pool, &t, &more, &rig_err) == XR_E_TIMEOUT);
	EXPECT(rig_now() - from >= XR_SECONDS(0.1));
	EXPECT(late_end(&late) < XR_SECONDS(1));
	EXPECT(xr_pool_apply(pool, &t, XR_SECONDS(0.1), NULL, &rig_err) ==
		XR_E_TIMEOUT);
	for (uint32_t i = 0; i < 8; i++)
		release(i);
	t.timeout = SOON;
	EXPECT(xr_pool_apply_async(pool, &t, &more, &rig_err) == XR_OK);
	for (int64_t i = 0; i < 8; i++)
		EXPECT(rig_get(futures[i]) == i);
	EXPECT(rig_get(more) == 20);
	rig_done(&t);
	rig_end(pool);
}

/* --- the program ends -------------------------------------------------------------------------------- */

static bool
is_gone(pid_t pid)
{
	return kill(pid, 0) == -1 && errno == ESRCH;
}

static void
orphans(void)
{
	int32_t pids[WORKERS];
	struct xr_pool *pool;
	struct late late;
	int status;
	pid_t child;

	child = fork();
	if (child == 0) {
		pool = rig_pool();
		rig_async(pool, "wait", 0);
		rig_await(0, 1);
		xr_pool_pids(pool, pids, WORKERS);
		for (uint32_t i = 0; i < WORKERS; i++)
			atomic_store(&rig_word[2000 + i], (uint32_t)pids[i]);
		rig_post(1999);
		pause();
	}
	rig_await(1999, 1);
	EXPECT(kill(child, SIGKILL) == 0);
	EXPECT(waitpid(child, &status, 0) == child);
	late_begin(&late);
	for (uint32_t i = 0; i < WORKERS; i++)
		rig_until(is_gone((pid_t)atomic_load(&rig_word[2000 + i])));
	EXPECT(late_end(&late) < XR_SECONDS(1));
}

/* exit(3) with a pool, and without waiting for what was submitted; or with. */
static void
leaves(void)
{
	static struct xr_future *left; /* as it is */

	for (int drains = 0; drains < 2; drains++) {
		struct xr_pool_opts o = rig_opts();
		uint32_t word = 10 + 2 * (uint32_t)drains;
		struct xr_pool *pool;
		int status;
		pid_t child = fork();

		if (child == 0) {
			o.flags |= drains == 1 ? XR_POOL_DRAINS : 0;
			pool = rig_pool_of(&o);
			left = rig_async(pool, "wait", word / 2);
			if (drains == 1)
				release(word / 2);
			exit(left != NULL ? 5 : 6);
		}
		EXPECT(waitpid(child, &status, 0) == child);
		EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 5);
		EXPECT(drains == 0 || atomic_load(&rig_word[word]) == 1);
	}
}

/* --- what nobody waits for any more ------------------------------------------------ */

static void *
go_on(void *arg)
{
	int32_t *pid = arg;

	usleep(200000);
	for (uint32_t i = 0; i < WORKERS; i++)
		kill(pid[i], SIGCONT);
	return NULL;
}

/* Calls that were canceled fill the queue until there is no room. */
static void
fill_up(struct xr_pool *pool)
{
	struct xr_pool_task t = rig_task("weigh", rig_one(1));
	struct xr_future *future;
	uint32_t count = 0;

	t.timeout = XR_SECONDS(1) / 5;
	while (xr_pool_apply_async(pool, &t, &future, &rig_err) == XR_OK) {
		EXPECT(xr_future_cancel(future) == XR_OK);
		xr_future_unref(future);
		EXPECT(++count < 100000);
	}
	EXPECT(rig_err.status == XR_E_TIMEOUT);
	EXPECT(strstr(rig_err.text, "no room for its arguments") != NULL);
	rig_done(&t);
}

/* Workers that take what was canceled answer nothing: who waits for room hears of it all
 * the same, be it a call, or a map that nobody waits for. */
static void
stale(void)
{
	struct xr_pool_opts opts = rig_opts();
	struct xr_pool_task map = rig_task("weigh", rig_numbers(100));
	int32_t pids[WORKERS] = { 0 };
	struct xr_future *future;
	struct xr_pool *pool;
	pthread_t thread;

	opts.tasks = 8;
	pool = rig_pool_of(&opts);
	for (int i = 0; i < 2; i++) {
		EXPECT(rig_call(pool, "weigh", 4) == 80);
		EXPECT(xr_pool_pids(pool, pids, WORKERS) == WORKERS);
		for (uint32_t k = 0; k < WORKERS; k++)
			EXPECT(kill(pids[k], SIGSTOP) == 0);
		fill_up(pool);
		if (i == 1)
			EXPECT(xr_pool_map_async(pool, &map, &future,
				       &rig_err) == XR_OK);
		EXPECT(pthread_create(&thread, NULL, go_on, pids) == 0);
		if (i == 0)
			EXPECT(rig_call(pool, "weigh", 5) == 100);
		else
			rig_until(xr_future_done(future));
		EXPECT(pthread_join(thread, NULL) == 0);
	}
	EXPECT(xr_future_wait(future, 0, NULL, &rig_err) == XR_OK);
	xr_future_unref(future);
	rig_done(&map);
	rig_end(pool);
}

/* A worker that has slept has other threads, and yet it ends when a function has ended the
 * one that works. */
static void
ends_threads(void)
{
	struct xr_pool *pool = rig_pool();

	for (int i = 0; i < 6; i++) {
		EXPECT(rig_call(pool, "weigh", 1) == 20);
		usleep(20000);
		EXPECT(rig_fails(rig_async(pool, "leave-thread", 3)) ==
			XR_E_WORKER_LOST);
	}
	rig_until(xr_pool_size(pool) == WORKERS);
	EXPECT(rig_call(pool, "weigh", 1) == 20);
	rig_end(pool);
}

/* The time of a wait, and of room, is what was said, though many tasks are on their way. */
static void
in_time(void)
{
	struct xr_pool_opts o = rig_opts();
	struct xr_future *future[200];
	struct xr_pool *pool;
	struct late late;
	int64_t from;

	o.tasks = 200;
	pool = rig_pool_of(&o);
	rig_call(pool, "weigh", 1);
	for (uint32_t i = 0; i < 200; i++)
		future[i] = i < 100 ? rig_async(pool, "toil", 300) :
				      rig_async(pool, "heed", i);
	late_begin(&late);
	from = rig_now();
	EXPECT(xr_future_wait(future[199], XR_SECONDS(0.5), NULL, &rig_err) ==
		XR_E_TIMEOUT);
	EXPECT(rig_now() - from >= XR_SECONDS(0.5));
	EXPECT(late_end(&late) < XR_SECONDS(0.9));
	for (uint32_t i = 0; i < 200; i++)
		xr_future_unref(future[i]);
	EXPECT(xr_pool_terminate(pool, 0, &rig_err) == XR_OK);
	xr_pool_free(pool);
}

/* What callbacks lead to is told to who waits for it, however late it is. */
static enum xr_status
dawdle(struct xr_future *future, void *ctx, struct xr_value **result,
	struct xr_error *err)
{
	(void)future;
	(void)ctx;
	(void)err;
	usleep(100000);
	*result = xr_value_new_i64(7);
	return XR_OK;
}

static void
followed(void)
{
	struct xr_pool *pool = rig_pool(), *other = rig_pool();
	struct xr_future *both[2], *child = NULL;
	struct xr_value *value = NULL;
	int64_t from = rig_now();

	both[0] = rig_async(pool, "weigh", 1);
	EXPECT(xr_future_then(both[0], dawdle, NULL, 0, &child) == XR_OK);
	EXPECT(xr_future_wait(child, SOON, &value, &rig_err) == XR_OK);
	EXPECT(rig_int(value) == 7);
	xr_value_unref(value);
	xr_future_unref(child);
	xr_future_unref(both[0]);
	for (int i = 0; i < 2; i++) {
		both[i] = rig_async(pool, "toil", 1000);
		both[1 - i] = rig_async(other, "toil", 100000);
		EXPECT(xr_future_wait_all(both, 2, SOON, NULL, &rig_err) ==
			XR_OK);
		xr_future_unref(both[0]);
		xr_future_unref(both[1]);
	}
	EXPECT(rig_now() - from < SOON / 2);
	rig_end(pool);
	rig_end(other);
}

const struct rig_case end_cases[] = {
	{ "ends-threads", ends_threads },
	{ "in-time", in_time },
	{ "followed", followed },
	{ "killed", killed },
	{ "killed-with-tasks", killed_with_tasks },
	{ "killed-idle", killed_idle },
	{ "killed-zygote", killed_zygote },
	{ "exits", exits },
	{ "idempotent", idempotent },
	{ "max-tasks", max_tasks },
	{ "max-tasks-killed", max_tasks_killed },
	{ "contexts", contexts },
	{ "places", places },
	{ "initializer", initializer },
	{ "bad-initializer", bad_initializer },
	{ "drain", drain },
	{ "terminate", terminate },
	{ "deaf-thread", deaf_thread },
	{ "cancel", cancel },
	{ "full", full },
	{ "stale", stale },
	{ "orphans", orphans },
	{ "leaves", leaves },
	{ NULL, NULL },
};
