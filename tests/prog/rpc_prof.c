/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc_prof.c - what the agent counts, records and breaks on purpose: rank 0 tries
 * it on the others, and says what does not hold.
 *
 *   xrun -n N rpc_prof [--transport NAME] [--threads N] SCENARIO
 *
 *   metrics    all figures, of an agent that is idle and of one that is not
 *   bytes      the network's are those of the bytes that were sent
 *   record     what a profile has, of three ranks; its trace is in the file trace
 *   quiet      without one, nothing of it is sent
 *   nested     profiles of a process
 *   cost N     N calls of rank 0 to itself that do nothing
 *   delayed, failed, odd, whole
 *              what becomes of calls that are to fail
 *   figures N  N calls of 8 bytes, 2 of which fail; rests until a signal ends it
 *   lost N     all call rank 1, which has N bytes and is killed; they fail of it
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/call.h>
#include <xrun/func.h>
#include <xrun/job.h>
#include <xrun/rpc.h>

#include "tests/prog/prog.h"
#include "tests/prog/rpc_prof.h"

struct settings set = { .threads = 5 };

void
must(enum xr_status status, const struct xr_error *err, const char *what)
{
	if (status != XR_OK)
		prog_die(0, "%s: %s: %s", what, xr_status_name(status),
			err != NULL ? err->text : "");
}

void
holds(bool is, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	if (is)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	prog_die(0, "does not hold: %s", line);
}

int64_t
metric(const char *name)
{
	enum xr_status status;
	int64_t value = -1;

	status = xr_metrics_get(name, &value);
	must(status, NULL, name);
	return value;
}

/* --- what others can call ------------------------------------------------- */

static enum xr_status
echo(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	(void)ctx;
	return xr_reply_bytes(call, data, len);
}

static enum xr_status
echo_value(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return xr_reply(call, xr_value_ref(xr_value_at(args, 0)));
}

static enum xr_status
refuse(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	(void)data;
	(void)len;
	(void)ctx;
	return xr_reply_fail(call, XR_E_NO_FUNCTION, "on purpose");
}

static enum xr_status
metric_of(struct xr_call *call, struct xr_value *args, void *ctx)
{
	size_t len;

	(void)ctx;
	return xr_reply(call,
		xr_value_new_i64(metric(xr_value_data(xr_value_at(args, 0),
			&len))));
}

static sem_t over; /* who leaves, sends, which would be counted */

static enum xr_status
end_it(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	(void)data;
	(void)len;
	(void)ctx;
	sem_post(&over);
	return xr_reply_bytes(call, NULL, 0);
}

static struct xr_call *_Atomic held;

static enum xr_status
hold(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	held = xr_call_defer(call);
	return XR_OK;
}

static enum xr_status
let_go(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_call *one = held;

	(void)args;
	(void)ctx;
	xr_reply(one, xr_value_new_nil());
	xr_call_drop(one);
	return xr_reply(call, xr_value_new_nil());
}

static const struct xr_func functions[] = {
	{ .size = sizeof(functions[0]),
		.name = "over",
		.flags = XR_FN_SHORT,
		.raw = end_it },
	{ .size = sizeof(functions[0]),
		.name = "echo",
		.flags = XR_FN_SHORT,
		.raw = echo },
	{ .size = sizeof(functions[0]),
		.name = "echo.value",
		.schema = "?",
		.fn = echo_value },
	{ .size = sizeof(functions[0]),
		.name = "refuse",
		.flags = XR_FN_SHORT,
		.raw = refuse },
	{ .size = sizeof(functions[0]),
		.name = "metric",
		.schema = "T",
		.flags = XR_FN_SHORT,
		.fn = metric_of },
	{ .size = sizeof(functions[0]),
		.name = "hold",
		.flags = XR_FN_ASYNC,
		.fn = hold },
	{ .size = sizeof(functions[0]), .name = "let go", .fn = let_go },
	{ .size = sizeof(functions[0]),
		.name = "hop",
		.schema = "i",
		.fn = record_hop },
	{ .size = sizeof(functions[0]),
		.name = "later",
		.schema = "i",
		.flags = XR_FN_ASYNC,
		.fn = record_later },
	{ .size = sizeof(functions[0]), .name = "begin", .fn = record_begin },
	{ .size = sizeof(functions[0]), .name = "end", .fn = record_end },
};

