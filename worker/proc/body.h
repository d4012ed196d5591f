/* SPDX-License-Identifier: Apache-2.0 */
/*
 * body.h - the life of a process that runs a function: from the fork or exec that
 * made it, to its exit code.
 */
#ifndef WORKER_PROC_BODY_H
#define WORKER_PROC_BODY_H

#include <stdbool.h>

#include <sys/types.h>

#include "worker/proc/card.h"

/* body_bind() - this process ends when @parent does, which is its parent and has one
 * thread; it ends at once if it has already. */
void body_bind(pid_t parent);

/*
 * body_run() - run what @card says, and end.
 *
 * @fd:     of the card; reports go there
 * @executed: it has no ancestor's stdio, or other things that are ended at exit
 */
void body_run(const struct card *card, int fd, bool executed)
	__attribute__((noreturn));

#endif /* WORKER_PROC_BODY_H */
