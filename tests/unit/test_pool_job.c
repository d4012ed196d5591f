/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_job.c - jobs of a pool: their tasks, what is counted of them, and how they end. */
#include "tests/unit/made_pool.h"
#include "tests/unit/short_memory.h"

TestSuite(pool_job, .timeout = 60);

#define COUNT(a)    (sizeof(a) / sizeof((a)[0]))
#define ALLOCATIONS 100 /* there are less */

/* --- how many items a task has ----------------------------------------------------------- */

static struct xr_value *
list_of(struct xr_value *value)
{
	struct xr_value *list = xr_value_new_list();

	NEED(xr_value_append(list, value) == XR_OK);
	return list;
}

FORKED_TEST(pool_job, a_task_has_a_fourth_of_a_workers_share)
{
	const struct {
		enum job_kind kind;
		size_t count;
		uint32_t workers;
		double ns;
		size_t want;
	} row[] = {
		{ JOB_MAP, 100, 2, 0, 13 },
		{ JOB_MAP, 96, 2, 0, 12 },
		{ JOB_MAP, 97, 2, 0, 13 },
		{ JOB_MAP, 1, 2, 0, 1 },
		{ JOB_MAP, 0, 2, 0, 1 },
		{ JOB_MAP, 100, 3, 0, 9 },
		{ JOB_ITER, 100, 2, 0, 1 },
		{ JOB_ITER_ANY, 100, 2, 0, 1 },
		{ JOB_ITER, 100, 2, 10, 1 },
		{ JOB_ITER_ANY, 100, 2, 10, 1 },
		/* Of less than 20 us more. */
		{ JOB_MAP, 100, 2, 1000, 21 },
		{ JOB_MAP, 100, 2, 1, 50 },
		{ JOB_MAP, 101, 2, 1, 51 },
		{ JOB_MAP, 100, 2, 0.001, 50 },
		{ JOB_MAP, 100, 2, 1538, 14 },
		{ JOB_MAP, 100, 2, 2000, 13 },
		{ JOB_MAP, 80, 2, 2000, 10 },
		{ JOB_MAP, 80, 2, 1999, 11 },
	};
	struct xr_value *list = list_of(xr_value_new_nil());
	struct xr_pool_task t = { .size = sizeof(t) };

	make_pool();
	for (size_t i = 0; i < COUNT(row); i++) {
		struct entry e = { .ns = row[i].ns };
		const struct job job = { .pool = &made,
			.func = &e,
			.args = list,
			.kind = row[i].kind,
			.count = row[i].count };
		size_t chunk;

		made.conf.workers = row[i].workers;
		chunk = job_chunk(&job, &t);
		if (chunk != row[i].want)
			forked_note(__LINE__, "row %zu: %zu", i, chunk);
		t.flags = XR_POOL_CHUNK;
		t.chunk = 7;
		EXPECT_EQ(job_chunk(&job, &t), 7);
		t.flags = 0;
	}
	xr_value_unref(list);
	unmake_pool();
}

/* A message of about 256 KiB: of each item its bytes, and 16 for itself and each it has. */
FORKED_TEST(pool_job, a_task_has_less_of_what_is_large)
{
	static char data[1 << 19];
	struct xr_value *of[] = { list_of(xr_value_new_nil()),
		list_of(xr_value_new_i64(1)), list_of(made_list(3)),
		list_of(xr_value_new_bytes(data, (1 << 16) - 16)),
		list_of(xr_value_new_bytes(data, (1 << 18) - 16)),
		list_of(xr_value_new_bytes(data, (1 << 18) - 15)),
		list_of(xr_value_new_bytes(data, 1 << 19)) };
	const size_t want[] = { 500000, 1 << 14, 1 << 12, 4, 1, 1, 1 };
	const struct xr_pool_task t = { .size = sizeof(t) };
	struct entry e = { .ns = 0 };
	struct job job = { .pool = &made, .func = &e, .kind = JOB_MAP };

	make_pool();
	for (size_t i = 0; i < COUNT(of); i++) {
		job.args = of[i];
		job.count = 4000000;
		EXPECT_EQ(job_chunk(&job, &t), want[i]);
		job.count = 16;
		EXPECT_EQ(job_chunk(&job, &t), want[i] < 2 ? want[i] : 2);
		xr_value_unref(of[i]);
	}
	unmake_pool();
}

