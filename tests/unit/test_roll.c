/* SPDX-License-Identifier: Apache-2.0 */
/* test_roll.c - the peers of a group that changes, as its list has them, and who is
 * taken off it; the test plays the store. */
#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "tests/unit/wire_rig.h"
#include "worker/rpc/dynamic.h"
#include "worker/rpc/dynamic_inner.h"
#include "worker/rpc/guest.h"
#include "worker/rpc/meet.h"

static struct xr_error err;

/* --- what is called instead ------------------------------------------------------ */

static const struct peer *_Atomic parted[8]; /* guest_lost() of these */
static const struct peer *_Atomic missed[8]; /* meet_lost() of these */
static _Atomic unsigned parted_count, missed_count;
static uint64_t acked[8]; /* numbers of records */
static unsigned acked_count;
static unsigned silent; /* calls of epoch_ack() that have no answer */

void __wrap_guest_lost(struct peer *peer);
void __wrap_meet_lost(const struct peer *peer);
enum xr_status __wrap_epoch_ack(struct xr_store *store, uint64_t number,
	uint32_t id, struct xr_error *e);
enum xr_status __wrap_epoch_await(struct xr_store *store, uint64_t known,
	struct epoch *e, struct xr_error *er);
enum xr_status __wrap_epoch_change(struct xr_store *store,
	const struct epoch_change *what, struct epoch *result,
	struct epoch *mine, struct xr_error *e);

void
__wrap_guest_lost(struct peer *peer)
{
	unsigned i = parted_count++;

	if (i < 8)
		parted[i] = peer;
}

void
__wrap_meet_lost(const struct peer *peer)
{
	unsigned i = missed_count++;

	if (i < 8)
		missed[i] = peer;
}

enum xr_status
__wrap_epoch_ack(struct xr_store *store, uint64_t number, uint32_t id,
	struct xr_error *e)
{
	(void)store;
	(void)e;
	cr_expect_eq(id, 0);
	if (silent > 0) {
		silent--;
		return XR_E_TIMEOUT;
	}
	cr_assert_lt(acked_count, 8);
	acked[acked_count++] = number;
	return XR_OK;
}

/* What epoch_await() gives, one after the other; then XR_E_CLOSED. */
static struct told {
	enum xr_status status;
	struct epoch e;
} told[4];
static unsigned told_count, told_next;
static uint64_t told_known[8]; /* what was known at each call */

enum xr_status
__wrap_epoch_await(struct xr_store *store, uint64_t known, struct epoch *e,
	struct xr_error *er)
{
	unsigned i = told_next++;

	(void)store;
	(void)er;
	cr_assert_lt(i, 8);
	told_known[i] = known;
	if (i >= told_count)
		return XR_E_CLOSED;
	*e = told[i].e;
	return told[i].status;
}

static struct epoch list; /* which epoch_change() edits */
static struct epoch edited;
static enum xr_status edit_status;
static unsigned changes;

enum xr_status
__wrap_epoch_change(struct xr_store *store, const struct epoch_change *what,
	struct epoch *result, struct epoch *mine, struct xr_error *e)
{
	(void)store;
	(void)result;
	cr_expect_null(mine);
	changes++;
	edit_status = what->edit(&list, &edited, what->ctx, e);
	return edit_status;
}

static enum xr_there answer_there;
static _Atomic unsigned looks;

enum xr_there __wrap_agent_there(const char *addresses, uint32_t id,
	uint64_t incarnation);

enum xr_there
__wrap_agent_there(const char *addresses, uint32_t id, uint64_t incarnation)
{
	looks++;
	cr_expect_str_eq(addresses, "wire:there");
	cr_expect_eq(id, 11);
	cr_expect_eq(incarnation, 111);
	return answer_there;
}

static bool
tells(const struct peer *_Atomic *of, unsigned count, const struct peer *p)
{
	for (unsigned i = 0; i < count && i < 8; i++)
		if (of[i] == p)
			return true;
	return false;
}

/* --- lists ----------------------------------------------------------------------- */

