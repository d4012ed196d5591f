/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_pool_thread_task.c - tasks of a pool of threads, between who posts them and who runs them.
 * The gang is the test's.
 */
#include "tests/unit/made_pool.h"
#include "tests/unit/short_memory.h"
#include "worker/gang/gang.h"
#include "worker/pool/keeper.h"
#include "worker/pool/seat.h"

TestSuite(pool_thread_task, .timeout = 60);

/* --- the gang ------------------------------------------------------------------------------------ */

static struct gang *const gang = (struct gang *)&made_row;
static struct gang_opts opts;
static int new_says; /* errno; 0: it is made */
static bool runs, posts, joins;
static unsigned ran, posted, swept, stopped, closed, freed, forgotten, given_up;
static struct gang_task *last;
static uint32_t sweep_most;
static bool (*sweep_is)(const struct gang_task *task);
static int64_t join_until;
static struct xr_value *reason;

int __wrap_gang_new(const struct gang_opts *o, struct gang **made_gang);
bool __wrap_gang_run(struct gang *g, struct gang_task *task);
bool __wrap_gang_post(struct gang *g, struct gang_task *task);
void __wrap_gang_sweep(struct gang *g, uint32_t most,
	bool (*is_stale)(const struct gang_task *task));
void __wrap_gang_stop(struct gang *g);
void __wrap_gang_close(struct gang *g);
bool __wrap_gang_join(struct gang *g, int64_t until);
void __wrap_gang_free(struct gang *g);
void __wrap_gang_forget(struct gang *g);
void __wrap_pool_give_up(struct xr_pool *pool, struct xr_value *error);
void __real_thread_tidy(struct xr_pool *pool);

int
__wrap_gang_new(const struct gang_opts *o, struct gang **made_gang)
{
	opts = *o;
	if (new_says == 0)
		*made_gang = gang;
	return new_says;
}

bool
__wrap_gang_run(struct gang *g, struct gang_task *task)
{
	EXPECT(g == gang);
	ran++;
	last = task;
	return runs;
}

bool
__wrap_gang_post(struct gang *g, struct gang_task *task)
{
	EXPECT(g == gang);
	posted++;
	last = task;
	return posts;
}

void
__wrap_gang_sweep(struct gang *g, uint32_t most,
	bool (*is_stale)(const struct gang_task *task))
{
	EXPECT(g == gang);
	swept++;
	sweep_most = most;
	sweep_is = is_stale;
}

void
__wrap_gang_stop(struct gang *g)
{
	stopped += g == gang;
}

void
__wrap_gang_close(struct gang *g)
{
	closed += g == gang;
}

bool
__wrap_gang_join(struct gang *g, int64_t until)
{
	EXPECT(g == gang);
	join_until = until;
	return joins;
}

void
__wrap_gang_free(struct gang *g)
{
	freed += g == gang;
}

void
__wrap_gang_forget(struct gang *g)
{
	forgotten += g == gang;
}

void
__wrap_pool_give_up(struct xr_pool *pool, struct xr_value *why)
{
	EXPECT(pool == &made);
	given_up++;
	xr_value_unref(reason);
	reason = why;
}

/* --- pools ------------------------------------------------------------------------------------- */

static unsigned calls;

static enum xr_status
count_call(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t n = 0;

	(void)ctx;
	calls++;
	xr_value_get_i64(xr_value_at(args, 0), &n);
	if (n > 9)
		return xr_reply_fail(call, XR_E_STATE, "more than 9");
	return xr_reply(call, xr_value_new_nil());
}

static char name[] = "made";

static void
begin(void)
{
	static const struct xr_func f = { .size = sizeof(f),
		.name = "count",
		.fn = count_call };

	make_pool();
	xr_fn_register(&f, NULL);
	NEED(hand_find("count", &made_entry.func, NULL) == XR_OK);
	made.conf.name = name;
	made.gang = gang;
	made.born = keeper_forks();
	NEED(seats_new(&made, &error) == XR_OK);
	ran = posted = swept = calls = 0;
	posts = true;
	runs = false;
}

static void
end(void)
{
	for (uint32_t i = 0; i < MADE_WORKERS; i++)
		EXPECT(made.seats[i].done == NULL && made.seats[i].now == NULL);
	seats_free(&made);
	made.gang = NULL;
	unmake_pool();
}

