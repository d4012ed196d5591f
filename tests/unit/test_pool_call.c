/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_call.c - calls that are part of their task: how they begin and end. */
#include "tests/unit/made_pool.h"
#include "tests/unit/short_memory.h"

TestSuite(pool_call, .timeout = 60);

static struct xr_value *
args_of(struct xr_value *value)
{
	struct xr_value *list = xr_value_new_list();

	NEED(xr_value_append(list, value) == XR_OK);
	return list;
}

/* As submit.c does it; it waits for a worker. */
static uint32_t
begin(struct xr_future **future)
{
	struct xr_pool_task t = { .size = sizeof(t),
		.name = "made",
		.flags = XR_POOL_IDEMPOTENT,
		.args = args_of(kept()),
		.named = kept() };
	const struct job_ask ask = { &t, JOB_APPLY, ITEM_APPLY, true };
	uint32_t index = made.spare[--made.spare_count];

	*future = call_future();
	NEED(*future != NULL);
	atomic_fetch_add(&made_entry.users, 1);
	call_begin(&made, index, &ask, &made_entry, *future);
	EXPECT(made_call[index].job.args == t.args);
	EXPECT(made_call[index].job.named == t.named);
	xr_value_unref(t.args);
	xr_value_unref(t.named);
	ledger_post(&made.ledger, index, made_task[index].gen);
	return index;
}

/* Of which nobody knows any more. */
static void
expect_over(struct xr_future *f, uint32_t index)
{
	EXPECT(made_task[index].job == NULL);
	EXPECT_EQ(made_entry.users, MADE_REFS);
	EXPECT_EQ(made.refs, MADE_REFS + 1);
	xr_future_unref(f);
	EXPECT_EQ(made.refs, MADE_REFS);
}

static void
over(uint32_t index, struct xr_value *failure, bool led)
{
	const struct job_part part = { .task = &made_task[index],
		.done = failure == NULL,
		.error = failure,
		.ns = 70,
		.led = led };

	call_over(&made, &part);
}

FORKED_TEST(pool_call, a_call_begins_with_all_that_was_asked)
{
	struct xr_future *f, *again;
	struct job *job;
	uint32_t i;

	make_pool();
	i = begin(&f);
	job = &made_call[i].job;
	EXPECT(made_task[i].job == job && job->pool == &made && job->is_own);
	EXPECT_EQ(job->kind, JOB_APPLY);
	EXPECT_EQ(job->form, ITEM_APPLY);
	EXPECT_EQ(job->flags, XR_POOL_IDEMPOTENT);
	EXPECT(job->here && !job->ended && job->func == &made_entry);
	EXPECT(job->value == &job->one && job->one == NULL);
	EXPECT_EQ(job->count, 1);
	EXPECT_EQ(job->chunk, 1);
	EXPECT_EQ(job->left, 1);
	EXPECT_EQ(job->next, 1);
	EXPECT_EQ(job->number, 1);
	EXPECT(job->future == f);
	EXPECT_EQ(made.calls, 1);
	EXPECT_EQ(made.refs, MADE_REFS + 1);
	EXPECT_EQ(made_task[i].first, 0);
	EXPECT_EQ(made_task[i].count, 1);
	EXPECT_EQ(made_task[i].gen, 1);
	over(i, NULL, true);
	EXPECT(job->args == NULL && job->named == NULL);
	EXPECT_EQ(gone, 2);
	job->one = (struct xr_value *)&made;
	EXPECT_EQ(begin(&again), i);
	EXPECT(job->one == NULL);
	EXPECT_EQ(made_task[i].count, 1);
	EXPECT_EQ(made_task[i].first, 0);
	EXPECT_EQ(job->number, 2);
	EXPECT_EQ(job->next, 1);
	EXPECT(!job->ended && job->future == again);
	xr_future_unref(f);
	over(i, NULL, true);
	expect_over(again, i);
	unmake_pool();
}

FORKED_TEST(pool_call, a_call_that_is_over_gives_its_value_or_nil_or_its_error)
{
	struct xr_value *value = NULL;
	struct xr_future *f;
	uint32_t i;
	int64_t n = 0;

	make_pool();
	i = begin(&f);
	made_call[i].job.one = xr_value_new_i64(7);
	over(i, NULL, true);
	EXPECT_EQ(xr_future_wait(f, 0, &value, NULL), XR_OK);
	EXPECT_EQ(xr_value_get_i64(value, &n), XR_OK);
	EXPECT_EQ(n, 7);
	EXPECT_EQ(gone, 2);
	EXPECT_EQ(nudges + closings, 0);
	EXPECT_EQ(made_row.done, 1);
	EXPECT_EQ(made_row.busy, 70);
	xr_value_unref(value);
	expect_over(f, i);
	i = begin(&f);
	made.state = XR_POOL_CLOSED;
	over(i, NULL, false);
	EXPECT_EQ(nudges, 1);
	EXPECT_EQ(closings, 1);
	EXPECT_EQ(xr_future_wait(f, 0, &value, NULL), XR_OK);
	EXPECT_EQ(xr_value_kind(value), XR_NIL);
	xr_value_unref(value);
	expect_over(f, i);
	i = begin(&f);
	gone = 0;
	made_call[i].job.one = kept();
	over(i, failure_new(XR_E_STATE, "broken"), false);
	EXPECT_EQ(gone, 3);
	EXPECT_EQ(xr_future_wait(f, 0, NULL, &error), XR_E_STATE);
	EXPECT_STR(error.text, "broken");
	EXPECT_EQ(made_row.failed, 1);
	expect_over(f, i);
	unmake_pool();
}