static struct xr_value *
member(uint32_t id, uint64_t incarnation)
{
	const struct xr_rpc_opts opts = { .size = sizeof(opts) };
	char name[16];
	const struct member m = {
		.name = name,
		.addresses = "wire:there",
		.id = id,
		.incarnation = incarnation,
	};

	snprintf(name, sizeof(name), "w%u", id);
	return member_new(&m, &opts);
}

/* Members @ids, up to one that is UINT32_MAX; each with incarnation 100 + id, but
 * this process with its own. */
static struct epoch
record(uint64_t number, const uint32_t *ids)
{
	struct epoch e = { .number = number,
		.members = xr_value_new_list(),
		.lost = xr_value_new_list() };

	for (; *ids != UINT32_MAX; ids++)
		cr_assert_eq(xr_value_append(e.members,
				     member(*ids,
					     *ids == 0 ? WIRE_PEER_AGE :
							 100 + *ids)),
			XR_OK);
	return e;
}

#define RECORD(number, ...) \
	record(number, (uint32_t[]){ __VA_ARGS__, UINT32_MAX })

static void
apply(struct epoch e, bool done)
{
	cr_expect_eq(roll_apply(&e), done);
	epoch_fini(&e);
}

/* @e notes @count lives as lost; the first and the last are these. */
static void
expect_lost(const struct epoch *e, size_t count, uint64_t first, uint64_t last)
{
	uint64_t n = 0;

	cr_assert_eq(xr_value_count(e->lost), count);
	cr_expect_eq(xr_value_get_u64(xr_value_at(e->lost, 0), &n), XR_OK);
	cr_expect_eq(n, first);
	cr_expect_eq(xr_value_get_u64(xr_value_at(e->lost, count - 1), &n),
		XR_OK);
	cr_expect_eq(n, last);
}

static bool
has(uint32_t id, uint64_t incarnation)
{
	return roll_has(&(struct member){ .id = id,
		.incarnation = incarnation });
}

static void
begin(void)
{
	wire_begin();
	dynamic.self = (struct member){ .name = "self",
		.addresses = "",
		.place = "",
		.incarnation = WIRE_PEER_AGE };
}

static void
end(void)
{
	free(dynamic.present);
	dynamic.present = NULL;
	wire_end();
}

TestSuite(roll, .timeout = 60, .init = begin, .fini = end);

Test(roll, a_place_is_of_one_life)
{
	struct epoch e = RECORD(1, 11, 12, 13);

	cr_expect_eq(roll_place(e.members, 11, 111), 0);
	cr_expect_eq(roll_place(e.members, 13, 113), 2);
	cr_expect_eq(roll_place(e.members, 13, 111), -1);
	cr_expect_eq(roll_place(e.members, 14, 113), -1);
	cr_assert_eq(xr_value_append(e.members, xr_value_new_nil()), XR_OK);
	cr_assert_eq(xr_value_append(e.members, member(14, 114)), XR_OK);
	cr_expect_eq(roll_place(e.members, 14, 114), 4);
	epoch_fini(&e);
}

