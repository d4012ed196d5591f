/* SPDX-License-Identifier: Apache-2.0 */
/* values.c - see values.h. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "wire/value/value_hooks.h"
#include "worker/rpc/devices.h"
#include "worker/rpc/held.h"
#include "worker/rpc/parcel.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/serve_inner.h"
#include "worker/rpc/values.h"

/* --- out ------------------------------------------------------------------ */

/* What is known while a value is encoded, or decoded. */
struct packing {
	struct peer *peer;
	const struct held *held; /* of one that is decoded */
	struct refs_in *in;      /* and its references; or NULL */
	struct refs_out *refs;   /* of one that is encoded */
	bool share;              /* tensors, too */
	uint32_t count;
	struct xr_part loans[VALUES_LOANS];
	enum xr_status (*device)(void *peer, struct xr_tensor_desc *desc,
		struct xr_error *err);
};

static enum xr_status
device(void *ctx, struct xr_tensor_desc *desc, struct xr_error *err)
{
	const struct packing *p = ctx;

	return p->device(p->peer, desc, err);
}

static enum xr_status
pack_rref(void *ctx, struct xr_rref *rref, uint8_t out[VALUE_RREF_BYTES],
	struct xr_error *err)
{
	return refs_out_add(((struct packing *)ctx)->refs, rref, out, err);
}

/* Bytes never change, so that nobody sees a difference. */
static bool
lend(void *ctx, const struct xr_part *part, bool tensor, uint64_t *number)
{
	struct packing *p = ctx;

	if (part->len < LEND_MIN || p->count == VALUES_LOANS ||
		(tensor && !p->share) || !peer_can_lend(p->peer, part))
		return false;
	*number = p->count;
	p->loans[p->count++] = *part;
	return true;
}

/* What a carrier keeps: the value's parts, and the references in front. */
struct packed {
	struct xr_encoded *encoded;
	void *refs;
};

static void
free_packed(void *what)
{
	struct packed *p = what;

	xr_encoded_free(p->encoded);
	free(p->refs);
	free(p);
}

static bool
is_long(const struct values_out *out)
{
	size_t len = 0;

	for (uint32_t i = 0; i < out->count; i++)
		len += out->parts[i].len;
	return len > PARCEL_MIN;
}

/* Without memory for it all is copied that a carrier would keep. */
static void
make_parcel(struct values_out *out)
{
	struct packed *p = malloc(sizeof(*p));

	if (p == NULL)
		return;
	*p = (struct packed){ out->encoded, out->refs.wire };
	out->parcel = parcel_new(free_packed, p);
	if (out->parcel == NULL) {
		free(p);
		return;
	}
	out->encoded = NULL;
	out->refs.lent = true;
}

