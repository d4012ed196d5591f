/* SPDX-License-Identifier: Apache-2.0 */
/* test_dynamic_join.c - how a process comes into a group that changes, past members
 * that have its name or its number. */
#include <xrun/error.h>

#include "tests/unit/folder.h"
#include "tests/unit/wire_rig.h"
#include "worker/rpc/dynamic.h"
#include "worker/rpc/dynamic_inner.h"
#include "worker/rpc/join.h"

#define SECRET "rpc/dynamic/secret"

static struct xr_error err;
static struct xr_store *store;

/* --- what is called instead ------------------------------------------------------ */

static uint8_t shared[JOIN_SECRET]; /* what member_open() was given */
static unsigned opened, asked, acked;
static enum xr_status open_status, ack_status;
static enum xr_there there; /* of each member that is asked for */
static struct epoch awaited;
static int64_t until = INT64_MAX - 5; /* joining */

int __real_pthread_join(pthread_t thread, void **value);
int __wrap_pthread_join(pthread_t thread, void **value);

static unsigned watched, joined; /* threads that follow the list */

int
__wrap_pthread_join(pthread_t thread, void **value)
{
	joined += dynamic.watched && pthread_equal(thread, dynamic.watch);
	return __real_pthread_join(thread, value);
}

enum xr_status __wrap_member_open(const struct member *m,
	const struct xr_rpc_opts *opts, const struct member_begin *how,
	struct xr_error *e);
enum xr_there __wrap_agent_there(const char *addresses, uint32_t id,
	uint64_t incarnation);
enum xr_status __wrap_acks_await(const struct epoch *mine, int64_t deadline,
	struct xr_error *e);

int64_t __wrap_clock_now(void);
int64_t __real_clock_now(void);

static _Atomic int64_t jump; /* ns, beyond the clock */
static int64_t look_time;    /* ns, of each look at a member */

int64_t
__wrap_clock_now(void)
{
	return __real_clock_now() + jump;
}

enum xr_status
__wrap_member_open(const struct member *m, const struct xr_rpc_opts *opts,
	const struct member_begin *how, struct xr_error *e)
{
	static const struct xr_carrier *const carriers[] = { &wire_carrier };
	const struct agent_wish wish = {
		.name = m->name,
		.id = m->id,
		.incarnation = m->incarnation,
		.threads = 2,
		.timeout = INT64_MAX,
		.carriers = carriers,
		.carrier_count = 1,
		.is_new = how->is_new,
	};

	(void)opts;
	opened++;
	memcpy(shared, how->secret, JOIN_SECRET);
	cr_expect(how->is_new);
	cr_expect_not(how->is_near);
	cr_expect_eq(how->lost, dead_lost);
	cr_expect_eq(dynamic.store, store);
	cr_expect_not(dynamic.leaving);
	return open_status != XR_OK ? xr_error_set(e, open_status, "no agent") :
				      agent_open(&wish, e);
}

enum xr_there
__wrap_agent_there(const char *addresses, uint32_t id, uint64_t incarnation)
{
	asked++;
	jump += look_time;
	cr_expect_str_eq(addresses, "wire:there");
	cr_expect_eq(incarnation, 100 + id);
	return there;
}

enum xr_status
__wrap_acks_await(const struct epoch *mine, int64_t deadline,
	struct xr_error *e)
{
	acked++;
	watched++;
	cr_expect_eq(deadline, until);
	awaited.number = mine->number;
	awaited.asks = mine->asks;
	cr_expect(dynamic.watched);
	return ack_status != XR_OK ? xr_error_set(e, ack_status, "not known") :
				     XR_OK;
}

/* --- the group -------------------------------------------------------------------- */

static const struct xr_rpc_opts opts = { .size = sizeof(opts) };

static struct xr_value *
member(const char *name, uint32_t id)
{
	return member_new(
		&(struct member){
			.name = name,
			.addresses = "wire:there",
			.id = id,
			.incarnation = 100 + id,
		},
		&opts);
}

static enum xr_status
put_two(const struct epoch *now, struct epoch *next, void *ctx,
	struct xr_error *e)
{
	(void)ctx;
	(void)e;
	if (now->number != 0)
		return XR_E_AGAIN;
	next->members = xr_value_new_list();
	next->lost = xr_value_new_list();
	cr_assert_eq(xr_value_append(next->members, member("one", 1)), XR_OK);
	cr_assert_eq(xr_value_append(next->members, member("two", 2)), XR_OK);
	return XR_OK;
}

