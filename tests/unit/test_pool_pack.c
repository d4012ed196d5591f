/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_pack.c - values of tasks and results in few bytes, and items in queues. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "tests/unit/short_memory.h"
#include "worker/pool/item.h"

TestSuite(pool_pack, .timeout = 60);

#define DEPTH       8    /* lists in each other, at most */
#define ITEMS       4096 /* of a list, at most */
#define ALLOCATIONS 200  /* there are less */

static char bytes[PACK_TEXT + 1];

/* --- values ---------------------------------------------------------------------------- */

/* @item is taken. */
static struct xr_value *
list_of(size_t count, struct xr_value *item)
{
	struct xr_value *list = xr_value_new_list();

	for (size_t i = 0; i < count; i++)
		cr_assert_eq(xr_value_append(list, xr_value_ref(item)), XR_OK);
	xr_value_unref(item);
	return list;
}

/* @item in @depth lists. */
static struct xr_value *
nested(int depth, struct xr_value *item)
{
	for (int i = 0; i < depth; i++)
		item = list_of(1, item);
	return item;
}

static struct xr_value *
text(size_t len)
{
	memset(bytes, 'x', sizeof(bytes));
	return xr_value_new_text(bytes, len);
}

/* All that is plain. */
static struct xr_value *
of_all(void)
{
	struct xr_value *items[] = { xr_value_new_nil(), xr_value_new_nil(),
		xr_value_new_bool(true), xr_value_new_bool(false),
		xr_value_new_i64(-7), xr_value_new_u64(UINT64_MAX),
		xr_value_new_f64(0.5), xr_value_new_nil(),
		xr_value_new_bytes("", 0), xr_value_new_bytes("\0a", 2),
		text(0), text(PACK_TEXT), list_of(3, xr_value_new_nil()),
		xr_value_new_nil(), nested(2, xr_value_new_i64(1)),
		xr_value_new_list() };

	return xr_value_new_list_of(items, sizeof(items) / sizeof(items[0]));
}

/* @all, one after the other. */
static void
pack_items(struct pack *p, const struct xr_value *all)
{
	pack_init(p);
	for (size_t i = 0; i < xr_value_count(all); i++)
		cr_assert(pack_add(p, xr_value_at(all, i)), "item %zu", i);
}

/* How many of @all come back of @len bytes, which end where memory ends. */
static size_t
unpack_items(const char *data, size_t len, const struct xr_value *all)
{
	uint8_t *copy = malloc(len + (len == 0));
	struct unpack u = { .at = copy, .end = copy + len };
	struct xr_value *value;
	size_t n = 0;

	memcpy(copy, data, len);
	while (n < xr_value_count(all) && (value = unpack_next(&u)) != NULL) {
		cr_expect(xr_value_equal(value, xr_value_at(all, n)),
			"item %zu of %zu bytes", n, len);
		xr_value_unref(value);
		n++;
	}
	cr_expect(u.at <= u.end);
	unpack_fini(&u);
	free(copy);
	return n;
}

Test(pool_pack, all_plain_values_come_back_and_none_of_what_is_cut_short)
{
	struct xr_value *all = of_all();
	size_t count = xr_value_count(all), got = 0, before = 0;
	struct pack p;

	pack_items(&p, all);
	cr_assert_gt(p.len, (size_t)PACK_OWN);
	for (size_t len = 0; len <= p.len; len++) {
		got = unpack_items(p.data, len, all);
		cr_expect_geq(got, before);
		cr_expect(len == p.len || got < count, "%zu bytes", len);
		before = got;
	}
	cr_expect_eq(got, count);
	pack_fini(&p);
	xr_value_unref(all);
}

/* What follows is packed as if that had never been added. */
static void
expect_rejected(const char *what, struct xr_value *value)
{
	struct xr_value *nil = xr_value_new_nil(), *two = NULL;
	struct pack p;

	two = list_of(2, xr_value_ref(nil));
	pack_init(&p);
	cr_assert(pack_add(&p, nil));
	cr_expect(!pack_add(&p, value), "%s", what);
	cr_expect(!p.bad);
	cr_assert(pack_add(&p, nil));
	cr_expect_eq(p.len, (size_t)5, "%s: %zu bytes", what, p.len);
	cr_expect_eq(unpack_items(p.data, p.len, two), (size_t)2);
	pack_fini(&p);
	xr_value_unref(value);
	xr_value_unref(nil);
	xr_value_unref(two);
}

