/* SPDX-License-Identifier: Apache-2.0 */
/* test_call.c - calls with values: of a process that calls itself. */
#include <errno.h>
#include <fcntl.h>

#include <sys/wait.h>

#include <xrun/call.h>
#include <xrun/rref.h>
#include <xrun/tensor.h>

#include "base/clock.h"
#include "tests/unit/agent_rig.h"
#include "worker/rpc/pending.h"

TestSuite(call, .timeout = 120);

/* --- what is called -------------------------------------------------------- */

static enum xr_status
add(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return xr_reply(call,
		xr_value_new_i64(int_at(args, 0) + int_at(args, 1)));
}

static enum xr_status
echo(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return xr_reply(call, xr_value_ref(args));
}

/* [arguments, named arguments] */
static enum xr_status
echo_all(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_value *list = xr_value_new_list();

	(void)ctx;
	xr_value_append(list, xr_value_ref(args));
	xr_value_append(list, xr_value_ref(xr_call_named(call)));
	return xr_reply(call, list);
}

/* What was asked for, it fails with. */
static const char *words;

static enum xr_status
fail_with_words(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	return xr_reply_fail(call, XR_E_RANGE, words);
}

static enum xr_status
fail_with_status(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)call;
	(void)args;
	(void)ctx;
	return XR_E_NODEV;
}

static _Atomic bool was_cancelled;

static enum xr_status
block(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	gate_pass();
	atomic_store(&was_cancelled, xr_call_cancelled(call));
	return xr_reply(call, xr_value_ref(args));
}

/* Deferred, and never answered: the test drops them. */
#define HELD_MAX 20000
static struct xr_call *held[HELD_MAX];
static _Atomic unsigned held_count;

static enum xr_status
hold(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	held[atomic_fetch_add(&held_count, 1)] = xr_call_defer(call);
	return XR_OK;
}

static void
drop_held(void)
{
	for (unsigned i = 0; i < held_count; i++)
		xr_call_drop(held[i]);
}

/* Calls back, and gives what that gives: the function's name, its time in ms. */
static enum xr_status
call_back(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_rpc_call next = XR_RPC_CALL;
	struct xr_value *value = NULL;
	struct xr_error err = { 0 };
	enum xr_status status;

	(void)ctx;
	next.to = xr_call_caller(call, NULL);
	next.func = xr_value_data(xr_value_at(args, 0), NULL);
	next.timeout = int_at(args, 1) * NS_PER_MS;
	next.args = INTS(20, 22);
	status = xr_rpc_sync(&next, &value, &err);
	xr_value_unref(next.args);
	return status == XR_OK ? xr_reply(call, value) :
				 xr_reply_fail(call, status, err.text);
}

/* Itself, so many times, and one more for each. */
static enum xr_status
descend(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t depth = int_at(args, 0);
	struct xr_value *value = NULL;
	struct xr_error err = { 0 };
	enum xr_status status = XR_OK;

	(void)ctx;
	if (depth == 0)
		return xr_reply(call, xr_value_new_i64(0));
	status = ask("descend", INTS(depth - 1), &value, &err);
	return status == XR_OK ?
		xr_reply(call, xr_value_new_i64(int_of(value) + 1)) :
		xr_reply_fail(call, status, err.text);
}

/* Results of a call and of a wait for a future inside a short function. */
static enum xr_status short_waited, short_waited_future;

static enum xr_status
wait_though_short(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_future *never = xr_future_new(NULL);
	struct xr_value *value = NULL;

	(void)args;
	(void)ctx;
	short_waited = ask("add", INTS(1, 1), &value, NULL);
	short_waited_future = xr_future_wait(never, XR_SECONDS(10), NULL, NULL);
	xr_future_unref(never);
	return xr_reply(call, xr_value_new_nil());
}

