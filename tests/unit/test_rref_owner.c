/* SPDX-License-Identifier: Apache-2.0 */
/* test_rref_owner.c - values of this process, of which peers have handles. */
#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "tests/unit/lock_watch.h"
#include "tests/unit/rref_rig.h"

TestSuite(rref_owner, .timeout = 60, .init = wire_begin, .fini = wire_end);

static struct xr_error err;

/* --- answers ------------------------------------------------------------------ */

/* fetch() - peer @from asks for the value, through fork @wire. */
static void
fetch(uint32_t from, uint64_t corr, struct rref_wire wire)
{
	wire_say(from, MESSAGE_RREF_FETCH, corr, &wire, sizeof(wire));
}

/* answer_to() - what question @corr of peer @to was answered; XR_E_AGAIN if it was
 * not. */
static enum xr_status
answer_to(uint32_t to, uint64_t corr, int64_t *n, char *text)
{
	struct xr_failure f = { .size = sizeof(f) };
	struct xr_value *v = wire_answer(to, corr);

	if (v == NULL)
		return XR_E_AGAIN;
	*n = xr_value_kind(v) == XR_NIL ? 0 : -1;
	xr_value_get_i64(v, n);
	if (xr_value_failure(v, &f) == XR_OK)
		snprintf(text, 256, "%s", f.text);
	xr_value_unref(v);
	return f.status;
}

#define ANSWERED(to, corr, number) \
	do { \
		int64_t n_ = -1; \
		cr_expect_eq(answer_to(to, corr, &n_, (char[256]){ 0 }), \
			XR_OK); \
		cr_expect_eq(n_, number); \
	} while (0)

#define FAILED(to, corr, status, words) \
	do { \
		char text_[256] = ""; \
		int64_t n_; \
		cr_expect_eq(answer_to(to, corr, &n_, text_), status); \
		cr_expect_not_null(strstr(text_, words), "%s", text_); \
	} while (0)

#define NOT_ANSWERED(to) \
	cr_expect_eq(answer_to(to, 0, &(int64_t){ 0 }, (char[256]){ 0 }), \
		XR_E_AGAIN)

static void
made(struct rref_wire birth, int64_t n)
{
	struct xr_value *v = xr_value_new_i64(n);

	rref_made(&birth, v, false);
	xr_value_unref(v);
}

/* --- forks -------------------------------------------------------------------- */

Test(rref_owner, a_fork_is_confirmed_each_time)
{
	struct rref_wire fork = word(2, 5, 2, 6, 0);

	for (int i = 0; i < 2; i++) {
		say(1, MESSAGE_RREF_FORK_REQUEST, fork);
		cr_expect(says(MESSAGE_RREF_CONFIRM, 1, fork, 0));
		cr_expect_eq(FIGURE(FORKS), 1);
		cr_expect_eq(FIGURE(OWNERS), 1);
	}
	/* Only its user ends it. */
	say(2, MESSAGE_RREF_USER_DELETE, fork);
	cr_expect_eq(FIGURE(FORKS), 1);
	say(1, MESSAGE_RREF_USER_DELETE, fork);
	cr_expect_eq(FIGURE(FORKS), 0);
	cr_expect_eq(FIGURE(OWNERS), 0);
	say(1, MESSAGE_RREF_USER_DELETE, fork);
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(rref.owned.count, 0);
}

Test(rref_owner, a_fork_without_memory_is_refused)
{
	struct rref_wire fork = word(2, 5, 2, 6, 0);
	const struct rref_gid id = gid(2, 5);

	for (unsigned at = 1; at <= 2; at++) {
		until_short = at;
		rref_deliver(MESSAGE_RREF_FORK_REQUEST, wire_peer[1], &fork);
		cr_expect_eq(until_short, 0);
		cr_expect(says(MESSAGE_RREF_CONFIRM, 1, fork, RREF_UNMADE));
		cr_expect_eq(FIGURE(FORKS), 0);
		cr_expect_null(owned_find(&id));
	}
	say(1, MESSAGE_RREF_FORK_REQUEST, fork);
	cr_expect(says(MESSAGE_RREF_CONFIRM, 1, fork, 0));
}

