/* SPDX-License-Identifier: Apache-2.0 */
/* test_serve.c - calls of a peer that the test plays, whole and cut short, and how
 * functions answer them. */
#include <stddef.h>

#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "tests/unit/serve_rig.h"
#include "worker/rpc/parcel.h"

TestSuite(serve, .timeout = 20, .init = begin, .fini = wire_end);

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

static const char *because;

static enum xr_status
fail_because(struct xr_call *call, struct xr_value *args)
{
	(void)args;
	answered = xr_reply_fail(call, XR_E_RANGE, because);
	return XR_OK;
}

Test(serve, a_failure_has_as_many_words_as_the_function_gave)
{
	static const char *const row[][2] = { { NULL, "" }, { "", "" },
		{ "x", ": x" }, { "xy", ": xy" } };
	struct xr_failure f;
	struct xr_value *v;
	char text[80];

	answer = fail_because;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		because = row[i][0];
		call("any", plain());
		v = wire_answer(1, 5);
		f = (struct xr_failure){ .size = sizeof(f) };
		cr_assert_eq(xr_value_failure(v, &f), XR_OK);
		snprintf(text, sizeof(text), "any on self (0): XR_E_RANGE%s",
			row[i][1]);
		cr_expect_str_eq(f.text, text);
		xr_value_unref(v);
	}
}

static enum xr_status
fail_with_type(struct xr_call *call, struct xr_value *args)
{
	const struct xr_failure f = { .size = sizeof(f),
		.status = XR_E_RANGE,
		.type = "ValueError",
		.text = "no such",
		.backtrace = "  line 7\n" };
	struct xr_value *error = xr_value_new_error(&f);

	(void)args;
	answered = xr_reply_error(call, error);
	return XR_OK;
}

Test(serve, a_failure_has_the_type_and_the_trace_of_its_cause)
{
	struct xr_failure f = { .size = sizeof(f) };
	struct xr_value *v;

	answer = fail_with_type;
	call("any", plain());
	cr_expect_eq(answered, XR_OK);
	v = wire_answer(1, 5);
	cr_assert_eq(xr_value_failure(v, &f), XR_OK);
	cr_expect_eq(f.status, XR_E_REMOTE);
	cr_expect_str_eq(f.type, "ValueError");
	cr_expect_str_eq(f.text, "any on self (0): ValueError: no such");
	cr_expect_str_eq(f.backtrace, "  line 7\n");
	cr_expect_not_null(f.cause);
	xr_value_unref(v);
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

static void *
decode_nothing(const void *data, size_t len, void *ctx)
{
	(void)data;
	(void)len;
	return ctx;
}

/* The type has no encoder. */
static enum xr_status
answer_object(struct xr_call *call, struct xr_value *args)
{
	const struct xr_type type = { .size = sizeof(type),
		.name = "only.decode",
		.decode = decode_nothing };

	(void)args;
	cr_assert_eq(xr_type_register(&type, NULL), XR_OK);
	answered = xr_reply(call, xr_value_new_opaque("only.decode", "object"));
	return XR_OK;
}

/* No memory for the reply. */
static enum xr_status
answer_unsent(struct xr_call *call, struct xr_value *args)
{
	struct xr_value *v = xr_value_new_text("text", 4);

	(void)args;
	until_short = 1;
	answered = xr_reply(call, v);
	cr_expect_eq(until_short, 0);
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
		{ "any", answer_object, XR_E_ENCODE, XR_E_ENCODE,
			"value: type only.decode has no encoder" },
		{ "any", answer_unsent, XR_E_NOMEM, XR_E_NOMEM, "" },
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

static const void *bytes;
static size_t bytes_len, bytes_skip;

/* With @bytes, or with what it was called with. */
static enum xr_status
give_bytes(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	(void)ctx;
	if (bytes == NULL) {
		data = (const char *)data + bytes_skip;
		len -= bytes_skip;
	}
	answered = xr_reply_bytes(call, bytes != NULL ? bytes : data,
		bytes != NULL ? bytes_len : len);
	return XR_OK;
}

static const struct xr_func give_bytes_funcs[] = {
	ROW("give.bytes", 0, .raw = give_bytes),
	/* By another thread: the body is kept. */
	{ .size = sizeof(struct xr_func),
		.name = "give.slowly",
		.raw = give_bytes },
};

/* What a call came with goes back as it is if that is worth it; nothing else does. */
Test(serve, the_bytes_of_a_call_are_lent_to_its_answer)
{
	static char low[PARCEL_MIN + 8];
	char data[PARCEL_MIN + 8], other[PARCEL_MIN + 8];
	const struct {
		const void *bytes;
		size_t skip, len;
		bool lent;
	} row[] = {
		{ NULL, 0, PARCEL_MIN + 8, true },
		{ NULL, 7, PARCEL_MIN + 1, true },
		{ NULL, 8, PARCEL_MIN, false },
		{ low, 0, PARCEL_MIN + 8, false },
		{ other, 0, PARCEL_MIN + 8, false },
	};
	const struct wire_message *m;

	cr_assert_eq(xr_module_static(give_bytes_funcs, 2, NULL), XR_OK);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = low[i] = other[i] = (char)i;
	for (size_t i = 0; i < 2 * sizeof(row) / sizeof(row[0]); i++) {
		const size_t k = i / 2;

		bytes = row[k].bytes;
		bytes_len = row[k].len;
		bytes_skip = row[k].skip;
		wire_forget();
		request(give_bytes_funcs[i % 2].name, MESSAGE_REQUEST, 0, data,
			sizeof(data));
		wire_await(1);
		m = wire_sent(MESSAGE_REPLY, 1);
		cr_assert_not_null(m);
		cr_expect_eq(m->len, row[k].len, "row %zu", i);
		cr_expect_eq(m->lent, row[k].lent, "row %zu", i);
		cr_expect_eq(memcmp(m->data, data + row[k].skip, m->len), 0,
			"row %zu", i);
	}
}

/* --- what cannot be sent ------------------------------------------------------------------- */

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
		played.host.deliver(played.host.ctx, wire_peer[1], &record,
			&body);
		until_short = 0;
		wire_await(1);
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

static enum xr_status
answer_short(struct xr_call *call, struct xr_value *args)
{
	(void)args;
	until_short = 1;
	cr_expect_eq(xr_reply_bytes(call, "xyz", 3), XR_E_NOMEM);
	cr_expect_eq(until_short, 0);
	until_short = 1;
	cr_expect_eq(xr_reply_bytes(call, "xyz", 3), XR_E_STATE);
	cr_expect_eq(until_short, 0);
	return XR_OK;
}

Test(serve, an_answer_without_memory_says_so_once)
{
	answer = answer_short;
	call("any", plain());
	cr_expect(wire_failed(1, 5, XR_E_NOMEM, "out of memory"));
	cr_expect_eq(wire_left(), 0);
}

Test(serve, a_call_without_memory_is_answered)
{
	failing = XR_E_RANGE;
	answer = echo;
	fail_each("any", MESSAGE_VALUE, plain());
	fail_each("any", MESSAGE_VALUE,
		call_of(one_int(7), xr_value_new_dict(), xr_value_new_i64(6)));
	fail_each("slow", MESSAGE_VALUE, plain());
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
