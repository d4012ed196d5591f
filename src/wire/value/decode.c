/* SPDX-License-Identifier: Apache-2.0 */
/* decode.c - see xrun/value.h, format.h and decode.h: values of a head. */
#include <inttypes.h>
#include <stdlib.h>

#include "wire/value/decode.h"
#include "wire/value/number.h"
#include "wire/value/view.h"

/* A value of the head. @room is how many more may stand in each other. */
static enum xr_status get_value(struct decoder *d, unsigned room,
	struct xr_value **value);

enum xr_status
decode_no_memory(struct decoder *d)
{
	return fail(d->err, XR_E_NOMEM, "value: out of memory");
}

enum xr_status
decode_spend(struct decoder *d, uint64_t bytes)
{
	if (bytes > d->left)
		return fail(d->err, XR_E_RANGE,
			"value: byte %zu: more is to be made than the %" PRIu64
			" bytes that may",
			d->at,
			d->r->bytes_max == 0 ? XR_VALUE_BYTES_MAX :
					       d->r->bytes_max);
	d->left -= bytes;
	return XR_OK;
}

const uint8_t *
decode_take(struct decoder *d, size_t len)
{
	const uint8_t *p = d->head + d->at;

	if (len > d->len - d->at) {
		DECODE_BAD(d, "it ends where %zu bytes are to follow", len);
		return NULL;
	}
	d->at += len;
	return p;
}

/* What was made of it, for which @bytes are spent. */
static enum xr_status
made(struct decoder *d, size_t bytes, struct xr_value *got,
	struct xr_value **value)
{
	enum xr_status status;

	if (got == NULL)
		return decode_no_memory(d);
	status = decode_spend(d, bytes);
	if (status == XR_OK)
		*value = got;
	else
		xr_value_unref(got);
	return status;
}

/* --- pieces ---------------------------------------------------------------- */

static enum xr_status
get_count(struct decoder *d, uint32_t *count)
{
	const uint8_t *p = decode_take(d, 4);

	if (p == NULL)
		return XR_E_DECODE;
	*count = format_get32(p);
	return XR_OK;
}

/* So many bytes, as its next @digits bytes say. */
static enum xr_status
get_span(struct decoder *d, size_t digits, struct span *span)
{
	const uint8_t *p = decode_take(d, digits);

	if (p == NULL)
		return XR_E_DECODE;
	span->len = digits == 1 ? *p : format_get32(p);
	span->at = (const char *)decode_take(d, span->len);
	return span->at == NULL ? XR_E_DECODE : XR_OK;
}

static enum xr_status
get_text(struct decoder *d, struct span *text)
{
	enum xr_status status = get_span(d, 4, text);

	if (status == XR_OK && !text_valid(text->at, text->len))
		return DECODE_BAD(d,
			"text that is no UTF-8, or has a NUL in it");
	return status;
}

/* --- leaves ---------------------------------------------------------------- */

static enum xr_status
get_bool(struct decoder *d, struct xr_value **value)
{
	const uint8_t *p = decode_take(d, 1);

	if (p == NULL)
		return XR_E_DECODE;
	if (*p > 1)
		return DECODE_BAD(d, "a truth of %u", *p);
	return made(d, sizeof(struct value_number), xr_value_new_bool(*p),
		value);
}

static enum xr_status
get_number(struct decoder *d, uint8_t kind, struct xr_value **value)
{
	const uint8_t *p = decode_take(d, 8);

	if (p == NULL)
		return XR_E_DECODE;
	return made(d, sizeof(struct value_number),
		number_new((enum xr_kind)kind, format_get64(p)), value);
}

static enum xr_status
get_complex(struct decoder *d, struct xr_value **value)
{
	const uint8_t *p = decode_take(d, 16);
	double parts[2];
	uint64_t bits;

	if (p == NULL)
		return XR_E_DECODE;
	for (int i = 0; i < 2; i++) {
		bits = format_get64(p + 8 * i);
		memcpy(&parts[i], &bits, sizeof(bits));
	}
	return made(d, sizeof(struct value_complex),
		xr_value_new_c128(parts[0], parts[1]), value);
}

