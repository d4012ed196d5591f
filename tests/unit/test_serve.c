/* SPDX-License-Identifier: Apache-2.0 */
/* test_serve.c - calls of a peer that the test plays, whole and cut short, and how
 * functions answer them. */
#include <stddef.h>

#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "tests/unit/rref_rig.h"
#include "worker/rpc/func.h"
#include "worker/rpc/rref.h"
#include "worker/rpc/serve.h"

/* --- functions --------------------------------------------------------------------- */

/* What "any" does, and what its last answer returned. */
static enum xr_status (*answer)(struct xr_call *call, struct xr_value *args);
static enum xr_status answered;
static unsigned runs;

static enum xr_status
any(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	runs++;
	return answer(call, args);
}

static enum xr_status
any_raw(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	(void)data;
	(void)len;
	(void)ctx;
	runs++;
	return answer(call, NULL);
}

#define ROW(n, fl, ...) \
	{ .size = sizeof(struct xr_func), \
		.name = n, \
		.flags = XR_FN_SHORT | fl, \
		__VA_ARGS__ }

static const struct xr_func functions[] = {
	ROW("any", 0, .fn = any),
	ROW("raw", 0, .raw = any_raw),
	ROW("later", XR_FN_ASYNC, .fn = any),
	ROW("raw.later", XR_FN_ASYNC, .raw = any_raw),
};

static void
begin(void)
{
	wire_begin();
	cr_assert_eq(xr_module_static(functions, 4, NULL), XR_OK);
	runs = 0;
}

TestSuite(serve, .timeout = 60, .init = begin, .fini = wire_end);

static enum xr_status
echo(struct xr_call *call, struct xr_value *args)
{
	answered = xr_reply(call, xr_value_ref(args));
	return XR_OK;
}

/* --- calls --------------------------------------------------------------------------- */

/* A call's value: arguments, named ones, and what is bound. Takes them. */
static struct xr_value *
call_of(struct xr_value *args, struct xr_value *named, struct xr_value *bound)
{
	struct xr_value *items[3] = { args, named, bound };

	return xr_value_new_list_of(items, 3);
}

static struct xr_value *
one_int(int64_t n)
{
	struct xr_value *v = xr_value_new_i64(n);

	return xr_value_new_list_of(&v, 1);
}

static struct xr_value *
plain(void)
{
	return call_of(one_int(7), xr_value_new_nil(), xr_value_new_nil());
}

static void
request(const char *func, uint8_t kind, uint8_t flags, const void *data,
	size_t len)
{
	const struct xr_record record = { .kind = kind,
		.flags = flags,
		.method = func_hash(func, strlen(func)),
		.corr = 5 };

	wire_deliver(1, &record, data, len);
}

/* A call with a value, which is taken. */
static void
call(const char *func, struct xr_value *v)
{
	uint8_t data[WIRE_BODY];

	request(func, MESSAGE_REQUEST, MESSAGE_VALUE, data,
		wire_encode(v, data, sizeof(data)));
}

static void
call_raw(const char *func)
{
	request(func, MESSAGE_REQUEST, 0, "abc", 3);
}

