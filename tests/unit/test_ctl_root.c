/* SPDX-License-Identifier: Apache-2.0 */
/* test_ctl_root.c - which folder holds control sockets and records, and why not another. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

#include "base/fd.h"
#include "base/host.h"
#include "launcher/ctl/root.h"
#include "launcher/state/state.h"
#include "tests/unit/folder.h"
#include "tests/unit/noted.h"

/* /run/user/77 is the folder "user" of the test, /tmp/xrun-77 is "in-tmp"; the user has the
 * number 77. */
static struct {
	const char *foreign; /* belongs to user 78 */
	int open_sys;        /* of open(2) for folders in @closed */
	const char *closed;
	int mkdir_sys; /* the same of mkdir(2), but for EEXIST */
	const char *unmade;
	bool no_state, no_stat;
} played;

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __real_stat64(const char *path, struct stat *st);
int __wrap_stat64(const char *path, struct stat *st);
int __real_lstat64(const char *path, struct stat *st);
int __wrap_lstat64(const char *path, struct stat *st);
int __real_fstat64(int fd, struct stat *st);
int __wrap_fstat64(int fd, struct stat *st);
uid_t __wrap_geteuid(void);
char *__wrap_state_home(void);
const char *__wrap_host_name(char *out, size_t cap);

/* @path where the test has it. */
static const char *
mapped(const char *path)
{
	static const char *const from[] = { "/run/user/77", "/tmp/xrun-77" };
	static const char *const to[] = { "user", "in-tmp" };
	static char out[2 * PATH_MAX];

	for (int i = 0; i < 2; i++) {
		size_t len = strlen(from[i]);

		if (strncmp(path, from[i], len) == 0 &&
			(path[len] == '\0' || path[len] == '/')) {
			snprintf(out, sizeof(out), "%s/%s%s", folder, to[i],
				path + len);
			return out;
		}
	}
	return path;
}

/* Is the last name of @path @name? */
static bool
ends_in(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return name != NULL &&
		strcmp(slash == NULL ? path : slash + 1, name) == 0;
}

static void
own(struct stat *st)
{
	struct stat foreign;

	st->st_uid = 77;
	if (played.foreign != NULL &&
		__real_lstat64(played.foreign, &foreign) == 0 &&
		foreign.st_ino == st->st_ino)
		st->st_uid = 78;
}

int
__wrap_open64(const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = (flags & O_CREAT) != 0 ? va_arg(ap, int) : 0;
	va_end(ap);
	if (played.open_sys != 0 && ends_in(mapped(path), played.closed)) {
		errno = played.open_sys;
		return -1;
	}
	return __real_open64(mapped(path), flags, mode);
}

static bool has_begun;

/* The sanitizers make their folder by it, before they know of any memory. */
__attribute__((no_sanitize_address)) int
__wrap_mkdir(const char *path, mode_t mode)
{
	if (!has_begun)
		return __real_mkdir(path, mode);
	if (played.mkdir_sys != 0 && ends_in(mapped(path), played.unmade)) {
		errno = played.mkdir_sys;
		return -1;
	}
	return __real_mkdir(mapped(path), mode);
}

int
__wrap_stat64(const char *path, struct stat *st)
{
	int status = __real_stat64(mapped(path), st);

	own(st);
	return status;
}

int
__wrap_lstat64(const char *path, struct stat *st)
{
	int status = __real_lstat64(mapped(path), st);

	own(st);
	return status;
}

int
__wrap_fstat64(int fd, struct stat *st)
{
	int status = __real_fstat64(fd, st);

	own(st);
	return played.no_stat ? -1 : status;
}

uid_t
__wrap_geteuid(void)
{
	return 77;
}

char *
__wrap_state_home(void)
{
	char path[PATH_MAX + 8];

	snprintf(path, sizeof(path), "%s/state/x", folder);
	return played.no_state ? NULL : strdup(path);
}

const char *
__wrap_host_name(char *out, size_t cap)
{
	snprintf(out, cap, "here");
	return out;
}

static void
begin(void)
{
	has_begun = true;
	folder_make();
	umask(0);
	setenv("XDG_RUNTIME_DIR", folder, 1);
}

TestSuite(ctl_root, .init = begin, .fini = folder_remove);

static struct ctl_root root;
static struct xr_error trouble;

/* Path in the folder of the test. */
static const char *
here(const char *relative)
{
	static char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, relative);
	return path;
}

static bool
open_root(bool make)
{
	trouble.text[0] = '\0';
	memset(&root, 0, sizeof(root));
	errno = 0;
	return ctl_root_open(&root, make, &trouble);
}

