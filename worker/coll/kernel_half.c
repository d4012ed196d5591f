/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_half.c - kernels of f16 and bf16, which are done in f32.
 *
 * Both ways between the types are integer arithmetic, and so the same bits come
 * of every instruction set. The instructions for it would not do: VCVTNEPS2BF16
 * takes subnormals for zero, and AVX512-FP16 rounds each sum (Intel 64 and IA-32
 * Architectures Software Developer's Manual, volume 2). Those of F16C give what
 * is computed here.
 */
#include "worker/coll/kernel_inner.h"
#include "worker/coll/kernel_real.h"

#define FIRST     XR_DT_F16
#define LAST      XR_DT_BF16
#define AT(dtype) ((dtype) - FIRST)

#define F32_BIAS  127
#define F32_SHIFT 23 /* bits below the exponent */
#define F16_BIAS  15
#define F16_SHIFT 10

#define F16_SIGN 0x8000U
#define F16_INF  0x7c00U
#define F16_NAN  0x7e00U
#define BF16_NAN 0x7fc0U

#define SHIFT   (F32_SHIFT - F16_SHIFT)
#define EXP(at) ((uint32_t)(at) << F32_SHIFT)

/* The upper half of an f32. */
KERNEL_INLINE float
from_bf16(uint16_t half)
{
	union kernel_f32 f = { .bits = (uint32_t)half << 16 };

	return f.number;
}

/* To nearest, ties to even: what is lost and less than half of the last bit that
 * stays, or half of it and that bit is even, does not carry. The exponent takes
 * the carry, up to infinity. */
KERNEL_INLINE uint16_t
to_bf16(float number)
{
	union kernel_f32 f = { .number = number };
	uint32_t half = (f.bits + 0x7fff + (f.bits >> 16 & 1)) >> 16;

	return (uint16_t)(number == number ? half : BF16_NAN);
}

/*
 * Exponent and fraction, put where f32 has them, are right but for the bias.
 * Without an exponent it is a subnormal: one is put there, and its value taken
 * away again. Infinity and NaN have all bits of it, and keep them.
 */
KERNEL_INLINE float
from_f16(uint16_t half)
{
	const union kernel_f32 one = { .bits = EXP(F32_BIAS - F16_BIAS + 1) };
	uint32_t size = half & (F16_SIGN - 1);
	uint32_t bias = EXP(F32_BIAS - F16_BIAS);
	union kernel_f32 f, small;

	bias = size >= F16_INF ? 2 * bias : bias;
	f.bits = (size << SHIFT) + bias;
	small.bits = (size << SHIFT) + one.bits;
	small.number -= one.number;
	f.bits = size < 1U << F16_SHIFT ? small.bits : f.bits;
	f.bits |= (uint32_t)(half & F16_SIGN) << 16;
	return f.number;
}

/*
 * Normal ones are rounded as to_bf16() does it. What becomes subnormal is added to
 * a number whose last bit weighs as much as theirs: that rounds it.
 */
KERNEL_INLINE uint16_t
to_f16(float number)
{
	const union kernel_f32 unit = { .bits = EXP(F32_BIAS - F16_BIAS +
						SHIFT + 1) };
	union kernel_f32 f = { .number = number }, small;
	uint32_t sign = f.bits >> 16 & F16_SIGN;
	uint32_t size = f.bits & 0x7fffffff, half;

	half = size - EXP(F32_BIAS - F16_BIAS) + (1U << (SHIFT - 1)) - 1 +
		(size >> SHIFT & 1);
	half >>= SHIFT;
	half = size >= EXP(F32_BIAS + F16_BIAS + 1) ? F16_INF : half;
	small.bits = size;
	small.number += unit.number;
	half = size < EXP(F32_BIAS - F16_BIAS + 1) ? small.bits - unit.bits :
						     half;
	half |= sign;
	return (uint16_t)(number == number ? half : F16_NAN);
}

#define SUM_BF16(x, y)  KERNEL_SUM(from_bf16(x), from_bf16(y))
#define PROD_BF16(x, y) KERNEL_PROD(from_bf16(x), from_bf16(y))
#define MIN_BF16(x, y)  kernel_min_f32(from_bf16(x), from_bf16(y))
#define MAX_BF16(x, y)  kernel_max_f32(from_bf16(x), from_bf16(y))

#define MORE_SUM_BF16(x, y)  KERNEL_SUM(x, from_bf16(y))
#define MORE_PROD_BF16(x, y) KERNEL_PROD(x, from_bf16(y))
#define MORE_MIN_BF16(x, y)  kernel_min_f32(x, from_bf16(y))
#define MORE_MAX_BF16(x, y)  kernel_max_f32(x, from_bf16(y))

#define SUM_F16(x, y)  KERNEL_SUM(from_f16(x), from_f16(y))
#define PROD_F16(x, y) KERNEL_PROD(from_f16(x), from_f16(y))
#define MIN_F16(x, y)  kernel_min_f32(from_f16(x), from_f16(y))
#define MAX_F16(x, y)  kernel_max_f32(from_f16(x), from_f16(y))

#define MORE_SUM_F16(x, y)  KERNEL_SUM(x, from_f16(y))
#define MORE_PROD_F16(x, y) KERNEL_PROD(x, from_f16(y))
#define MORE_MIN_F16(x, y)  kernel_min_f32(x, from_f16(y))
#define MORE_MAX_F16(x, y)  kernel_max_f32(x, from_f16(y))

#define HALF(name, op) \
	KERNEL_FOLD(name, float, uint16_t, uint16_t, op) \
	KERNEL_FOLD(more_##name, float, float, uint16_t, MORE_##op)

#define CLOSE(name, convert) \
	static KERNEL_CLONES void name(void *to, const void *from, size_t n, \
		uint32_t parts) \
	{ \
		float factor = 1.0F / (float)parts; \
		uint16_t *z = to; \
		const float *x = from; \
\
		KERNEL_EACH \
		for (size_t i = 0; i < n; i++) \
			z[i] = convert(x[i] * factor); \
	}

/* clang-format off: a line of its own for each, without semicolon */
HALF(sum_bf16, SUM_BF16)
HALF(prod_bf16, PROD_BF16)
HALF(min_bf16, MIN_BF16)
HALF(max_bf16, MAX_BF16)
HALF(sum_f16, SUM_F16)
HALF(prod_f16, PROD_F16)
HALF(min_f16, MIN_F16)
HALF(max_f16, MAX_F16)
CLOSE(close_bf16, to_bf16)
CLOSE(close_f16, to_f16)
/* clang-format on */

#define HALF_ROW(op, name) \
	{ \
		.fold = op##_##name, \
		.more = more_##op##_##name, \
		.close = close_##name, \
		.size = sizeof(uint16_t), \
		.wide = sizeof(float), \
	}

#define ROWS(op) \
	[AT(XR_DT_F16)] = HALF_ROW(op, f16), \
	[AT(XR_DT_BF16)] = HALF_ROW(op, bf16)

static const struct kernel_row rows[KERNEL_OPS][AT(LAST) + 1] = {
	[XR_SUM] = { ROWS(sum) },
	[XR_PROD] = { ROWS(prod) },
	[XR_MIN] = { ROWS(min) },
	[XR_MAX] = { ROWS(max) },
	[XR_AVG] = { ROWS(sum) },
};

const struct kernel_row *
kernel_half_row(enum xr_dtype dtype, enum xr_redop op)
{
	const struct kernel_range range = { FIRST, LAST };

	return kernel_row_in(rows[0], range, dtype, op);
}
