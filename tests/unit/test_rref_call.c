/* SPDX-License-Identifier: Apache-2.0 */
/* test_rref_call.c - remote calls and fetches of this process, whose answers the test
 * gives; calls to oneself. */
#include <sched.h>

#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "tests/unit/lock_watch.h"
#include "tests/unit/rref_rig.h"
#include "worker/rpc/future.h"

TestSuite(rref_call, .timeout = 60, .init = wire_begin, .fini = wire_end);

static struct xr_error err;

/* --- arguments ------------------------------------------------------------------ */

Test(rref_call, a_call_of_a_method_needs_its_size_a_reference_and_a_method)
{
	struct xr_rref *h = handle_from(1, word(1, 5, 1, 6, RREF_CONFIRMED)),
		       *made = NULL;
	struct xr_rref_call good = { .size = sizeof(good),
		.rref = h,
		.method = "add" };
	struct xr_rref_call bad[3] = { good, good, good };
	const struct xr_rref_call *calls[4] = { NULL, &bad[0], &bad[1],
		&bad[2] };
	struct xr_future *future = NULL;
	struct xr_value *v = NULL;

	bad[0].size--;
	bad[1].rref = NULL;
	bad[2].method = NULL;
	for (int i = 0; i < 4; i++) {
		cr_expect_eq(xr_rref_call_sync(calls[i], &v, &err), XR_E_INVAL);
		cr_expect_eq(xr_rref_call_async(calls[i], &future, &err),
			XR_E_INVAL);
		cr_expect_eq(xr_rref_call_remote(calls[i], &made, &err),
			XR_E_INVAL);
		cr_expect_str_eq(err.text,
			"struct xr_rref_call: its size, a reference and a method");
	}
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(xr_rref_call_async(&good, &future, &err), XR_OK);
	cr_expect_not_null(wire_sent(MESSAGE_REQUEST, 1));
	xr_future_cancel(future);
	xr_future_unref(future);
	xr_rref_unref(h);
}