/* The root is that of @kind, in @path. */
static void
expect_root(bool make, enum ctl_root_kind kind, const char *path)
{
	cr_assert(open_root(make), "%s", trouble.text);
	cr_expect_eq(root.kind, kind);
	cr_expect_str_eq(root.path, path);
	cr_expect_neq(root.dir, -1);
	fd_close(root.dir);
}

static void
expect_none(bool make, enum ctl_root_kind kind, int sys)
{
	cr_expect(!open_root(make));
	cr_expect_eq(root.dir, -1);
	cr_expect_eq(root.kind, kind);
	cr_expect_eq(errno, sys, "%s", strerror(errno));
}

static void
expect_mode(const char *path, mode_t mode)
{
	struct stat st;

	cr_assert_eq(__real_lstat64(path, &st), 0, "%s", path);
	cr_expect_eq(st.st_mode & 07777, mode);
}

Test(ctl_root, the_first_is_that_of_the_variable)
{
	expect_none(false, CTL_ROOT_RUNTIME, ENOENT);
	cr_expect_str_eq(trouble.text, "");
	cr_expect_eq(folder_entries("."), 0);
	expect_root(true, CTL_ROOT_RUNTIME, here("xrun"));
	expect_mode("xrun", 0700);
	expect_root(false, CTL_ROOT_RUNTIME, here("xrun"));
	cr_expect_str_eq(trouble.text, "");
	cr_expect_eq(fcntl(root.dir, F_GETFD), -1);
}

Test(ctl_root, without_the_variable_it_is_that_of_the_system)
{
	cr_assert_eq(mkdir("user", 0700), 0);
	unsetenv("XDG_RUNTIME_DIR");
	expect_root(true, CTL_ROOT_USER, "/run/user/77/xrun");
	setenv("XDG_RUNTIME_DIR", "xrun", 1); /* no path */
	expect_root(true, CTL_ROOT_USER, "/run/user/77/xrun");
	cr_expect_str_eq(trouble.text, "");
	cr_expect_eq(rmdir("user/xrun"), 0);
	expect_none(false, CTL_ROOT_USER, ENOENT);
	cr_expect_eq(rmdir("user"), 0);
	expect_none(false, CTL_ROOT_TMP, ENOENT);
	expect_root(true, CTL_ROOT_TMP, "/tmp/xrun-77");
	expect_mode("in-tmp", 0700);
	cr_expect_str_eq(trouble.text, "");
}

Test(ctl_root, a_folder_that_others_can_use_is_not_used)
{
	char text[PATH_MAX + 100];

	cr_assert_eq(chmod(".", 0710), 0);
	expect_root(true, CTL_ROOT_TMP, "/tmp/xrun-77");
	snprintf(text, sizeof(text),
		"XDG_RUNTIME_DIR: %s has mode 0710, not 0700", folder);
	cr_expect_str_eq(trouble.text, text);
	played.foreign = ".";
	expect_root(true, CTL_ROOT_TMP, "/tmp/xrun-77");
	snprintf(text, sizeof(text), "XDG_RUNTIME_DIR: %s belongs to user 78",
		folder);
	cr_expect_str_eq(trouble.text, text);
	/* A folder that is gone is none. */
	played.foreign = NULL;
	cr_assert_eq(chmod(".", 0700), 0);
	setenv("XDG_RUNTIME_DIR", here("gone"), 1);
	expect_root(true, CTL_ROOT_TMP, "/tmp/xrun-77");
	cr_expect_str_eq(trouble.text, "");
	folder_write("file", "", 0600);
	setenv("XDG_RUNTIME_DIR", here("file"), 1);
	expect_root(true, CTL_ROOT_TMP, "/tmp/xrun-77");
	cr_expect_str_eq(trouble.text, "");
}

