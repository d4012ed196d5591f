/* SPDX-License-Identifier: Apache-2.0 */
/* test_steer_stop.c - stop_and_wait(): whom it asks to end a job, how long it waits. */
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <sys/syscall.h>

#include <cjson/cJSON.h>
#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/status.h"
#include "launcher/cmd/dial.h"
#include "launcher/cmd/stop.h"
#include "launcher/ctl/place.h"
#include "launcher/keeper/keeper.h"
#include "launcher/state/jobs.h"
#include "proc/descend.h"
#include "proc/locks.h"
#include "tests/unit/folder.h"

#define KEEPER 4711 /* pids */
#define SUPER  4712
#define OTHER  4713
#define KEYS   77 /* a pidfd */

enum xr_status __wrap_dial_ask(struct ctl_call *call, struct which *job,
	const struct control *question, struct control *answer,
	struct xr_error *err);
bool __wrap_which_runs(struct which *job);
struct cJSON *__wrap_jobs_read(const char *dir);
void __wrap_proc_each(const char *path, proc_each_fn *fn, void *ctx);
bool __wrap_proc_stat_read(pid_t pid, struct proc_stat *st);
pid_t __wrap_locks_owner(ino_t inode);
bool __wrap_ctl_place_stat(const char *id, struct stat *st);
int64_t __wrap_clock_now(void);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
long __wrap_syscall(long number, ...);
void __wrap_fd_close(int fd);

/* What the supervisor answers, one after the other; the last one stays. */
static struct {
	enum xr_status status;
	double seconds;
} answers[8];
static unsigned asked;

static int64_t now, ends; /* the job runs as long as now < ends */
static int64_t
	ends_after_signal; /* so long after the keeper was told; -1: never */
static const char *record; /* job.json; NULL: there is none */
static bool has_socket;
static char keeper_state = 'S';
static const char *super_name = KEEPER_SUPER_NAME;
static pid_t super_parent = KEEPER;
static pid_t folder_owner, socket_owner;
static bool no_pidfd;
static bool ends_meanwhile; /* before the keeper is told */
static int open_fds;

static char done[4096];

static void __attribute__((format(printf, 1, 2)))
note(const char *fmt, ...)
{
	size_t len = strlen(done);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(done + len, sizeof(done) - len, fmt, ap);
	va_end(ap);
}

#define EXPECT_DONE(text) \
	do { \
		cr_expect_str_eq(done, (text)); \
		cr_expect_eq(open_fds, 0); \
		done[0] = '\0'; \
	} while (0)

enum xr_status
__wrap_dial_ask(struct ctl_call *call, struct which *job,
	const struct control *question, struct control *answer,
	struct xr_error *err)
{
	unsigned n = asked;

	*call = (struct ctl_call){ .fd = -1 };
	cr_expect_eq(question->type, CONTROL_STOP);
	note("ask at %lld; ", (long long)(now / NS_PER_MS));
	if (now >= ends)
		return fail(err, XR_E_STATE, "%s has ended", job->id);
	if (asked + 1 < sizeof(answers) / sizeof(answers[0]))
		asked++;
	if (answers[n].status != XR_OK)
		return fail(err, answers[n].status, "answer %u", n);
	*answer = control_new(CONTROL_DONE, CONTROL_NONE);
	answer->done.count = n;
	answer->done.seconds = answers[n].seconds;
	return XR_OK;
}

bool
__wrap_which_runs(struct which *job)
{
	job->running = now < ends;
	return job->running;
}

struct cJSON *
__wrap_jobs_read(const char *dir)
{
	cr_expect_str_eq(dir, "job");
	return record != NULL ? cJSON_Parse(record) : NULL;
}

void
__wrap_proc_each(const char *path, proc_each_fn *fn, void *ctx)
{
	cr_expect_str_eq(path, "/proc");
	fn(1, ctx);
	fn(SUPER, ctx);
	fn(OTHER, ctx);
}

