/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child.h - deaths in the order in which they happened.
 *
 * All pidfds sit in one inner epoll set, which is one descriptor of the loop.
 * The kernel lists a pidfd there when its process dies, so one read gives the
 * deaths in their order; waitpid(-1) would give them in the order of birth.
 * The caller reaps with child_reap() and closes the pidfd.
 */
#ifndef EVENT_CHILD_H
#define EVENT_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/resource.h>
#include <sys/types.h>

#include "event/loop.h"

struct children;

/* @id: as given to children_add(); called once for each death, in order. */
typedef void child_fn(uint32_t id, void *ctx);

/* Called when all deaths known by now were told: time to judge them. */
typedef void child_after_fn(void *ctx);

struct children *children_open(struct loop *loop, child_fn *fn,
	child_after_fn *after, void *ctx);

/* children_add() - watch @pidfd, right after its process was made. */
bool children_add(struct children *c, int pidfd, uint32_t id);

/* children_remove() - before the pidfd is closed, always: a sibling made in
 * that moment may still hold the file. */
void children_remove(struct children *c, int pidfd);

/* children_turn() - read deaths now rather than in the next turn. */
void children_turn(struct children *c);

/* children_close() - also inside a callback, which is then the last; NULL is
 * fine. */
void children_close(struct children *c);

/*
 * child_reap() - take the status of a dead child, which bears @pid.
 * @status: as waitpid(2) gives it; @usage: its own and its reaped children's
 * Returns true if it was dead.
 */
bool child_reap(int pidfd, pid_t pid, int *status, struct rusage *usage);

#endif /* EVENT_CHILD_H */
