/* SPDX-License-Identifier: Apache-2.0 */
/* test_ask_wait.c - questions to a peer that the test plays, which a thread waits for. */
#include <semaphore.h>

#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "base/clock.h"
#include "tests/unit/ask_rig.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/future.h"
#include "worker/rpc/held.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/pending.h"

TestSuite(ask_wait, .timeout = 20, .init = begin, .fini = wire_end);

/* --- those that are waited for -------------------------------------------------------------- */

/* What "one" does when the question came. */
static void (*reaction)(const struct wire_message *m);

static void *
react(void *unused)
{
	const struct wire_message *m;

	wire_await(1);
	m = wire_sent(MESSAGE_REQUEST, 1);
	cr_assert_not_null(m);
	reaction(m);
	return unused;
}

static enum xr_status
wait_for(struct ask_sync *a, void (*fn)(const struct wire_message *m))
{
	enum xr_status status;
	pthread_t thread;

	wire_forget();
	reaction = fn;
	err = (struct xr_error){ 0 };
	cr_assert_eq(pthread_create(&thread, NULL, react, NULL), 0);
	status = ask_wait(&q, a, &err);
	pthread_join(thread, NULL);
	cr_expect_eq(pending_count(false), 0);
	cr_expect_eq(ask_active(), 0);
	return status;
}

static void
say_abcde(const struct wire_message *m)
{
	wire_say(1, MESSAGE_REPLY, m->record.corr, "abcde", 5);
}

static void
say_empty(const struct wire_message *m)
{
	wire_say(1, MESSAGE_REPLY, m->record.corr, "", 0);
}

static void
say_short(const struct wire_message *m)
{
	until_short = 2;
	wire_say(1, MESSAGE_REPLY, m->record.corr, "abcde", 5);
	cr_expect_eq(until_short, 0);
}

static void
say_error(const struct wire_message *m)
{
	wire_reply(1, MESSAGE_ERROR, m->record.corr,
		error_of(XR_E_REMOTE, "it broke"));
}

static void
lose_one(const struct wire_message *m)
{
	(void)m;
	agent_lose(wire_peer[1], "on purpose");
}

Test(ask_wait, bytes_are_copied_where_they_belong_or_kept)
{
	char into[9];

	for (size_t cap = 4; cap <= 8; cap++) {
		struct ask_sync a = { .into = into, .cap = cap };

		memset(into, '-', sizeof(into));
		cr_expect_eq(wait_for(&a, say_abcde), XR_OK);
		cr_expect_eq(a.len, 5);
		cr_expect_eq(a.data, into);
		cr_expect_null(a.held);
		cr_expect_eq(memcmp(into, "abcde", cap < 5 ? cap : 5), 0);
		cr_expect_eq(into[cap < 5 ? cap : 5], '-');
	}
	struct ask_sync a = { .len = 9 };
	cr_expect_eq(wait_for(&a, say_abcde), XR_OK);
	cr_expect_eq(a.len, 5);
	cr_assert_not_null(a.held);
	cr_expect_eq(memcmp(a.data, "abcde", 5), 0);
	held_unref(a.held);
	a = (struct ask_sync){ .len = 9 };
	cr_expect_eq(wait_for(&a, say_empty), XR_OK);
	cr_expect_eq(a.len, 0);
	cr_expect(a.data == NULL && a.held == NULL && a.error == NULL);
	a = (struct ask_sync){ 0 };
	cr_expect_eq(wait_for(&a, say_short), XR_E_NOMEM);
	cr_expect_str_eq(err.text, "no memory for an answer");
	xr_value_unref(a.error);
}

Test(ask_wait, one_that_is_waited_for_ends_with_its_error)
{
	struct ask_sync a = { 0 };

	q.call = true;
	cr_expect_eq(wait_for(&a, say_error), XR_E_REMOTE);
	cr_expect_str_eq(err.text, "it broke");
	cr_expect_eq(failure_status(a.error, NULL), XR_E_REMOTE);
	xr_value_unref(a.error);
	cr_expect_not(peer_knows(q.to, q.method->place));
	a = (struct ask_sync){ .read = read_length };
	cr_expect_eq(wait_for(&a, say_empty), XR_E_RANGE);
	cr_expect_str_eq(err.text, "it is empty");
	xr_value_unref(a.error);
	a = (struct ask_sync){ .read = read_length };
	cr_expect_eq(wait_for(&a, say_abcde), XR_OK);
	cr_expect_eq(xr_value_kind(a.value), XR_U64);
	xr_value_unref(a.value);
	cr_expect(peer_knows(q.to, q.method->place));
	cr_expect_eq(atomic_load(&wire_peer[1]->errors), 2);
	cr_expect_eq(ask_begun(), 3);
	cr_expect_eq(figure(FIGURE_ERRORS), 2);
	/* Only calls of the program are counted. */
	q.call = false;
	a = (struct ask_sync){ 0 };
	cr_expect_eq(wait_for(&a, lose_one), XR_E_PEER_LOST);
	cr_expect_str_eq(err.text, "lost one (1): on purpose");
	xr_value_unref(a.error);
	cr_expect_eq(atomic_load(&wire_peer[1]->errors), 2);
	cr_expect_eq(ask_begun(), 3);
	cr_expect_eq(figure(FIGURE_ERRORS), 2);
}