static void
begin(void)
{
	struct epoch now = { 0 };
	char address[PATH_MAX + 64];

	folder_make();
	snprintf(address, sizeof(address),
		"file://%s/store?rank=0&world_size=1", folder);
	cr_assert_eq(xr_store_open(address, NULL, &store, &err), XR_OK, "%s",
		err.text);
	cr_assert_eq(epoch_change(store,
			     &(struct epoch_change){ put_two, NULL }, &now,
			     NULL, &err),
		XR_OK, "%s", err.text);
	epoch_fini(&now);
}

static void
end(void)
{
	xr_store_free(store);
	folder_remove();
}

TestSuite(dynamic_join, .timeout = 60, .init = begin, .fini = end);

static enum xr_status
join_as(const char *name, uint32_t id)
{
	const struct member me = { .name = name,
		.addresses = "",
		.place = "",
		.id = id,
		.incarnation = 900 };

	err.text[0] = '\0';
	return dynamic_join(store, &me, &opts, until, &err);
}

/* The newest record has that number, and that many members and lost ones. */
static struct epoch
newest(uint64_t number, size_t members, size_t lost)
{
	struct epoch e = { 0 };

	cr_assert_eq(epoch_newest(store, &e, &err), XR_OK, "%s", err.text);
	cr_expect_eq(e.number, number);
	cr_expect_eq(xr_value_count(e.members), members);
	cr_expect_eq(xr_value_count(e.lost), lost);
	return e;
}

static void
expect_out(void)
{
	cr_expect_not(dynamic_is());
	cr_expect_null(dynamic.info);
	cr_expect_null(dynamic.present);
	cr_expect_eq(dynamic.count, 0);
	cr_expect_eq(dynamic.cap, 0);
	cr_expect_eq(dynamic.applied, 0);
	cr_expect_not(dynamic.watched);
	cr_expect_eq(joined, watched);
	cr_expect_eq(dynamic.self.id, 0);
	cr_expect_eq(dynamic.self.incarnation, 0);
	/* Another agent may begin. */
	wire_begin();
	wire_end();
}

static unsigned looked;

static void
look(void *ctx)
{
	cr_expect_eq(ctx, &looked);
	looked++;
}

Test(dynamic_join, who_comes_in_is_on_the_list_behind_the_others)
{
	struct xr_store_value v = { 0 };
	struct epoch e;

	cr_expect_not(dynamic_is());
	atomic_store(&dynamic.leaving, true);
	cr_assert_eq(join_as("new", 9), XR_OK, "%s", err.text);
	cr_expect(dynamic_is());
	cr_expect_eq(opened, 1);
	cr_expect_eq(asked, 0);
	cr_expect_eq(acked, 1);
	cr_expect_eq(awaited.number, 2);
	cr_expect(awaited.asks);
	e = newest(2, 3, 0);
	cr_expect(e.asks);
	cr_expect_eq(roll_place(e.members, 1, 101), 0);
	cr_expect_eq(roll_place(e.members, 2, 102), 1);
	cr_expect_eq(roll_place(e.members, 9, 900), 2);
	epoch_fini(&e);
	cr_expect_eq(dynamic.applied, 2);
	cr_expect_eq(dynamic.count, 2);
	cr_expect_str_eq(dynamic.self.name, "new");
	cr_expect_str_eq(dynamic.self.addresses, "wire:here");
	cr_expect_eq(dynamic.self.id, 9);
	cr_expect(dynamic_is_self(&dynamic.self));
	cr_expect_not(dynamic_is_self(&(struct member){ .id = 9,
		.incarnation = 901 }));
	cr_expect_not(dynamic_is_self(&(struct member){ .id = 8,
		.incarnation = 900 }));
	/* The first one makes up a secret, which all have. */
	cr_assert_eq(xr_store_get(store, SECRET, 0, &v, &err), XR_OK);
	cr_assert_eq(v.len, JOIN_SECRET);
	cr_expect_arr_eq(v.data, shared, JOIN_SECRET);
	xr_store_value_free(&v);
	dynamic_leave(false, until);
	e = newest(3, 2, 0);
	epoch_fini(&e);
	dynamic_end(look, &looked);
	cr_expect_eq(looked, 1);
	expect_out();
}

