/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_wait.c - who waits at the rendezvous store, and what he hears. */
#include "tests/unit/store_rig.h"

TestSuite(store_wait, .init = begin, .fini = end);

/* --- waiting --------------------------------------------------------------- */

Test(store_wait, AC_S1_a_get_waits_until_the_key_is_set)
{
	blocked(&owner, 7, "k");
	cr_assert(set("other", "x") == XR_OK);
	HEARD("");
	cr_assert(set("k", "abc") == XR_OK);
	HEARD("7=abc ");
	cr_assert(set("k", "again") == XR_OK);
	HEARD("");
	cr_assert(zero(sz, owner.count));
}

Test(store_wait, AC_S1_a_waiter_whose_time_is_up_names_its_key)
{
	struct store_waiter *w = blocked(&owner, 7, "addr/0");

	cr_assert(span_is(store_waiter_key(w), "addr/0"));
	store_cancel(store, w);
	cr_assert(set("addr/0", "x") == XR_OK);
	HEARD("");
	cr_assert(zero(sz, owner.count));
}

Test(store_wait, a_key_that_is_there_is_got_at_once)
{
	struct store_ask ask = { .owner = &owner };
	struct store_value *v = NULL;

	cr_assert(set("k", "abc") == XR_OK);
	cr_assert(store_get(store, span_of("k"), &ask, &v, NULL) == XR_OK);
	cr_assert_null(ask.waiter);
	cr_assert(eq(sz, v->len, 3));
	store_value_unref(v);
}

Test(store_wait, who_does_not_wait_hears_that_there_is_none)
{
	struct store_value *v = NULL;

	cr_assert(store_get(store, span_of("k"), NULL, &v, &error) ==
		XR_E_NOTFOUND);
	cr_assert(eq(str, error.text, "store: nobody has set the key 'k'"));
	cr_assert(zero(sz, store_bytes(store)));
}

Test(store_wait, add_and_compare_set_end_a_wait_too)
{
	int64_t sum;

	blocked(&owner, 1, "n");
	blocked(&owner, 2, "c");
	cr_assert(add("n", -3, &sum) == XR_OK);
	HEARD("1=-3 ");
	SWAPPED("c", "", "v", "v");
	HEARD("2=v ");
}

Test(store_wait, waiters_are_answered_in_the_order_of_asking)
{
	blocked(&owner, 1, "k");
	awaiting(&owner, 2, "k");
	blocked(&owner, 3, "k");
	cr_assert(set("k", "v") == XR_OK);
	HEARD("1=v 2 3=v ");
}

Test(store_wait, a_wait_ends_with_the_last_of_its_keys)
{
	struct store_waiter *w;

	cr_assert(set("b", "x") == XR_OK);
	w = awaiting(&owner, 5, "a,b,c,a");
	cr_assert(span_is(store_waiter_key(w), "a"));
	cr_assert(set("a", "x") == XR_OK);
	cr_assert(span_is(store_waiter_key(w), "c"));
	cr_assert(store_delete(store, span_of("a")));
	HEARD("");
	cr_assert(set("c", "x") == XR_OK);
	HEARD("5 ");
}

Test(store_wait, what_is_all_there_need_not_be_waited_for)
{
	cr_assert(set("a", "x") == XR_OK);
	cr_assert(set("b", "x") == XR_OK);
	cr_assert_null(awaiting(&owner, 5, "a,b"));
	HEARD("");
}

Test(store_wait, check_asks_for_all_keys)
{
	struct span keys[] = { span_of("a"), span_of("b") };

	cr_assert(store_check(store, keys, 0));
	cr_assert(set("a", "") == XR_OK);
	blocked(&owner, 1, "b");
	cr_assert(store_check(store, keys, 1));
	cr_assert_not(store_check(store, keys, 2));
	cr_assert(set("b", "") == XR_OK);
	cr_assert(store_check(store, keys, 2));
}

/* --- AC-S10: an end before the key comes ----------------------------------- */

Test(store_wait, AC_S10_who_closes_is_told_of_every_wait)
{
	struct store_ask ask = { .owner = &owner };
	struct store_owner other;
	struct store_value *v;

	store_owner_init(&other, NULL);
	blocked(&owner, 1, "a");
	blocked(&other, 2, "a");
	cr_assert(set("here", "x") == XR_OK);
	awaiting(&owner, 3, "here,b");
	store_owner_close(store, &owner);
	HEARD("1!a 3!b ");
	cr_assert(store_get(store, span_of("a"), &ask, &v, &error) ==
		XR_E_CLOSED);
	cr_assert(set("a", "x") == XR_OK);
	HEARD("2=x ");
}

