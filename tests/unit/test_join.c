/* SPDX-License-Identifier: Apache-2.0 */
/* test_join.c - how the members of a static group come together in a store. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/random.h>

#include "base/clock.h"
#include "tests/unit/file_store.h"
#include "tests/unit/short_memory.h"
#include "base/status.h"
#include "worker/rpc/future.h"
#include "worker/rpc/join.h"
#include "worker/rpc/member.h"
#include "worker/rpc/shelf.h"

#define NOW      (1000 * NS_PER_S)
#define TEN_S    (10 * NS_PER_S)
#define MAX_GETS 8

static struct xr_error err;
static struct xr_store *store;
static bool fixed;                         /* it is NOW */
static ssize_t random_bytes = JOIN_SECRET; /* that there are */
static bool is_lost;                       /* the store, for checks */
static int64_t asked[MAX_GETS];            /* how long each get may take */
static int gets;

int64_t __real_clock_now(void);
int64_t __wrap_clock_now(void);
ssize_t __real_getrandom(void *data, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *data, size_t len, unsigned flags);
enum xr_status __real_xr_store_get(struct xr_store *s, const char *key,
	int64_t timeout, struct xr_store_value *value, struct xr_error *e);
enum xr_status __wrap_xr_store_get(struct xr_store *s, const char *key,
	int64_t timeout, struct xr_store_value *value, struct xr_error *e);
enum xr_status __real_xr_store_check(struct xr_store *s,
	const char *const *keys, size_t count, bool *all, struct xr_error *e);
enum xr_status __wrap_xr_store_check(struct xr_store *s,
	const char *const *keys, size_t count, bool *all, struct xr_error *e);

int64_t
__wrap_clock_now(void)
{
	return fixed ? NOW : __real_clock_now();
}

ssize_t
__wrap_getrandom(void *data, size_t len, unsigned flags)
{
	cr_expect_eq(len, JOIN_SECRET);
	cr_expect_eq(flags, 0);
	return random_bytes == JOIN_SECRET ?
		__real_getrandom(data, len, flags) :
		random_bytes;
}

/* What does not come at once does not come in time. */
enum xr_status
__wrap_xr_store_get(struct xr_store *s, const char *key, int64_t timeout,
	struct xr_store_value *value, struct xr_error *e)
{
	enum xr_status status = __real_xr_store_get(s, key, 0, value, e);

	if (gets < MAX_GETS)
		asked[gets++] = timeout;
	return status == XR_E_NOTFOUND && timeout != 0 ? XR_E_TIMEOUT : status;
}

enum xr_status
__wrap_xr_store_check(struct xr_store *s, const char *const *keys, size_t count,
	bool *all, struct xr_error *e)
{
	return is_lost ? XR_E_CLOSED :
			 __real_xr_store_check(s, keys, count, all, e);
}

static void
begin(void)
{
	store = file_store_open();
	fixed = true;
}

static void
end(void)
{
	fixed = false;
	file_store_close(store);
}

TestSuite(join, .timeout = 60, .init = begin, .fini = end);

/* Rank @rank of @size, which has ten seconds. */
static struct join
of(uint32_t rank, uint32_t size)
{
	return (struct join){
		.store = store,
		.cycle = 3,
		.rank = rank,
		.size = size,
		.deadline = NOW + TEN_S,
	};
}

static void
put(const char *key, const void *data, size_t len)
{
	cr_assert_eq(xr_store_set(store, key, data, len, &err), XR_OK, "%s",
		err.text);
}

static bool
is_there(const char *key)
{
	struct xr_store_value v = { 0 };
	enum xr_status status = __real_xr_store_get(store, key, 0, &v, &err);

	xr_store_value_free(&v);
	cr_assert(status == XR_OK || status == XR_E_NOTFOUND, "%s", err.text);
	return status == XR_OK;
}

/* What a member of this name tells. */
static struct xr_value *
info_of(const char *name, uint32_t id)
{
	const struct xr_rpc_opts opts = { .size = sizeof(opts) };
	const struct member m = { .name = name, .addresses = "", .id = id };
	struct xr_value *v = member_new(&m, &opts);

	cr_assert_not_null(v);
	return v;
}

/* Takes @info. */
static enum xr_status
tell(const struct join *j, struct xr_value *info)
{
	enum xr_status status = join_tell(j, info, &err);

	xr_value_unref(info);
	return status;
}

