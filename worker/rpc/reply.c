/* SPDX-License-Identifier: Apache-2.0 */
/* reply.c - answering a call, once; see xrun/func.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "worker/job/trace.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/future.h"
#include "worker/rpc/message.h"
#include "worker/rpc/serve_inner.h"
#include "worker/rpc/values.h"

/* The caller is gone, or it will hear of that: nothing else can be done. */
static enum xr_status
send_answer(struct xr_call *call, enum message_kind kind, uint8_t flags,
	const struct xr_part *parts, uint32_t count)
{
	struct xr_message m = {
		.record = {
			.kind = (uint8_t)kind,
			.flags = flags,
			.corr = call->corr,
		},
		.parts = parts,
		.count = count,
	};

	return call->oneway ?
		XR_OK :
		peer_send(call->peer, &m, INT64_MAX, NULL, NULL);
}

/* --- errors --------------------------------------------------------------- */

/* An error that has no room for itself: its status alone. */
static void
send_status(struct xr_call *call, enum xr_status status)
{
	int32_t number = status;
	struct xr_part part = { &number, sizeof(number) };

	send_answer(call, MESSAGE_ERROR, 0, &part, 1);
}

static void
send_error(struct xr_call *call, struct xr_value *error)
{
	struct values_out out = { 0 };

	if ((call->flags & MESSAGE_REMOTE) != 0)
		rref_made(&call->birth, error, true);
	if (error == NULL ||
		values_pack(error, call->peer, &out, NULL) != XR_OK) {
		send_status(call, XR_E_NOMEM);
		return;
	}
	send_answer(call, MESSAGE_ERROR, MESSAGE_VALUE, out.parts, out.count);
	values_out_fini(&out);
}

/* What the function's own error is the cause of, for the caller. */
static struct xr_value *
remote_error(struct xr_call *call, struct xr_value *error)
{
	struct xr_failure f = { .size = sizeof(f) },
			  cause = { .size = sizeof(f) };
	char text[1024], trace[4096] = { 0 };
	struct trace here;
	const struct peer *self = agent_self();

	xr_value_failure(error, &cause);
	snprintf(text, sizeof(text), "%s on %s (%u): %s%s%s",
		call->func != NULL ? call->func->f.name : "a call", self->name,
		self->id,
		cause.type != NULL ? cause.type : xr_status_name(cause.status),
		cause.text != NULL && cause.text[0] != '\0' ? ": " : "",
		cause.text != NULL ? cause.text : "");
	if (cause.backtrace == NULL) {
		trace_take(&here);
		trace_text(&here, 0, trace, sizeof(trace) - 1);
	}
	f.status = XR_E_REMOTE;
	f.type = cause.type;
	f.text = text;
	f.func = call->func != NULL ? call->func->f.name : NULL;
	f.worker = self->name;
	f.worker_id = self->id;
	f.backtrace = cause.backtrace != NULL ? cause.backtrace : trace;
	f.cause = error;
	return xr_value_new_error(&f);
}

/* On the callee's standard error, too: whoever looks there knows. */
static void
print(const struct xr_value *error)
{
	struct xr_failure f = { .size = sizeof(f) };

	if (xr_value_failure(error, &f) == XR_OK)
		dprintf(STDERR_FILENO, "xrun: %s\n%s", f.text,
			f.backtrace != NULL ? f.backtrace : "");
}

/* Those say what the callee's library found, and not its function. */
static bool
is_ours(enum xr_status status)
{
	return status == XR_E_NO_FUNCTION || status == XR_E_SCHEMA ||
		status == XR_E_PROTO || status == XR_E_DECODE ||
		status == XR_E_CANCELLED;
}

