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
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <xrun/call.h>
#include <xrun/func.h>
#include <xrun/job.h>
#include <xrun/rpc.h>
#include <xrun/rref.h>
#include <xrun/store.h>

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

static enum xr_status
empty(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	return xr_reply(call, xr_value_new_nil());
}

static sem_t stays_begun;

/* Until somebody writes to $GATE. */
static enum xr_status
stays(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int fd;
	char c;

	(void)args;
	(void)ctx;
	EXPECT(sem_post(&stays_begun) == 0);
	fd = open(getenv("GATE"), O_RDONLY);
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
	{ sizeof(struct xr_func), "empty", "B", XR_FN_SHORT, empty, NULL,
		NULL },
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

/* Both ranks leave while the function runs. A member that leaves sends no more replies,
 * so rank 1 reports the begin of the function by the store. */
static void
stay(void)
{
	static const char *const key = "stays";
	struct xr_rpc_call call = call_of("stays");
	struct xr_future *future = NULL;
	struct xr_store *store;

	EXPECT(xr_store_open(NULL, NULL, &store, &err) == XR_OK);
	if (rank == 0) {
		EXPECT(xr_rpc_async(&call, &future, &err) == XR_OK);
		EXPECT(xr_store_wait(store, &key, 1, XR_SECONDS(60), &err) ==
			XR_OK);
		xr_future_unref(future);
	} else {
		EXPECT(sem_wait(&stays_begun) == 0);
		EXPECT(xr_store_set(store, key, "", 0, &err) == XR_OK);
	}
	xr_store_free(store);
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

static int64_t
cpu_ns(void)
{
	struct timespec t;

	EXPECT(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0);
	return t.tv_sec * XR_SECONDS(1) + t.tv_nsec;
}

static enum xr_status
send_bytes(struct xr_value *args, int64_t timeout)
{
	struct xr_rpc_call call = call_of("empty");
	struct xr_future *future = NULL;
	enum xr_status status;

	call.args = args;
	call.timeout = timeout;
	status = xr_rpc_async(&call, &future, &err);
	EXPECT((status == XR_OK) == (future != NULL));
	xr_future_unref(future);
	return status;
}

static void *
send_more(void *args)
{
	for (int i = 0; i < 20; i++)
		EXPECT(send_bytes(args, XR_TIMEOUT_NEVER) == XR_OK);
	return NULL;
}

/* Calls rank 1, which is stopped, until there is no room. The last call takes a
 * second of the clock, and nearly none of a processor. */
static void
fill(struct xr_value *args)
{
	enum xr_status status = XR_OK;
	int64_t before = 0,
		most = getenv("SANITIZED") != NULL ? XR_SECONDS(0.8) :
						     XR_SECONDS(0.3);

	for (int n = 0; n < 200000 && status == XR_OK; n++) {
		before = cpu_ns();
		status = send_bytes(args, XR_SECONDS(1));
		EXPECT(cpu_ns() - before < most);
	}
	EXPECT(status == XR_E_TIMEOUT);
	puts(err.text);
}

/* Threads that wait for room go on when there is some. */
static void
room_for(size_t len)
{
	static const char data[100000];
	struct xr_value *bytes = xr_value_new_bytes(data, len);
	struct xr_value *args = xr_value_new_list_of(&bytes, 1);
	int64_t other = ask("pid");
	pthread_t thread[4];

	EXPECT(args != NULL && other > 0);
	kill((pid_t)other, SIGSTOP);
	fill(args);
	for (int i = 0; i < 4; i++)
		EXPECT(pthread_create(&thread[i], NULL, send_more, args) == 0);
	kill((pid_t)other, SIGCONT);
	for (int i = 0; i < 4; i++)
		EXPECT(pthread_join(thread[i], NULL) == 0);
	EXPECT(ask("pid") == other);
	xr_value_unref(args);
}

static void
await_stopped(pid_t pid)
{
	char path[64], text[256] = "";
	const char *state = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (state == NULL || state[2] != 'T') {
		f = fopen(path, "r");
		EXPECT(f != NULL && fgets(text, sizeof(text), f) != NULL);
		fclose(f);
		state = strrchr(text, ')');
		sched_yield();
	}
}

/* The pid of rank 1, which it writes to $PIDFILE before it stops itself. */
static pid_t
await_frozen(void)
{
	long pid = 0;
	FILE *f;

	while (pid == 0) {
		f = fopen(getenv("PIDFILE"), "r");
		if (f != NULL && fscanf(f, "%ld\n", &pid) != 1)
			pid = 0;
		if (f != NULL)
			fclose(f);
		sched_yield();
	}
	await_stopped((pid_t)pid);
	return (pid_t)pid;
}

/* Rank 1, which is stopped, is not lost while messages of any length are under way to it
 * for longer than any limit that stands for death. */
static void
outwait(pid_t other, struct xr_value *args)
{
	struct xr_rpc_call call = call_of("empty");

	for (int i = 0; i < 60; i++)
		EXPECT(send_bytes(args, XR_SECONDS(0.1)) != XR_E_PEER_LOST);
	call.timeout = XR_SECONDS(6);
	for (int i = 0; i < 2; i++)
		EXPECT(xr_rpc_sync(&call, NULL, &err) == XR_E_TIMEOUT);
	kill(other, SIGCONT);
	EXPECT(ask("pid") == other);
	puts("it was not lost");
}

/* Stopped before it was ever called. */
static void
frozen(void)
{
	static const char data[100000];
	struct xr_value *bytes = xr_value_new_bytes(data, sizeof(data));
	struct xr_value *args = xr_value_new_list_of(&bytes, 1);
	FILE *f;

	if (rank == 1) {
		f = fopen(getenv("PIDFILE"), "w");
		EXPECT(f != NULL && fprintf(f, "%d\n", getpid()) > 0);
		fclose(f);
		raise(SIGSTOP);
		xr_value_unref(args);
		return;
	}
	outwait(await_frozen(), args);
	xr_value_unref(args);
}

/* Stopped when it has been called. */
static void
frozen_later(void)
{
	static const char data[100000];
	struct xr_value *bytes = xr_value_new_bytes(data, sizeof(data));
	struct xr_value *args = xr_value_new_list_of(&bytes, 1);
	pid_t other = (pid_t)ask("pid");

	EXPECT(other > 0 && kill(other, SIGSTOP) == 0);
	await_stopped(other);
	outwait(other, args);
	xr_value_unref(args);
}

static void
room(void)
{
	room_for(100);
	room_for(2000);
	room_for(100000);
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
	{ "room", room, false },
	{ "frozen", frozen, true },
	{ "frozen-later", frozen_later, false },
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
	EXPECT(sem_init(&stays_begun, 0, 0) == 0);
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