#define EXPECT_FAILED(call, number, words) \
	do { \
		cr_expect_eq((call), (number)); \
		cr_expect_str_eq(err.text, words); \
	} while (0)

/* --- the secret ------------------------------------------------------------- */

Test(join, rank_0_makes_up_the_secret_that_others_read)
{
	uint8_t first[JOIN_SECRET], there[JOIN_SECRET] = { 0 };
	struct join zero = of(0, 2), one = of(1, 2);

	cr_assert_eq(join_secret(&zero, first, &err), XR_OK);
	cr_expect(is_there("rpc/3/secret"));
	cr_expect_eq(gets, 0);
	cr_assert_eq(join_secret(&one, there, &err), XR_OK);
	cr_expect_arr_eq(first, there, JOIN_SECRET);
	cr_expect(gets == 1 && asked[0] == TEN_S);
}

Test(join, a_secret_that_is_none_is_refused)
{
	static const uint8_t long_one[JOIN_SECRET + 1];
	uint8_t out[JOIN_SECRET];
	struct join one = of(1, 2);

	EXPECT_FAILED(join_secret(&one, out, &err), XR_E_TIMEOUT,
		"rank 0 did not come in time");
	put("rpc/3/secret", long_one, JOIN_SECRET - 1);
	EXPECT_FAILED(join_secret(&one, out, &err), XR_E_PROTO,
		"that is no secret");
	put("rpc/3/secret", long_one, JOIN_SECRET + 1);
	err.text[0] = '\0';
	EXPECT_FAILED(join_secret(&one, out, &err), XR_E_PROTO,
		"that is no secret");
}

Test(join, without_random_bytes_there_is_no_secret)
{
	uint8_t out[JOIN_SECRET];
	struct join zero = of(0, 2);

	for (random_bytes = -1; random_bytes < JOIN_SECRET;
		random_bytes += JOIN_SECRET) {
		err.text[0] = '\0';
		EXPECT_FAILED(join_secret(&zero, out, &err), XR_E_SYS,
			"getrandom");
		cr_expect_not(is_there("rpc/3/secret"));
	}
}

Test(join, a_store_that_is_lost_has_no_secret)
{
	uint8_t out[JOIN_SECRET];
	struct join zero = of(0, 2), one = of(1, 2);

	xr_store_close(store);
	cr_expect_eq(join_secret(&zero, out, &err), XR_E_CLOSED);
	cr_expect_eq(join_secret(&one, out, &err), XR_E_CLOSED);
}

/* --- kinds ------------------------------------------------------------------ */

Test(join, the_first_says_of_which_kind_all_groups_are)
{
	cr_expect_eq(join_kind(store, true, &err), XR_OK);
	cr_expect_eq(join_kind(store, true, &err), XR_OK);
	EXPECT_FAILED(join_kind(store, false, &err), XR_E_CONFLICT,
		"the group of this store is static, and this member's is dynamic: world_size is not 0 there");
	put("rpc/kind", "dynamic", 7);
	cr_expect_eq(join_kind(store, false, &err), XR_OK);
	EXPECT_FAILED(join_kind(store, true, &err), XR_E_CONFLICT,
		"the group of this store is dynamic, and this member's is static: world_size is 0 there");
}

/* --- telling ---------------------------------------------------------------- */

Test(join, the_first_of_a_rank_is_its_member)
{
	struct join j = of(2, 3);

	cr_expect_eq(tell(&j, info_of("ann", 2)), XR_OK);
	cr_expect(is_there("rpc/3/member/2"));
	cr_expect_eq(tell(&j, info_of("ann", 2)), XR_OK);
	EXPECT_FAILED(tell(&j, info_of("bob", 2)), XR_E_EXISTS,
		"bob and ann both say that they are rank 2");
	EXPECT_FAILED(tell(&j, failure_new(XR_E_INVAL, "no")), XR_E_EXISTS,
		"? and ann both say that they are rank 2");
	cr_expect(gets == 2 && asked[0] == 0 && asked[1] == 0);
	put("rpc/3/member/2", "?", 1);
	EXPECT_FAILED(tell(&j, info_of("bob", 2)), XR_E_EXISTS,
		"bob and ? both say that they are rank 2");
	xr_store_close(store);
	cr_expect_eq(tell(&j, info_of("bob", 2)), XR_E_CLOSED);
	cr_expect_eq(gets, 3);
}