Test(rref_owner, what_is_no_reference_ends_its_peer)
{
	struct rref_wire fork = word(2, 5, 2, 6, 0);
	char more[sizeof(fork) + 1] = { 0 };

	memcpy(more, &fork, sizeof(fork));
	wire_say(1, MESSAGE_RREF_FORK_REQUEST, 0, &fork, sizeof(fork) - 1);
	wire_is_lost(1, "no reference where one belongs");
	wire_say(2, MESSAGE_RREF_USER_DELETE, 0, more, sizeof(more));
	wire_is_lost(2, "no reference where one belongs");
	cr_expect_eq(FIGURE(FORKS), 0);
	/* A fetch is not answered. */
	wire_say(3, MESSAGE_RREF_FETCH, 1, &fork, sizeof(fork) - 1);
	wire_say(3, MESSAGE_RREF_FETCH, 1, more, sizeof(more));
	cr_expect_eq(FIGURE(PENDING_FUTURES), 0);
	cr_expect_eq(wire_left(), 0);
}

/* --- calls that make values ---------------------------------------------------- */

Test(rref_owner, a_value_is_made_once)
{
	struct rref_wire birth = word(1, 5, 1, 6, 0);

	cr_expect_eq(rref_begin(wire_peer[1], &birth), XR_OK);
	cr_expect(says(MESSAGE_RREF_CONFIRM, 1, birth, 0));
	cr_expect_eq(rref_begin(wire_peer[1], &birth), XR_E_EXISTS);
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(FIGURE(OWNERS), 1);
	fetch(1, 11, birth);
	fetch(2, 12, birth);
	cr_expect_eq(FIGURE(PENDING_FUTURES), 2);
	NOT_ANSWERED(1);
	made(birth, 42);
	ANSWERED(1, 11, 42);
	ANSWERED(2, 12, 42);
	cr_expect_eq(FIGURE(PENDING_FUTURES), 0);
	/* Again is no harm. */
	made(birth, 43);
	fetch(1, 13, birth);
	ANSWERED(1, 13, 42);
	birth.flags = RREF_ONLY_CREATED;
	fetch(1, 14, birth);
	ANSWERED(1, 14, 0);
	birth.flags = 0;
	say(1, MESSAGE_RREF_USER_DELETE, birth);
	cr_expect_eq(rref.owned.count, 0);
	cr_expect_eq(wire_left(), 0);
	made(birth, 44); /* nobody has it */
	cr_expect_eq(rref.owned.count, 0);
}

/* As long as its function has not answered it stays. */
Test(rref_owner, a_value_that_is_being_made_stays)
{
	struct rref_wire birth = word(1, 5, 1, 6, 0);

	cr_expect_eq(rref_begin(wire_peer[1], &birth), XR_OK);
	say(1, MESSAGE_RREF_USER_DELETE, birth);
	cr_expect_eq(FIGURE(FORKS), 0);
	cr_expect_eq(FIGURE(OWNERS), 1);
	cr_expect_eq(rref.owned.count, 1);
	made(birth, 1);
	cr_expect_eq(FIGURE(OWNERS), 0);
	cr_expect_eq(rref.owned.count, 0);
}

Test(rref_owner, a_value_is_confirmed_late_if_its_maker_asks_for_it)
{
	struct rref_wire birth = word(1, 5, 1, 6, RREF_LATE);

	cr_expect_eq(rref_begin(wire_peer[1], &birth), XR_OK);
	cr_expect_eq(wire_left(), 0);
	made(birth, 42);
	birth.flags = 0;
	cr_expect(says(MESSAGE_RREF_CONFIRM, 1, birth, 0));
	/* One that is gone by then is not. */
	birth = word(1, 7, 1, 8, RREF_LATE);
	cr_expect_eq(rref_begin(wire_peer[1], &birth), XR_OK);
	say(1, MESSAGE_RREF_USER_DELETE, birth);
	made(birth, 42);
	cr_expect_eq(wire_left(), 0);
}

