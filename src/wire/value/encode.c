/* SPDX-License-Identifier: Apache-2.0 */
/* encode.c - see xrun/value.h and format.h: a value as the head of a message. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/value.h>

#include "base/crc32c.h"
#include "base/status.h"
#include "wire/value/device_ops.h"
#include "wire/value/encode.h"
#include "wire/value/number.h"

static enum xr_status put_value(struct xr_encoded *e,
	const struct xr_value *value);

/* --- kinds ----------------------------------------------------------------- */

static void
put_number(struct xr_encoded *e, const struct xr_value *value)
{
	if (node_kind(value) == XR_BOOL)
		writer_put8(&e->head, (uint8_t)number_bits(value));
	else
		writer_put64(&e->head, number_bits(value));
}

static void
put_double(struct xr_encoded *e, double f)
{
	uint64_t bits;

	memcpy(&bits, &f, sizeof(bits));
	writer_put64(&e->head, bits);
}

static void
put_complex(struct xr_encoded *e, const struct xr_value *value)
{
	const struct value_complex *c = (const struct value_complex *)value;

	put_double(e, c->re);
	put_double(e, c->im);
}

static void
put_text(struct xr_encoded *e, const void *text, size_t len)
{
	if (len > FORMAT_HEAD_MAX)
		len = FORMAT_HEAD_MAX; /* which is refused with its room */
	writer_put32(&e->head, (uint32_t)len);
	writer_put(&e->head, text, len);
}

static void
put_name(struct xr_encoded *e, const char *name)
{
	size_t len = strlen(name);

	writer_put8(&e->head, (uint8_t)len);
	writer_put(&e->head, name, len);
}

/* @keep: as encode_bytes_buffer(). */
static enum xr_status
put_bytes(struct xr_encoded *e, const struct xr_value *value,
	struct xr_value *keep)
{
	const struct value_bytes *b = (const struct value_bytes *)value;
	enum xr_status status;
	uint32_t number;

	if (b->len < VALUE_LONG) {
		writer_put8(&e->head, value->kind);
		put_text(e, b->data, b->len);
		xr_value_unref(keep);
		return XR_OK;
	}
	status = encode_bytes_buffer(e, value, keep, &number);
	if (status != XR_OK)
		return status;
	writer_put8(&e->head,
		value->kind == XR_TEXT ? FORMAT_TEXT_OUT : FORMAT_BYTES_OUT);
	writer_put32(&e->head, number);
	return XR_OK;
}

static enum xr_status
put_list(struct xr_encoded *e, const struct xr_value *value)
{
	const struct value_list *l = (const struct value_list *)value;
	enum xr_status status = XR_OK;

	writer_put32(&e->head, (uint32_t)l->count);
	for (size_t i = 0; i < l->count && status == XR_OK; i++)
		status = put_value(e, l->items[i]);
	return status;
}

static enum xr_status
put_dict(struct xr_encoded *e, const struct xr_value *value)
{
	const struct value_dict *d = (const struct value_dict *)value;
	enum xr_status status = XR_OK;

	writer_put32(&e->head, (uint32_t)d->count);
	for (size_t i = 0; i < d->count && status == XR_OK; i++) {
		put_text(e, d->entries[i].key, d->entries[i].len);
		status = put_value(e, d->entries[i].item);
	}
	return status;
}

static void
put_worker(struct xr_encoded *e, const struct xr_value *value)
{
	const struct value_worker *w = (const struct value_worker *)value;

	writer_put32(&e->head, w->id);
	put_name(e, w->name);
}

static enum xr_status
put_error(struct xr_encoded *e, const struct xr_value *value)
{
	const struct value_error *error = (const struct value_error *)value;
	uint8_t which = error->cause != NULL ? FORMAT_CAUSE : 0;

	for (unsigned i = 0; i < ERROR_TEXTS; i++)
		which |= (uint8_t)((error->text[i] != NULL) << i);
	writer_put32(&e->head, (uint32_t)error->status);
	writer_put32(&e->head, error->worker_id);
	writer_put8(&e->head, which);
	for (int i = 0; i < ERROR_TEXTS; i++)
		if (error->text[i] != NULL)
			put_text(e, error->text[i], strlen(error->text[i]));
	return error->cause == NULL ? XR_OK : put_value(e, error->cause);
}

