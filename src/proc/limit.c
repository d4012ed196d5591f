/* SPDX-License-Identifier: Apache-2.0 */
/* limit.c - see limit.h. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "proc/limit.h"

/* The number in a one-line file; UINT64_MAX if there is none ("max"). */
static uint64_t
number_in(const char *path)
{
	char text[64] = { 0 };
	uint64_t value = UINT64_MAX;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd == -1)
		return value;
	if (fd_read_some(fd, text, sizeof(text) - 1) > 0 && text[0] >= '0' &&
		text[0] <= '9')
		value = strtoull(text, NULL, 10);
	fd_close(fd);
	return value;
}

/* Free memory, and what the page cache would give back: on a machine that has
 * run for a while little is free, and much is available. */
static uint64_t
memory_available(void)
{
	static const char name[] = "\nMemAvailable:";
	char text[4096] = "";
	const char *at = NULL;
	int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);

	if (fd != -1 && fd_read_some(fd, text, sizeof(text) - 1) > 0)
		at = strstr(text, name);
	fd_close(fd);
	if (at == NULL)
		return UINT64_MAX;
	return strtoull(at + sizeof(name) - 1, NULL, 10) * 1024;
}

static void
lower(struct limits *l, uint64_t value, const char *by)
{
	if (value < l->processes) {
		l->processes = value;
		l->processes_by = by;
	}
}

static void
raise_files(struct limits *l)
{
	struct rlimit more = l->files;

	l->files_max = more.rlim_cur;
	more.rlim_cur = more.rlim_max;
	if (more.rlim_cur > l->files.rlim_cur &&
		setrlimit(RLIMIT_NOFILE, &more) == 0)
		l->files_max = more.rlim_cur;
}

void
limit_read(struct limits *l)
{
	struct rlimit r;

	*l = (struct limits){ .processes = UINT64_MAX };
	getrlimit(RLIMIT_NOFILE, &l->files);
	raise_files(l);
	if (getrlimit(RLIMIT_NPROC, &r) == 0 && r.rlim_cur != RLIM_INFINITY &&
		geteuid() != 0)
		lower(l, r.rlim_cur, "ulimit -u");
	lower(l, number_in("/proc/sys/kernel/pid_max"), "kernel.pid_max");
	lower(l, number_in("/proc/sys/kernel/threads-max"),
		"kernel.threads-max");
	lower(l, number_in("/sys/fs/cgroup/pids.max"), "cgroup pids.max");
	l->memory = memory_available();
}
