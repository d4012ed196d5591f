/* SPDX-License-Identifier: Apache-2.0 */
/* test_queue_far_move_in.c - items to a queue of another machine: what is asked, how long it is
 * waited for, and what becomes of each answer. */
#include "tests/unit/own_server.h"

TestSuite(queue_far_move_in, .timeout = 60);

/* --- in ------------------------------------------------------------------------------------- */

static const struct xr_part part[] = { { "ab", 2 }, { NULL, 0 }, { "cde", 3 },
	{ "f", 1 } };
static struct letter letters[3];

static void
begin_letters(void)
{
	begin();
	letters[0] = (struct letter){ .parts = part,
		.count = 3,
		.len = 5,
		.kind = CELL_BYTES };
	letters[1] = (struct letter){ .parts = NULL, .kind = CELL_BYTES };
	letters[2] = (struct letter){ .parts = part + 3,
		.count = 1,
		.len = 1,
		.kind = CELL_VALUE };
}

/* Those from @first on. */
static void
expect_letters(const struct step *s, size_t first)
{
	static const uint32_t kind[] = { CELL_BYTES, CELL_BYTES, CELL_VALUE };
	static const size_t len[] = { 5, 0, 1 };
	const char *body = first == 0 ? "abcdef" : "f";
	size_t n = 3 - first;
	struct far_item item;

	EXPECT_EQ(s->len, n * ITEM + strlen(body));
	for (size_t i = 0; i < n; i++) {
		memcpy(&item, s->rest + i * ITEM, ITEM);
		EXPECT_EQ(item.kind, kind[first + i]);
		EXPECT_EQ(item.len, len[first + i]);
		EXPECT_EQ(item.unused, 0);
	}
	EXPECT(memcmp(s->rest + n * ITEM, body, strlen(body)) == 0);
}

static enum xr_status
give(int64_t timeout)
{
	count = 3;
	return far_give(&queue, letters, &count, timeout, &error);
}

FORKED_TEST(queue_far_move_in, who_gives_for_ever_asks_once)
{
	const struct {
		struct step step;
		enum xr_status want;
		size_t count;
		const char *text;
	} row[] = {
		{ { .a = { .count = 2 } }, XR_OK, 2, "" },
		{ { .a = { .count = 3 } }, XR_OK, 3, "" },
		{ { .a = { .count = 4 } }, XR_OK, 3, "" },
		{ { .a = { .status = XR_E_CLOSED, .count = 1 },
			  .words = "it is closed" },
			XR_E_CLOSED, 1, "it is closed" },
		{ { .send = XR_E_STATE, .a = { .count = 2 } }, XR_E_STATE, 0,
			"not sent" },
		{ { .await = XR_E_PEER_LOST, .a = { .count = 2 } },
			XR_E_PEER_LOST, 0, "not heard" },
	};

	for (size_t i = 0; i < COUNT(row); i++) {
		begin_letters();
		step[0] = row[i].step;
		EXPECT_EQ(give(XR_TIMEOUT_NEVER), row[i].want);
		EXPECT_EQ(count, row[i].count);
		EXPECT_STR(error.text, row[i].text);
		EXPECT_EQ(sent, 1);
		expect_ask(&step[0], FAR_PUT, 3, INT64_MAX, 0);
		EXPECT_EQ(step[0].ask.acked, 5);
		EXPECT_EQ(step[0].limit, 0);
		expect_letters(&step[0], 0);
		if (row[i].step.send == XR_OK)
			EXPECT_EQ(step[0].until, INT64_MAX);
	}
	begin_letters();
	EXPECT_EQ(give(INT64_MAX - NOW), XR_OK);
	EXPECT_EQ(step[0].ask.op, FAR_PUT);
	begin_letters();
	until_short = 1;
	EXPECT_EQ(give(XR_TIMEOUT_NEVER), XR_E_NOMEM);
	until_short = 0;
	EXPECT_EQ(count, 0);
	EXPECT_STR(error.text, "out of memory");
	end();
}

#define UNTIL (TIME + FAR_SLACK_NS + 6 * SLOW_NS) /* with 6 bytes */

FORKED_TEST(queue_far_move_in,
	who_gives_in_time_asks_for_room_and_says_then_that_it_is_put)
{
	begin_letters();
	step[0] = (struct step){ .a = { .count = 1, .number = 11 },
		.takes = XR_SECONDS(2) };
	step[2] = (struct step){ .a = { .count = 9, .number = 12 } };
	EXPECT_EQ(give(TIME), XR_OK);
	EXPECT_EQ(count, 3);
	EXPECT_EQ(sent, 4);
	expect_ask(&step[0], FAR_OFFER, 3, TIME, 0);
	expect_letters(&step[0], 0);
	EXPECT_EQ(step[0].limit, UNTIL);
	EXPECT_EQ(step[0].until, NOW + UNTIL);
	expect_ask(&step[1], FAR_COMMIT, 0, 0, 11);
	EXPECT_EQ(step[1].len, 0);
	EXPECT_EQ(step[1].limit, 0);
	EXPECT_EQ(step[1].until, NOW + UNTIL);
	expect_ask(&step[2], FAR_OFFER, 2, XR_SECONDS(3), 0);
	expect_letters(&step[2], 1);
	EXPECT_EQ(step[2].limit, UNTIL - XR_SECONDS(2));
	EXPECT_EQ(step[2].until, NOW + UNTIL);
	expect_ask(&step[3], FAR_COMMIT, 0, 0, 12);
	/* All but one, and then that. */
	begin_letters();
	step[0].a = (struct far_answer){ .count = 2 };
	step[2].a = (struct far_answer){ .count = 1 };
	EXPECT_EQ(give(TIME), XR_OK);
	EXPECT_EQ(count, 3);
	EXPECT_EQ(sent, 4);
	EXPECT_EQ(step[2].ask.count, 1);
	end();
}