Test(ask_wait, one_whose_wait_ends_without_an_answer_is_cancelled)
{
	struct ask_sync a = { 0 };
	const struct wire_message *m;

	q.call = true;
	q.timeout = 20 * NS_PER_MS;
	cr_expect_eq(ask_wait(&q, &a, &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "no answer from one (1) within 20 ms");
	m = wire_sent(MESSAGE_REQUEST, 1);
	cr_assert_not_null(m);
	cr_expect(cancels(m->record.corr));
	cr_expect_eq(figure(FIGURE_TIMEOUTS), 1);
	cr_expect_eq(ask_active(), 0);
	cr_expect_null(a.error);
	say_abcde(m);
	cr_expect_eq(wire_left(), 0);
}

static bool is_claimed; /* by another thread, when its time is over */
static pthread_t claimer;

void __real_lead_catch_up(void);
void __wrap_lead_catch_up(void);

static void *
answer_claimed(void *arg)
{
	struct pending *p = arg;

	p->ops->answer(p, &(struct xr_record){ .kind = MESSAGE_REPLY },
		&(struct xr_body){ .data = "abcde", .len = 5 });
	pending_put(p);
	return NULL;
}

void
__wrap_lead_catch_up(void)
{
	struct pending *p;

	__real_lead_catch_up();
	if (!is_claimed)
		return;
	p = pending_claim(wire_sent(MESSAGE_REQUEST, 1)->record.corr, NULL);
	cr_assert_not_null(p);
	cr_assert_eq(pthread_create(&claimer, NULL, answer_claimed, p), 0);
}

/* An answer that another thread reads then came in time. */
Test(ask_wait, one_whose_answer_is_read_when_its_time_is_over_is_answered)
{
	char into[8] = "";
	struct ask_sync a = { .into = into, .cap = sizeof(into) };

	is_claimed = true;
	q.timeout = NS_PER_MS;
	cr_expect_eq(ask_wait(&q, &a, &err), XR_OK);
	cr_expect_eq(a.len, 5);
	cr_expect_str_eq(into, "abcde");
	pthread_join(claimer, NULL);
	cr_expect_eq(wire_left(), 0);
}

Test(ask_wait, one_that_is_not_sent_is_not_waited_for)
{
	struct ask_sync a = { 0 };

	q.call = true;
	until_short = 1;
	cr_expect_eq(ask_wait(&q, &a, &err), XR_E_NOMEM);
	cr_expect_str_eq(err.text, "out of memory");
	cr_expect_eq(ask_begun(), 0);
	wire_refuse(XR_E_PROTO, 1);
	cr_expect_eq(ask_wait(&q, &a, &err), XR_E_PROTO);
	cr_expect_null(a.error);
	cr_expect_eq(ask_begun(), 1);
	lead_deliver_begin();
	cr_expect_eq(ask_wait(&q, &a, &err), XR_E_STATE);
	cr_expect_str_eq(err.text, "a short function or callback may not wait");
	lead_deliver_end();
	cr_expect_eq(ask_begun(), 1);
	cr_expect_eq(ask_active(), 0);
	cr_expect_eq(pending_count(false), 0);
	agent_lose(wire_peer[1], "on purpose");
	cr_expect_eq(ask_wait(&q, &a, &err), XR_E_PEER_LOST);
	cr_expect_str_eq(err.text, "lost one (1): on purpose");
	cr_expect_eq(wire_left(), 0);
}

/* --- counts ----------------------------------------------------------------------------------- */

static sem_t in_callback, go_on;

static void
hold(struct xr_future *future, void *ctx)
{
	(void)future;
	(void)ctx;
	sem_post(&in_callback);
	while (sem_wait(&go_on) == -1)
		continue;
}

static void *
answer_one(void *m)
{
	say_abcde(m);
	return NULL;
}

Test(ask_wait, calls_are_awaited_with_their_callbacks)
{
	const struct wire_message *m;
	pthread_t thread;

	sem_init(&in_callback, 0, 0);
	sem_init(&go_on, 0, 0);
	cr_expect_eq(ask_await_idle(0, &err), XR_OK);
	q.call = true;
	m = begin_future();
	cr_expect_eq(ask_active(), 1);
	cr_expect_eq(ask_begun(), 1);
	cr_expect_eq(ask_await_idle(clock_now(), &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "1 calls are not answered, one by one (1)");
	cr_assert_eq(xr_future_on_done(f, hold, NULL), XR_OK);
	cr_assert_eq(pthread_create(&thread, NULL, answer_one, (void *)m), 0);
	sem_wait(&in_callback);
	cr_expect_eq(ask_await_idle(clock_now(), &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text,
		"1 calls are answered, and their callbacks run yet");
	sem_post(&go_on);
	cr_expect_eq(ask_await_idle(INT64_MAX, &err), XR_OK);
	cr_expect_eq(ask_active(), 0);
	pthread_join(thread, NULL);
	xr_future_unref(f);
	/* Others are not. */
	q.call = false;
	m = begin_future();
	cr_expect_eq(ask_active(), 0);
	cr_expect_eq(ask_await_idle(0, &err), XR_OK);
	say_abcde(m);
	xr_future_unref(f);
	cr_expect_eq(ask_begun(), 1);
}
