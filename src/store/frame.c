/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c - see frame.h. */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "store/frame.h"
#include "store/number.h"

/* --- frames ---------------------------------------------------------------- */

enum xr_status
frame_size(struct span in, size_t *size, struct xr_error *err)
{
	*size = 0;
	if (in.len < 4)
		return XR_OK;
	*size = number_get(in.at, 4) + 4;
	if (*size < FRAME_HEAD || *size > FRAME_MAX)
		return fail(err, XR_E_PROTO,
			"store: %zu bytes are no message of a store", *size);
	return XR_OK;
}

static enum xr_status
read_parts(struct span rest, struct frame *f, struct xr_error *err)
{
	const char *lengths = rest.at;

	if (f->count > FRAME_PARTS || rest.len < 4 * (size_t)f->count)
		return fail(err, XR_E_PROTO, "store: a message of %u parts",
			f->count);
	rest.at += 4 * f->count;
	rest.len -= 4 * f->count;
	for (uint32_t i = 0; i < f->count; i++) {
		size_t len = number_get(lengths + 4 * i, 4);

		if (len > rest.len)
			return fail(err, XR_E_PROTO,
				"store: a message is shorter than its parts");
		f->part[i] = (struct span){ rest.at, len };
		rest.at += len;
		rest.len -= len;
	}
	if (rest.len > 0)
		return fail(err, XR_E_PROTO,
			"store: a message is longer than its parts");
	return XR_OK;
}

enum xr_status
frame_read(struct span in, struct frame *f, struct xr_error *err)
{
	const char *p = in.at;

	if (in.len < FRAME_HEAD || number_get(p, 4) != in.len - 4)
		return fail(err, XR_E_PROTO, "store: a message is cut off");
	f->type = (uint8_t)p[4];
	f->count = (uint32_t)number_get(p + 6, 2);
	f->id = (int64_t)number_get(p + 8, 8);
	f->number = (int64_t)number_get(p + 16, 8);
	f->status = (int32_t)number_get(p + 24, 4);
	return read_parts((struct span){ p + FRAME_HEAD, in.len - FRAME_HEAD },
		f, err);
}

void
frame_put(struct buf *out, const struct frame *f, size_t after)
{
	char head[FRAME_HEAD] = { 0 }, length[4];
	size_t size = FRAME_HEAD;

	for (uint32_t i = 0; i < f->count; i++)
		size += 4 + f->part[i].len;
	number_put(head, size - 4, 4);
	head[4] = (char)f->type;
	number_put(head + 6, f->count, 2);
	number_put(head + 8, (uint64_t)f->id, 8);
	number_put(head + 16, (uint64_t)f->number, 8);
	number_put(head + 24, (uint32_t)f->status, 4);
	buf_put(out, head, sizeof(head));
	for (uint32_t i = 0; i < f->count; i++) {
		number_put(length, f->part[i].len, 4);
		buf_put(out, length, 4);
	}
	for (uint32_t i = 0; i < f->count; i++)
		buf_put(out, f->part[i].at,
			f->part[i].len - (i + 1 == f->count ? after : 0));
}

/* --- the first message of each side ---------------------------------------- */

void
frame_put_hello(struct buf *out, const struct frame_hello *hello)
{
	struct span part[3] = { span_of(FRAME_MAGIC), hello->nonce,
		hello->proof };
	struct frame f = {
		.type = FRAME_HELLO,
		.id = hello->host,
		.number = FRAME_VERSION,
		.status = hello->status,
		.count = 1u + (hello->nonce.len > 0) + (hello->proof.len > 0),
		.part = part,
	};

	frame_put(out, &f, 0);
}

enum xr_status
frame_read_hello(const struct frame *f, bool host, struct frame_hello *hello,
	struct xr_error *err)
{
	if (f->type != FRAME_HELLO || f->id != host || f->count < 1 ||
		f->count > 3 || !span_is(f->part[0], FRAME_MAGIC))
		return fail(err, XR_E_PROTO,
			"store: another program listens there");
	if (f->number != FRAME_VERSION)
		return fail(err, XR_E_VERSION,
			"store: it speaks version %lld, and this libxrun %d",
			(long long)f->number, FRAME_VERSION);
	*hello = (struct frame_hello){ .host = host, .status = f->status };
	if (f->count > 1)
		hello->nonce = f->part[1];
	if (f->count > 2)
		hello->proof = f->part[2];
	return XR_OK;
}

