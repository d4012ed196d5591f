/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker_timeout_rpc.c - timeouts of calls, references, worlds and groups. */
#include <xrun/call.h>
#include <xrun/coll.h>
#include <xrun/func.h>
#include <xrun/group.h>
#include <xrun/rpc.h>
#include <xrun/rref.h>
#include <xrun/world.h>

#include "tests/unit/timeout_rig.h"

TestSuite(timeout_rpc, .timeout = 200);

/* --- calls: a world of one process, which calls itself ----------------------------------- */

static struct xr_world *world;
static struct xr_event *call_event;
static char method[100];

static enum xr_status
answer(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	xr_wait_any(&call_event, 1, XR_TIMEOUT_NEVER, NULL, NULL);
	return xr_reply(call, xr_value_new_nil());
}

static enum xr_status
answer_method(struct xr_call *call, void *self, struct xr_value *args,
	void *ctx)
{
	(void)self;
	return answer(call, args, ctx);
}

static enum xr_status
answer_raw(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	(void)data;
	(void)len;
	return answer(call, NULL, ctx);
}

static enum xr_status
make_object(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	return xr_reply(call, xr_value_new_opaque("Object", method));
}

static void
register_functions(void)
{
	static const struct xr_func funcs[] = {
		{ .size = sizeof(funcs[0]), .name = "answer", .fn = answer },
		{ .size = sizeof(funcs[0]), .name = "raw", .raw = answer_raw },
		{ .size = sizeof(funcs[0]), .name = "make", .fn = make_object },
	};
	static const struct xr_method methods[] = {
		{ .size = sizeof(methods[0]),
			.name = "answer",
			.fn = answer_method },
	};
	static const struct xr_type type = { .size = sizeof(type),
		.name = "Object",
		.methods = methods,
		.method_count = 1 };

	cr_assert_eq(xr_module_static(funcs, 3, &err), XR_OK);
	cr_assert_eq(xr_type_register(&type, &err), XR_OK);
}

static char store_path[] = "/tmp/xrun-timeout-XXXXXX";

/* @agent is the timeout of the agent, and @timeout that of the world. */
static enum xr_status
begin_world(int64_t agent, int64_t timeout)
{
	struct xr_rpc_opts rpc = { .size = sizeof(rpc) };
	struct xr_world_opts opts = XR_WORLD_OPTS;
	enum xr_status status;

	close(mkstemp(store_path));
	unlink(store_path);
	snprintf(method, sizeof(method), "file://%s", store_path);
	call_event = xr_event_new();
	register_functions();
	cr_assert_eq(xr_rpc_opts_init(0, &rpc, NULL), XR_OK);
	rpc.init_method = method;
	rpc.timeout = agent;
	opts.name = "self";
	opts.rank = 0;
	opts.world_size = 1;
	opts.rpc = &rpc;
	opts.timeout = timeout;
	status = xr_world_new(&opts, &world, &err);
	unlink(store_path);
	return status;
}

/* Without a world, as every process of a row is in one world only. A world that closes
 * writes to its store, which creates the file again. */
static void
end_world(void)
{
	xr_event_set(call_event);
	xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(20), NULL);
	xr_world_free(world);
	unlink(store_path);
}

/* The agent's timeout is short if the row is to see the default. */
static int64_t
agent_timeout(enum state state)
{
	return state == ABSENT ? XR_SECONDS(0.02) : XR_SECONDS(50);
}

static enum xr_status
with_call(enum state state, int64_t timeout, enum xr_status (*fn)(int64_t))
{
	enum xr_status status = begin_world(agent_timeout(state), 0);
	struct helper h;

	if (status != XR_OK)
		return status;
	helper_begin(&h, state, set_event, call_event);
	status = fn(timeout);
	helper_end(&h, state);
	end_world();
	return status;
}

#define CALL_ROW(name) \
	static enum xr_status with_##name(enum state state, int64_t timeout) \
	{ \
		return with_call(state, timeout, name); \
	}

