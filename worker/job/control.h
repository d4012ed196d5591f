/* SPDX-License-Identifier: Apache-2.0 */
/* control.h - the socket on which a rank tells xrun, see launcher/sup/hear.h. */
#ifndef WORKER_JOB_CONTROL_H
#define WORKER_JOB_CONTROL_H

/* job_control() - its descriptor, borrowed; -1: this is no rank, or the program
 * has put something else there. */
int job_control(void);

#endif /* WORKER_JOB_CONTROL_H */
