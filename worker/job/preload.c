/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preload.c - libxrun-preload.so: an unmodified program shows its lines when
 * it writes them.
 *
 * stdio collects 4 KiB before it writes to a pipe, so a program would show
 * nothing for minutes and lose its last lines in a crash. xrun names its pipes
 * in XRUN_STDIO (base/stdio_tag.h) and preloads this file. In a process whose
 * stdout is the pipe named there, at any depth below the rank, stdout is
 * switched to whole lines before main() runs; everywhere else the constructor
 * leaves after one fstat(2). No thread, message, signal handler, allocation or
 * change of the environment; errno stays.
 *
 * It meets every program a rank ever starts, so nothing here may fail to load:
 * all it asks of libc is weak, and it names no library that it needs. Where a
 * function is missing (another libc, an older one), it does nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/stdio_tag.h"

#pragma weak __errno_location
#pragma weak fstat
#pragma weak getenv
#pragma weak setvbuf
#pragma weak stdout

/* The compiler believes that what libc declares exists; this asks. */
#define HERE(symbol) (&(symbol) != NULL)

static bool
is_open_on(int fd, const struct stdio_pipe *pipe)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == pipe->dev &&
		st.st_ino == pipe->ino;
}

/* A buffer of NULL lets stdio make its usual one at the first write. */
__attribute__((constructor)) static void
set_buffering(void)
{
	struct stdio_tag tag;
	const char *text;
	int saved;

	if (!HERE(__errno_location) || !HERE(fstat) || !HERE(getenv) ||
		!HERE(setvbuf) || !HERE(stdout))
		return;
	text = getenv("XRUN_STDIO");
	if (text == NULL || !stdio_tag_parse(text, &tag))
		return;
	if (tag.mode == STDIO_FULL)
		return;
	saved = errno;
	if (is_open_on(STDOUT_FILENO, &tag.out))
		setvbuf(stdout, NULL, tag.mode == STDIO_LINE ? _IOLBF : _IONBF,
			0);
	errno = saved;
}
