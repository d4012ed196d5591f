/* SPDX-License-Identifier: Apache-2.0 */
/* test_rref_life.c - references from the agent's beginning to its end, and those that
 * calls make. */
#include <sched.h>

#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "tests/unit/lock_watch.h"
#include "tests/unit/rref_rig.h"
#include "worker/rpc/future.h"
#include "worker/rpc/lead_inner.h"

TestSuite(rref_life, .timeout = 60, .init = wire_begin, .fini = wire_end);

static struct xr_error err;

static struct xr_rref *
own(int64_t n)
{
	struct xr_rref *h = NULL;

	cr_assert_eq(xr_rref_from_value(xr_value_new_i64(n), &h, &err), XR_OK);
	return h;
}

static struct xr_rref *
born_for(uint32_t to, struct rref_wire *birth)
{
	struct xr_rref *h = NULL;

	cr_assert_eq(rref_birth(wire_peer[to], birth, &h, &err), XR_OK);
	return h;
}

static enum xr_status
local(struct xr_rref *h)
{
	struct xr_value *v = NULL;
	enum xr_status status = xr_rref_local(h, 0, &v, &err);

	xr_value_unref(v);
	return status;
}

/* --- the agent's life ----------------------------------------------------------- */

Test(rref_life, each_life_counts_its_references_anew)
{
	struct xr_rref_id id, fork;
	struct rref_wire birth;
	struct xr_rref *h;

	for (uint32_t life = 1; life <= 2; life++) {
		cr_expect_eq(rref.life, life);
		cr_expect(rref.open);
		cr_expect_eq(rref.flags, 0);
		for (uint64_t i = 0; i < 3; i++) {
			h = own(7);
			xr_rref_id(h, &id, &fork);
			cr_expect_eq(id.local, i);
			cr_expect_eq(fork.local, i);
			xr_rref_unref(h);
		}
		rref_set_flags(XR_RREF_ACK_ON_DONE);
		h = born_for(1, &birth);
		cr_expect_eq(birth.flags, RREF_LATE);
		cr_expect_eq(birth.id_local, 3);
		cr_expect_eq(birth.fork_local, 4);
		xr_rref_unref(h);
		wire_end();
		cr_expect_not(rref.open);
		wire_begin();
	}
}

#define ENOUGH (2 * GID_FEW + 2) /* for a larger table */

/* What was allocated for large tables is given back. */
Test(rref_life, an_end_empties_the_tables)
{
	static struct xr_rref *h[ENOUGH];
	struct refs_out out = { 0 };
	struct rref_wire wire;

	cr_assert_eq(refs_out_begin(&out, wire_peer[2], &err), XR_OK);
	for (uint64_t i = 0; i < ENOUGH; i++) {
		h[i] = handle_from(1, word(1, i, 1, i, RREF_CONFIRMED));
		cr_assert_eq(refs_out_add(&out, h[i], (uint8_t *)&wire, &err),
			XR_OK);
		say(2, MESSAGE_RREF_FORK_REQUEST, word(2, i, 2, i, 0));
	}
	refs_out_fini(&out);
	cr_expect_not_null(rref.users.bucket);
	cr_expect_not_null(rref.children.bucket);
	cr_expect_not_null(rref.owned.bucket);
	cr_expect_not_null(rref.forks.bucket);
	wire_end();
	cr_expect_null(rref.users.bucket);
	cr_expect_null(rref.children.bucket);
	cr_expect_null(rref.owned.bucket);
	cr_expect_null(rref.forks.bucket);
	cr_expect_eq(rref.pending, 0);
	cr_expect_eq(rref.wanted, 0);
	wire_begin();
	for (uint64_t i = 0; i < ENOUGH; i++)
		xr_rref_unref(h[i]);
}

static struct rref_wire
timed(struct rref_wire wire, int64_t timeout)
{
	wire.timeout = (uint64_t)timeout;
	return wire;
}

