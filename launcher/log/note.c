/* SPDX-License-Identifier: Apache-2.0 */
/* note.c - see note.h. */
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "launcher/log/note.h"

int
notes_init(struct notes *notes)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC) == -1)
		return -1;
	notes->rd = fd[0];
	notes->wr = fd[1];
	return fcntl(notes->rd, F_SETFL, O_NONBLOCK);
}

void
notes_send(const struct notes *notes, const struct note *note, uint32_t n)
{
	/* 64 notes are 512 bytes: below PIPE_BUF, so never split. */
	for (uint32_t at = 0, some; at < n; at += some) {
		some = n - at < 64 ? n - at : 64;
		fd_tell(notes->wr, note + at, some * sizeof(*note));
	}
}

uint32_t
notes_take(const struct notes *notes, struct note *out, uint32_t cap)
{
	ssize_t n = read(notes->rd, out, cap * sizeof(*out));

	return n <= 0 ? 0 : (uint32_t)((size_t)n / sizeof(*out));
}