static void
expect_packed(const char *what, struct xr_value *value)
{
	struct xr_value *all = list_of(1, value);
	struct pack p;

	pack_init(&p);
	cr_assert(pack_add(&p, value), "%s", what);
	cr_expect_eq(unpack_items(p.data, p.len, all), (size_t)1, "%s", what);
	pack_fini(&p);
	xr_value_unref(all);
}

Test(pool_pack, what_is_long_or_deep_or_not_plain_is_not_packed)
{
	struct xr_value *mixed = list_of(1, nested(DEPTH, xr_value_new_nil()));

	expect_packed("text", text(PACK_TEXT));
	expect_rejected("text", text(PACK_TEXT + 1));
	expect_packed("bytes", xr_value_new_bytes(bytes, PACK_TEXT));
	expect_rejected("bytes", xr_value_new_bytes(bytes, PACK_TEXT + 1));
	expect_packed("list", list_of(ITEMS, xr_value_new_i64(1)));
	expect_rejected("list", list_of(ITEMS + 1, xr_value_new_i64(1)));
	expect_packed("depth", nested(DEPTH, xr_value_new_i64(1)));
	expect_rejected("depth", nested(DEPTH + 1, xr_value_new_i64(1)));
	expect_rejected("dict", xr_value_new_dict());
	expect_rejected("dict in a list", nested(2, xr_value_new_dict()));
	expect_rejected("a list that is too deep in another", mixed);
}

Test(pool_pack, nils_in_a_row_are_counted_up_to_the_largest_number)
{
	struct xr_value *nil = xr_value_new_nil();
	uint32_t count = UINT32_MAX;
	struct pack p;

	pack_init(&p);
	cr_assert(pack_add(&p, nil));
	memcpy(p.data + p.nils, &count, sizeof(count));
	cr_expect(!pack_add(&p, nil));
	memcpy(&count, p.data + p.nils, sizeof(count));
	cr_expect_eq(count, UINT32_MAX);
	cr_expect_eq(p.len, (size_t)5);
	pack_fini(&p);
	xr_value_unref(nil);
}

/* --- bytes that are wrong --------------------------------------------------------------- */

#define TAG_NILS "\x01"
#define TAG_I64  "\x03"
#define TAG_LIST "\x08\x01\0"
#define EIGHT    "\0\0\0\0\0\0\0\0"

Test(pool_pack, bytes_that_are_no_values_are_rejected)
{
	static const struct {
		const char *data;
		size_t len;
		bool is_value;
	} row[] = {
		{ TAG_I64 EIGHT, 9, true },
		{ TAG_I64 EIGHT, 8, false },
		{ "\x05" EIGHT, 9, true },
		{ "\0" EIGHT, 9, false },
		{ "\x09" EIGHT, 9, false },
		{ TAG_NILS "\1\0\0\0", 5, true },
		{ TAG_NILS "\1\0\0\0", 4, false },
		{ TAG_NILS "\0\0\0\0", 5, false },
		{ "\x02", 1, false },
		{ "\x02\1", 2, true },
		{ "\x06\1", 2, false },
		{ "\x06\1\0", 3, false },
		{ "\x06\1\0a", 4, true },
		{ "\x07\1\0", 3, false },
		{ "\x08\1", 2, false },
		{ "\x08\2\0" TAG_I64 EIGHT, 12, false },
		{ TAG_LIST TAG_LIST TAG_LIST TAG_LIST TAG_LIST TAG_LIST TAG_LIST
				TAG_LIST TAG_I64 EIGHT,
			33, true },
		{ TAG_LIST TAG_LIST TAG_LIST TAG_LIST TAG_LIST TAG_LIST TAG_LIST
				TAG_LIST TAG_LIST TAG_I64 EIGHT,
			36, false },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		uint8_t *copy = malloc(row[i].len);
		struct unpack u = { .at = copy, .end = copy + row[i].len };
		struct xr_value *value;

		memcpy(copy, row[i].data, row[i].len);
		value = unpack_next(&u);
		cr_expect_eq(value != NULL, row[i].is_value, "row %zu", i);
		cr_expect(!row[i].is_value || u.at == u.end, "row %zu", i);
		xr_value_unref(value);
		unpack_fini(&u);
		free(copy);
	}
}

