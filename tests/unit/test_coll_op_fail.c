/* SPDX-License-Identifier: Apache-2.0 */
/* test_coll_op_fail.c - which operations of a group end when it fails, and when they are
 * late. */
#include "tests/unit/coll_rig.h"
#include "worker/coll/board.h"

/* --- the board (--wrap) -------------------------------------------------------------- */

static int64_t shows = -1; /* the place that shows another call */
static unsigned looks;     /* at the board */

bool __wrap_board_is_next(const struct board *board, uint32_t place,
	char text[CONFLICT_CALL]);
uint32_t __wrap_board_look(struct board *board);

bool
__wrap_board_is_next(const struct board *board, uint32_t place,
	char text[CONFLICT_CALL])
{
	cr_expect_eq(board, group->board);
	if ((int64_t)place != shows)
		return false;
	snprintf(text, CONFLICT_CALL, "barrier");
	return true;
}

uint32_t
__wrap_board_look(struct board *board)
{
	cr_expect_eq(board, group->board);
	looks++;
	return 0;
}

TestSuite(coll_op_fail, .timeout = 20, .init = coll_begin, .fini = coll_end);

/* --- late ---------------------------------------------------------------------------- */

static void
expect_late(const struct op *op, enum xr_status status, const char *want)
{
	char text[232];

	memset(text, 'x', sizeof(text));
	cr_expect_eq(op_late(op, text, sizeof(text)), status);
	cr_expect_str_eq(text, want);
}

#define LATE "pair: these ranks did not come in time: "

Test(coll_op_fail, who_is_late_is_named)
{
	struct op *op = coll_op(1);
	char text[64];

	expect_late(op, XR_E_TIMEOUT, LATE "11, 12, 13");
	op_part(op, 0, 2)->here = true;
	expect_late(op, XR_E_TIMEOUT, LATE "11, 13");
	op_part(op, 0, 1)->here = true;
	op_part(op, 0, 3)->here = true;
	expect_late(op, XR_E_TIMEOUT, LATE);
	op->stage = 1;
	expect_late(op, XR_E_TIMEOUT, LATE "12");
	op->stage = 0;
	op_part(op, 0, 1)->here = false;
	op_late(op, text, sizeof(LATE) + 15);
	cr_expect_str_eq(text, LATE);
	op_late(op, text, sizeof(LATE) + 16);
	cr_expect_str_eq(text, LATE "11");
}

Test(coll_op_fail, a_long_name_leaves_room_for_ranks)
{
	char name[128], want[232];
	struct plan long_one = pair;
	struct op *op = coll_op(1);

	memset(name, 'n', sizeof(name));
	name[127] = '\0';
	long_one.name = name;
	op->plan = &long_one;
	snprintf(want, sizeof(want), "%.100s%s11, 12, 13", name, &LATE[4]);
	expect_late(op, XR_E_TIMEOUT, want);
	op->plan = &pair;
}

Test(coll_op_fail, who_calls_something_else_is_no_late_one)
{
	struct op *op = coll_op(1);
	char text[8];

	shows = 3;
	expect_late(op, XR_E_CONFLICT,
		"ranks 13 and 10 do not call the same: rank 10 calls pair; rank 13 calls barrier");
	op_late(op, text, sizeof(text));
	cr_expect_str_eq(text, "ranks 1");
	op_part(op, 0, 3)->here = true;
	expect_late(op, XR_E_TIMEOUT, LATE "11, 12");
	shows = 0;
	expect_late(op, XR_E_TIMEOUT, LATE "11, 12");
	group->me = 3;
	expect_late(op, XR_E_CONFLICT,
		"ranks 10 and 13 do not call the same: rank 13 calls pair; rank 10 calls barrier");
	group->me = 0;
	shows = 1;
	op->seq = OP_SHOWN;
	expect_late(op, XR_E_TIMEOUT, LATE "11, 12");
	snprintf(group->differs, sizeof(group->differs), "as was told");
	expect_late(op, XR_E_CONFLICT, "as was told");
	op_late(op, text, sizeof(text));
	cr_expect_str_eq(text, "as was ");
}

Test(coll_op_fail, what_is_over_its_time_is_found)
{
	struct op *a = coll_op(1), *b = coll_op(2);
	int64_t next = 0;

	a->deadline = 200;
	b->deadline = 100;
	cr_expect_null(op_overdue(group, 99, &next));
	cr_expect_eq(next, 100);
	cr_expect_eq(op_overdue(group, 100, &next), b);
	cr_expect_eq(op_overdue(group, 200, &next), a);
	b->is_over = true;
	cr_expect_null(op_overdue(group, 199, &next));
	cr_expect_eq(next, 200);
	b->is_over = false;
	b->stages = b->stage = 1;
	cr_expect_null(op_overdue(group, 199, &next));
	b->stages = 2;
	cr_expect_eq(op_overdue(group, 199, &next), b);
	b->missing[1] = 0;
	cr_expect_null(op_overdue(group, 199, &next));
	a->missing[0] = 0;
	cr_expect_null(op_overdue(group, 300, &next));
	cr_expect_eq(next, INT64_MAX);
}

