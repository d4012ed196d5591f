/* SPDX-License-Identifier: Apache-2.0 */
/* test_store.c - the rendezvous store: keys, values, limits. */
#include <errno.h>
#include <stdlib.h>

#include "tests/unit/short_memory.h"
#include "tests/unit/store_rig.h"

TestSuite(store, .init = begin, .fini = end);

/* --- numbers, and comparing ------------------------------------------------ */

Test(store, AC_S2_a_hundred_adds_end_at_a_hundred)
{
	int64_t sum = 0;

	for (int64_t i = 1; i <= 100; i++) {
		cr_assert(add("k", 1, &sum) == XR_OK);
		cr_assert(eq(i64, sum, i));
	}
	VALUE("k", "100");
}

Test(store, numbers_are_whole_signed_and_of_64_bits)
{
	static const struct {
		const char *text;
		int64_t by, sum;
		enum xr_status status;
	} rows[] = {
		{ "0", 0, 0, XR_OK },
		{ "-0", 1, 1, XR_OK },
		{ "007", 1, 8, XR_OK },
		{ "-5", -2, -7, XR_OK },
		{ "9223372036854775806", 1, INT64_MAX, XR_OK },
		{ "-9223372036854775807", -1, INT64_MIN, XR_OK },
		{ "-9223372036854775808", 0, INT64_MIN, XR_OK },
		{ "9223372036854775807", 1, 99, XR_E_RANGE },
		{ "-9223372036854775808", -1, 99, XR_E_RANGE },
		{ "9223372036854775808", 0, 99, XR_E_INVAL },
		{ "-9223372036854775809", 0, 99, XR_E_INVAL },
		{ "", 1, 99, XR_E_INVAL },
		{ "-", 1, 99, XR_E_INVAL },
		{ "+1", 1, 99, XR_E_INVAL },
		{ " 1", 1, 99, XR_E_INVAL },
		{ "1 ", 1, 99, XR_E_INVAL },
		{ "--1", 1, 99, XR_E_INVAL },
		{ "1.0", 1, 99, XR_E_INVAL },
		{ "0x1", 1, 99, XR_E_INVAL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t sum = 99;

		cr_assert(set("k", rows[i].text) == XR_OK);
		cr_expect(add("k", rows[i].by, &sum) == rows[i].status, "'%s'",
			rows[i].text);
		cr_expect(eq(i64, sum, rows[i].sum), "'%s'", rows[i].text);
		if (rows[i].status != XR_OK)
			VALUE("k", rows[i].text);
	}
	cr_assert(eq(str, error.text,
		"store: the key 'k' is '0x1', not a number of 64 bits"));
}

Test(store, AC_S3_compare_set_says_what_is_there_now)
{
	SWAPPED("absent", "", "new", "new");
	VALUE("absent", "new");
	SWAPPED("none", "x", "new", "(none)");
	VALUE("none", "(none)");
	cr_assert(set("k", "x") == XR_OK);
	SWAPPED("k", "x", "new", "new");
	VALUE("k", "new");
	SWAPPED("k", "x", "newer", "new");
	SWAPPED("k", "ne", "newer", "new");
	SWAPPED("k", "old", "newer", "new");
	SWAPPED("k", "", "newer", "new");
	VALUE("k", "new");
	cr_assert(set("empty", "") == XR_OK);
	SWAPPED("empty", "", "new", "new");
	SWAPPED("k", "new", "", "");
	VALUE("k", "");
}

Test(store, a_key_that_is_only_waited_for_compares_as_absent)
{
	blocked(&owner, 1, "k");
	SWAPPED("k", "x", "new", "(none)");
	HEARD("");
	SWAPPED("k", "", "new", "new");
	HEARD("1=new ");
}

/* --- keys ------------------------------------------------------------------ */

Test(store, AC_S4_prefixes_do_not_see_each_other)
{
	blocked(&owner, 1, "k7m2/0/b/k");
	cr_assert(set("k7m2/0/a/k", "of a") == XR_OK);
	HEARD("");
	VALUE("k7m2/0/b/k", "(none)");
	cr_assert(set("k7m2/0/b/k", "of b") == XR_OK);
	HEARD("1=of b ");
	VALUE("k7m2/0/a/k", "of a");
	cr_assert(eq(sz, store_count(store, span_of("k7m2/0/a/")), 1));
	cr_assert(eq(sz, store_count(store, span_of("k7m2/0/")), 2));
	cr_assert(eq(sz, store_clear(store, span_of("k7m2/0/a/")), 1));
	VALUE("k7m2/0/a/k", "(none)");
	VALUE("k7m2/0/b/k", "of b");
	cr_assert(eq(sz, store_count(store, span_of("")), 1));
}

Test(store, a_key_is_any_bytes)
{
	static const struct span keys[] = { { "", 0 }, { "\0", 1 },
		{ "\0\0", 2 }, { "a", 1 }, { "a\0b", 3 }, { "a\0c", 3 },
		{ "\xff\xfe", 2 } };
	size_t n = sizeof(keys) / sizeof(keys[0]);

	for (size_t i = 0; i < n; i++)
		cr_assert(set_bytes(keys[i], keys[i]) == XR_OK);
	for (size_t i = 0; i < n; i++) {
		struct store_value *v = NULL;

		cr_assert(store_get(store, keys[i], NULL, &v, NULL) == XR_OK);
		cr_assert(eq(sz, v->len, keys[i].len));
		cr_assert(memcmp(v->data, keys[i].at, v->len) == 0);
		store_value_unref(v);
	}
	cr_assert(eq(sz, store_clear(store, span_of("")), n));
	cr_assert(zero(sz, store_bytes(store)));
}

Test(store, bytes_are_those_of_keys_and_values)
{
	cr_assert(set("key", "value") == XR_OK);
	cr_assert(eq(sz, store_bytes(store), 8));
	cr_assert(set("key", "v") == XR_OK);
	cr_assert(eq(sz, store_bytes(store), 4));
	blocked(&owner, 1, "k");
	cr_assert(set("k", "12") == XR_OK);
	cr_assert(eq(sz, store_bytes(store), 7));
	cr_assert(store_delete(store, span_of("key")));
	cr_assert_not(store_delete(store, span_of("key")));
	cr_assert(eq(sz, store_bytes(store), 3));
}

static char large[STORE_VALUE_MAX + 1];

Test(store, AC_S11_ten_thousand_keys_and_64_MiB_come_back)
{
	struct store_value *v = NULL;
	char key[32];

	for (int i = 0; i < 10000; i++) {
		snprintf(key, sizeof(key), "%d", i);
		memset(large, i, 1024);
		cr_assert(set_bytes(span_of(key),
				  (struct span){ large, 1024 }) == XR_OK);
	}
	memset(large, 'x', STORE_VALUE_MAX);
	large[0] = 'a';
	large[STORE_VALUE_MAX - 1] = 'z';
	cr_assert(set_bytes(span_of("large"),
			  (struct span){ large, STORE_VALUE_MAX }) == XR_OK);
	cr_assert(eq(sz, store_count(store, span_of("")), 10001));
	for (int i = 0; i < 10000; i++) {
		snprintf(key, sizeof(key), "%d", i);
		cr_assert(store_get(store, span_of(key), NULL, &v, NULL) ==
			XR_OK);
		cr_assert(v->len == 1024 && v->data[0] == (char)i &&
			v->data[1023] == (char)i);
		store_value_unref(v);
	}
	cr_assert(store_get(store, span_of("large"), NULL, &v, NULL) == XR_OK);
	cr_assert(v->len == STORE_VALUE_MAX);
	cr_assert(memcmp(v->data, large, STORE_VALUE_MAX) == 0);
	store_value_unref(v);
}

/* --- values ---------------------------------------------------------------- */

static unsigned freed;

static void
count_free(struct store_value *value)
{
	cr_assert_eq(value->ctx, &freed);
	freed++;
	errno = EIO;
}

Test(store, a_value_is_not_copied_and_lasts_for_who_has_it)
{
	static char bytes[] = "sealed";
	struct store_value *v, *got = NULL;

	v = store_value_wrap(bytes, 6, count_free, &freed);
	cr_assert(store_set(store, span_of("k"), v, NULL) == XR_OK);
	store_value_unref(v);
	cr_assert(store_get(store, span_of("k"), NULL, &got, NULL) == XR_OK);
	cr_assert_eq(got->data, bytes);
	cr_assert(store_delete(store, span_of("k")));
	cr_assert(zero(u32, freed));
	errno = EAGAIN;
	store_value_unref(got);
	cr_assert(eq(u32, freed, 1));
	cr_expect(eq(int, errno, EAGAIN));
}

Test(store, a_new_value_has_its_bytes_and_a_zero)
{
	struct store_value *v;

	most_asked = 0;
	v = store_value_new("abcdef", 3);
	cr_assert_not_null(v);
	cr_expect_eq(most_asked, sizeof(*v) + 4);
	cr_expect_eq(v->len, 3);
	cr_expect_eq(v->refs, 1);
	cr_expect_null(v->free);
	cr_expect_null(v->ctx);
	cr_expect_str_eq(v->data, "abc");
	cr_expect_eq(v->data, (char *)(v + 1));
	store_value_unref(v);
	v = store_value_new(NULL, 3);
	cr_assert_not_null(v);
	cr_expect_eq(v->len, 3);
	cr_expect_eq(v->data[3], '\0');
	store_value_unref(v);
	v = store_value_new("abc", 0);
	cr_assert_not_null(v);
	cr_expect_eq(v->len, 0);
	cr_expect_str_eq(v->data, "");
	store_value_unref(v);
	/* The longest that can be asked for, and one byte more. */
	until_short = 1;
	cr_expect_null(store_value_new(NULL, SIZE_MAX - sizeof(*v) - 1));
	cr_expect_eq(most_asked, SIZE_MAX);
	until_short = 1;
	cr_expect_null(store_value_new(NULL, SIZE_MAX - sizeof(*v)));
	cr_expect_eq(until_short, 1, "it is not asked for");
	until_short = 0;
}

Test(store, a_wrapped_value_is_freed_with_its_last_reference)
{
	char bytes[] = "abc";
	struct store_value *v = store_value_wrap(bytes, 2, count_free, &freed);

	cr_assert_not_null(v);
	cr_expect_eq(v->data, bytes);
	cr_expect_eq(v->len, 2);
	cr_expect_eq(v->refs, 1);
	cr_expect_eq(v->ctx, &freed);
	cr_expect_eq(store_value_ref(v), v);
	cr_expect_eq(v->refs, 2);
	store_value_unref(v);
	cr_expect_eq(v->refs, 1);
	cr_expect_eq(freed, 0);
	errno = ENOTTY;
	store_value_unref(v);
	cr_expect_eq(errno, ENOTTY);
	cr_expect_eq(freed, 1);
	errno = ENOTTY;
	store_value_unref(NULL);
	cr_expect_eq(errno, ENOTTY);
	until_short = 1;
	cr_expect_null(store_value_wrap(bytes, 2, count_free, &freed));
	cr_expect_eq(freed, 1);
}

Test(store, a_value_may_be_put_in_its_own_place)
{
	struct store_value *v = NULL;

	cr_assert(set("k", "abc") == XR_OK);
	cr_assert(store_get(store, span_of("k"), NULL, &v, NULL) == XR_OK);
	cr_assert(store_set(store, span_of("k"), v, NULL) == XR_OK);
	store_value_unref(v);
	VALUE("k", "abc");
	cr_assert(eq(sz, store_bytes(store), 4));
}

/* --- limits ---------------------------------------------------------------- */

Test(store, a_key_or_value_that_is_too_long_is_refused)
{
	struct store_limits limits = wide;
	struct store_ask ask = { .owner = &owner };
	struct store_value *v = NULL;
	struct span key = { large, STORE_KEY_MAX + 1 };

	memset(large, 'k', key.len);
	limits.value = 4;
	open_store(&limits);
	cr_expect(set_bytes(key, span_of("v")) == XR_E_RANGE);
	cr_expect_not_null(strstr(error.text, "has 4097 bytes, at most 4096"));
	cr_expect(store_get(store, key, &ask, &v, NULL) == XR_E_RANGE);
	cr_expect(store_wait(store, &key, 1, &ask, NULL) == XR_E_RANGE);
	cr_expect(store_add(store, key, 1, &(int64_t){ 0 }, NULL) ==
		XR_E_RANGE);
	cr_expect(store_compare_set(store,
			  &(struct store_swap){ key, { "x", 1 }, NULL }, &v,
			  NULL) == XR_E_RANGE);
	key.len--;
	cr_expect(set_bytes(key, span_of("1234")) == XR_OK);
	cr_expect(set_bytes(key, span_of("12345")) == XR_E_RANGE);
	cr_expect_not_null(strstr(error.text, "a value of 5 bytes, at most 4"));
	cr_expect(eq(sz, store_bytes(store), STORE_KEY_MAX + 4));
}

Test(store, the_longest_key_is_named_when_its_wait_ends)
{
	char key[STORE_KEY_MAX + 1];

	memset(key, 'k', STORE_KEY_MAX);
	key[STORE_KEY_MAX] = '\0';
	blocked(&owner, 1, key);
	store_close(store);
	cr_assert(eq(sz, strlen(heard()), 2 + 60 + 1));
}

Test(store, a_full_store_refuses_and_changes_nothing)
{
	struct store_limits limits = wide;
	struct store_ask ask = { .owner = &owner };
	struct store_value *v = NULL;

	limits.bytes = 10;
	open_store(&limits);
	cr_assert(set("abc", "1234567") == XR_OK);
	cr_expect(set("abc", "12345678") == XR_E_NOMEM);
	cr_expect(eq(str, error.text,
		"store: no room for the key 'abc': 10 of 10 bytes are taken, 1 more are needed\tdelete keys that nobody needs"));
	cr_expect(set("d", "") == XR_E_NOMEM);
	cr_expect(store_get(store, span_of("d"), &ask, &v, NULL) == XR_E_NOMEM);
	cr_expect(zero(sz, owner.count));
	VALUE("abc", "1234567");
	cr_expect(set("abc", "123") == XR_OK);
	blocked(&owner, 1, "d");
	cr_expect(set("d", "1234") == XR_E_NOMEM);
	cr_expect(set("d", "123") == XR_OK);
	HEARD("1=123 ");
}

Test(store, there_are_only_so_many_keys)
{
	struct store_limits limits = wide;

	limits.keys = 2;
	open_store(&limits);
	blocked(&owner, 1, "c");
	cr_assert(set("a", "") == XR_OK);
	cr_assert(set("b", "") == XR_OK);
	cr_expect(set("b", "again") == XR_OK);
	cr_expect(set("c", "") == XR_E_NOMEM);
	cr_expect_not_null(strstr(error.text, "there are 2 keys, the most"));
	HEARD("");
	cr_assert(store_delete(store, span_of("a")));
	cr_expect(set("c", "now") == XR_OK);
	HEARD("1=now ");
}

Test(store, only_so_many_may_wait)
{
	struct store_limits limits = wide;
	struct store_owner other;
	struct store_ask ask = { .owner = &other };
	struct span keys[] = { span_of("a"), span_of("b"), span_of("c"),
		span_of("d") };
	struct store_value *v = NULL;

	limits.waits = 4;
	limits.owner = 1;
	open_store(&limits);
	store_owner_init(&other, NULL);
	blocked(&owner, 1, "a");
	ask.owner = &owner;
	cr_expect(store_get(store, keys[1], &ask, &v, &error) == XR_E_AGAIN);
	cr_expect(eq(str, error.text,
		"store: 1 gets and waits are open here, at most 1"));
	ask.owner = &other;
	cr_expect(store_wait(store, keys, 4, &ask, &error) == XR_E_AGAIN);
	cr_expect(eq(str, error.text,
		"store: 1 keys are waited for, 4 more would be beyond 4"));
	cr_expect(store_wait(store, keys, 3, &ask, &error) == XR_OK);
	store_owner_drop(store, &other);
	store_owner_init(&other, NULL);
	cr_expect(store_wait(store, keys + 1, 3, &ask, &error) == XR_OK);
	store_owner_drop(store, &other); /* it ends before the store does */
}

/* --- memory ---------------------------------------------------------------- */

/* All operations once, each of which may find no memory. How many did. */
static unsigned
try_all(void)
{
	struct store_ask ask = { .owner = &owner, .id = 1 };
	struct span keys[] = { span_of("w1"), span_of("w2"), span_of("s") };
	struct store_value *v = NULL;
	unsigned failed = 0;
	int64_t sum;

	failed += set("s", "x") != XR_OK;
	failed += store_get(store, span_of("g"), &ask, &v, NULL) != XR_OK;
	failed += store_wait(store, keys, 3, &ask, NULL) != XR_OK;
	failed += add("n", 1, &sum) != XR_OK;
	failed += set("w1", "x") != XR_OK;
	failed += set("w2", "x") != XR_OK;
	failed += set("g", "x") != XR_OK;
	return failed;
}

Test(store, each_allocation_may_fail_once_and_nothing_is_lost)
{
	unsigned n = 1;

	do {
		begin();
		was_short = false;
		until_short = n++;
		cr_expect(eq(u32, try_all(), was_short ? 1 : 0), "%u", n);
		until_short = 0;
		store_owner_drop(store, &owner);
		store_owner_init(&owner, NULL);
		buf_clear(&said);
		store_clear(store, span_of(""));
		cr_expect(zero(sz, store_bytes(store)), "%u", n);
		cr_assert(zero(u32, try_all()));
		cr_assert(eq(sz, store_clear(store, span_of("")), 5));
		cr_assert(zero(sz, store_bytes(store)), "%u", n);
	} while (was_short);
	cr_assert(gt(u32, n, 10));
}

Test(store, a_store_that_finds_no_memory_is_none)
{
	for (unsigned n = 1; n <= 2; n++) {
		until_short = n;
		cr_expect_null(store_new(&(struct store_setup){ 0 }));
		until_short = 0;
	}
}

Test(store, a_table_that_cannot_grow_goes_on)
{
	char key[16];

	/* An entry and a value each, and the buckets between two of them. */
	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "%d", i);
		until_short = i >= 16 && i % 2 == 0 ? 3 : 0;
		was_short = false;
		cr_assert(set(key, key) == XR_OK);
		cr_assert(i != 16 || was_short);
	}
	until_short = 0;
	cr_assert(eq(sz, store_count(store, span_of("")), 1000));
	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "%d", i);
		VALUE(key, key);
	}
}

/* --- its end --------------------------------------------------------------- */

void __real_free(void *p);
void __wrap_free(void *p);
static const void *watched;
static bool was_freed;

void
__wrap_free(void *p)
{
	was_freed = was_freed || (p != NULL && p == watched);
	__real_free(p);
}

static void
free_it(const struct store_answer *answer)
{
	(void)answer;
	store_free(store);
	cr_expect_not(was_freed, "it is in use");
}

/* Whoever is called by it may end it. */
Test(store, a_store_that_is_freed_in_an_answer_lasts_until_that_is_over)
{
	blocked(&owner, 1, "k");
	watched = store;
	in_answer = free_it;
	cr_expect(set("k", "v") == XR_OK);
	HEARD("1=v ");
	cr_expect(was_freed);
	in_answer = NULL;
	store = NULL;
	watched = NULL;
	was_freed = false;
	begin();
	watched = store;
	store_free(store);
	cr_expect(was_freed);
	store = NULL;
	watched = NULL;
}
