/* SPDX-License-Identifier: Apache-2.0 */
/* test_ask.c - questions to a peer that the test plays, and how they end. */
#include <sched.h>
#include <semaphore.h>

#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "base/clock.h"
#include "base/status.h"
#include "tests/unit/rref_rig.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/figures.h"
#include "worker/rpc/future.h"
#include "worker/rpc/held.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/method.h"
#include "worker/rpc/parcel.h"
#include "worker/rpc/pending.h"

static struct xr_error err;
static struct question q; /* a call of "ask.me" to "one" */
static const struct xr_part abc = { "abc", 3 };
static struct xr_future *f;

static void
begin(void)
{
	wire_begin();
	q = (struct question){ .to = wire_peer[1],
		.kind = MESSAGE_REQUEST,
		.method = method_get("ask.me"),
		.parts = &abc,
		.count = 1,
		.timeout = HOUR };
	cr_assert_not_null(q.method);
}

TestSuite(ask, .timeout = 20, .init = begin, .fini = wire_end);

static const struct wire_message *
begin_future(void)
{
	const struct wire_message *m;

	f = NULL;
	cr_assert_eq(ask_future(&q, NULL, &f, &err), XR_OK, "%s", err.text);
	m = wire_sent(MESSAGE_REQUEST, (uint32_t)q.to->id);
	cr_assert_not_null(m);
	return m;
}

/* What the future failed with. */
static void
failed(enum xr_status status, const char *words)
{
	struct xr_error why = { 0 };

	cr_expect_eq(xr_future_wait(f, 0, NULL, &why), status);
	cr_expect_str_eq(why.text, words);
	xr_future_unref(f);
}

/* Returns true if "one" heard that nobody waits for @corr any more. */
static bool
cancels(uint64_t corr)
{
	const struct wire_message *m = wire_sent(MESSAGE_CANCEL, 1);

	return m != NULL && m->record.corr == corr && m->len == 0 &&
		m->record.flags == 0;
}

static int64_t
figure(enum figure which)
{
	struct figures_view view;

	figures_sum(&view);
	return view.count[which];
}

/* --- questions ---------------------------------------------------------------------- */

/* It names its function or not, which has @flags; ends it with @kind. */
static void
ask_named(bool named, uint8_t flags, enum message_kind kind)
{
	size_t prefix = named ? q.method->prefix_len : 0;
	const struct wire_message *m;

	q.flags = flags;
	m = begin_future();
	cr_expect_eq(m->record.flags, flags | (named ? MESSAGE_NAMED : 0));
	cr_expect_eq(m->record.method, q.method->hash);
	cr_assert_eq(m->len, prefix + 3);
	cr_expect_eq(memcmp(m->data, q.method->prefix, prefix), 0);
	cr_expect_eq(memcmp(m->data + prefix, "abc", 3), 0);
	wire_say(q.to->id, kind, m->record.corr, "xyz", 3);
	cr_expect(xr_future_done(f));
	xr_future_unref(f);
}

Test(ask, a_question_names_its_function_until_that_has_answered)
{
	ask_named(true, 0, MESSAGE_ERROR);
	ask_named(true, 0, MESSAGE_REPLY);
	ask_named(false, 0, MESSAGE_REPLY);
	ask_named(false, 0, MESSAGE_ERROR);
	ask_named(false, MESSAGE_VALUE, MESSAGE_REPLY);
	/* A method is found by its name. */
	ask_named(true, MESSAGE_VALUE | MESSAGE_METHOD, MESSAGE_REPLY);
	q.to = wire_peer[2];
	ask_named(true, 0, MESSAGE_ERROR);
	ask_named(true, 0, MESSAGE_REPLY);
	ask_named(false, 0, MESSAGE_REPLY);
	q.to = wire_peer[1];
	q.method = method_get("ask.other");
	ask_named(true, 0, MESSAGE_REPLY);
	ask_named(false, 0, MESSAGE_REPLY);
	cr_expect_eq(wire_left(), 0);
}