/* --- failing ------------------------------------------------------------------------- */

static const struct op_reach all = { .place = -1 };

static bool
fails(struct op *op, const struct op_reach *reach)
{
	bool any = false, over;

	looks = 0;
	op_first_to_fail(group, reach, &any);
	cr_expect_eq(looks, 1);
	group->failed = XR_E_PEER_LOST;
	snprintf(group->why, sizeof(group->why), "why");
	op_fail_all(group, reach);
	cr_expect_eq(looks, 2);
	over = op->is_over;
	cr_expect_eq(over, any);
	cr_expect_eq(op->status, over ? XR_E_PEER_LOST : XR_OK);
	cr_expect_str_eq(op->why, over ? "why" : "");
	op->is_over = false;
	op->status = XR_OK;
	op->why[0] = '\0';
	group->failed = XR_OK;
	return over;
}

Test(coll_op_fail, what_has_all_does_not_fail)
{
	struct op *op = coll_op(1);

	cr_expect(fails(op, &all));
	op->missing[0] = 0;
	cr_expect(fails(op, &all), "its first stage is not its last");
	op->stage = 1;
	cr_expect(fails(op, &all));
	op->missing[1] = 0;
	cr_expect(fails(op, &all), "others have not got all of it");
	atomic_store(&op->sent, 1);
	cr_expect(fails(op, &all));
	atomic_store(&op->sent, 2);
	cr_expect(!fails(op, &all));
	atomic_store(&op->sent, 0);
	op->seq = OP_SHOWN;
	cr_expect(!fails(op, &all));
	op->missing[1] = 1;
	cr_expect(fails(op, &all));
	op->stage = 2;
	cr_expect(!fails(op, &all));
}

Test(coll_op_fail, what_is_over_does_not_fail_again)
{
	struct op *op = coll_op(1);
	bool any = true;

	op->is_over = true;
	op_fail_all(group, &all);
	cr_expect_eq(op->status, XR_OK);
	op_first_to_fail(group, &all, &any);
	cr_expect(!any);
}

Test(coll_op_fail, what_needs_nothing_of_who_is_gone_goes_on)
{
	struct op_reach one = { 1, 0 }, two = { 2, 0 };
	struct op *op = coll_op(3);

	cr_expect(fails(op, &one));
	op_part(op, 0, 1)->here = true;
	cr_expect(!fails(op, &one), "its second stage needs only place 2");
	op_part(op, 0, 2)->here = true;
	cr_expect(fails(op, &two));
	op_part(op, 1, 2)->here = true;
	cr_expect(!fails(op, &two));
	op_part(op, 1, 2)->here = false;
	op_part(op, 0, 1)->here = false;
	op->stage = 1;
	cr_expect(!fails(op, &one), "its first stage is over");
	cr_expect(fails(op, &two));
}

Test(coll_op_fail, what_came_before_the_loss_goes_on)
{
	struct op_reach one = { 1, 4 };
	struct op *op = coll_op(3);

	cr_expect(!fails(op, &one));
	op->seq = 4;
	cr_expect(fails(op, &one));
	op->seq = 5;
	cr_expect(fails(op, &one));
	op->seq = 4 + 0x7fffff;
	cr_expect(fails(op, &one));
	op->seq = 4 + 0x800000;
	cr_expect(!fails(op, &one));
	op->seq = 0xffffff;
	cr_expect(!fails(op, &one));
	op->seq = OP_SHOWN;
	one.seq = 0;
	cr_expect(fails(op, &one));
}

Test(coll_op_fail, the_first_that_fails_is_the_oldest)
{
	bool any = true;

	group->next = 0x1000009;
	cr_expect_eq(op_first_to_fail(group, &all, &any), 9);
	cr_expect(!any);
	coll_op(OP_SHOWN);
	cr_expect_eq(op_first_to_fail(group, &all, &any), 9);
	cr_expect(any);
	coll_op(7);
	coll_op(8);
	cr_expect_eq(op_first_to_fail(group, &all, &any), 7);
	coll_op(0xffffff);
	cr_expect_eq(op_first_to_fail(group, &all, &any), 0xffffff);
	cr_expect(any);
	TAILQ_FIRST(&group->ops)->is_over = true;
	cr_expect_eq(op_first_to_fail(group, &all, &any), 0xffffff);
}

Test(coll_op_fail, whoever_waits_hears_of_it)
{
	struct op *op = coll_op(1);
	struct waiter waiter = { 0 };

	op->waiter = &waiter;
	cr_expect(fails(op, &all));
	cr_expect_null(op->waiter);
}
