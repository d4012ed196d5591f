/* SPDX-License-Identifier: Apache-2.0 */
/* test_final_report_thread.c - finalisers (worker/proc/final.c), what functions report
 * (report.c), and threads that keep what they failed of (thread.c). Time stands still. */
#include <pthread.h>

#include <sys/prctl.h>

#include <xrun/final.h>
#include <xrun/proc.h>

#include "base/clock.h"
#include "tests/unit/forked.h"
#include "tests/unit/leaks.h"
#include "worker/job/last.h"
#include "worker/proc/final.h"
#include "worker/proc/report.h"

int64_t __wrap_clock_now(void);

static int64_t now = 1000;
static struct xr_error error;

int64_t
__wrap_clock_now(void)
{
	return now;
}

TestSuite(final_report_thread, .timeout = 60);

/* --- finalisers -------------------------------------------------------------- */

static char run_order[16];

static void
note(void *ctx)
{
	strncat(run_order, ctx, 1);
}

FORKED_TEST(final_report_thread,
	finalisers_run_by_priority_and_the_latest_first_of_equal_ones)
{
	static char name[] = "abcdef";
	const int32_t priority[] = { 0, 5, 0, INT32_MIN, 5, INT32_MAX };
	struct xr_final *f[6];
	int how = -1;
	pid_t pid;

	for (int i = 0; i < 6; i++)
		NEED(xr_final_new(note, name + i, priority[i], &f[i], &error) ==
			XR_OK);
	pid = fork();
	if (pid == 0) {
		NEED(xr_final_new(note, "y", 7, NULL, &error) == XR_OK);
		NEED(xr_final_new(note, "x", 0, NULL, &error) == XR_OK);
		final_run_all();
		EXPECT_STR(run_order, "yx");
		_exit(forked_wrong > 0);
	}
	NEED(waitpid(pid, &how, 0) == pid);
	EXPECT_EQ(how, 0);
	xr_final_drop(f[4]);
	EXPECT(xr_final_run(f[2]));
	EXPECT_STR(run_order, "c");
	final_run_all();
	EXPECT_STR(run_order, "cfbad");
	final_run_all();
	EXPECT_STR(run_order, "cfbad");
	leaks_none();
}

/* --- reports ------------------------------------------------------------------ */

FORKED_TEST(final_report_thread, time_is_counted_to_the_nanosecond)
{
	const int64_t ms = NS_PER_MS, most = INT32_MAX * ms;
	int64_t deadline = 0;

	EXPECT_EQ(run_ms(now - 1), 0);
	EXPECT_EQ(run_ms(now), 0);
	EXPECT_EQ(run_ms(now + 1), 1);
	EXPECT_EQ(run_ms(now + ms), 1);
	EXPECT_EQ(run_ms(now + ms + 1), 2);
	EXPECT_EQ(run_ms(now + most - ms), INT32_MAX - 1);
	EXPECT_EQ(run_ms(now + most), INT32_MAX);
	EXPECT_EQ(run_ms(now + most + 1), INT32_MAX);
	EXPECT_EQ(run_ms(INT64_MAX), -1);
	EXPECT_EQ(run_deadline(5, &deadline, &error), XR_OK);
	EXPECT_EQ(deadline, now + 5);
	EXPECT_EQ(run_deadline(0, &deadline, &error), XR_OK);
	EXPECT_EQ(deadline, now);
	EXPECT_EQ(run_deadline(INT64_MAX - now - 1, &deadline, &error), XR_OK);
	EXPECT_EQ(deadline, INT64_MAX - 1);
	EXPECT_EQ(run_deadline(XR_TIMEOUT_NEVER, &deadline, &error), XR_OK);
	EXPECT_EQ(deadline, INT64_MAX);
}

static struct xr_value *
failure_of(enum xr_status status, const char *text)
{
	return xr_value_new_error(&(struct xr_failure){
		.size = sizeof(struct xr_failure),
		.status = status,
		.text = text });
}

