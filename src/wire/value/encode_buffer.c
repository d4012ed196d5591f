/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode_buffer.c - see encode.h: what of a value is not in the head.
 *
 * A storage is one buffer, whoever views it. What is written of it is known when
 * all views are: all of it, or, where much of it is needed by nobody, the range
 * that they need; or, where there is one view and gaps between its elements, a
 * copy of these. Nothing else is copied.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/status.h"
#include "wire/value/device_ops.h"
#include "wire/value/encode.h"
#include "wire/value/view.h"

/* Room for one more of @size bytes in *@array. */
static bool
make_room(void **array, uint32_t count, uint32_t *cap, size_t size)
{
	uint32_t more = *cap == 0 ? 4 : *cap * 2;
	void *p;

	if (count < *cap)
		return true;
	if (more < *cap)
		return false;
	p = reallocarray(*array, more, size);
	if (p == NULL)
		return false;
	*array = p;
	*cap = more;
	return true;
}

/* NULL: no memory. */
static struct encode_buffer *
add_buffer(struct xr_encoded *e, uint32_t *number)
{
	struct encode_buffer *b;
	void *array = e->buffers;

	if (!make_room(&array, e->buffer_count, &e->buffer_cap, sizeof(*b)))
		return NULL;
	e->buffers = array;
	*number = e->buffer_count++;
	b = &e->buffers[*number];
	*b = (struct encode_buffer){ .place = FORMAT_HERE };
	return b;
}

/* --- bytes ----------------------------------------------------------------- */

/* May they be elsewhere in the message, too? */
static bool
several_bytes(const struct value_bytes *b)
{
	return node_several(&b->head) ||
		(b->storage != NULL &&
			atomic_load_explicit(&b->storage->refs,
				memory_order_relaxed) > 1);
}

static bool
same_bytes(const struct encode_buffer *a, const struct value_bytes *b)
{
	return a->len == b->len &&
		(a->use == FORMAT_TEXT) == (b->head.kind == XR_TEXT);
}

enum xr_status
encode_bytes_buffer(struct xr_encoded *e, const struct xr_value *value,
	struct xr_value *keep, uint32_t *number)
{
	const struct value_bytes *b = (const struct value_bytes *)value;
	bool known, several = keep == NULL && several_bytes(b);
	struct encode_buffer *buffer;

	known = several && seen_find(&e->seen_buffers, b->data, number);
	if (known && same_bytes(&e->buffers[*number], b))
		return XR_OK;
	buffer = add_buffer(e, number);
	if (buffer == NULL) {
		xr_value_unref(keep);
		return XR_E_NOMEM;
	}
	buffer->storage = b->storage;
	buffer->data = b->data;
	buffer->len = b->len;
	buffer->use = value->kind == XR_TEXT ? FORMAT_TEXT : FORMAT_BYTES;
	if (keep != NULL)
		buffer->use = FORMAT_OBJECT;
	buffer->keep = keep;
	if (several && !known && !seen_add(&e->seen_buffers, b->data, *number))
		return XR_E_NOMEM;
	return XR_OK;
}

/* --- tensors --------------------------------------------------------------- */

/* Where the tensors of a storage are to arrive. */
static enum xr_status
map_device(struct xr_encoded *e, const struct value_tensor *t,
	struct encode_buffer *b)
{
	const struct value_codec_ctx *ctx = e->how.ctx;
	struct xr_tensor_desc desc;
	enum xr_status status = XR_OK;

	tensor_describe(t, &desc);
	if (ctx != NULL && ctx->device != NULL)
		status = ctx->device(ctx->ctx, &desc, e->err);
	b->device_kind = desc.device_kind;
	b->device_index =
		desc.device_kind == XR_DEVICE_CPU ? 0 : desc.device_index;
	return status;
}

enum xr_status
encode_tensor_buffer(struct xr_encoded *e, const struct value_tensor *t,
	uint32_t *number)
{
	struct encode_buffer *b;
	bool several;

	several = atomic_load_explicit(&t->storage->refs,
			  memory_order_relaxed) > 1;
	if (several && seen_find(&e->seen_buffers, t->storage, number))
		return XR_OK;
	b = add_buffer(e, number);
	if (b == NULL ||
		(several && !seen_add(&e->seen_buffers, t->storage, *number)))
		return XR_E_NOMEM;
	b->storage = t->storage;
	b->use = FORMAT_TENSOR;
	return map_device(e, t, b);
}

enum xr_status
encode_view(struct xr_encoded *e, const struct encode_view *view)
{
	struct encode_buffer *b = &e->buffers[view->buffer];
	struct xr_tensor_desc desc;
	void *array = e->views;
	uint64_t begin, end;

	if (!make_room(&array, e->view_count, &e->view_cap, sizeof(*view)))
		return XR_E_NOMEM;
	e->views = array;
	tensor_describe(view->tensor, &desc);
	view_extent(&desc, &begin, &end);
	if (b->views++ == 0)
		b->first_view = e->view_count;
	e->views[e->view_count++] = *view;
	if (begin == end)
		return XR_OK;
	if (b->begin == b->end || begin < b->begin)
		b->begin = begin;
	if (end > b->end)
		b->end = end;
	return XR_OK;
}

/* --- what is written ------------------------------------------------------- */

