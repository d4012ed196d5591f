/* SPDX-License-Identifier: Apache-2.0 */
/* coll_ref.c - see coll_ref.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/prog/coll_ref.h"

static uint64_t
next(uint64_t *s)
{
	*s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *s >> 11;
}

static bool
is_half(enum xr_dtype d)
{
	return d == XR_DT_F16 || d == XR_DT_BF16;
}

static bool
is_float(enum xr_dtype d)
{
	return is_half(d) || d == XR_DT_F32 || d == XR_DT_F64;
}

static bool
is_complex(enum xr_dtype d)
{
	return d == XR_DT_C64 || d == XR_DT_C128;
}

bool
ref_can(enum xr_dtype d, enum xr_redop op)
{
	if (op == XR_MIN || op == XR_MAX)
		return !is_complex(d);
	if (op == XR_BAND || op == XR_BOR || op == XR_BXOR)
		return !is_float(d) && !is_complex(d);
	if (op == XR_AVG)
		return is_float(d) || is_complex(d);
	return d != XR_DT_BOOL;
}

/* --- halves ---------------------------------------------------------------- */

static float
bits_float(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static uint32_t
float_bits(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static float
from_half(enum xr_dtype d, uint16_t h)
{
	int exp = h >> 10 & 31, frac = h & 1023;
	float f;

	if (d == XR_DT_BF16)
		return bits_float((uint32_t)h << 16);
	if (exp == 31)
		f = frac != 0 ? NAN : INFINITY;
	else
		f = exp == 0 ? ldexpf((float)frac, -24) :
			       ldexpf((float)(frac + 1024), exp - 25);
	return (h & 0x8000) != 0 ? -f : f;
}

/* To nearest, ties to even: by the neighbours of it. */
static uint16_t
to_half(enum xr_dtype d, float f)
{
	uint32_t bits = float_bits(f);
	uint16_t sign = (uint16_t)(bits >> 16 & 0x8000), low, best;
	double a = fabs((double)f);

	if (isnan(f))
		return d == XR_DT_BF16 ? 0x7fc0 : 0x7e00;
	if (d == XR_DT_BF16) {
		bits += 0x7fff + (bits >> 16 & 1);
		return (uint16_t)(bits >> 16);
	}
	if (a >= 65520)
		return sign | 0x7c00;
	/* The greatest half that is not above it. */
	low = 0;
	for (uint16_t step = 1 << 14; step > 0; step /= 2)
		if (low + step < 0x7c00 &&
			(double)from_half(d, (uint16_t)(low + step)) <= a)
			low = (uint16_t)(low + step);
	best = low;
	if (low + 1 <= 0x7bff) {
		double down = a - (double)from_half(d, low);
		double up = (double)from_half(d, (uint16_t)(low + 1)) - a;

		if (up < down || (up == down && (low & 1) != 0))
			best = (uint16_t)(low + 1);
	}
	return sign | best;
}

/* --- what ranks have ----------------------------------------------------------- */

static void
fill_one(uint8_t *at, enum xr_dtype d, uint64_t r)
{
	double x = (double)(int64_t)(r % 2000001 - 1000000) / 1000.0;
	float f = (float)x;
	uint16_t h;

	switch (d) {
	case XR_DT_BOOL:
		*at = r & 1;
		break;
	case XR_DT_F16:
	case XR_DT_BF16:
		h = to_half(d, f / 16);
		memcpy(at, &h, sizeof(h));
		break;
	case XR_DT_F32:
		memcpy(at, &f, sizeof(f));
		break;
	case XR_DT_F64:
		memcpy(at, &x, sizeof(x));
		break;
	default:
		memcpy(at, &r, xr_dtype_size(d));
	}
}

void
ref_fill(void *data, size_t count, enum xr_dtype dtype, uint32_t number)
{
	uint64_t s = number * UINT64_C(977) + dtype;
	enum xr_dtype one = dtype == XR_DT_C64 ? XR_DT_F32 : XR_DT_F64;
	size_t size;

	if (is_complex(dtype))
		count *= 2;
	else
		one = dtype;
	size = xr_dtype_size(one);
	for (size_t i = 0; i < count; i++)
		fill_one((uint8_t *)data + i * size, one, next(&s));
}

/* --- reducing --------------------------------------------------------------------- */

static double
two_floats(double a, double b, enum xr_redop op)
{
	switch (op) {
	case XR_PROD:
		return a * b;
	case XR_MIN:
		return b < a ? b : a;
	case XR_MAX:
		return b > a ? b : a;
	default:
		return a + b;
	}
}

static uint64_t
two_bits(uint64_t a, uint64_t b, enum xr_redop op)
{
	switch (op) {
	case XR_BAND:
		return a & b;
	case XR_BOR:
		return a | b;
	case XR_BXOR:
		return a ^ b;
	case XR_PROD:
		return a * b;
	default:
		return a + b;
	}
}

static bool
is_signed(enum xr_dtype d)
{
	return d == XR_DT_I8 || d == XR_DT_I16 || d == XR_DT_I32 ||
		d == XR_DT_I64;
}

/* Made as long as it is compared. */
static uint64_t
widen(const void *at, enum xr_dtype d)
{
	size_t size = xr_dtype_size(d);
	uint64_t u = 0;

	memcpy(&u, at, size);
	if (is_signed(d) && size < 8 && (u >> (8 * size - 1) & 1) != 0)
		u |= ~UINT64_C(0) << (8 * size);
	return u;
}

static void
reduce_int(void *acc, const void *b, enum xr_dtype d, enum xr_redop op)
{
	uint64_t x = widen(acc, d), y = widen(b, d), r;
	bool less = is_signed(d) ? (int64_t)y < (int64_t)x : y < x;

	if (op == XR_MIN)
		r = less ? y : x;
	else if (op == XR_MAX)
		r = less ? x : y;
	else
		r = two_bits(x, y, op);
	memcpy(acc, &r, xr_dtype_size(d));
}

static void
reduce_real(void *acc, const void *b, bool is_double, enum xr_redop op)
{
	float f, g;
	double x, y;

	if (is_double) {
		memcpy(&x, acc, sizeof(x));
		memcpy(&y, b, sizeof(y));
		x = two_floats(x, y, op);
		memcpy(acc, &x, sizeof(x));
		return;
	}
	/* A sum or product of two floats is rounded once, also by way of double. */
	memcpy(&f, acc, sizeof(f));
	memcpy(&g, b, sizeof(g));
	f = (float)two_floats((double)f, (double)g, op);
	memcpy(acc, &f, sizeof(f));
}

static void
product_c64(float *acc, const float *b)
{
	/* Each product exact, or rounded once; then their difference and sum. */
	float ac = acc[0] * b[0], bd = acc[1] * b[1];
	float ad = acc[0] * b[1], bc = acc[1] * b[0];

	acc[0] = ac - bd;
	acc[1] = ad + bc;
}

static void
product_c128(double *acc, const double *b)
{
	double ac = acc[0] * b[0], bd = acc[1] * b[1];
	double ad = acc[0] * b[1], bc = acc[1] * b[0];

	acc[0] = ac - bd;
	acc[1] = ad + bc;
}

static void
reduce_complex(void *acc, const void *b, enum xr_dtype d, enum xr_redop op)
{
	bool wide = d == XR_DT_C128;
	size_t half = wide ? 8 : 4;

	if (op == XR_PROD && wide) {
		product_c128(acc, b);
	} else if (op == XR_PROD) {
		product_c64(acc, b);
	} else {
		reduce_real(acc, b, wide, op);
		reduce_real((char *)acc + half, (const char *)b + half, wide,
			op);
	}
}

static void
average(void *acc, enum xr_dtype d, uint32_t ranks)
{
	size_t n = is_complex(d) ? 2 : 1;

	for (size_t i = 0; i < n; i++) {
		if (d == XR_DT_F64 || d == XR_DT_C128)
			((double *)acc)[i] *= 1.0 / ranks;
		else
			((float *)acc)[i] *= 1.0f / (float)ranks;
	}
}

/* What all ranks have. */
struct all {
	enum xr_dtype dtype;
	enum xr_redop op;
	uint32_t ranks, each;
	uint8_t *data[64];
};

/* Element @i of array @from; a half as a float. */
static void
take(const struct all *a, uint32_t from, size_t i, void *to)
{
	size_t size = xr_dtype_size(a->dtype);
	uint16_t h;
	float f;

	if (!is_half(a->dtype)) {
		memcpy(to, a->data[from] + i * size, size);
		return;
	}
	memcpy(&h, a->data[from] + i * size, sizeof(h));
	f = from_half(a->dtype, h);
	memcpy(to, &f, sizeof(f));
}

static void
combine(const struct all *a, void *acc, const void *b)
{
	if (is_complex(a->dtype))
		reduce_complex(acc, b, a->dtype, a->op);
	else if (is_float(a->dtype))
		reduce_real(acc, b, a->dtype == XR_DT_F64, a->op);
	else
		reduce_int(acc, b, a->dtype, a->op);
}

/* Element @i of them: of each rank in its order, and those in theirs. */
static void
reduce_one(void *to, const struct all *a, size_t i)
{
	_Alignas(16) uint8_t acc[16], own[16], next[16];
	float f;
	uint16_t h;

	for (uint32_t r = 0; r < a->ranks; r++) {
		take(a, r * a->each, i, own);
		for (uint32_t k = 1; k < a->each; k++) {
			take(a, r * a->each + k, i, next);
			combine(a, own, next);
		}
		if (r == 0)
			memcpy(acc, own, sizeof(acc));
		else
			combine(a, acc, own);
	}
	if (a->op == XR_AVG)
		average(acc, a->dtype, a->ranks * a->each);
	memcpy(&f, acc, sizeof(f));
	h = is_half(a->dtype) ? to_half(a->dtype, f) : 0;
	memcpy(to, is_half(a->dtype) ? (void *)&h : acc,
		xr_dtype_size(a->dtype));
}

void
ref_reduce(void *data, size_t count, enum xr_dtype dtype, enum xr_redop op,
	struct ref_ranks ranks)
{
	struct all all = { dtype, op, ranks.count, ranks.each, { NULL } };
	size_t size = xr_dtype_size(dtype);

	for (uint32_t r = 0; r < all.ranks * all.each; r++) {
		all.data[r] = malloc(count * size + 1);
		if (all.data[r] == NULL)
			abort();
		ref_fill(all.data[r], count, dtype, r);
	}
	for (size_t i = 0; i < count; i++)
		reduce_one((uint8_t *)data + i * size, &all, i);
	for (uint32_t r = 0; r < all.ranks * all.each; r++)
		free(all.data[r]);
}

int32_t *
ref_numbers(size_t count, uint32_t seed)
{
	int32_t *x = malloc(count * sizeof(*x) + 1);

	if (x == NULL)
		abort();
	for (size_t i = 0; i < count; i++)
		x[i] = (int32_t)(i * 7919 + seed * 104729);
	return x;
}

bool
ref_holds(const int32_t *x, size_t count, uint32_t seed)
{
	for (size_t i = 0; i < count; i++)
		if (x[i] != (int32_t)(i * 7919 + seed * 104729))
			return false;
	return true;
}

void
ref_free(uint32_t count, int32_t **list)
{
	for (uint32_t r = 0; r < count; r++)
		free(list[r]);
}
