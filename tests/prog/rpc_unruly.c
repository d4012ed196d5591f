/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc_unruly.c - two ranks, of which one does what is not expected.
 *
 *   xrun -n 2 rpc_unruly CASE [tcp]
 *
 * What a case finds out it prints; what it did not expect ends it with status 1.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/call.h>
#include <xrun/func.h>
#include <xrun/job.h>
#include <xrun/rpc.h>
#include <xrun/rref.h>

#include "tests/prog/expect.h"
#include "tests/kit/backend.h"

static struct xr_rpc_call
call_of(const char *func)
{
	struct xr_rpc_call call = XR_RPC_CALL;

	call.id = 1;
	call.func = func;
	return call;
}

static int64_t
ask(const char *func)
{
	struct xr_rpc_call call = call_of(func);
	struct xr_value *value = NULL;
	int64_t n = -1;

	if (xr_rpc_sync(&call, &value, &err) == XR_OK)
		xr_value_get_i64(value, &n);
	xr_value_unref(value);
	return n;
}

/* --- what is called -------------------------------------------------------- */

static _Atomic unsigned asked;

static enum xr_status
pid(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	atomic_fetch_add(&asked, 1);
	return xr_reply(call, xr_value_new_i64(getpid()));
}

static enum xr_status
ends(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)call;
	(void)args;
	(void)ctx;
	pthread_exit(NULL);
}

static enum xr_status
nothing(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	return xr_reply(call, NULL) == XR_E_ENCODE ? XR_OK : XR_E_STATE;
}

/* Until somebody writes to $GATE. */
static enum xr_status
stays(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int fd = open(getenv("GATE"), O_RDONLY);
	char c;

	(void)args;
	(void)ctx;
	EXPECT(fd != -1 && read(fd, &c, 1) == 1);
	close(fd);
	return xr_reply(call, xr_value_new_nil());
}

static enum xr_status
swallow(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	(void)call;
	(void)data;
	(void)len;
	(void)ctx;
	return XR_OK;
}

static const struct xr_func functions[] = {
	{ sizeof(struct xr_func), "pid", NULL, 0, pid, NULL, NULL },
	{ sizeof(struct xr_func), "ends", NULL, 0, ends, NULL, NULL },
	{ sizeof(struct xr_func), "nothing", NULL, 0, nothing, NULL, NULL },
	{ sizeof(struct xr_func), "stays", NULL, 0, stays, NULL, NULL },
	{ sizeof(struct xr_func), "swallow", NULL, 0, NULL, swallow, NULL },
};

/* --- cases ----------------------------------------------------------------- */

static enum xr_status
end_too(struct xr_future *parent, void *ctx, struct xr_value **result,
	struct xr_error *why)
{
	(void)parent;
	(void)ctx;
	(void)result;
	(void)why;
	pthread_exit(NULL);
}

static void
let_go(void)
{
	int fd = open(getenv("GATE"), O_WRONLY);

	EXPECT(fd != -1 && write(fd, "\n", 1) == 1);
	close(fd);
}

/* The process goes on, as do all of its threads, however often. What follows a future that
 * has ended would run at once, on this thread: so it has not. */
static void
thread(void)
{
	struct xr_rpc_call call = call_of("stays");
	struct xr_future *parent = NULL, *child = NULL;
	int64_t before = ask("pid");

	for (int i = 0; i < 40; i++) {
		EXPECT(ask("ends") == -1 && err.status == XR_E_REMOTE);
		EXPECT(ask("pid") == before);
	}
	puts(err.text);
	EXPECT(xr_rpc_async(&call, &parent, &err) == XR_OK);
	EXPECT(xr_future_then(parent, end_too, NULL, XR_THEN, &child) == XR_OK);
	let_go();
	EXPECT(xr_future_wait(child, XR_SECONDS(20), NULL, &err) == XR_E_STATE);
	puts(err.text);
	xr_future_unref(parent);
	xr_future_unref(child);
}