Test(store_wait, AC_S10_who_has_gone_is_not_answered)
{
	struct store_owner other;

	store_owner_init(&other, NULL);
	blocked(&owner, 1, "a");
	blocked(&other, 2, "a");
	awaiting(&owner, 3, "a,b");
	store_owner_drop(store, &owner);
	cr_assert(zero(sz, owner.count));
	cr_assert(set("a", "x") == XR_OK);
	cr_assert(set("b", "x") == XR_OK);
	HEARD("2=x ");
}

Test(store_wait, AC_S10_a_store_that_closes_ends_all_waits)
{
	struct store_ask ask = { .owner = &owner };
	struct store_value *v = NULL;

	blocked(&owner, 1, "a");
	blocked(&owner, 2, "b");
	store_close(store);
	HEARD("1!a 2!b ");
	cr_assert(store_get(store, span_of("a"), &ask, &v, &error) ==
		XR_E_CLOSED);
	cr_assert(set("a", "x") == XR_OK);
	VALUE("a", "x");
}

Test(store_wait, what_is_only_waited_for_leaves_with_its_waiters)
{
	struct store_waiter *w = blocked(&owner, 1, "abc");

	awaiting(&owner, 2, "abc,de");
	cr_assert(eq(sz, store_bytes(store), 5));
	cr_assert(zero(sz, store_count(store, span_of(""))));
	cr_assert_not(store_delete(store, span_of("abc")));
	store_cancel(store, w);
	cr_assert(eq(sz, store_bytes(store), 5));
	store_owner_drop(store, &owner);
	cr_assert(zero(sz, store_bytes(store)));
}

/* --- answers that call back ------------------------------------------------ */

/* Not from within another answer: chains may be long. */
static void
set_the_next(const struct store_answer *answer)
{
	static unsigned depth;

	cr_assert(zero(u32, depth++));
	if (answer->id < 4)
		cr_assert(set((char[]){ (char)('b' + answer->id), '\0' },
				  "x") == XR_OK);
	depth--;
}

Test(store_wait, an_answer_may_set_what_others_wait_for)
{
	blocked(&owner, 0, "a");
	blocked(&owner, 1, "b");
	blocked(&owner, 4, "a");
	blocked(&owner, 2, "c");
	in_answer = set_the_next;
	cr_assert(set("a", "y") == XR_OK);
	HEARD("0=y 4=y 1=x 2=x ");
	VALUE("d", "x");
}

static void
drop_owner(const struct store_answer *answer)
{
	store_owner_drop(store, answer->owner);
}

Test(store_wait, an_answer_may_drop_those_that_are_next)
{
	blocked(&owner, 1, "a");
	blocked(&owner, 2, "a");
	awaiting(&owner, 3, "a,b");
	in_answer = drop_owner;
	cr_assert(set("a", "y") == XR_OK);
	HEARD("1=y ");
	cr_assert(set("b", "y") == XR_OK);
	HEARD("");
}

static void
close_owner(const struct store_answer *answer)
{
	store_owner_close(store, answer->owner);
}

Test(store_wait, who_is_closed_still_hears_what_has_come)
{
	blocked(&owner, 1, "a");
	blocked(&owner, 2, "a");
	blocked(&owner, 3, "b");
	in_answer = close_owner;
	cr_assert(set("a", "y") == XR_OK);
	HEARD("1=y 2=y 3!b ");
}

static void
delete_key(const struct store_answer *answer)
{
	store_delete(store, span_of("a"));
}

Test(store_wait, a_value_lasts_for_all_who_waited_for_it)
{
	blocked(&owner, 1, "a");
	blocked(&owner, 2, "a");
	in_answer = delete_key;
	cr_assert(set("a", "y") == XR_OK);
	HEARD("1=y 2=y ");
	VALUE("a", "(none)");
}

static void
free_store(const struct store_answer *answer)
{
	store_free(store);
	store = NULL;
}

Test(store_wait, an_answer_may_free_the_store)
{
	blocked(&owner, 1, "a");
	blocked(&owner, 2, "a");
	blocked(&owner, 3, "b");
	in_answer = free_store;
	cr_assert(set("a", "y") == XR_OK);
	HEARD("1=y ");
	in_answer = NULL;
	open_store(&wide);
	blocked(&owner, 1, "a");
	blocked(&owner, 2, "b");
	in_answer = free_store;
	store_owner_close(store, &owner);
	HEARD("1!a ");
}

Test(store_wait, a_store_may_be_freed_while_somebody_waits)
{
	blocked(&owner, 1, "a");
	awaiting(&owner, 2, "a,b");
	store_free(store);
	store = NULL;
	HEARD("");
}
