/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc.c - calls of many threads, under the thread sanitizer: they wait, chain, cancel,
 * lose patience and collect, while other threads answer what was deferred; and all
 * of that while the agent is shut down and begun again. Of a process that calls
 * itself, and of two that call each other.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include <xrun/call.h>
#include <xrun/func.h>
#include <xrun/future.h>
#include <xrun/rpc.h>

#define THREADS 8
#define ROUNDS  42 /* of each thread, unless OPERATIONS says how many */
#define KEPT    64

static unsigned rounds = ROUNDS;
static int cycles; /* of an agent: a third of that; 14 have each length twice */
static _Atomic int failures;
static int side, size = 1; /* which of how many processes this is */
static char method[64];

static bool
check(bool ok, const char *what)
{
	if (!ok && atomic_fetch_add(&failures, 1) < 20)
		fprintf(stderr, "# %d: %s\n", side, what);
	return ok;
}

/* --- what is called -------------------------------------------------------- */

static enum xr_status
echo(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return xr_reply(call, xr_value_ref(args));
}

static enum xr_status
echo_raw(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	(void)ctx;
	return xr_reply_bytes(call, data, len);
}

/* Those that were deferred; other threads answer them. */
static struct xr_call *_Atomic kept[KEPT];

static enum xr_status
keep(struct xr_call *call, struct xr_value *args, void *ctx)
{
	static _Atomic unsigned next;
	struct xr_call *token = xr_call_defer(call);

	(void)args;
	(void)ctx;
	/* Whom it takes the place of is dropped without an answer. */
	xr_call_drop(atomic_exchange(&kept[atomic_fetch_add(&next, 1) % KEPT],
		token));
	return XR_OK;
}

static _Atomic bool stop_answering;

static void *
answer(void *unused)
{
	struct xr_call *call;

	(void)unused;
	for (unsigned i = 0; !atomic_load(&stop_answering); i++) {
		call = atomic_exchange(&kept[i % KEPT], NULL);
		if (call == NULL) {
			sched_yield();
			continue;
		}
		if (i % 5 != 0)
			xr_reply(call, xr_value_new_nil());
		xr_call_cancelled(call);
		xr_call_drop(call);
	}
	return NULL;
}

static void
drop_kept(void)
{
	for (int i = 0; i < KEPT; i++)
		xr_call_drop(atomic_exchange(&kept[i], NULL));
}

static struct xr_rpc_call
call_of(const char *func, struct xr_value *args, unsigned seed)
{
	struct xr_rpc_call call = XR_RPC_CALL;

	call.to = NULL;
	call.id = (int64_t)(seed % (unsigned)size);
	call.func = func;
	call.args = args;
	call.timeout = XR_SECONDS(60);
	return call;
}

/* Answers with what a call of its own gives. */
static enum xr_status
relay(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_rpc_call next = call_of("echo", args, (unsigned)side + 1);
	struct xr_future *future = NULL;

	(void)ctx;
	if (xr_rpc_async(&next, &future, NULL) != XR_OK)
		return XR_E_CLOSED;
	return xr_reply_future(call, future);
}

/* Waits for one. */
static enum xr_status
wait_for_one(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_rpc_call next = call_of("echo", args, (unsigned)side + 1);
	struct xr_value *value = NULL;
	enum xr_status status = xr_rpc_sync(&next, &value, NULL);

	(void)ctx;
	return status == XR_OK ? xr_reply(call, value) : status;
}

static const struct xr_func functions[] = {
	{ .size = sizeof(functions[0]), .name = "echo", .fn = echo },
	{ .size = sizeof(functions[0]),
		.name = "echo.short",
		.flags = XR_FN_SHORT,
		.fn = echo },
	{ .size = sizeof(functions[0]), .name = "raw", .raw = echo_raw },
	{ .size = sizeof(functions[0]), .name = "keep", .fn = keep },
	{ .size = sizeof(functions[0]),
		.name = "keep.short",
		.flags = XR_FN_SHORT,
		.fn = keep },
	{ .size = sizeof(functions[0]),
		.name = "relay",
		.flags = XR_FN_ASYNC,
		.fn = relay },
	{ .size = sizeof(functions[0]), .name = "wait", .fn = wait_for_one },
};