/* --- calling -------------------------------------------------------------- */

enum xr_status
call_raw(int64_t id, const char *func, size_t len, struct xr_error *err)
{
	struct xr_raw_call call = {
		.size = sizeof(call),
		.len = len,
		.timeout = XR_TIMEOUT_DEFAULT,
	};
	struct xr_raw_reply reply = { 0 };
	char *data = calloc(1, len > 0 ? len : 1);
	enum xr_status status;

	must(xr_peer_find(NULL, id, &call.to, err), err, "peer");
	must(xr_method_find(func, &call.method, err), err, "method");
	call.data = data;
	status = xr_call_sync(&call, &reply, err);
	if (status == XR_OK)
		holds(reply.len == len, "%zu bytes of %zu came back", reply.len,
			len);
	xr_raw_reply_free(&reply);
	free(data);
	return status;
}

struct xr_rpc_call
call_of(int64_t id, const char *func, struct xr_value *arg)
{
	struct xr_rpc_call call = XR_RPC_CALL;

	call.id = id;
	call.func = func;
	if (arg != NULL)
		call.args = xr_value_new_list_of(&arg, 1);
	return call;
}

struct xr_value *
call_sync(int64_t id, const char *func, struct xr_value *arg)
{
	struct xr_rpc_call call = call_of(id, func, arg);
	struct xr_value *value = NULL;
	struct xr_error err = { 0 };

	must(xr_rpc_sync(&call, &value, &err), &err, func);
	xr_value_unref(call.args);
	return value;
}

struct xr_future *
call_async(int64_t id, const char *func, struct xr_value *arg)
{
	struct xr_rpc_call call = call_of(id, func, arg);
	struct xr_future *future = NULL;
	struct xr_error err = { 0 };

	must(xr_rpc_async(&call, &future, &err), &err, func);
	xr_value_unref(call.args);
	return future;
}

static int64_t
metric_at(int64_t id, const char *name)
{
	struct xr_value *v =
		call_sync(id, "metric", xr_value_new_text(name, strlen(name)));
	int64_t n = -1;

	must(xr_value_get_i64(v, &n), NULL, name);
	xr_value_unref(v);
	return n;
}

/* Each look is a call: what is awaited comes, or the test's time is over. */
static void
await_at(int64_t id, const char *name, int64_t value)
{
	while (metric_at(id, name) != value)
		continue;
}

/* --- metrics -------------------------------------------------------------- */

static const char *const keys[] = {
	"agent.client_active_calls",
	"agent.num_idle_threads",
	"agent.num_pending_requests",
	"agent.server_active_async_calls",
	"agent.server_active_calls",
	"agent.thread_pool_size",
	"net.bytes_in",
	"net.bytes_out",
	"net.calls",
	"net.errors",
	"net.served",
	"net.timeouts",
	"num_forks",
	"num_owner_rrefs",
	"num_pending_futures",
	"num_pending_users",
	"peer.worker0.bytes_out",
	"peer.worker1.bytes_in",
	"peer.worker1.bytes_out",
	"peer.worker1.calls",
	"peer.worker1.errors",
};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

struct seen {
	char last[200];
	size_t count, known;
};

static void
see(const char *name, int64_t value, void *ctx)
{
	struct seen *s = ctx;
	int64_t again = -1;

	(void)value;
	holds(strcmp(name, s->last) > 0, "'%s' comes after '%s'", s->last,
		name);
	snprintf(s->last, sizeof(s->last), "%s", name);
	s->count++;
	for (size_t i = 0; i < KEYS; i++)
		s->known += strcmp(keys[i], name) == 0;
	must(xr_metrics_get(name, &again), NULL, name);
}