Test(rref_owner, a_call_without_memory_makes_no_value)
{
	struct rref_wire birth = word(1, 5, 1, 6, 0);

	for (unsigned at = 1; at <= 2; at++) {
		until_short = at;
		cr_expect_eq(rref_begin(wire_peer[1], &birth), XR_E_NOMEM);
		cr_expect_eq(until_short, 0);
		cr_expect_eq(rref.owned.count, 0);
		cr_expect_eq(FIGURE(FORKS), 0);
		cr_expect_eq(wire_left(), 0);
	}
	cr_expect_eq(rref_begin(wire_peer[1], &birth), XR_OK);
	/* What it gave was lost. */
	fetch(1, 1, birth);
	rref_made(&birth, NULL, false);
	FAILED(1, 1, XR_E_NOMEM, "out of memory");
}

/* Of a value that nobody has begun to make, the end of the call is the end. */
Test(rref_owner, a_call_that_failed_makes_its_value_fail)
{
	struct rref_wire birth = word(1, 5, 1, 6, 0),
			 fork = word(1, 5, 1, 7, 0), no = birth;

	no.flags = RREF_UNMADE;
	say(2, MESSAGE_RREF_FORK_REQUEST, fork);
	fetch(2, 1, fork);
	cr_expect_eq(FIGURE(PENDING_FUTURES), 1);
	/* The end of a handle is not the end of its call. */
	say(1, MESSAGE_RREF_USER_DELETE, birth);
	NOT_ANSWERED(2);
	say(1, MESSAGE_RREF_USER_DELETE, no);
	FAILED(2, 1, XR_E_CANCELLED,
		"the call of one (1) that was to make the value failed");
	fetch(2, 2, fork);
	FAILED(2, 2, XR_E_CANCELLED, "was to make the value");
	cr_expect_eq(FIGURE(PENDING_FUTURES), 0);
	say(2, MESSAGE_RREF_USER_DELETE, fork);
	cr_expect_eq(rref.owned.count, 0);
	say(1, MESSAGE_RREF_USER_DELETE, no);
	cr_expect_eq(rref.owned.count, 0);
}

/* If its function runs, only those that asked through that handle hear of it. */
Test(rref_owner, a_call_that_failed_ends_what_its_handle_asked)
{
	struct rref_wire birth = word(1, 5, 1, 6, 0),
			 fork = word(1, 5, 1, 7, 0), no = birth;

	no.flags = RREF_UNMADE;
	cr_expect_eq(rref_begin(wire_peer[1], &birth), XR_OK);
	say(2, MESSAGE_RREF_FORK_REQUEST, fork);
	fetch(1, 1, birth);
	fetch(2, 2, fork);
	fetch(1, 3, birth);
	/* It is not of this peer. */
	say(2, MESSAGE_RREF_USER_DELETE, no);
	cr_expect_eq(FIGURE(PENDING_FUTURES), 3);
	say(1, MESSAGE_RREF_USER_DELETE, no);
	FAILED(1, 1, XR_E_CANCELLED, "was to make the value");
	FAILED(1, 3, XR_E_CANCELLED, "was to make the value");
	cr_expect_eq(FIGURE(PENDING_FUTURES), 1);
	NOT_ANSWERED(2);
	made(birth, 42);
	ANSWERED(2, 2, 42);
}

/* --- fetches -------------------------------------------------------------------- */

static struct rref_wire
own_word(struct xr_rref *h, uint64_t fork)
{
	struct xr_rref_id id;

	xr_rref_id(h, &id, NULL);
	return word(0, id.local, 2, fork, 0);
}