/* Each row is also sent as one that nobody waits for: nothing is answered then. */
Test(serve, a_call_that_is_cut_short_is_refused)
{
	static const struct {
		const char *func;
		uint8_t flags;
		size_t len;
		const char *data;
		enum xr_status status;
		const char *text;
	} row[] = {
		{ "any", MESSAGE_NAMED, 0, "", XR_E_PROTO, "a call is cut" },
		{ "any", MESSAGE_NAMED, 1, "\3", XR_E_PROTO, "a call is cut" },
		{ "any", MESSAGE_NAMED, 4, "\3\0an", XR_E_PROTO,
			"a call is cut" },
		{ "any", MESSAGE_NAMED, 7, "\3\0any\0", XR_E_PROTO,
			"a call is cut" },
		{ "any", MESSAGE_NAMED, 8, "\3\0any\0\0", XR_E_SCHEMA,
			"any takes values" },
		{ "any", MESSAGE_NAMED, 8, "\3\0anx\0\0", XR_E_NO_FUNCTION,
			"self (0) has no function anx" },
		{ "any", MESSAGE_NAMED, 8, "\2\0any\0\0", XR_E_NO_FUNCTION,
			"has no function an:" },
		{ "other", 0, 0, "", XR_E_NO_FUNCTION,
			"has no function of that name" },
		{ "raw", MESSAGE_VALUE, 1, "x", XR_E_SCHEMA,
			"raw takes bytes" },
		{ "any", MESSAGE_VALUE, 1, "x", XR_E_DECODE, "" },
		{ "any", MESSAGE_VALUE | MESSAGE_REMOTE, 1, "x", XR_E_PROTO,
			"" },
		{ "any", MESSAGE_VALUE | MESSAGE_METHOD, 1, "x", XR_E_PROTO,
			"that is no call of a method" },
		{ "any", MESSAGE_VALUE | MESSAGE_METHOD | MESSAGE_NAMED, 8,
			"\3\0any\0\0", XR_E_PROTO,
			"that is no call of a method" },
	};

	answer = echo;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		request(row[i].func, MESSAGE_REQUEST, row[i].flags, row[i].data,
			row[i].len);
		cr_expect(wire_failed(1, 5, row[i].status, row[i].text),
			"row %zu", i);
		request(row[i].func, MESSAGE_ONEWAY, row[i].flags, row[i].data,
			row[i].len);
		cr_expect_eq(wire_left(), 0, "row %zu", i);
	}
	cr_expect_eq(runs, 0);
	cr_expect_eq(rref_figure(RREF_OWNERS), 0);
}

Test(serve, a_value_that_is_no_call_is_refused)
{
	struct xr_value *two[2] = { xr_value_new_list(), xr_value_new_nil() };

	answer = echo;
	call("any", xr_value_new_i64(1));
	cr_expect(wire_failed(1, 5, XR_E_PROTO, "that is no call"));
	call("any", xr_value_new_list_of(two, 2));
	cr_expect(wire_failed(1, 5, XR_E_PROTO, "that is no call"));
	call("any",
		call_of(xr_value_new_i64(1), xr_value_new_nil(),
			xr_value_new_nil()));
	cr_expect(wire_failed(1, 5, XR_E_PROTO, "that is no call"));
	call("any",
		call_of(xr_value_new_list(), xr_value_new_i64(1),
			xr_value_new_nil()));
	cr_expect(wire_failed(1, 5, XR_E_PROTO, "that is no call"));
	cr_expect_eq(runs, 0);
}

Test(serve, what_is_bound_comes_before_the_arguments)
{
	struct xr_value *v;
	int64_t n[2] = { 0, 0 };

	answer = echo;
	call("any",
		call_of(one_int(7), xr_value_new_dict(), xr_value_new_i64(6)));
	cr_expect_eq(answered, XR_OK);
	v = wire_answer(1, 5);
	cr_assert_eq(xr_value_count(v), 2);
	for (size_t i = 0; i < 2; i++)
		xr_value_get_i64(xr_value_at(v, i), &n[i]);
	cr_expect_eq(n[0], 6);
	cr_expect_eq(n[1], 7);
	xr_value_unref(v);
	cr_expect_eq(serve_count(false), 0);
}

/* --- answers ---------------------------------------------------------------------------- */

static enum xr_status failing;

static enum xr_status
fail_so(struct xr_call *call, struct xr_value *args)
{
	(void)args;
	answered = xr_reply_fail(call, failing, "on purpose");
	return XR_OK;
}

static enum xr_status
return_so(struct xr_call *call, struct xr_value *args)
{
	(void)call;
	(void)args;
	return failing;
}

