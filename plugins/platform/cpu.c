/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.c - the platform that is always there, and has no accelerators. */
#include <xrun/plugin.h>

static enum xr_status
probe(const struct xr_host *host, struct xr_error *err)
{
	return XR_OK;
}

static enum xr_status
find(xr_add_device_fn *add, void *arg, struct xr_error *err)
{
	return XR_OK;
}

static const struct xr_platform_ops ops = {
	.size = sizeof(ops),
	.find = find,
	.list = find,
};

XR_PLUGIN(cpu) = {
	.size = sizeof(struct xr_plugin),
	.abi = XR_PLUGIN_ABI,
	.kind = XR_PLATFORM,
	.preference = 0,
	.name = "cpu",
	.summary = "processors only",
	.probe = probe,
	{ .platform = &ops },
};
