/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_gang_end.c - threads that share tasks: sleeping, ending, and what they need.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/syscall.h>

#include "base/fd.h"
#include "tests/kit/entries.h"
#include "tests/unit/gang_rig.h"
#include "tests/unit/seccomp.h"
#include "tests/unit/short_memory.h"
#include "worker/gang/deque.h"
#include "worker/gang/inner.h"
#include "worker/gang/rest.h"

TestSuite(gang_end, .timeout = 60);

/* --- sleeping ------------------------------------------------------------- */

/* Adds how often the thread @tid was given a processor. Returns true if it sleeps. */
static bool
add_turns(const char *tid, long *turns)
{
	static const char *const names[] = { "\nvoluntary_ctxt_switches:",
		"\nnonvoluntary_ctxt_switches:" };
	char path[64], text[4096];
	const char *at;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
	NEED(fd_read_small(path, text, sizeof(text)) > 0);
	for (int i = 0; i < 2; i++) {
		at = strstr(text, names[i]);
		NEED(at != NULL);
		*turns += strtol(at + strlen(names[i]), NULL, 10);
	}
	return strstr(text, "\nState:\tS") != NULL;
}

/* The turns of all threads but this one. Returns true if they sleep and there is no sentry,
 * so that no sleep has an end. */
static bool
turns_of_others(long *turns)
{
	bool quiet = (atomic_load(&gang->counts) & REST_SENTRY) == 0;
	const struct dirent *d;
	DIR *dir = opendir("/proc/self/task");

	NEED(dir != NULL);
	*turns = 0;
	while ((d = readdir(dir)) != NULL)
		if (d->d_name[0] != '.' &&
			strtol(d->d_name, NULL, 10) != getpid())
			quiet = add_turns(d->d_name, turns) && quiet;
	closedir(dir);
	return quiet;
}

/* The main thread may be late; the others have no turn as long as nothing wakes them. */
static void
expect_no_turns(void)
{
	const struct timespec half = { .tv_nsec = 500000000 };
	long before, after;

	while (!turns_of_others(&before))
		sched_yield();
	nanosleep(&half, NULL);
	EXPECT(turns_of_others(&after));
	EXPECT_EQ(after, before);
}

FORKED_TEST(gang_end, who_has_nothing_to_do_sleeps_and_nothing_beats)
{
	struct job *job = jobs_of(500, run_job);

	gang = gang_of(4);
	for (int i = 0; i < 500; i++)
		EXPECT(gang_post(gang, &job[i].task));
	EXPECT(await(&done, 500));
	EXPECT(all_sleep(4));
	expect_no_turns();
	gang_free(gang);
	free(job);
}

FORKED_TEST(gang_end, a_task_that_takes_long_leaves_the_others_asleep)
{
	struct job *wait = jobs_of(1, run_wait);

	gang = gang_of(4);
	EXPECT(gang_post(gang, &wait->task));
	EXPECT(await(&at_door, 1));
	EXPECT(all_sleep(3));
	expect_no_turns();
	word_is(&door, 1);
	EXPECT(await(&done, 1));
	gang_free(gang);
	free(wait);
}

/* --- ending --------------------------------------------------------------- */

FORKED_TEST(gang_end, a_gang_that_is_closed_runs_what_was_posted)
{
	struct job *job = jobs_of(1000, run_job), *late = jobs_of(1, run_job);
	struct job *wait = jobs_of(1, run_wait);

	gang = gang_of(2);
	EXPECT(gang_post(gang, &wait->task));
	for (int i = 0; i < 990; i++)
		EXPECT(gang_post(gang, &job[i].task));
	job[989].children = &job[990];
	job[989].child_count = 10;
	gang_close(gang);
	EXPECT(!gang_post(gang, &late->task));
	EXPECT(!gang_post_list(gang, &late->task, &late->task));
	EXPECT(!gang_run(gang, &late->task));
	EXPECT(!gang_stops(gang));
	EXPECT(!gang_join(gang, clock_now() + 10 * NS_PER_MS));
	word_is(&door, 1);
	EXPECT(gang_join(gang, clock_now() + SOON));
	EXPECT_EQ(done, 1001);
	each_ran_once(job, 1000);
	EXPECT_EQ(late->runs + late->drops, 0);
	gang_free(gang);
	free(job);
	free(late);
	free(wait);
}