/* A call without callbacks, as submit.c begins it. */
static uint32_t
call(struct xr_future **future, bool here)
{
	const struct xr_pool_task t = { .size = sizeof(t), .name = "made" };
	const struct job_ask ask = { &t, JOB_APPLY, ITEM_APPLY, here };
	uint32_t index = made.spare[--made.spare_count];

	*future = call_future();
	NEED(*future != NULL);
	atomic_fetch_add(&made_entry.users, 1);
	call_begin(&made, index, &ask, &made_entry, *future);
	return index;
}

static enum xr_status
outcome(struct xr_future *f)
{
	enum xr_status status = xr_future_wait(f, 0, NULL, &error);

	xr_future_unref(f);
	return status;
}

/* --- to the gang --------------------------------------------------------------------------------- */

FORKED_TEST(pool_thread_task, who_waits_for_a_call_runs_it_if_he_may)
{
	const struct {
		bool here, has_initializer, runs;
		unsigned ran, posted;
	} row[] = { { true, false, true, 1, 0 }, { true, false, false, 1, 1 },
		{ true, true, true, 0, 1 }, { false, false, true, 0, 1 } };
	struct xr_future *f;
	uint32_t i;

	for (size_t k = 0; k < sizeof(row) / sizeof(row[0]); k++) {
		begin();
		i = call(&f, row[k].here);
		runs = row[k].runs;
		made.conf.initializer = row[k].has_initializer ? name : NULL;
		EXPECT_EQ(thread_put(&made, i, &error), XR_OK);
		EXPECT_EQ(ran, row[k].ran);
		EXPECT_EQ(posted, row[k].posted);
		EXPECT(last == &made_task[i].gang);
		last->run(last, 1);
		EXPECT_EQ(calls, 1);
		EXPECT(made.seats[1].done == &made_task[i]);
		thread_reap(&made);
		EXPECT_EQ(outcome(f), XR_OK);
		end();
	}
}

FORKED_TEST(pool_thread_task, a_gang_that_is_closed_takes_nothing)
{
	struct xr_future *f;
	uint32_t i;

	begin();
	posts = false;
	i = call(&f, false);
	EXPECT_EQ(thread_put(&made, i, &error), XR_E_CLOSED);
	EXPECT_STR(error.text, "the pool was closed");
	EXPECT_EQ(made_task[i].held, TASK_RUNS);
	EXPECT(made_task[i].job == &made_call[i].job);
	call_settle(call_claim(&made_call[i].job), NULL, false);
	job_part_dropped(&made, &made_task[i]);
	EXPECT_EQ(outcome(f), XR_OK);
	/* It is not told so of what will not run anyhow. */
	i = call(&f, false);
	call_settle(call_claim(&made_call[i].job), NULL, false);
	job_close(&made);
	made.stale = 1;
	made_task[i].held = TASK_STALE;
	EXPECT_EQ(thread_put(&made, i, &error), XR_OK);
	EXPECT(made_task[i].job == NULL);
	EXPECT_EQ(made.stale, 0);
	EXPECT_EQ(outcome(f), XR_OK);
	end();
}

/* --- from the gang ------------------------------------------------------------------------------- */

