/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_gang.c - threads that share tasks: each task once, in order, on a seat, and by
 * whom; sweeping, and loops.
 */
#include <pthread.h>
#include <time.h>

#include "tests/unit/gang_rig.h"
#include "worker/gang/deque.h"

TestSuite(gang, .timeout = 60);

/* --- a deque -------------------------------------------------------------- */

#define ROUNDS 200000 /* at least, */
#define STOLEN 5000   /* and as many as it takes for this, or a second */

static struct deque deque;
static _Atomic uint32_t stolen;
static _Atomic bool over;

static void *
steal_all(void *arg)
{
	(void)arg;
	while (!atomic_load(&over)) {
		if (deque_steal(&deque) != NULL)
			atomic_fetch_add(&stolen, 1);
	}
	return NULL;
}

/* Nearly empty all the time: each of them is the last one of two who want it. */
FORKED_TEST(gang, the_last_one_of_a_deque_is_had_by_one)
{
	struct gang_task task[3] = { 0 };
	int64_t until = clock_now() + NS_PER_S;
	uint32_t pushed = 0, popped = 0;
	pthread_t thread[2];

	EXPECT(deque_init(&deque));
	stolen = 0;
	over = false;
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, steal_all, NULL);
	for (uint32_t i = 0; i < ROUNDS ||
		(atomic_load(&stolen) < STOLEN && clock_now() < until);
		i++) {
		for (uint32_t n = 0; n <= i % 3; n++, pushed++)
			EXPECT(deque_push(&deque, &task[n]));
		while (deque_pop(&deque) != NULL)
			popped++;
		EXPECT(deque_empty(&deque));
	}
	over = true;
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(popped + stolen, pushed);
	deque_fini(&deque);
}

/* --- running -------------------------------------------------------------- */

#define MANY 20000

static struct job *many;

static void *
post_quarter(void *arg)
{
	uint32_t from = (uint32_t)(uintptr_t)arg * (MANY / 4);

	for (uint32_t i = 0; i < MANY / 4; i++)
		EXPECT(gang_post(gang, &many[from + i].task));
	return NULL;
}

FORKED_TEST(gang, what_four_threads_post_runs_once_each)
{
	pthread_t thread[4];

	gang = gang_of(3);
	many = jobs_of(MANY, run_job);
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, post_quarter, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	EXPECT(await(&done, MANY));
	each_ran_once(many, MANY);
	gang_free(gang);
	free(many);
}

FORKED_TEST(gang, a_single_seat_runs_in_the_order_of_posts)
{
	struct job *job, *wait;

	gang = gang_of(1);
	job = jobs_of(300, run_job);
	wait = jobs_of(1, run_wait);
	EXPECT(gang_post(gang, &wait->task));
	EXPECT(await(&at_door, 1));
	for (uint32_t i = 0; i < 100; i++)
		EXPECT(gang_post(gang, &job[i].task));
	/* A list is one post. */
	for (uint32_t i = 100; i < 299; i++)
		job[i].task.next = &job[i + 1].task;
	EXPECT(gang_post_list(gang, &job[100].task, &job[299].task));
	word_is(&door, 1);
	EXPECT(await(&done, 301));
	for (uint32_t i = 0; i < 300; i++)
		EXPECT_EQ(job[i].order, i + 1);
	each_ran_once(job, 300);
	gang_free(gang);
	free(job);
	free(wait);
}

/* More than the first room for them. */
FORKED_TEST(gang, what_a_task_posts_runs_before_what_waits)
{
	struct job *parent, *child, *next;

	gang = gang_of(1);
	parent = jobs_of(1, run_job);
	child = jobs_of(1000, run_job);
	next = jobs_of(1, run_job);
	parent->children = child;
	parent->child_count = 1000;
	parent->task.next = &next->task;
	EXPECT(gang_post_list(gang, &parent->task, &next->task));
	EXPECT(await(&done, 1002));
	EXPECT_EQ(parent->order, 0);
	for (uint32_t i = 0; i < 1000; i++)
		EXPECT_EQ(child[i].order, 1000 - i);
	EXPECT_EQ(next->order, 1001);
	gang_free(gang);
	free(parent);
	free(child);
	free(next);
}

/* It waits there until they have. */
static void
run_parent(struct gang_task *task, uint32_t seat)
{
	struct job *job = (struct job *)task;

	for (uint32_t i = 0; i < job->child_count; i++)
		EXPECT(gang_post(gang, &job->children[i].task));
	EXPECT(await(&done, job->child_count));
	add(&done);
	(void)seat;
}

FORKED_TEST(gang, what_a_task_posts_is_taken_by_others_while_it_runs)
{
	struct job *parent = jobs_of(1, run_parent);
	struct job *child = jobs_of(50, run_job);

	gang = gang_of(2);
	parent->children = child;
	parent->child_count = 50;
	EXPECT(gang_post(gang, &parent->task));
	EXPECT(await(&done, 51));
	each_ran_once(child, 50);
	/* The oldest first. */
	for (uint32_t i = 0; i < 50; i++)
		EXPECT_EQ(child[i].order, i);
	gang_free(gang);
	free(parent);
	free(child);
}