static const struct xr_func functions[] = {
	FUNC("add", "ii", add, XR_FN_SHORT),
	FUNC("add.long", "ii", add, 0),
	FUNC("echo", NULL, echo, 0),
	FUNC("echo_all", NULL, echo_all, 0),
	FUNC("fail.words", NULL, fail_with_words, 0),
	FUNC("fail.status", NULL, fail_with_status, 0),
	FUNC("block", NULL, block, 0),
	FUNC("hold", NULL, hold, 0),
	FUNC("back", "Ti", call_back, 0),
	FUNC("descend", "i", descend, 0),
	FUNC("short.waits", NULL, wait_though_short, XR_FN_SHORT),
};

static void
begin_with(uint32_t threads)
{
	offer(functions, sizeof(functions) / sizeof(functions[0]));
	join(threads);
}

/* --- who is called --------------------------------------------------------- */

static int64_t
add_by(const struct xr_rpc_call *how)
{
	struct xr_rpc_call call = *how;
	struct xr_value *value = NULL;
	struct xr_future *future = NULL;
	struct xr_rref *rref = NULL;
	struct xr_error err = { 0 };
	int64_t sum;

	call.func = "add";
	call.args = INTS(2, 3);
	cr_assert_eq(xr_rpc_sync(&call, &value, &err), XR_OK, "%s", err.text);
	sum = int_of(value);
	value = NULL;
	cr_assert_eq(xr_rpc_async(&call, &future, &err), XR_OK, "%s", err.text);
	cr_assert_eq(end_of(future, &value, &err), XR_OK, "%s", err.text);
	cr_expect_eq(int_of(value), sum);
	value = NULL;
	cr_assert_eq(xr_rpc_remote(&call, &rref, &err), XR_OK, "%s", err.text);
	cr_assert_eq(xr_rref_fetch(rref, XR_SECONDS(60), &value, &err), XR_OK,
		"%s", err.text);
	cr_expect_eq(int_of(value), sum);
	xr_rref_unref(rref);
	xr_value_unref(call.args);
	return sum;
}

Test(call, AC_R1_by_name_by_id_and_by_what_was_found)
{
	struct xr_rpc_call call = XR_RPC_CALL;
	struct xr_worker self = { .size = sizeof(self) }, found = self;

	begin_with(0);
	call.to = "self";
	cr_expect_eq(add_by(&call), 5);
	call.to = NULL;
	call.id = 0;
	cr_expect_eq(add_by(&call), 5);
	cr_assert_eq(xr_worker_self(&self, NULL), XR_OK);
	cr_assert_eq(xr_worker_find("self", &found, NULL), XR_OK);
	cr_expect_eq(memcmp(&self, &found, sizeof(self)), 0);
	call.to = found.name;
	cr_expect_eq(add_by(&call), 5);
	leave();
}

Test(call, AC_R2_asker_and_asked_are_named_if_there_is_no_such)
{
	struct xr_worker w = { .size = sizeof(w) };
	struct xr_rpc_call call = XR_RPC_CALL;
	struct xr_future *future = NULL;
	struct xr_error err = { 0 };

	begin_with(0);
	call.func = "add";
	call.to = "nobody";
	cr_expect_eq(xr_rpc_sync(&call, NULL, &err), XR_E_NOTFOUND);
	cr_expect(strstr(err.text, "self (0)") && strstr(err.text, "nobody"),
		"%s", err.text);
	cr_expect_eq(xr_rpc_async(&call, &future, &err), XR_E_NOTFOUND);
	cr_expect_null(future);
	call.to = NULL;
	for (int i = 0; i < 3; i++) {
		call.id = (const int64_t[]){ 2, -1, INT64_MAX }[i];
		memset(&err, 0, sizeof(err));
		cr_expect_eq(xr_rpc_sync(&call, NULL, &err), XR_E_NOTFOUND);
		cr_expect(strstr(err.text, "self (0)"), "%s", err.text);
		cr_expect_eq(xr_worker_find_id(call.id, &w, &err),
			XR_E_NOTFOUND);
	}
	cr_expect_eq(xr_worker_find("nobody", &w, &err), XR_E_NOTFOUND);
	leave();
}

