/* SPDX-License-Identifier: Apache-2.0 */
/* test_coll_conflict.c - members of a group that do not call the same, and what they tell
 * each other; and that one has failed. */
#include "tests/unit/coll_rig.h"
#include "tests/unit/lock_watch.h"
#include "worker/coll/conflict.h"
#include "worker/coll/mail.h"

#define PAIR "ranks 12 and 10 do not call the same: rank 10 calls "

TestSuite(coll_conflict, .timeout = 20, .init = coll_begin, .fini = coll_end);

static void
expect_sent(uint32_t to, uint16_t flags, uint32_t seq, const char *text)
{
	const struct wire_message *m = wire_sent(MESSAGE_GUEST, to);
	int32_t status = XR_OK;
	size_t head = flags == MAIL_FAILED ? sizeof(status) : 0;

	cr_assert_not_null(m);
	cr_expect_eq(m->record.flags, flags);
	cr_expect_eq(m->record.corr, mail_corr(group->id, seq));
	cr_assert_eq(m->len, head + strlen(text), "%.*s", (int)m->len,
		(const char *)m->data);
	cr_expect_eq(memcmp(m->data + head, text, strlen(text)), 0);
	memcpy(&status, m->data, head);
	cr_expect_eq(status, head > 0 ? XR_E_CONFLICT : XR_OK);
	cr_expect(!m->lent);
}

Test(coll_conflict, a_call_has_a_text)
{
	const struct xr_coll_op call = { .dtype = XR_DT_F32,
		.count = 4,
		.rank = 12 };
	char text[64];

	conflict_text(&plan_bcast, &call, false, text, sizeof(text));
	cr_expect_str_eq(text, "broadcast of 4 f32, rank 12");
	conflict_text(&plan_bcast, &call, true, text, sizeof(text));
	cr_expect_str_eq(text, "broadcast of 4 f32, rank 12, with a future");
	conflict_text(&plan_bcast, &call, true, text, 30);
	cr_expect_str_eq(text, "broadcast of 4 f32, rank 12, ");
}

Test(coll_conflict, what_does_not_fit_is_judged)
{
	struct conflict c = { .status = XR_E_SYS, .why = "old", .from = 9 };
	struct op *op = coll_op(5);

	conflict_judge(op, 2, 5, XR_OK, &c);
	cr_expect_eq(c.status, XR_OK);
	cr_expect_str_eq(c.why, "old");
	conflict_judge(op, 2, 5, XR_E_PROTO, &c);
	cr_expect_eq(c.status, XR_E_PROTO);
	cr_expect_str_eq(c.why, "pair: rank 12 sent what nobody asked for");
	conflict_judge(op, 2, 6, XR_E_CONFLICT, &c);
	cr_expect_eq(c.status, XR_E_CONFLICT);
	cr_expect_str_eq(c.why, PAIR "pair");
	cr_expect_eq(c.from, 2);
	cr_expect_eq(c.seq, 6);
	cr_expect_str_eq(c.call, "pair");
	op->future = (void *)&c;
	conflict_judge(op, 2, 6, XR_E_CONFLICT, &c);
	cr_expect_str_eq(c.call, "pair, with a future");
	op->future = NULL;
	cr_expect_eq(wire_left(), 0);
}

Test(coll_conflict, long_calls_are_cut)
{
	struct conflict c = { .status = XR_OK };
	char own[300];

	memset(own, 'c', sizeof(own));
	own[299] = '\0';
	conflict_judge_call(group, own, 2, 6, &c);
	cr_expect_eq(strlen(c.call), CONFLICT_CALL - 1);
	cr_expect_eq(strlen(c.why), 231);
	own[200] = '\0'; /* a few characters of what follows have room */
	conflict_fail(group, own, 2, "other", &err);
	cr_expect_eq(strlen(err.text), 231);
	own[231 - strlen(PAIR) - 1] = '\0';
	conflict_fail(group, own, 2, "other", &err);
	cr_expect_eq(strlen(err.text), 231);
	cr_expect_eq(err.text[230], ';');
}

