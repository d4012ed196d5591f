/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowdkill.c - ranks that meet, of which one after the other is killed (crowd.c).
 *
 *   crowdkill [--barriers N] [--kills N] [--seed N] XRUN CROWD DIR
 *   crowdkill --soak SECONDS [--seed N] [--tcp] XRUN CROWD DIR
 *
 * The first form: jobs of eight ranks, by shared memory and by TCP in turn, until so
 * many barriers were met at and so many ranks killed: at any moment, while they make
 * a group, before the first barrier of one, and before the others went on from the
 * last; by TCP once all have met, since one to whom nobody has connected yet dies
 * unseen, and is late. What must hold is in crowd.c and scene.h.
 *
 * The second: one job, in which ranks do all that there is and make groups all the
 * time, and die one by one until three are left. Looked at are memory, descriptors
 * and threads of those and of the supervisor: at the end they are what they were
 * after the last death but for what the allowances say.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "tests/fault/crowd.h"
#include "tests/fault/scene.h"
#include "tests/prog/prog.h"

#define PATIENCE  60000           /* ms */
#define STILL_NS  (30 * NS_PER_S) /* without a step: it hangs */
#define LEFT      2               /* ranks of a job that live on */
#define SOAK_LEFT 3
#define FLAT_KB   2048 /* more memory than before may be used */

static struct scene scene;
struct crowd *crowd;
static uint64_t dice;
static uint64_t barriers[2], made, heard, works, kills;
static int64_t slowest;
static int64_t soak_s;

static uint32_t
draw(uint32_t most)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (uint32_t)(dice >> 20) % most;
}

static void
pause_ns(int64_t ns)
{
	nanosleep(&(struct timespec){ ns / NS_PER_S, ns % NS_PER_S }, NULL);
}

static struct crowd *
crowd_new(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct crowd *c = MAP_FAILED;

	if (fd != -1 && ftruncate(fd, sizeof(*c)) == 0)
		c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED,
			fd, 0);
	if (fd != -1)
		close(fd);
	return c;
}

/* --- who lives -------------------------------------------------------------------- */

static bool
lives(uint32_t r)
{
	return r < crowd->ranks && !atomic_load(&crowd->dead[r]);
}

static uint32_t
living(void)
{
	uint32_t mask = 0;

	for (uint32_t r = 0; r < crowd->ranks; r++)
		mask |= (uint32_t)lives(r) << r;
	return mask;
}

static bool
is_over(void)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)scene.pid, &info,
		       WEXITED | WNOHANG | WNOWAIT) == -1 ||
		info.si_pid != 0;
}

static uint64_t
met(void)
{
	uint64_t sum = 0;

	for (uint32_t r = 0; r < crowd->ranks; r++)
		sum += atomic_load(&crowd->barriers[0][r]) +
			atomic_load(&crowd->barriers[1][r]);
	return sum;
}

static uint64_t
steps_of_slowest(void)
{
	uint64_t least = UINT64_MAX, beat;

	for (uint32_t r = 0; r < crowd->ranks; r++) {
		beat = atomic_load(&crowd->beat[r]);
		if (lives(r) && beat < least)
			least = beat;
	}
	return least;
}

static void
tell_where(void)
{
	for (uint32_t r = 0; r < crowd->ranks; r++)
		if (lives(r))
			scene_broken(&scene,
				"rank %u stands still: state %u, members and barrier %llx",
				r, atomic_load(&crowd->state[r]),
				(unsigned long long)
					atomic_load(&crowd->word[r]));
}

/* False: what is awaited does not come, since somebody hangs, or all have ended. */
static bool
await(bool (*ready)(uint64_t), uint64_t what)
{
	uint64_t steps = steps_of_slowest();
	int64_t since = clock_now();

	while (!ready(what)) {
		if (is_over())
			return false;
		if (steps_of_slowest() != steps) {
			steps = steps_of_slowest();
			since = clock_now();
		}
		if (clock_now() - since > STILL_NS) {
			tell_where();
			return false;
		}
		pause_ns(NS_PER_MS / 10);
	}
	return true;
}

static bool
have_begun(uint64_t unused)
{
	bool all = true;

	(void)unused;
	for (uint32_t r = 0; r < crowd->ranks; r++)
		all = all && atomic_load(&crowd->pid[r]) != 0;
	return all;
}

/* All who live meet with all who live, and nobody else. */
static bool
went_on(uint64_t unused)
{
	bool all = true;

	(void)unused;
	for (uint32_t r = 0; r < crowd->ranks; r++)
		all = all &&
			(!lives(r) ||
				(atomic_load(&crowd->state[r]) == CROWD_MEETS &&
					atomic_load(&crowd->word[r]) >> 32 ==
						living()));
	return all;
}

static bool
have_met(uint64_t count)
{
	return met() >= count;
}

/* --- killing ---------------------------------------------------------------------- */