/* The references in front of the value. */
static enum xr_status
put_refs(struct values_out *out, struct xr_error *err)
{
	struct xr_part first = refs_out_part(&out->refs);

	if (first.len == 0)
		return XR_OK;
	out->owned = calloc(out->count + 1, sizeof(*out->owned));
	if (out->owned == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	out->owned[0] = first;
	memcpy(out->owned + 1, out->parts, out->count * sizeof(*out->parts));
	out->parts = out->owned;
	out->count++;
	return XR_OK;
}

static enum xr_status
encode(struct xr_value *value, struct packing *p, struct values_out *out,
	struct xr_error *err)
{
	const struct value_codec_ctx ctx = {
		.ctx = p,
		.rref_pack = pack_rref,
		.device = device,
		.lend = lend,
	};
	const struct value_encoding how = {
		.mode = VALUE_LEND,
		.ctx = &ctx,
	};
	enum xr_status status = value_encode(value, &how, &out->encoded, err);
	size_t n;

	if (status != XR_OK)
		return status;
	out->parts = xr_encoded_parts(out->encoded, &n);
	out->count = (uint32_t)n;
	out->loan_count = p->count;
	memcpy(out->loans, p->loans, p->count * sizeof(p->loans[0]));
	return put_refs(out, err);
}

static enum xr_status
pack(struct xr_value *value, struct packing *p, struct values_out *out,
	struct xr_error *err)
{
	enum xr_status status = refs_out_begin(&out->refs, p->peer, err);

	p->refs = &out->refs;
	if (status == XR_OK)
		status = encode(value, p, out, err);
	if (status != XR_OK) {
		refs_out_undo(&out->refs);
		values_out_fini(out);
	} else if (is_long(out) || p->count > 0) {
		make_parcel(out);
	}
	return status;
}

enum xr_status
values_pack(struct xr_value *value, struct peer *to, struct values_out *out,
	struct xr_error *err)
{
	struct packing p = { .peer = to, .device = devices_to };

	return pack(value, &p, out, err);
}

enum xr_status
values_pack_shared(struct xr_value *value, struct peer *to,
	struct values_out *out, struct xr_error *err)
{
	struct packing p = { .peer = to, .share = true, .device = devices_to };

	return pack(value, &p, out, err);
}

enum xr_status
values_pack_answer(struct xr_value *value, const struct xr_call *call,
	struct values_out *out, struct xr_error *err)
{
	struct packing p = {
		.peer = call->peer,
		.share = call_promises(call, XR_FN_SHARE),
		.device = devices_back,
	};

	return pack(value, &p, out, err);
}

void
values_out_fini(struct values_out *out)
{
	xr_encoded_free(out->encoded);
	refs_out_fini(&out->refs);
	free(out->owned);
	parcel_unref(out->parcel);
	*out = (struct values_out){ 0 };
}

/* --- in ------------------------------------------------------------------- */

/* Bytes from which on there may be long parts in it, which stay where they are. */
#define LONG_BODY 2048

static void
owner_ref(void *owner)
{
	held_ref(owner);
}

static void
owner_unref(void *owner)
{
	held_unref(owner);
}

static void *
borrow(void *ctx, uint64_t number, uint64_t len)
{
	const struct packing *p = ctx;

	return held_loan(p->held, number, len);
}

static enum xr_status
unpack_rref(void *ctx, const uint8_t in[VALUE_RREF_BYTES],
	struct xr_rref **rref, struct xr_error *err)
{
	return refs_find(((const struct packing *)ctx)->in, in, rref, err);
}

/* What a value is read out of. */
struct source {
	struct held *held; /* where it lies; NULL: all is copied */
	struct peer *from;
	struct refs_in *refs;
};

static enum xr_status
decode(struct xr_part part, const struct source *source,
	struct xr_value **value, struct xr_error *err)
{
	const struct packing p = { .peer = source->from,
		.held = source->held,
		.in = source->refs };
	const struct value_codec_ctx ctx = {
		.ctx = (void *)&p,
		.rref_unpack = unpack_rref,
		.borrow = borrow,
	};
	const struct value_owner owner = {
		.owner = source->held,
		.stable = true,
		.ref = owner_ref,
		.unref = owner_unref,
	};
	const struct value_reader reader = {
		.parts = &part,
		.count = 1,
		.owner = source->held != NULL ? &owner : NULL,
		.ctx = &ctx,
	};

	return value_decode(&reader, value, err);
}

/* The last @len bytes of @whole. */
static enum xr_status
take_and_decode(const struct xr_body *whole, size_t len,
	const struct source *source, struct xr_value **value,
	struct xr_error *err)
{
	struct held *held = held_take(whole);
	struct source kept = { held, source->from, source->refs };
	enum xr_status status;
	struct xr_part part;

	if (held == NULL)
		return fail(err, XR_E_NOMEM, "no memory for a message");
	part = (struct xr_part){
		(const char *)held_data(held) + (whole->len - len),
		len,
	};
	status = decode(part, &kept, value, err);
	held_unref(held);
	return status;
}

enum xr_status
values_unpack(const struct xr_body *body, struct peer *from,
	struct xr_value **value, struct xr_error *err)
{
	struct source source = { NULL, from, NULL };
	struct xr_body rest = *body;
	enum xr_status status = refs_take(&rest, from, &source.refs, err);

	if (status != XR_OK)
		return status;
	status = rest.len < LONG_BODY && body->loan_count == 0 ?
		decode((struct xr_part){ rest.data, rest.len }, &source, value,
			err) :
		take_and_decode(body, rest.len, &source, value, err);
	refs_free(source.refs);
	return status;
}

static enum xr_status
unpack_call(struct xr_call *call, const struct xr_body *body,
	struct xr_value **all, struct xr_error *err)
{
	struct source source = { call->held, call->peer, call->rrefs };

	if (call->held == NULL &&
		(body->len >= LONG_BODY || body->loan_count > 0))
		return take_and_decode(call->whole, body->len, &source, all,
			err);
	return decode((struct xr_part){ body->data, body->len }, &source, all,
		err);
}

/* @bound in front of the arguments. */
static struct xr_value *
with_bound(struct xr_value *bound, const struct xr_value *args)
{
	struct xr_value *list = xr_value_new_list();
	enum xr_status status = list != NULL ?
		xr_value_append(list, xr_value_ref(bound)) :
		XR_E_NOMEM;

	for (size_t i = 0; i < xr_value_count(args) && status == XR_OK; i++)
		status = xr_value_append(list,
			xr_value_ref(xr_value_at(args, i)));
	if (status == XR_OK)
		return list;
	xr_value_unref(list);
	return NULL;
}

static bool
is_call(const struct xr_value *v)
{
	enum xr_kind named;

	if (xr_value_kind(v) != XR_LIST || xr_value_count(v) != 3 ||
		xr_value_kind(xr_value_at(v, 0)) != XR_LIST)
		return false;
	named = xr_value_kind(xr_value_at(v, 1));
	return named == XR_NIL || named == XR_DICT;
}

enum xr_status
values_unpack_call(struct xr_call *call, const struct xr_body *body,
	struct xr_error *err)
{
	struct xr_value *all = NULL, *bound;
	enum xr_status status = unpack_call(call, body, &all, err);

	if (status != XR_OK)
		return status;
	if (!is_call(all)) {
		xr_value_unref(all);
		return fail(err, XR_E_PROTO, "that is no call");
	}
	bound = xr_value_at(all, 2);
	call->args = xr_value_kind(bound) == XR_NIL ?
		xr_value_ref(xr_value_at(all, 0)) :
		with_bound(bound, xr_value_at(all, 0));
	if (xr_value_kind(xr_value_at(all, 1)) == XR_DICT)
		call->named = xr_value_ref(xr_value_at(all, 1));
	xr_value_unref(all);
	return call->args != NULL ? XR_OK :
				    fail(err, XR_E_NOMEM, "out of memory");
}
