/* SPDX-License-Identifier: Apache-2.0 */
/* test_state_sys.c - the folder of a job if a system call fails (launcher/state). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>

#include "launcher/state/history.h"
#include "launcher/state/state_inner.h"
#include "tests/unit/state_folder.h"
#include "tests/unit/sys_hook.h"

TestSuite(state_sys, .init = state_folder_make, .fini = folder_remove);

static const int failures[] = { EIO, ENOENT, EEXIST, EACCES };

/* What makes, opens, locks and names files. */
static void
trap_files(void)
{
	static const int calls[] = {
#ifdef SYS_mkdir /* not on all architectures */
		SYS_mkdir, SYS_rename, SYS_symlink, SYS_chmod,
#endif
		SYS_openat, SYS_mkdirat, SYS_fstat, SYS_newfstatat, SYS_flock,
		SYS_linkat, SYS_renameat, SYS_ftruncate, SYS_getdents64,
		SYS_readlinkat, SYS_write, SYS_pwrite64, SYS_read, SYS_symlinkat
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		sys_trap(calls[i]);
}

/* If a lock cannot be compared with its name, which is two calls, it stays: those do
 * not fail. */
static long
fail_file_call(int nr, const long arg[5])
{
	static bool compares;
	bool compared = compares;

	compares = nr == SYS_newfstatat &&
		strcmp((const char *)arg[1], "lock") == 0;
	return compares || compared ? 0 : sys_fail_one(nr, arg);
}

/* Returns true if the job of the open folder holds the lock @path. */
static bool
holds(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	bool held = fd != -1 && flock(fd, LOCK_EX | LOCK_NB) == -1;

	if (fd != -1)
		close(fd);
	return held;
}

static bool
is_one_file(const char *a, const char *b)
{
	struct stat one, other;

	return stat(a, &one) == 0 && stat(b, &other) == 0 &&
		one.st_ino == other.st_ino;
}

/* The job has all that its folder promises. */
static void
expect_whole(unsigned n, int sys)
{
	char lock[2 * PATH_MAX], live[2 * PATH_MAX];
	bool whole;

	snprintf(lock, sizeof(lock), "%s/lock", st.dir);
	whole = st.dir_fd != -1 && st.attempt_fd != -1 && st.lock_fd != -1 &&
		access(st.attempt, F_OK) == 0 && holds(lock);
	if (st.root != NULL) {
		snprintf(live, sizeof(live), "%s/.live/%s", st.root, st.id);
		whole = whole && is_one_file(lock, live) == st.live;
	}
	if (!whole)
		forked_note(__LINE__, "call %u (%d) failed with %d: %s", n,
			sys_fail.nr, sys, "the folder is not whole");
}

struct way {
	const char *title;
	struct state_wish wish;
	const char *folder; /* that the job's is made in, or is */
	int before;         /* entries of it without the job */
};

/* Opens a job, with the @n-th call failing. Returns false if there are fewer calls. */
static bool
open_failing(const struct way *way, unsigned n, int sys, unsigned *opened)
{
	int fds = folder_entries("/proc/self/fd"), left;
	enum xr_status status;
	bool failed;

	err = (struct xr_error){ 0 };
	sys_fail_begin(n, sys);
	sys_hook = fail_file_call;
	status = state_open(&st, &way->wish, &err);
	failed = sys_fail_end();
	if (status == XR_OK) {
		expect_whole(n, sys);
		state_close(&st);
		EXPECT(state_remove(&st));
		let_go();
		*opened += failed;
	} else if (!failed || err.text[0] == '\0' || st.dir != NULL ||
		st.dir_fd != -1 || st.lock_fd != -1) {
		forked_note(__LINE__, "%s: call %u (%d), %d: '%s'", way->title,
			n, sys_fail.nr, sys, err.text);
	}
	left = folder_entries(way->folder);
	if (folder_entries("/proc/self/fd") != fds ||
		(left != -1 && left != way->before) ||
		folder_entries("state/xrun/.live") > 0)
		forked_note(__LINE__, "%s: call %u (%d), %d: %d fds, %d left",
			way->title, n, sys_fail.nr, sys,
			folder_entries("/proc/self/fd") - fds, left);
	return failed;
}

static void
open_failing_all(const struct way *way)
{
	unsigned opened = 0, calls = 0, n;

	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		for (n = 1; open_failing(way, n, failures[i], &opened); n++)
			NEED(n < 1000);
		calls += n - 1;
	}
	EXPECT(calls > 20);
	EXPECT(opened > 0 && opened < calls);
}