/* Of each kind what is due first is told, and of all of them the first. */
Test(rref_life, the_next_that_is_due_is_the_first_of_all)
{
	struct xr_future *asked = xr_future_new(NULL), *of_user;
	struct rref_wire wire = timed(word(1, 5, 1, 6, 0), 4 * HOUR);
	int64_t start = clock_now(), next;
	struct rref_wire birth;
	struct xr_rref *h, *user;

	cr_expect_eq(rref_expire(start), INT64_MAX);
	wire_say(2, MESSAGE_RREF_FETCH, 1, &wire, sizeof(wire));
	next = rref_expire(start);
	cr_expect(next >= start + 4 * HOUR && next < start + 5 * HOUR);
	h = born_for(0, &birth);
	cr_assert_eq(rref_asked(h, xr_future_ref(asked), 3 * HOUR), XR_OK);
	cr_expect_leq(atomic_load(&lead.due), clock_now() + 3 * HOUR);
	next = rref_expire(start);
	cr_expect(next >= start + 3 * HOUR && next < start + 4 * HOUR);
	of_user = xr_future_new(NULL);
	user = born_for(1, &birth);
	cr_assert_eq(rref_asked(user, xr_future_ref(of_user), 2 * HOUR), XR_OK);
	cr_expect_leq(atomic_load(&lead.due), clock_now() + 2 * HOUR);
	next = rref_expire(start);
	cr_expect(next >= start + 2 * HOUR && next < start + 3 * HOUR);
	/* Each ends at its time, and no other. */
	cr_expect_eq(rref_expire(next - 1), next);
	cr_expect_eq(usable(user, &err), XR_OK);
	next = rref_expire(next);
	cr_expect_eq(usable(user, &err), XR_E_TIMEOUT);
	cr_expect(next >= start + 3 * HOUR && next < start + 4 * HOUR);
	cr_expect_not(xr_future_done(asked));
	next = rref_expire(next);
	cr_expect(xr_future_done(asked));
	cr_expect(next >= start + 4 * HOUR && next < start + 5 * HOUR);
	cr_expect(!wire_failed(2, 1, XR_E_TIMEOUT, "not there yet"));
	cr_expect_eq(rref_expire(next), INT64_MAX);
	cr_expect(wire_failed(2, 1, XR_E_TIMEOUT, "not there yet"));
	xr_future_unref(asked);
	xr_future_unref(of_user);
	xr_rref_unref(h);
	xr_rref_unref(user);
}

/* Who waits here hears that the agent is about to end; peers do not. */
Test(rref_life, what_is_abandoned_ends_here_only)
{
	struct rref_wire birth;
	struct xr_rref *h = born_for(0, &birth), *other = born_for(0, &birth);
	struct xr_future *f = NULL, *of_other = NULL;

	birth = timed(birth, INT64_MAX);
	wire_say(2, MESSAGE_RREF_FETCH, 1, &birth, sizeof(birth));
	cr_assert_eq(xr_rref_fetch_async(h, HOUR, &f, &err), XR_OK);
	cr_assert_eq(xr_rref_fetch_async(other, HOUR, &of_other, &err), XR_OK);
	cr_expect_eq(FIGURE(PENDING_FUTURES), 3);
	rref_abandon();
	cr_expect_eq(FIGURE(PENDING_FUTURES), 1);
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(xr_future_wait(f, 0, NULL, &err), XR_E_CLOSED);
	cr_expect_str_eq(err.text, "the agent was shut down");
	cr_expect_eq(xr_future_wait(of_other, 0, NULL, &err), XR_E_CLOSED);
	rref_abandon();
	cr_expect_eq(FIGURE(PENDING_FUTURES), 1);
	xr_future_unref(f);
	xr_future_unref(of_other);
	xr_rref_unref(h);
	xr_rref_unref(other);
}

/* --- a graceful end --------------------------------------------------------------- */

