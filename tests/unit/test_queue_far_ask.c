/* SPDX-License-Identifier: Apache-2.0 */
/* test_queue_far_ask.c - a handle of a queue of another machine: what it asks, and whom it
 * tells. */
#include <poll.h>

#include "tests/unit/own_agent.h"

TestSuite(queue_far_ask, .timeout = 60);

/* --- coming and going -------------------------------------------------------------------------- */

FORKED_TEST(queue_far_ask, a_handle_knows_what_the_queue_is)
{
	begin();
	EXPECT_EQ(sent[0].ask.op, FAR_ATTACH);
	EXPECT_EQ(sent[0].ask.token, 0);
	EXPECT_EQ(sent[0].ask.lanes, 0);
	EXPECT_STR(sent[0].rest, TEXT);
	EXPECT_EQ(sent[0].timeout, XR_TIMEOUT_DEFAULT);
	EXPECT_EQ(sent[0].limit, 0);
	EXPECT_STR(far->text, TEXT);
	EXPECT_EQ(far->token, 99);
	EXPECT_EQ(far->life, LIFE);
	EXPECT_EQ(far->hall.plan.lanes, 3);
	EXPECT_EQ(far->hall.plan.kind, XR_QUEUE_ANY);
	EXPECT_EQ(far->roles, XR_QUEUE_READER | XR_QUEUE_WRITER);
	EXPECT_EQ(far->fd, -1);
	EXPECT_EQ(far->acked, 0);
	far_come(far);
	EXPECT_EQ(far->handles, 2);
	far_go(far);
	EXPECT_EQ(sents, 0);
	end();
	begin_of(XR_QUEUE_P2P);
	EXPECT_EQ(far->hall.plan.kind, XR_QUEUE_P2P);
	end();
}

static void
expect_none(int worker, enum xr_status status, const char *text)
{
	EXPECT_EQ(open_far(worker), status);
	EXPECT_STR(error.text, text);
	EXPECT(far == NULL);
	EXPECT_EQ(inside, 0);
}

FORKED_TEST(queue_far_ask, where_nobody_serves_it_there_is_no_handle)
{
	expect_none(-1, XR_E_NOTFOUND,
		"the queue is on another machine, and who has it had no agent: xr_rpc_init() comes before xr_queue_text()");
	agent = AGENT_JOINING;
	expect_none(3, XR_E_STATE,
		"the queue is on another machine: xr_rpc_init() comes first");
	agent = AGENT_RUNS;
	enters = XR_E_CLOSED;
	expect_none(3, XR_E_CLOSED, "not entered");
	enters = XR_OK;
	finds_peer = XR_E_NOTFOUND;
	expect_none(3, XR_E_NOTFOUND, "no peer");
	finds_peer = XR_OK;
	finds_method = XR_E_NOMEM;
	expect_none(3, XR_E_NOMEM, "no method");
	finds_method = XR_OK;
	EXPECT_EQ(sents, 0);
	sends = XR_E_PEER_LOST;
	expect_none(3, XR_E_PEER_LOST, "not sent");
	sends = XR_OK;
	replies(answer(XR_E_NOTFOUND, 0, 0, "it is gone"));
	expect_none(3, XR_E_NOTFOUND, "it is gone");
	replies(answer(XR_OK, 0, 0, "of another size"));
	expect_none(3, XR_E_VERSION,
		"who serves the queue is of another version");
	replies(xr_value_new_nil());
	expect_none(3, XR_E_PROTO, NONSENSE);
	for (unsigned n = 1; n < 3; n++) {
		until_short = n;
		EXPECT_EQ(open_far(3), XR_E_NOMEM);
		until_short = 0;
		EXPECT_STR(error.text, "out of memory");
	}
}

/* --- asking -------------------------------------------------------------------------------- */

FORKED_TEST(queue_far_ask, a_call_has_its_own_time_and_that_of_its_message)
{
	struct far_call *c;

	begin();
	far->acked = 17;
	c = far_call_new(&queue, FAR_GET, 3);
	memcpy(c->ask + sizeof(struct far_ask), "abc", 3);
	EXPECT_EQ(c->len, sizeof(struct far_ask) + 3);
	EXPECT_EQ(c->refs, 1);
	c->limit = 55;
	EXPECT_EQ(far_send(far, c, &error), XR_OK);
	expect_sent(0, FAR_GET, 1, 2);
	EXPECT_EQ(sent[0].ask.acked, 17);
	EXPECT_EQ(sent[0].ask.count, 0);
	EXPECT_EQ(sent[0].ask.number, 0);
	EXPECT_STR(sent[0].rest, "abc");
	EXPECT_EQ(sent[0].timeout, XR_TIMEOUT_NEVER);
	EXPECT_EQ(sent[0].limit, 55);
	/* Who goes takes the call back. */
	far_call_unref(c);
	EXPECT(xr_future_done(sent[0].future));
	c = far_call_new(&queue, FAR_GET, 0);
	c->timeout = 66;
	EXPECT_EQ(far_send(far, c, &error), XR_OK);
	EXPECT_EQ(sent[1].timeout, 66);
	EXPECT_EQ(sent[1].limit, 0);
	far_call_unref(c);
	c = far_call_new(&queue, FAR_GET, 0);
	us.incarnation++;
	EXPECT_EQ(far_send(far, c, &error), XR_E_STATE);
	EXPECT_STR(error.text, SHUT);
	EXPECT_EQ(inside, 0);
	us.incarnation--;
	enters = XR_E_STATE;
	EXPECT_EQ(far_send(far, c, &error), XR_E_STATE);
	EXPECT_STR(error.text, "not entered");
	enters = XR_OK;
	EXPECT_EQ(sents, 2);
	far_call_unref(c);
	far_call_unref(NULL);
	end();
}

