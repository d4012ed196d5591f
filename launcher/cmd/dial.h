/* SPDX-License-Identifier: Apache-2.0 */
/* dial.h - a verb's question to a job that runs, or is about to end. */
#ifndef LAUNCHER_CMD_DIAL_H
#define LAUNCHER_CMD_DIAL_H

#include "launcher/cmd/which.h"
#include "launcher/ctl/client.h"

struct cJSON;

/*
 * dial_ask() - call @job, and ask it.
 *
 * @call:   the caller hangs up, whatever came of it
 * @answer: borrows from @call
 * Returns  as ctl_ask(); XR_E_STATE: it has ended, and job->running is false;
 *          XR_E_CLOSED: it runs, but closed the connection; XR_E_NOTFOUND: it
 *          runs, but nobody has listened for a second
 */
enum xr_status dial_ask(struct ctl_call *call, struct which *job,
	const struct control *question, struct control *answer,
	struct xr_error *err);

/*
 * dial_status() - what @job says of itself now: the schema status.json.
 *
 * Asked again if it drops us, having too many callers or being between two
 * attempts. @json: the caller's to delete
 * Returns as dial_ask(); XR_E_PROTO: that is no status
 */
enum xr_status dial_status(struct which *job, struct cJSON **json,
	struct xr_error *err);

/* dial_is_stuck() - returns true if job @id has a control socket, but its supervisor
 * does not answer there within 2 seconds. */
bool dial_is_stuck(const char *id);

/* dial_status_now() - the same, asked once and without patience: NULL if it does not
 * answer. The caller deletes it. */
struct cJSON *dial_status_now(const struct which *job);

/*
 * dial_await_gone() - until @job is gone, which has said that it ends or closed a
 * connection, a moment before; a second at most.
 *
 * Returns false if it runs still, or again; @job->running is new.
 */
bool dial_await_gone(struct which *job);

/* dial_open() - call it, and ask nothing yet. */
enum xr_status dial_open(struct ctl_call *call, struct which *job,
	struct xr_error *err);

#endif /* LAUNCHER_CMD_DIAL_H */