Test(rref_life, an_end_says_how_many_are_left)
{
	struct rref_wire birth = word(1, 5, 1, 6, 0), wire;
	struct xr_rref *h = handle_from(1, word(1, 7, 1, 8, RREF_CONFIRMED));
	struct refs_out out = { 0 };

	cr_expect_eq(rref_settle(true, 0, &err), XR_OK);
	cr_expect_eq(usable(h, &err), XR_E_CLOSED);
	xr_rref_unref(h);
	h = handle_from(1, word(1, 7, 1, 9, RREF_CONFIRMED));
	say(1, MESSAGE_RREF_FORK_REQUEST, birth);
	/* What others have is not waited for unless it is wanted. */
	cr_expect_eq(rref_settle(false, 0, &err), XR_OK);
	cr_expect_eq(rref_settle(true, 0, &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text,
		"references: 0 are not confirmed, 0 not accepted, and others have 1");
	xr_rref_unref(h);
	h = handle_from(1, word(1, 7, 1, 10, RREF_CONFIRMED));
	cr_assert_eq(refs_out_begin(&out, wire_peer[2], &err), XR_OK);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(refs_out_add(&out, h, (uint8_t *)&wire, &err),
			XR_OK);
	cr_expect_eq(rref_settle(false, 0, &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text,
		"references: 0 are not confirmed, 2 not accepted, and others have 1");
	cr_expect_null(atomic_load(&rref.settled));
	refs_out_undo(&out);
	refs_out_fini(&out);
	xr_rref_unref(h);
}

static struct rref_wire to_say;
static enum message_kind kind_to_say;

/* What comes while somebody waits for it. */
static void *
say_it(void *unused)
{
	(void)unused;
	while (atomic_load(&rref.settled) == NULL)
		sched_yield();
	say(1, kind_to_say, to_say);
	return NULL;
}

static enum xr_status
settle_while(bool all, enum message_kind kind, struct rref_wire wire)
{
	enum xr_status status;
	pthread_t thread;

	to_say = wire;
	kind_to_say = kind;
	cr_assert_eq(pthread_create(&thread, NULL, say_it, NULL), 0);
	status = rref_settle(all, INT64_MAX, &err);
	pthread_join(thread, NULL);
	cr_expect_null(atomic_load(&rref.settled));
	return status;
}

Test(rref_life, an_end_waits_for_the_words_of_others)
{
	struct rref_wire pending = word(1, 5, 2, 6, 0),
			 fork = word(1, 9, 1, 10, 0), wire;
	struct xr_rref *h = handle_from(2, pending);
	struct refs_out out = { 0 };

	cr_expect_eq(settle_while(false, MESSAGE_RREF_CONFIRM, pending), XR_OK);
	cr_expect_eq(usable(h, &err), XR_E_CLOSED);
	xr_rref_unref(h);
	h = handle_from(1, word(1, 7, 1, 10, RREF_CONFIRMED));
	cr_assert_eq(refs_out_begin(&out, wire_peer[1], &err), XR_OK);
	cr_assert_eq(refs_out_add(&out, h, (uint8_t *)&wire, &err), XR_OK);
	cr_expect_eq(settle_while(false, MESSAGE_RREF_CHILD_ACCEPT, wire),
		XR_OK);
	refs_out_fini(&out);
	xr_rref_unref(h);
	say(1, MESSAGE_RREF_FORK_REQUEST, fork);
	cr_expect_eq(settle_while(true, MESSAGE_RREF_USER_DELETE, fork), XR_OK);
}

static void *
lose_it(void *unused)
{
	(void)unused;
	while (atomic_load(&rref.settled) == NULL)
		sched_yield();
	agent_lose(wire_peer[1], "on purpose");
	return NULL;
}

Test(rref_life, an_end_does_not_wait_for_who_is_lost)
{
	struct xr_rref *h = handle_from(2, word(1, 5, 2, 6, 0));
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, lose_it, NULL), 0);
	cr_expect_eq(rref_settle(false, INT64_MAX, &err), XR_OK);
	pthread_join(thread, NULL);
	cr_expect_eq(usable(h, &err), XR_E_PEER_LOST);
	xr_rref_unref(h);
}

