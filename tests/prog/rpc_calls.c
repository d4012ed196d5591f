/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc_calls.c - ranks that call each other, a case at a time.
 *
 *   xrun -n N rpc_calls CASE [tcp]
 *
 * What a case finds out it prints, a line each; what it expected and did not find
 * ends it with status 1. "tcp": by that, and not by shared memory.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/resource.h>

#include <xrun/func.h>
#include <xrun/future.h>
#include <xrun/job.h>
#include <xrun/rpc.h>

#include "tests/prog/expect.h"
#include "tests/kit/backend.h"

static int64_t
int_at(const struct xr_value *args, size_t i)
{
	int64_t n = INT64_MIN;

	xr_value_get_i64(xr_value_at(args, i), &n);
	return n;
}

static struct xr_value *
ints(size_t count, const int64_t *numbers)
{
	struct xr_value *list = xr_value_new_list();

	for (size_t i = 0; i < count; i++)
		xr_value_append(list, xr_value_new_i64(numbers[i]));
	return list;
}

#define INTS(...) \
	ints(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), \
		(int64_t[]){ __VA_ARGS__ })

/* @args is taken. */
static enum xr_status
ask(unsigned who, const char *func, struct xr_value *args,
	struct xr_value **value)
{
	struct xr_rpc_call call = XR_RPC_CALL;
	enum xr_status status;

	call.id = who;
	call.func = func;
	call.args = args;
	status = xr_rpc_sync(&call, value, &err);
	xr_value_unref(args);
	return status;
}

static struct xr_future *
begin(unsigned who, const char *func, struct xr_value *args)
{
	struct xr_rpc_call call = XR_RPC_CALL;
	struct xr_future *future = NULL;
	struct xr_error why = { 0 };

	call.id = who;
	call.func = func;
	call.args = args;
	if (xr_rpc_async(&call, &future, &why) != XR_OK)
		fprintf(stderr, "rank %u: %s: %s\n", rank, func, why.text);
	xr_value_unref(args);
	return future;
}

static int64_t
int_of(struct xr_value *value)
{
	int64_t n = INT64_MIN;

	xr_value_get_i64(value, &n);
	xr_value_unref(value);
	return n;
}

/* --- what is called -------------------------------------------------------- */

static enum xr_status
add(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return xr_reply(call,
		xr_value_new_i64(int_at(args, 0) + int_at(args, 1)));
}

static enum xr_status
echo(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return xr_reply(call, xr_value_ref(args));
}

static _Atomic unsigned descents;

