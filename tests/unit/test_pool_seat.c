/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_seat.c - where threads of a pool run tasks: what functions receive, what becomes of
 * what they give, and when they are cancelled. */
#include "tests/unit/made_pool.h"
#include "tests/unit/short_memory.h"
#include "worker/pool/seat.h"

TestSuite(pool_seat, .timeout = 60);

#define NOT_RUN \
	"it was not run: the one before it has ended its thread (pthread_exit)"

/* --- the clock, and where we sit ------------------------------------------------------------- */

static int64_t now;
static uint32_t our_seat;

int64_t __wrap_clock_now(void);
uint32_t __wrap_gang_seat(const struct gang *gang);

int64_t
__wrap_clock_now(void)
{
	return now;
}

uint32_t
__wrap_gang_seat(const struct gang *gang)
{
	EXPECT(gang == made.gang);
	return our_seat;
}

/* --- functions ------------------------------------------------------------------------------- */

static int64_t got[8]; /* arguments; -1: no number */
static size_t got_count;
static unsigned calls;
static bool was_cancelled;

/* The last number ten times; a negative one is an error; of 0 NIL. */
static enum xr_status
tenfold(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t last = 0;

	(void)ctx;
	calls++;
	got_count = xr_value_count(args);
	for (size_t i = 0; i < got_count && i < 8; i++) {
		got[i] = -1;
		if (xr_value_get_i64(xr_value_at(args, i), &got[i]) == XR_OK)
			last = got[i];
	}
	was_cancelled = xr_call_cancelled(call);
	now += 100;
	if (last < 0)
		return xr_reply_fail(call, XR_E_STATE, "negative");
	return last > 0 ? xr_reply(call, xr_value_new_i64(10 * last)) :
			  xr_reply(call, xr_value_new_nil());
}

static void
begin(void)
{
	static const struct xr_func f = { .size = sizeof(f),
		.name = "tenfold",
		.fn = tenfold };
	static char name[] = "made";

	make_pool();
	xr_fn_register(&f, NULL);
	NEED(hand_find("tenfold", &made_entry.func, NULL) == XR_OK);
	made.conf.name = name;
	made.gang = (struct gang *)&made_row; /* which nobody looks into */
	our_seat = 1;
	now = 5000;
	calls = 0;
	NEED(seats_new(&made, &error) == XR_OK);
}

static void
end(void)
{
	seats_free(&made);
	EXPECT(made.seats == NULL);
	seats_free(&made);
	made.gang = NULL;
	unmake_pool();
}

static struct xr_value *
items(int64_t a, int64_t b, int64_t c)
{
	struct xr_value *v[] = { xr_value_new_i64(a), xr_value_new_i64(b),
		xr_value_new_i64(c) };

	return xr_value_new_list_of(v, 3);
}

static int64_t
number(const struct xr_value *v)
{
	int64_t n = -1;

	xr_value_get_i64(v, &n);
	return n;
}

static void
expect_args(size_t count, int64_t a, int64_t b, int64_t c)
{
	const int64_t want[] = { a, b, c };

	EXPECT_EQ(got_count, count);
	for (size_t i = 0; i < count && i < 3; i++)
		EXPECT_EQ(got[i], want[i]);
}

static void
drop(struct job *job, struct task *t)
{
	feed_give_back(&made, (uint32_t)(t - made_task));
	if (job->kind < JOB_ITER)
		job_give_up(job);
	else
		job_unref(job);
}

/* --- seats ----------------------------------------------------------------------------------- */