Test(coll_conflict, who_differs_is_asked_for_his_call)
{
	struct conflict c = { .status = XR_OK,
		.why = "one",
		.call = "barrier" };

	c.from = 2;
	c.seq = 0x1000007;
	conflict_settle(group, &c);
	cr_expect_eq(wire_left(), 0);
	cr_expect_str_eq(group->differs, "");
	c.status = XR_E_CONFLICT;
	conflict_settle(group, &c);
	cr_expect_str_eq(group->differs, "one");
	expect_sent(2, MAIL_CALL, 7, "barrier");
	snprintf(c.why, sizeof(c.why), "two");
	c.from = 3;
	conflict_settle(group, &c);
	cr_expect_str_eq(group->differs, "one");
	expect_sent(3, MAIL_CALL, 7, "barrier");
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(group->failed, XR_OK);
}

Test(coll_conflict, what_nobody_asked_for_fails_the_group)
{
	struct conflict c = { .status = XR_E_PROTO, .why = "one" };

	coll_op(5);
	conflict_settle(group, &c);
	cr_expect_eq(group->failed, XR_E_PROTO);
	cr_expect_str_eq(group->why, "one");
	cr_expect_str_eq(group->differs, "");
	for (uint32_t i = 1; i < 4; i++)
		cr_expect_not_null(wire_sent(MESSAGE_GUEST, i));
	cr_expect_eq(wire_left(), 0);
}

Test(coll_conflict, the_others_hear_of_the_difference)
{
	struct op *op = coll_op(5);

	group->next = 6;
	conflict_arrived(group, 2, 6, "barrier");
	cr_expect_eq(group->failed, XR_OK, "it has not begun here");
	cr_expect_eq(wire_left(), 0);
	conflict_arrived(group, 2, 5, "barrier");
	cr_expect_eq(group->failed, XR_E_CONFLICT);
	cr_expect_str_eq(group->why, PAIR "pair; rank 12 calls barrier");
	cr_expect_str_eq(op->why, group->why);
	for (uint32_t i = 1; i < 4; i++)
		expect_sent(i, MAIL_FAILED, 5, group->why);
	cr_expect_eq(wire_left(), 0);
}

Test(coll_conflict, a_text_can_be_one_character)
{
	struct conflict c = { .status = XR_E_CONFLICT, .why = "two" };
	struct plan short_one = pair;
	struct op *op = coll_op(5);

	snprintf(group->differs, sizeof(group->differs), "1");
	c.from = 2;
	conflict_settle(group, &c);
	cr_expect_str_eq(group->differs, "1");
	short_one.name = "p";
	op->plan = &short_one;
	group->next = 6;
	conflict_arrived(group, 2, 5, "b");
	cr_expect_str_eq(group->why, PAIR "p; rank 12 calls b");
	op->plan = &pair;
}

Test(coll_conflict, who_asks_for_what_has_ended_is_told)
{
	group->next = 6;
	conflict_arrived(group, 2, 4, "barrier");
	cr_expect_eq(group->failed, XR_E_CONFLICT);
	cr_expect_str_eq(group->why,
		PAIR "an operation that has ended; rank 12 calls barrier");
	for (uint32_t i = 1; i < 4; i++)
		expect_sent(i, MAIL_FAILED, 4, group->why);
	cr_expect_eq(wire_left(), 0);
}

Test(coll_conflict, whoever_fails_the_group_hears_why)
{
	coll_op(5);
	group->next = 6;
	cr_expect_eq(conflict_fail(group, "all", 2, "", &err), XR_E_CONFLICT);
	cr_expect_str_eq(err.text, PAIR "all");
	cr_expect_eq(err.status, XR_E_CONFLICT);
	for (uint32_t i = 1; i < 4; i++)
		expect_sent(i, MAIL_FAILED, 5, PAIR "all");
	cr_expect_eq(wire_left(), 0);
}