/* --- what threads do ------------------------------------------------------- */

/* While an agent may be gone, or about to go, that is how calls end. */
static _Atomic bool unsteady;

static bool
is_fine(enum xr_status status)
{
	return status == XR_OK ||
		(atomic_load(&unsteady) &&
			(status == XR_E_STATE || status == XR_E_CLOSED ||
				status == XR_E_PEER_LOST ||
				status == XR_E_NOTFOUND ||
				status == XR_E_REMOTE ||
				status == XR_E_CANCELLED ||
				status == XR_E_TIMEOUT));
}

static struct xr_value *
some_args(unsigned seed)
{
	struct xr_value *items[2];
	static const char bytes[6000];

	items[0] = xr_value_new_i64(seed);
	items[1] = xr_value_new_bytes(bytes, seed % 3 == 0 ? 6000 : 10);
	return xr_value_new_list_of(items, 2);
}

/* What comes is looked at again when the agent may be gone, or another. */
static void
look_back(struct xr_value *args, struct xr_value *value)
{
	static __thread struct xr_value *old_args, *old_value;

	check(old_args == NULL || xr_value_equal(old_args, old_value),
		"it has changed");
	xr_value_unref(old_args);
	xr_value_unref(old_value);
	old_args = args;
	old_value = value;
}

static void
wait_for(const char *func, unsigned seed)
{
	struct xr_value *args = some_args(seed), *value = NULL;
	struct xr_rpc_call call = call_of(func, args, seed);
	enum xr_status status = xr_rpc_sync(&call, &value, NULL);

	if (check(is_fine(status), "a call that is waited for") &&
		status == XR_OK &&
		check(xr_value_equal(args, value), "another's answer")) {
		look_back(args, value);
		return;
	}
	xr_value_unref(value);
	xr_value_unref(args);
}

static enum xr_status
add_one(struct xr_future *parent, void *ctx, struct xr_value **result,
	struct xr_error *err)
{
	struct xr_value *value = NULL;
	enum xr_status status = xr_future_value(parent, &value, err);

	atomic_fetch_add((_Atomic int *)ctx, 1);
	if (status == XR_OK)
		*result = xr_value_ref(value);
	xr_value_unref(value);
	return status;
}

static void
chain(unsigned seed)
{
	struct xr_value *args = some_args(seed), *value = NULL;
	struct xr_rpc_call call =
		call_of(seed % 2 == 0 ? "relay" : "echo.short", args, seed);
	struct xr_future *f = NULL, *next = NULL;
	_Atomic int ran = 0;
	enum xr_status status = xr_rpc_async(&call, &f, NULL);

	check(is_fine(status), "a call that is chained to");
	for (int i = 0; i < 6 && f != NULL; i++) {
		check(xr_future_then(f, add_one, &ran,
			      i % 2 == 0 ? XR_SHORT : XR_THEN, &next) == XR_OK,
			"then");
		xr_future_unref(f);
		f = next;
	}
	if (f != NULL) {
		status = xr_future_wait(f, XR_SECONDS(60), &value, NULL);
		check(is_fine(status), "a chain");
		check(ran == 6, "each ran once");
		check(status != XR_OK || xr_value_equal(value, args),
			"what a chain gives");
	}
	xr_value_unref(value);
	xr_future_unref(f);
	xr_value_unref(args);
}

static void
cancel(unsigned seed)
{
	struct xr_value *args = some_args(seed);
	struct xr_rpc_call call =
		call_of(seed % 2 == 0 ? "keep" : "echo", args, seed);
	struct xr_future *f = NULL;
	enum xr_status status = xr_rpc_async(&call, &f, NULL);

	check(is_fine(status), "a call that is canceled");
	if (f != NULL) {
		for (unsigned i = seed % 50; i > 0; i--)
			sched_yield();
		xr_future_cancel(f);
		check(xr_future_done(f), "canceled");
	}
	xr_future_unref(f);
	xr_value_unref(args);
}

