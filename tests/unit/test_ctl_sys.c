/* SPDX-License-Identifier: Apache-2.0 */
/* test_ctl_sys.c - folders and sockets of running jobs if a system call fails, or
 * another process is faster (launcher/ctl). */
#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "launcher/ctl/place.h"
#include "launcher/ctl/root.h"
#include "tests/unit/ctl_sys.h"

TestSuite(ctl_sys, .init = ctl_sys_begin, .fini = folder_remove);

static struct ctl_root root;

/* --- the folder of a job ------------------------------------------------------ */

static bool
listens(int fd)
{
	int is = 0;
	socklen_t len = sizeof(is);

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is, &len) == 0 && is;
}

/* Opens, listens and writes the token. The @n-th call fails. */
static bool
place_failing(unsigned n, int sys)
{
	struct ctl_place p = CTL_PLACE_NONE;
	struct xr_error err = { 0 };
	int before = fds(), fd = -1, http = -1;
	enum xr_status status;
	struct stat st;
	bool token = false, failed;

	fail_nth(n, sys);
	status = ctl_place_open(&p, "k7m2", &err);
	if (status == XR_OK) {
		fd = ctl_place_listen(&p);
		http = ctl_place_listen_http(&p);
		token = ctl_place_put_token(&p, "secret");
	}
	failed = sys_fail_end();
	EXPECT_EQ(status == XR_OK, p.dir != -1);
	EXPECT_EQ(status != XR_OK, err.text[0] != '\0');
	EXPECT(failed || (fd != -1 && http != -1 && token));
	if (status == XR_OK) {
		EXPECT(is_locked(p.dir, "."));
		EXPECT_STR(p.id, "k7m2");
		EXPECT(fd == -1 || listens(fd));
		EXPECT(http == -1 || listens(http));
		NEED(fstatat(p.dir, CTL_PLACE_TOKEN, &st, 0) == 0 || !token);
		EXPECT(!token || st.st_size == 6);
		EXPECT(ctl_place_remove(&p));
	} else {
		EXPECT_STR(p.id, "");
	}
	fd_close(fd);
	fd_close(http);
	fd_close(p.dir);
	EXPECT_EQ(fds(), before);
	EXPECT(folder_entries("xrun") <= 0);
	return failed;
}

FORKED_TEST(ctl_sys, a_folder_of_a_job_is_whole_or_not_there)
{
	static const int failures[] = { EIO, EEXIST, ENOENT };
	unsigned n;

	trap_all();
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		for (n = 1; place_failing(n, failures[i]); n++)
			NEED(n < 1000);
		EXPECT(n > 15);
	}
}

static int locks; /* calls of flock(2) */

/* A sweep removes the folder before its first lock. */
static long
sweep_first(int nr, const long arg[5])
{
	if (nr == SYS_flock && ++locks == 1)
		NEED(rmdir("xrun/k7m2") == 0);
	(void)arg;
	return 0;
}

/* ... and another job makes one of the same name, too. */
static long
replace_first(int nr, const long arg[5])
{
	sweep_first(nr, arg);
	if (nr == SYS_flock && locks == 1)
		NEED(mkdir("xrun/k7m2", 0700) == 0);
	return 0;
}

FORKED_TEST(ctl_sys, a_folder_that_a_sweep_removes_is_made_again)
{
	static sys_hook_fn *const hooks[] = { sweep_first, replace_first };
	struct ctl_place p;

	sys_trap(SYS_flock);
	for (int i = 0; i < 2; i++) {
		locks = 0;
		sys_hook = hooks[i];
		EXPECT_EQ(ctl_place_open(&p, "k7m2", NULL), XR_OK);
		sys_hook = NULL;
		EXPECT_EQ(locks, 2);
		EXPECT(is_locked(AT_FDCWD, "xrun/k7m2"));
		EXPECT(ctl_place_remove(&p));
		EXPECT_EQ(access("xrun/k7m2", F_OK), -1);
		fd_close(p.dir);
	}
}

