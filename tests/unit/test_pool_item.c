/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_item.c - tasks and results as they stand in queues: what is written is what is read. */
#include "tests/unit/forked.h"
#include "tests/unit/short_memory.h"
#include "wire/value/node.h"
#include "worker/pool/item.h"

TestSuite(pool_item, .timeout = 60);

static struct xr_error error;
static const char head[5] = "head";
static char body[4096];

static int64_t
number(struct xr_value *v)
{
	int64_t n = -1;

	xr_value_get_i64(v, &n);
	xr_value_unref(v);
	return n;
}

static struct xr_value *
numbers(int64_t count)
{
	struct xr_value *list = xr_value_new_list();

	for (int64_t i = 0; i < count; i++)
		NEED(xr_value_append(list, xr_value_new_i64(10 + i)) == XR_OK);
	return list;
}

/* What stands behind the head, in one piece. */
static size_t
join(const struct load *l)
{
	size_t len = 0;

	NEED(l->count >= 2 && l->len <= sizeof(body));
	EXPECT(l->all[0].data == head && l->all[0].len == sizeof(head));
	for (size_t i = 1; i < l->count; i++) {
		memcpy(body + len, l->all[i].data, l->all[i].len);
		len += l->all[i].len;
	}
	EXPECT_EQ(l->len, sizeof(head) + len);
	return len;
}

static void
load_any(struct load *l)
{
	memset(l, 0xff, sizeof(*l));
	load_init(l);
	EXPECT(l->list == NULL && l->encoded == NULL && l->many == NULL);
	EXPECT(l->all == NULL);
	EXPECT_EQ(l->count, 0);
	EXPECT_EQ(l->len, 0);
}

FORKED_TEST(pool_item, plain_values_are_packed_behind_the_head)
{
	struct unload u;
	struct load l;
	size_t len;

	load_any(&l);
	EXPECT(pack_add(&l.pack, xr_value_new_i64(7)));
	EXPECT(pack_add(&l.pack, NULL));
	EXPECT(pack_add(&l.pack, NULL));
	EXPECT(pack_add(&l.pack, xr_value_new_i64(8)));
	EXPECT_EQ(load_head(&l, head, sizeof(head)), XR_OK);
	EXPECT_EQ(l.count, 2);
	EXPECT(l.all == l.parts && l.many == NULL);
	len = join(&l);
	load_fini(&l);
	memset(&u, 0xff, sizeof(u));
	EXPECT_EQ(unload_init(&u, body, len, 0, &error), XR_OK);
	EXPECT_EQ(number(unload_next(&u)), 7);
	EXPECT_EQ(unload_nils(&u, 1), 1);
	EXPECT_EQ(unload_nils(&u, 9), 1);
	EXPECT_EQ(number(unload_next(&u)), 8);
	EXPECT(unload_next(&u) == NULL);
	unload_fini(&u);
}

FORKED_TEST(pool_item, other_values_are_coded_as_a_list)
{
	struct unload u;
	struct load l;
	size_t len;

	load_any(&l);
	EXPECT_EQ(load_code(&l, numbers(3), &error), XR_OK);
	EXPECT_EQ(load_head(&l, head, sizeof(head)), XR_OK);
	EXPECT(l.all == l.many);
	len = join(&l);
	load_fini(&l);
	EXPECT(l.list == NULL && l.encoded == NULL && l.many == NULL);
	EXPECT_EQ(unload_init(&u, body, len, ITEM_CODED | ITEM_EACH, &error),
		XR_OK);
	EXPECT_EQ(unload_nils(&u, 9), 0);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(number(unload_next(&u)), 10 + i);
	EXPECT(unload_next(&u) == NULL);
	unload_fini(&u);
	EXPECT(unload_init(&u, body, len - 1, ITEM_CODED, &error) != XR_OK);
	unload_fini(&u);
}

FORKED_TEST(pool_item, without_memory_there_is_no_code)
{
	struct load l;

	load_any(&l);
	EXPECT_EQ(load_code(&l, NULL, &error), XR_E_NOMEM);
	EXPECT_STR(error.text, "out of memory");
	EXPECT_EQ(load_code(&l, numbers(3), &error), XR_OK);
	until_short = 1;
	EXPECT_EQ(load_head(&l, head, sizeof(head)), XR_E_NOMEM);
	until_short = 0;
	EXPECT_EQ(load_head(&l, head, sizeof(head)), XR_OK);
	load_fini(&l);
}

/* --- by reference ------------------------------------------------------------------------------ */

FORKED_TEST(pool_item, a_shared_item_is_its_head_and_a_list)
{
	struct xr_value *list = numbers(2), *none = list;
	struct xr_value *item = share_item(head, sizeof(head), list);
	char got[sizeof(head) + 1] = "......";
	struct unload u;

	NEED(item != NULL);
	EXPECT(!share_head(item, got, sizeof(head) - 1, &none));
	EXPECT(!share_head(item, got, sizeof(head) + 1, &none));
	EXPECT(memcmp(got, ".....", sizeof(head)) == 0);
	EXPECT(share_head(item, got, sizeof(head), &none));
	EXPECT(memcmp(got, head, sizeof(head)) == 0);
	EXPECT(none == list);
	unload_list(&u, list);
	EXPECT(node_several(list));
	EXPECT_EQ(unload_nils(&u, 9), 0);
	EXPECT_EQ(number(unload_next(&u)), 10);
	EXPECT_EQ(number(unload_next(&u)), 11);
	EXPECT(unload_next(&u) == NULL);
	unload_fini(&u);
	EXPECT(!node_several(list));
	xr_value_unref(item);
}

FORKED_TEST(pool_item, what_is_no_shared_item_has_no_head)
{
	struct xr_value *number_item = xr_value_new_i64(1);
	struct xr_value *pair[2] = { xr_value_new_i64(1), numbers(1) };
	struct xr_value *no_head = xr_value_new_list_of(pair, 2);
	struct xr_value *no_list =
		share_item(head, sizeof(head), xr_value_new_dict());
	struct xr_value *list = NULL;
	char got[sizeof(head)] = "....";

	EXPECT(!share_head(number_item, got, sizeof(head), &list));
	EXPECT(!share_head(no_head, got, sizeof(head), &list));
	EXPECT(!share_head(no_list, got, sizeof(head), &list));
	EXPECT_STR(got, "....");
	xr_value_unref(number_item);
	xr_value_unref(no_head);
	xr_value_unref(no_list);
}