static struct xr_rpc_call
rpc_call(const char *func, int64_t timeout)
{
	return (struct xr_rpc_call){ .size = sizeof(struct xr_rpc_call),
		.to = "self",
		.func = func,
		.timeout = timeout };
}

static enum xr_status
await_future(enum xr_status begun, struct xr_future *future)
{
	if (begun == XR_OK)
		begun = xr_future_wait(future, XR_TIMEOUT_NEVER, NULL, &err);
	xr_future_unref(future);
	return begun;
}

static enum xr_status
rpc_sync(int64_t timeout)
{
	const struct xr_rpc_call call = rpc_call("answer", timeout);

	return xr_rpc_sync(&call, NULL, &err);
}

static enum xr_status
rpc_async(int64_t timeout)
{
	const struct xr_rpc_call call = rpc_call("answer", timeout);
	struct xr_future *future = NULL;
	enum xr_status status = xr_rpc_async(&call, &future, &err);

	return await_future(status, future);
}

static enum xr_status
raw_sync(int64_t timeout)
{
	struct xr_raw_call call = { .size = sizeof(call), .timeout = timeout };
	struct xr_raw_reply reply = { 0 };
	enum xr_status status;

	cr_assert_eq(xr_peer_find("self", 0, &call.to, &err), XR_OK);
	cr_assert_eq(xr_method_find("raw", &call.method, &err), XR_OK);
	status = xr_call_sync(&call, &reply, &err);
	xr_raw_reply_free(&reply);
	return status;
}

static struct xr_rref *
new_object(const char *func)
{
	const struct xr_rpc_call call = rpc_call(func, XR_SECONDS(50));
	struct xr_rref *rref = NULL;

	cr_assert_eq(xr_rpc_remote(&call, &rref, &err), XR_OK);
	return rref;
}

static enum xr_status
rref_call(int64_t timeout)
{
	const struct xr_rref_call call = { .size = sizeof(call),
		.rref = new_object("make"),
		.method = "answer",
		.timeout = timeout };
	enum xr_status status = xr_rref_call_sync(&call, NULL, &err);

	xr_rref_unref(call.rref);
	return status;
}

static enum xr_status
rref_fetch(int64_t timeout)
{
	struct xr_rref *rref = new_object("answer");
	struct xr_value *v = NULL;
	enum xr_status status = xr_rref_fetch(rref, timeout, &v, &err);

	xr_value_unref(v);
	xr_rref_unref(rref);
	return status;
}

static enum xr_status
rref_local(int64_t timeout)
{
	struct xr_rref *rref = new_object("answer");
	struct xr_value *v = NULL;
	enum xr_status status = xr_rref_local(rref, timeout, &v, &err);

	xr_value_unref(v);
	xr_rref_unref(rref);
	return status;
}

static enum xr_status
rref_fetch_async(int64_t timeout)
{
	struct xr_rref *rref = new_object("answer");
	struct xr_future *future = NULL;
	enum xr_status status =
		xr_rref_fetch_async(rref, timeout, &future, &err);

	status = await_future(status, future);
	xr_rref_unref(rref);
	return status;
}

static enum xr_status
wait_end(int64_t timeout)
{
	const struct xr_rpc_call call = rpc_call("answer", XR_TIMEOUT_NEVER);
	struct xr_future *future = NULL;
	enum xr_status status;

	cr_assert_eq(xr_rpc_wait_begin(&err), XR_OK);
	cr_assert_eq(xr_rpc_async(&call, &future, &err), XR_OK);
	if (xr_event_is_set(call_event))
		xr_future_wait(future, XR_SECONDS(50), NULL, NULL);
	status = xr_rpc_wait_end(timeout, &err);
	xr_future_unref(future);
	return status;
}

static enum xr_status
set_timeout(int64_t timeout)
{
	enum xr_status status = xr_rpc_set_timeout(timeout, &err);

	return status == XR_OK ? rpc_sync(XR_TIMEOUT_DEFAULT) : status;
}

/* All members of a meeting of one are there, so only the checks are seen. */
static enum xr_status
barrier(int64_t timeout)
{
	const struct xr_rpc_meeting meeting = { .size = sizeof(meeting),
		.timeout = timeout };

	return xr_rpc_barrier(&meeting, &err);
}