Test(rref_call, a_value_is_needed_for_a_reference)
{
	struct xr_value *v = xr_value_new_text("kept", 4);
	struct xr_rref *h = NULL;
	enum xr_status status = XR_E_NOMEM;
	unsigned at = 0;

	cr_expect_eq(xr_rref_from_value(NULL, &h, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "no value");
	/* What is made once is made now. */
	cr_expect_eq(xr_rref_from_value(xr_value_ref(v), &h, &err), XR_OK);
	xr_rref_unref(h);
	h = NULL;
	while (status != XR_OK && at < 10) {
		until_short = ++at;
		status = xr_rref_from_value(xr_value_ref(v), &h, &err);
		until_short = 0;
		if (status != XR_OK) {
			cr_expect_eq(status, XR_E_NOMEM);
			cr_expect_str_eq(err.text, "out of memory");
			cr_expect_eq(rref.owned.count, 0);
			cr_expect_null(h);
		}
	}
	cr_expect_eq(at, 3, "%u", at);
	xr_rref_unref(h);
	xr_value_unref(v);
	cr_expect_eq(rref.owned.count, 0);
}

Test(rref_call, the_value_of_another_is_not_here)
{
	struct xr_rref *h = handle_from(1, word(1, 5, 1, 6, RREF_CONFIRMED));
	struct xr_value *v = NULL;

	cr_expect_eq(xr_rref_local(h, 0, &v, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text,
		"self (0) has a handle of a value that one (1) owns: fetch it");
	wire_end();
	cr_expect_eq(xr_rref_local(h, 0, &v, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text,
		"? (0) has a handle of a value that one (1) owns: fetch it");
	xr_rref_unref(h);
	wire_begin();
}

/* --- fetches ---------------------------------------------------------------------- */

/* fetch_sent() - the next fetch that was sent to "one", with @flags and @timeout in ns. */
static const struct wire_message *
fetch_sent(uint32_t flags, int64_t timeout)
{
	const struct wire_message *m = wire_sent(MESSAGE_RREF_FETCH, 1);
	struct rref_wire sent;

	cr_assert_not_null(m);
	cr_assert_eq(m->len, sizeof(sent));
	memcpy(&sent, m->data, sizeof(sent));
	cr_expect_eq(sent.flags, flags);
	cr_expect_eq(sent.timeout, (uint64_t)timeout);
	return m;
}

Test(rref_call, a_fetch_ends_with_its_answer)
{
	struct xr_rref *h = handle_from(1, word(1, 5, 1, 6, RREF_CONFIRMED));
	const struct wire_message *m;
	struct xr_future *f = NULL;
	struct xr_value *v = NULL;
	int64_t n = 0;

	cr_assert_eq(xr_rref_fetch_async(h, HOUR, &f, &err), XR_OK);
	m = fetch_sent(0, HOUR);
	wire_reply(1, MESSAGE_REPLY, m->record.corr, xr_value_new_i64(42));
	cr_expect_eq(xr_future_wait(f, 0, &v, &err), XR_OK);
	xr_value_get_i64(v, &n);
	cr_expect_eq(n, 42);
	xr_value_unref(v);
	xr_future_unref(f);
	/* Bytes are no value, nor is what cannot be read. */
	cr_assert_eq(xr_rref_fetch_async(h, HOUR, &f, &err), XR_OK);
	m = fetch_sent(0, HOUR);
	wire_say(1, MESSAGE_REPLY, m->record.corr, "x", 1);
	cr_expect_eq(xr_future_wait(f, 0, &v, &err), XR_E_PROTO);
	cr_expect_str_eq(err.text, "one (1) answered with bytes");
	xr_future_unref(f);
	cr_assert_eq(xr_rref_fetch_async(h, HOUR, &f, &err), XR_OK);
	m = fetch_sent(0, HOUR);
	wire_deliver(1,
		&(struct xr_record){ .kind = MESSAGE_REPLY,
			.flags = MESSAGE_VALUE,
			.corr = m->record.corr },
		"x", 1);
	cr_expect_eq(xr_future_wait(f, 0, &v, &err), XR_E_DECODE);
	xr_future_unref(f);
	/* Is it there? of a value that no call here makes. */
	cr_assert_eq(xr_rref_created(h, &f), XR_OK);
	m = fetch_sent(RREF_ONLY_CREATED, XR_TIMEOUT_NEVER);
	wire_reply(1, MESSAGE_REPLY, m->record.corr, xr_value_new_nil());
	cr_expect_eq(xr_future_wait(f, 0, NULL, &err), XR_OK);
	xr_future_unref(f);
	xr_rref_unref(h);
}

/* Answers the fetch that comes; its handle has failed by then. */
static void *
fail_fetch(void *unused)
{
	const struct wire_message *m;

	(void)unused;
	while ((m = wire_sent(MESSAGE_RREF_FETCH, 1)) == NULL)
		sched_yield();
	cr_expect_eq(((const struct rref_wire *)m->data)->flags, 0);
	say(1, MESSAGE_RREF_CONFIRM, word(1, 5, 2, 6, RREF_UNMADE));
	wire_reply(1, MESSAGE_ERROR, m->record.corr, xr_value_new_nil());
	return NULL;
}

Test(rref_call, a_fetch_says_why_its_handle_failed_meanwhile)
{
	struct xr_rref *h = handle_from(2, word(1, 5, 2, 6, 0));
	struct xr_value *v = NULL;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, fail_fetch, NULL), 0);
	cr_expect_eq(xr_rref_fetch(h, HOUR, &v, &err), XR_E_NOMEM);
	cr_expect_str_eq(err.text, "one (1) has no memory for a reference");
	pthread_join(thread, NULL);
	xr_rref_unref(h);
}

static struct xr_rref *
own_born(struct rref_wire *birth)
{
	struct xr_rref *h = NULL;

	cr_assert_eq(rref_birth(agent_self(), birth, &h, &err), XR_OK);
	cr_expect(xr_rref_is_owner(h));
	return h;
}

Test(rref_call, a_value_here_is_waited_for)
{
	struct xr_value *v = NULL, *seven = xr_value_new_i64(7);
	struct xr_future *f = NULL, *created = NULL;
	enum xr_status status = XR_E_NOMEM;
	struct rref_wire birth;
	struct xr_rref *h = own_born(&birth);
	int64_t now = clock_now(), next;
	unsigned at = 0;

	cr_expect_eq(xr_rref_local(h, 0, &v, &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "the value does not exist yet");
	while (status != XR_OK && at < 10) {
		until_short = ++at;
		status = xr_rref_fetch_async(h, HOUR, &f, &err);
		until_short = 0;
		if (status != XR_OK) {
			cr_expect_eq(status, XR_E_NOMEM);
			cr_expect_str_eq(err.text, "out of memory");
			cr_expect_eq(FIGURE(PENDING_FUTURES), 0);
		}
	}
	cr_expect_eq(at, 3);
	next = rref_expire(now);
	cr_expect_geq(next, now + HOUR);
	rref_expire(now + 2 * HOUR);
	cr_expect_eq(xr_future_wait(f, 0, &v, &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "the value is not there yet");
	xr_future_unref(f);
	/* Without memory a wait does not begin. */
	until_short = 1;
	cr_expect_eq(xr_rref_local(h, HOUR, &v, &err), XR_E_NOMEM);
	cr_expect_eq(until_short, 0);
	cr_expect_eq(xr_rref_created(h, &created), XR_OK);
	cr_expect_eq(xr_rref_fetch_async(h, HOUR, &f, &err), XR_OK);
	rref_made(&birth, seven, false);
	cr_expect_eq(xr_future_wait(f, 0, &v, &err), XR_OK);
	cr_expect_eq(v, seven);
	xr_value_unref(v);
	xr_future_unref(f);
	cr_expect_eq(xr_future_wait(created, 0, &v, &err), XR_OK);
	cr_expect_eq(xr_value_kind(v), XR_NIL);
	xr_value_unref(v);
	xr_future_unref(created);
	/* What is there needs no memory. */
	until_short = 1;
	cr_expect_eq(xr_rref_local(h, HOUR, &v, &err), XR_OK);
	cr_expect_eq(xr_rref_fetch(h, HOUR, &v, &err), XR_OK);
	cr_expect_eq(until_short, 1);
	until_short = 0;
	xr_value_unref(v);
	xr_value_unref(v);
	xr_rref_unref(h);
	xr_value_unref(seven);
	cr_expect_eq(rref.owned.count, 0);
}

static struct rref_wire born;

/* Makes the value when somebody waits for it. */
static void *
make_seven(void *unused)
{
	struct xr_value *seven = xr_value_new_i64(7);

	(void)unused;
	while (FIGURE(PENDING_FUTURES) == 0)
		sched_yield();
	rref_made(&born, seven, false);
	xr_value_unref(seven);
	return NULL;
}

Test(rref_call, who_waits_for_a_value_here_gets_it)
{
	for (int i = 0; i < 2; i++) {
		struct xr_rref *h = own_born(&born);
		struct xr_value *v = NULL;
		pthread_t thread;
		int64_t n = 0;

		cr_assert_eq(pthread_create(&thread, NULL, make_seven, NULL),
			0);
		cr_expect_eq(i == 0 ?
				xr_rref_local(h, HOUR, &v, &err) :
				xr_rref_fetch(h, XR_TIMEOUT_NEVER, &v, &err),
			XR_OK);
		pthread_join(thread, NULL);
		cr_assert_not_null(v);
		xr_value_get_i64(v, &n);
		cr_expect_eq(n, 7);
		xr_value_unref(v);
		xr_rref_unref(h);
	}
}

/* --- remote calls ------------------------------------------------------------------ */

/* remote() - a call to "one" that makes a value; its message. */
static enum xr_status
try_remote(uint32_t to, struct xr_rref **h, int64_t timeout)
{
	struct xr_rpc_call call = XR_RPC_CALL;

	call.to = wire_peer[to]->name;
	call.func = "make";
	call.timeout = timeout;
	return xr_rpc_remote(&call, h, &err);
}

static struct rref_wire
birth_in(const struct wire_message *m)
{
	struct rref_wire birth;
	size_t at = sizeof(birth); /* the head */

	/* The name is in front, padded, until the peer has answered to it. */
	if ((m->record.flags & MESSAGE_NAMED) != 0)
		at += (2 + m->data[0] + 7) & ~(size_t)7;
	cr_assert_neq(m->record.flags & MESSAGE_REMOTE, 0);
	memcpy(&birth, m->data + at, sizeof(birth));
	return birth;
}

static struct xr_rref *
remote(int64_t timeout, uint64_t *corr, struct rref_wire *birth)
{
	const struct wire_message *m;
	struct xr_rref *h = NULL;

	cr_assert_eq(try_remote(1, &h, timeout), XR_OK, "%s", err.text);
	m = wire_sent(MESSAGE_REQUEST, 1);
	cr_assert_not_null(m);
	*corr = m->record.corr;
	*birth = birth_in(m);
	return h;
}

/* What the owner's library or function says confirms the handle. */
Test(rref_call, an_answer_confirms_a_handle_or_ends_it)
{
	static const struct {
		enum xr_status status;
		bool confirms;
	} row[] = {
		{ XR_OK, true },
		{ XR_E_REMOTE, true },
		{ XR_E_NO_FUNCTION, true },
		{ XR_E_SCHEMA, true },
		{ XR_E_PROTO, true },
		{ XR_E_DECODE, true },
		{ XR_E_CANCELLED, true },
		{ XR_E_TIMEOUT, false },
		{ XR_E_NOMEM, false },
		{ XR_E_CLOSED, false },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const struct xr_failure f = { .size = sizeof(f),
			.status = row[i].status,
			.text = "on purpose" };
		struct xr_future *created = NULL;
		struct rref_wire birth;
		struct xr_rref *h;
		uint64_t corr;

		h = remote(HOUR, &corr, &birth);
		cr_assert_eq(xr_rref_created(h, &created), XR_OK);
		if (row[i].status == XR_OK)
			wire_reply(1, MESSAGE_REPLY, corr, xr_value_new_nil());
		else
			wire_reply(1, MESSAGE_ERROR, corr,
				xr_value_new_error(&f));
		cr_expect_eq(xr_future_wait(created, 0, NULL, &err),
			row[i].status, "row %zu", i);
		cr_expect_eq(usable(h, &err),
			row[i].confirms ? XR_OK : row[i].status, "row %zu", i);
		cr_expect_eq(xr_rref_confirmed(h), row[i].confirms);
		cr_expect_eq(FIGURE(PENDING_USERS), 0);
		if (!row[i].confirms)
			cr_expect(says(MESSAGE_RREF_USER_DELETE, 1, birth,
				RREF_UNMADE));
		cr_expect_eq(wire_left(), 0);
		/* The call came nevertheless: it has ended. */
		say(1, MESSAGE_RREF_CONFIRM, birth);
		if (!row[i].confirms)
			cr_expect(says(MESSAGE_RREF_USER_DELETE, 1, birth,
				RREF_UNMADE));
		cr_expect_eq(wire_left(), 0);
		xr_rref_unref(h);
		if (row[i].confirms)
			cr_expect(says(MESSAGE_RREF_USER_DELETE, 1, birth, 0));
		else
			cr_expect(says(MESSAGE_RREF_USER_DELETE, 1, birth,
				RREF_UNMADE));
		cr_expect_eq(wire_left(), 0);
		cr_expect_eq(FIGURE(USERS), 0);
		xr_future_unref(created);
	}
}

/* One that is confirmed already does not fail with its call. */
Test(rref_call, a_confirmed_handle_stays)
{
	const struct xr_failure f = { .size = sizeof(f),
		.status = XR_E_TIMEOUT,
		.text = "on purpose" };
	struct rref_wire birth;
	struct xr_rref *h;
	uint64_t corr;

	h = remote(HOUR, &corr, &birth);
	say(1, MESSAGE_RREF_CONFIRM, birth);
	wire_reply(1, MESSAGE_ERROR, corr, xr_value_new_error(&f));
	cr_expect_eq(usable(h, &err), XR_OK);
	cr_expect_eq(wire_left(), 0);
	xr_rref_unref(h);
	cr_expect(says(MESSAGE_RREF_USER_DELETE, 1, birth, 0));
}

Test(rref_call, a_handle_without_a_word_of_its_owner_ends)
{
	struct xr_rref *late, *later, *never, *confirmed;
	struct rref_wire birth[4];
	struct xr_future *created = NULL;
	int64_t now = clock_now(), next;
	uint64_t corr[4];

	late = remote(HOUR, &corr[0], &birth[0]);
	later = remote(3 * HOUR, &corr[1], &birth[1]);
	never = remote(XR_TIMEOUT_NEVER, &corr[2], &birth[2]);
	confirmed = remote(HOUR, &corr[3], &birth[3]);
	say(1, MESSAGE_RREF_CONFIRM, birth[3]);
	cr_assert_eq(xr_rref_created(late, &created), XR_OK);
	next = rref_expire(now);
	cr_expect(next >= now + HOUR && next < now + 2 * HOUR);
	cr_expect_eq(FIGURE(PENDING_USERS), 3);
	next = rref_expire(now + 2 * HOUR);
	cr_expect(next >= now + 3 * HOUR && next < now + 4 * HOUR);
	cr_expect_eq(usable(late, &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text,
		"no word from one (1) of a remote call in time");
	cr_expect_eq(xr_future_wait(created, 0, NULL, &err), XR_E_TIMEOUT);
	cr_expect(says(MESSAGE_RREF_USER_DELETE, 1, birth[0], RREF_UNMADE));
	cr_expect_eq(wire_sent(MESSAGE_CANCEL, 1)->record.corr, corr[0]);
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(usable(later, &err), XR_OK);
	cr_expect_eq(usable(confirmed, &err), XR_OK);
	cr_expect_eq(rref_expire(now + 4 * HOUR), INT64_MAX);
	cr_expect_eq(usable(later, &err), XR_E_TIMEOUT);
	cr_expect_eq(usable(never, &err), XR_OK);
	cr_expect_eq(FIGURE(PENDING_USERS), 1);
	xr_future_unref(created);
	xr_rref_unref(late);
	xr_rref_unref(later);
	xr_rref_unref(never);
	xr_rref_unref(confirmed);
}

/* Of one that was sent its handle says what became of it. */
Test(rref_call, a_remote_call_without_memory_leaves_nothing)
{
	bool short_of_it = true;
	unsigned at, failed = 0;

	for (at = 1; short_of_it && at < 60; at++) {
		struct xr_rref *h = NULL;
		struct rref_wire birth;
		enum xr_status status;
		const struct wire_message *m;

		err = (struct xr_error){ 0 };
		was_short = false;
		until_short = at;
		status = try_remote(1, &h, HOUR);
		until_short = 0;
		short_of_it = was_short;
		m = wire_sent(MESSAGE_REQUEST, 1);
		if (status == XR_OK) {
			cr_assert_not_null(m);
			birth = birth_in(m);
			say(1, MESSAGE_RREF_CONFIRM, birth);
			cr_expect(xr_rref_confirmed(h));
			xr_rref_unref(h);
		} else {
			cr_expect_eq(status, XR_E_NOMEM, "%u: %s", at,
				err.text);
			cr_expect_neq(err.text[0], '\0', "%u", at);
			cr_expect_null(h);
			failed++;
		}
		cr_expect_eq(FIGURE(USERS), 0, "%u", at);
		cr_expect_eq(FIGURE(PENDING_USERS), 0, "%u", at);
	}
	cr_expect(failed > 5 && at < 60, "%u of %u", failed, at);
}

/* Its handle has failed as the call has. */
Test(rref_call, a_remote_call_that_is_not_sent_makes_its_handle_fail)
{
	static const enum xr_status row[] = { XR_E_NOMEM, XR_E_PEER_LOST };

	for (int i = 0; i < 2; i++) {
		struct xr_future *created = NULL;
		struct xr_rref *h = NULL;

		if (i == 0)
			wire_refuse(XR_E_NOMEM, UINT_MAX);
		else
			agent_lose(wire_peer[1], "on purpose");
		cr_expect_eq(try_remote(1, &h, HOUR), XR_OK);
		cr_assert_not_null(h);
		cr_expect_eq(usable(h, &err), row[i], "%s", err.text);
		cr_expect_eq(xr_rref_created(h, &created), XR_OK);
		cr_expect_eq(xr_future_wait(created, 0, NULL, &err), row[i]);
		xr_future_unref(created);
		xr_rref_unref(h);
		cr_expect_eq(FIGURE(USERS), 0);
	}
}

/* --- calls to oneself --------------------------------------------------------------- */

struct limited {
	uint32_t flags;
	bool begun, made;
	bool late; /* after its time */
};

/* The call has ended late; its function may run yet, and its value is dropped. */
static void
expect_late(struct xr_rref *h, struct xr_future *f,
	const struct rref_wire *birth, struct xr_value *value)
{
	struct xr_value *v = NULL;

	cr_expect_eq(xr_future_wait(f, 0, NULL, &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text,
		"a remote call to oneself has not begun in time");
	cr_expect_eq(xr_rref_local(h, 0, &v, &err), XR_E_TIMEOUT);
	rref_made(birth, value, false);
	cr_expect_eq(xr_rref_local(h, 0, &v, &err), XR_E_TIMEOUT);
}

static void
expect_limited(const struct limited *row, struct xr_value *value)
{
	struct xr_future *f = xr_future_new(NULL);
	int64_t now = clock_now(), next;
	struct rref_wire birth;
	struct xr_rref *h = own_born(&birth);

	birth.flags = row->flags;
	cr_assert_eq(rref_asked(h, xr_future_ref(f), HOUR), XR_OK);
	cr_expect_eq(rref.births, 1);
	pthread_mutex_lock(&rref.lock);
	owned_limit(h->owned, f, 0);
	pthread_mutex_unlock(&rref.lock);
	cr_expect_eq(rref.births, 1, "once");
	if (row->begun)
		cr_expect_eq(rref_begin(agent_self(), &birth), XR_OK);
	if (row->made)
		rref_made(&birth, value, false);
	next = rref_expire(now);
	cr_expect_eq(next != INT64_MAX, row->late);
	cr_expect(!xr_future_done(f));
	cr_expect_eq(rref.births, row->late);
	rref_expire(now + 2 * HOUR);
	cr_expect_eq(rref.births, 0);
	cr_expect_eq(xr_future_done(f), row->late);
	if (row->late) {
		expect_late(h, f, &birth, value);
	} else {
		rref_made(&birth, value, false);
		xr_future_set(f, xr_value_ref(value));
	}
	xr_future_unref(f);
	xr_rref_unref(h);
}

/* Until when a call to oneself has to begin. */
Test(rref_call, a_call_to_oneself_that_begins_late_fails)
{
	static const struct limited row[] = {
		{ 0, false, false, true },
		{ 0, true, false, false },
		{ 0, true, true, false },
		{ RREF_LATE, true, false, true },
		{ RREF_LATE, true, true, false },
		{ RREF_LATE, false, false, true },
	};
	struct xr_value *seven = xr_value_new_i64(7);
	struct rref_wire any;
	struct xr_rref *other = own_born(&any);

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		expect_limited(&row[i], seven);
		cr_expect_eq(rref.owned.count, 1, "row %zu", i);
	}
	xr_rref_unref(other);
	xr_value_unref(seven);
	cr_expect_eq(rref.owned.count, 0);
}

Test(rref_call, the_next_limit_is_the_earliest)
{
	static const int64_t limits[] = { 3 * HOUR, HOUR, 2 * HOUR, INT64_MAX };
	struct xr_future *f[4];
	struct xr_rref *h[4];
	struct rref_wire birth;
	int64_t now = clock_now(), next;

	for (int i = 0; i < 4; i++) {
		h[i] = own_born(&birth);
		f[i] = xr_future_new(NULL);
		cr_assert_eq(rref_asked(h[i], xr_future_ref(f[i]), limits[i]),
			XR_OK);
	}
	cr_expect_eq(rref.births, 3);
	next = rref_expire(now);
	cr_expect(next >= now + HOUR && next < now + 2 * HOUR);
	/* One that nobody has any more has no limit. */
	xr_rref_unref(h[1]);
	cr_expect_eq(rref.births, 2);
	next = rref_expire(now);
	cr_expect(next >= now + 2 * HOUR && next < now + 3 * HOUR);
	for (int i = 0; i < 4; i++) {
		future_fail(f[i], XR_E_CANCELLED, "on purpose");
		xr_future_unref(f[i]);
	}
	xr_rref_unref(h[0]);
	xr_rref_unref(h[2]);
	xr_rref_unref(h[3]);
	cr_expect_eq(rref.births, 0);
	cr_expect_eq(rref_expire(now), INT64_MAX);
}

/* What oneself is sent keeps the value on its way, and no longer. */
Test(rref_call, a_reference_to_oneself_comes_back)
{
	struct xr_rref *h = NULL, *back;
	struct refs_out out = { 0 };
	struct rref_wire wire, gone = word(0, 77, 0, 78, 0);
	struct refs_in *refs = NULL;

	cr_assert_eq(xr_rref_from_value(xr_value_new_i64(7), &h, &err), XR_OK);
	cr_assert_eq(refs_out_begin(&out, agent_self(), &err), XR_OK);
	cr_assert_eq(refs_out_add(&out, h, (uint8_t *)&wire, &err), XR_OK);
	refs_out_fini(&out);
	xr_rref_unref(h);
	cr_expect_eq(FIGURE(FORKS), 1);
	/* Without memory for its handle nothing is left of it. */
	for (unsigned at = 2; at <= 3; at++) {
		until_short = at;
		cr_expect_eq(try_refs_from(0, &gone, 1, &refs, &err),
			XR_E_NOMEM);
		cr_expect_eq(until_short, 0);
		cr_expect_eq(rref.owned.count, 1);
	}
	back = handle_from(0, wire);
	cr_expect(xr_rref_is_owner(back));
	cr_expect_eq(FIGURE(FORKS), 0);
	cr_expect_eq(wire_left(), 0);
	xr_rref_unref(back);
	cr_expect_eq(rref.owned.count, 0);
	/* From a peer: it is told. */
	back = handle_from(2, gone);
	cr_expect(says(MESSAGE_RREF_CHILD_ACCEPT, 2, gone, 0));
	xr_rref_unref(back);
	cr_expect_eq(rref.owned.count, 0);
}