/* By who has begun it, whose it is then; or nobody has it any more. */
FORKED_TEST(pool_thread_task, what_another_one_has_begun_is_not_run)
{
	struct task *t[4];
	struct job *job;

	begin();
	job = made_job(JOB_MAP, 5, 1);
	job_list(job);
	for (uint32_t i = 0; i < 4; i++) {
		t[i] = made_take(job);
		EXPECT_EQ(thread_put(&made, i, &error), XR_OK);
	}
	made.stale = 2;
	made.hungry = true;
	taken(&closings);
	taken(&feedings);
	t[0]->held = TASK_HELPED;
	t[1]->held = TASK_STALE;
	t[2]->held = TASK_STALE;
	t[0]->gang.run(&t[0]->gang, 0);
	EXPECT_EQ(t[0]->held, TASK_HELPED_OUT);
	EXPECT(t[0]->job == job);
	EXPECT_EQ(made.stale, 2);
	EXPECT_EQ(job->refs, 7);
	t[1]->gang.run(&t[1]->gang, 0);
	EXPECT(t[1]->job == NULL);
	EXPECT_EQ(made.stale, 1);
	EXPECT_EQ(job->refs, 6);
	EXPECT_EQ(made.spare_count, MADE_TASKS - 3);
	EXPECT_EQ(closings, 0);
	EXPECT_EQ(feedings, 1);
	made.state = XR_POOL_CLOSED;
	t[2]->gang.drop(&t[2]->gang);
	EXPECT(t[2]->job == NULL);
	EXPECT_EQ(made.stale, 0);
	EXPECT_EQ(closings, 1);
	/* What the gang drops, or has ended, is not run. */
	t[3]->gang.drop(&t[3]->gang);
	EXPECT(t[3]->job == NULL);
	EXPECT_EQ(feedings, 3);
	t[0]->held = TASK_WAITS;
	job->ended = true;
	t[0]->gang.run(&t[0]->gang, 0);
	EXPECT(t[0]->job == NULL);
	EXPECT_EQ(feedings, 4);
	EXPECT_EQ(calls, 0);
	EXPECT_EQ(job->refs, 3);
	job->ended = false;
	job_close(&made); /* of those that were stale */
	job_close(&made);
	job_nobody(job);
	xr_future_unref(job->mine);
	job_unref(job);
	end();
}

FORKED_TEST(pool_thread_task, a_part_of_a_map_is_over_when_it_has_run)
{
	struct task *t;
	struct job *job;

	begin();
	made.hungry = true;
	job = made_job(JOB_MAP, 1, 1);
	job_list(job);
	t = made_take(job);
	EXPECT_EQ(thread_put(&made, 0, &error), XR_OK);
	taken(&feedings);
	t->gang.run(&t->gang, 1);
	EXPECT_EQ(calls, 1);
	EXPECT(t->job == NULL && made.seats[1].done == NULL);
	EXPECT_EQ(feedings, 1);
	EXPECT_EQ(outcome(job->mine), XR_OK);
	job_unref(job);
	end();
}

/* Of each seat, the last first. */
FORKED_TEST(pool_thread_task,
	calls_that_are_over_are_spare_when_somebody_wants_them)
{
	struct xr_future *f[3];
	uint32_t i[3];

	begin();
	for (int k = 0; k < 3; k++) {
		i[k] = call(&f[k], false);
		EXPECT_EQ(thread_put(&made, i[k], &error), XR_OK);
		last->run(last, k == 2);
	}
	EXPECT(made.seats[0].done == &made_task[i[1]]);
	EXPECT(made_task[i[1]].next_done == &made_task[i[0]]);
	EXPECT(made_task[i[0]].next_done == NULL);
	EXPECT(made.seats[1].done == &made_task[i[2]]);
	EXPECT_EQ(made.spare_count, MADE_TASKS - 3);
	thread_reap(&made);
	EXPECT_EQ(made.spare_count, MADE_TASKS);
	EXPECT_EQ(made.calls, 0);
	EXPECT_EQ(made_row.done, 3);
	for (int k = 0; k < 3; k++)
		EXPECT_EQ(outcome(f[k]), XR_OK);
	end();
}

FORKED_TEST(pool_thread_task, who_has_run_a_call_sees_to_those_who_wait)
{
	struct xr_future *f;

	for (int k = 0; k < 3; k++) {
		struct room r = { .need = MADE_TASKS };

		begin();
		made.stirs = true;
		if (k == 1)
			TAILQ_INSERT_TAIL(&made.rooms, &r, list);
		EXPECT_EQ(thread_put(&made, call(&f, false), NULL), XR_OK);
		made.state = k == 2 ? XR_POOL_CLOSED : XR_POOL_RUNNING;
		taken(&closings);
		last->run(last, 0);
		EXPECT_EQ(made.stirs, k > 0);
		EXPECT_EQ(made.spare_count, MADE_TASKS);
		EXPECT_EQ(waiter_is_done(&r.waiter), k == 1);
		EXPECT_EQ(closings, k == 2);
		EXPECT_EQ(outcome(f), XR_OK);
		end();
	}
}