static void
catch_at(uint32_t victim, enum crowd_state state)
{
	int64_t end = clock_now() + 200 * NS_PER_MS;

	while (atomic_load(&crowd->state[victim]) != state && clock_now() < end)
		sched_yield();
}

static void
kill_one(void)
{
	uint32_t victim, how = draw(4);
	pid_t pid;

	do
		victim = draw(crowd->ranks);
	while (!lives(victim));
	if (how == 0)
		catch_at(victim, CROWD_MAKES);
	else if (how == 1)
		catch_at(victim, CROWD_MADE);
	pause_ns(how < 2 ? draw(400) * 1000 : draw(10000) * 1000);
	pid = atomic_load(&crowd->pid[victim]);
	atomic_store(&crowd->killed_ns[victim], clock_now());
	atomic_store(&crowd->dead[victim], true);
	if (pid <= 0 || kill(pid, SIGKILL) == -1)
		scene_broken(&scene, "%u is not there", victim);
	/* Not before: this process may have waited for a processor. */
	atomic_store(&crowd->killed_ns[victim], clock_now());
	kills++;
}

/* Now and then the next dies while others have not gone on yet. */
static void
kill_all_but(uint32_t left, uint64_t each)
{
	while ((uint32_t)__builtin_popcount(living()) > left) {
		if (draw(4) != 0 &&
			(!await(went_on, 0) ||
				!await(have_met, met() + draw((uint32_t)each))))
			return;
		kill_one();
	}
	await(went_on, 0);
}

/* --- what a process has --------------------------------------------------------------- */

struct usage {
	int64_t kb, shared_kb, fds, threads;
};

static uint32_t
count_in(pid_t pid, const char *what)
{
	char path[64];
	uint32_t n = 0;
	const struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	dir = opendir(path);
	while (dir != NULL && (d = readdir(dir)) != NULL)
		n += d->d_name[0] != '.';
	if (dir != NULL)
		closedir(dir);
	return n;
}

static struct usage
usage_of(pid_t pid)
{
	return (struct usage){
		.kb = scene_number(pid, "RssAnon:"),
		.shared_kb = scene_number(pid, "RssShmem:"),
		.fds = count_in(pid, "fd"),
		.threads = count_in(pid, "task"),
	};
}

/* The most that it has in a tenth of the time: it goes up and down meanwhile. */
static void
watch(int64_t until, pid_t *pids, struct usage *most, uint32_t count)
{
	memset(most, 0, count * sizeof(*most));
	while (clock_now() < until && !is_over()) {
		for (uint32_t i = 0; i < count; i++) {
			struct usage u = usage_of(pids[i]);

			if (u.kb > most[i].kb)
				most[i].kb = u.kb;
			if (u.shared_kb > most[i].shared_kb)
				most[i].shared_kb = u.shared_kb;
			if (u.fds > most[i].fds)
				most[i].fds = u.fds;
			if (u.threads > most[i].threads)
				most[i].threads = u.threads;
		}
		pause_ns(50 * NS_PER_MS);
	}
}

static void
compare(const char *who, const struct usage *a, const struct usage *b)
{
	printf("%s: private %ld to %ld kB, shared %ld to %ld kB, descriptors %ld to %ld, threads %ld to %ld\n",
		who, (long)a->kb, (long)b->kb, (long)a->shared_kb,
		(long)b->shared_kb, (long)a->fds, (long)b->fds,
		(long)a->threads, (long)b->threads);
	if (a->kb == 0 || b->kb == 0)
		scene_broken(&scene, "%s: nothing is known", who);
	if (b->kb > a->kb + FLAT_KB)
		scene_broken(&scene, "%s: %ld kB more", who,
			(long)(b->kb - a->kb));
	if (b->shared_kb > a->shared_kb + FLAT_KB)
		scene_broken(&scene, "%s: %ld kB more that are shared", who,
			(long)(b->shared_kb - a->shared_kb));
	if (b->fds > a->fds)
		scene_broken(&scene, "%s: more descriptors", who);
	if (b->threads > a->threads && b->threads > CROWD_THREADS)
		scene_broken(&scene, "%s: more threads", who);
}

/* A quarter of the time for deaths, a tenth to be measured by, a tenth to be
 * measured at the end. */