Test(rref_life, what_is_left_is_listed)
{
	struct xr_rref *h = handle_from(1, word(1, 5, 1, 6, RREF_CONFIRMED)),
		       *pending, *failed;
	struct rref_wire fork = word(3, 7, 2, 8, 0);
	char text[80];

	cr_expect_eq(rref_leaks(text, sizeof(text)), 1);
	cr_expect_str_eq(text, "(1, 5) by fork (1, 6)");
	cr_expect_eq(rref_leaks(text, sizeof("(1, 5) by fork (1, 6)")), 1);
	cr_expect_str_eq(text, "(1, 5) by fork (1, 6)");
	cr_expect_eq(rref_leaks(text, 10), 1);
	cr_expect_str_eq(text, "(1, 5) by");
	/* Neither one that has failed, nor one that nobody has. */
	failed = handle_from(1, word(2, 5, 1, 7, 0));
	agent_lose(wire_peer[2], "on purpose");
	cr_expect_eq(usable(failed, &err), XR_E_PEER_LOST);
	pending = handle_from(1, word(3, 5, 1, 8, 0));
	xr_rref_unref(pending);
	cr_expect_eq(FIGURE(USERS), 3 - 1 + 1);
	cr_expect_eq(rref_leaks(text, sizeof(text)), 1);
	xr_rref_unref(failed);
	xr_rref_unref(h);
	cr_expect_eq(rref_leaks(text, sizeof(text)), 0);
	cr_expect_str_eq(text, "");
	/* Of a value here: its forks. */
	say(3, MESSAGE_RREF_FORK_REQUEST, fork);
	cr_expect_eq(rref_leaks(text, sizeof(text)), 1);
	cr_expect_str_eq(text, "(3, 7) by fork (2, 8)");
	fork.fork_local = 9;
	say(3, MESSAGE_RREF_FORK_REQUEST, fork);
	cr_expect_eq(rref_leaks(text, sizeof(text)), 2);
	cr_expect(strcmp(text,
			  "(3, 7) by fork (2, 8), (3, 7) by fork (2, 9)") ==
				0 ||
			strcmp(text,
				"(3, 7) by fork (2, 9), (3, 7) by fork (2, 8)") ==
				0,
		"%s", text);
	/* What does not fit is counted, and nothing is written behind the end. */
	text[30] = text[31] = 'x';
	cr_expect_eq(rref_leaks(text, 30), 2);
	cr_expect_eq(strlen(text), 29);
	cr_expect_eq(text[30], 'x');
}

Test(rref_life, a_value_that_others_have_or_that_is_made_counts)
{
	struct rref_wire birth = word(1, 5, 1, 6, 0);
	struct xr_rref *h = own(7);

	/* Handles here do not. */
	cr_expect_eq(FIGURE(OWNERS), 0);
	xr_rref_unref(h);
	h = born_for(0, &birth);
	cr_expect_eq(FIGURE(OWNERS), 0);
	cr_expect_eq(rref_begin(agent_self(), &birth), XR_OK);
	cr_expect_eq(FIGURE(OWNERS), 1);
	rref_made(&birth, NULL, true);
	cr_expect_eq(FIGURE(OWNERS), 0);
	say(1, MESSAGE_RREF_FORK_REQUEST, word(1, 5, 1, 6, 0));
	say(1, MESSAGE_RREF_FORK_REQUEST, word(1, 5, 1, 7, 0));
	say(1, MESSAGE_RREF_FORK_REQUEST, word(1, 6, 1, 8, 0));
	cr_expect_eq(FIGURE(OWNERS), 2);
	cr_expect_eq(FIGURE(FORKS), 3);
	cr_expect_eq(FIGURE(USERS), 0);
	xr_rref_unref(h);
}

/* --- calls that make a value --------------------------------------------------------- */

Test(rref_life, the_owner_of_a_value_is_known_while_it_can_be_asked)
{
	struct xr_rref *h = handle_from(1, word(1, 5, 1, 6, RREF_CONFIRMED)),
		       *mine = own(7);
	struct peer *peer = NULL;

	cr_expect_eq(rref_owner_peer(h, &peer, &err), XR_OK);
	cr_expect_eq(peer, wire_peer[1]);
	cr_expect_eq(rref_owner_peer(mine, &peer, &err), XR_OK);
	cr_expect_eq(peer, agent_self());
	agent_lose(wire_peer[1], "on purpose");
	cr_expect_eq(rref_owner_peer(h, &peer, &err), XR_E_PEER_LOST);
	cr_expect_str_eq(err.text, "lost one (1), which had the value");
	xr_rref_unref(h);
	xr_rref_unref(mine);
}