FORKED_TEST(ctl_sys, a_folder_that_is_not_ours_alone_is_refused)
{
	struct ctl_place p, other;
	struct xr_error err;

	NEED(mkdir("xrun", 0700) == 0 && mkdir("xrun/k7m2", 0710) == 0);
	EXPECT_EQ(ctl_place_open(&p, "k7m2", &err), XR_E_SYS);
	EXPECT_STR(err.text,
		"xrun in $XDG_RUNTIME_DIR: k7m2: Operation not permitted");
	NEED(rmdir("xrun/k7m2") == 0 && symlink(".", "xrun/k7m2") == 0);
	EXPECT_EQ(ctl_place_open(&p, "k7m2", &err), XR_E_SYS);
	EXPECT_EQ(p.dir, -1);
	NEED(unlink("xrun/k7m2") == 0);
	NEED(ctl_place_open(&other, "k7m2", NULL) == XR_OK);
	EXPECT_EQ(ctl_place_open(&p, "k7m2", &err), XR_E_EXISTS);
	EXPECT_STR(err.text,
		"xrun in $XDG_RUNTIME_DIR: k7m2: another job of that name runs");
	fd_close(other.dir);
}

/* --- a walk over the folders ---------------------------------------------------- */

static char met[512];

static bool
note_place(void *ctx, const char *id)
{
	(void)ctx;
	snprintf(met + strlen(met), sizeof(met) - strlen(met), "%s%s ",
		met[0] == '\0' ? " " : "", id);
	return strcmp(id, "last") != 0;
}

static void
note_dead(void *ctx, const char *id)
{
	note_place(ctx, id);
}

/* A folder whose time is @age seconds ago. */
static void
put_place(const char *id, int age)
{
	struct timespec when = { .tv_sec = time(NULL) - age };
	char path[256];

	snprintf(path, sizeof(path), "xrun/%s", id);
	NEED(mkdir(path, 0700) == 0);
	NEED(utimensat(AT_FDCWD, path, (struct timespec[]){ when, when }, 0) ==
		0);
}

#define ID_64 "aaaaaaaabbbbbbbbccccccccddddddddeeeeeeeeffffffffgggggggghhhhhhhh"

FORKED_TEST(ctl_sys, a_folder_is_left_over_if_it_is_old_or_has_a_socket)
{
	static const struct {
		const char *id;
		int age;
		bool socket, dead;
	} rows[] = {
		{ "young", 0, false, false }, { "later", -1, false, false },
		{ "young-socket", 0, true, true }, { "old", 100, false, true },
		{ "future", -100, false, true }, { ID_64, 100, false, true },
		{ ID_64 "x", 100, false, false }, /* no id is that long */
	};
	char path[256], word[128];

	NEED(mkdir("xrun", 0700) == 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_place(rows[i].id, rows[i].age);
		snprintf(path, sizeof(path), "xrun/%s/control", rows[i].id);
		if (rows[i].socket)
			folder_write(path, "", 0600);
	}
	ctl_place_each_dead(note_dead, NULL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(word, sizeof(word), " %s ", rows[i].id);
		if ((strstr(met, word) != NULL) != rows[i].dead)
			forked_note(__LINE__, "%s in '%s'", rows[i].id, met);
	}
	ctl_place_sweep();
	EXPECT_EQ(folder_entries("xrun"), 1); /* the long name */
}

FORKED_TEST(ctl_sys, a_walk_that_cannot_read_a_folder_leaves_nothing_open)
{
	struct ctl_place p;
	int before;
	unsigned n = 0;

	NEED(ctl_place_open(&p, "k7m2", NULL) == XR_OK);
	put_place("old", 100);
	before = fds();
	trap_all();
	do {
		met[0] = '\0';
		fail_nth(++n, EIO);
		ctl_place_each(note_place, NULL);
		sys_hook = NULL;
		EXPECT_EQ(fds(), before);
		/* A folder whose lock cannot be asked for counts as a job. */
		EXPECT(sys_fail.nr == SYS_flock || strstr(met, "old") == NULL);
		EXPECT(sys_fail.nr != -1 || strcmp(met, " k7m2 ") == 0);
	} while (sys_fail.nr != -1);
	n = 0;
	do {
		met[0] = '\0';
		fail_nth(++n, EIO);
		ctl_place_each_dead(note_dead, NULL);
		sys_hook = NULL;
		EXPECT_EQ(fds(), before);
		EXPECT(strstr(met, "k7m2") == NULL);
		EXPECT(sys_fail.nr != -1 || strcmp(met, " old ") == 0);
	} while (sys_fail.nr != -1);
	EXPECT(ctl_place_remove(&p));
	fd_close(p.dir);
}

