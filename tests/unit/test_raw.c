/* SPDX-License-Identifier: Apache-2.0 */
/* test_raw.c - the files that hold what ranks wrote. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/log/raw.h"
#include "tests/unit/seccomp.h"

static char place[] = "/tmp/xrun-raw-XXXXXX";
static int dir = -1;

static void
begin(void)
{
	cr_assert_not_null(mkdtemp(place));
	dir = open(place, O_DIRECTORY | O_CLOEXEC);
	cr_assert_neq(dir, -1);
}

static void
end(void)
{
	char *const argv[] = { "rm", "-rf", place, NULL };
	pid_t pid = fork();

	if (pid == 0) {
		execv("/bin/rm", argv);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
	fd_close(dir);
}

TestSuite(raw, .init = begin, .fini = end);

static const char *
content(const char *name)
{
	static char text[1 << 20];
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd == -1)
		return "(none)";
	n = fd_read_some(fd, text, sizeof(text) - 1);
	fd_close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return text;
}

static mode_t
mode_of(const char *name)
{
	struct stat st;

	cr_assert_eq(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

static bool
exists(const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A pipe with these bytes in it as stream @stream; gives its write end. */
static int
fill(struct raw_share *share, uint32_t stream, const char *text)
{
	int fd[2];

	cr_assert_eq(pipe2(fd, O_CLOEXEC), 0);
	cr_assert_eq(fd_write_all(fd[1], text, strlen(text)), 0);
	share->slot[stream].pipe = fd[0];
	return fd[1];
}

Test(raw, a_name_tells_rank_and_stream)
{
	char name[64];

	cr_expect_str_eq(raw_name(0, name, sizeof(name)), "rank-0000/stdout");
	cr_expect_str_eq(raw_name(1, name, sizeof(name)), "rank-0000/stderr");
	cr_expect_str_eq(raw_name(2 * 3, name, sizeof(name)),
		"rank-0003/stdout");
	cr_expect_str_eq(raw_name(2 * 999999 + 1, name, sizeof(name)),
		"rank-999999/stderr");
}

Test(raw, a_file_is_made_with_its_folder_for_the_owner_alone)
{
	int fd;

	umask(0);
	fd = raw_open(dir, 2 * 3 + RAW_ERR);
	cr_assert_neq(fd, -1);
	cr_expect_eq(mode_of("rank-0003"), 0700);
	cr_expect_eq(mode_of("rank-0003/stderr"), 0600);
	cr_expect_not(exists("rank-0003/stdout"));
	cr_expect_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	fd_close(fd);
	fd_close(raw_open(dir, 2 * 3 + RAW_OUT));
	cr_expect_eq(mode_of("rank-0003/stdout"), 0600);
}

/* splice(2) refuses files opened for appending. */
Test(raw, a_file_opened_again_goes_on_at_its_end)
{
	for (int i = 0; i < 3; i++) {
		int fd = raw_open(dir, 0);

		cr_assert_neq(fd, -1);
		cr_expect_eq(fcntl(fd, F_GETFL) & O_APPEND, 0);
		cr_expect_eq(fd_write_all(fd, "again ", 6), 0);
		fd_close(fd);
	}
	cr_expect_str_eq(content("rank-0000/stdout"), "again again again ");
}

Test(raw, links_are_not_followed)
{
	cr_assert_eq(mkdirat(dir, "rank-0000", 0700), 0);
	cr_assert_eq(symlinkat("../elsewhere", dir, "rank-0000/stdout"), 0);
	cr_expect_eq(raw_open(dir, 0), -1);
	cr_expect_eq(errno, ELOOP);
	cr_expect_not(exists("elsewhere"));
}