static void
try_metrics(void)
{
	struct seen seen = { .last = "" };
	struct xr_future *future;
	struct xr_error err = { 0 };
	int64_t unused = 0, errors;

	must(xr_metrics_each(see, &seen), NULL, "each");
	holds(seen.known == KEYS, "%zu of %zu keys are there", seen.known,
		KEYS);
	holds(xr_metrics_get("no.such", &unused) == XR_E_NOTFOUND,
		"there is no.such");
	holds(xr_metrics_get("peer.nobody.calls", &unused) == XR_E_NOTFOUND,
		"nobody has figures");
	holds(metric("agent.thread_pool_size") == set.threads,
		"threads are those of the option");
	holds(metric("agent.client_active_calls") == 0, "it is idle");
	holds(metric("agent.server_active_calls") == 0, "it serves nobody");

	future = call_async(1, "hold", NULL);
	await_at(1, "agent.server_active_async_calls", 1);
	holds(metric("agent.client_active_calls") == 1, "one call is open");
	holds(metric_at(1, "agent.server_active_calls") == 1, "served is one");
	xr_value_unref(call_sync(1, "let go", NULL));
	must(xr_future_wait(future, XR_SECONDS(60), NULL, &err), &err, "held");
	xr_future_unref(future);
	await_at(1, "agent.server_active_calls", 0);
	holds(metric("agent.client_active_calls") == 0, "it is idle again");
	holds(metric("agent.num_pending_requests") == 0, "nothing is pending");

	errors = metric("net.errors");
	holds(call_raw(1, "refuse", 8, &err) == XR_E_NO_FUNCTION,
		"it is refused");
	holds(metric("net.errors") == errors + 1, "one more failed");
	holds(metric("net.call_ns_p50") > 0 &&
			metric("net.call_ns_p50") <= metric("net.call_ns_p99"),
		"calls take some time");
	holds(metric_at(1, "net.served") >= metric("net.calls"),
		"what was called was served");
}

/* --- bytes ---------------------------------------------------------------- */

static void
try_bytes(void)
{
	static const size_t lens[] = { 0, 1, 8, 488, 489, 8192, 100000,
		3000000 };
	struct xr_error err = { 0 };
	int64_t out, in, peer_out, peer_in, calls;
	const int64_t times = 7;

	/* From now on its name need not be sent. */
	must(call_raw(1, "echo", 8, &err), &err, "echo");
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		int64_t len = (int64_t)lens[i] * times;

		out = metric("net.bytes_out");
		in = metric("net.bytes_in");
		peer_out = metric("peer.worker1.bytes_out");
		peer_in = metric("peer.worker1.bytes_in");
		calls = metric("peer.worker1.calls");
		for (int64_t k = 0; k < times; k++)
			must(call_raw(1, "echo", lens[i], &err), &err, "echo");
		holds(metric("net.bytes_out") - out == len &&
				metric("peer.worker1.bytes_out") - peer_out ==
					len,
			"%zu bytes a call were sent: %" PRId64, lens[i],
			metric("net.bytes_out") - out);
		holds(metric("net.bytes_in") - in == len &&
				metric("peer.worker1.bytes_in") - peer_in ==
					len,
			"%zu bytes a call came: %" PRId64, lens[i],
			metric("net.bytes_in") - in);
		holds(metric("peer.worker1.calls") - calls == times,
			"%" PRId64 " calls", times);
	}
	must(call_raw(1, "over", 0, &err), &err, "over");
}

/* --- what xrun shows ------------------------------------------------------ */

static void
try_figures(const char *count)
{
	struct xr_error err = { 0 };

	for (int64_t n = prog_num("figures", count); n > 2; n--)
		must(call_raw(1, "echo", 8, &err), &err, "echo");
	for (int i = 0; i < 2; i++)
		holds(call_raw(1, "refuse", 8, &err) == XR_E_NO_FUNCTION,
			"it is refused");
	xr_job_ready();
	for (;;)
		pause();
}

/* Rank 1 is killed while the others call it, and they fail as soon as they hear of
 * that: the kernel takes longer to take down what has much memory. */
