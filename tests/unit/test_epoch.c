/* SPDX-License-Identifier: Apache-2.0 */
/* test_epoch.c - the records of a group that changes, in a store. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/short_memory.h"
#include "worker/rpc/epoch.h"
#include "worker/rpc/shelf.h"
#include "tests/unit/file_store.h"

#define KEPT 32 /* records, as in epoch.c */

static struct xr_error err;
static struct xr_store *store;
static bool head_is_lost; /* there is none when it is to be moved */
static int moves;         /* of a head that is lost */

static void
begin(void)
{
	store = file_store_open();
}

static void
end(void)
{
	file_store_close(store);
}

TestSuite(epoch, .timeout = 60, .init = begin, .fini = end);

enum xr_status __real_xr_store_compare_set(struct xr_store *s,
	const struct xr_store_swap *swap, struct xr_store_value *now,
	bool *there, struct xr_error *e);
enum xr_status __wrap_xr_store_compare_set(struct xr_store *s,
	const struct xr_store_swap *swap, struct xr_store_value *now,
	bool *there, struct xr_error *e);

enum xr_status
__wrap_xr_store_compare_set(struct xr_store *s,
	const struct xr_store_swap *swap, struct xr_store_value *now,
	bool *there, struct xr_error *e)
{
	if (!head_is_lost || strcmp(swap->key, "rpc/dynamic/head") != 0)
		return __real_xr_store_compare_set(s, swap, now, there, e);
	*there = false;
	return moves++ == 0 ? XR_OK : XR_E_CLOSED;
}

static void (*on_wait)(void); /* called before a wait without a limit */
static int waits;

enum xr_status __real_xr_store_get(struct xr_store *s, const char *key,
	int64_t timeout, struct xr_store_value *value, struct xr_error *e);
enum xr_status __wrap_xr_store_get(struct xr_store *s, const char *key,
	int64_t timeout, struct xr_store_value *value, struct xr_error *e);

enum xr_status
__wrap_xr_store_get(struct xr_store *s, const char *key, int64_t timeout,
	struct xr_store_value *value, struct xr_error *e)
{
	if (timeout == XR_TIMEOUT_NEVER) {
		waits++;
		on_wait();
	}
	return __real_xr_store_get(s, key, timeout, value, e);
}

static void
put(const char *key, const char *text)
{
	cr_assert_eq(xr_store_set(store, key, text, strlen(text), &err), XR_OK,
		"%s", err.text);
}

/* The value of @key; "" if there is none. */
static const char *
value_of(const char *key)
{
	static char text[64];
	struct xr_store_value v = { 0 };

	text[0] = '\0';
	if (xr_store_get(store, key, 0, &v, NULL) == XR_OK)
		snprintf(text, sizeof(text), "%.*s", (int)v.len,
			(const char *)v.data);
	xr_store_value_free(&v);
	return text;
}

/* Returns true if there is record @number. */
static bool
is_kept(uint64_t number)
{
	struct xr_value *v = NULL;
	enum xr_status status;
	char key[64];

	snprintf(key, sizeof(key), "rpc/dynamic/%llu",
		(unsigned long long)number);
	status = shelf_get(store, key, 0, &v, &err);
	xr_value_unref(v);
	cr_assert(status == XR_OK || status == XR_E_NOTFOUND, "%s", err.text);
	return status == XR_OK;
}

static int64_t author; /* of a record: each one writes its own */

/* As often as @ctx says: one member more. */
static enum xr_status
grow(const struct epoch *now, struct epoch *next, void *ctx, struct xr_error *e)
{
	int *left = ctx;

	(void)e;
	if (*left == 0)
		return XR_E_AGAIN;
	--*left;
	next->members = xr_value_new_list();
	next->lost = xr_value_new_list();
	next->asks = true;
	for (uint64_t n = 0; n <= now->number; n++)
		cr_assert_eq(xr_value_append(next->members,
				     xr_value_new_i64(author)),
			XR_OK);
	return XR_OK;
}

/* Changes the group @count times; gives the number of the last record of its own. */
static uint64_t
change(int count)
{
	struct epoch now = { 0 }, mine = { 0 };
	uint64_t number;

	cr_assert_eq(epoch_change(store, &(struct epoch_change){ grow, &count },
			     &now, &mine, &err),
		XR_OK, "%s", err.text);
	cr_expect_eq(count, 0);
	cr_expect_eq(now.number, xr_value_count(now.members));
	number = mine.number;
	epoch_fini(&now);
	epoch_fini(&mine);
	return number;
}