FORKED_TEST(state_sys, an_open_that_fails_leaves_nothing)
{
	const struct way ways[] = {
		{ "state folder", { .logs = true }, "state/xrun", 1 },
		{ "named", { .logs = true, .name = "n" }, "state/xrun", 1 },
		{ "named there",
			{ .logs = true, .name = "n", .log_dir = "d/e" }, "d/e",
			0 },
		{ "named here",
			{ .logs = true, .name = "n", .log_dir = "{job}" }, "n",
			0 },
		{ "absent", { .logs = true, .log_dir = "absent" }, "absent",
			0 },
		{ "below", { .logs = true, .log_dir = "a/b/c" }, "a/b/c", 0 },
		{ "empty", { .logs = true, .log_dir = "empty" }, "empty", 0 },
		{ "used", { .logs = true, .log_dir = "used" }, "used", 1 },
	};

	NEED(state_make_parents("state/xrun/.live/x") == 0);
	NEED(mkdir("empty", 0700) == 0 && mkdir("used", 0700) == 0);
	NEED(mkdir("used/file", 0700) == 0);
	trap_files();
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		open_failing_all(&ways[i]);
}

/* --- the next attempt of a named job ------------------------------------------ */

static const struct state_wish again = { .logs = true, .name = "n" };

/* A job that has written something, and has ended. */
static void
end_attempt(void)
{
	NEED(state_open(&st, &again, &err) == XR_OK);
	NEED(close(openat(st.attempt_fd, "file", O_CREAT | O_CLOEXEC, 0600)) ==
		0);
	state_close(&st);
	let_go();
}

FORKED_TEST(state_sys, an_attempt_that_fails_leaves_the_one_before)
{
	struct stat lock;
	unsigned n = 0;
	bool failed;

	end_attempt();
	trap_files();
	do {
		err = (struct xr_error){ 0 };
		sys_fail_begin(++n, EIO);
		sys_hook = fail_file_call;
		failed = state_open(&st, &again, &err) != XR_OK;
		EXPECT_EQ(failed && !sys_fail_end(), false);
		sys_hook = NULL;
		if (!failed) {
			EXPECT(st.number == 1 ||
				sys_fail.nr !=
					-1); /* the number was not read */
			EXPECT(holds("state/xrun/n/lock"));
			EXPECT(state_remove(&st));
			let_go();
		} else {
			EXPECT(strstr(err.text, "/state/xrun/n") != NULL);
		}
		EXPECT_EQ(folder_entries("state/xrun/n"), 2);
		EXPECT_EQ(folder_entries("state/xrun/n/0"), 1);
		EXPECT(!holds("state/xrun/n/lock"));
		NEED(stat("state/xrun/n/lock", &lock) == 0);
		if (lock.st_size != 1)
			forked_note(__LINE__, "call %u (%d): lock open", n,
				sys_fail.nr);
	} while (sys_fail.nr != -1);
	EXPECT(n > 10);
}

/* --- what an xrun left on the way to its lock ----------------------------------- */

/* The lock of the job "a" in the working directory; it is given back. Returns an errno
 * or 0. */
static int
take_lock(void)
{
	struct state job = STATE_NONE;
	int fds = folder_entries("/proc/self/fd"), sys = 0;

	job.dir_fd = open(".", O_DIRECTORY | O_CLOEXEC);
	snprintf(job.id, sizeof(job.id), "a");
	errno = EEXIST; /* of a call before */
	if (state_take_lock(&job) == -1)
		sys = errno;
	EXPECT_EQ(job.made_lock, sys == 0);
	EXPECT_EQ(job.lock_fd == -1, sys != 0);
	EXPECT_EQ(folder_entries("/proc/self/fd"), fds + (sys == 0 ? 2 : 1));
	if (sys == 0) {
		EXPECT(holds("lock"));
		EXPECT_EQ(access(".lock.a", F_OK), -1);
		EXPECT_EQ(unlink("lock"), 0);
		close(job.lock_fd);
	}
	close(job.dir_fd);
	return sys;
}

static int left_sys; /* with which the name of the leftover cannot be made */

static long
fail_left(int nr, const long arg[5])
{
	(void)nr;
	return strcmp((const char *)arg[1], ".lock.a") == 0 &&
			(arg[2] & O_CREAT) != 0 ?
		-left_sys :
		0;
}

FORKED_TEST(state_sys, a_lock_that_was_left_is_dropped_unless_it_is_held)
{
	int fd;

	EXPECT_EQ(take_lock(), 0);
	folder_write(".lock.a", "", 0600);
	EXPECT_EQ(take_lock(), 0);
	folder_write(".lock.a", "", 0600);
	sys_trap(SYS_openat);
	left_sys = EIO;
	sys_hook = fail_left;
	EXPECT_EQ(take_lock(), EIO);
	sys_hook = NULL;
	EXPECT_EQ(access(".lock.a", F_OK), 0);
	fd = open(".lock.a", O_RDWR | O_CLOEXEC);
	NEED(fd != -1 && flock(fd, LOCK_EX | LOCK_NB) == 0);
	EXPECT_EQ(take_lock(), EEXIST);
	EXPECT_EQ(access(".lock.a", F_OK), 0);
	close(fd);
	/* One is the job. */
	folder_write("lock", "", 0600);
	EXPECT_EQ(take_lock(), EEXIST);
	EXPECT_EQ(access(".lock.a", F_OK), -1);
}

