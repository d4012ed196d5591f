/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - how many ranks, which of them here, and what each may use.
 *
 * Pure: options, environment and devices go in, a struct plan comes out, and
 * nothing is asked of the machine. The plan owns copies of everything, so it
 * may outlive what it was made from, except the host name.
 *
 * Ranks are numbered in blocks: node k has first..first+local_size-1.
 *
 * Devices are dealt like cards, one round after the other: local rank r has
 * device r % count first; while devices are left over, r also gets r + n,
 * r + 2n, ... of n ranks. So no device is idle, a single rank has them all,
 * and with more ranks than devices ranks share. (Where a process can use only
 * so many, a deal ends there and the rest of the devices is not used.) Ranks
 * with equal devices form a deal; local rank r is of deal r % deals. Under a
 * worker list each rank is a deal, since each is named after its ordinal.
 */
#ifndef PLACE_PLAN_H
#define PLACE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/plugin.h>

#include "place/worker_list.h"

#define PLAN_RANKS_MAX 10000000 /* keeps all products within 32 bits */

/* How the number of ranks came about. */
enum plan_reason {
	PLAN_DEFAULT,      /* nothing was said, nothing was found: 1 */
	PLAN_GIVEN,        /* -n */
	PLAN_WORKER_LIST,  /* devices of a host of the XRT worker list */
	PLAN_ACCELERATORS, /* one a device */
};

/* The devices of some ranks, neighbours in plan.devices. */
struct plan_deal {
	const struct xr_device *devices; /* count of them; borrowed */
	uint32_t count;
	char *text; /* "cuda:3", "cuda:0,cuda:2", "tpu:11"; "cpu" */
	char *ids;  /* "3", "0,2"; "" */
};

struct plan_facts {
	int64_t ranks;       /* of one node; 0: not given */
	uint32_t parts;      /* programs they are of; 0 counts as 1 */
	bool any_ranks;      /* lift the 1-or-D rule of worker lists */
	uint32_t node;       /* of this machine, when no worker list says it */
	uint32_t nodes;      /* 0 counts as 1 */
	const char *host;    /* the address other machines reach; borrowed */
	const char *devices; /* --devices: "auto" or NULL, "none", or a list */
	const struct xr_device *found; /* accelerators, visible ones only */
	uint32_t found_count;
	uint32_t most;     /* devices a rank can use; 0: any number */
	char *const *vars; /* the environment xrun was started in */
};

struct plan {
	uint32_t size;       /* ranks of the job */
	uint32_t local_size; /* ranks here */
	uint32_t first;      /* rank of local rank 0 */
	uint32_t node, nodes;
	const char *host;
	enum plan_reason reason;

	struct xr_device *devices; /* chosen, in the order of the deals */
	uint32_t device_count;
	bool devices_none; /* --devices none: ranks are to see none */
	struct plan_deal *deals;
	uint32_t deal_count; /* at least 1 */

	struct worker_env workers; /* borrows text from plan_facts.vars */
};

/*
 * plan_make() - decide.
 *
 * Returns  XR_OK; XR_E_INVAL (1-or-D broken, malformed variable or list),
 *          XR_E_RANGE (too many ranks, no such device), XR_E_EXISTS. A tab in
 *          @err's text parts what is wrong from what to try.
 */
enum xr_status plan_make(struct plan *plan, const struct plan_facts *facts,
	struct xr_error *err);
void plan_fini(struct plan *plan);

/* plan_deal() - what local rank @local_rank may use; never NULL. */
const struct plan_deal *plan_deal(const struct plan *plan, uint32_t local_rank);

/* plan_by_list() - are devices named after the ordinals of a worker list,
 * "tpu:11", and not as this machine's platform names them? */
bool plan_by_list(const struct plan *plan);

/* plan_reason_text() - "given", "worker list", "accelerators", "default". */
const char *plan_reason_text(enum plan_reason reason);

#endif /* PLACE_PLAN_H */