static enum xr_status
put_func(struct xr_encoded *e, const struct xr_value *value)
{
	const struct value_func *f = (const struct value_func *)value;

	writer_put8(&e->head, f->bound != NULL);
	put_name(e, f->name);
	return f->bound == NULL ? XR_OK : put_value(e, f->bound);
}

/* The bytes are nobody's but the message's. */
static enum xr_status
put_opaque(struct xr_encoded *e, const struct xr_value *value)
{
	struct xr_value *bytes = opaque_bytes(value, e->err);

	if (bytes == NULL)
		return XR_E_ENCODE;
	put_name(e, xr_value_type(value));
	return put_bytes(e, bytes, bytes);
}

static enum xr_status
put_rref(struct xr_encoded *e, const struct xr_value *value)
{
	const struct value_codec_ctx *ctx = e->how.ctx;
	uint8_t packed[VALUE_RREF_BYTES] = { 0 };
	enum xr_status status;

	if (ctx == NULL || ctx->rref_pack == NULL)
		return fail(e->err, XR_E_ENCODE,
			"value: a reference outside of a call");
	status = ctx->rref_pack(ctx->ctx, xr_value_rref(value), packed, e->err);
	if (status == XR_OK)
		writer_put(&e->head, packed, sizeof(packed));
	return status;
}

static enum xr_status
put_tensor(struct xr_encoded *e, const struct xr_value *value)
{
	const struct value_tensor *t = tensor_of(value);
	struct encode_view view = { .tensor = t };
	enum xr_status status;

	if (node_several(value) &&
		seen_find(&e->seen_tensors, value, &view.buffer)) {
		writer_put8(&e->head, FORMAT_TENSOR_AGAIN);
		writer_put32(&e->head, view.buffer);
		return XR_OK;
	}
	if (node_several(value) &&
		!seen_add(&e->seen_tensors, value, e->view_count))
		return XR_E_NOMEM;
	status = encode_tensor_buffer(e, t, &view.buffer);
	if (status != XR_OK)
		return status;
	writer_put8(&e->head, XR_TENSOR);
	writer_put8(&e->head, t->dtype);
	writer_put8(&e->head, t->ndim);
	writer_put32(&e->head, view.buffer);
	view.at = e->head.len;
	writer_put64(&e->head, t->offset);
	for (unsigned i = 0; i < 2U * t->ndim; i++)
		writer_put64(&e->head, (uint64_t)t->dims[i]);
	return encode_view(e, &view);
}

static enum xr_status
put_value(struct xr_encoded *e, const struct xr_value *value)
{
	enum xr_kind kind = node_kind(value);

	if (kind != XR_TENSOR && kind != XR_BYTES && kind != XR_TEXT)
		writer_put8(&e->head, (uint8_t)kind);
	switch (kind) {
	case XR_NIL:
		break;
	case XR_BOOL:
	case XR_I64:
	case XR_U64:
	case XR_F64:
		put_number(e, value);
		break;
	case XR_C128:
		put_complex(e, value);
		break;
	case XR_BYTES:
	case XR_TEXT:
		return put_bytes(e, value, NULL);
	case XR_LIST:
		return put_list(e, value);
	case XR_DICT:
		return put_dict(e, value);
	case XR_TENSOR:
		return put_tensor(e, value);
	case XR_RREF:
		return put_rref(e, value);
	case XR_WORKER:
		put_worker(e, value);
		break;
	case XR_ERROR:
		return put_error(e, value);
	case XR_OPAQUE:
		return put_opaque(e, value);
	case XR_FUNC:
		return put_func(e, value);
	}
	/* A list that grows for ever is noticed where its head ends. */
	return e->head.bad;
}

/* --- the head -------------------------------------------------------------- */

