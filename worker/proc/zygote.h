/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote.h - the process that makes the others: fork of a small process with one
 * thread, whatever this one has become.
 *
 * It is a child of this process: the program itself as far as its xr_init(), or
 * xrun-worker with a module. An order is a packet on a socket pair: descriptors of
 * standard input, output, error, of the card, and of a socket for the end. The answer
 * is the new process's pid, with a pidfd; on the socket stands, later, how it ended.
 * So whoever waits for any child of the program's meets none of ours but the
 * zygote, and a process is forked where no lock can be held.
 *
 * The zygote watches its parent by a pidfd. When that ends, in whatever way, it ends
 * all that descend from it, whose subreaper it is, and itself; and were it killed,
 * its children die of their PDEATHSIG.
 */
#ifndef WORKER_PROC_ZYGOTE_H
#define WORKER_PROC_ZYGOTE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

#include <xrun/error.h>

#include "worker/proc/given.h"

#define ZYGOTE_VARIABLE "XRUN_ZYGOTE_FD" /* "5:4711", of its socket */
#define CARD_VARIABLE   "XRUN_CARD_FD"   /* of who was executed to run a card */

/* At most with an order: 0, 1, 2, card, place, what is given, life. */
#define ZYGOTE_FDS (6 + GIVEN_MAX)

enum zygote_flags {
	ZYGOTE_STDIO = 7,    /* bits of those that are open */
	ZYGOTE_EXECUTES = 8, /* the child executes the program */
	ZYGOTE_MEETS = 16,   /* there is a place to meet: meet.h */
};

struct zygote_order {
	uint32_t flags; /* enum zygote_flags */
	uint32_t given; /* descriptors: given.h */
	uint64_t mask;  /* of signals: the first 64 */
};

/* Also the first packet of a zygote: it serves. */
struct zygote_answer {
	int32_t pid; /* 0: @sys */
	int32_t sys; /* errno; -1: it has threads */
};

/* What is sent at the end. */
struct zygote_end {
	int32_t code; /* as siginfo_t has both */
	int32_t status;
};

/* What is asked of zygote_start(), and what it gives. */
struct zygote_start {
	const char *module; /* NULL: the program */
	const void
		*of; /* NULL; or who has one that was forked: zygote_fork() */
	bool executes;
	int card;  /* borrowed, as the next */
	int place; /* to meet; -1 */
	const int *give;
	uint32_t give_count; /* GIVEN_MAX at most */
	const sigset_t
		*mask; /* of its signals; NULL: of the calling thread's */

	pid_t pid;
	int pidfd; /* the caller's, as the next */
	int life;  /* a struct zygote_end, or nothing, when it has ended */
};

/*
 * zygote_start() - have one made, by a zygote that is there or is made for it.
 *
 * Returns  XR_OK; XR_E_STATE: no xr_init(); XR_E_NOTFOUND; XR_E_TIMEOUT; XR_E_SYS;
 *          XR_E_NOMEM
 * Thread   any; one after the other.  Blocks: for the zygote.
 */
enum xr_status zygote_start(struct zygote_start *s, struct xr_error *err);

/*
 * zygote_fork() - one that is a copy of this process as it is now, for @of alone, until
 * zygote_end().
 *
 * Returns  XR_OK; XR_E_STATE: this process has threads; XR_E_SYS; XR_E_NOMEM
 */
enum xr_status zygote_fork(const void *of, struct xr_error *err);
void zygote_end(const void *of); /* of one that is not there, too */

/* zygote_end_all() - those of this process, with all that descend from them; waits
 * for that. */
void zygote_end_all(void);

/* zygote_forget() - in a child of fork(): they are its parent's. */
void zygote_forget(void);

#endif /* WORKER_PROC_ZYGOTE_H */
