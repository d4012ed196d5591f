/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_rig.h - a process that is all of its group, and what is asked of it.
 *
 * A call to oneself goes the way of all others: it is sent, read, run by the crew
 * or where it is read, and answered. Its name is "self", its id 0.
 */
#ifndef TESTS_UNIT_AGENT_RIG_H
#define TESTS_UNIT_AGENT_RIG_H

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/func.h>
#include <xrun/future.h>
#include <xrun/rpc.h>

#include "tests/kit/backend.h"

/* join() - become the group; @threads run functions, 0: as many as there are by
 * default. */
static inline enum xr_status
try_to_join(uint32_t threads, struct xr_error *err)
{
	char path[] = "/tmp/xrun-agent-XXXXXX", method[64];
	struct xr_rpc_opts opts = { .size = sizeof(opts) };
	enum xr_status status;
	int fd = mkstemp(path);

	cr_assert_neq(fd, -1);
	close(fd);
	unlink(path);
	snprintf(method, sizeof(method), "file://%s", path);
	cr_assert_eq(xr_rpc_opts_init(tested_backend(), &opts, NULL), XR_OK);
	opts.init_method = method;
	if (threads > 0)
		opts.threads = threads;
	status = xr_rpc_init("self", 0, 1, &opts, err);
	unlink(path);
	return status;
}

static inline void
join(uint32_t threads)
{
	struct xr_error err = { 0 };

	cr_assert_eq(try_to_join(threads, &err), XR_OK, "%s", err.text);
}

/* leave() - when all calls are over. */
static inline void
leave(void)
{
	struct xr_error err = { 0 };

	cr_assert_eq(xr_rpc_shutdown(XR_SHUTDOWN_GRACEFUL, XR_SECONDS(60),
			     &err),
		XR_OK, "%s", err.text);
}

static inline void
offer(const struct xr_func *funcs, size_t count)
{
	struct xr_error err = { 0 };

	cr_assert_eq(xr_module_static(funcs, count, &err), XR_OK, "%s",
		err.text);
}

/* A row of a table of functions. */
#define FUNC(n, s, f, fl) \
	{ .size = sizeof(struct xr_func), \
		.name = n, \
		.schema = s, \
		.flags = fl, \
		.fn = f }

/* --- asking ---------------------------------------------------------------- */

static inline struct xr_value *
int_list(size_t count, const int64_t *numbers)
{
	struct xr_value *list = xr_value_new_list();

	for (size_t i = 0; i < count; i++)
		cr_assert_eq(xr_value_append(list,
				     xr_value_new_i64(numbers[i])),
			XR_OK);
	return list;
}

#define INTS(...) \
	int_list(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), \
		(int64_t[]){ __VA_ARGS__ })

/* @args is taken; NULL: none. */
static inline enum xr_status
ask_within(const char *func, struct xr_value *args, int64_t timeout,
	struct xr_value **value, struct xr_error *err)
{
	struct xr_rpc_call call = XR_RPC_CALL;
	enum xr_status status;

	call.to = "self";
	call.func = func;
	call.args = args;
	call.timeout = timeout;
	status = xr_rpc_sync(&call, value, err);
	xr_value_unref(args);
	return status;
}

static inline enum xr_status
ask(const char *func, struct xr_value *args, struct xr_value **value,
	struct xr_error *err)
{
	return ask_within(func, args, XR_SECONDS(60), value, err);
}

/* A future of it; never NULL. */
static inline struct xr_future *
begin_within(const char *func, struct xr_value *args, int64_t timeout)
{
	struct xr_rpc_call call = XR_RPC_CALL;
	struct xr_future *future = NULL;
	struct xr_error err = { 0 };

	call.to = "self";
	call.func = func;
	call.args = args;
	call.timeout = timeout;
	cr_assert_eq(xr_rpc_async(&call, &future, &err), XR_OK, "%s", err.text);
	xr_value_unref(args);
	return future;
}

static inline struct xr_future *
begin(const char *func, struct xr_value *args)
{
	return begin_within(func, args, XR_SECONDS(60));
}

/* What it ends with, and @future's reference goes. */
static inline enum xr_status
end_of(struct xr_future *future, struct xr_value **value, struct xr_error *err)
{
	enum xr_status status =
		xr_future_wait(future, XR_SECONDS(60), value, err);

	xr_future_unref(future);
	return status;
}

/* Takes @value. */
static inline int64_t
int_of(struct xr_value *value)
{
	int64_t n = INT64_MIN;

	cr_expect_eq(xr_value_get_i64(value, &n), XR_OK);
	xr_value_unref(value);
	return n;
}

static inline int64_t
int_at(const struct xr_value *args, size_t i)
{
	int64_t n = INT64_MIN;

	xr_value_get_i64(xr_value_at(args, i), &n);
	return n;
}

/* A function: of the first argument. */
static inline enum xr_status
add_one(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return xr_reply(call, xr_value_new_i64(int_at(args, 0) + 1));
}

/* --- a place where functions stand, and keep their thread ----------------- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned here; /* that came */
	bool open;
} gate = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false };

static inline void
gate_pass(void)
{
	pthread_mutex_lock(&gate.lock);
	gate.here++;
	pthread_cond_broadcast(&gate.changed);
	while (!gate.open)
		pthread_cond_wait(&gate.changed, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
}

/* Until @count have come. */
static inline void
gate_await(unsigned count)
{
	pthread_mutex_lock(&gate.lock);
	while (gate.here < count)
		pthread_cond_wait(&gate.changed, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
}

static inline void
gate_open(void)
{
	pthread_mutex_lock(&gate.lock);
	gate.open = true;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}

#endif /* TESTS_UNIT_AGENT_RIG_H */