/* --- making them ------------------------------------------------------------------------- */

static enum xr_status
hear(struct xr_value *value, void *ctx)
{
	(void)value;
	(void)ctx;
	return XR_OK;
}

static enum xr_status
hear_error(struct xr_value *value, void *ctx)
{
	(void)value;
	(void)ctx;
	return XR_OK;
}

static void
expect_new(const struct job *job, const struct job_ask *ask)
{
	bool is_iter = ask->kind >= JOB_ITER;
	bool is_call = ask->kind == JOB_APPLY;

	EXPECT(job->pool == &made && job->func == NULL);
	EXPECT_EQ(job->kind, ask->kind);
	EXPECT_EQ(job->form, ask->form);
	EXPECT_EQ(job->flags, XR_POOL_IDEMPOTENT);
	EXPECT_EQ(job->here, ask->here);
	EXPECT(!job->is_own && !job->ended && !job->is_listed);
	EXPECT(job->args == ask->task->args && job->named == ask->task->named);
	EXPECT_EQ(job->count, is_call ? 1 : 3);
	EXPECT_EQ(job->left, job->count);
	EXPECT_EQ(job->next, 0);
	EXPECT_EQ(job->tasks, 0);
	EXPECT(job->callback == hear && job->error_callback == hear_error);
	EXPECT(job->ctx == &made_row);
	EXPECT_EQ(job->refs, is_iter ? 1 : 2);
	EXPECT(job->mine == job->future);
	EXPECT_EQ(job->future != NULL, !is_iter);
	EXPECT_EQ(job->value == &job->one, is_call);
	EXPECT_EQ(job->item != NULL, is_iter);
	EXPECT_EQ(job->shown != NULL, is_iter);
	EXPECT_EQ(job->order != NULL, ask->kind == JOB_ITER_ANY);
	EXPECT_EQ(made.refs, MADE_REFS + 1);
}

/* The job, the values, and an iterator's two or three tables, or a future. */
FORKED_TEST(pool_job, a_job_is_made_or_there_is_no_memory)
{
	static const unsigned want[] = { 2, 3, 4, 5 };
	struct xr_pool_task t = { .size = sizeof(t),
		.name = "made",
		.flags = XR_POOL_IDEMPOTENT,
		.callback = hear,
		.error_callback = hear_error,
		.ctx = &made_row };

	make_pool();
	t.args = made_list(3);
	for (enum job_kind kind = JOB_APPLY; kind <= JOB_ITER_ANY; kind++) {
		const struct job_ask ask = { &t, kind,
			kind == JOB_APPLY ? ITEM_APPLY : ITEM_MAP,
			kind == JOB_APPLY };
		unsigned n = 0, failed = 0;
		enum xr_status status;
		struct job *job = NULL;

		t.named = kind == JOB_APPLY ? xr_value_new_dict() : NULL;
		do {
			was_short = false;
			until_short = ++n;
			status = job_new(&made, &ask, &job, &error);
			until_short = 0;
			failed += was_short;
			EXPECT_EQ(status, was_short ? XR_E_NOMEM : XR_OK);
			EXPECT_EQ(job != NULL, !was_short);
			EXPECT_EQ(made.refs, MADE_REFS + !was_short);
		} while (was_short && n < ALLOCATIONS);
		EXPECT_STR(error.text, "out of memory");
		EXPECT_EQ(failed, want[kind]);
		expect_new(job, &ask);
		job_give_up(job);
		xr_value_unref(t.named);
	}
	xr_value_unref(t.args);
	unmake_pool();
}

/* --- in lists ---------------------------------------------------------------------------- */