static void
lose_patience(unsigned seed)
{
	struct xr_value *args = some_args(seed);
	struct xr_rpc_call call =
		call_of(seed % 3 == 0 ? "keep" : "keep.short", args, seed);
	struct xr_future *f = NULL;
	enum xr_status status;

	call.timeout = XR_SECONDS(0.0001) * (seed % 20 + 1);
	if (seed % 2 == 0) {
		status = xr_rpc_sync(&call, NULL, NULL);
	} else {
		status = xr_rpc_async(&call, &f, NULL);
		if (f != NULL)
			status = xr_future_wait(f, XR_SECONDS(60), NULL, NULL);
		xr_future_unref(f);
	}
	check(is_fine(status) || status == XR_E_TIMEOUT ||
			status == XR_E_CANCELLED,
		"a call with little time");
	xr_value_unref(args);
}

static void
collect(unsigned seed)
{
	struct xr_future *f[8];
	size_t n = 0;

	check(xr_rpc_wait_begin(NULL) == XR_OK, "begin");
	for (unsigned i = 0; i < 8; i++) {
		struct xr_value *args = some_args(seed + i);
		struct xr_rpc_call call = call_of("wait", args, seed + i);

		f[n] = NULL;
		if (xr_rpc_async(&call, &f[n], NULL) == XR_OK)
			n++;
		xr_value_unref(args);
	}
	check(is_fine(xr_rpc_wait_end(XR_SECONDS(60), NULL)), "end");
	for (size_t i = 0; i < n; i++) {
		check(xr_future_done(f[i]), "all were waited for");
		xr_future_unref(f[i]);
	}
}

static void
send_bytes(unsigned seed)
{
	struct xr_raw_call call = { .size = sizeof(call),
		.data = "some bytes",
		.len = 10,
		.timeout = XR_SECONDS(60) };
	char back[16] = { 0 };
	struct xr_raw_reply reply = { 0 };
	enum xr_status status;

	/* A peer is good as long as its agent runs. */
	if (atomic_load(&unsteady))
		return;
	status = xr_peer_find(NULL, seed % (unsigned)size, &call.to, NULL);
	if (status == XR_OK)
		status = xr_method_find("raw", &call.method, NULL);
	call.reply = seed % 2 == 0 ? back : NULL;
	call.reply_cap = sizeof(back);
	if (status == XR_OK)
		status = xr_call_sync(&call, &reply, NULL);
	check(is_fine(status), "bytes");
	check(status != XR_OK ||
			(reply.len == 10 &&
				memcmp(reply.data, "some bytes", 10) == 0),
		"others than sent");
	xr_raw_reply_free(&reply);
}

static void
do_one(unsigned seed)
{
	switch (seed * 2654435761u >> 16 & 7) {
	case 0:
		wait_for("echo", seed);
		break;
	case 1:
		wait_for("echo.short", seed);
		break;
	case 2:
		wait_for("wait", seed);
		break;
	case 3:
		chain(seed);
		break;
	case 4:
		cancel(seed);
		break;
	case 5:
		lose_patience(seed);
		break;
	case 6:
		collect(seed);
		break;
	case 7:
		send_bytes(seed);
		break;
	}
}

static _Atomic bool stop;

/* @ctx: a seed; without an end where the agent comes and goes. */
static void *
work(void *ctx)
{
	unsigned seed = (unsigned)(uintptr_t)ctx;

	for (unsigned i = 0;
		atomic_load(&unsteady) ? !atomic_load(&stop) : i < rounds; i++)
		do_one(seed + i);
	look_back(NULL, NULL);
	return NULL;
}

/* Waits for what has nothing to do with an agent, and may read for it. */
static void *
wait_apart(void *ctx)
{
	struct xr_future **now = ctx;

	for (int i = 0; i < cycles; i++) {
		check(xr_future_wait(now[i], XR_TIMEOUT_NEVER, NULL, NULL) ==
				XR_OK,
			"a future of our own");
		xr_future_unref(now[i]);
	}
	return NULL;
}

/* --- lives of an agent ----------------------------------------------------- */

static void
begin(void)
{
	struct xr_rpc_opts opts = { .size = sizeof(opts) };
	struct xr_error err = { 0 };
	char name[16];

	snprintf(name, sizeof(name), "side%d", side);
	xr_rpc_opts_init(0, &opts, NULL);
	opts.init_method = method;
	opts.threads = 3;
	if (!check(xr_rpc_init(name, side, size, &opts, &err) == XR_OK, "init"))
		fprintf(stderr, "# %s\n", err.text);
}