/* What the library finds is said as it is; the rest failed there. */
Test(serve, a_function_fails_with_its_own_error)
{
	static const struct {
		enum xr_status status, as;
	} row[] = {
		{ XR_E_NO_FUNCTION, XR_E_NO_FUNCTION },
		{ XR_E_SCHEMA, XR_E_SCHEMA },
		{ XR_E_PROTO, XR_E_PROTO },
		{ XR_E_DECODE, XR_E_DECODE },
		{ XR_E_CANCELLED, XR_E_CANCELLED },
		{ XR_E_RANGE, XR_E_REMOTE },
		{ XR_E_NOMEM, XR_E_REMOTE },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		failing = row[i].status;
		answer = fail_so;
		call("any", plain());
		cr_expect_eq(answered, XR_OK);
		cr_expect(wire_failed(1, 5, row[i].as, "on purpose"), "row %zu",
			i);
		answer = return_so;
		call("any", plain());
		cr_expect(wire_failed(1, 5, row[i].as,
				  xr_status_text(row[i].status)),
			"row %zu", i);
	}
	cr_expect_eq(wire_left(), 0);
}

/* None of them is an answer: the function goes on. */
static enum xr_status
answer_wrongly(struct xr_call *call, struct xr_value *args)
{
	(void)args;
	cr_expect_eq(xr_reply_fail(call, XR_OK, "no"), XR_E_INVAL);
	cr_expect_eq(xr_reply_error(call, NULL), XR_E_INVAL);
	cr_expect_eq(xr_reply_error(call, xr_value_new_i64(1)), XR_E_INVAL);
	cr_expect_eq(xr_reply_future(call, NULL), XR_E_INVAL);
	return XR_OK;
}

static enum xr_status
answer_twice(struct xr_call *call, struct xr_value *args)
{
	const struct xr_failure f = { .size = sizeof(f),
		.status = XR_E_RANGE,
		.text = "twice" };
	uint32_t id = 0;

	cr_expect_str_eq(xr_call_caller(call, &id), "one");
	cr_expect_eq(id, 1);
	cr_expect_str_eq(xr_call_caller(call, NULL), "one");
	cr_expect_eq(xr_reply_fail(call, XR_E_RANGE, NULL), XR_OK);
	cr_expect_eq(xr_reply(call, xr_value_ref(args)), XR_E_STATE);
	cr_expect_eq(xr_reply(call, NULL), XR_E_STATE);
	cr_expect_eq(xr_reply_bytes(call, "abc", 3), XR_E_STATE);
	cr_expect_eq(xr_reply_fail(call, XR_E_RANGE, "twice"), XR_E_STATE);
	cr_expect_eq(xr_reply_fail(call, XR_E_SCHEMA, "twice"), XR_E_STATE);
	cr_expect_eq(xr_reply_error(call, xr_value_new_error(&f)), XR_E_STATE);
	/* It is not marked as one that answers with a future. */
	cr_expect_eq(xr_reply_future(call, xr_future_new(NULL)), XR_E_STATE);
	return XR_OK;
}

Test(serve, a_call_is_answered_once)
{
	struct xr_value *v;

	answer = answer_wrongly;
	call("any", plain());
	v = wire_answer(1, 5);
	cr_expect_eq(xr_value_kind(v), XR_NIL);
	xr_value_unref(v);
	answer = answer_twice;
	call("any", plain());
	cr_expect(wire_failed(1, 5, XR_E_REMOTE, "any on self (0): "));
	cr_expect_eq(wire_left(), 0);
}

static enum xr_status
answer_null(struct xr_call *call, struct xr_value *args)
{
	(void)args;
	answered = xr_reply(call, NULL);
	return XR_OK;
}

static enum xr_status
answer_future(struct xr_call *call, struct xr_value *args)
{
	(void)args;
	answered = xr_reply_future(call, xr_future_new(NULL));
	return XR_OK;
}

static enum xr_status
answer_bytes(struct xr_call *call, struct xr_value *args)
{
	(void)args;
	answered = xr_reply_bytes(call, "xyz", 3);
	return XR_OK;
}

