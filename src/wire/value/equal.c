/* SPDX-License-Identifier: Apache-2.0 */
/* equal.c - see xrun/value.h: whether two values are the same all the way down. */
#include <string.h>

#include <xrun/value.h>

#include "base/status.h"
#include "wire/value/number.h"
#include "wire/value/tensor.h"
#include "wire/value/value_hooks.h"

static bool
same_complex(const struct xr_value *a, const struct xr_value *b)
{
	const struct value_complex *x = (const struct value_complex *)a;
	const struct value_complex *y = (const struct value_complex *)b;

	return memcmp(&x->re, &y->re, sizeof(x->re)) == 0 &&
		memcmp(&x->im, &y->im, sizeof(x->im)) == 0;
}

static bool
same_bytes(const struct xr_value *a, const struct xr_value *b)
{
	size_t n, m;
	const void *x = xr_value_data(a, &n), *y = xr_value_data(b, &m);

	return n == m && (n == 0 || memcmp(x, y, n) == 0);
}

static bool
same_list(const struct xr_value *a, const struct xr_value *b)
{
	size_t n = xr_value_count(a);

	if (n != xr_value_count(b))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!xr_value_equal(xr_value_at(a, i), xr_value_at(b, i)))
			return false;
	return true;
}

/* In any order. */
static bool
same_dict(const struct xr_value *a, const struct xr_value *b)
{
	const struct value_dict *d = (const struct value_dict *)a;

	if (d->count != xr_value_count(b))
		return false;
	for (size_t i = 0; i < d->count; i++) {
		const struct dict_entry *e = &d->entries[i];
		const struct xr_value *other = xr_value_find(b, e->key, e->len);

		if (other == NULL || !xr_value_equal(e->item, other))
			return false;
	}
	return true;
}

static bool
same_text(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool
same_worker(const struct xr_value *a, const struct xr_value *b)
{
	uint32_t i, k;

	return same_text(xr_value_worker(a, &i), xr_value_worker(b, &k)) &&
		i == k;
}

/* Both missing, or the same. */
static bool
same_inner(const struct xr_value *a, const struct xr_value *b)
{
	return (a == NULL && b == NULL) || xr_value_equal(a, b);
}

static bool
same_error(const struct xr_value *a, const struct xr_value *b)
{
	const struct value_error *x = (const struct value_error *)a;
	const struct value_error *y = (const struct value_error *)b;

	for (int i = 0; i < ERROR_TEXTS; i++)
		if (!same_text(x->text[i], y->text[i]))
			return false;
	return x->status == y->status && x->worker_id == y->worker_id &&
		same_inner(x->cause, y->cause);
}

static bool
same_opaque(const struct xr_value *a, const struct xr_value *b)
{
	struct xr_value *x, *y = NULL;
	bool same = false;

	if (!same_text(xr_value_type(a), xr_value_type(b)))
		return false;
	x = opaque_bytes(a, NULL);
	if (x != NULL)
		y = opaque_bytes(b, NULL);
	if (y != NULL)
		same = same_bytes(x, y);
	xr_value_unref(x);
	xr_value_unref(y);
	return same;
}

static bool
same_func(const struct xr_value *a, const struct xr_value *b)
{
	struct xr_value *x, *y;

	return same_text(xr_value_func(a, &x), xr_value_func(b, &y)) &&
		same_inner(x, y);
}

static bool
same_rref(const struct xr_value *a, const struct xr_value *b)
{
	return value_rref_ops()->equal(xr_value_rref(a), xr_value_rref(b));
}

XR_EXPORT bool
xr_value_equal(const struct xr_value *a, const struct xr_value *b)
{
	if (a == b)
		return true;
	if (a == NULL || b == NULL || node_kind(a) != node_kind(b))
		return false;
	switch (node_kind(a)) {
	case XR_NIL:
		return true;
	case XR_BOOL:
	case XR_I64:
	case XR_U64:
	case XR_F64:
		return number_bits(a) == number_bits(b);
	case XR_C128:
		return same_complex(a, b);
	case XR_BYTES:
	case XR_TEXT:
		return same_bytes(a, b);
	case XR_LIST:
		return same_list(a, b);
	case XR_DICT:
		return same_dict(a, b);
	case XR_TENSOR:
		return tensor_equal(tensor_of(a), tensor_of(b));
	case XR_RREF:
		return same_rref(a, b);
	case XR_WORKER:
		return same_worker(a, b);
	case XR_ERROR:
		return same_error(a, b);
	case XR_OPAQUE:
		return same_opaque(a, b);
	case XR_FUNC:
		return same_func(a, b);
	}
	return false;
}