static enum xr_status
await_failed(enum xr_status status)
{
	struct far_call *c = far_call_new(&queue, FAR_GET, 0);

	EXPECT_EQ(far_send(far, c, NULL), XR_OK);
	xr_future_fail_with(c->future, status, "its end");
	memset(&error, 0, sizeof(error));
	status = far_await(c, INT64_MAX, &error);
	far_call_unref(c);
	return status;
}

FORKED_TEST(queue_far_ask, a_call_ends_with_its_answer_or_why_there_is_none)
{
	static const enum xr_status ends[] = { XR_E_CLOSED, XR_E_CANCELLED };
	struct far_call *c;

	begin();
	for (size_t i = 0; i < COUNT(ends); i++) {
		EXPECT_EQ(await_failed(ends[i]), XR_E_STATE);
		EXPECT_STR(error.text, SHUT);
	}
	EXPECT_EQ(await_failed(XR_E_PEER_LOST), XR_E_PEER_LOST);
	EXPECT_STR(error.text, "its end");
	/* Not yet, and then it came. */
	c = far_call_new(&queue, FAR_GET, 0);
	EXPECT_EQ(far_send(far, c, NULL), XR_OK);
	EXPECT_EQ(far_await(c, 0, &error), XR_E_AGAIN);
	EXPECT(c->answer == NULL);
	end_with(3, answer(XR_OK, 1, 2, ""));
	EXPECT_EQ(far_await(c, 0, &error), XR_OK);
	EXPECT(c->answer != NULL);
	EXPECT_EQ(far_await(c, 0, &error), XR_OK);
	EXPECT_EQ(far_said(c, &error), XR_OK);
	xr_value_unref(c->answer);
	c->answer = xr_value_new_bytes("0123456789abcde", 15);
	EXPECT_EQ(far_check(c, &error), XR_E_PROTO);
	EXPECT_STR(error.text, NONSENSE);
	far_call_unref(c);
	end();
}

FORKED_TEST(queue_far_ask, the_words_of_an_answer_are_cut)
{
	struct far_call c = { .refs = 1 };
	char words[300];

	memset(words, 'w', sizeof(words));
	words[299] = '\0';
	c.answer = answer(XR_E_RANGE, 0, 0, words);
	EXPECT_EQ(far_said(&c, &error), XR_E_RANGE);
	EXPECT_EQ(strlen(error.text), 200);
	xr_value_unref(c.answer);
	c.answer = answer(XR_E_RANGE, 0, 0, "short");
	EXPECT_EQ(far_said(&c, &error), XR_E_RANGE);
	EXPECT_STR(error.text, "short");
	xr_value_unref(c.answer);
}

FORKED_TEST(queue_far_ask, what_is_told_nobody_answers)
{
	begin();
	far_tell(far, FAR_ACK, 12);
	far_tell(far, FAR_REVOKE, 13);
	far_done(&queue);
	far_leave(&queue, XR_QUEUE_WRITER);
	for (unsigned i = 0; i < 4; i++)
		EXPECT(sent[i].is_told);
	expect_sent(0, FAR_ACK, 0, 3);
	EXPECT_EQ(sent[0].ask.number, 12);
	EXPECT_EQ(sent[0].timeout, FAR_SLACK_NS);
	expect_sent(1, FAR_REVOKE, 0, 3);
	EXPECT_EQ(sent[1].ask.number, 13);
	EXPECT_EQ(sent[1].timeout, XR_TIMEOUT_NEVER);
	expect_sent(2, FAR_DONE, 0, 3);
	EXPECT_EQ(sent[2].ask.number, 0);
	expect_sent(3, FAR_LEAVE, 1, 2);
	EXPECT_EQ(sent[3].ask.count, XR_QUEUE_WRITER);
	EXPECT_EQ(far->roles, XR_QUEUE_READER);
	EXPECT_EQ(far_may(&queue, XR_QUEUE_READER, &error), XR_E_AGAIN);
	EXPECT_EQ(far_may(&queue, XR_QUEUE_WRITER, &error), XR_E_STATE);
	EXPECT_STR(error.text, "this process is no writer of the queue");
	far_leave(&queue, XR_QUEUE_READER);
	EXPECT_EQ(far_may(&queue, XR_QUEUE_READER, &error), XR_E_STATE);
	EXPECT_STR(error.text, "this process is no reader of the queue");
	enters = XR_E_STATE;
	far_tell(far, FAR_ACK, 12);
	enters = XR_OK;
	until_short = 1;
	far_tell(far, FAR_ACK, 12);
	until_short = 1;
	far_leave(&queue, XR_QUEUE_READER);
	until_short = 0;
	EXPECT_EQ(sents, 5);
	end();
}