/* The newest record is @number. */
static void
expect_newest(uint64_t number)
{
	struct epoch e = { 0 };

	cr_assert_eq(epoch_newest(store, &e, &err), XR_OK, "%s", err.text);
	cr_expect_eq(e.number, number);
	cr_assert_not_null(e.members);
	cr_assert_not_null(e.lost);
	cr_expect_eq(xr_value_count(e.members), number);
	cr_expect_eq(xr_value_count(e.lost), 0);
	cr_expect_eq(e.asks, number > 0);
	epoch_fini(&e);
	cr_expect_null(e.members);
}

Test(epoch, before_the_first_record_the_lists_are_empty)
{
	expect_newest(0);
	cr_expect_eq(change(0), 0);
	cr_expect_str_eq(value_of("rpc/dynamic/head"), "");
}

/* Neither of both lists is left. */
Test(epoch, without_memory_there_are_no_lists)
{
	enum xr_status status = XR_E_NOMEM;
	unsigned at = 0;

	while (status != XR_OK && at < 40) {
		struct epoch e = { 0 };

		until_short = ++at;
		status = epoch_newest(store, &e, &err);
		until_short = 0;
		cr_expect(status == XR_OK || status == XR_E_NOMEM, "%u: %s", at,
			err.text);
		cr_expect_eq(e.members != NULL, status == XR_OK);
		cr_expect_eq(e.lost != NULL, status == XR_OK);
		epoch_fini(&e);
	}
	cr_expect(at > 2 && at < 40, "%u", at);
}

Test(epoch, a_change_writes_the_next_record_and_moves_the_head)
{
	cr_expect_eq(change(1), 1);
	cr_expect_str_eq(value_of("rpc/dynamic/head"), "1");
	cr_expect_eq(change(9), 10);
	cr_expect_str_eq(value_of("rpc/dynamic/head"), "10");
	expect_newest(10);
}

Test(epoch, a_record_beyond_the_head_is_the_newest)
{
	change(4);
	put("rpc/dynamic/head", "2");
	expect_newest(4);
}

Test(epoch, the_head_does_not_go_back)
{
	put("rpc/dynamic/head", "0");
	cr_expect_eq(change(1), 1);
	cr_expect_str_eq(value_of("rpc/dynamic/head"), "1");
}

Test(epoch, a_head_that_is_lost_is_not_moved)
{
	change(1);
	head_is_lost = true;
	cr_expect_eq(change(1), 2);
	cr_expect_eq(moves, 1);
	head_is_lost = false;
	cr_expect_str_eq(value_of("rpc/dynamic/head"), "1");
	expect_newest(2);
}

Test(epoch, the_last_32_records_are_kept)
{
	change(KEPT);
	cr_expect(is_kept(1));
	change(1);
	cr_expect_not(is_kept(1));
	cr_expect(is_kept(2));
	change(KEPT);
	for (uint64_t n = 1; n <= 2 * KEPT + 1; n++)
		cr_expect_eq(is_kept(n), n > KEPT + 1, "record %d", (int)n);
}

Test(epoch, older_records_that_were_left_are_removed_with_the_next)
{
	change(KEPT + 2);
	cr_assert_not(is_kept(2));
	/* A gap ends the search. */
	cr_assert_eq(shelf_set(store, "rpc/dynamic/1", xr_value_new_nil(),
			     &err),
		XR_OK);
	change(1);
	cr_expect(is_kept(1));
	/* Without a gap all are removed. */
	cr_assert_eq(shelf_set(store, "rpc/dynamic/2", xr_value_new_nil(),
			     &err),
		XR_OK);
	cr_assert_eq(shelf_set(store, "rpc/dynamic/3", xr_value_new_nil(),
			     &err),
		XR_OK);
	change(1);
	for (uint64_t n = 1; n <= 4; n++)
		cr_expect_not(is_kept(n), "record %d", (int)n);
}

static void
change_once_more(void)
{
	change(1);
}

static void
expect_await(uint64_t known, uint64_t number, int times)
{
	struct epoch e = { 0 };

	waits = 0;
	cr_assert_eq(epoch_await(store, known, &e, &err), XR_OK, "%s",
		err.text);
	cr_expect_eq(e.number, number);
	cr_expect_eq(waits, times);
	epoch_fini(&e);
}

