/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pids.h - did the kernel refuse new processes, for a limit of our control
 * group? Nothing is claimed unless its counter moved (pids.events).
 *
 * pids_begin() looks where the counters stand, on the helper thread and after
 * the ranks have started; what was refused before that is not known. Of a plain
 * ulimit -u there is no counter, and nothing to say.
 */
#ifndef LAUNCHER_HOST_PIDS_H
#define LAUNCHER_HOST_PIDS_H

#include <stdint.h>

#include "base/buf.h"

struct pids {
	int ready; /* atomic: the rest is filled in */
	/* Of our own group, where kernels before 6.11 count, and of the one
	 * whose limit leaves the least room, where later ones do. */
	struct {
		int fd; /* -1: there is none */
		uint64_t known;
	} at[2];
};

void pids_begin(struct pids *pids, const char *root);

/* pids_refused() - how many since pids_begin(), whoever in the group asked. */
uint64_t pids_refused(const struct pids *pids);
void pids_end(struct pids *pids);

/* pids_put() - "the kernel refused 3 new processes or threads: pids.max of
 * cgroup /x is 40". @root: "" outside of tests. */
void pids_put(struct buf *out, uint64_t refused, const char *root);

#endif /* LAUNCHER_HOST_PIDS_H */
