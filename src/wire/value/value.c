/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - see xrun/value.h: references, and what all kinds share. */
#include <errno.h>
#include <stdlib.h>

#include <xrun/value.h>

#include "base/status.h"
#include "base/stock.h"
#include "wire/value/node.h"

/* A kind, and what is to be done when the last reference is gone. */
static const struct {
	const char *name;
	void (*fini)(struct xr_value *value);
	size_t size; /* of those that are of the stock */
} kinds[] = {
	[XR_NIL] = { "nil", NULL },
	[XR_BOOL] = { "bool", NULL },
	[XR_I64] = { "i64", NULL, sizeof(struct value_number) },
	[XR_U64] = { "u64", NULL, sizeof(struct value_number) },
	[XR_F64] = { "f64", NULL, sizeof(struct value_number) },
	[XR_C128] = { "c128", NULL },
	[XR_BYTES] = { "bytes", bytes_fini },
	[XR_TEXT] = { "text", bytes_fini },
	[XR_LIST] = { "list", list_fini, sizeof(struct value_list) },
	[XR_DICT] = { "dict", dict_fini },
	[XR_TENSOR] = { "tensor", tensor_fini },
	[XR_RREF] = { "rref", rref_fini },
	[XR_WORKER] = { "worker", NULL },
	[XR_ERROR] = { "error", error_fini },
	[XR_OPAQUE] = { "opaque", opaque_fini },
	[XR_FUNC] = { "func", func_fini },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

XR_EXPORT const char *
xr_kind_name(enum xr_kind kind)
{
	return (size_t)kind < KINDS ? kinds[kind].name : "?";
}

/* --- any kind -------------------------------------------------------------- */

void *
node_new(enum xr_kind kind, size_t size)
{
	struct xr_value *value =
		kinds[kind].size != 0 ? stock_get(size) : malloc(size);

	if (value == NULL)
		return NULL;
	atomic_init(&value->refs, 1);
	atomic_init(&value->shared, false);
	value->kind = (uint8_t)kind;
	value->depth = 0;
	return value;
}

XR_EXPORT struct xr_value *
xr_value_ref(struct xr_value *value)
{
	if (value == NULL || node_is_number(value))
		return value;
	node_held(value);
	atomic_fetch_add_explicit(&value->refs, 1, memory_order_relaxed);
	return value;
}

XR_EXPORT void
xr_value_unref(struct xr_value *value)
{
	node_unref(value, 1);
}

static void
node_free(struct xr_value *value)
{
	int saved = errno;

	if (kinds[value->kind].fini != NULL)
		kinds[value->kind].fini(value);
	if (kinds[value->kind].size != 0)
		stock_put(value, kinds[value->kind].size);
	else
		free(value);
	errno = saved;
}

void
node_release(struct xr_value *value, uint64_t count)
{
	/* Nobody makes one more of the last ones, which are ours. */
	if (atomic_load_explicit(&value->refs, memory_order_acquire) != count &&
		atomic_fetch_sub_explicit(&value->refs, count,
			memory_order_acq_rel) > count)
		return;
	node_free(value);
}

XR_EXPORT enum xr_kind
xr_value_kind(const struct xr_value *value)
{
	return value == NULL ? XR_NIL : node_kind(value);
}
