/* SPDX-License-Identifier: Apache-2.0 */
/* test_rref_again.c - messages of references that cannot be sent. No agent runs: nobody
 * else sends them again. */
#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "tests/unit/lock_watch.h"
#include "tests/unit/rref_rig.h"

TestSuite(rref_again, .timeout = 60);

static struct {
	enum xr_status status;
	unsigned count;
} seam;

static enum xr_status
seam_send(enum message_kind kind, const struct peer *to,
	const struct rref_wire *wire)
{
	(void)kind;
	(void)to;
	(void)wire;
	seam.count++;
	return seam.status;
}

static const struct rref_seam in_the_way = { .send = seam_send };

#define TRIES 12 /* the 8th is the first that waits longest */

/* Its tries wait 1, 2, 4 .. 128, 200, 200 .. ms. */
Test(rref_again, what_is_not_sent_is_sent_again_and_later_each_time)
{
	static struct peer to;
	const struct rref_wire wire = word(1, 5, 1, 6, 0);
	int64_t wait = NS_PER_MS, before, due = 0, next;

	rref_seam = &in_the_way;
	seam.status = XR_E_NOMEM;
	for (unsigned i = 1; i <= TRIES; i++) {
		before = clock_now();
		if (i == 1)
			rref_tell(MESSAGE_RREF_CONFIRM, &to, &wire);
		else
			rref_tell_again(due);
		next = rref_tell_again(0);
		cr_expect_eq(seam.count, i);
		cr_expect_eq(rref_untold(), 1);
		cr_expect_geq(next, before + wait);
		cr_expect_leq(next, clock_now() + wait);
		due = next;
		cr_expect_eq(rref_tell_again(due - 1), due);
		wait = 2 * wait < 200 * NS_PER_MS ? 2 * wait : 200 * NS_PER_MS;
	}
	seam.status = XR_E_PEER_LOST;
	cr_expect_eq(rref_tell_again(due), INT64_MAX);
	cr_expect_eq(seam.count, TRIES + 1);
	cr_expect_eq(rref_untold(), 0);
}

/* Who is lost, or was never found, is not told again. */
Test(rref_again, a_receiver_that_is_gone_is_not_told)
{
	static const enum xr_status gone[] = { XR_E_PEER_LOST, XR_E_NOTFOUND };
	static struct peer to;
	const struct rref_wire wire = word(1, 5, 1, 6, 0);

	rref_seam = &in_the_way;
	for (unsigned i = 0; i < 2; i++) {
		seam.status = gone[i];
		rref_tell(MESSAGE_RREF_CONFIRM, &to, &wire);
		cr_expect_eq(rref_untold(), 0);
		cr_expect_eq(rref_tell_again(0), INT64_MAX);
	}
	/* Nor is anybody who cannot be kept in mind. */
	seam.status = XR_E_NOMEM;
	until_short = 1;
	rref_tell(MESSAGE_RREF_CONFIRM, &to, &wire);
	cr_expect_eq(until_short, 0);
	cr_expect_eq(rref_untold(), 0);
	cr_expect_eq(rref_tell_again(0), INT64_MAX);
}

Test(rref_again, what_is_for_a_lost_peer_is_dropped)
{
	static struct peer to, other;
	const struct rref_wire wire = word(1, 5, 1, 6, 0);

	rref_seam = &in_the_way;
	seam.status = XR_E_AGAIN;
	rref_tell(MESSAGE_RREF_CONFIRM, &to, &wire);
	rref_tell(MESSAGE_RREF_CONFIRM, &other, &wire);
	rref_tell(MESSAGE_RREF_CHILD_ACCEPT, &to, &wire);
	cr_expect_eq(rref_untold(), 3);
	rref_tell_drop(&to);
	cr_expect_eq(rref_untold(), 1);
	cr_expect_neq(rref_tell_again(0), INT64_MAX);
	rref_tell_drop(&to);
	cr_expect_eq(rref_untold(), 1);
	rref_tell_drop(NULL);
	cr_expect_eq(rref_untold(), 0);
	cr_expect_eq(rref_tell_again(0), INT64_MAX);
}
