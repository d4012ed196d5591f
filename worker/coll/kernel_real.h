/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_real.h - operations on two f32 or f64, as vectors can do them: without
 * branches.
 *
 * They are written out because the instructions for them, such as minps, ask for
 * an order of their operands where one is NaN or both are zero.
 */
#ifndef WORKER_COLL_KERNEL_REAL_H
#define WORKER_COLL_KERNEL_REAL_H

#include <stdint.h>

#define KERNEL_INLINE static inline __attribute__((always_inline))

#define KERNEL_SUM(x, y)  ((x) + (y))
#define KERNEL_PROD(x, y) ((x) * (y))

union kernel_f32 {
	float number;
	uint32_t bits;
};

union kernel_f64 {
	double number;
	uint64_t bits;
};

/*
 * Of type @real, whose bits are seen by union @seen: quiet(), a number or the one
 * NaN; min() and max(), a NaN if either is one.
 *
 * What is equal has the same bits, unless both are zero: then the sign is set in
 * the least if it is in either, and in the greatest if it is in both.
 */
#define KERNEL_REAL(name, real, seen, nan) \
	KERNEL_INLINE real kernel_quiet_##name(real x) \
	{ \
		return x == x ? x : nan; \
	} \
\
	KERNEL_INLINE real kernel_min_##name(real x, real y) \
	{ \
		union seen p = { .number = x }, q = { .number = y }; \
		real less = x < y ? x : y; /* y, if that is NaN */ \
\
		p.bits |= q.bits; \
		less = x == y ? p.number : less; \
		return x == x ? less : x; \
	} \
\
	KERNEL_INLINE real kernel_max_##name(real x, real y) \
	{ \
		union seen p = { .number = x }, q = { .number = y }; \
		real more = x > y ? x : y; \
\
		p.bits &= q.bits; \
		more = x == y ? p.number : more; \
		return x == x ? more : x; \
	}

/* clang-format off: a line of its own for each, without semicolon */
KERNEL_REAL(f32, float, kernel_f32, __builtin_nanf(""))
KERNEL_REAL(f64, double, kernel_f64, __builtin_nan(""))
/* clang-format on */

#endif /* WORKER_COLL_KERNEL_REAL_H */
