/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oom.h - was it the kernel, for want of memory? Nothing is claimed unless a
 * counter of the kernel moved.
 *
 * oom_begin() looks where the counters stand, on the helper thread and after
 * the ranks have started, so that it is on nobody's way. What died before that
 * is not explained. oom_killed() is asked on the loop for each process that
 * SIGKILL ended and xrun did not send it: two short reads of files that are
 * open. Each kill explains one process.
 */
#ifndef LAUNCHER_HOST_OOM_H
#define LAUNCHER_HOST_OOM_H

#include <stdint.h>

#include "base/buf.h"
#include "proc/cgroup.h"

enum oom_kind {
	OOM_NO,
	OOM_CGROUP,  /* one of our control group was killed */
	OOM_MACHINE, /* one of the machine was, whose is not known */
};

/* A counter, from open to close of a descriptor. */
struct oom_counter {
	int fd;         /* -1: there is none */
	uint64_t known; /* its value, less kills that are not explained yet */
};

struct oom {
	int ready; /* atomic: the rest is filled in, and the loop's */
	struct oom_counter group, machine;
};

void oom_begin(struct oom *oom, const char *root);
enum oom_kind oom_killed(struct oom *oom);

/* oom_unexplained() - is there a kill that no oom_killed() was told of? It met
 * a process that is not ours to reap, such as a rank's child. */
enum oom_kind oom_unexplained(const struct oom *oom);
void oom_end(struct oom *oom);

/* oom_kind_name() - "cgroup", "machine"; NULL for OOM_NO. */
const char *oom_kind_name(enum oom_kind kind);

/* oom_put() - "out of memory: the limit of cgroup /x is 20 MiB, its peak 20
 * MiB": what is known now. @root: "" outside of tests. */
void oom_put(struct buf *out, enum oom_kind kind, const char *root);

/* oom_put_size() - "20 MiB", "1.5 GiB". */
void oom_put_size(struct buf *out, uint64_t bytes);

#endif /* LAUNCHER_HOST_OOM_H */
