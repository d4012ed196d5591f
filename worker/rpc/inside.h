/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside.h - which threads are in calls of the library, so that what they use can
 * be taken away when none is.
 *
 * To come and to go is a store to memory of the thread's own; who waits for all to
 * be gone pays for the rest, by membarrier(2). Where the kernel has none, coming
 * is a full fence.
 */
#ifndef WORKER_RPC_INSIDE_H
#define WORKER_RPC_INSIDE_H

#include <xrun/error.h>

/* inside_open() - before the first that comes. */
void inside_open(void);

/* inside_enter(), inside_leave() - they nest. What is read between them, after the
 * first, is not taken away. */
void inside_enter(void);
void inside_leave(void);

/* inside_order() - what was stored before it is seen by each() of
 * inside_await_empty(), or what stands behind it sees what whoever called that had
 * stored. */
void inside_order(void);

/* inside_await_empty() - until all that came have gone; @each is called before each
 * look, to make them go. Who comes from now on must find out and go at once. The
 * calling thread may be inside itself, and is not waited for. */
void inside_await_empty(void (*each)(void *ctx), void *ctx);

/* inside_close() - all have gone, and none comes until inside_open(). */
void inside_close(void);

/* inside_not_forked() - XR_E_STATE: this is the child of a fork() of who was open,
 * and nothing of the parent's belongs to it. Cheap. */
enum xr_status inside_not_forked(struct xr_error *err);

#endif /* WORKER_RPC_INSIDE_H */
