/* SPDX-License-Identifier: Apache-2.0 */
/* test_shelf.c - values in a store. */
#include <criterion/criterion.h>

#include "tests/unit/short_memory.h"

#include "tests/unit/file_store.h"
#include "worker/rpc/shelf.h"

static struct xr_error err;
static struct xr_store *store;

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

TestSuite(shelf, .timeout = 60, .init = begin, .fini = end);

static int64_t
int_of(struct xr_value *v)
{
	int64_t n = -1;

	cr_assert_not_null(v);
	cr_expect_eq(xr_value_get_i64(v, &n), XR_OK);
	xr_value_unref(v);
	return n;
}

Test(shelf, a_value_is_packed_if_it_fits)
{
	struct xr_value *v = xr_value_new_i64(42), *back = NULL;
	uint8_t data[256];
	size_t len;

	memset(data, 0x5a, sizeof(data));
	len = shelf_pack_into(v, data, sizeof(data));
	cr_assert(len > 0 && len < sizeof(data));
	cr_expect_eq(data[len], 0x5a);
	cr_expect_eq(shelf_unpack(data, len, &back, &err), XR_OK);
	cr_expect_eq(int_of(back), 42);
	back = NULL;
	cr_expect_neq(shelf_unpack(data, len - 1, &back, &err), XR_OK);
	cr_expect_null(back);
	memset(data, 0x5a, sizeof(data));
	cr_expect_eq(shelf_pack_into(v, data, len - 1), 0);
	cr_expect_eq(data[0], 0x5a);
	cr_expect_eq(shelf_pack_into(v, data, len), len);
	cr_expect_neq(data[0], 0x5a);
	xr_value_unref(v);
}

/* With bytes of its own, which are a second part. */
static struct xr_value *
long_value(void)
{
	static uint8_t bytes[100000];
	struct xr_value *v;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	v = xr_value_new_bytes(bytes, sizeof(bytes));
	return xr_value_new_list_of(&v, 1);
}

Test(shelf, a_value_is_found_as_it_was_set)
{
	struct xr_value *v = long_value(), *back = NULL, *seven;

	cr_expect_eq(shelf_get(store, "key", 0, &back, &err), XR_E_NOTFOUND);
	cr_expect_null(back);
	cr_assert_eq(shelf_set(store, "key", v, &err), XR_OK);
	cr_assert_eq(shelf_get(store, "key", 0, &back, &err), XR_OK);
	cr_expect(xr_value_equal(v, back));
	xr_value_unref(back);
	seven = xr_value_new_i64(7);
	cr_assert_eq(shelf_set(store, "key", seven, &err), XR_OK);
	cr_assert_eq(shelf_get(store, "key", 0, &back, &err), XR_OK);
	cr_expect_eq(int_of(back), 7);
	xr_value_unref(seven);
	xr_value_unref(v);
}

Test(shelf, who_claims_first_wins)
{
	struct xr_value *mine = xr_value_new_i64(1),
			*other = xr_value_new_i64(2), *longer = long_value(),
			*back = NULL;
	bool won = false;

	cr_expect_eq(shelf_claim(store, "key", mine, &won, &err), XR_OK);
	cr_expect(won);
	cr_expect_eq(shelf_claim(store, "key", other, &won, &err), XR_OK);
	cr_expect_not(won);
	cr_expect_eq(shelf_claim(store, "key", longer, &won, &err), XR_OK);
	cr_expect_not(won);
	/* Again is as well as once. */
	cr_expect_eq(shelf_claim(store, "key", mine, &won, &err), XR_OK);
	cr_expect(won);
	cr_assert_eq(shelf_get(store, "key", 0, &back, &err), XR_OK);
	cr_expect_eq(int_of(back), 1);
	xr_value_unref(mine);
	xr_value_unref(other);
	xr_value_unref(longer);
}

Test(shelf, a_store_that_is_closed_keeps_nothing)
{
	struct xr_value *v = xr_value_new_i64(1), *back = NULL;
	bool won = true;

	xr_store_close(store);
	cr_expect_eq(shelf_set(store, "key", v, &err), XR_E_CLOSED);
	cr_expect_eq(shelf_get(store, "key", 0, &back, &err), XR_E_CLOSED);
	cr_expect_eq(shelf_claim(store, "key", v, &won, &err), XR_E_CLOSED);
	cr_expect(won);
	cr_expect_null(back);
	xr_value_unref(v);
}

Test(shelf, without_memory_nothing_is_packed)
{
	struct xr_value *v = xr_value_new_i64(1);
	enum xr_status status = XR_E_NOMEM;
	uint8_t data[256];
	unsigned at = 0;
	size_t len = 0;
	bool won;

	while (len == 0 && at < 20) {
		until_short = ++at;
		len = shelf_pack_into(v, data, sizeof(data));
		until_short = 0;
	}
	cr_expect(at > 1 && at < 20, "%u", at);
	/* The last of them is that of the bytes. */
	until_short = at - 1;
	cr_expect_eq(shelf_set(store, "key", v, &err), XR_E_NOMEM);
	cr_expect_str_eq(err.text, "out of memory");
	until_short = at - 1;
	cr_expect_eq(shelf_claim(store, "key", v, &won, &err), XR_E_NOMEM);
	until_short = 0;
	cr_expect_eq(shelf_set(store, "key", v, &err), XR_OK);
	at = 0;
	while (status != XR_OK && at < 20) {
		struct xr_value *back = NULL;

		until_short = ++at;
		status = shelf_get(store, "key", 0, &back, &err);
		until_short = 0;
		cr_expect(status == XR_OK || status == XR_E_NOMEM);
		cr_expect_eq(back != NULL, status == XR_OK);
		xr_value_unref(back);
	}
	cr_expect(at > 1 && at < 20, "%u", at);
	xr_value_unref(v);
}