Test(ask, an_answer_is_its_bytes)
{
	struct xr_value *v = NULL;
	const char *data;
	size_t len = 0;
	const struct wire_message *m = begin_future();

	cr_expect_not(xr_future_done(f));
	/* Others do not answer it, nor is another one answered. */
	wire_say(2, MESSAGE_REPLY, m->record.corr, "no", 2);
	wire_say(1, MESSAGE_REPLY, m->record.corr + 1, "no", 2);
	cr_expect_not(xr_future_done(f));
	wire_say(1, MESSAGE_REPLY, m->record.corr, "xyz", 3);
	wire_say(1, MESSAGE_REPLY, m->record.corr, "no", 2);
	cr_assert_eq(xr_future_wait(f, 0, &v, &err), XR_OK);
	cr_expect_eq(xr_value_kind(v), XR_BYTES);
	data = xr_value_data(v, &len);
	cr_expect_eq(len, 3);
	cr_expect_eq(memcmp(data, "xyz", 3), 0);
	xr_value_unref(v);
	xr_future_unref(f);
	cr_expect_eq(wire_left(), 0);
}

/* The name is one part more. */
Test(ask, parts_that_are_more_than_64_need_memory)
{
	struct xr_part many[QUESTION_PARTS + 1];
	const struct wire_message *m;

	for (size_t i = 0; i <= QUESTION_PARTS; i++)
		many[i] = (struct xr_part){ "0123456789" + i % 10, 1 };
	q.parts = many;
	for (uint32_t i = QUESTION_PARTS - 1; i <= QUESTION_PARTS + 1; i++) {
		q.count = i;
		most_asked = 0;
		cr_expect_eq(ask_tell(&q, &err), XR_OK);
		cr_expect_eq(most_asked,
			i < QUESTION_PARTS ? 0 : (i + 1) * sizeof(many[0]));
		m = wire_sent(MESSAGE_REQUEST, 1);
		cr_assert_not_null(m);
		cr_assert_eq(m->len, q.method->prefix_len + i);
		for (uint32_t k = 0; k < i; k++)
			cr_assert_eq(m->data[q.method->prefix_len + k],
				'0' + k % 10);
	}
	until_short = 1;
	cr_expect_eq(ask_tell(&q, &err), XR_E_NOMEM);
	cr_expect_str_eq(err.text, "out of memory");
	cr_expect_eq(wire_left(), 0);
	/* Without a name they go as they are. */
	q.method = NULL;
	until_short = 1;
	cr_expect_eq(ask_tell(&q, &err), XR_OK);
	cr_expect_eq(until_short, 1);
	until_short = 0;
	m = wire_sent(MESSAGE_REQUEST, 1);
	cr_assert_not_null(m);
	cr_expect_eq(m->len, QUESTION_PARTS + 1);
	cr_expect_eq(m->record.method, 0);
	cr_expect_eq(m->record.flags, 0);
}

Test(ask, what_nobody_answers_is_sent_and_not_awaited)
{
	const struct wire_message *m;

	q.kind = MESSAGE_ONEWAY;
	q.corr = 99;
	cr_expect_eq(ask_tell(&q, &err), XR_OK);
	m = wire_sent(MESSAGE_ONEWAY, 1);
	cr_assert_not_null(m);
	cr_expect_eq(m->record.corr, 99);
	cr_expect_eq(figure(FIGURE_ONEWAY), 0);
	q.call = true;
	cr_expect_eq(ask_tell(&q, &err), XR_OK);
	cr_expect_eq(figure(FIGURE_ONEWAY), 1);
	cr_expect_eq(pending_count(false), 0);
	cr_expect_eq(ask_begun(), 0);
	wire_refuse(XR_E_RANGE, 1);
	cr_expect_eq(ask_tell(&q, &err), XR_E_RANGE);
}

/* --- errors --------------------------------------------------------------------------- */

/* An ERROR as a number, which has no value. */
static void
fails_by_number(const void *data, size_t len, enum xr_status status,
	enum xr_status says)
{
	const struct wire_message *m = begin_future();
	char text[200];

	snprintf(text, sizeof(text), "one (1): %s", xr_status_text(says));
	wire_say(1, MESSAGE_ERROR, m->record.corr, data, len);
	failed(status, text);
}

Test(ask, an_error_without_a_value_is_a_status)
{
	const int32_t row[] = { XR_E_NOMEM, XR_E_RANGE, -1, 0, 1 };

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		fails_by_number(&row[i], sizeof(row[i]),
			row[i] < 0 ? row[i] : XR_E_PROTO, row[i]);
	fails_by_number(&row[0], 3, XR_E_PROTO, XR_E_PROTO);
	fails_by_number("12345", 5, XR_E_PROTO, XR_E_PROTO);
	fails_by_number("", 0, XR_E_PROTO, XR_E_PROTO);
}