Test(rref_owner, a_value_that_is_gone_is_not_found)
{
	struct rref_wire wire, before;
	struct xr_rref *h = NULL;

	cr_assert_eq(xr_rref_from_value(xr_value_new_i64(7), &h, &err), XR_OK);
	wire = own_word(h, 1);
	fetch(2, 1, wire);
	ANSWERED(2, 1, 7);
	xr_rref_unref(h);
	fetch(2, 2, wire);
	FAILED(2, 2, XR_E_NOTFOUND, "self (0) has no such reference, any more");
	cr_expect_eq(rref.owned.count, 0);
	/* Of another life, and of another worker, it may come yet. */
	before = wire;
	before.id_incarnation--;
	fetch(2, 3, before);
	cr_expect_eq(FIGURE(PENDING_FUTURES), 1);
	before = wire;
	before.id_worker = 3;
	fetch(2, 4, before);
	cr_expect_eq(FIGURE(PENDING_FUTURES), 2);
	NOT_ANSWERED(2);
}

Test(rref_owner, a_fetch_ends_with_its_time)
{
	struct rref_wire wire = word(1, 5, 1, 6, 0), later = wire;
	int64_t now = clock_now(), next;

	wire.timeout = (uint64_t)HOUR;
	later.timeout = (uint64_t)(3 * HOUR);
	fetch(1, 1, later);
	fetch(2, 2, wire);
	fetch(2, 3, later);
	next = rref_expire(now);
	cr_expect(next >= now + HOUR && next < now + 2 * HOUR);
	NOT_ANSWERED(2);
	next = rref_expire(now + 2 * HOUR);
	cr_expect(next >= now + 3 * HOUR && next < now + 4 * HOUR);
	FAILED(2, 2, XR_E_TIMEOUT, "the value is not there yet");
	NOT_ANSWERED(1);
	cr_expect_eq(rref_expire(now + 5 * HOUR), INT64_MAX);
	FAILED(1, 1, XR_E_TIMEOUT, "not there yet");
	FAILED(2, 3, XR_E_TIMEOUT, "not there yet");
	cr_expect_eq(rref.owned.count, 0);
	cr_expect_eq(rref_expire(now), INT64_MAX);
	/* One alone ends, too. */
	fetch(1, 4, wire);
	next = rref_expire(now);
	cr_expect(next >= now + HOUR && next < now + 2 * HOUR);
	cr_expect_eq(rref_expire(next - 1), next);
	NOT_ANSWERED(1);
	cr_expect_eq(rref_expire(next), INT64_MAX);
	FAILED(1, 4, XR_E_TIMEOUT, "the value is not there yet");
	cr_expect_eq(rref.owned.count, 0);
}

/* A limit goes with the value that it was for. */
Test(rref_owner, a_value_that_goes_takes_its_limit_along)
{
	struct rref_gid id = gid(1, 5);
	struct xr_future *asked = xr_future_new(NULL);
	struct rref_todo todo;
	struct owned *o;

	cr_assert_not_null(asked);
	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	o = owned_new(&id);
	cr_assert_not_null(o);
	o->handles = 1;
	owned_limit(o, asked, INT64_MAX);
	cr_expect_eq(rref.births, 1);
	owned_look(o, &todo);
	cr_expect_eq(owned_find(&id), o);
	o->handles = 0;
	owned_look(o, &todo);
	cr_expect_eq(rref.births, 0);
	cr_expect_null(owned_find(&id));
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
	xr_future_unref(asked);
}

static void
object_came(void *ctx, struct xr_value *object, struct xr_value *error)
{
	struct xr_value **got = ctx;

	got[0] = object;
	got[1] = error;
}