Test(ctl_root, that_in_tmp_may_be_of_another)
{
	char text[PATH_MAX + 100];

	unsetenv("XDG_RUNTIME_DIR");
	cr_assert_eq(mkdir("in-tmp", 0700), 0);
	played.foreign = "in-tmp";
	expect_none(false, CTL_ROOT_STATE, ENOENT);
	cr_expect_str_eq(trouble.text, "/tmp/xrun-77 belongs to user 78");
	expect_root(true, CTL_ROOT_STATE, here("state/x/.run-here"));
	cr_expect_str_eq(trouble.text, "/tmp/xrun-77 belongs to user 78");
	expect_mode("state/x/.run-here", 0700);
	played.foreign = NULL;
	cr_assert_eq(chmod("in-tmp", 01701), 0);
	expect_root(false, CTL_ROOT_STATE, here("state/x/.run-here"));
	cr_expect_str_eq(trouble.text, "/tmp/xrun-77 has mode 1701, not 0700");
	cr_assert_eq(chmod("state/x/.run-here", 0770), 0);
	expect_none(false, CTL_ROOT_STATE, EPERM);
	expect_none(true, CTL_ROOT_STATE, EPERM);
	cr_expect_str_eq(trouble.text, "/tmp/xrun-77 has mode 1701, not 0700");
	played.no_state = true;
	expect_none(true, CTL_ROOT_TMP, EPERM);
	/* No folder at all. */
	cr_assert_eq(rmdir("in-tmp"), 0);
	folder_write("in-tmp", "", 0600);
	expect_none(false, CTL_ROOT_TMP, ENOTDIR);
	cr_expect_str_eq(trouble.text, "/tmp/xrun-77: Not a directory");
	expect_none(true, CTL_ROOT_TMP, ENOTDIR);
	cr_expect_str_eq(trouble.text, "/tmp/xrun-77: Not a directory");
	played.foreign = "in-tmp";
	expect_none(false, CTL_ROOT_TMP, ENOTDIR);
	snprintf(text, sizeof(text), "/tmp/xrun-77 belongs to user 78");
	cr_expect_str_eq(trouble.text, text);
	played.foreign = NULL;
	cr_assert_eq(unlink("in-tmp"), 0);
	cr_assert_eq(symlink(".", "in-tmp"), 0);
	expect_none(false, CTL_ROOT_TMP, ENOTDIR);
	played.open_sys = ELOOP;
	played.closed = "in-tmp";
	expect_none(false, CTL_ROOT_TMP, ELOOP);
	cr_expect_str_eq(trouble.text,
		"/tmp/xrun-77: Too many levels of symbolic links");
	played.open_sys = EACCES;
	expect_none(false, CTL_ROOT_TMP, EACCES);
	cr_expect_str_eq(trouble.text, "/tmp/xrun-77: Permission denied");
	played.open_sys = EIO;
	expect_none(false, CTL_ROOT_TMP, EIO);
	cr_expect_str_eq(trouble.text, "");
}

Test(ctl_root, what_cannot_be_made_is_told_once)
{
	unsetenv("XDG_RUNTIME_DIR");
	played.mkdir_sys = EROFS;
	played.unmade = "in-tmp";
	expect_root(true, CTL_ROOT_STATE, here("state/x/.run-here"));
	cr_expect_str_eq(trouble.text, "/tmp/xrun-77: Read-only file system");
	cr_assert_eq(rmdir("state/x/.run-here"), 0);
	played.unmade = ".run-here";
	cr_assert_eq(__real_mkdir("in-tmp", 0770), 0);
	expect_none(true, CTL_ROOT_STATE, EROFS);
	cr_expect_str_eq(trouble.text, "/tmp/xrun-77 has mode 0770, not 0700");
	/* Without a place for the words. */
	cr_expect(!ctl_root_open(&root, true, NULL));
	cr_expect_eq(errno, EROFS);
	cr_expect(!ctl_root_open(&root, false, NULL));
	/* Parents are made of the last one only. */
	played.unmade = "in-tmp";
	played.mkdir_sys = ENOENT;
	cr_assert_eq(rmdir("in-tmp"), 0);
	expect_root(true, CTL_ROOT_STATE, here("state/x/.run-here"));
	cr_expect_str_eq(trouble.text,
		"/tmp/xrun-77: No such file or directory");
}

Test(ctl_root, a_path_is_bounded)
{
	char *path = strdup(here(""));
	char *given = calloc(1, PATH_MAX + 1);
	size_t len = strlen(path);

	cr_assert(given != NULL);
	memset(given, '/', PATH_MAX);
	memcpy(given, folder, len - 1);
	given[PATH_MAX - 9] = '\0';
	setenv("XDG_RUNTIME_DIR", given, 1);
	cr_expect(open_root(true), "%s", trouble.text);
	cr_expect_eq(root.kind, CTL_ROOT_RUNTIME);
	cr_expect_eq(strlen(root.path), PATH_MAX - 9 + 5);
	fd_close(root.dir);
	given[PATH_MAX - 9] = '/';
	given[PATH_MAX - 8] = '\0';
	setenv("XDG_RUNTIME_DIR", given, 1);
	expect_root(true, CTL_ROOT_TMP, "/tmp/xrun-77");
	free(given);
	free(path);
}