static void
end(uint32_t flags)
{
	struct xr_error err = { 0 };
	enum xr_status status = xr_rpc_shutdown(flags, XR_SECONDS(100), &err);

	if (!check(is_fine(status), "shutdown"))
		fprintf(stderr, "# %s\n", err.text);
}

static void
be_steady(void)
{
	pthread_t thread[THREADS], answerer;

	atomic_store(&unsteady, false);
	atomic_store(&stop_answering, false);
	begin();
	pthread_create(&answerer, NULL, answer, NULL);
	for (uintptr_t t = 0; t < THREADS; t++)
		pthread_create(&thread[t], NULL, work, (void *)(t * 1000));
	for (int t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	end(XR_SHUTDOWN_GRACEFUL);
	atomic_store(&stop_answering, true);
	pthread_join(answerer, NULL);
	drop_kept();
}

static void
come_and_go(void)
{
	struct xr_future **apart = calloc((size_t)cycles, sizeof(*apart));
	pthread_t thread[THREADS], answerer, waiter;

	atomic_store(&unsteady, true);
	atomic_store(&stop, false);
	atomic_store(&stop_answering, false);
	for (int i = 0; i < cycles; i++)
		apart[i] = xr_future_ref(xr_future_new(NULL));
	pthread_create(&waiter, NULL, wait_apart, apart);
	pthread_create(&answerer, NULL, answer, NULL);
	for (uintptr_t t = 0; t < THREADS; t++)
		pthread_create(&thread[t], NULL, work, (void *)(t * 1000));
	for (int i = 0; i < cycles; i++) {
		begin();
		for (int k = i % 7 * 20; k > 0; k--)
			sched_yield();
		end(XR_SHUTDOWN_IMMEDIATE);
		xr_future_set(apart[i], xr_value_new_nil());
		xr_future_unref(apart[i]);
	}
	atomic_store(&stop, true);
	for (int t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	pthread_join(waiter, NULL);
	atomic_store(&stop_answering, true);
	pthread_join(answerer, NULL);
	drop_kept();
	free(apart);
}

static void
say(int number, const char *what)
{
	printf("%s %d - %s\n", atomic_load(&failures) == 0 ? "ok" : "not ok",
		number, what);
}

/* A child has to be a program of its own to have an agent. Both join in the same
 * order, under the keys of the store that are next. */
static pid_t
begin_other(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl("/proc/self/exe", "rpc", method, NULL);
		_exit(127);
	}
	return pid;
}

static int
be_the_other(void)
{
	size = 2;
	side = 1;
	be_steady();
	come_and_go();
	return atomic_load(&failures) != 0;
}

static void
new_place(void)
{
	char path[] = "/tmp/xrun-thread-XXXXXX";
	int fd = mkstemp(path);

	close(fd);
	snprintf(method, sizeof(method), "file://%s", path);
}

static void
leave_place(void)
{
	unlink(method + strlen("file://"));
}

int
main(int argc, char **argv)
{
	const char *operations = getenv("OPERATIONS");
	pid_t other;
	int how = 0;

	if (operations != NULL)
		rounds = (unsigned)strtoul(operations, NULL, 10);
	cycles = (int)rounds / 3;
	setvbuf(stdout, NULL, _IOLBF, 0);
	check(xr_module_static(functions,
		      sizeof(functions) / sizeof(functions[0]), NULL) == XR_OK,
		"functions");
	if (argc > 1) {
		snprintf(method, sizeof(method), "%s", argv[1]);
		return be_the_other();
	}
	printf("1..4\n");
	new_place();
	other = begin_other();
	size = 2;
	be_steady();
	say(1, "AC-F12 two processes call each other");
	come_and_go();
	check(other > 0 && waitpid(other, &how, 0) == other && how == 0,
		"the other side");
	say(2, "AC-F12 agents of two processes come and go under calls");
	leave_place();
	new_place();
	size = 1;
	be_steady();
	say(3, "AC-F12 a process calls itself");
	come_and_go();
	say(4, "AC-F12 its agent comes and goes under calls");
	leave_place();
	return atomic_load(&failures) != 0;
}