Test(serve, an_answer_is_of_the_kind_that_was_promised)
{
	static const struct {
		const char *func;
		enum xr_status (*answer)(struct xr_call *, struct xr_value *);
		enum xr_status returns, status;
		const char *text;
	} row[] = {
		{ "any", answer_null, XR_E_ENCODE, XR_E_ENCODE,
			"any answered with NULL, which is no value" },
		{ "any", answer_future, XR_E_INVAL, XR_E_REMOTE,
			"any is not marked XR_FN_ASYNC, and answered with a future" },
		{ "later", echo, XR_E_INVAL, XR_E_REMOTE,
			"later is marked XR_FN_ASYNC, so it must answer with a future, and answered with list" },
		{ "later", answer_bytes, XR_E_INVAL, XR_E_REMOTE,
			"must answer with a future, and answered with bytes" },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		answer = row[i].answer;
		call(row[i].func, plain());
		cr_expect_eq(answered, row[i].returns, "row %zu", i);
		cr_expect(wire_failed(1, 5, row[i].status, row[i].text),
			"row %zu", i);
	}
	answer = answer_bytes;
	call_raw("raw.later");
	cr_expect_eq(answered, XR_E_INVAL);
	cr_expect(wire_failed(1, 5, XR_E_REMOTE, "answered with bytes"));
	cr_expect_eq(wire_left(), 0);
}

/* --- bytes -------------------------------------------------------------------------------- */

static enum xr_kind kind;

static enum xr_status
answer_kind(struct xr_call *call, struct xr_value *args)
{
	struct xr_value *v = kind == XR_BYTES ? xr_value_new_bytes("xyz", 3) :
		kind == XR_TEXT               ? xr_value_new_text("text", 4) :
		kind == XR_NIL                ? xr_value_new_nil() :
						xr_value_new_i64(1);

	(void)args;
	answered = xr_reply(call, v);
	return XR_OK;
}

/* Of a function with bytes; a value that has bytes will do. */
Test(serve, bytes_are_answered_with_bytes)
{
	static const struct {
		enum xr_kind kind;
		size_t len;
		const char *data;
	} row[] = {
		{ XR_BYTES, 3, "xyz" },
		{ XR_TEXT, 4, "text" },
		{ XR_NIL, 0, "" },
	};
	const struct wire_message *m;

	answer = answer_kind;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		kind = row[i].kind;
		call_raw("raw");
		cr_expect_eq(answered, XR_OK);
		m = wire_sent(MESSAGE_REPLY, 1);
		cr_assert_not_null(m);
		cr_expect_eq(m->record.flags, 0);
		cr_expect_eq(m->len, row[i].len);
		cr_expect_eq(memcmp(m->data, row[i].data, row[i].len), 0);
	}
	kind = XR_I64;
	call_raw("raw");
	cr_expect_eq(answered, XR_E_ENCODE);
	cr_expect(wire_failed(1, 5, XR_E_ENCODE,
		"raw was called with bytes, and answered with a value of kind i64"));
}

/* --- what cannot be sent ------------------------------------------------------------------- */

/* status_to() - the status that an answer without a value has. */
static enum xr_status
status_to(uint32_t to)
{
	const struct wire_message *m = wire_sent(MESSAGE_ERROR, to);
	int32_t status = XR_OK;

	cr_assert_not_null(m);
	cr_assert_eq(m->len, sizeof(status));
	cr_expect_eq(m->record.flags, 0);
	memcpy(&status, m->data, sizeof(status));
	return status;
}

Test(serve, an_answer_that_cannot_be_sent_is_a_status)
{
	answer = echo;
	wire_refuse(XR_E_RANGE, 1);
	call("any", plain());
	cr_expect_eq(status_to(1), XR_E_RANGE);
	wire_refuse(XR_E_NOMEM, 1);
	call("any", plain());
	cr_expect_eq(status_to(1), XR_E_NOMEM);
	/* Who is lost hears nothing more. */
	wire_refuse(XR_E_PEER_LOST, 1);
	call("any", plain());
	cr_expect_eq(wire_left(), 0);
}

