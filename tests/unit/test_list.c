/* SPDX-License-Identifier: Apache-2.0 */
/* test_list.c - lists and dicts: what stands in other values. */
#include "tests/unit/short_memory.h"
#include "tests/unit/value_rig.h"

TestSuite(list, .init = begin, .fini = end);

/* --- lists ----------------------------------------------------------------- */

Test(list, a_list_keeps_its_order)
{
	struct xr_value *list = xr_value_new_list();
	int64_t got;

	for (int64_t i = 0; i < 100; i++)
		cr_assert_eq(xr_value_append(list, i64(i * i)), XR_OK);
	cr_expect(eq(sz, xr_value_count(list), 100));
	for (int64_t i = 0; i < 100; i++) {
		cr_assert_eq(xr_value_get_i64(xr_value_at(list, (size_t)i),
				     &got),
			XR_OK);
		cr_expect_eq(got, i * i);
	}
	cr_expect_null(xr_value_at(list, 100));
	xr_value_unref(list);
}

Test(list, what_stands_in_a_list_lives_as_long_as_it)
{
	struct xr_value *item = watched();
	struct xr_value *list = xr_value_new_list_of(&item, 1);
	struct xr_value *other = xr_value_new_list();

	cr_assert_eq(xr_value_append(other, xr_value_ref(item)), XR_OK);
	xr_value_unref(list);
	cr_expect(eq(int, freed, 0));
	cr_expect_str_eq(xr_value_data(xr_value_at(other, 0), NULL), "w");
	xr_value_unref(other);
	cr_expect(eq(int, freed, 1));
}

Test(list, what_cannot_be_appended_is_let_go)
{
	struct xr_value *list = xr_value_new_list(), *number = i64(1), *again;

	cr_expect_eq(xr_value_append(number, watched()), XR_E_INVAL);
	cr_expect_eq(xr_value_append(NULL, watched()), XR_E_INVAL);
	cr_expect_eq(xr_value_put(list, "k", 1, watched()), XR_E_INVAL);
	cr_expect_eq(xr_value_append(list, NULL), XR_E_NOMEM);
	cr_expect(eq(int, freed, 3));
	again = xr_value_ref(list);
	cr_expect_eq(xr_value_append(list, watched()), XR_E_STATE);
	xr_value_unref(again);
	cr_expect_eq(xr_value_append(list, watched()), XR_E_STATE,
		"it does not become one's own again");
	cr_expect(eq(int, freed, 5));
	cr_expect(eq(sz, xr_value_count(list), 0));
	xr_value_unref(list);
	xr_value_unref(number);
}

Test(list, what_stands_in_another_value_never_changes)
{
	struct xr_value *inner = xr_value_new_list(), *dict;
	struct xr_value *outer = xr_value_new_list_of(&inner, 1);

	cr_expect_eq(xr_value_append(inner, watched()), XR_E_STATE);
	cr_expect_eq(xr_value_append(inner, xr_value_ref(outer)), XR_E_STATE,
		"nothing holds itself");
	dict = xr_value_new_dict();
	cr_assert_eq(xr_value_append(outer, dict), XR_E_STATE,
		"a reference was taken above");
	dict = xr_value_new_dict();
	inner = xr_value_new_list_of(&dict, 1);
	cr_expect_eq(xr_value_put(dict, "k", 1, watched()), XR_E_STATE);
	xr_value_unref(inner);
	dict = xr_value_new_dict();
	inner = xr_fn_bind("f", dict);
	cr_expect_eq(xr_value_put(dict, "k", 1, watched()), XR_E_STATE);
	xr_value_unref(inner);
	cr_expect(eq(int, freed, 3));
	xr_value_unref(outer);
}

Test(list, a_list_that_is_to_hold_itself_stays_its_owners)
{
	struct xr_value *list = xr_value_new_list();
	struct xr_value *dict = xr_value_new_dict();

	cr_expect_eq(xr_value_append(list, list), XR_E_INVAL);
	cr_expect_eq(xr_value_append(list, i64(1)), XR_OK);
	cr_expect_eq(xr_value_put(dict, "k", 1, dict), XR_E_INVAL);
	cr_expect_eq(xr_value_put(dict, "k", 1, i64(1)), XR_OK);
	xr_value_unref(list);
	xr_value_unref(dict);
}

