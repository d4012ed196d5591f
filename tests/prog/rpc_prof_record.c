/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_prof_record.c - what profiles have, and what they cost; see rpc_prof.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/prof.h>

#include "tests/prog/prog.h"
#include "tests/prog/rpc_prof.h"

#define OP "#remote_op: "

/* --- functions ------------------------------------------------------------ */

static int64_t
number_of(struct xr_value *args)
{
	int64_t n = 0;

	must(xr_value_get_i64(xr_value_at(args, 0), &n), NULL, "number");
	return n;
}

static int64_t
next_of(void)
{
	struct xr_worker me = { .size = sizeof(me) };
	struct xr_error err = { 0 };

	must(xr_worker_self(&me, &err), &err, "self");
	return me.id + 1;
}

/* Works, and calls the next one, as often as it is told. */
enum xr_status
record_hop(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t n = number_of(args);

	(void)ctx;
	xr_prof_mark_begin("work");
	xr_prof_mark_begin("inner work");
	xr_prof_mark_end();
	xr_prof_mark_end();
	if (n > 0)
		xr_value_unref(call_sync(next_of(), "hop",
			xr_value_new_i64(n - 1)));
	return xr_reply(call, xr_value_new_i64(n));
}

/* Answers with what another one will give. */
enum xr_status
record_later(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return xr_reply_future(call,
		call_async(next_of(), "hop",
			xr_value_new_i64(number_of(args))));
}

enum xr_status
record_begin(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_error err = { 0 };

	(void)args;
	(void)ctx;
	must(xr_prof_begin(XR_PROF_PROCESS, &err), &err, "begin");
	return xr_reply(call, xr_value_new_nil());
}

enum xr_status
record_end(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_value *events = NULL;
	struct xr_error err = { 0 };

	(void)args;
	(void)ctx;
	must(xr_prof_end(XR_PROF_PROCESS, &events, &err), &err, "end");
	return xr_reply(call, events);
}

/* --- events --------------------------------------------------------------- */

static int64_t
number_in(const struct xr_value *event, const char *key)
{
	int64_t n = -1;

	must(xr_value_get_i64(xr_value_find(event, key, strlen(key)), &n), NULL,
		key);
	return n;
}

static const char *
key_of(const struct xr_value *event)
{
	size_t len;

	return xr_value_data(xr_value_find(event, "key", 3), &len);
}

/* The first from @at on; NULL: there is none. */
static const struct xr_value *
find(const struct xr_value *events, const char *key, size_t at)
{
	for (size_t i = at; i < xr_value_count(events); i++)
		if (strcmp(key_of(xr_value_at(events, i)), key) == 0)
			return xr_value_at(events, i);
	return NULL;
}

/* It is there, ran on @worker, and not before or after @within, if that is not
 * NULL. */
static const struct xr_value *
has(const struct xr_value *events, const char *key, int64_t worker,
	const struct xr_value *within)
{
	const struct xr_value *e = find(events, key, 0);
	bool remote = false;

	holds(e != NULL, "there is '%s'", key);
	holds(number_in(e, "worker") == worker, "'%s' ran on %lld, not %lld",
		key, (long long)number_in(e, "worker"), (long long)worker);
	holds(number_in(e, "start") <= number_in(e, "end"), "'%s' has an end",
		key);
	xr_value_get_bool(xr_value_find(e, "remote", 6), &remote);
	holds(remote == (strstr(key, OP) != NULL), "'%s' is remote or not",
		key);
	holds(within == NULL ||
			(number_in(e, "start") >= number_in(within, "start") &&
				number_in(e, "end") <=
					number_in(within, "end")),
		"'%s' is within '%s'", key,
		within != NULL ? key_of(within) : "");
	return e;
}

static struct xr_value *
end_of(uint32_t flags)
{
	struct xr_value *events = NULL;
	struct xr_error err = { 0 };

	must(xr_prof_end(flags, &events, &err), &err, "end");
	return events;
}

/* --- record --------------------------------------------------------------- */

