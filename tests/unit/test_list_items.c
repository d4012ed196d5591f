/* SPDX-License-Identifier: Apache-2.0 */
/* test_list_items.c - which memory a list's items are in, and where it goes
 * (src/wire/value/list.c). */
#include <criterion/criterion.h>

#include <xrun/value.h>

#include "base/stock.h"
#include "wire/value/node.h"

#define STOCK_ITEMS 4 /* as many are in a block of the stock */
#define MOST        20

TestSuite(list_items, .timeout = 60);

static struct xr_value *
list_with(size_t first, size_t appended)
{
	struct xr_value *items[MOST], *list;

	for (size_t i = 0; i < first; i++)
		items[i] = xr_value_new_i64((int64_t)i);
	list = xr_value_new_list_of(items, first);
	cr_assert_not_null(list);
	for (size_t i = 0; i < appended; i++)
		cr_assert_eq(xr_value_append(list,
				     xr_value_new_i64((int64_t)(first + i))),
			XR_OK);
	return list;
}

/* The items of a list that is released are the next block of the stock, or none of it. */
Test(list_items, a_block_of_the_stock_comes_from_there)
{
	const size_t size = STOCK_ITEMS * sizeof(struct xr_value *);

	for (size_t first = 0; first <= 9; first++)
		for (size_t appended = 0; appended <= 9; appended++) {
			struct xr_value *list = list_with(first, appended);
			struct value_list *l = (struct value_list *)list;
			bool is_stock = l->cap == STOCK_ITEMS;
			void *items = l->items, *next;
			int64_t n;

			for (size_t i = 0; i < first + appended; i++)
				cr_assert(xr_value_get_i64(xr_value_at(list, i),
						  &n) == XR_OK &&
					n == (int64_t)i);
			cr_expect(!is_stock || first == 0 ||
					first == STOCK_ITEMS,
				"%zu and %zu more", first, appended);
			xr_value_unref(list);
			next = stock_get(size);
			cr_expect(is_stock || next != items || items == NULL,
				"%zu and %zu more: malloc()'s items are in the stock",
				first, appended);
			stock_put(next, size);
		}
}
