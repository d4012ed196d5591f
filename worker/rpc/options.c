/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - see options.h. */
#include <string.h>

#include "base/buf.h"
#include "base/status.h"
#include "worker/rpc/options.h"
#include "worker/rpc/transports.h"

enum xr_status
worker_name_check(const char *name, struct xr_error *err)
{
	size_t len = name == NULL ? 0 : strnlen(name, XR_WORKER_NAME_MAX + 1);

	if (len > 0 && len <= XR_WORKER_NAME_MAX &&
		strspn(name,
			"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_:") ==
			len)
		return XR_OK;
	return fail(err, XR_E_INVAL,
		"a worker's name is 1 to %d of A-Z a-z 0-9 - _ :, and not '%.60s'%s",
		XR_WORKER_NAME_MAX, name == NULL ? "" : name,
		len > 60 ? "..." : "");
}

enum xr_status
options_threads_check(int64_t threads, struct xr_error *err)
{
	if (threads > 0 && threads <= OPTIONS_THREADS_MAX)
		return XR_OK;
	return fail(err, XR_E_INVAL, "threads: %lld is not 1 to %d",
		/* What was -1 before it was a u32. */
		(long long)(threads == UINT32_MAX ? -1 : threads),
		OPTIONS_THREADS_MAX);
}

enum xr_status
options_transport_check(const char *name, struct xr_error *err)
{
	struct buf known = { .max = 4096 };
	enum xr_status status;

	if (name != NULL && transport_find(name) != NULL)
		return XR_OK;
	transport_names(&known);
	status = fail(err, XR_E_INVAL,
		"transports: nobody registered '%.60s'; there is %s",
		name == NULL ? "" : name, buf_text(&known));
	buf_fini(&known);
	return status;
}

enum xr_status
options_pair_check(const struct xr_device_pair *pair, struct xr_error *err)
{
	struct xr_error why = { 0 };

	if (worker_name_check(pair->to, &why) != XR_OK)
		return fail(err, XR_E_INVAL, "device map: %s", why.text);
	if (pair->from >= XR_DEVICE_MAP_CPU && pair->dst >= XR_DEVICE_MAP_CPU)
		return XR_OK;
	return fail(err, XR_E_INVAL,
		"device map to '%s': %d is no device: it is 0 or more, or %d for the CPU",
		pair->to,
		pair->from < XR_DEVICE_MAP_CPU ? pair->from : pair->dst,
		XR_DEVICE_MAP_CPU);
}

bool
options_clash(const struct xr_device_pair *a, const struct xr_device_pair *b)
{
	return a->from == b->from && a->dst != b->dst &&
		strcmp(a->to, b->to) == 0;
}

enum xr_status
options_clash_error(const struct xr_device_pair *a,
	const struct xr_device_pair *b, struct xr_error *err)
{
	return fail(err, XR_E_INVAL,
		"device map to '%s': device %d goes to device %d there already, and so not to %d",
		a->to, a->from, a->dst, b->dst);
}

enum xr_status
options_device_check(int32_t device, struct xr_error *err)
{
	if (device >= 0)
		return XR_OK;
	return fail(err, XR_E_INVAL,
		"devices: %d is no accelerator: those are 0 and more%s", device,
		device == XR_DEVICE_MAP_CPU ? "; the CPU needs no list" : "");
}
