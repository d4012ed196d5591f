/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.h - the one thread that looks after all pools of a process.
 *
 * It sleeps until a worker has ended, which it replaces, or a result has come that nobody
 * waits for, or who was to end is late. It is there as long as there is a pool of
 * processes.
 */
#ifndef WORKER_POOL_KEEPER_H
#define WORKER_POOL_KEEPER_H

#include "worker/pool/pool.h"

/* keeper_come() - @pool is looked after from now on. keeper_leave() - no more: it is not
 * being looked at when this returns. */
enum xr_status keeper_come(struct xr_pool *pool, struct xr_error *err);
void keeper_leave(struct xr_pool *pool);

/* keeper_watch() - tell @pool once when there are results (take_for_keeper()). */
void keeper_watch(struct xr_pool *pool);

/* keeper_await() - tell @pool when the worker with this descriptor has ended
 * (staff_look()); until keeper_forget(). */
enum xr_status keeper_await(struct xr_pool *pool, int fd, struct xr_error *err);
void keeper_forget(int fd);

/* keeper_stir() - have it look at all again: something is due. */
void keeper_stir(void);

/* keeper_is_us() - is this that thread? */
bool keeper_is_us(void);

/* keeper_forks() - how often this process, or those before it, have forked. */
uint32_t keeper_forks(void);

#endif /* WORKER_POOL_KEEPER_H */
