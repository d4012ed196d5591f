/* SPDX-License-Identifier: Apache-2.0 */
/* shelf.c - see shelf.h. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "worker/rpc/shelf.h"

static enum xr_status
pack(struct xr_value *v, void **data, size_t *len, struct xr_error *err)
{
	struct xr_encoded *e = NULL;
	enum xr_status status = xr_encode(v, NULL, &e, err);
	const struct xr_part *parts;
	size_t count, at = 0;
	char *all;

	if (status != XR_OK)
		return status;
	parts = xr_encoded_parts(e, &count);
	*len = 0;
	for (size_t i = 0; i < count; i++)
		*len += parts[i].len;
	all = malloc(*len);
	for (size_t i = 0; all != NULL && i < count; at += parts[i++].len)
		memcpy(all + at, parts[i].data, parts[i].len);
	xr_encoded_free(e);
	*data = all;
	return all != NULL ? XR_OK : fail(err, XR_E_NOMEM, "out of memory");
}

size_t
shelf_pack_into(struct xr_value *v, void *out, size_t cap)
{
	void *data = NULL;
	size_t len = 0;

	if (pack(v, &data, &len, NULL) != XR_OK)
		return 0;
	if (len <= cap)
		memcpy(out, data, len);
	free(data);
	return len <= cap ? len : 0;
}

enum xr_status
shelf_unpack(const void *data, size_t len, struct xr_value **v,
	struct xr_error *err)
{
	struct xr_part part = { data, len };

	return xr_decode(&part, 1, NULL, v, err);
}

enum xr_status
shelf_get(struct xr_store *store, const char *key, int64_t timeout,
	struct xr_value **v, struct xr_error *err)
{
	struct xr_store_value bytes = { 0 };
	enum xr_status status = xr_store_get(store, key, timeout, &bytes, err);

	if (status == XR_OK)
		status = shelf_unpack(bytes.data, bytes.len, v, err);
	xr_store_value_free(&bytes);
	return status;
}

enum xr_status
shelf_set(struct xr_store *store, const char *key, struct xr_value *v,
	struct xr_error *err)
{
	void *data = NULL;
	size_t len = 0;
	enum xr_status status = pack(v, &data, &len, err);

	if (status == XR_OK)
		status = xr_store_set(store, key, data, len, err);
	free(data);
	return status;
}

enum xr_status
shelf_claim(struct xr_store *store, const char *key, struct xr_value *v,
	bool *won, struct xr_error *err)
{
	struct xr_store_swap swap = { .size = sizeof(swap), .key = key };
	struct xr_store_value now = { 0 };
	enum xr_status status;
	void *data = NULL;
	bool there = false;

	status = pack(v, &data, &swap.desired_len, err);
	if (status != XR_OK)
		return status;
	swap.desired = data;
	status = xr_store_compare_set(store, &swap, &now, &there, err);
	if (status == XR_OK)
		*won = there && now.len == swap.desired_len &&
			memcmp(now.data, data, now.len) == 0;
	xr_store_value_free(&now);
	free(data);
	return status;
}