static void
expect_failed(struct xr_future *f, enum xr_status status, const char *text)
{
	memset(&error, 0, sizeof(error));
	EXPECT_EQ(xr_future_wait(f, 0, NULL, &error), status);
	EXPECT_STR(error.text, text);
	xr_future_unref(f);
}

/* Of four items without a task, two of them each. */
FORKED_TEST(pool_job, what_no_task_has_is_counted_while_it_waits)
{
	struct xr_value *why = failure_new(XR_E_STATE, "no more");
	struct job *job;

	make_pool();
	job = made_job(JOB_MAP, 10, 3);
	job->next = 5;
	job_list(job);
	EXPECT_EQ(job->number, 1);
	EXPECT_EQ(job->refs, 3);
	EXPECT(job->is_listed && job->is_waiting && made.hungry);
	EXPECT_EQ(made.unfed, 2);
	EXPECT_EQ(made_row.open, 2);
	EXPECT(TAILQ_FIRST(&made.jobs) == job);
	EXPECT(TAILQ_FIRST(&made.waiting) == job);
	EXPECT(TAILQ_EMPTY(&made.kept));
	EXPECT(job_abort(job, why));
	EXPECT(!job->is_listed && !job->is_waiting && job->ended);
	EXPECT_EQ(job->refs, 2);
	EXPECT_EQ(nudges, 1);
	EXPECT_EQ(closings, 1);
	EXPECT_EQ(tidyings, 1);
	EXPECT_EQ(feedings, 1);
	EXPECT(!job_abort(job, why));
	EXPECT_EQ(nudges + closings + tidyings + feedings, 4);
	expect_failed(job->mine, XR_E_STATE, "no more");
	job_unref(job);
	xr_value_unref(why);
	unmake_pool();
}

FORKED_TEST(pool_job,
	a_call_that_waits_is_kept_and_one_with_its_task_does_not_wait)
{
	struct xr_value *why = failure_new(XR_E_STATE, "no more");
	struct job *kept, *other;

	make_pool();
	kept = made_job(JOB_APPLY, 0, 1);
	other = made_job(JOB_APPLY, 0, 1);
	other->next = 1;
	job_list(other);
	EXPECT(!other->is_waiting && !made.hungry);
	EXPECT_EQ(made.unfed, 0);
	EXPECT_EQ(made_row.open, 0);
	job_list(kept);
	EXPECT(kept->is_waiting && made.hungry);
	EXPECT_EQ(kept->number, 2);
	EXPECT(TAILQ_FIRST(&made.kept) == kept);
	EXPECT(TAILQ_EMPTY(&made.waiting));
	EXPECT(TAILQ_FIRST(&made.jobs) == other);
	EXPECT_EQ(made.unfed, 1);
	made.hungry = false;
	EXPECT(job_abort(kept, why));
	EXPECT(job_abort(other, why));
	EXPECT_EQ(feedings, 0);
	expect_failed(kept->mine, XR_E_STATE, "no more");
	expect_failed(other->mine, XR_E_STATE, "no more");
	job_unref(kept);
	job_unref(other);
	xr_value_unref(why);
	unmake_pool();
}

/* --- parts ------------------------------------------------------------------------------- */

static void
set(struct job *job, size_t i, struct xr_value *value)
{
	job->value[i] = value;
	if (job->item != NULL)
		job->item[i] = JOB_VALUE;
}

