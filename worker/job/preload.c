/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preload.c - libxrun-preload.so: an unmodified program shows its lines when
 * it writes them.
 *
 * stdio collects 4 KiB before it writes to a pipe, so a program would show
 * nothing for minutes and lose its last lines in a crash. xrun names its pipes
 * in XRUN_STDIO (base/stdio_tag.h) and preloads this file. In a process whose
 * stdout is the pipe named there, at any depth below the rank, stdout is
 * switched to whole lines before main() runs; while lines are frequent they are
 * collected (stdio_block.h). Everywhere else the constructor leaves after one
 * fstat(2). stdbuf(1) sets _STDBUF_O: then the program's user has decided, and
 * stdout stays as it is. If the constructor acts and the job has a segment, it
 * marks the rank's slot as met by this process (segment/layout.h), and keeps no
 * mapping. It makes no thread, message, allocation or change of the environment,
 * and keeps errno.
 *
 * It meets every program a rank ever starts, so nothing here may fail to load:
 * all it asks of libc is weak, and it names no library that it needs. If a
 * function is missing (another libc, an older one), it does nothing. Each name
 * that it asks for costs every exec some 700 instructions of the loader.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include "base/stdio_tag.h"
#include "segment/layout.h"
#include "worker/job/stdio_block.h"
#include "worker/job/stdio_call.h"

#pragma weak __errno_location
#pragma weak getenv
#pragma weak setvbuf
#pragma weak stdout

/* Then libc's struct stat is the kernel's. */
_Static_assert(sizeof(long) == 8, "a machine of 64 bits");

/* The compiler believes that what libc declares exists; this asks. */
#define HERE(symbol) (&(symbol) != NULL)

static bool
is_open_on(int fd, const struct stdio_pipe *pipe)
{
	struct stat st;

	return STDIO_CALL(SYS_fstat, fd, &st) == 0 && st.st_dev == pipe->dev &&
		st.st_ino == pipe->ino;
}

/* "98:4711", if the descriptor is that, and was sealed: then it ends where it
 * says, and a mapping of it cannot fault. Gives its size, or 0. */
static uint64_t
segment_size(const char *text, int *fd)
{
	uint64_t number, inode;
	const char *p = stdio_tag_number(text, &number);
	struct stat st;

	if (p == NULL || *p != ':' || number > INT32_MAX)
		return 0;
	p = stdio_tag_number(p + 1, &inode);
	*fd = (int)number;
	if (p == NULL || *p != '\0' || STDIO_CALL(SYS_fstat, *fd, &st) < 0 ||
		st.st_ino != inode || !S_ISREG(st.st_mode))
		return 0;
	number = (uint64_t)STDIO_CALL(SYS_fcntl, *fd, F_GET_SEALS);
	return (number & (F_SEAL_SHRINK | F_SEAL_SEAL)) ==
			(F_SEAL_SHRINK | F_SEAL_SEAL) ?
		(uint64_t)st.st_size :
		0;
}

/* Whether there is a slot @rank, the head says; @len bytes reach behind it. */
static void
mark_slot(int fd, uint32_t rank, size_t len)
{
	char *map = stdio_call_map(len, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	const struct segment_head *head = (void *)map;

	if (map == NULL)
		return;
	if (head->magic == SEGMENT_MAGIC && head->version == SEGMENT_VERSION &&
		rank < head->slots)
		segment_meet((void *)(map + segment_slot_at(rank)),
			(uint32_t)STDIO_CALL(SYS_getpid));
	STDIO_CALL(SYS_munmap, map, len);
}

static void
meet(void)
{
	const char *text = getenv("XRUN_SEGMENT_FD");
	const char *number = getenv("XRUN_LOCAL_RANK");
	uint64_t rank, size, end;
	int fd = -1;

	if (text == NULL || number == NULL)
		return;
	number = stdio_tag_number(number, &rank);
	if (number == NULL || *number != '\0')
		return;
	size = segment_size(text, &fd);
	end = rank < UINT32_MAX ? segment_slot_at((uint32_t)rank + 1) :
				  UINT64_MAX;
	if (size >= end)
		mark_slot(fd, (uint32_t)rank, (size_t)end);
}

/* A buffer of NULL lets stdio make its usual one at the first write. */
__attribute__((constructor)) static void
set_buffering(void)
{
	struct stdio_tag tag;
	const char *text;
	int saved;

	if (!HERE(__errno_location) || !HERE(getenv) || !HERE(setvbuf) ||
		!HERE(stdout) || !stdio_call_is_here())
		return;
	text = getenv("XRUN_STDIO");
	if (text == NULL || !stdio_tag_parse(text, &tag))
		return;
	if (tag.mode == STDIO_FULL || getenv("_STDBUF_O") != NULL)
		return;
	saved = errno;
	if (is_open_on(STDOUT_FILENO, &tag.out)) {
		setvbuf(stdout, NULL, tag.mode == STDIO_LINE ? _IOLBF : _IONBF,
			0);
#if defined(__x86_64__) && defined(__LP64__)
		if (tag.mode == STDIO_LINE)
			stdio_block_allow(tag.out.dev, tag.out.ino);
#endif
		meet();
	}
	errno = saved;
}