static bool
is_odd(const struct join *j, uint32_t rank)
{
	cr_expect_eq(j->cycle, 3);
	return rank % 2 == 1;
}

static const char *
late_text(uint32_t size, uint32_t first, size_t cap)
{
	static char text[200];
	struct join j = of(0, size);

	memset(text, '#', sizeof(text));
	join_late_text(&j, first, is_odd, text, cap);
	cr_expect_eq(text[cap], '#');
	return text;
}

Test(join, who_is_late_is_named_as_far_as_there_is_room)
{
	cr_expect_str_eq(late_text(7, 1, 100),
		"these ranks of 7 did not come in time: 2, 4, 6");
	cr_expect_str_eq(late_text(6, 0, 100),
		"these ranks of 6 did not come in time: 0, 2, 4");
	/* 39 bytes, and 16 for what may come next. */
	cr_expect_str_eq(late_text(9, 8, 55),
		"these ranks of 9 did not come in time: ");
	cr_expect_str_eq(late_text(9, 6, 56),
		"these ranks of 9 did not come in time: 6");
	cr_expect_str_eq(late_text(9, 6, 57),
		"these ranks of 9 did not come in time: 6, 8");
}

/* --- meeting ---------------------------------------------------------------- */

static enum xr_status opinion; /* of judge() */
static size_t judged;          /* members, all calls together */
static void *const mark = &opinion;

static enum xr_status
judge(const struct xr_value *infos, void *ctx, struct xr_error *e)
{
	cr_expect_eq(ctx, mark);
	judged += xr_value_count(infos);
	return opinion == XR_OK ? XR_OK : fail(e, opinion, "not these");
}

static enum xr_status
meet(const struct join *j, struct xr_value **infos)
{
	return join_meet(j, judge, mark, infos, &err);
}

/* The members of a group of three tell, but for rank @without. */
static void
tell_all_but(uint32_t without)
{
	static const char *const names[] = { "ann", "bob", "cat" };

	for (uint32_t r = 0; r < 3; r++) {
		struct join j = of(r, 3);

		if (r != without)
			cr_assert_eq(tell(&j, info_of(names[r], r)), XR_OK);
	}
}

static void
expect_all(struct xr_value *infos)
{
	static const char *const names[] = { "ann", "bob", "cat" };
	struct member m;

	cr_assert_eq(xr_value_count(infos), 3);
	for (uint32_t r = 0; r < 3; r++) {
		cr_assert(member_read(xr_value_at(infos, r), &m));
		cr_expect_str_eq(m.name, names[r]);
	}
	xr_value_unref(infos);
}

Test(join, all_have_the_list_that_rank_0_collects)
{
	struct join zero = of(0, 3), two = of(2, 3);
	struct xr_value *infos = NULL;

	tell_all_but(3);
	cr_assert_eq(meet(&zero, &infos), XR_OK, "%s", err.text);
	cr_expect_eq(judged, 3);
	expect_all(infos);
	/* Rank 0 keeps half a second for its verdict. */
	cr_expect_eq(gets, 3);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(asked[i], TEN_S - NS_PER_S / 2);
	infos = NULL;
	cr_assert_eq(meet(&two, &infos), XR_OK, "%s", err.text);
	expect_all(infos);
	cr_expect(gets == 4 && asked[3] == TEN_S && judged == 3);
}

/* How long rank 0 may wait for a member, if it has @left. */
static int64_t
patience(int64_t left)
{
	struct join zero = of(0, 1);
	struct xr_value *infos = NULL;

	gets = 0;
	zero.deadline = left == XR_TIMEOUT_NEVER ? INT64_MAX : NOW + left;
	cr_expect_eq(meet(&zero, &infos), XR_E_TIMEOUT);
	cr_expect_eq(gets, 1);
	return asked[0];
}

Test(join, rank_0_waits_for_a_member_without_the_time_of_its_verdict)
{
	cr_expect_eq(patience(XR_TIMEOUT_NEVER), XR_TIMEOUT_NEVER);
	cr_expect_eq(patience(0), 1);
	cr_expect_eq(patience(NS_PER_S / 2 - 1), 1);
	cr_expect_eq(patience(NS_PER_S / 2), 1);
	cr_expect_eq(patience(NS_PER_S / 2 + 2), 2);
}