Test(raw, a_folder_that_cannot_be_made_is_an_error)
{
	int file =
		openat(dir, "rank-0001", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	fd_close(file);
	cr_expect_eq(raw_open(dir, 2), -1);
	cr_expect_eq(errno, ENOTDIR);
}

Test(raw, a_share_begins_empty_and_is_seen_by_children)
{
	struct raw_share *share = raw_share_new(3, 0, dir);
	pid_t pid;

	cr_assert_not_null(share);
	cr_expect_eq(share->streams, 3 * RAW_STREAMS);
	for (uint32_t i = 0; i < share->streams; i++) {
		cr_expect_eq(share->slot[i].pipe, -1);
		cr_expect_eq(share->slot[i].file, -1);
		cr_expect_eq(share->slot[i].moved, 0);
	}
	pid = fork();
	if (pid == 0) {
		share->slot[5].moved = 42;
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	cr_expect_eq(share->slot[5].moved, 42);
}

Test(raw, a_folder_of_a_rank_that_was_removed_is_made_again)
{
	fd_close(raw_open(dir, 0));
	cr_assert_eq(unlinkat(dir, "rank-0000/stdout", 0), 0);
	cr_assert_eq(unlinkat(dir, "rank-0000", AT_REMOVEDIR), 0);
	fd_close(raw_open(dir, 0));
	cr_expect(exists("rank-0000/stdout"));
}

Test(raw, in_a_folder_that_was_removed_no_file_can_be_made)
{
	cr_assert_eq(rmdir(place), 0);
	cr_expect_eq(raw_open(dir, 0), -1);
	cr_expect_eq(errno, ESTALE);
}

Test(raw, what_is_lost_has_the_words_of_its_reason)
{
	const struct {
		int sys;
		const char *text;
	} row[] = {
		{ ENOSPC,
			"xrun: 7 bytes found no room on the disk and are lost\n" },
		{ EDQUOT,
			"xrun: 7 bytes found no room on the disk and are lost\n" },
		{ ESTALE,
			"xrun: 7 bytes came after the folder of the job was removed and are lost\n" },
		{ EFBIG,
			"xrun: 7 bytes came when their file could not grow any more and are lost\n" },
		{ EMFILE,
			"xrun: 7 bytes could not be written to their files (Too many open files) and are lost\n" },
	};
	char text[RAW_LOST_MAX];

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct raw_share *share = raw_share_new(1, 0, dir);

		raw_lose(share, 0, EIO);
		cr_expect_str_eq(raw_lost_text(share, text), "");
		raw_lose(share, 3, row[i].sys);
		raw_lose(share, 4, EIO);
		cr_expect_str_eq(raw_lost_text(share, text), row[i].text);
	}
}

/* --- where splice(2) is refused --- */

/* No larger files, and no signal about it. */
static void
limit_files(rlim_t bytes)
{
	struct rlimit size = { .rlim_cur = bytes, .rlim_max = RLIM_INFINITY };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	sigaction(SIGXFSZ, &ignore, NULL);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &size), 0);
}

static void
refuse_splice(void)
{
	cr_assert_eq(seccomp_refuse(SYS_splice, EINVAL), 0);
	cr_assert_eq(seccomp_refuse(SYS_fallocate, EOPNOTSUPP), 0);
}

Test(raw, copied_bytes_without_room_are_held_for_the_next_try)
{
	struct raw_share *share = raw_share_new(2, 0, dir);
	int w[2] = { fill(share, 0, "whole "), fill(share, 2, "other") };
	int file[2] = { raw_open(dir, 0), raw_open(dir, 2) };

	refuse_splice();
	limit_files(3);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(raw_move(share->slot[0].pipe, file[0]), -1);
		cr_expect_eq(errno, EFBIG);
		cr_expect_eq(raw_waiting(share->slot[0].pipe), 6);
		cr_expect_str_eq(content("rank-0000/stdout"), "");
	}
	cr_expect_eq(raw_move(share->slot[2].pipe, file[1]), -1);
	cr_expect_eq(errno, EFBIG);
	limit_files(RLIM_INFINITY);
	cr_assert_eq(fd_write_all(w[0], "again", 5), 0);
	cr_expect_eq(raw_move(share->slot[0].pipe, file[0]), 6);
	cr_expect_eq(raw_move(share->slot[0].pipe, file[0]), 5);
	cr_expect_eq(raw_move(share->slot[2].pipe, file[1]), 5);
	cr_expect_str_eq(content("rank-0000/stdout"), "whole again");
	cr_expect_str_eq(content("rank-0001/stdout"), "other");
	fd_close(w[0]);
	cr_expect_eq(raw_move(share->slot[0].pipe, file[0]), 0);
	cr_expect_eq(raw_move(share->slot[2].pipe, file[1]), -1);
	cr_expect_eq(errno, EAGAIN);
}

Test(raw, what_is_held_goes_with_its_pipe)
{
	struct raw_share *share = raw_share_new(1, 0, dir);
	int w = fill(share, 0, "first"), pipe = share->slot[0].pipe;
	int file = raw_open(dir, 0);

	refuse_splice();
	limit_files(3);
	cr_expect_eq(raw_move(pipe, file), -1);
	raw_close(&share->slot[0]);
	fd_close(w);
	limit_files(RLIM_INFINITY);
	w = fill(share, 0, "second");
	cr_assert_eq(share->slot[0].pipe, pipe);
	cr_expect_eq(raw_move(pipe, file), 6);
	cr_expect_str_eq(content("rank-0000/stdout"), "second");
	fd_close(w);
}

Test(raw, a_pipe_is_emptied_to_nowhere_without_waiting)
{
	struct raw_share *share = raw_share_new(1, 0, dir);
	int w = fill(share, 0, "text"), pipe = share->slot[0].pipe;

	cr_expect_eq(raw_discard(pipe), 4);
	cr_expect_eq(raw_discard(pipe), -1);
	cr_expect_eq(errno, EAGAIN);
	fd_close(w);
	cr_expect_eq(raw_discard(pipe), 0);
}

