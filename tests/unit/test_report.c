/* SPDX-License-Identifier: Apache-2.0 */
/* test_report.c - what --report, job.json and clients read of a job. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include <sys/resource.h>

#include "event/work.h"
#include "launcher/job/outcome.h"
#include "launcher/job/words.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/report.h"
#include "tests/unit/account_rig.h"

TestSuite(report, .init = folder_make, .fini = folder_remove);

/* --- the helper thread, the bus and stderr ---------------------------------- */

static bool idle = true, has_room = true;
static unsigned pushed;
static int64_t armed_ns, left_ns;
static struct buf said;

bool __wrap_work_post(struct work *work, work_fn *fn, void *ctx);
bool __wrap_work_idle(struct work *work);
void __wrap_work_post_own(struct work *work, struct work_task *task,
	work_fn *fn, void *ctx);
void __wrap_work_push(struct work *work);
void __wrap_timer_arm(struct timer *timer, int64_t ns);
int64_t __wrap_timer_left(const struct timer *timer);
bool __wrap_words_have_room(void);
void __wrap_words_line(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));
void __wrap_bus_tell(struct bus *bus, enum bus_event event, uint32_t r);
bool __wrap_bus_flush(struct bus *bus, bool keep);
bool __wrap_bus_flush_last(struct bus *bus, bool keep);

static bool holds; /* the helper thread does nothing of what it has: */
static work_fn *held;
static void *held_for;

bool
__wrap_work_post(struct work *work, work_fn *fn, void *ctx)
{
	(void)work;
	if (holds) {
		held = fn;
		held_for = ctx;
		return true;
	}
	fn(ctx);
	return true;
}

bool
__wrap_work_idle(struct work *work)
{
	(void)work;
	return idle;
}

void
__wrap_work_post_own(struct work *work, struct work_task *task, work_fn *fn,
	void *ctx)
{
	(void)work;
	cr_expect_eq(task, &sup.writing.written);
	cr_expect_eq(fn, report_written);
	cr_expect_eq(ctx, &job);
}

void
__wrap_work_push(struct work *work)
{
	(void)work;
	pushed++;
}

void
__wrap_timer_arm(struct timer *timer, int64_t ns)
{
	(void)timer;
	armed_ns = ns;
}

int64_t
__wrap_timer_left(const struct timer *timer)
{
	(void)timer;
	return left_ns;
}

bool
__wrap_words_have_room(void)
{
	return has_room;
}