/* All that needs an agent, which there is not. */
static void
refuse_all(void)
{
	struct xr_worker w = { .size = sizeof(w) };
	struct xr_rpc_call call = XR_RPC_CALL;
	struct xr_raw_call raw = { .size = sizeof(raw) };
	struct xr_raw_reply reply;
	struct xr_future *future = NULL;
	struct xr_peer *peer = NULL;
	struct xr_error err = { 0 };
	size_t count;
	int64_t t;

	call.to = "self";
	call.func = "add";
	cr_expect_eq(xr_rpc_sync(&call, NULL, &err), XR_E_STATE);
	cr_expect(strstr(err.text, "xr_rpc_init()"), "%s", err.text);
	cr_expect_eq(xr_rpc_async(&call, &future, NULL), XR_E_STATE);
	cr_expect_eq(xr_call_sync(&raw, &reply, NULL), XR_E_STATE);
	cr_expect_eq(xr_call_async(&raw, &future, NULL), XR_E_STATE);
	cr_expect_eq(xr_call_oneway(&raw, NULL), XR_E_STATE);
	cr_expect_eq(xr_peer_find("self", 0, &peer, NULL), XR_E_STATE);
	cr_expect_eq(xr_worker_self(&w, NULL), XR_E_STATE);
	cr_expect_eq(xr_worker_find("self", &w, NULL), XR_E_STATE);
	cr_expect_eq(xr_worker_find_id(0, &w, NULL), XR_E_STATE);
	cr_expect_eq(xr_worker_list(&w, 1, &count, NULL), XR_E_STATE);
	cr_expect_eq(xr_rpc_set_timeout(1, NULL), XR_E_STATE);
	cr_expect_eq(xr_rpc_get_timeout(&t, NULL), XR_E_STATE);
	cr_expect_eq(xr_rpc_barrier(NULL, NULL), XR_E_STATE);
	cr_expect_eq(xr_rpc_shutdown(0, 0, NULL), XR_E_STATE);
}

Test(call, AC_R3_without_an_agent_nothing_can_be_asked)
{
	refuse_all();
	begin_with(0);
	cr_expect_eq(try_to_join(0, NULL), XR_E_STATE, "there is one");
	leave();
	refuse_all();
	join(0);
	leave();
	refuse_all();
}

Test(call, after_a_fork_the_agent_is_the_parents)
{
	struct xr_future *pending, *own = xr_future_new(NULL);
	pid_t pid;
	int how;

	begin_with(0);
	pending = begin("block", NULL);
	gate_await(1);
	pid = fork();
	cr_assert_neq(pid, -1);
	if (pid == 0) {
		bool good = xr_rpc_barrier(NULL, NULL) == XR_E_STATE &&
			try_to_join(0, NULL) == XR_E_STATE &&
			xr_rpc_shutdown(0, 0, NULL) == XR_E_STATE &&
			xr_future_wait(pending, XR_SECONDS(60), NULL, NULL) ==
				XR_E_STATE &&
			xr_future_set(own, xr_value_new_nil()) == XR_OK &&
			xr_future_wait(own, 0, NULL, NULL) == XR_OK;

		_exit(good ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &how, 0), pid);
	cr_expect_eq(how, 0);
	gate_open();
	cr_expect_eq(end_of(pending, NULL, NULL), XR_OK);
	cr_expect_not(xr_future_done(own));
	xr_future_unref(own);
	leave();
}

/* --- many ------------------------------------------------------------------ */