bool
__wrap_proc_stat_read(pid_t pid, struct proc_stat *st)
{
	*st = (struct proc_stat){ .ppid = 1 };
	if (pid == SUPER) {
		st->ppid = super_parent;
		snprintf(st->comm, sizeof(st->comm), "%s", super_name);
	} else if (pid == KEEPER || pid == 1) {
		st->state = keeper_state;
	} else if (pid == OTHER) {
		st->ppid = KEEPER;
		snprintf(st->comm, sizeof(st->comm), "xrun-other");
	}
	return true;
}

pid_t
__wrap_locks_owner(ino_t inode)
{
	return inode == 5 ? socket_owner : folder_owner;
}

bool
__wrap_ctl_place_stat(const char *id, struct stat *st)
{
	cr_expect_str_eq(id, "k7m2");
	st->st_ino = 5;
	return has_socket;
}

int64_t
__wrap_clock_now(void)
{
	return now;
}

int
__wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)left;
	cr_expect_eq(time->tv_sec, 0);
	cr_expect_eq(time->tv_nsec, 10 * NS_PER_MS);
	now += time->tv_nsec;
	return 0;
}

long
__wrap_syscall(long number, ...)
{
	int first, second;
	va_list ap;

	va_start(ap, number);
	first = va_arg(ap, int);
	second = va_arg(ap, int);
	va_end(ap);
	if (number == SYS_pidfd_open) {
		if (no_pidfd)
			return -1;
		cr_expect_eq(second, 0);
		if (ends_meanwhile)
			ends = now;
		open_fds++;
		note("open %d; ", first);
		return KEYS;
	}
	cr_expect_eq(number, SYS_pidfd_send_signal);
	cr_expect_eq(first, KEYS);
	note("%s at %lld; ", strsignal(second), (long long)(now / NS_PER_MS));
	if (second == SIGTERM && ends_after_signal != -1)
		ends = now + ends_after_signal;
	return 0;
}

void
__wrap_fd_close(int fd)
{
	open_fds -= fd == KEYS;
}

static struct which job;
static struct control_done answer;
static struct xr_error err;

static void
begin(void)
{
	folder_make();
	cr_assert_eq(mkdir("job", 0700), 0);
	folder_write("job/lock", "", 0600);
	job = (struct which){ .id = "k7m2", .dir = "job", .running = true };
	answer = (struct control_done){ .count = CONTROL_NONE };
	now = 1000 * NS_PER_S;
	ends = INT64_MAX;
	ends_after_signal = -1;
	record = "{\"pid\":4711}";
}

TestSuite(steer_stop, .init = begin, .fini = folder_remove, .timeout = 60);

static enum xr_status
stop(void)
{
	asked = 0;
	done[0] = '\0';
	return stop_and_wait(&job, &answer, &err);
}

Test(steer_stop, a_supervisor_that_ends_the_job)
{
	answers[0].seconds = 5;
	ends = now + 30 * NS_PER_MS;
	cr_expect_eq(stop(), XR_OK);
	cr_expect_eq(answer.count, 0);
	cr_expect_eq(now, 1000 * NS_PER_S + 30 * NS_PER_MS);
	cr_expect_not(job.running);
	EXPECT_DONE("ask at 1000000; ");
	/* It had ended. */
	cr_expect_eq(stop(), XR_E_STATE);
	cr_expect_str_eq(err.text, "k7m2 has ended");
}

Test(steer_stop, an_older_one_is_not_waited_for)
{
	answers[0].seconds = NAN;
	cr_expect_eq(stop(), XR_OK);
	EXPECT_DONE("ask at 1000000; ");
	cr_expect_eq(now, 1000 * NS_PER_S);
}