/* Each allocation fails once: the call is answered all the same, and once. */
static void
fail_each(const char *func, uint8_t flags, struct xr_value *v)
{
	uint8_t data[WIRE_BODY];
	const struct xr_record record = { .kind = MESSAGE_REQUEST,
		.flags = flags,
		.method = func_hash(func, strlen(func)),
		.corr = 5 };
	struct xr_body body = { .data = data };
	unsigned at, count;
	bool whole = false;

	body.len = v != NULL ? wire_encode(v, data, sizeof(data)) : 0;
	for (at = 1; !whole && at < 60; at++) {
		wire_forget();
		was_short = false;
		until_short = at;
		serve_request(wire_peer[1], &record, &body);
		until_short = 0;
		whole = !was_short;
		count = (wire_sent(MESSAGE_REPLY, 1) != NULL) +
			(wire_sent(MESSAGE_ERROR, 1) != NULL);
		cr_expect_eq(count, 1, "%s, %u", func, at);
		cr_expect_eq(wire_left(), 0, "%s, %u", func, at);
		cr_expect_eq(serve_count(false), 0);
	}
	cr_expect(at > 2 && at < 60, "%s: %u", func, at);
}

static enum xr_status
say_nothing(struct xr_call *call, struct xr_value *args)
{
	(void)call;
	(void)args;
	return XR_OK;
}

static enum xr_status
answer_ended(struct xr_call *call, struct xr_value *args)
{
	struct xr_future *future = xr_future_new(NULL);

	(void)args;
	if (future == NULL)
		return XR_E_NOMEM;
	xr_future_set(future, xr_value_new_nil());
	xr_reply_future(call, future);
	return XR_OK;
}

Test(serve, a_call_without_memory_is_answered)
{
	failing = XR_E_RANGE;
	answer = echo;
	fail_each("any", MESSAGE_VALUE, plain());
	fail_each("any", MESSAGE_VALUE,
		call_of(one_int(7), xr_value_new_dict(), xr_value_new_i64(6)));
	answer = answer_bytes;
	fail_each("any", MESSAGE_VALUE, plain());
	answer = say_nothing;
	fail_each("any", MESSAGE_VALUE, plain());
	answer = fail_so;
	fail_each("any", MESSAGE_VALUE, plain());
	fail_each("raw", 0, NULL);
	answer = answer_ended;
	fail_each("later", MESSAGE_VALUE, plain());
}

/* --- calls that go on ----------------------------------------------------------- */

static struct xr_call *open_call;

static enum xr_status
keep_open(struct xr_call *call, struct xr_value *args)
{
	(void)args;
	open_call = xr_call_defer(call);
	return XR_OK;
}

static void
begin_call(void)
{
	answer = keep_open;
	open_call = NULL;
	call("later", plain());
	cr_assert_not_null(open_call);
}

Test(serve, a_call_is_cancelled_by_its_caller_only)
{
	uint32_t id = 9;

	begin_call();
	cr_expect_str_eq(xr_call_func(open_call), "later");
	cr_expect_str_eq(xr_call_caller(open_call, NULL), "one");
	cr_expect_str_eq(xr_call_caller(open_call, &id), "one");
	cr_expect_eq(id, 1);
	wire_say(2, MESSAGE_CANCEL, 5, NULL, 0);
	wire_say(1, MESSAGE_CANCEL, 4, NULL, 0);
	wire_say(1, MESSAGE_CANCEL, 6, NULL, 0);
	cr_expect_not(xr_call_cancelled(open_call));
	serve_lost(wire_peer[2]);
	cr_expect_not(xr_call_cancelled(open_call));
	wire_say(1, MESSAGE_CANCEL, 5, NULL, 0);
	cr_expect(xr_call_cancelled(open_call));
	xr_call_drop(open_call);
	/* Or when it is lost. */
	begin_call();
	cr_expect_not(xr_call_cancelled(open_call));
	serve_lost(wire_peer[1]);
	cr_expect(xr_call_cancelled(open_call));
	cr_expect_str_eq(xr_call_caller(open_call, NULL), "one");
	xr_call_drop(open_call);
	/* At the end of the agent the caller is not known any more. */
	begin_call();
	serve_forget_all();
	cr_expect(xr_call_cancelled(open_call));
	id = 9;
	cr_expect_str_eq(xr_call_caller(open_call, &id), "");
	cr_expect_eq(id, 9);
	xr_call_drop(open_call);
}