static void
put_entry(uint8_t *p, const struct encode_buffer *b)
{
	p[0] = (uint8_t)b->place;
	p[1] = (uint8_t)b->use;
	p[2] = (uint8_t)b->device_kind;
	p[3] = 0;
	format_put32(p + 4, (uint32_t)b->device_index);
	format_put64(p + 8, b->len);
	for (int i = 0; i < 3; i++)
		format_put64(p + 16 + 8 * i, b->word[i]);
}

/* The table goes in front of the value. */
static enum xr_status
put_table(struct xr_encoded *e)
{
	size_t tree = e->head.len - FORMAT_HEADER;
	size_t table = (size_t)e->buffer_count * FORMAT_ENTRY;
	uint8_t *p;

	if (e->buffer_count == 0)
		return e->head.bad;
	if (writer_room(&e->head, table) == NULL)
		return e->head.bad;
	p = e->head.at + FORMAT_HEADER;
	memmove(p + table, p, tree);
	for (uint32_t i = 0; i < e->buffer_count; i++)
		put_entry(p + (size_t)i * FORMAT_ENTRY, &e->buffers[i]);
	return XR_OK;
}

/* Bytes of all parts; the head is filled up where something follows. */
static enum xr_status
measure(struct xr_encoded *e)
{
	bool follows = false;
	size_t fill;

	e->head_len = e->head.len;
	e->total = e->head_len;
	for (uint32_t i = 0; i < e->buffer_count; i++) {
		const struct encode_buffer *b = &e->buffers[i];

		if (b->place != FORMAT_HERE || b->len == 0)
			continue;
		follows = true;
		e->total = format_align(e->total) + b->len;
		if (e->total > FORMAT_MAX)
			return XR_E_RANGE;
	}
	fill = follows ? format_align(e->head_len) - e->head_len : 0;
	if (fill > 0 && writer_room(&e->head, fill) != NULL)
		memset(e->head.at + e->head_len, 0, fill);
	return e->head.bad;
}

static void
put_header(struct xr_encoded *e)
{
	uint8_t *p = e->head.at;
	uint16_t flags = e->how.checksum ? FORMAT_SUMMED : 0;

	for (uint32_t i = 0; i < e->buffer_count; i++)
		if (e->buffers[i].place != FORMAT_HERE)
			flags |= FORMAT_SHARED;
	memset(p, 0, FORMAT_HEADER);
	memcpy(p, FORMAT_MAGIC, 4);
	format_put16(p + FORMAT_AT_VERSION, FORMAT_VERSION);
	format_put16(p + FORMAT_AT_FLAGS, flags);
	format_put64(p + FORMAT_AT_TOTAL, e->total);
	format_put32(p + FORMAT_AT_HEAD, (uint32_t)e->head_len);
	format_put32(p + FORMAT_AT_BUFFERS, e->buffer_count);
	if (e->how.checksum)
		format_put32(p + FORMAT_AT_SUM, crc32c(0, p, e->head_len));
}

/* --- parts ----------------------------------------------------------------- */

static enum xr_status
make_parts(struct xr_encoded *e)
{
	static const uint8_t zeros[FORMAT_ALIGN];
	struct xr_part *p;
	uint64_t at = e->head.len;

	e->first = (struct xr_part){ e->head.at, e->head.len };
	e->parts = &e->first;
	e->part_count = 1;
	if (e->total == e->head_len)
		return XR_OK;
	p = reallocarray(NULL, 1 + 2 * (size_t)e->buffer_count, sizeof(*p));
	if (p == NULL)
		return XR_E_NOMEM;
	e->parts = p;
	*p++ = e->first;
	for (uint32_t i = 0; i < e->buffer_count; i++) {
		const struct encode_buffer *b = &e->buffers[i];

		if (b->place != FORMAT_HERE || b->len == 0)
			continue;
		if (format_align(at) > at)
			*p++ = (struct xr_part){ zeros, format_align(at) - at };
		*p++ = (struct xr_part){ b->data, b->len };
		at = format_align(at) + b->len;
	}
	e->part_count = (size_t)(p - e->parts);
	return XR_OK;
}

