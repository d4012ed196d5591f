/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_far.h - the same programs where no process has the queue but one elsewhere.
 *
 * With QUEUE_FAR set, which is the address of a store, a process in a space of process
 * ids of its own makes each queue, and is neither writer nor reader of it; with
 * QUEUE_FAR_NET in that network, too. The program and all its children have far
 * handles. To one of XR_ENC_SHARE that process puts a tensor first. Children are executed
 * anew, as no agent outlives a fork.
 */
#ifndef TESTS_PROG_QUEUE_FAR_H
#define TESTS_PROG_QUEUE_FAR_H

#include "tests/prog/queue_rig.h"

/* far_is_on() - is QUEUE_FAR set? */
bool far_is_on(void);

/* far_begin() - in main(): who serves is there, and this process is a member. In a child
 * it runs what rig_fork() was given, and does not return. */
void far_begin(void);

/* far_memory() - the board's, which children have, too. */
void *far_memory(size_t bytes);

struct xr_queue *far_queue(const struct xr_queue_opts *opts);
pid_t far_fork(rig_fn *fn, struct xr_queue *q, uint32_t index);

/* far_server() - whom to stop, or to kill. */
pid_t far_server(void);

#endif /* TESTS_PROG_QUEUE_FAR_H */