static void
soak(void)
{
	int64_t all = soak_s * NS_PER_S, begun = clock_now();
	uint32_t doomed = crowd->ranks - SOAK_LEFT, count = 1;
	struct usage before[CROWD_RANKS + 1], after[CROWD_RANKS + 1];
	pid_t pids[CROWD_RANKS + 1];
	char who[32];

	for (uint32_t i = 0; i < doomed; i++) {
		pause_ns(all / 4 / doomed);
		if (!await(went_on, 0))
			return;
		kill_one();
	}
	if (!await(went_on, 0))
		return;
	pids[0] = scene_child(scene.pid, "xrun-super");
	for (uint32_t r = 0; r < crowd->ranks; r++)
		if (lives(r))
			pids[count++] = atomic_load(&crowd->pid[r]);
	while (clock_now() < begun + all * 4 / 10 && await(have_met, met() + 9))
		pause_ns(20 * NS_PER_MS);
	watch(begun + all / 2, pids, before, count);
	while (clock_now() < begun + all * 9 / 10 && await(have_met, met() + 9))
		pause_ns(20 * NS_PER_MS);
	watch(begun + all, pids, after, count);
	await(went_on, 0);
	for (uint32_t i = 0; i < count; i++) {
		snprintf(who, sizeof(who),
			i == 0 ? "supervisor" : "rank (pid %d)", (int)pids[i]);
		compare(who, &before[i], &after[i]);
	}
}

/* --- a job ------------------------------------------------------------------------ */

static void
judge(int status)
{
	uint32_t count = atomic_load(&crowd->wrong);

	for (uint32_t i = 0; i < count && i < CROWD_WRONG; i++)
		scene_broken(&scene, "%.399s", crowd->text[i]);
	/* The first who died by a signal. */
	if (status != -1 && !(WIFEXITED(status) && WEXITSTATUS(status) == 137))
		scene_broken(&scene, "wait status %x, not 137", status);
	for (uint32_t r = 0; r < crowd->ranks; r++) {
		barriers[0] += atomic_load(&crowd->barriers[0][r]);
		barriers[1] += atomic_load(&crowd->barriers[1][r]);
		made += atomic_load(&crowd->made[r]);
		heard += atomic_load(&crowd->heard[r]);
		works += atomic_load(&crowd->works_done[r]);
		if (atomic_load(&crowd->slowest[r]) > slowest)
			slowest = atomic_load(&crowd->slowest[r]);
	}
}

static void
play(char **programs, uint64_t seed, bool by_tcp, uint64_t each)
{
	const struct scene_end end = { .orphans_ms = 1000 };
	char path[600], number[16];
	char *argv[] = { programs[0], "-n", number, "--on-failure=continue",
		"--no-logs", programs[1], path, by_tcp ? "tcp" : NULL, NULL };
	int status;

	scene_clear(&scene);
	snprintf(scene.what, sizeof(scene.what), "seed %lu%s",
		(unsigned long)seed, by_tcp ? ", by TCP" : "");
	snprintf(number, sizeof(number), "%d", CROWD_RANKS);
	snprintf(path, sizeof(path), "%s/board", scene.dir);
	crowd = crowd_new(path);
	if (crowd == MAP_FAILED) {
		scene_broken(&scene, "no board");
		return;
	}
	dice = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
	crowd->seed = seed;
	crowd->ranks = CROWD_RANKS;
	crowd->works = soak_s > 0;
	scene_start(&scene, argv, false);
	if (!await(have_begun, 0))
		scene_broken(&scene, "not all have begun");
	else if (soak_s > 0)
		soak();
	else if (!by_tcp || await(went_on, 0))
		kill_all_but(LEFT, each);
	atomic_store(&crowd->over, true);
	status = scene_wait(&scene, PATIENCE);
	judge(status);
	scene_check(&scene, &end);
	munmap(crowd, sizeof(*crowd));
}

int
main(int argc, char **argv)
{
	int64_t wanted = 1000, deaths = 12, seed = 1;
	bool by_tcp = false;
	const struct prog_opt opts[] = {
		{ "barriers", PROG_NUM, &wanted, "in all" },
		{ "kills", PROG_NUM, &deaths, "in all" },
		{ "seed", PROG_NUM, &seed, "of the first job" },
		{ "soak", PROG_NUM, &soak_s, "seconds, of one job" },
		{ "tcp", PROG_FLAG, &by_tcp, "that one, by TCP" },
		{ 0 },
	};
	int i = prog_opts(argc, argv, opts);

	if (argc - i != 3 || wanted < 1 || deaths < 1) {
		fprintf(stderr,
			"usage: crowdkill [OPTION]... XRUN CROWD DIR\n");
		return 2;
	}
	scene_init(&scene, argv[i + 2]);
	do {
		play(argv + i, (uint64_t)seed++, by_tcp,
			(uint64_t)(2 * wanted / deaths + 1));
		by_tcp = !by_tcp;
	} while (soak_s == 0 && scene.broken == 0 &&
		(barriers[0] + barriers[1] < (uint64_t)wanted ||
			kills < (uint64_t)deaths));
	printf("%lu barriers of ranks, %lu of names, %lu kills, %lu groups made, %lu works, heard of by %lu after at most %lu ms, %u violations\n",
		barriers[0], barriers[1], kills, made, works, heard,
		(unsigned long)slowest / 1000000, scene.broken);
	scene_fini(&scene);
	return scene.broken > 0;
}