Test(dynamic_join, who_comes_later_has_the_secret_of_the_first)
{
	uint8_t secret[JOIN_SECRET];

	memset(secret, 7, sizeof(secret));
	cr_assert_eq(xr_store_set(store, SECRET, secret, sizeof(secret), &err),
		XR_OK);
	cr_assert_eq(join_as("new", 9), XR_OK, "%s", err.text);
	cr_expect_arr_eq(shared, secret, JOIN_SECRET);
	dynamic_end(NULL, NULL);
}

Test(dynamic_join, what_is_no_secret_is_refused)
{
	cr_assert_eq(xr_store_set(store, SECRET, "abc", 3, &err), XR_OK);
	cr_expect_eq(join_as("new", 9), XR_E_PROTO);
	cr_expect_str_eq(err.text, "that is no secret");
	cr_expect_eq(opened, 0);
	expect_out();
}

Test(dynamic_join, without_an_agent_nobody_hears_of_it)
{
	struct epoch e;

	open_status = XR_E_NODEV;
	cr_expect_eq(join_as("new", 9), XR_E_NODEV);
	cr_expect_str_eq(err.text, "no agent");
	expect_out();
	e = newest(1, 2, 0);
	epoch_fini(&e);
}

/* The agent's end closes the store: so each is a test of its own. */
static void
refused(const char *name, uint32_t id, const char *why, unsigned looks)
{
	cr_expect_eq(join_as(name, id), XR_E_EXISTS);
	cr_expect_str_eq(err.text, why);
	cr_expect_eq(asked, looks);
	cr_expect_eq(acked, 0);
	expect_out();
}

Test(dynamic_join, a_name_that_a_member_has_is_refused)
{
	there = XR_THERE_YES;
	refused("one", 9, "ranks 1 and 9 both have the name one", 1);
}

Test(dynamic_join, a_number_that_a_member_has_is_refused)
{
	there = XR_THERE_UNKNOWN;
	refused("new", 2, "two and new both say that they are rank 2", 1);
}

Test(dynamic_join, the_dead_make_way)
{
	uint64_t lost[2] = { 0, 0 };
	struct epoch e;

	there = XR_THERE_NO;
	cr_assert_eq(join_as("one", 2), XR_OK, "%s", err.text);
	cr_expect_eq(asked, 2);
	e = newest(2, 1, 2);
	cr_expect_eq(roll_place(e.members, 2, 900), 0);
	xr_value_get_u64(xr_value_at(e.lost, 0), &lost[0]);
	xr_value_get_u64(xr_value_at(e.lost, 1), &lost[1]);
	cr_expect(lost[0] == 101 && lost[1] == 102);
	epoch_fini(&e);
	cr_expect_eq(dynamic.count, 0);
	dynamic_end(NULL, NULL);
}

/* It is taken for dead after ten seconds, of which each look counts for three at
 * most. */
Test(dynamic_join, who_answers_nothing_makes_way_after_a_while)
{
	struct epoch e;

	there = XR_THERE_SILENT;
	look_time = 5 * NS_PER_S;
	cr_assert_eq(join_as("new", 2), XR_OK, "%s", err.text);
	cr_expect_eq(asked, 5);
	e = newest(2, 2, 1);
	cr_expect_eq(roll_place(e.members, 2, 900), 1);
	epoch_fini(&e);
	dynamic_end(NULL, NULL);
}

Test(dynamic_join, who_answers_nothing_is_there_at_the_deadline)
{
	there = XR_THERE_SILENT;
	look_time = 300 * NS_PER_S;
	until = clock_now() + 500 * NS_PER_S;
	refused("one", 9, "ranks 1 and 9 both have the name one", 2);
}

/* Who is not known to all in time goes again. */
Test(dynamic_join, who_is_not_known_in_time_is_off_the_list)
{
	ack_status = XR_E_TIMEOUT;
	cr_expect_eq(join_as("new", 9), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "not known");
	cr_expect_eq(acked, 1);
	cr_expect(dynamic.leaving);
	expect_out();
}
