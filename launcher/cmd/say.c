/* SPDX-License-Identifier: Apache-2.0 */
/* say.c - see say.h. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/utf8.h"
#include "launcher/cmd/say.h"
#include "launcher/job/words.h"

int
say_no(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	words_line("%s", text);
	return 125;
}

int
say_error(const struct xr_error *err)
{
	words_error(err);
	return 125;
}

int
say_tame(struct buf *out)
{
	int status = 0;

	if (out->bad != XR_OK)
		status = say_no("%s", xr_status_text(out->bad));
	else if (fd_write_all(STDOUT_FILENO, buf_text(out), out->len) == -1)
		status = say_no("standard output: %s", strerror(errno));
	buf_fini(out);
	return status;
}

/* A terminal shows names and values of anybody's; programs get each byte. */
int
say(struct buf *out)
{
	if (out->bad == XR_OK && out->len > 0 && isatty(STDOUT_FILENO))
		utf8_tame(out->data, utf8_narrow(STDOUT_FILENO));
	return say_tame(out);
}

int
say_unwritten(int sys)
{
	if (fd_reader_gone(sys))
		return 128 + SIGPIPE;
	return sys == 0 ? 0 : say_no("standard output: %s", strerror(sys));
}
