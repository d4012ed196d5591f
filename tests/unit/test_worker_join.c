/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker_join.c - joining and leaving, as a program sees it. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include <xrun/call.h>
#include <xrun/func.h>
#include <xrun/rpc.h>

#include "tests/kit/backend.h"
#include "tests/kit/entries.h"

static struct xr_error err;
static char place[64], store[128];

static void
begin(void)
{
	snprintf(place, sizeof(place), "/tmp/xrun-test-join.XXXXXX");
	cr_assert_not_null(mkdtemp(place));
	snprintf(store, sizeof(store), "file://%s/store", place);
	unsetenv("XRUN_STORE");
}

static void
end(void)
{
	unlink(store + strlen("file://"));
	rmdir(place);
}

TestSuite(join, .init = begin, .fini = end, .timeout = 60);

/* Joins as @name, @rank of @size. */
static enum xr_status
join(const char *name, int64_t rank, int64_t size, int64_t timeout)
{
	struct xr_rpc_opts opts = { .size = sizeof(opts) };

	cr_assert_eq(xr_rpc_opts_init(tested_backend(), &opts, &err), XR_OK);
	opts.init_method = store;
	opts.timeout = timeout;
	return xr_rpc_init(name, rank, size, &opts, &err);
}

static enum xr_status
add_one(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t n = 0;

	(void)ctx;
	xr_value_get_i64(xr_value_at(args, 0), &n);
	return xr_reply(call, xr_value_new_i64(n + 1));
}

static const struct xr_func functions[] = {
	{ .size = sizeof(functions[0]),
		.name = "add_one",
		.schema = "i",
		.fn = add_one },
};

static void
offer_functions(void)
{
	cr_assert_eq(xr_module_static(functions, 1, &err), XR_OK, "%s",
		err.text);
}

/* What 41 + 1 is, there. */
static enum xr_status
call(const char *to, struct xr_error *e)
{
	struct xr_value *value = NULL, *items[1] = { xr_value_new_i64(41) };
	struct xr_rpc_call c = XR_RPC_CALL;
	enum xr_status status;
	int64_t n = 0;

	c.to = to;
	c.func = "add_one";
	c.args = xr_value_new_list_of(items, 1);
	status = xr_rpc_sync(&c, &value, e);
	if (status == XR_OK &&
		(xr_value_get_i64(value, &n) != XR_OK || n != 42))
		status = XR_E_PROTO;
	xr_value_unref(c.args);
	xr_value_unref(value);
	return status;
}

/* --- one process ----------------------------------------------------------- */

Test(join, AC_B8_a_second_one_is_refused_and_the_first_goes_on)
{
	offer_functions();
	cr_assert_eq(join("one", 0, 1, XR_SECONDS(30)), XR_OK, "%s", err.text);
	cr_expect_eq(join("two", 0, 1, XR_SECONDS(30)), XR_E_STATE);
	cr_expect_not_null(strstr(err.text, "already"), "%s", err.text);
	cr_expect_eq(call("one", &err), XR_OK, "%s", err.text);
	cr_expect_eq(xr_rpc_shutdown(0, XR_SECONDS(30), &err), XR_OK);
	cr_expect_eq(xr_rpc_shutdown(0, XR_SECONDS(30), &err), XR_E_STATE);
}

Test(join, AC_B6_names_at_their_limits)
{
	const char *bad[] = { "", " ", "abc*", NULL };
	char name[XR_WORKER_NAME_MAX + 2];

	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	cr_expect_eq(join(name, 0, 1, XR_SECONDS(30)), XR_E_INVAL);
	for (int i = 0; i < 4; i++)
		cr_expect_eq(join(bad[i], 0, 1, XR_SECONDS(30)), XR_E_INVAL);
	name[XR_WORKER_NAME_MAX] = '\0';
	cr_expect_eq(join(name, 0, 1, XR_SECONDS(30)), XR_OK, "%s", err.text);
	xr_rpc_shutdown(XR_SHUTDOWN_IMMEDIATE, 0, &err);
	cr_expect_eq(join("a-b:c_d", 0, 1, XR_SECONDS(30)), XR_OK, "%s",
		err.text);
	xr_rpc_shutdown(XR_SHUTDOWN_IMMEDIATE, 0, &err);
}

/* The first time leaves what stays for the process: the segment, and such. */
Test(join, AC_B19_a_hundred_times_leave_no_descriptor_and_no_thread)
{
	unsigned fds = 0, threads = 0;

	offer_functions();
	for (int i = 0; i <= 100; i++) {
		cr_assert_eq(join("again", 0, 1, XR_SECONDS(30)), XR_OK,
			"%d: %s", i, err.text);
		cr_assert_eq(call("again", &err), XR_OK, "%d: %s", i, err.text);
		cr_assert_eq(xr_rpc_shutdown(0, XR_SECONDS(30), &err), XR_OK,
			"%d: %s", i, err.text);
		if (i == 0) {
			fds = entries("/proc/self/fd");
			threads = entries("/proc/self/task");
		}
	}
	cr_expect_eq(entries("/proc/self/fd"), fds);
	cr_expect_eq(entries("/proc/self/task"), threads);
}

