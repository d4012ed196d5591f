/* SPDX-License-Identifier: Apache-2.0 */
/* test_call_memory.c - calls, each of whose allocations fails once: whoever calls
 * is told, nobody waits for ever, and all goes on afterwards. */
#include <xrun/call.h>

#include "tests/unit/agent_rig.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/pending.h"

TestSuite(call_memory, .timeout = 100);

/* The how manyth from now on fails, on whatever thread; 0: none does. */
static _Atomic unsigned fails_at, asked;

static bool
is_short(void)
{
	unsigned at = atomic_load(&fails_at);

	return at != 0 && atomic_fetch_add(&asked, 1) + 1 == at;
}

/* The linker gives the library these for its own (--wrap). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

void *
__wrap_malloc(size_t size)
{
	return is_short() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return is_short() ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t size)
{
	return is_short() ? NULL : __real_realloc(p, size);
}

void *
__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return is_short() ? NULL : __real_reallocarray(p, n, size);
}

void *
__wrap_aligned_alloc(size_t align, size_t size)
{
	return is_short() ? NULL : __real_aligned_alloc(align, size);
}

static void
be_short(unsigned at)
{
	atomic_store(&asked, 0);
	atomic_store(&fails_at, at);
}

/* Was the allocation asked for that was to fail? */
static bool
was_short(unsigned at)
{
	bool was = atomic_load(&asked) >= at;

	atomic_store(&fails_at, 0);
	return was;
}

/* --- what is called -------------------------------------------------------- */

static enum xr_status
echo(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return xr_reply(call, xr_value_ref(args));
}

static enum xr_status
echo_raw(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	(void)ctx;
	return xr_reply_bytes(call, data, len);
}

static enum xr_status
fail_it(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	return xr_reply_fail(call, XR_E_RANGE, "on purpose");
}

/* A future of a call of its own. */
static enum xr_status
relay(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_rpc_call next = XR_RPC_CALL;
	struct xr_future *future = NULL;
	struct xr_error err = { 0 };
	enum xr_status status;

	(void)ctx;
	next.to = "self";
	next.func = "echo";
	next.args = args;
	status = xr_rpc_async(&next, &future, &err);
	return status == XR_OK ? xr_reply_future(call, future) :
				 xr_reply_fail(call, status, err.text);
}

/* Answers what it has deferred. */
static enum xr_status
defer(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_call *token = xr_call_defer(call);

	(void)ctx;
	if (token == NULL)
		return XR_E_NOMEM;
	xr_reply(token, xr_value_ref(args));
	xr_call_drop(token);
	return XR_OK;
}

static const struct xr_func functions[] = {
	FUNC("echo", NULL, echo, 0),
	FUNC("echo.short", NULL, echo, XR_FN_SHORT),
	FUNC("fail", NULL, fail_it, 0),
	FUNC("relay", NULL, relay, XR_FN_ASYNC),
	FUNC("defer", NULL, defer, 0),
	FUNC("defer.short", NULL, defer, XR_FN_SHORT),
	{ .size = sizeof(struct xr_func), .name = "raw", .raw = echo_raw },
	{ .size = sizeof(struct xr_func),
		.name = "raw.short",
		.flags = XR_FN_SHORT,
		.raw = echo_raw },
};

/* --- how it is called ------------------------------------------------------ */

#define LONG 5000

static const char body[LONG];

/* @args is borrowed; what comes is what was sent. */
static enum xr_status
by_sync(const char *func, struct xr_value *args, struct xr_error *err)
{
	struct xr_rpc_call call = XR_RPC_CALL;
	struct xr_value *value = NULL;
	enum xr_status status;

	call.to = "self";
	call.func = func;
	call.args = args;
	call.timeout = XR_SECONDS(10);
	status = xr_rpc_sync(&call, &value, err);
	cr_expect(status != XR_OK || xr_value_equal(value, args));
	xr_value_unref(value);
	return status;
}

static enum xr_status
by_future(const char *func, struct xr_value *args, struct xr_error *err)
{
	struct xr_rpc_call call = XR_RPC_CALL;
	struct xr_future *future = NULL;
	enum xr_status status;

	call.to = "self";
	call.func = func;
	call.args = args;
	call.timeout = XR_SECONDS(10);
	status = xr_rpc_async(&call, &future, err);
	if (status != XR_OK) {
		cr_expect_null(future);
		return status;
	}
	status = xr_future_wait(future, XR_SECONDS(10), NULL, err);
	xr_future_unref(future);
	return status;
}

static enum xr_status
by_bytes(const char *func, struct xr_value *args, struct xr_error *err)
{
	struct xr_raw_call call = { .size = sizeof(call),
		.data = body,
		.len = LONG,
		.timeout = XR_SECONDS(10) };
	struct xr_raw_reply reply = { 0 };
	enum xr_status status;

	(void)args;
	status = xr_peer_find("self", 0, &call.to, err);
	if (status == XR_OK)
		status = xr_method_find(func, &call.method, err);
	if (status == XR_OK)
		status = xr_call_sync(&call, &reply, err);
	cr_expect(status != XR_OK || reply.len == LONG);
	xr_raw_reply_free(&reply);
	return status;
}