FORKED_TEST(gang, tasks_that_wait_for_each_other_have_a_seat_each)
{
	struct job *job = jobs_of(SEATS_MOST, run_wait);

	gang = gang_of(SEATS_MOST);
	for (uint32_t round = 0; round < 200; round++) {
		door = at_door = done = 0;
		for (uint32_t i = 0; i < SEATS_MOST; i++)
			EXPECT(gang_post(gang, &job[i].task));
		EXPECT(await(&at_door, SEATS_MOST));
		word_is(&door, 1);
		EXPECT(await(&done, SEATS_MOST));
	}
	EXPECT_EQ(wrong_seats, 0);
	gang_free(gang);
	free(job);
}

/* Short ones before have taught it that nobody need be woken. */
FORKED_TEST(gang, what_is_posted_behind_a_long_task_begins_before_its_end)
{
	struct job *brief = jobs_of(3000, run_job);
	struct job *wait = jobs_of(1, run_wait);

	gang = gang_of(2);
	for (uint32_t i = 0; i < 2998; i++)
		EXPECT(gang_post(gang, &brief[i].task));
	EXPECT(await(&done, 2998));
	EXPECT(gang_post(gang, &wait->task));
	EXPECT(gang_post(gang, &brief[2998].task));
	EXPECT(await(&at_door, 1));
	EXPECT(all_sleep(1));
	EXPECT(gang_post(gang, &brief[2999].task));
	EXPECT(await(&done, 3000));
	word_is(&door, 1);
	EXPECT(await(&done, 3001));
	gang_free(gang);
	free(brief);
	free(wait);
}

/* --- seats ---------------------------------------------------------------- */

FORKED_TEST(gang, a_task_that_is_run_at_once_has_a_seat_and_our_thread)
{
	struct job *job = jobs_of(2, run_job), *wait = jobs_of(2, run_wait);

	gang = gang_of(2);
	EXPECT(gang_run(gang, &job[0].task));
	EXPECT_EQ(job[0].runs, 1);
	EXPECT_EQ(gang_seat(gang), GANG_NOBODY);
	EXPECT(gang_post(gang, &wait[0].task));
	EXPECT(gang_post(gang, &wait[1].task));
	EXPECT(await(&at_door, 2));
	EXPECT(!gang_run(gang, &job[1].task));
	EXPECT_EQ(job[1].runs, 0);
	word_is(&door, 1);
	EXPECT(await(&done, 3));
	EXPECT_EQ(wrong_seats, 0);
	gang_free(gang);
	free(job);
	free(wait);
}

/* --- sweeping ------------------------------------------------------------- */

static bool
is_odd(const struct gang_task *task)
{
	return ((const struct job *)task)->number % 2 == 1;
}

static void
run_sweep(struct gang_task *task, uint32_t seat)
{
	const struct job *job = (struct job *)task;

	for (uint32_t i = 0; i < 100; i++)
		EXPECT(gang_post(gang, &job->children[i].task));
	add(&at_door);
	EXPECT(await(&door, 1));
	gang_sweep(gang, 1000, is_odd);
	EXPECT_EQ(done, 100);
	add(&done);
	(void)seat;
}

/* Of its own, and of what came from outside; the others keep their order. */
FORKED_TEST(gang, what_is_stale_is_run_by_who_sweeps)
{
	struct job *sweeper = jobs_of(1, run_sweep);
	struct job *own = jobs_of(100, run_job),
		   *others = jobs_of(100, run_job);

	gang = gang_of(1);
	sweeper->children = own;
	EXPECT(gang_post(gang, &sweeper->task));
	EXPECT(await(&at_door, 1));
	for (uint32_t i = 0; i < 100; i++) {
		own[i].number = others[i].number = i;
		EXPECT(gang_post(gang, &others[i].task));
	}
	word_is(&door, 1);
	EXPECT(await(&done, 201));
	each_ran_once(own, 100);
	each_ran_once(others, 100);
	for (uint32_t i = 0; i < 100; i += 2) {
		EXPECT_EQ(own[i].order, 100 + (98 - i) / 2);
		EXPECT_EQ(others[i].order, 150 + i / 2);
	}
	EXPECT_EQ(wrong_seats, 0);
	gang_free(gang);
	free(sweeper);
	free(own);
	free(others);
}

/* --- loops ---------------------------------------------------------------- */

#define COUNT 100000

static _Atomic uint8_t seen[COUNT];
static _Atomic uint32_t parts, short_parts;
static uint64_t grain;
static bool part_waits;

static void
run_part(void *ctx, uint64_t begin, uint64_t end, uint32_t seat)
{
	EXPECT(ctx == &parts);
	if (seat != GANG_NOBODY &&
		(seat >= SEATS_MOST ||
			atomic_fetch_add(&sitting[seat], 1) != 0))
		atomic_fetch_add(&wrong_seats, 1);
	for (uint64_t i = begin; i < end; i++)
		atomic_fetch_add(&seen[i], 1);
	if (end - begin < grain && end != COUNT)
		atomic_fetch_add(&short_parts, 1);
	atomic_fetch_add(&parts, 1);
	if (part_waits && begin == 0) {
		add(&at_door);
		await(&door, 1);
	} else if (part_waits) {
		word_is(&door, 1);
	}
	if (seat != GANG_NOBODY)
		atomic_fetch_sub(&sitting[seat], 1);
}

