/* SPDX-License-Identifier: Apache-2.0 */
/* member.c - see member.h. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/backend.h"
#include "worker/rpc/devices.h"
#include "worker/rpc/member.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/tell.h"

/* --- telling -------------------------------------------------------------- */

static struct xr_value *
text(const char *s)
{
	return xr_value_new_text(s, strlen(s));
}

static void
put(enum xr_status *status, struct xr_value *dict, const char *key,
	struct xr_value *v)
{
	if (*status == XR_OK)
		*status = xr_value_put(dict, key, strlen(key), v);
	else
		xr_value_unref(v);
}

/* @list, unless something of it failed. */
static struct xr_value *
whole(struct xr_value *list, enum xr_status status)
{
	if (status == XR_OK)
		return list;
	xr_value_unref(list);
	return NULL;
}

static struct xr_value *
devices_of(const struct xr_rpc_opts *opts)
{
	struct xr_value *list = xr_value_new_list();
	enum xr_status status = list != NULL ? XR_OK : XR_E_NOMEM;

	for (uint32_t i = 0; i < opts->device_count && status == XR_OK; i++)
		status = xr_value_append(list,
			xr_value_new_i64(opts->devices[i]));
	return whole(list, status);
}

static struct xr_value *
maps_of(const struct xr_rpc_opts *opts)
{
	struct xr_value *list = xr_value_new_list(), *items[3];
	enum xr_status status = list != NULL ? XR_OK : XR_E_NOMEM;

	for (uint32_t i = 0; i < opts->map_count && status == XR_OK; i++) {
		items[0] = text(opts->maps[i].to);
		items[1] = xr_value_new_i64(opts->maps[i].from);
		items[2] = xr_value_new_i64(opts->maps[i].dst);
		status = xr_value_append(list, xr_value_new_list_of(items, 3));
	}
	return whole(list, status);
}

struct xr_value *
member_new(const struct member *m, const struct xr_rpc_opts *opts)
{
	struct xr_value *d = xr_value_new_dict();
	enum xr_status status = d != NULL ? XR_OK : XR_E_NOMEM;

	put(&status, d, "name", text(m->name));
	put(&status, d, "id", xr_value_new_u64(m->id));
	put(&status, d, "incarnation", xr_value_new_u64(m->incarnation));
	put(&status, d, "addresses", text(m->addresses));
	put(&status, d, "place", text(tell_place()));
	put(&status, d, "size", xr_value_new_i64(m->said_size));
	put(&status, d, "device_kind", xr_value_new_u64(m->device_kind));
	put(&status, d, "device_count", xr_value_new_u64(m->device_count));
	put(&status, d, "devices", devices_of(opts));
	put(&status, d, "maps", maps_of(opts));
	put(&status, d, "over_group",
		xr_value_new_bool(backend_is_group(opts)));
	return whole(d, status);
}

/* --- reading -------------------------------------------------------------- */

static const struct xr_value *
find(const struct xr_value *d, const char *key)
{
	return xr_value_find(d, key, strlen(key));
}

static bool
read_text(const struct xr_value *v, const char **out)
{
	size_t len;

	if (xr_value_kind(v) != XR_TEXT)
		return false;
	*out = xr_value_data(v, &len);
	return strlen(*out) == len;
}

static bool
read_u32(const struct xr_value *v, uint32_t most, uint32_t *out)
{
	uint64_t n;

	if (xr_value_get_u64(v, &n) != XR_OK || n > most)
		return false;
	*out = (uint32_t)n;
	return true;
}

static bool
read_i32(const struct xr_value *v, int32_t *out)
{
	int64_t n;

	if (xr_value_get_i64(v, &n) != XR_OK || n < INT32_MIN || n > INT32_MAX)
		return false;
	*out = (int32_t)n;
	return true;
}

static bool
read_list(const struct xr_value *v, const struct xr_value **out)
{
	*out = v;
	return xr_value_kind(v) == XR_LIST;
}

static bool
read_pair(const struct xr_value *v, struct xr_device_pair *out)
{
	return xr_value_kind(v) == XR_LIST && xr_value_count(v) == 3 &&
		read_text(xr_value_at(v, 0), &out->to) &&
		read_i32(xr_value_at(v, 1), &out->from) &&
		read_i32(xr_value_at(v, 2), &out->dst);
}

