/* SPDX-License-Identifier: Apache-2.0 */
/* test_dial_ask.c - questions to a job that begins, ends, or has too many callers. */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cjson/cJSON.h>
#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/status.h"
#include "launcher/cmd/dial.h"

enum xr_status __wrap_ctl_dial(struct ctl_call *call, const char *id,
	struct xr_error *err);
enum xr_status __wrap_ctl_dial_within(struct ctl_call *call, const char *id,
	int64_t ns, struct xr_error *err);
enum xr_status __wrap_ctl_ask(struct ctl_call *call,
	const struct control *question, struct control *answer,
	struct xr_error *err);
void __wrap_ctl_hang_up(struct ctl_call *call);
bool __wrap_which_runs(struct which *job);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);

#define CALL_FD 55

/* Statuses of the next calls and questions, one after the other; then XR_OK. */
static enum xr_status dials[700], asks[8];
static unsigned dialed, asked, hung_up, looked;
static unsigned ends_at; /* the look at which the job has ended; 0: never */
static int64_t slept;
static const char *status_text = "{\"ranks\":2}";

enum xr_status
__wrap_ctl_dial(struct ctl_call *call, const char *id, struct xr_error *err)
{
	enum xr_status status = dials[dialed++];

	cr_expect_str_eq(id, "k7m2");
	if (status != XR_OK)
		return fail(err, status, "dial %u", dialed);
	call->fd = CALL_FD;
	return XR_OK;
}

enum xr_status
__wrap_ctl_dial_within(struct ctl_call *call, const char *id, int64_t ns,
	struct xr_error *err)
{
	cr_expect_eq(ns, 2 * NS_PER_S);
	cr_expect_null(err);
	return __wrap_ctl_dial(call, id, err);
}

enum xr_status
__wrap_ctl_ask(struct ctl_call *call, const struct control *question,
	struct control *answer, struct xr_error *err)
{
	enum xr_status status = asks[asked++];

	cr_expect_eq(call->fd, CALL_FD);
	if (status != XR_OK)
		return fail(err, status, "ask %u", asked);
	if (question->type == CONTROL_STATUS) {
		cr_expect_eq(question->id, CONTROL_NONE);
		*answer = control_new(CONTROL_JOB, CONTROL_NONE);
		answer->job.status =
			(struct span){ status_text, strlen(status_text) };
	} else {
		*answer = control_new(CONTROL_DONE, CONTROL_NONE);
	}
	return XR_OK;
}

void
__wrap_ctl_hang_up(struct ctl_call *call)
{
	hung_up++;
	call->fd = -1;
}

bool
__wrap_which_runs(struct which *job)
{
	looked++;
	job->running = ends_at == 0 || looked < ends_at;
	return job->running;
}

int
__wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)left;
	cr_expect_eq(time->tv_sec, 0);
	slept += time->tv_nsec;
	return 0;
}

static struct which job;
static struct ctl_call call;
static struct xr_error err;
static struct control question, answer;

static void
begin(void)
{
	job = (struct which){ .id = "k7m2", .running = true };
	question = control_new(CONTROL_STOP, CONTROL_NONE);
}

/* All that was counted is forgotten. */
static void
again(void)
{
	dialed = asked = hung_up = looked = ends_at = 0;
	slept = 0;
	err = (struct xr_error){ 0 };
	job.running = true;
}

TestSuite(dial_ask, .init = begin, .timeout = 60);

#define ENDED "k7m2 has ended\txrun ps k7m2"

