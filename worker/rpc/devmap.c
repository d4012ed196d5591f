/* SPDX-License-Identifier: Apache-2.0 */
/* devmap.c - see xrun/device.h: do the device maps of all members fit together?
 *
 * Whatever order the maps are given in, they are looked at by members, and for
 * each by destinations in the order of their names, so that all members tell the
 * same. */
#include <stdlib.h>
#include <string.h>

#include <xrun/device.h>

#include "base/buf.h"
#include "base/status.h"

/* One member's map to one destination. */
struct map {
	const struct xr_device_info *from;
	const struct xr_device_info
		*to;      /* NULL: nobody of that name is there */
	const char *name; /* of the destination */
	const struct xr_device_pair **pairs; /* [count] */
	size_t count;
};

struct check {
	const struct xr_device_info **by_name; /* [count] */
	size_t count;
	bool is_static;
	const struct xr_device_pair **pairs; /* room for those of any member */
	struct xr_error *err;
};

/* --- names ----------------------------------------------------------------- */

static int
by_name(const void *a, const void *b)
{
	return strcmp((*(const struct xr_device_info *const *)a)->name,
		(*(const struct xr_device_info *const *)b)->name);
}

/* Pairs to one destination stay in their order. */
static int
by_destination(const void *a, const void *b)
{
	const struct xr_device_pair *p =
		*(const struct xr_device_pair *const *)a;
	const struct xr_device_pair *q =
		*(const struct xr_device_pair *const *)b;
	int order = strcmp(p->to, q->to);

	return order != 0 ? order : (p > q) - (p < q);
}

static const struct xr_device_info *
find(const struct check *c, const char *name)
{
	struct xr_device_info key = { .name = name };
	const struct xr_device_info *want = &key, **found;

	if (c->count == 0)
		return NULL;
	found = bsearch(&want, c->by_name, c->count, sizeof(want), by_name);
	return found == NULL ? NULL : *found;
}

/* --- devices --------------------------------------------------------------- */

/* The CPU is everybody's, and in no list. */
static bool
has(const struct xr_device_info *m, int32_t device)
{
	return device == XR_DEVICE_MAP_CPU ||
		(device >= 0 && (uint32_t)device < m->count);
}

static bool
lists(const struct xr_device_info *m, int32_t device)
{
	for (uint32_t i = 0; i < m->device_count; i++)
		if (m->devices[i] == device)
			return true;
	return device == XR_DEVICE_MAP_CPU;
}

/* "0, 2" */
static const char *
list_text(const struct xr_device_info *m, struct buf *out)
{
	for (uint32_t i = 0; i < m->device_count; i++)
		buf_fmt(out, "%s%d", i > 0 ? ", " : "", m->devices[i]);
	return buf_text(out);
}

/* "0:1, 2:1" */
static const char *
map_text(const struct map *map, struct buf *out)
{
	for (size_t i = 0; i < map->count; i++)
		buf_fmt(out, "%s%d:%d", i > 0 ? ", " : "", map->pairs[i]->from,
			map->pairs[i]->dst);
	return buf_text(out);
}

/* V1, V2 */
static enum xr_status
check_list(const struct xr_device_info *m, struct xr_error *err)
{
	struct buf text = { .max = 100 };
	enum xr_status status = XR_OK;

	for (uint32_t i = 0; i < m->device_count && status == XR_OK; i++)
		for (uint32_t k = 0; k < i && status == XR_OK; k++)
			if (m->devices[k] == m->devices[i])
				status = fail(err, XR_E_INVAL,
					"%s: device %d is twice in its list %s",
					m->name, m->devices[i],
					list_text(m, &text));
	for (uint32_t i = 0; i < m->device_count && status == XR_OK; i++)
		if (m->devices[i] < 0 || !has(m, m->devices[i]))
			status = fail(err, XR_E_INVAL,
				"%s: device %d of its list %s is not there: it has %u",
				m->name, m->devices[i], list_text(m, &text),
				m->count);
	buf_fini(&text);
	return status;
}

