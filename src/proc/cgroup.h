/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup.h - the control group this process is in: where it is, what it allows.
 *
 * Works for version 2, and for the memory and pids controllers of version 1.
 * Nothing of it belongs on the way to the first rank: two files of /proc are
 * read whole. All takes the root of the file system, "" outside of tests, so
 * that machines can be made of files.
 */
#ifndef PROC_CGROUP_H
#define PROC_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/types.h>

#define CGROUP_DIR_MAX 1024
#define CGROUP_NONE    UINT64_MAX /* no limit, or no number */

struct cgroup {
	char dir[CGROUP_DIR_MAX]; /* of this process, as a path */
	size_t mount;             /* its first so many bytes: the mount point */
	bool v1;
};

/*
 * cgroup_find() - the group that counts for @controller ("memory", "pids"): of
 * version 1 where that has it, else of version 2. NULL: version 2 only.
 *
 * Returns  false if there is none, or it cannot be seen from here
 */
bool cgroup_find(struct cgroup *out, const char *root, const char *controller);

/* cgroup_path() - "/system.slice/x.service": the group of version 2 of a
 * process, 0: this one. The caller frees; NULL if it has none, or is gone. */
char *cgroup_path(pid_t pid);

/* cgroup_name() - as people know it: "/system.slice/x.service". */
const char *cgroup_name(const struct cgroup *cgroup);

/* cgroup_number() - of the one-line file @name in the group; CGROUP_NONE. */
uint64_t cgroup_number(const struct cgroup *cgroup, const char *name);

/* cgroup_field() - the number behind @key in text of lines "key number". */
uint64_t cgroup_field(const char *text, const char *key);

/* The group, this or one above it, that leaves the least room. */
struct cgroup_limit {
	struct cgroup of;
	uint64_t max, used; /* max CGROUP_NONE: there is no limit */
};

/* cgroup_limit() - by the names of the files, such as "pids.max" and
 * "pids.current". */
void cgroup_limit(struct cgroup_limit *out, const struct cgroup *cgroup,
	const char *max, const char *used);

/* cgroup_limits() - the same of memory and processes, each in its version; no
 * limit where this process is in no such group. NULL: not asked for. */
void cgroup_limits(struct cgroup_limit *memory, struct cgroup_limit *pids,
	const char *root);

#endif /* PROC_CGROUP_H */
