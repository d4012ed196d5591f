/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_help.c - what who waits in a function of a pool begins himself, and what not. */
#include "tests/unit/made_pool.h"
#include "tests/unit/short_memory.h"
#include "worker/pool/help.h"

TestSuite(pool_help, .timeout = 60);

#define SEAT 1

static struct seat seats[MADE_WORKERS];
static struct job job;

/* --- what it calls ------------------------------------------------------------------------- */

static bool is_ours, has_loose;
static const struct task *ran, *loose;
static struct stint *stint;
static unsigned runs, loose_asked;

bool __wrap_seat_is_ours(const struct xr_pool *pool);
uint32_t __wrap_gang_seat(const struct gang *gang);
void __wrap_stint_begin_inside(struct stint *s, struct xr_pool *pool,
	struct task *t);
void __wrap_thread_run(struct stint *s);
bool __wrap_feed_loose(struct job *of, struct task *t);

bool
__wrap_seat_is_ours(const struct xr_pool *pool)
{
	EXPECT(pool == &made);
	return is_ours;
}

uint32_t
__wrap_gang_seat(const struct gang *gang)
{
	(void)gang;
	return SEAT;
}

void
__wrap_stint_begin_inside(struct stint *s, struct xr_pool *pool, struct task *t)
{
	EXPECT(pool == &made);
	s->seat = &seats[SEAT];
	s->part.task = t;
}

void
__wrap_thread_run(struct stint *s)
{
	EXPECT(seats[SEAT].helps == NULL);
	EXPECT_EQ(tidyings, 0);
	ran = s->part.task;
	stint = s;
	runs++;
}

bool
__wrap_feed_loose(struct job *of, struct task *t)
{
	EXPECT(of == &job);
	loose = t;
	loose_asked++;
	return has_loose;
}

/* --- a job of a pool ------------------------------------------------------------------------- */

static void
forget(void)
{
	tidyings = runs = loose_asked = 0;
	ran = loose = NULL;
}

static void
begin(enum job_kind kind)
{
	static uint8_t items[8];

	make_pool();
	made.seats = seats;
	memset(seats, 0, sizeof(seats));
	memset(&job, 0, sizeof(job));
	job.pool = &made;
	job.kind = kind;
	job.item = kind >= JOB_ITER ? items : NULL;
	job.count = 8;
	job.chunk = 2;
	is_ours = true;
	has_loose = false;
	forget();
}

static void
end(void)
{
	help_fini(&seats[SEAT]);
	EXPECT(seats[SEAT].helps == NULL);
	unmake_pool();
}

/* Task @i has two items, from @first on. */
static void
give(uint32_t i, size_t first, uint32_t held)
{
	made_task[i].job = &job;
	made_task[i].first = first;
	made_task[i].count = 2;
	atomic_store(&made_task[i].held, held);
	job.tasks++;
}

static void
expect_run(const struct task *t)
{
	forget();
	EXPECT(help_job(&job));
	EXPECT(ran == t);
	EXPECT_EQ(runs, 1);
	EXPECT_EQ(tidyings, 1);
	EXPECT(seats[SEAT].helps != NULL);
	if (t != loose)
		EXPECT_EQ(t->held, TASK_HELPED);
}

static void
expect_none(unsigned asked)
{
	forget();
	EXPECT(!help_job(&job));
	EXPECT_EQ(runs + tidyings, 0);
	EXPECT_EQ(loose_asked, asked);
	EXPECT(seats[SEAT].helps != NULL);
}

/* --- calls ------------------------------------------------------------------------------------ */

FORKED_TEST(pool_help, a_call_is_begun_by_who_waits_for_it)
{
	struct xr_future *ours = (struct xr_future *)&job,
			 *other = (struct xr_future *)&made;
	struct task *t = &made_task[3];
	const struct job another = { .pool = &made };
	const struct stint *first;

	begin(JOB_APPLY);
	give(3, 0, TASK_WAITS);
	job.future = ours;
	EXPECT(!help_call(t, &job, other));
	job.future = other;
	EXPECT(!help_call(t, &job, ours));
	job.future = ours;
	atomic_store(&job.ended, true);
	EXPECT(!help_call(t, &job, ours));
	atomic_store(&job.ended, false);
	t->job = (struct job *)(uintptr_t)&another;
	EXPECT(!help_call(t, &job, ours));
	t->job = &job;
	EXPECT_EQ(t->held, TASK_WAITS);
	atomic_store(&t->held, TASK_RUNS);
	EXPECT(!help_call(t, &job, ours));
	EXPECT_EQ(t->held, TASK_RUNS);
	EXPECT_EQ(runs + tidyings, 0);
	EXPECT(seats[SEAT].helps != NULL);
	atomic_store(&t->held, TASK_WAITS);
	EXPECT(help_call(t, &job, ours));
	EXPECT(ran == t);
	EXPECT_EQ(t->held, TASK_HELPED);
	EXPECT_EQ(runs, 1);
	EXPECT_EQ(tidyings, 1);
	first = stint;
	forget();
	EXPECT(!help_call(t, &job, ours));
	atomic_store(&t->held, TASK_WAITS);
	EXPECT(help_call(t, &job, ours));
	EXPECT(stint == first); /* its memory is used again */
	t->job = NULL;
	end();
}