static void
try_lost(size_t bytes)
{
	struct xr_error err = { 0 };
	enum xr_status status = XR_OK;
	char *much = xr_job_rank() == 1 ? malloc(bytes) : NULL;

	if (much != NULL)
		memset(much, 1, bytes);
	must(xr_rpc_barrier(NULL, &err), &err, "barrier");
	while (much != NULL && metric("net.served") < 100)
		sched_yield();
	if (xr_job_rank() == 1)
		raise(SIGKILL);
	while (status == XR_OK)
		status = call_raw(1, "echo", 8, &err);
	fprintf(stderr, "%s: %s\n", xr_status_name(status), err.text);
	_exit(status == XR_E_PEER_LOST ? 3 : 4);
}

/* --- main ----------------------------------------------------------------- */

static void
join(void)
{
	struct xr_rpc_opts opts = { .size = sizeof(opts) };
	struct xr_error err = { 0 };
	char name[32];

	must(xr_rpc_opts_init(xr_backend_find(set.backend), &opts, &err), &err,
		"options");
	opts.threads = (uint32_t)set.threads;
	if (set.transport != NULL) {
		opts.transports = &set.transport;
		opts.transport_count = 1;
	}
	opts.extra = set.extra;
	opts.extra_count = set.extra_count;
	snprintf(name, sizeof(name), "worker%u", xr_job_rank());
	must(xr_rpc_init(name, -1, -1, &opts, &err), &err, "init");
}

static const struct {
	const char *name;
	void (*plain)(void);
	void (*with)(const char *arg);
} scenarios[] = {
	{ "metrics", try_metrics, NULL },
	{ "bytes", try_bytes, NULL },
	{ "record", try_record, NULL },
	{ "quiet", try_quiet, NULL },
	{ "nested", try_nested, NULL },
	{ "cost", NULL, try_cost },
	{ "delayed", try_delayed, NULL },
	{ "failed", try_failed, NULL },
	{ "odd", try_odd, NULL },
	{ "whole", try_whole, NULL },
	{ "figures", NULL, try_figures },
};

static void
try_it(const char *what, const char *arg)
{
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (strcmp(scenarios[i].name, what) != 0)
			continue;
		if (scenarios[i].plain != NULL)
			scenarios[i].plain();
		else
			scenarios[i].with(arg);
		return;
	}
	prog_die(0, "'%s' is nothing that it does", what);
}

int
main(int argc, char **argv)
{
	const struct prog_opt table[] = {
		{ "transport", PROG_TEXT, &set.transport, "of all messages" },
		{ "backend", PROG_TEXT, &set.backend, "of the agent" },
		{ "extra", PROG_TEXT, &set.extra[0], "an option of it" },
		{ "extra2", PROG_TEXT, &set.extra[1], "another" },
		{ "fault", PROG_TEXT, &set.fault, "is XRUN_FAULT" },
		{ "threads", PROG_NUM, &set.threads, "that run functions" },
		{ 0 },
	};
	int at;
	struct xr_error err = { 0 };
	const char *what;

	set.backend = "auto";
	at = prog_opts(argc, argv, table);
	while (set.extra[set.extra_count] != NULL)
		set.extra_count++;
	if (set.fault != NULL)
		setenv("XRUN_FAULT", set.fault, 1);
	what = argv[at] != NULL ? argv[at] : "";
	must(xr_module_static(functions,
		     sizeof(functions) / sizeof(functions[0]), &err),
		&err, "functions");
	sem_init(&over, 0, 0);
	join();
	if (strcmp(what, "lost") == 0)
		try_lost((size_t)prog_num("lost", argv[at + 1]));
	if (xr_job_rank() == 0)
		try_it(what, argv[at + 1]);
	else if (strcmp(what, "bytes") == 0)
		sem_wait(&over);
	must(xr_rpc_shutdown(XR_SHUTDOWN_GRACEFUL, XR_SECONDS(60), &err), &err,
		"shutdown");
	if (xr_job_rank() == 0)
		printf("%s holds\n", what);
	return 0;
}
