/* SPDX-License-Identifier: Apache-2.0 */
/* test_detach_started.c - a job with --detach and the xrun that was called: what each
 * has of the other until the ranks run. */
#include <stdarg.h>

#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/status.h"
#include "launcher/keeper/keeper.h"
#include "launcher/sup/detach.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/report.h"
#include "tests/unit/forked.h"
#include "tests/unit/noted.h"

static struct rank ranks[2];
static struct sup sup;
static struct keeper_page page;
static struct job job = {
	.sup = &sup,
	.rank = ranks,
	.page = &page,
	.plan = { .local_size = 2, .size = 2 },
	.state = { .id = "train", .attempt = "/jobs/train/0" },
};

static struct {
	bool no_words, no_watch, no_work;
	int words[2]; /* a pipe in place of the file */
	watch_fn *on_death;
} played;

int __wrap_state_open_words(const struct state *state);
struct watch *__wrap_watch_open(struct loop *loop, int fd, bool write,
	watch_fn *fn, void *ctx);
void __wrap_watch_close(struct watch *watch);
void __wrap_stop_fail(struct job *job_, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void __wrap_report_job(struct job *job_);
bool __wrap_work_post(struct work *work, work_fn *fn, void *ctx);
void __wrap_work_push(struct work *work);

int
__wrap_state_open_words(const struct state *state)
{
	EXPECT(state == &job.state);
	errno = ENOSPC;
	return played.no_words ? -1 : played.words[1];
}

struct watch *
__wrap_watch_open(struct loop *loop, int fd, bool write, watch_fn *fn,
	void *ctx)
{
	EXPECT(loop == sup.loop);
	EXPECT_EQ(fd, job.detach->death);
	EXPECT(!write);
	EXPECT(ctx == &job);
	note("watch ");
	played.on_death = fn;
	return played.no_watch ? NULL : (struct watch *)&played;
}

void
__wrap_watch_close(struct watch *watch)
{
	EXPECT(watch == sup.caller);
	note("unwatch ");
}

void
__wrap_stop_fail(struct job *job_, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	EXPECT(job_ == &job);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note("fail:%s ", text);
}

void
__wrap_report_job(struct job *job_)
{
	EXPECT(job_ == &job);
	EXPECT_EQ(job.detach->runs, 1);
	note("report ");
}

bool
__wrap_work_post(struct work *work, work_fn *fn, void *ctx)
{
	EXPECT(work == sup.work);
	EXPECT(ctx == job.detach);
	EXPECT(job.detach->hold != -1);
	note("post ");
	if (!played.no_work)
		fn(ctx);
	return !played.no_work;
}

void
__wrap_work_push(struct work *work)
{
	EXPECT(work == sup.work);
	EXPECT_EQ(job.detach->hold, -1);
	note("push ");
}

/* Of a parent that lives. */
static void
begin(void)
{
	struct xr_error err = { 0 };

	alarm(20); /* ends what hangs */
	NEED(pipe2(played.words, O_CLOEXEC) == 0);
	job.detach = detach_new();
	NEED(job.detach != NULL);
	EXPECT_EQ(job.detach->caller, getpid());
	EXPECT_EQ(job.detach->words, -1);
	EXPECT_EQ(job.detach->hold, -1);
	EXPECT_EQ(job.detach->death, -1);
	EXPECT(detach_watch(&job)); /* not yet */
	EXPECT_STR(done, "");
	job.detach->caller = getppid();
	EXPECT_EQ(detach_open(&job, &err), XR_OK);
	EXPECT_EQ(job.detach->words, played.words[1]);
	EXPECT(job.detach->death != -1);
	EXPECT(detach_watch(&job));
	EXPECT_STR(done, "watch ");
	done[0] = '\0';
}

/* Standard error is the file now, and nothing of the caller's is held. */
static void
expect_alone(void)
{
	char text[8] = "";

	NEED(write(STDERR_FILENO, "words", 5) == 5);
	EXPECT_EQ(read(played.words[0], text, sizeof(text)), 5);
	EXPECT_STR(text, "words");
	EXPECT_EQ(job.detach->words, -1);
	EXPECT_EQ(job.detach->death, -1);
	EXPECT_EQ(job.detach->hold, -1);
	EXPECT(sup.caller == NULL);
	EXPECT_EQ(page.kept, 1);
	EXPECT_EQ(fcntl(played.words[1], F_GETFD), -1);
}

FORKED_TEST(detach_started, when_a_rank_runs_the_caller_is_let_go)
{
	begin();
	detach_started(&job);
	EXPECT_STR(done, ""); /* no rank runs */
	EXPECT_EQ(page.kept, 0);
	ranks[1].pid = 100;
	detach_started(&job);
	EXPECT_STR(done, "unwatch report post push ");
	EXPECT_STR(job.detach->job, "train");
	EXPECT_STR(job.detach->where, "/jobs/train/0");
	EXPECT_EQ(job.detach->ranks, 2);
	expect_alone();
	done[0] = '\0';
	detach_started(&job); /* once */
	EXPECT_STR(done, "");
}

FORKED_TEST(detach_started, without_a_thread_it_is_let_go_at_once)
{
	begin();
	ranks[0].pid = 100;
	played.no_work = true;
	detach_started(&job);
	EXPECT_STR(done, "unwatch report post push ");
	expect_alone();
}

FORKED_TEST(detach_started, if_the_caller_dies_first_the_job_ends)
{
	begin();
	played.on_death(job.detach->death, &job);
	EXPECT_STR(done,
		"unwatch fail:the xrun that was called was ended before all ranks were started ");
	EXPECT_EQ(job.detach->runs, 0);
	expect_alone();
}

FORKED_TEST(detach_started, so_it_does_if_nobody_was_told_of_the_death_yet)
{
	pid_t caller;

	begin();
	caller = fork();
	NEED(caller != -1);
	if (caller == 0)
		_exit(0);
	close(job.detach->death);
	job.detach->death = (int)syscall(SYS_pidfd_open, caller, 0);
	NEED(waitid(P_PID, (id_t)caller, &(siginfo_t){ 0 }, WEXITED) == 0);
	ranks[0].pid = 100;
	detach_started(&job);
	EXPECT_STR(done,
		"unwatch fail:the xrun that was called was ended before all ranks were started ");
	EXPECT_EQ(job.detach->runs, 0);
	expect_alone();
}

FORKED_TEST(detach_started, what_it_cannot_begin_with_is_told)
{
	struct xr_error err = { 0 };
	struct rlimit files;

	EXPECT(detach_watch(&job));
	detach_started(&job); /* no --detach */
	begin();
	played.no_watch = true;
	EXPECT(!detach_watch(&job));
	job.detach->caller = getpid(); /* is not the parent */
	EXPECT_EQ(detach_open(&job, &err), XR_E_STATE);
	EXPECT_STR(err.text, "the xrun that was called is gone");
	job.detach->caller = -1; /* nobody */
	EXPECT_EQ(detach_open(&job, &err), XR_E_STATE);
	job.detach->caller = getppid(); /* and no descriptor is left */
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = 0;
	NEED(setrlimit(RLIMIT_NOFILE, &files) == 0);
	EXPECT_EQ(detach_open(&job, &err), XR_E_STATE);
	played.no_words = true;
	EXPECT_EQ(detach_open(&job, &err), XR_E_SYS);
	EXPECT_STR(err.text,
		"/jobs/train/0/" STATE_WORDS ": No space left on device");
}