FORKED_TEST(pool_job, a_map_ends_with_its_last_task)
{
	struct xr_value *list = NULL;
	struct task *t[3];
	struct job *job;
	int64_t n = -1;

	make_pool();
	made.in_count = 2;
	job = made_job(JOB_MAP, 5, 2);
	job_list(job);
	EXPECT_EQ(made.unfed, 3);
	for (int i = 0; i < 3; i++)
		t[i] = made_take(job);
	EXPECT_EQ(made.open, 3);
	EXPECT_EQ(made.map_tasks, 3);
	EXPECT_EQ(made.spare_count, MADE_TASKS - 3);
	EXPECT_EQ(made_place[0].tasks, 2);
	EXPECT_EQ(made_place[1].tasks, 1);
	EXPECT_EQ(made.unfed, 0);
	EXPECT_EQ(made_row.open, 3);
	EXPECT_EQ(job->tasks, 3);
	EXPECT_EQ(job->refs, 6);
	for (size_t i = 0; i < 5; i++)
		set(job, i, xr_value_new_i64((int64_t)i * 10));
	made_over(t[1], 2, NULL, 1000);
	EXPECT(made_entry.ns == 500);
	EXPECT_EQ(job->left, 3);
	EXPECT_EQ(job->tasks, 2);
	EXPECT_EQ(job->refs, 5);
	EXPECT_EQ(made.open, 2);
	EXPECT_EQ(made.map_tasks, 2);
	EXPECT_EQ(made_place[0].tasks, 2);
	EXPECT_EQ(made_place[1].tasks, 0);
	EXPECT_EQ(made.spare_count, MADE_TASKS - 2);
	EXPECT_EQ(made.spare[MADE_TASKS - 3], t[1] - made_task);
	EXPECT(t[1]->job == NULL && !job->ended);
	EXPECT_EQ(made_row.done, 1);
	EXPECT_EQ(made_row.busy, 1000);
	made_over(t[0], 2, NULL, 0);
	EXPECT(made_entry.ns == 500);
	EXPECT_EQ(nudges + closings, 0);
	EXPECT_EQ(xr_future_wait(job->mine, 0, NULL, NULL), XR_E_TIMEOUT);
	made_over(t[2], 1, NULL, 2500);
	EXPECT(made_entry.ns == 1000);
	EXPECT_EQ(made_row.done, 3);
	EXPECT_EQ(made_row.failed, 0);
	EXPECT_EQ(nudges, 1);
	EXPECT_EQ(closings, 1);
	EXPECT(job->ended && !job->is_listed);
	EXPECT_EQ(job->refs, 2);
	EXPECT_EQ(xr_future_wait(job->mine, 0, &list, &error), XR_OK);
	EXPECT_EQ(xr_value_count(list), 5);
	EXPECT_EQ(xr_value_get_i64(xr_value_at(list, 4), &n), XR_OK);
	EXPECT_EQ(n, 40);
	xr_value_unref(list);
	xr_future_unref(job->mine);
	job_unref(job);
	unmake_pool();
}

/* With none that failed, before and behind it. */
FORKED_TEST(pool_job, a_map_has_the_first_error_of_its_tasks)
{
	struct task *t[4];
	struct job *job;

	make_pool();
	made.in_count = 1;
	job = made_job(JOB_MAP, 4, 1);
	job_list(job);
	for (int i = 0; i < 4; i++)
		t[i] = made_take(job);
	EXPECT_EQ(made_place[0].tasks, 0);
	made_over(t[0], 1, NULL, 8);
	EXPECT(job->error == NULL);
	made_over(t[1], 0, failure_new(XR_E_STATE, "the first"), 80);
	EXPECT(made_entry.ns == 26);
	made_over(t[2], 0, failure_new(XR_E_INVAL, "the second"), 0);
	made_over(t[3], 1, NULL, 0);
	EXPECT_EQ(made_row.done, 4);
	EXPECT_EQ(made_row.failed, 2);
	expect_failed(job->mine, XR_E_STATE, "the first");
	job_unref(job);
	unmake_pool();
}

FORKED_TEST(pool_job, who_waits_for_room_goes_on_when_there_is_enough)
{
	struct room one = { .need = MADE_TASKS },
		    other = { .need = MADE_TASKS };
	struct task *t[2];
	struct job *job;

	make_pool();
	job = made_job(JOB_MAP, 4, 1);
	job_list(job);
	for (int i = 0; i < 2; i++)
		t[i] = made_take(job);
	TAILQ_INSERT_TAIL(&made.rooms, &one, list);
	TAILQ_INSERT_TAIL(&made.rooms, &other, list);
	made_over(t[0], 1, NULL, 0);
	EXPECT(!waiter_is_done(&one.waiter));
	EXPECT_EQ(nudges, 0);
	made_over(t[1], 1, NULL, 0);
	EXPECT(waiter_is_done(&one.waiter) && !waiter_is_done(&other.waiter));
	EXPECT(TAILQ_FIRST(&made.rooms) == &other);
	EXPECT_EQ(nudges, 1);
	job_nobody(job);
	expect_failed(job->mine, XR_E_CANCELLED, "canceled");
	job_unref(job);
	unmake_pool();
}

