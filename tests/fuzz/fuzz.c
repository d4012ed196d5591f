/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.c - see fuzz.h. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/fuzz/fuzz.h"

char *
fuzz_text(const uint8_t *data, size_t size)
{
	size_t len = strnlen((const char *)data, size);
	char *text = xcalloc(1, len + 1);

	return len == 0 ? text : memcpy(text, data, len);
}

struct fuzz_lines
fuzz_lines(const uint8_t *data, size_t size, size_t max)
{
	struct fuzz_lines lines = { .at = xcalloc(max + 1, sizeof(char *)) };
	size_t begin = 0;

	for (size_t i = 0; i <= size && lines.n < max; i++) {
		char *line;

		if (i < size && data[i] != '\n' && data[i] != '\0')
			continue;
		if (i == size && begin == size)
			break; /* the last newline begins nothing */
		line = fuzz_text(data + begin, i - begin);
		for (char *p = line; *p != '\0'; p++)
			if (*p == '\v')
				*p = '\n';
		lines.at[lines.n++] = line;
		begin = i + 1;
	}
	return lines;
}

void
fuzz_lines_free(struct fuzz_lines *lines)
{
	for (size_t i = 0; i < lines->n; i++)
		free(lines->at[i]);
	free(lines->at);
}

const char *
fuzz_get(const struct fuzz_lines *lines, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < lines->n; i++)
		if (strncmp(lines->at[i], name, len) == 0 &&
			lines->at[i][len] == '=')
			return lines->at[i] + len + 1;
	return NULL;
}

void
fuzz_error(enum xr_status status, const struct xr_error *err)
{
	size_t len = strnlen(err->text, sizeof(err->text));

	HOLDS(len < sizeof(err->text));
	HOLDS((status == XR_OK) == (len == 0));
	HOLDS(status == XR_OK || err->status == status);
	for (size_t i = 0; i < len; i++)
		HOLDS((unsigned char)err->text[i] >= 0x20 ||
			err->text[i] == '\t');
}