#define EXPECT_REFUSED(number, words) \
	do { \
		struct join zero_ = of(0, 3), two_ = of(2, 3); \
		struct xr_value *infos_ = NULL; \
		EXPECT_FAILED(meet(&zero_, &infos_), number, words); \
		err.text[0] = '\0'; \
		EXPECT_FAILED(meet(&two_, &infos_), number, words); \
		cr_expect_null(infos_); \
	} while (0)

Test(join, all_are_told_who_did_not_come)
{
	tell_all_but(1);
	EXPECT_REFUSED(XR_E_TIMEOUT,
		"these ranks of 3 did not come in time: 1");
	/* Of whom nothing can be known nothing is said. */
	is_lost = true;
	EXPECT_REFUSED(XR_E_TIMEOUT, "these ranks of 3 did not come in time: ");
	cr_expect_eq(judged, 0);
}

Test(join, all_are_told_who_cannot_be_a_member)
{
	struct join one = of(1, 3);

	tell_all_but(1);
	cr_assert_eq(tell(&one, failure_new(XR_E_DEVICE, "no GPU")), XR_OK);
	EXPECT_REFUSED(XR_E_PEER_LOST,
		"rank 1 could not join: XR_E_DEVICE: no GPU");
	cr_expect_eq(judged, 0);
}

Test(join, all_are_told_what_rank_0_thinks)
{
	tell_all_but(3);
	opinion = XR_E_CONFLICT;
	EXPECT_REFUSED(XR_E_CONFLICT, "not these");
	cr_expect_eq(judged, 3);
}

Test(join, all_are_told_that_rank_0_gave_up)
{
	struct join zero = of(0, 3), two = of(2, 3);
	struct xr_error why = { .text = "no room" };
	struct xr_value *infos = NULL;

	EXPECT_FAILED(meet(&two, &infos), XR_E_TIMEOUT, "no word from rank 0");
	join_give_up(&zero, XR_E_NOMEM, &why);
	EXPECT_FAILED(meet(&two, &infos), XR_E_PEER_LOST,
		"rank 0 could not join: XR_E_NOMEM: no room");
	xr_store_close(store);
	cr_expect_eq(meet(&two, &infos), XR_E_CLOSED);
	cr_expect_eq(meet(&zero, &infos), XR_E_CLOSED);
	cr_expect_null(infos);
}

Test(join, rank_0_without_memory_has_no_list)
{
	struct join zero = of(0, 1);
	struct xr_value *infos = NULL;

	cr_assert_eq(tell(&zero, info_of("ann", 0)), XR_OK);
	until_short = 1;
	EXPECT_FAILED(meet(&zero, &infos), XR_E_NOMEM, "out of memory");
	cr_expect(was_short && gets == 0);
}

/* --- readiness -------------------------------------------------------------- */

Test(join, whoever_is_ready_last_lets_all_go)
{
	struct join j = of(1, 3);
	struct xr_store_value go = { 0 };

	EXPECT_FAILED(join_ready(&j, &err), XR_E_TIMEOUT,
		"2 of 3 were not ready in time");
	cr_expect(gets == 1 && asked[0] == TEN_S);
	EXPECT_FAILED(join_ready(&j, &err), XR_E_TIMEOUT,
		"1 of 3 were not ready in time");
	cr_expect_not(is_there("rpc/3/go"));
	cr_expect_eq(join_ready(&j, &err), XR_OK);
	cr_expect_eq(gets, 2);
	cr_expect(is_there("rpc/3/ready") && is_there("rpc/3/go"));
	cr_assert_eq(__real_xr_store_get(store, "rpc/3/go", 0, &go, &err),
		XR_OK);
	cr_expect_eq(go.len, 1);
	cr_expect_eq(*(const char *)go.data, '1');
	xr_store_value_free(&go);
	/* The others had waited. */
	cr_expect_eq(join_ready(&j, &err), XR_OK);
	cr_expect_eq(gets, 3);
	xr_store_close(store);
	cr_expect_eq(join_ready(&j, &err), XR_E_CLOSED);
	cr_expect_eq(gets, 3);
}