/* --- calls that fail again and again --------------------------------------------- */

static unsigned renamed, waits, made;
static bool may_rename;

/* A lock gets its name only if it may; there is no wait between the tries. */
static long
on_rename(int nr, const long arg[5])
{
	(void)arg;
	if (nr != SYS_renameat) {
		waits++;
		return -EINTR;
	}
	renamed++;
	return may_rename ? 0 : -EIO;
}

FORKED_TEST(state_sys, a_shared_lock_that_cannot_be_replaced_stays)
{
	struct stat before, after;
	int fd, fds;

	end_attempt();
	NEED(stat("state/xrun/n/lock", &before) == 0);
	fd = open("state/xrun/n/lock", O_RDWR | O_CLOEXEC);
	NEED(fd != -1 && flock(fd, LOCK_SH | LOCK_NB) == 0);
	fds = folder_entries("/proc/self/fd");
	sys_trap(SYS_renameat);
#ifdef SYS_poll
	sys_trap(SYS_poll);
#else
	sys_trap(SYS_ppoll);
#endif
	sys_hook = on_rename;
	EXPECT_EQ(state_open(&st, &again, &err), XR_E_EXISTS);
	sys_hook = NULL;
	EXPECT(strncmp(err.text, "--job: n runs (", 15) == 0);
	EXPECT_EQ(waits, 300);
	EXPECT_EQ(renamed, 280);
	EXPECT_EQ(folder_entries("/proc/self/fd"), fds);
	EXPECT_EQ(folder_entries("state/xrun/n"), 2);
	NEED(stat("state/xrun/n/lock", &after) == 0);
	EXPECT_EQ(after.st_ino, before.st_ino);
	EXPECT_EQ(after.st_size, 1);
	/* Of an xrun that was killed. */
	folder_write("state/xrun/n/.lock.new", "", 0600);
	may_rename = true;
	waits = 0;
	sys_hook = on_rename;
	NEED(state_open(&st, &again, &err) == XR_OK);
	sys_hook = NULL;
	EXPECT_EQ(waits, 20); /* the first try to replace it succeeds */
	EXPECT_EQ(access("state/xrun/n/.lock.new", F_OK), -1);
	EXPECT_EQ(st.number, 1);
	let_go();
	close(fd);
}

static long
no_folder(int nr, const long arg[5])
{
	const char *path = (const char *)arg[1];
	size_t len = strlen(path);

	(void)nr;
	if (len < 2 || strcmp(path + len - 2, "/b") != 0)
		return 0;
	made++;
	return -ENOENT;
}

static const struct state_wish batch = { .logs = true, .batch = "b" };

FORKED_TEST(state_sys, the_root_of_a_folder_is_made_once)
{
	sys_trap(SYS_mkdirat);
	sys_hook = no_folder;
	EXPECT_EQ(state_open(&st, &batch, &err), XR_E_SYS);
	sys_hook = NULL;
	EXPECT_EQ(made, 2);
	EXPECT_EQ(folder_entries("state/xrun"), 0);
	EXPECT(strstr(err.text, "/state/xrun/b") != NULL);
}

FORKED_TEST(state_sys, a_batch_job_has_1000_names)
{
	char path[64], want[2 * PATH_MAX];

	NEED(state_make_parents("state/xrun/b/x") == 0);
	for (int i = 2; i <= 1000; i++) {
		snprintf(path, sizeof(path), "state/xrun/b.%d", i);
		NEED(mkdir(path, 0700) == 0);
	}
	EXPECT_EQ(state_open(&st, &batch, &err), XR_E_EXISTS);
	snprintf(want, sizeof(want),
		"%s/state/xrun: no free job id in 1000 tries", folder);
	EXPECT(strncmp(err.text, want, strlen(want)) == 0);
	NEED(rmdir(path) == 0);
	NEED(state_open(&st, &batch, &err) == XR_OK);
	EXPECT_STR(st.id, "b.1000");
	EXPECT_EQ(access(path, F_OK), 0);
	let_go();
}

/* Another process renames the history first. */
static long
rename_first(int nr, const long arg[5])
{
	(void)nr;
	(void)arg;
	NEED(rename(".history", ".history.1") == 0);
	folder_write(".history", "{}\n", 0600);
	return 0;
}

FORKED_TEST(state_sys, a_history_that_was_renamed_is_not_renamed_again)
{
	struct stat old, new;

	folder_write(".history", "", 0600);
	NEED(truncate(".history", 256 << 10) == 0);
	sys_trap(SYS_flock);
	sys_hook = rename_first;
	EXPECT_EQ(history_add_line(folder, "{\"job\":\"a\"}"), 0);
	sys_hook = NULL;
	NEED(stat(".history", &new) == 0 && stat(".history.1", &old) == 0);
	EXPECT_EQ(new.st_size, 3);
	EXPECT_EQ(old.st_size, (256 << 10) + 12);
}
