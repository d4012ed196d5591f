/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_sys.h - a folder for control sockets of its own for a test, and system calls that
 * fail: ctl_sys_begin() as .init, folder_remove() as .fini.
 */
#ifndef TESTS_UNIT_CTL_SYS_H
#define TESTS_UNIT_CTL_SYS_H

#include <fcntl.h>

#include <sys/file.h>

#include "base/fd.h"
#include "tests/unit/folder.h"
#include "tests/unit/sys_hook.h"

static char state_path[PATH_MAX + 8];

static inline void
ctl_sys_begin(void)
{
	folder_make();
	umask(0);
	snprintf(state_path, sizeof(state_path), "%s/state", folder);
	cr_assert_eq(setenv("XDG_RUNTIME_DIR", folder, 1), 0);
	cr_assert_eq(setenv("XDG_STATE_HOME", state_path, 1), 0);
}

static inline void
trap_all(void)
{
	static const int calls[] = {
#ifdef SYS_mkdir /* not on all architectures */
		SYS_mkdir, SYS_open,
#endif
		SYS_openat, SYS_mkdirat, SYS_fstat, SYS_newfstatat, SYS_flock,
		SYS_linkat, SYS_socket, SYS_bind, SYS_listen, SYS_fchmodat,
		SYS_getdents64, SYS_readlinkat, SYS_write, SYS_connect
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		sys_trap(calls[i]);
}

/* The path of a call, or "". */
static inline const char *
path_of(int nr, const long arg[5])
{
	switch (nr) {
#ifdef SYS_mkdir
	case SYS_mkdir:
		return (const char *)arg[0];
#endif
	case SYS_openat:
	case SYS_mkdirat:
	case SYS_newfstatat:
		return (const char *)arg[1];
	default:
		return "";
	}
}

/* Folders outside that of the test cannot be used. */
static inline bool
is_outside(int nr, const long arg[5])
{
	const char *path = path_of(nr, arg);
	char own[32];

	snprintf(own, sizeof(own), "/tmp/xrun-%u", (unsigned)geteuid());
	return strcmp(path, own) == 0 ||
		strncmp(path, "/run/user/", strlen("/run/user/")) == 0;
}

static inline long
fail_inside(int nr, const long arg[5])
{
	return is_outside(nr, arg) ? -EACCES : sys_fail_one(nr, arg);
}

static inline void
fail_nth(unsigned n, int sys)
{
	sys_fail_begin(n, sys);
	sys_hook = fail_inside;
}

static inline int
fds(void)
{
	return folder_entries("/proc/self/fd");
}

static inline bool
is_locked(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	bool locked = fd != -1 && flock(fd, LOCK_EX | LOCK_NB) == -1;

	fd_close(fd);
	return locked;
}

#endif /* TESTS_UNIT_CTL_SYS_H */
