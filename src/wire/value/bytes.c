/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes.c - see xrun/value.h: bytes and text.
 *
 * Long bytes lie in a storage, so that they can be handed over; text lies behind
 * its node, for whoever gets it copies it anyway, and checks the copy.
 */
#include <string.h>

#include <xrun/value.h>

#include "base/status.h"
#include "base/utf8.h"
#include "wire/value/node.h"
#include "wire/value/storage.h"

/* Do 8 bytes hold nothing but ASCII, and no NUL? */
static bool
is_plain(const char *p)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return ((word | (word - ones)) & (ones << 7)) == 0;
}

bool
text_valid(const void *text, size_t len)
{
	const char *p = text;
	size_t n;

	while (len > 0) {
		if (len >= 8 && is_plain(p)) {
			n = 8;
		} else {
			n = utf8_step(p, len);
			if (n == 0 || *p == '\0')
				return false;
		}
		p += n;
		len -= n;
	}
	return true;
}

struct xr_value *
bytes_new(enum xr_kind kind, const void *data, size_t len)
{
	struct value_bytes *b;

	if (len > XR_VALUE_BYTES_MAX || (data == NULL && len > 0))
		return NULL;
	b = node_new(kind, sizeof(*b) + len + 1);
	if (b == NULL)
		return NULL;
	b->storage = NULL;
	b->len = len;
	b->data = b->own;
	if (len > 0)
		memcpy(b->own, data, len);
	b->own[len] = '\0';
	return &b->head;
}

struct xr_value *
bytes_over(enum xr_kind kind, struct storage *storage, size_t len)
{
	struct value_bytes *b = node_new(kind, sizeof(*b));

	if (b == NULL)
		return NULL;
	b->storage = storage_ref(storage);
	b->data = storage->data == NULL ? "" : storage->data;
	b->len = len;
	return &b->head;
}

void
bytes_fini(struct xr_value *value)
{
	storage_unref(((struct value_bytes *)value)->storage);
}

XR_EXPORT struct xr_value *
xr_value_new_bytes(const void *data, size_t len)
{
	struct xr_value *value;
	struct storage *storage;

	if (len < VALUE_LONG || len > XR_VALUE_BYTES_MAX || data == NULL)
		return bytes_new(XR_BYTES, data, len);
	storage = storage_new(len + 1);
	if (storage == NULL)
		return NULL;
	memcpy(storage->data, data, len);
	((char *)storage->data)[len] = '\0';
	value = bytes_over(XR_BYTES, storage, len);
	storage_unref(storage);
	return value;
}

XR_EXPORT struct xr_value *
xr_value_new_text(const char *text, size_t len)
{
	if (len > XR_VALUE_BYTES_MAX || (text == NULL && len > 0) ||
		!text_valid(text, len))
		return NULL;
	return bytes_new(XR_TEXT, text, len);
}

XR_EXPORT struct xr_value *
xr_value_wrap_bytes(const void *data, size_t len, xr_free_fn *free_fn,
	void *ctx)
{
	struct storage_memory memory = { .data = (void *)data, .bytes = len };
	struct xr_value *value;
	struct storage *storage;

	if (len > XR_VALUE_BYTES_MAX || (data == NULL && len > 0))
		return NULL;
	storage = storage_wrap(&memory);
	if (storage == NULL)
		return NULL;
	value = bytes_over(XR_BYTES, storage, len);
	if (value != NULL) {
		storage->free_fn = free_fn;
		storage->ctx = ctx;
	}
	storage_unref(storage);
	return value;
}

XR_EXPORT const void *
xr_value_data(const struct xr_value *value, size_t *len)
{
	const struct value_bytes *b = (const struct value_bytes *)value;
	bool has = node_is(value, XR_BYTES) || node_is(value, XR_TEXT);

	if (len != NULL)
		*len = has ? b->len : 0;
	return has ? b->data : NULL;
}