/* Only that peer, that question, and no method. */
Test(rref_owner, a_cancelled_fetch_is_not_answered)
{
	struct rref_wire one = word(1, 5, 1, 6, 0), two = word(1, 7, 1, 8, 0);
	struct xr_value *got[2] = { NULL, NULL };

	cr_expect_eq(rref_begin(wire_peer[1], &one), XR_OK);
	cr_expect_eq(rref_begin(wire_peer[1], &two), XR_OK);
	wire_forget();
	rref_object(wire_peer[1], &two, object_came, got);
	fetch(1, 1, one);
	fetch(1, 2, two);
	cr_expect_eq(FIGURE(PENDING_FUTURES), 3);
	wire_say(2, MESSAGE_CANCEL, 1, NULL, 0);
	wire_say(1, MESSAGE_CANCEL, 3, NULL, 0);
	wire_say(1, MESSAGE_CANCEL, 0, NULL, 0); /* a method has no number */
	cr_expect_eq(FIGURE(PENDING_FUTURES), 3);
	wire_say(1, MESSAGE_CANCEL, 2, NULL, 0);
	cr_expect_eq(FIGURE(PENDING_FUTURES), 2);
	made(two, 42);
	cr_expect_eq(wire_left(), 0);
	cr_assert_not_null(got[0]);
	xr_value_unref(got[0]);
	made(one, 41);
	ANSWERED(1, 1, 41);
	wire_say(1, MESSAGE_CANCEL, 1, NULL, 0);
	cr_expect_eq(FIGURE(PENDING_FUTURES), 0);
	/* Nobody else has a handle: the value goes with its last fetch. */
	fetch(2, 9, word(3, 5, 3, 6, 0));
	wire_say(2, MESSAGE_CANCEL, 9, NULL, 0);
	cr_expect_null(owned_find(&(struct rref_gid[]){ gid(3, 5) }[0]));
}

Test(rref_owner, an_answer_without_memory_says_so)
{
	struct rref_wire birth = word(1, 5, 1, 6, 0);
	unsigned at = 0, errors = 0;
	bool whole = false;

	cr_expect_eq(rref_begin(wire_peer[1], &birth), XR_OK);
	made(birth, 42);
	wire_forget();
	while (!whole && at < 30) {
		struct xr_record record = { .kind = MESSAGE_RREF_FETCH,
			.corr = ++at };
		struct xr_body body = { .data = &birth, .len = sizeof(birth) };
		char text[256] = "";
		int64_t n = -1;
		enum xr_status status;

		was_short = false;
		until_short = at;
		rref_on_fetch(wire_peer[2], &record, &body);
		until_short = 0;
		status = answer_to(2, at, &n, text);
		whole = !was_short;
		if (status == XR_E_NOMEM)
			errors++;
		cr_expect(status == XR_E_NOMEM  ? text[0] != '\0' :
				status == XR_OK ? n == 42 :
						  status == XR_E_AGAIN);
		cr_expect(!whole || status == XR_OK);
	}
	cr_expect(at > 2 && at < 30, "%u", at);
	cr_expect_gt(errors, 0);
	cr_expect_eq(FIGURE(PENDING_FUTURES), 0);
}

/* A method waits for its object; if it cannot, it fails. */
Test(rref_owner, a_method_without_memory_fails)
{
	struct rref_wire birth = word(1, 5, 1, 6, 0);
	struct xr_failure f = { .size = sizeof(f) };
	struct xr_value *got[2] = { NULL, NULL };

	cr_expect_eq(rref_begin(wire_peer[1], &birth), XR_OK);
	until_short = 1;
	rref_object(wire_peer[1], &birth, object_came, got);
	cr_expect_null(got[0]);
	cr_expect_eq(xr_value_failure(got[1], &f), XR_OK);
	cr_expect_eq(f.status, XR_E_NOMEM);
	xr_value_unref(got[1]);
	cr_expect_eq(FIGURE(PENDING_FUTURES), 0);
}

/* --- peers that are lost ---------------------------------------------------------- */