Test(list, a_list_of_items_takes_all_of_them_or_none)
{
	struct xr_value *items[] = { watched(), NULL, watched() };

	cr_expect_null(xr_value_new_list_of(items, 3));
	cr_expect(eq(int, freed, 2));
}

Test(list, a_list_is_full_at_its_limit)
{
	struct xr_value *list = xr_value_new_list(), *nil = xr_value_new_nil();

	for (int i = 0; i < XR_VALUE_ITEMS_MAX; i++)
		if (xr_value_append(list, xr_value_ref(nil)) != XR_OK)
			cr_fatal("at %d", i);
	cr_expect_eq(xr_value_append(list, watched()), XR_E_RANGE);
	cr_expect(eq(int, freed, 1));
	xr_value_unref(list);
	xr_value_unref(nil);
}

/* --- dicts ----------------------------------------------------------------- */

static void
key_of(int i, char key[16])
{
	snprintf(key, 16, "%x", (unsigned)i * 2654435761U);
}

Test(list, a_dict_finds_what_was_put_in_any_number)
{
	struct xr_value *dict = xr_value_new_dict();
	char key[16];
	int64_t got = -1;

	for (int i = 0; i < 1000; i++) {
		key_of(i, key);
		cr_assert_eq(xr_value_put(dict, key, strlen(key), i64(i)),
			XR_OK);
		for (int k = i < 20 ? 0 : i - 1; k <= i; k++) {
			key_of(k, key);
			xr_value_get_i64(xr_value_find(dict, key, strlen(key)),
				&got);
			cr_assert_eq(got, k, "%d of %d", k, i);
		}
		key_of(i + 1, key);
		cr_assert_null(xr_value_find(dict, key, strlen(key)));
	}
	for (int i = 0; i < 1000; i++) {
		size_t len;
		const char *at = xr_value_key(dict, (size_t)i, &len);

		key_of(i, key);
		cr_assert_str_eq(at, key, "in the order of coming");
		cr_assert_eq(len, strlen(key));
		cr_assert_eq(xr_value_find(dict, key, len),
			xr_value_at(dict, (size_t)i));
	}
	cr_expect_null(xr_value_key(dict, 1000, NULL));
	cr_expect(eq(sz, xr_value_count(dict), 1000));
	xr_value_unref(dict);
}

Test(list, a_key_is_any_bytes)
{
	struct xr_value *dict = xr_value_new_dict();
	static const struct {
		const char *at;
		size_t len;
	} keys[] = { { "", 0 }, { "\0", 1 }, { "\0\0", 2 }, { "a", 1 },
		{ "a\0", 2 }, { "\xff\xfe", 2 }, { "a\0b", 3 }, { "b", 1 },
		{ "c", 1 }, { "d", 1 }, { "e", 1 } };
	size_t n = sizeof(keys) / sizeof(keys[0]);

	for (size_t i = 0; i < n; i++)
		cr_assert_eq(xr_value_put(dict, keys[i].at, keys[i].len,
				     i64((int64_t)i)),
			XR_OK);
	cr_expect(eq(sz, xr_value_count(dict), n));
	for (size_t i = 0; i < n; i++)
		cr_expect_eq(xr_value_find(dict, keys[i].at, keys[i].len),
			xr_value_at(dict, i), "%zu", i);
	cr_expect_eq(xr_value_find(dict, NULL, 0), xr_value_at(dict, 0));
	cr_expect_null(xr_value_find(dict, NULL, 1));
	cr_expect_eq(xr_value_put(dict, NULL, 1, watched()), XR_E_INVAL);
	cr_expect(eq(int, freed, 1));
	xr_value_unref(dict);
}

