/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - see xrun/value.h: lists; and hold.h. */
#include <stdlib.h>
#include <string.h>

#include <xrun/value.h>

#include "base/status.h"
#include "base/stock.h"
#include "wire/value/hold.h"
#include "wire/value/many.h"

#define FIRST      4 /* items of a list that is not empty */
#define FIRST_SIZE (FIRST * sizeof(struct xr_value *))

enum xr_status
hold_check(const struct xr_value *parent, enum xr_kind kind,
	const struct xr_value *item)
{
	uint8_t depth;

	if (item == NULL)
		return XR_E_NOMEM;
	if (!node_is(parent, kind) || parent == item)
		return XR_E_INVAL;
	if (atomic_load_explicit(&parent->shared, memory_order_relaxed))
		return XR_E_STATE;
	return node_above(item, &depth) ? XR_OK : XR_E_RANGE;
}

void
hold_item(struct xr_value *parent, struct xr_value *item)
{
	node_held(item);
	if (node_depth(item) >= parent->depth)
		parent->depth = (uint8_t)(node_depth(item) + 1);
}

enum xr_status
hold_refused(const struct xr_value *parent, struct xr_value *item,
	enum xr_status status)
{
	if (item != parent)
		xr_value_unref(item);
	return status;
}

static struct value_list *
list_of(const struct xr_value *value)
{
	return node_is(value, XR_LIST) ? (struct value_list *)value : NULL;
}

/* Items for FIRST values are a block of the stock; list_fini() knows them by that number. A
 * list that grows past another number never gets there. */
static size_t
next_cap(size_t cap)
{
	if (cap == 0)
		return FIRST;
	return cap < FIRST ? 2 * FIRST : 2 * cap;
}

/* Room for one more. */
static enum xr_status
make_room(struct value_list *l)
{
	size_t cap = next_cap(l->cap);
	struct xr_value **more;

	if (l->count < l->cap)
		return XR_OK;
	if (l->count >= XR_VALUE_ITEMS_MAX)
		return XR_E_RANGE;
	if (l->cap == 0)
		more = stock_get(FIRST_SIZE);
	else if (l->cap == FIRST)
		more = malloc(cap * sizeof(*more));
	else
		more = reallocarray(l->items, cap, sizeof(*more));
	if (more == NULL)
		return XR_E_NOMEM;
	if (l->cap == FIRST) {
		memcpy(more, l->items, FIRST_SIZE);
		stock_put(l->items, FIRST_SIZE);
	}
	l->items = more;
	l->cap = cap;
	return XR_OK;
}

struct xr_value *
list_new(size_t count)
{
	struct value_list *l = node_new(XR_LIST, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->head.depth = 1;
	l->count = 0;
	l->cap = count;
	l->items = NULL;
	if (count == 0)
		return &l->head;
	l->items = count == FIRST ?
		stock_get(FIRST_SIZE) :
		reallocarray(NULL, count, sizeof(*l->items));
	if (l->items != NULL)
		return &l->head;
	stock_put(l, sizeof(*l));
	return NULL;
}

void
list_fini(struct xr_value *value)
{
	struct value_list *l = list_of(value);

	for (size_t i = 0, n; i < l->count; i += n) {
		for (n = 1; i + n < l->count; n++)
			if (l->items[i + n] != l->items[i])
				break;
		node_unref(l->items[i], n);
	}
	if (l->cap == FIRST)
		stock_put(l->items, FIRST_SIZE);
	else
		free(l->items);
}

struct xr_value *
many_adopt(struct xr_value **items, size_t count)
{
	struct value_list *l =
		count > XR_VALUE_ITEMS_MAX ? NULL : (void *)list_new(0);

	if (l == NULL)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		if (items[i] == NULL)
			items[i] = xr_value_new_nil();
		hold_item(&l->head, items[i]);
	}
	l->items = items;
	l->count = count;
	/* What has room for as many as a first block has is one (list_fini()). */
	l->cap = count != FIRST ? count : FIRST + 1;
	return &l->head;
}

void
many_lend(struct xr_value *list, size_t i, struct xr_value *item)
{
	hold_item(list, item);
	list_of(list)->items[i] = item;
}

bool
many_return(struct xr_value *list, size_t i)
{
	struct value_list *l = list_of(list);

	if (atomic_load_explicit(&list->refs, memory_order_acquire) > 1) {
		xr_value_ref(l->items[i]);
		return false;
	}
	l->items[i] = NULL;
	return true;
}

XR_EXPORT struct xr_value *
xr_value_new_list(void)
{
	return list_new(0);
}

XR_EXPORT struct xr_value *
xr_value_new_list_of(struct xr_value *const *items, size_t count)
{
	struct xr_value *list =
		count > XR_VALUE_ITEMS_MAX ? NULL : list_new(count);
	enum xr_status status = list == NULL ? XR_E_NOMEM : XR_OK;

	for (size_t i = 0; i < count; i++) {
		if (status == XR_OK)
			status = xr_value_append(list, items[i]);
		else
			xr_value_unref(items[i]);
	}
	if (status == XR_OK)
		return list;
	xr_value_unref(list);
	return NULL;
}

XR_EXPORT enum xr_status
xr_value_append(struct xr_value *list, struct xr_value *item)
{
	struct value_list *l = list_of(list);
	enum xr_status status = hold_check(list, XR_LIST, item);

	if (status == XR_OK)
		status = make_room(l);
	if (status != XR_OK)
		return hold_refused(list, item, status);
	l->items[l->count++] = item;
	hold_item(list, item);
	return XR_OK;
}

XR_EXPORT size_t
xr_value_count(const struct xr_value *value)
{
	if (node_is(value, XR_DICT))
		return ((const struct value_dict *)value)->count;
	return node_is(value, XR_LIST) ? list_of(value)->count : 0;
}

XR_EXPORT struct xr_value *
xr_value_at(const struct xr_value *value, size_t i)
{
	const struct value_dict *d = (const struct value_dict *)value;
	const struct value_list *l = list_of(value);

	if (l != NULL)
		return i < l->count ? l->items[i] : NULL;
	return node_is(value, XR_DICT) && i < d->count ? d->entries[i].item :
							 NULL;
}
