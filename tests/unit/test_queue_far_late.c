/* SPDX-License-Identifier: Apache-2.0 */
/* test_queue_far_late.c - a handle of a queue of another machine: what becomes of what comes
 * late. */
#include "tests/unit/own_agent.h"

TestSuite(queue_far_late, .timeout = 60);

/* --- late ones --------------------------------------------------------------------------------- */

static struct far_call *
get_of(const struct xr_queue *q)
{
	struct far_call *c = far_call_new(q, FAR_GET, 0);

	EXPECT_EQ(far_send(far, c, &error), XR_OK);
	return c;
}

FORKED_TEST(queue_far_late, what_is_late_is_the_next_gets_of_the_same_lanes)
{
	const struct xr_queue first = { .far = far, .first = 0, .count = 2 },
			      one = { .first = 1, .count = 1 };
	struct xr_queue q[] = { queue, first, one };
	struct far_call *c[3];

	begin_of(XR_QUEUE_P2P);
	for (size_t i = 0; i < COUNT(q); i++)
		q[i].far = far;
	for (size_t i = 0; i < COUNT(q); i++) {
		c[i] = get_of(&q[i]);
		late_push(&q[i], c[i]);
		EXPECT(c[i]->is_late && c[i]->is_listed && c[i]->far == NULL);
	}
	/* Of one to one it is nobody else's. */
	end_with(0, answer(XR_OK, 1, 6, ""));
	EXPECT_EQ(sents, 3);
	EXPECT_EQ(far->handles, 1);
	for (size_t i = 0; i < COUNT(q); i++) {
		EXPECT(late_pop(&q[i]) == c[i]);
		EXPECT(!c[i]->is_listed);
		EXPECT(late_pop(&q[i]) == NULL);
		far_call_unref(c[i]);
	}
	/* The last first. */
	for (size_t i = 0; i < 2; i++) {
		c[i] = get_of(&queue);
		c[i]->is_kept = true;
		late_push(&queue, c[i]);
	}
	EXPECT(late_pop(&queue) == c[1] && late_pop(&queue) == c[0]);
	far_call_unref(c[0]);
	far_call_unref(c[1]);
	end();
}

FORKED_TEST(queue_far_late, what_comes_for_nobody_is_given_back)
{
	struct far_call *c;

	begin();
	c = get_of(&queue);
	late_push(&queue, c);
	EXPECT(c->far == far && c->is_listed);
	EXPECT_EQ(far->handles, 2);
	EXPECT_EQ(sents, 1);
	end_with(0, answer(XR_OK, 1, 6, ""));
	EXPECT_EQ(sents, 2);
	expect_sent(1, FAR_RETURN, 0, 3);
	EXPECT_EQ(sent[1].ask.number, 6);
	EXPECT(!sent[1].is_told);
	EXPECT_EQ(far->handles, 2);
	EXPECT(TAILQ_FIRST(&far->late) == c && c->back != NULL);
	EXPECT(!late_is_back(c, 0));
	end_with(1, answer(XR_OK, 0, 0, ""));
	EXPECT_EQ(far->handles, 1);
	EXPECT(TAILQ_EMPTY(&far->late));
	/* While a get waits for that. */
	c = get_of(&queue);
	late_push(&queue, c);
	end_with(2, answer(XR_OK, 1, 7, ""));
	EXPECT(late_pop(&queue) == c);
	EXPECT(!late_is_back(c, 0));
	end_with(3, answer(XR_E_STATE, 0, 0, ""));
	EXPECT(late_is_back(c, 0));
	EXPECT_EQ(far->handles, 2);
	far_call_unref(c);
	end();
}

FORKED_TEST(queue_far_late, where_nothing_came_nothing_is_given_back)
{
	struct xr_value *nothing[] = { answer(XR_E_TIMEOUT, 0, 6, ""),
		answer(XR_OK, 0, 0, ""), xr_value_new_bytes("short", 5),
		xr_value_new_nil(), NULL };

	begin();
	for (unsigned i = 0; i < COUNT(nothing); i++) {
		late_push(&queue, get_of(&queue));
		EXPECT_EQ(far->handles, 2);
		if (nothing[i] != NULL)
			end_with(i, nothing[i]);
		else
			xr_future_fail_with(sent[i].future, XR_E_PEER_LOST,
				"lost");
		EXPECT_EQ(sents, i + 1);
		EXPECT_EQ(far->handles, 1);
		EXPECT(TAILQ_EMPTY(&far->late));
	}
	end();
}

/* One that was taken and is late once more; and who cannot be told. */
FORKED_TEST(queue_far_late, what_has_come_meanwhile_is_given_back_at_once)
{
	struct far_call *c;

	begin();
	c = get_of(&queue);
	for (int i = 0; i < 2; i++) {
		late_push(&queue, c);
		EXPECT_EQ(c->refs, 2); /* the list's, and who hears its end */
		EXPECT(late_pop(&queue) == c);
	}
	end_with(0, answer(XR_OK, 1, 6, ""));
	EXPECT_EQ(c->refs, 1);
	EXPECT_EQ(sents, 1);
	EXPECT_EQ(far->handles, 2);
	late_push(&queue, c);
	EXPECT_EQ(far->handles, 2);
	EXPECT_EQ(sents, 2);
	EXPECT_EQ(sent[1].ask.op, FAR_RETURN);
	end_with(1, answer(XR_OK, 0, 0, ""));
	EXPECT_EQ(far->handles, 1);
	late_push(&queue, get_of(&queue));
	sends = XR_E_PEER_LOST;
	end_with(2, answer(XR_OK, 1, 6, ""));
	sends = XR_OK;
	EXPECT(TAILQ_EMPTY(&far->late));
	EXPECT_EQ(far->handles, 1);
	end();
}

FORKED_TEST(queue_far_late, who_gives_back_says_of_which_lanes)
{
	struct far_call c = { .refs = 1 };

	begin();
	c.answer = answer(XR_OK, 1, 8, "");
	late_return(&queue, &c, 0);
	expect_sent(0, FAR_RETURN, 1, 2);
	EXPECT_EQ(sent[0].ask.number, 8);
	EXPECT(xr_future_done(sent[0].future));
	xr_value_unref(c.answer);
	c.answer = answer(XR_OK, 1, 0, "");
	late_return(&queue, &c, 0);
	EXPECT_EQ(sents, 1);
	xr_value_unref(c.answer);
	end();
}