FORKED_TEST(pool_help, who_has_no_seat_or_no_memory_begins_nothing)
{
	begin(JOB_MAP);
	give(0, 0, TASK_WAITS);
	is_ours = false;
	EXPECT(!help_job(&job));
	is_ours = true;
	made.born++;
	EXPECT(!help_job(&job));
	made.born--;
	until_short = 1;
	EXPECT(!help_job(&job));
	until_short = 0;
	EXPECT(seats[SEAT].helps == NULL);
	EXPECT_EQ(made_task[0].held, TASK_WAITS);
	EXPECT_EQ(runs + tidyings + loose_asked, 0);
	expect_run(&made_task[0]);
	expect_none(1);
	end();
}

/* --- maps ------------------------------------------------------------------------------------- */

FORKED_TEST(pool_help, of_a_map_the_first_task_that_waits_is_begun)
{
	begin(JOB_MAP);
	give(1, 4, TASK_WAITS);
	give(4, 0, TASK_RUNS);
	give(5, 2, TASK_WAITS);
	give(7, 6, TASK_WAITS);
	/* Not one of another job, nor what is none of the pool's. */
	made_task[2].first = 0;
	atomic_store(&made_task[2].held, TASK_WAITS);
	give(MADE_TASKS, 0, TASK_WAITS);
	expect_run(&made_task[5]);
	EXPECT_EQ(loose_asked, 1);
	expect_run(&made_task[1]);
	expect_run(&made_task[7]);
	expect_none(1);
	EXPECT_EQ(made_task[2].held, TASK_WAITS);
	EXPECT_EQ(made_task[4].held, TASK_RUNS);
	EXPECT_EQ(made_task[MADE_TASKS].held, TASK_WAITS);
	end();
}

FORKED_TEST(pool_help, of_a_map_what_no_task_has_is_begun_before)
{
	begin(JOB_MAP);
	give(1, 0, TASK_WAITS);
	has_loose = true;
	forget();
	EXPECT(help_job(&job));
	EXPECT(ran == loose && ran != NULL);
	EXPECT_EQ(made_task[1].held, TASK_WAITS);
	has_loose = false;
	expect_run(&made_task[1]);
	atomic_store(&made_task[1].held, TASK_WAITS);
	atomic_store(&job.ended, true);
	has_loose = true;
	expect_none(0);
	EXPECT_EQ(made_task[1].held, TASK_WAITS);
	end();
}

/* --- iterators -------------------------------------------------------------------------------- */

FORKED_TEST(pool_help, of_an_iterator_what_is_due_is_begun)
{
	begin(JOB_ITER);
	give(0, 0, TASK_WAITS);
	give(1, 2, TASK_WAITS);
	job.next = 4;
	has_loose = true;
	job.given = 2;
	expect_run(&made_task[1]);
	EXPECT_EQ(loose_asked, 0);
	atomic_store(&made_task[1].held, TASK_WAITS);
	job.given = 3;
	expect_run(&made_task[1]);
	/* It runs elsewhere, and the others are for later. */
	expect_none(0);
	EXPECT_EQ(made_task[0].held, TASK_WAITS);
	job.given = 1;
	expect_run(&made_task[0]);
	expect_none(0);
	job.given = 4;
	forget();
	EXPECT(help_job(&job));
	EXPECT(ran == loose && ran != NULL);
	job.given = 5;
	forget();
	EXPECT(help_job(&job));
	EXPECT(ran == loose && ran != NULL);
	job.given = 6;
	expect_none(0);
	end();
}

FORKED_TEST(pool_help, of_an_iterator_without_order_all_is_due)
{
	begin(JOB_ITER_ANY);
	give(0, 2, TASK_WAITS);
	job.next = 4;
	expect_run(&made_task[0]);
	expect_none(1);
	has_loose = true;
	forget();
	EXPECT(help_job(&job));
	EXPECT(ran == loose && ran != NULL);
	end();
}
