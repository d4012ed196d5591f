/* SPDX-License-Identifier: Apache-2.0 */
/* test_serve_on.c - calls of a peer that go on: deferred, cancelled, answered by futures,
 * with what stays here, and those of no peer. */
#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "tests/unit/serve_rig.h"
#include "worker/rpc/serve_inner.h"

TestSuite(serve_on, .timeout = 20, .init = begin, .fini = wire_end);

/* --- calls that go on ----------------------------------------------------------- */

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

/* --- calls that no peer has made ------------------------------------------------------- */

static struct xr_value *desk_value;
static bool desk_failed, desk_cancels;
static unsigned desk_answers;

static void
take_answer(struct xr_call *of, struct xr_value *value, bool is_error)
{
	cr_expect_eq(of->ctx, &desk_answers);
	desk_answers++;
	desk_value = value;
	desk_failed = is_error;
}

static bool
is_cancelled(const struct xr_call *of)
{
	cr_expect_eq(of->ctx, &desk_answers);
	return desk_cancels;
}

static const struct call_desk desk = { take_answer, is_cancelled };

/* The desk was given an ERROR, or a number; it is let go. */
static void
given(enum xr_status status, const char *text, int64_t number)
{
	struct xr_failure f = { .size = sizeof(f) };
	int64_t n = 0;

	cr_expect_eq(desk_answers, 1);
	cr_expect_eq(desk_failed, status != XR_OK);
	if (status != XR_OK) {
		cr_assert_eq(xr_value_failure(desk_value, &f), XR_OK);
		cr_expect_eq(f.status, status);
		cr_expect_str_eq(f.text, text);
	} else {
		cr_expect_eq(xr_value_get_i64(desk_value, &n), XR_OK);
		cr_expect_eq(n, number);
	}
	xr_value_unref(desk_value);
	desk_value = NULL;
	desk_answers = 0;
}

#define OF_DESK \
	((struct xr_call){ .desk = &desk, \
		.ctx = &desk_answers, \
		.values = true })

Test(serve_on, a_call_of_a_desk_is_answered_there)
{
	struct xr_call at = OF_DESK;
	uint32_t id = 9;

	cr_expect_str_eq(xr_call_caller(&at, &id), "");
	cr_expect_eq(id, 9);
	cr_expect_not(xr_call_cancelled(&at));
	desk_cancels = true;
	cr_expect(xr_call_cancelled(&at));
	cr_expect_eq(xr_reply(&at, xr_value_new_i64(8)), XR_OK);
	given(XR_OK, NULL, 8);
	cr_expect_not(xr_call_cancelled(&at));
	cr_expect_eq(xr_reply(&at, xr_value_new_i64(8)), XR_E_STATE);
	cr_expect_eq(xr_reply_fail(&at, XR_E_RANGE, "no"), XR_E_STATE);
	cr_expect_eq(desk_answers, 0);
	at = OF_DESK;
	cr_expect_eq(xr_reply_fail(&at, XR_E_RANGE, "no"), XR_OK);
	given(XR_E_RANGE, "no", 0);
	at = OF_DESK;
	cr_expect_eq(xr_reply_fail(&at, XR_E_SCHEMA, "none"), XR_OK);
	given(XR_E_SCHEMA, "none", 0);
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(serve_count(false), 0);
}

/* It is none of those that peers cancel, or that an agent's end does. */
Test(serve_on, a_call_of_a_desk_is_not_the_agents)
{
	struct xr_call at = OF_DESK, *defer;

	defer = xr_call_defer(&at);
	cr_assert_not_null(defer);
	atomic_store(&defer->runs, true);
	cr_expect_eq(serve_count(false), 0);
	cr_expect_eq(serve_count(true), 0);
	wire_say(1, MESSAGE_CANCEL, 0, NULL, 0);
	serve_lost(NULL);
	serve_forget_all();
	cr_expect_not(xr_call_cancelled(defer));
	cr_expect_not(atomic_load(&defer->cancelled));
	cr_expect_not(atomic_load(&defer->orphan));
	hear_running();
	cr_expect_str_eq(said, "");
	/* The stack's reference, and that of the one who deferred it. */
	xr_call_drop(defer);
	xr_call_drop(defer);
	given(XR_E_CANCELLED, "the call was dropped without an answer", 0);
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
