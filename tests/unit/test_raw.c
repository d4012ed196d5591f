/* SPDX-License-Identifier: Apache-2.0 */
/* test_raw.c - the files that hold what ranks wrote. */
#include <errno.h>
#include <fcntl.h>
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

/* A file that may not grow takes what fits and loses the rest by count. */
Test(raw, a_limit_of_the_file_splits_between_saved_and_lost)
{
	struct raw_share *share = raw_share_new(1, 0, dir);
	struct rlimit size = { .rlim_cur = 6, .rlim_max = RLIM_INFINITY };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	int w = fill(share, 0, "saved lost");

	sigaction(SIGXFSZ, &ignore, NULL);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &size), 0);
	cr_expect_eq(raw_drain(share, 0), 4);
	size.rlim_cur = RLIM_INFINITY;
	setrlimit(RLIMIT_FSIZE, &size);
	cr_expect_str_eq(content("rank-0000/stdout"), "saved ");
	cr_expect_eq(share->slot[0].moved, 6);
	fd_close(w);
}