Test(roll, members_are_peers_until_they_are_off_the_list)
{
	struct peer *p[3];
	struct epoch e = RECORD(5, 0, 11, 12, 13);

	apply(e, true);
	cr_expect_eq(dynamic.applied, 5);
	cr_expect_eq(dynamic.count, 3);
	cr_expect_eq(dynamic.cap, 16);
	for (uint32_t i = 0; i < 3; i++) {
		p[i] = agent_find_id(11 + i);
		cr_assert_not_null(p[i]);
		cr_expect_eq(dynamic.present[i], p[i]);
		cr_expect_eq(p[i]->incarnation, 111 + i);
		cr_expect_eq(p[i]->listed, 5);
		peer_reach(p[i]);
		cr_assert_eq(atomic_load(&p[i]->state), PEER_UP);
		cr_expect(has(11 + i, 111 + i));
		cr_expect_not(has(11 + i, 112 + i));
	}
	cr_expect_not(has(14, 114));
	/* What is not newer changes nothing. */
	apply(RECORD(5, 0, 14), false);
	apply(RECORD(4, 0, 14), false);
	cr_expect_eq(dynamic.applied, 5);
	cr_expect_eq(dynamic.count, 3);
	cr_expect_null(agent_find_id(14));
	/* Two are off it, one of whom is lost. */
	e = RECORD(7, 0, 12);
	cr_assert_eq(xr_value_append(e.lost, xr_value_new_nil()), XR_OK);
	cr_assert_eq(xr_value_append(e.lost, xr_value_new_u64(113)), XR_OK);
	apply(e, true);
	cr_expect_eq(dynamic.applied, 7);
	cr_expect_eq(dynamic.count, 1);
	cr_expect_eq(dynamic.present[0], p[1]);
	cr_expect_eq(p[1]->listed, 7);
	cr_expect(peer_is_gone(p[0]) && peer_is_gone(p[2]));
	cr_expect_not(peer_is_gone(p[1]));
	cr_expect_eq(atomic_load(&p[0]->state), PEER_UP);
	cr_expect(p[0]->left);
	cr_expect_eq(atomic_load(&p[2]->state), PEER_LOST);
	cr_expect_eq(peer_lost_error(p[2], &err), XR_E_PEER_LOST);
	cr_expect_not_null(strstr(err.text, "the group has found it dead"),
		"%s", err.text);
	cr_expect(tells(missed, missed_count, p[0]));
	cr_expect(tells(missed, missed_count, p[2]));
	cr_expect_not(tells(missed, missed_count, p[1]));
	cr_expect(tells(parted, parted_count, p[0]));
	cr_expect(tells(parted, parted_count, p[2]));
	cr_expect_not(tells(parted, parted_count, p[1]));
	/* A life that is gone is no member, and one that comes back is another. */
	cr_expect_not(has(11, 111));
	cr_expect(has(12, 112));
	cr_expect_not(has(13, 113));
	e = RECORD(8, 12);
	cr_assert_eq(xr_value_append(e.members, member(11, 211)), XR_OK);
	apply(e, true);
	cr_expect_eq(dynamic.count, 2);
	cr_expect_neq(agent_find_id(11), p[0]);
	cr_expect(has(11, 211));
	cr_expect_eq(agent_find_id(12), p[1]);
}

Test(roll, members_are_learned_before_their_record_is_there)
{
	struct epoch e = RECORD(9, 0, 11, 12);

	cr_expect(roll_learn(&e));
	cr_expect_eq(dynamic.applied, 0);
	cr_expect_eq(dynamic.count, 2);
	cr_expect_eq(agent_find_id(12)->listed, 9);
	cr_expect(roll_learn(&e));
	cr_expect_eq(dynamic.count, 2);
	epoch_fini(&e);
}

Test(roll, many_members_have_room)
{
	uint32_t ids[34];

	for (uint32_t n = 16; n <= 33; n++) {
		for (uint32_t i = 0; i < n; i++)
			ids[i] = 11 + i;
		ids[n] = UINT32_MAX;
		apply(record(n, ids), true);
		cr_expect_eq(dynamic.count, n);
		cr_expect_eq(dynamic.cap,
			n == 16 ? 16u : (n == 33 ? 64u : 32u));
		for (uint32_t i = 0; i < n; i++)
			cr_assert_eq(dynamic.present[i]->id, 11 + i);
	}
}

Test(roll, without_memory_it_is_as_before)
{
	struct epoch e = RECORD(3, 0, 11);
	unsigned at = 0;
	bool done = false;

	while (!done && at < 40) {
		until_short = ++at;
		was_short = false;
		done = roll_apply(&e);
		until_short = 0;
		cr_expect_eq(done, !was_short);
		cr_expect_eq(dynamic.applied, done ? 3 : 0);
		cr_expect_leq(dynamic.count, 1);
	}
	cr_expect(at > 3 && at < 40, "%u", at);
	cr_expect(has(11, 111));
	epoch_fini(&e);
}

/* --- acknowledgements, and the watch ---------------------------------------------- */

/* The last one only if its author asks, all before it in any case. */
Test(roll, records_are_acknowledged)
{
	struct epoch e = { .number = 7 };

	roll_acknowledge(6, &e);
	cr_expect_eq(acked_count, 0);
	roll_acknowledge(4, &e);
	cr_expect_eq(acked_count, 2);
	cr_expect(acked[0] == 5 && acked[1] == 6);
	acked_count = 0;
	e.asks = true;
	silent = 2;
	roll_acknowledge(5, &e);
	cr_expect_eq(silent, 0);
	cr_expect_eq(acked_count, 2);
	cr_expect(acked[0] == 6 && acked[1] == 7);
	acked_count = 0;
	roll_acknowledge(7, &e);
	cr_expect_eq(acked_count, 0);
}