XR_EXPORT enum xr_status
xr_reply_error(struct xr_call *call, struct xr_value *error)
{
	struct xr_value *outer;

	if (error == NULL || xr_value_kind(error) != XR_ERROR) {
		xr_value_unref(error);
		return XR_E_INVAL;
	}
	if (!call_take_answer(call)) {
		xr_value_unref(error);
		return XR_E_STATE;
	}
	outer = remote_error(call, error);
	if (outer != NULL)
		print(outer);
	send_error(call, outer);
	xr_value_unref(outer);
	xr_value_unref(error);
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_reply_fail(struct xr_call *call, enum xr_status status, const char *text)
{
	struct xr_value *error;

	if (status == XR_OK)
		return XR_E_INVAL;
	error = failure_new(status, "%s", text != NULL ? text : "");
	if (error != NULL && !is_ours(status))
		return xr_reply_error(call, error);
	if (!call_take_answer(call)) {
		xr_value_unref(error);
		return XR_E_STATE;
	}
	send_error(call, error);
	xr_value_unref(error);
	return XR_OK;
}

/* --- values --------------------------------------------------------------- */

/* What a remote call gives stays here; its caller hears that it is there. */
static enum xr_status
keep_value(struct xr_call *call, struct xr_value *value)
{
	struct xr_value *nil = xr_value_new_nil();
	struct values_out out = { 0 };
	enum xr_status status = XR_E_NOMEM;

	rref_made(&call->birth, value, false);
	if (value != NULL && nil != NULL)
		status = values_pack(nil, call->peer, &out, NULL);
	if (status == XR_OK)
		send_answer(call, MESSAGE_REPLY, MESSAGE_VALUE, out.parts,
			out.count);
	else
		send_status(call, status);
	values_out_fini(&out);
	xr_value_unref(nil);
	return status;
}

/* The answer is taken. */
static enum xr_status
send_value(struct xr_call *call, struct xr_value *value)
{
	struct values_out out = { 0 };
	struct xr_error err = { 0 };
	enum xr_status status;

	if ((call->flags & MESSAGE_REMOTE) != 0)
		return keep_value(call, value);
	status = value == NULL ? fail(&err, XR_E_NOMEM, "out of memory") :
				 values_pack(value, call->peer, &out, &err);
	if (status != XR_OK) {
		struct xr_value *error = failure_new(status, "%s", err.text);

		send_error(call, error);
		xr_value_unref(error);
		return status == XR_E_NOMEM ? XR_E_NOMEM : XR_E_ENCODE;
	}
	if (send_answer(call, MESSAGE_REPLY, MESSAGE_VALUE, out.parts,
		    out.count) != XR_OK)
		refs_out_undo(&out.refs);
	values_out_fini(&out);
	return XR_OK;
}

static bool
is_async(const struct xr_call *call)
{
	return call->func != NULL && (call->func->f.flags & XR_FN_ASYNC) != 0;
}

/* A function that promised a future, and gives a value while it runs. */
static bool
breaks_promise(const struct xr_call *call)
{
	return is_async(call) && !call->deferred && call->runs;
}

/* @what it answered with is not what its mark says. */
static enum xr_status
refuse(struct xr_call *call, const char *what)
{
	char line[400];

	snprintf(line, sizeof(line),
		is_async(call) ?
			"%s is marked XR_FN_ASYNC, so it must answer with a future, and answered with %s" :
			"%s is not marked XR_FN_ASYNC, and answered with %s",
		call->func != NULL ? call->func->f.name : "it", what);
	return xr_reply_fail(call, XR_E_INVAL, line) == XR_OK ? XR_E_INVAL :
								XR_E_STATE;
}

XR_EXPORT enum xr_status
xr_reply(struct xr_call *call, struct xr_value *value)
{
	enum xr_status status = XR_OK;
	const void *data;
	enum xr_kind kind;
	size_t len;

	if (breaks_promise(call)) {
		kind = xr_value_kind(value);
		xr_value_unref(value);
		return refuse(call, xr_kind_name(kind));
	}
	if (!call_take_answer(call)) {
		xr_value_unref(value);
		return XR_E_STATE;
	}
	if (call->values || value == NULL) {
		status = send_value(call, value);
	} else {
		data = xr_value_data(value, &len);
		send_answer(call, MESSAGE_REPLY, 0,
			&(struct xr_part){ data, len }, len > 0);
	}
	xr_value_unref(value);
	return status;
}

XR_EXPORT enum xr_status
xr_reply_bytes(struct xr_call *call, const void *data, size_t len)
{
	struct xr_part part = { data, len };

	if (call->values)
		return xr_reply(call, xr_value_new_bytes(data, len));
	if (breaks_promise(call))
		return refuse(call, "bytes");
	if (!call_take_answer(call))
		return XR_E_STATE;
	send_answer(call, MESSAGE_REPLY, 0, &part, len > 0);
	return XR_OK;
}

/* --- futures -------------------------------------------------------------- */

static void
future_ended(struct xr_future *future, void *ctx)
{
	struct xr_value *error = xr_future_error(future), *value = NULL;
	struct xr_call *call = ctx;

	if (error != NULL) {
		xr_reply_error(call, error);
	} else {
		xr_future_value(future, &value, NULL);
		xr_reply(call, value);
	}
	xr_future_unref(future);
	call_unref(call);
}

XR_EXPORT enum xr_status
xr_reply_future(struct xr_call *call, struct xr_future *future)
{
	enum xr_status status;
	struct xr_call *kept;

	if (future == NULL)
		return XR_E_INVAL;
	if (!is_async(call)) {
		xr_future_unref(future);
		return refuse(call, "a future");
	}
	kept = xr_call_defer(call);
	status = kept == NULL ? XR_E_NOMEM :
				xr_future_on_done(future, future_ended, kept);
	if (status == XR_OK)
		return XR_OK;
	xr_future_unref(future);
	xr_reply_fail(call, status, "out of memory");
	xr_call_drop(kept);
	return status;
}