static void
say_value(enum message_kind kind, uint64_t corr, const void *data, size_t len)
{
	const struct xr_record record = { .kind = (uint8_t)kind,
		.flags = MESSAGE_VALUE,
		.corr = corr };

	wire_deliver(1, &record, data, len);
}

static struct xr_value *
error_of(enum xr_status status, const char *text)
{
	const struct xr_failure fail = { .size = sizeof(fail),
		.status = status,
		.text = text };

	return xr_value_new_error(&fail);
}

Test(ask, an_error_with_a_value_is_that)
{
	const struct wire_message *m = begin_future();
	struct xr_error why = { 0 };

	wire_reply(1, MESSAGE_ERROR, m->record.corr,
		error_of(XR_E_REMOTE, "it broke"));
	failed(XR_E_REMOTE, "it broke");
	m = begin_future();
	wire_reply(1, MESSAGE_ERROR, m->record.corr, xr_value_new_i64(1));
	failed(XR_E_PROTO, "one (1) sent no error as one");
	m = begin_future();
	say_value(MESSAGE_ERROR, m->record.corr, "x", 1);
	cr_expect_eq(xr_future_wait(f, 0, NULL, &why), XR_E_DECODE);
	cr_expect_eq(strncmp(why.text, "the error of one (1): ", 22), 0, "%s",
		why.text);
	xr_future_unref(f);
}

/* Each allocation fails once. */
Test(ask, an_error_without_memory_is_that_there_is_none)
{
	struct xr_value *v = error_of(XR_E_REMOTE, "it broke");
	enum xr_status status = XR_E_NOMEM;
	uint8_t data[WIRE_BODY];
	size_t len = wire_encode(v, data, sizeof(data));
	unsigned at;

	for (at = 2; status != XR_E_REMOTE && at < 30; at++) {
		const struct wire_message *m = begin_future();

		until_short = at;
		say_value(MESSAGE_ERROR, m->record.corr, data, len);
		until_short = 0;
		status = xr_future_wait(f, 0, NULL, &err);
		cr_expect(status == XR_E_REMOTE || status == XR_E_NOMEM,
			"%u: %s", at, err.text);
		xr_future_unref(f);
	}
	cr_expect(at > 3 && at < 30);
}

/* --- what an answer is read by ---------------------------------------------------------- */

static unsigned reads;

static struct xr_value *
read_length(struct peer *from, const struct xr_record *record,
	const struct xr_body *body, struct xr_error *e)
{
	cr_expect_eq(from, wire_peer[1]);
	cr_expect_eq(record->kind, MESSAGE_REPLY);
	reads++;
	if (body->len > 0)
		return xr_value_new_u64(body->len);
	fail(e, XR_E_RANGE, "it is empty");
	return NULL;
}

Test(ask, an_answer_that_cannot_be_read_is_an_error)
{
	const struct wire_message *m;
	struct xr_value *v = NULL;
	uint64_t n = 0;

	for (size_t len = 0; len <= 2; len += 2) {
		cr_assert_eq(ask_future(&q, read_length, &f, &err), XR_OK);
		m = wire_sent(MESSAGE_REQUEST, 1);
		wire_say(1, MESSAGE_REPLY, m->record.corr, "xy", len);
		if (len == 0)
			failed(XR_E_RANGE, "it is empty");
	}
	cr_assert_eq(xr_future_wait(f, 0, &v, &err), XR_OK);
	cr_expect_eq(xr_value_get_u64(v, &n), XR_OK);
	cr_expect_eq(n, 2);
	xr_value_unref(v);
	xr_future_unref(f);
	/* An error is not read by it. */
	cr_assert_eq(ask_future(&q, read_length, &f, &err), XR_OK);
	m = wire_sent(MESSAGE_REQUEST, 1);
	wire_say(1, MESSAGE_ERROR, m->record.corr, "", 0);
	xr_future_unref(f);
	cr_expect_eq(reads, 2);
}

/* Its bytes are a copy. */
Test(ask, bytes_without_memory_are_an_error)
{
	const struct wire_message *m = begin_future();

	until_short = 2;
	wire_say(1, MESSAGE_REPLY, m->record.corr, "xyz", 3);
	cr_expect_eq(until_short, 0);
	failed(XR_E_NOMEM, "no memory for an answer");
}

/* --- how questions end ------------------------------------------------------------------- */

static unsigned ended, freed;

static void
note_ended(void *ctx)
{
	cr_expect_eq(ctx, &ended);
	cr_expect_eq(freed, 0);
	ended++;
}