static void
watch_all(unsigned count)
{
	told_count = count;
	cr_assert_eq(roll_watch(&err), XR_OK);
	cr_expect(dynamic.watched);
	pthread_join(dynamic.watch, NULL);
}

Test(roll, the_watch_follows_each_record)
{
	told[0].status = XR_E_TIMEOUT;
	told[1].e = RECORD(2, 0, 11);
	told[1].e.asks = true;
	told[2].status = XR_E_NOMEM;
	told[3].e = RECORD(4, 0, 11, 12);
	watch_all(4);
	cr_expect_eq(told_next, 5);
	cr_expect(told_known[0] == 0 && told_known[1] == 0);
	cr_expect(told_known[2] == 2 && told_known[3] == 2);
	cr_expect_eq(told_known[4], 4);
	cr_expect_eq(acked_count, 3);
	cr_expect(acked[0] == 1 && acked[1] == 2 && acked[2] == 3);
	cr_expect(has(11, 111) && has(12, 112));
}

Test(roll, who_is_taken_for_dead_is_alone)
{
	struct peer *p;

	told[0].e = RECORD(1, 0, 11);
	told[1].e = RECORD(2, 11);
	watch_all(2);
	cr_expect_eq(told_next, 2);
	p = agent_find_id(11);
	cr_assert_not_null(p);
	cr_expect_eq(atomic_load(&p->state), PEER_LOST);
	cr_expect_not(peer_is_gone(p));
	cr_expect_eq(peer_lost_error(p, &err), XR_E_PEER_LOST);
	cr_expect_not_null(strstr(err.text,
				   "the group has taken this worker for dead"),
		"%s", err.text);
	cr_expect_eq(dynamic.count, 0);
	cr_expect_eq(dynamic.cap, 0);
	cr_expect_null(dynamic.present);
	cr_expect_eq(acked_count, 0);
}

Test(roll, who_leaves_loses_nobody)
{
	atomic_store(&dynamic.leaving, true);
	told[0].e = RECORD(1, 0, 11);
	told[1].e = RECORD(2, 11);
	watch_all(2);
	cr_expect_eq(told_next, 2);
	cr_expect_eq(dynamic.count, 1);
	cr_expect_lt(atomic_load(&agent_find_id(11)->state), PEER_LOST);
}

/* --- the dead ------------------------------------------------------------------------ */

Test(roll, who_is_taken_off_the_list)
{
	struct dead_one one = { 12, 112, false, true };
	struct epoch e = RECORD(1, 11, 12, 13), next = { 0 };

	cr_assert_eq(xr_value_append(e.lost, xr_value_new_u64(5)), XR_OK);
	cr_expect_eq(dead_take_off(&e, &next, &one, &err), XR_OK);
	cr_expect(next.asks);
	cr_expect_eq(xr_value_count(next.members), 2);
	cr_expect_eq(roll_place(next.members, 11, 111), 0);
	cr_expect_eq(roll_place(next.members, 13, 113), 1);
	expect_lost(&next, 1, 5, 5);
	epoch_fini(&next);
	one = (struct dead_one){ 11, 111, true, false };
	next = (struct epoch){ 0 };
	cr_expect_eq(dead_take_off(&e, &next, &one, &err), XR_OK);
	cr_expect_not(next.asks);
	cr_expect_eq(roll_place(next.members, 12, 112), 0);
	expect_lost(&next, 2, 5, 111);
	epoch_fini(&next);
	one.incarnation = 112;
	next = (struct epoch){ 0 };
	cr_expect_eq(dead_take_off(&e, &next, &one, &err), XR_E_AGAIN);
	cr_expect_null(next.members);
	epoch_fini(&e);
}

