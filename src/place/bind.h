/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind.h - which processors each rank may run on. Pure: a topology goes in.
 *
 * Cores stand in the order of the machine: package, node, core. N ranks on C
 * cores: as long as there are as many, rank r begins at core r * C / N, so that
 * they spread over all caches and memory channels, and neighbours by rank stay
 * neighbours in the machine (with N = C that is core r). Further ranks begin
 * anew: round robin. A rank has all the hardware threads of its core that may
 * be used. Cores that others hold are passed over.
 *
 * A list of CPUs is cut into equal shares instead, one a rank, in the order in
 * which it was written; with more ranks than CPUs each has one, round robin.
 *
 * The launcher makes one before the first rank and keeps it.
 */
#ifndef PLACE_BIND_H
#define PLACE_BIND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ranks.h"
#include "place/topology.h"

struct bind_set {
	struct ranks cpus; /* its words are a mask for sched_setaffinity(2) */
	char *text;        /* "0-3,8" */
	uint32_t cores;    /* that these CPUs are of */
};

/* Local rank r has sets[r % count]; without sets, ranks are not bound. */
struct bind {
	struct bind_set *sets;
	uint32_t count;
};

/* May this CPU be had? Asked once a CPU, and told so that it is taken. */
typedef bool bind_take_fn(void *arg, uint32_t cpu);

/*
 * bind_cores() - one core a rank.
 *
 * @take: NULL: all may be had. Of a core of which not every CPU may be had,
 *        those that were taken are not given back
 * Returns how many cores were had; with 0 nothing is bound
 */
uint32_t bind_cores(struct bind *bind, const struct topology *topology,
	uint32_t ranks, bind_take_fn *take, void *arg);

/*
 * bind_list() - shares of "0-3,8".
 *
 * Returns  XR_OK; XR_E_INVAL (no list, a CPU named twice) or XR_E_RANGE (a CPU
 *          that is not in @topology), with words for --bind in @err
 */
enum xr_status bind_list(struct bind *bind, const struct topology *topology,
	const char *text, uint32_t ranks, struct xr_error *err);

/* bind_of() - of a local rank; NULL if it is not bound. */
const struct bind_set *bind_of(const struct bind *bind, uint32_t local_rank);

void bind_fini(struct bind *bind);

#endif /* PLACE_BIND_H */
