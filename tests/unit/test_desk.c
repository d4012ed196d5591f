/* SPDX-License-Identifier: Apache-2.0 */
/* test_desk.c - what is asked of a store, and what its guests take away. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "store/desk.h"

static struct desk *desk;
static struct desk_guest ann, ben;
static struct store_reply reply;
static unsigned told; /* ready() was called so often */

static void
on_ready(struct desk_guest *guest, void *ctx)
{
	cr_assert(ctx == &told);
	cr_assert(desk_has(guest));
	told++;
}

static void
begin(void)
{
	struct desk_setup setup = {
		.limits = { 1 << 20, 1 << 16, 100, 100, 4 },
		.ready = on_ready,
		.ctx = &told,
	};

	desk = desk_new(&setup);
	cr_assert_not_null(desk);
	desk_enter(&ann, NULL);
	desk_enter(&ben, NULL);
}

static void
end(void)
{
	desk_leave(desk, &ann);
	desk_leave(desk, &ben);
	desk_free(desk);
}

TestSuite(desk, .init = begin, .fini = end);

static void
forget(void)
{
	store_value_unref(reply.value);
	reply = (struct store_reply){ 0 };
}

static enum xr_status
set(struct desk_guest *guest, const char *key, const char *text)
{
	struct store_request q = {
		.op = STORE_SET,
		.key = span_of(key),
		.value = store_value_new(text, strlen(text)),
	};

	cr_assert(desk_ask(desk, guest, &q, 0, &reply));
	store_value_unref(q.value);
	return reply.status;
}

/* False: it waits. */
static bool
get(struct desk_guest *guest, int64_t id, const char *key, int64_t patience)
{
	struct store_request q = {
		.op = STORE_GET,
		.id = id,
		.key = span_of(key),
		.patience = patience,
	};

	return desk_ask(desk, guest, &q, 0, &reply);
}

static bool
value_is(const char *text)
{
	bool is = reply.value != NULL && reply.value->len == strlen(text) &&
		memcmp(reply.value->data, text, strlen(text)) == 0;

	forget();
	return is;
}

Test(desk, what_is_there_is_answered_at_once)
{
	cr_assert(set(&ann, "k", "abc") == XR_OK);
	cr_assert(get(&ben, 7, "k", DESK_NEVER));
	cr_expect(eq(i64, reply.id, 7));
	cr_expect(value_is("abc"));
	cr_expect(eq(int, (int)told, 0));
}

Test(desk, who_waits_is_told_once_and_takes_all_in_order)
{
	cr_assert_not(get(&ben, 1, "k", DESK_NEVER));
	cr_assert_not(get(&ben, 2, "k", DESK_NEVER));
	cr_assert_not(desk_take(&ben, &reply));
	cr_assert(set(&ann, "k", "abc") == XR_OK);
	cr_expect(eq(int, (int)told, 1));
	cr_assert(set(&ann, "k", "later") == XR_OK);
	cr_assert(desk_take(&ben, &reply));
	cr_expect(eq(i64, reply.id, 1));
	cr_expect(value_is("abc"));
	cr_assert(desk_take(&ben, &reply));
	cr_expect(eq(i64, reply.id, 2));
	cr_expect(value_is("abc"));
	cr_expect_not(desk_has(&ben));
}

Test(desk, patience_ends_in_its_order_and_the_key_is_named)
{
	cr_assert_not(get(&ann, 1, "late", 3 * NS_PER_S));
	cr_assert_not(get(&ann, 2, "soon", NS_PER_S));
	cr_assert_not(get(&ann, 3, "never", DESK_NEVER));
	cr_expect(eq(i64, desk_due(desk), NS_PER_S));
	desk_turn(desk, NS_PER_S - 1);
	cr_expect_not(desk_has(&ann));
	desk_turn(desk, NS_PER_S);
	cr_assert(desk_take(&ann, &reply));
	cr_expect(eq(i64, reply.id, 2));
	cr_expect(reply.status == XR_E_TIMEOUT);
	cr_expect(eq(str, reply.err.text,
		"store: nobody has set the key 'soon' within 1.0 s"));
	cr_expect(eq(i64, desk_due(desk), 3 * NS_PER_S));
	desk_turn(desk, 10 * NS_PER_S);
	cr_assert(desk_take(&ann, &reply));
	cr_expect(eq(i64, reply.id, 1));
	cr_expect(eq(i64, desk_due(desk), DESK_NEVER));
	cr_assert(set(&ben, "soon", "x") == XR_OK);
	cr_expect_not(desk_has(&ann));
}

Test(desk, who_has_come_in_time_is_not_late)
{
	cr_assert_not(get(&ann, 1, "k", NS_PER_S));
	cr_assert(set(&ben, "k", "abc") == XR_OK);
	desk_turn(desk, 2 * NS_PER_S);
	cr_assert(desk_take(&ann, &reply));
	cr_expect(value_is("abc"));
}

