/* SPDX-License-Identifier: Apache-2.0 */
/* steer.c - see steer.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/file.h>

#include <cjson/cJSON.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/ranks.h"
#include "base/signo.h"
#include "base/status.h"
#include "launcher/cmd/dial.h"
#include "launcher/cmd/say.h"
#include "launcher/cmd/steer.h"
#include "launcher/cmd/steer_jobs.h"
#include "launcher/cmd/stop.h"
#include "launcher/cmd/verb_args.h"
#include "launcher/cmd/which.h"
#include "launcher/ctl/place.h"
#include "launcher/job/outcome.h"
#include "launcher/state/jobs.h"

struct settings {
	const char *ranks;
	bool json, all;
};

#define AT(field) .offset = offsetof(struct settings, field)
#define JSON \
	{ .name = "json", \
		.type = OPT_FLAG, \
		VERB_ROW, \
		AT(json), \
		.help = "as JSON, one object a job" }

const struct opt signal_options[] = {
	{ .name = "rank",
		.letter = 'r',
		.type = OPT_TEXT,
		VERB_ROW,
		.arg = "RANKS",
		.check = ranks_check,
		AT(ranks),
		.help = "to these ranks, 0-3,7; to all without" },
	STEER_JOBS_ALL(all),
	JSON,
	{ 0 },
};

const struct opt stop_options[] = { STEER_JOBS_ALL(all), JSON, { 0 } };
const struct opt restart_options[] = { JSON, { 0 } };
const struct opt wait_options[] = { STEER_JOBS_ALL(all), JSON, { 0 } };

/* --- signal --------------------------------------------------------------- */

static int
say_done(const struct which *job, const struct settings *s, int64_t count)
{
	struct buf out = { 0 };
	struct json j;

	if (!s->json)
		return 0;
	json_init(&j, &out);
	json_open_object(&j, NULL);
	json_text(&j, "job", job->id);
	if (count != CONTROL_NONE)
		json_int(&j, "count", count);
	json_close_object(&j);
	buf_put_char(&out, '\n');
	return say(&out);
}

/* What has no answer but "done", and to how many: to nobody is not done. */
static int
tell(struct which *job, const struct settings *s,
	const struct control *question)
{
	struct ctl_call call;
	struct control answer;
	struct xr_error err = { 0 };
	enum xr_status status = dial_ask(&call, job, question, &answer, &err);
	int exit_status;

	ctl_hang_up(&call);
	if (status != XR_OK)
		return say_error(&err);
	exit_status = say_done(job, s, answer.done.count);
	if (exit_status != 0 || answer.done.count != 0)
		return exit_status;
	fail(&err, XR_E_STATE,
		"no rank of %s takes it: those that are meant do not run",
		job->id);
	return say_error(&err);
}

/* As kill(1) has them: the word that is a signal behind a dash; NULL: none. */
static const char *
dashed_signal(char **argv)
{
	for (int i = 1; argv[i] != NULL && strcmp(argv[i], "--") != 0; i++)
		if (argv[i][0] == '-' && signo_parse(argv[i] + 1) > 0)
			return argv[i] + 1;
	return NULL;
}

/* The signal stands first, and has no dash; who is used to another form is told
 * of this one. */
static bool
is_form_right(const struct verb_args *args)
{
	const char *first = args->operand[0], *second = args->operand[1];

	if (args->count == 0) {
		say_no("signal: which one?   try: xrun signal USR1 JOB");
		return false;
	}
	if (args->count >= 2 && signo_parse(first) == 0 &&
		signo_parse(second) > 0) {
		say_no("signal: '%s' is none   try: xrun signal %s %s", first,
			second, first);
		return false;
	}
	return true;
}

struct steer_signal {
	const struct settings *settings;
	struct control message;
};

static int
steer_signal_one(struct which *job, void *ctx)
{
	const struct steer_signal *s = ctx;

	return tell(job, s->settings, &s->message);
}

/* For the jobs that the operands name. That of signal begins with the signal. */
static int
steer_each(const char *verb, const struct verb_args *args,
	const struct settings *s, steer_jobs_fn *fn, void *ctx)
{
	int from = strcmp(verb, "signal") == 0 ? 1 : 0;
	bool stops = strcmp(verb, "stop") == 0;
	struct steer_jobs jobs = { .verb = verb };
	struct xr_error err = { 0 };
	int status;

	if (steer_jobs_find(&jobs, args, from, s->all, &err) != XR_OK)
		return say_error(&err);
	status = steer_jobs_each(&jobs, stops, fn, ctx);
	steer_jobs_free(&jobs);
	return status;
}

