/* SPDX-License-Identifier: Apache-2.0 */
/* test_stray.c - which processes of a job without an xrun are ended: those that
 * inherited its mark, and no others. */
#include <stdlib.h>

#include <sys/ptrace.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "proc/lineage.h"
#include "proc/stray.h"
#include "tests/unit/forked.h"

#define MARK stray_mark()

/* Tests run at the same time: each has a mark of its own. */
static uint64_t
stray_mark(void)
{
	static uint64_t mark;

	if (mark == LINEAGE_NONE)
		mark = lineage_new() & ~UINT64_C(1);
	return mark;
}

/* In the child, before its exec; LINEAGE_NONE leaves it without a mark. */
static void
stray_be_marked(uint64_t lineage)
{
	if (lineage != LINEAGE_NONE && !lineage_set(lineage))
		_exit(126);
}

/* A sleep that has the mark, and an environment of its own. */
static pid_t
stray_sleeper(uint64_t lineage, char *variable)
{
	char *const argv[] = { "sleep", "60", NULL };
	char *const envp[] = { "A=b", variable, NULL };
	int started[2];
	pid_t pid;
	char c;

	NEED(pipe2(started, O_CLOEXEC) == 0);
	pid = fork();
	NEED(pid != -1);
	if (pid == 0) {
		stray_be_marked(lineage);
		execve("/bin/sleep", argv, envp);
		_exit(127);
	}
	close(started[1]);
	EXPECT_EQ(read(started[0], &c, 1), 0); /* until the exec */
	close(started[0]);
	return pid;
}

/* The signal that ended it; 0: it lived, and is ended now. */
static int
stray_ended_by(pid_t pid)
{
	int status = 0;

	if (waitpid(pid, &status, WNOHANG) == pid)
		return WTERMSIG(status);
	kill(pid, SIGTERM);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	return WTERMSIG(status) == SIGTERM ? 0 : WTERMSIG(status);
}