FORKED_TEST(pool_seat, each_seat_has_a_name_and_what_stands_for_nothing)
{
	unsigned n = 0, failed = 0;
	enum xr_status status;

	begin();
	EXPECT_STR(made.seats[0].name, "made/0");
	EXPECT_STR(made.seats[1].name, "made/1");
	for (uint32_t i = 0; i < MADE_WORKERS; i++) {
		const struct seat *s = &made.seats[i];

		EXPECT(s->now == NULL && s->done == NULL && s->helps == NULL);
		EXPECT_EQ(xr_value_kind(s->nil), XR_NIL);
		EXPECT_EQ(xr_value_kind(s->none), XR_LIST);
		EXPECT(s->own.pool == &made && s->own.seat == s);
		EXPECT_EQ(s->own.place, i);
		EXPECT(s->own.hand.name == s->name &&
			s->own.hand.ctx == &s->own);
	}
	seats_free(&made);
	do {
		was_short = false;
		until_short = ++n;
		status = seats_new(&made, &error);
		until_short = 0;
		failed += was_short;
		EXPECT_EQ(status, was_short ? XR_E_NOMEM : XR_OK);
		if (was_short)
			EXPECT_STR(error.text, "out of memory");
		if (was_short)
			seats_free(&made);
	} while (was_short && n < 20);
	EXPECT(failed >= 3 && failed < 20);
	end();
}

FORKED_TEST(pool_seat, a_thread_without_a_seat_is_none_of_ours)
{
	begin();
	EXPECT(seat_is_ours(&made));
	our_seat = GANG_NOBODY;
	EXPECT(!seat_is_ours(&made));
	our_seat = 0;
	EXPECT(seat_is_ours(&made));
	made.gang = NULL;
	EXPECT(!seat_is_ours(&made));
	end();
}

/* --- what is seen of a task -------------------------------------------------------------------- */

static int64_t
since(uint32_t place)
{
	return atomic_load(&made.ledger.place[place].since);
}

FORKED_TEST(pool_seat, a_task_is_seen_while_it_runs_and_can_be_cancelled)
{
	struct stint *s;
	struct job *job;
	struct task *t;

	begin();
	job = made_job(JOB_MAP, 2, 1);
	made_take(job);
	t = made_take(job);
	t->gen = 7;
	ledger_since(&made.ledger, 1, 44);
	s = stint_begin(&made, t, 1);
	EXPECT(s == &made.seats[1].own && made.seats[1].now == s);
	EXPECT_EQ(s->index, 1);
	EXPECT_EQ(s->gen, 7);
	EXPECT(s->part.task == t && s->part.done == 0 && !s->part.inside);
	EXPECT_EQ(s->began, 5000);
	EXPECT_EQ(since(1), 5000);
	EXPECT_EQ(since(0), 0);
	EXPECT(!s->hand.is_cancelled(&s->hand));
	made.ledger.task[1].cancelled = 7;
	EXPECT(!s->hand.is_cancelled(&s->hand));
	made.ledger.task[1].cancelled = 8;
	EXPECT(s->hand.is_cancelled(&s->hand));
	made.ledger.task[1].cancelled = 9;
	EXPECT(!s->hand.is_cancelled(&s->hand));
	made.ledger.head->ended = 1;
	EXPECT(s->hand.is_cancelled(&s->hand));
	made.ledger.head->ended = 0;
	now = 5321;
	stint_end(s);
	EXPECT(made.seats[1].now == NULL);
	EXPECT_EQ(since(1), 44);
	EXPECT_EQ(s->part.ns, 321);
	t->gen = 1u << 29 | 5;
	s = stint_begin(&made, t, 1);
	EXPECT_EQ(s->gen, 5);
	stint_end(s);
	feed_give_back(&made, 0);
	drop(job, t);
	end();
}

