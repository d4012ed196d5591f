/* SPDX-License-Identifier: Apache-2.0 */
/* devices.c - see devices.h. */
#include <stddef.h>

#include "base/status.h"
#include "wire/value/device_ops.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/devices.h"

uint32_t
devices_here(enum xr_device_kind *kind)
{
	const struct device_ops *ops;
	uint32_t n = 0;

	*kind = XR_DEVICE_CPU;
	for (int k = XR_DEVICE_CPU + 1; device_kind_name(k) != NULL; k++) {
		ops = device_ops_of((enum xr_device_kind)k);
		if (ops == NULL || ops->count == NULL)
			continue;
		n = ops->count(ops->ctx);
		if (n == 0)
			continue;
		*kind = (enum xr_device_kind)k;
		return n;
	}
	return 0;
}

static const struct device_pair *
find(const struct device_pair *pairs, uint32_t count, int32_t from)
{
	for (uint32_t i = 0; i < count; i++)
		if (pairs[i].from == from)
			return &pairs[i];
	return NULL;
}

static void
put(const struct device_pair *pair, const struct peer_devices *d,
	struct xr_tensor_desc *desc)
{
	if (pair->dst == XR_DEVICE_MAP_CPU) {
		desc->device_kind = XR_DEVICE_CPU;
		desc->device_index = 0;
		return;
	}
	desc->device_kind = d->kind;
	desc->device_index = pair->dst;
}

/* False: there is no entry for where @desc lies, and it needs one. */
static bool
map(const struct peer *p, bool back, struct xr_tensor_desc *desc)
{
	bool on_cpu = desc->device_kind == XR_DEVICE_CPU;
	const struct peer_devices *d = p->devices;
	const struct device_pair *pair = NULL;

	if (d != NULL)
		pair = find(back ? d->pair + d->there : d->pair,
			back ? d->back : d->there,
			on_cpu ? XR_DEVICE_MAP_CPU : desc->device_index);
	if (pair != NULL)
		put(pair, d, desc);
	return pair != NULL || on_cpu || p->self;
}

enum xr_status
devices_to(void *peer, struct xr_tensor_desc *desc, struct xr_error *err)
{
	const struct peer *p = peer, *self = agent_self();

	if (map(p, false, desc))
		return XR_OK;
	return fail(err, XR_E_DEVICE,
		"%s (%u) has no device map to %s (%u) for %s:%d: nothing was sent",
		self->name, self->id, p->name, p->id,
		device_kind_name(desc->device_kind), desc->device_index);
}

enum xr_status
devices_back(void *peer, struct xr_tensor_desc *desc, struct xr_error *err)
{
	const struct peer *p = peer, *self = agent_self();

	if (map(p, true, desc))
		return XR_OK;
	return fail(err, XR_E_DEVICE,
		"%s (%u) answers with a tensor on %s:%d, to which the device map of %s (%u) does not lead",
		self->name, self->id, device_kind_name(desc->device_kind),
		desc->device_index, p->name, p->id);
}
