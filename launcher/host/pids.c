/* SPDX-License-Identifier: Apache-2.0 */
/* pids.c - see pids.h. Which group counts: Documentation/admin-guide/cgroup-v2
 * of the kernel, at pids.events and pids.events.local. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "launcher/host/pids.h"
#include "proc/cgroup.h"

#define EVENTS_MAX 256

static uint64_t
read_counter(int fd)
{
	char text[EVENTS_MAX];
	ssize_t n = fd == -1 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return CGROUP_NONE;
	text[n] = '\0';
	return cgroup_field(text, "max");
}

/* A counter that cannot be read is none. */
static void
look(struct pids *pids, int i, const struct cgroup *group)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/pids.events", group->dir) <
		(int)sizeof(path))
		pids->at[i].fd = open(path, O_RDONLY | O_CLOEXEC);
	pids->at[i].known = read_counter(pids->at[i].fd);
	if (pids->at[i].known != CGROUP_NONE)
		return;
	fd_close(pids->at[i].fd);
	pids->at[i].fd = -1;
}

void
pids_begin(struct pids *pids, const char *root)
{
	struct cgroup_limit limit;
	struct cgroup own;

	pids->at[0].fd = pids->at[1].fd = -1;
	if (cgroup_find(&own, root, "pids")) {
		look(pids, 0, &own);
		cgroup_limit(&limit, &own, "pids.max", "pids.current");
		if (limit.max != CGROUP_NONE &&
			strcmp(limit.of.dir, own.dir) != 0)
			look(pids, 1, &limit.of);
	}
	__atomic_store_n(&pids->ready, 1, __ATOMIC_SEQ_CST);
}

uint64_t
pids_refused(const struct pids *pids)
{
	uint64_t most = 0, now;

	if (!__atomic_load_n(&pids->ready, __ATOMIC_SEQ_CST))
		return 0;
	for (int i = 0; i < 2; i++) {
		now = read_counter(pids->at[i].fd);
		if (now != CGROUP_NONE && now > pids->at[i].known + most)
			most = now - pids->at[i].known;
	}
	return most;
}

void
pids_end(struct pids *pids)
{
	if (!__atomic_load_n(&pids->ready, __ATOMIC_SEQ_CST))
		return;
	for (int i = 0; i < 2; i++) {
		fd_close(pids->at[i].fd);
		pids->at[i].fd = -1;
	}
}

void
pids_put(struct buf *out, uint64_t refused, const char *root)
{
	struct cgroup_limit l;

	buf_fmt(out, "the kernel refused %llu new process%s or thread%s",
		(unsigned long long)refused, refused == 1 ? "" : "es",
		refused == 1 ? "" : "s");
	cgroup_limits(NULL, &l, root);
	if (l.max != CGROUP_NONE)
		buf_fmt(out, ": pids.max of cgroup %s is %llu",
			cgroup_name(&l.of), (unsigned long long)l.max);
}
