/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oom.c - see oom.h.
 *
 * The kernel counts a kill in the group of the process that is killed before
 * it sends the signal (mm/oom_kill.c): memory.events of version 2, which
 * counts for the groups above it too, memory.oom_control of version 1; and in
 * /proc/vmstat, whosever it was.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "launcher/host/oom.h"

#define GROUP_MAX  1024
#define VMSTAT_MAX (32 * 1024)

static uint64_t
read_counter(const struct oom_counter *c, size_t max)
{
	char text[VMSTAT_MAX];
	ssize_t n = -1;

	if (c->fd != -1)
		n = pread(c->fd, text, max - 1, 0);
	if (n <= 0)
		return CGROUP_NONE;
	text[n] = '\0';
	return cgroup_field(text, "oom_kill");
}

/* /proc gives out its text a page at a time. */
static uint64_t
read_vmstat(const struct oom_counter *c)
{
	char text[VMSTAT_MAX];
	size_t len = 0;
	ssize_t n;

	while (c->fd != -1 && len < sizeof(text) - 1) {
		n = pread(c->fd, text + len, sizeof(text) - 1 - len,
			(off_t)len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	text[len] = '\0';
	return cgroup_field(text, "oom_kill");
}

static int
open_below(const char *dir, const char *name)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >=
		(int)sizeof(path))
		return -1;
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* A counter that cannot be read is none. */
static void
settle(struct oom_counter *c)
{
	if (c->known != CGROUP_NONE)
		return;
	fd_close(c->fd);
	c->fd = -1;
}

void
oom_begin(struct oom *oom, const char *root)
{
	struct cgroup group;

	oom->group.fd = -1;
	if (cgroup_find(&group, root, "memory"))
		oom->group.fd = open_below(group.dir,
			group.v1 ? "memory.oom_control" : "memory.events");
	oom->machine.fd = open_below(root, "proc/vmstat");
	oom->group.known = read_counter(&oom->group, GROUP_MAX);
	oom->machine.known = read_vmstat(&oom->machine);
	settle(&oom->group);
	settle(&oom->machine);
	__atomic_store_n(&oom->ready, 1, __ATOMIC_SEQ_CST);
}

static bool
moved(const struct oom_counter *c, uint64_t now)
{
	return c->fd != -1 && now != CGROUP_NONE && now > c->known;
}

enum oom_kind
oom_unexplained(const struct oom *oom)
{
	if (!__atomic_load_n(&oom->ready, __ATOMIC_SEQ_CST))
		return OOM_NO;
	if (moved(&oom->group, read_counter(&oom->group, GROUP_MAX)))
		return OOM_CGROUP;
	return moved(&oom->machine, read_vmstat(&oom->machine)) ? OOM_MACHINE :
								  OOM_NO;
}

/* A kill of our group is one of the machine's. */
enum oom_kind
oom_killed(struct oom *oom)
{
	enum oom_kind kind = oom_unexplained(oom);

	if (kind == OOM_CGROUP)
		oom->group.known++;
	if (kind != OOM_NO)
		oom->machine.known++;
	return kind;
}

void
oom_end(struct oom *oom)
{
	if (!__atomic_load_n(&oom->ready, __ATOMIC_SEQ_CST))
		return;
	fd_close(oom->group.fd);
	fd_close(oom->machine.fd);
	oom->group.fd = oom->machine.fd = -1;
}

const char *
oom_kind_name(enum oom_kind kind)
{
	static const char *const names[] = {
		[OOM_CGROUP] = "cgroup",
		[OOM_MACHINE] = "machine",
	};

	return kind == OOM_NO ? NULL : names[kind];
}

void
oom_put_size(struct buf *out, uint64_t bytes)
{
	double mib = (double)bytes / (1 << 20);

	if (mib >= 1024)
		buf_fmt(out, "%.1f GiB", mib / 1024);
	else
		buf_fmt(out, mib < 9.95 ? "%.1f MiB" : "%.0f MiB", mib);
}

/* A limit that nothing ever came near did not kill anybody. */
static bool
was_reached(uint64_t max, uint64_t peak)
{
	return peak == CGROUP_NONE || peak >= max - max / 8;
}

void
oom_put(struct buf *out, enum oom_kind kind, const char *root)
{
	uint64_t peak = CGROUP_NONE;
	struct cgroup_limit l;

	if (kind == OOM_MACHINE)
		buf_put_text(out,
			"the kernel's OOM killer was active meanwhile");
	if (kind != OOM_CGROUP)
		return;
	cgroup_limits(&l, NULL, root);
	if (l.max != CGROUP_NONE)
		peak = cgroup_number(&l.of,
			l.of.v1 ? "memory.max_usage_in_bytes" : "memory.peak");
	buf_put_text(out, "out of memory: ");
	if (l.max == CGROUP_NONE || !was_reached(l.max, peak)) {
		buf_put_text(out, "the machine has no more");
		return;
	}
	buf_fmt(out, "the limit of cgroup %s is ", cgroup_name(&l.of));
	oom_put_size(out, l.max);
	if (peak == CGROUP_NONE)
		return;
	buf_put_text(out, ", its peak ");
	oom_put_size(out, peak);
}