/* --- maps ------------------------------------------------------------------ */

/* V4. One device of its own that goes to two is no map at all. */
static enum xr_status
check_twice(const struct map *map, struct xr_error *err)
{
	struct buf text = { .max = 60 };
	const struct xr_device_pair *a, *b;
	enum xr_status status = XR_OK;

	for (size_t i = 0; i < map->count && status == XR_OK; i++)
		for (size_t k = 0; k < i && status == XR_OK; k++) {
			a = map->pairs[k];
			b = map->pairs[i];
			if (a->dst != b->dst && a->from != b->from)
				continue;
			status = fail(err, XR_E_INVAL,
				"%s: its map to %s has device %d of %s twice: %s",
				map->from->name, map->name,
				a->dst == b->dst ? b->dst : b->from,
				a->dst == b->dst ? map->name : map->from->name,
				map_text(map, &text));
		}
	buf_fini(&text);
	return status;
}

/* V5a, V5b */
static enum xr_status
check_own_side(const struct map *map, struct xr_error *err)
{
	const struct xr_device_info *m = map->from;

	for (size_t i = 0; i < map->count; i++) {
		int32_t device = map->pairs[i]->from;

		if (m->device_count > 0 && !lists(m, device))
			return fail(err, XR_E_INVAL,
				"%s: its map to %s begins at device %d, which is not in its list",
				m->name, map->name, device);
		if (m->device_count == 0 && !has(m, device))
			return fail(err, XR_E_INVAL,
				"%s: its map to %s begins at device %d, and it has %u",
				m->name, map->name, device, m->count);
	}
	return XR_OK;
}

/* V6a, V6b */
static enum xr_status
check_other_side(const struct map *map, struct xr_error *err)
{
	const struct xr_device_info *m = map->to;

	for (size_t i = 0; i < map->count && m != NULL; i++) {
		int32_t device = map->pairs[i]->dst;

		if (m->device_count > 0 && !lists(m, device))
			return fail(err, XR_E_INVAL,
				"%s: its map to %s ends at device %d, which is not in the list there",
				map->from->name, map->name, device);
		if (m->device_count == 0 && !has(m, device))
			return fail(err, XR_E_INVAL,
				"%s: its map to %s ends at device %d, and there are %u there",
				map->from->name, map->name, device, m->count);
	}
	return XR_OK;
}

static enum xr_status
check_map(const struct map *map, struct xr_error *err)
{
	enum xr_status status = check_twice(map, err);

	if (status == XR_OK)
		status = check_own_side(map, err);
	return status == XR_OK ? check_other_side(map, err) : status;
}

/* The map that begins at pair @at of @m, sorted; gives where the next does. */
static size_t
map_at(const struct check *c, const struct xr_device_info *m, size_t at,
	struct map *map)
{
	size_t end = at;

	while (end < m->pair_count &&
		strcmp(c->pairs[end]->to, c->pairs[at]->to) == 0)
		end++;
	*map = (struct map){
		.from = m,
		.to = find(c, c->pairs[at]->to),
		.name = c->pairs[at]->to,
		.pairs = c->pairs + at,
		.count = end - at,
	};
	return end;
}

/* V3 of all its maps, then the other rules of each. */
static enum xr_status
check_maps(const struct check *c, const struct xr_device_info *m)
{
	struct map map;

	for (uint32_t i = 0; i < m->pair_count; i++)
		c->pairs[i] = &m->pairs[i];
	qsort(c->pairs, m->pair_count, sizeof(*c->pairs), by_destination);
	for (size_t at = 0; c->is_static && at < m->pair_count;) {
		at = map_at(c, m, at, &map);
		if (map.to == NULL)
			return fail(c->err, XR_E_INVAL,
				"%s: it has a device map to %s, which is no member",
				m->name, map.name);
	}
	for (size_t at = 0; at < m->pair_count;) {
		enum xr_status status;

		at = map_at(c, m, at, &map);
		status = check_map(&map, c->err);
		if (status != XR_OK)
			return status;
	}
	return XR_OK;
}