FORKED_TEST(ctl_sys, a_walk_ends_when_its_function_says_so)
{
	struct ctl_place p[2];

	NEED(ctl_place_open(&p[0], "last", NULL) == XR_OK);
	NEED(ctl_place_open(&p[1], "k7m2", NULL) == XR_OK);
	ctl_place_each(note_place, NULL);
	EXPECT(strcmp(met, " last ") == 0 || strcmp(met, " k7m2 last ") == 0);
	fd_close(p[0].dir);
	fd_close(p[1].dir);
}

FORKED_TEST(ctl_sys, a_connection_that_fails_leaves_nothing_open)
{
	struct ctl_place p;
	int before, fd, listening;
	unsigned n = 0;

	NEED(ctl_place_open(&p, "k7m2", NULL) == XR_OK);
	errno = 0;
	EXPECT_EQ(ctl_connect("none", INT64_MAX), -1);
	EXPECT_EQ(errno, ENOENT);
	EXPECT_EQ(ctl_connect("k7m2", INT64_MAX), -1);
	EXPECT_EQ(errno, ENOENT);
	listening = ctl_place_listen(&p);
	before = fds();
	trap_all();
	do {
		fail_nth(++n, EIO);
		fd = ctl_connect("k7m2", INT64_MAX);
		sys_hook = NULL;
		EXPECT(fd != -1 || sys_fail.nr != -1);
		fd_close(fd);
		EXPECT_EQ(fds(), before);
	} while (sys_fail.nr != -1);
	fd_close(listening);
	EXPECT_EQ(ctl_connect("k7m2", INT64_MAX), -1);
	EXPECT_EQ(errno, ECONNREFUSED);
	fd_close(p.dir);
}

static int connects;

static long
full_twice(int nr, const long arg[5])
{
	(void)arg;
	return nr == SYS_connect && ++connects <= 2 ? -EAGAIN : 0;
}

FORKED_TEST(ctl_sys, a_job_that_lets_nobody_in_is_asked_until_the_deadline)
{
	struct ctl_place p;
	int listening, fd;

	NEED(ctl_place_open(&p, "k7m2", NULL) == XR_OK);
	listening = ctl_place_listen(&p);
	sys_trap(SYS_connect);
	sys_hook = full_twice;
	fd = ctl_connect("k7m2", INT64_MAX);
	EXPECT(fd != -1);
	EXPECT_EQ(connects, 3);
	connects = 0;
	EXPECT_EQ(ctl_connect("k7m2", clock_now() - 1), -1);
	EXPECT_EQ(errno, EAGAIN);
	EXPECT_EQ(connects, 1);
	fd_close(fd);
	fd_close(listening);
	fd_close(p.dir);
}

/* --- which folder ----------------------------------------------------------------- */

static long
fail_outside(int nr, const long arg[5])
{
	return is_outside(nr, arg) ? -EACCES : 0;
}

static long
read_only(int nr, const long arg[5])
{
	return nr == SYS_mkdirat ? -EROFS : fail_outside(nr, arg);
}

FORKED_TEST(ctl_sys, a_folder_that_cannot_be_made_is_reported)
{
	struct ctl_place p;
	struct xr_error err;

	NEED(mkdir("xrun", 0700) == 0);
	trap_all();
	sys_hook = read_only;
	EXPECT_EQ(ctl_place_open(&p, "k7m2", &err), XR_E_SYS);
	EXPECT_STR(err.text,
		"xrun in $XDG_RUNTIME_DIR: k7m2: Read-only file system");
	sys_hook = NULL;
	NEED(mkdir("xrun/k7m2", 0700) == 0);
	ctl_place_forget("none");
	EXPECT_EQ(folder_entries("xrun"), 1);
	ctl_place_forget("k7m2");
	EXPECT_EQ(folder_entries("xrun"), 0);
}

/* A folder, a file (mode 0) or a link ("") below the folder of the test. */
struct root_row {
	const char *path;
	mode_t mode; /* 0: a file */
	uid_t owner;
	const char *trouble; /* after the path of the test's folder */
};

static const struct root_row root_rows[] = {
	{ "xrun", 0750, 0, "/xrun has mode 0750, not 0700" },
	{ "xrun", 0701, 0, "/xrun has mode 0701, not 0700" },
	{ "xrun", 01770, 0, "/xrun has mode 1770, not 0700" },
	{ "xrun", 0700, 12345, "/xrun belongs to user 12345" },
	{ "xrun", 0, 0, "/xrun: Not a directory" },
	{ "xrun", 0, 12345, "/xrun belongs to user 12345" },
	{ ".", 0755, 0, " has mode 0755, not 0700" },
	{ ".", 0700, 12345, " belongs to user 12345" },
};

