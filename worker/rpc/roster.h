/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roster.h - how the ranks of a job on one machine come together for the first time:
 * in its segment, without a word to the store.
 *
 * Each writes a card, and counts itself; the last one judges, and all go on. What this
 * saves are six questions of each rank to the supervisor, which answers one after the
 * other: with 64 ranks most of the time until all are there.
 *
 * A rank that has no segment, as a wrapper has closed it, can only be met in the store.
 * It says so there, under one key; and of those in the segment the first one watches
 * that key, and sends all to the store. Who says something first there, the last one
 * or such a rank, is right.
 *
 * What others write to the segment is copied before it is read.
 */
#ifndef WORKER_RPC_ROSTER_H
#define WORKER_RPC_ROSTER_H

#include <stdbool.h>

#include "worker/rpc/join.h"

/* roster_can() - is that a way for this rank, as far as it can know? */
bool roster_can(const struct join *j);

/* roster_secret() - the job's own. */
void roster_secret(const struct join *j, uint8_t out[JOIN_SECRET]);

/* roster_meet() - this member is @info, or, an ERROR, cannot be one; what all told, a
 * LIST by rank; @judge is asked on one of them, with @j.
 *
 * Returns  XR_OK; XR_E_STALE: it is to be done by the store, by all; else as
 *          join_meet(). */
enum xr_status roster_meet(const struct join *j, struct xr_value *info,
	join_judge_fn *judge, struct xr_value **infos, struct xr_error *err);

/* roster_ready() - until all have called it. */
enum xr_status roster_ready(const struct join *j, struct xr_error *err);

/* roster_decline() - of one that goes by the store where others may be in the segment.
 * XR_E_EXISTS: they are done. */
enum xr_status roster_decline(const struct join *j, struct xr_error *err);

#endif /* WORKER_RPC_ROSTER_H */
