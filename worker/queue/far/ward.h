/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ward.h - handles of this process that others have from afar.
 *
 * Each far handle (far.h) has a handle of its own here, which comes and goes with it,
 * and so is a user of the queue as processes of this machine are: it has its claims,
 * its roles, and an end of the pipe. What can be done at once is, by the thread that
 * reads; what has to wait is done by one of the porters (porter.h). When its
 * process is gone, so is the handle, and what it held goes where what the dead held goes.
 */
#ifndef WORKER_QUEUE_FAR_WARD_H
#define WORKER_QUEUE_FAR_WARD_H

#include <xrun/error.h>

/* ward_serve() - others may have queues of this process, if it has an agent. @worker
 * receives its number; -1: it has none. Again: nothing. */
enum xr_status ward_serve(int *worker, struct xr_error *err);

#endif /* WORKER_QUEUE_FAR_WARD_H */