Test(epoch, a_record_after_the_known_one_is_waited_for)
{
	on_wait = change_once_more;
	expect_await(0, 1, 1);
	change(2);
	expect_await(2, 3, 0);
	expect_await(3, 4, 1);
	/* Record 2 is not kept any more. */
	change(KEPT);
	expect_await(1, KEPT + 4, 0);
}

static int late_left; /* changes of grow_late() to come */
static bool others_are_done;

/* The first time, others write @ctx records between reading and claiming. */
static enum xr_status
grow_late(const struct epoch *now, struct epoch *next, void *ctx,
	struct xr_error *e)
{
	int *others = ctx;
	enum xr_status status;

	if (!others_are_done)
		change(*others);
	others_are_done = true;
	author = 1;
	status = grow(now, next, &late_left, e);
	author = 0;
	return status;
}

/* Changes the group @count times at most, the first time when others have written
 * @others records since. Gives the number of the last record of its own. */
static uint64_t
change_late(int others, int count)
{
	struct epoch now = { 0 }, mine = { 0 };
	uint64_t number;

	late_left = count;
	cr_assert_eq(epoch_change(store,
			     &(struct epoch_change){ grow_late, &others }, &now,
			     &mine, &err),
		XR_OK, "%s", err.text);
	number = mine.number;
	cr_expect_eq(late_left, 0);
	epoch_fini(&now);
	epoch_fini(&mine);
	return number;
}

Test(epoch, a_record_that_was_claimed_too_late_is_taken_back)
{
	change(1);
	cr_expect_eq(change_late(KEPT + 9, 2), KEPT + 11);
	cr_expect_not(is_kept(2));
	cr_expect_str_eq(value_of("rpc/dynamic/head"), "43");
	expect_newest(KEPT + 11);
}

Test(epoch, a_change_that_lost_its_claim_is_tried_again)
{
	change(1);
	cr_expect_eq(change_late(1, 2), 3);
	expect_newest(3);
}

Test(epoch, a_change_that_lost_its_claim_has_no_record_of_its_own)
{
	change(1);
	cr_expect_eq(change_late(1, 1), 0);
	expect_newest(2);
}

Test(epoch, a_change_fails_with_its_store)
{
	struct epoch now = { .members = (void *)4096 };
	int count = 1;

	xr_store_close(store);
	cr_expect_eq(epoch_change(store, &(struct epoch_change){ grow, &count },
			     &now, NULL, &err),
		XR_E_CLOSED);
	cr_expect(now.members == NULL && count == 1);
}

/* Record 1 is @v, and is refused. */
static void
expect_no_record(struct xr_value *v)
{
	struct epoch e = { 0 };
	int count = 1;

	cr_assert_eq(shelf_set(store, "rpc/dynamic/1", v, &err), XR_OK);
	cr_expect_eq(epoch_newest(store, &e, &err), XR_E_PROTO);
	cr_expect_str_eq(err.text, "that is no list of members");
	cr_expect(e.members == NULL && e.lost == NULL);
	cr_expect_eq(epoch_change(store, &(struct epoch_change){ grow, &count },
			     &e, NULL, &err),
		XR_E_PROTO);
	cr_expect_eq(count, 1);
	xr_value_unref(v);
}

static struct xr_value *
record(struct xr_value *members, struct xr_value *lost, struct xr_value *asks)
{
	struct xr_value *d = xr_value_new_dict();

	cr_assert_eq(xr_value_put(d, "members", 7, members), XR_OK);
	cr_assert_eq(xr_value_put(d, "lost", 4, lost), XR_OK);
	cr_assert_eq(xr_value_put(d, "asks", 4, asks), XR_OK);
	return d;
}

Test(epoch, what_is_no_record_is_refused)
{
	put("rpc/dynamic/head", "1");
	expect_no_record(xr_value_new_i64(1));
	expect_no_record(xr_value_new_dict());
	expect_no_record(record(xr_value_new_list(), xr_value_new_list(),
		xr_value_new_i64(1)));
	expect_no_record(record(xr_value_new_nil(), xr_value_new_list(),
		xr_value_new_bool(true)));
	expect_no_record(record(xr_value_new_list(), xr_value_new_nil(),
		xr_value_new_bool(true)));
}

Test(epoch, an_acknowledgement_has_the_numbers_of_record_and_member)
{
	cr_assert_eq(epoch_ack(store, 12, 7, &err), XR_OK);
	cr_expect_str_eq(value_of("rpc/dynamic/12/ack/7"), "1");
}
