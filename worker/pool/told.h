/* SPDX-License-Identifier: Apache-2.0 */
/*
 * told.h - what a worker that is a process is told when it starts.
 *
 * The argument of its function is a LIST, in the order of enum told; its descriptors are
 * in the order of enum told_fd.
 */
#ifndef WORKER_POOL_TOLD_H
#define WORKER_POOL_TOLD_H

#define TOLD_FUNCTION "xr.pool.worker" /* the process's, as xrun/proc.h */

enum told {
	TOLD_LIFE,
	TOLD_FLAGS, /* enum told_flags */
	TOLD_MAX_TASKS,
	TOLD_NAME,
	TOLD_INIT,      /* TEXT; or NIL */
	TOLD_INIT_ARGS, /* LIST */
	TOLD_CONTEXT,
	TOLD_COUNT,
};

enum told_flags {
	TOLD_CONTEXTS = 1, /* functions take it */
	TOLD_ALONE = 2,    /* the queue of tasks is this worker's */
	TOLD_SHARES = 4,   /* values go as XR_ENC_SHARE */
};

enum told_fd {
	TOLD_LEDGER,
	TOLD_BOOK,
	TOLD_IN, /* two, as xr_queue_fds() */
	TOLD_OUT = TOLD_IN + 2,
	TOLD_FDS = TOLD_OUT + 2,
};

#endif /* WORKER_POOL_TOLD_H */