static void
null(void)
{
	struct xr_rpc_call call = call_of("nothing");
	struct xr_rref *rref = NULL;

	EXPECT(xr_rpc_sync(&call, NULL, &err) == XR_E_ENCODE);
	puts(err.text);
	EXPECT(xr_rpc_remote(&call, &rref, &err) == XR_OK);
	EXPECT(xr_rref_fetch(rref, XR_SECONDS(20), NULL, &err) == XR_E_ENCODE);
	puts(err.text);
	xr_rref_unref(rref);
}

static void
stay(void)
{
	struct xr_rpc_call call = call_of("stays");
	struct xr_future *future = NULL;

	if (rank == 0) {
		EXPECT(xr_rpc_async(&call, &future, &err) == XR_OK);
		EXPECT(ask("pid") > 0);
		xr_future_unref(future);
	}
	while (rank == 1 && atomic_load(&asked) == 0)
		sched_yield();
}

/* Nothing of what is sent goes into memory without end. */
static void
stopped(void)
{
	struct xr_raw_call call = { .size = sizeof(call),
		.len = 1 << 20,
		.timeout = XR_SECONDS(0.5) };
	char *data = calloc(1, call.len);
	int64_t other = ask("pid");
	enum xr_status status = XR_OK;
	unsigned n = 0;

	EXPECT(data != NULL && other > 0);
	call.data = data;
	EXPECT(xr_peer_find(NULL, 1, &call.to, &err) == XR_OK);
	EXPECT(xr_method_find("swallow", &call.method, &err) == XR_OK);
	kill((pid_t)other, SIGSTOP);
	for (; n < 500 && status == XR_OK; n++)
		status = xr_call_oneway(&call, &err);
	kill((pid_t)other, SIGCONT);
	EXPECT(status == XR_E_TIMEOUT);
	EXPECT(n > 4 && n < 80);
	puts(err.text);
	EXPECT(ask("pid") == other);
	free(data);
}

/* Who comes when the other has given up hears that it was late. */
static void
late(void)
{
	const char *const both[] = { "worker0", "worker1" };
	const struct xr_rpc_meeting soon = { sizeof(soon), both, 2,
		XR_SECONDS(0.3) };

	while (rank == 1 && atomic_load(&asked) == 0)
		sched_yield();
	EXPECT(xr_rpc_barrier(&soon, &err) == XR_E_TIMEOUT);
	if (rank == 0)
		EXPECT(ask("pid") > 0);
	printf("rank %u: %s\n", rank, err.text);
}

static const struct {
	const char *name;
	void (*run)(void);
	bool both;
} cases[] = {
	{ "thread", thread, false },
	{ "null", null, false },
	{ "stay", stay, true },
	{ "stopped", stopped, false },
	{ "late", late, true },
};

int
main(int argc, char **argv)
{
	const char *const tcp[] = { "tcp" };
	struct xr_rpc_opts opts = { .size = sizeof(opts) };
	char name[32];
	size_t i = 0;

	rank = xr_job_rank();
	snprintf(name, sizeof(name), "worker%u", rank);
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (argc < 2 || strcmp(argv[1], cases[i].name) != 0)
		EXPECT(++i < sizeof(cases) / sizeof(cases[0]));
	EXPECT(xr_module_static(functions,
		       sizeof(functions) / sizeof(functions[0]),
		       &err) == XR_OK);
	EXPECT(xr_rpc_opts_init(tested_backend(), &opts, &err) == XR_OK);
	opts.transports = tcp;
	opts.transport_count = argc > 2;
	EXPECT(xr_rpc_init(name, -1, -1, &opts, &err) == XR_OK);
	if (rank == 0 || cases[i].both)
		cases[i].run();
	EXPECT(xr_rpc_shutdown(cases[i].run == stay ? XR_SHUTDOWN_IMMEDIATE :
						      XR_SHUTDOWN_GRACEFUL,
		       XR_SECONDS(30), &err) == XR_OK);
	return 0;
}
