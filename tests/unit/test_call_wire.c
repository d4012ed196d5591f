/* SPDX-License-Identifier: Apache-2.0 */
/* test_call_wire.c - calls with bytes to a peer that the test plays. */
#include <sched.h>
#include <semaphore.h>

#include <xrun/call.h>
#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "base/clock.h"
#include "tests/unit/wire_rig.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/method.h"
#include "worker/rpc/parcel.h"
#include "worker/rpc/pending.h"

static struct xr_error err;
static struct xr_raw_call call;
static char data[PARCEL_MIN + 1];

static void
begin(void)
{
	wire_begin();
	call = (struct xr_raw_call){ .size = sizeof(call),
		.data = data,
		.len = 3,
		.timeout = XR_SECONDS(60) };
	memcpy(data, "abc", 3);
	cr_assert_eq(xr_peer_find("one", 0, &call.to, &err), XR_OK);
	cr_assert_eq(xr_method_find("far", &call.method, &err), XR_OK);
	cr_expect_eq((void *)call.to, (void *)wire_peer[1]);
}

TestSuite(call_wire, .timeout = 20, .init = begin, .fini = wire_end);

static const struct wire_message *
sent(enum message_kind kind)
{
	const struct wire_message *m = wire_sent(kind, 1);
	const struct method *method = (const void *)call.method;

	cr_assert_not_null(m);
	cr_expect_eq(m->record.method, method->hash);
	cr_expect_eq(m->record.flags, MESSAGE_NAMED);
	cr_expect_eq(m->len, method->prefix_len + call.len);
	if (m->len < WIRE_BODY)
		cr_expect_eq(memcmp(m->data + method->prefix_len, data,
				     call.len),
			0);
	return m;
}

static struct xr_future *
ask(void)
{
	struct xr_future *f = NULL;

	cr_assert_eq(xr_call_async(&call, &f, &err), XR_OK, "%s", err.text);
	return f;
}

/* --- one thread ------------------------------------------------------------------------- */

Test(call_wire, a_call_is_its_bytes)
{
	const struct wire_message *m;
	struct xr_value *v = NULL;
	struct xr_future *f = ask();
	size_t len = 0;

	m = sent(MESSAGE_REQUEST);
	cr_expect_not(m->lent);
	cr_expect_eq(ask_active(), 1);
	wire_say(1, MESSAGE_ERROR, m->record.corr, "", 0);
	xr_future_unref(f);
	cr_expect_eq(ask_active(), 0);
	f = ask();
	m = sent(MESSAGE_REQUEST);
	wire_say(1, MESSAGE_REPLY, m->record.corr, "xyz", 3);
	cr_assert_eq(xr_future_wait(f, 0, &v, &err), XR_OK);
	cr_expect_eq(memcmp(xr_value_data(v, &len), "xyz", 3), 0);
	cr_expect_eq(len, 3);
	xr_value_unref(v);
	xr_future_unref(f);
	cr_expect_eq(ask_begun(), 2);
}

Test(call_wire, a_call_without_bytes_is_its_name)
{
	struct xr_future *f;

	call.len = 0;
	f = ask();
	sent(MESSAGE_REQUEST);
	xr_future_cancel(f);
	xr_future_unref(f);
}

Test(call_wire, a_call_that_nobody_answers_is_one_way)
{
	cr_expect_eq(xr_call_oneway(&call, &err), XR_OK);
	cr_expect_eq(sent(MESSAGE_ONEWAY)->record.corr, 0);
	cr_expect_eq(pending_count(false), 0);
	wire_refuse(XR_E_RANGE, 1);
	cr_expect_eq(xr_call_oneway(&call, &err), XR_E_RANGE);
}

/* What is long stays where it is; without memory it is copied. */
Test(call_wire, what_is_long_is_lent)
{
	static const struct {
		size_t len;
		unsigned short_at;
		bool lent;
	} row[] = {
		{ PARCEL_MIN, 0, false },
		{ PARCEL_MIN + 1, 0, true },
		{ PARCEL_MIN + 1, 1, false },
	};
	struct xr_future *f = NULL;

	for (size_t i = 0; i < 3; i++) {
		call.len = row[i].len;
		until_short = row[i].short_at;
		cr_assert_eq(xr_call_async(&call, &f, &err), XR_OK);
		cr_expect_eq(until_short, 0);
		cr_expect_eq(sent(MESSAGE_REQUEST)->lent, row[i].lent,
			"row %zu", i);
		xr_future_cancel(f);
		xr_future_unref(f);
		wire_forget();
	}
}

/* For who waits in the queue, when it has looked in vain. */
static void *
make_room(void *unused)
{
	while (!send_queue_is_filled(&wire_peer[1]->queue))
		sched_yield();
	for (int i = 0; i < 100; i++)
		sched_yield();
	wire_refuse(XR_OK, 0);
	lead_bell();
	return unused;
}