Test(ctl_root, that_of_the_state_can_be_asked_for)
{
	cr_expect(ctl_root_open_state(&root));
	cr_expect_eq(root.kind, CTL_ROOT_STATE);
	cr_expect_str_eq(root.path, here("state/x/.run-here"));
	expect_mode("state/x/.run-here", 0700);
	fd_close(root.dir);
	cr_expect(ctl_root_open_state(&root));
	cr_expect_neq(root.dir, -1);
	fd_close(root.dir);
	cr_assert_eq(chmod("state/x/.run-here", 0707), 0);
	cr_expect(!ctl_root_open_state(&root));
	cr_expect_eq(errno, EPERM);
	cr_expect_eq(root.dir, -1);
	cr_expect_eq(ctl_root_open_path("state/x/.run-here"), -1);
	cr_expect_eq(errno, EPERM);
	played.no_state = true;
	cr_expect(!ctl_root_open_state(&root));
	cr_expect_eq(errno, ENAMETOOLONG);
	cr_expect_eq(root.dir, -1);
	cr_assert_eq(chmod("state/x/.run-here", 0700), 0);
	root.dir = ctl_root_open_path("state/x/.run-here");
	cr_expect_neq(root.dir, -1);
	fd_close(root.dir);
	played.no_stat = true;
	cr_expect_eq(ctl_root_open_path("state/x/.run-here"), -1);
}

Test(ctl_root, some_can_be_found_without_the_variable)
{
	root.kind = CTL_ROOT_RUNTIME;
	snprintf(root.path, sizeof(root.path), "/run/user/77/xrun");
	cr_expect(ctl_root_is_common(&root));
	snprintf(root.path, sizeof(root.path), "/run/user/78/xrun");
	cr_expect(!ctl_root_is_common(&root));
	for (int kind = CTL_ROOT_USER; kind < CTL_ROOTS; kind++) {
		root.kind = kind;
		cr_expect(ctl_root_is_common(&root));
	}
}

Test(ctl_root, each_has_a_name_for_messages)
{
	char out[CTL_WHERE_MAX], *long_path = root.path;

	root.kind = CTL_ROOT_RUNTIME;
	cr_expect_str_eq(ctl_root_where(&root, out),
		"xrun in $XDG_RUNTIME_DIR");
	root.kind = CTL_ROOT_STATE;
	cr_expect_str_eq(ctl_root_where(&root, out),
		".run-HOST in the state directory");
	root.kind = CTL_ROOT_TMP;
	memset(long_path, 'p', 100);
	cr_expect_eq(strlen(ctl_root_where(&root, out)), CTL_WHERE_MAX - 1);
	root.kind = CTL_ROOT_USER;
	snprintf(root.path, sizeof(root.path), "/x");
	cr_expect_str_eq(ctl_root_where(&root, out), "/x");
}

static unsigned enough; /* folders, until the walk is stopped */

static bool
meet(void *ctx, const struct ctl_root *r)
{
	cr_expect_eq(ctx, &root);
	cr_expect_neq(fcntl(r->dir, F_GETFD), -1);
	note("%d ", r->kind);
	return --enough > 0;
}

static const char *
met(bool all, unsigned most)
{
	done[0] = '\0';
	enough = most;
	ctl_root_each(all, meet, &root);
	return done;
}

Test(ctl_root, each_folder_is_met_once)
{
	cr_expect_str_eq(met(true, 9), "");
	cr_assert_eq(mkdir("user", 0700), 0);
	cr_assert_eq(mkdir("user/xrun", 0700), 0);
	cr_assert_eq(mkdir("in-tmp", 0700), 0);
	cr_assert_eq(mkdir("xrun", 0700), 0);
	cr_expect_str_eq(met(true, 9), "0 1 2 ");
	cr_expect_str_eq(met(false, 9), "0 ");
	cr_expect(ctl_root_open_state(&root));
	fd_close(root.dir);
	cr_expect_str_eq(met(true, 9), "0 1 2 3 ");
	cr_expect_str_eq(met(false, 9), "0 3 ");
	cr_expect_str_eq(met(true, 1), "0 ");
	cr_expect_str_eq(met(true, 2), "0 1 ");
	cr_assert_eq(rmdir("xrun"), 0);
	cr_expect_str_eq(met(true, 9), "1 2 3 "); /* the first is not there */
	cr_assert_eq(mkdir("xrun", 0700), 0);
	cr_assert_eq(chmod("in-tmp", 0711), 0);
	cr_expect_str_eq(met(true, 9), "0 1 3 ");
	/* The same under two names. */
	setenv("XDG_RUNTIME_DIR", here("user"), 1);
	cr_expect_str_eq(met(true, 9), "0 3 ");
	unsetenv("XDG_RUNTIME_DIR");
	cr_expect_str_eq(met(false, 9), "1 3 ");
}