FORKED_TEST(queue_far_ask, how_many_there_are_is_asked)
{
	begin();
	replies(answer(XR_OK, 41, 0, ""));
	EXPECT_EQ(far_count(&queue), 41);
	expect_sent(0, FAR_COUNT, 1, 2);
	EXPECT_EQ(sent[0].timeout, XR_TIMEOUT_DEFAULT);
	replies(answer(XR_E_CLOSED, 41, 0, ""));
	EXPECT_EQ(far_count(&queue), 0);
	sends = XR_E_PEER_LOST;
	EXPECT_EQ(far_count(&queue), 0);
	sends = XR_OK;
	until_short = 1;
	EXPECT_EQ(far_count(&queue), 0);
	until_short = 0;
	end();
}

/* --- polling ----------------------------------------------------------------------------------- */

static bool
is_lit(void)
{
	struct pollfd p = { .fd = far->fd, .events = POLLIN };

	NEED(poll(&p, 1, 0) != -1);
	return p.revents == POLLIN;
}

FORKED_TEST(queue_far_ask, who_polls_is_told_of_what_is_there)
{
	int fd = -1, again = -1;

	begin();
	replies(answer(XR_OK, 1, 0, ""));
	EXPECT_EQ(far_fd(&queue, &fd, &error), XR_OK);
	EXPECT(fd != -1 && fd == far->fd && is_lit());
	EXPECT_EQ(sents, 1);
	EXPECT_EQ(sent[0].ask.op, FAR_COUNT);
	EXPECT_EQ(far_fd(&queue, &again, &error), XR_OK);
	EXPECT_EQ(again, fd);
	EXPECT_EQ(sents, 1);
	/* A get found nothing: it is dark until there is something. */
	replies(NULL);
	far_darken(far, false);
	EXPECT(!is_lit() && far->is_watched);
	expect_sent(1, FAR_WATCH, 0, 3);
	EXPECT_EQ(sent[1].ask.timeout, INT64_MAX);
	EXPECT_EQ(sent[1].timeout, XR_TIMEOUT_NEVER);
	EXPECT_EQ(far->refs, 2);
	end_with(1, answer(XR_OK, 0, 0, ""));
	EXPECT(is_lit() && !far->is_watched && !far->is_stale);
	EXPECT_EQ(far->refs, 1);
	/* What failed is heard by a get; it does not look again. */
	far_darken(far, false);
	far_darken(far, false);
	EXPECT(far->is_stale);
	EXPECT_EQ(sents, 3);
	xr_future_fail_with(sent[2].future, XR_E_PEER_LOST, "lost");
	EXPECT(is_lit() && !far->is_stale);
	EXPECT_EQ(sents, 3);
	far_darken(far, false);
	far_darken(far, false);
	end_with(3, answer(XR_OK, 0, 0, ""));
	EXPECT(!is_lit() && far->is_watched && !far->is_stale);
	EXPECT_EQ(sents, 5);
	end_with(4, answer(XR_OK, 0, 0, ""));
	EXPECT(is_lit());
	sends = XR_E_PEER_LOST;
	far_darken(far, false);
	EXPECT(is_lit() && !far->is_watched);
	sends = XR_OK;
	until_short = 1;
	far_darken(far, false);
	until_short = 0;
	EXPECT(is_lit() && !far->is_watched);
	end();
}

FORKED_TEST(queue_far_ask, what_is_over_stays_lit)
{
	int fd = -1;

	begin();
	far_darken(far, false);
	EXPECT_EQ(sents, 0);
	replies(answer(XR_OK, 0, 0, ""));
	replies(NULL);
	sends = XR_E_PEER_LOST;
	EXPECT_EQ(far_fd(&queue, &fd, &error), XR_OK);
	EXPECT(is_lit());
	sends = XR_OK;
	replies(answer(XR_OK, 0, 0, ""));
	far_close(&queue);
	expect_sent(0, FAR_CLOSE, 1, 2);
	EXPECT(far->is_over && is_lit());
	far_darken(far, false);
	EXPECT(is_lit() && !far->is_watched);
	EXPECT_EQ(sents, 1);
	end();
	/* Who cannot close it does not say that it is. */
	begin();
	replies(answer(XR_E_STATE, 0, 0, ""));
	far_close(&queue);
	EXPECT(!far->is_over);
	end();
}
