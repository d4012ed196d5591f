/* SPDX-License-Identifier: Apache-2.0 */
/* test_tell_stacks.c - stacks of the ranks (launcher/tell/stacks.h): the arguments and the
 * input of the helper process, its report, and the callback. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/json.h"
#include "event/loop.h"
#include "launcher/job/sup.h"
#include "launcher/keeper/keeper.h"
#include "launcher/log/logs.h"
#include "launcher/tell/aide.h"
#include "launcher/tell/bus.h"
#include "launcher/tell/stacks.h"
#include "tests/unit/noted.h"
#include "tests/unit/short_memory.h"

#define SUMMARY_MAX (64u << 10)

static struct rank ranks[4];
static struct keeper_page page;
static struct sup sup;
static struct job job = {
	.sup = &sup,
	.rank = ranks,
	.page = &page,
	.plan = { .size = 14, .first = 10, .local_size = 4 },
	.state = { .dir_fd = -1 },
};

/* --- replaced functions ------------------------------------------------------------------- */

struct watch {
	watch_fn *fn;
	void *ctx;
	int fd;
};

struct timer {
	timer_fn *fn;
	void *ctx;
};

struct aide {
	struct aide_config config;
	int out; /* a copy */
};

static struct watch watch;
static struct timer timer;
static struct aide aide;
static bool no_watch, no_timer, no_aide;
static char listed[200], arguments[300], said[2 * SUMMARY_MAX];

struct watch *__wrap_watch_open(struct loop *loop, int fd, bool write,
	watch_fn *fn, void *ctx);
void __wrap_watch_pause(struct watch *w);
void __wrap_watch_close(struct watch *w);
struct timer *__wrap_timer_open(struct loop *loop, timer_fn *fn, void *ctx);
void __wrap_timer_arm(struct timer *t, int64_t ns);
void __wrap_timer_close(struct timer *t);
struct aide *__wrap_aide_start(struct job *j, const struct aide_config *config);
void __wrap_aide_end(struct aide *a);
void __wrap_logs_put(struct logs *logs, const char *text, size_t len);
void __wrap_bus_tell(struct bus *bus, enum bus_event event, uint32_t arg);

struct watch *
__wrap_watch_open(struct loop *loop, int fd, bool write, watch_fn *fn,
	void *ctx)
{
	cr_expect_eq(loop, sup.loop);
	cr_expect_not(write);
	cr_expect(fcntl(fd, F_GETFL) & O_NONBLOCK);
	watch = (struct watch){ fn, ctx, fd };
	return no_watch ? NULL : &watch;
}

void
__wrap_watch_pause(struct watch *w)
{
	cr_expect_eq(w, &watch);
	note("pause ");
}

void
__wrap_watch_close(struct watch *w)
{
	cr_expect(w == NULL || w == &watch);
	note("unwatch ");
}

struct timer *
__wrap_timer_open(struct loop *loop, timer_fn *fn, void *ctx)
{
	cr_expect_eq(loop, sup.loop);
	timer = (struct timer){ fn, ctx };
	return no_timer ? NULL : &timer;
}

void
__wrap_timer_arm(struct timer *t, int64_t ns)
{
	cr_expect_eq(t, &timer);
	note("arm:%lld ", (long long)ns);
}

void
__wrap_timer_close(struct timer *t)
{
	cr_expect(t == NULL || t == &timer);
	note("untime ");
}

struct aide *
__wrap_aide_start(struct job *j, const struct aide_config *config)
{
	ssize_t n = read(config->in, listed, sizeof(listed) - 1);

	cr_assert_geq(n, 0);
	listed[n] = '\0';
	cr_expect_eq(j, &job);
	cr_expect_str_eq(config->path, "/proc/self/exe");
	cr_expect_eq(config->out, config->err);
	cr_expect_eq(config->time_ns, 8 * NS_PER_S);
	arguments[0] = '\0';
	for (char *const *arg = config->argv; *arg != NULL; arg++)
		snprintf(arguments + strlen(arguments),
			sizeof(arguments) - strlen(arguments), "%s ", *arg);
	if (no_aide)
		return NULL;
	aide = (struct aide){ *config, dup(config->out) };
	return &aide;
}

void
__wrap_aide_end(struct aide *a)
{
	if (a != NULL) {
		cr_expect_eq(a, &aide);
		note("end ");
	}
}

void
__wrap_logs_put(struct logs *logs, const char *text, size_t len)
{
	cr_expect_eq(logs, sup.logs);
	cr_assert_lt(len, sizeof(said));
	memcpy(said, text, len);
	said[len] = '\0';
}

void
__wrap_bus_tell(struct bus *bus, enum bus_event event, uint32_t arg)
{
	cr_expect_eq(bus, sup.bus);
	cr_expect_eq(event, BUS_JOB_STACKS);
	cr_expect_eq(arg, 0);
	note("bus ");
}

/* --- the callback --------------------------------------------------------------------- */

