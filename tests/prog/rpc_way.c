/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc_way.c - ranks whose calls go over a group (backend process_group): what is
 * not as with other backends, a case at a time.
 *
 *   xrun -n N rpc_way CASE [tcp]
 *
 * What a case finds out it prints, a line each; what it expected and did not find
 * ends it with status 1. "tcp": by that, and not by shared memory.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/coll.h>
#include <xrun/func.h>
#include <xrun/job.h>
#include <xrun/rpc.h>
#include <xrun/world.h>

#include "tests/kit/entries.h"
#include "tests/prog/expect.h"

static bool by_tcp;

/* --- what is called -------------------------------------------------------- */

static int64_t
int_of(const struct xr_value *v)
{
	int64_t n = INT64_MIN;

	xr_value_get_i64(v, &n);
	return n;
}

static enum xr_status
add_one(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return xr_reply(call,
		xr_value_new_i64(int_of(xr_value_at(args, 0)) + 1));
}

static struct xr_call *_Atomic kept;

static enum xr_status
keep(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	atomic_store(&kept, xr_call_defer(call));
	return XR_OK;
}

/* Answers what was kept. */
static enum xr_status
give(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_call *other = atomic_exchange(&kept, NULL);

	(void)ctx;
	if (other == NULL)
		return XR_E_STATE;
	xr_reply(other, xr_value_ref(args));
	xr_call_drop(other);
	return xr_reply(call, xr_value_new_nil());
}

#define FUNC(n, s, f) \
	{ .size = sizeof(struct xr_func), .name = n, .schema = s, .fn = f }

static const struct xr_func functions[] = {
	FUNC("add_one", "i", add_one),
	FUNC("die", "", die),
	FUNC("keep", "", keep),
	FUNC("give", "", give),
};

/* --- asking ---------------------------------------------------------------- */

static struct xr_rpc_call
call_of(unsigned who, const char *func)
{
	struct xr_rpc_call call = XR_RPC_CALL;

	call.id = who;
	call.func = func;
	return call;
}

static enum xr_status
ask(unsigned who, const char *func)
{
	struct xr_rpc_call call = call_of(who, func);

	return xr_rpc_sync(&call, NULL, &err);
}

static void
one_more(unsigned who)
{
	struct xr_rpc_call call = call_of(who, "add_one");
	struct xr_value *items[1] = { xr_value_new_i64(41) }, *v = NULL;

	call.args = xr_value_new_list_of(items, 1);
	EXPECT(xr_rpc_sync(&call, &v, &err) == XR_OK);
	EXPECT(int_of(v) == 42);
	xr_value_unref(call.args);
	xr_value_unref(v);
}

static struct xr_rpc_opts
options(const char *backend)
{
	static const char *const tcp[] = { "tcp" };
	struct xr_rpc_opts opts = { .size = sizeof(opts) };

	EXPECT(xr_rpc_opts_init(xr_backend_find(backend), &opts, &err) ==
		XR_OK);
	opts.transports = tcp;
	opts.transport_count = by_tcp;
	return opts;
}

static enum xr_status
join(const struct xr_rpc_opts *opts)
{
	char name[32];

	snprintf(name, sizeof(name), "worker%u", rank);
	return xr_rpc_init(name, -1, -1, opts, &err);
}

static void
leave(uint32_t flags)
{
	EXPECT(xr_rpc_shutdown(flags, XR_SECONDS(50), &err) == XR_OK);
}

/* --- cases ----------------------------------------------------------------- */

/* The first time leaves what stays for the process. */
static void
cycles(void)
{
	const struct xr_rpc_opts opts = options("process_group");
	unsigned fds = 0, threads = 0;

	for (int i = 0; i <= 200; i++) {
		EXPECT(join(&opts) == XR_OK);
		for (unsigned r = 0; r < size; r++)
			one_more(r);
		leave(XR_SHUTDOWN_GRACEFUL);
		if (i == 0) {
			fds = entries("/proc/self/fd");
			threads = entries("/proc/self/task");
		}
	}
	EXPECT(entries("/proc/self/fd") == fds);
	EXPECT(entries("/proc/self/task") == threads);
	printf("joined 201 times\n");
}

/* Those that stay: 0 and 1, who ask each other before, meanwhile and later. */
static void
lost(void)
{
	static const char *const stay[] = { "worker0", "worker1" };
	const struct xr_rpc_meeting both = { .size = sizeof(both),
		.names = stay,
		.count = 2,
		.timeout = XR_SECONDS(50) };
	const struct xr_rpc_opts opts = options("process_group");
	struct xr_rpc_call before;
	struct xr_future *pending;

	EXPECT(join(&opts) == XR_OK);
	EXPECT(xr_rpc_barrier(NULL, &err) == XR_OK);
	if (rank == 2) {
		xr_future_wait(xr_future_new(NULL), XR_SECONDS(50), NULL, NULL);
		return;
	}
	before = call_of(1 - rank, "keep");
	EXPECT(xr_rpc_async(&before, &pending, &err) == XR_OK);
	EXPECT(xr_rpc_barrier(&both, &err) == XR_OK);
	EXPECT(ask(2, "die") == XR_E_PEER_LOST);
	printf("rank %u: %s\n", rank, err.text);
	EXPECT(!xr_future_done(pending));
	for (int i = 0; i < 100; i++)
		one_more(1 - rank);
	EXPECT(ask(2, "add_one") == XR_E_PEER_LOST);
	EXPECT(ask(1 - rank, "give") == XR_OK);
	EXPECT(xr_future_wait(pending, XR_SECONDS(50), NULL, &err) == XR_OK);
	xr_future_unref(pending);
	EXPECT(xr_rpc_barrier(&both, &err) == XR_OK);
	leave(XR_SHUTDOWN_IMMEDIATE);
}

