/* SPDX-License-Identifier: Apache-2.0 */
/* normal.c - see normal.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <linux/close_range.h>

#include "launcher/host/normal.h"
#include "proc/spawn.h"

/* A closed 0, 1 or 2 would be taken by the next thing that is opened. */
static int
open_standard(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

/* Kernels before 5.11 cannot do it in one call, before 5.9 neither. */
static void
close_one_by_one(bool at_exec)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *d;

	while (dir != NULL && (d = readdir(dir)) != NULL) {
		int fd = (int)strtol(d->d_name, NULL, 10);

		if (fd <= STDERR_FILENO || fd == dirfd(dir))
			continue;
		if (at_exec)
			fcntl(fd, F_SETFD, FD_CLOEXEC);
		else
			close(fd);
	}
	if (dir != NULL)
		closedir(dir);
}

void
normal_close_others(void)
{
	if (close_range(STDERR_FILENO + 1, ~0u, 0) == -1)
		close_one_by_one(false);
}

static bool
ignored(int sig)
{
	struct sigaction old;

	return sigaction(sig, NULL, &old) == 0 && old.sa_handler == SIG_IGN;
}

/* Only what is ignored is inherited by a program, so only that is reset. */
static void
reset_signals(struct normal *normal)
{
	const struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t all;

	normal->hup_ignored = ignored(SIGHUP);
	for (int sig = 1; sig < NSIG; sig++)
		if (ignored(sig))
			sigaction(sig, &dfl, NULL);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

int
normal_init(struct normal *normal)
{
	if (open_standard() == -1)
		return -1;
	if (close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC) == -1)
		close_one_by_one(true);
	reset_signals(normal);
	return spawn_slots_init();
}
