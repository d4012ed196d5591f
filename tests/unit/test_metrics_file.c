/* SPDX-License-Identifier: Apache-2.0 */
/* test_metrics_file.c - the file of --metrics-file: written, lost, late. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/status.h"
#include "event/work.h"
#include "launcher/job/sup.h"
#include "launcher/job/words.h"
#include "launcher/tell/metrics_file.h"
#include "launcher/tell/report.h"
#include "tests/unit/folder.h"

static struct sup sup;
static struct job job = { .sup = &sup };

/* --- the job, its thread and its timer -------------------------------------- */

static const char *json = "{\"job\":\"k7m2\"}";
static work_fn *held; /* what the thread is to do */
static void *held_for;
static timer_fn *on_time;
static unsigned armed, timers, works, asked;
static bool waits = true, room = true, refuses;
static struct buf said;

void __wrap_report_put_now(struct job *job_, struct buf *out);
struct work *__wrap_work_new(void);
bool __wrap_work_post(struct work *work, work_fn *fn, void *ctx);
bool __wrap_work_wait(struct work *work, int64_t ns);
struct timer *__wrap_timer_open(struct loop *loop, timer_fn *fn, void *ctx);
void __wrap_timer_arm(struct timer *timer, int64_t ns);
void __wrap_logs_say(struct logs *logs, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
bool __wrap_words_have_room(void);
void __wrap_words_line(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));

void
__wrap_report_put_now(struct job *job_, struct buf *out)
{
	cr_expect_eq(job_, &job);
	asked++;
	buf_put_text(out, json);
}

struct work *
__wrap_work_new(void)
{
	works++;
	return (struct work *)&works;
}

bool
__wrap_work_post(struct work *work, work_fn *fn, void *ctx)
{
	cr_expect_eq(work, (struct work *)&works);
	if (refuses)
		return false;
	cr_expect_null(held);
	held = fn;
	held_for = ctx;
	return true;
}

bool
__wrap_work_wait(struct work *work, int64_t ns)
{
	(void)work;
	cr_expect_eq(ns, NS_PER_S);
	return waits;
}

struct timer *
__wrap_timer_open(struct loop *loop, timer_fn *fn, void *ctx)
{
	(void)loop;
	cr_expect_eq(ctx, &job);
	on_time = fn;
	timers++;
	return (struct timer *)&timers;
}

void
__wrap_timer_arm(struct timer *timer, int64_t ns)
{
	cr_expect_eq(timer, (struct timer *)&timers);
	cr_expect_eq(ns, 5 * NS_PER_S);
	armed++;
}

static void __attribute__((format(printf, 2, 0)))
say(const char *from, const char *fmt, va_list ap)
{
	char line[600];

	vsnprintf(line, sizeof(line), fmt, ap);
	buf_fmt(&said, "%s%s\n", from, line);
}

void
__wrap_logs_say(struct logs *logs, const char *fmt, ...)
{
	va_list ap;

	(void)logs;
	va_start(ap, fmt);
	say("", fmt, ap);
	va_end(ap);
}

bool
__wrap_words_have_room(void)
{
	return room;
}

void
__wrap_words_line(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("words: ", fmt, ap);
	va_end(ap);
}

/* The thread does what it has. */
static void
work(void)
{
	work_fn *fn = held;

	cr_assert_not_null(fn);
	held = NULL;
	fn(held_for);
}

static void
is_said(const char *want)
{
	cr_expect_str_eq(buf_text(&said), want, "got:  %s\nwant: %s",
		buf_text(&said), want);
	buf_clear(&said);
}

static void
begin(void)
{
	folder_make();
	job.opt.metrics_file = (char *)"metrics";
}

static void
end(void)
{
	if (held != NULL)
		work();
	buf_fini(&said);
	folder_remove();
}

TestSuite(metrics_file, .init = begin, .fini = end);

/* --- written ---------------------------------------------------------------- */

static bool
file_has(const char *text)
{
	char got[65536] = "";
	FILE *f = fopen("metrics", "r");

	if (f == NULL)
		return false;
	got[fread(got, 1, sizeof(got) - 1, f)] = '\0';
	fclose(f);
	return strstr(got, text) != NULL;
}

Test(metrics_file, without_the_option_nothing_is_done)
{
	job.opt.metrics_file = NULL;
	metrics_file_begin(&job);
	metrics_file_last(&job);
	metrics_file_end(&job);
	cr_expect_eq(timers + works + asked, 0);
}

