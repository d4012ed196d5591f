/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.c - fuzz target: lines of control sockets, those of the store, too.
 *
 * Input: a line each.
 *
 * Claims: who may not send it is refused, a refusal has words and keeps the id;
 * what is read and written again is read as the same, and is one line.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "tests/fuzz/fuzz.h"
#include "wire/control.h"

#define LINES_MAX 8

static const enum control_by speakers[] = { CONTROL_BY_JOB, CONTROL_BY_CLIENT,
	CONTROL_BY_RANK };

/* Base64 that a store message has is none, or comes back as it was. */
static void
check_value(const char *text)
{
	struct span all = span_of(text);
	char *bytes, *again;
	size_t len = 0;

	if (text == NULL)
		return;
	bytes = malloc(all.len + 1);
	again = malloc(all.len + 5);
	HOLDS(bytes != NULL && again != NULL);
	if (base64_get(all, bytes, &len)) {
		HOLDS(base64_len(len) == all.len);
		base64_put((struct span){ bytes, len }, again);
		HOLDS(strcmp(again, text) == 0);
	}
	free(bytes);
	free(again);
}

static void
check_message(const struct control *m, enum control_by by)
{
	struct buf out = { 0 }, third = { 0 };
	struct control again;
	char *line;

	HOLDS(m->type < CONTROL_TYPES);
	HOLDS((control_rows[m->type].by & by) != 0);
	if (m->type == CONTROL_STORE_SET)
		check_value(m->store_set.value);
	control_put(&out, m);
	HOLDS(out.bad == XR_OK && out.data[out.len - 1] == '\n');
	HOLDS(memchr(out.data, '\n', out.len) == out.data + out.len - 1);
	line = strndup(out.data, out.len - 1);
	HOLDS(line != NULL);
	HOLDS(control_read(&again, line, out.len - 1, by, NULL) == XR_OK);
	control_put(&third, &again);
	HOLDS(third.len == out.len &&
		memcmp(third.data, out.data, out.len) == 0);
	free(line);
	buf_fini(&out);
	buf_fini(&third);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_lines lines = fuzz_lines(data, size, LINES_MAX);

	for (size_t i = 0; i < lines.n; i++)
		for (size_t b = 0; b < sizeof(speakers) / sizeof(speakers[0]);
			b++) {
			char *line = strdup(lines.at[i]);
			struct xr_error err = { 0 };
			struct control m;
			enum xr_status status;

			HOLDS(line != NULL);
			status = control_read(&m, line, strlen(line),
				speakers[b], &err);
			fuzz_error(status, &err);
			if (status == XR_OK)
				check_message(&m, speakers[b]);
			free(line);
		}
	fuzz_lines_free(&lines);
	return 0;
}