static bool told_taken;
static char told_path[PATH_MAX], told_summary[2 * SUMMARY_MAX];

static void
tell(struct job *j, bool taken, const char *path, const char *summary)
{
	cr_expect_eq(j, &job);
	cr_expect_null(sup.stacks);
	told_taken = taken;
	snprintf(told_path, sizeof(told_path), "%s", path == NULL ? "-" : path);
	snprintf(told_summary, sizeof(told_summary), "%s", summary);
	note("told ");
}

static void
begin(void)
{
	for (int i = 0; i < 4; i++)
		ranks[i] = (struct rank){ .pid = 500 + i,
			.pidfd = i == 2 ? -1 : 100 + i };
	sup.phase = PHASE_RUN;
	job.state.attempt = (char *)"/jobs/k7m2/0";
}

TestSuite(tell_stacks, .init = begin, .timeout = 20);

/* The helper process writes @text and ends with @status. */
static void
aide_says(const char *text, int status, bool late)
{
	cr_assert_eq(write(aide.out, text, strlen(text)),
		(ssize_t)strlen(text));
	close(aide.out);
	done[0] = said[0] = '\0';
	aide.config.fn(status, late, aide.config.ctx);
}

Test(tell_stacks, the_helper_gets_the_living_ranks_and_its_report_is_printed)
{
	cr_assert(stacks_begin(&job, "--timeout", tell));
	cr_expect_str_eq(listed, "10 500\n11 501\n13 503\n");
	cr_expect_str_eq(arguments,
		"xrun stacks --pids --title --timeout --save /jobs/k7m2/0/stacks.txt ");
	cr_expect_null(stacks_path(&job));
	cr_expect_not(stacks_begin(&job, "again", tell)); /* one at a time */
	aide_says("rank 3: main > train\n\nrank 4 differs: main\n", 0, false);
	cr_expect_str_eq(done, "bus unwatch untime told ");
	cr_expect_str_eq(said,
		"xrun: stacks of 3 ranks: /jobs/k7m2/0/stacks.txt\n"
		"  rank 3: main > train\n  rank 4 differs: main\n");
	cr_expect(told_taken);
	cr_expect_str_eq(told_path, "/jobs/k7m2/0/stacks.txt");
	cr_expect_str_eq(told_summary,
		"rank 3: main > train\n\nrank 4 differs: main\n");
	cr_expect_str_eq(stacks_path(&job), "/jobs/k7m2/0/stacks.txt");
	cr_expect_eq(page.kept, 1);
	/* The path is set once per job. */
	job.state.attempt = (char *)"/elsewhere";
	ranks[0].pidfd = ranks[1].pidfd = -1;
	cr_assert(stacks_begin(&job, "--timeout", tell));
	cr_expect_str_eq(listed, "13 503\n");
	aide_says("", 0, false);
	cr_expect_str_eq(said,
		"xrun: stacks of 1 rank: /jobs/k7m2/0/stacks.txt\n");
	stacks_close(&job);
	cr_expect_null(sup.stacks_path);
}

Test(tell_stacks, a_job_without_files_prints_them_only)
{
	job.state.attempt = NULL;
	cr_assert(stacks_begin(&job, "--hang-timeout", tell));
	cr_expect_str_eq(arguments,
		"xrun stacks --pids --title --hang-timeout ");
	aide_says("rank 10: main\n", 0, false);
	cr_expect_str_eq(said, "xrun: stacks of 3 ranks:\n  rank 10: main\n");
	cr_expect(told_taken);
	cr_expect_str_eq(told_path, "-");
	cr_expect_eq(page.kept, 0);
}

Test(tell_stacks, a_helper_that_fails_or_times_out_has_taken_none)
{
	static const struct {
		int status;
		bool late;
	} row[] = { { 0, true }, { 1 << 8, false }, { SIGKILL, false } };

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		told_taken = true;
		cr_assert(stacks_begin(&job, "--timeout", tell));
		aide_says("gdb: no\n", row[i].status, row[i].late);
		cr_expect_str_eq(done, "unwatch untime told ");
		cr_expect_str_eq(said,
			"xrun: stacks of the ranks could not be taken\n  gdb: no\n");
		cr_expect_not(told_taken);
		cr_expect_str_eq(told_path, "-");
		cr_expect_eq(page.kept, 0);
	}
	stacks_close(&job);
}

Test(tell_stacks, a_quiet_or_ending_job_prints_nothing)
{
	job.opt.quiet = true;
	cr_assert(stacks_begin(&job, "--timeout", tell));
	aide_says("rank 10: main\n", 0, false);
	cr_expect_str_eq(said, "");
	cr_expect_str_eq(told_summary, "rank 10: main\n");
	job.opt.quiet = false;
	cr_assert(stacks_begin(&job, "--timeout", tell));
	sup.phase = PHASE_DELIVER;
	aide_says("rank 10: main\n", 0, false);
	cr_expect_str_eq(said, "");
	cr_expect(told_taken);
	stacks_close(&job);
}

