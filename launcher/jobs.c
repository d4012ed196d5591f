/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.c - see jobs.h. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "launcher/jobs.h"
#include "launcher/state.h"

/* A job holds the lock of its folder as long as any process of xrun lives. */
static bool
is_job(const char *dir, bool *running)
{
	char lock[PATH_MAX];
	int fd;

	if (snprintf(lock, sizeof(lock), "%s/lock", dir) >= (int)sizeof(lock))
		return false;
	fd = open(lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd == -1)
		return false;
	*running = flock(fd, LOCK_EX | LOCK_NB) == -1;
	fd_close(fd);
	return true;
}

/* And no link to one: `latest`, or what a person made. */
static bool
is_folder(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

void
jobs_each(const char *root, jobs_fn *fn, void *ctx)
{
	DIR *dir = opendir(root);
	const struct dirent *d;
	char path[PATH_MAX];
	bool running;

	while (dir != NULL && (d = readdir(dir)) != NULL) {
		if (d->d_name[0] == '.' ||
			snprintf(path, sizeof(path), "%s/%s", root,
				d->d_name) >= (int)sizeof(path))
			continue;
		if (is_folder(path) && is_job(path, &running))
			fn(ctx, path, d->d_name, running);
	}
	if (dir != NULL)
		closedir(dir);
}

static void
count_running(void *ctx, const char *dir, const char *id, bool running)
{
	(void)dir;
	(void)id;
	*(uint32_t *)ctx += running;
}

uint32_t
jobs_running(void)
{
	char *root = state_home();
	uint32_t count = 0;

	jobs_each(root, count_running, &count);
	free(root);
	return count;
}
