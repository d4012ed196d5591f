/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_want.c - see kernel_want.h.
 *
 * Integers are done as 64 bits, reals as f64 that is rounded to f32 after each
 * step where the type is not f64. That is as good as f32 itself: Figueroa, "When
 * is double rounding innocuous?", 1995.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/kernel_want.h"

/* --- types ----------------------------------------------------------------- */

const struct type types[XR_DT_C128 + 1] = {
	[XR_DT_BOOL] = { "bool", 1, 1, 0, 0, false },
	[XR_DT_U8] = { "u8", 1, 1, 0, 0, false },
	[XR_DT_I8] = { "i8", 1, 1, 0, 0, true },
	[XR_DT_U16] = { "u16", 2, 1, 0, 0, false },
	[XR_DT_I16] = { "i16", 2, 1, 0, 0, true },
	[XR_DT_U32] = { "u32", 4, 1, 0, 0, false },
	[XR_DT_I32] = { "i32", 4, 1, 0, 0, true },
	[XR_DT_U64] = { "u64", 8, 1, 0, 0, false },
	[XR_DT_I64] = { "i64", 8, 1, 0, 0, true },
	[XR_DT_F16] = { "f16", 2, 1, 5, 10, true },
	[XR_DT_BF16] = { "bf16", 2, 1, 8, 7, true },
	[XR_DT_F32] = { "f32", 4, 1, 8, 23, true },
	[XR_DT_F64] = { "f64", 8, 1, 11, 52, true },
	[XR_DT_C64] = { "c64", 4, 2, 8, 23, true },
	[XR_DT_C128] = { "c128", 8, 2, 11, 52, true },
};

/* The numbers are little-endian, as on all machines that xrun runs on. */
static uint64_t
bits_at(const struct type *type, const void *from)
{
	uint64_t bits = 0;

	memcpy(&bits, from, type->size);
	return bits;
}

uint64_t
inf_of(const struct type *type)
{
	return ((UINT64_C(1) << type->exp) - 1) << type->frac;
}

static double
work_out_size(const struct type *type, uint64_t bits)
{
	uint64_t hidden = UINT64_C(1) << type->frac;
	int exp = (int)(bits >> type->frac);
	int bias = (1 << (type->exp - 1)) - 1 + (int)type->frac;

	bits &= hidden - 1;
	return exp == 0 ? ldexp((double)bits, 1 - bias) :
			  ldexp((double)(bits + hidden), exp - bias);
}

#define HALVES 32768 /* without sign */

/* Of bits without sign; infinity is what would follow the greatest number. What nearest()
 * looks for is in a table: it asks for some 16 of each number. */
static double
size_of_bits(const struct type *type, uint64_t bits)
{
	static double halves[2][HALVES];
	double *sizes = halves[type == &types[XR_DT_BF16]];

	if (type->size > 2)
		return work_out_size(type, bits);
	if (sizes[1] == 0)
		for (uint64_t i = 0; i < HALVES; i++)
			sizes[i] = work_out_size(type, i);
	return sizes[bits];
}

static double
real_at(const struct type *type, const void *from)
{
	uint64_t bits = bits_at(type, from);
	uint64_t sign = UINT64_C(1) << (type->size * 8 - 1);
	uint64_t size = bits & (sign - 1);
	double number = INFINITY;

	if (size > inf_of(type))
		return NAN;
	if (size < inf_of(type))
		number = size_of_bits(type, size);
	return bits & sign ? -number : number;
}

/* The bits below and above are found by looking; what is in the middle of two is
 * the even one. */
static uint64_t
nearest(const struct type *type, double size)
{
	uint64_t low = 0, high = inf_of(type), middle;
	double split;

	while (high - low > 1) {
		middle = (low + high) / 2;
		if (size_of_bits(type, middle) <= size)
			low = middle;
		else
			high = middle;
	}
	split = (size_of_bits(type, low) + size_of_bits(type, high)) / 2;
	if (size == split)
		return low % 2 == 0 ? low : high;
	return size < split ? low : high;
}

void
put_real(const struct type *type, double number, void *to)
{
	uint64_t nan = inf_of(type) | UINT64_C(1) << (type->frac - 1), bits;
	float single = (float)number;

	if (type->size == 8)
		bits = bits_at(type, &number);
	else if (type->size == 4)
		bits = bits_at(type, &single);
	else
		bits = nearest(type, fabs(number)) |
			(signbit(number) ? 0x8000 : 0);
	memcpy(to, isnan(number) ? &nan : &bits, type->size);
}

static uint64_t
int_at(enum xr_dtype dtype, const void *from)
{
	uint64_t bits = bits_at(&types[dtype], from);
	unsigned shift = 64 - 8 * (unsigned)types[dtype].size;

	if (dtype == XR_DT_BOOL)
		return bits != 0;
	return types[dtype].sign ?
		(uint64_t)((int64_t)(bits << shift) >> shift) :
		bits;
}

/* --- what is right --------------------------------------------------------- */

