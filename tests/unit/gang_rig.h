/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gang_rig.h - a gang, and jobs for it that note how, and where, they were run.
 */
#ifndef TESTS_UNIT_GANG_RIG_H
#define TESTS_UNIT_GANG_RIG_H

#include <sched.h>

#include "base/clock.h"
#include "tests/unit/forked.h"
#include "worker/gang/gang.h"
#include "worker/rpc/waiter.h"

#define SEATS_MOST 8
#define SOON       (30 * NS_PER_S) /* a test that waits so long has failed */

struct job {
	struct gang_task task;
	uint32_t number;
	_Atomic uint32_t runs, drops;
	uint32_t seat;
	uint32_t order;
	struct job *children;
	uint32_t child_count;
};

static struct gang *gang;
static _Atomic uint32_t done, ordered;
static _Atomic uint32_t sitting[SEATS_MOST]; /* how many, on each */
static _Atomic uint32_t wrong_seats;
static _Atomic uint32_t door; /* 1: who waits there may go on */
static _Atomic uint32_t at_door;

static struct gang *
gang_of(uint32_t seats)
{
	struct gang_opts opts = { .seats = seats, .name = "test" };
	struct gang *g = NULL;

	done = ordered = door = at_door = wrong_seats = 0;
	NEED(gang_new(&opts, &g) == 0);
	return g;
}

static void
word_is(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store(word, value);
	word_wake(word, INT32_MAX);
}

/* Until @word is at least @value. */
static bool
await(_Atomic uint32_t *word, uint32_t value)
{
	int64_t until = clock_now() + SOON;
	uint32_t now = atomic_load(word);

	while (now < value && clock_now() < until) {
		word_sleep(word, now, until);
		now = atomic_load(word);
	}
	return now >= value;
}

static void
add(_Atomic uint32_t *word)
{
	atomic_fetch_add(word, 1);
	word_wake(word, INT32_MAX);
}

static void
run_job(struct gang_task *task, uint32_t seat)
{
	struct job *job = (struct job *)task;

	if (seat >= SEATS_MOST || atomic_fetch_add(&sitting[seat], 1) != 0 ||
		gang_seat(gang) != seat)
		atomic_fetch_add(&wrong_seats, 1);
	job->order = atomic_fetch_add(&ordered, 1);
	job->seat = seat;
	for (uint32_t i = 0; i < job->child_count; i++)
		EXPECT(gang_post(gang, &job->children[i].task));
	atomic_fetch_add(&job->runs, 1);
	atomic_fetch_sub(&sitting[seat], 1);
	add(&done);
}

static void
drop_job(struct gang_task *task)
{
	struct job *job = (struct job *)task;

	atomic_fetch_add(&job->drops, 1);
	add(&done);
}

/* Until the door opens. */
static void
run_wait(struct gang_task *task, uint32_t seat)
{
	add(&at_door);
	await(&door, 1);
	run_job(task, seat);
}

static struct job *
jobs_of(uint32_t count, void (*run)(struct gang_task *task, uint32_t seat))
{
	struct job *job = calloc(count, sizeof(*job));

	NEED(job != NULL);
	for (uint32_t i = 0; i < count; i++) {
		job[i].task.run = run;
		job[i].task.drop = drop_job;
		job[i].number = i;
	}
	return job;
}

/* Until so many sleep. */
static bool
all_sleep(uint32_t count)
{
	int64_t until = clock_now() + SOON;
	struct gang_figures f = { 0 };

	while (f.asleep < count && clock_now() < until) {
		sched_yield();
		gang_figures(gang, &f);
	}
	return f.asleep == count;
}

static void
each_ran_once(const struct job *job, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		EXPECT_EQ(job[i].runs, 1);
		EXPECT_EQ(job[i].drops, 0);
	}
	EXPECT_EQ(wrong_seats, 0);
}

#endif /* TESTS_UNIT_GANG_RIG_H */