typedef enum xr_status how_fn(const char *func, struct xr_value *args,
	struct xr_error *err);

/* Where there was no memory for an error's words, its status has to do. */
static bool
is_told(enum xr_status status, const char *func, unsigned at)
{
	if (status == XR_OK || status == XR_E_NOMEM)
		return true;
	/* The function's own failure, or of what it called. */
	if (status == XR_E_REMOTE)
		return strcmp(func, "fail") == 0 ||
			strcmp(func, "relay") == 0 ||
			strncmp(func, "defer", 5) == 0;
	cr_log_error("%s, allocation %u: %s", func, at, xr_status_name(status));
	return false;
}

/* Until all of its allocations have failed. */
static void
fail_each(how_fn *how, const char *func, size_t len)
{
	struct xr_value *bytes = xr_value_new_bytes(body, len);
	struct xr_value *args = xr_value_new_list_of(&bytes, 1);
	enum xr_status status, whole;
	struct xr_error err;
	unsigned at = 0;
	bool was;

	/* What is made once is made now. */
	whole = how(func, args, NULL);
	do {
		memset(&err, 0, sizeof(err));
		be_short(++at);
		status = how(func, args, &err);
		was = was_short(at);
		cr_expect(is_told(status, func, at), "%s", err.text);
		cr_expect(status == XR_OK || err.text[0] != '\0');
		status = how(func, args, &err);
		cr_expect_eq(status, whole, "%s, allocation %u, afterwards: %s",
			func, at, err.text);
	} while (was && at < 1000);
	cr_expect(at > 2 && at < 1000, "%s: %u", func, at);
	/* Callbacks may not have run yet. */
	while (ask_active() > 0)
		sched_yield();
	cr_expect_eq(pending_count(false), 0);
	xr_value_unref(args);
}

static void
fail_all(how_fn *how, size_t len)
{
	static const char *const funcs[] = { "echo", "echo.short", "fail",
		"relay", "defer", "defer.short" };

	offer(functions, sizeof(functions) / sizeof(functions[0]));
	join(2);
	for (size_t i = 0; i < sizeof(funcs) / sizeof(funcs[0]); i++)
		fail_each(how, funcs[i], len);
	leave();
}

Test(call_memory, of_calls_that_are_waited_for)
{
	fail_all(by_sync, 10);
}

Test(call_memory, of_long_ones)
{
	fail_all(by_sync, LONG);
}

Test(call_memory, of_futures)
{
	fail_all(by_future, 10);
}

Test(call_memory, of_bytes)
{
	offer(functions, sizeof(functions) / sizeof(functions[0]));
	join(2);
	fail_each(by_bytes, "raw", LONG);
	fail_each(by_bytes, "raw.short", LONG);
	leave();
}

/* --- futures without an agent ---------------------------------------------- */

static enum xr_status
pass_on(struct xr_future *parent, void *ctx, struct xr_value **result,
	struct xr_error *err)
{
	(void)ctx;
	return xr_future_value(parent, result, err);
}

Test(call_memory, of_callbacks)
{
	unsigned at = 0;
	bool was;

	do {
		struct xr_future *f = xr_future_new(NULL), *child = NULL,
				 *all = NULL;
		struct xr_value *three = xr_value_new_i64(3);
		enum xr_status status;

		cr_assert_not_null(f);
		be_short(++at);
		status = xr_future_then(f, pass_on, NULL, XR_SHORT, &child);
		cr_expect(status == XR_OK || status == XR_E_NOMEM);
		if (status == XR_OK)
			status = xr_future_all(&child, 1, &all);
		cr_expect(status == XR_OK || status == XR_E_NOMEM);
		xr_future_set(f, three);
		if (status == XR_OK)
			status =
				xr_future_wait(all, XR_SECONDS(10), NULL, NULL);
		cr_expect(status == XR_OK || status == XR_E_NOMEM);
		was = was_short(at);
		xr_future_unref(all);
		xr_future_unref(child);
		xr_future_unref(f);
	} while (was && at < 100);
	cr_expect(at > 4 && at < 100, "%u", at);
}

/* --- joining ----------------------------------------------------------------- */

Test(call_memory, of_joining)
{
	struct xr_error err = { 0 };
	enum xr_status status;
	unsigned at = 0;
	bool was;

	do {
		be_short(++at);
		status = try_to_join(2, &err);
		was = was_short(at);
		cr_expect(status == XR_OK || status == XR_E_NOMEM ||
				status == XR_E_SYS,
			"allocation %u: %d: %s", at, status, err.text);
		if (status == XR_OK)
			leave();
	} while (was && at < 2000);
	cr_expect(at > 20 && at < 2000, "%u", at);
}