Test(steer_stop, it_is_asked_again_when_the_time_is_over)
{
	answers[0].seconds = 2;
	answers[1].seconds = 1.5;
	answers[2].seconds = 0;
	cr_expect_eq(stop(), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text,
		"stop: k7m2 has not ended within 4 s\txrun ps k7m2");
	EXPECT_DONE("ask at 1000000; ask at 1002000; ask at 1003500; ");
	cr_expect_eq(answer.count, 2);
	/* Or does not answer any more. */
	answers[1].status = XR_E_TIMEOUT;
	now = 1000 * NS_PER_S;
	cr_expect_eq(stop(), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text,
		"stop: k7m2 has not ended within 2 s\txrun ps k7m2");
	EXPECT_DONE("ask at 1000000; ask at 1002000; ");
	/* Or says that the job has ended. */
	answers[1].status = XR_E_STATE;
	now = 1000 * NS_PER_S;
	cr_expect_eq(stop(), XR_OK);
}

Test(steer_stop, time_that_is_negative_is_none)
{
	answers[0].seconds = -3;
	answers[1].seconds = -3;
	cr_expect_eq(stop(), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text,
		"stop: k7m2 has not ended within 0 s\txrun ps k7m2");
	EXPECT_DONE("ask at 1000000; ask at 1000000; ");
}

Test(steer_stop, a_keeper_that_was_stopped_goes_on)
{
	answers[0].seconds = 2.5;
	ends = now + 2500 * NS_PER_MS;
	keeper_state = 'T';
	cr_expect_eq(stop(), XR_OK);
	EXPECT_DONE(
		"ask at 1000000; open 4711; Continued at 1001000; open 4711; Continued at 1002000; ");
	/* Only if it is one. */
	super_name = "bash";
	now = 1000 * NS_PER_S;
	cr_expect_eq(stop(), XR_OK);
	EXPECT_DONE("ask at 1000000; open 4711; open 4711; ");
	super_name = KEEPER_SUPER_NAME;
	super_parent = 1;
	now = 1000 * NS_PER_S;
	cr_expect_eq(stop(), XR_OK);
	EXPECT_DONE("ask at 1000000; open 4711; open 4711; ");
	super_parent = KEEPER;
	no_pidfd = true;
	now = 1000 * NS_PER_S;
	cr_expect_eq(stop(), XR_OK);
	EXPECT_DONE("ask at 1000000; ");
	no_pidfd = false;
	keeper_state = 'S';
	now = 1000 * NS_PER_S;
	cr_expect_eq(stop(), XR_OK);
	EXPECT_DONE("ask at 1000000; ");
	record = "{\"pid\":1}";
	keeper_state = 'T';
	super_parent = 1;
	now = 1000 * NS_PER_S;
	cr_expect_eq(stop(), XR_OK);
	EXPECT_DONE("ask at 1000000; ");
}

Test(steer_stop, who_holds_the_locks_leads_to_the_keeper)
{
	answers[0].seconds = 1.5;
	ends = now + 1500 * NS_PER_MS;
	keeper_state = 'T';
	record = NULL;
	folder_owner = KEEPER;
	cr_expect_eq(stop(), XR_OK);
	EXPECT_DONE("ask at 1000000; open 4711; Continued at 1001000; ");
	folder_owner = 0;
	has_socket = true;
	socket_owner = SUPER;
	now = 1000 * NS_PER_S;
	cr_expect_eq(stop(), XR_OK);
	EXPECT_DONE("ask at 1000000; open 4711; Continued at 1001000; ");
	job.dir[0] = '\0';
	now = 1000 * NS_PER_S;
	cr_expect_eq(stop(), XR_OK);
	EXPECT_DONE("ask at 1000000; open 4711; Continued at 1001000; ");
	socket_owner = 0;
	now = 1000 * NS_PER_S;
	cr_expect_eq(stop(), XR_OK);
	EXPECT_DONE("ask at 1000000; ");
	has_socket = false;
	socket_owner = SUPER;
	now = 1000 * NS_PER_S;
	cr_expect_eq(stop(), XR_OK);
	EXPECT_DONE("ask at 1000000; ");
}