FORKED_TEST(final_report_thread, what_is_raised_is_held_until_another_is)
{
	unsigned before = leaks.count;

	EXPECT_EQ(xr_proc_raise(NULL, &error), XR_E_NOMEM);
	EXPECT_EQ(xr_proc_raise(xr_value_new_i64(3), &error), XR_E_INVAL);
	EXPECT_EQ(leaks.count, before);
	EXPECT_EQ(xr_proc_raise(failure_of(XR_OK, "no"), &error), XR_E_INVAL);
	EXPECT_EQ(leaks.count, before);
	EXPECT_EQ(xr_proc_raise(failure_of(XR_E_RANGE, "one"), &error),
		XR_E_RANGE);
	EXPECT_STR(error.text, "one");
	EXPECT(leaks.count > before);
	before = leaks.count;
	EXPECT_EQ(xr_proc_raise(failure_of(XR_E_CLOSED, "two"), &error),
		XR_E_CLOSED);
	EXPECT_STR(error.text, "two");
	EXPECT_EQ(leaks.count, before);
}

/* Ordinal 1 fails, 2 raises, and all else is well. @ctx gets what it was given. */
struct seen {
	int64_t arg;
	uint32_t ordinal;
	enum xr_kind kind;
	char name[16];
	unsigned calls;
};

static enum xr_status
acts(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	struct seen *seen = ctx;

	seen->calls++;
	seen->ordinal = ordinal;
	seen->kind = xr_value_kind(arg);
	if (seen->kind == XR_I64)
		EXPECT_EQ(xr_value_get_i64(arg, &seen->arg), XR_OK);
	prctl(PR_GET_NAME, seen->name, 0, 0, 0);
	if (ordinal == 1)
		return xr_error_set(err, XR_E_RANGE, "it failed");
	if (ordinal == 2)
		return xr_proc_raise(failure_of(XR_E_STATE, "raised"), err);
	return XR_OK;
}

static enum xr_status
cleans(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	(void)ordinal;
	(void)arg;
	((struct seen *)ctx)->calls += 10;
	return xr_error_set(err, XR_E_CLOSED, "not clean");
}

/* Expects of @report all that it has. */
static void
expect_report(const struct xr_value *report, enum xr_status status,
	const char *text, const char *func, const char *name)
{
	struct xr_failure f = { .size = sizeof(f) };
	char where[200];

	NEED(report != NULL);
	EXPECT_EQ(xr_value_failure(report, &f), XR_OK);
	EXPECT_EQ(f.status, status);
	EXPECT_STR(f.text, text);
	EXPECT_STR(f.func, func);
	EXPECT_EQ(f.worker_id, getpid());
	snprintf(where, sizeof(where), "%s, process %d, since 20", name,
		(int)getpid());
	EXPECT(strncmp(f.worker, where, strlen(where)) == 0);
	EXPECT(strncmp(f.backtrace, "  #0  ", 6) == 0);
}

FORKED_TEST(final_report_thread, a_function_that_fails_reports)
{
	struct seen seen = { 0 };
	struct run run = { .fn = acts,
		.ctx = &seen,
		.name = "its name",
		.func = "its function",
		.started = INT64_C(1700000000) * NS_PER_S };
	struct xr_value *report = NULL;
	unsigned before = leaks.count;

	EXPECT_EQ(run_do(&run, &error, &report), XR_OK);
	EXPECT(report == NULL);
	EXPECT(!last_keep(false)); /* as it was */
	EXPECT_EQ(seen.kind, XR_NIL);
	run.ordinal = 1;
	run.arg = xr_value_new_i64(-5);
	last_keep(true);
	EXPECT_EQ(run_do(&run, &error, &report), XR_E_RANGE);
	EXPECT(last_keep(false));
	EXPECT_EQ(error.status, XR_E_RANGE);
	EXPECT_STR(error.text, "it failed");
	EXPECT_EQ(seen.arg, -5);
	expect_report(report, XR_E_RANGE, "it failed", "its function",
		"its name");
	xr_value_unref(report);
	run.ordinal = 2;
	EXPECT_EQ(run_do(&run, &error, &report), XR_E_STATE);
	EXPECT_STR(error.text, "raised");
	expect_report(report, XR_E_STATE, "raised", "its function", "its name");
	xr_value_unref(report);
	xr_value_unref(run.arg);
	EXPECT_EQ(leaks.count, before);
}

/* --- threads -------------------------------------------------------------------- */

static struct xr_thread *
start(struct xr_thread_opts o)
{
	struct xr_thread *t = NULL;

	o.size = sizeof(o);
	NEED(xr_thread_start(&o, &t, &error) == XR_OK);
	EXPECT_EQ(xr_thread_wait(t, XR_TIMEOUT_NEVER, &error), XR_OK);
	EXPECT_EQ(xr_thread_wait(t, 0, &error), XR_OK);
	return t;
}

