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
#include "worker/rpc/rpc_inner.h"
#include "worker/rpc/rref.h"
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
	struct xr_rref *made; /* of a remote call: a reference */
};

static enum xr_status
pack(const struct xr_rpc_call *call, struct prepared *p, struct xr_error *err)
{
	struct xr_value *body = body_of(call);
	enum xr_status status;

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

/* @target: whose method it is, in the life that its handle is of; or NULL. */
static enum xr_status
find_callee(const struct xr_rpc_call *call, struct xr_rref *target,
	struct prepared *p, struct xr_error *err)
{
	const char *name = call->func != NULL ?
		call->func :
		xr_value_func(call->bound, NULL);
	enum xr_status status = target != NULL ?
		rref_owner_peer(target, &p->q.to, err) :
		agent_peer(call->to, call->id, &p->q.to, err);

	if (status != XR_OK)
		return status;
	p->q.method = method_get(name);
	if (p->q.method != NULL)
		return XR_OK;
	if (name != NULL && name[0] != '\0' && strnlen(name, 256) < 256)
		return fail(err, XR_E_NOMEM, "out of memory");
	return fail(err, XR_E_INVAL, "a function's name is 1 to 255 bytes");
}

static enum xr_status
prepare(const struct xr_rpc_call *call, struct xr_rref *target, bool remote,
	struct prepared *p, struct xr_error *err)
{
	enum xr_status status = check(call, err);

	*p = (struct prepared){ .q = { .kind = MESSAGE_REQUEST,
					.flags = MESSAGE_VALUE,
					.call = true } };
	p->q.refs = &p->out.refs;
	p->out.refs.target = target;
	p->out.refs.has_birth = remote;
	if (target != NULL)
		p->q.flags |= MESSAGE_METHOD;
	if (remote)
		p->q.flags |= MESSAGE_REMOTE;
	if (status == XR_OK)
		status = agent_timeout_field(call->timeout, &p->q.timeout, err);
	if (status == XR_OK)
		status = find_callee(call, target, p, err);
	if (status == XR_OK && remote)
		status = rref_birth(p->q.to, &p->out.refs.birth, &p->made, err);
	if (status == XR_OK)
		status = pack(call, p, err);
	if (status != XR_OK && p->made != NULL)
		rref_unborn(p->made);
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

enum xr_status
rpc_sync(const struct xr_rpc_call *call, struct xr_rref *target,
	struct xr_value **value, struct xr_error *err)
{
	struct ask_sync a = { .read = read_value };
	enum xr_status status = agent_enter(err);
	struct prepared p;

	if (status != XR_OK)
		return status;
	status = prepare(call, target, false, &p, err);
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

enum xr_status
rpc_ask(const struct xr_rpc_call *call, struct xr_rref *target,
	struct xr_future **future, struct xr_error *err)
{
	enum xr_status status = agent_enter(err);
	struct prepared p;

	if (status != XR_OK)
		return status;
	status = prepare(call, target, false, &p, err);
	if (status == XR_OK)
		status = ask_future(&p.q, read_value, future, err);
	values_out_fini(&p.out);
	agent_leave();
	return status;
}

enum xr_status
rpc_async(const struct xr_rpc_call *call, struct xr_rref *target,
	struct xr_future **future, struct xr_error *err)
{
	enum xr_status status = rpc_ask(call, target, future, err);

	if (status == XR_OK)
		block_add(*future);
	return status;
}

/* The limit is of the owner's word, which comes before the function runs, or after;
 * see enum xr_rref_flags. Of the function there is none. */
enum xr_status
rpc_remote(const struct xr_rpc_call *call, struct xr_rref *target,
	struct xr_rref **rref, struct xr_error *err)
{
	enum xr_status status = agent_enter(err);
	struct xr_future *future = NULL;
	struct prepared p;
	int64_t timeout;

	if (status != XR_OK)
		return status;
	status = prepare(call, target, true, &p, err);
	if (status == XR_OK) {
		timeout = p.q.timeout;
		p.q.timeout = INT64_MAX;
		p.q.limit = timeout > 0 ? timeout : 1; /* 0: none */
		status = ask_future(&p.q, read_value, &future, err);
		if (status == XR_OK &&
			rref_asked(p.made, future, timeout) != XR_OK)
			status = fail(err, XR_E_NOMEM, "out of memory");
		if (status != XR_OK)
			rref_unborn(p.made);
	}
	values_out_fini(&p.out);
	agent_leave();
	if (status == XR_OK)
		*rref = p.made;
	return status;
}

XR_EXPORT enum xr_status
xr_rpc_sync(const struct xr_rpc_call *call, struct xr_value **value,
	struct xr_error *err)
{
	return XR_KEEP_FRAME(rpc_sync(call, NULL, value, err));
}

XR_EXPORT enum xr_status
xr_rpc_async(const struct xr_rpc_call *call, struct xr_future **future,
	struct xr_error *err)
{
	return rpc_async(call, NULL, future, err);
}

XR_EXPORT enum xr_status
xr_rpc_remote(const struct xr_rpc_call *call, struct xr_rref **rref,
	struct xr_error *err)
{
	return XR_KEEP_FRAME(rpc_remote(call, NULL, rref, err));
}
