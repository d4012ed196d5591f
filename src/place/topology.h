/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology.h - which processors there are, and which of them share a core.
 *
 * Read from sysfs, under a root that tests replace by a machine made up of
 * files. Only CPUs that are online and in the mask that the caller gives count:
 * what taskset(1), a batch system or a cpuset took away is not there. Where
 * sysfs is missing each CPU is a core of its own.
 *
 * A core is told by its thread_siblings_list, not by core_id: the latter is
 * used again by each socket.
 */
#ifndef PLACE_TOPOLOGY_H
#define PLACE_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ranks.h"

#define TOPOLOGY_CPUS 8192 /* the most that Linux can be built for */

struct topology_cpu {
	uint32_t cpu; /* the kernel's number */
	uint32_t package, node;
	uint32_t core; /* 0..cores-1, in the order of the table */
};

/* By package, node, core, and CPU: neighbours in the table are neighbours in
 * the machine. */
struct topology {
	struct topology_cpu *cpus;
	uint32_t count;
	uint32_t cores;
};

/*
 * topology_read() - what is below @root, "/sys" outside of tests.
 *
 * @allowed: CPUs that may be used, as sched_getaffinity(2) has them
 * Launcher only, before the first rank: memory is there. Blocks for sysfs:
 * three files a core and one a node.
 */
void topology_read(struct topology *t, const char *root,
	const struct ranks *allowed);
void topology_fini(struct topology *t);

/*
 * cpulist_next() - the next piece of a list such as "0-3,8\n".
 *
 * @at: where the list goes on; NULL behind its last piece
 * Returns false, and range is not set, where no piece stands: text that is no
 * list, or one that runs backwards or beyond TOPOLOGY_CPUS.
 */
bool cpulist_next(const char **at, uint32_t range[2]);

/* cpulist_read() - add the CPUs of a list to @set, which has TOPOLOGY_CPUS;
 * false if it is damaged, and @set has what stood before. An empty line is an
 * empty list. */
bool cpulist_read(const char *text, struct ranks *set);

#endif /* PLACE_TOPOLOGY_H */