FORKED_TEST(pool_seat, what_runs_inside_of_a_task_is_cancelled_with_its_own_job)
{
	struct stint *outer, inner;
	struct task *t, loose;
	struct job *job;

	begin();
	job = made_job(JOB_MAP, 3, 1);
	job_list(job);
	t = made_take(job);
	t->gen = 3;
	outer = stint_begin(&made, t, 1);
	now = 6000;
	stint_begin_inside(&inner, &made, t);
	EXPECT(inner.outer == outer && made.seats[1].now == &inner);
	EXPECT(inner.part.inside && inner.part.task == t);
	EXPECT_EQ(inner.index, 0);
	EXPECT_EQ(inner.gen, 3);
	EXPECT_EQ(inner.place, 1);
	EXPECT_EQ(inner.began, 6000);
	EXPECT(inner.loose == NULL);
	made.ledger.task[0].cancelled = 4;
	EXPECT(inner.hand.is_cancelled(&inner.hand));
	made.ledger.task[0].cancelled = 0;
	now = 6500;
	stint_end(&inner);
	EXPECT_EQ(inner.part.ns, 500);
	EXPECT(made.seats[1].now == outer);
	EXPECT_EQ(since(1), 5000);
	NEED(feed_loose(job, &loose));
	stint_begin_inside(&inner, &made, &loose);
	EXPECT(inner.loose == job);
	EXPECT(!inner.hand.is_cancelled(&inner.hand));
	made.ledger.head->ended = 1;
	EXPECT(inner.hand.is_cancelled(&inner.hand));
	made.ledger.head->ended = 0;
	job->ended = true;
	EXPECT(inner.hand.is_cancelled(&inner.hand));
	job->ended = false;
	stint_end(&inner);
	EXPECT(inner.loose == NULL);
	EXPECT(inner.hand.is_cancelled(&inner.hand));
	stint_end(outer);
	EXPECT_EQ(since(1), 0);
	job_close(&made); /* of what had no task */
	job_unref(job);
	feed_give_back(&made, 0);
	job_nobody(job);
	xr_future_unref(job->mine);
	job_unref(job);
	end();
}

/* --- what a task gives ------------------------------------------------------------------------- */

FORKED_TEST(pool_seat, a_map_ends_with_its_first_error)
{
	struct stint *s;
	struct job *job;
	struct task *t;

	begin();
	job = made_job_of(JOB_MAP, items(1, 2, 3), 2);
	job->next = 1;
	t = made_take(job);
	s = stint_begin(&made, t, 0);
	stint_run(s);
	EXPECT_EQ(calls, 2);
	expect_args(1, 3, 0, 0);
	EXPECT_EQ(s->part.done, 2);
	EXPECT(s->part.error == NULL && job->value[0] == NULL);
	EXPECT_EQ(number(job->value[1]), 20);
	EXPECT_EQ(number(job->value[2]), 30);
	stint_end(s);
	drop(job, t);
	job = made_job_of(JOB_MAP, items(1, -2, 3), 3);
	t = made_take(job);
	s = stint_begin(&made, t, 0);
	stint_run(s);
	EXPECT_EQ(calls, 4);
	EXPECT_EQ(s->part.done, 1);
	EXPECT_EQ(failure_status(s->part.error, &error), XR_E_STATE);
	EXPECT_STR(error.text, "negative");
	EXPECT(job->value[1] == NULL);
	xr_value_unref(s->part.error);
	stint_end(s);
	drop(job, t);
	end();
}

FORKED_TEST(pool_seat, each_item_of_an_iterator_fails_for_itself)
{
	struct stint *s;
	struct job *job;
	struct task *t;

	begin();
	job = made_job_of(JOB_ITER, items(1, -2, 3), 3);
	t = made_take(job);
	s = stint_begin(&made, t, 0);
	stint_run(s);
	EXPECT_EQ(calls, 3);
	EXPECT_EQ(s->part.done, 3);
	EXPECT(s->part.error == NULL);
	EXPECT(job->item[0] == JOB_VALUE && job->item[1] == JOB_ERROR &&
		job->item[2] == JOB_VALUE);
	EXPECT_EQ(xr_value_kind(job->value[1]), XR_ERROR);
	stint_end(s);
	drop(job, t);
	end();
}

FORKED_TEST(pool_seat, a_call_has_all_its_arguments_or_none)
{
	struct xr_value *result = NULL;
	struct stint *s;
	struct job *job;
	struct task *t;

	begin();
	job = made_job_of(JOB_APPLY, items(1, 2, 3), 1);
	job->form = ITEM_APPLY;
	t = made_take(job);
	s = stint_begin(&made, t, 0);
	stint_run(s);
	expect_args(3, 1, 2, 3);
	EXPECT_EQ(number(job->one), 30);
	EXPECT_EQ(s->part.done, 1);
	xr_value_unref(job->args);
	job->args = NULL;
	EXPECT(stint_call(s, &result));
	EXPECT(result == NULL || xr_value_kind(result) == XR_NIL);
	expect_args(0, 0, 0, 0);
	xr_value_unref(result);
	stint_end(s);
	drop(job, t);
	end();
}

