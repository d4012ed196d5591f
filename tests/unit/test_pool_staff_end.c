/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_staff_end.c - workers that are processes: what becomes of their tasks, and of the
 * pool, when they have ended. */
#include "tests/unit/made_procs.h"

TestSuite(pool_staff_end, .timeout = 60);

/* --- when one has ended ------------------------------------------------------------------------ */

/* Two workers, of which the first has ended. */
static void
begin_late(enum xr_status status, bool was_ready)
{
	begin();
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	fake[0].ended = true;
	fake[0].status = status;
	made.ledger.place[0].ready = was_ready ? 2 : 1;
}

FORKED_TEST(pool_staff_end, another_takes_the_place_of_who_has_ended)
{
	begin_late(XR_E_PEER_LOST, true);
	made.starves = true;
	EXPECT_EQ(xr_pool_maintain(&made, &error), XR_OK);
	EXPECT_EQ(forgotten, 1);
	EXPECT_EQ(forgot_fd, 500);
	EXPECT(fake[0].freed && !fake[1].freed);
	EXPECT_EQ(started, 3);
	EXPECT_EQ(fake[2].ordinal, 0);
	EXPECT(made_place[0].proc == proc_of(2));
	EXPECT_EQ(made_place[0].life, 2);
	EXPECT_EQ(made.alive, 2);
	EXPECT(!made.starves);
	EXPECT_EQ(feedings, 0);
	EXPECT_EQ(nudges, 1);
	EXPECT_EQ(given_up, 0);
	/* Its queues were swept: of users 1 and the last. */
	EXPECT_EQ(sweeps, 4);
	EXPECT(swept[0].hall == queue[0]->hall && swept[0].who == 1);
	EXPECT_EQ(swept[1].who, HALL_USERS - 1);
	EXPECT(swept[2].hall == queue[2]->hall && swept[2].who == 1);
	made.hungry = true;
	EXPECT_EQ(xr_pool_maintain(&made, &error), XR_OK);
	EXPECT_EQ(feedings, 1);
	EXPECT_EQ(nudges, 1);
	EXPECT_EQ(started, 3);
	made_place[1].coming = true;
	fake[1].ended = true;
	EXPECT_EQ(xr_pool_maintain(&made, &error), XR_OK);
	EXPECT_EQ(started, 3);
	end();
}

/* Of a task that is in hand, of another worker's, that is answered, by reference. */
static void
have(struct task **t, struct job *job)
{
	const struct ledger_who us = { 0, 1 }, other = { 1, 1 };

	for (uint32_t i = 0; i < 4; i++) {
		t[i] = made_take(job);
		EXPECT_EQ(t[i] - made_task, i);
		t[i]->gen = 10 + i;
		ledger_post(&made.ledger, i, t[i]->gen);
		EXPECT(ledger_take(&made.ledger, i, t[i]->gen,
			i == 1 ? other : us));
	}
	ledger_answer(&made.ledger, 2, 12, us, false);
	ledger_answer(&made.ledger, 3, 13, us, true);
}

