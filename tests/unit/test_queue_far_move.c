/* SPDX-License-Identifier: Apache-2.0 */
/* test_queue_far_move.c - items from a queue of another machine: what is asked, how long it is
 * waited for, and what becomes of each answer. */
#include "tests/unit/own_server.h"

TestSuite(queue_far_move, .timeout = 60);

/* --- out ------------------------------------------------------------------------------------ */

static struct xr_queue_buf buf[3];
static struct taker taker[3];
static char room[2][8];

/* The first two have room for 8 bytes, the third for any. */
static void
begin_takers(void)
{
	begin();
	free(taker[2].made);
	memset(taker, 0, sizeof(taker));
	memset(buf, 0, sizeof(buf));
	memset(room, 0, sizeof(room));
	for (int i = 0; i < 3; i++)
		taker[i].buf = &buf[i];
	for (int i = 0; i < 2; i++)
		buf[i] = (struct xr_queue_buf){ room[i], sizeof(room[i]), 99 };
}

static enum xr_status
take(size_t want, int64_t timeout)
{
	count = want;
	return far_take(&queue, taker, &count, timeout, &error);
}

static const struct step three = { .a = { .count = 3, .number = 6 },
	.item = { { CELL_BYTES, 0, 2 }, { CELL_VALUE, 0, 0 },
		{ CELL_BYTES, 0, 3 } },
	.items = 3,
	.bytes = 5 };

static void
expect_three(void)
{
	EXPECT_EQ(count, 3);
	EXPECT(buf[0].len == 2 && buf[1].len == 0 && buf[2].len == 3);
	EXPECT(memcmp(room[0], "ab\0", 3) == 0 && room[1][0] == 0);
	EXPECT(taker[2].made != NULL && memcmp(taker[2].made, "cde", 3) == 0);
	EXPECT_EQ(taker[2].made_room, 3);
	EXPECT(taker[0].kind == CELL_BYTES && taker[1].kind == CELL_VALUE);
	EXPECT(buf[2].data == NULL && buf[0].data == room[0]);
}

FORKED_TEST(queue_far_move, who_takes_says_how_much_room_there_is)
{
	static const uint64_t rooms[] = { 8, 8, FAR_ANY_ROOM };

	begin_takers();
	step[0] = three;
	EXPECT_EQ(take(3, TIME), XR_OK);
	expect_three();
	EXPECT_EQ(sent, 1);
	expect_ask(&step[0], FAR_GET, 3, TIME, 0);
	EXPECT_EQ(step[0].len, sizeof(rooms));
	EXPECT(memcmp(step[0].rest, rooms, sizeof(rooms)) == 0);
	EXPECT_EQ(step[0].limit, TIME + FAR_SLACK_NS);
	EXPECT_EQ(step[0].until, NOW + TIME + FAR_SLACK_NS);
	EXPECT_EQ(step[0].call_until, 0);
	/* What has come is told. */
	EXPECT_EQ(far.acked, 6);
	EXPECT_EQ(tellings, 1);
	EXPECT_EQ(told[0].op, FAR_ACK);
	EXPECT_EQ(told[0].number, 6);
	EXPECT_EQ(pushes + returns + darkens, 0);
	begin_takers();
	step[0] = three;
	step[0].a.number = 0;
	EXPECT_EQ(take(3, XR_TIMEOUT_NEVER), XR_OK);
	expect_three();
	EXPECT_EQ(step[0].ask.timeout, INT64_MAX);
	EXPECT_EQ(step[0].until, INT64_MAX);
	EXPECT_EQ(step[0].limit, INT64_MAX);
	EXPECT_EQ(tellings, 0);
	EXPECT_EQ(far.acked, 5);
	/* No more than that. */
	begin_takers();
	step[0] = three;
	step[0].item[0].len = 1;
	buf[0].room = 1;
	EXPECT_EQ(take(1, TIME), XR_OK);
	EXPECT_EQ(buf[0].len, 1);
	EXPECT(room[0][0] == 'a' && room[0][1] == 0);
	far_call_unref(pushed);
	begin_takers();
	EXPECT_EQ(take(0, TIME), XR_OK);
	EXPECT_EQ(sent, 0);
	begin_takers();
	step[0] = three;
	EXPECT_EQ(take(3, 0), XR_OK);
	EXPECT_EQ(step[0].until, NOW + FAR_LOOK_NS);
	end();
}