static uint64_t
fold_int(enum xr_dtype dtype, enum xr_redop op, uint64_t x, uint64_t y)
{
	bool less = types[dtype].sign ? (int64_t)x < (int64_t)y : x < y;

	switch (op) {
	case XR_SUM:
		return x + y;
	case XR_PROD:
		return x * y;
	case XR_MIN:
		return less ? x : y;
	case XR_MAX:
		return less ? y : x;
	case XR_BAND:
		return x & y;
	case XR_BOR:
		return x | y;
	case XR_BXOR:
		return x ^ y;
	case XR_AVG:
		break;
	}
	abort();
}

/* f16 and bf16, too, are added and multiplied in f32. */
static double
rounded(const struct type *type, double number)
{
	return type->size == 8 ? number : (double)(float)number;
}

static double
least(double x, double y)
{
	if (isnan(x) || isnan(y))
		return NAN;
	if (x == y)
		return signbit(x) ? x : y;
	return x < y ? x : y;
}

static double
fold_real(const struct type *type, enum xr_redop op, double x, double y)
{
	if (op == XR_SUM || op == XR_AVG)
		return rounded(type, x + y);
	if (op == XR_PROD)
		return rounded(type, x * y);
	return op == XR_MIN ? least(x, y) : -least(-x, -y);
}

struct complex {
	double re, im;
};

static struct complex
by_parts(const struct type *type, struct complex x, struct complex y)
{
	struct complex product = {
		rounded(type,
			rounded(type, x.re * y.re) -
				rounded(type, x.im * y.im)),
		rounded(type,
			rounded(type, x.re * y.im) +
				rounded(type, x.im * y.re)),
	};

	return product;
}

/* An infinite number, made one of length 1 or sqrt(2); of a finite one only the
 * NaN are made 0. */
static struct complex
box(struct complex x)
{
	bool infinite = isinf(x.re) || isinf(x.im);
	struct complex boxed = {
		copysign(infinite ? isinf(x.re) != 0 : x.re, x.re),
		copysign(infinite ? isinf(x.im) != 0 : x.im, x.im),
	};

	boxed.re = isnan(boxed.re) ? 0 : boxed.re;
	boxed.im = isnan(boxed.im) ? 0 : boxed.im;
	return boxed;
}

/* What C11, G.5.1, gives as an example: where no part is a number, and a factor
 * is infinite or a product of parts is, so is the result. */
static struct complex
times(const struct type *type, struct complex x, struct complex y)
{
	struct complex product = by_parts(type, x, y);
	bool infinite = isinf(x.re) || isinf(x.im) || isinf(y.re) ||
		isinf(y.im) || isinf(rounded(type, x.re * y.re)) ||
		isinf(rounded(type, x.im * y.im)) ||
		isinf(rounded(type, x.re * y.im)) ||
		isinf(rounded(type, x.im * y.re));

	if (!isnan(product.re) || !isnan(product.im) || !infinite)
		return product;
	x = box(x);
	y = box(y);
	product = by_parts(type, x, y);
	product.re *= INFINITY;
	product.im *= INFINITY;
	return product;
}

size_t
element_size(enum xr_dtype dtype)
{
	return types[dtype].size * types[dtype].parts;
}

static const void *
element(const struct kernel_job *job, uint32_t source, size_t i)
{
	return (const char *)job->src[source] + i * element_size(job->dtype);
}

static void
want_int(const struct kernel_job *job, size_t i, void *to)
{
	uint64_t all = int_at(job->dtype, element(job, 0, i));

	for (uint32_t k = 1; k < job->count; k++)
		all = fold_int(job->dtype, job->op, all,
			int_at(job->dtype, element(job, k, i)));
	memcpy(to, &all, types[job->dtype].size);
}

static void
want_real(const struct kernel_job *job, size_t i, size_t part, char *to)
{
	const struct type *type = &types[job->dtype];
	size_t offset = part * type->size;
	const char *from = element(job, 0, i);
	double all = real_at(type, from + offset);

	for (uint32_t k = 1; k < job->count; k++) {
		from = element(job, k, i);
		all = fold_real(type, job->op, all,
			real_at(type, from + offset));
	}
	if (job->op == XR_AVG)
		all = rounded(type, all * rounded(type, 1.0 / job->count));
	put_real(type, all, to + offset);
}

static struct complex
complex_at(const struct type *type, const char *from)
{
	struct complex number = {
		real_at(type, from),
		real_at(type, from + type->size),
	};

	return number;
}

static void
want_product(const struct kernel_job *job, size_t i, char *to)
{
	const struct type *type = &types[job->dtype];
	struct complex all = complex_at(type, element(job, 0, i));

	for (uint32_t k = 1; k < job->count; k++)
		all = times(type, all, complex_at(type, element(job, k, i)));
	put_real(type, all.re, to);
	put_real(type, all.im, to + type->size);
}

void
want(const struct kernel_job *job, char *to)
{
	const struct type *type = &types[job->dtype];

	for (size_t i = 0; i < job->n; i++, to += element_size(job->dtype)) {
		if (type->exp == 0) {
			want_int(job, i, to);
			continue;
		}
		if (type->parts == 2 && job->op == XR_PROD) {
			want_product(job, i, to);
			continue;
		}
		for (size_t part = 0; part < type->parts; part++)
			want_real(job, i, part, to);
	}
}