Test(rref_life, a_birth_has_a_fork_of_its_own_unless_it_is_here)
{
	struct rref_wire birth;
	struct xr_rref *h = born_for(2, &birth);

	cr_expect_eq(birth.id_worker, 0);
	cr_expect_eq(birth.id_incarnation, WIRE_PEER_AGE);
	cr_expect_eq(birth.id_local, 0);
	cr_expect_eq(birth.fork_worker, 0);
	cr_expect_eq(birth.fork_incarnation, WIRE_PEER_AGE);
	cr_expect_eq(birth.fork_local, 1);
	cr_expect_eq(birth.flags, 0);
	cr_expect_not(xr_rref_is_owner(h));
	cr_expect_eq(FIGURE(USERS), 1);
	cr_expect_eq(FIGURE(PENDING_USERS), 1);
	cr_expect_eq(h->owner_id, 2);
	rref_unborn(h);
	/* Nobody is told of what never came. */
	cr_expect_eq(FIGURE(USERS), 0);
	cr_expect_eq(FIGURE(PENDING_USERS), 0);
	cr_expect_eq(wire_left(), 0);
	h = born_for(0, &birth);
	cr_expect_eq(birth.id_local, 2);
	cr_expect_eq(birth.fork_local, 2);
	cr_expect_eq(birth.flags, 0);
	cr_expect_eq(rref.owned.count, 1);
	rref_unborn(h);
	cr_expect_eq(rref.owned.count, 0);
}

Test(rref_life, a_birth_without_memory_leaves_nothing)
{
	struct xr_rref *h = NULL;
	struct rref_wire birth;

	/* What is made once is made now. */
	xr_rref_unref(own(7));
	for (uint32_t to = 0; to <= 1; to++) {
		enum xr_status status = XR_E_NOMEM;
		unsigned at = 0;

		while (status != XR_OK && at < 5) {
			until_short = ++at;
			status = rref_birth(wire_peer[to], &birth, &h, &err);
			until_short = 0;
			if (status == XR_OK)
				continue;
			cr_expect_eq(status, XR_E_NOMEM);
			cr_expect_str_eq(err.text, "out of memory");
			cr_expect_null(h);
			cr_expect_eq(rref.owned.count, 0);
			cr_expect_eq(FIGURE(USERS), 0);
		}
		cr_expect_eq(at, to == 0 ? 3 : 2);
		rref_unborn(h);
		h = NULL;
	}
}

static void
fail_with(struct xr_future *f, enum xr_status status)
{
	future_fail(f, status, "on purpose");
	xr_future_unref(f);
}

/* What its function, or its library, said of a call to oneself is the value's already, or
 * will be. */
Test(rref_life, a_call_to_oneself_that_failed_elsewhere_makes_its_value_fail)
{
	static const struct {
		enum xr_status status, is;
	} row[] = {
		{ XR_E_REMOTE, XR_E_TIMEOUT },
		{ XR_E_CANCELLED, XR_E_TIMEOUT },
		{ XR_E_NOMEM, XR_E_NOMEM },
		{ XR_E_CLOSED, XR_E_CLOSED },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct xr_future *f = xr_future_new(NULL);
		struct rref_wire birth;
		struct xr_rref *h = born_for(0, &birth);

		cr_assert_eq(rref_asked(h, xr_future_ref(f), XR_TIMEOUT_NEVER),
			XR_OK);
		cr_expect_eq(rref.births, 0);
		cr_expect_eq(local(h), XR_E_TIMEOUT);
		fail_with(f, row[i].status);
		cr_expect_eq(local(h), row[i].is, "row %zu", i);
		xr_rref_unref(h);
	}
	cr_expect_eq(rref.owned.count, 0);
}

Test(rref_life, a_call_that_succeeded_makes_no_value_fail)
{
	struct xr_future *f = xr_future_new(NULL), *created = NULL;
	struct rref_wire birth;
	struct xr_rref *h = born_for(0, &birth);
	struct xr_value *v = NULL;

	cr_assert_eq(rref_asked(h, xr_future_ref(f), XR_TIMEOUT_NEVER), XR_OK);
	cr_assert_eq(xr_rref_created(h, &created), XR_OK);
	cr_expect_not(xr_future_done(created));
	xr_future_set(f, xr_value_new_i64(7));
	cr_expect_eq(local(h), XR_E_TIMEOUT);
	cr_expect_eq(xr_future_wait(created, 0, &v, &err), XR_OK);
	cr_expect_eq(xr_value_kind(v), XR_NIL);
	xr_value_unref(v);
	xr_future_unref(created);
	xr_future_unref(f);
	xr_rref_unref(h);
}