Test(rref_owner, a_value_fails_with_the_peer_that_was_to_make_it)
{
	struct rref_wire of_one = word(1, 5, 1, 6, 0), before = of_one,
			 of_two = word(2, 5, 2, 6, 0),
			 begun = word(1, 7, 1, 8, 0);

	before.id_incarnation--;
	before.id_local = 50;
	cr_expect_eq(rref_begin(wire_peer[1], &begun), XR_OK);
	wire_forget();
	fetch(3, 1, of_one);
	fetch(3, 2, before);
	fetch(3, 3, of_two);
	fetch(3, 4, begun);
	fetch(1, 5, begun);
	cr_expect_eq(FIGURE(FORKS), 1);
	agent_lose(wire_peer[1], "on purpose");
	FAILED(3, 1, XR_E_PEER_LOST,
		"lost one (1), which was to make the value");
	NOT_ANSWERED(3);
	NOT_ANSWERED(1);
	cr_expect_eq(FIGURE(FORKS), 0);
	cr_expect_eq(FIGURE(PENDING_FUTURES), 3);
	made(begun, 42);
	ANSWERED(3, 4, 42);
	cr_expect_eq(FIGURE(PENDING_FUTURES), 2);
}

Test(rref_owner, only_the_lost_peer_loses_its_handles)
{
	struct rref_wire birth = word(1, 5, 1, 6, 0),
			 fork = word(1, 5, 1, 7, 0);

	cr_expect_eq(rref_begin(wire_peer[1], &birth), XR_OK);
	say(2, MESSAGE_RREF_FORK_REQUEST, fork);
	made(birth, 42);
	cr_expect_eq(FIGURE(FORKS), 2);
	agent_lose(wire_peer[1], "on purpose");
	cr_expect_eq(FIGURE(FORKS), 1);
	fetch(2, 1, fork);
	ANSWERED(2, 1, 42);
	agent_lose(wire_peer[2], "on purpose");
	cr_expect_eq(FIGURE(FORKS), 0);
	cr_expect_eq(rref.owned.count, 0);
}

/* --- the end ------------------------------------------------------------------------ */

static struct xr_rref *kept;

TestSuite(rref_end, .timeout = 60, .init = wire_begin);

Test(rref_end, who_waits_hears_of_the_end)
{
	struct rref_wire birth = word(1, 5, 1, 6, 0);
	struct xr_value *got[2] = { NULL, NULL }, *v = NULL;
	struct xr_failure f = { .size = sizeof(f) };
	struct xr_future *future = NULL;
	struct xr_rref *h;

	cr_expect_eq(rref_begin(wire_peer[1], &birth), XR_OK);
	/* One that comes back to its owner. */
	h = handle_from(1, word(0, 99, 1, 100, 0));
	cr_assert(xr_rref_is_owner(h));
	cr_expect(xr_rref_confirmed(h));
	cr_expect_eq(xr_rref_fetch_async(h, XR_TIMEOUT_NEVER, &future, &err),
		XR_OK);
	rref_object(wire_peer[1], &birth, object_came, got);
	fetch(1, 1, birth);
	fetch(2, 1, birth);
	wire_forget();
	cr_expect_eq(FIGURE(PENDING_FUTURES), 4);
	wire_end();
	cr_expect_eq(xr_future_wait(future, 0, &v, &err), XR_E_CLOSED);
	xr_future_unref(future);
	cr_expect_eq(xr_value_failure(got[1], &f), XR_OK);
	cr_expect_eq(f.status, XR_E_CLOSED);
	cr_expect_null(got[0]);
	xr_value_unref(got[1]);
	/* No peer is told. */
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(rref.owned.count, 0);
	cr_expect_eq(rref.forks.count, 0);
	cr_expect_eq(xr_rref_fetch(h, 0, &v, &err), XR_E_CLOSED);
	cr_expect_not_null(strstr(err.text, "when the agent was shut down"));
	xr_rref_unref(h);
}