/* They come first the next time, and are acknowledged once. */
FORKED_TEST(queue_far_move, items_that_nobody_asked_for_yet_are_kept)
{
	for (uint64_t number = 0; number < 2; number++) {
		begin_takers();
		step[0] = three;
		step[0].a.number = number;
		EXPECT_EQ(take(1, TIME), XR_OK);
		EXPECT_EQ(count, 1);
		EXPECT_EQ(tellings, number);
		EXPECT_EQ(pushes, 1);
		NEED(pushed != NULL);
		EXPECT_EQ(pushed->next, 1);
		EXPECT(pushed->is_kept);
		popped = pushed;
		pushed = NULL;
		EXPECT_EQ(take(1, TIME), XR_OK);
		EXPECT_EQ(buf[0].len, 0);
		EXPECT_EQ(taker[0].kind, CELL_VALUE);
		NEED(pushed != NULL);
		popped = pushed;
		pushed = NULL;
		EXPECT_EQ(take(3, TIME), XR_OK);
		EXPECT_EQ(count, 1);
		EXPECT_EQ(buf[0].len, 3);
		EXPECT(memcmp(room[0], "cde", 3) == 0);
		EXPECT(pushed == NULL);
		EXPECT_EQ(pushes, 2);
		EXPECT_EQ(sent, 1);
		EXPECT_EQ(tellings, number);
	}
	end();
}

FORKED_TEST(queue_far_move, what_does_not_fit_is_given_back_or_kept)
{
	begin_takers();
	step[0] = three;
	buf[0].room = 1;
	EXPECT_EQ(take(2, TIME), XR_E_RANGE);
	EXPECT_STR(error.text, "an item of 2 bytes does not fit");
	EXPECT_EQ(count, 0);
	EXPECT_EQ(returns, 1);
	EXPECT_EQ(next_of_returned, 0);
	EXPECT_EQ(return_until, NOW + TIME + FAR_SLACK_NS);
	EXPECT_EQ(pushes + tellings, 0);
	begin_takers();
	step[0] = three;
	step[0].a.number = 0;
	buf[0].room = 1;
	EXPECT_EQ(take(2, TIME), XR_E_RANGE);
	EXPECT_EQ(returns, 0);
	EXPECT_EQ(pushes, 1);
	NEED(pushed != NULL);
	EXPECT_EQ(pushed->next, 0);
	far_call_unref(pushed);
	/* Behind one that did. */
	begin_takers();
	step[0] = three;
	step[0].item[1].len = 3;
	step[0].item[2].len = 0;
	buf[1].room = 2;
	EXPECT_EQ(take(3, TIME), XR_OK);
	EXPECT_EQ(count, 1);
	EXPECT_EQ(tellings, 1);
	EXPECT_EQ(returns, 0);
	NEED(pushed != NULL);
	EXPECT_EQ(pushed->next, 1);
	far_call_unref(pushed);
	/* No memory for it: the call's is the first. */
	begin_takers();
	step[0] = three;
	buf[0].data = NULL;
	until_short = 3;
	EXPECT_EQ(take(1, TIME), XR_E_NOMEM);
	EXPECT_EQ(returns, until_short == 0);
	until_short = 0;
	EXPECT_STR(error.text, "out of memory");
	begin_takers();
	until_short = 1;
	EXPECT_EQ(take(1, TIME), XR_E_NOMEM);
	until_short = 0;
	EXPECT_STR(error.text, "out of memory");
	EXPECT_EQ(sent, 0);
	end();
}

