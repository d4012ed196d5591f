/* SPDX-License-Identifier: Apache-2.0 */
/* test_serve_method.c - calls of a peer of methods, with references, and whose values stay
 * here. */
#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "tests/unit/serve_rig.h"

TestSuite(serve_remote, .timeout = 20, .init = begin, .fini = wire_end);

/* --- methods ------------------------------------------------------------------------ */

static const struct xr_record method_record = { .kind = MESSAGE_REQUEST,
	.flags = MESSAGE_VALUE | MESSAGE_METHOD | MESSAGE_NAMED,
	.corr = 5 };

/* What a peer sends to call @name of the value of @target; its length. */
static size_t
method_call(uint8_t data[WIRE_BODY], const char *name,
	const struct rref_wire *target)
{
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
	return at + wire_encode(plain(), data + at, WIRE_BODY - at);
}

static void
call_method(const char *name, const struct rref_wire *target)
{
	uint8_t data[WIRE_BODY] = { 0 };

	wire_deliver(1, &method_record, data, method_call(data, name, target));
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
bear_thing(const struct rref_wire *birth)
{
	static int thing = 3;
	struct xr_value *v;

	cr_assert_eq(xr_type_register(&thing_type, NULL), XR_OK);
	v = xr_value_new_opaque("serve.Thing", &thing);
	cr_assert_not_null(v);
	cr_expect_eq(rref_begin(wire_peer[1], birth), XR_OK);
	rref_made(birth, v, false);
	xr_value_unref(v);
}

static void
make_thing(const struct rref_wire *birth)
{
	bear_thing(birth);
	wire_forget();
}

/* A remote call, whose answer stays here as @birth. */
static void
call_remote(const char *func, const struct rref_wire *birth)
{
	const uint32_t head[3] = { MAGIC, 1, 0 };
	uint8_t data[WIRE_BODY] = { 0 };
	size_t len = 128;

	memcpy(data, head, sizeof(head));
	memcpy(data + 64, birth, sizeof(*birth));
	len += wire_encode(plain(), data + len, sizeof(data) - len);
	request(func, MESSAGE_REQUEST, MESSAGE_VALUE | MESSAGE_REMOTE, data,
		len);
}

/* The caller hears that it is there, and fetches it; once. */
Test(serve_remote, the_answer_of_a_remote_call_stays_here)
{
	const struct rref_wire birth = word(1, 5, 1, 6, 0),
			       other = word(1, 7, 1, 8, 0);
	struct xr_value *v;

	answer = echo;
	call_remote("any", &birth);
	cr_expect_eq(answered, XR_OK);
	v = wire_answer(1, 5);
	cr_assert_not_null(v);
	cr_expect_eq(xr_value_kind(v), XR_NIL);
	xr_value_unref(v);
	wire_forget();
	call_remote("any", &birth);
	cr_expect_eq(runs, 1);
	cr_expect_eq(wire_left(), 0);
	wire_say(1, MESSAGE_RREF_FETCH, 9, &birth, sizeof(birth));
	v = wire_answer(1, 9);
	cr_assert_not_null(v);
	cr_expect_eq(xr_value_kind(v), XR_LIST);
	cr_expect_eq(xr_value_count(v), 1);
	xr_value_unref(v);
	/* One that fails makes its value fail. */
	call_remote("none", &other);
	cr_expect(wire_failed(1, 5, XR_E_NO_FUNCTION, "has no function"));
	wire_say(1, MESSAGE_RREF_FETCH, 9, &other, sizeof(other));
	cr_expect(wire_failed(1, 9, XR_E_NO_FUNCTION, "has no function"));
	/* One that says not what it makes is none. */
	request("any", MESSAGE_REQUEST, MESSAGE_VALUE | MESSAGE_REMOTE, "x", 1);
	cr_expect(wire_failed(1, 5, XR_E_PROTO, ""));
	cr_expect_eq(runs, 1);
}

TestSuite(serve_method, .timeout = 20, .init = begin);

Test(serve_method, a_method_runs_with_its_object)
{
	const struct rref_wire birth = word(1, 5, 1, 6, 0);
	struct xr_value *v;
	int64_t n = 0;

	make_thing(&birth);
	call_method("twice", &birth);
	wire_await(1); /* of another thread */
	v = wire_answer(1, 5);
	cr_assert_not_null(v);
	cr_expect_eq(xr_value_get_i64(v, &n), XR_OK);
	cr_expect_eq(n, 17);
	xr_value_unref(v);
	wire_end();
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

static struct xr_value *
await_answer(void)
{
	struct xr_value *v = wire_answer(1, 5);

	for (unsigned i = 1; v == NULL; i++) {
		wire_await(i);
		v = wire_answer(1, 5);
	}
	return v;
}

/* The value of its object is made later. */
Test(serve_method, a_method_whose_object_is_missing_has_not_returned)
{
	const struct rref_wire birth = word(1, 5, 1, 6, 0);

	call_method("twice", &birth);
	hear_running();
	cr_expect_str_eq(said, RUNNING "a method, called by one (1)\n");
	cr_expect_eq(serve_count(false), 1);
	bear_thing(&birth);
	xr_value_unref(await_answer());
	cr_expect_eq(serve_count(false), 0);
	wire_end();
}

/* Each allocation fails once: it is answered all the same, and once. */
Test(serve_method, a_method_without_memory_is_answered)
{
	const struct rref_wire birth = word(1, 5, 1, 6, 0);
	uint8_t data[WIRE_BODY] = { 0 };
	struct xr_body body = { .data = data };
	unsigned at, count;
	bool whole = false;

	make_thing(&birth);
	body.len = method_call(data, "twice", &birth);
	for (at = 1; !whole && at < 60; at++) {
		wire_forget();
		was_short = false;
		until_short = at;
		played.host.deliver(played.host.ctx, wire_peer[1],
			&method_record, &body);
		until_short = 0;
		whole = !was_short;
		wire_await(1);
		count = (wire_sent(MESSAGE_REPLY, 1) != NULL) +
			(wire_sent(MESSAGE_ERROR, 1) != NULL);
		cr_expect_eq(count, 1, "%u", at);
		cr_expect_eq(wire_left(), 0, "%u", at);
		cr_expect_eq(serve_count(false), 0);
	}
	cr_expect(at > 5 && at < 60, "%u", at);
	wire_end();
}

/* --- references among the arguments ------------------------------------------------- */

/* A call with a reference among its arguments. */
static void
call_with(const char *func, const struct rref_wire *wire)
{
	const uint32_t head[3] = { MAGIC, 0, 1 };
	uint8_t data[WIRE_BODY] = { 0 };
	size_t len = 128;

	memcpy(data, head, sizeof(head));
	memcpy(data + 64, wire, sizeof(*wire));
	len += wire_encode(plain(), data + len, sizeof(data) - len);
	request(func, MESSAGE_REQUEST, MESSAGE_VALUE, data, len);
}

TestSuite(serve_refs, .timeout = 20, .init = begin);

/* Also a short function, which then runs in another thread. */
Test(serve_refs, a_call_waits_until_the_owners_know_of_its_references)
{
	const struct rref_wire wire = word(2, 5, 1, 6, 0);
	struct xr_value *v;

	answer = echo;
	call_with("any", &wire);
	cr_expect_eq(serve_count(false), 1);
	cr_expect_eq(serve_count(true), 0);
	cr_expect_null(wire_answer(1, 5));
	say(2, MESSAGE_RREF_CONFIRM, wire);
	v = await_answer();
	cr_expect_eq(runs, 1);
	cr_expect_eq(xr_value_kind(v), XR_LIST);
	xr_value_unref(v);
	wire_end();
}

/* What it has of the message is given back once. */
Test(serve_refs, a_call_with_references_is_deferred)
{
	const struct rref_wire wire = word(1, 5, 1, 6, RREF_CONFIRMED);

	answer = keep_open;
	open_call = NULL;
	call_with("later", &wire);
	cr_assert_not_null(open_call);
	cr_expect_eq(xr_reply(open_call, xr_value_new_nil()), XR_OK);
	xr_value_unref(await_answer());
	xr_call_drop(open_call);
	wire_end();
}