Test(metrics_file, it_is_new_every_five_seconds_and_at_the_end)
{
	char beside[64];

	snprintf(beside, sizeof(beside), "metrics.%d.tmp", (int)getpid());
	folder_write("other", "kept", 0600);
	cr_assert_eq(symlink("other", beside), 0);
	metrics_file_begin(&job);
	cr_expect_eq(armed, 1);
	cr_expect_neq(access("metrics", F_OK), 0);
	work();
	cr_expect(file_has("k7m2"));
	cr_expect_eq(folder_entries("."), 2);
	folder_expect("other", "kept");
	json = "{\"job\":\"m3n4\"}";
	on_time(&job);
	cr_expect_eq(armed, 2);
	cr_expect_eq(works, 1);
	/* the disk is slow: one waits, not many */
	on_time(&job);
	cr_expect_eq(armed, 3);
	cr_expect_eq(asked, 2);
	work();
	cr_expect(file_has("m3n4"));
	cr_expect_not(file_has("k7m2"));
	on_time(&job);
	cr_expect_eq(asked, 3);
	work();
	sup.phase = PHASE_DELIVER;
	on_time(&job);
	cr_expect_eq(asked, 3);
	cr_expect_eq(armed, 4);
	json = "{\"job\":\"o5p6\"}";
	metrics_file_last(&job);
	work();
	cr_expect(file_has("o5p6"));
	metrics_file_end(&job);
	is_said("");
}

/* --- not written ------------------------------------------------------------ */

Test(metrics_file, a_file_that_cannot_be_written_is_told_once)
{
	job.opt.metrics_file = (char *)"no/metrics";
	metrics_file_begin(&job);
	work();
	is_said("");
	on_time(&job);
	is_said("xrun: --metrics-file: no/metrics: No such file or directory; it is tried again, and not told of any more\n");
	work();
	on_time(&job);
	is_said("");
	work();
	metrics_file_end(&job);
	is_said("");
}

Test(metrics_file, the_last_one_that_cannot_be_written_is_told)
{
	metrics_file_begin(&job);
	work();
	cr_assert_eq(unlink("metrics"), 0);
	cr_assert_eq(mkdir("metrics", 0700), 0);
	metrics_file_last(&job);
	work();
	cr_expect_eq(folder_entries("."), 1); /* the one beside it is gone */
	metrics_file_end(&job);
	is_said("words: --metrics-file: metrics: Is a directory\n");
	room = false;
	metrics_file_end(&job);
	is_said("");
	room = true;
	waits = false;
	metrics_file_end(&job);
	is_said("words: --metrics-file: metrics: not written within 1 s\n");
}

Test(metrics_file, what_is_no_json_is_not_written)
{
	json = "{\"job\":";
	metrics_file_begin(&job);
	work();
	cr_expect_neq(access("metrics", F_OK), 0);
	on_time(&job);
	is_said("xrun: --metrics-file: metrics: Cannot allocate memory; it is tried again, and not told of any more\n");
}

Test(metrics_file, what_the_thread_does_not_take_is_tried_again)
{
	refuses = true;
	metrics_file_begin(&job);
	cr_expect_null(held);
	cr_expect_not(sup.metrics_file.busy);
	refuses = false;
	on_time(&job);
	work();
	cr_expect(file_has("k7m2"));
	is_said("");
}

Test(metrics_file, a_name_that_is_too_long_is_refused_by_the_thread)
{
	static char name[PATH_MAX + 1];

	int more = snprintf(NULL, 0, ".%d.tmp", (int)getpid());

	for (int i = 0; i < PATH_MAX - more; i++) /* one byte too long */
		name[i] = i % 2 == 0 ? '.' : '/';
	job.opt.metrics_file = name;
	metrics_file_begin(&job);
	work();
	cr_expect_eq(sup.metrics_file.sys, ENAMETOOLONG);
	cr_expect_eq(folder_entries("."), 0);
}

/* --- at the start ----------------------------------------------------------- */

static void
is_refused(const char *path, enum xr_status status, const char *want)
{
	struct xr_error err = { 0 };

	cr_expect_eq(metrics_file_check(path, &err), status, "%s", path);
	cr_expect_str_eq(err.text, want);
}

Test(metrics_file, a_place_where_it_cannot_be_is_refused)
{
	folder_write("file", "", 0600);
	cr_assert_eq(mkdir("folder", 0700), 0);
	cr_assert_eq(symlink("file", "link"), 0);
	is_refused("file", XR_OK, "");
	is_refused("new", XR_OK, "");
	is_refused("folder/new", XR_OK, "");
	is_refused("/nowhere", access("/", W_OK) == 0 ? XR_OK : XR_E_SYS,
		access("/", W_OK) == 0 ?
			"" :
			"--metrics-file: /nowhere: Permission denied");
	is_refused("link", XR_E_INVAL,
		"--metrics-file: link is no regular file, and would be replaced\tthe name of a file");
	is_refused("folder", XR_E_INVAL,
		"--metrics-file: folder is no regular file, and would be replaced\tthe name of a file");
	is_refused("no/new", XR_E_SYS,
		"--metrics-file: no/new: No such file or directory");
	cr_assert_eq(mkdir("closed", 0500), 0);
	if (geteuid() != 0)
		is_refused("closed/new", XR_E_SYS,
			"--metrics-file: closed/new: Permission denied");
	is_refused("file/new", XR_E_SYS,
		"--metrics-file: file/new: Not a directory");
}
