/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - calls with bytes; see xrun/call.h. */
#include <stdlib.h>
#include <string.h>

#include <xrun/call.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/held.h"
#include "worker/rpc/method.h"
#include "worker/rpc/parcel.h"

/* They are what these names stand for. */
static struct peer *
peer_of(struct xr_peer *peer)
{
	return (struct peer *)peer;
}

static const struct method *
method_of(struct xr_method_ref *method)
{
	return (const struct method *)method;
}

XR_EXPORT enum xr_status
xr_peer_find(const char *name, int64_t id, struct xr_peer **peer,
	struct xr_error *err)
{
	enum xr_status status = agent_enter(err);
	struct peer *p = NULL;

	if (status != XR_OK)
		return status;
	status = agent_peer(name, id, &p, err);
	agent_leave();
	if (status == XR_OK)
		*peer = (struct xr_peer *)p;
	return status;
}

XR_EXPORT enum xr_status
xr_method_find(const char *name, struct xr_method_ref **method,
	struct xr_error *err)
{
	const struct method *m = method_get(name);

	if (m == NULL)
		return fail(err, XR_E_INVAL,
			"a function's name is 1 to 255 bytes");
	*method = (struct xr_method_ref *)m;
	return XR_OK;
}

static enum xr_status
ask_for(const struct xr_raw_call *call, struct xr_part *part,
	struct question *q, struct xr_error *err)
{
	if (call == NULL || call->size < sizeof(*call) || call->to == NULL ||
		call->method == NULL || (call->data == NULL && call->len > 0))
		return fail(err, XR_E_INVAL,
			"a call needs its size, a peer and a method");
	*part = (struct xr_part){ call->data, call->len };
	*q = (struct question){
		.to = peer_of(call->to),
		.kind = MESSAGE_REQUEST,
		.method = method_of(call->method),
		.parts = part,
		.count = call->len > 0,
		.call = true,
	};
	return agent_timeout_field(call->timeout, &q->timeout, err);
}

/* What is long stays where it is until it is answered. */
static void
lend(struct question *q, size_t len)
{
	if (len <= PARCEL_MIN)
		return;
	q->parcel = parcel_new(NULL, NULL);
	q->lent = q->parcel != NULL;
}

XR_EXPORT enum xr_status
xr_call_sync(const struct xr_raw_call *call, struct xr_raw_reply *reply,
	struct xr_error *err)
{
	enum xr_status status = agent_enter(err);
	struct ask_sync a = { 0 };
	struct xr_part part;
	struct question q;

	if (status != XR_OK)
		return status;
	status = ask_for(call, &part, &q, err);
	if (status == XR_OK) {
		lend(&q, call->len);
		a.into = call->reply;
		a.cap = call->reply_cap;
		status = ask_wait(&q, &a, err);
		parcel_end(q.parcel, q.to);
	}
	agent_leave();
	xr_value_unref(a.error);
	if (status != XR_OK)
		return status;
	*reply = (struct xr_raw_reply){
		.data = a.data,
		.len = a.len,
		.own = a.held,
	};
	return a.into != NULL && a.len > a.cap ?
		fail(err, XR_E_RANGE,
			"an answer of %zu bytes, and room for %zu", a.len,
			a.cap) :
		XR_OK;
}

XR_EXPORT void
xr_raw_reply_free(struct xr_raw_reply *reply)
{
	if (reply == NULL)
		return;
	held_unref(reply->own);
	*reply = (struct xr_raw_reply){ 0 };
}

enum xr_status
call_within(const struct xr_raw_call *call, int64_t limit,
	struct xr_future **future, struct xr_error *err)
{
	enum xr_status status = agent_enter(err);
	struct xr_part part;
	struct question q;

	if (status != XR_OK)
		return status;
	status = ask_for(call, &part, &q, err);
	if (status == XR_OK) {
		lend(&q, call->len);
		q.limit = limit;
		status = ask_future(&q, NULL, future, err);
		parcel_unref(q.parcel);
	}
	agent_leave();
	return status;
}

XR_EXPORT enum xr_status
xr_call_async(const struct xr_raw_call *call, struct xr_future **future,
	struct xr_error *err)
{
	return call_within(call, 0, future, err);
}

XR_EXPORT enum xr_status
xr_call_oneway(const struct xr_raw_call *call, struct xr_error *err)
{
	enum xr_status status = agent_enter(err);
	struct xr_part part;
	struct question q;

	if (status != XR_OK)
		return status;
	status = ask_for(call, &part, &q, err);
	if (status == XR_OK) {
		q.kind = MESSAGE_ONEWAY;
		status = ask_tell(&q, err);
	}
	agent_leave();
	return status;
}