/* --- requests -------------------------------------------------------------- */

static bool
takes_keys(uint8_t type)
{
	return type == STORE_WAIT || type == STORE_CHECK;
}

/* Parts of a request that takes one key. */
static uint32_t
parts_of(uint8_t type)
{
	if (type == STORE_COMPARE_SET)
		return 3;
	return type == STORE_SET ? 2 : 1;
}

static struct span
bytes_of(const struct store_value *v)
{
	return v == NULL ? (struct span){ 0 } :
			   (struct span){ v->data, v->len };
}

void
frame_put_request(struct buf *out, const struct store_request *q)
{
	struct span part[3] = { q->key };
	struct frame f = {
		.type = (uint8_t)q->op,
		.id = q->id,
		.number = q->op == STORE_ADD ? q->number : q->patience,
		.count = takes_keys((uint8_t)q->op) ? (uint32_t)q->count :
						      parts_of((uint8_t)q->op),
		.part = takes_keys((uint8_t)q->op) ? (struct span *)q->keys :
						     part,
	};

	if (q->op == STORE_COMPARE_SET) {
		part[1] = q->expected;
		part[2] = bytes_of(q->value);
	} else {
		part[1] = bytes_of(q->value);
	}
	frame_put(out, &f, 0);
}

static enum xr_status
take_value(struct span bytes, struct store_value **v, struct xr_error *err)
{
	*v = store_value_new(bytes.at, bytes.len);
	return *v == NULL ? fail(err, XR_E_NOMEM, "store: out of memory") :
			    XR_OK;
}

enum xr_status
frame_request(const struct frame *f, struct store_request *q,
	struct xr_error *err)
{
	*q = (struct store_request){
		.op = (enum store_op)f->type,
		.id = f->id,
		.patience = f->number,
	};
	if (f->type == 0 || f->type >= STORE_OPS)
		return fail(err, XR_E_PROTO,
			"store: no operation has number %u", f->type);
	if (takes_keys(f->type)) {
		q->keys = f->part;
		q->count = f->count;
	} else if (f->count != parts_of(f->type)) {
		return fail(err, XR_E_PROTO, "store: a request of %u parts",
			f->count);
	} else {
		q->key = f->part[0];
	}
	if (f->type == STORE_ADD)
		q->number = f->number;
	else if (f->number < 0)
		return fail(err, XR_E_PROTO, "store: a time below 0");
	if (f->type == STORE_COMPARE_SET)
		q->expected = f->part[1];
	if (f->type == STORE_SET || f->type == STORE_COMPARE_SET)
		return take_value(f->part[f->count - 1], &q->value, err);
	return XR_OK;
}

/* --- replies --------------------------------------------------------------- */

void
frame_put_reply(struct buf *out, const struct store_reply *r)
{
	struct span part = bytes_of(r->value);
	struct frame f = {
		.type = FRAME_REPLY,
		.id = r->id,
		.number = r->number,
		.status = r->status,
		.count = r->value != NULL,
		.part = &part,
	};

	if (r->status != XR_OK) {
		part = span_of(r->err.text);
		f.count = 1;
	}
	frame_put(out, &f, r->status == XR_OK ? part.len : 0);
}

enum xr_status
frame_reply(const struct frame *f, struct store_reply *r, struct xr_error *err)
{
	struct span text = { "", 0 };

	if (f->type != FRAME_REPLY || f->count > 1 || f->status > 0)
		return fail(err, XR_E_PROTO, "store: that is no reply");
	*r = (struct store_reply){
		.id = f->id,
		.status = (enum xr_status)f->status,
		.number = f->number,
	};
	if (f->status != XR_OK) {
		if (f->count == 1)
			text = f->part[0];
		if (text.len > sizeof(r->err.text))
			text.len = sizeof(r->err.text);
		fail(&r->err, r->status, "%.*s", (int)text.len, text.at);
	}
	if (f->status == XR_OK && f->count == 1)
		return take_value(f->part[0], &r->value, err);
	return XR_OK;
}