Test(roll, of_the_lost_the_last_are_kept)
{
	static const struct dead_copy all = { -1, true }, first = { 0, true };
	struct epoch e = RECORD(1, 11), next = { 0 };

	for (uint64_t i = 1; i <= 64; i++)
		cr_assert_eq(xr_value_append(e.lost, xr_value_new_u64(i)),
			XR_OK);
	cr_expect_eq(dead_copy(&e, all, &next, &err), XR_OK);
	cr_expect_eq(xr_value_count(next.members), 1);
	expect_lost(&next, 64, 1, 64);
	epoch_fini(&next);
	next = (struct epoch){ 0 };
	cr_expect_eq(dead_copy(&e, first, &next, &err), XR_OK);
	cr_expect_eq(xr_value_count(next.members), 0);
	expect_lost(&next, 65, 1, 111);
	epoch_fini(&e);
	e = next;
	next = (struct epoch){ 0 };
	cr_expect_eq(dead_copy(&e, all, &next, &err), XR_OK);
	expect_lost(&next, 64, 2, 111);
	epoch_fini(&next);
	epoch_fini(&e);
}

Test(roll, a_copy_without_memory_fails)
{
	struct epoch e = RECORD(1, 11, 12), next;
	enum xr_status status = XR_E_NOMEM;
	unsigned at = 0;

	cr_assert_eq(xr_value_append(e.lost, xr_value_new_u64(5)), XR_OK);
	while (status != XR_OK && at < 40) {
		next = (struct epoch){ 0 };
		until_short = ++at;
		was_short = false;
		status = dead_copy(&e, (struct dead_copy){ 0, true }, &next,
			&err);
		until_short = 0;
		cr_expect_eq(status, was_short ? XR_E_NOMEM : XR_OK);
		if (was_short)
			cr_expect_str_eq(err.text, "out of memory");
		epoch_fini(&next);
	}
	cr_expect(at > 3 && at < 40, "%u", at);
	epoch_fini(&e);
}

Test(roll, a_burial_notes_the_loss)
{
	list = RECORD(1, 11, 12);
	dead_bury(12, 112);
	cr_expect_eq(changes, 1);
	cr_expect_eq(edit_status, XR_OK);
	cr_expect_not(edited.asks);
	cr_expect_eq(xr_value_count(edited.members), 1);
	cr_expect_eq(roll_place(edited.members, 11, 111), 0);
	expect_lost(&edited, 1, 112, 112);
	epoch_fini(&edited);
	epoch_fini(&list);
}

static bool left_before;

/* look_at() - the link to member 11 is lost; a thread of the crew has looked. */
static void
look_at(enum xr_there there)
{
	struct epoch e = RECORD(1, 0, 11);
	struct peer *p;

	list = RECORD(1, 0, 11);
	apply(e, true);
	p = agent_find_id(11);
	answer_there = there;
	if (left_before)
		peer_gone(p, false);
	dead_lost(p);
	/* The crew ends when all that was posted has run. */
	wire_end();
	epoch_fini(&edited);
	epoch_fini(&list);
	wire_begin();
}

Test(roll, a_peer_whose_link_is_lost_is_buried_unless_it_is_there)
{
	/* Without memory the next one to join finds it. */
	until_short = 1;
	dead_lost(wire_peer[1]);
	cr_expect_eq(until_short, 0);
	cr_expect_eq(looks, 0);
	look_at(XR_THERE_NO);
	cr_expect_eq(looks, 1);
	cr_expect_eq(changes, 1);
	cr_expect_eq(edit_status, XR_OK);
	dynamic.count = 0;
	dynamic.applied = 0;
	look_at(XR_THERE_SILENT);
	cr_expect_eq(changes, 2);
	dynamic.count = 0;
	dynamic.applied = 0;
	look_at(XR_THERE_YES);
	cr_expect_eq(looks, 3);
	cr_expect_eq(changes, 2);
	dynamic.count = 0;
	dynamic.applied = 0;
	atomic_store(&dynamic.leaving, true);
	look_at(XR_THERE_NO);
	cr_expect_eq(looks, 3);
	cr_expect_eq(changes, 2);
	dynamic.count = 0;
	dynamic.applied = 0;
	atomic_store(&dynamic.leaving, false);
	left_before = true;
	look_at(XR_THERE_NO);
	cr_expect_eq(looks, 3);
	cr_expect_eq(changes, 2);
}
