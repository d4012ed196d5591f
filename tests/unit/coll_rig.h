/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll_rig.h - a group whose other members the test plays, and operations of it that the
 * test makes by hand.
 *
 * This process has place 0; place i has rank 10 + i, so that one is not the other.
 */
#ifndef TESTS_UNIT_COLL_RIG_H
#define TESTS_UNIT_COLL_RIG_H

#include <criterion/criterion.h>

#include <xrun/coll.h>
#include <xrun/error.h>

#include "tests/unit/at_end.h"
#include "tests/unit/wire_rig.h"
#include "worker/coll/op.h"
#include "worker/coll/plan.h"
#include "worker/coll/team.h"

static struct xr_coll *group;
static struct xr_error err;

static inline void
coll_begin(void)
{
	wire_begin();
	cr_assert_eq(team_of_all(4, &group, &err), XR_OK, "%s", err.text);
	for (uint32_t i = 0; i < 4; i++)
		group->rank[i] = 10 + i;
}

static inline void
coll_end(void)
{
	struct op *op;

	while ((op = TAILQ_FIRST(&group->ops)) != NULL) {
		TAILQ_REMOVE(&group->ops, op, list);
		op_free(op);
	}
	AT_END(atomic_load(&group->refs) == 1);
	team_unref(group);
	group = NULL;
	wire_end();
}

/* Of all members in its first stage, and of place 2 in its second one. */
static inline uint32_t
pair_stages(const struct op *op)
{
	(void)op;
	return 2;
}

static inline size_t
pair_wants(const struct op *op, uint32_t stage, uint32_t from)
{
	(void)op;
	return stage == 0 || from == 2 ? 4 : PLAN_NONE;
}

static struct plan pair = { .name = "pair",
	.code = PLAN_TOLD | 7,
	.stages = pair_stages,
	.wants = pair_wants };

/* coll_op() - one that is under way, the last of the list, and waits for all in its first
 * stage; the group's. */
static inline struct op *
coll_op(uint32_t seq)
{
	const struct xr_coll_op call = { .dtype = XR_DT_U8 };
	struct op *op = op_new(group);

	cr_assert_not_null(op);
	op_set(op, &pair, &call);
	op->seq = seq;
	op->stages = 2;
	op->missing[0] = 3;
	op->missing[1] = 1;
	op->deadline = INT64_MAX;
	TAILQ_INSERT_TAIL(&group->ops, op, list);
	return op;
}

#endif /* TESTS_UNIT_COLL_RIG_H */