static enum xr_status
get_bytes(struct decoder *d, enum xr_kind kind, struct xr_value **value)
{
	struct span s = { 0 };
	enum xr_status status;

	status = kind == XR_TEXT ? get_text(d, &s) : get_span(d, 4, &s);
	if (status != XR_OK)
		return status;
	if (s.len >= VALUE_LONG)
		return DECODE_BAD(d, "%zu bytes within the head", s.len);
	return made(d, sizeof(struct value_bytes) + s.len + 1,
		bytes_new(kind, s.at, s.len), value);
}

static enum xr_status
get_bytes_out(struct decoder *d, enum xr_kind kind, struct xr_value **value)
{
	struct decode_buffer *b;
	enum xr_status status = decode_buffer(d,
		kind == XR_TEXT ? FORMAT_TEXT : FORMAT_BYTES, &b);

	if (status == XR_OK)
		status = decode_storage(d, b);
	return status != XR_OK ?
		status :
		made(d, sizeof(struct value_bytes),
			bytes_over(kind, b->storage, b->len), value);
}

static enum xr_status
get_worker(struct decoder *d, struct xr_value **value)
{
	struct span name = { 0 };
	uint32_t id = 0;
	enum xr_status status = get_count(d, &id);

	if (status == XR_OK)
		status = get_span(d, 1, &name);
	if (status != XR_OK)
		return status;
	if (!worker_name_valid(name))
		return DECODE_BAD(d, "a worker without a name");
	return made(d, sizeof(struct value_worker) + name.len + 1,
		worker_new(name, id), value);
}

static enum xr_status
get_rref(struct decoder *d, struct xr_value **value)
{
	const struct value_codec_ctx *ctx = d->r->ctx;
	const uint8_t *p = decode_take(d, VALUE_RREF_BYTES);
	struct xr_rref *rref = NULL;
	enum xr_status status;

	if (p == NULL)
		return XR_E_DECODE;
	if (ctx == NULL || ctx->rref_unpack == NULL || value_rref_ops() == NULL)
		return DECODE_BAD(d, "a reference outside of a call");
	status = ctx->rref_unpack(ctx->ctx, p, &rref, d->err);
	if (status != XR_OK)
		return status;
	status = made(d, sizeof(struct value_rref), xr_value_new_rref(rref),
		value);
	value_rref_ops()->unref(rref);
	return status;
}

/* --- tensors --------------------------------------------------------------- */

/* As it came; of the device of its storage. */
static enum xr_status
get_desc(struct decoder *d, struct xr_tensor_desc *desc,
	struct decode_buffer **buffer)
{
	const uint8_t *p = decode_take(d, 2);
	enum xr_status status;

	if (p == NULL)
		return XR_E_DECODE;
	*desc = (struct xr_tensor_desc){
		.size = sizeof(*desc),
		.dtype = (enum xr_dtype)p[0],
		.ndim = p[1],
	};
	if (desc->ndim > XR_TENSOR_DIMS)
		return DECODE_BAD(d, "a tensor of %" PRIu32 " dimensions",
			desc->ndim);
	status = decode_buffer(d, FORMAT_TENSOR, buffer);
	if (status != XR_OK)
		return status;
	p = decode_take(d, 8 + 16 * (size_t)desc->ndim);
	if (p == NULL)
		return XR_E_DECODE;
	desc->offset = format_get64(p);
	for (uint32_t i = 0; i < desc->ndim; i++) {
		desc->shape[i] = (int64_t)format_get64(p + 8 + 8 * i);
		desc->strides[i] =
			(int64_t)format_get64(p + 8 + 8 * (desc->ndim + i));
	}
	desc->device_kind = (enum xr_device_kind)(*buffer)->device_kind;
	desc->device_index = (*buffer)->device_index;
	return XR_OK;
}