/* An answer that nobody is there for goes nowhere, and the call has ended by it. */
Test(serve, a_call_whose_agent_ended_is_answered_in_vain)
{
	begin_call();
	serve_forget_all();
	cr_expect_eq(xr_reply(open_call, xr_value_new_i64(1)), XR_OK);
	cr_expect_eq(xr_reply(open_call, xr_value_new_i64(1)), XR_E_STATE);
	cr_expect_eq(wire_left(), 0);
	xr_call_drop(open_call);
	begin_call();
	serve_forget_all();
	cr_expect_eq(xr_reply_fail(open_call, XR_E_REMOTE, "in vain"), XR_OK);
	cr_expect_eq(wire_left(), 0);
	xr_call_drop(open_call);
}

/* --- answers that come from elsewhere ------------------------------------------ */

static struct xr_future *promised;

static enum xr_status
promise(struct xr_call *call, struct xr_value *args)
{
	(void)args;
	promised = xr_future_new(NULL);
	answered = xr_reply_future(call, xr_future_ref(promised));
	return XR_OK;
}

Test(serve, what_a_future_ends_with_is_the_answer)
{
	struct xr_failure f = { .size = sizeof(f) },
			  cause = { .size = sizeof(cause) };
	struct xr_value *v;
	int64_t n = 0;

	answer = promise;
	call("later", plain());
	cr_expect_eq(answered, XR_OK);
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(xr_future_set(promised, xr_value_new_i64(8)), XR_OK);
	v = wire_answer(1, 5);
	cr_expect_eq(xr_value_get_i64(v, &n), XR_OK);
	cr_expect_eq(n, 8);
	xr_value_unref(v);
	xr_future_unref(promised);
	call("later", plain());
	cr_expect_eq(xr_future_fail_with(promised, XR_E_CANCELLED,
			     "not any more"),
		XR_OK);
	v = wire_answer(1, 5);
	cr_expect_eq(xr_value_failure(v, &f), XR_OK);
	cr_expect_eq(f.status, XR_E_REMOTE);
	cr_expect_str_eq(f.text,
		"later on self (0): XR_E_CANCELLED: not any more");
	cr_expect_str_eq(f.func, "later");
	cr_expect_str_eq(f.worker, "self");
	cr_expect_eq(f.worker_id, 0);
	cr_expect_null(f.type);
	cr_expect_not_null(f.backtrace);
	cr_expect_eq(xr_value_failure(f.cause, &cause), XR_OK);
	cr_expect_eq(cause.status, XR_E_CANCELLED);
	cr_expect_str_eq(cause.text, "not any more");
	xr_value_unref(v);
	cr_expect_eq(wire_left(), 0);
	xr_future_unref(promised);
}

/* --- references in answers -------------------------------------------------------- */

static struct xr_rref *kept;

static enum xr_status
answer_reference(struct xr_call *call, struct xr_value *args)
{
	(void)args;
	answered = xr_reply(call, xr_value_new_rref(kept));
	return XR_OK;
}

