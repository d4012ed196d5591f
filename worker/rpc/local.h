/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local.h - the machine's shared memory, as the agent uses it: the bell and how to
 * wait, memory that can be handed over, and that others learn of our death.
 */
#ifndef WORKER_RPC_LOCAL_H
#define WORKER_RPC_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/transport.h>

#include "worker/rpc/lead.h"

struct peer;

/* local_open() - find it, once; without one all of this does nothing, and the
 * carrier "shm" is not to be had. What values have lies there from now on, so that
 * it can be lent. */
void local_open(void);

/* local_retire_begin() - memory that is free for a while goes back to the system from
 * now on; local_retire_end() - all of it, at once: nobody calls local_retire(). */
void local_retire_begin(void);
void local_retire_end(void);

/* local_retire() - gives some back; when it is to be called again, or INT64_MAX. */
int64_t local_retire(int64_t now);

/* local_place() - the bell, and what goes with it, into @place. */
void local_place(struct lead_place *place);

/* local_live() - the calling thread's end is this process's end for others; it
 * ends after local_live_end(). */
void local_live(void);
void local_live_end(void);

/* local_met() - @p was connected, or accepted: where it waits. */
void local_met(struct peer *p);

struct segment_bell;
struct wait_env;

/* Of a process of this machine: its bell, and its word for who awaits answers. They
 * stay where they are for as long as this process. */
struct local_bell {
	struct segment_bell *bell;
	const _Atomic uint32_t *awaits;
	const _Atomic uint32_t *cpu; /* where it waits */
};

/* local_bell_of() - false: @p is not on this machine, or not connected. */
bool local_bell_of(struct peer *p, struct local_bell *bell);

/* local_shares() - does @p, which is on this machine, see what is written to @data, which
 * it has lent? It is memory of its own, and no copy. */
bool local_shares(struct peer *p, const void *data, size_t len);

/* local_can_read() - does the system let this process read all memory of @p's, which is on
 * this machine? A system call. */
bool local_can_read(struct peer *p);

/* local_read() - @len bytes of it, where they are at @from there. False: it has ended, or
 * has no such memory. */
bool local_read(struct peer *p, uint64_t from, void *to, size_t len);

/* local_can_lend() - is it of this process, and where others of this machine see it? */
bool local_can_lend(const void *data, size_t len);

/* local_cpus() - how many processors the job may keep busy, as counted last; 1 or
 * more. */
uint32_t local_cpus(void);

/* local_env() - how waits of this process wait; NULL: it has no shared memory. */
struct wait_env *local_env(void);

struct segment_figures;

/* local_figures() - of this process's slot, which it has as @gen; NULL: there is
 * none. */
struct segment_figures *local_figures(uint32_t *gen);

/* local_is_of_job() - is this process's slot one of the job's; is it a rank's? */
bool local_is_of_job(bool *rank);

struct segment_map;

/* local_job_map() - of the segment of the job, whose ranks are all on this machine and
 * @size, if this process has a rank's slot of it: @slot is the rank. Else NULL. */
const struct segment_map *local_job_map(uint32_t size, uint32_t *slot);

/* local_tick_rate() - ticks a millisecond, as tick.h. */
uint32_t local_tick_rate(void);

#endif /* WORKER_RPC_LOCAL_H */
