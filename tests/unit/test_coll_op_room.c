/* SPDX-License-Identifier: Apache-2.0 */
/* test_coll_op_room.c - how many operations of a group are under way, and how far ahead
 * its members may be. */
#include "tests/unit/coll_rig.h"
#include "worker/rpc/lead.h"

/* --- waiting (--wrap) ---------------------------------------------------------------- */

static unsigned waits;
static bool ends, breaks; /* after the first wait: an operation; the group */

bool __wrap_team_await(struct xr_coll *team, int64_t deadline);

bool
__wrap_team_await(struct xr_coll *team, int64_t deadline)
{
	cr_expect_eq(team, group);
	cr_expect_eq(deadline, 4711);
	waits++;
	if (ends)
		TAILQ_FIRST(&team->ops)->seq++;
	if (breaks) {
		team->failed = XR_E_CONFLICT;
		snprintf(team->why, sizeof(team->why), "on purpose");
	}
	return waits < 3;
}

static struct op *mine; /* is to begin */

static void
begin(void)
{
	const struct xr_coll_op call = { .dtype = XR_DT_U8, .count = 8 };

	coll_begin();
	mine = op_new(group);
	op_set(mine, &pair, &call);
	mine->deadline = 4711;
	group->next = TEAM_OPS_MAX + 2;
}

static void
end(void)
{
	op_free(mine);
	coll_end();
}

TestSuite(coll_op_room, .timeout = 20, .init = begin, .fini = end);

static enum xr_status
await_room(void)
{
	enum xr_status status;

	waits = 0;
	err = (struct xr_error){ 0 };
	pthread_mutex_lock(&group->lock);
	status = op_await_room(mine, &err);
	pthread_mutex_unlock(&group->lock);
	return status;
}

Test(coll_op_room, the_first_has_room)
{
	group->load = (struct load){ 1, TEAM_OPS_BYTES };
	cr_expect_eq(await_room(), XR_OK);
	/* What goes by no message does not count. */
	coll_op(OP_SHOWN);
	cr_expect_eq(await_room(), XR_OK);
	coll_op(2);
	cr_expect_eq(await_room(), XR_E_TIMEOUT);
}

Test(coll_op_room, numbers_under_way_are_so_far_apart)
{
	struct op *op = coll_op(3);

	group->load.count = 1;
	cr_expect_eq(await_room(), XR_OK);
	cr_expect_eq(waits, 0);
	op->seq = 2;
	cr_expect_eq(await_room(), XR_E_TIMEOUT);
	cr_expect_eq(waits, 3);
	cr_expect_str_eq(err.text,
		"pair: 1 operations of the group, with 0 bytes, have not ended in time");
	group->next = TEAM_OPS_MAX - 1;
	op->seq = 0xffffff;
	cr_expect_eq(await_room(), XR_E_TIMEOUT);
	op->seq = 0;
	cr_expect_eq(await_room(), XR_OK);
}

Test(coll_op_room, so_many_bytes_are_under_way)
{
	coll_op(TEAM_OPS_MAX);
	group->load = (struct load){ 1, TEAM_OPS_BYTES - 8 };
	cr_expect_eq(await_room(), XR_OK);
	group->load.bytes++;
	cr_expect_eq(await_room(), XR_E_TIMEOUT);
	cr_expect_eq(waits, 3);
}

Test(coll_op_room, who_waits_goes_on_when_one_has_ended)
{
	coll_op(2);
	ends = true;
	cr_expect_eq(await_room(), XR_OK);
	cr_expect_eq(waits, 1);
}

Test(coll_op_room, a_failed_group_has_no_room)
{
	coll_op(2);
	breaks = true;
	cr_expect_eq(await_room(), XR_E_CONFLICT);
	cr_expect_str_eq(err.text, "on purpose");
	cr_expect_eq(waits, 1);
	cr_expect_eq(await_room(), XR_E_CONFLICT);
	cr_expect_eq(waits, 0);
}

Test(coll_op_room, who_delivers_does_not_wait)
{
	coll_op(2);
	group->load = (struct load){ 4, 5 };
	lead_deliver_begin();
	cr_expect_eq(await_room(), XR_E_AGAIN);
	lead_deliver_end();
	cr_expect_str_eq(err.text,
		"4 operations of the group are under way, with 5 bytes");
	cr_expect_eq(waits, 0);
}

Test(coll_op_room, half_of_all_numbers_are_to_come)
{
	group->next = 0x1000002;
	cr_expect(op_is_to_come(group, 2));
	cr_expect(!op_is_to_come(group, 1));
	cr_expect(op_is_to_come(group, 2 + 0x7fffff));
	cr_expect(!op_is_to_come(group, 2 + 0x800000));
}

Test(coll_op_room, a_member_may_be_so_far_ahead)
{
	struct load *load = &group->account[1].early;
	struct early e = { .seq = 4, .from = 1, .bytes = 8 };
	char text[232];

	group->next = 5;
	cr_expect(!op_may_be_ahead(group, &e));
	e.seq = 5;
	cr_expect(op_may_be_ahead(group, &e));
	e.stage = 1;
	cr_expect(!op_may_be_ahead(group, &e));
	e.stage = 0;
	e.seq = 5 + TEAM_OPS_MAX - 1;
	cr_expect(op_may_be_ahead(group, &e));
	e.seq++;
	cr_expect(!op_may_be_ahead(group, &e));
	e.seq = 7;
	*load = (struct load){ TEAM_OPS_MAX - 1, TEAM_OPS_BYTES - 8 };
	cr_expect(op_may_be_ahead(group, &e));
	load->bytes++;
	cr_expect(!op_may_be_ahead(group, &e));
	*load = (struct load){ TEAM_OPS_MAX, 4 };
	cr_expect(!op_may_be_ahead(group, &e));
	op_ahead_text(group, &e, text, sizeof(text));
	cr_expect_str_eq(text,
		"rank 11 is 3 operations ahead of rank 10, with 12 bytes: there can be 4096, with 1073741824");
	op_ahead_text(group, &e, text, 8);
	cr_expect_str_eq(text, "rank 11");
}