/* The caller has a fork of it, but not if the answer does not go. */
Test(serve, a_reference_goes_with_its_answer_only)
{
	answer = answer_reference;
	cr_assert_eq(xr_rref_from_value(xr_value_new_i64(7), &kept, NULL),
		XR_OK);
	wire_refuse(XR_E_PEER_LOST, 1);
	call("any", plain());
	cr_expect_eq(rref_figure(RREF_FORKS), 0);
	cr_expect_eq(wire_left(), 0);
	wire_refuse(XR_E_NOMEM, 1);
	call("any", plain());
	cr_expect_eq(rref_figure(RREF_FORKS), 0);
	cr_expect_eq(status_to(1), XR_E_NOMEM);
	call("any", plain());
	cr_expect_eq(rref_figure(RREF_FORKS), 1);
	cr_expect_not_null(wire_sent(MESSAGE_REPLY, 1));
	xr_rref_unref(kept);
}

/* --- methods ------------------------------------------------------------------------ */

/* What a peer sends to call @name of the value of @target. */
static void
call_method(const char *name, const struct rref_wire *target)
{
	const struct xr_record record = { .kind = MESSAGE_REQUEST,
		.flags = MESSAGE_VALUE | MESSAGE_METHOD | MESSAGE_NAMED,
		.corr = 5 };
	uint8_t data[WIRE_BODY] = { 0 };
	const uint32_t head[3] = { MAGIC, 2, 0 };
	uint16_t len = (uint16_t)strlen(name);
	size_t at = (sizeof(len) + len + 7u) / 8 * 8;

	memcpy(data, &len, sizeof(len));
	memcpy(data + sizeof(len), name, len);
	if (target != NULL) {
		memcpy(data + at, head, sizeof(head));
		memcpy(data + at + 64, target, sizeof(*target));
		at += 128;
	}
	at += wire_encode(plain(), data + at, sizeof(data) - at);
	wire_deliver(1, &record, data, at);
}

static enum xr_status
twice(struct xr_call *call, void *self, struct xr_value *args, void *ctx)
{
	int64_t n = 0;

	(void)ctx;
	xr_value_get_i64(xr_value_at(args, 0), &n);
	return xr_reply(call, xr_value_new_i64(2 * n + *(int *)self));
}

static const struct xr_method methods[] = {
	{ .size = sizeof(struct xr_method), .name = "twice", .fn = twice },
};

static const struct xr_type thing_type = { .size = sizeof(thing_type),
	.name = "serve.Thing",
	.methods = methods,
	.method_count = 1 };

static void
make_thing(const struct rref_wire *birth)
{
	static int thing = 3;
	struct xr_value *v;

	cr_assert_eq(xr_type_register(&thing_type, NULL), XR_OK);
	v = xr_value_new_opaque("serve.Thing", &thing);
	cr_assert_not_null(v);
	cr_expect_eq(rref_begin(wire_peer[1], birth), XR_OK);
	rref_made(birth, v, false);
	xr_value_unref(v);
	wire_forget();
}

TestSuite(serve_method, .timeout = 60, .init = begin);

Test(serve_method, a_method_runs_with_its_object)
{
	const struct rref_wire birth = word(1, 5, 1, 6, 0);
	struct xr_value *v;
	int64_t n = 0;

	make_thing(&birth);
	call_method("twice", &birth);
	/* It is run, and answers, before the agent has ended. */
	wire_end();
	v = wire_answer(1, 5);
	cr_assert_not_null(v);
	cr_expect_eq(xr_value_get_i64(v, &n), XR_OK);
	cr_expect_eq(n, 17);
	xr_value_unref(v);
}

Test(serve_method, what_is_no_call_of_a_method_is_refused)
{
	const struct rref_wire birth = word(1, 5, 1, 6, 0);

	make_thing(&birth);
	call_method("thrice", &birth);
	cr_expect(wire_failed(1, 5, XR_E_NO_FUNCTION,
		"type serve.Thing has no method thrice"));
	call_method("twice", NULL);
	cr_expect(wire_failed(1, 5, XR_E_PROTO, "that is no call of a method"));
	wire_end();
	cr_expect_null(wire_answer(1, 5));
}
