/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preload_crash.c - libxrun-crash.so: an unmodified program tells where a fatal
 * signal met it (crash.h).
 *
 * It is preloaded for --stacks-on crash only, and so asks libc for what it likes,
 * but by no name of a library and no version: a program of another libc may meet
 * it. Like the other agent it acts where stdout is xrun's pipe, and nowhere else.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/stdio_tag.h"
#include "worker/job/crash.h"

__attribute__((constructor)) static void
watch(void)
{
	const char *text = getenv("XRUN_STDIO");
	struct stdio_tag tag;
	struct stat st;
	int saved = errno;

	if (text != NULL && stdio_tag_parse(text, &tag) &&
		fstat(STDOUT_FILENO, &st) == 0 && st.st_dev == tag.out.dev &&
		st.st_ino == tag.out.ino)
		crash_begin(getenv("TORCHELASTIC_ERROR_FILE"));
	errno = saved;
}