FORKED_TEST(gang_end, what_was_posted_before_the_end_wakes_who_sleeps)
{
	struct job *job = jobs_of(1, run_job);

	for (int i = 0; i < 100; i++) {
		gang = gang_of(1);
		EXPECT(all_sleep(1));
		EXPECT(gang_post(gang, &job->task));
		gang_close(gang);
		EXPECT(gang_join(gang, clock_now() + SOON));
		EXPECT_EQ(done, 1);
		gang_free(gang);
	}
	EXPECT_EQ(job->runs, 100);
	EXPECT_EQ(job->drops, 0);
	free(job);
}

/* On a seat of the gang's, but none of its threads. */
static void
run_late(struct gang_task *task, uint32_t seat)
{
	struct job *job = (struct job *)task;

	gang_close(gang);
	EXPECT(gang_join(gang, clock_now() + SOON));
	EXPECT(gang_post(gang, &job->children[0].task));
	(void)seat;
}

FORKED_TEST(gang_end, what_is_posted_when_nobody_is_left_is_dropped)
{
	struct job *late = jobs_of(1, run_late), *job = jobs_of(1, run_job);

	gang = gang_of(2);
	late->children = job;
	EXPECT(gang_run(gang, &late->task));
	EXPECT_EQ(job->drops, 0);
	gang_free(gang);
	EXPECT_EQ(job->runs, 0);
	EXPECT_EQ(job->drops, 1);
	free(late);
	free(job);
}

static void
run_stopped(struct gang_task *task, uint32_t seat)
{
	struct job *job = (struct job *)task;

	add(&at_door);
	await(&door, 1);
	EXPECT(gang_stops(gang));
	EXPECT(!gang_post(gang, &job->children[0].task));
	add(&done);
	(void)seat;
}

FORKED_TEST(gang_end, a_gang_that_is_stopped_drops_what_does_not_run)
{
	struct job *wait = jobs_of(2, run_stopped);
	struct job *job = jobs_of(1000, run_job), *late = jobs_of(1, run_job);
	uint32_t dropped = 0;

	gang = gang_of(2);
	for (int i = 0; i < 2; i++) {
		wait[i].children = late;
		EXPECT(gang_post(gang, &wait[i].task));
	}
	EXPECT(await(&at_door, 2));
	for (int i = 0; i < 1000; i++)
		EXPECT(gang_post(gang, &job[i].task));
	gang_stop(gang);
	for (int i = 0; i < 1000; i++)
		dropped += job[i].drops;
	EXPECT_EQ(dropped, 1000);
	EXPECT(!gang_join(gang, clock_now() + 10 * NS_PER_MS));
	word_is(&door, 1);
	EXPECT(gang_join(gang, clock_now() + SOON));
	EXPECT_EQ(done, 1002);
	EXPECT_EQ(late->runs + late->drops, 0);
	gang_free(gang);
	free(wait);
	free(job);
	free(late);
}

#define MANY 20000

static _Atomic uint32_t accepted;

static void *
post_until_refused(void *arg)
{
	struct job *job = arg;
	uint32_t n = 0;

	while (n < MANY && gang_post(gang, &job[n].task))
		n++;
	atomic_fetch_add(&accepted, n);
	return NULL;
}

/* Whatever it meets: each task that was accepted is run or dropped. */
FORKED_TEST(gang_end, to_stop_among_posts_loses_none)
{
	struct job *job = jobs_of(2 * MANY, run_job);
	pthread_t thread[2];
	uint32_t ends, twice;

	for (int round = 0; round < 40; round++) {
		memset((void *)job, 0, 2 * MANY * sizeof(*job));
		for (uint32_t i = 0; i < 2 * MANY; i++) {
			job[i].task.run = run_job;
			job[i].task.drop = drop_job;
		}
		gang = gang_of(2);
		accepted = ends = twice = 0;
		for (int i = 0; i < 2; i++)
			pthread_create(&thread[i], NULL, post_until_refused,
				job + i * MANY);
		EXPECT(await(&done, (uint32_t)round * 100 + 1));
		if (round % 2 == 0)
			gang_stop(gang);
		else
			gang_close(gang);
		for (int i = 0; i < 2; i++)
			pthread_join(thread[i], NULL);
		gang_free(gang);
		for (uint32_t i = 0; i < 2 * MANY; i++) {
			ends += job[i].runs + job[i].drops;
			twice += job[i].runs + job[i].drops > 1;
		}
		EXPECT_EQ(ends, accepted);
		EXPECT_EQ(twice, 0);
		EXPECT_EQ(wrong_seats, 0);
	}
	free(job);
}