static void
note_freed(void *what)
{
	cr_expect_eq(what, &freed);
	freed++;
}

/* With a parcel, which the question has alone. */
static void
lend(void)
{
	q.ended = note_ended;
	q.ctx = &ended;
	q.parcel = parcel_new(note_freed, &freed);
	q.lent = true;
	ended = freed = 0;
}

static void
expect_back(void)
{
	cr_expect_eq(ended, 1);
	parcel_unref(q.parcel);
	cr_expect_eq(freed, 1);
}

Test(ask, one_that_is_over_before_it_is_sent_is_not)
{
	struct asked *a;

	lend();
	a = ask_open(&q, NULL, &f);
	cr_assert_not_null(a);
	cr_expect_not(xr_future_done(f));
	ask_fail(a, XR_E_RANGE, "too early");
	cr_expect(xr_future_done(f));
	ask_fail(a, XR_E_NOMEM, "too late");
	cr_expect_eq(ask_send(a, &q, &err), XR_OK);
	failed(XR_E_RANGE, "too early");
	expect_back();
	/* Cancelled by its future. */
	lend();
	a = ask_open(&q, NULL, &f);
	cr_expect_eq(xr_future_cancel(f), XR_OK);
	cr_expect_eq(xr_future_cancel(f), XR_E_STATE);
	cr_expect_eq(ask_send(a, &q, &err), XR_OK);
	failed(XR_E_CANCELLED, "canceled");
	expect_back();
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(pending_count(false), 0);
}

/* The peer hears of that, if it may still be at work. */
Test(ask, one_that_is_over_before_its_answer_is_cancelled)
{
	static const struct {
		enum xr_status status;
		bool cancels;
	} row[] = { { XR_E_TIMEOUT, true }, { XR_E_CANCELLED, true },
		{ XR_E_PEER_LOST, false }, { XR_E_CLOSED, false } };
	const struct wire_message *m;
	struct asked *a;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		lend();
		a = ask_open(&q, NULL, &f);
		cr_assert_not_null(a);
		cr_expect_eq(ask_send(a, &q, &err), XR_OK);
		m = wire_sent(MESSAGE_REQUEST, 1);
		cr_assert_not_null(m);
		cr_expect(m->lent);
		cr_expect_eq(ended, 0);
		ask_fail(a, row[i].status, "too long");
		cr_expect_eq(cancels(m->record.corr), row[i].cancels);
		failed(row[i].status, "too long");
		expect_back();
	}
	lend();
	m = begin_future();
	cr_expect_eq(xr_future_cancel(f), XR_OK);
	cr_expect(cancels(m->record.corr));
	failed(XR_E_CANCELLED, "canceled");
	expect_back();
	lend();
	m = begin_future();
	cr_expect_eq(pending_expire(clock_now() + 2 * HOUR), INT64_MAX);
	cr_expect(cancels(m->record.corr));
	failed(XR_E_TIMEOUT, "no answer from one (1) within 3600000 ms");
	expect_back();
	lend();
	begin_future();
	agent_lose(wire_peer[1], "on purpose");
	failed(XR_E_PEER_LOST, "lost one (1): on purpose");
	expect_back();
	cr_expect_eq(wire_left(), 0);
}

Test(ask, one_that_is_answered_gives_back_what_was_lent)
{
	const struct wire_message *m;

	lend();
	q.apart = true;
	m = begin_future();
	cr_expect_not(m->lent);
	cr_expect_eq(ended, 0);
	wire_say(1, MESSAGE_REPLY, m->record.corr, "x", 1);
	cr_expect_eq(xr_future_wait(f, 0, NULL, &err), XR_OK);
	xr_future_unref(f);
	expect_back();
	cr_expect_eq(wire_left(), 0);
}

/* Its place is given back. */
Test(ask, one_that_cannot_be_sent_fails)
{
	uint64_t place = (uint32_t)begin_future()->record.corr;

	xr_future_cancel(f);
	xr_future_unref(f);
	wire_forget();
	lend();
	wire_refuse(XR_E_PROTO, 1);
	cr_expect_eq(ask_future(&q, NULL, &f, &err), XR_OK);
	cr_expect(xr_future_done(f));
	cr_expect_eq(xr_future_wait(f, 0, NULL, &err), XR_E_PROTO);
	xr_future_unref(f);
	expect_back();
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(pending_count(false), 0);
	q.lent = false;
	q.parcel = NULL;
	q.ended = NULL;
	cr_expect_eq((uint32_t)begin_future()->record.corr, place);
	xr_future_cancel(f);
	xr_future_unref(f);
}

