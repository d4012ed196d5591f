/* SPDX-License-Identifier: Apache-2.0 */
/* number.h - whole numbers in a frame or a record: little-endian, unaligned. */
#ifndef STORE_NUMBER_H
#define STORE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/* number_put() - the lowest @bytes of @number. */
static inline void
number_put(char *out, uint64_t number, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		out[i] = (char)(number >> 8 * i);
}

/* number_get() - of @bytes, 8 at most. */
static inline uint64_t
number_get(const char *in, size_t bytes)
{
	uint64_t number = 0;

	for (size_t i = 0; i < bytes; i++)
		number |= (uint64_t)(unsigned char)in[i] << 8 * i;
	return number;
}

#endif /* STORE_NUMBER_H */