/* --- what the keeper does after a crash --- */

Test(raw, files_are_named_by_the_number_in_the_job)
{
	struct raw_share *share = raw_share_new(2, 8, dir);
	int w = fill(share, 3, "of rank 9");

	cr_expect_eq(raw_drain(share, 0), 0);
	cr_expect_str_eq(content("rank-0009/stderr"), "of rank 9");
	fd_close(w);
}

Test(raw, a_drain_appends_what_is_in_the_pipes)
{
	struct raw_share *share = raw_share_new(2, 0, dir);
	int w[2], fd;

	fd = raw_open(dir, 0);
	cr_assert_eq(fd_write_all(fd, "moved before, ", 14), 0);
	share->slot[0].file = fd;
	share->slot[0].moved = 14;
	w[0] = fill(share, 0, "left in the pipe\n");
	w[1] = fill(share, 3, "last words");
	cr_expect_eq(raw_drain(share, 0), 0);
	cr_expect_str_eq(content("rank-0000/stdout"),
		"moved before, left in the pipe\n");
	cr_expect_str_eq(content("rank-0001/stderr"), "last words");
	cr_expect_eq(share->slot[0].moved, 31);
	cr_expect_eq(share->slot[3].moved, 10);
	cr_expect_eq(raw_written(share), 41);
	cr_expect_not(exists("rank-0001/stdout"));
	fd_close(w[0]);
	fd_close(w[1]);
}

/* The mover may have been killed before it noted the file in the share. */
Test(raw, a_drain_goes_on_behind_a_file_it_did_not_know)
{
	struct raw_share *share = raw_share_new(1, 0, dir);
	int fd = raw_open(dir, 0), w;

	cr_assert_eq(fd_write_all(fd, "one ", 4), 0);
	fd_close(fd);
	w = fill(share, 0, "two");
	cr_expect_eq(raw_drain(share, 0), 0);
	cr_expect_str_eq(content("rank-0000/stdout"), "one two");
	fd_close(w);
}

Test(raw, a_drain_takes_a_whole_pipe_and_waits_for_nobody)
{
	struct raw_share *share = raw_share_new(1, 0, dir);
	int fd[2], full = 0;
	int64_t begun;

	cr_assert_eq(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
	while (write(fd[1], "0123456789abcdef", 16) == 16)
		full += 16;
	share->slot[0].pipe = fd[0];
	begun = clock_now();
	cr_expect_eq(raw_drain(share, 60 * NS_PER_S), 0);
	cr_expect_lt(clock_now() - begun, 30 * NS_PER_S);
	cr_expect_eq(share->slot[0].moved, (uint64_t)full);
	cr_expect_eq(strlen(content("rank-0000/stdout")), (size_t)full);
	fd_close(fd[1]);
}

Test(raw, a_drain_of_silent_streams_makes_no_file)
{
	struct raw_share *share = raw_share_new(2, 0, dir);
	int w = fill(share, 0, "");

	cr_expect_eq(raw_drain(share, 0), 0);
	cr_expect_not(exists("rank-0000"));
	fd_close(w);
}

/* A terminal of which we have the master; gives the other side. */
static int
open_terminal(struct raw_share *share, uint32_t stream)
{
	struct raw_slot *slot = &share->slot[stream];
	struct termios modes;
	int master, slave, fd[2];

	cr_assert_eq(openpty(&master, &slave, NULL, NULL, NULL), 0);
	cr_assert_eq(tcgetattr(slave, &modes), 0);
	cfmakeraw(&modes);
	cr_assert_eq(tcsetattr(slave, TCSANOW, &modes), 0);
	cr_assert_eq(fcntl(master, F_SETFL, O_NONBLOCK), 0);
	cr_assert_eq(pipe2(fd, O_CLOEXEC), 0);
	slot->tty = master;
	slot->pipe = fd[0];
	slot->fill = fd[1];
	return slave;
}

/* Some in the pipe, some still in the terminal. */
static void
drain_terminal(void)
{
	struct raw_share *share = raw_share_new(1, 0, dir);
	int slave = open_terminal(share, RAW_OUT);
	struct pollfd p = { .fd = share->slot[0].tty, .events = POLLIN };

	cr_assert_eq(fd_write_all(slave, "one\n", 4), 0);
	cr_assert_eq(poll(&p, 1, 10000), 1);
	raw_fill(&share->slot[0]);
	cr_expect_geq(share->slot[0].fill, 0);
	cr_expect_eq(raw_waiting(share->slot[0].pipe), 4);
	cr_assert_eq(fd_write_all(slave, "two\n", 4), 0);
	fd_close(slave);
	cr_expect_eq(raw_drain(share, 0), 0);
	cr_expect_str_eq(content("rank-0000/stdout"), "one\ntwo\n");
	cr_expect_eq(share->slot[0].moved, 8);
	cr_expect_eq(share->slot[0].pipe, -1);
	cr_expect_eq(share->slot[0].tty, -1);
	cr_expect_eq(share->slot[0].fill, -1);
}

Test(raw, a_drain_empties_terminals_and_the_pipes_behind_them)
{
	drain_terminal();
}

Test(raw, a_drain_empties_terminals_where_nothing_can_be_spliced)
{
	refuse_splice();
	drain_terminal();
}

Test(raw, what_a_terminal_holds_and_cannot_be_saved_is_counted)
{
	struct raw_share *share = raw_share_new(1, 0, dir);
	int slave = open_terminal(share, RAW_OUT);

	cr_assert_eq(symlinkat("elsewhere", dir, "rank-0000"), 0);
	cr_assert_eq(fd_write_all(slave, "text", 4), 0);
	raw_fill(&share->slot[0]);
	cr_assert_eq(fd_write_all(slave, "more", 4), 0);
	fd_close(slave);
	cr_expect_eq(raw_left(&share->slot[0]), 8);
}

Test(raw, without_a_folder_nothing_is_drained)
{
	struct raw_share *share = raw_share_new(1, 0, -1);
	int w = fill(share, 0, "text");

	cr_expect_eq(raw_drain(share, 0), 0);
	cr_expect_eq(share->failed, 0);
	fd_close(w);
}

Test(raw, what_cannot_be_saved_is_counted)
{
	struct raw_share *share = raw_share_new(2, 0, dir);
	int file =
		openat(dir, "rank-0000", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	int w[2] = { fill(share, 0, "lost"), fill(share, 2, "saved") };

	fd_close(file);
	cr_expect_eq(raw_drain(share, 0), 4);
	cr_expect_eq(share->failed, 4);
	cr_expect_str_eq(content("rank-0001/stdout"), "saved");
	fd_close(w[0]);
	fd_close(w[1]);
}

static int
open_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) != -1;
	return count;
}

