/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join.h - how a static group comes together, over the rendezvous store.
 *
 * Each member writes down who it is and where it can be reached; rank 0 reads all,
 * judges, and writes down what came of it, for everybody: the members, or why
 * there is no group. Then all wait until each has read it, since a peer must be
 * known before it calls.
 *
 * Each time that a process joins, it does so under other keys.
 */
#ifndef WORKER_RPC_JOIN_H
#define WORKER_RPC_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/error.h>
#include <xrun/store.h>
#include <xrun/value.h>

#define JOIN_SECRET 32

struct join {
	struct xr_store *store;
	uint32_t cycle; /* how often this process joined before */
	uint32_t rank, size;
	int64_t deadline;
};

/* join_secret() - what all of the group know, and nobody else who cannot reach the
 * store: rank 0 makes it up. */
enum xr_status join_secret(const struct join *j, uint8_t out[JOIN_SECRET],
	struct xr_error *err);

/* join_new_secret() - one that nobody knows. */
enum xr_status join_new_secret(uint8_t out[JOIN_SECRET], struct xr_error *err);

/* join_kind() - all groups of a store are static, or none is; the first says.
 * XR_E_CONFLICT. */
enum xr_status join_kind(struct xr_store *store, bool is_static,
	struct xr_error *err);

/* join_tell() - this member is @info, of member.h; or, an ERROR,
 * cannot be one. XR_E_EXISTS: somebody else has this rank. */
enum xr_status join_tell(const struct join *j, struct xr_value *info,
	struct xr_error *err);

/* join_check() - of what @rank told: XR_E_PEER_LOST: that it cannot be a member, and
 * why. */
enum xr_status join_check(uint32_t rank, const struct xr_value *info,
	struct xr_error *err);

/* join_late_text() - that some did not come in time, and which, as far as there is room:
 * of the ranks from @first on those of whom @is_there says no. */
typedef bool join_there_fn(const struct join *j, uint32_t rank);
void join_late_text(const struct join *j, uint32_t first,
	join_there_fn *is_there, char *text, size_t cap);

/* Judges what all told: XR_OK, or why there is no group. @infos: a LIST by rank. */
typedef enum xr_status join_judge_fn(const struct xr_value *infos, void *ctx,
	struct xr_error *err);

/* join_meet() - what all told, a LIST by rank; @judge is asked on rank 0.
 *
 * Returns  XR_OK; the verdict's error; XR_E_TIMEOUT: who did not come is named on
 *          rank 0, and by it to all who still wait; as xr_store_get() */
enum xr_status join_meet(const struct join *j, join_judge_fn *judge, void *ctx,
	struct xr_value **infos, struct xr_error *err);

/* join_give_up() - on rank 0, instead: it failed itself, and nobody is to wait for its
 * verdict. */
void join_give_up(const struct join *j, enum xr_status status,
	const struct xr_error *err);

/* join_ready() - until all have called it. */
enum xr_status join_ready(const struct join *j, struct xr_error *err);

#endif /* WORKER_RPC_JOIN_H */