/* --- iterators --------------------------------------------------------------------------- */

/* Of each task what comes behind those that went well has its error. */
FORKED_TEST(pool_job, an_iterator_shows_what_came)
{
	struct room first = { .need = 0 }, second = { .need = 0 },
		    last = { .need = 0 };
	struct task *t[3];
	struct job *job;

	make_pool();
	job = made_job(JOB_ITER_ANY, 5, 2);
	job_list(job);
	for (int i = 0; i < 3; i++)
		t[i] = made_take(job);
	set(job, 2, xr_value_new_nil());
	made_over(t[1], 1, failure_new(XR_E_STATE, "no"), 0);
	EXPECT_EQ(nudges, 0);
	EXPECT_EQ(job->came, 2);
	EXPECT_EQ(job->item[2], JOB_VALUE);
	EXPECT_EQ(job->item[3], JOB_ERROR);
	EXPECT_EQ(xr_value_kind(job->value[3]), XR_ERROR);
	EXPECT(!job->shown[1] && job->shown[2] && job->shown[3] &&
		!job->shown[4]);
	EXPECT_EQ(job->order[0], 2);
	EXPECT_EQ(job->order[1], 3);
	EXPECT(job->error == NULL && !job->ended);
	TAILQ_INSERT_TAIL(&job->takers, &first, list);
	TAILQ_INSERT_TAIL(&job->takers, &second, list);
	set(job, 4, xr_value_new_nil());
	made_over(t[2], 1, NULL, 0);
	EXPECT(waiter_is_done(&first.waiter) && waiter_is_done(&second.waiter));
	EXPECT(TAILQ_EMPTY(&job->takers));
	EXPECT_EQ(taken(&nudges), 1);
	EXPECT_EQ(job->order[2], 4);
	EXPECT_EQ(job->came, 3);
	set(job, 0, xr_value_new_nil());
	set(job, 1, xr_value_new_nil());
	made_over(t[0], 2, NULL, 0);
	EXPECT_EQ(nudges, 1);
	EXPECT_EQ(job->came, 5);
	EXPECT_EQ(job->order[3], 0);
	EXPECT_EQ(job->order[4], 1);
	EXPECT(job->ended);
	EXPECT_EQ(made_row.failed, 1);
	job_unref(job);
	/* Who waits when it is aborted. */
	job = made_job(JOB_ITER, 2, 1);
	job_list(job);
	TAILQ_INSERT_TAIL(&job->takers, &last, list);
	taken(&nudges);
	job_nobody(job);
	EXPECT(waiter_is_done(&last.waiter) && TAILQ_EMPTY(&job->takers));
	EXPECT_EQ(nudges, 1);
	EXPECT_EQ(xr_value_kind(job->error), XR_ERROR);
	EXPECT_EQ(job->came, 0);
	job_unref(job);
	unmake_pool();
}

/* --- tasks of what has ended ------------------------------------------------------------- */

static uint32_t
cancelled(const struct task *t)
{
	return atomic_load(&made.ledger.task[t - made_task].cancelled);
}