static void
loop_over(uint64_t count)
{
	const struct gang_loop loop = { run_part, &parts, count, grain, NULL,
		NULL };
	uint64_t wrong = 0;

	memset((void *)seen, 0, sizeof(seen));
	parts = short_parts = 0;
	gang_for(gang, &loop);
	for (uint64_t i = 0; i < COUNT; i++)
		wrong += seen[i] != (i < count);
	EXPECT_EQ(wrong, 0);
	EXPECT_EQ(short_parts, 0);
	EXPECT_EQ(wrong_seats, 0);
}

FORKED_TEST(gang, a_loop_has_each_index_once)
{
	gang = gang_of(3);
	loop_over(0);
	EXPECT_EQ(parts, 0);
	loop_over(1);
	loop_over(7);
	for (grain = 0; grain < 40; grain += 13)
		loop_over(COUNT);
	grain = COUNT;
	loop_over(COUNT);
	EXPECT_EQ(parts, 1);
	gang_free(gang);
}

/* The first part waits for another one, which the calling thread cannot run. */
FORKED_TEST(gang, others_take_part_in_a_loop_that_takes_long)
{
	part_waits = true;
	for (int i = 0; i < 20; i++) {
		gang = gang_of(2);
		loop_over(COUNT);
		gang_free(gang);
	}
}

static pthread_t caller;
static _Atomic bool is_slow;
static _Atomic uint32_t own; /* parts of a slow loop that the caller had */

/* By then the others have been called, and come once they have a processor. */
static void
spend(bool by_caller)
{
	int64_t ns = 100 * NS_PER_US, until;

	if (by_caller && ++own == 100)
		ns = 20 * NS_PER_S;
	for (until = clock_now() + ns; clock_now() < until;)
		if (own == 100 && at_door > 0)
			return;
}

static void
run_slow(void *ctx, uint64_t begin, uint64_t end, uint32_t seat)
{
	bool by_caller = pthread_equal(pthread_self(), caller);

	(void)ctx;
	(void)seat;
	if (!by_caller)
		add(&at_door);
	if (is_slow)
		spend(by_caller);
	atomic_fetch_add(&parts, (uint32_t)(end - begin));
}

/* Once it is known to be short, it is begun alone. */
FORKED_TEST(gang, a_loop_that_was_short_is_shared_when_it_is_not)
{
	const struct gang_loop brief = { run_slow, NULL, 4, 1, NULL, NULL };
	const struct gang_loop loop = { run_slow, NULL, 200, 1, NULL, NULL };

	caller = pthread_self();
	for (int round = 0; round < 3; round++) {
		gang = gang_of(2);
		parts = own = 0;
		is_slow = false;
		for (int i = 0; i < 10; i++)
			gang_for(gang, &brief);
		at_door = 0;
		is_slow = true;
		gang_for(gang, &loop);
		EXPECT_EQ(parts, 240);
		EXPECT(at_door > 0);
		gang_free(gang);
	}
}

static _Atomic bool part_is_over;

/* The calling thread has the first part until another one has the next, which takes
 * longer than all that is left. */
static void
run_long_part(void *ctx, uint64_t begin, uint64_t end, uint32_t seat)
{
	(void)ctx;
	(void)begin;
	(void)end;
	(void)seat;
	if (pthread_equal(pthread_self(), caller)) {
		await(&at_door, 1);
		return;
	}
	add(&at_door);
	nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
	part_is_over = true;
}

FORKED_TEST(gang, a_loop_ends_with_its_last_part)
{
	const struct gang_loop loop = { run_long_part, NULL, 2, 1, NULL, NULL };

	gang = gang_of(2);
	caller = pthread_self();
	gang_for(gang, &loop);
	EXPECT(part_is_over || at_door == 0);
	gang_free(gang);
}

static void *
loop_too(void *arg)
{
	const struct gang_loop loop = { run_part, &parts, COUNT, 16, NULL,
		NULL };

	(void)arg;
	for (int i = 0; i < 5; i++)
		gang_for(gang, &loop);
	return NULL;
}

/* More of them than loops that others take part in, and than seats. */
FORKED_TEST(gang, several_loops_go_on_at_a_time)
{
	pthread_t thread[6];
	uint64_t wrong = 0;

	gang = gang_of(2);
	for (int i = 0; i < 6; i++)
		pthread_create(&thread[i], NULL, loop_too, NULL);
	for (int i = 0; i < 6; i++)
		pthread_join(thread[i], NULL);
	for (uint32_t i = 0; i < COUNT; i++)
		wrong += seen[i] != 30;
	EXPECT_EQ(wrong, 0);
	EXPECT_EQ(wrong_seats, 0);
	gang_free(gang);
}