FORKED_TEST(queue_far_move, an_answer_that_is_none_is_nonsense)
{
	const size_t head = sizeof(struct far_answer);
	const struct {
		uint64_t number;
		size_t cut, count;
	} row[] = { { 0, head + 3 * ITEM - 1, 0 },
		{ 6, head + 3 * ITEM - 1, 0 }, { 6, head + 3 * ITEM + 1, 0 },
		{ 6, head, 0 }, { 6, head + 3 * ITEM + 4, 2 },
		{ 0, head + 3 * ITEM + 4, 2 } };

	for (size_t i = 0; i < COUNT(row); i++) {
		begin_takers();
		step[0] = three;
		step[0].a.number = row[i].number;
		step[0].cut = row[i].cut;
		EXPECT_EQ(take(3, TIME), row[i].count > 0 ? XR_OK : XR_E_PROTO);
		EXPECT_EQ(count, row[i].count);
		if (row[i].count == 0)
			EXPECT_STR(error.text, NONSENSE);
		EXPECT_EQ(returns, row[i].count == 0 && row[i].number != 0);
		EXPECT_EQ(pushes, 0);
	}
	/* None at all. */
	begin_takers();
	step[0].a.number = 6;
	EXPECT_EQ(take(3, TIME), XR_E_PROTO);
	EXPECT_STR(error.text, NONSENSE);
	end();
}

FORKED_TEST(queue_far_move, an_answer_without_items_says_why)
{
	const struct {
		struct step step;
		enum xr_status want;
		const char *text;
		unsigned darkens, pushes;
	} row[] = {
		{ { .a = { .status = XR_E_TIMEOUT }, .words = "nothing" },
			XR_E_TIMEOUT, "nothing", 1, 0 },
		{ { .a = { .status = XR_E_CLOSED }, .words = "closed" },
			XR_E_CLOSED, "closed", 1, 0 },
		{ { .a = { .status = XR_E_RANGE, .number = 4711 },
			  .words = "long" },
			XR_E_RANGE, "long", 0, 0 },
		{ { .a = { .status = XR_E_DECODE }, .words = "bad" },
			XR_E_DECODE, "bad", 0, 0 },
		{ { .send = XR_E_STATE }, XR_E_STATE, "not sent", 0, 0 },
		{ { .await = XR_E_PEER_LOST }, XR_E_PEER_LOST, "not heard", 0,
			0 },
		{ { .await = XR_E_AGAIN }, XR_E_TIMEOUT, TOO_LATE, 0, 1 },
	};

	for (size_t i = 0; i < COUNT(row); i++) {
		begin_takers();
		step[0] = row[i].step;
		EXPECT_EQ(take(2, TIME), row[i].want);
		EXPECT_STR(error.text, row[i].text);
		EXPECT_EQ(count, 0);
		EXPECT_EQ(sent, 1);
		EXPECT_EQ(darkens, row[i].darkens);
		EXPECT_EQ(pushes, row[i].pushes);
		EXPECT_EQ(returns + tellings, 0);
		EXPECT_EQ(buf[0].len, row[i].want == XR_E_RANGE ? 4711 : 99);
		if (darkens > 0)
			EXPECT_EQ(darkened_over, row[i].want == XR_E_CLOSED);
		far_call_unref(pushed);
	}
	end();
}

#define MOST (UINT64_C(1) << 40)

