/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c - see hash.h; names are the paper's. */
#include <string.h>

#include <endian.h>

#include "base/hash.h"

static inline uint64_t
rotate(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

static inline void
rounds(uint64_t v[4], unsigned n)
{
	while (n-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static inline void
take(uint64_t v[4], uint64_t m)
{
	v[3] ^= m;
	rounds(v, 2);
	v[0] ^= m;
}

uint64_t
hash_bytes(const struct hash_seed *seed, const void *data, size_t len)
{
	uint64_t v[4] = {
		seed->word[0] ^ 0x736f6d6570736575,
		seed->word[1] ^ 0x646f72616e646f6d,
		seed->word[0] ^ 0x6c7967656e657261,
		seed->word[1] ^ 0x7465646279746573,
	};
	const char *p = data;
	uint64_t m;

	for (size_t left = len; left >= sizeof(m); left -= sizeof(m)) {
		memcpy(&m, p, sizeof(m));
		take(v, le64toh(m));
		p += sizeof(m);
	}
	m = 0;
	if (len % sizeof(m) != 0)
		memcpy(&m, p, len % sizeof(m));
	take(v, le64toh(m) | (uint64_t)len << 56);
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
