/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dict.c - see xrun/value.h: dicts.
 *
 * Entries stand in the order in which they came. A few are looked through; more
 * have an index of their numbers by hash, with open addressing, at most half
 * full. Nothing is ever taken out of a dict.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <sys/random.h>

#include <xrun/value.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/status.h"
#include "wire/value/hold.h"

#define FIRST   4         /* entries of a dict that is not empty */
#define FEW     8         /* entries without an index */
#define KEY_MAX (1 << 30) /* bytes: no message could hold a longer one */

static struct hash_seed seed;
static pthread_once_t seeded = PTHREAD_ONCE_INIT;

/* What the kernel could not give, time and place do. */
static void
make_seed(void)
{
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == -1)
		seed = (struct hash_seed){ { (uint64_t)clock_now(),
			(uintptr_t)&seed } };
}

static uint64_t
hash_of(struct span key)
{
	pthread_once(&seeded, make_seed);
	return hash_bytes(&seed, key.at, key.len);
}

static struct value_dict *
dict_of(const struct xr_value *value)
{
	return node_is(value, XR_DICT) ? (struct value_dict *)value : NULL;
}

static bool
has_key(const struct dict_entry *e, struct span key)
{
	return e->len == key.len &&
		(key.len == 0 || memcmp(e->key, key.at, key.len) == 0);
}

/* The slot of @key, or the free one where it would stand. */
static uint32_t *
slot_of(const struct value_dict *d, uint64_t hash, struct span key)
{
	size_t at = hash & (d->slots - 1);

	while (d->index[at] != 0) {
		const struct dict_entry *e = &d->entries[d->index[at] - 1];

		if (e->hash == hash && has_key(e, key))
			break;
		at = (at + 1) & (d->slots - 1);
	}
	return &d->index[at];
}

/* NULL: it is not there. */
static struct dict_entry *
find(const struct value_dict *d, struct span key)
{
	uint32_t i;

	if (d->index != NULL) {
		i = *slot_of(d, hash_of(key), key);
		return i == 0 ? NULL : &d->entries[i - 1];
	}
	for (i = 0; i < d->count; i++)
		if (has_key(&d->entries[i], key))
			return &d->entries[i];
	return NULL;
}

static void
put_slot(struct value_dict *d, size_t i)
{
	size_t at = d->entries[i].hash & (d->slots - 1);

	while (d->index[at] != 0)
		at = (at + 1) & (d->slots - 1);
	d->index[at] = (uint32_t)i + 1;
}

/* An index for at least one entry more than there are. */
static enum xr_status
make_index(struct value_dict *d)
{
	size_t slots = d->slots == 0 ? 4 * (size_t)FEW : d->slots * 2;
	uint32_t *index = calloc(slots, sizeof(*index));

	if (index == NULL)
		return XR_E_NOMEM;
	for (size_t i = 0; d->index == NULL && i < d->count; i++)
		d->entries[i].hash = hash_of((struct span){ d->entries[i].key,
			d->entries[i].len });
	free(d->index);
	d->index = index;
	d->slots = slots;
	for (size_t i = 0; i < d->count; i++)
		put_slot(d, i);
	return XR_OK;
}

static enum xr_status
make_room(struct value_dict *d)
{
	size_t cap = d->cap == 0 ? FIRST : d->cap * 2;
	struct dict_entry *more;

	if (d->count >= XR_VALUE_ITEMS_MAX)
		return XR_E_RANGE;
	if (d->count == d->cap) {
		more = reallocarray(d->entries, cap, sizeof(*more));
		if (more == NULL)
			return XR_E_NOMEM;
		d->entries = more;
		d->cap = cap;
	}
	if (d->count >= FEW && (d->count + 1) * 2 > d->slots)
		return make_index(d);
	return XR_OK;
}

static enum xr_status
add(struct value_dict *d, struct span key, struct xr_value *item)
{
	struct dict_entry *e;
	enum xr_status status;
	char *copy;

	if (key.len > KEY_MAX || (key.at == NULL && key.len > 0))
		return key.len > KEY_MAX ? XR_E_RANGE : XR_E_INVAL;
	status = make_room(d);
	if (status != XR_OK)
		return status;
	copy = malloc(key.len + 1);
	if (copy == NULL)
		return XR_E_NOMEM;
	if (key.len > 0)
		memcpy(copy, key.at, key.len);
	copy[key.len] = '\0';
	e = &d->entries[d->count++];
	*e = (struct dict_entry){ .key = copy, .len = key.len, .item = item };
	if (d->index != NULL) {
		e->hash = hash_of(key);
		put_slot(d, d->count - 1);
	}
	hold_item(&d->head, item);
	return XR_OK;
}

/* The deepest of what is there now. */
static void
measure(struct value_dict *d)
{
	d->head.depth = 1;
	for (size_t i = 0; i < d->count; i++)
		hold_item(&d->head, d->entries[i].item);
}

static void
replace(struct value_dict *d, struct dict_entry *e, struct xr_value *item)
{
	struct xr_value *old = e->item;
	bool deepest = node_depth(old) + 1 == d->head.depth;

	e->item = item;
	if (deepest)
		measure(d);
	else
		hold_item(&d->head, item);
	xr_value_unref(old);
}

enum xr_status
dict_add(struct xr_value *dict, struct span key, struct xr_value *item)
{
	struct value_dict *d = dict_of(dict);
	enum xr_status status = hold_check(dict, XR_DICT, item);

	if (status == XR_OK && find(d, key) != NULL)
		status = XR_E_EXISTS;
	if (status == XR_OK)
		status = add(d, key, item);
	return status == XR_OK ? status : hold_refused(dict, item, status);
}

void
dict_fini(struct xr_value *value)
{
	struct value_dict *d = dict_of(value);

	for (size_t i = 0; i < d->count; i++) {
		free(d->entries[i].key);
		xr_value_unref(d->entries[i].item);
	}
	free(d->entries);
	free(d->index);
}

XR_EXPORT struct xr_value *
xr_value_new_dict(void)
{
	struct value_dict *d = node_new(XR_DICT, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->head.depth = 1;
	d->entries = NULL;
	d->count = d->cap = d->slots = 0;
	d->index = NULL;
	return &d->head;
}

XR_EXPORT enum xr_status
xr_value_put(struct xr_value *dict, const void *key, size_t len,
	struct xr_value *item)
{
	struct value_dict *d = dict_of(dict);
	struct span k = { key, len };
	enum xr_status status = hold_check(dict, XR_DICT, item);
	struct dict_entry *e;

	if (status == XR_OK && key == NULL && len > 0)
		status = XR_E_INVAL;
	if (status != XR_OK)
		return hold_refused(dict, item, status);
	e = find(d, k);
	if (e != NULL) {
		replace(d, e, item);
		return XR_OK;
	}
	status = add(d, k, item);
	return status == XR_OK ? status : hold_refused(dict, item, status);
}

XR_EXPORT const void *
xr_value_key(const struct xr_value *dict, size_t i, size_t *len)
{
	const struct value_dict *d = dict_of(dict);
	bool there = d != NULL && i < d->count;

	if (len != NULL)
		*len = there ? d->entries[i].len : 0;
	return there ? d->entries[i].key : NULL;
}

XR_EXPORT struct xr_value *
xr_value_find(const struct xr_value *dict, const void *key, size_t len)
{
	const struct value_dict *d = dict_of(dict);
	struct dict_entry *e = NULL;

	if (d != NULL && (key != NULL || len == 0))
		e = find(d, (struct span){ key, len });
	return e == NULL ? NULL : e->item;
}
