/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number.h - NIL, BOOL, I64, U64 and F64; inside of src/wire/value only.
 *
 * Most numbers need no memory: a pointer of 64 bits has room for one of 60, its kind
 * and a bit that no address of a value has, as those of Smalltalk and V8 do. What does
 * not fit, such as a double with all of its fraction, is a struct.
 *
 *   63                            4 3    1 0
 *   | the number, or of an F64 its | kind | 1 |
 *   | upper 60 bits                |      |   |
 */
#ifndef WIRE_VALUE_NUMBER_H
#define WIRE_VALUE_NUMBER_H

#include "wire/value/node.h"

#define NUMBER_SHIFT 4

_Static_assert(sizeof(void *) == sizeof(uint64_t), "a pointer has 64 bits");
_Static_assert(XR_F64 < 8, "a kind has 3 bits");

static inline struct xr_value *
number_word(enum xr_kind kind, uint64_t upper)
{
	return (struct xr_value *)(uintptr_t)(upper | (uint64_t)kind << 1 | 1);
}

/* number_new() - of a kind, with the bits that it has on the wire. NULL: no memory. */
struct xr_value *number_new(enum xr_kind kind, uint64_t bits);

/* number_bits() - of a number, what it was made of. */
static inline uint64_t
number_bits(const struct xr_value *value)
{
	uint64_t word = (uintptr_t)value;

	if (!node_is_number(value))
		return ((const struct value_number *)value)->bits;
	switch (node_kind(value)) {
	case XR_I64:
		return (uint64_t)((int64_t)word >> NUMBER_SHIFT);
	case XR_F64:
		return word >> NUMBER_SHIFT << NUMBER_SHIFT;
	default:
		return word >> NUMBER_SHIFT;
	}
}

#endif /* WIRE_VALUE_NUMBER_H */