Test(tell_stacks, output_is_read_as_it_comes_and_kept_up_to_the_limit)
{
	static char line[16 << 10];

	memset(line, 'x', sizeof(line));
	cr_assert(stacks_begin(&job, "--timeout", tell));
	done[0] = '\0';
	watch.fn(watch.fd, watch.ctx); /* nothing yet */
	cr_expect_str_eq(done, "");
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(write(aide.out, line, sizeof(line)), sizeof(line));
		watch.fn(watch.fd, watch.ctx);
	}
	/* The first 64 KiB are kept, the rest is read and dropped. */
	cr_assert_eq(write(aide.out, line, sizeof(line)), sizeof(line));
	watch.fn(watch.fd, watch.ctx);
	cr_assert_eq(write(aide.out, "y", 1), 1);
	watch.fn(watch.fd, watch.ctx);
	cr_expect_str_eq(done, "");
	aide_says("z", 0, false);
	cr_expect_eq(strlen(told_summary), SUMMARY_MAX);
	cr_expect_eq(strspn(told_summary, "x"), SUMMARY_MAX);
	stacks_close(&job);
}

Test(tell_stacks, the_watch_pauses_at_the_end_of_the_output)
{
	cr_assert(stacks_begin(&job, "--timeout", tell));
	close(aide.out);
	done[0] = '\0';
	watch.fn(watch.fd, watch.ctx);
	cr_expect_str_eq(done, "pause ");
	stacks_close(&job);
}

Test(tell_stacks, cancel_ends_the_helper_and_calls_back_in_the_next_turn)
{
	stacks_cancel(&job); /* none runs */
	cr_expect_str_eq(done, "");
	cr_assert(stacks_begin(&job, "--timeout", tell));
	done[0] = '\0';
	told_taken = true;
	stacks_cancel(&job);
	cr_expect_str_eq(done, "end arm:0 ");
	timer.fn(timer.ctx);
	cr_expect_str_eq(done, "end arm:0 unwatch untime told ");
	cr_expect_not(told_taken);
	cr_expect_str_eq(said, "");
	cr_expect_str_eq(told_path, "-");
	stacks_close(&job);
}

Test(tell_stacks, close_ends_the_helper_without_a_callback)
{
	cr_assert(stacks_begin(&job, "--timeout", tell));
	done[0] = '\0';
	stacks_close(&job);
	cr_expect_str_eq(done, "end unwatch untime ");
	cr_expect_null(sup.stacks);
	stacks_close(&job); /* again is fine */
}

static void
expect_event(const char *want)
{
	struct buf text = { 0 };
	struct json j;

	json_init(&j, &text);
	json_open_object(&j, NULL);
	stacks_put_event(&j, &job);
	json_close_object(&j);
	cr_expect_str_eq(buf_text(&text), want);
	buf_fini(&text);
}

Test(tell_stacks, the_event_has_reason_count_and_path)
{
	cr_assert(stacks_begin(&job, "--timeout", tell));
	expect_event("{\"why\":\"--timeout\",\"ranks\":3}");
	sup.stacks_kept = true;
	expect_event(
		"{\"why\":\"--timeout\",\"ranks\":3,\"path\":\"/jobs/k7m2/0/stacks.txt\"}");
	stacks_close(&job);
}

/* --- failures ----------------------------------------------------------------- */

static int
next_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void
expect_none(void)
{
	int fd = next_fd();

	listed[0] = '\0';
	cr_expect_not(stacks_begin(&job, "--timeout", tell));
	cr_expect_null(sup.stacks);
	cr_expect_eq(next_fd(), fd);
	stacks_close(&job);
}

Test(tell_stacks, a_job_that_ends_or_has_no_living_rank_starts_no_helper)
{
	sup.phase = PHASE_DELIVER;
	expect_none();
	sup.phase = PHASE_END;
	expect_none();
	sup.phase = PHASE_RUN;
	job.stop_ns = 1;
	expect_none();
	job.stop_ns = 0;
	for (int i = 0; i < 4; i++)
		ranks[i].pidfd = -1;
	expect_none();
	cr_expect_str_eq(arguments, "");
}

Test(tell_stacks, a_failed_start_leaves_no_descriptor)
{
	no_timer = true;
	expect_none();
	no_timer = false;
	no_watch = true;
	expect_none();
	no_watch = false;
	no_aide = true;
	expect_none();
	cr_expect_str_eq(listed, "10 500\n11 501\n13 503\n");
}

Test(tell_stacks, each_allocation_may_fail)
{
	bool begun = false;
	unsigned n;

	for (n = 0; !begun; n++) {
		until_short = n + 1;
		begun = stacks_begin(&job, "--timeout", tell);
		until_short = 0;
		stacks_close(&job);
		cr_expect_null(sup.stacks);
	}
	cr_expect_eq(n, 4);
}