/* --- what it takes -------------------------------------------------------- */

static _Atomic uint32_t begun, ended, odd;

static void
begin_hand(void *ctx, uint32_t seat)
{
	if (ctx != &begun || seat >= SEATS_MOST)
		atomic_fetch_add(&odd, 1);
	atomic_fetch_add(&begun, 1U << (4 * seat));
}

static void
end_hand(void *ctx, uint32_t seat)
{
	(void)ctx;
	atomic_fetch_add(&ended, 1U << (4 * seat));
	word_wake(&ended, INT32_MAX);
}

FORKED_TEST(gang_end, each_thread_begins_and_ends_once)
{
	struct gang_opts opts = { .seats = 3,
		.begin = begin_hand,
		.end = end_hand,
		.ctx = &begun };

	NEED(gang_new(&opts, &gang) == 0);
	gang_close(gang);
	EXPECT(gang_join(gang, clock_now() + SOON));
	EXPECT_EQ(begun, 0x111);
	EXPECT_EQ(ended, 0x111);
	EXPECT_EQ(odd, 0);
	gang_free(gang);
	gang_free(NULL);
	opts.seats = 0;
	EXPECT_EQ(gang_new(&opts, &gang), EINVAL);
	opts.seats = GANG_SEATS_MAX + 1;
	EXPECT_EQ(gang_new(&opts, &gang), EINVAL);
}

FORKED_TEST(gang_end, a_hundred_leave_no_thread)
{
	unsigned before = entries("/proc/self/task");
	struct job *job = jobs_of(1, run_job);

	for (int i = 0; i < 100; i++) {
		gang = gang_of(3);
		EXPECT(gang_post(gang, &job->task));
		EXPECT(await(&done, 1));
		gang_free(gang);
	}
	EXPECT_EQ(entries("/proc/self/task"), before);
	free(job);
}

FORKED_TEST(gang_end, memory_that_is_short_costs_no_task)
{
	struct gang_opts opts = { .seats = 2 };
	struct job *parent = jobs_of(1, run_job);
	struct job *child = jobs_of(1000, run_job);
	unsigned n = 0;
	int sys;

	do {
		until_short = ++n;
		was_short = false;
		sys = gang_new(&opts, &gang);
		until_short = 0;
		EXPECT(was_short ? sys == ENOMEM : sys == 0);
	} while (sys != 0 && n < 20);
	EXPECT(n > 4);
	done = 0;
	parent->children = child;
	parent->child_count = 1000;
	until_short = 1;
	EXPECT(gang_post(gang, &parent->task));
	EXPECT(await(&done, 1001));
	EXPECT(was_short);
	each_ran_once(child, 1000);
	gang_free(gang);
	free(parent);
	free(child);
}

/* --- tasks that end their threads ------------------------------------------ */

static _Atomic uint32_t lefts, losses;
static _Atomic int loss;

static void
note_left(void *ctx, uint32_t seat)
{
	if (ctx != &begun || seat >= SEATS_MOST)
		atomic_fetch_add(&odd, 1);
	atomic_fetch_add(&lefts, 1);
}

static void
note_lost(void *ctx, int sys)
{
	if (ctx != &begun)
		atomic_fetch_add(&odd, 1);
	atomic_store(&loss, sys);
	atomic_fetch_add(&losses, 1);
}

static void
run_exit(struct gang_task *task, uint32_t seat)
{
	(void)task;
	(void)seat;
	pthread_exit(NULL);
}

/* From now on this thread starts no other. */
static void
run_exit_alone(struct gang_task *task, uint32_t seat)
{
	NEED(seccomp_refuse(SYS_clone3, EAGAIN) == 0);
	NEED(seccomp_refuse(SYS_clone, EAGAIN) == 0);
	run_exit(task, seat);
}

static struct gang_opts watched = { .seats = 1,
	.name = "test",
	.begin = begin_hand,
	.end = end_hand,
	.left = note_left,
	.lost = note_lost,
	.ctx = &begun };

