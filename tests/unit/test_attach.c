/* SPDX-License-Identifier: Apache-2.0 */
/* test_attach.c - xrun attach: lines, the terminal of a rank, and how it ends. */
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <termios.h>

#include "base/ranks.h"
#include "base/status.h"
#include "launcher/cmd/attach_keys.h"
#include "launcher/cmd/logs_inner.h"
#include "launcher/cmd/steer.h"
#include "launcher/job/options.h"
#include "launcher/log/thread.h"
#include "tests/unit/verb_rig.h"

enum xr_status __wrap_attempt_open(struct attempt *a, int64_t number,
	struct xr_error *err);
bool __wrap_attempt_await_known(struct attempt *a);
bool __wrap_attempt_is_over(const struct attempt *a);
bool __wrap_attempt_next(struct attempt *a);
bool __wrap_attempt_is_followed(const struct attempt *a);
enum xr_status __wrap_reading_follow(struct reading *l, struct xr_error *err);
void __wrap_reading_end(struct reading *l);
enum xr_status __wrap_attach_keys_begin(struct attach_keys *k,
	struct xr_error *err);
enum attached __wrap_attach_keys_run(struct attach_keys *k);
void __wrap_attach_keys_end(struct attach_keys *k);
int __wrap_steer_wait(struct which *job);
int __wrap_isatty(int fd);
int __wrap_thread_start(pthread_t *thread, void *(*fn)(void *), void *arg);

/* What happens, one after the other. */
static enum xr_status begins[8] = { XR_OK }; /* of keyboards */
static enum attached runs[8] = { ATTACHED_OVER };
static int run_signal, run_sys, begin_signal;
static unsigned begun, ran;
static uint32_t ranks = 1, attempts = 1; /* how many there are */
static uint32_t overs; /* looks at an attempt until it is over; 0: it is */
static bool unknown, no_in, no_out, window;
static enum xr_status follow_status;
static int follow_sys, follow_signal;
static const char *words_grow; /* what the job says meanwhile */

static void __attribute__((format(printf, 1, 2)))
note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vdprintf(STDOUT_FILENO, fmt, ap);
	va_end(ap);
}

enum xr_status
__wrap_attempt_open(struct attempt *a, int64_t number, struct xr_error *err)
{
	(void)err;
	cr_expect_eq(number, ATTEMPT_LAST);
	a->folder = open(a->job.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	a->ranks = ranks;
	a->number = 0;
	return XR_OK;
}

bool
__wrap_attempt_await_known(struct attempt *a)
{
	(void)a;
	return !unknown;
}

bool
__wrap_attempt_is_over(const struct attempt *a)
{
	(void)a;
	return overs == 0 || overs-- == 0;
}

bool
__wrap_attempt_next(struct attempt *a)
{
	if (a->number + 1 >= attempts)
		return false;
	a->number++;
	note("next %u; ", a->number);
	return true;
}

bool
__wrap_attempt_is_followed(const struct attempt *a)
{
	return a->number + 1 < attempts;
}

enum xr_status
__wrap_reading_follow(struct reading *l, struct xr_error *err)
{
	FILE *f;

	note("lines of %s tail %lld attempt %lld collapse %d%s%s%s; ",
		l->s.ranks != NULL ? l->s.ranks : "all", (long long)l->s.tail,
		(long long)l->s.attempt, l->s.collapse,
		l->s.follow ? "" : " no follow",
		l->s.prefix ? "" : " no prefix",
		l->s.color == COLOR_AUTO ? "" : " color");
	if (words_grow != NULL) {
		f = fopen(job_path("k7m2", "0/xrun.log"), "a");
		fputs(words_grow, f);
		fclose(f);
	}
	if (follow_signal != 0) {
		raise(follow_signal);
		l->stopped = true;
	}
	l->put.sys = follow_sys;
	if (l->s.attempt == ATTEMPT_LAST)
		l->attempt.number = attempts - 1;
	return follow_status == XR_OK ?
		XR_OK :
		fail(err, follow_status, "it cannot be read");
}

void
__wrap_reading_end(struct reading *l)
{
	(void)l;
	note("end; ");
}

enum xr_status
__wrap_attach_keys_begin(struct attach_keys *k, struct xr_error *err)
{
	enum xr_status status = begins[begun++];

	cr_expect_eq(k->typed, -1);
	cr_expect_eq(k->call.fd, -1);
	note("keys of %u tail %lld: %s; ", k->rank, (long long)k->tail,
		status == XR_OK ? "ok" : "no");
	if (begin_signal != 0 && begun > 1)
		raise(begin_signal);
	return status == XR_OK ? XR_OK : fail(err, status, "somebody types");
}

/* A change of the size of the terminal is told of here, and nowhere else. */
enum attached
__wrap_attach_keys_run(struct attach_keys *k)
{
	char info[128];

	raise(SIGWINCH);
	note("run%s; ",
		read(k->signals, info, sizeof(info)) == sizeof(info) ?
			"" :
			" without size");
	if (runs[ran] == ATTACHED_LEFT)
		k->signal = run_signal;
	k->sys = run_sys;
	return runs[ran++];
}

void
__wrap_attach_keys_end(struct attach_keys *k)
{
	char info[128];

	raise(SIGWINCH);
	note("keys end%s; ",
		read(k->signals, info, sizeof(info)) == -1 ? "" : " with size");
}

int
__wrap_steer_wait(struct which *job)
{
	note("wait %s", job->id);
	return 42;
}

int
__wrap_isatty(int fd)
{
	return window &&
		((fd == STDIN_FILENO && !no_in) ||
			(fd == STDOUT_FILENO && !no_out));
}

int
__wrap_thread_start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	(void)thread;
	(void)fn;
	(void)arg;
	return 0;
}