Test(pool_pack, nils_are_passed_over_only_where_they_are_whole)
{
	static const uint8_t data[] = TAG_NILS "\3\0\0\0";
	struct unpack u = { .at = data, .end = data + 5 };
	struct xr_value *value;

	cr_expect_eq(unpack_nils(&u, 2), 2u);
	cr_expect_eq(u.nils, 1u);
	cr_expect_eq(unpack_nils(&u, 2), 1u);
	cr_expect_eq(unpack_nils(&u, 2), 0u);
	u = (struct unpack){ .at = data, .end = data + 4 };
	cr_expect_eq(unpack_nils(&u, 2), 0u);
	cr_expect_eq(u.at, data);
	u = (struct unpack){ .at = (const uint8_t *)TAG_I64 EIGHT };
	u.end = u.at + 9;
	cr_expect_eq(unpack_nils(&u, 2), 0u);
	value = unpack_next(&u);
	cr_expect_eq(xr_value_kind(value), XR_I64);
	xr_value_unref(value);
}

/* --- without memory --------------------------------------------------------------------- */

Test(pool_pack, without_memory_a_pack_is_bad_and_can_be_released)
{
	struct xr_value *long_one = text(PACK_TEXT), *one = text(1);
	struct xr_value *fits = text(PACK_OWN - 3);
	struct pack p;

	for (int is_short = 0; is_short < 2; is_short++) {
		pack_init(&p);
		until_short = 1;
		cr_assert(pack_add(&p, fits));
		cr_expect_eq(until_short, 1u);
		until_short = (unsigned)is_short;
		cr_expect_eq(pack_add(&p, is_short ? one : long_one),
			!is_short);
		until_short = 0;
		cr_expect_eq(p.bad, is_short);
		cr_expect_eq(p.len,
			(size_t)PACK_OWN +
				(is_short ? 0 : 3 + (size_t)PACK_TEXT));
		pack_fini(&p);
		cr_expect_eq(p.data, p.own);
	}
	xr_value_unref(fits);
	xr_value_unref(long_one);
	xr_value_unref(one);
}

/* A head that fits, and a text that does not. */
Test(pool_pack, without_memory_for_a_text_its_head_is_taken_back)
{
	struct xr_value *fits = text(PACK_OWN - 3 - 4), *two = text(2);
	struct pack p;

	pack_init(&p);
	cr_assert(pack_add(&p, fits));
	until_short = 1;
	cr_expect(!pack_add(&p, two));
	until_short = 0;
	cr_expect(p.bad);
	cr_expect_eq(p.len, (size_t)PACK_OWN - 4);
	pack_fini(&p);
	xr_value_unref(fits);
	xr_value_unref(two);
}

Test(pool_pack, without_memory_for_a_nil_none_is_counted)
{
	struct xr_value *fits = text(PACK_OWN - 3 - 4),
			*nil = xr_value_new_nil();
	struct pack p;

	pack_init(&p);
	cr_assert(pack_add(&p, fits));
	until_short = 1;
	cr_expect(!pack_add(&p, nil));
	until_short = 0;
	cr_expect_eq(p.nils, (size_t)0);
	cr_expect(pack_add(&p, nil));
	cr_expect_eq(p.len, (size_t)PACK_OWN - 4 + 5);
	pack_fini(&p);
	xr_value_unref(fits);
	xr_value_unref(nil);
}