static void
save_trace(const struct xr_value *events)
{
	struct xr_value *json = NULL;
	struct xr_error err = { 0 };
	size_t len;
	FILE *f = fopen("trace", "w");
	const char *text;

	must(xr_prof_trace(events, &json, &err), &err, "trace");
	text = xr_value_data(json, &len);
	holds(f != NULL && fwrite(text, 1, len, f) == len && fclose(f) == 0,
		"a trace is written");
	xr_value_unref(json);
	json = xr_value_new_nil();
	holds(xr_prof_trace(json, &json, &err) == XR_E_INVAL,
		"nil is no profile");
	xr_value_unref(json);
}

static void
make_calls(void)
{
	struct xr_error err = { 0 };
	struct xr_future *future;

	xr_prof_mark_begin("mine");
	xr_value_unref(call_sync(1, "hop", xr_value_new_i64(1)));
	xr_prof_mark_end();
	must(call_raw(1, "echo", 8, &err), &err, "echo");
	future = call_async(1, "later", xr_value_new_i64(0));
	must(xr_future_wait(future, XR_SECONDS(60), NULL, &err), &err, "later");
	xr_future_unref(future);
}

static void
check_calls(const struct xr_value *events)
{
	static const char hop[] = "rpc_sync#hop(worker0 -> worker1)";
	static const char later[] = "rpc_async#later(worker0 -> worker1)";
	const struct xr_value *e, *inner;
	char key[400];

	holds(strcmp(key_of(xr_value_at(events, 0)), "mine") == 0,
		"the first is the one that began first");
	e = has(events, hop, 0, has(events, "mine", 0, NULL));
	snprintf(key, sizeof(key), "%s" OP "hop", hop);
	e = has(events, key, 1, e);
	snprintf(key, sizeof(key), "%s" OP "work", hop);
	inner = has(events, key, 1, e);
	snprintf(key, sizeof(key), "%s" OP "inner work", hop);
	has(events, key, 1, inner);
	snprintf(key, sizeof(key), "%s" OP "rpc_sync#hop(worker1 -> worker2)",
		hop);
	e = has(events, key, 1, e);
	snprintf(key, sizeof(key),
		"%s" OP "rpc_sync#hop(worker1 -> worker2)" OP "hop", hop);
	e = has(events, key, 2, e);
	snprintf(key, sizeof(key),
		"%s" OP "rpc_sync#hop(worker1 -> worker2)" OP "work", hop);
	has(events, key, 2, e);

	e = has(events, "rpc_sync#echo(worker0 -> worker1)", 0, NULL);
	has(events, "rpc_sync#echo(worker0 -> worker1)" OP "echo", 1, e);
	e = has(events, later, 0, NULL);
	snprintf(key, sizeof(key), "%s" OP "rpc_async#hop(worker1 -> worker2)",
		later);
	e = has(events, key, 1, e);
	snprintf(key, sizeof(key),
		"%s" OP "rpc_async#hop(worker1 -> worker2)" OP "work", later);
	has(events, key, 2, e);
	holds(xr_value_count(events) == 17, "of 17 events %zu are there",
		xr_value_count(events));
}

void
try_record(void)
{
	struct xr_value *events;
	struct xr_error err = { 0 };

	must(xr_prof_begin(XR_PROF_THREAD, &err), &err, "begin");
	holds(xr_prof_begin(XR_PROF_THREAD, &err) == XR_E_STATE,
		"there is one already");
	make_calls();
	events = end_of(XR_PROF_THREAD);
	holds(xr_prof_end(XR_PROF_THREAD, NULL, &err) == XR_E_STATE,
		"it is over");
	check_calls(events);
	save_trace(events);
	xr_value_unref(events);
	/* The next one knows nothing of the last. */
	must(xr_prof_begin(XR_PROF_THREAD, &err), &err, "begin");
	events = end_of(XR_PROF_THREAD);
	holds(xr_value_count(events) == 0, "it has nothing");
	xr_value_unref(events);
}

/* --- quiet ---------------------------------------------------------------- */

static void
weigh_one(int64_t *out, int64_t *in)
{
	*out = metric("net.bytes_out");
	*in = metric("net.bytes_in");
	xr_value_unref(call_sync(1, "hop", xr_value_new_i64(1)));
	*out = metric("net.bytes_out") - *out;
	*in = metric("net.bytes_in") - *in;
}

