/* SPDX-License-Identifier: Apache-2.0 */
/* test_pending.c - questions that have no answer yet: who ends which, and when. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/pending.h"

#define CHUNK 128 /* places, as in pending.c */

TestSuite(pending, .timeout = 60);

static struct peer ann = { .name = "ann", .id = 4 },
		   bob = { .name = "bob", .id = 5 };
static enum xr_status failed; /* what the last one failed with */
static char text[200];
static int failures;

static void
note(struct pending *p, struct xr_value *error)
{
	struct xr_failure f = { .size = sizeof(f) };

	(void)p;
	cr_assert_eq(xr_value_failure(error, &f), XR_OK);
	failed = f.status;
	snprintf(text, sizeof(text), "%s", f.text);
	failures++;
	xr_value_unref(error);
}

static const struct pending_ops call = { .call = true, .fail = note },
				other = { .call = false, .fail = note };

static uint64_t
ask(struct peer *of, const struct pending_ops *ops, int64_t deadline)
{
	struct pending *p = pending_new();

	cr_assert_not_null(p);
	p->ops = ops;
	p->timeout = 1500 * NS_PER_MS;
	return pending_open(p, of, deadline);
}

/* Returns true if @corr was open, of @peer, and ends it. */
static bool
end(uint64_t corr, const struct peer *peer)
{
	struct pending *p = pending_claim(corr, peer);

	if (p != NULL) {
		cr_expect_eq(pending_name(p), corr);
		pending_put(p);
	}
	return p != NULL;
}

Test(pending, one_is_ended_once_and_by_whom_it_was_asked_of)
{
	uint64_t one = ask(&ann, &call, INT64_MAX), again;

	cr_expect_not(end(one, &bob));
	cr_expect_not(end(one + 1, &ann));
	cr_expect_not(end(one + CHUNK, &ann));
	cr_expect_not(end(one + (UINT64_C(1) << 32), &ann));
	cr_expect(end(one, &ann));
	cr_expect_not(end(one, &ann));
	/* The place is used again, under another name. */
	again = ask(&bob, &call, INT64_MAX);
	cr_expect_eq((uint32_t)again, (uint32_t)one);
	cr_expect_eq(again >> 32, (one >> 32) + 1);
	cr_expect_not(end(one, NULL));
	cr_expect(end(again, NULL));
}

Test(pending, one_that_is_claimed_or_new_is_not_open)
{
	uint64_t one = ask(&ann, &call, 0);
	struct pending *p = pending_claim(one, NULL), *q = pending_new();

	cr_assert(p != NULL && q != NULL && p != q);
	cr_expect_eq(pending_peer(p), &ann);
	cr_expect_eq(pending_count(false), 0);
	cr_expect_null(pending_first());
	cr_expect_eq(pending_expire(1), INT64_MAX);
	pending_fail_all(NULL, XR_E_CLOSED, "over");
	cr_expect_null(pending_claim(one, &ann));
	cr_expect_eq(failures, 0);
	pending_put(p);
	pending_put(q);
}

Test(pending, those_that_are_due_expire)
{
	ask(&ann, &call, 1000);
	ask(&bob, &other, 1002);
	ask(&bob, &call, 1001);
	cr_expect_eq(pending_expire(999), 1000);
	cr_expect_eq(failures, 0);
	cr_expect_eq(pending_expire(1000), 1001);
	cr_expect_eq(failures, 1);
	cr_expect_eq(failed, XR_E_TIMEOUT);
	cr_expect_str_eq(text, "no answer from ann (4) within 1500 ms");
	cr_expect_eq(pending_expire(1001), 1002);
	cr_expect_eq(pending_expire(1002), INT64_MAX);
	cr_expect_str_eq(text, "no answer from bob (5) within 1500 ms");
	cr_expect(failures == 3 && pending_count(false) == 0);
}

Test(pending, the_calls_among_them_are_counted)
{
	uint64_t one = ask(&ann, &other, INT64_MAX), two;

	cr_expect_null(pending_first());
	two = ask(&bob, &call, INT64_MAX);
	cr_expect_eq(pending_first(), &bob);
	cr_expect_eq(pending_count(true), 1);
	cr_expect_eq(pending_count(false), 2);
	cr_expect(end(two, NULL));
	cr_expect_null(pending_first());
	cr_expect_eq(pending_count(true), 0);
	cr_expect(end(one, NULL));
}

/* More than two chunks of places. */
Test(pending, all_of_a_peer_that_is_lost_fail)
{
	static uint64_t name[300];

	for (int i = 0; i < 300; i++) {
		name[i] = ask(i % 3 == 0 ? &ann : &bob, &call, 1000 + i);
		for (int k = 0; k < i; k++)
			cr_assert_neq(name[k], name[i]);
		cr_expect_lt((uint32_t)name[i], 3 * CHUNK);
	}
	cr_expect_eq(pending_count(true), 300);
	pending_fail_all(&ann, XR_E_PEER_LOST, "it is gone");
	cr_expect(failures == 100 && failed == XR_E_PEER_LOST);
	cr_expect_str_eq(text, "it is gone");
	for (int i = 0; i < 299; i++)
		cr_expect_eq(end(name[i], NULL), i % 3 != 0, "%d", i);
	cr_expect_eq(pending_expire(0), 1299);
	pending_fail_all(NULL, XR_E_CLOSED, "it is over");
	cr_expect(failures == 101 && failed == XR_E_CLOSED);
	cr_expect_eq(pending_count(false), 0);
}

Test(pending, a_place_is_used_again_under_a_new_name_each_time)
{
	uint64_t one = ask(&ann, &call, 1), next;
	uint32_t two;

	for (int i = 1; i <= 6; i++) {
		cr_expect_eq(pending_expire(1), INT64_MAX);
		cr_expect_eq(failures, i);
		next = ask(&ann, &call, 1);
		cr_expect_eq(next, one + ((uint64_t)i << 32));
	}
	cr_expect_eq(pending_expire(1), INT64_MAX);
	/* It is kept for this thread, and given out once. */
	cr_expect_eq((uint32_t)ask(&ann, &call, 1), (uint32_t)one);
	two = (uint32_t)ask(&ann, &call, 1);
	cr_expect_neq(two, (uint32_t)one);
	cr_expect_eq(pending_count(true), 2);
}

static void *
ask_and_end(void *unused)
{
	cr_expect(end(ask(&ann, &call, 1), &ann));
	return unused;
}

Test(pending, a_thread_that_ends_gives_its_place_back)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, ask_and_end, NULL), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	for (uint32_t i = 0; i < CHUNK; i++)
		cr_expect_lt((uint32_t)ask(&ann, &call, 1), CHUNK);
	cr_expect_eq((uint32_t)ask(&ann, &call, 1) / CHUNK, 1);
}