Test(call_wire, room_is_awaited_for_as_long_as_it_is_said)
{
	pthread_t thread;
	struct xr_future *f = NULL;

	wire_refuse(XR_E_AGAIN, UINT_MAX);
	cr_expect_eq(call_within(&call, NS_PER_MS, &f, &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "one (1) takes nothing more");
	call.timeout = NS_PER_MS;
	cr_expect_eq(xr_call_async(&call, &f, &err), XR_E_TIMEOUT);
	cr_expect_null(f);
	/* As long as the call may take, if nothing else is said. */
	call.timeout = XR_SECONDS(60);
	cr_assert_eq(pthread_create(&thread, NULL, make_room, NULL), 0);
	f = ask();
	pthread_join(thread, NULL);
	sent(MESSAGE_REQUEST);
	xr_future_cancel(f);
	xr_future_unref(f);
}

/* --- who waits --------------------------------------------------------------------------------- */

static void *
answer(void *text)
{
	const struct wire_message *m;

	wire_await(1);
	m = wire_sent(MESSAGE_REQUEST, 1);
	cr_assert_not_null(m);
	if (text != NULL)
		wire_say(1, MESSAGE_REPLY, m->record.corr, text, strlen(text));
	else
		wire_say(1, MESSAGE_ERROR, m->record.corr, "", 0);
	return NULL;
}

/* With the answer @text; NULL: an error. */
static enum xr_status
wait_for(const char *text, struct xr_raw_reply *reply)
{
	enum xr_status status;
	pthread_t thread;

	wire_forget();
	err = (struct xr_error){ 0 };
	cr_assert_eq(pthread_create(&thread, NULL, answer, (void *)text), 0);
	status = xr_call_sync(&call, reply, &err);
	pthread_join(thread, NULL);
	return status;
}

Test(call_wire, an_answer_is_kept_until_it_is_given_back)
{
	struct xr_raw_reply reply = { 0 };

	cr_expect_eq(wait_for("abcde", &reply), XR_OK);
	cr_expect_eq(reply.len, 5);
	cr_expect_eq(memcmp(reply.data, "abcde", 5), 0);
	cr_expect_not_null(reply.own);
	xr_raw_reply_free(&reply);
	cr_expect(reply.data == NULL && reply.own == NULL && reply.len == 0);
	cr_expect_eq(wait_for("", &reply), XR_OK);
	cr_expect_eq(reply.len, 0);
	cr_expect_null(reply.own);
	reply.len = 77;
	cr_expect_eq(wait_for(NULL, &reply), XR_E_PROTO);
	cr_expect_eq(reply.len, 77);
}

Test(call_wire, an_answer_is_put_where_there_is_room)
{
	struct xr_raw_reply reply = { 0 };
	char into[8];

	call.reply = into;
	for (call.reply_cap = 4; call.reply_cap <= 6; call.reply_cap++) {
		memset(into, '-', sizeof(into));
		cr_expect_eq(wait_for("abcde", &reply),
			call.reply_cap < 5 ? XR_E_RANGE : XR_OK);
		cr_expect_eq(reply.len, 5);
		cr_expect_eq(reply.data, into);
		cr_expect_null(reply.own);
		cr_expect_eq(memcmp(into,
				     call.reply_cap < 5 ? "abcd-" : "abcde-",
				     call.reply_cap < 5 ? 5 : 6),
			0);
		if (call.reply_cap == 4)
			cr_expect_str_eq(err.text,
				"an answer of 5 bytes, and room for 4");
	}
	/* Also if it is long, which is lent until then. */
	call.len = PARCEL_MIN + 1;
	cr_expect_eq(wait_for("xy", &reply), XR_OK);
	cr_expect_eq(reply.len, 2);
	cr_expect_eq(memcmp(into, "xy", 2), 0);
}

/* --- the agent's end ------------------------------------------------------------------------------- */

static sem_t done, go_on;

static void *
call_all(void *unused)
{
	struct xr_raw_call bad = { .size = 0 };
	struct xr_raw_reply reply = { 0 };
	struct xr_future *f = NULL;
	struct xr_peer *p;

	cr_expect_eq(xr_peer_find("one", 0, &p, &err), XR_OK);
	cr_expect_eq(xr_peer_find("who", 0, &p, &err), XR_E_NOTFOUND);
	cr_expect_eq(xr_call_oneway(&call, &err), XR_OK);
	cr_expect_eq(xr_call_oneway(&bad, &err), XR_E_INVAL);
	cr_expect_eq(xr_call_async(&call, &f, &err), XR_OK);
	xr_future_cancel(f);
	xr_future_unref(f);
	cr_expect_eq(xr_call_async(&bad, &f, &err), XR_E_INVAL);
	cr_expect_eq(xr_call_sync(&bad, &reply, &err), XR_E_INVAL);
	call.timeout = 1;
	cr_expect_eq(xr_call_sync(&call, &reply, &err), XR_E_TIMEOUT);
	sem_post(&done);
	while (sem_wait(&go_on) == -1)
		continue;
	return unused;
}

TestSuite(call_wire_end, .timeout = 20, .init = begin);

/* It would wait for a thread that is still in one of them. */
Test(call_wire_end, no_call_stays_in_the_agent)
{
	struct xr_raw_reply reply = { 0 };
	struct xr_future *f = NULL;
	struct xr_peer *p = NULL;
	pthread_t thread;

	sem_init(&done, 0, 0);
	sem_init(&go_on, 0, 0);
	cr_assert_eq(pthread_create(&thread, NULL, call_all, NULL), 0);
	while (sem_wait(&done) == -1)
		continue;
	wire_end();
	sem_post(&go_on);
	pthread_join(thread, NULL);
	/* And without one there are none. */
	cr_expect_eq(xr_peer_find("one", 0, &p, &err), XR_E_STATE);
	cr_expect_eq(xr_call_sync(&call, &reply, &err), XR_E_STATE);
	cr_expect_eq(xr_call_async(&call, &f, &err), XR_E_STATE);
	cr_expect_eq(xr_call_oneway(&call, &err), XR_E_STATE);
	cr_expect(p == NULL && f == NULL);
}