/* The storage from @from on, as the host can read it. */
static enum xr_status
take_range(struct xr_encoded *e, struct encode_buffer *b)
{
	const struct storage *s = b->storage;

	if (s->device_kind == XR_DEVICE_CPU) {
		b->data = (const char *)s->data + b->from;
		return XR_OK;
	}
	b->own = malloc(b->len > 0 ? b->len : 1);
	b->data = b->own;
	if (b->own == NULL)
		return XR_E_NOMEM;
	return storage_read(s, b->from, b->own, b->len, e->err);
}

/* Its elements alone, instead of the range that was taken. */
static enum xr_status
pack(struct encode_buffer *b, const struct xr_tensor_desc *desc, uint64_t bytes)
{
	struct xr_tensor_desc view = *desc;
	void *packed = malloc(bytes);

	if (packed == NULL)
		return XR_E_NOMEM;
	view.offset -= b->from;
	view_pack(&view, b->data, packed);
	free(b->own);
	b->own = packed;
	b->data = packed;
	b->len = bytes;
	b->packed = true;
	return XR_OK;
}

/* What of a storage goes into the message. */
static enum xr_status
copy_out(struct xr_encoded *e, struct encode_buffer *b)
{
	uint64_t all = b->storage->bytes, range = b->end - b->begin;
	uint64_t useful = range;
	struct xr_tensor_desc desc;
	enum xr_status status;

	b->len = all;
	if (b->views == 1) {
		tensor_describe(e->views[b->first_view].tensor, &desc);
		useful = (uint64_t)xr_tensor_elements(&desc) *
			xr_dtype_size(desc.dtype);
	}
	if (all < FORMAT_LARGE || all / 2 < useful)
		return take_range(e, b);
	b->from = b->begin & ~(uint64_t)(FORMAT_ALIGN - 1);
	b->len = b->end - b->from;
	status = take_range(e, b);
	if (status == XR_OK && range / 2 > useful)
		status = pack(b, &desc, useful);
	return status;
}

/* Does the layer of calls let others have it where it is? Text is looked at by who
 * reads it, and must not change behind that. */
static bool
lend(struct xr_encoded *e, struct encode_buffer *b)
{
	const struct value_codec_ctx *ctx = e->how.ctx;
	bool tensor = b->use == FORMAT_TENSOR;
	struct xr_part part = {
		tensor ? b->storage->data : b->data,
		b->len,
	};

	if ((!tensor && b->use != FORMAT_BYTES) || b->storage == NULL ||
		b->storage->device_kind != XR_DEVICE_CPU ||
		b->device_kind != XR_DEVICE_CPU || ctx == NULL ||
		ctx->lend == NULL ||
		!ctx->lend(ctx->ctx, &part, tensor, &b->word[0]))
		return false;
	b->place = FORMAT_LOAN;
	return true;
}

/* Can others have it where it is? */
static bool
share(struct xr_encoded *e, struct encode_buffer *b)
{
	struct storage_handle handle;

	if (e->how.mode == VALUE_LEND)
		return lend(e, b);
	if (b->storage == NULL || b->use == FORMAT_TEXT ||
		b->storage->device_kind != XR_DEVICE_CPU ||
		b->device_kind != XR_DEVICE_CPU)
		return false;
	if (storage_handle_of(b->storage, &handle)) {
		b->place = FORMAT_HANDLE;
		b->word[0] = handle.offset;
		b->word[1] = handle.len;
		b->word[2] = handle.gen;
		return true;
	}
	if (b->storage->fd == -1)
		return false;
	b->place = FORMAT_FD;
	b->word[0] = e->fd_count++;
	b->word[1] = b->storage->fd_offset;
	return true;
}

static enum xr_status
settle_tensor(struct xr_encoded *e, struct encode_buffer *b)
{
	if (e->how.mode != VALUE_COPY && b->storage->bytes > 0) {
		b->len = b->storage->bytes;
		if (share(e, b))
			return XR_OK;
		if (e->how.mode == VALUE_SHARE)
			return fail(e->err, XR_E_ENCODE,
				"value: a tensor that is not in shared memory");
	}
	return copy_out(e, b);
}

/* Of what its storage became in the message. */
static void
put_right(struct xr_encoded *e, const struct encode_view *view)
{
	const struct encode_buffer *b = &e->buffers[view->buffer];
	uint8_t *p = e->head.at + view->at;
	struct xr_tensor_desc desc;

	if (!b->packed && b->len == b->storage->bytes)
		return;
	tensor_describe(view->tensor, &desc);
	if (b->packed)
		xr_tensor_dense(&desc);
	else if (xr_tensor_elements(&desc) == 0)
		desc.offset = 0;
	else
		desc.offset -= b->from;
	format_put64(p, desc.offset);
	p += 8 + 8 * (size_t)desc.ndim;
	for (uint32_t i = 0; i < desc.ndim; i++)
		format_put64(p + 8 * (size_t)i, (uint64_t)desc.strides[i]);
}

enum xr_status
encode_settle(struct xr_encoded *e)
{
	enum xr_status status = XR_OK;

	for (uint32_t i = 0; i < e->buffer_count && status == XR_OK; i++) {
		struct encode_buffer *b = &e->buffers[i];

		if (b->use == FORMAT_TENSOR)
			status = settle_tensor(e, b);
		else if (e->how.mode != VALUE_COPY)
			share(e, b);
	}
	for (uint32_t i = 0; i < e->view_count && status == XR_OK; i++)
		put_right(e, &e->views[i]);
	e->fd_count = 0; /* make_fds() counts them again */
	return status;
}
