/* SPDX-License-Identifier: Apache-2.0 */
/* dial.c - see dial.h. */
#include <cjson/cJSON.h>
#include <time.h>

#include "base/clock.h"
#include "base/status.h"
#include "launcher/cmd/dial.h"

#define TRIES      100
#define GONE_TRIES 500
#define STUCK_NS   (2 * NS_PER_S)
#define ASK_TRIES  3 /* a job with too many callers drops some */

static void
nap(int64_t ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

/* Nobody can be told anything any more. */
static enum xr_status
refuse_ended(const struct which *job, struct xr_error *err)
{
	return job->running ?
		XR_OK :
		fail(err, XR_E_STATE, CTL_HAS_ENDED, job->id, job->id);
}

/* A job that runs has no socket in its first 20 ms, and while it ends: it has
 * one soon, or it has ended. No event tells of both. */
enum xr_status
dial_open(struct ctl_call *call, struct which *job, struct xr_error *err)
{
	enum xr_status status = refuse_ended(job, err);
	int tries = 0;

	*call = (struct ctl_call){ .fd = -1 };
	while (status == XR_OK) {
		status = ctl_dial(call, job->id, err);
		if ((status != XR_E_NOTFOUND && status != XR_E_CLOSED) ||
			tries++ == TRIES)
			break;
		nap(10 * NS_PER_MS);
		which_runs(job);
		status = refuse_ended(job, err);
	}
	return status;
}

bool
dial_await_gone(struct which *job)
{
	for (int tries = 0; which_runs(job) && tries < GONE_TRIES; tries++)
		nap(2 * NS_PER_MS);
	return !job->running;
}

/* A job that ends closes its connections a little before it is gone. One that
 * has too many drops some. */
static enum xr_status
explain_closed(struct which *job, struct xr_error *err)
{
	if (dial_await_gone(job))
		return refuse_ended(job, err);
	return fail(err, XR_E_CLOSED,
		"%s runs, but closed the connection without an answer",
		job->id);
}

enum xr_status
dial_ask(struct ctl_call *call, struct which *job,
	const struct control *question, struct control *answer,
	struct xr_error *err)
{
	enum xr_status status = dial_open(call, job, err);

	if (status == XR_OK)
		status = ctl_ask(call, question, answer, err);
	return status == XR_E_CLOSED ? explain_closed(job, err) : status;
}

/* The question on a connection, which is closed then. */
static enum xr_status
ask_status(struct ctl_call *call, const struct which *job, cJSON **json,
	struct xr_error *err)
{
	const struct control m = control_new(CONTROL_STATUS, CONTROL_NONE);
	struct control answer;
	enum xr_status status = ctl_ask(call, &m, &answer, err);
	cJSON *said = NULL;

	if (status == XR_OK)
		said = cJSON_ParseWithLength(answer.job.status.at,
			answer.job.status.len);
	ctl_hang_up(call);
	if (status == XR_OK && !cJSON_IsObject(said)) {
		status =
			fail(err, XR_E_PROTO, "%s: that is no status", job->id);
		cJSON_Delete(said);
	}
	if (status == XR_OK)
		*json = said;
	return status;
}

static enum xr_status
dial_and_ask(struct which *job, cJSON **json, struct xr_error *err)
{
	struct ctl_call call;
	enum xr_status status = dial_open(&call, job, err);

	if (status == XR_OK)
		status = ask_status(&call, job, json, err);
	return status == XR_E_CLOSED ? explain_closed(job, err) : status;
}

enum xr_status
dial_status(struct which *job, cJSON **json, struct xr_error *err)
{
	enum xr_status status = XR_E_CLOSED;

	for (int tries = 0; status == XR_E_CLOSED && tries < ASK_TRIES; tries++)
		status = dial_and_ask(job, json, err);
	return status;
}

bool
dial_is_stuck(const char *id)
{
	struct ctl_call call;
	enum xr_status status = ctl_dial_within(&call, id, STUCK_NS, NULL);

	ctl_hang_up(&call);
	return status == XR_E_TIMEOUT;
}

cJSON *
dial_status_now(const struct which *job)
{
	struct ctl_call call;
	cJSON *json = NULL;

	if (job->running && ctl_dial(&call, job->id, NULL) == XR_OK)
		ask_status(&call, job, &json, NULL);
	return json;
}
