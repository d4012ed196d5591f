/* SPDX-License-Identifier: Apache-2.0 */
/* test_rref_owner_seam.c - messages that a test takes on their way to an owner, and
 * values that go with their last handle. */
#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "tests/unit/lock_watch.h"
#include "tests/unit/rref_rig.h"

TestSuite(rref_owner_seam, .timeout = 60, .init = wire_begin, .fini = wire_end);

static struct xr_error err;

static bool comes;
static const struct peer *comes_from;

static bool
came(const struct peer *from)
{
	comes_from = from;
	return comes;
}

Test(rref_owner_seam, a_call_that_a_test_holds_back_makes_nothing)
{
	static const struct rref_seam none = { 0 }, seam = { .begin = came };
	struct rref_wire birth = word(1, 5, 1, 6, 0);

	rref_seam = &seam;
	cr_expect_eq(rref_begin(wire_peer[1], &birth), XR_E_EXISTS);
	cr_expect_eq(comes_from, wire_peer[1]);
	cr_expect_eq(rref.owned.count, 0);
	cr_expect_eq(wire_left(), 0);
	comes = true;
	cr_expect_eq(rref_begin(wire_peer[2], &birth), XR_OK);
	cr_expect_eq(comes_from, wire_peer[2]);
	rref_seam = &none;
	cr_expect_eq(rref_begin(wire_peer[2], &birth), XR_E_EXISTS);
	birth = word(1, 7, 1, 8, 0);
	cr_expect_eq(rref_begin(wire_peer[1], &birth), XR_OK);
	cr_expect_eq(rref.owned.count, 2);
	rref_seam = NULL;
}

static unsigned arrivals;

static bool
arrive(enum message_kind kind, struct peer *from, const struct rref_wire *wire)
{
	arrivals++;
	cr_expect_eq(kind, MESSAGE_RREF_FORK_REQUEST);
	cr_expect_eq(from, wire_peer[1]);
	cr_expect_eq(wire->fork_local, 6);
	return comes;
}

Test(rref_owner_seam, a_message_that_a_test_takes_does_nothing)
{
	static const struct rref_seam seam = { .arrive = arrive };
	struct rref_wire fork = word(2, 5, 2, 6, 0);

	rref_seam = &seam;
	say(1, MESSAGE_RREF_FORK_REQUEST, fork);
	cr_expect_eq(arrivals, 1);
	cr_expect_eq(FIGURE(FORKS), 0);
	comes = true;
	say(1, MESSAGE_RREF_FORK_REQUEST, fork);
	cr_expect_eq(arrivals, 2);
	cr_expect_eq(FIGURE(FORKS), 1);
	rref_seam = NULL;
	comes = false;
}

static unsigned objects_freed;

static void
free_object(void *object, void *ctx)
{
	(void)object;
	(void)ctx;
	objects_freed++;
}

Test(rref_owner_seam, a_value_goes_with_its_last_handle)
{
	static const struct xr_type type = { .size = sizeof(type),
		.name = "owner.Thing",
		.free = free_object };
	struct rref_wire birth = word(1, 5, 1, 6, 0);
	struct xr_value *v;
	static int thing;

	cr_assert_eq(xr_type_register(&type, &err), XR_OK);
	cr_expect_eq(rref_begin(wire_peer[1], &birth), XR_OK);
	v = xr_value_new_opaque("owner.Thing", &thing);
	cr_assert_not_null(v);
	rref_made(&birth, v, false);
	xr_value_unref(v);
	cr_expect_eq(objects_freed, 0);
	say(1, MESSAGE_RREF_USER_DELETE, birth);
	cr_expect_eq(rref.owned.count, 0);
	cr_expect_eq(objects_freed, 1);
}