static void
expect_trouble(const struct root_row *row, bool make)
{
	char want[PATH_MAX + 256];
	struct xr_error trouble = { 0 };

	NEED(strcmp(row->path, ".") == 0 || row->mode == 0 ||
		mkdir(row->path, 0700) == 0);
	if (row->mode == 0)
		folder_write(row->path, "", 0600);
	NEED(chown(row->path, row->owner == 0 ? geteuid() : row->owner, -1) ==
		0);
	NEED(row->mode == 0 || chmod(row->path, row->mode) == 0);
	snprintf(want, sizeof(want), "%s%s%s",
		strcmp(row->path, ".") == 0 ? "XDG_RUNTIME_DIR: " : "", folder,
		row->trouble);
	sys_hook = fail_outside;
	ctl_root_open(&root, make, &trouble);
	sys_hook = NULL;
	EXPECT_STR(trouble.text, want);
	EXPECT_EQ(root.dir != -1, make);
	EXPECT_EQ(root.kind, CTL_ROOT_STATE);
	fd_close(root.dir);
	NEED(chown(".", geteuid(), -1) == 0 && chmod(".", 0700) == 0);
	NEED(remove(row->path) == 0 || strcmp(row->path, ".") == 0);
}

FORKED_TEST(ctl_sys, a_folder_that_is_not_used_is_reported_with_the_reason)
{
	char where[CTL_WHERE_MAX];

	trap_all();
	for (size_t i = 0; i < sizeof(root_rows) / sizeof(root_rows[0]); i++) {
		if (root_rows[i].owner != 0 && geteuid() != 0)
			continue;
		expect_trouble(&root_rows[i], true);
		EXPECT_STR(ctl_root_where(&root, where),
			".run-HOST in the state directory");
		/* The folder in the state directory exists now. */
		NEED(rmdir(root.path) == 0);
		expect_trouble(&root_rows[i], false);
	}
}

FORKED_TEST(ctl_sys, a_folder_without_a_fault_is_not_reported)
{
	struct xr_error trouble = { 0 };
	static char path[PATH_MAX];

	trap_all();
	sys_hook = fail_outside;
	EXPECT(!ctl_root_open(&root, false, &trouble));
	EXPECT_EQ(errno, ENOENT);
	EXPECT_EQ(root.dir, -1);
	EXPECT_STR(trouble.text, "");
	EXPECT(ctl_root_open(&root, true, &trouble));
	EXPECT_EQ(root.kind, CTL_ROOT_RUNTIME);
	EXPECT(!ctl_root_is_common(&root));
	EXPECT_STR(trouble.text, "");
	fd_close(root.dir);
	/* No path of it is too long. */
	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	NEED(setenv("XDG_STATE_HOME", path, 1) == 0);
	EXPECT(!ctl_root_open_state(&root));
	EXPECT_EQ(errno, ENAMETOOLONG);
	EXPECT_EQ(root.dir, -1);
	NEED(setenv("XDG_STATE_HOME", state_path, 1) == 0);
	EXPECT(ctl_root_open_state(&root));
	EXPECT(ctl_root_is_common(&root));
	fd_close(root.dir);
}

FORKED_TEST(ctl_sys, where_tells_folders_apart)
{
	char where[CTL_WHERE_MAX];

	for (int kind = 0; kind < CTL_ROOTS; kind++) {
		root = (struct ctl_root){ .kind = kind, .path = "/a/path" };
		EXPECT_STR(ctl_root_where(&root, where),
			kind == CTL_ROOT_RUNTIME ?
				"xrun in $XDG_RUNTIME_DIR" :
				kind == CTL_ROOT_STATE ?
				".run-HOST in the state directory" :
				"/a/path");
		EXPECT_EQ(ctl_root_is_common(&root), kind != CTL_ROOT_RUNTIME);
	}
	root.kind = CTL_ROOT_RUNTIME;
	snprintf(root.path, sizeof(root.path), "/run/user/%u/xrun",
		(unsigned)geteuid());
	EXPECT(ctl_root_is_common(&root));
}
