/* SPDX-License-Identifier: Apache-2.0 */
/* test_ask.c - questions to a peer that the test plays, and how they end. */
#include <sched.h>

#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "base/clock.h"
#include "base/status.h"
#include "tests/unit/ask_rig.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/figures.h"
#include "worker/rpc/future.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/method.h"
#include "worker/rpc/parcel.h"
#include "worker/rpc/pending.h"

TestSuite(ask, .timeout = 20, .init = begin, .fini = wire_end);

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
		many[i] = (struct xr_part){ &"0123456789"[i % 10], 1 };
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
