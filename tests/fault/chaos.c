/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chaos.c - jobs under load, one of whose processes is killed or stopped at a
 * random moment.
 *
 *   chaos [--rounds N] [--seed N] [--within MS] CAMPAIGN XRUN PROGRAMS DIR
 *
 * CAMPAIGN is supervisor, keeper, rank, both (keeper and supervisor at once),
 * stop (the supervisor stands still for a while), runs (xrun -n 64 true, nothing
 * is done to it), again (a job that begins again all the time: its supervisor or
 * keeper is killed, or it is told to end) or culprit (64 ranks, one fails while the supervisor stands
 * still for a second, and the others fail of that).
 *
 * The load: 8 ranks that write lines on both streams, each with a child that
 * has a session of its own, is deaf to TERM and would stay; stdin is a
 * terminal. Half of the moments lie in the first 30 ms. --within: everybody is
 * gone so long after the end of xrun's first process, 1000 if it is not given.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "tests/fault/scene.h"
#include "tests/prog/prog.h"

#define RANKS    8
#define MANY     64 /* of runs and culprit */
#define PATIENCE 20000
#define PIPE     65536

struct chaos {
	struct scene scene;
	const char *xrun, *programs;
	int64_t rounds, seed, within;
	uint64_t random;
	int64_t took[10000]; /* ms until nobody was left */
	int64_t taken;
	uint32_t struck; /* rounds in which the blow met somebody */
};

struct campaign {
	const char *name;
	void (*start)(struct chaos *c);
	void (*strike)(struct chaos *c); /* at the moment; NULL */
	void (*judge)(struct chaos *c, int status, struct scene_end *end);
};

static uint64_t
draw(struct chaos *c, uint64_t most)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return c->random % most;
}

static void
pause_us(uint64_t us)
{
	struct timespec t = { .tv_sec = (time_t)(us / 1000000),
		.tv_nsec = (long)(us % 1000000) * 1000 };

	nanosleep(&t, NULL);
}

static void
load(struct chaos *c)
{
	char programs[600];
	char *argv[] = { (char *)(uintptr_t)c->xrun, "--grace=500ms", "-n8",
		"--report=report", "sh", "-c",
		"\"$0/fork_away\" --setsid --ignore-term --close --stay "
		"--last 30000 >/dev/null 2>&1 & "
		"exec \"$0/spew\" --both --copy ref --lines 5000",
		programs, NULL };

	snprintf(programs, sizeof(programs), "%s", c->programs);
	scene_start(&c->scene, argv, false);
}

static pid_t
supervisor(const struct chaos *c)
{
	return scene_child(c->scene.pid, "xrun-super");
}

/* The beginning alone, without a supervisor yet, is what the sweep is for. */
static void
await_moment(struct chaos *c)
{
	uint64_t us = draw(c, 2) == 0 ? draw(c, 30000) : draw(c, 250000);

	snprintf(c->scene.what + strlen(c->scene.what), 64, ", after %llu us",
		(unsigned long long)us);
	for (int i = 0; i < 1000 && supervisor(c) == 0; i++)
		pause_us(100);
	pause_us(us);
}

/* Exited, with that status. */
static bool
is(int status, int code)
{
	return WIFEXITED(status) && WEXITSTATUS(status) == code;
}

static void
expect(struct chaos *c, int status, int code)
{
	if (status != -1 && !is(status, 0) && !is(status, code))
		scene_broken(&c->scene, "wait status %x, not 0 or %d", status,
			code);
}

/* --- who is killed -------------------------------------------------------- */

static void
kill_supervisor(struct chaos *c)
{
	pid_t pid = supervisor(c);

	if (pid != 0 && kill(pid, SIGKILL) == 0)
		c->struck++;
}

static void
judge_supervisor(struct chaos *c, int status, struct scene_end *end)
{
	end->complete = is(status, 0);
	expect(c, status, 125);
	if (is(status, 125) &&
		scene_count(&c->scene, "err", "xrun: the supervisor ended (") !=
			1)
		scene_broken(&c->scene, "125, and the reason is not told");
}