void
__wrap_words_line(const char *fmt, ...)
{
	char line[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	buf_fmt(&said, "%s\n", line);
}

static bool flushes = true;

void
__wrap_bus_tell(struct bus *bus, enum bus_event event, uint32_t r)
{
	(void)bus;
	(void)r;
	buf_fmt(&said, "event %s\n", bus_event_name(event));
}

bool
__wrap_bus_flush(struct bus *bus, bool keep)
{
	(void)bus;
	buf_fmt(&said, "flush%s\n", keep ? ", keep" : "");
	return flushes;
}

bool
__wrap_bus_flush_last(struct bus *bus, bool keep)
{
	(void)bus;
	buf_fmt(&said, "flush last%s\n", keep ? ", keep" : "");
	return flushes;
}

static void
is_said(const char *want)
{
	cr_expect_str_eq(buf_text(&said), want, "got:  %s\nwant: %s",
		buf_text(&said), want);
	buf_clear(&said);
}

/* --- the job as it is ------------------------------------------------------- */

static struct plan_deal deals[] = { { .text = (char *)"cuda:3" } };

static void
make_job(uint32_t n, int status)
{
	job.plan.deals = deals;
	job.plan.deal_count = 1;
	job.state.dir_fd = job.state.attempt_fd = -1;
	job.events_fd = job.report_fd = -1;
	page.ctl.dir = -1;
	make_ranks(n, status);
	for (uint32_t r = 0; r < n; r++) {
		ranks[r].step = ranks[r].total = -1;
		ranks[r].state = RANK_DONE;
	}
}

/* report_put_now() tells @want, and not @no. */
static void
is_now(const char *want, const char *no)
{
	struct buf out = { 0 };

	report_put_now(&job, &out);
	cr_expect_eq(out.bad, XR_OK);
	cr_expect(strstr(buf_text(&out), want) != NULL, "no %s in %s", want,
		buf_text(&out));
	cr_expect(no == NULL || strstr(buf_text(&out), no) == NULL, "%s in %s",
		no, buf_text(&out));
	buf_fini(&out);
}

Test(report, the_phase_of_a_job_is_told)
{
	make_job(1, 0);
	job.started = 0;
	is_now("\"phase\":\"waiting\"", "\"exit\":0,\"reason\"");
	job.started = 1;
	is_now("\"phase\":\"running\"", NULL);
	job.stop_ns = 1;
	is_now("\"phase\":\"stopping\"", NULL);
	job.started = 0;
	is_now("\"phase\":\"stopping\"", NULL);
	sup.phase = PHASE_DELIVER;
	is_now("\"phase\":\"ending\"", "\"reason\"");
	sup.phase = PHASE_ACCOUNT;
	is_now("\"phase\":\"ending\"", "\"reason\"");
	sup.phase = PHASE_WRITE;
	page.again.due = 1;
	is_now("\"phase\":\"ending\"", "\"reason\"");
	page.again.due = 0;
	page.again.restarts = 4;
	is_now("\"phase\":\"ended\",\"restarts\":4,\"exit\":0,\"reason\":\"ok\",\"output\":\"logs/k7m2\",\"rank\":[",
		"\"http");
	job.state.attempt = NULL;
	is_now("\"reason\":\"ok\",\"rank\":[", NULL);
}

Test(report, a_job_that_waits_for_a_disk_says_so)
{
	make_job(2, 0);
	ranks[1].full = 2;
	is_now("\"phase\":\"running\",\"waiting\":\"disk\",\"restarts\":0",
		"\"rank\":20,\"pid\":100,\"state\":\"done\",\"waiting\"");
	is_now("\"rank\":21,\"pid\":101,\"state\":\"done\",\"waiting\":\"disk\",\"device\":\"cuda:3\"",
		NULL);
}

Test(report, a_rank_that_has_ended_is_told_of_in_full)
{
	make_job(1, SIGSEGV | DUMPED);
	ranks[0].usage.ru_utime = (struct timeval){ 1, 500000 };
	ranks[0].usage.ru_stime = (struct timeval){ 2, 0 };
	ranks[0].usage.ru_maxrss = 3;
	ranks[0].ready = true;
	ranks[0].told_ns = ranks[0].ended_ns - NS_PER_S / 2;
	ranks[0].step = 4;
	ranks[0].total = 9;
	ranks[0].unheard = 2;
	ranks[0].metrics = (char *)"{\"loss\":1}";
	bytes[0] = 70;
	bytes[1] = 7;
	is_now("\"rank\":[{\"rank\":20,\"pid\":100,\"state\":\"done\",\"device\":\"cuda:3\",\"seconds\":1.5,\"exit\":139,\"signal\":\"SIGSEGV\",\"core\":true,\"cpu_user\":1.5,\"cpu_system\":2,\"rss_peak_bytes\":3072,\"stdout_bytes\":70,\"stderr_bytes\":7,\"ready\":true,\"progress\":{\"step\":4,\"total\":9,\"metrics\":{\"loss\":1},\"unheard\":2,\"seconds_ago\":0.5}}]}",
		NULL);
	/* word that comes after the end is not in the future */
	ranks[0].told_ns = ranks[0].ended_ns + NS_PER_S;
	ranks[0].step = ranks[0].total = -1;
	ranks[0].unheard = 0;
	ranks[0].metrics = NULL;
	is_now("\"progress\":{\"seconds_ago\":0}}]}", NULL);
}

Test(report, ranks_that_live_or_never_began_have_no_end)
{
	make_job(3, 0);
	job.part_count = 2;
	ranks[0].ended_ns = 0;
	ranks[0].death = 0;
	ranks[0].started_ns = clock_now() + NS_PER_S * 3600;
	ranks[0].state = RANK_RUNNING;
	ranks[1] = (struct rank){ .state = RANK_DONE,
		.failed_step = SPAWN_EXEC,
		.failed_sys = ENOENT };
	ranks[2] = (struct rank){ .state = RANK_NEW };
	is_now("\"rank\":20,\"part\":0,\"pid\":100,\"state\":\"running\",\"device\":\"cuda:3\",\"seconds\":-3",
		"\"exit\"");
	is_now("{\"rank\":21,\"part\":0,\"pid\":0,\"state\":\"done\",\"device\":\"cuda:3\",\"step\":\"exec\",\"error\":\"No such file or directory\",\"stdout_bytes\":0,\"stderr_bytes\":0,\"ready\":false}",
		"started");
	is_now("{\"rank\":22,\"part\":1,\"pid\":0,\"state\":\"new\",\"device\":\"cuda:3\",\"stdout_bytes\":0,\"stderr_bytes\":0,\"ready\":false}]}",
		NULL);
}

/* --- the files of the end --------------------------------------------------- */

static char *
read_text(const char *path)
{
	static char text[8192];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd == -1 ? -1 : read(fd, text, sizeof(text) - 1);

	cr_assert_geq(n, 0, "%s", path);
	close(fd);
	text[n] = '\0';
	return text;
}

/* The job has ended, and keeps files in the working directory if @keep. */
static void
end_job(bool keep)
{
	sup.phase = PHASE_WRITE;
	sup.writing = (struct writing){ .keep = keep };
	if (keep && job.state.dir_fd == -1)
		job.state.dir_fd =
			open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	job.report_fd = open("report", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	job.opt.report = (char *)"report";
	job.opt.events = (char *)"events";
	job.begun_ns = 1;
	job.ended_ns = NS_PER_S + 1;
	page.told = 0;
	page.closed = 0;
}

/* report_next() where no descriptor can be had. */
static bool
next_without_descriptors(void)
{
	struct rlimit before, none;
	bool over;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	over = report_next(&job);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	return over;
}

/* --report tells @want of the job, and ends with the file's end. */
static void
is_report(const char *want)
{
	const char *text;

	end_job(false);
	cr_expect(report_next(&job));
	text = read_text("report");
	cr_expect(strstr(text, want) != NULL, "no %s in %s", want, text);
	cr_expect_str_eq(text + strlen(text) - 2, "}\n");
	cr_expect_eq(text[0], '{');
	cr_expect_eq(page.told, KEEPER_VERDICT | outcome_of(&job).exit_status);
	cr_expect_eq(page.closed, 1);
	cr_expect_eq(job.report_sys, 0);
	cr_expect_not(sup.writing.done);
	close(job.report_fd);
}

Test(report, the_end_of_a_job_is_told_with_its_reason)
{
	make_job(3, 0);
	is_report("\"start\":\"1970-01-01T00:00:00.000000Z\",\"cwd\":\"");
	is_report(
		"\"end\":\"1970-01-01T00:00:01.000000Z\",\"exit\":0,\"reason\":\"ok\",\"failed\":0,\"left_behind\":0,\"bytes\":0,\"rank\":[{");
	job.cause = CAUSE_SIGNAL;
	job.cause_signal = SIGTERM;
	job.left = 2;
	bytes[4] = 10;
	share.failed = 3;
	job.state.bytes_before = 5;
	sup.stacks_path = (char *)"stacks.txt";
	is_report(
		"\"exit\":143,\"reason\":\"signal\",\"signal\":\"SIGTERM\",\"failed\":0,\"left_behind\":2,\"bytes\":10,\"lost_bytes\":3,\"bytes_before\":5,\"rank\":[");
	share.failed = 0;
	sup.stacks_kept = true;
	is_report(
		"\"bytes\":10,\"stacks\":\"stacks.txt\",\"bytes_before\":5,\"rank\":[");
	job.cause = CAUSE_HANG;
	ranks[0].hung = ranks[2].hung = true;
	is_report(
		"\"exit\":121,\"reason\":\"hang\",\"hung\":[20,22],\"failed\":0,");
	job.cause = CAUSE_XRUN;
	snprintf(job.cause_text, sizeof(job.cause_text), "no room");
	snprintf(job.unwritten, sizeof(job.unwritten), "a file");
	is_report(
		"\"exit\":125,\"reason\":\"xrun\",\"error\":\"no room\",\"failed\":0,");
	job.cause = CAUSE_NONE;
	is_report(
		"\"exit\":125,\"reason\":\"xrun\",\"error\":\"a file\",\"failed\":0,");
	ranks[1].status = EXITED(3);
	is_report(
		"\"exit\":3,\"reason\":\"failure\",\"culprit\":21,\"failed\":1,");
	parts[0].dir = (char *)"/dir";
	is_report("\"cwd\":\"/dir\",\"end\":\"");
}

Test(report, ranks_are_told_of_in_the_report)
{
	make_job(3, 0);
	job.part_count = 2;
	ranks[0].status = SIGKILL;
	ranks[0].oom = OOM_CGROUP;
	ranks[0].usage.ru_maxrss = 3;
	be_stopped(1, 500, EXITED(9));
	ranks[1].told_ns = ranks[1].ended_ns;
	ranks[2] = (struct rank){ .step = -1, .total = -1 };
	bytes[0] = 70;
	bytes[1] = 7;
	dropped[2] = 5;
	dropped[3] = 6;
	unseen[4] = 8;
	unseen[5] = 9;
	is_report(
		"\"rank\":[{\"rank\":20,\"part\":0,\"pid\":100,\"device\":\"cuda:3\",\"exit\":137,\"signal\":\"SIGKILL\",\"core\":false,\"oom\":\"cgroup\",\"stopped\":false,\"death\":1,\"seconds\":1.5,\"cpu_user\":0,\"cpu_system\":0,\"rss_peak_bytes\":3072,\"stdout_bytes\":70,\"stderr_bytes\":7},"
		"{\"rank\":21,\"part\":0,\"pid\":101,\"device\":\"cuda:3\",\"exit\":9,\"stopped\":true,\"death\":2,\"seconds\":2,\"cpu_user\":0,\"cpu_system\":0,\"rss_peak_bytes\":0,\"progress\":{\"seconds_ago\":0},\"stdout_bytes\":0,\"stderr_bytes\":0,\"dropped_bytes\":11},"
		"{\"rank\":22,\"part\":1,\"pid\":0,\"device\":\"cuda:3\",\"exit\":null,\"started\":false,\"stopped\":false,\"death\":0,\"cpu_user\":0,\"cpu_system\":0,\"rss_peak_bytes\":0,\"stdout_bytes\":0,\"stderr_bytes\":0,\"unseen_bytes\":17}]}");
}

Test(report, what_is_kept_of_the_end_is_written_once)
{
	char report[8192];

	make_job(2, EXITED(3));
	folder_write("report", "what stood in the file before", 0600);
	end_job(true);
	cr_expect(report_next(&job));
	is_said("flush, keep\nevent job.end\nflush last, keep\n");
	snprintf(report, sizeof(report), "%s", read_text("report"));
	cr_expect_str_eq(read_text("job.json"), report);
	cr_expect(sup.writing.done);
	cr_expect(sup.retained);
	cr_expect_eq(sup.writing.stage, WRITE_OVER);
	cr_expect(report_next(&job));
	is_said("");
}

Test(report, before_another_attempt_nothing_is_written_of_the_end)
{
	make_job(1, EXITED(3));
	page.again.due = 1;
	end_job(true);
	cr_expect(report_next(&job));
	is_said("flush, keep\nevent job.restart\nflush last, keep\n");
	cr_expect_str_eq(read_text("report"), "");
	cr_expect_neq(access("job.json", F_OK), 0);
	cr_expect_eq(page.told, 0);
	cr_expect_eq(page.closed, 0);
	cr_expect_not(sup.writing.done);
}

Test(report, files_that_are_lost_are_told_once)
{
	make_job(1, 0);
	job.events_fd = 0;
	job.events_sys = ENOSPC;
	end_job(true);
	close(job.report_fd);
	job.report_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	close(job.state.dir_fd);
	job.state.dir = (char *)"logs/k7m2";
	cr_assert_eq(mkdir("gone", 0700), 0);
	job.state.dir_fd = open("gone", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(rmdir("gone"), 0);
	cr_expect(report_next(&job));
	is_said("flush, keep\n"
		"--events: events: No space left on device; it is not complete\n"
		"event job.end\nflush last, keep\n"
		"--report: report: No space left on device; it is not complete\n"
		"logs/k7m2: job.json or events.jsonl: No such file or directory; not complete\n");
	cr_expect_str_eq(job.unwritten,
		"--events: events: No space left on device");
	cr_expect_eq(page.told, KEEPER_VERDICT | 125);
	/* where nobody reads it, it is not told */
	has_room = false;
	job.unwritten[0] = '\0';
	sup.writing.stage = WRITE_REST;
	cr_expect(report_next(&job));
	is_said("");
	cr_expect_str_eq(job.unwritten,
		"--report: report: No space left on device");
}

Test(report, a_slow_file_is_waited_for_and_given_up)
{
	make_job(1, 0);
	job.events_fd = 0;
	end_job(true);
	idle = false;
	cr_expect_not(report_next(&job));
	is_said("flush, keep\n");
	cr_expect_eq(armed_ns, 5 * NS_PER_S);
	cr_expect_eq(pushed, 1);
	armed_ns = 0;
	cr_expect_not(report_next(&job));
	is_said("event job.end\nflush last, keep\n");
	cr_expect_eq(armed_ns, 0);
	/* the patience is over */
	sup.writing.late = true;
	cr_expect(report_next(&job));
	is_said("--events: events: not written within 5 s; it is not complete\n");
	cr_expect_eq(job.events_sys, ETIMEDOUT);
	cr_expect_eq(job.report_sys, 0);
	cr_expect_eq(pushed, 2);
}

Test(report, without_events_nothing_but_the_report_is_waited_for)
{
	make_job(1, EXITED(3));
	end_job(false);
	idle = false;
	cr_expect_not(report_next(&job));
	is_said("flush\nevent job.end\nflush last\n");
	cr_expect_eq(pushed, 1);
	cr_expect_eq(page.told, KEEPER_VERDICT | 3);
	cr_expect_neq(page.text, 0);
	cr_expect_eq(page.closed, 0);
	/* no copy of the text can be made for the keeper */
	page.text = 0;
	end_job(false);
	cr_expect_not(next_without_descriptors());
	cr_expect_eq(page.told, KEEPER_VERDICT | 3);
	cr_expect_eq(page.text, 0);
	cr_expect_eq(job.report_sys, 0);
}

Test(report, a_report_that_cannot_be_written_does_not_tell_the_end)
{
	make_job(1, EXITED(3));
	end_job(false);
	close(job.report_fd);
	job.report_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	idle = false;
	cr_expect_not(next_without_descriptors());
	cr_expect_eq(page.told, 0);
	cr_expect_eq(job.report_sys, ENOSPC);
}

Test(report, a_report_that_is_not_there_in_time_is_told)
{
	make_job(1, 0);
	end_job(true);
	job.state.dir = (char *)"logs/k7m2";
	holds = true;
	idle = false;
	cr_expect_not(report_next(&job));
	is_said("flush, keep\nevent job.end\nflush last, keep\n");
	sup.writing.late = true;
	cr_expect(report_next(&job));
	is_said("--report: report: not written within 5 s; it is not complete\n"
		"logs/k7m2: job.json or events.jsonl: not written within 5 s; not complete\n");
	cr_expect_eq(page.told, KEEPER_VERDICT | 125);
	held(held_for);
	cr_expect_eq(job.report_sys, 0);
}

Test(report, at_its_beginning_a_job_has_no_end)
{
	char text[8192];

	make_job(1, 0);
	page.record.lineage = 0xabc;
	page.record.ticks = 7;
	ranks[0].full = 1;
	job.state.dir_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	report_job(&job);
	snprintf(text, sizeof(text), "%s", read_text("job.json"));
	cr_expect(strncmp(text, "{\"v\":1,\"job\":\"k7m2\",", 20) == 0, "%s",
		text);
	cr_expect(
		strstr(text,
			"\"lineage\":\"0000000000000abc\",\"ticks\":7,\"waiting\":\"disk\"}\n") !=
			NULL,
		"%s", text);
	cr_expect_eq(page.told, 0);
	cr_expect_not(sup.writing.done);
	cr_expect_eq(job.state_sys, 0);
	cr_expect_neq(fcntl(job.state.dir_fd, F_GETFD), -1);
}

Test(report, the_patience_with_files_is_less_if_the_job_was_told_to_end)
{
	make_job(1, 0);
	idle = false;
	sup.output_dropped = true;
	cr_expect(report_wait(&job));
	cr_expect_eq(armed_ns, NS_PER_S);
	sup.output_dropped = false;
	sup.until_ns = 1;
	left_ns = 5 * NS_PER_S;
	sup.writing.waits = false;
	armed_ns = 0;
	cr_expect(report_wait(&job));
	cr_expect_eq(armed_ns, 0);
	left_ns++;
	cr_expect(report_wait(&job)); /* it has begun */
	cr_expect_eq(armed_ns, 0);
	sup.writing.waits = false;
	cr_expect(report_wait(&job));
	cr_expect_eq(armed_ns, 5 * NS_PER_S);
	cr_expect_str_eq(report_lost_text(&job, ETIMEDOUT),
		"not written in time");
	cr_expect_str_eq(report_lost_text(&job, EIO), "Input/output error");
	sup.until_ns = 0;
	cr_expect_str_eq(report_lost_text(&job, ETIMEDOUT),
		"not written within 5 s");
	idle = true;
	cr_expect_not(report_wait(&job));
}

Test(report, a_job_that_is_refused_is_reported)
{
	make_job(1, 0);
	end_job(false);
	report_refused(&job, 125, "no \xff\ttry more");
	is_said("");
	cr_expect(
		strstr(read_text("report"),
			"\"exit\":125,\"reason\":\"refused\",\"error\":\"no ") !=
		NULL);
	cr_expect_null(strstr(read_text("report"), "try more"));
	cr_expect_str_eq(strrchr(read_text("report"), '}'), "}\n");
	close(job.report_fd);
	job.report_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	report_refused(&job, 125, "no");
	is_said("--report: report: No space left on device\n");
}
