/* SPDX-License-Identifier: Apache-2.0 */
/* number.c - see xrun/value.h: numbers; and number.h. */
#include <string.h>

#include <xrun/value.h>

#include "base/status.h"
#include "wire/value/number.h"

/* --- making ---------------------------------------------------------------- */

/* Does a pointer have room for @bits; and what stands in its upper ones. */
static bool
fits(enum xr_kind kind, uint64_t bits, uint64_t *upper)
{
	*upper = bits << NUMBER_SHIFT;
	if (kind == XR_F64) {
		*upper = bits;
		return (bits & ((1U << NUMBER_SHIFT) - 1)) == 0;
	}
	if (kind == XR_I64)
		return (int64_t)*upper >> NUMBER_SHIFT == (int64_t)bits;
	return *upper >> NUMBER_SHIFT == bits;
}

struct xr_value *
number_new(enum xr_kind kind, uint64_t bits)
{
	struct value_number *n;
	uint64_t upper;

	if (fits(kind, bits, &upper))
		return number_word(kind, upper);
	n = node_new(kind, sizeof(*n));
	if (n == NULL)
		return NULL;
	n->bits = bits;
	return &n->head;
}

XR_EXPORT struct xr_value *
xr_value_new_nil(void)
{
	return number_word(XR_NIL, 0);
}

XR_EXPORT struct xr_value *
xr_value_new_bool(bool b)
{
	return number_new(XR_BOOL, b);
}

XR_EXPORT struct xr_value *
xr_value_new_i64(int64_t i)
{
	return number_new(XR_I64, (uint64_t)i);
}

XR_EXPORT struct xr_value *
xr_value_new_u64(uint64_t u)
{
	return number_new(XR_U64, u);
}

XR_EXPORT struct xr_value *
xr_value_new_f64(double f)
{
	uint64_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return number_new(XR_F64, bits);
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

/* --- reading --------------------------------------------------------------- */

XR_EXPORT enum xr_status
xr_value_get_bool(const struct xr_value *value, bool *b)
{
	if (!node_is(value, XR_BOOL))
		return XR_E_SCHEMA;
	*b = number_bits(value) != 0;
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_value_get_i64(const struct xr_value *value, int64_t *i)
{
	if (!node_is(value, XR_I64) &&
		!(node_is(value, XR_U64) && number_bits(value) <= INT64_MAX))
		return XR_E_SCHEMA;
	*i = (int64_t)number_bits(value);
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_value_get_u64(const struct xr_value *value, uint64_t *u)
{
	if (!node_is(value, XR_U64) &&
		!(node_is(value, XR_I64) && number_bits(value) <= INT64_MAX))
		return XR_E_SCHEMA;
	*u = number_bits(value);
	return XR_OK;
}

/* The largest doubles are beyond what comes back as an integer, and what does
 * not fit may not be converted. */
#define TWO_63 9223372036854775808.0
#define TWO_64 18446744073709551616.0

XR_EXPORT enum xr_status
xr_value_get_f64(const struct xr_value *value, double *f)
{
	uint64_t bits;
	double real;

	if (!node_is(value, XR_F64) && !node_is(value, XR_I64) &&
		!node_is(value, XR_U64))
		return XR_E_SCHEMA;
	bits = number_bits(value);
	if (node_is(value, XR_F64)) {
		memcpy(&real, &bits, sizeof(real));
	} else if (node_is(value, XR_I64)) {
		real = (double)(int64_t)bits;
		if (real >= TWO_63 || (int64_t)real != (int64_t)bits)
			return XR_E_SCHEMA;
	} else {
		real = (double)bits;
		if (real >= TWO_64 || (uint64_t)real != bits)
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