Test(list, a_key_that_is_there_keeps_its_place)
{
	for (int count = 3; count < 40; count += 30) {
		struct xr_value *dict = xr_value_new_dict();
		char key[16];

		freed = 0;
		for (int i = 0; i < count; i++) {
			key_of(i, key);
			cr_assert_eq(xr_value_put(dict, key, strlen(key),
					     i == 1 ? watched() : i64(i)),
				XR_OK);
		}
		key_of(1, key);
		cr_assert_eq(xr_value_put(dict, key, strlen(key), i64(77)),
			XR_OK);
		cr_expect(eq(int, freed, 1));
		cr_expect(eq(sz, xr_value_count(dict), (size_t)count));
		cr_expect_str_eq(xr_value_key(dict, 1, NULL), key);
		cr_expect_eq(xr_value_kind(xr_value_at(dict, 1)), XR_I64);
		xr_value_unref(dict);
	}
}

/* --- depth ----------------------------------------------------------------- */

Test(list, what_is_too_deep_is_refused_wherever_it_is_put)
{
	struct xr_value *deep = nested(XR_VALUE_DEPTH_MAX, watched());
	struct xr_value *list = xr_value_new_list();
	struct xr_value *dict = xr_value_new_dict();

	cr_assert_not_null(deep);
	cr_expect_eq(xr_value_append(list, xr_value_ref(deep)), XR_E_RANGE);
	cr_expect_eq(xr_value_put(dict, "k", 1, xr_value_ref(deep)),
		XR_E_RANGE);
	cr_expect_null(xr_fn_bind("f", xr_value_ref(deep)));
	cr_expect_null(nested(1, xr_value_ref(deep)));
	cr_expect_eq(xr_value_append(list, xr_value_at(deep, 1)), XR_E_NOMEM);
	cr_expect_eq(xr_value_append(list, xr_value_ref(xr_value_at(deep, 0))),
		XR_OK, "one less fits");
	xr_value_unref(deep);
	xr_value_unref(list);
	cr_expect(eq(int, freed, 1));
	xr_value_unref(dict);
}

Test(list, errors_are_so_many_causes_deep_and_no_more)
{
	struct xr_value *error = some_error(NULL), *next;
	int deep = 0;

	for (;; deep++) {
		next = some_error(error);
		if (next == NULL)
			break;
		xr_value_unref(error);
		error = next;
	}
	cr_expect(eq(int, deep, XR_VALUE_DEPTH_MAX));
	xr_value_unref(error);
}

Test(list, a_dict_is_as_deep_as_what_is_in_it_now)
{
	struct xr_value *dict = xr_value_new_dict(), *list;

	cr_assert_eq(xr_value_put(dict, "deep", 4,
			     nested(XR_VALUE_DEPTH_MAX - 1, i64(1))),
		XR_OK);
	cr_assert_eq(xr_value_put(dict, "flat", 4, i64(1)), XR_OK);
	cr_assert_eq(xr_value_put(dict, "deep", 4, i64(1)), XR_OK);
	list = nested(XR_VALUE_DEPTH_MAX - 1, dict);
	cr_expect_not_null(list);
	xr_value_unref(list);
}

/* --- memory ---------------------------------------------------------------- */

Test(list, a_dict_that_finds_no_memory_stays_as_it_was)
{
	struct xr_value *dict = xr_value_new_dict();
	char key[16];

	for (int i = 0; i < 200; i++) {
		unsigned n = 0;

		key_of(i, key);
		do {
			struct xr_value *item = i64(i);

			was_short = false;
			until_short = ++n;
			cr_assert_eq(xr_value_put(dict, key, strlen(key),
					     item) == XR_OK,
				!was_short);
			until_short = 0;
			cr_assert_eq(xr_value_count(dict),
				(size_t)i + !was_short);
		} while (was_short);
	}
	for (int i = 0; i < 200; i++) {
		key_of(i, key);
		cr_assert_eq(xr_value_find(dict, key, strlen(key)),
			xr_value_at(dict, (size_t)i));
	}
	xr_value_unref(dict);
}
