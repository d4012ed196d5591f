/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - see xrun/value.h: references, numbers, and what all kinds share. */
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
	[XR_NIL] = { "nil", NULL, sizeof(struct xr_value) },
	[XR_BOOL] = { "bool", NULL, sizeof(struct value_number) },
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

void
node_held(struct xr_value *item)
{
	if (!atomic_load_explicit(&item->shared, memory_order_relaxed))
		atomic_store_explicit(&item->shared, true,
			memory_order_relaxed);
}

bool
node_above(const struct xr_value *item, uint8_t *depth)
{
	*depth = item == NULL ? 1 : (uint8_t)(item->depth + 1);
	return *depth <= XR_VALUE_DEPTH_MAX;
}

XR_EXPORT struct xr_value *
xr_value_ref(struct xr_value *value)
{
	if (value == NULL)
		return NULL;
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
node_unref(struct xr_value *value, uint64_t count)
{
	if (value == NULL)
		return;
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
	return value == NULL ? XR_NIL : (enum xr_kind)value->kind;
}

/* --- numbers --------------------------------------------------------------- */

XR_EXPORT struct xr_value *
xr_value_new_nil(void)
{
	return node_new(XR_NIL, sizeof(struct xr_value));
}

XR_EXPORT struct xr_value *
xr_value_new_bool(bool b)
{
	struct value_number *n = node_new(XR_BOOL, sizeof(*n));

	if (n == NULL)
		return NULL;
	n->b = b;
	return &n->head;
}

XR_EXPORT struct xr_value *
xr_value_new_i64(int64_t i)
{
	struct value_number *n = node_new(XR_I64, sizeof(*n));

	if (n == NULL)
		return NULL;
	n->i = i;
	return &n->head;
}

XR_EXPORT struct xr_value *
xr_value_new_u64(uint64_t u)
{
	struct value_number *n = node_new(XR_U64, sizeof(*n));

	if (n == NULL)
		return NULL;
	n->u = u;
	return &n->head;
}

XR_EXPORT struct xr_value *
xr_value_new_f64(double f)
{
	struct value_number *n = node_new(XR_F64, sizeof(*n));

	if (n == NULL)
		return NULL;
	n->f = f;
	return &n->head;
}

XR_EXPORT struct xr_value *
xr_value_new_c128(double re, double im)
{
	struct value_complex *c = node_new(XR_C128, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->re = re;
	c->im = im;
	return &c->head;
}

static const struct value_number *
number_of(const struct xr_value *value)
{
	return (const struct value_number *)value;
}

XR_EXPORT enum xr_status
xr_value_get_bool(const struct xr_value *value, bool *b)
{
	if (!node_is(value, XR_BOOL))
		return XR_E_SCHEMA;
	*b = number_of(value)->b;
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_value_get_i64(const struct xr_value *value, int64_t *i)
{
	if (node_is(value, XR_I64))
		*i = number_of(value)->i;
	else if (node_is(value, XR_U64) && number_of(value)->u <= INT64_MAX)
		*i = (int64_t)number_of(value)->u;
	else
		return XR_E_SCHEMA;
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_value_get_u64(const struct xr_value *value, uint64_t *u)
{
	if (node_is(value, XR_U64))
		*u = number_of(value)->u;
	else if (node_is(value, XR_I64) && number_of(value)->i >= 0)
		*u = (uint64_t)number_of(value)->i;
	else
		return XR_E_SCHEMA;
	return XR_OK;
}

/* The largest doubles are beyond what comes back as an integer, and what does
 * not fit may not be converted. */
#define TWO_63 9223372036854775808.0
#define TWO_64 18446744073709551616.0

XR_EXPORT enum xr_status
xr_value_get_f64(const struct xr_value *value, double *f)
{
	double real;

	if (node_is(value, XR_F64)) {
		real = number_of(value)->f;
	} else if (node_is(value, XR_I64)) {
		real = (double)number_of(value)->i;
		if (real >= TWO_63 || (int64_t)real != number_of(value)->i)
			return XR_E_SCHEMA;
	} else if (node_is(value, XR_U64)) {
		real = (double)number_of(value)->u;
		if (real >= TWO_64 || (uint64_t)real != number_of(value)->u)
			return XR_E_SCHEMA;
	} else {
		return XR_E_SCHEMA;
	}
	*f = real;
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_value_get_c128(const struct xr_value *value, double *re, double *im)
{
	const struct value_complex *c = (const struct value_complex *)value;

	if (!node_is(value, XR_C128))
		return XR_E_SCHEMA;
	*re = c->re;
	*im = c->im;
	return XR_OK;
}