static enum xr_status
check_all(struct check *c, const struct xr_device_info *members)
{
	enum xr_status status = XR_OK;

	for (size_t i = 0; i < c->count; i++)
		c->by_name[i] = &members[i];
	qsort(c->by_name, c->count, sizeof(*c->by_name), by_name);
	for (size_t i = 0; i < c->count && status == XR_OK; i++)
		status = check_list(&members[i], c->err);
	for (size_t i = 0; i < c->count && status == XR_OK; i++)
		status = check_maps(c, &members[i]);
	return status;
}

XR_EXPORT enum xr_status
xr_devmap_check(const struct xr_device_info *members, size_t count,
	bool is_static, struct xr_error *err)
{
	struct check c = { .count = count, .is_static = is_static, .err = err };
	enum xr_status status;
	size_t most = 0;

	for (size_t i = 0; i < count; i++) {
		if (members[i].size < sizeof(members[i]) ||
			members[i].name == NULL)
			return fail(err, XR_E_INVAL,
				"devices of a member without size or name");
		if (members[i].pair_count > most)
			most = members[i].pair_count;
	}
	c.by_name = calloc(count + 1, sizeof(*c.by_name));
	c.pairs = calloc(most + 1, sizeof(*c.pairs));
	status = c.by_name == NULL || c.pairs == NULL ?
		fail(err, XR_E_NOMEM, "out of memory") :
		check_all(&c, members);
	free(c.by_name);
	free(c.pairs);
	return status;
}

/* --- the other way round --------------------------------------------------- */

XR_EXPORT size_t
xr_devmap_invert(const struct xr_device_info *members, size_t count,
	const char *name, struct xr_device_pair *pairs, size_t cap)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < members[i].pair_count; k++) {
			const struct xr_device_pair *p = &members[i].pairs[k];

			if (strcmp(p->to, name) != 0)
				continue;
			if (n < cap)
				pairs[n] = (struct xr_device_pair){
					members[i].name, p->dst, p->from
				};
			n++;
		}
	return n;
}

/* The lowest of what @m, named @name or not, uses of that member's devices, above
 * @last; @best if there is none lower. */
static int64_t
next_device(const struct xr_device_info *m, const char *name, int64_t last,
	int64_t best)
{
	bool own = strcmp(m->name, name) == 0;
	int64_t device;

	for (uint32_t i = 0; i < m->pair_count; i++) {
		if (own && m->pairs[i].from > last && m->pairs[i].from < best)
			best = m->pairs[i].from;
		device = m->pairs[i].dst;
		if (strcmp(m->pairs[i].to, name) == 0 && device > last &&
			device < best)
			best = device;
	}
	return best;
}

/* The lowest of its list above @last; INT64_MAX: none. */
static int64_t
next_listed(const struct xr_device_info *m, int64_t last)
{
	int64_t best = INT64_MAX;

	for (uint32_t i = 0; i < m->device_count; i++)
		if (m->devices[i] > last && m->devices[i] < best)
			best = m->devices[i];
	return best;
}

XR_EXPORT size_t
xr_devmap_devices(const struct xr_device_info *members, size_t count,
	const char *name, int32_t *devices, size_t cap)
{
	const struct xr_device_info *self = NULL;
	int64_t at = XR_DEVICE_MAP_CPU, next;
	size_t n = 0;

	for (size_t i = 0; i < count && self == NULL; i++)
		if (strcmp(members[i].name, name) == 0 &&
			members[i].device_count > 0)
			self = &members[i];
	for (;;) {
		next = self != NULL ? next_listed(self, at) : INT64_MAX;
		for (size_t i = 0; i < count && self == NULL; i++)
			next = next_device(&members[i], name, at, next);
		if (next == INT64_MAX)
			return n;
		if (n < cap)
			devices[n] = (int32_t)next;
		n++;
		at = next;
	}
}