Test(call, AC_R4_a_thousand_calls_are_under_way_at_once)
{
	static struct xr_future *future[1000];
	struct xr_value *value = NULL;

	begin_with(0);
	for (int64_t i = 0; i < 1000; i++)
		future[i] = begin(i % 2 == 0 ? "add" : "add.long", INTS(i, i));
	for (int64_t i = 0; i < 1000; i++) {
		cr_assert_eq(end_of(future[i], &value, NULL), XR_OK);
		cr_expect_eq(int_of(value), 2 * i);
	}
	leave();
}

/* @side x @side of floats that are @side; in a list. */
static struct xr_value *
square(int64_t side)
{
	struct xr_tensor_desc desc = {
		.size = sizeof(desc),
		.dtype = XR_DT_F32,
		.ndim = 2,
		.shape = { side, side },
	};
	struct xr_value *tensor = NULL;
	float *data;

	cr_assert_eq(xr_tensor_new(&desc, &tensor, NULL), XR_OK);
	data = xr_tensor_data(tensor, NULL);
	for (int64_t i = 0; i < side * side; i++)
		data[i] = (float)side;
	return xr_value_new_list_of(&tensor, 1);
}

Test(call, AC_R5_a_hundred_tensors_come_back_to_the_right_futures)
{
	struct xr_future *future[100];
	struct xr_value *value = NULL, *same;

	begin_with(0);
	for (int64_t i = 0; i < 100; i++)
		future[i] = begin("echo", square(i + 1));
	for (int64_t i = 0; i < 100; i++) {
		cr_assert_eq(end_of(future[i], &value, NULL), XR_OK);
		same = square(i + 1);
		cr_expect(xr_value_equal(value, same), "%d", (int)i);
		xr_value_unref(same);
		xr_value_unref(value);
	}
	leave();
}

Test(call, AC_R17_one_tensor_twice_arrives_as_one_storage)
{
	struct xr_value *args, *value = NULL;

	begin_with(0);
	args = square(40);
	xr_value_append(args, xr_value_ref(xr_value_at(args, 0)));
	cr_assert_eq(ask("echo", args, &value, NULL), XR_OK);
	cr_assert_eq(xr_value_count(value), 2);
	cr_expect(xr_tensor_same(xr_value_at(value, 0), xr_value_at(value, 1)));
	xr_value_unref(value);
	leave();
}

static void *
call_often(void *failed)
{
	struct xr_value *value = NULL;

	for (int64_t i = 0; i < 50; i++)
		if (ask(i % 2 == 0 ? "add" : "add.long", INTS(i, 1), &value,
			    NULL) != XR_OK ||
			int_of(value) != i + 1)
			atomic_fetch_add((_Atomic int *)failed, 1);
	return NULL;
}

Test(call, bound_and_named_arguments_arrive_as_such)
{
	struct xr_rpc_call call = XR_RPC_CALL;
	struct xr_value *value = NULL, *args;
	struct xr_error err = { 0 };

	begin_with(0);
	call.to = "self";
	call.func = NULL;
	call.bound = xr_fn_bind("echo_all", xr_value_new_i64(7));
	call.args = INTS(8);
	call.named = xr_value_new_dict();
	cr_assert_eq(xr_value_put(call.named, "n", 1, xr_value_new_i64(9)),
		XR_OK);
	cr_assert_eq(xr_rpc_sync(&call, &value, &err), XR_OK, "%s", err.text);
	args = xr_value_at(value, 0);
	cr_expect_eq(xr_value_count(args), 2);
	cr_expect_eq(int_at(args, 0), 7);
	cr_expect_eq(int_at(args, 1), 8);
	cr_expect_eq(int_of(xr_value_ref(xr_value_find(xr_value_at(value, 1),
			     "n", 1))),
		9);
	xr_value_unref(value);
	xr_value_unref(call.bound);
	xr_value_unref(call.args);
	xr_value_unref(call.named);
	leave();
}

