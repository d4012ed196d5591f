/* SPDX-License-Identifier: Apache-2.0 */
/* test_hash.c - SipHash, by its paper. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "base/hash.h"

Test(hash, the_hash_is_that_of_the_paper)
{
	struct hash_seed seed = { { 0x0706050403020100, 0x0f0e0d0c0b0a0908 } };
	unsigned char text[15];

	/* Aumasson and Bernstein 2012, appendix A. */
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (unsigned char)i;
	cr_assert(eq(u64, hash_bytes(&seed, text, sizeof(text)),
		0xa129ca6149be45e5));
}

Test(hash, another_seed_is_another_hash)
{
	struct hash_seed a = { { 1, 2 } }, b = { { 1, 3 } }, c = { { 2, 2 } };

	cr_assert(ne(u64, hash_bytes(&a, "k", 1), hash_bytes(&b, "k", 1)));
	cr_assert(ne(u64, hash_bytes(&a, "k", 1), hash_bytes(&c, "k", 1)));
	cr_assert(ne(u64, hash_bytes(&a, "", 0), hash_bytes(&a, "\0", 1)));
}
