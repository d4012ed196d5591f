/* SPDX-License-Identifier: Apache-2.0 */
/* rref_call.c - methods of what a reference stands for; see xrun/rref.h. */
#include "base/status.h"
#include "worker/rpc/rpc_inner.h"

static enum xr_status
as_call(const struct xr_rref_call *call, struct xr_rpc_call *out,
	struct xr_error *err)
{
	if (call == NULL || call->size < sizeof(*call) || call->rref == NULL ||
		call->method == NULL)
		return fail(err, XR_E_INVAL,
			"struct xr_rref_call: its size, a reference and a method");
	*out = (struct xr_rpc_call){
		.size = sizeof(*out),
		.func = call->method,
		.args = call->args,
		.named = call->named,
		.timeout = call->timeout,
	};
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_rref_call_sync(const struct xr_rref_call *call, struct xr_value **value,
	struct xr_error *err)
{
	struct xr_rpc_call c;
	enum xr_status status = as_call(call, &c, err);

	return status == XR_OK ? rpc_sync(&c, call->rref, value, err) : status;
}

XR_EXPORT enum xr_status
xr_rref_call_async(const struct xr_rref_call *call, struct xr_future **future,
	struct xr_error *err)
{
	struct xr_rpc_call c;
	enum xr_status status = as_call(call, &c, err);

	return status == XR_OK ? rpc_async(&c, call->rref, future, err) :
				 status;
}

XR_EXPORT enum xr_status
xr_rref_call_remote(const struct xr_rref_call *call, struct xr_rref **result,
	struct xr_error *err)
{
	struct xr_rpc_call c;
	enum xr_status status = as_call(call, &c, err);

	return status == XR_OK ? rpc_remote(&c, call->rref, result, err) :
				 status;
}