static struct xr_group *
new_group(int64_t timeout, enum xr_status *status)
{
	static const struct xr_group_service service = {
		.size = sizeof(service),
		.key = "answer",
		.fn = answer
	};
	const struct xr_group_opts opts = { .size = sizeof(opts),
		.name = "group",
		.timeout = timeout };
	struct xr_group *g = NULL;

	*status = xr_group_new(world, &opts, &g, &err);
	if (*status == XR_OK)
		*status = xr_group_register(g, &service, &err);
	return g;
}

static enum xr_status
group_opts(int64_t timeout)
{
	enum xr_status status;
	struct xr_group *g = new_group(timeout, &status);

	if (status == XR_OK)
		status = xr_group_barrier(g, XR_TIMEOUT_DEFAULT, &err);
	xr_group_free(g);
	return status;
}

static enum xr_status
group_barrier(int64_t timeout)
{
	enum xr_status status;
	struct xr_group *g = new_group(XR_SECONDS(50), &status);

	cr_assert_eq(status, XR_OK, "%s", err.text);
	status = xr_group_barrier(g, timeout, &err);
	xr_group_free(g);
	return status;
}

static enum xr_status
group_call(int64_t timeout)
{
	const struct xr_group_call call = { .size = sizeof(call),
		.key = "answer",
		.timeout = timeout };
	enum xr_status status;
	struct xr_group *g = new_group(XR_SECONDS(50), &status);

	cr_assert_eq(status, XR_OK, "%s", err.text);
	status = xr_group_call_sync(g, &call, NULL, &err);
	xr_group_free(g);
	return status;
}

static enum xr_status
with_coll(int64_t of_group, int64_t of_op)
{
	const struct xr_coll_opts opts = { .size = sizeof(opts),
		.timeout = of_group };
	const struct xr_coll_op op = { .size = sizeof(op), .timeout = of_op };
	struct xr_coll *coll = NULL;
	enum xr_status status = xr_coll_new(world, &opts, &coll, &err);

	if (status == XR_OK)
		status = xr_coll_barrier(coll, &op, &err);
	xr_coll_free(coll);
	return status;
}

static enum xr_status
coll_opts(int64_t timeout)
{
	return with_coll(timeout, 0);
}

static enum xr_status
coll_op(int64_t timeout)
{
	return with_coll(XR_SECONDS(50), timeout);
}

static enum xr_status
coll_multi(int64_t timeout)
{
	const struct xr_tensor_desc desc = { .size = sizeof(desc),
		.dtype = XR_DT_F32,
		.ndim = 1,
		.shape = { 4 },
		.strides = { 1 } };
	struct xr_value *tensor = NULL;
	enum xr_status status = xr_tensor_new(&desc, &tensor, &err);
	struct xr_value *const tensors[] = { tensor };
	const struct xr_coll_multi multi = { .size = sizeof(multi),
		.count = 1,
		.tensors = tensors,
		.op = XR_SUM,
		.timeout = timeout };
	struct xr_coll *coll = NULL;

	cr_assert_eq(status, XR_OK, "%s", err.text);
	cr_assert_eq(xr_coll_new(world, NULL, &coll, &err), XR_OK);
	status = xr_coll_allreduce_multi(coll, &multi, &err);
	xr_coll_free(coll);
	xr_value_unref(tensor);
	return status;
}

CALL_ROW(rpc_sync)
CALL_ROW(rpc_async)
CALL_ROW(raw_sync)
CALL_ROW(rref_call)
CALL_ROW(rref_fetch)
CALL_ROW(rref_local)
CALL_ROW(rref_fetch_async)
CALL_ROW(wait_end)
CALL_ROW(set_timeout)
CALL_ROW(barrier)
CALL_ROW(group_opts)
CALL_ROW(group_barrier)
CALL_ROW(group_call)
CALL_ROW(coll_opts)
CALL_ROW(coll_op)
CALL_ROW(coll_multi)