Test(steer_stop, where_the_supervisor_does_not_answer_the_keeper_ends_the_job)
{
	for (int i = 0; i < 8; i++)
		answers[i].status = XR_E_TIMEOUT;
	ends_after_signal = 20 * NS_PER_MS;
	cr_expect_eq(stop(), XR_OK);
	EXPECT_DONE(
		"ask at 1000000; open 4711; Terminated at 1000000; Continued at 1000000; ");
	cr_expect_eq(answer.count, CONTROL_NONE);
	/* It answers by now, and has time. */
	ends = INT64_MAX;
	ends_after_signal = -1;
	answers[2].status = XR_OK;
	answers[2].seconds = 3;
	answers[3].status = XR_OK;
	answers[3].seconds = 0;
	now = 1000 * NS_PER_S;
	cr_expect_eq(stop(), XR_E_TIMEOUT);
	EXPECT_DONE(
		"ask at 1000000; open 4711; Terminated at 1000000; Continued at 1000000; "
		"ask at 1001000; ask at 1002000; ask at 1005000; ");
	cr_expect_str_eq(err.text,
		"stop: k7m2 has not ended within 3 s\txrun ps k7m2");
	/* Nor does it end within a minute. */
	answers[2].status = XR_E_NOTFOUND;
	answers[3].status = XR_E_CLOSED;
	now = 1000 * NS_PER_S;
	cr_expect_eq(stop(), XR_E_TIMEOUT);
	cr_expect_eq(now, 1060 * NS_PER_S);
	cr_expect_str_eq(err.text, "answer 7");
	/* It says that the job has ended. */
	answers[1].status = XR_E_STATE;
	now = 1000 * NS_PER_S;
	cr_expect_eq(stop(), XR_OK);
	cr_expect_eq(now, 1001 * NS_PER_S);
}

Test(steer_stop, a_job_without_a_socket_has_a_keeper)
{
	answers[0].status = XR_E_NOTFOUND;
	ends_after_signal = 0;
	record = "{}";
	has_socket = true;
	socket_owner = SUPER;
	cr_expect_eq(stop(), XR_OK);
	EXPECT_DONE(
		"ask at 1000000; open 4711; Terminated at 1000000; Continued at 1000000; ");
	ends = INT64_MAX;
	job.dir[0] = '\0';
	cr_expect_eq(stop(), XR_OK);
	EXPECT_DONE(
		"ask at 1000000; open 4711; Terminated at 1000000; Continued at 1000000; ");
	/* Nobody is to be told. */
	ends = INT64_MAX;
	has_socket = false;
	cr_expect_eq(stop(), XR_E_NOTFOUND);
	cr_expect_str_eq(err.text, "answer 0");
	EXPECT_DONE("ask at 1000000; ");
	has_socket = true;
	super_name = "bash";
	cr_expect_eq(stop(), XR_E_NOTFOUND);
	no_pidfd = true;
	super_name = KEEPER_SUPER_NAME;
	cr_expect_eq(stop(), XR_E_NOTFOUND);
	no_pidfd = false;
	super_parent = 1;
	record = "{\"pid\":1}";
	snprintf(job.dir, sizeof(job.dir), "job");
	cr_expect_eq(stop(), XR_E_NOTFOUND);
	EXPECT_DONE("ask at 1000000; ");
	super_parent = KEEPER;
	/* It ends meanwhile. */
	ends_meanwhile = true;
	cr_expect_eq(stop(), XR_E_NOTFOUND);
	EXPECT_DONE("ask at 1000000; open 4711; ");
	ends = INT64_MAX;
	ends_meanwhile = false;
	/* Another error is no reason to do so. */
	answers[0].status = XR_E_CLOSED;
	cr_expect_eq(stop(), XR_E_CLOSED);
	EXPECT_DONE("ask at 1000000; ");
}