static void
lose(bool idempotent, bool was_had)
{
	struct task *t[4];
	struct job *job;

	begin_late(XR_E_PEER_LOST, true);
	made.ledger.place[0].done = was_had ? 2 : 1;
	job = made_job(JOB_MAP, 4, 1);
	job->flags = idempotent ? XR_POOL_IDEMPOTENT : 0;
	job_list(job);
	have(t, job);
	EXPECT_EQ(xr_pool_maintain(&made, &error), XR_OK);
	EXPECT_EQ(ledger_phase(made.ledger.task[1].word), LEDGER_RUNNING);
	EXPECT_EQ(ledger_phase(made.ledger.task[2].word), LEDGER_ANSWERED);
	EXPECT_EQ(ledger_phase(made.ledger.task[3].word),
		was_had ? LEDGER_LENT : LEDGER_FREE);
	if (idempotent) {
		EXPECT(t[0]->is_again && t[3]->is_again == !was_had);
		EXPECT(TAILQ_FIRST(&made.again) == t[was_had ? 0 : 3]);
		EXPECT_EQ(t[0]->gen, 11);
		EXPECT_EQ(t[0]->tries, 1);
		EXPECT(made.hungry);
		EXPECT_EQ(job->left, 4);
	} else {
		EXPECT(t[0]->job == NULL && TAILQ_EMPTY(&made.again));
		EXPECT_EQ(t[3]->job == NULL, !was_had);
		EXPECT_EQ(job->left, was_had ? 3 : 2);
		EXPECT_EQ(failure_status(job->error, &error), XR_E_WORKER_LOST);
		EXPECT_STR(error.text, "it was killed");
	}
	EXPECT(t[1]->job == job && t[2]->job == job);
	for (uint32_t i = 1; i < 4; i++)
		ledger_end(&made.ledger, i, 10 + i);
	job_nobody(job);
	for (uint32_t i = 0; i < 4; i++)
		if (t[i]->job != NULL)
			job_part_dropped(&made, t[i]);
	xr_future_unref(job->mine);
	job_unref(job);
	end();
}

FORKED_TEST(pool_staff_end, what_a_worker_had_in_hand_is_lost_with_it)
{
	lose(false, false);
	lose(false, true);
}

FORKED_TEST(pool_staff_end, what_may_be_done_twice_is_put_again)
{
	lose(true, false);
	lose(true, true);
}

/* Two workers at most before the last; and nobody does it for a job that has ended. */
FORKED_TEST(pool_staff_end, a_task_costs_three_workers_at_most)
{
	const struct {
		uint32_t tries;
		bool ended;
		enum xr_pool_state state;
		bool again;
	} row[] = { { 0, false, XR_POOL_RUNNING, true },
		{ 1, false, XR_POOL_CLOSED, true },
		{ 2, false, XR_POOL_RUNNING, false },
		{ 0, true, XR_POOL_RUNNING, false },
		{ 0, false, XR_POOL_TERMINATED, false } };
	const struct ledger_who us = { 0, 1 };

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct job *job;
		struct task *t;

		begin_late(XR_E_PEER_LOST, true);
		becomes = row[i].state;
		job = made_job(JOB_MAP, 2, 1);
		job->flags = XR_POOL_IDEMPOTENT;
		job_list(job);
		t = made_take(job);
		t->tries = row[i].tries;
		t->gen = LEDGER_GEN_MASK;
		ledger_post(&made.ledger, 0, t->gen);
		EXPECT(ledger_take(&made.ledger, 0, t->gen, us));
		job->ended = row[i].ended;
		made.state = row[i].state;
		EXPECT_EQ(xr_pool_maintain(&made, &error), XR_OK);
		EXPECT_EQ(t->job != NULL, row[i].again);
		if (row[i].again)
			EXPECT_EQ(t->gen, 0);
		job->ended = false;
		job_nobody(job);
		xr_future_unref(job->mine);
		job_unref(job);
		end();
	}
}

/* --- how they ended --------------------------------------------------------------------------- */

static struct xr_value *
lost_with(enum xr_status status, bool was_ready, struct xr_value *report)
{
	const struct ledger_who us = { 0, 1 };
	struct xr_value *why;
	struct job *job;
	struct task *t;

	begin_late(status, was_ready);
	fake[0].report = report;
	made.conf.start_failures = 9;
	job = made_job(JOB_MAP, 2, 1);
	job_list(job);
	t = made_take(job);
	ledger_post(&made.ledger, 0, t->gen);
	EXPECT(ledger_take(&made.ledger, 0, t->gen, us));
	EXPECT_EQ(xr_pool_maintain(&made, &error), XR_OK);
	why = xr_value_ref(job->error);
	memset(&error, 0, sizeof(error));
	job_nobody(job);
	xr_future_unref(job->mine);
	job_unref(job);
	end();
	return why;
}

