/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - see report.h. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/timeout.h"
#include "worker/job/last.h"
#include "worker/proc/report.h"

/* What xr_proc_raise() was given, until its function has returned. */
static __thread struct xr_value *raised;

XR_EXPORT enum xr_status
xr_proc_raise(struct xr_value *error, struct xr_error *err)
{
	struct xr_failure f = { .size = sizeof(f) };

	if (error == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	if (xr_value_failure(error, &f) != XR_OK || f.status == XR_OK) {
		xr_value_unref(error);
		return fail(err, XR_E_INVAL, "xr_proc_raise: that is no error");
	}
	xr_value_unref(raised);
	raised = error;
	return fail(err, f.status, "%s", f.text != NULL ? f.text : "");
}

/* "load-3, process 4711, since 2026-11-22T16:00:00.123456Z" */
static void
put_where(const struct run *run, char *out, size_t cap)
{
	char since[32];

	snprintf(out, cap, "%.128s, process %d, since %s", run->name,
		(int)getpid(), clock_stamp(run->started, since, sizeof(since)));
}

static struct xr_value *
report_of(const struct run *run, enum xr_status status,
	const struct xr_error *err)
{
	struct xr_failure f = { .size = sizeof(f) };
	char place[LAST_MAX], where[256];
	struct xr_value *report;

	if (raised != NULL)
		xr_value_failure(raised, &f);
	f.size = sizeof(f);
	f.status = status;
	put_where(run, where, sizeof(where));
	last_place(status, place, sizeof(place));
	f.text = f.text != NULL ? f.text : err->text;
	f.func = f.func != NULL ? f.func : run->func;
	f.worker = where;
	f.worker_id = (uint32_t)getpid();
	f.backtrace = f.backtrace != NULL ? f.backtrace : place;
	report = xr_value_new_error(&f);
	return report;
}

enum xr_status
run_do(const struct run *run, struct xr_error *err, struct xr_value **report)
{
	struct xr_value *arg =
		run->arg != NULL ? xr_value_ref(run->arg) : xr_value_new_nil();
	bool kept = last_keep(true);
	enum xr_status status;

	*err = (struct xr_error){ 0 };
	*report = NULL;
	raised = NULL;
	status = arg == NULL ? fail(err, XR_E_NOMEM, "out of memory") :
			       run->fn(run->ordinal, arg, run->ctx, err);
	xr_value_unref(arg);
	if (status != XR_OK) {
		err->status = status;
		err->text[sizeof(err->text) - 1] = '\0';
		if (err->text[0] == '\0')
			snprintf(err->text, sizeof(err->text), "%s",
				xr_status_text(status));
		*report = report_of(run, status, err);
	}
	xr_value_unref(raised);
	raised = NULL;
	last_keep(kept);
	return status;
}

enum xr_status
run_deadline(int64_t timeout, int64_t *deadline, struct xr_error *err)
{
	enum xr_status status =
		timeout_argument(&timeout, XR_TIMEOUT_NEVER, err);

	if (status != XR_OK)
		return status;
	*deadline = timeout == XR_TIMEOUT_NEVER ? INT64_MAX : clock_now();
	if (timeout != XR_TIMEOUT_NEVER &&
		__builtin_add_overflow(*deadline, timeout, deadline))
		*deadline = INT64_MAX;
	return XR_OK;
}

int
run_ms(int64_t deadline)
{
	int64_t left;

	if (deadline == INT64_MAX)
		return -1;
	left = deadline - clock_now();
	if (left <= 0)
		return 0;
	left = (left + NS_PER_MS - 1) / NS_PER_MS;
	return left > INT_MAX ? INT_MAX : (int)left;
}