/* The agent waits for its calls: here for one that @closes gives to it. */
static enum xr_status
with_shutdown(enum state state, int64_t timeout, bool closes)
{
	const struct xr_rpc_call call = rpc_call("answer", XR_TIMEOUT_NEVER);
	struct xr_future *future = NULL;
	enum xr_status status = begin_world(XR_SECONDS(50), XR_SECONDS(50));
	struct helper h;

	cr_assert_eq(status, XR_OK, "%s", err.text);
	cr_assert_eq(xr_rpc_async(&call, &future, &err), XR_OK);
	helper_begin(&h, state == ABSENT ? SOON : state, set_event, call_event);
	if (state == READY)
		xr_future_wait(future, XR_SECONDS(50), NULL, NULL);
	status = closes ?
		xr_world_close(world, XR_SHUTDOWN_GRACEFUL, timeout, &err) :
		xr_rpc_shutdown(XR_SHUTDOWN_GRACEFUL, timeout, &err);
	helper_end(&h, SOON);
	xr_future_unref(future);
	end_world();
	return status;
}

static enum xr_status
rpc_shutdown(enum state state, int64_t timeout)
{
	return with_shutdown(state, timeout, false);
}

static enum xr_status
world_close(enum state state, int64_t timeout)
{
	return with_shutdown(state, timeout, true);
}

static enum xr_status
world_opts(enum state state, int64_t timeout)
{
	enum xr_status status = begin_world(XR_SECONDS(50), timeout);

	(void)state;
	if (status == XR_OK)
		status = with_coll(0, 0);
	end_world();
	return status;
}

static enum xr_status
rpc_opts(enum state state, int64_t timeout)
{
	enum xr_status status = begin_world(timeout, 0);
	struct helper h;

	if (status != XR_OK)
		return status;
	helper_begin(&h, state, set_event, call_event);
	status = rpc_sync(XR_TIMEOUT_DEFAULT);
	helper_end(&h, state);
	end_world();
	return status;
}

static const struct row arguments[] = {
	{ "xr_rref_fetch", with_rref_fetch, XR_E_TIMEOUT, true },
	{ "xr_rref_fetch_async", with_rref_fetch_async, XR_E_TIMEOUT, true },
	{ "xr_rref_local", with_rref_local, XR_E_TIMEOUT, true },
	{ "xr_rpc_wait_end", with_wait_end, XR_E_TIMEOUT, false },
	{ "xr_rpc_set_timeout", with_set_timeout, XR_E_TIMEOUT, true },
	{ "xr_rpc_shutdown", rpc_shutdown, XR_E_TIMEOUT, false },
	{ "xr_world_close", world_close, XR_E_TIMEOUT, false },
	{ "xr_group_barrier", with_group_barrier, XR_OK, false },
};

static const struct row fields[] = {
	{ "struct xr_rpc_opts", rpc_opts, XR_OK, false },
	{ "struct xr_rpc_call of xr_rpc_sync", with_rpc_sync, XR_E_TIMEOUT,
		false },
	{ "struct xr_rpc_call of xr_rpc_async", with_rpc_async, XR_E_TIMEOUT,
		false },
	{ "struct xr_raw_call", with_raw_sync, XR_E_TIMEOUT, false },
	{ "struct xr_rref_call", with_rref_call, XR_E_TIMEOUT, false },
	{ "struct xr_rpc_meeting", with_barrier, XR_OK, false },
	{ "struct xr_group_opts", with_group_opts, XR_OK, false },
	{ "struct xr_group_call", with_group_call, XR_E_TIMEOUT, false },
	{ "struct xr_world_opts", world_opts, XR_OK, false },
	{ "struct xr_coll_opts", with_coll_opts, XR_OK, false },
	{ "struct xr_coll_op", with_coll_op, XR_OK, false },
	{ "struct xr_coll_multi", with_coll_multi, XR_OK, false },
};

Test(timeout_rpc, an_argument_of_0_does_not_wait)
{
	expect_arguments(arguments, ROWS(arguments));
}

Test(timeout_rpc, a_field_of_0_selects_the_default)
{
	expect_fields(fields, ROWS(fields));
}
