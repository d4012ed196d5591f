/* SPDX-License-Identifier: Apache-2.0 */
/* rpc.c - calls with values; see xrun/rpc.h. */
#include <stdlib.h>
#include <string.h>

#include <xrun/rpc.h>

#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/block.h"
#include "worker/rpc/method.h"
#include "worker/rpc/values.h"

static enum xr_status
check(const struct xr_rpc_call *call, struct xr_error *err)
{
	if (call == NULL || call->size < sizeof(*call))
		return fail(err, XR_E_INVAL,
			"struct xr_rpc_call: its size is %u",
			call != NULL ? call->size : 0);
	if ((call->func == NULL) == (call->bound == NULL))
		return fail(err, XR_E_INVAL,
			"a call names its function, or has one that is bound");
	if ((call->flags & ~(uint32_t)XR_RPC_SHARE) != 0)
		return fail(err, XR_E_INVAL, "flags 0x%x of a call",
			call->flags);
	if (call->bound != NULL && xr_value_kind(call->bound) != XR_FUNC)
		return fail(err, XR_E_INVAL, "bound is of kind %s, not func",
			xr_kind_name(xr_value_kind(call->bound)));
	if (call->args != NULL && xr_value_kind(call->args) != XR_LIST)
		return fail(err, XR_E_INVAL, "args are of kind %s, not list",
			xr_kind_name(xr_value_kind(call->args)));
	if (call->named != NULL && xr_value_kind(call->named) != XR_DICT)
		return fail(err, XR_E_INVAL, "named are of kind %s, not dict",
			xr_kind_name(xr_value_kind(call->named)));
	return XR_OK;
}

static struct xr_value *
or_nil(struct xr_value *v)
{
	return v != NULL ? xr_value_ref(v) : xr_value_new_nil();
}

/* The body's LIST; see values.h. */
static struct xr_value *
body_of(const struct xr_rpc_call *call)
{
	struct xr_value *bound = NULL, *items[3];

	if (call->bound != NULL)
		xr_value_func(call->bound, &bound);
	items[0] = call->args != NULL ? xr_value_ref(call->args) :
					xr_value_new_list();
	items[1] = or_nil(call->named);
	items[2] = or_nil(bound);
	return xr_value_new_list_of(items, 3);
}

struct prepared {
	struct question q;
	struct values_out out;
};

static enum xr_status
prepare(const struct xr_rpc_call *call, struct prepared *p,
	struct xr_error *err)
{
	enum xr_status status = check(call, err);
	const char *name;
	struct xr_value *body;

	*p = (struct prepared){ .q = { .kind = MESSAGE_REQUEST,
					.flags = MESSAGE_VALUE,
					.call = true } };
	if (status == XR_OK)
		status = agent_timeout(call->timeout, &p->q.timeout, err);
	if (status == XR_OK)
		status = agent_peer(call->to, call->id, &p->q.to, err);
	if (status != XR_OK)
		return status;
	name = call->func != NULL ? call->func :
				    xr_value_func(call->bound, NULL);
	p->q.method = method_get(name);
	if (p->q.method == NULL)
		return fail(err, XR_E_INVAL,
			"a function's name is 1 to 255 bytes");
	body = body_of(call);
	if (body == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	status = (call->flags & XR_RPC_SHARE) != 0 ?
		values_pack_shared(body, p->q.to, &p->out, err) :
		values_pack(body, p->q.to, &p->out, err);
	p->q.parts = p->out.parts;
	p->q.count = p->out.count;
	p->q.parcel = p->out.parcel;
	p->q.loans = p->out.loans;
	p->q.loan_count = p->out.loan_count;
	xr_value_unref(body);
	return status;
}

static struct xr_value *
read_value(struct peer *from, const struct xr_record *record,
	const struct xr_body *body, struct xr_error *err)
{
	struct xr_value *v = NULL;

	if ((record->flags & MESSAGE_VALUE) == 0) {
		fail(err, XR_E_PROTO, "%s (%u) answered with bytes", from->name,
			from->id);
		return NULL;
	}
	return values_unpack(body, from, &v, err) == XR_OK ? v : NULL;
}

XR_EXPORT enum xr_status
xr_rpc_sync(const struct xr_rpc_call *call, struct xr_value **value,
	struct xr_error *err)
{
	struct ask_sync a = { .read = read_value };
	enum xr_status status = agent_enter(err);
	struct prepared p;

	if (status != XR_OK)
		return status;
	status = prepare(call, &p, err);
	if (status == XR_OK)
		status = ask_wait(&p.q, &a, err);
	values_out_fini(&p.out);
	agent_leave();
	xr_value_unref(a.error);
	if (status == XR_OK && value != NULL)
		*value = a.value;
	else
		xr_value_unref(a.value);
	return status;
}

XR_EXPORT enum xr_status
xr_rpc_async(const struct xr_rpc_call *call, struct xr_future **future,
	struct xr_error *err)
{
	enum xr_status status = agent_enter(err);
	struct prepared p;

	if (status != XR_OK)
		return status;
	status = prepare(call, &p, err);
	if (status == XR_OK)
		status = ask_future(&p.q, read_value, future, err);
	values_out_fini(&p.out);
	agent_leave();
	if (status == XR_OK)
		block_add(*future);
	return status;
}
