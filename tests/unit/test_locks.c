/* SPDX-License-Identifier: Apache-2.0 */
/* test_locks.c - who locked a file. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <criterion/criterion.h>

#include "proc/locks.h"

static int file;
static ino_t inode;

static void
make(void)
{
	struct stat st;

	file = open(P_tmpdir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	cr_assert_neq(file, -1);
	cr_assert_eq(fstat(file, &st), 0);
	inode = st.st_ino;
}

TestSuite(locks, .init = make);

Test(locks, nobody_locked_it)
{
	cr_expect_eq(locks_owner(inode), 0);
}

Test(locks, who_locked_it_is_told)
{
	cr_assert_eq(flock(file, LOCK_EX), 0);
	cr_expect_eq(locks_owner(inode), getpid());
	cr_expect_eq(locks_owner(inode + 1000000007), 0);
}

Test(locks, of_one_who_is_dead_only_that_he_was_it)
{
	pid_t pid = fork(), owner;

	if (pid == 0)
		_exit(flock(file, LOCK_EX) != 0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	/* 0: outside the initial PID namespace the kernel hides the lock. */
	owner = locks_owner(inode);
	cr_expect(owner == pid || owner == 0, "%d", (int)owner);
	cr_assert_eq(flock(file, LOCK_EX | LOCK_NB), 0, "the same open file");
	cr_assert_eq(flock(file, LOCK_UN), 0);
	cr_expect_eq(locks_owner(inode), 0);
}

Test(locks, a_lock_of_records_is_none)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	cr_assert_eq(fcntl(file, F_SETLK, &lock), 0);
	cr_expect_eq(locks_owner(inode), 0);
}
