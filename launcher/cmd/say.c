/* SPDX-License-Identifier: Apache-2.0 */
/* say.c - see say.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "launcher/cmd/say.h"
#include "launcher/cmd/words.h"

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
say(struct buf *out)
{
	int status = 0;

	if (out->bad != XR_OK)
		status = say_no("%s", xr_status_text(out->bad));
	else if (fd_write_all(STDOUT_FILENO, buf_text(out), out->len) == -1)
		status = say_no("standard output: %s", strerror(errno));
	buf_fini(out);
	return status;
}
