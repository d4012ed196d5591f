/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vigil.h - that processes end is heard of, by one thread for all queues of a process.
 *
 * It is there from the first call that goes to sleep, as long as there are queues, and
 * sleeps itself: it has a pidfd of each process that is a user of one of them, and the
 * pipe of each. When a process ends it sweeps (user.h), and wakes who sleeps; so does each
 * other process, and whoever is first is enough.
 */
#ifndef WORKER_QUEUE_VIGIL_H
#define WORKER_QUEUE_VIGIL_H

#include "worker/queue/hall.h"

struct vigil;

/*
 * vigil_follow() - all users that @h has now are watched. Who goes to sleep calls it when
 * it has armed, and before it looks: who comes later wakes it up.
 *
 * Returns  XR_OK; XR_E_SYS: no descriptors, or no thread; XR_E_NOMEM
 */
enum xr_status vigil_follow(struct hall *h, struct xr_error *err);

/* vigil_forget() - @h is about to go, under the lock of all halls. If it is the last one
 * the vigil is to be ended, outside of that lock: NULL is fine. */
struct vigil *vigil_forget(struct hall *h, bool is_last);
void vigil_end(struct vigil *v);

/* Around fork(): under the lock of all halls. */
void vigil_before_fork(void);
void vigil_in_parent(void);
void vigil_in_child(void);

#endif /* WORKER_QUEUE_VIGIL_H */