/* As the thread is gone, the mate leaves that. */
FORKED_TEST(pool_seat, what_a_mate_runs_is_left_in_its_task)
{
	struct job *job;
	struct task *t;

	begin();
	job = made_job_of(JOB_MAP, items(1, -2, 3), 3);
	t = made_take(job);
	seat_run(&made, 0, 1);
	EXPECT_EQ(t->done, 1);
	EXPECT_EQ(failure_status(t->error, NULL), XR_E_STATE);
	EXPECT_EQ(t->ns, 200);
	EXPECT(made.seats[1].now == NULL);
	xr_value_unref(t->error);
	stint_begin(&made, t, 1);
	seat_left(&made, 1);
	EXPECT(made.seats[1].now == NULL);
	drop(job, t);
	end();
}

FORKED_TEST(pool_seat, what_comes_behind_one_that_ended_its_thread_is_not_run)
{
	struct stint *s;
	struct job *job;
	struct task *t;

	begin();
	for (uint32_t count = 2; count <= 3; count++) {
		job = made_job_of(JOB_ITER, items(1, 2, 3), count);
		t = made_take(job);
		s = stint_begin(&made, t, 0);
		stint_run(s);
		s->part.done = 1;
		s->hand.call.answered = false; /* as it did not return */
		xr_value_unref(job->value[1]);
		stint_left(s);
		EXPECT_EQ(s->part.done, 2);
		EXPECT_EQ(job->item[1], JOB_ERROR);
		EXPECT_EQ(s->part.error != NULL, count == 3);
		if (s->part.error != NULL) {
			EXPECT_EQ(failure_status(s->part.error, &error),
				XR_E_STATE);
			EXPECT_STR(error.text, NOT_RUN);
		}
		xr_value_unref(s->part.error);
		stint_end(s);
		drop(job, t);
	}
	/* Of a map that is the error of all. */
	job = made_job_of(JOB_MAP, items(1, 2, 3), 3);
	t = made_take(job);
	s = stint_begin(&made, t, 0);
	stint_run(s);
	s->part.done = 1;
	s->hand.call.answered = false;
	stint_left(s);
	EXPECT_EQ(s->part.done, 1);
	EXPECT_EQ(failure_status(s->part.error, &error), XR_E_STATE);
	EXPECT(strcmp(error.text, NOT_RUN) != 0);
	xr_value_unref(s->part.error);
	stint_end(s);
	drop(job, t);
	end();
}

/* --- what stands before its arguments ------------------------------------------------------------ */

/* It is held by nobody when all is over. */
FORKED_TEST(pool_seat, a_function_receives_the_context_and_what_it_is_bound_to)
{
	struct xr_value *contexts[] = { xr_value_new_i64(70), kept() };
	struct stint *s;
	struct job *job;
	struct task *t;

	begin();
	made.conf.contexts = xr_value_new_list_of(contexts, 2);
	made_entry.bound = xr_value_new_i64(80);
	job = made_job_of(JOB_MAP, items(1, 2, 3), 1);
	t = made_take(job);
	for (uint32_t i = 0; i < 5; i++) {
		made.conf.flags = i == 0 ? 0 : XR_POOL_CONTEXT;
		if (i == 3) {
			xr_value_unref(made.conf.contexts);
			made.conf.contexts = NULL;
			EXPECT_EQ(gone, 1);
		}
		if (i == 4) {
			xr_value_unref(made_entry.bound);
			made_entry.bound = NULL;
		}
		s = stint_begin(&made, t, i == 2);
		stint_run(s);
		if (i == 0)
			expect_args(2, 80, 1, 0);
		else if (i == 4)
			expect_args(2, -1, 1, 0);
		else
			expect_args(3, i == 1 ? 70 : -1, 80, 1);
		EXPECT_EQ(number(job->value[0]), 10);
		xr_value_unref(job->value[0]);
		job->value[0] = NULL;
		stint_end(s);
	}
	drop(job, t);
	end();
}

