/* SPDX-License-Identifier: Apache-2.0 */
/* test_steer.c - xrun signal, stop, restart and wait: what jobs are told, what is said. */
#include <math.h>
#include <signal.h>
#include <stdint.h>

#include "base/status.h"
#include "launcher/cmd/dial.h"
#include "launcher/cmd/steer_jobs.h"
#include "launcher/cmd/stop.h"
#include "launcher/ctl/place.h"
#include "tests/unit/verb_rig.h"

enum xr_status __wrap_dial_ask(struct ctl_call *call, struct which *job,
	const struct control *question, struct control *answer,
	struct xr_error *err);
bool __wrap_dial_await_gone(struct which *job);
enum xr_status __wrap_stop_and_wait(struct which *job,
	struct control_done *answer, struct xr_error *err);
pid_t __real_fork(void);
pid_t __wrap_fork(void);
void __wrap_ctl_await(const char *id);
void __wrap_ctl_place_each(ctl_place_fn *fn, void *ctx);

/* In memory that is shared with xrun. */
static struct seen {
	char text[1024];
	int64_t count; /* of the next answer */
	int exit;
	const char *reason;
	int closed;         /* questions that get no answer first */
	int timeouts;       /* and then those that are not answered in time */
	enum xr_status bad; /* of all questions; XR_OK */
	bool wrong;         /* noted by processes that run side by side */
	pid_t wake;         /* is told of a question by SIGUSR1; 0: nobody */
	const char *socket; /* the id of a job that has one, and no folder */
} *seen;