FORKED_TEST(gang_end, a_thread_that_a_task_has_ended_is_replaced)
{
	struct job *exit = jobs_of(3, run_exit), *job = jobs_of(1, run_job);

	NEED(gang_new(&watched, &gang) == 0);
	for (int i = 0; i < 3; i++)
		EXPECT(gang_post(gang, &exit[i].task));
	EXPECT(gang_post(gang, &job->task));
	EXPECT(await(&done, 1));
	EXPECT(all_sleep(1));
	gang_close(gang);
	EXPECT(gang_join(gang, clock_now() + SOON));
	EXPECT_EQ(lefts, 3);
	EXPECT_EQ(losses, 0);
	EXPECT_EQ(begun, 4);
	EXPECT_EQ(ended, 4);
	EXPECT_EQ(odd, 0);
	EXPECT_EQ(atomic_load(&gang->counts) / REST_LOOKS & REST_MOST, 0);
	gang_free(gang);
	free(exit);
	free(job);
}

FORKED_TEST(gang_end, a_thread_that_cannot_be_replaced_is_told_of)
{
	struct job *exit = jobs_of(1, run_exit_alone);

	NEED(gang_new(&watched, &gang) == 0);
	EXPECT(gang_post(gang, &exit->task));
	EXPECT(await(&ended, 1));
	EXPECT_EQ(lefts, 1);
	EXPECT_EQ(losses, 1);
	EXPECT_EQ(loss, EAGAIN);
	EXPECT_EQ(odd, 0);
	gang_close(gang);
	EXPECT(gang_join(gang, clock_now() + SOON));
	EXPECT_EQ(atomic_load(&gang->counts) / REST_LOOKS & REST_MOST, 0);
	gang_free(gang);
	free(exit);
}

static void
begin_and_exit(void *ctx, uint32_t seat)
{
	begin_hand(ctx, seat);
	pthread_exit(NULL);
}

/* Another would end in the same way. */
FORKED_TEST(gang_end, a_thread_that_ends_before_it_has_begun_is_not_replaced)
{
	watched.begin = begin_and_exit;
	NEED(gang_new(&watched, &gang) == 0);
	EXPECT(await(&ended, 1));
	EXPECT_EQ(begun, 1);
	EXPECT_EQ(losses, 0);
	gang_close(gang);
	EXPECT(gang_join(gang, clock_now() + SOON));
	EXPECT_EQ(ended, 1);
	EXPECT_EQ(atomic_load(&gang->counts) / REST_LOOKS & REST_MOST, 0);
	gang_free(gang);
}

/* --- where tasks wait ------------------------------------------------------ */

void __real_free(void *p);
void __wrap_free(void *p);
static const void *rings[4];
static _Atomic uint32_t rings_freed;

void
__wrap_free(void *p)
{
	for (int i = 0; p != NULL && i < 4; i++)
		if (rings[i] == p)
			atomic_fetch_add(&rings_freed, 1U << (4 * i));
	__real_free(p);
}

/* Somebody may be about to take a task from a former ring. */
FORKED_TEST(gang_end, a_deque_keeps_its_former_rings_until_its_end)
{
	static struct deque d;
	static struct gang_task tasks[2];

	until_short = 1;
	EXPECT(!deque_init(&d));
	until_short = 0;
	EXPECT(deque_init(&d));
	rings[0] = atomic_load(&d.ring);
	EXPECT_EQ(atomic_load(&d.ring)->mask, 255);
	EXPECT(atomic_load(&d.ring)->older == NULL);
	for (int i = 0; i < 2; i++)
		EXPECT(deque_push(&d, &tasks[i]));
	until_short = 1;
	EXPECT(!deque_grow(&d));
	until_short = 0;
	EXPECT(atomic_load(&d.ring) == rings[0]);
	for (int i = 1; i < 3; i++) {
		EXPECT(deque_grow(&d));
		rings[i] = atomic_load(&d.ring);
		EXPECT_EQ(atomic_load(&d.ring)->mask, (256 << i) - 1);
		EXPECT(atomic_load(&d.ring)->older == rings[i - 1]);
		for (int k = 0; k < 2; k++)
			EXPECT(atomic_load(&atomic_load(&d.ring)->task[k]) ==
				&tasks[k]);
	}
	EXPECT_EQ(rings_freed, 0);
	deque_fini(&d);
	EXPECT_EQ(rings_freed, 0x111);
}