FORKED_TEST(pool_thread_task, what_is_stale_is_swept_if_somebody_waits)
{
	begin();
	made.stirs = true;
	made.stale = 1;
	__real_thread_tidy(&made);
	EXPECT_EQ(swept, 1);
	NEED(sweep_is != NULL);
	EXPECT_EQ(sweep_most, MADE_TASKS);
	made_task[0].held = TASK_STALE;
	EXPECT(sweep_is(&made_task[0].gang));
	made_task[0].held = TASK_HELPED;
	EXPECT(!sweep_is(&made_task[0].gang));
	made.stirs = false;
	__real_thread_tidy(&made);
	made.stirs = true;
	made.stale = 0;
	__real_thread_tidy(&made);
	made.stale = 1;
	made.gang = NULL;
	__real_thread_tidy(&made);
	EXPECT_EQ(swept, 1);
	made.stale = 0;
	end();
}

/* --- threads ------------------------------------------------------------------------------------- */

FORKED_TEST(pool_thread_task, threads_are_started_or_it_is_told_why_not)
{
	begin();
	made.gang = NULL;
	new_says = ENOMEM;
	EXPECT_EQ(thread_start(&made, &error), XR_E_NOMEM);
	EXPECT_STR(error.text, "threads: Cannot allocate memory");
	new_says = EAGAIN;
	EXPECT_EQ(thread_start(&made, &error), XR_E_SYS);
	EXPECT_STR(error.text, "threads: Resource temporarily unavailable");
	EXPECT(made.gang == NULL && made.alive == 0);
	new_says = 0;
	EXPECT_EQ(thread_start(&made, &error), XR_OK);
	EXPECT(made.gang == gang);
	EXPECT_EQ(made.alive, MADE_WORKERS);
	EXPECT_EQ(opts.seats, MADE_WORKERS);
	EXPECT_STR(opts.name, "made");
	EXPECT(opts.ctx == &made);
	EXPECT_EQ(stopped, 0);
	made.state = XR_POOL_TERMINATED;
	EXPECT_EQ(thread_start(&made, &error), XR_OK);
	EXPECT_EQ(stopped, 1);
	thread_stop(&made);
	EXPECT_EQ(stopped, 2);
	EXPECT_EQ(closed, 0);
	thread_close(&made);
	EXPECT_EQ(closed, 1);
	EXPECT(!thread_join(&made, 77));
	EXPECT_EQ(join_until, 77);
	EXPECT_EQ(made.alive, MADE_WORKERS);
	joins = true;
	EXPECT(thread_join(&made, INT64_MAX));
	EXPECT_EQ(made.alive, 0);
	end();
}

FORKED_TEST(pool_thread_task, a_thread_that_cannot_begin_ends_the_pool)
{
	static char init[] = "count";
	struct xr_value *ten = xr_value_new_i64(10);

	begin();
	EXPECT_EQ(thread_start(&made, &error), XR_OK);
	opts.begin(opts.ctx, 1);
	EXPECT_EQ(calls, 0);
	made.conf.initializer = init;
	opts.begin(opts.ctx, 1);
	EXPECT_EQ(calls, 1);
	EXPECT_EQ(given_up, 0);
	made.conf.initargs = xr_value_new_list_of(&ten, 1);
	opts.begin(opts.ctx, 0);
	EXPECT_EQ(given_up, 1);
	EXPECT_EQ(failure_status(reason, &error), XR_E_STATE);
	EXPECT_STR(error.text, "more than 9");
	opts.lost(opts.ctx, EAGAIN);
	EXPECT_EQ(given_up, 2);
	EXPECT_EQ(failure_status(reason, &error), XR_E_SYS);
	EXPECT_STR(error.text,
		"a function has ended its thread (pthread_exit), and there is no other: Resource temporarily unavailable");
	xr_value_unref(made.conf.initargs);
	xr_value_unref(reason);
	end();
}

FORKED_TEST(pool_thread_task, in_a_child_threads_are_forgotten)
{
	begin();
	thread_free(&made);
	EXPECT(freed == 1 && forgotten == 0);
	EXPECT(made.gang == NULL && made.seats == NULL);
	NEED(seats_new(&made, &error) == XR_OK);
	made.gang = gang;
	made.born++;
	thread_free(&made);
	EXPECT(freed == 1 && forgotten == 1);
	NEED(seats_new(&made, &error) == XR_OK);
	end();
}
