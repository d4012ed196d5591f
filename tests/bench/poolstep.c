/* SPDX-License-Identifier: Apache-2.0 */
/* poolstep.c - tasks of an xr_pool; see peers/pool.h. KIND is threads, processes, or bound:
 * processes, on all processors but the first one, where who submits is. A task answers with
 * its number. */
#include <sched.h>
#include <unistd.h>

#include <xrun/func.h>
#include <xrun/pool.h>
#include <xrun/proc.h>

#include "peers/pool.h"

static struct xr_pool *pool;

static void
must(enum xr_status status, const struct xr_error *err)
{
	if (status == XR_OK)
		return;
	fprintf(stderr, "%s\n", err->text);
	exit(4);
}

/* The number, and for how many turns it computes. */
static enum xr_status
step(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t number, turns;

	(void)ctx;
	xr_value_get_i64(xr_value_at(args, 0), &turns);
	xr_value_get_i64(xr_value_at(args, 1), &number);
	if (turns > 0)
		run_compute((uint64_t)turns);
	return xr_reply(call, xr_value_new_i64(number));
}

/* This process: to the first processor, or to all others. */
static void
bind_to(bool first)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = 0; i < count; i++)
		if ((i == 0) == first || count == 1)
			CPU_SET((size_t)i, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		exit(4);
}

/* What each worker does first. */
static enum xr_status
bind_worker(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	bind_to(false);
	return xr_reply(call, xr_value_new_nil());
}

static void
add(struct xr_value *number)
{
	int64_t i = 0;

	if (xr_value_get_i64(number, &i) != XR_OK)
		exit(3);
	run_slot()->sum += (uint64_t)i;
	run_slot()->count++;
}

static struct xr_value *
numbers(uint64_t from, uint64_t to)
{
	struct xr_value *list = xr_value_new_list();

	for (uint64_t i = from; i < to; i++)
		xr_value_append(list, xr_value_new_i64((int64_t)i));
	return list;
}

static void
map(struct xr_pool_task *task, uint64_t count)
{
	struct xr_value *values;
	struct xr_error err;

	task->args = numbers(0, count);
	must(xr_pool_map(pool, task, XR_TIMEOUT_NEVER, &values, &err), &err);
	for (uint64_t i = 0; i < count; i++)
		add(xr_value_at(values, i));
	xr_value_unref(values);
	xr_value_unref(task->args);
}

static void
post(struct xr_pool_task *task, uint64_t count)
{
	struct xr_future **future = malloc(count * sizeof(*future));
	struct xr_value *value;
	struct xr_error err;

	if (future == NULL)
		exit(4);
	for (uint64_t i = 0; i < count; i++) {
		task->args = numbers(i, i + 1);
		must(xr_pool_apply_async(pool, task, &future[i], &err), &err);
		xr_value_unref(task->args);
	}
	for (uint64_t i = 0; i < count; i++) {
		must(xr_future_wait(future[i], XR_TIMEOUT_NEVER, &value, &err),
			&err);
		add(value);
		xr_value_unref(value);
		xr_future_unref(future[i]);
	}
	free(future);
}

static void
apply(struct xr_pool_task *task, uint64_t count)
{
	struct xr_value *value;
	struct xr_error err;

	task->args = numbers(0, 1);
	for (uint64_t i = 0; i < count; i++) {
		must(xr_pool_apply(pool, task, XR_TIMEOUT_NEVER, &value, &err),
			&err);
		add(value);
		xr_value_unref(value);
	}
	xr_value_unref(task->args);
}

static void
run_part(uint64_t begin, uint64_t end, uint32_t worker, void *ctx)
{
	(void)worker;
	(void)ctx;
	for (uint64_t i = begin; i < end; i++)
		run_task(i);
}

static void
loop(uint64_t count)
{
	const struct xr_pool_loop loop = {
		.size = sizeof(loop),
		.fn = run_part,
		.count = (uint64_t)run.workers,
	};
	struct xr_error err;

	for (uint64_t i = 0; i < count; i++)
		must(xr_pool_for(pool, &loop, &err), &err);
}

static double
workers_cpu(void)
{
	int32_t pids[RUN_THREADS];
	uint32_t count = xr_pool_pids(pool, pids, RUN_THREADS);
	double ns = 0;

	for (uint32_t i = 0; i < count && i < RUN_THREADS; i++) {
		struct timespec t;
		clockid_t clock;

		if (pids[i] == 0 || clock_getcpuclockid(pids[i], &clock) != 0 ||
			clock_gettime(clock, &t) != 0)
			continue;
		ns += (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
	}
	return ns;
}

static int
play(uint64_t count)
{
	struct xr_pool_task task = { .size = sizeof(task) };

	task.func = xr_fn_bind("step", xr_value_new_i64((int64_t)run.turns));
	if (run_is("map"))
		map(&task, count);
	else if (run_is("post"))
		post(&task, count);
	else if (run_is("apply"))
		apply(&task, count);
	else if (run_is("loop") && strcmp(run.kind, "threads") == 0)
		loop(count);
	else
		count = 0;
	xr_value_unref(task.func);
	return count > 0;
}

int
main(int argc, char **argv)
{
	const struct xr_func funcs[] = {
		{ .size = sizeof(funcs[0]), .name = "step", .fn = step },
		{ .size = sizeof(funcs[0]), .name = "bind", .fn = bind_worker },
	};
	struct xr_pool_opts opts = { .size = sizeof(opts) };
	struct xr_error err;
	int status;

	for (int i = 0; i < 2; i++)
		must(xr_fn_register(&funcs[i], &err), &err);
	must(xr_init(&err), &err);
	run_init(argc, argv);
	opts.workers = (uint32_t)run.workers;
	if (strcmp(run.kind, "threads") == 0)
		opts.kind = XR_POOL_THREADS;
	if (strcmp(run.kind, "bound") == 0) {
		opts.initializer = "bind";
		bind_to(true);
	}
	must(xr_pool_new(&opts, &pool, &err), &err);
	run_cpu_others = workers_cpu;
	status = run_play(play);
	xr_pool_free(pool);
	return status;
}