/* Has the next one do the same, and does not wait for it. */
static enum xr_status
descend(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t left = int_at(args, 0);
	struct xr_future *next = NULL;

	(void)ctx;
	atomic_fetch_add(&descents, 1);
	if (left > 0) {
		next = begin((rank + 1) % size, "descend", INTS(left - 1));
		if (next == NULL)
			return XR_E_PEER_LOST;
	}
	xr_future_unref(next);
	return xr_reply(call, xr_value_new_nil());
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

static struct xr_call *
await_kept(void)
{
	while (atomic_load(&kept) == NULL)
		sched_yield();
	return atomic_load(&kept);
}

/* Answers when there is one. */
static enum xr_status
say_kept(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	await_kept();
	return xr_reply(call, xr_value_new_nil());
}

/* --- a server of parameters ------------------------------------------------ */

#define TRAINERS   3
#define ITERATIONS 10

/* Who is first at an iteration clears what an older one left; all of them have their
 * answers when the last has come. */
static struct {
	pthread_mutex_t lock;
	int64_t iteration;
	unsigned count;
	double gradient[TRAINERS]; /* of the trainers, in their order */
	struct xr_future *pending[TRAINERS];
} server = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void
answer_all(void)
{
	double sum = 0;

	for (unsigned i = 0; i < TRAINERS; i++)
		sum += server.gradient[i];
	for (unsigned i = 0; i < TRAINERS; i++) {
		xr_future_set(server.pending[i],
			xr_value_new_f64(sum / TRAINERS));
		xr_future_unref(server.pending[i]);
		server.pending[i] = NULL;
	}
	server.count = 0;
}

static enum xr_status
average(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_future *future = xr_future_new(NULL);
	int64_t iteration = int_at(args, 0);
	uint32_t who = 0;

	(void)ctx;
	xr_call_caller(call, &who);
	pthread_mutex_lock(&server.lock);
	if (iteration > server.iteration) {
		server.iteration = iteration;
		server.count = 0;
	}
	server.pending[who - 1] = xr_future_ref(future);
	xr_value_get_f64(xr_value_at(args, 1), &server.gradient[who - 1]);
	if (++server.count == TRAINERS)
		answer_all();
	pthread_mutex_unlock(&server.lock);
	return xr_reply_future(call, future);
}

#define FUNC(n, s, f, fl) \
	{ .size = sizeof(struct xr_func), \
		.name = n, \
		.schema = s, \
		.flags = fl, \
		.fn = f }

static const struct xr_func functions[] = {
	FUNC("add", "ii", add, XR_FN_SHORT),
	FUNC("add.long", "ii", add, 0),
	FUNC("echo", NULL, echo, 0),
	FUNC("descend", "i", descend, 0),
	FUNC("die", NULL, die, 0),
	FUNC("keep", NULL, keep, 0),
	FUNC("say_kept", NULL, say_kept, 0),
	FUNC("average", "if", average, XR_FN_ASYNC),
};

/* --- cases ----------------------------------------------------------------- */

static void
leave(uint32_t flags)
{
	enum xr_status status = xr_rpc_shutdown(flags, XR_SECONDS(50), &err);

	EXPECT(status == XR_OK);
}

/* By name, id and what was found; waiting, and by a future. */
static void
next(void)
{
	struct xr_worker w = { .size = sizeof(w) };
	struct xr_rpc_call call = XR_RPC_CALL;
	struct xr_future *future = NULL;
	struct xr_value *value = NULL;
	char name[32];

	snprintf(name, sizeof(name), "worker%u", (rank + 1) % size);
	call.func = "add";
	call.args = INTS(rank, 100);
	for (int how = 0; how < 3; how++) {
		call.to = how == 0 ? name : NULL;
		call.id = (rank + 1) % size;
		if (how == 2) {
			EXPECT(xr_worker_find(name, &w, &err) == XR_OK);
			call.id = w.id;
		}
		EXPECT(xr_rpc_sync(&call, &value, &err) == XR_OK);
		EXPECT(int_of(value) == rank + 100);
		EXPECT(xr_rpc_async(&call, &future, &err) == XR_OK);
		EXPECT(xr_future_wait(future, XR_SECONDS(50), &value, &err) ==
			XR_OK);
		EXPECT(int_of(value) == rank + 100);
		xr_future_unref(future);
	}
	call.to = NULL;
	call.id = size + 1;
	EXPECT(xr_rpc_sync(&call, NULL, &err) == XR_E_NOTFOUND);
	printf("rank %u: %s\n", rank, err.text);
	xr_value_unref(call.args);
	leave(0);
}

static void
chains(void)
{
	struct xr_future *f = begin((rank + 1) % size, "descend", INTS(20));

	EXPECT(f != NULL);
	xr_future_unref(f);
	leave(0);
	printf("descents %u\n", atomic_load(&descents));
}

/* Rank 1 dies of what it is asked; rank 0 had asked it for something else before. */
static void
killed(void)
{
	struct xr_future *pending;
	struct xr_error why = { 0 };
	int64_t begun;

	if (rank != 0) {
		xr_future_wait(xr_future_new(NULL), XR_SECONDS(50), NULL, NULL);
		return;
	}
	pending = begin(1, "keep", NULL);
	EXPECT(ask(1, "add", INTS(1, 1), NULL) == XR_OK);
	begun = now();
	EXPECT(ask(1, "die", NULL, NULL) == XR_E_PEER_LOST);
	printf("the one: %s\n", err.text);
	EXPECT(xr_future_wait(pending, XR_SECONDS(50), NULL, &why) ==
		XR_E_PEER_LOST);
	EXPECT(now() - begun < XR_SECONDS(20));
	printf("the other: %s\n", why.text);
	EXPECT(ask(1, "add", INTS(1, 1), NULL) == XR_E_PEER_LOST);
	printf("later: %s\n", err.text);
	EXPECT(ask(0, "add", INTS(1, 1), NULL) == XR_OK);
	xr_future_unref(pending);
	leave(XR_SHUTDOWN_IMMEDIATE);
}

/* Rank 1 asks, and is gone when rank 0 could answer. */
static void
gone(void)
{
	struct xr_call *call;

	if (rank != 0) {
		xr_future_unref(begin(0, "keep", NULL));
		ask(0, "say_kept", NULL, NULL);
		kill(getpid(), SIGKILL);
	}
	call = await_kept();
	while (!xr_call_cancelled(call))
		sched_yield();
	EXPECT(xr_reply(call, xr_value_new_i64(1)) == XR_OK);
	EXPECT(xr_reply(call, xr_value_new_i64(1)) == XR_E_STATE);
	xr_call_drop(call);
	EXPECT(ask(0, "add", INTS(1, 1), NULL) == XR_OK);
	leave(XR_SHUTDOWN_IMMEDIATE);
	printf("nobody was there\n");
}

static void *
answer_soon(void *unused)
{
	struct xr_call *call = await_kept();
	int64_t end = now() + XR_SECONDS(0.1);

	(void)unused;
	/* Time in which all would be gone, did nobody wait. */
	while (now() < end)
		sched_yield();
	xr_reply(call, xr_value_new_i64(7));
	xr_call_drop(call);
	return NULL;
}

static void
graceful(void)
{
	struct xr_future *future = NULL;
	struct xr_value *value = NULL;
	pthread_t thread;

	if (rank == 0)
		future = begin(1, "keep", NULL);
	else if (rank == 1)
		pthread_create(&thread, NULL, answer_soon, NULL);
	leave(0);
	if (rank == 1)
		pthread_join(thread, NULL);
	if (rank != 0)
		return;
	EXPECT(xr_future_value(future, &value, &err) == XR_OK);
	printf("answered with %d\n", (int)int_of(value));
	xr_future_unref(future);
}

static void
train(void)
{
	double weight = 1.0 / (rank + 1), mean = 0;
	struct xr_value *items[2], *value;
	uint64_t bits;

	for (int64_t i = 1; rank > 0 && i <= ITERATIONS; i++) {
		items[0] = xr_value_new_i64(i);
		items[1] = xr_value_new_f64(weight * 0.1 + (double)rank / 3);
		EXPECT(ask(0, "average", xr_value_new_list_of(items, 2),
			       &value) == XR_OK);
		EXPECT(xr_value_get_f64(value, &mean) == XR_OK);
		weight = (i == 1 ? 0 : weight) - mean / 7;
		xr_value_unref(value);
	}
	memcpy(&bits, &weight, sizeof(bits));
	if (rank > 0)
		printf("weight %016llx\n", (unsigned long long)bits);
	leave(0);
}

static int64_t
cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * INT64_C(1000000000) +
		(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * INT64_C(1000);
}

/* Each has called and been called, and then nothing is to be done. */
static void
idle(void)
{
	struct timespec ten = { 10, 0 };
	int64_t before;

	for (unsigned i = 0; i < size; i++)
		EXPECT(ask(i, "add.long", INTS(1, 1), NULL) == XR_OK);
	EXPECT(xr_rpc_barrier(NULL, &err) == XR_OK);
	before = cpu_ns();
	nanosleep(&ten, NULL);
	printf("idle %lld us\n", (long long)(cpu_ns() - before) / 1000);
	leave(0);
}

static struct xr_value *
long_bytes(void)
{
	static char bytes[300000];
	struct xr_value *v;

	memset(bytes, (int)rank + 1, sizeof(bytes));
	v = xr_value_new_bytes(bytes, sizeof(bytes));
	return xr_value_new_list_of(&v, 1);
}

/* What a call gave is the program's, also when the agent is gone. */
static void
outlive(void)
{
	struct xr_value *value = NULL, *same = long_bytes();

	EXPECT(ask((rank + 1) % size, "echo", long_bytes(), &value) == XR_OK);
	leave(0);
	EXPECT(xr_value_equal(value, same));
	xr_value_unref(value);
	xr_value_unref(same);
	printf("rank %u: it is still there\n", rank);
}

static _Atomic int64_t answered, ended;

static void *
storm_one(void *seed)
{
	unsigned s = (unsigned)(uintptr_t)seed;
	struct xr_value *value;
	struct xr_future *f;
	enum xr_status status;

	for (unsigned i = 0; i < 30; i++) {
		s = s * 1103515245u + 12345u;
		value = NULL;
		f = begin((s >> 16) % size, (s & 64) != 0 ? "add" : "add.long",
			INTS(i, s & 255));
		if (f == NULL)
			return NULL;
		if ((s & 0x300) == 0)
			xr_future_cancel(f);
		status = xr_future_wait(f, XR_SECONDS(50), &value, NULL);
		if (status == XR_OK &&
			int_of(value) == (int64_t)(i + (s & 255)))
			atomic_fetch_add(&answered, 1);
		if (status == XR_OK || status == XR_E_CANCELLED)
			atomic_fetch_add(&ended, 1);
		xr_future_unref(f);
	}
	return NULL;
}

static void
storm(void)
{
	pthread_t thread[64];

	for (uintptr_t i = 0; i < 64; i++)
		EXPECT(pthread_create(&thread[i], NULL, storm_one,
			       (void *)(rank * 64 + i)) == 0);
	for (int i = 0; i < 64; i++)
		pthread_join(thread[i], NULL);
	leave(0);
	EXPECT(ended == INT64_C(64) * 30);
	EXPECT(answered > ended / 2);
	printf("rank %u: each ended once\n", rank);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "next", next },
	{ "chains", chains },
	{ "killed", killed },
	{ "gone", gone },
	{ "graceful", graceful },
	{ "train", train },
	{ "idle", idle },
	{ "outlive", outlive },
	{ "storm", storm },
};

static void
join(bool by_tcp)
{
	const char *const tcp[] = { "tcp" };
	struct xr_rpc_opts opts = { .size = sizeof(opts) };
	char name[32];

	snprintf(name, sizeof(name), "worker%u", rank);
	EXPECT(xr_module_static(functions,
		       sizeof(functions) / sizeof(functions[0]),
		       &err) == XR_OK);
	EXPECT(xr_rpc_opts_init(tested_backend(), &opts, &err) == XR_OK);
	opts.transports = tcp;
	opts.transport_count = by_tcp;
	EXPECT(xr_rpc_init(name, -1, -1, &opts, &err) == XR_OK);
	/* Whoever dies in a case does so when all know each other. */
	EXPECT(xr_rpc_barrier(NULL, &err) == XR_OK);
}

int
main(int argc, char **argv)
{
	rank = xr_job_rank();
	size = xr_job_size();
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) {
			join(argc > 2);
			cases[i].run();
			return 0;
		}
	fprintf(stderr, "rpc_calls: no such case\n");
	return 2;
}
