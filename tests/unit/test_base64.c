/* SPDX-License-Identifier: Apache-2.0 */
/* test_base64.c - bytes as text, and back. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/base64.h"

/* RFC 4648, section 10. */
static const struct {
	const char *bytes, *text;
} rows[] = {
	{ "", "" },
	{ "f", "Zg==" },
	{ "fo", "Zm8=" },
	{ "foo", "Zm9v" },
	{ "foob", "Zm9vYg==" },
	{ "fooba", "Zm9vYmE=" },
	{ "foobar", "Zm9vYmFy" },
};

Test(base64, is_what_the_rfc_says_both_ways)
{
	char out[32];
	size_t len;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct span bytes = span_of(rows[i].bytes);

		base64_put(bytes, out);
		cr_expect_str_eq(out, rows[i].text);
		cr_expect_eq(base64_len(bytes.len), strlen(rows[i].text));
		cr_assert(base64_get(span_of(rows[i].text), out, &len));
		cr_expect_eq(len, bytes.len);
		cr_expect_eq(memcmp(out, bytes.at, len), 0);
	}
}

Test(base64, every_byte_comes_back_from_where_it_lies)
{
	char bytes[256], text[512];
	size_t len;

	for (int i = 0; i < 256; i++)
		bytes[i] = (char)i;
	base64_put((struct span){ bytes, 256 }, text);
	cr_assert(base64_get(span_of(text), text, &len));
	cr_expect_eq(len, 256);
	cr_expect_eq(memcmp(text, bytes, 256), 0);
}

Test(base64, what_is_none_is_refused)
{
	static const char *const texts[] = { "Z", "Zg", "Zg=", "Zg===", "=",
		"====", "Zg==Zg==", "Z===", "Zh==", "Zm9=", "Zm9v\n", "Zm 9",
		"Zm-_", "Z\xc3\xa9v" };
	char out[32];
	size_t len;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		cr_expect_not(base64_get(span_of(texts[i]), out, &len), "%s",
			texts[i]);
}