static void
begin(void)
{
	verb_rig_make();
	job_make("k7m2", true, NULL);
	cr_assert_eq(mkdir(job_path("k7m2", "0"), 0700), 0);
	cr_assert_eq(mkdir(job_path("k7m2", "1"), 0700), 0);
	folder_write(job_path("k7m2", "0/xrun.log"), "before\n", 0600);
	folder_write(job_path("k7m2", "1/xrun.log"), "of 1\n", 0600);
}

TestSuite(attach, .init = begin, .fini = folder_remove, .timeout = 60);

#define LAST "attempt -1 collapse 0; end; "
#define LEFT "xrun: left k7m2 running; xrun attach k7m2 comes back\n"

Test(attach, lines_and_then_the_end_of_the_job)
{
	cr_assert_eq(ATTEMPT_LAST, -1);
	CALL("attach", "k7m2");
	EXPECT_SAID(42, "lines of all tail 10 " LAST "wait k7m2", "");
	CALL("attach", "-r", "0-3", "--tail", "7", "--collapse", "off");
	EXPECT_SAID(42,
		"lines of 0-3 tail 7 attempt -1 collapse 2; end; wait k7m2",
		"xrun: job k7m2\n");
	words_grow = "said\n";
	CALL("attach", "k7m2");
	cr_expect_eq(said.status, 42);
	cr_expect_str_eq(said.err, "said\n");
	words_grow = ".";
	CALL("attach", "k7m2");
	cr_expect_str_eq(said.err, ".");
	/* Of another attempt, all that it said. */
	attempts = 2;
	CALL("attach", "k7m2");
	cr_expect_eq(said.status, 42);
	cr_expect_str_eq(said.err, "of 1\n");
}

Test(attach, which_job)
{
	CALL("attach", "x");
	EXPECT_SAID(125, "", "xrun: there is no job 'x'   try: xrun ps -a\n");
	job_make("old", false, NULL);
	CALL("attach", "old");
	EXPECT_SAID(125, "", "xrun: old has ended   try: xrun logs old\n");
	CALL("attach", "a", "b");
	EXPECT_SAID(125, "",
		"xrun: attach: 'b' is one word too many   try: xrun attach -h\n");
	CALL("attach", "-r", "x");
	cr_expect_eq(said.status, 125);
}

Test(attach, lines_that_end_early)
{
	follow_status = XR_E_SYS;
	CALL("attach", "k7m2");
	EXPECT_SAID(125, "lines of all tail 10 " LAST,
		"xrun: it cannot be read\n");
	follow_status = XR_OK;
	follow_sys = EPIPE;
	CALL("attach", "k7m2");
	EXPECT_SAID(141, "lines of all tail 10 " LAST, "");
	follow_sys = ENOSPC;
	CALL("attach", "k7m2");
	EXPECT_SAID(125, "lines of all tail 10 " LAST,
		"xrun: standard output: No space left on device\n");
	follow_signal = SIGTERM;
	CALL("attach", "k7m2");
	EXPECT_SAID(128 + SIGTERM, "lines of all tail 10 " LAST, LEFT);
	follow_signal = SIGINT;
	CALL("attach", "k7m2");
	EXPECT_SAID(130, "lines of all tail 10 " LAST, LEFT);
	follow_signal = SIGHUP;
	CALL("attach", "k7m2");
	cr_expect_eq(said.status, 128 + SIGHUP);
	follow_signal = SIGQUIT;
	CALL("attach", "k7m2");
	cr_expect_eq(said.status, 128 + SIGQUIT);
}

