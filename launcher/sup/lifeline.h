/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lifeline.h - who began to die first.
 *
 * A rank's pidfd fires when the kernel has torn it down, and its peers may
 * have heard of its death, and died of it, before that: its sockets close
 * earlier. So each rank also holds the write end of a pipe at its highest
 * descriptor. The kernel closes descriptors from the highest down (task work
 * is run last in, first out), hence this one before any socket, and lists the
 * read ends in that order. Nobody waits for them: they are looked at when a
 * rank has failed, and cost no wake-up.
 *
 * A rank that closes it, or leaves it to a child, merely gives no evidence.
 */
#ifndef LAUNCHER_SUP_LIFELINE_H
#define LAUNCHER_SUP_LIFELINE_H

#include <stdbool.h>
#include <stdint.h>

#define LIFELINE_FD 1023 /* in the rank; lower where the limit is */

struct lifelines;

/* lifelines_open() - for @ranks; NULL if the kernel refuses. */
struct lifelines *lifelines_open(uint32_t ranks);

/* lifelines_add() - make the pipe of @rank; gives the end the rank is to hold
 * (the caller closes its copy), or -1. A pipe of an earlier try is dropped. */
int lifelines_add(struct lifelines *l, uint32_t rank);

/* lifelines_order() - 1 for the rank whose end closed first, and so on; 0
 * where it is open. @order: [ranks] */
void lifelines_order(struct lifelines *l, uint32_t *order);

/* lifelines_drop() - the rank is gone, and no question about it is open. */
void lifelines_drop(struct lifelines *l, uint32_t rank);

#endif /* LAUNCHER_SUP_LIFELINE_H */