static bool
read_lists(const struct member *m)
{
	struct xr_device_pair pair;
	int32_t device;

	for (size_t i = 0; i < xr_value_count(m->devices); i++)
		if (!read_i32(xr_value_at(m->devices, i), &device))
			return false;
	for (size_t i = 0; i < xr_value_count(m->maps); i++)
		if (!read_pair(xr_value_at(m->maps, i), &pair))
			return false;
	return true;
}

bool
member_read(const struct xr_value *v, struct member *m)
{
	uint32_t kind = 0;

	if (xr_value_kind(v) != XR_DICT)
		return false;
	*m = (struct member){ 0 };
	if (!read_text(find(v, "name"), &m->name) ||
		!read_text(find(v, "addresses"), &m->addresses) ||
		!read_text(find(v, "place"), &m->place) ||
		!read_u32(find(v, "id"), XR_WORKER_ID_MAX, &m->id) ||
		!read_u32(find(v, "device_kind"), XR_DEVICE_FAKE, &kind) ||
		!read_u32(find(v, "device_count"), INT32_MAX,
			&m->device_count) ||
		!read_list(find(v, "devices"), &m->devices) ||
		!read_list(find(v, "maps"), &m->maps))
		return false;
	m->device_kind = (enum xr_device_kind)kind;
	xr_value_get_bool(find(v, "over_group"), &m->over_group);
	return xr_value_get_u64(find(v, "incarnation"), &m->incarnation) ==
		XR_OK &&
		xr_value_get_i64(find(v, "size"), &m->said_size) == XR_OK &&
		read_lists(m);
}

/* --- judging -------------------------------------------------------------- */

enum xr_status
members_check_names(const struct xr_value *list, struct xr_error *err)
{
	struct member m, other;

	for (size_t i = 0; i < xr_value_count(list); i++) {
		if (!member_read(xr_value_at(list, i), &m))
			return fail(err, XR_E_PROTO, "member %zu is none", i);
		for (size_t k = 0; k < i; k++) {
			member_read(xr_value_at(list, k), &other);
			if (strcmp(m.name, other.name) == 0)
				return fail(err, XR_E_EXISTS,
					"ranks %u and %u both have the name %s",
					other.id, m.id, m.name);
			if (m.id == other.id)
				return fail(err, XR_E_EXISTS,
					"%s and %s both say that they are rank %u",
					other.name, m.name, m.id);
		}
	}
	return XR_OK;
}

enum xr_status
members_check_way(const struct xr_value *list, struct xr_error *err)
{
	struct member first, m;

	member_read(xr_value_at(list, 0), &first);
	for (size_t i = 1; i < xr_value_count(list); i++) {
		member_read(xr_value_at(list, i), &m);
		if (m.over_group != first.over_group)
			return fail(err, XR_E_CONFLICT,
				"%s (%u) has the backend process_group, and %s (%u) has not",
				m.over_group ? m.name : first.name,
				m.over_group ? m.id : first.id,
				m.over_group ? first.name : m.name,
				m.over_group ? first.id : m.id);
	}
	return XR_OK;
}

static void
take_lists(const struct member *m, int32_t *devices,
	struct xr_device_pair *pairs)
{
	for (size_t i = 0; i < xr_value_count(m->devices); i++)
		read_i32(xr_value_at(m->devices, i), &devices[i]);
	for (size_t i = 0; i < xr_value_count(m->maps); i++)
		read_pair(xr_value_at(m->maps, i), &pairs[i]);
}

/* False: no memory. */
static bool
info_of(const struct member *m, struct xr_device_info *info)
{
	uint32_t device_count = (uint32_t)xr_value_count(m->devices);
	uint32_t pair_count = (uint32_t)xr_value_count(m->maps);
	int32_t *devices = calloc(device_count + 1u, sizeof(*devices));
	struct xr_device_pair *pairs = calloc(pair_count + 1u, sizeof(*pairs));

	*info = (struct xr_device_info){
		.size = sizeof(*info),
		.name = m->name,
		.count = m->device_count,
		.devices = devices,
		.device_count = device_count,
		.pairs = pairs,
		.pair_count = pair_count,
	};
	if (devices == NULL || pairs == NULL)
		return false;
	take_lists(m, devices, pairs);
	return true;
}

static void
free_infos(struct xr_device_info *infos, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free((void *)infos[i].devices);
		free((void *)infos[i].pairs);
	}
	free(infos);
}

