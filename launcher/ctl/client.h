/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - a verb's end of a job's control socket. Blocking, one question at
 * a time.
 */
#ifndef LAUNCHER_CTL_CLIENT_H
#define LAUNCHER_CTL_CLIENT_H

#include "wire/control.h"

#define CTL_PATIENCE (5 * INT64_C(1000000000)) /* ns: a job answers at once */

/* Its id, twice. */
#define CTL_HAS_ENDED "%s has ended\txrun ps %s"

struct ctl_call {
	const char *id; /* borrowed, for words */
	int fd;
	struct buf in;
	size_t at; /* bytes of `in` that are done with */
};

/*
 * ctl_dial() - call job @id.
 *
 * Returns  XR_OK; XR_E_NOTFOUND (no such job has a control socket), XR_E_SYS,
 *          XR_E_CLOSED (it ends, or has no room), XR_E_TIMEOUT, XR_E_PROTO (not
 *          our protocol, or another version of it) with words in @err
 */
enum xr_status ctl_dial(struct ctl_call *call, const char *id,
	struct xr_error *err);
/* ctl_dial_within() - the same; XR_E_TIMEOUT after @ns, not after CTL_PATIENCE. */
enum xr_status ctl_dial_within(struct ctl_call *call, const char *id,
	int64_t ns, struct xr_error *err);
void ctl_hang_up(struct ctl_call *call);

/*
 * ctl_ask() - @question, and the answer to it: at the job's end to "wait", within
 * CTL_PATIENCE to all others.
 *
 * @answer: of the type that @question is answered with; borrows from the call
 *          until the next question
 * Returns  XR_OK; the status of a job that refuses, XR_E_CLOSED (it ends, or
 *          dropped us), XR_E_TIMEOUT, XR_E_SYS, XR_E_PROTO (that is no answer),
 *          with words in @err
 */
enum xr_status ctl_ask(struct ctl_call *call, const struct control *question,
	struct control *answer, struct xr_error *err);

/* ctl_ask_along() - the same, and @fd, which is borrowed, goes with it. */
enum xr_status ctl_ask_along(struct ctl_call *call,
	const struct control *question, int fd, struct control *answer,
	struct xr_error *err);

#endif /* LAUNCHER_CTL_CLIENT_H */
