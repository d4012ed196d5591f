/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crate.h - memory of items that are too long for a cell: blocks of a lane, or a lot.
 *
 * All blocks of an item have its word; each names the next in `next`. A lot is a part of
 * the file that is read and written, and never mapped, so that its size costs nobody
 * anything; what an item took there is given back to the system with it.
 */
#ifndef WORKER_QUEUE_CRATE_H
#define WORKER_QUEUE_CRATE_H

#include "worker/queue/hall.h"

struct crate {
	uint64_t owner; /* 0: none is needed */
	uint32_t first; /* a block, or HALL_BLOCKS and a lot */
	uint64_t len;
};

/* What is packed. */
struct crate_load {
	const struct xr_part *parts; /* [count] */
	size_t count;
	size_t len; /* of them together */
};

/*
 * crate_pack() - @load into memory of the lane's that is marked as @who's.
 *
 * Returns  XR_OK; XR_E_AGAIN: there is no room now; XR_E_RANGE: there never is;
 *          XR_E_SYS; XR_E_PROTO: somebody writes there
 */
enum xr_status crate_pack(struct hall *h, struct lane *lane, uint32_t who,
	const struct crate_load *load, struct crate *crate);

/* crate_is_whole() - can it have so many bytes? */
bool crate_is_whole(const struct hall *h, const struct crate *crate);

/* crate_unpack() - @crate->len bytes to @out; XR_E_PROTO: what stands there leads
 * nowhere. */
enum xr_status crate_unpack(struct hall *h, const struct lane *lane,
	const struct crate *crate, void *out);

/* crate_free() - of an item that nobody else may free. */
void crate_free(struct hall *h, struct lane *lane, const struct crate *crate);

/* crate_purge() - whatever of @lane has the word @owner; it may be done by several at a
 * time, and late. */
void crate_purge(struct hall *h, struct lane *lane, uint64_t owner);

#endif /* WORKER_QUEUE_CRATE_H */
