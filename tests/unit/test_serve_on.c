/* SPDX-License-Identifier: Apache-2.0 */
/* test_serve_on.c - calls of a peer that go on: deferred, cancelled, answered by futures,
 * with what stays here, and methods of that. */
#include <sys/mman.h>

#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "tests/unit/serve_rig.h"

TestSuite(serve_on, .timeout = 20, .init = begin, .fini = wire_end);

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

Test(serve_on, a_call_is_cancelled_by_its_caller_only)
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
Test(serve_on, a_call_whose_agent_ended_is_answered_in_vain)
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

static struct xr_call *deferred[64];
static unsigned depth, most;

/* Each of them is a reference. */
static enum xr_status
defer_thrice(struct xr_call *call, struct xr_value *args)
{
	(void)args;
	deferred[0] = xr_call_defer(call);
	deferred[1] = xr_call_defer(call);
	deferred[2] = xr_call_defer(deferred[0]);
	return XR_OK;
}

Test(serve_on, a_call_that_all_have_dropped_is_answered_for)
{
	answer = defer_thrice;
	call("later", plain());
	cr_assert_not_null(deferred[0]);
	cr_expect_eq(deferred[1], deferred[0]);
	cr_expect_eq(deferred[2], deferred[0]);
	cr_expect_eq(serve_count(false), 1);
	cr_expect_eq(serve_count(true), 1);
	xr_call_drop(NULL);
	xr_call_drop(deferred[0]);
	xr_call_drop(deferred[1]);
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(serve_count(false), 1);
	xr_call_drop(deferred[2]);
	cr_expect(wire_failed(1, 5, XR_E_CANCELLED,
		"the call was dropped without an answer"));
	cr_expect_eq(serve_count(false), 0);
	cr_expect_eq(wire_left(), 0);
}

static enum xr_status
answer_deferred(struct xr_call *call, struct xr_value *args)
{
	deferred[0] = xr_call_defer(call);
	cr_expect_eq(serve_count(false), 1);
	cr_expect_eq(serve_count(true), 0);
	answered = xr_reply(deferred[0], xr_value_ref(args));
	cr_expect_eq(xr_reply(call, xr_value_ref(args)), XR_E_STATE);
	return XR_OK;
}

/* Whoever deferred it may give a value, also while the function runs. */
Test(serve_on, a_call_that_is_deferred_is_answered_with_a_value)
{
	struct xr_value *v;

	answer = answer_deferred;
	call("later", plain());
	cr_expect_eq(answered, XR_OK);
	v = wire_answer(1, 5);
	cr_assert_not_null(v);
	cr_expect_eq(xr_value_kind(v), XR_LIST);
	xr_value_unref(v);
	xr_call_drop(deferred[0]);
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(serve_count(false), 0);
}

static enum xr_status
answer_as_called(struct xr_call *call, struct xr_value *args)
{
	deferred[0] = xr_call_defer(call);
	answered = xr_reply(call, xr_value_ref(args));
	cr_expect_eq(xr_reply(call, xr_value_ref(args)), XR_E_STATE);
	cr_expect_eq(xr_reply(deferred[0], xr_value_ref(args)), XR_E_STATE);
	return XR_OK;
}

Test(serve_on, a_call_that_is_deferred_is_answered_once)
{
	answer = answer_as_called;
	call("any", plain());
	cr_expect_eq(answered, XR_OK);
	cr_expect_not_null(wire_sent(MESSAGE_REPLY, 1));
	xr_call_drop(deferred[0]);
	cr_expect_eq(wire_left(), 0);
}

/* Its arguments are its own, with the names. */
Test(serve_on, a_call_that_is_deferred_keeps_its_named_arguments)
{
	struct xr_value *named = xr_value_new_dict();
	int64_t n = 0;

	cr_assert_eq(xr_value_put(named, "base", 4, xr_value_new_i64(8)),
		XR_OK);
	answer = keep_open;
	open_call = NULL;
	call("later", call_of(one_int(7), named, xr_value_new_nil()));
	cr_assert_not_null(open_call);
	named = xr_call_named(open_call);
	cr_assert_not_null(named);
	cr_expect_eq(xr_value_get_i64(xr_value_find(named, "base", 4), &n),
		XR_OK);
	cr_expect_eq(n, 8);
	xr_call_drop(open_call);
}

static pthread_t runner;

static enum xr_status
note_runner(struct xr_call *call, struct xr_value *args)
{
	(void)call;
	(void)args;
	runner = pthread_self();
	return XR_OK;
}

Test(serve_on, only_a_short_function_runs_where_its_call_is_read)
{
	answer = note_runner;
	call("any", plain());
	cr_expect(pthread_equal(runner, pthread_self()));
	call("slow", plain());
	wire_await(2);
	cr_expect_not(pthread_equal(runner, pthread_self()));
}

/* --- functions that run yet ----------------------------------------------------- */

static char said[4096]; /* by serve_tell_running() */

static void
hear_running(void)
{
	int was = dup(STDERR_FILENO), fd = memfd_create("said", MFD_CLOEXEC);
	ssize_t len;

	cr_assert(was != -1 && fd != -1);
	dup2(fd, STDERR_FILENO);
	serve_tell_running();
	dup2(was, STDERR_FILENO);
	close(was);
	len = pread(fd, said, sizeof(said) - 1, 0);
	close(fd);
	cr_assert_geq(len, 0);
	said[len] = '\0';
}

/* So many calls within calls. */
static enum xr_status
nest(struct xr_call *outer, struct xr_value *args)
{
	(void)args;
	deferred[depth] = xr_call_defer(outer);
	cr_assert_not_null(deferred[depth]);
	if (++depth < most)
		call("later", plain());
	else
		hear_running();
	return XR_OK;
}

static void
run_nested(unsigned count)
{
	answer = nest;
	depth = 0;
	most = count;
	call("any", plain());
	cr_assert_eq(depth, count);
}

static void
drop_nested(void)
{
	for (unsigned i = 0; i < most; i++)
		xr_call_drop(deferred[i]);
}

#define RUNNING \
	"xrun: self (0) cannot leave: these functions have not returned: "

Test(serve_on, functions_that_run_are_told)
{
	char all[60 * 26 + 1] = "";

	hear_running();
	cr_expect_str_eq(said, "");
	run_nested(1);
	cr_expect_str_eq(said, RUNNING "any, called by one (1)\n");
	/* It has returned, and is not answered. */
	hear_running();
	cr_expect_str_eq(said, "");
	drop_nested();
	run_nested(2);
	cr_expect_str_eq(said,
		RUNNING "later, called by one (1); any, called by one (1)\n");
	drop_nested();
	/* As many as 1023 bytes have room for. */
	run_nested(60);
	drop_nested();
	for (size_t i = 0; i < 60; i++)
		memcpy(all + 26 * i, "later, called by one (1); ", 27);
	memcpy(all + 1023, "\n", 2);
	cr_assert_eq(strncmp(said, RUNNING, strlen(RUNNING)), 0);
	cr_expect_str_eq(said + strlen(RUNNING), all);
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

Test(serve_on, what_a_future_ends_with_is_the_answer)
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
Test(serve_on, a_reference_goes_with_its_answer_only)
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
Test(serve_on, the_answer_of_a_remote_call_stays_here)
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
