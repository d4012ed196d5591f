/* SPDX-License-Identifier: Apache-2.0 */
/* test_stray.c - who is ended for a job that has no xrun any more, and who not. */
#include <stdlib.h>

#include <sys/ptrace.h>

#include "base/clock.h"
#include "proc/cgroup.h"
#include "proc/stray.h"
#include "tests/unit/forked.h"

static struct stray_job job;

/* A sleep whose environment says XRUN_JOB=@id. */
static pid_t
sleeper(const char *id)
{
	char entry[64], *const argv[] = { "sleep", "60", NULL };
	char *const envp[] = { "A=b", entry, "C=d", NULL };
	int started[2];
	pid_t pid;
	char c;

	snprintf(entry, sizeof(entry), "XRUN_JOB=%s", id);
	NEED(pipe2(started, O_CLOEXEC) == 0);
	pid = fork();
	NEED(pid != -1);
	if (pid == 0) {
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
ended_by(pid_t pid)
{
	int status = 0;

	if (waitpid(pid, &status, WNOHANG) == pid)
		return WTERMSIG(status);
	kill(pid, SIGTERM);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	return WTERMSIG(status) == SIGTERM ? 0 : WTERMSIG(status);
}

static int
signal_of(pid_t pid)
{
	int status = 0;

	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static uint32_t
end_within(const char *id, int64_t time)
{
	uint32_t ended = 0;

	job.id = id;
	EXPECT(stray_end(&job, clock_now() + time, &ended));
	return ended;
}

static uint32_t
end(const char *id)
{
	return end_within(id, 30 * NS_PER_S);
}

static void
begin(void)
{
	job = (struct stray_job){ .since = clock_wall() };
}

FORKED_TEST(stray, who_bears_the_job_is_ended_and_nobody_else)
{
	pid_t one, two, longer, shorter;

	begin();
	one = sleeper("zz9t");
	two = sleeper("zz9t");
	longer = sleeper("zz9tt");
	shorter = sleeper("zz9");
	EXPECT_EQ(end("zz9t"), 2);
	EXPECT_EQ(ended_by(one), SIGKILL);
	EXPECT_EQ(ended_by(two), SIGKILL);
	EXPECT_EQ(ended_by(longer), 0);
	EXPECT_EQ(ended_by(shorter), 0);
	EXPECT_EQ(end("zz9t"), 0);
}

/* Killed, and held on its way out as long as its tracer likes. */
FORKED_TEST(stray, who_takes_long_to_die_counts_once)
{
	uint32_t ended = 0;
	pid_t one;

	begin();
	one = sleeper("zzat");
	NEED(ptrace(PTRACE_SEIZE, one, NULL, PTRACE_O_TRACEEXIT) == 0);
	job.id = "zzat";
	EXPECT(!stray_end(&job, clock_now() + NS_PER_S / 2, &ended));
	EXPECT_EQ(ended, 1);
	EXPECT_EQ(waitpid(one, NULL, 0), one); /* it stopped */
	NEED(ptrace(PTRACE_CONT, one, NULL, NULL) == 0);
	EXPECT_EQ(signal_of(one), SIGKILL);
}

FORKED_TEST(stray, who_began_before_the_job_is_not_of_it)
{
	pid_t one;

	begin();
	one = sleeper("zz8t");
	job.since = clock_wall() + 60 * NS_PER_S;
	EXPECT_EQ(end("zz8t"), 0);
	EXPECT_EQ(ended_by(one), 0);
}

FORKED_TEST(stray, who_is_in_another_control_group_is_not_of_it)
{
	char *here = cgroup_path(0);
	pid_t one;

	begin();
	NEED(here != NULL);
	one = sleeper("zz7t");
	job.cgroup = "/no/such/group";
	EXPECT_EQ(end("zz7t"), 0);
	job.cgroup = here;
	EXPECT_EQ(end("zz7t"), 1);
	EXPECT_EQ(ended_by(one), SIGKILL);
	free(here);
}

static void
call_me(const char *name)
{
	NEED(prctl(PR_SET_NAME, name) == 0);
}

FORKED_TEST(stray, who_has_an_xrun_above_is_left_to_that)
{
	pid_t one;

	begin();
	call_me("xrun-super");
	one = sleeper("zz6t");
	EXPECT_EQ(end("zz6t"), 0);
	EXPECT_EQ(ended_by(one), 0);
}

/* A bash that is the file @path, calls itself xrun, and on SIGTERM does @trap. */
static pid_t
pretender(const char *path, const char *id, const char *trap)
{
	char text[160], entry[64], c;
	char *const argv[] = { "bash", "-c", text, NULL };
	char *const envp[] = { entry, NULL };
	int hold[2], said[2];
	pid_t pid;

	snprintf(entry, sizeof(entry), "XRUN_JOB=%s", id);
	snprintf(text, sizeof(text),
		"trap %s TERM; printf xrun >/proc/self/comm; echo >&8; while :; do read <&9; done",
		trap);
	NEED(pipe(hold) == 0 && dup2(hold[0], 9) == 9);
	NEED(pipe(said) == 0 && dup2(said[1], 8) == 8);
	pid = fork();
	if (pid == 0) {
		execve(path, argv, envp);
		_exit(127);
	}
	EXPECT_EQ(read(said[0], &c, 1), 1);
	return pid;
}

FORKED_TEST(stray, who_only_calls_itself_xrun_is_killed)
{
	pid_t one;

	begin();
	one = pretender("/bin/bash", "zz5t", "''");
	EXPECT_EQ(end("zz5t"), 1);
	EXPECT_EQ(signal_of(one), SIGKILL);
}

/* A nested one ends its job in order; it has its time. */
FORKED_TEST(stray, an_xrun_among_them_is_told_to_end_and_killed_if_it_stays)
{
	char dir[] = "/tmp/xrun-stray-XXXXXX", path[64];
	pid_t one;

	begin();
	NEED(mkdtemp(dir) != NULL);
	snprintf(path, sizeof(path), "%s/xrun", dir);
	one = fork();
	if (one == 0) {
		execl("/bin/cp", "cp", "/bin/bash", path, NULL);
		_exit(127);
	}
	EXPECT_EQ(signal_of(one), 0);
	one = pretender(path, "zz4t", "-");
	EXPECT_EQ(end("zz4t"), 1);
	EXPECT_EQ(signal_of(one), SIGTERM);
	one = pretender(path, "zz3t", "''");
	EXPECT_EQ(end_within("zz3t", 6 * NS_PER_S), 1); /* half of it passes */
	EXPECT_EQ(signal_of(one), SIGKILL);
	unlink(path);
	rmdir(dir);
}

struct seen {
	const char *job;
	pid_t pid;
	bool fits;
};

static void
note(void *ctx, const struct stray *stray)
{
	struct seen *seen = ctx;

	if (strcmp(stray->job, seen->job) != 0)
		return;
	seen->pid = stray->pid;
	seen->fits = stray_fits(&job, stray);
	EXPECT(strcmp(stray->name, "sleep") == 0);
}

static struct seen
see(const char *id)
{
	struct seen seen = { .job = id };

	job.id = id;
	stray_each(note, &seen);
	return seen;
}

FORKED_TEST(stray, who_would_be_ended_is_seen_and_left_alone)
{
	pid_t one;
	struct seen seen;

	begin();
	one = sleeper("zz2t");
	seen = see("zz2t");
	EXPECT_EQ(seen.pid, one);
	EXPECT(seen.fits);
	EXPECT_EQ(see("zz2").pid, 0);
	job.since += 3 * NS_PER_S; /* it is older than the job */
	EXPECT(!see("zz2t").fits);
	call_me("xrun");
	EXPECT_EQ(see("zz2t").pid, 0); /* which has an xrun above it */
	EXPECT_EQ(ended_by(one), 0);
}
