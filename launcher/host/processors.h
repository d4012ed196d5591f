/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processors.h - the processors of this machine, shared out: --bind.
 *
 * auto binds programs that load libxrun, whose calls wait for each other in
 * microseconds; all others stay where the kernel puts them, and nothing is read
 * for them. What is bound unasked, or by "core", is leased: an abstract socket
 * named after each CPU stands as long as a process of this xrun lives, so that
 * two jobs of the machine do not take the same one. (The kernel takes it away
 * with its holder, whatever ends that. Containers with a network of their own
 * do not see each other's.) A list that was given is what was wanted: no lease.
 */
#ifndef LAUNCHER_HOST_PROCESSORS_H
#define LAUNCHER_HOST_PROCESSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "place/bind.h"

struct processors {
	struct bind bind;
	bool unasked; /* by auto */
	bool taken;   /* other jobs have all: auto binds nothing, core shares */
	int *leases;
	uint32_t lease_count;
};

/* processors_wanted() - does @how ask for anything? @gains: what is to be
 * bound by "auto". */
bool processors_wanted(const char *how, bool gains);

/*
 * processors_bind() - choose, and lease.
 *
 * @how:    of --bind: "auto", "none", "core" or a list
 * @leases: descriptors that may be spent on them
 * Returns  XR_OK; XR_E_INVAL, XR_E_RANGE for a list that cannot be had
 */
enum xr_status processors_bind(struct processors *p, const char *how,
	uint32_t ranks, uint32_t leases, struct xr_error *err);
void processors_fini(struct processors *p);

/* processors_count() - that this process may run on; at least 1. */
uint32_t processors_count(void);

#endif /* LAUNCHER_HOST_PROCESSORS_H */
