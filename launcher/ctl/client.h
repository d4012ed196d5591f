/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - a verb's end of a job's control socket. Blocking, one question at
 * a time.
 */
#ifndef LAUNCHER_CTL_CLIENT_H
#define LAUNCHER_CTL_CLIENT_H

#include "wire/control.h"

#define CTL_PATIENCE (5 * INT64_C(1000000000)) /* ns: a job answers at once */
#define CTL_FOREVER  (-1)

struct ctl_call {
	int fd;
	struct buf in;
	size_t at; /* bytes of `in` that are done with */
};

/*
 * ctl_dial() - call job @id.
 *
 * Returns  XR_OK; XR_E_NOTFOUND (no such job has a control socket), XR_E_SYS,
 *          XR_E_TIMEOUT, XR_E_PROTO with words in @err
 */
enum xr_status ctl_dial(struct ctl_call *call, const char *id,
	struct xr_error *err);
void ctl_hang_up(struct ctl_call *call);

/*
 * ctl_ask() - @question, and the answer to it.
 *
 * @answer:  borrows from the call until the next question
 * @patience: ns, or CTL_FOREVER
 * Returns   XR_OK; the status of a job that refuses, XR_E_CLOSED (the job is
 *           over), XR_E_TIMEOUT, XR_E_SYS, XR_E_PROTO, with words in @err
 */
enum xr_status ctl_ask(struct ctl_call *call, const struct control *question,
	struct control *answer, int64_t patience, struct xr_error *err);

#endif /* LAUNCHER_CTL_CLIENT_H */
