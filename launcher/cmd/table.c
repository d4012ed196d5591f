/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - see table.h. */
#include <unistd.h>

#include <sys/ioctl.h>

#include "base/utf8.h"
#include "launcher/cmd/table.h"

uint32_t
table_columns(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void
table_put_word(struct buf *out, const char *word)
{
	size_t at = out->len;

	buf_put_text(out, word);
	if (out->bad != XR_OK)
		return;
	utf8_tame(out->data + at, false);
	for (; at < out->len; at++)
		if (out->data[at] == '\n' || out->data[at] == '\t')
			out->data[at] = '?';
}

/* Bytes of the row that fit. No character of up to two bytes is wide; whether
 * others are, terminals do not agree about, so all of them are. */
static size_t
fitting(struct span row, uint32_t cols)
{
	size_t at = 0, step;
	uint32_t seen = 0;

	while (at < row.len) {
		step = utf8_step(row.at + at, row.len - at);
		seen += step > 2 ? 2 : 1;
		if (seen > cols)
			break;
		at += step == 0 ? 1 : step;
	}
	return at;
}

void
table_end_row(struct buf *out, size_t at, uint32_t cols)
{
	if (out->bad != XR_OK)
		return;
	if (cols > 0 && out->len > at)
		out->len = at +
			fitting((struct span){ out->data + at, out->len - at },
				cols);
	while (out->len > at && out->data[out->len - 1] == ' ')
		out->len--;
	buf_put_char(out, '\n');
}
