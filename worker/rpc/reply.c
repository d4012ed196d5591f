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
#include "worker/rpc/held.h"
#include "worker/rpc/message.h"
#include "worker/rpc/parcel.h"
#include "worker/rpc/prof.h"
#include "worker/rpc/serve_inner.h"
#include "worker/rpc/values.h"

struct answer {
	enum message_kind kind;
	uint8_t flags;
	bool lent;             /* nobody writes to the parts any more */
	struct parcel *parcel; /* what they lie in; NULL: see peer_send() */
	const struct xr_part *parts, *loans;
	uint32_t count, loan_count;
};

/* Enters the agent; agent_leave() follows. Returns false if the agent ends or has ended, or if
 * the caller is lost: then a reply is dropped, and the caller receives XR_E_PEER_LOST. */
static bool
reach(struct xr_call *call)
{
	if (!agent_come())
		return false;
	if (!atomic_load(&call->orphan))
		return true;
	agent_leave();
	return false;
}

/* An error that has no room for itself: its status alone. */
static void
send_number(struct xr_call *call, enum xr_status status)
{
	int32_t number = status;
	struct xr_part part = { &number, sizeof(number) };
	struct xr_message m = {
		.record = { .kind = MESSAGE_ERROR, .corr = call->corr },
		.answer = true,
		.parts = &part,
		.count = 1,
	};

	if (!call->oneway)
		peer_send(call->peer, &m, NULL, NULL, NULL);
}

/* The caller is gone, or it will hear of that: nothing else can be done. */
static enum xr_status
send_answer(struct xr_call *call, const struct answer *a)
{
	struct xr_message m = {
		.record = {
			.kind = (uint8_t)a->kind,
			.flags = a->flags,
			.corr = call->corr,
		},
		.answer = true,
		.parts = a->parts,
		.count = a->count,
		.lent = a->lent,
		.loans = a->loans,
		.loan_count = a->loan_count,
	};
	enum xr_status status;

	if (call->prof != NULL)
		prof_answer(call);
	if (call->oneway)
		return XR_OK;
	status = peer_send(call->peer, &m, NULL, a->parcel, NULL);
	/* It did not go because of what it is: say that, in few bytes. */
	if (status == XR_E_NOMEM || status == XR_E_RANGE)
		send_number(call, status);
	return status;
}

static void
send_status(struct xr_call *call, enum xr_status status)
{
	if (call->prof != NULL)
		prof_answer(call);
	send_number(call, status);
}

/* --- errors --------------------------------------------------------------- */

/* And let go of them. */
static void
send_values(struct xr_call *call, enum message_kind kind,
	struct values_out *out)
{
	const struct answer a = {
		.kind = kind,
		.flags = MESSAGE_VALUE,
		.parcel = out->parcel,
		.parts = out->parts,
		.loans = out->loans,
		.count = out->count,
		.loan_count = out->loan_count,
	};

	if (send_answer(call, &a) != XR_OK)
		refs_out_undo(&out->refs);
	values_out_fini(out);
}

/* @error NULL: there is no memory for it. */
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
	send_values(call, MESSAGE_ERROR, &out);
}

/* What the function's own error is the cause of, for the caller. Not inlined: so
 * that the backtrace begins with the same function whatever the compiler does. */
static __attribute__((noinline)) struct xr_value *
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
		trace_text(&here, 0, trace, sizeof(trace));
	}
	f.status = XR_E_REMOTE;
	f.type = cause.type;
	f.text = text;
	f.func = call->func != NULL ? call->func->f.name : NULL;
	f.worker = self->name;
	f.worker_id = self->id;
	f.backtrace = cause.backtrace != NULL ? cause.backtrace : trace;
	f.cause = error;
	error = xr_value_new_error(&f);
	/* They may be nested too deep for one more. */
	f.cause = cause.cause;
	return error != NULL ? error : xr_value_new_error(&f);
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
	if (call->desk != NULL) {
		call->desk->answer(call, error, true);
		return XR_OK;
	}
	if (reach(call)) {
		outer = remote_error(call, error);
		if (outer != NULL)
			print(outer);
		send_error(call, outer);
		agent_leave();
		xr_value_unref(outer);
	}
	xr_value_unref(error);
	return XR_OK;
}

