/* SPDX-License-Identifier: Apache-2.0 */
/* words.c - see words.h. */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "launcher/job/words.h"

bool
words_have_room(void)
{
	struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };

	return poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) != 0;
}

void
words_line(const char *fmt, ...)
{
	char line[2048];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	utf8_tame(line, utf8_narrow(STDERR_FILENO));
	dprintf(STDERR_FILENO, "xrun: %s\n", line);
}

void
words_lines(const struct buf *lines)
{
	const char *p = buf_text(lines), *nl;

	for (; (nl = strchr(p, '\n')) != NULL; p = nl + 1)
		words_line("%.*s", (int)(nl - p), p);
}

void
words_error(const struct xr_error *err)
{
	const char *tab = strchr(err->text, '\t');

	if (tab == NULL)
		words_line("%s", err->text);
	else
		words_line("%.*s   try: %s", (int)(tab - err->text), err->text,
			tab + 1);
}