/* Its handle is here no more when its answer comes. */
Test(rref_life, an_answer_to_a_handle_that_is_gone_changes_nothing)
{
	for (int i = 0; i < 2; i++) {
		struct xr_future *f = xr_future_new(NULL);
		struct rref_wire birth;
		struct xr_rref *h = born_for(1, &birth);

		cr_assert_eq(rref_asked(h, xr_future_ref(f), HOUR), XR_OK);
		say(1, MESSAGE_RREF_CONFIRM, birth);
		xr_rref_unref(h);
		cr_expect(says(MESSAGE_RREF_USER_DELETE, 1, birth, 0));
		cr_expect_eq(FIGURE(USERS), 0);
		if (i == 0)
			xr_future_set(f, xr_value_new_nil());
		else
			future_fail(f, XR_E_TIMEOUT, "on purpose");
		cr_expect_eq(wire_left(), 0);
		xr_future_unref(f);
	}
}

/* Ids are the same again in the next life of a process. */
Test(rref_life, a_call_of_an_earlier_life_changes_nothing)
{
	struct xr_future *f[2] = { xr_future_new(NULL), xr_future_new(NULL) };
	struct rref_wire birth[2], again[2];
	struct xr_rref *h[2], *next[2];

	for (uint32_t i = 0; i < 2; i++) {
		h[i] = born_for(i, &birth[i]);
		cr_assert_eq(rref_asked(h[i], xr_future_ref(f[i]),
				     XR_TIMEOUT_NEVER),
			XR_OK);
	}
	wire_end();
	wire_begin();
	for (uint32_t i = 0; i < 2; i++) {
		next[i] = born_for(i, &again[i]);
		cr_expect_eq(again[i].fork_local, birth[i].fork_local);
		fail_with(f[i], XR_E_NOMEM);
		cr_expect_eq(usable(next[i], &err), XR_OK);
		xr_rref_unref(h[i]);
	}
	cr_expect_eq(local(next[0]), XR_E_TIMEOUT);
	cr_expect_eq(FIGURE(PENDING_USERS), 1);
	cr_expect_eq(wire_left(), 0);
	xr_rref_unref(next[0]);
	rref_unborn(next[1]);
}

Test(rref_life, only_a_pending_handle_is_due)
{
	struct xr_future *f = xr_future_new(NULL);
	struct rref_wire birth;
	struct xr_rref *h = born_for(1, &birth);
	int64_t start = clock_now();

	say(1, MESSAGE_RREF_CONFIRM, birth);
	cr_assert_eq(rref_asked(h, xr_future_ref(f), HOUR), XR_OK);
	cr_expect_eq(h->due, INT64_MAX);
	cr_expect_eq(rref_expire(start + 2 * HOUR), INT64_MAX);
	cr_expect_eq(usable(h, &err), XR_OK);
	fail_with(f, XR_E_TIMEOUT);
	xr_rref_unref(h);
}

/* Both what is asked for, and what says that it is made, are given back. */
Test(rref_life, a_call_without_memory_is_not_asked)
{
	struct rref_wire birth;
	enum xr_status status = XR_E_NOMEM;
	unsigned at = 0;

	while (status != XR_OK && at < 8) {
		struct xr_future *f = xr_future_new(NULL);
		struct xr_rref *h = born_for(1, &birth);

		until_short = ++at;
		status = rref_asked(h, xr_future_ref(f), HOUR);
		until_short = 0;
		cr_expect(status == XR_OK || status == XR_E_NOMEM);
		future_fail(f, XR_E_NO_FUNCTION, "on purpose");
		cr_expect_eq(usable(h, &err), XR_OK);
		cr_expect_eq(xr_rref_confirmed(h), status == XR_OK);
		xr_future_unref(f);
		rref_unborn(h);
		cr_expect_eq(FIGURE(USERS), 0);
	}
	cr_expect(at > 2 && at < 8, "%u", at);
}