/* The same tensor may come again. */
static enum xr_status
remember(struct decoder *d, struct xr_value *tensor)
{
	size_t cap = d->tensor_cap == 0 ? 8 : d->tensor_cap * 2;
	struct xr_value **more;

	if (d->tensor_count == d->tensor_cap) {
		more = reallocarray(d->tensors, cap, sizeof(*more));
		if (more == NULL)
			return decode_no_memory(d);
		d->tensors = more;
		d->tensor_cap = cap;
	}
	d->tensors[d->tensor_count++] = tensor;
	return XR_OK;
}

static enum xr_status
get_tensor(struct decoder *d, struct xr_value **value)
{
	struct xr_error said = { .text = "" };
	struct decode_buffer *b = NULL;
	struct xr_tensor_desc desc;
	struct xr_value *got = NULL;
	enum xr_status status = get_desc(d, &desc, &b);

	if (status != XR_OK)
		return status;
	if (view_check(&desc, b->len, &said) != XR_OK)
		return DECODE_BAD(d, "%s", said.text);
	status = decode_storage(d, b);
	if (status == XR_OK)
		status = made(d,
			sizeof(struct value_tensor) + 16 * (size_t)desc.ndim,
			tensor_new(&desc, b->storage), &got);
	if (status == XR_OK)
		status = remember(d, got);
	if (status == XR_OK)
		*value = got;
	else
		xr_value_unref(got);
	return status;
}

static enum xr_status
get_tensor_again(struct decoder *d, struct xr_value **value)
{
	uint32_t i = 0;
	enum xr_status status = get_count(d, &i);

	if (status != XR_OK)
		return status;
	if (i >= d->tensor_count)
		return DECODE_BAD(d, "tensor %" PRIu32 " again, of %zu", i,
			d->tensor_count);
	*value = xr_value_ref(d->tensors[i]);
	return XR_OK;
}

/* --- what holds others ----------------------------------------------------- */

/* One level deeper. */
static enum xr_status
enter(struct decoder *d, unsigned *room)
{
	if (*room == 0)
		return fail(d->err, XR_E_RANGE,
			"value: byte %zu: more than %d in each other", d->at,
			XR_VALUE_DEPTH_MAX);
	--*room;
	return XR_OK;
}

/* So many items, each of at least @least bytes, may be there. */
static enum xr_status
get_items(struct decoder *d, size_t least, uint32_t *count)
{
	enum xr_status status = get_count(d, count);

	if (status != XR_OK)
		return status;
	if (*count > (d->len - d->at) / least)
		return DECODE_BAD(d, "%" PRIu32 " items in %zu bytes", *count,
			d->len - d->at);
	if (*count > XR_VALUE_ITEMS_MAX)
		return fail(d->err, XR_E_RANGE,
			"value: byte %zu: %" PRIu32 " items, at most %d", d->at,
			*count, XR_VALUE_ITEMS_MAX);
	return XR_OK;
}

static enum xr_status
get_list(struct decoder *d, unsigned room, struct xr_value **value)
{
	struct xr_value *list = NULL, *item = NULL;
	uint32_t count = 0;
	enum xr_status status = enter(d, &room);

	if (status == XR_OK)
		status = get_items(d, 1, &count);
	if (status == XR_OK)
		status = decode_spend(d,
			sizeof(struct value_list) + count * sizeof(item));
	if (status == XR_OK && (list = list_new(count)) == NULL)
		status = decode_no_memory(d);
	for (uint32_t i = 0; i < count && status == XR_OK; i++) {
		status = get_value(d, room, &item);
		if (status == XR_OK && xr_value_append(list, item) != XR_OK)
			status = decode_no_memory(d);
	}
	if (status == XR_OK)
		*value = list;
	else
		xr_value_unref(list);
	return status;
}

static enum xr_status
get_entry(struct decoder *d, unsigned room, struct xr_value *dict)
{
	struct xr_value *item = NULL;
	struct span key = { 0 };
	enum xr_status status = get_span(d, 4, &key);

	/* With its part of an index that is half empty. */
	if (status == XR_OK)
		status = decode_spend(d,
			sizeof(struct dict_entry) + key.len + 1 + 16);
	if (status == XR_OK)
		status = get_value(d, room, &item);
	if (status != XR_OK)
		return status;
	status = dict_add(dict, key, item);
	if (status == XR_E_EXISTS)
		return DECODE_BAD(d, "a key of a dict for the second time");
	return status == XR_OK ? status : decode_no_memory(d);
}