/* Also if the whole call may take longer. */
Test(ask, one_for_which_there_is_no_room_has_no_future)
{
	lend();
	wire_refuse(XR_E_AGAIN, UINT_MAX);
	q.limit = XR_SECONDS(1) / 100;
	cr_expect_eq(ask_future(&q, NULL, &f, &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "one (1) takes nothing more");
	cr_expect_null(f);
	expect_back();
	lend();
	q.limit = 0;
	q.timeout = XR_SECONDS(1) / 100;
	err.text[0] = '\0';
	cr_expect_eq(ask_future(&q, NULL, &f, &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "one (1) takes nothing more");
	expect_back();
	wire_refuse(XR_OK, 0);
	cr_expect_eq(pending_count(false), 0);
	cr_expect_eq(wire_left(), 0);
}

static void *
fail_while_sending(void *a)
{
	while (!send_queue_is_filled(&wire_peer[1]->queue))
		sched_yield();
	ask_fail(a, XR_E_CANCELLED, "meanwhile");
	/* The carrier may have the memory yet. */
	cr_expect_eq(ended, 0);
	cr_expect_not(xr_future_done(f));
	wire_refuse(XR_OK, 0);
	lead_bell();
	return NULL;
}

Test(ask, one_that_fails_while_it_is_sent_ends_when_it_was)
{
	const struct wire_message *m;
	pthread_t thread;
	struct asked *a;

	lend();
	wire_refuse(XR_E_AGAIN, UINT_MAX);
	a = ask_open(&q, NULL, &f);
	cr_assert_eq(pthread_create(&thread, NULL, fail_while_sending, a), 0);
	cr_expect_eq(ask_send(a, &q, &err), XR_OK);
	pthread_join(thread, NULL);
	m = wire_sent(MESSAGE_REQUEST, 1);
	cr_assert_not_null(m);
	cr_expect(cancels(m->record.corr));
	failed(XR_E_CANCELLED, "meanwhile");
	expect_back();
}

/* The handles that it has are given up. */
Test(ask, a_late_answer_is_dropped_with_its_references)
{
	const struct rref_wire wire = word(1, 5, 1, 6, RREF_CONFIRMED);
	const uint32_t head[3] = { MAGIC, 0, 1 };
	uint8_t data[WIRE_BODY] = { 0 };
	size_t len = 128;

	memcpy(data, head, sizeof(head));
	memcpy(data + 64, &wire, sizeof(wire));
	len += wire_encode(xr_value_new_nil(), data + len, sizeof(data) - len);
	wire_say(1, MESSAGE_REPLY, 77, data, len);
	cr_expect_eq(wire_left(), 0);
	say_value(MESSAGE_REPLY, 77, data, len);
	cr_expect(says(MESSAGE_RREF_USER_DELETE, 1, wire, 0));
	cr_expect_eq(wire_left(), 0);
}

Test(ask, a_question_without_memory_is_not_sent)
{
	enum xr_status status = XR_E_NOMEM;
	unsigned at;

	q.call = true;
	for (at = 1; status == XR_E_NOMEM && at < 20; at++) {
		f = NULL;
		was_short = false;
		until_short = at;
		status = ask_future(&q, NULL, &f, &err);
		until_short = 0;
		cr_expect_eq(status, was_short ? XR_E_NOMEM : XR_OK);
		if (status != XR_OK) {
			cr_expect_str_eq(err.text, "out of memory");
			cr_expect_eq(ask_begun(), 0);
			cr_expect_null(f);
			cr_expect_eq(wire_left(), 0);
		}
	}
	cr_expect(at > 3 && at < 20, "%u", at);
	cr_expect_eq(pending_count(false), 1);
	xr_future_cancel(f);
	xr_future_unref(f);
}

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

Test(ask, bytes_are_copied_where_they_belong_or_kept)
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

Test(ask, one_that_is_waited_for_ends_with_its_error)
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

Test(ask, one_that_is_waited_for_in_vain_is_cancelled)
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
Test(ask, one_whose_answer_is_read_when_its_time_is_over_is_answered)
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

Test(ask, one_that_is_not_sent_is_not_waited_for)
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

Test(ask, calls_are_awaited_with_their_callbacks)
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