Test(desk, without_patience_a_missing_key_is_said_at_once)
{
	struct span keys[] = { span_of("here"), span_of("gone") };
	struct store_request q = {
		.op = STORE_WAIT,
		.keys = keys,
		.count = 2,
	};

	cr_assert(get(&ann, 1, "k", 0));
	cr_expect(reply.status == XR_E_NOTFOUND);
	cr_assert(set(&ann, "here", "x") == XR_OK);
	cr_assert(desk_ask(desk, &ann, &q, 0, &reply));
	cr_expect(eq(str, reply.err.text,
		"store: nobody has set the key 'gone'"));
	q.op = STORE_CHECK;
	cr_assert(desk_ask(desk, &ann, &q, 0, &reply));
	cr_expect(eq(i64, reply.number, 1));
}

Test(desk, a_guest_that_leaves_is_owed_nothing)
{
	cr_assert_not(get(&ann, 1, "k", NS_PER_S));
	cr_assert_not(get(&ann, 2, "other", NS_PER_S));
	cr_assert(set(&ben, "k", "abc") == XR_OK);
	desk_leave(desk, &ann);
	cr_expect(eq(i64, desk_due(desk), DESK_NEVER));
	desk_enter(&ann, NULL);
	cr_assert(set(&ben, "other", "abc") == XR_OK);
	cr_expect_not(desk_has(&ann));
}

Test(desk, more_waits_than_a_guest_may_have_are_refused)
{
	for (int i = 0; i < 4; i++)
		cr_assert_not(get(&ann, i, "k", NS_PER_S));
	cr_assert(get(&ann, 4, "k", NS_PER_S));
	cr_expect(reply.status == XR_E_AGAIN);
	cr_assert_not(get(&ben, 4, "k", NS_PER_S));
}

Test(desk, more_keys_than_a_request_may_have_are_refused)
{
	static struct span keys[DESK_KEYS_MAX + 1];
	struct store_request q = {
		.op = STORE_CHECK,
		.keys = keys,
		.count = DESK_KEYS_MAX + 1,
	};

	cr_assert(desk_ask(desk, &ann, &q, 0, &reply));
	cr_expect(reply.status == XR_E_RANGE);
	q.op = (enum store_op)99;
	q.count = 0;
	cr_assert(desk_ask(desk, &ann, &q, 0, &reply));
	cr_expect(reply.status == XR_E_NOTFOUND);
}

Test(desk, a_value_it_cannot_see_is_no_number_and_equals_nothing)
{
	struct store_request q = {
		.op = STORE_SET,
		.key = span_of("k"),
		.value = store_value_wrap(NULL, 3, NULL, NULL),
	};

	cr_assert(desk_ask(desk, &ann, &q, 0, &reply));
	q.op = STORE_ADD;
	cr_assert(desk_ask(desk, &ann, &q, 0, &reply));
	cr_expect(reply.status == XR_E_INVAL);
	q.op = STORE_COMPARE_SET;
	q.expected = span_of("abc");
	cr_assert(desk_ask(desk, &ann, &q, 0, &reply));
	cr_expect(reply.value == q.value);
	forget();
	store_value_unref(q.value);
}

/* Of @count keys that @names has, one character each. */
static enum xr_status
ask_of(enum store_op op, const char *names, size_t count)
{
	struct span keys[8];
	struct store_request q = { .op = op, .keys = keys, .count = count };

	for (size_t i = 0; names[i] != '\0'; i++)
		keys[i] = (struct span){ names + i, 1 };
	forget();
	cr_assert(desk_ask(desk, &ann, &q, 0, &reply));
	return reply.status;
}

Test(desk, each_key_is_looked_at_and_no_other)
{
	static const struct {
		const char *names; /* one more than are asked for, perhaps */
		size_t count;
		int64_t there;
	} rows[] = {
		{ "x", 0, 0 },
		{ "a", 1, 1 },
		{ "x", 1, 0 },
		{ "ac", 2, 2 },
		{ "acx", 2, 2 },
		{ "xac", 2, 1 },
		{ "axc", 3, 2 },
		{ "acx", 3, 2 },
		{ "xac", 3, 2 },
	};

	cr_assert(set(&ann, "a", "1") == XR_OK);
	cr_assert(set(&ann, "c", "2") == XR_OK);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool all = rows[i].there == (int64_t)rows[i].count;

		cr_expect_eq(ask_of(STORE_CHECK, rows[i].names, rows[i].count),
			XR_OK);
		cr_expect_eq(reply.number, rows[i].there, "%zu", i);
		cr_expect_eq(ask_of(STORE_WAIT, rows[i].names, rows[i].count),
			all ? XR_OK : XR_E_NOTFOUND, "%zu", i);
		cr_expect(all || strstr(reply.err.text, "'x'") != NULL, "%s",
			reply.err.text);
		cr_expect_null(reply.value);
	}
}
