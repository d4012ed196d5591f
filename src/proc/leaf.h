/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaf.h - a control group for each rank, where this user may make groups.
 *
 *   <our group>/xrun-k7m2/rank-0003
 *
 * What runs in a group can leave its session and its parent, but not the group:
 * one write to cgroup.kill of xrun-k7m2 ends all of a job, for good. Made only
 * in a group that was delegated (version 2 of control groups; systemd marks
 * those, see systemd's CGROUP_DELEGATION), or that is the top of a container
 * and ours. Elsewhere there are none, and looking costs one system call.
 *
 * The descriptors may be shared with a process that ends the groups should this
 * one die: nothing here but leaf_open() uses the heap.
 */
#ifndef PROC_LEAF_H
#define PROC_LEAF_H

#include <stdbool.h>
#include <stdint.h>

#define LEAF_JOB_MAX 80
#define LEAF_ID_MAX  48

struct leaves {
	bool on;
	int own;                /* folder of our own group */
	int dir;                /* of the job's */
	char job[LEAF_JOB_MAX]; /* "xrun-k7m2" */
};

/* leaf_look() - could there be a delegated group? A variable, and a name in
 * /sys: systemd tells what it starts of its INVOCATION_ID, and the top of a
 * container has a cgroup.type, which that of a machine has not. */
bool leaf_look(void);

/* leaf_can() - what leaf_open() would find; makes nothing. */
enum leaf_can {
	LEAF_NONE, /* no group of ours to make others in */
	LEAF_MAKE, /* one, of a kernel before 5.14, that has no cgroup.kill */
	LEAF_KILL,
};
enum leaf_can leaf_can(void);

/* leaf_open() - make the job's group in ours, if ours was delegated; else, and
 * if anything fails, @leaves->on stays false. */
void leaf_open(struct leaves *leaves, const char *job);

/* leaf_id() - what tells the job's group from a later one of its name, until
 * the machine is started anew; "" if there is none. */
const char *leaf_id(const struct leaves *leaves, char out[static LEAF_ID_MAX]);

/* leaf_reopen() - the group that another xrun made for @job in @group, the path
 * of cgroup_path(), if its leaf_id() is @id; false if there is none of ours. */
bool leaf_reopen(struct leaves *leaves, const char *group, const char *job,
	const char *id);

/* leaf_make() - a rank's group: a descriptor of its cgroup.procs, for
 * spawn.group; the caller closes it. -1 with errno. */
int leaf_make(const struct leaves *leaves, uint32_t rank);

/* leaf_kills() - how often the kernel's OOM killer struck in a rank's group;
 * CGROUP_NONE if that has no memory controller. */
uint64_t leaf_kills(const struct leaves *leaves, uint32_t rank);

/* leaf_refused() - how many new processes were refused in a rank's group;
 * CGROUP_NONE if that has no pids controller. */
uint64_t leaf_refused(const struct leaves *leaves, uint32_t rank);

/* leaf_kill() - SIGKILL to everything in the job's group. */
void leaf_kill(const struct leaves *leaves);

/* leaf_remove() - take the groups away; false if somebody is in one of them
 * still, and it is to be called again. Then @leaves is closed. */
bool leaf_remove(struct leaves *leaves);

/* leaf_close() - let go, whatever is left. */
void leaf_close(struct leaves *leaves);

#endif /* PROC_LEAF_H */
