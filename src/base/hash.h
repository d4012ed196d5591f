/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.h - a hash that nobody can aim at who does not know its seed.
 *
 * Keys come from outside. With a plain hash, whoever chooses them can have all
 * of them meet in one bucket.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash_seed {
	uint64_t word[2];
};

/*
 * hash_bytes() - 64 bits of @len bytes, the same on every machine.
 *
 * Source   SipHash-2-4: Aumasson and Bernstein, "SipHash: a fast short-input
 *          PRF", 2012, sections 2.1 to 2.4
 */
uint64_t hash_bytes(const struct hash_seed *seed, const void *data, size_t len);

#endif /* BASE_HASH_H */