FORKED_TEST(pool_seat, an_initializer_receives_the_context_and_its_arguments)
{
	static char init[] = "tenfold", unknown[] = "unknown";
	struct xr_value *contexts[] = { xr_value_new_i64(70),
		xr_value_new_i64(71) };

	begin();
	EXPECT_EQ(seat_initialise(&made, 0, &error), XR_OK);
	EXPECT_EQ(calls, 0);
	made.conf.initializer = init;
	EXPECT_EQ(seat_initialise(&made, 0, &error), XR_OK);
	expect_args(0, 0, 0, 0);
	made.conf.initargs = items(1, 2, 3);
	made.conf.flags = XR_POOL_CONTEXT;
	made.conf.contexts = xr_value_new_list_of(contexts, 2);
	EXPECT_EQ(seat_initialise(&made, 1, &error), XR_OK);
	expect_args(4, 71, 1, 2);
	xr_value_unref(made.conf.initargs);
	made.conf.initargs = items(1, 2, -3);
	EXPECT_EQ(seat_initialise(&made, 1, &error), XR_E_STATE);
	EXPECT_STR(error.text, "negative");
	made.conf.initializer = unknown;
	EXPECT_EQ(seat_initialise(&made, 1, &error), XR_E_NO_FUNCTION);
	EXPECT_EQ(calls, 3);
	xr_value_unref(made.conf.initargs);
	xr_value_unref(made.conf.contexts);
	end();
}

/* --- in the middle of a task ------------------------------------------------------------------------ */

static enum xr_status
call(enum job_kind kind, struct xr_value *args, struct xr_value **value)
{
	const struct xr_pool_task t = { .size = sizeof(t),
		.name = "tenfold",
		.args = args };
	const struct job_ask ask = { &t, kind,
		kind == JOB_APPLY ? ITEM_APPLY : ITEM_MAP, false };
	enum xr_status status;

	memset(&error, 0, sizeof(error));
	status = seat_call(&made, &ask, &made_entry, value, &error);
	xr_value_unref(args);
	return status;
}

FORKED_TEST(pool_seat, who_calls_in_a_task_has_the_result_at_once)
{
	struct xr_value *value = NULL;
	struct stint *s;
	struct job *job;
	struct task *t;

	begin();
	EXPECT_EQ(call(JOB_APPLY, items(1, 2, 3), &value), XR_OK);
	EXPECT_EQ(number(value), 30);
	expect_args(3, 1, 2, 3);
	EXPECT(!was_cancelled);
	xr_value_unref(value);
	EXPECT_EQ(call(JOB_APPLY, NULL, &value), XR_OK);
	EXPECT_EQ(xr_value_kind(value), XR_NIL);
	xr_value_unref(value);
	EXPECT_EQ(call(JOB_APPLY, items(1, 2, 3), NULL), XR_OK);
	value = NULL;
	EXPECT_EQ(call(JOB_APPLY, items(1, 2, -3), &value), XR_E_STATE);
	EXPECT_STR(error.text, "negative");
	EXPECT(value == NULL);
	calls = 0;
	EXPECT_EQ(call(JOB_MAP, items(1, 0, 3), &value), XR_OK);
	EXPECT_EQ(calls, 3);
	EXPECT_EQ(xr_value_count(value), 3);
	EXPECT_EQ(number(xr_value_at(value, 0)), 10);
	EXPECT_EQ(xr_value_kind(xr_value_at(value, 1)), XR_NIL);
	EXPECT_EQ(number(xr_value_at(value, 2)), 30);
	xr_value_unref(value);
	value = NULL;
	EXPECT_EQ(call(JOB_MAP, items(1, -2, 3), &value), XR_E_STATE);
	EXPECT_EQ(calls, 5);
	EXPECT(value == NULL);
	/* It is cancelled with what it is in. */
	job = made_job(JOB_MAP, 1, 1);
	t = made_take(job);
	s = stint_begin(&made, t, 1);
	EXPECT_EQ(call(JOB_APPLY, items(1, 2, 3), NULL), XR_OK);
	EXPECT(!was_cancelled);
	made.ledger.task[0].cancelled = s->gen + 1;
	EXPECT_EQ(call(JOB_APPLY, items(1, 2, 3), NULL), XR_OK);
	EXPECT(was_cancelled);
	stint_end(s);
	drop(job, t);
	end();
}