static enum xr_status
get_dict(struct decoder *d, unsigned room, struct xr_value **value)
{
	struct xr_value *dict = NULL;
	uint32_t count = 0;
	enum xr_status status = enter(d, &room);

	if (status == XR_OK)
		status = get_items(d, 5, &count);
	if (status == XR_OK)
		status = made(d, sizeof(struct value_dict), xr_value_new_dict(),
			&dict);
	for (uint32_t i = 0; i < count && status == XR_OK; i++)
		status = get_entry(d, room, dict);
	if (status == XR_OK)
		*value = dict;
	else
		xr_value_unref(dict);
	return status;
}

/* The ERROR that was the cause of another. */
static enum xr_status
get_cause(struct decoder *d, unsigned room, struct xr_value **cause)
{
	enum xr_status status = enter(d, &room);

	if (status == XR_OK)
		status = get_value(d, room, cause);
	if (status != XR_OK || node_is(*cause, XR_ERROR))
		return status;
	xr_value_unref(*cause);
	*cause = NULL;
	return DECODE_BAD(d, "the cause of an error is none");
}

static enum xr_status
get_error(struct decoder *d, unsigned room, struct xr_value **value)
{
	const uint8_t *p = decode_take(d, 9);
	struct error_parts parts = { 0 };
	enum xr_status status = XR_OK;
	size_t from = d->at;

	if (p == NULL)
		return XR_E_DECODE;
	parts.status = (int32_t)format_get32(p);
	parts.worker_id = format_get32(p + 4);
	if (p[8] >= 2 * FORMAT_CAUSE)
		return DECODE_BAD(d, "an error with more than is known (%#x)",
			p[8]);
	for (int i = 0; i < ERROR_TEXTS && status == XR_OK; i++)
		if ((p[8] >> i & 1) != 0)
			status = get_text(d, &parts.text[i]);
	from = d->at - from;
	if (status == XR_OK && (p[8] & FORMAT_CAUSE) != 0)
		status = get_cause(d, room, &parts.cause);
	if (status == XR_OK)
		status = made(d, sizeof(struct value_error) + from,
			error_new(&parts), value);
	xr_value_unref(parts.cause);
	return status;
}

static enum xr_status
get_func(struct decoder *d, unsigned room, struct xr_value **value)
{
	const uint8_t *p = decode_take(d, 1);
	struct xr_value *bound = NULL;
	struct span name = { 0 };
	enum xr_status status;

	if (p == NULL)
		return XR_E_DECODE;
	status = get_span(d, 1, &name);
	if (status != XR_OK)
		return status;
	if (*p > 1 || !func_name_valid(name))
		return DECODE_BAD(d, "a function without a name");
	if (*p == 1)
		status = enter(d, &room);
	if (*p == 1 && status == XR_OK)
		status = get_value(d, room, &bound);
	return status != XR_OK ?
		status :
		made(d, sizeof(struct value_func) + name.len + 1,
			func_new(name, bound), value);
}

/* --- objects --------------------------------------------------------------- */

/* The bytes of an object; *@own is to be freed. */
static enum xr_status
get_object(struct decoder *d, struct span *bytes, void **own)
{
	const uint8_t *tag = decode_take(d, 1);
	struct decode_buffer *b;
	const void *data = NULL;
	enum xr_status status;

	if (tag == NULL)
		return XR_E_DECODE;
	if (*tag == XR_BYTES) {
		status = get_span(d, 4, bytes);
		if (status == XR_OK && bytes->len >= VALUE_LONG)
			return DECODE_BAD(d, "%zu bytes within the head",
				bytes->len);
		return status;
	}
	if (*tag != FORMAT_BYTES_OUT)
		return DECODE_BAD(d, "an object that is no bytes (tag %u)",
			*tag);
	status = decode_buffer(d, FORMAT_OBJECT, &b);
	if (status == XR_OK)
		status = decode_stable(d, b, &data, own);
	if (status == XR_OK)
		*bytes = (struct span){ data, b->len };
	return status;
}