enum xr_status
call_refuse(struct xr_call *call, enum xr_status status, const char *text)
{
	struct xr_value *error;

	if (!call_take_answer(call))
		return XR_E_STATE;
	if (call->desk != NULL) {
		call->desk->answer(call, failure_new(status, "%s", text), true);
		return XR_OK;
	}
	if (!reach(call))
		return XR_OK;
	error = failure_new(status, "%s", text);
	if (error == NULL && (call->flags & MESSAGE_REMOTE) != 0)
		rref_made(&call->birth, NULL, true);
	if (error != NULL)
		send_error(call, error);
	else
		send_status(call, status);
	agent_leave();
	xr_value_unref(error);
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_reply_fail(struct xr_call *call, enum xr_status status, const char *text)
{
	struct xr_value *error;

	if (status == XR_OK)
		return XR_E_INVAL;
	if (text == NULL)
		text = "";
	if (is_ours(status))
		return call_refuse(call, status, text);
	error = failure_new(status, "%s", text);
	return error != NULL ? xr_reply_error(call, error) :
			       call_refuse(call, XR_E_NOMEM, text);
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
	if (nil != NULL)
		status = values_pack_answer(nil, call, &out, NULL);
	if (status == XR_OK)
		send_values(call, MESSAGE_REPLY, &out);
	else
		send_status(call, status);
	xr_value_unref(nil);
	return status;
}

static enum xr_status
send_value(struct xr_call *call, struct xr_value *value)
{
	struct values_out out = { 0 };
	struct xr_error err = { 0 };
	enum xr_status status;

	if ((call->flags & MESSAGE_REMOTE) != 0)
		return keep_value(call, value);
	status = values_pack_answer(value, call, &out, &err);
	if (status != XR_OK) {
		struct xr_value *error = failure_new(status, "%s", err.text);

		send_error(call, error);
		xr_value_unref(error);
		return status == XR_E_NOMEM ? XR_E_NOMEM : XR_E_ENCODE;
	}
	send_values(call, MESSAGE_REPLY, &out);
	return XR_OK;
}

static void
unref_held(void *held)
{
	held_unref(held);
}

/* What the call came with, if @part is of that: nobody can write to it, so it goes
 * back as it is. @part is then where it stays. */
static struct parcel *
parcel_of_body(struct xr_call *call, struct xr_part *part)
{
	const struct xr_body *body =
		call->whole != NULL ? call->whole : &call->body;
	uintptr_t at = (uintptr_t)part->data - (uintptr_t)body->data;
	struct held *held = NULL;
	struct parcel *parcel;

	if (part->len <= PARCEL_MIN || at > body->len ||
		part->len > body->len - at)
		return NULL;
	if (call->held != NULL)
		held = held_ref(call->held);
	else if (call->whole != NULL)
		held = held_take(call->whole);
	parcel = held != NULL ? parcel_new(unref_held, held) : NULL;
	if (parcel == NULL)
		held_unref(held);
	else if (call->held == NULL)
		part->data = (const char *)held_data(held) + at;
	return parcel;
}

static enum xr_status
send_bytes(struct xr_call *call, const void *data, size_t len)
{
	enum xr_status status;
	struct xr_part part = { data, len };
	struct answer a = {
		.kind = MESSAGE_REPLY,
		.parcel = parcel_of_body(call, &part),
		.parts = &part,
		.count = len > 0,
	};

	a.lent = a.parcel != NULL;
	status = send_answer(call, &a);
	parcel_unref(a.parcel);
	return status;
}

/* What a function with bytes answers with. */
static enum xr_status
send_plain(struct xr_call *call, const struct xr_value *value)
{
	enum xr_kind kind = xr_value_kind(value);
	struct xr_value *error;
	struct xr_part part;

	if (kind == XR_BYTES || kind == XR_TEXT || kind == XR_NIL) {
		part.data = xr_value_data(value, &part.len);
		send_bytes(call, part.data, part.len);
		return XR_OK;
	}
	error = failure_new(XR_E_ENCODE,
		"%s was called with bytes, and answered with a value of kind %s",
		xr_call_func(call), xr_kind_name(kind));
	send_error(call, error);
	xr_value_unref(error);
	return XR_E_ENCODE;
}

/* The answer is taken. */
static enum xr_status
send_any(struct xr_call *call, struct xr_value *value)
{
	enum xr_status status;

	if (!reach(call))
		return XR_OK;
	status = call->values ? send_value(call, value) :
				send_plain(call, value);
	agent_leave();
	return status;
}

static bool
is_async(const struct xr_call *call)
{
	return call_promises(call, XR_FN_ASYNC);
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

/* What a constructor gives that had no memory, or refused what it was given. */
static enum xr_status
answer_with_null(struct xr_call *call)
{
	char line[400];

	snprintf(line, sizeof(line),
		"%s answered with NULL, which is no value: it could not be made",
		xr_call_func(call));
	return call_refuse(call, XR_E_ENCODE, line) == XR_OK ? XR_E_ENCODE :
							       XR_E_STATE;
}

static enum xr_status
without_memory(struct xr_call *call)
{
	return call_refuse(call, XR_E_NOMEM, "out of memory") == XR_OK ?
		XR_E_NOMEM :
		XR_E_STATE;
}

enum xr_status
call_done(struct xr_call *call)
{
	struct xr_value *nil = xr_value_new_nil();

	return nil != NULL ? xr_reply(call, nil) : without_memory(call);
}

XR_EXPORT enum xr_status
xr_reply(struct xr_call *call, struct xr_value *value)
{
	enum xr_status status;
	enum xr_kind kind;

	if (value == NULL)
		return answer_with_null(call);
	if (breaks_promise(call)) {
		kind = xr_value_kind(value);
		xr_value_unref(value);
		return refuse(call, xr_kind_name(kind));
	}
	if (!call_take_answer(call)) {
		xr_value_unref(value);
		return XR_E_STATE;
	}
	if (call->desk != NULL) {
		call->desk->answer(call, value, false);
		return XR_OK;
	}
	status = send_any(call, value);
	xr_value_unref(value);
	return status;
}

/* A caller that is gone is no error. */
XR_EXPORT enum xr_status
xr_reply_bytes(struct xr_call *call, const void *data, size_t len)
{
	enum xr_status status = XR_OK;
	struct xr_value *v;

	if (call->values) {
		v = xr_value_new_bytes(data, len);
		return v != NULL ? xr_reply(call, v) : without_memory(call);
	}
	if (breaks_promise(call))
		return refuse(call, "bytes");
	if (!call_take_answer(call))
		return XR_E_STATE;
	if (reach(call)) {
		status = send_bytes(call, data, len);
		agent_leave();
	}
	return status == XR_E_NOMEM || status == XR_E_RANGE ? status : XR_OK;
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