Test(call, sixty_four_threads_call_at_once)
{
	pthread_t thread[64];
	_Atomic int failed = 0;

	begin_with(4);
	for (int i = 0; i < 64; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, call_often,
				     &failed),
			0);
	for (int i = 0; i < 64; i++)
		pthread_join(thread[i], NULL);
	cr_expect_eq(failed, 0);
	leave();
}

/* --- errors ---------------------------------------------------------------- */

/* Standard error goes into a file, from here to what_was_said(). */
static int said_fd, real_stderr;

static void
listen_to_stderr(void)
{
	char path[] = "/tmp/xrun-said-XXXXXX";

	said_fd = mkstemp(path);
	cr_assert_neq(said_fd, -1);
	unlink(path);
	real_stderr = dup(STDERR_FILENO);
	dup2(said_fd, STDERR_FILENO);
}

static const char *
what_was_said(void)
{
	static char text[32768];
	ssize_t n = pread(said_fd, text, sizeof(text) - 1, 0);

	dup2(real_stderr, STDERR_FILENO);
	close(real_stderr);
	close(said_fd);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

Test(call, AC_R7_a_function_that_fails_is_named_with_worker_and_backtrace)
{
	struct xr_failure f = { .size = sizeof(f) }, cause = f;
	struct xr_future *future;
	struct xr_error err = { 0 };
	struct xr_value *error;
	const char *said;

	begin_with(0);
	words = "too far";
	listen_to_stderr();
	future = begin("fail.words", NULL);
	cr_expect_eq(xr_future_wait(future, XR_SECONDS(60), NULL, &err),
		XR_E_REMOTE);
	said = what_was_said();
	error = xr_future_error(future);
	cr_assert_eq(xr_value_failure(error, &f), XR_OK);
	cr_expect_str_eq(f.func, "fail.words");
	cr_expect_str_eq(f.worker, "self");
	cr_expect_eq(f.worker_id, 0);
	cr_expect(strstr(f.text, "fail.words on self (0)"), "%s", f.text);
	cr_expect(strstr(f.text, "too far"), "%s", f.text);
	/* All frames are there: it begins with the one that takes the trace. */
	cr_expect(f.backtrace && strstr(f.backtrace, "#0  remote_error"), "%s",
		f.backtrace);
	cr_assert_eq(xr_value_failure(f.cause, &cause), XR_OK);
	cr_expect_eq(cause.status, XR_E_RANGE, "its own status");
	cr_expect_str_eq(cause.text, "too far");
	cr_expect(strstr(said, "fail.words on self (0)") && strstr(said, "#0"),
		"%s", said);
	xr_value_unref(error);
	xr_future_unref(future);
	leave();
}

Test(call, AC_R7_a_status_that_a_function_returns_is_the_cause)
{
	struct xr_failure f = { .size = sizeof(f) }, cause = f;
	struct xr_future *future;
	struct xr_value *error;

	begin_with(0);
	future = begin("fail.status", NULL);
	cr_expect_eq(xr_future_wait(future, XR_SECONDS(60), NULL, NULL),
		XR_E_REMOTE);
	error = xr_future_error(future);
	cr_assert_eq(xr_value_failure(error, &f), XR_OK);
	cr_assert_eq(xr_value_failure(f.cause, &cause), XR_OK);
	cr_expect_eq(cause.status, XR_E_NODEV);
	xr_value_unref(error);
	xr_future_unref(future);
	leave();
}

Test(call, AC_R8_whatever_an_error_says_arrives_as_it_was_said)
{
	struct xr_failure f = { .size = sizeof(f) }, cause = f;
	struct xr_future *future;
	struct xr_value *error;

	begin_with(0);
	words = "line\n\"quoted\" 'so' \\n \\x41 %s %n\ttab\r\n"
		"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x90\x99 \xe6\xbc\xa2";
	future = begin("fail.words", NULL);
	cr_expect_eq(xr_future_wait(future, XR_SECONDS(60), NULL, NULL),
		XR_E_REMOTE);
	error = xr_future_error(future);
	cr_assert_eq(xr_value_failure(error, &f), XR_OK);
	cr_assert_eq(xr_value_failure(f.cause, &cause), XR_OK);
	cr_expect_str_eq(cause.text, words);
	cr_expect(strstr(f.text, words), "%s", f.text);
	xr_value_unref(error);
	xr_future_unref(future);
	leave();
}

Test(call, AC_R9_a_function_that_nobody_registered)
{
	struct xr_value *value = NULL;
	struct xr_error err = { 0 };

	begin_with(0);
	cr_expect_eq(ask("no.such", INTS(1), NULL, &err), XR_E_NO_FUNCTION);
	cr_expect(strstr(err.text, "self (0)") && strstr(err.text, "no.such"),
		"%s", err.text);
	cr_expect_eq(ask("add", INTS(1), NULL, &err), XR_E_SCHEMA);
	cr_assert_eq(ask("add", INTS(1, 2), &value, NULL), XR_OK);
	cr_expect_eq(int_of(value), 3);
	leave();
}

/* A future cannot be a value; who wraps one in an object of his own has a type
 * without an encoder. */
Test(call, AC_R20_a_future_is_no_argument)
{
	const struct xr_type type = { .size = sizeof(type),
		.name = "a.future",
		.free = NULL };
	struct xr_future *own = xr_future_new(NULL);
	struct xr_value *args, *wrapped;
	struct xr_future *future = NULL;
	struct xr_error err = { 0 };
	struct xr_rpc_call call = XR_RPC_CALL;

	begin_with(0);
	cr_assert_eq(xr_type_register(&type, NULL), XR_OK);
	wrapped = xr_value_new_opaque("a.future", own);
	args = xr_value_new_list_of(&wrapped, 1);
	call.to = "self";
	call.func = "block";
	call.args = args;
	cr_expect_eq(xr_rpc_sync(&call, NULL, &err), XR_E_ENCODE);
	cr_expect(strstr(err.text, "a.future"), "%s", err.text);
	cr_expect_eq(xr_rpc_async(&call, &future, NULL), XR_E_ENCODE);
	cr_expect_null(future);
	xr_value_unref(args);
	leave();
	cr_expect_eq(gate.here, 0, "nothing was sent");
	xr_future_unref(own);
}

/* --- time ------------------------------------------------------------------ */

Test(call, AC_R10_a_timeout_says_its_limit_and_the_late_answer_is_nobodys)
{
	int64_t began = clock_now();
	struct xr_value *value = NULL;
	struct xr_error err = { 0 };

	begin_with(2);
	cr_expect_eq(ask_within("block", INTS(7), XR_SECONDS(0.1), &value,
			     &err),
		XR_E_TIMEOUT);
	cr_expect_geq(clock_now() - began, XR_SECONDS(0.1));
	cr_expect_lt(clock_now() - began, XR_SECONDS(30));
	cr_expect(strstr(err.text, "100 ms") && strstr(err.text, "self (0)"),
		"%s", err.text);
	cr_expect_null(value);
	gate_await(1);
	gate_open();
	/* Two may run: this one is answered when that one was, or is about to. */
	for (int64_t i = 0; i < 100; i++) {
		cr_assert_eq(ask("add.long", INTS(i, 1), &value, NULL), XR_OK);
		cr_expect_eq(int_of(value), i + 1);
	}
	leave();
}

Test(call, D_R7_whoever_serves_a_call_that_timed_out_can_know)
{
	begin_with(2);
	cr_expect_eq(ask_within("block", NULL, XR_SECONDS(0.05), NULL, NULL),
		XR_E_TIMEOUT);
	gate_await(1);
	/* Behind the word that it is over. */
	cr_expect_eq(ask("add", INTS(1, 1), NULL, NULL), XR_OK);
	gate_open();
	leave();
	/* The crew is gone: it has run. */
	cr_expect(was_cancelled);
}

Test(call, AC_R11_a_new_default_is_for_calls_to_come)
{
	struct xr_future *old, *new;
	int64_t t = 0;

	begin_with(4);
	cr_expect_eq(xr_rpc_get_timeout(&t, NULL), XR_OK);
	cr_expect_eq(t, XR_RPC_TIMEOUT_DEFAULT);
	old = begin_within("block", INTS(5), XR_SECONDS(200));
	gate_await(1);
	cr_assert_eq(xr_rpc_set_timeout(XR_SECONDS(0.001), NULL), XR_OK);
	new = begin_within("block", INTS(6), XR_TIMEOUT_DEFAULT);
	cr_expect_eq(end_of(new, NULL, NULL), XR_E_TIMEOUT);
	cr_expect_eq(ask_within("block", NULL, XR_TIMEOUT_DEFAULT, NULL, NULL),
		XR_E_TIMEOUT);
	cr_expect_not(xr_future_done(old));
	gate_open();
	cr_expect_eq(end_of(old, NULL, NULL), XR_OK);
	leave();
}

Test(call, AC_R12_XR_TIMEOUT_NEVER_has_no_limit)
{
	struct xr_future *never;

	begin_with(4);
	cr_assert_eq(xr_rpc_set_timeout(XR_SECONDS(0.001), NULL), XR_OK);
	never = begin_within("block", INTS(5), XR_TIMEOUT_NEVER);
	gate_await(1);
	cr_expect_eq(ask_within("block", NULL, XR_TIMEOUT_DEFAULT, NULL, NULL),
		XR_E_TIMEOUT, "the default is over");
	cr_expect_not(xr_future_done(never));
	gate_open();
	cr_expect_eq(end_of(never, NULL, NULL), XR_OK);
	leave();
}

Test(call, D_R10_negative_timeouts_are_refused)
{
	struct xr_rpc_call call = XR_RPC_CALL;

	begin_with(0);
	call.to = "self";
	call.func = "block";
	call.timeout = -2;
	cr_expect_eq(xr_rpc_sync(&call, NULL, NULL), XR_E_INVAL);
	call.timeout = INT64_MIN;
	cr_expect_eq(xr_rpc_sync(&call, NULL, NULL), XR_E_INVAL);
	cr_expect_eq(xr_rpc_set_timeout(-2, NULL), XR_E_INVAL);
	cr_expect_eq(xr_rpc_shutdown(0, -2, NULL), XR_E_INVAL);
	leave();
	cr_expect_eq(gate.here, 0);
}

static struct xr_value *
text_and_int(const char *text, int64_t n)
{
	struct xr_value *items[] = {
		xr_value_new_text(text, strlen(text)),
		xr_value_new_i64(n),
	};

	return xr_value_new_list_of(items, 2);
}

Test(call, AC_R13_one_thread_and_a_call_back_that_can_be_answered)
{
	struct xr_value *value = NULL;

	begin_with(1);
	cr_assert_eq(ask("back", text_and_int("add.long", 60000), &value, NULL),
		XR_OK);
	cr_expect_eq(int_of(value), 42);
	leave();
}

Test(call, AC_R13_one_thread_and_a_call_back_that_is_not_answered)
{
	int64_t began = clock_now();
	struct xr_failure f = { .size = sizeof(f) }, cause = f;
	struct xr_future *future;
	struct xr_value *error;

	begin_with(1);
	future = begin("back", text_and_int("hold", 200));
	cr_expect_eq(xr_future_wait(future, XR_SECONDS(50), NULL, NULL),
		XR_E_REMOTE, "D-R4: the inner limit, not the outer one");
	cr_expect_geq(clock_now() - began, XR_SECONDS(0.2));
	error = xr_future_error(future);
	cr_assert_eq(xr_value_failure(error, &f), XR_OK);
	cr_assert_eq(xr_value_failure(f.cause, &cause), XR_OK);
	cr_expect_eq(cause.status, XR_E_TIMEOUT);
	cr_expect(strstr(cause.text, "200 ms"), "%s", cause.text);
	xr_value_unref(error);
	xr_future_unref(future);
	drop_held();
	leave();
}

Test(call, D_R4_with_its_only_thread_blocked_answers_and_timeouts_arrive)
{
	struct xr_value *value = NULL;
	struct xr_future *blocked;

	begin_with(1);
	blocked = begin("block", NULL);
	gate_await(1);
	cr_expect_eq(ask("add", INTS(1, 2), &value, NULL), XR_OK);
	cr_expect_eq(int_of(value), 3);
	/* Nobody waits in the library: the future's time ends by itself. */
	cr_expect_eq(end_of(begin_within("add.long", INTS(1, 1),
				    XR_SECONDS(0.02)),
			     NULL, NULL),
		XR_E_TIMEOUT);
	gate_open();
	cr_expect_eq(end_of(blocked, NULL, NULL), XR_OK);
	leave();
}

Test(call, calls_within_calls_twenty_deep_with_one_thread)
{
	struct xr_value *value = NULL;

	begin_with(1);
	cr_assert_eq(ask("descend", INTS(20), &value, NULL), XR_OK);
	cr_expect_eq(int_of(value), 20);
	leave();
}

Test(call, a_short_function_that_would_wait_is_refused)
{
	begin_with(1);
	cr_expect_eq(ask("short.waits", NULL, NULL, NULL), XR_OK);
	cr_expect_eq(short_waited, XR_E_STATE);
	cr_expect_eq(short_waited_future, XR_E_STATE);
	leave();
}

Test(call, AC_R22_ten_thousand_timeouts_leave_nothing_behind)
{
	static struct xr_future *future[10000];

	begin_with(2);
	for (int i = 0; i < 10000; i++)
		future[i] = begin_within("hold", NULL, NS_PER_MS);
	for (int i = 0; i < 10000; i++)
		cr_expect_eq(end_of(future[i], NULL, NULL), XR_E_TIMEOUT);
	cr_expect_eq(pending_count(false), 0);
	leave();
	drop_held();
}

/* --- of many at once ------------------------------------------------------- */

Test(call, AC_R23_wait_all_blocks_nest)
{
	struct xr_future *outer, *inner;
	struct xr_error err = { 0 };

	begin_with(4);
	cr_assert_eq(xr_rpc_wait_end(0, NULL), XR_E_STATE);
	cr_assert_eq(xr_rpc_wait_begin(NULL), XR_OK);
	outer = begin("block", NULL);
	gate_await(1);
	cr_assert_eq(xr_rpc_wait_begin(NULL), XR_OK);
	words = "of the inner";
	inner = begin("fail.words", NULL);

	cr_expect_eq(xr_rpc_wait_end(XR_TIMEOUT_NEVER, &err), XR_E_REMOTE);
	cr_expect(strstr(err.text, "of the inner"), "%s", err.text);
	cr_expect(xr_future_done(inner));
	cr_expect_not(xr_future_done(outer), "the outer's is not waited for");
	cr_expect_eq(xr_rpc_wait_end(XR_SECONDS(0.01), &err), XR_E_TIMEOUT);
	/* Again, and to the end. */
	cr_assert_eq(xr_rpc_wait_begin(NULL), XR_OK);
	xr_future_unref(outer);
	outer = begin("block", NULL);
	gate_await(2);
	gate_open();
	cr_expect_eq(xr_rpc_wait_end(XR_TIMEOUT_NEVER, &err), XR_OK, "%s",
		err.text);
	cr_expect(xr_future_done(outer));
	cr_expect_eq(xr_rpc_wait_end(0, NULL), XR_E_STATE);
	xr_future_unref(outer);
	xr_future_unref(inner);
	leave();
}
