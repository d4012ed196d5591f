/* SPDX-License-Identifier: Apache-2.0 */
/* member.c - see member.h. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/backend.h"
#include "worker/rpc/devices.h"
#include "worker/rpc/member.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/tell.h"
#include "worker/shm/shm.h"

/*
 * A head, as struct head has it; then the devices; from and dst of each map; and texts,
 * each with its 0: name, addresses, place, and where each map leads to.
 */
#define SHAPE      1 /* of these BYTES */
#define OVER_GROUP 1u

struct head {
	uint16_t shape, flags;
	uint32_t id;
	uint64_t incarnation;
	int64_t said_size;
	uint32_t device_kind, device_count;
	uint32_t used_count, pair_count;
};

_Static_assert(sizeof(struct head) == 40, "the same everywhere");

/* --- telling -------------------------------------------------------------- */

static struct head
head_of(const struct member *m, const struct xr_rpc_opts *opts)
{
	return (struct head){
		.shape = SHAPE,
		.flags = backend_is_group(opts) ? OVER_GROUP : 0,
		.id = m->id,
		.incarnation = m->incarnation,
		.said_size = m->said_size,
		.device_kind = m->device_kind,
		.device_count = m->device_count,
		.used_count = opts->device_count,
		.pair_count = opts->map_count,
	};
}

static void
put_text(struct buf *out, const char *text)
{
	buf_put(out, text, strlen(text) + 1);
}

struct xr_value *
member_new(const struct member *m, const struct xr_rpc_opts *opts)
{
	const struct head head = head_of(m, opts);
	struct buf out = { 0 };
	struct xr_value *v = NULL;

	buf_put(&out, &head, sizeof(head));
	for (uint32_t i = 0; i < opts->device_count; i++)
		buf_put(&out, &opts->devices[i], sizeof(int32_t));
	for (uint32_t i = 0; i < opts->map_count; i++) {
		buf_put(&out, &opts->maps[i].from, sizeof(int32_t));
		buf_put(&out, &opts->maps[i].dst, sizeof(int32_t));
	}
	put_text(&out, m->name);
	put_text(&out, m->addresses);
	put_text(&out, tell_place());
	for (uint32_t i = 0; i < opts->map_count; i++)
		put_text(&out, opts->maps[i].to);
	if (out.bad == XR_OK)
		v = xr_value_new_bytes(out.data, out.len);
	buf_fini(&out);
	return v;
}

/* --- reading -------------------------------------------------------------- */

/* What has not been read of the BYTES. */
struct rest {
	const char *at, *end;
};

static bool
take_text(struct rest *r, const char **text)
{
	const char *end = memchr(r->at, '\0', (size_t)(r->end - r->at));

	if (end == NULL)
		return false;
	*text = r->at;
	r->at = end + 1;
	return true;
}

static bool
take_numbers(struct rest *r, uint64_t count, const char **numbers)
{
	if (count > (uint64_t)(r->end - r->at) / sizeof(int32_t))
		return false;
	*numbers = r->at;
	r->at += count * sizeof(int32_t);
	return true;
}

static bool
take_lists(struct rest *r, struct member *m)
{
	const char *unused;

	if (!take_numbers(r, m->used_count, &m->used) ||
		!take_numbers(r, 2 * (uint64_t)m->pair_count, &m->pairs) ||
		!take_text(r, &m->name) || !take_text(r, &m->addresses) ||
		!take_text(r, &m->place))
		return false;
	m->to = r->at;
	for (uint32_t i = 0; i < m->pair_count; i++)
		if (!take_text(r, &unused))
			return false;
	return r->at == r->end;
}

bool
member_read(const struct xr_value *v, struct member *m)
{
	struct head head;
	struct rest r;
	size_t len;

	if (xr_value_kind(v) != XR_BYTES)
		return false;
	r.at = xr_value_data(v, &len);
	if (len < sizeof(head))
		return false;
	memcpy(&head, r.at, sizeof(head));
	r.end = r.at + len;
	r.at += sizeof(head);
	*m = (struct member){
		.id = head.id,
		.incarnation = head.incarnation,
		.said_size = head.said_size,
		.over_group = (head.flags & OVER_GROUP) != 0,
		.device_kind = (enum xr_device_kind)head.device_kind,
		.device_count = head.device_count,
		.used_count = head.used_count,
		.pair_count = head.pair_count,
	};
	return head.shape == SHAPE && head.id <= XR_WORKER_ID_MAX &&
		head.device_kind <= XR_DEVICE_FAKE &&
		head.device_count <= INT32_MAX && take_lists(&r, m);
}

static int32_t
number_at(const char *numbers, uint32_t i)
{
	int32_t n;

	memcpy(&n, numbers + i * sizeof(n), sizeof(n));
	return n;
}

/* The map behind @pair, of which only @n is to be known; NULL: before the first. */
static struct xr_device_pair
next_pair(const struct member *m, uint32_t n, const char *to)
{
	return (struct xr_device_pair){
		.to = to != NULL ? to + strlen(to) + 1 : m->to,
		.from = number_at(m->pairs, 2 * n),
		.dst = number_at(m->pairs, 2 * n + 1),
	};
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
copy_lists(const struct member *m, int32_t *devices,
	struct xr_device_pair *pairs)
{
	const char *to = NULL;

	for (uint32_t i = 0; i < m->used_count; i++)
		devices[i] = number_at(m->used, i);
	for (uint32_t i = 0; i < m->pair_count; i++, to = pairs[i - 1].to)
		pairs[i] = next_pair(m, i, to);
}

/* False: no memory. */
static bool
info_of(const struct member *m, struct xr_device_info *info)
{
	int32_t *devices = calloc(m->used_count + 1u, sizeof(*devices));
	struct xr_device_pair *pairs =
		calloc(m->pair_count + 1u, sizeof(*pairs));

	*info = (struct xr_device_info){
		.size = sizeof(*info),
		.name = m->name,
		.count = m->device_count,
		.devices = devices,
		.device_count = m->used_count,
		.pairs = pairs,
		.pair_count = m->pair_count,
	};
	if (devices == NULL || pairs == NULL)
		return false;
	copy_lists(m, devices, pairs);
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
	struct xr_device_pair pair = { .to = NULL };
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->pair_count; i++) {
		pair = next_pair(m, i, pair.to);
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

/* Up to the one that reaches all who have the segment. */
static uint32_t
near_ones(const struct xr_carrier *const *carriers, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (carriers[i] == &shm_carrier)
			return i + 1;
	return count;
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

	if (status == XR_OK && how->is_near)
		wish.carrier_count = near_ones(carriers, wish.carrier_count);
	if (status == XR_OK)
		status = own_devices(m, opts, &wish.devices, err);
	return status == XR_OK ? agent_open(&wish, err) : status;
}