/* Then it is asked again, and waited for as long as they need. */
FORKED_TEST(queue_far_move, many_bytes_are_given_their_time)
{
	const uint64_t bytes = 100 << 20;
	const int64_t more = FAR_LOOK_NS + (int64_t)(bytes * SLOW_NS);

	begin_takers();
	step[0].a = (struct far_answer){ XR_E_AGAIN, 0, bytes };
	step[0].takes = XR_SECONDS(1);
	step[1] = three;
	EXPECT_EQ(take(3, TIME), XR_OK);
	expect_three();
	EXPECT_EQ(sent, 2);
	expect_ask(&step[1], FAR_GET, 3, XR_SECONDS(4), bytes);
	EXPECT_EQ(step[1].until, NOW + XR_SECONDS(1) + more);
	EXPECT_EQ(step[1].call_until, NOW + XR_SECONDS(1) + more);
	EXPECT_EQ(step[1].limit, more);
	/* Fewer change nothing; more than there can be are as many as there can be. */
	begin_takers();
	step[0].a = (struct far_answer){ XR_E_AGAIN, 0, bytes };
	step[1].a = (struct far_answer){ XR_E_AGAIN, 0, bytes - 1 };
	step[2].a = (struct far_answer){ XR_E_AGAIN, 0, MOST + 1 };
	step[3] = three;
	EXPECT_EQ(take(3, 0), XR_OK);
	EXPECT_EQ(sent, 4);
	EXPECT_EQ(step[1].ask.number, bytes);
	EXPECT_EQ(step[2].ask.number, bytes);
	EXPECT_EQ(step[2].until, NOW + more);
	EXPECT_EQ(step[3].ask.number, MOST);
	EXPECT_EQ(step[3].until, NOW + FAR_LOOK_NS + (int64_t)(MOST * SLOW_NS));
	end();
}

/* --- late ones ------------------------------------------------------------------------------- */

static struct far_call *
late_call(const struct step *s)
{
	struct far_call *c = far_call_new(&queue, FAR_GET, 0);

	NEED(c != NULL);
	c->is_late = true;
	if (s != NULL)
		c->answer = answer_of(s);
	return c;
}

FORKED_TEST(queue_far_move, what_an_earlier_get_was_told_is_not_for_this_one)
{
	const struct {
		enum xr_status said, want;
	} row[] = { { XR_E_TIMEOUT, XR_OK }, { XR_E_RANGE, XR_OK },
		{ XR_E_CLOSED, XR_E_CLOSED }, { XR_E_DECODE, XR_E_DECODE } };

	for (size_t i = 0; i < COUNT(row); i++) {
		const struct step late = { .a = { .status = row[i].said } };

		begin_takers();
		step[0] = three;
		popped = late_call(&late);
		EXPECT_EQ(take(3, TIME), row[i].want);
		EXPECT_EQ(sent, row[i].want == XR_OK);
		EXPECT_EQ(darkens, row[i].want == XR_E_CLOSED);
	}
	end();
}

FORKED_TEST(queue_far_move,
	an_earlier_get_is_waited_for_as_long_as_its_bytes_need)
{
	begin_takers();
	step[0] = three;
	popped = late_call(NULL);
	popped->until = NOW + XR_SECONDS(9);
	EXPECT_EQ(take(3, TIME), XR_OK);
	EXPECT_EQ(step[0].until, NOW + XR_SECONDS(9));
	EXPECT_EQ(sent, 0);
	expect_three();
	begin_takers();
	step[0] = three;
	popped = late_call(NULL);
	popped->until = NOW + XR_SECONDS(4);
	EXPECT_EQ(take(3, TIME), XR_OK);
	EXPECT_EQ(step[0].until, NOW + TIME + FAR_SLACK_NS);
	end();
}

FORKED_TEST(queue_far_move, what_is_being_given_back_is_waited_for)
{
	begin_takers();
	step[0] = three;
	is_back = true;
	popped = late_call(NULL);
	popped->back = late_call(NULL);
	EXPECT_EQ(take(3, TIME), XR_OK);
	EXPECT_EQ(sent, 1);
	EXPECT_EQ(looks, 2);
	EXPECT_EQ(back_until, NOW + TIME + FAR_SLACK_NS);
	begin_takers();
	popped = late_call(NULL);
	popped->back = late_call(NULL);
	EXPECT_EQ(take(3, TIME), XR_E_TIMEOUT);
	EXPECT_STR(error.text, TOO_LATE);
	EXPECT_EQ(sent, 0);
	EXPECT_EQ(pushes, 1);
	NEED(pushed != NULL && pushed->back != NULL);
	far_call_unref(pushed);
	end();
}