/* @running: a worker has it, and makes it spare. */
static void
cancel_one(bool running)
{
	const struct ledger_who who = { 0, 1 };
	struct xr_future *f;
	uint32_t i;

	make_pool();
	gone = 0;
	made.hungry = true;
	i = begin(&f);
	if (running)
		NEED(ledger_take(&made.ledger, i, 1, who));
	EXPECT_EQ(xr_future_cancel(f), XR_OK);
	EXPECT_EQ(made.ledger.task[i].cancelled, 2);
	EXPECT(made_call[i].job.ended);
	EXPECT_EQ(nudges, 1);
	EXPECT_EQ(tidyings, 1);
	EXPECT_EQ(feedings, 1);
	EXPECT_EQ(closings, 1);
	EXPECT_EQ(gone, running ? 0 : 2);
	EXPECT_EQ(made.calls, running);
	EXPECT_EQ(xr_future_wait(f, 0, NULL, &error), XR_E_CANCELLED);
	EXPECT_STR(error.text, "canceled");
	EXPECT(xr_future_cancel(f) != XR_OK);
	EXPECT_EQ(nudges, 1);
	if (running)
		job_part_dropped(&made, &made_task[i]);
	EXPECT_EQ(gone, 2);
	EXPECT_EQ(closings, 1 + running);
	expect_over(f, i);
	unmake_pool();
}

FORKED_TEST(pool_call, a_call_is_cancelled_before_a_worker_has_it_and_after)
{
	cancel_one(false);
	cancel_one(true);
}

static struct xr_future *mine;

static void
end_mine(void)
{
	call_settle(mine, kept(), false);
	mine = NULL;
}

/* Its task may have another one meanwhile; or there is no memory. */
static void
cannot_cancel(bool claimed, bool is_another, bool is_short)
{
	struct xr_future *f;
	struct job *job;
	uint32_t i;

	make_pool();
	i = begin(&f);
	job = &made_call[i].job;
	while_waiting = end_mine;
	mine = f;
	if (claimed)
		EXPECT(call_claim(job) == f && call_claim(job) == NULL);
	if (is_another)
		job->future = NULL;
	until_short = is_short;
	EXPECT_EQ(xr_future_cancel(f), XR_E_STATE);
	until_short = 0;
	EXPECT(mine == NULL);
	EXPECT_EQ(job->ended, claimed);
	EXPECT_EQ(made.ledger.task[i].cancelled, 0);
	EXPECT_EQ(nudges + tidyings + feedings + closings, 0);
	EXPECT_EQ(xr_future_wait(f, 0, NULL, NULL), XR_OK);
	job->future = NULL;
	over(i, NULL, true);
	expect_over(f, i);
	unmake_pool();
}

FORKED_TEST(pool_call, a_call_that_somebody_ends_is_not_cancelled)
{
	cannot_cancel(true, false, false);
	cannot_cancel(false, true, false);
	cannot_cancel(false, false, true);
}

FORKED_TEST(pool_call, all_calls_are_aborted_and_no_maps)
{
	struct xr_value *why = failure_new(XR_E_STATE, "over");
	const struct ledger_who who = { 0, 1 };
	struct xr_future *f[3];
	struct task *t;
	struct job *map;
	uint32_t i[3];

	make_pool();
	map = made_job(JOB_MAP, 1, 1);
	t = made_take(map);
	for (int k = 0; k < 3; k++)
		i[k] = begin(&f[k]);
	NEED(ledger_take(&made.ledger, i[1], 1, who));
	EXPECT(call_claim(&made_call[i[2]].job) == f[2]);
	made_call[MADE_TASKS].job.is_own = true;
	made_task[MADE_TASKS].job = &made_call[MADE_TASKS].job;
	call_abort_all(&made, why);
	EXPECT(!made_call[MADE_TASKS].job.ended);
	xr_value_unref(why);
	EXPECT_EQ(nudges, 1);
	EXPECT_EQ(tidyings, 1);
	EXPECT_EQ(closings, 1);
	EXPECT_EQ(feedings, 0);
	EXPECT(made_task[i[0]].job == NULL && made_task[i[1]].job != NULL);
	EXPECT(made_task[i[2]].job != NULL && t->job == map);
	EXPECT_EQ(gone, 2);
	for (int k = 0; k < 2; k++) {
		EXPECT_EQ(xr_future_wait(f[k], 0, NULL, &error), XR_E_STATE);
		EXPECT_STR(error.text, "over");
		xr_future_unref(f[k]);
	}
	EXPECT_EQ(xr_future_wait(f[2], 0, NULL, NULL), XR_E_TIMEOUT);
	call_settle(f[2], NULL, true);
	EXPECT_EQ(xr_future_wait(f[2], 0, NULL, NULL), XR_E_NOMEM);
	xr_future_unref(f[2]);
	for (int k = 1; k < 3; k++)
		job_part_dropped(&made, &made_task[i[k]]);
	EXPECT_EQ(gone, 6);
	feed_give_back(&made, (uint32_t)(t - made_task));
	job_give_up(map);
	unmake_pool();
}

FORKED_TEST(pool_call, what_came_for_nobody_is_released)
{
	struct xr_future *f = call_future();

	make_pool();
	call_settle(NULL, kept(), false);
	EXPECT_EQ(gone, 1);
	xr_future_unref(f);
	unmake_pool();
}
