/* SPDX-License-Identifier: Apache-2.0 */
/* test_walk.c - --log-dir while another user changes its path (launcher/state/walk.c). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/wait.h>

#include <criterion/criterion.h>

#include "launcher/state/state_inner.h"
#include "tests/unit/state_folder.h"

TestSuite(walk, .init = state_folder_make, .fini = folder_remove);

static enum xr_status
walk_open_state(const char *log_dir)
{
	struct state_wish wish = { .log_dir = log_dir, .logs = true };

	return state_open(&st, &wish, &err);
}

/* Another user exchanges a folder of his with a link, until the end of the pipe. */
static void
exchange_for_ever(int end)
{
	struct pollfd p = { .fd = end };

	if (setresuid(12345, 12345, 12345) == -1)
		_exit(1);
	while (poll(&p, 1, 0) == 0)
		if (renameat2(AT_FDCWD, "open/folder", AT_FDCWD, "open/link",
			    RENAME_EXCHANGE) == -1)
			_exit(2);
	_exit(0);
}

Test(walk, a_link_that_is_laid_meanwhile_is_not_followed)
{
	int end[2], status, opened = 0;
	char path[64];
	pid_t pid;

	if (geteuid() != 0)
		folder_skip("only root can be another user");
	cr_assert_eq(chmod(".", 0755), 0);
	cr_assert_eq(mkdir("target", 0755), 0);
	cr_assert_eq(mkdir("open", 0755), 0);
	cr_assert_eq(mkdir("open/folder", 0777), 0);
	cr_assert_eq(symlink("../target", "open/link"), 0);
	cr_assert_eq(lchown("open/link", 12345, 12345), 0);
	cr_assert_eq(chown("open/folder", 12345, 12345), 0);
	cr_assert_eq(chown("open", 12345, 12345), 0);
	cr_assert_eq(pipe2(end, O_CLOEXEC), 0);
	pid = fork();
	cr_assert_neq(pid, -1);
	if (pid == 0) {
		close(end[1]);
		exchange_for_ever(end[0]);
	}
	close(end[0]);
	for (int i = 0; i < 300 || (opened == 0 && i < 30000); i++) {
		snprintf(path, sizeof(path), "open/folder/%d/%d", i % 2, i);
		if (walk_open_state(path) != XR_OK)
			continue;
		opened++;
		let_go();
	}
	close(end[1]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	cr_expect_eq(folder_entries("target"), 0);
	cr_expect_gt(opened, 0);
}

/* --- one walk --------------------------------------------------------------- */

static char at[PATH_MAX];    /* the folder of the test, without links */
static char link_[PATH_MAX]; /* that was not followed */

/* folder/@relative; a walk begins at the root. */
static const char *
below(const char *relative)
{
	static char path[2 * PATH_MAX];

	cr_assert_not_null(getcwd(at, sizeof(at)));
	snprintf(path, sizeof(path), "%s/%s", at, relative);
	return path;
}

/* @path leads to the folder @want. */
static void
expect_walk(const char *path, const char *want)
{
	int fd = state_walk(path, false, link_), fds;
	struct stat got, is;

	cr_assert_neq(fd, -1, "%.40s: %s", path, strerror(errno));
	cr_assert_eq(fstat(fd, &got), 0);
	cr_assert_eq(stat(want, &is), 0);
	cr_expect(got.st_ino == is.st_ino && got.st_dev == is.st_dev, "%.40s",
		path);
	cr_expect_str_eq(link_, "");
	close(fd);
	fds = folder_entries("/proc/self/fd");
	close(state_walk(path, true, link_));
	cr_expect_eq(folder_entries("/proc/self/fd"), fds, "%.40s", path);
}

static void
expect_no_walk(const char *path, int sys)
{
	int fds = folder_entries("/proc/self/fd");

	errno = 0;
	cr_expect_eq(state_walk(path, true, link_), -1, "%.40s", path);
	cr_expect_eq(errno, sys, "%.40s: %s", path, strerror(errno));
	cr_expect_str_eq(link_, "");
	cr_expect_eq(folder_entries("/proc/self/fd"), fds, "%.40s", path);
}

/* @path, and after it as many @fill that the whole has @len bytes. */
static const char *
filled(const char *path, char fill, size_t len)
{
	static char all[2 * PATH_MAX];
	size_t has = strlen(path);

	cr_assert(has <= len && len < sizeof(all));
	memcpy(all, path, has);
	memset(all + has, fill, len - has);
	all[len] = '\0';
	return all;
}

Test(walk, dots_and_links_of_ones_own_lead_where_the_kernel_goes)
{
	cr_assert_eq(mkdir("a", 0700), 0);
	cr_assert_eq(mkdir("a/b", 0700), 0);
	cr_assert_eq(symlink("../a/./b", "a/up"), 0);
	cr_assert_eq(symlink(below("a"), "whole"), 0);
	cr_assert_eq(symlink("..", "a/b/parent"), 0);
	folder_write("file", "", 0600);
	expect_walk("/", "/");
	expect_walk("/..", "/");
	expect_walk(below("a//b/"), "a/b");
	expect_walk(below("a/b/../../a"), "a");
	expect_walk(below("a/up"), "a/b");
	expect_walk(below("whole/b"), "a/b");
	expect_walk(below("a/b/parent/up/.."), "a");
	expect_no_walk(below("file"), ENOTDIR);
	expect_no_walk(below("file/x"), ENOTDIR);
	cr_expect_eq(state_walk(below("none"), false, link_), -1);
	cr_expect_eq(errno, ENOENT);
}

Test(walk, forty_links_are_followed_and_no_more)
{
	char name[16] = "0", before[16];

	cr_assert_eq(mkdir("0", 0700), 0);
	for (int i = 1; i <= 41; i++) {
		snprintf(before, sizeof(before), "%s", name);
		snprintf(name, sizeof(name), "%d", i);
		cr_assert_eq(symlink(before, name), 0);
	}
	expect_walk(below("40"), "0");
	expect_no_walk(below("41"), ELOOP);
}

Test(walk, what_is_longer_than_the_kernel_takes_is_refused)
{
	char target[PATH_MAX], path[PATH_MAX];
	size_t len = strlen(below(""));

	expect_no_walk(filled(below(""), 'n', len + NAME_MAX + 1),
		ENAMETOOLONG);
	close(state_walk(filled(below(""), 'n', len + NAME_MAX), true, link_));
	cr_expect_eq(access(filled("", 'n', NAME_MAX), F_OK), 0);
	expect_walk(filled(below(""), '/', PATH_MAX - 1), ".");
	expect_no_walk(filled(below(""), '/', PATH_MAX), ENAMETOOLONG);
	/* A target of 1000 bytes, a slash and the rest. */
	snprintf(target, sizeof(target), "%s", filled(".", '/', 1000));
	cr_assert_eq(symlink(target, "long"), 0);
	snprintf(path, sizeof(path), "%s", below("long"));
	len = strlen(path);
	expect_walk(filled(path, '/', len + PATH_MAX - 1 - 1001), ".");
	expect_no_walk(filled(path, '/', len + PATH_MAX - 1001), ENAMETOOLONG);
}

Test(walk, a_link_of_another_user_is_named_by_its_path_without_links)
{
	if (geteuid() != 0)
		folder_skip("only root can be another user");
	cr_assert_eq(mkdir("a", 0700), 0);
	cr_assert_eq(mkdir("a/b", 0700), 0);
	cr_assert_eq(symlink("..", "a/b/foreign"), 0);
	cr_assert_eq(lchown("a/b/foreign", 12345, 12345), 0);
	cr_assert_eq(symlink(below("a"), "whole"), 0);
	cr_expect_eq(state_walk(below("./a/../whole/b/../b/foreign/x"), true,
			     link_),
		-1);
	cr_expect_eq(errno, ELOOP);
	cr_expect_str_eq(link_, below("a/b/foreign"));
	cr_expect_eq(state_walk("/../..", true, link_) == -1, false);
	cr_expect_str_eq(link_, "");
}

Test(walk, the_folder_of_a_job_may_be_as_long_as_a_path)
{
	struct state job;

	for (size_t place = PATH_MAX - 1; place <= PATH_MAX; place++) {
		job = STATE_NONE;
		job.place_fd = open("/", O_PATH | O_CLOEXEC);
		job.dir = strdup(filled(below(""), '/', place + 4));
		memcpy(job.dir + place, "/job", sizeof("/job"));
		snprintf(link_, sizeof(link_), "before");
		cr_expect_eq(state_walk_place(&job, link_),
			place < PATH_MAX ? 0 : -1);
		cr_expect_eq(job.place_fd == -1, place == PATH_MAX);
		cr_expect_str_eq(link_, "");
		if (place < PATH_MAX)
			close(job.place_fd);
		else
			cr_expect_eq(errno, ENAMETOOLONG);
		free(job.dir);
	}
}