static void __attribute__((format(printf, 1, 2)))
note(const char *fmt, ...)
{
	size_t len = strlen(seen->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(seen->text + len, sizeof(seen->text) - len, fmt, ap);
	va_end(ap);
}

static void
note_question(const struct which *job, const struct control *m)
{
	if (m->type == CONTROL_SIGNAL)
		note("%s: signal %s to %s; ", job->id, m->signal.signal,
			m->signal.ranks != NULL ? m->signal.ranks : "all");
	else
		note("%s: %s; ", job->id, control_rows[m->type].name);
	cr_expect_eq(m->id, CONTROL_NONE);
}

enum xr_status
__wrap_dial_ask(struct ctl_call *call, struct which *job,
	const struct control *question, struct control *answer,
	struct xr_error *err)
{
	*call = (struct ctl_call){ .fd = -1 };
	note_question(job, question);
	if (seen->wake > 0)
		kill(seen->wake, SIGUSR1);
	if (seen->bad != XR_OK)
		return fail(err, seen->bad, "%s is bad", job->id);
	if (seen->closed > 0 && seen->closed-- > 0)
		return fail(err, XR_E_CLOSED, "closed");
	if (seen->timeouts > 0 && seen->timeouts-- > 0)
		return fail(err, XR_E_TIMEOUT, "timeout");
	if (question->type == CONTROL_WAIT) {
		*answer = control_new(CONTROL_OVER, CONTROL_NONE);
		answer->over.exit = seen->exit;
		answer->over.reason = seen->reason;
	} else {
		*answer = control_new(CONTROL_DONE, CONTROL_NONE);
		answer->done.count = seen->count;
	}
	return XR_OK;
}

bool
__wrap_dial_await_gone(struct which *job)
{
	note("%s: gone; ", job->id);
	return true;
}

enum xr_status
__wrap_stop_and_wait(struct which *job, struct control_done *answer,
	struct xr_error *err)
{
	/* Several at a time: they must not talk to Criterion. */
	seen->wrong |= answer->count != CONTROL_NONE;
	if (seen->bad != XR_OK)
		return fail(err, seen->bad, "%s is bad", job->id);
	answer->count = seen->count;
	/* Several jobs are stopped by a process each. */
	if (seen->closed == 1)
		note("%d; ", getpid() != getpgrp());
	return XR_OK;
}

void
__wrap_ctl_await(const char *id)
{
	note("%s: awaited; ", id);
	seen->socket = NULL;
}

void
__wrap_ctl_place_each(ctl_place_fn *fn, void *ctx)
{
	if (seen->socket != NULL)
		fn(ctx, seen->socket);
}

static bool no_fork;

pid_t
__wrap_fork(void)
{
	return no_fork ? -1 : __real_fork();
}

static void
begin(void)
{
	verb_rig_make();
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(seen, MAP_FAILED);
	seen->reason = "ok";
	seen->count = 2;
}

TestSuite(steer, .init = begin, .fini = folder_remove, .timeout = 60);

#define EXPECT_SEEN(want) \
	do { \
		cr_expect_str_eq(seen->text, (want)); \
		seen->text[0] = '\0'; \
	} while (0)

/* --- signal ------------------------------------------------------------------- */

Test(steer, a_signal_goes_to_the_ranks_that_are_named)
{
	job_make("k7m2", true, NULL);
	CALL("signal", "USR1", "k7m2");
	EXPECT_SAID(0, "", "");
	EXPECT_SEEN("k7m2: signal USR1 to all; ");
	CALL("signal", "-r", "0-3", "15");
	EXPECT_SAID(0, "", "xrun: job k7m2\n");
	EXPECT_SEEN("k7m2: signal 15 to 0-3; ");
	CALL("signal", "USR1", "k", "--json");
	EXPECT_SAID(0, "{\"job\":\"k7m2\",\"count\":2}\n", "");
	seen->count = CONTROL_NONE;
	CALL("signal", "USR1", "k", "--json");
	EXPECT_SAID(0, "{\"job\":\"k7m2\"}\n", "");
	seen->count = 0;
	CALL("signal", "USR1", "k", "--json");
	EXPECT_SAID(125, "{\"job\":\"k7m2\",\"count\":0}\n",
		"xrun: no rank of k7m2 takes it: those that are meant do not run\n");
	seen->bad = XR_E_STATE;
	CALL("signal", "USR1", "k", "--json");
	EXPECT_SAID(125, "", "xrun: k7m2 is bad\n");
}

Test(steer, a_signal_stands_first_and_has_no_dash)
{
	job_make("k7m2", true, NULL);
	CALL("signal");
	EXPECT_SAID(125, "",
		"xrun: signal: which one?   try: xrun signal USR1 JOB\n");
	CALL("signal", "-9", "k7m2");
	EXPECT_SAID(125, "",
		"xrun: signal: '-9': a signal has no dash   try: xrun signal 9 JOB\n");
	CALL("signal", "k7m2", "-USR1");
	EXPECT_SAID(125, "",
		"xrun: signal: '-USR1': a signal has no dash   try: xrun signal USR1 JOB\n");
	CALL("signal", "k7m2", "USR1");
	EXPECT_SAID(125, "",
		"xrun: signal: 'k7m2' is none   try: xrun signal USR1 k7m2\n");
	CALL("signal", "-x", "USR1");
	cr_expect_eq(said.status, 125);
	EXPECT_SEEN("");
	/* What it may be, the job says. */
	CALL("signal", "nonsense");
	EXPECT_SEEN("k7m2: signal nonsense to all; ");
	CALL("signal", "nonsense", "k7m2");
	EXPECT_SEEN("k7m2: signal nonsense to all; ");
	CALL("signal", "USR1", "--", "-9");
	EXPECT_SAID(125, "", "xrun: there is no job '-9'   try: xrun ps -a\n");
	CALL("signal", "USR1", "15");
	EXPECT_SAID(125, "", "xrun: there is no job '15'   try: xrun ps -a\n");
}

Test(steer, one_after_the_other_and_each_once)
{
	job_make("a", true, NULL);
	job_make("b", true, NULL);
	job_make("c", false, NULL);
	CALL("signal", "USR1", "b", "a", "b");
	EXPECT_SAID(0, "", "");
	EXPECT_SEEN("b: signal USR1 to all; a: signal USR1 to all; ");
	CALL("signal", "USR1", "x", "y", "a");
	EXPECT_SAID(125, "",
		"xrun: there is no job 'x'   try: xrun ps -a\n"
		"xrun: there is no job 'y'   try: xrun ps -a\n");
	EXPECT_SEEN("a: signal USR1 to all; ");
	CALL("signal", "--all", "USR1", "a");
	EXPECT_SAID(125, "",
		"xrun: signal: --all takes no job   try: xrun signal --all\n");
	CALL("signal", "--all", "USR1");
	EXPECT_SAID(0, "", "");
	cr_expect_eq(strlen(seen->text),
		strlen("a: signal USR1 to all; b: signal USR1 to all; "), "%s",
		seen->text);
}

Test(steer, a_name_that_several_have_is_that_of_none)
{
	job_make("a1", true, NULL);
	job_make("a2", true, NULL);
	CALL("signal", "USR1", "a");
	cr_expect_eq(said.status, 125);
	cr_expect(strstr(said.err, "xrun: 'a' may be any of 2 jobs: a") != NULL,
		"%s", said.err);
	EXPECT_SEEN("");
}

Test(steer, restart_is_for_one_job)
{
	job_make("k7m2", true, NULL);
	seen->count = CONTROL_NONE;
	CALL("restart", "k7m2", "--json");
	EXPECT_SAID(0, "{\"job\":\"k7m2\"}\n", "");
	EXPECT_SEEN("k7m2: restart; ");
	CALL("restart", "k7m2", "b");
	EXPECT_SAID(125, "",
		"xrun: restart: 'b' is one word too many   try: xrun restart -h\n");
}

/* --- stop --------------------------------------------------------------------- */

Test(steer, jobs_are_stopped_together)
{
	CALL("stop");
	EXPECT_SAID(125, "",
		"xrun: no job runs   try: xrun ps -a, for those that have ended\n");
	job_make("a", true, NULL);
	CALL("stop", "a");
	EXPECT_SAID(0, "", "");
	CALL("stop", "a", "--json");
	EXPECT_SAID(0, "{\"job\":\"a\",\"count\":2}\n", "");
	seen->count = CONTROL_NONE;
	CALL("stop", "--all", "--json");
	EXPECT_SAID(0, "{\"job\":\"a\"}\n", "");
	job_make("b", true, NULL);
	CALL("stop", "a", "x", "b");
	EXPECT_SAID(125, "", "xrun: there is no job 'x'   try: xrun ps -a\n");
	CALL("stop", "a", "b", "--json");
	cr_expect_eq(said.status, 0);
	cr_expect_eq(strlen(said.out),
		strlen("{\"job\":\"a\"}\n{\"job\":\"b\"}\n"), "%s", said.out);
	seen->bad = XR_E_TIMEOUT;
	CALL("stop", "b");
	EXPECT_SAID(125, "", "xrun: b is bad\n");
	cr_expect_not(seen->wrong);
	CALL("stop", "b", "--all");
	EXPECT_SAID(125, "",
		"xrun: stop: --all takes no job   try: xrun stop --all\n");
}

/* --- wait --------------------------------------------------------------------- */

Test(steer, wait_ends_as_the_job_does)
{
	job_make("k7m2", true, NULL);
	seen->exit = 3;
	seen->reason = "failure";
	CALL("wait", "k7m2");
	EXPECT_SAID(3, "", "");
	EXPECT_SEEN("k7m2: wait; k7m2: gone; ");
	CALL("wait", "k7m2", "--json");
	EXPECT_SAID(3, "{\"job\":\"k7m2\",\"exit\":3,\"reason\":\"failure\"}\n",
		"");
	seen->text[0] = '\0';
	seen->closed = seen->timeouts = 1;
	CALL("wait", "k7m2");
	EXPECT_SAID(3, "", "");
	EXPECT_SEEN("k7m2: wait; k7m2: wait; k7m2: wait; k7m2: gone; ");
	job_make("b", true, NULL);
	seen->exit = 0;
	CALL("wait", "--all", "--json");
	cr_expect_eq(said.status, 0);
	cr_expect_eq(strlen(said.out), 83, "%s", said.out);
}

Test(steer, how_a_job_ended_is_in_its_folder)
{
	seen->bad = XR_E_STATE;
	job_make("a", false, "{\"exit\":7,\"reason\":\"failure\"}");
	CALL("wait", "a", "--json");
	EXPECT_SAID(7, "{\"job\":\"a\",\"exit\":7,\"reason\":\"failure\"}\n",
		"");
	EXPECT_SEEN("a: wait; ");
	job_make("b", false, "{\"exit\":0,\"reason\":\"ok\"}");
	CALL("wait", "b", "a");
	EXPECT_SAID(7, "", "");
	job_make("c", false, "{\"reason\":\"ok\"}");
	CALL("wait", "c", "a");
	EXPECT_SAID(125, "", "xrun: c has ended, and how is not known\n");
	seen->text[0] = '\0';
	past_make("{\"job\":\"d\",\"exit\":1,\"reason\":\"failure\"}");
	CALL("wait", "d");
	EXPECT_SAID(1, "", "");
	EXPECT_SEEN("d: wait; d: awaited; ");
	/* Without a folder its lock is not known. */
	seen->socket = "e";
	CALL("wait", "e");
	EXPECT_SAID(125, "", "xrun: e has ended, and how is not known\n");
	EXPECT_SEEN("e: wait; e: awaited; ");
}

/* The lock of the job goes while xrun waits for it, once xrun has asked the job. */
static void
let_go_later(void)
{
	int fd = open(job_path("k7m2", "lock"), O_RDWR | O_CLOEXEC), sig, json;
	sigset_t set;
	pid_t pid;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	cr_assert_eq(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	cr_assert_eq(flock(fd, LOCK_EX), 0);
	pid = fork();
	if (pid != 0) {
		seen->wake = pid;
		close(fd);
		return;
	}
	alarm(VERB_RIG_S);
	sigwait(&set, &sig);
	json = open(job_path("k7m2", "job.json"), O_WRONLY | O_CREAT, 0600);
	dprintf(json, "{\"exit\":9,\"reason\":\"failure\"}");
	_exit(0);
}

Test(steer, one_that_does_not_answer_is_waited_for_by_its_lock)
{
	job_make("k7m2", false, NULL);
	seen->bad = XR_E_STATE;
	let_go_later();
	CALL("wait", "k7m2");
	EXPECT_SAID(9, "", "");
	cr_assert_eq(waitpid(seen->wake, NULL, 0), seen->wake);
}

/* --- several jobs --------------------------------------------------------------- */

static pid_t *callers; /* of the jobs a, b and c, in shared memory */

/* Its exit status is in the folder's name; K: it is killed. */
static int
call_one(struct which *job, void *ctx)
{
	seen->wrong |= ctx != &no_fork;
	callers[job->id[0] - 'a'] = getpid();
	if (job->dir[0] == 'K')
		kill(getpid(), SIGKILL);
	return (int)strtol(job->dir, NULL, 10);
}

static int
call_each(bool together, const char *a, const char *b, const char *c)
{
	struct which job[3] = { 0 };
	const char *dirs[] = { a, b, c };
	struct steer_jobs jobs = { .job = job };

	for (; jobs.count < 3 && dirs[jobs.count] != NULL; jobs.count++) {
		callers[jobs.count] = 0;
		/* "-": it was not found. */
		if (dirs[jobs.count][0] != '-')
			job[jobs.count].id[0] = (char)('a' + jobs.count);
		snprintf(job[jobs.count].dir, sizeof(job[0].dir), "%s",
			dirs[jobs.count]);
	}
	return steer_jobs_each(&jobs, together, call_one, &no_fork);
}

Test(steer, the_first_status_that_is_not_0)
{
	callers = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int together = 0; together < 2; together++) {
		cr_expect_eq(call_each(together, "0", "5", "7"), 5);
		cr_expect_eq(callers[0] == getpid(), !together);
		cr_expect_eq(callers[2] == getpid(), !together);
		cr_expect_eq(callers[0] == callers[1], !together);
		cr_expect_eq(call_each(together, "9", "0", "7"), 9);
		cr_expect_eq(call_each(together, "0", "0", "0"), 0);
		cr_expect_eq(call_each(together, "0", "-", "3"), 125);
		cr_expect_eq(callers[1], 0);
		cr_expect_neq(callers[2], 0);
	}
	/* One is no reason for another process. */
	cr_expect_eq(call_each(true, "4", NULL, NULL), 4);
	cr_expect_eq(callers[0], getpid());
	cr_expect_eq(call_each(true, "K", "4", NULL), 128 + SIGKILL);
	no_fork = true;
	cr_expect_eq(call_each(true, "0", "4", "5"), 4);
	cr_expect_eq(callers[0], getpid());
	cr_expect_eq(callers[2], getpid());
	cr_expect_not(seen->wrong);
}

Test(steer, jobs_without_a_folder_are_several)
{
	seen->bad = XR_E_STATE;
	past_make("{\"job\":\"d\",\"exit\":0}");
	past_make("{\"job\":\"e\",\"exit\":3}");
	CALL("wait", "d", "e", "d");
	EXPECT_SAID(3, "", "");
	EXPECT_SEEN("d: wait; d: awaited; e: wait; e: awaited; ");
}