FORKED_TEST(queue_far_move_in,
	who_only_looks_for_room_waits_for_a_word_all_the_same)
{
	begin_letters();
	step[0].a.count = 3;
	EXPECT_EQ(give(0), XR_OK);
	expect_ask(&step[0], FAR_OFFER, 3, 0, 0);
	EXPECT_EQ(step[0].until, NOW + FAR_LOOK_NS + 6 * SLOW_NS);
	begin_letters();
	step[0].a.count = 3;
	EXPECT_EQ(give(1), XR_OK);
	EXPECT_EQ(step[0].ask.timeout, 1);
	EXPECT_EQ(step[0].until, NOW + 1 + FAR_SLACK_NS + 6 * SLOW_NS);
	/* When that is over, too. */
	begin_letters();
	step[0] = (struct step){ .a = { .count = 1 }, .takes = UNTIL };
	step[2].a = (struct far_answer){ .status = XR_E_TIMEOUT };
	step[2].words = "no room in time";
	EXPECT_EQ(give(TIME), XR_E_TIMEOUT);
	EXPECT_STR(error.text, "no room in time");
	EXPECT_EQ(count, 1);
	EXPECT_EQ(sent, 3);
	EXPECT_EQ(step[2].ask.timeout, 0);
	EXPECT_EQ(step[2].limit, 1);
	/* No letter. */
	begin_letters();
	count = 0;
	EXPECT_EQ(far_give(&queue, letters, &count, TIME, &error), XR_OK);
	EXPECT_EQ(sent, 0);
	end();
}

FORKED_TEST(queue_far_move_in, what_was_not_put_is_told)
{
	const struct {
		struct step offer, commit;
		enum xr_status want;
		const char *text;
	} row[] = {
		{ { .send = XR_E_STATE }, { 0 }, XR_E_STATE, "not sent" },
		{ { .await = XR_E_PEER_LOST }, { 0 }, XR_E_PEER_LOST,
			"not heard" },
		{ { .a = { .status = XR_E_CLOSED }, .words = "closed" }, { 0 },
			XR_E_CLOSED, "closed" },
		{ { .a = { .count = 3 } }, { .send = XR_E_STATE }, XR_E_STATE,
			"not sent" },
		{ { .a = { .count = 3 } }, { .await = XR_E_PEER_LOST },
			XR_E_PEER_LOST, "not heard" },
		{ { .a = { .count = 3 } },
			{ .a = { .status = XR_E_CLOSED }, .words = "closed" },
			XR_E_CLOSED, "closed" },
	};

	for (size_t i = 0; i < COUNT(row); i++) {
		begin_letters();
		step[0] = row[i].offer;
		step[1] = row[i].commit;
		EXPECT_EQ(give(TIME), row[i].want);
		EXPECT_EQ(count, 0);
		EXPECT_STR(error.text, row[i].text);
		EXPECT_EQ(sent, i < 3 ? 1 : 2);
	}
	for (unsigned n = 1; n < 3; n++) {
		begin_letters();
		until_short = n;
		EXPECT_EQ(give(TIME), XR_E_NOMEM);
		until_short = 0;
		EXPECT_STR(error.text, "out of memory");
		EXPECT_EQ(sent, 0);
		EXPECT_EQ(count, 0);
	}
	end();
}

/* Room that is given too late is given back; of a put that is known, somebody hears. */
FORKED_TEST(queue_far_move_in, what_comes_too_late_is_revoked)
{
	struct step late = { .a = { .count = 3, .number = 8 } };
	struct xr_value *value[] = { answer_of(&late), NULL, NULL, NULL };

	late.a.status = XR_E_TIMEOUT;
	value[1] = answer_of(&late);
	late.cut = sizeof(late.a) - 1;
	value[2] = answer_of(&late);
	for (size_t i = 0; i < COUNT(value); i++) {
		begin_letters();
		step[0].await = XR_E_AGAIN;
		EXPECT_EQ(give(TIME), XR_E_TIMEOUT);
		EXPECT_STR(error.text, NO_WORD);
		EXPECT_EQ(count, 0);
		EXPECT_EQ(sent, 1);
		EXPECT_EQ(far.handles, 101);
		EXPECT_EQ(tellings, 0);
		if (value[i] != NULL)
			xr_future_set(step[0].future, value[i]);
		else
			xr_future_fail_with(step[0].future, XR_E_PEER_LOST,
				"lost");
		EXPECT_EQ(tellings, i == 0);
		if (i == 0) {
			EXPECT_EQ(told[0].op, FAR_REVOKE);
			EXPECT_EQ(told[0].number, 8);
		}
		EXPECT_EQ(far.handles, 100);
	}
	begin_letters();
	step[0].a.count = 3;
	step[1].await = XR_E_AGAIN;
	EXPECT_EQ(give(TIME), XR_OK);
	EXPECT_EQ(count, 3);
	EXPECT_EQ(far.handles, 101);
	xr_future_fail_with(step[1].future, XR_E_PEER_LOST, "lost");
	EXPECT_EQ(tellings, 0);
	end();
}