Test(dial_ask, a_socket_that_is_not_there_yet_is_waited_for)
{
	dials[0] = XR_E_NOTFOUND;
	dials[1] = XR_E_CLOSED;
	cr_expect_eq(dial_open(&call, &job, &err), XR_OK);
	cr_expect_eq(call.fd, CALL_FD);
	cr_expect_eq(slept, 20 * NS_PER_MS);
	cr_expect_eq(looked, 2);
	/* Other errors are none of a job that begins. */
	again();
	dials[0] = XR_E_TIMEOUT;
	cr_expect_eq(dial_open(&call, &job, &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "dial 1");
	cr_expect_eq(slept, 0);
	/* It has ended meanwhile. */
	again();
	dials[0] = XR_E_NOTFOUND;
	ends_at = 2;
	cr_expect_eq(dial_open(&call, &job, &err), XR_E_STATE);
	cr_expect_str_eq(err.text, ENDED);
	cr_expect_eq(dialed, 2);
	job.running = false;
	cr_expect_eq(dial_open(&call, &job, &err), XR_E_STATE);
	cr_expect_eq(dialed, 2);
	cr_expect_eq(call.fd, -1);
	/* Or there is none in a second. */
	again();
	for (int i = 0; i < 200; i++)
		dials[i] = XR_E_NOTFOUND;
	cr_expect_eq(dial_open(&call, &job, &err), XR_E_NOTFOUND);
	cr_expect_eq(dialed, 101);
	cr_expect_eq(slept, 1000 * NS_PER_MS);
}

Test(dial_ask, until_a_job_is_gone)
{
	ends_at = 4;
	cr_expect(dial_await_gone(&job));
	cr_expect_eq(slept, 6 * NS_PER_MS);
	again();
	cr_expect_not(dial_await_gone(&job));
	cr_expect_eq(slept, 1000 * NS_PER_MS);
	cr_expect_eq(looked, 501);
}

Test(dial_ask, why_a_question_has_no_answer)
{
	cr_expect_eq(dial_ask(&call, &job, &question, &answer, &err), XR_OK);
	cr_expect_eq(answer.type, CONTROL_DONE);
	cr_expect_eq(call.fd, CALL_FD);
	cr_expect_eq(hung_up, 0);
	again();
	asks[0] = XR_E_CLOSED;
	ends_at = 2;
	cr_expect_eq(dial_ask(&call, &job, &question, &answer, &err),
		XR_E_STATE);
	cr_expect_str_eq(err.text, ENDED);
	again();
	cr_expect_eq(dial_ask(&call, &job, &question, &answer, &err),
		XR_E_CLOSED);
	cr_expect_str_eq(err.text,
		"k7m2 runs, but closed the connection without an answer");
	again();
	asks[0] = XR_E_INVAL;
	cr_expect_eq(dial_ask(&call, &job, &question, &answer, &err),
		XR_E_INVAL);
	cr_expect_str_eq(err.text, "ask 1");
	again();
	dials[0] = XR_E_SYS;
	cr_expect_eq(dial_ask(&call, &job, &question, &answer, &err), XR_E_SYS);
	cr_expect_eq(asked, 0);
}

static double
ranks_of(cJSON *json)
{
	double n = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(json,
		"ranks"));

	cJSON_Delete(json);
	return n;
}

Test(dial_ask, the_status_of_a_job_that_drops_some_callers)
{
	cJSON *json = NULL;

	asks[0] = asks[1] = XR_E_CLOSED;
	cr_expect_eq(dial_status(&job, &json, &err), XR_OK);
	cr_expect_eq(ranks_of(json), 2);
	cr_expect_eq(asked, 3);
	cr_expect_eq(hung_up, 3);
	again();
	json = NULL;
	asks[2] = XR_E_CLOSED;
	cr_expect_eq(dial_status(&job, &json, &err), XR_E_CLOSED);
	cr_expect_eq(asked, 3);
	cr_expect_null(json);
	again();
	ends_at = 1;
	cr_expect_eq(dial_status(&job, &json, &err), XR_E_STATE);
	cr_expect_str_eq(err.text, ENDED);
	cr_expect_eq(asked, 1);
	again();
	asks[0] = XR_E_TIMEOUT;
	cr_expect_eq(dial_status(&job, &json, &err), XR_E_TIMEOUT);
	cr_expect_eq(asked, 1);
}

Test(dial_ask, what_is_no_status)
{
	static const char *const rows[] = { "", "[1]", "7", "{" };
	cJSON *json = NULL;

	for (int i = 0; i < 4; i++) {
		again();
		status_text = rows[i];
		cr_expect_eq(dial_status(&job, &json, &err), XR_E_PROTO);
		cr_expect_str_eq(err.text, "k7m2: that is no status");
		cr_expect_null(json);
		cr_expect_eq(hung_up, 1);
		cr_expect_null(dial_status_now(&job));
	}
}

Test(dial_ask, the_status_now_is_asked_for_once)
{
	cr_expect_eq(ranks_of(dial_status_now(&job)), 2);
	cr_expect_eq(hung_up, 1);
	asks[1] = XR_E_CLOSED;
	cr_expect_null(dial_status_now(&job));
	cr_expect_eq(asked, 2);
	dials[2] = XR_E_NOTFOUND;
	cr_expect_null(dial_status_now(&job));
	cr_expect_eq(dialed, 3);
	cr_expect_eq(asked, 2);
	job.running = false;
	cr_expect_null(dial_status_now(&job));
	cr_expect_eq(dialed, 3);
}

Test(dial_ask, who_does_not_answer_is_stuck)
{
	dials[1] = XR_E_TIMEOUT;
	dials[2] = XR_E_CLOSED;
	cr_expect_not(dial_is_stuck("k7m2"));
	cr_expect(dial_is_stuck("k7m2"));
	cr_expect_not(dial_is_stuck("k7m2"));
	cr_expect_eq(hung_up, 3);
}
