/* SPDX-License-Identifier: Apache-2.0 */
/* test_walk.c - --log-dir while another user changes its path (launcher/state/walk.c). */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/wait.h>

#include <criterion/criterion.h>

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
		cr_skip_test("only root can be another user");
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