Test(pool_pack, each_allocation_of_a_read_may_fail)
{
	struct xr_value *all = of_all();
	unsigned n = 0, failed = 0;
	struct pack p;
	size_t got;

	pack_items(&p, all);
	do {
		was_short = false;
		until_short = ++n + 1; /* the first is of this test */
		got = unpack_items(p.data, p.len, all);
		until_short = 0;
		failed += was_short;
		cr_expect_eq(got == xr_value_count(all), !was_short);
	} while (was_short && n < ALLOCATIONS);
	cr_expect_gt(failed, 10u);
	pack_fini(&p);
	xr_value_unref(all);
}

/* --- items ------------------------------------------------------------------------------ */

/* Of a result whose values are coded. */
static enum xr_status
load_all(struct load *l, const struct task_head *head)
{
	enum xr_status status =
		load_code(l, list_of(2, xr_value_new_dict()), NULL);

	return status == XR_OK ? load_head(l, head, sizeof(*head)) : status;
}

Test(pool_pack, a_coded_item_is_its_head_and_its_values)
{
	const struct task_head head = { .index = 3 };
	struct xr_value *item;
	struct unload u;
	struct load l;
	char *data;
	size_t at = 0;

	load_init(&l);
	cr_assert_eq(load_all(&l, &head), XR_OK);
	data = malloc(l.len);
	for (size_t i = 0; i < l.count; i++) {
		memcpy(data + at, l.all[i].data, l.all[i].len);
		at += l.all[i].len;
	}
	cr_assert_eq(at, l.len);
	cr_expect_eq(memcmp(data, &head, sizeof(head)), 0);
	cr_assert_eq(unload_init(&u, data + sizeof(head), at - sizeof(head),
			     ITEM_CODED, NULL),
		XR_OK);
	cr_expect_eq(unload_nils(&u, 1), 0u);
	for (int i = 0; i < 3; i++) {
		item = unload_next(&u);
		cr_expect_eq(item != NULL, i < 2);
		xr_value_unref(item);
	}
	unload_fini(&u);
	free(data);
	load_fini(&l);
}

Test(pool_pack, without_memory_an_item_is_not_loaded)
{
	const struct task_head head = { .index = 3 };
	struct xr_value *list = list_of(2, xr_value_new_dict());
	unsigned n = 0, failed = 0;
	enum xr_status status;
	struct load l;

	load_init(&l);
	cr_expect_eq(load_code(&l, NULL, NULL), XR_E_NOMEM);
	load_fini(&l);
	do {
		was_short = false;
		load_init(&l);
		until_short = ++n;
		status = load_code(&l, xr_value_ref(list), NULL);
		if (status == XR_OK)
			status = load_head(&l, &head, sizeof(head));
		until_short = 0;
		failed += was_short;
		cr_expect_eq(status, was_short ? XR_E_NOMEM : XR_OK);
		load_fini(&l);
	} while (was_short && n < ALLOCATIONS);
	cr_expect_gt(failed, 1u);
	xr_value_unref(list);
}

/* @items: two, which are taken. */
static bool
is_shared(struct xr_value *head, struct xr_value *list)
{
	struct xr_value *items[] = { head, list }, *got;
	struct xr_value *item = xr_value_new_list_of(items, 2);
	struct task_head out;
	bool is = share_head(item, &out, sizeof(out), &got);

	cr_expect(!is || out.index == 5);
	cr_expect(!is || got == xr_value_at(item, 1));
	xr_value_unref(item);
	return is;
}

Test(pool_pack, a_shared_item_is_a_head_and_a_list)
{
	const struct task_head head = { .index = 5 };
	struct xr_value *nil = xr_value_new_nil(), *list;
	struct task_head out;

	cr_expect(is_shared(xr_value_new_bytes(&head, sizeof(head)),
		xr_value_new_list()));
	cr_expect(!is_shared(xr_value_new_bytes(&head, sizeof(head) - 1),
		xr_value_new_list()));
	cr_expect(!is_shared(xr_value_new_nil(), xr_value_new_list()));
	cr_expect(!is_shared(xr_value_new_bytes(&head, sizeof(head)),
		xr_value_new_nil()));
	cr_expect(!share_head(nil, &out, sizeof(out), &list));
	xr_value_unref(nil);
}