/* What a call of two hops sends, and what comes for it: the least of some, as
 * what the others say of themselves before they leave comes beside it. */
static void
weigh(int64_t *out, int64_t *in)
{
	int64_t o, i;

	weigh_one(out, in);
	for (int n = 0; n < 8; n++) {
		weigh_one(&o, &i);
		*out = o < *out ? o : *out;
		*in = i < *in ? i : *in;
	}
}

void
try_quiet(void)
{
	struct xr_error err = { 0 };
	int64_t out[3], in[3];

	/* Names need not be sent from now on. */
	weigh(&out[0], &in[0]);
	weigh(&out[0], &in[0]);
	must(xr_prof_begin(XR_PROF_THREAD, &err), &err, "begin");
	weigh(&out[1], &in[1]);
	must(xr_prof_end(XR_PROF_THREAD, NULL, &err), &err, "end");
	weigh(&out[2], &in[2]);
	holds(in[1] > in[0] + 100, "a profile comes back: %lld bytes, not %lld",
		(long long)in[1], (long long)in[0]);
	holds(in[2] == in[0] && out[2] == out[0],
		"without one nothing does: %lld and %lld bytes, not %lld and %lld",
		(long long)out[2], (long long)in[2], (long long)out[0],
		(long long)in[0]);
	must(xr_prof_begin(XR_PROF_PROCESS, &err), &err, "begin");
	weigh(&out[2], &in[2]);
	must(xr_prof_end(XR_PROF_PROCESS, NULL, &err), &err, "end");
	holds(in[2] == in[0] && out[2] == out[0],
		"that of a process stays in it");
}

/* --- nested --------------------------------------------------------------- */

static void
hop(int64_t n)
{
	xr_value_unref(call_sync(1, "hop", xr_value_new_i64(n)));
}

static size_t
count_of(const struct xr_value *events, const char *key)
{
	size_t n = 0;

	for (size_t i = 0; i < xr_value_count(events); i++)
		n += strcmp(key_of(xr_value_at(events, i)), key) == 0;
	return n;
}

static bool
is_in(const struct xr_value *events, const struct xr_value *event)
{
	const struct xr_value *e;

	for (size_t i = 0; i < xr_value_count(events); i++) {
		e = xr_value_at(events, i);
		if (strcmp(key_of(e), key_of(event)) == 0 &&
			number_in(e, "start") == number_in(event, "start") &&
			number_in(e, "end") == number_in(event, "end"))
			return true;
	}
	return false;
}

/* On worker 1, whoever calls: the inner one has two hops of four. */
void
try_nested(void)
{
	static const char on[] = "rpc_sync#hop(worker1 -> worker2)";
	struct xr_value *inner, *outer;

	hop(0);
	xr_value_unref(call_sync(1, "begin", NULL));
	hop(0);
	xr_value_unref(call_sync(1, "begin", NULL));
	hop(0);
	hop(1);
	inner = call_sync(1, "end", NULL);
	hop(0);
	outer = call_sync(1, "end", NULL);
	hop(0);
	holds(count_of(inner, "hop") == 2 && count_of(inner, "work") == 2,
		"the inner one has 2 hops: %zu", count_of(inner, "hop"));
	holds(count_of(outer, "hop") == 4 && count_of(outer, "work") == 4,
		"the outer one has 4 hops: %zu", count_of(outer, "hop"));
	holds(count_of(inner, on) == 1 && count_of(outer, on) == 1,
		"calls that it makes are in both");
	for (size_t i = 0; i < xr_value_count(inner); i++)
		holds(is_in(outer, xr_value_at(inner, i)),
			"'%s' is in the outer one, too",
			key_of(xr_value_at(inner, i)));
	xr_value_unref(inner);
	xr_value_unref(outer);
}

/* --- cost ----------------------------------------------------------------- */

void
try_cost(const char *count)
{
	struct xr_error err = { 0 };

	for (int64_t n = prog_num("cost", count); n > 0; n--)
		must(call_raw(0, "echo", 0, &err), &err, "echo");
}
