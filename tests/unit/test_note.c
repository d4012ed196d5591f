/* SPDX-License-Identifier: Apache-2.0 */
/* test_note.c - notes of the log's threads to the loop. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <sys/ioctl.h>
#include <sys/resource.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "launcher/log/note.h"

static struct notes notes;
static struct notes_held held;
static struct note got[2 * NOTES_HELD];

static void
begin(void)
{
	alarm(20);
	cr_assert_eq(notes_init(&notes), 0);
	held.count = 0;
}

static void
end(void)
{
	fd_close(notes.rd);
	fd_close(notes.wr);
}

TestSuite(note, .init = begin, .fini = end);

static int
waiting(void)
{
	int bytes = -1;

	cr_assert_eq(ioctl(notes.rd, FIONREAD, &bytes), 0);
	return bytes;
}

static void
expect_note(const struct note *note, enum note_kind kind, uint32_t value,
	int sys)
{
	cr_expect_eq(note->kind, kind);
	cr_expect_eq(note->value, value);
	cr_expect_eq(note->sys, sys);
}

Test(note, only_the_loop_does_not_wait)
{
	cr_expect_eq(fcntl(notes.rd, F_GETFD), FD_CLOEXEC);
	cr_expect_eq(fcntl(notes.wr, F_GETFD), FD_CLOEXEC);
	cr_expect_neq(fcntl(notes.rd, F_GETFL) & O_NONBLOCK, 0);
	cr_expect_eq(fcntl(notes.wr, F_GETFL) & O_NONBLOCK, 0);
	cr_expect_eq(fcntl(notes.wr, F_GETFL) & O_ACCMODE, O_WRONLY);
	cr_expect_eq(notes_take(&notes, got, 1), 0);
	cr_expect_eq(errno, EAGAIN);
}

Test(note, a_pipe_that_cannot_be_made_is_an_error)
{
	const struct notes before = { 5, 6 };
	struct notes none = before;
	struct rlimit files, few;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
	few = files;
	few.rlim_cur = 0;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	cr_expect_eq(notes_init(&none), -1);
	cr_expect_eq(errno, EMFILE);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
	cr_expect_eq(none.rd, 5);
	cr_expect_eq(none.wr, 6);
}

Test(note, each_is_read_as_it_was_sent)
{
	notes_send(&notes, NOTE_FULL, 3000000000, ENOSPC);
	notes_send(&notes, NOTE_ROOM, 1, 0);
	notes_send(&notes, NOTE_EOF, 2, -1);
	cr_expect_eq(waiting(), 3 * (int)sizeof(struct note));
	cr_expect_eq(notes_take(&notes, got, 2), 2);
	expect_note(&got[0], NOTE_FULL, 3000000000, ENOSPC);
	expect_note(&got[1], NOTE_ROOM, 1, 0);
	cr_expect_eq(notes_take(&notes, got, 2), 1);
	expect_note(&got[0], NOTE_EOF, 2, -1);
	cr_expect_eq(notes_take(&notes, got, 2), 0);
}

Test(note, what_is_held_goes_out_together)
{
	notes_flush(&notes, &held);
	cr_expect_eq(waiting(), 0);
	memset(&held.note, 0xff, sizeof(held.note));
	for (uint32_t i = 0; i < 3; i++)
		notes_hold(&notes, &held, NOTE_EOF + i % 2, i);
	cr_expect_eq(held.count, 3);
	cr_expect_eq(waiting(), 0);
	notes_flush(&notes, &held);
	cr_expect_eq(held.count, 0);
	cr_expect_eq(notes_take(&notes, got, 9), 3);
	for (uint32_t i = 0; i < 3; i++)
		expect_note(&got[i], NOTE_EOF + i % 2, i, 0);
}

Test(note, no_more_is_held_than_one_write_takes)
{
	for (uint32_t i = 0; i < NOTES_HELD - 1; i++)
		notes_hold(&notes, &held, NOTE_EOF, i);
	cr_expect_eq(waiting(), 0);
	cr_expect_eq(held.count, NOTES_HELD - 1);
	notes_hold(&notes, &held, NOTE_EOF, NOTES_HELD - 1);
	cr_expect_eq(held.count, 0);
	cr_expect_eq(waiting(), NOTES_HELD * (int)sizeof(struct note));
	notes_hold(&notes, &held, NOTE_EOF, NOTES_HELD);
	cr_expect_eq(held.count, 1);
	cr_expect_eq(notes_take(&notes, got, 2 * NOTES_HELD), NOTES_HELD);
	for (uint32_t i = 0; i < NOTES_HELD; i++)
		expect_note(&got[i], NOTE_EOF, i, 0);
}
