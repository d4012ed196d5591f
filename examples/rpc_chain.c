/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc_chain.c - a function that answers with what another one will give.
 *
 *   xrun -n 3 ./rpc_chain
 *
 * Rank 0 asks rank 1 for x + y + z; rank 1 has rank 2 add x and y, adds z to what
 * comes back, and none of its threads waits meanwhile. Three ones are 3.
 */
#include <stdio.h>
#include <stdlib.h>

#include <xrun/func.h>
#include <xrun/future.h>
#include <xrun/job.h>
#include <xrun/rpc.h>

static int64_t
number(struct xr_value *args, size_t i)
{
	int64_t n = 0;

	xr_value_get_i64(xr_value_at(args, i), &n);
	return n;
}

static enum xr_status
add(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return xr_reply(call,
		xr_value_new_i64(number(args, 0) + number(args, 1)));
}

static enum xr_status
add_z(struct xr_future *sum, void *z, struct xr_value **result,
	struct xr_error *err)
{
	struct xr_value *value = NULL;
	enum xr_status status = xr_future_value(sum, &value, err);
	int64_t n = 0;

	if (status == XR_OK)
		status = xr_value_get_i64(value, &n);
	if (status == XR_OK)
		*result = xr_value_new_i64(n + *(int64_t *)z);
	xr_value_unref(value);
	free(z);
	return status;
}

static enum xr_status
add_chained(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_rpc_call next = XR_RPC_CALL;
	struct xr_future *sum = NULL, *all = NULL;
	struct xr_error err = { 0 };
	int64_t *z = malloc(sizeof(*z));
	enum xr_status status = z == NULL ? XR_E_NOMEM : XR_OK;

	(void)ctx;
	next.to = "worker2";
	next.func = "add";
	next.args = xr_value_new_list();
	if (status == XR_OK)
		status = xr_value_append(next.args,
			xr_value_new_i64(number(args, 0)));
	if (status == XR_OK)
		status = xr_value_append(next.args,
			xr_value_new_i64(number(args, 1)));
	if (status == XR_OK)
		status = xr_rpc_async(&next, &sum, &err);
	if (status == XR_OK) {
		*z = number(args, 2);
		status = xr_future_then(sum, add_z, z, XR_SHORT, &all);
	}
	if (status == XR_OK)
		z = NULL; /* add_z() frees it */
	xr_value_unref(next.args);
	xr_future_unref(sum);
	free(z);
	return status == XR_OK ? xr_reply_future(call, all) :
				 xr_reply_fail(call, status, err.text);
}

static const struct xr_func functions[] = {
	{ .size = sizeof(functions[0]),
		.name = "add",
		.schema = "ii",
		.flags = XR_FN_SHORT,
		.fn = add },
	{ .size = sizeof(functions[0]),
		.name = "add.chained",
		.schema = "iii",
		.flags = XR_FN_ASYNC,
		.fn = add_chained },
};

static enum xr_status
ask(struct xr_error *err)
{
	struct xr_rpc_call call = XR_RPC_CALL;
	struct xr_value *value = NULL;
	enum xr_status status = XR_OK;
	int64_t sum = 0;

	call.to = "worker1";
	call.func = "add.chained";
	call.args = xr_value_new_list();
	for (int i = 0; i < 3 && status == XR_OK; i++)
		status = xr_value_append(call.args, xr_value_new_i64(1));
	if (status == XR_OK)
		status = xr_rpc_sync(&call, &value, err);
	if (status == XR_OK)
		status = xr_value_get_i64(value, &sum);
	if (status == XR_OK)
		printf("1 + 1 + 1 = %lld\n", (long long)sum);
	xr_value_unref(value);
	xr_value_unref(call.args);
	return status;
}

int
main(int argc, char **argv)
{
	struct xr_error err = { 0 };
	enum xr_status status;
	char name[32];

	if (getenv("XRUN_RANK") == NULL && getenv("RANK") == NULL) {
		fprintf(stderr, "%s needs several ranks; run: xrun -n 3 %s\n",
			argv[0], argv[0]);
		return 2;
	}
	snprintf(name, sizeof(name), "worker%u", xr_job_rank());
	status = xr_module_static(functions, 2, &err);
	if (status == XR_OK)
		status = xr_rpc_init(name, -1, -1, NULL, &err);
	if (status == XR_OK && xr_job_rank() == 0)
		status = ask(&err);
	if (status == XR_OK)
		status = xr_rpc_shutdown(XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30),
			&err);
	if (status != XR_OK)
		fprintf(stderr, "rank %u: %s: %s\n", xr_job_rank(),
			xr_status_name(status), err.text);
	return status == XR_OK ? 0 : 1;
}
