/* SPDX-License-Identifier: Apache-2.0 */
/* item.c - see item.h. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "worker/pool/item.h"

void
load_init(struct load *l)
{
	pack_init(&l->pack);
	l->list = NULL;
	l->encoded = NULL;
	l->many = NULL;
	l->all = NULL;
	l->count = l->len = 0;
}

void
load_fini(struct load *l)
{
	pack_fini(&l->pack);
	xr_encoded_free(l->encoded);
	xr_value_unref(l->list);
	free(l->many);
	l->encoded = NULL;
	l->list = NULL;
	l->many = NULL;
}

enum xr_status
load_code(struct load *l, struct xr_value *list, struct xr_error *err)
{
	l->list = list;
	if (list == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	return xr_encode(list, NULL, &l->encoded, err);
}

enum xr_status
load_head(struct load *l, const void *head, size_t len)
{
	const struct xr_part *parts;
	size_t n = 1;

	if (l->encoded == NULL) {
		l->parts[0] = (struct xr_part){ head, len };
		l->parts[1] = (struct xr_part){ l->pack.data, l->pack.len };
		l->all = l->parts;
		l->count = 2;
		l->len = len + l->pack.len;
		return XR_OK;
	}
	parts = xr_encoded_parts(l->encoded, &n);
	l->many = calloc(n + 1, sizeof(*l->many));
	if (l->many == NULL)
		return XR_E_NOMEM;
	l->many[0] = (struct xr_part){ head, len };
	memcpy(l->many + 1, parts, n * sizeof(*parts));
	l->all = l->many;
	l->count = n + 1;
	l->len = 0;
	for (size_t i = 0; i <= n; i++)
		l->len += l->many[i].len;
	return XR_OK;
}

struct xr_value *
share_item(const void *head, size_t len, struct xr_value *list)
{
	struct xr_value *items[2] = { xr_value_new_bytes(head, len), list };

	return xr_value_new_list_of(items, 2);
}

bool
share_head(const struct xr_value *item, void *head, size_t len,
	struct xr_value **list)
{
	const void *data;
	size_t has;

	data = xr_value_data(xr_value_at(item, 0), &has);
	*list = xr_value_at(item, 1);
	if (data == NULL || has != len || xr_value_kind(*list) != XR_LIST)
		return false;
	memcpy(head, data, len);
	return true;
}

void
unload_list(struct unload *u, struct xr_value *list)
{
	*u = (struct unload){ .list = xr_value_ref(list) };
}

enum xr_status
unload_init(struct unload *u, const void *data, size_t len, uint32_t flags,
	struct xr_error *err)
{
	const struct xr_part part = { data, len };

	*u = (struct unload){ 0 };
	if ((flags & ITEM_CODED) != 0)
		return xr_decode(&part, 1, NULL, &u->list, err);
	u->unpack.at = data;
	u->unpack.end = u->unpack.at + len;
	return XR_OK;
}

void
unload_fini(struct unload *u)
{
	unpack_fini(&u->unpack);
	xr_value_unref(u->list);
	u->list = NULL;
}

uint32_t
unload_nils(struct unload *u, uint32_t most)
{
	return u->list == NULL ? unpack_nils(&u->unpack, most) : 0;
}

struct xr_value *
unload_next(struct unload *u)
{
	struct xr_value *item;

	if (u->list == NULL)
		return unpack_next(&u->unpack);
	item = xr_value_at(u->list, u->at++);
	return item != NULL ? xr_value_ref(item) : NULL;
}