static enum xr_status
make_fds(struct xr_encoded *e)
{
	size_t n = 0;

	for (uint32_t i = 0; i < e->buffer_count; i++)
		n += e->buffers[i].place == FORMAT_FD;
	if (n == 0)
		return XR_OK;
	e->fds = reallocarray(NULL, n, sizeof(*e->fds));
	if (e->fds == NULL)
		return XR_E_NOMEM;
	for (uint32_t i = 0; i < e->buffer_count; i++)
		if (e->buffers[i].place == FORMAT_FD)
			e->fds[e->fd_count++] = e->buffers[i].storage->fd;
	return XR_OK;
}

/* --- all of it ------------------------------------------------------------- */

static enum xr_status
encode(struct xr_encoded *e)
{
	enum xr_status status;

	writer_room(&e->head, FORMAT_HEADER);
	status = put_value(e, e->value);
	if (status == XR_OK)
		status = e->head.bad;
	if (status == XR_OK)
		status = encode_settle(e);
	if (status == XR_OK)
		status = put_table(e);
	if (status == XR_OK)
		status = measure(e);
	if (status != XR_OK)
		return status;
	put_header(e);
	status = make_fds(e);
	return status == XR_OK ? make_parts(e) : status;
}

/* Memory and room are missed without a word. */
static enum xr_status
explain(enum xr_status status, const struct xr_error *said,
	struct xr_error *err)
{
	if (said->text[0] != '\0')
		return fail(err, status, "%s", said->text);
	if (status == XR_E_RANGE)
		return fail(err, status,
			"value: too large: beyond a head of %d bytes, or %" PRIu64
			" in all",
			FORMAT_HEAD_MAX, FORMAT_MAX);
	return fail(err, status, "value: %s", xr_status_text(status));
}

enum xr_status
value_encode(struct xr_value *value, const struct value_encoding *how,
	struct xr_encoded **encoded, struct xr_error *err)
{
	struct xr_error said = { .text = "" };
	enum xr_status status;
	struct xr_encoded *e;

	if (value == NULL)
		return fail(err, XR_E_INVAL, "value: nothing to encode");
	e = malloc(sizeof(*e));
	if (e == NULL)
		return fail(err, XR_E_NOMEM, "value: out of memory");
	memset(e, 0, offsetof(struct xr_encoded, head));
	memset(&e->head_len, 0,
		sizeof(*e) - offsetof(struct xr_encoded, head_len));
	writer_init(&e->head);
	e->value = xr_value_ref(value);
	e->how = *how;
	e->err = &said;
	status = encode(e);
	e->err = NULL;
	if (status != XR_OK) {
		xr_encoded_free(e);
		return explain(status, &said, err);
	}
	*encoded = e;
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_encode(struct xr_value *value, const struct xr_enc_opts *opts,
	struct xr_encoded **encoded, struct xr_error *err)
{
	struct value_encoding how = { .mode = VALUE_COPY };

	if (opts != NULL &&
		(opts->size < sizeof(*opts) || opts->mode > XR_ENC_SHARE))
		return fail(err, XR_E_INVAL, "value: no such way to encode");
	if (opts != NULL) {
		how.mode = (enum value_mode)opts->mode;
		how.checksum = opts->checksum != 0;
	}
	return value_encode(value, &how, encoded, err);
}

XR_EXPORT const struct xr_part *
xr_encoded_parts(const struct xr_encoded *e, size_t *count)
{
	*count = e->part_count;
	return e->parts;
}

XR_EXPORT const int *
xr_encoded_fds(const struct xr_encoded *e, size_t *count)
{
	*count = e->fd_count;
	return e->fds;
}

XR_EXPORT void
xr_encoded_free(struct xr_encoded *e)
{
	if (e == NULL)
		return;
	for (uint32_t i = 0; i < e->buffer_count; i++) {
		free(e->buffers[i].own);
		xr_value_unref(e->buffers[i].keep);
	}
	free(e->buffers);
	free(e->views);
	seen_fini(&e->seen_buffers);
	seen_fini(&e->seen_tensors);
	if (e->parts != &e->first)
		free(e->parts);
	free(e->fds);
	writer_fini(&e->head);
	xr_value_unref(e->value);
	free(e);
}
