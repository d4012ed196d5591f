/* SPDX-License-Identifier: Apache-2.0 */
/* crc32c.c - see crc32c.h. */
#include <string.h>

#include "base/crc32c.h"

/* The remainders of 4 bits, lowest bit first: row i is i divided by 82F63B78,
 * the polynomial the other way round. */
static const uint32_t rest[16] = {
	0x00000000,
	0x105ec76f,
	0x20bd8ede,
	0x30e349b1,
	0x417b1dbc,
	0x5125dad3,
	0x61c69362,
	0x7198540d,
	0x82f63b78,
	0x92a8fc17,
	0xa24bb5a6,
	0xb21572c9,
	0xc38d26c4,
	0xd3d3e1ab,
	0xe330a81a,
	0xf36e6f75,
};

uint32_t
crc32c_plain(uint32_t crc, const void *data, size_t len)
{
	const unsigned char *p = data;

	crc = ~crc;
	for (; len > 0; len--) {
		crc ^= *p++;
		crc = crc >> 4 ^ rest[crc & 15];
		crc = crc >> 4 ^ rest[crc & 15];
	}
	return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t
by_instruction(uint32_t crc, const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t sum = ~crc, word;

	for (; len >= sizeof(word); len -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		sum = __builtin_ia32_crc32di(sum, word);
		p += sizeof(word);
	}
	for (; len > 0; len--)
		sum = __builtin_ia32_crc32qi((uint32_t)sum, *p++);
	return ~(uint32_t)sum;
}
#endif

uint32_t
crc32c(uint32_t crc, const void *data, size_t len)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("sse4.2"))
		return by_instruction(crc, data, len);
#endif
	return crc32c_plain(crc, data, len);
}