FORKED_TEST(final_report_thread, a_thread_has_what_it_is_given)
{
	struct seen seen = { 0 };
	struct xr_value *arg = xr_value_new_i64(77);
	unsigned before = leaks.count;
	struct xr_thread *t = start((struct xr_thread_opts){ .fn = acts,
		.ctx = &seen,
		.name = "a name of 17 byte",
		.ordinal = 9,
		.arg = arg });

	EXPECT_EQ(seen.calls, 1);
	EXPECT_EQ(seen.ordinal, 9);
	EXPECT_EQ(seen.arg, 77);
	EXPECT_STR(seen.name, "a name of 17 by");
	EXPECT_EQ(xr_thread_watch(t, 0, &error), XR_OK);
	EXPECT(xr_thread_report(t, 0) == NULL);
	xr_thread_free(t);
	EXPECT_EQ(leaks.count, before);
	xr_value_unref(arg);
	t = start((struct xr_thread_opts){ .fn = acts, .ctx = &seen });
	EXPECT_STR(seen.name, "thread");
	EXPECT_EQ(seen.kind, XR_NIL);
	xr_thread_free(t);
}

FORKED_TEST(final_report_thread, a_thread_keeps_what_it_and_its_cleaner_fail_of)
{
	struct seen seen = { 0 };
	unsigned before = leaks.count;
	struct xr_thread *t = start((struct xr_thread_opts){ .fn = acts,
		.cleaner = cleans,
		.ctx = &seen,
		.name = "both",
		.ordinal = 1 });

	EXPECT_EQ(seen.calls, 11);
	EXPECT_EQ(xr_thread_watch(t, 0, &error), XR_E_RANGE);
	EXPECT_EQ(error.status, XR_E_RANGE);
	EXPECT_STR(error.text, "it failed");
	expect_report(xr_thread_report(t, 0), XR_E_RANGE, "it failed",
		"function", "both");
	expect_report(xr_thread_report(t, 1), XR_E_CLOSED, "not clean",
		"cleaner", "both");
	EXPECT(xr_thread_report(t, 2) == NULL);
	xr_thread_free(t);
	EXPECT_EQ(leaks.count, before);
	t = start((struct xr_thread_opts){ .fn = acts,
		.cleaner = cleans,
		.ctx = &seen });
	EXPECT_EQ(xr_thread_watch(t, XR_TIMEOUT_NEVER, &error), XR_E_CLOSED);
	EXPECT_STR(error.text, "not clean");
	expect_report(xr_thread_report(t, 0), XR_E_CLOSED, "not clean",
		"cleaner", "thread");
	EXPECT(xr_thread_report(t, 1) == NULL);
	xr_thread_free(t);
	EXPECT_EQ(leaks.count, before);
}

static enum xr_status
waits(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	char one;

	(void)arg;
	(void)ctx;
	return read((int)ordinal, &one, 1) == 1 ?
		xr_error_set(err, XR_E_RANGE, "read") :
		XR_OK;
}

/* By now, 1000 ns after the machine began, every deadline is over. */
FORKED_TEST(final_report_thread, a_thread_that_runs_is_waited_for_in_time)
{
	struct xr_thread_opts o = { .size = sizeof(o), .fn = waits };
	struct xr_thread *t = NULL;
	int ends[2];

	NEED(pipe2(ends, O_CLOEXEC) == 0);
	o.ordinal = (uint32_t)ends[0];
	o.name = "reader";
	NEED(xr_thread_start(&o, &t, &error) == XR_OK);
	EXPECT_EQ(xr_thread_wait(t, 0, &error), XR_E_TIMEOUT);
	EXPECT_STR(error.text, "reader runs still");
	memset(&error, 0, sizeof(error));
	EXPECT_EQ(xr_thread_watch(t, NS_PER_S, &error), XR_E_TIMEOUT);
	EXPECT_STR(error.text, "reader runs still");
	EXPECT(xr_thread_report(t, 0) == NULL);
	EXPECT_EQ(write(ends[1], "w", 1), 1);
	EXPECT_EQ(xr_thread_wait(t, XR_TIMEOUT_NEVER, &error), XR_OK);
	EXPECT_EQ(xr_thread_watch(t, 0, &error), XR_E_RANGE);
	EXPECT(xr_thread_report(t, 0) != NULL);
	xr_thread_free(t);
}
