/* SPDX-License-Identifier: Apache-2.0 */
/* test_crc32c.c - the checksum, by RFC 3720 and by two ways to it. */
#include <string.h>

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "base/crc32c.h"

/* Both ways give @want. */
static void
is(const void *data, size_t len, uint32_t want)
{
	cr_expect(eq(u32, crc32c(0, data, len), want));
	cr_expect(eq(u32, crc32c_plain(0, data, len), want));
}

Test(crc32c, the_sums_are_those_of_the_rfc)
{
	unsigned char text[32];

	/* RFC 3720, appendix B.4 */
	memset(text, 0, sizeof(text));
	is(text, sizeof(text), 0x8a9136aa);
	memset(text, 0xff, sizeof(text));
	is(text, sizeof(text), 0x62a8ab43);
	for (unsigned i = 0; i < sizeof(text); i++)
		text[i] = (unsigned char)i;
	is(text, sizeof(text), 0x46dd794e);
	is("123456789", 9, 0xe3069283);
	is("", 0, 0);
}

Test(crc32c, a_sum_goes_on_where_it_ended)
{
	static const char text[] =
		"the rest of it begins anywhere in the middle";
	uint32_t whole = crc32c(0, text, sizeof(text));

	for (size_t cut = 0; cut <= sizeof(text); cut++) {
		uint32_t sum = crc32c(0, text, cut);

		cr_expect(eq(u32, whole,
			crc32c(sum, text + cut, sizeof(text) - cut)));
		cr_expect(eq(u32, whole,
			crc32c_plain(sum, text + cut, sizeof(text) - cut)));
	}
}