enum xr_status
members_check_devices(const struct xr_value *list, bool is_static,
	struct xr_error *err)
{
	size_t count = xr_value_count(list);
	struct xr_device_info *infos = calloc(count + 1, sizeof(*infos));
	enum xr_status status = XR_OK;
	struct member m;

	for (size_t i = 0; i < count && infos != NULL && status == XR_OK; i++)
		if (!member_read(xr_value_at(list, i), &m))
			status = fail(err, XR_E_PROTO, "member %zu is none", i);
		else if (!info_of(&m, &infos[i]))
			status = fail(err, XR_E_NOMEM, "out of memory");
	if (infos == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	if (status == XR_OK)
		status = xr_devmap_check(infos, count, is_static, err);
	free_infos(infos, count);
	return status;
}

/* --- adding --------------------------------------------------------------- */

/* How many pairs of the maps of @m go to @name; those are put into @out, the other
 * way round with @back, unless it is NULL. */
static uint32_t
pairs_to(const struct member *m, const char *name, bool back,
	struct device_pair *out)
{
	struct xr_device_pair pair;
	uint32_t n = 0;

	for (size_t i = 0; i < xr_value_count(m->maps); i++) {
		read_pair(xr_value_at(m->maps, i), &pair);
		if (strcmp(pair.to, name) != 0)
			continue;
		if (out != NULL && back)
			out[n] = (struct device_pair){ pair.dst, pair.from };
		else if (out != NULL)
			out[n] = (struct device_pair){ pair.from, pair.dst };
		n++;
	}
	return n;
}

struct peer_devices *
member_devices(const struct member *m, const struct member *self)
{
	uint32_t there = pairs_to(self, m->name, false, NULL);
	uint32_t back = pairs_to(m, self->name, true, NULL);
	struct peer_devices *d =
		calloc(1, sizeof(*d) + (there + back) * sizeof(d->pair[0]));

	if (d == NULL)
		return NULL;
	d->kind = m->device_kind;
	d->there = there;
	d->back = back;
	pairs_to(self, m->name, false, d->pair);
	pairs_to(m, self->name, true, d->pair + there);
	return d;
}

struct peer *
member_add(const struct member *m, const struct member *self)
{
	struct peer_devices *d = member_devices(m, self);
	struct peer *p = d == NULL ? NULL :
				     agent_add(&(struct agent_member){
					     .name = m->name,
					     .id = m->id,
					     .incarnation = m->incarnation,
					     .addresses = m->addresses,
					     .devices = d,
					     .rank = tell_rank(m->place),
				     });

	if (p == NULL)
		free(d);
	return p;
}

/* --- beginning ------------------------------------------------------------ */

/* Between this process and itself. */
static enum xr_status
own_devices(const struct member *m, const struct xr_rpc_opts *opts,
	struct peer_devices **devices, struct xr_error *err)
{
	struct member self = *m;
	struct xr_value *d;

	self.addresses = "";
	d = member_new(&self, opts);
	*devices = NULL;
	if (d != NULL && member_read(d, &self))
		*devices = member_devices(&self, &self);
	xr_value_unref(d);
	return *devices != NULL ? XR_OK :
				  fail(err, XR_E_NOMEM, "out of memory");
}

/* As torch has it (SPEC.md, B11). */
static const char *
interface_said(void)
{
	const char *name = getenv("TP_SOCKET_IFNAME");

	return name != NULL && name[0] != '\0' ? name : NULL;
}

enum xr_status
member_open(const struct member *m, const struct xr_rpc_opts *opts,
	const struct member_begin *how, struct xr_error *err)
{
	const struct xr_carrier *carriers[AGENT_CARRIERS_MAX];
	struct agent_wish wish = {
		.name = m->name,
		.id = m->id,
		.incarnation = m->incarnation,
		.threads = opts->threads,
		.timeout = opts->timeout,
		.carriers = carriers,
		.secret = how->secret,
		.store_host = how->store_host,
		.interface = interface_said(),
		.is_new = how->is_new,
		.lost = how->lost,
	};
	enum xr_status status = backend_carriers(opts, carriers,
		AGENT_CARRIERS_MAX, &wish.carrier_count, err);

	if (status == XR_OK)
		status = own_devices(m, opts, &wish.devices, err);
	return status == XR_OK ? agent_open(&wish, err) : status;
}
