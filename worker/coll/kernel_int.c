/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_int.c - kernels of integers and truth values.
 *
 * Whether a number has a sign matters to the least and the greatest only; all
 * else is done without, where overflow is defined and gives the same bits.
 */
#include "worker/coll/kernel_inner.h"

#define FIRST     XR_DT_BOOL
#define LAST      XR_DT_I64
#define AT(dtype) ((dtype) - FIRST)

#define SUM(x, y)  ((x) + (y))
#define PROD(x, y) ((x) * 1U * (y)) /* u16: an int would overflow */
#define MIN(x, y)  ((x) < (y) ? (x) : (y))
#define MAX(x, y)  ((x) > (y) ? (x) : (y))
#define BAND(x, y) ((x) & (y))
#define BOR(x, y)  ((x) | (y))
#define BXOR(x, y) ((x) ^ (y))

#define BOTH(x, y)   (((x) != 0) & ((y) != 0))
#define EITHER(x, y) (((x) | (y)) != 0)
#define ONE(x, y)    (((x) != 0) ^ ((y) != 0))

#define SAME(name, type, op) KERNEL_FOLD(name, type, type, type, op)

#define SIGNLESS(name, op) \
	SAME(name##_8, uint8_t, op) \
	SAME(name##_16, uint16_t, op) \
	SAME(name##_32, uint32_t, op) \
	SAME(name##_64, uint64_t, op)

#define SIGNED(name, op) \
	SAME(name##_u8, uint8_t, op) \
	SAME(name##_i8, int8_t, op) \
	SAME(name##_u16, uint16_t, op) \
	SAME(name##_i16, int16_t, op) \
	SAME(name##_u32, uint32_t, op) \
	SAME(name##_i32, int32_t, op) \
	SAME(name##_u64, uint64_t, op) \
	SAME(name##_i64, int64_t, op)

/* clang-format off: a line of its own for each, without semicolon */
SIGNLESS(sum, SUM)
SIGNLESS(prod, PROD)
SIGNLESS(band, BAND)
SIGNLESS(bor, BOR)
SIGNLESS(bxor, BXOR)
SIGNED(min, MIN)
SIGNED(max, MAX)
SAME(both, uint8_t, BOTH)
SAME(either, uint8_t, EITHER)
SAME(one, uint8_t, ONE)
/* clang-format on */

#define SIGNLESS_ROWS(name) \
	[AT(XR_DT_U8)] = KERNEL_ROW(name##_8, uint8_t), \
	[AT(XR_DT_I8)] = KERNEL_ROW(name##_8, uint8_t), \
	[AT(XR_DT_U16)] = KERNEL_ROW(name##_16, uint16_t), \
	[AT(XR_DT_I16)] = KERNEL_ROW(name##_16, uint16_t), \
	[AT(XR_DT_U32)] = KERNEL_ROW(name##_32, uint32_t), \
	[AT(XR_DT_I32)] = KERNEL_ROW(name##_32, uint32_t), \
	[AT(XR_DT_U64)] = KERNEL_ROW(name##_64, uint64_t), \
	[AT(XR_DT_I64)] = KERNEL_ROW(name##_64, uint64_t)

#define SIGNED_ROWS(name) \
	[AT(XR_DT_U8)] = KERNEL_ROW(name##_u8, uint8_t), \
	[AT(XR_DT_I8)] = KERNEL_ROW(name##_i8, int8_t), \
	[AT(XR_DT_U16)] = KERNEL_ROW(name##_u16, uint16_t), \
	[AT(XR_DT_I16)] = KERNEL_ROW(name##_i16, int16_t), \
	[AT(XR_DT_U32)] = KERNEL_ROW(name##_u32, uint32_t), \
	[AT(XR_DT_I32)] = KERNEL_ROW(name##_i32, int32_t), \
	[AT(XR_DT_U64)] = KERNEL_ROW(name##_u64, uint64_t), \
	[AT(XR_DT_I64)] = KERNEL_ROW(name##_i64, int64_t)

#define BOOL_ROW(name) [AT(XR_DT_BOOL)] = KERNEL_ROW(name, uint8_t)

static const struct kernel_row rows[KERNEL_OPS][AT(LAST) + 1] = {
	[XR_SUM] = { SIGNLESS_ROWS(sum) },
	[XR_PROD] = { SIGNLESS_ROWS(prod) },
	[XR_MIN] = { BOOL_ROW(both), SIGNED_ROWS(min) },
	[XR_MAX] = { BOOL_ROW(either), SIGNED_ROWS(max) },
	[XR_BAND] = { BOOL_ROW(both), SIGNLESS_ROWS(band) },
	[XR_BOR] = { BOOL_ROW(either), SIGNLESS_ROWS(bor) },
	[XR_BXOR] = { BOOL_ROW(one), SIGNLESS_ROWS(bxor) },
};

const struct kernel_row *
kernel_int_row(enum xr_dtype dtype, enum xr_redop op)
{
	const struct kernel_range range = { FIRST, LAST };

	return kernel_row_in(rows[0], range, dtype, op);
}
