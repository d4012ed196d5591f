/* SPDX-License-Identifier: Apache-2.0 */
/* decode_buffer.c - see decode.h: what of a value was not in the head. */
#include <inttypes.h>
#include <stdlib.h>

#include "wire/value/decode.h"
#include "wire/value/device_ops.h"

enum xr_status
decode_buffer(struct decoder *d, enum format_use use,
	struct decode_buffer **buffer)
{
	const uint8_t *p = decode_take(d, 4);
	uint32_t i;

	if (p == NULL)
		return XR_E_DECODE;
	i = format_get32(p);
	if (i >= d->count || i > d->used ||
		(use == FORMAT_OBJECT && i != d->used))
		return DECODE_BAD(d, "buffer %" PRIu32 " of %" PRIu32, i,
			d->count);
	if (d->buffers[i].use != use)
		return DECODE_BAD(d, "buffer %" PRIu32 " is something else", i);
	if (i == d->used)
		d->used++;
	*buffer = &d->buffers[i];
	return XR_OK;
}

enum xr_status
decode_finish(struct decoder *d)
{
	if (d->at != d->len)
		return DECODE_BAD(d, "%zu bytes behind the value",
			d->len - d->at);
	if (d->used != d->count)
		return DECODE_BAD(d, "nobody uses buffer %" PRIu32, d->used);
	return XR_OK;
}

/* Where it may stay, and is aligned for any element; else NULL. */
static const void *
stays(struct decoder *d, const struct decode_buffer *b)
{
	const void *at;

	if (b->place != FORMAT_HERE || b->len == 0 || d->r->owner == NULL)
		return NULL;
	at = parts_at(d, b->at, b->len);
	return (uintptr_t)at % FORMAT_ALIGN == 0 ? at : NULL;
}

/* A copy that is nobody else's. */
static enum xr_status
copy_private(struct decoder *d, const struct decode_buffer *b, void **copy)
{
	enum xr_status status = decode_spend(d, b->len + 1);

	if (status != XR_OK)
		return status;
	*copy = malloc(b->len + 1);
	if (*copy == NULL)
		return decode_no_memory(d);
	parts_copy(d, b->at, *copy, b->len);
	((char *)*copy)[b->len] = '\0';
	return XR_OK;
}

static void
free_copy(void *data, void *ctx)
{
	(void)ctx;
	free(data);
}

/* Text is looked at where nobody can change it afterwards. */
static enum xr_status
make_text(struct decoder *d, struct decode_buffer *b)
{
	struct storage_memory memory = {
		.bytes = b->len,
		.free_fn = free_copy,
	};
	enum xr_status status = copy_private(d, b, &memory.data);

	if (status != XR_OK)
		return status;
	if (!text_valid(memory.data, b->len))
		status = DECODE_BAD(d,
			"text that is no UTF-8, or has a NUL in it");
	else if ((b->storage = storage_wrap(&memory)) == NULL)
		status = decode_no_memory(d);
	if (status != XR_OK)
		free(memory.data);
	return status;
}

static enum xr_status
make_device(struct decoder *d, struct decode_buffer *b)
{
	struct storage_memory where = {
		.bytes = b->len,
		.device_kind = (enum xr_device_kind)b->device_kind,
		.device_index = b->device_index,
	};
	const struct device_ops *ops = device_ops_of(where.device_kind);
	struct device_memory memory = { b->device_index, NULL, b->len };
	enum xr_status status = decode_spend(d, b->len);
	const void *host = NULL;
	void *own = NULL;

	if (status == XR_OK)
		status = storage_on_device(&where, &b->storage, d->err);
	if (status != XR_OK || b->len == 0)
		return status;
	host = parts_at(d, b->at, b->len);
	if (host == NULL) {
		status = copy_private(d, b, &own);
		host = own;
	}
	memory.data = b->storage->data;
	if (status == XR_OK)
		status = ops->copy_from_host(ops->ctx, host, &memory, d->err);
	free(own);
	return status;
}

static enum xr_status
make_copy(struct decoder *d, struct decode_buffer *b)
{
	enum xr_status status = decode_spend(d, b->len + 1);

	if (status != XR_OK)
		return status;
	/* Behind bytes there is room for a NUL. */
	b->storage = b->use == FORMAT_TENSOR ? storage_for_tensor(b->len) :
					       storage_new(b->len + 1);
	if (b->storage == NULL)
		return decode_no_memory(d);
	parts_copy(d, b->at, b->storage->data, b->len);
	if (b->use == FORMAT_BYTES)
		((char *)b->storage->data)[b->len] = '\0';
	return XR_OK;
}

static enum xr_status
make_lent(struct decoder *d, struct decode_buffer *b)
{
	const struct value_codec_ctx *ctx = d->r->ctx;
	void *at = ctx->borrow(ctx->ctx, b->word[0], b->len);

	if (at == NULL)
		return DECODE_BAD(d,
			"loan %" PRIu64 " of %" PRIu64 " bytes: it is not so",
			b->word[0], b->len);
	b->storage = storage_within(d->r->owner, at, b->len);
	return b->storage == NULL ? decode_no_memory(d) : XR_OK;
}

static enum xr_status
make_shared(struct decoder *d, struct decode_buffer *b)
{
	struct storage_handle handle = { b->word[0], b->word[1], b->word[2] };
	enum xr_status status = decode_spend(d, b->len);

	if (status != XR_OK)
		return status;
	if (b->place == FORMAT_LOAN)
		return make_lent(d, b);
	if (b->place == FORMAT_HANDLE)
		return storage_adopt(&handle, b->len, &b->storage, d->err);
	return storage_map(d->r->fds[b->word[0]], b->word[1], b->len,
		&b->storage, d->err);
}

enum xr_status
decode_storage(struct decoder *d, struct decode_buffer *b)
{
	const void *at;

	if (b->storage != NULL)
		return XR_OK;
	if (b->use == FORMAT_TEXT)
		return make_text(d, b);
	if (b->device_kind != XR_DEVICE_CPU)
		return make_device(d, b);
	if (b->place != FORMAT_HERE)
		return make_shared(d, b);
	at = stays(d, b);
	if (at == NULL)
		return make_copy(d, b);
	b->storage = storage_within(d->r->owner, (void *)at, b->len);
	return b->storage == NULL ? decode_no_memory(d) : XR_OK;
}

enum xr_status
decode_stable(struct decoder *d, struct decode_buffer *b, const void **data,
	void **own)
{
	enum xr_status status;

	*own = NULL;
	*data = d->r->owner != NULL && d->r->owner->stable ? stays(d, b) : NULL;
	if (*data != NULL)
		return XR_OK;
	if (b->place == FORMAT_HERE) {
		status = copy_private(d, b, own);
		*data = *own;
		return status;
	}
	status = decode_storage(d, b);
	if (status == XR_OK)
		status = decode_spend(d, b->len);
	if (status != XR_OK)
		return status;
	*own = malloc(b->len);
	*data = *own;
	return *own == NULL ? decode_no_memory(d) :
			      storage_read(b->storage, 0, *own, b->len, d->err);
}