/* Nor does the next agent know it. */
Test(rref_end, a_handle_ends_with_its_agent)
{
	struct rref_wire wire = word(1, 5, 1, 6, RREF_CONFIRMED),
			 pending = word(1, 7, 2, 8, 0);
	struct xr_rref *h = handle_from(1, wire), *p = handle_from(2, pending);
	struct xr_value *v = NULL;

	cr_assert_eq(xr_rref_from_value(xr_value_new_i64(7), &kept, &err),
		XR_OK);
	wire_end();
	cr_expect_eq(usable(h, &err), XR_E_CLOSED);
	cr_expect_eq(xr_rref_fetch(h, 0, &v, &err), XR_E_CLOSED);
	cr_expect_eq(xr_rref_from_value(xr_value_new_i64(7), &h, &err),
		XR_E_STATE);
	wire_begin();
	cr_expect_eq(xr_rref_fetch(h, 0, &v, &err), XR_E_CLOSED);
	cr_expect_eq(xr_rref_fetch(kept, 0, &v, &err), XR_E_CLOSED);
	cr_expect_eq(FIGURE(USERS), 0);
	cr_expect_eq(FIGURE(PENDING_USERS), 0);
	xr_rref_unref(h);
	xr_rref_unref(p);
	xr_rref_unref(kept);
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(FIGURE(PENDING_USERS), 0);
	wire_end();
}

Test(rref_end, a_graceful_end_says_what_is_left)
{
	struct rref_wire wire = word(1, 5, 1, 6, RREF_CONFIRMED),
			 pending = word(1, 7, 2, 8, 0);
	struct xr_rref *h = handle_from(1, wire), *p = handle_from(2, pending),
		       *lost = handle_from(2, word(3, 1, 2, 1, 0));
	struct rref_wire birth = word(2, 9, 2, 10, 0);
	char text[256];

	agent_lose(wire_peer[3], "on purpose");
	cr_expect_eq(rref_begin(wire_peer[2], &birth), XR_OK);
	made(birth, 1);
	wire_forget();
	cr_expect_eq(rref_leaks(text, sizeof(text)), 3);
	cr_expect_not_null(strstr(text, "(1, 5) by fork (1, 6)"), "%s", text);
	cr_expect_not_null(strstr(text, "(1, 7) by fork (2, 8)"), "%s", text);
	cr_expect_not_null(strstr(text, "(2, 9) by fork (2, 10)"), "%s", text);
	cr_expect_not_null(strstr(text, "), "), "%s", text);
	cr_expect_eq(rref_leaks(text, 8), 3);
	cr_expect_lt(strlen(text), 8);
	cr_expect_eq(rref_settle(true, clock_now(), &err), XR_E_TIMEOUT);
	/* By now none is pending: all were given back. */
	cr_expect_str_eq(err.text,
		"references: 0 are not confirmed, 0 not accepted, and others have 1");
	cr_expect(says(MESSAGE_RREF_USER_DELETE, 1, wire, 0) ||
		says(MESSAGE_RREF_USER_DELETE, 1, wire, 0));
	cr_expect_eq(usable(h, &err), XR_E_CLOSED);
	cr_expect_eq(usable(p, &err), XR_E_CLOSED);
	cr_expect_eq(usable(lost, &err), XR_E_PEER_LOST);
	/* What comes then changes nothing. */
	wire_forget();
	agent_lose(wire_peer[1], "on purpose");
	cr_expect_eq(usable(h, &err), XR_E_CLOSED);
	say(2, MESSAGE_RREF_USER_DELETE, birth);
	cr_expect_eq(rref_settle(true, INT64_MAX, &err), XR_OK);
	cr_expect_eq(rref_figure(RREF_FIGURES), 0);
	xr_rref_unref(h);
	xr_rref_unref(p);
	xr_rref_unref(lost);
	wire_end();
}