Test(attach, the_terminal_of_a_rank)
{
	window = true;
	runs[0] = ATTACHED_LEFT;
	CALL("attach", "k7m2");
	EXPECT_SAID(130, "keys of 0 tail 10: ok; run; keys end; ", LEFT);
	run_signal = SIGHUP;
	CALL("attach", "k7m2");
	EXPECT_SAID(128 + SIGHUP, "keys of 0 tail 10: ok; run; keys end; ",
		LEFT);
	ranks = 4;
	run_signal = 0;
	CALL("attach", "k7m2", "-r", "2", "--tail", "3");
	EXPECT_SAID(130, "keys of 2 tail 3: ok; run; keys end; ", LEFT);
	runs[0] = ATTACHED_UNWRITTEN;
	run_sys = EIO;
	CALL("attach", "k7m2", "-r", "2");
	EXPECT_SAID(125, "keys of 2 tail 10: ok; run; keys end; ",
		"xrun: standard output: Input/output error\n");
	runs[0] = ATTACHED_OVER;
	CALL("attach", "k7m2", "-r", "2");
	EXPECT_SAID(42,
		"keys of 2 tail 10: ok; run; keys end; lines of 2 tail 0 " LAST
		"wait k7m2",
		"");
}

Test(attach, who_has_no_terminal_for_one_rank_has_lines)
{
	static const char lines[] = "lines of all tail 10 " LAST "wait k7m2";

	window = true;
	CALL("attach", "k7m2", "--no-keys");
	EXPECT_SAID(42, lines, "");
	no_in = true;
	CALL("attach", "k7m2");
	EXPECT_SAID(42, lines, "");
	no_in = false;
	no_out = true;
	CALL("attach", "k7m2");
	EXPECT_SAID(42, lines, "");
	no_out = false;
	unknown = true;
	CALL("attach", "k7m2");
	EXPECT_SAID(42, lines, "");
	unknown = false;
	ranks = 2;
	CALL("attach", "k7m2");
	EXPECT_SAID(42, lines, "");
	CALL("attach", "k7m2", "-r", "0-1");
	EXPECT_SAID(42, "lines of 0-1 tail 10 " LAST "wait k7m2", "");
	CALL("attach", "k7m2", "-r", "2");
	EXPECT_SAID(42, "lines of 2 tail 10 " LAST "wait k7m2", "");
	ranks = 1;
	begins[0] = XR_E_STATE;
	CALL("attach", "k7m2");
	EXPECT_SAID(42,
		"keys of 0 tail 10: no; lines of all tail 10 " LAST "wait k7m2",
		"");
	begins[0] = XR_E_EXISTS;
	CALL("attach", "k7m2");
	EXPECT_SAID(42,
		"keys of 0 tail 10: no; lines of all tail 10 " LAST "wait k7m2",
		"xrun: somebody types; its output alone\n");
}

#define FIRST "keys of 0 tail 10: ok; run; keys end; next 1; "
#define MOST  "9007199254740992"

Test(attach, the_next_attempt_has_a_terminal_of_its_own)
{
	window = true;
	attempts = 2;
	overs = 10;
	runs[1] = ATTACHED_LEFT;
	CALL("attach", "k7m2");
	EXPECT_SAID(130, FIRST "keys of 0 tail " MOST ": ok; run; keys end; ",
		"xrun: attempt 1\n" LEFT);
	/* It is not there at once. */
	begins[1] = begins[2] = XR_E_STATE;
	CALL("attach", "k7m2");
	EXPECT_SAID(130,
		FIRST "keys of 0 tail " MOST ": no; keys of 0 tail " MOST
		      ": no; keys of 0 tail " MOST ": ok; run; keys end; ",
		"xrun: attempt 1\n" LEFT);
	/* Somebody else has it. */
	begins[1] = XR_E_EXISTS;
	CALL("attach", "k7m2");
	EXPECT_SAID(42,
		FIRST "keys of 0 tail " MOST ": no; lines of all tail " MOST
		      " " LAST "wait k7m2",
		"xrun: attempt 1\nxrun: somebody types; its output alone\nof 1\n");
	/* A signal comes before. */
	begins[1] = XR_E_STATE;
	begin_signal = SIGTERM;
	CALL("attach", "k7m2");
	EXPECT_SAID(128 + SIGTERM, FIRST "keys of 0 tail " MOST ": no; ",
		"xrun: attempt 1\n" LEFT);
}

Test(attach, of_an_attempt_that_is_over_before_there_are_lines)
{
	window = true;
	attempts = 3;
	runs[1] = ATTACHED_LEFT;
	begins[1] = XR_OK;
	overs = 0;
	CALL("attach", "k7m2");
	EXPECT_SAID(42,
		FIRST "lines of all tail " MOST " attempt 1 collapse 0; end; "
		      "next 2; lines of all tail " MOST " " LAST "wait k7m2",
		"xrun: attempt 1\nxrun: attempt 2\n");
	follow_signal = SIGTERM;
	CALL("attach", "k7m2");
	EXPECT_SAID(128 + SIGTERM,
		FIRST "lines of all tail " MOST " attempt 1 collapse 0; end; ",
		"xrun: attempt 1\n" LEFT);
}