static int
stray_signal_of(pid_t pid)
{
	int status = 0;

	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static uint32_t
stray_end_within(const struct stray_job *job, int64_t time)
{
	uint32_t ended = 0;

	EXPECT(stray_end(job, clock_now() + time, &ended));
	return ended;
}

static uint32_t
stray_end_all(const struct stray_job *job)
{
	return stray_end_within(job, 30 * NS_PER_S);
}

FORKED_TEST(stray, processes_with_the_mark_are_killed_and_no_others)
{
	const struct stray_job job = { MARK, lineage_ticks() };
	pid_t one, two, other, none;

	one = stray_sleeper(MARK, NULL);
	two = stray_sleeper(MARK, "XRUN_JOB=zz9t");
	other = stray_sleeper(MARK + 1, "XRUN_JOB=zz9t");
	none = stray_sleeper(LINEAGE_NONE, "XRUN_JOB=zz9t");
	EXPECT_EQ(stray_end_all(&job), 2);
	EXPECT_EQ(stray_ended_by(one), SIGKILL);
	EXPECT_EQ(stray_ended_by(two), SIGKILL);
	EXPECT_EQ(stray_ended_by(other), 0);
	EXPECT_EQ(stray_ended_by(none), 0);
	EXPECT_EQ(stray_end_all(&job), 0);
}

FORKED_TEST(stray, a_job_without_a_mark_has_no_processes)
{
	const struct stray_job job = { LINEAGE_NONE, 0 };
	pid_t none = stray_sleeper(LINEAGE_NONE, "XRUN_JOB=zz9t");

	EXPECT_EQ(stray_end_all(&job), 0);
	EXPECT(!stray_fits(&job, none));
	EXPECT_EQ(stray_ended_by(none), 0);
}

/* Killed, and held on its way out as long as its tracer likes. */
FORKED_TEST(stray, a_process_that_takes_long_to_die_counts_once)
{
	const struct stray_job job = { MARK, lineage_ticks() };
	uint32_t ended = 0;
	pid_t one = stray_sleeper(MARK, NULL);

	NEED(ptrace(PTRACE_SEIZE, one, NULL, PTRACE_O_TRACEEXIT) == 0);
	EXPECT(!stray_end(&job, clock_now() + NS_PER_S / 2, &ended));
	EXPECT_EQ(ended, 1);
	EXPECT_EQ(waitpid(one, NULL, 0), one); /* it stopped */
	NEED(ptrace(PTRACE_CONT, one, NULL, NULL) == 0);
	EXPECT_EQ(stray_signal_of(one), SIGKILL);
}

FORKED_TEST(stray, a_process_that_started_before_the_job_is_not_of_it)
{
	struct stray_job job = { MARK, lineage_ticks() };
	pid_t one = stray_sleeper(MARK, NULL);

	job.ticks = lineage_ticks_of(one) + 1;
	EXPECT_EQ(stray_end_all(&job), 0);
	EXPECT_EQ(stray_ended_by(one), 0);
}

/* A child of a child, in a session of its own, without an environment. */
FORKED_TEST(stray, a_descendant_that_left_everything_behind_has_the_mark)
{
	const struct stray_job job = { MARK, lineage_ticks() };
	int said[2];
	pid_t pid, far = 0;

	NEED(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	NEED(pipe2(said, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		stray_be_marked(MARK);
		setsid();
		pid = fork();
		if (pid == 0) {
			setsid();
			pid = getpid();
			if (write(said[1], &pid, sizeof(pid)) != sizeof(pid))
				_exit(1);
			close_range(0, ~0u, 0);
			execle("/bin/sleep", "sleep", "60", NULL,
				(char *[]){ NULL });
		}
		_exit(0);
	}
	EXPECT_EQ(stray_signal_of(pid), 0);
	EXPECT_EQ(read(said[0], &far, sizeof(far)), sizeof(far));
	EXPECT(stray_fits(&job, far));
	EXPECT_EQ(stray_end_all(&job), 1);
	EXPECT_EQ(stray_signal_of(far), SIGKILL);
}

FORKED_TEST(stray, a_limit_for_real_time_threads_stays)
{
	const struct rlimit soft = { 200000, RLIM_INFINITY };
	const struct rlimit hard = { RLIM_INFINITY - 1, RLIM_INFINITY - 1 };
	struct rlimit limit;

	EXPECT_EQ(lineage_of(getpid()), LINEAGE_NONE);
	EXPECT(!lineage_set(LINEAGE_NONE));
	NEED(setrlimit(RLIMIT_RTTIME, &soft) == 0);
	EXPECT(lineage_set(MARK));
	EXPECT_EQ(lineage_of(getpid()), MARK);
	NEED(getrlimit(RLIMIT_RTTIME, &limit) == 0);
	EXPECT_EQ(limit.rlim_cur, 200000);
	NEED(setrlimit(RLIMIT_RTTIME,
		     &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }) == 0);
	EXPECT(lineage_set(MARK));
	EXPECT(lineage_set(MARK + 1)); /* by a nested xrun */
	EXPECT_EQ(lineage_of(getpid()), MARK + 1);
	NEED(setrlimit(RLIMIT_RTTIME, &hard) == 0);
	EXPECT(lineage_set(MARK));
	NEED(setrlimit(RLIMIT_LOCKS, &hard) == 0);
	EXPECT(!lineage_set(MARK));
}

FORKED_TEST(stray, two_new_marks_differ)
{
	uint64_t one = lineage_new(), two = lineage_new();

	EXPECT(one != LINEAGE_NONE && two != LINEAGE_NONE && one != two);
	EXPECT(lineage_set(one));
	EXPECT_EQ(lineage_of(getpid()), one);
}

FORKED_TEST(stray, the_start_time_of_a_process_is_in_ticks_since_boot)
{
	uint64_t before = lineage_ticks();
	pid_t one = stray_sleeper(LINEAGE_NONE, NULL);

	EXPECT(lineage_ticks_of(one) >= before);
	EXPECT(lineage_ticks_of(one) <= lineage_ticks());
	EXPECT_EQ(stray_ended_by(one), 0);
	EXPECT_EQ(lineage_ticks_of(one), 0);
}

/* A bash that is the file @path, calls itself xrun, and on SIGTERM does @trap. */
static pid_t
stray_pretender(const char *path, const char *trap)
{
	char text[160], c;
	char *const argv[] = { "bash", "-c", text, NULL };
	char *const envp[] = { NULL };
	int hold[2], said[2];
	pid_t pid;

	snprintf(text, sizeof(text),
		"trap %s TERM; printf xrun >/proc/self/comm; echo >&8; while :; do read <&9; done",
		trap);
	NEED(pipe(hold) == 0 && dup2(hold[0], 9) == 9);
	NEED(pipe(said) == 0 && dup2(said[1], 8) == 8);
	pid = fork();
	if (pid == 0) {
		stray_be_marked(MARK);
		execve(path, argv, envp);
		_exit(127);
	}
	EXPECT_EQ(read(said[0], &c, 1), 1);
	return pid;
}

FORKED_TEST(stray, a_process_that_only_has_the_name_xrun_is_killed)
{
	const struct stray_job job = { MARK, lineage_ticks() };
	pid_t one = stray_pretender("/bin/bash", "''");

	EXPECT_EQ(stray_end_all(&job), 1);
	EXPECT_EQ(stray_signal_of(one), SIGKILL);
}

/* A nested one ends its job in order; it has its time. */
FORKED_TEST(stray, an_xrun_among_them_gets_sigterm_and_is_killed_if_it_stays)
{
	const struct stray_job job = { MARK, lineage_ticks() };
	char dir[] = "/tmp/xrun-stray-XXXXXX", path[64];
	pid_t one;

	NEED(mkdtemp(dir) != NULL);
	snprintf(path, sizeof(path), "%s/xrun", dir);
	one = fork();
	if (one == 0) {
		execl("/bin/cp", "cp", "/bin/bash", path, NULL);
		_exit(127);
	}
	EXPECT_EQ(stray_signal_of(one), 0);
	one = stray_pretender(path, "-");
	EXPECT_EQ(stray_end_all(&job), 1);
	EXPECT_EQ(stray_signal_of(one), SIGTERM);
	one = stray_pretender(path, "''");
	EXPECT_EQ(stray_end_within(&job, 6 * NS_PER_S),
		1); /* half of it passes */
	EXPECT_EQ(stray_signal_of(one), SIGKILL);
	unlink(path);
	rmdir(dir);
}

struct stray_seen {
	pid_t pid;
	bool met, watched, has_job;
};

static void
stray_note(void *ctx, const struct stray *stray)
{
	struct stray_seen *seen = ctx;

	if (stray->pid != seen->pid)
		return;
	seen->met = true;
	seen->watched = stray->watched;
	seen->has_job = stray->job != NULL;
	EXPECT(strcmp(stray->name, "sleep") == 0);
}

static struct stray_seen
stray_see(pid_t pid)
{
	struct stray_seen seen = { .pid = pid };

	stray_each(stray_note, &seen);
	return seen;
}

FORKED_TEST(stray, processes_with_a_mark_or_a_job_are_listed_and_live)
{
	const uint64_t mark = MARK;
	pid_t one = stray_sleeper(mark, NULL);
	pid_t two = stray_sleeper(LINEAGE_NONE, "XRUN_JOB=zz2t");
	pid_t none = stray_sleeper(LINEAGE_NONE, NULL);

	EXPECT(stray_see(one).met && !stray_see(one).has_job);
	EXPECT(stray_see(two).met && stray_see(two).has_job);
	EXPECT(!stray_see(two).watched);
	EXPECT(!stray_see(none).met);
	NEED(prctl(PR_SET_NAME, "xrun") == 0);
	EXPECT(stray_see(two).watched); /* which has an xrun above it */
	EXPECT_EQ(stray_ended_by(one), 0);
	EXPECT_EQ(stray_ended_by(two), 0);
	EXPECT_EQ(stray_ended_by(none), 0);
}