#define LONG 10000 /* elements: more than one stage of messages */

static void
add_up(struct xr_coll *all, size_t count)
{
	static int64_t x[LONG];

	for (size_t i = 0; i < count; i++)
		x[i] = (int64_t)i + rank;
	EXPECT(xr_coll_allreduce(all,
		       &(struct xr_coll_op){ .size = sizeof(struct xr_coll_op),
			       .dtype = XR_DT_I64,
			       .data = x,
			       .count = count,
			       .op = XR_SUM },
		       &err) == XR_OK);
	EXPECT(x[count - 1] ==
		(int64_t)((count - 1) * size + size * (size - 1) / 2));
}

static struct xr_coll *
group_of_all(struct xr_world *world)
{
	struct xr_coll *all = NULL;

	EXPECT(xr_coll_new(world, NULL, &all, &err) == XR_OK);
	return all;
}

/* Calls before groups, groups before calls, and both at a time. */
static void
either(void)
{
	const struct xr_rpc_opts opts = options("process_group");
	struct xr_world_opts how = XR_WORLD_OPTS;
	struct xr_world *world = NULL;
	struct xr_coll *all, *another;

	how.rpc = &opts;
	for (int i = 0; i < 4; i++) {
		EXPECT(xr_world_new(&how, &world, &err) == XR_OK);
		if (i % 2 == 0)
			one_more((rank + 1) % size);
		all = group_of_all(world);
		add_up(all, LONG);
		one_more((rank + 1) % size);
		another = group_of_all(world);
		for (int k = 0; k < 20; k++) {
			add_up(k % 2 == 0 ? all : another,
				k % 4 < 2 ? 10 : LONG);
			one_more((rank + 1) % size);
		}
		xr_coll_free(another);
		one_more((rank + 1) % size);
		xr_coll_free(all);
		EXPECT(xr_world_close(world, XR_SHUTDOWN_GRACEFUL,
			       XR_SECONDS(50), &err) == XR_OK);
		xr_world_free(world);
	}
	printf("in either order\n");
}

/* Nothing else was done: the store that is named is not there. */
static void
is_refused(const struct xr_rpc_opts *opts, int64_t world_size)
{
	struct xr_worker self = { .size = sizeof(self) };

	EXPECT(xr_rpc_init("one", 0, world_size, opts, &err) == XR_E_INVAL);
	printf("%s\n", err.text);
	EXPECT(xr_worker_self(&self, NULL) == XR_E_STATE);
}

static void
refused(void)
{
	static const struct xr_device_pair map = { "two", 0, 1 };
	static const int32_t devices[] = { 3 };
	struct xr_rpc_opts opts = options("process_group");

	opts.init_method = "file:///nowhere/at/all";
	opts.maps = &map;
	opts.map_count = 1;
	is_refused(&opts, 2);
	opts.map_count = 0;
	opts.devices = devices;
	opts.device_count = 1;
	is_refused(&opts, 2);
	opts.device_count = 0;
	is_refused(&opts, 0);
	opts.init_method = XR_INIT_METHOD_DEFAULT;
	EXPECT(join(&opts) == XR_OK);
	one_more(rank);
	leave(XR_SHUTDOWN_GRACEFUL);
}

static int64_t
threads_with(const struct xr_rpc_opts *opts)
{
	int64_t n = -1;

	EXPECT(join(opts) == XR_OK);
	one_more((rank + 1) % size);
	EXPECT(xr_metrics_get("agent.thread_pool_size", &n) == XR_OK);
	leave(XR_SHUTDOWN_GRACEFUL);
	return n;
}

static void
threads(void)
{
	static const char *const own[] = { "num_send_recv_threads=2" };
	struct xr_rpc_opts opts = options("process_group");
	int64_t least = threads_with(&opts), said, other;

	opts.threads = 9;
	other = threads_with(&opts);
	opts.extra = own;
	opts.extra_count = 1;
	said = threads_with(&opts);
	printf("threads %lld, %lld that all say, %lld of its own option\n",
		(long long)least, (long long)other, (long long)said);
}

/* The last rank has another backend. */
static void
mixed(void)
{
	const struct xr_rpc_opts opts =
		options(rank == size - 1 ? "auto" : "process_group");

	EXPECT(join(&opts) == XR_E_CONFLICT);
	printf("rank %u: %s\n", rank, err.text);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "cycles", cycles },
	{ "lost", lost },
	{ "either", either },
	{ "refused", refused },
	{ "threads", threads },
	{ "mixed", mixed },
};

int
main(int argc, char **argv)
{
	size_t i = 0;

	rank = xr_job_rank();
	size = xr_job_size();
	by_tcp = argc > 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (argc < 2 || strcmp(argv[1], cases[i].name) != 0)
		EXPECT(++i < sizeof(cases) / sizeof(cases[0]));
	EXPECT(xr_module_static(functions,
		       sizeof(functions) / sizeof(functions[0]),
		       &err) == XR_OK);
	cases[i].run();
	return 0;
}