/* One that waits for a worker, one that has one, one that is put, one to be put again. */
FORKED_TEST(pool_job,
	tasks_of_a_job_that_was_aborted_are_spare_unless_somebody_has_them)
{
	const struct ledger_who who = { 1, 1 };
	struct task *t[4];
	struct job *job;

	make_pool();
	job = made_job(JOB_MAP, 6, 1);
	job_list(job);
	for (int i = 0; i < 4; i++) {
		t[i] = made_take(job);
		t[i]->gen = 5 + (uint32_t)i;
		ledger_post(&made.ledger, (uint32_t)(t[i] - made_task),
			t[i]->gen);
	}
	NEED(ledger_take(&made.ledger, (uint32_t)(t[1] - made_task), 6, who));
	t[2]->feeding = 7 << 2 | FEEDING;
	t[3]->is_again = true;
	TAILQ_INSERT_TAIL(&made.again, t[3], list);
	job_nobody(job);
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(cancelled(t[i]), 6 + i);
	EXPECT(t[0]->job == NULL && t[3]->job == NULL);
	EXPECT(t[1]->job == job && t[2]->job == job);
	EXPECT_EQ(t[2]->feeding, 7 << 2 | FORSAKEN);
	EXPECT(!t[3]->is_again && TAILQ_EMPTY(&made.again));
	EXPECT_EQ(made.open, 2);
	EXPECT_EQ(made_row.open, 2);
	EXPECT_EQ(made.map_tasks, 2);
	EXPECT_EQ(made.spare_count, MADE_TASKS - 2);
	EXPECT_EQ(job->tasks, 2);
	EXPECT_EQ(job->refs, 4);
	taken(&closings);
	job_part_dropped(&made, t[2]);
	EXPECT_EQ(closings, 1);
	EXPECT_EQ(job->refs, 3);
	EXPECT_EQ(made.open, 1);
	/* It is over too late. */
	made_over(t[1], 0, failure_new(XR_E_STATE, "late"), 0);
	EXPECT_EQ(closings, 1);
	EXPECT_EQ(job->left, 6);
	EXPECT_EQ(job->refs, 2);
	expect_failed(job->mine, XR_E_CANCELLED, "canceled");
	job_unref(job);
	unmake_pool();
}

/* What who waits has begun is the gang's until that comes to it; what the gang never had is
 * nobody's. */
FORKED_TEST(pool_job, a_task_is_made_spare_by_who_has_it_last)
{
	struct task *t[3], loose;
	struct job *job;

	make_pool();
	job = made_job(JOB_MAP, 5, 1);
	job_list(job);
	for (int i = 0; i < 3; i++)
		t[i] = made_take(job);
	t[0]->held = TASK_HELPED;
	t[1]->held = TASK_HELPED_OUT;
	t[2]->held = TASK_RUNS;
	made_over(t[0], 1, NULL, 0);
	EXPECT_EQ(t[0]->held, TASK_STALE);
	EXPECT(t[0]->job == job);
	EXPECT_EQ(made.stale, 1);
	EXPECT_EQ(made.open, 2);
	EXPECT_EQ(made.spare_count, MADE_TASKS - 3);
	made_over(t[1], 1, NULL, 0);
	EXPECT(t[1]->job == NULL);
	EXPECT_EQ(made.spare_count, MADE_TASKS - 2);
	EXPECT_EQ(job->refs, 5);
	NEED(feed_loose(job, &loose));
	EXPECT_EQ(loose.first, 3);
	EXPECT_EQ(loose.count, 1);
	EXPECT_EQ(job->refs, 6);
	EXPECT_EQ(made.unfed, 1);
	EXPECT_EQ(job->tasks, 2);
	atomic_fetch_add(&made.open, 1);
	made_over(&loose, 1, NULL, 0);
	EXPECT_EQ(job->tasks, 2);
	EXPECT_EQ(made.spare_count, MADE_TASKS - 2);
	EXPECT_EQ(job->refs, 5);
	EXPECT_EQ(job->left, 2);
	made_over(t[2], 1, NULL, 0);
	EXPECT(!job->ended);
	NEED(feed_loose(job, &loose));
	EXPECT(!job->is_waiting && !feed_loose(job, &loose));
	atomic_fetch_add(&made.open, 1);
	made_over(&loose, 1, NULL, 0);
	EXPECT(job->ended);
	EXPECT_EQ(xr_future_wait(job->mine, 0, NULL, NULL), XR_OK);
	xr_future_unref(job->mine);
	made.stale = 0;
	job_reclaim(&made, t[0]);
	job_unref(job);
	EXPECT_EQ(job->refs, 1);
	job_unref(job);
	unmake_pool();
}