static enum xr_status
get_opaque(struct decoder *d, struct xr_value **value)
{
	struct span name = { 0 }, bytes = { 0 };
	const struct xr_type *type;
	void *object, *own = NULL;
	enum xr_status status = get_span(d, 1, &name);

	if (status != XR_OK)
		return status;
	if (!type_name_valid(name))
		return DECODE_BAD(d, "an object of a type without a name");
	type = value_type_find(name.at, name.len);
	if (type == NULL || type->decode == NULL)
		return DECODE_BAD(d, "type '%.*s' has no decoder here",
			QUOTED(name));
	status = get_object(d, &bytes, &own);
	if (status != XR_OK) {
		free(own);
		return status;
	}
	object = type->decode(bytes.at, bytes.len, type->ctx);
	free(own);
	if (object == NULL)
		return DECODE_BAD(d, "the decoder of type %s failed",
			type->name);
	return made(d, sizeof(struct value_opaque), opaque_new(type, object),
		value);
}

/* --- all of it ------------------------------------------------------------- */

static enum xr_status
get_value(struct decoder *d, unsigned room, struct xr_value **value)
{
	const uint8_t *tag = decode_take(d, 1);

	if (tag == NULL)
		return XR_E_DECODE;
	switch (*tag) {
	case XR_NIL:
		return made(d, sizeof(struct xr_value), xr_value_new_nil(),
			value);
	case XR_BOOL:
		return get_bool(d, value);
	case XR_I64:
	case XR_U64:
	case XR_F64:
		return get_number(d, *tag, value);
	case XR_C128:
		return get_complex(d, value);
	case XR_BYTES:
	case XR_TEXT:
		return get_bytes(d, (enum xr_kind) * tag, value);
	case XR_LIST:
		return get_list(d, room, value);
	case XR_DICT:
		return get_dict(d, room, value);
	case XR_TENSOR:
		return get_tensor(d, value);
	case XR_RREF:
		return get_rref(d, value);
	case XR_WORKER:
		return get_worker(d, value);
	case XR_ERROR:
		return get_error(d, room, value);
	case XR_OPAQUE:
		return get_opaque(d, value);
	case XR_FUNC:
		return get_func(d, room, value);
	case FORMAT_BYTES_OUT:
		return get_bytes_out(d, XR_BYTES, value);
	case FORMAT_TEXT_OUT:
		return get_bytes_out(d, XR_TEXT, value);
	case FORMAT_TENSOR_AGAIN:
		return get_tensor_again(d, value);
	}
	d->at--;
	return DECODE_BAD(d, "tag %u is of no kind", *tag);
}

enum xr_status
value_decode(const struct value_reader *reader, struct xr_value **value,
	struct xr_error *err)
{
	struct xr_value *got = NULL;
	enum xr_status status;
	struct decoder d;

	memset(&d, 0, offsetof(struct decoder, first));
	memset(&d.buffers, 0, sizeof(d) - offsetof(struct decoder, buffers));
	d.r = reader;
	d.err = err;
	d.left =
		reader->bytes_max == 0 ? XR_VALUE_BYTES_MAX : reader->bytes_max;
	status = decode_open(&d);
	if (status == XR_OK)
		status = get_value(&d, XR_VALUE_DEPTH_MAX, &got);
	if (status == XR_OK)
		status = decode_finish(&d);
	decode_close(&d);
	if (status == XR_OK)
		*value = got;
	else
		xr_value_unref(got);
	return status;
}

XR_EXPORT enum xr_status
xr_decode(const struct xr_part *parts, size_t count,
	const struct xr_dec_opts *opts, struct xr_value **value,
	struct xr_error *err)
{
	struct value_reader reader = { .parts = parts, .count = count };

	if (opts != NULL && opts->size < sizeof(*opts))
		return fail(err, XR_E_INVAL,
			"value: options without their size");
	if (opts != NULL) {
		reader.bytes_max = opts->bytes_max;
		reader.fds = opts->fds;
		reader.fd_count = opts->fd_count;
	}
	return value_decode(&reader, value, err);
}