static void
kill_keeper(struct chaos *c)
{
	if (kill(c->scene.pid, SIGKILL) == 0)
		c->struck++;
}

/* Its supervisor tells what became of the job, if there was one yet. */
static void
judge_keeper(struct chaos *c, int status, struct scene_end *end)
{
	end->orphans_ms = c->within + 500; /* --grace */
	if (status != -1 && !is(status, 0) &&
		!(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
		scene_broken(&c->scene, "wait status %x", status);
}

static void
kill_both(struct chaos *c)
{
	pid_t super = supervisor(c);
	bool first = draw(c, 2) == 0;

	if (first)
		kill(c->scene.pid, SIGKILL);
	if (super != 0 && kill(super, SIGKILL) == 0)
		c->struck++;
	if (!first)
		kill(c->scene.pid, SIGKILL);
}

/* What ends what the ranks of the other left: another job, silent, so that it
 * leaves nothing itself, and long enough to look; or who is asked to. */
static void
clean_up(struct chaos *c)
{
	char *xrun = (char *)(uintptr_t)c->xrun;
	char *next[] = { xrun, "sleep", "0.1", NULL };
	char *doctor[] = { "/bin/sh", "-c",
		"exec \"$0\" doctor --clean >/dev/null", xrun, NULL };
	bool asked = draw(c, 2) == 0;
	int status;

	snprintf(c->scene.what + strlen(c->scene.what), 16, ", %s",
		asked ? "doctor" : "next");
	scene_start(&c->scene, asked ? doctor : next, false);
	status = scene_wait(&c->scene, PATIENCE);
	if (status != -1 && !is(status, 0))
		scene_broken(&c->scene, "%s: wait status %x",
			asked ? "doctor --clean" : "next job", status);
}

static void
judge_both(struct chaos *c, int status, struct scene_end *end)
{
	/* The keeper may have been quick. */
	if (!is(status, 125))
		judge_keeper(c, status, end);
	clean_up(c);
	end->pipe_bytes = PIPE;
}

static void
kill_rank(struct chaos *c)
{
	pid_t super = supervisor(c), pid = 0;

	if (super != 0)
		pid = scene_child(super, draw(c, 8) == 0 ? "sh" : "spew");
	if (pid != 0 && kill(pid, SIGKILL) == 0)
		c->struck++;
}

static void
judge_rank(struct chaos *c, int status, struct scene_end *end)
{
	end->complete = is(status, 0);
	expect(c, status, 137);
	if (is(status, 137) &&
		scene_count(&c->scene, "err", "xrun: rank ") == 0)
		scene_broken(&c->scene, "137, and no culprit");
}

static void
stop_supervisor(struct chaos *c)
{
	pid_t super = supervisor(c);

	if (super == 0 || kill(super, SIGSTOP) == -1)
		return;
	c->struck++;
	pause_us(draw(c, 100000));
	kill(super, SIGCONT);
}

static void
judge_well(struct chaos *c, int status, struct scene_end *end)
{
	end->complete = true;
	if (status != -1 && !is(status, 0))
		scene_broken(&c->scene, "wait status %x, not 0", status);
}

/* --- other jobs ----------------------------------------------------------- */

static void
start_runs(struct chaos *c)
{
	char *argv[] = { (char *)(uintptr_t)c->xrun, "-n64", "/bin/true",
		NULL };

	scene_start(&c->scene, argv, false);
}

static void
judge_runs(struct chaos *c, int status, struct scene_end *end)
{
	judge_well(c, status, end);
	end->ranks = 0;
	if (scene_size(&c->scene, "err") + scene_size(&c->scene, "out") > 0)
		scene_broken(&c->scene, "it says something");
}

/* Each attempt is a step further than the one before, so no failure is counted,
 * and the next one follows within a second; at once, if a rank asks for it. */
static void
start_again(struct chaos *c)
{
	char programs[600];
	char *end = draw(c, 2) == 0 ? "exit 3" :
				      "exec \"$1\" restart \"$XRUN_JOB\"";
	char *argv[] = { (char *)(uintptr_t)c->xrun, "--grace=500ms", "-n4",
		"--restarts=1", "bash", "-c",
		"\"$0/fork_away\" --setsid --ignore-term --close --stay "
		"--last 30000 >/dev/null 2>&1 & "
		"echo \"{\\\"type\\\":\\\"progress\\\",\\\"step\\\":$XRUN_ATTEMPT}\" >&97; "
		"echo \"attempt $XRUN_ATTEMPT\"; "
		"[ $XRUN_RANK = 2 ] && eval \"$2\"; exec sleep 30",
		programs, (char *)(uintptr_t)c->xrun, end, NULL };

	snprintf(programs, sizeof(programs), "%s", c->programs);
	scene_start(&c->scene, argv, false);
}

enum { BLOW_SUPERVISOR, BLOW_KEEPER, BLOW_TERM, BLOWS };
static uint64_t blow;
static bool early; /* xrun may not hear yet */

/* One that has given its verdict is followed by the next all the same, and
 * between two there is none for a moment. */
static void
kill_until_over(struct chaos *c)
{
	siginfo_t info = { 0 };
	pid_t pid;

	do {
		pid = supervisor(c);
		if (pid != 0 && kill(pid, SIGKILL) == 0)
			c->struck++;
		pause_us(500 + draw(c, 5000));
		waitid(P_PID, (id_t)c->scene.pid, &info,
			WEXITED | WNOWAIT | WNOHANG);
	} while (info.si_pid == 0);
}

static void
strike_again(struct chaos *c)
{
	await_moment(c);
	blow = draw(c, BLOWS);
	snprintf(c->scene.what + strlen(c->scene.what), 64, ", blow %llu",
		(unsigned long long)blow);
	if (blow == BLOW_KEEPER) {
		kill_keeper(c);
	} else if (blow == BLOW_TERM) {
		early = supervisor(c) == 0;
		c->struck += kill(c->scene.pid, SIGTERM) == 0;
	} else {
		kill_until_over(c);
	}
}

static void
judge_again(struct chaos *c, int status, struct scene_end *end)
{
	end->ranks = 0;
	if (blow == BLOW_KEEPER) { /* maybe, the only one there was */
		judge_keeper(c, status, end);
		clean_up(c);
	} else if (status != -1 && blow == BLOW_TERM && !is(status, 143) &&
		!is(status, 3) && /* a rank had failed before */
		!(early && status == SIGTERM))
		scene_broken(&c->scene, "wait status %x, not 143 or 3", status);
	else if (status != -1 && blow == BLOW_SUPERVISOR && !is(status, 125))
		scene_broken(&c->scene, "wait status %x, not 125", status);
}

static uint64_t culprit;

static void
start_culprit(struct chaos *c)
{
	char die[600], rank[32], path[600];
	char *argv[] = { (char *)(uintptr_t)c->xrun, "-n64", "--no-logs", die,
		rank, "--signal=SEGV", "--after=500", "--star=meet/s", NULL };

	culprit = draw(c, MANY);
	snprintf(die, sizeof(die), "%s/die", c->programs);
	snprintf(rank, sizeof(rank), "--rank=%llu",
		(unsigned long long)culprit);
	snprintf(path, sizeof(path), "%s/meet", c->scene.dir);
	mkdir(path, 0700);
	scene_start(&c->scene, argv, false);
}

/* All have met by then, mostly; who has not is no worse a test. */
static void
stop_a_second(struct chaos *c)
{
	pid_t super;

	pause_us(100000 + draw(c, 300000));
	super = supervisor(c);
	if (super == 0 || kill(super, SIGSTOP) == -1)
		return;
	c->struck++;
	pause_us(1000000);
	kill(super, SIGCONT);
}

static void
judge_culprit(struct chaos *c, int status, struct scene_end *end)
{
	char words[64];

	end->ranks = 0;
	snprintf(words, sizeof(words), "xrun: rank %llu failed first: SIGSEGV",
		(unsigned long long)culprit);
	if (scene_count(&c->scene, "err", words) != 1)
		scene_broken(&c->scene, "the culprit is not rank %llu",
			(unsigned long long)culprit);
	if (status != -1 && !is(status, 139))
		scene_broken(&c->scene, "wait status %x, not 139", status);
}

static const struct campaign campaigns[] = {
	{ "supervisor", load, kill_supervisor, judge_supervisor },
	{ "keeper", load, kill_keeper, judge_keeper },
	{ "rank", load, kill_rank, judge_rank },
	{ "both", load, kill_both, judge_both },
	{ "stop", load, stop_supervisor, judge_well },
	{ "runs", start_runs, NULL, judge_runs },
	{ "again", start_again, strike_again, judge_again },
	{ "culprit", start_culprit, stop_a_second, judge_culprit },
};

static const struct campaign *
find(const char *name)
{
	for (size_t i = 0; i < sizeof(campaigns) / sizeof(campaigns[0]); i++)
		if (strcmp(campaigns[i].name, name) == 0)
			return &campaigns[i];
	prog_die(0, "no campaign is called %s", name);
}

/* --- rounds --------------------------------------------------------------- */

static void
show_words(struct chaos *c)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/err", c->scene.dir);
	fflush(stdout);
	if (fork() == 0)
		_exit(execlp("sh", "sh", "-c",
			"tail -n 20 \"$0\" | cut -b -200", path, NULL));
	wait(NULL);
}

static void
play(struct chaos *c, const struct campaign *what, int64_t round)
{
	struct scene_end end = { .orphans_ms = c->within,
		.ranks = RANKS,
		.report = what->start == load };
	uint32_t before = c->scene.broken;
	int64_t took;
	int status;

	snprintf(c->scene.what, sizeof(c->scene.what), "%s %lld, seed %lld",
		what->name, (long long)round, (long long)c->seed);
	scene_clear(&c->scene);
	what->start(c);
	if (what->strike != NULL && what->start == load)
		await_moment(c);
	if (what->strike != NULL)
		what->strike(c);
	status = scene_wait(&c->scene, PATIENCE);
	end.status = status;
	what->judge(c, status, &end);
	took = scene_check(&c->scene, &end);
	if (c->taken < 10000 && took >= 0)
		c->took[c->taken++] = took;
	if (c->scene.broken > before)
		show_words(c);
}

static int
by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void
say_times(struct chaos *c)
{
	if (c->taken == 0)
		return;
	qsort(c->took, (size_t)c->taken, sizeof(c->took[0]), by_size);
	printf("nobody left after: median %lld ms, 99 of 100 %lld ms, most %lld ms\n",
		(long long)c->took[c->taken / 2],
		(long long)c->took[c->taken * 99 / 100],
		(long long)c->took[c->taken - 1]);
}

int
main(int argc, char **argv)
{
	static struct chaos c = { .rounds = 50, .seed = 1, .within = 1000 };
	const struct prog_opt table[] = {
		{ "rounds", PROG_NUM, &c.rounds, "how many" },
		{ "seed", PROG_NUM, &c.seed, "of the random moments" },
		{ "within", PROG_NUM, &c.within, "ms until nobody is left" },
		{ 0 },
	};
	int at = prog_opts(argc, argv, table);
	const struct campaign *what;

	if (argc - at != 4)
		prog_die(0, "chaos [OPTION]... CAMPAIGN XRUN PROGRAMS DIR");
	what = find(argv[at]);
	c.xrun = argv[at + 1];
	c.programs = argv[at + 2];
	c.random = (uint64_t)c.seed * 2654435761u + 88172645463325252u;
	scene_init(&c.scene, argv[at + 3]);
	scene_terminal(&c.scene);
	for (int64_t i = 0; i < c.rounds; i++)
		play(&c, what, i);
	printf("%s: %lld rounds, seed %lld, %u struck, %u violations\n",
		what->name, (long long)c.rounds, (long long)c.seed, c.struck,
		c.scene.broken);
	say_times(&c);
	scene_fini(&c.scene);
	return c.scene.broken == 0 ? 0 : 1;
}