/* It was never put. */
FORKED_TEST(pool_job, a_task_is_given_back)
{
	struct task *t;
	struct job *job;

	make_pool();
	job = made_job(JOB_APPLY, 0, 1);
	t = made_take(job);
	EXPECT_EQ(job->refs, 3);
	EXPECT_EQ(made.map_tasks, 0);
	EXPECT_EQ(made.open, 1);
	EXPECT_EQ(made_row.open, 1);
	feed_give_back(&made, (uint32_t)(t - made_task));
	EXPECT_EQ(job->refs, 2);
	EXPECT(t->job == NULL);
	EXPECT_EQ(made_row.open, 0);
	job_give_up(job);
	unmake_pool();
}

FORKED_TEST(pool_job, a_map_of_nothing_has_its_result)
{
	struct xr_value *list = NULL;
	struct job *job;

	make_pool();
	job = made_job(JOB_MAP, 0, 1);
	job_empty(job);
	EXPECT(job->ended && job->future == NULL);
	EXPECT_EQ(nudges, 1);
	EXPECT_EQ(xr_future_wait(job->mine, 0, &list, NULL), XR_OK);
	EXPECT_EQ(xr_value_kind(list), XR_LIST);
	EXPECT_EQ(xr_value_count(list), 0);
	xr_value_unref(list);
	xr_future_unref(job->mine);
	job_unref(job);
	unmake_pool();
}

/* --- what it has ------------------------------------------------------------------------- */

FORKED_TEST(pool_job, what_a_job_has_is_gone_with_its_last_reference)
{
	struct xr_value *list = list_of(kept());
	struct xr_pool_task t = { .size = sizeof(t),
		.name = "made",
		.args = list };
	const struct job_ask ask = { &t, JOB_ITER, ITEM_MAP, false };
	struct job *job = NULL;

	make_pool();
	job = made_job(JOB_ITER, 1, 1);
	job_unref(job);
	EXPECT_EQ(made_entry.users, MADE_REFS - 1);
	NEED(job_new(&made, &ask, &job, NULL) == XR_OK);
	job->value[0] = kept();
	job->error = kept();
	job->result = kept();
	job->named = kept();
	xr_value_unref(list);
	EXPECT(job_ref(job) == job);
	job_unref(job);
	EXPECT_EQ(gone, 0);
	job_unref(job);
	EXPECT_EQ(gone, 5);
	job_unref(NULL);
	unmake_pool();
}

FORKED_TEST(pool_job, nobody_counts_who_refers_to_a_tasks_own_job)
{
	struct job *job = &made_call[3].job;

	make_pool();
	job->is_own = true;
	EXPECT(job_ref(job) == job);
	EXPECT_EQ(job->refs, 0);
	job->refs = 1;
	job_unref(job);
	EXPECT_EQ(job->refs, 1);
	unmake_pool();
}

/* Only where all workers have the module may a name be theirs alone. */
FORKED_TEST(pool_job, a_function_that_is_not_registered_here_is_a_modules)
{
	const struct xr_pool_task t = { .size = sizeof(t), .name = "theirs" };
	static char module[] = "m.so";
	struct entry *e = NULL;

	make_pool();
	NEED(book_init(&made.book, NULL) == XR_OK);
	EXPECT_EQ(job_find(&made, &t, &e, &error), XR_E_NO_FUNCTION);
	EXPECT_STR(error.text, "theirs is not registered, or takes bytes");
	EXPECT(e == NULL);
	made.conf.module = module;
	EXPECT_EQ(job_find(&made, &t, &e, &error), XR_OK);
	NEED(e != NULL);
	EXPECT_STR(e->name, "theirs");
	EXPECT_EQ(e->users, 1);
	book_release(e);
	book_fini(&made.book);
	unmake_pool();
}