/* The table is full of the pipes of those who died; one of them was silent. */
Test(raw, few_descriptors_save_many_streams)
{
	struct raw_share *share = raw_share_new(40, 0, dir);
	uint32_t silent = share->streams - 1;
	struct rlimit files, few;
	char name[64];
	int before = open_descriptors(), top;

	for (uint32_t i = 0; i < silent; i++)
		fd_close(fill(share, i, raw_name(i, name, sizeof(name))));
	fd_close(fill(share, silent, ""));
	top = dup(dir);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
	few = files;
	few.rlim_cur = (rlim_t)top;
	fd_close(top);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	cr_expect_eq(raw_drain(share, NS_PER_S), 0);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
	for (uint32_t i = 0; i < silent; i++)
		cr_expect_str_eq(content(raw_name(i, name, sizeof(name))),
			name);
	cr_expect_eq(open_descriptors(), before);
}

Test(raw, without_descriptors_the_reason_is_kept)
{
	struct raw_share *share = raw_share_new(1, 0, dir);
	int w = fill(share, 0, "text"), sys = 0;
	struct rlimit files, none;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
	none = files;
	none.rlim_cur = 0;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	cr_expect_eq(raw_drain(share, 0), 4);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
	cr_expect_eq(raw_lost(share, &sys), 4);
	cr_expect_eq(sys, EMFILE);
	fd_close(w);
}

/* A file that may not grow takes what fits and loses the rest by count. */
Test(raw, a_limit_of_the_file_splits_between_saved_and_lost)
{
	struct raw_share *share = raw_share_new(1, 0, dir);
	int w = fill(share, 0, "saved lost");

	limit_files(6);
	cr_expect_eq(raw_drain(share, 0), 4);
	limit_files(RLIM_INFINITY);
	cr_expect_str_eq(content("rank-0000/stdout"), "saved ");
	cr_expect_eq(share->slot[0].moved, 6);
	fd_close(w);
}

Test(raw, what_waits_is_known_where_nobody_may_ask_how_much)
{
	int fd[2];

	cr_assert_eq(pipe2(fd, O_CLOEXEC), 0);
	cr_assert_eq(seccomp_refuse(SYS_ioctl, EPERM), 0);
	cr_expect_eq(raw_waiting(fd[0]), 0);
	cr_assert_eq(write(fd[1], "abc", 3), 3);
	cr_expect_gt(raw_waiting(fd[0]), 0);
	fd_close(fd[1]);
	cr_expect_gt(raw_waiting(fd[0]), 0);
	fd_close(fd[0]);
}