/* --- after fork() ---------------------------------------------------------- */

/* How many of what a child asks is not XR_E_STATE. */
static int
ask_all(struct xr_future *pending, struct xr_peer *peer)
{
	struct xr_worker w = { .size = sizeof(w) };
	struct xr_raw_call raw = { .size = sizeof(raw), .to = peer };
	struct xr_raw_reply reply = { 0 };
	struct xr_future *future = NULL;
	struct xr_value *nil = xr_value_new_nil(), *all = NULL;
	struct xr_rpc_call c = XR_RPC_CALL;
	size_t count;
	int64_t ns;
	int wrong = 0;

#define REFUSED(x) wrong += (x) != XR_E_STATE
	c.to = "one";
	c.func = "add_one";
	xr_method_find("add_one", &raw.method, NULL);
	REFUSED(xr_rpc_init("child", 0, 1, NULL, NULL));
	REFUSED(xr_rpc_shutdown(XR_SHUTDOWN_GRACEFUL, 0, NULL));
	REFUSED(xr_rpc_shutdown(XR_SHUTDOWN_IMMEDIATE, 0, NULL));
	REFUSED(xr_rpc_sync(&c, NULL, NULL));
	REFUSED(xr_rpc_async(&c, &future, NULL));
	REFUSED(xr_call_sync(&raw, &reply, NULL));
	REFUSED(xr_call_async(&raw, &future, NULL));
	REFUSED(xr_call_oneway(&raw, NULL));
	REFUSED(xr_worker_self(&w, NULL));
	REFUSED(xr_worker_find("one", &w, NULL));
	REFUSED(xr_worker_list(NULL, 0, &count, NULL));
	REFUSED(xr_rpc_allgather(NULL, nil, &all, NULL));
	REFUSED(xr_rpc_barrier(NULL, NULL));
	REFUSED(xr_rpc_get_timeout(&ns, NULL));
	REFUSED(xr_rpc_set_timeout(0, NULL));
	REFUSED(xr_future_wait(pending, XR_SECONDS(5), NULL, NULL));
	REFUSED(xr_future_cancel(pending));
#undef REFUSED
	xr_value_unref(nil);
	return wrong;
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static enum xr_status
pass_gate(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	return xr_reply(call, xr_value_new_i64(7));
}

static const struct xr_func gated = {
	.size = sizeof(gated),
	.name = "pass_gate",
	.schema = "",
	.fn = pass_gate,
};

Test(join, after_a_fork_the_child_has_nothing_and_the_parent_everything)
{
	struct xr_future *pending = NULL;
	struct xr_rpc_call c = XR_RPC_CALL;
	struct xr_peer *peer = NULL;
	struct xr_value *seven = NULL;
	int status = 0;
	int64_t n = 0;
	pid_t pid;

	offer_functions();
	cr_assert_eq(xr_fn_register(&gated, &err), XR_OK);
	cr_assert_eq(join("one", 0, 1, XR_SECONDS(30)), XR_OK, "%s", err.text);
	cr_assert_eq(call("one", &err), XR_OK, "%s", err.text);
	cr_assert_eq(xr_peer_find("one", 0, &peer, &err), XR_OK);
	pthread_mutex_lock(&gate);
	c.to = "one";
	c.func = "pass_gate";
	cr_assert_eq(xr_rpc_async(&c, &pending, &err), XR_OK);
	pid = fork();
	if (pid == 0) {
		alarm(20);
		_exit(ask_all(pending, peer));
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0, "the child ended with %#x", (unsigned)status);
	pthread_mutex_unlock(&gate);
	cr_assert_eq(xr_future_wait(pending, XR_SECONDS(30), &seven, &err),
		XR_OK, "%s", err.text);
	cr_expect(xr_value_get_i64(seven, &n) == XR_OK && n == 7);
	xr_value_unref(seven);
	xr_future_unref(pending);
	cr_expect_eq(call("one", &err), XR_OK, "%s", err.text);
	cr_expect_eq(xr_rpc_shutdown(0, XR_SECONDS(30), &err), XR_OK, "%s",
		err.text);
}

/* A child of a process without an agent is like any other. */
Test(join, a_child_of_who_is_no_member_may_join)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(20);
		offer_functions();
		_exit(join("child", 0, 1, XR_SECONDS(10)) != XR_OK ||
			call("child", NULL) != XR_OK ||
			xr_rpc_shutdown(0, XR_SECONDS(10), NULL) != XR_OK);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0, "the child ended with %#x", (unsigned)status);
}
