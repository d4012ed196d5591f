/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc_echo.c - every rank calls the next one, with bytes and with values.
 *
 *   xrun -n 2 ./rpc_echo
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/call.h>
#include <xrun/func.h>
#include <xrun/job.h>
#include <xrun/rpc.h>

static enum xr_status
echo_bytes(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	(void)ctx;
	return xr_reply_bytes(call, data, len);
}

static enum xr_status
echo_values(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return xr_reply(call, xr_value_ref(xr_value_at(args, 0)));
}

static const struct xr_func functions[] = {
	{ .size = sizeof(functions[0]),
		.name = "echo.bytes",
		.flags = XR_FN_SHORT,
		.raw = echo_bytes },
	{ .size = sizeof(functions[0]),
		.name = "echo.values",
		.schema = "?",
		.flags = XR_FN_SHORT,
		.fn = echo_values },
};

static enum xr_status
call_with_bytes(uint32_t next, struct xr_error *err)
{
	struct xr_raw_call call = { .size = sizeof(call),
		.data = "hello",
		.len = 5,
		.timeout = XR_TIMEOUT_DEFAULT };
	struct xr_raw_reply reply = { 0 };
	enum xr_status status;

	status = xr_peer_find(NULL, next, &call.to, err);
	if (status == XR_OK)
		status = xr_method_find("echo.bytes", &call.method, err);
	if (status == XR_OK)
		status = xr_call_sync(&call, &reply, err);
	if (status == XR_OK)
		printf("rank %u: %.*s from %u\n", xr_job_rank(), (int)reply.len,
			(const char *)reply.data, next);
	xr_raw_reply_free(&reply);
	return status;
}

static enum xr_status
call_with_values(uint32_t next, struct xr_error *err)
{
	struct xr_rpc_call call = XR_RPC_CALL;
	struct xr_value *value = NULL;
	enum xr_status status;
	int64_t number = 0;

	call.id = next;
	call.func = "echo.values";
	call.args = xr_value_new_list();
	status = xr_value_append(call.args, xr_value_new_i64(42));
	if (status == XR_OK)
		status = xr_rpc_sync(&call, &value, err);
	if (status == XR_OK)
		status = xr_value_get_i64(value, &number);
	if (status == XR_OK)
		printf("rank %u: %lld from %u\n", xr_job_rank(),
			(long long)number, next);
	xr_value_unref(value);
	xr_value_unref(call.args);
	return status;
}

int
main(int argc, char **argv)
{
	uint32_t next = (xr_job_rank() + 1) % xr_job_size();
	struct xr_error err = { 0 };
	enum xr_status status;
	char name[32];

	if (getenv("XRUN_RANK") == NULL && getenv("RANK") == NULL) {
		fprintf(stderr, "%s needs several ranks; run: xrun -n 2 %s\n",
			argv[0], argv[0]);
		return 2;
	}
	snprintf(name, sizeof(name), "worker%u", xr_job_rank());
	status = xr_module_static(functions, 2, &err);
	if (status == XR_OK)
		status = xr_rpc_init(name, -1, -1, NULL, &err);
	if (status == XR_OK)
		status = call_with_bytes(next, &err);
	if (status == XR_OK)
		status = call_with_values(next, &err);
	if (status == XR_OK)
		status = xr_rpc_shutdown(XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30),
			&err);
	if (status != XR_OK)
		fprintf(stderr, "rank %u: %s: %s\n", xr_job_rank(),
			xr_status_name(status), err.text);
	return status == XR_OK ? 0 : 1;
}