int
cmd_signal(int argc, char **argv)
{
	struct settings s = { 0 };
	struct verb_args args;
	struct steer_signal m = {
		.settings = &s,
		.message = control_new(CONTROL_SIGNAL, CONTROL_NONE),
	};
	const char *dashed = dashed_signal(argv);

	(void)argc;
	if (dashed != NULL)
		return say_no(
			"signal: '-%s': a signal has no dash   try: xrun signal %s JOB",
			dashed, dashed);
	if (!verb_args_read(&args, signal_options, &s, VERB_OPERANDS, argv) ||
		!is_form_right(&args))
		return EXIT_XRUN;
	m.message.signal.signal = args.operand[0];
	m.message.signal.ranks = s.ranks;
	return steer_each("signal", &args, &s, steer_signal_one, &m);
}

/* --- stop ----------------------------------------------------------------- */

static int
steer_stop_one(struct which *job, void *settings)
{
	struct control_done answer = { .count = CONTROL_NONE };
	struct xr_error err = { 0 };

	if (stop_and_wait(job, &answer, &err) != XR_OK)
		return say_error(&err);
	return say_done(job, settings, answer.count);
}

int
cmd_stop(int argc, char **argv)
{
	struct settings s = { 0 };
	struct verb_args args;

	(void)argc;
	if (!verb_args_read(&args, stop_options, &s, VERB_OPERANDS, argv))
		return EXIT_XRUN;
	return steer_each("stop", &args, &s, steer_stop_one, &s);
}

int
cmd_restart(int argc, char **argv)
{
	struct settings s = { 0 };
	struct verb_args args;
	struct steer_signal m = {
		.settings = &s,
		.message = control_new(CONTROL_RESTART, CONTROL_NONE),
	};

	(void)argc;
	if (!verb_args_read(&args, restart_options, &s, 1, argv))
		return EXIT_XRUN;
	return steer_each("restart", &args, &s, steer_signal_one, &m);
}

/* --- wait ----------------------------------------------------------------- */

/* How it ended, by its folder; false: it has not, or nobody knows. */
static bool
read_end(const struct which *job, struct control_over *over, cJSON **json)
{
	int64_t exit_status;

	*json = which_said(job);
	exit_status = jobs_number(*json, "exit", -1);
	over->exit = exit_status;
	over->reason = jobs_text(*json, "reason");
	return exit_status != -1;
}

/* Until nobody holds the job's lock: whatever became of its xrun. */
static void
await_lock(const struct which *job)
{
	char path[PATH_MAX + 8];
	int fd;

	if (job->dir[0] == '\0') {
		ctl_await(job->id);
		return;
	}
	snprintf(path, sizeof(path), "%s/lock", job->dir);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	while (fd != -1 && flock(fd, LOCK_SH) == -1 && errno == EINTR)
		continue;
	fd_close(fd);
}

static int
say_over(const struct which *job, const struct settings *s,
	const struct control_over *over)
{
	struct buf out = { 0 };
	struct json j;
	int status = 0;

	if (s->json) {
		json_init(&j, &out);
		json_open_object(&j, NULL);
		json_text(&j, "job", job->id);
		json_int(&j, "exit", over->exit);
		json_text(&j, "reason", over->reason);
		json_close_object(&j);
		buf_put_char(&out, '\n');
		status = say(&out);
	}
	return status != 0 ? status : (int)over->exit;
}

/* By what it says at its end. One that drops us, having too many, or that
 * somebody has stopped, is asked again. */
static bool
hear_end(struct which *job, const struct settings *s, int *status)
{
	const struct control m = control_new(CONTROL_WAIT, CONTROL_NONE);
	struct control answer;
	struct ctl_call call;
	enum xr_status asked;

	do {
		asked = dial_ask(&call, job, &m, &answer, NULL);
		if (asked == XR_OK)
			*status = say_over(job, s, &answer.over);
		ctl_hang_up(&call);
	} while (asked == XR_E_CLOSED || asked == XR_E_TIMEOUT);
	return asked == XR_OK;
}

static int
await_end(struct which *job, const struct settings *s)
{
	struct control_over over;
	cJSON *json = NULL;
	int status;

	if (hear_end(job, s, &status)) {
		dial_await_gone(job); /* so it is not there for who waited */
		return status;
	}
	await_lock(job);
	which_runs(job);
	if (read_end(job, &over, &json))
		status = say_over(job, s, &over);
	else
		status = say_no("%s has ended, and how is not known", job->id);
	cJSON_Delete(json);
	return status;
}

int
steer_wait(struct which *job)
{
	which_runs(job);
	return await_end(job, &(struct settings){ 0 });
}

static int
steer_wait_one(struct which *job, void *settings)
{
	return await_end(job, settings);
}

int
cmd_wait(int argc, char **argv)
{
	struct settings s = { 0 };
	struct verb_args args;

	(void)argc;
	if (!verb_args_read(&args, wait_options, &s, VERB_OPERANDS, argv))
		return EXIT_XRUN;
	return steer_each("wait", &args, &s, steer_wait_one, &s);
}