FORKED_TEST(pool_staff_end, a_lost_task_says_how_its_worker_ended)
{
	struct xr_value *report = failure_new(XR_E_STATE, "no init"),
			*none = xr_value_new_i64(1), *why;

	why = lost_with(XR_OK, true, NULL);
	EXPECT_EQ(failure_status(why, &error), XR_E_WORKER_LOST);
	EXPECT_STR(error.text, "made/0 (process 100) ended with exit code 0");
	xr_value_unref(why);
	why = lost_with(XR_E_PEER_LOST, true, report);
	EXPECT_EQ(failure_status(why, &error), XR_E_WORKER_LOST);
	EXPECT_STR(error.text, "it was killed");
	xr_value_unref(why);
	why = lost_with(XR_E_PEER_LOST, false, report);
	EXPECT(why == report);
	xr_value_unref(why);
	why = lost_with(XR_E_PEER_LOST, false, none);
	EXPECT_EQ(failure_status(why, &error), XR_E_WORKER_LOST);
	xr_value_unref(why);
	xr_value_unref(report);
	xr_value_unref(none);
}

/* The worker at place 0 ends again; is that the pool's end? */
static bool
ends_again(enum xr_status status, bool was_ready)
{
	uint32_t last = started - 1;

	last = fake[last].ordinal == 0 ? last : 0;
	fake[last].ended = true;
	fake[last].status = status;
	made.ledger.place[0].ready = made_place[0].life + was_ready;
	EXPECT_EQ(xr_pool_maintain(&made, &error), XR_OK);
	return taken(&given_up) > 0;
}

FORKED_TEST(pool_staff_end, workers_that_never_took_a_task_are_counted)
{
	begin();
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT(!ends_again(XR_E_PEER_LOST, false));
	EXPECT_EQ(made.starts_failed, 1);
	EXPECT(made.first_failed > 0);
	EXPECT(!ends_again(XR_OK, false));
	EXPECT_EQ(made.starts_failed, 1);
	EXPECT(!ends_again(XR_E_PEER_LOST, true));
	EXPECT_EQ(made.starts_failed, 0);
	EXPECT(!ends_again(XR_E_PEER_LOST, false));
	made.first_failed -= XR_SECONDS(3601);
	EXPECT(!ends_again(XR_E_PEER_LOST, false));
	EXPECT_EQ(made.starts_failed, 1);
	made.first_failed -= XR_SECONDS(3000);
	EXPECT(ends_again(XR_E_PEER_LOST, false));
	EXPECT_EQ(failure_status(reason, &error), XR_E_WORKER_LOST);
	EXPECT_EQ(made.alive, 1);
	EXPECT(made_place[0].proc == NULL);
	end();
}

FORKED_TEST(pool_staff_end, a_pool_may_end_with_the_first_error_of_a_worker)
{
	begin();
	made.conf.on_error = XR_POOL_TERMINATE;
	EXPECT_EQ(xr_pool_repopulate(&made, &error), XR_OK);
	EXPECT(!ends_again(XR_OK, true));
	EXPECT(ends_again(XR_E_PEER_LOST, true));
	end();
	begin_late(XR_E_PEER_LOST, true);
	made.conf.on_error = XR_POOL_TERMINATE;
	made.state = XR_POOL_TERMINATED;
	EXPECT_EQ(xr_pool_maintain(&made, &error), XR_OK);
	EXPECT_EQ(given_up, 0);
	EXPECT_EQ(made.alive, 1);
	end();
}

static enum xr_status
maintain(struct xr_pool *pool, void *ctx, struct xr_error *err)
{
	EXPECT(pool == &made && ctx == fake);
	return fail(err, XR_E_STATE, "unmaintained");
}

FORKED_TEST(pool_staff_end, a_pool_that_cannot_be_maintained_gives_up)
{
	begin();
	staff_look(&made);
	EXPECT_EQ(started, 2);
	EXPECT_EQ(given_up, 0);
	made.ops.maintain = maintain;
	made.ops.ctx = fake;
	staff_look(&made);
	EXPECT_EQ(given_up, 1);
	EXPECT_EQ(failure_status(reason, &error), XR_E_STATE);
	EXPECT_STR(error.text, "unmaintained");
	end();
}
