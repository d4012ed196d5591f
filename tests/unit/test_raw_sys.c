/* SPDX-License-Identifier: Apache-2.0 */
/* test_raw_sys.c - which system calls move what ranks wrote, and what each of their errors does. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "launcher/log/raw.h"
#include "tests/unit/folder.h"
#include "tests/unit/raw_rig.h"

/* --- the scene -------------------------------------------------------------- */

static struct raw_share *share;
static struct raw_slot *slot;
static int dir = -1, file = -1, writer = -1;

static int
a_pipe(int *end)
{
	int fd[2];

	cr_assert_eq(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
	*end = fd[1];
	return fd[0];
}

static void
begin(void)
{
	alarm(20); /* where a loop has no end */
	folder_make();
	dir = open(".", O_DIRECTORY | O_CLOEXEC);
	file = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_geq(file, 0);
	share = raw_share_new(2, 3, dir);
	cr_assert_not_null(share);
	share->reserve = 77;
	slot = &share->slot[0];
	slot->pipe = a_pipe(&writer);
	telling = true;
}

static void
end(void)
{
	telling = false;
	buf_fini(&told);
	folder_remove();
}

TestSuite(raw_sys, .init = begin, .fini = end);

static void
expect_told(const char *want)
{
	cr_expect_str_eq(buf_text(&told), want, "'%s', not '%s'",
		buf_text(&told), want);
	buf_clear(&told);
}

static void
say(const char *text)
{
	ssize_t len = (ssize_t)strlen(text);

	cr_assert_eq(write(writer, text, (size_t)len), len);
}

/* What is in the file, and where the next byte of it goes. */
static void
expect_file(int fd, const char *want)
{
	char text[200];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	cr_assert_geq(n, 0);
	text[n] = '\0';
	cr_expect_str_eq(text, want);
	cr_expect_eq(lseek(fd, 0, SEEK_CUR), n);
}

static void
expect_failure(long got, int sys)
{
	int is = errno;

	cr_expect_eq(got, -1, "%ld", got);
	cr_expect_eq(is, sys, "%d", is);
}

static const struct answer einval = { 1, -1, EINVAL };

static struct answer
fails(unsigned times, int sys)
{
	return (struct answer){ times, -1, sys };
}

/* --- shares ----------------------------------------------------------------- */

Test(raw_sys, a_share_has_a_slot_for_each_stream)
{
	char want[100];

	expect_told("");
	share = raw_share_new(3, 5, 9);
	snprintf(want, sizeof(want), "map %zu %d %x -1 0 ",
		sizeof(*share) + 6 * sizeof(share->slot[0]),
		PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	expect_told(want);
	cr_assert_eq(share->streams, 6);
	cr_expect_eq(share->base, 10);
	cr_expect_eq(share->dir, 9);
	for (uint32_t i = 0; i < 6; i++) {
		cr_expect_eq(share->slot[i].pipe, -1);
		cr_expect_eq(share->slot[i].file, -1);
		cr_expect_eq(share->slot[i].tty, -1);
		cr_expect_eq(share->slot[i].fill, -1);
		share->slot[i].moved = 1u << i;
	}
	cr_expect_eq(raw_written(share), 63);
	not_done.map = fails(1, ENOMEM);
	cr_expect_null(raw_share_new(1, 0, -1));
}

Test(raw_sys, the_first_reason_of_a_loss_stays)
{
	int sys = 1;

	raw_lose(share, 0, EIO);
	cr_expect_eq(raw_lost(share, &sys), 0);
	cr_expect_eq(sys, 0);
	raw_lose(share, 1, EPERM);
	raw_lose(share, 2, EIO);
	cr_expect_eq(raw_lost(share, &sys), 3);
	cr_expect_eq(sys, EPERM);
}

/* --- files ------------------------------------------------------------------ */

Test(raw_sys, a_folder_that_goes_away_again_and_again_is_made_three_times)
{
	char one[100], want[400];

	not_done.open = fails(9, ENOENT);
	expect_failure(raw_open(dir, 3), ENOENT);
	snprintf(one, sizeof(one), "open rank-0001/stderr %x 600 ",
		(unsigned)(O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW));
	snprintf(want, sizeof(want),
		"%smkdir rank-0001 700 %smkdir rank-0001 700 %smkdir rank-0001 700 ",
		one, one, one);
	not_done.mkdir.sys = 0;
	buf_clear(&told);
	not_done.open = fails(3, ENOENT);
	expect_failure(raw_open(dir, 3), ENOENT);
	expect_told(want);
	not_done.open = fails(2, ENOENT);
	cr_expect_geq(raw_open(dir, 3), 0);
}

Test(raw_sys, why_a_file_cannot_be_made)
{
	not_done.open = fails(1, EACCES);
	expect_failure(raw_open(dir, 0), EACCES);
	not_done.open = fails(1, ENOENT);
	not_done.mkdir = fails(1, ENOENT);
	expect_failure(raw_open(dir, 0), ESTALE);
	not_done.open = fails(1, ENOENT);
	not_done.mkdir = fails(1, EROFS);
	expect_failure(raw_open(dir, 0), EROFS);
	not_done.open = fails(1, ENOENT);
	not_done.mkdir = fails(1, EEXIST);
	cr_expect_geq(raw_open(dir, 0), 0);
}

Test(raw_sys, a_file_whose_end_is_unknown_is_closed)
{
	int free = dup(dir);

	fd_close(free);
	not_done.seek = fails(1, ESPIPE);
	expect_failure(raw_open(dir, 0), ESPIPE);
	cr_expect_eq(dup(dir), free);
}

/* --- moves ------------------------------------------------------------------ */

Test(raw_sys, a_move_is_a_splice_of_a_megabyte_at_most)
{
	say("1234567");
	cr_expect_eq(raw_move_some(slot->pipe, file, 3), 3);
	cr_expect_eq(raw_move(slot->pipe, file), 4);
	expect_failure(raw_move_some(slot->pipe, file, (1 << 20) - 1), EAGAIN);
	expect_failure(raw_move_some(slot->pipe, file, (1 << 20) + 1), EAGAIN);
	fd_close(writer);
	cr_expect_eq(raw_move(slot->pipe, file), 0);
	expect_told(
		"splice 3 splice 1048576 splice 1048575 splice 1048576 splice 1048576 ");
	expect_file(file, "1234567");
}

Test(raw_sys, what_cannot_be_spliced_is_copied)
{
	static const int refusals[] = { EINVAL, ENOSYS, EPERM };

	for (int i = 0; i < 3; i++) {
		say("abc");
		not_done.splice = fails(1, refusals[i]);
		cr_expect_eq(raw_move(slot->pipe, file), 3, "%d", i);
	}
	expect_told("splice 1048576 room 0+3 read 3 write 3 "
		    "splice 1048576 room 3+3 read 3 write 3 "
		    "splice 1048576 room 6+3 read 3 write 3 ");
	expect_file(file, "abcabcabc");
	say("abc");
	not_done.splice = fails(1, EIO);
	expect_failure(raw_move(slot->pipe, file), EIO);
	expect_told("splice 1048576 ");
	not_done.splice = einval;
	cr_expect_eq(raw_move_some(slot->pipe, file, 2), 2);
	expect_told("splice 2 room 9+2 read 2 write 2 ");
	cr_expect_eq(raw_waiting(slot->pipe), 1);
}

Test(raw_sys, a_copy_needs_room_for_all_of_it)
{
	static const int unknown[] = { EOPNOTSUPP, ENOSYS };

	say("abc");
	not_done.splice = einval;
	not_done.fallocate = fails(1, ENOSPC);
	expect_failure(raw_move(slot->pipe, file), ENOSPC);
	expect_told("splice 1048576 room 0+3 ");
	cr_expect_eq(raw_waiting(slot->pipe), 3);
	for (int i = 0; i < 2; i++) {
		not_done.splice = einval;
		not_done.fallocate = fails(1, unknown[i]);
		cr_expect_eq(raw_move(slot->pipe, file), 3);
		say("abc");
	}
	expect_file(file, "abcabc");
}

Test(raw_sys, a_copy_takes_what_is_said_to_wait)
{
	not_done.splice = fails(5, EINVAL);
	expect_failure(raw_move(slot->pipe, file), EAGAIN);
	expect_told("splice 1048576 poll 1 0 ");
	say("abc");
	not_done.ioctl = fails(2, EPERM);
	cr_expect_eq(raw_move(slot->pipe, file), 3);
	expect_told("splice 1048576 poll 1 0 room 0+65536 read 65536 write 3 ");
	expect_failure(raw_move(slot->pipe, file), EAGAIN);
	buf_clear(&told);
	not_done.poll = (struct answer){ 1, 1, 0 };
	revents = POLLERR;
	expect_failure(raw_move(slot->pipe, file), EAGAIN);
	fd_close(writer);
	cr_expect_eq(raw_move(slot->pipe, file), 0);
}

Test(raw_sys, what_is_written_in_part_is_held_as_a_whole)
{
	int other, pipe = a_pipe(&other);
	char out[RAW_TAKE];

	say("begin");
	cr_expect_eq(raw_move(slot->pipe, file), 5);
	say("abcdef");
	not_done.splice = einval;
	not_done.write = fails(1, EDQUOT);
	expect_failure(raw_move(slot->pipe, file), EDQUOT);
	expect_file(file, "begin");
	cr_expect_eq(raw_waiting(slot->pipe), 6);
	say("g");
	cr_expect_eq(raw_waiting(slot->pipe), 7);
	cr_expect_eq(raw_waiting(pipe), 0);
	/* Another pipe is not copied, and hears why, but may be spliced. */
	not_done.splice = einval;
	expect_failure(raw_move(pipe, file), EAGAIN);
	cr_assert_eq(write(other, "other", 5), 5);
	not_done.splice = einval;
	buf_clear(&told);
	expect_failure(raw_move(pipe, file), EDQUOT);
	expect_told("splice 1048576 ");
	cr_expect_eq(raw_move(pipe, file), 5);
	not_done.write = fails(1, ENOSPC);
	buf_clear(&told);
	expect_failure(raw_move(slot->pipe, file), ENOSPC);
	expect_told("write 6 ");
	cr_expect_eq(raw_move(slot->pipe, file), 6);
	cr_expect_eq(raw_move(slot->pipe, file), 1);
	expect_file(file, "beginotherabcdefg");
	say("xyz");
	not_done.splice = einval;
	not_done.write = fails(1, ENOSPC);
	expect_failure(raw_move(slot->pipe, file), ENOSPC);
	buf_clear(&told);
	cr_expect_eq(raw_take(slot->pipe, out), 3);
	cr_expect_eq(memcmp(out, "xyz", 3), 0);
	expect_told("");
	expect_failure(raw_take(slot->pipe, out), EAGAIN);
	cr_expect_eq(raw_waiting(slot->pipe), 0);
}

Test(raw_sys, what_waits_is_taken)
{
	char out[RAW_TAKE];

	say("abc");
	cr_expect_eq(raw_take(slot->pipe, out), 3);
	cr_expect_eq(memcmp(out, "abc", 3), 0);
	expect_told("read 65536 ");
	expect_failure(raw_discard(slot->pipe), EAGAIN);
	fd_close(writer);
	cr_expect_eq(raw_discard(slot->pipe), 0);
}

Test(raw_sys, a_look_at_what_waits_leaves_it_there)
{
	static char out[RAW_PEEK];

	not_done.pipe = fails(1, EMFILE);
	expect_failure(raw_peek(slot->pipe, out), EMFILE);
	expect_told("");
	expect_failure(raw_peek(slot->pipe, out), EAGAIN);
	expect_told("tee 65536 2 ");
	say("a");
	out[0] = 'z';
	cr_expect_eq(raw_peek(slot->pipe, out), 1);
	cr_expect_eq(out[0], 'a');
	say("bc");
	buf_clear(&told);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(raw_peek(slot->pipe, out), 3);
		cr_expect_eq(memcmp(out, "abc", 3), 0);
	}
	expect_told("tee 65536 2 read 3 tee 65536 2 read 3 ");
	not_done.read = fails(1, EIO);
	expect_failure(raw_peek(slot->pipe, out), EIO);
	buf_clear(&told);
	/* The byte that the failed read left is the first now; it is of no use. */
	not_done.splice = einval;
	not_done.write = fails(1, ENOSPC);
	expect_failure(raw_move(slot->pipe, file), ENOSPC);
	cr_expect_eq(raw_peek(slot->pipe, out), 3);
	cr_expect_eq(memcmp(out, "abc", 3), 0);
}

Test(raw_sys, what_is_held_comes_before_what_waits)
{
	static char out[RAW_PEEK];

	say("abc");
	not_done.splice = einval;
	not_done.write = fails(1, ENOSPC);
	expect_failure(raw_move(slot->pipe, file), ENOSPC);
	say("defg");
	cr_expect_eq(raw_peek(slot->pipe, out), 7);
	cr_expect_eq(memcmp(out, "abcdefg", 7), 0);
	raw_close(slot);
	cr_expect_eq(slot->pipe, -1);
	slot->pipe = a_pipe(&writer);
	cr_expect_eq(raw_waiting(slot->pipe), 0);
	expect_failure(raw_peek(slot->pipe, out), EAGAIN);
}

Test(raw_sys, how_much_waits)
{
	cr_expect_eq(raw_waiting(slot->pipe), 0);
	say("abc");
	cr_expect_eq(raw_waiting(slot->pipe), 3);
	not_done.ioctl = fails(1, EPERM);
	cr_expect_eq(raw_waiting(slot->pipe), 64 * 1024);
	not_done.ioctl = fails(1, EPERM);
	not_done.poll = (struct answer){ 1, 0, 0 };
	revents = POLLIN;
	cr_expect_eq(raw_waiting(slot->pipe), 0);
	not_done.ioctl = fails(1, EPERM);
	not_done.poll = (struct answer){ 1, 1, 0 };
	revents = POLLHUP;
	cr_expect_eq(raw_waiting(slot->pipe), 0);
}

/* --- terminals -------------------------------------------------------------- */

/* A pipe in place of the terminal; gives the end at which a rank writes. */
static int
a_terminal(void)
{
	int rank;

	slot->tty = a_pipe(&rank);
	slot->fill = writer;
	return rank;
}

Test(raw_sys, a_terminal_is_spliced_until_nothing_is_left)
{
	int rank = a_terminal();

	cr_assert_eq(write(rank, "abc", 3), 3);
	not_done.splice = fails(1, EINTR);
	raw_fill(slot);
	expect_told("splice 65536 splice 65536 splice 65536 ");
	cr_expect_eq(slot->fill, writer);
	cr_expect_eq(raw_waiting(slot->pipe), 3);
	not_done.splice = fails(1, EIO);
	raw_fill(slot);
	cr_expect_eq(slot->fill, -1);
	cr_expect_eq(fcntl(writer, F_GETFD), -1);
	expect_told("splice 65536 ");
	raw_fill(slot);
	expect_told("");
}

Test(raw_sys, at_the_end_of_a_terminal_its_pipe_has_no_writer)
{
	int rank = a_terminal();

	cr_assert_eq(write(rank, "abc", 3), 3);
	fd_close(rank);
	errno = EIO;
	raw_fill(slot);
	expect_told("splice 65536 splice 65536 ");
	cr_expect_eq(slot->fill, -1);
	cr_expect_eq(fcntl(writer, F_GETFD), -1);
	cr_expect_geq(slot->tty, 0);
}

Test(raw_sys, an_old_errno_ends_no_terminal)
{
	int rank = a_terminal();

	not_done.splice = (struct answer){ 2, 3, EIO };
	raw_fill(slot);
	cr_expect_eq(slot->fill, writer);
	expect_told("splice 65536 splice 65536 splice 65536 ");
	fd_close(rank);
}

Test(raw_sys, a_terminal_that_cannot_be_spliced_is_copied)
{
	static const int refusals[] = { EINVAL, ENOSYS, EPERM };
	int rank = a_terminal();

	for (int i = 0; i < 3; i++) {
		cr_assert_eq(write(rank, "abc", 3), 3);
		not_done.splice = fails(2, refusals[i]);
		raw_fill(slot);
		expect_told("splice 65536 poll 1 0 read 4096 write 3 "
			    "splice 65536 poll 1 0 read 4096 ");
		cr_expect_eq(raw_waiting(slot->pipe), 3 * (uint64_t)(i + 1));
	}
	/* No room: nothing is read. */
	not_done.splice = einval;
	not_done.poll = (struct answer){ 1, 0, 0 };
	raw_fill(slot);
	expect_told("splice 65536 poll 1 0 ");
	cr_expect_eq(slot->fill, writer);
	fd_close(rank);
	not_done.splice = einval;
	raw_fill(slot);
	expect_told("splice 65536 poll 1 0 read 4096 ");
	cr_expect_eq(slot->fill, -1);
}

Test(raw_sys, of_a_terminal_no_more_is_read_than_it_may_hold)
{
	int rank = a_terminal();

	not_done.read = (struct answer){ 100, 10, 0 };
	cr_expect_eq(raw_left(slot), 320);
	cr_expect_eq(not_done.read.times, 68);
	not_done.read.times = 0;
	cr_assert_eq(write(rank, "abc", 3), 3);
	say("de");
	buf_clear(&told);
	cr_expect_eq(raw_left(slot), 5);
	expect_told("read 4096 read 4096 ");
	slot->pipe = -1;
	cr_assert_eq(write(rank, "abc", 3), 3);
	cr_expect_eq(raw_left(slot), 3);
	fd_close(rank);
	buf_clear(&told);
	cr_expect_eq(raw_left(slot), 0);
	expect_told("read 4096 ");
	slot->tty = -1;
	cr_expect_eq(raw_left(slot), 0);
	expect_told("");
}

Test(raw_sys, what_is_left_to_the_keeper_is_counted)
{
	int rank = a_terminal(), sys;

	cr_assert_eq(write(rank, "abc", 3), 3);
	cr_expect(raw_leave(share, 0));
	cr_expect_eq(share->left, 1);
	cr_expect_eq(slot->fill, -1);
	cr_expect_eq(slot->tty, -1);
	cr_expect_eq(fcntl(writer, F_GETFD), -1);
	cr_expect_eq(raw_lost(share, &sys), 0);
	share->slot[1].pipe = a_pipe(&writer);
	cr_expect_not(raw_leave(share, 1));
	cr_expect_eq(share->left, 1);
	fd_close(rank);
}

Test(raw_sys, what_has_no_room_in_the_pipe_is_lost)
{
	int rank = a_terminal(), sys;

	cr_assert_eq(write(rank, "abc", 3), 3);
	not_done.splice = fails(1, EAGAIN);
	cr_expect_not(raw_leave(share, 0));
	cr_expect_eq(share->left, 0);
	cr_expect_eq(raw_lost(share, &sys), 3);
	cr_expect_eq(sys, EAGAIN);
	fd_close(rank);
}

/* --- the keeper's drain ----------------------------------------------------- */

Test(raw_sys, a_drain_keeps_the_reserve)
{
	say("abcdef");
	slot->file = file;
	not_done.room = (struct answer){ 1, 4, 0 };
	not_done.splice = fails(1, EINTR);
	cr_expect_eq(raw_drain(share, 0), 0);
	expect_told("splice 4 splice 1048576 ");
	cr_expect_eq(slot->moved, 6);
	cr_expect_eq(slot->pipe, -1);
	cr_expect_eq(slot->file, -1);
}

Test(raw_sys, a_drain_that_is_refused_tries_as_long_as_it_may)
{
	static const int passing[] = { ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM };
	int sys;

	say("abcdef");
	slot->file = file;
	tick = 1;
	for (int i = 0; i < 5; i++) {
		share->failed = 0;
		share->sys = 0;
		not_done.splice = fails(4, passing[i]);
		now = 0;
		/* The clock says 1 for the deadline, 11, then 2 to 4. */
		cr_expect_eq(raw_drain(share, 3), 6, "%d", i);
		cr_expect_eq(now, 4);
		expect_told(
			"splice 1048576 poll 0 100 splice 1048576 poll 0 100 "
			"splice 1048576 ");
		cr_expect_eq(raw_lost(share, &sys), 6);
		cr_expect_eq(sys, passing[i]);
		cr_expect_eq(not_done.splice.times, 1);
	}
	share->failed = 0;
	share->sys = 0;
	not_done.splice = fails(2, EIO);
	now = 0;
	cr_expect_eq(raw_drain(share, 3), 6);
	expect_told("splice 1048576 splice 1048576 ");
	cr_expect_eq(raw_lost(share, &sys), 6);
	cr_expect_eq(sys, EIO);
	not_done.room = (struct answer){ 3, 0, 0 };
	share->failed = 0;
	share->sys = 0;
	now = 0;
	cr_expect_eq(raw_drain(share, 3), 6);
	expect_told("poll 0 100 poll 0 100 ");
	cr_expect_eq(raw_lost(share, &sys), 6);
	cr_expect_eq(sys, ENOSPC);
	cr_expect_eq(slot->file, file);
	cr_expect_eq(slot->moved, 0);
}

Test(raw_sys, one_stream_that_may_pass_makes_all_be_tried_again)
{
	int other;

	say("abc");
	slot->file = file;
	share->slot[2].pipe = a_pipe(&other);
	cr_assert_eq(write(other, "def", 3), 3);
	not_done.splice = fails(1, ENOSPC);
	tick = 1;
	cr_expect_eq(raw_drain(share, 100), 0);
	cr_expect_eq(slot->pipe, -1);
	cr_expect_eq(share->slot[2].pipe, -1);
	cr_expect_eq(share->slot[2].file, -1);
	cr_expect_eq(slot->moved, 3);
	cr_expect_eq(share->slot[2].moved, 3);
	cr_expect_eq(now, 3);
}

Test(raw_sys, a_file_that_was_opened_for_a_drain_is_closed)
{
	int free = dup(dir);

	fd_close(free);
	say("abc");
	not_done.splice = fails(2, EIO);
	cr_expect_eq(raw_drain(share, 0), 3);
	cr_expect_eq(dup(dir), free);
	cr_expect_eq(slot->file, -1);
	cr_expect_geq(slot->pipe, 0);
	share->dir = -1;
	cr_expect_eq(raw_drain(share, 100), 3);
	cr_expect_eq(slot->moved, 0);
}

/* As where xrun was begun without an input. */
Test(raw_sys, descriptor_0_is_a_pipe_or_a_file_like_any_other)
{
	say("abc");
	cr_assert_eq(dup2(file, STDIN_FILENO), STDIN_FILENO);
	slot->file = STDIN_FILENO;
	cr_expect_eq(raw_drain(share, NS_PER_S), 0);
	expect_file(file, "abc");
	slot->pipe = a_pipe(&writer);
	say("def");
	cr_assert_eq(dup2(slot->pipe, STDIN_FILENO), STDIN_FILENO);
	slot->pipe = STDIN_FILENO;
	slot->file = file;
	tick = 1;
	cr_expect_eq(raw_drain(share, NS_PER_S), 0);
	cr_expect_eq(slot->moved, 6);
	cr_expect_eq(slot->pipe, -1);
}
