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
notes_send(const struct notes *notes, enum note_kind kind, uint32_t value,
	int sys)
{
	struct note note = {
		.kind = (uint16_t)kind,
		.sys = (int16_t)sys,
		.value = value,
	};

	fd_tell(notes->wr, &note, sizeof(note));
}

void
notes_hold(const struct notes *notes, struct notes_held *held,
	enum note_kind kind, uint32_t value)
{
	held->note[held->count++] = (struct note){
		.kind = (uint16_t)kind,
		.value = value,
	};
	if (held->count == NOTES_HELD)
		notes_flush(notes, held);
}

void
notes_flush(const struct notes *notes, struct notes_held *held)
{
	if (held->count > 0)
		fd_tell(notes->wr, held->note,
			held->count * sizeof(held->note[0]));
	held->count = 0;
}

uint32_t
notes_take(const struct notes *notes, struct note *out, uint32_t cap)
{
	ssize_t n = read(notes->rd, out, cap * sizeof(*out));

	return n <= 0 ? 0 : (uint32_t)((size_t)n / sizeof(*out));
}
