/* SPDX-License-Identifier: Apache-2.0 */
/* workers.c - who is a member; see xrun/rpc.h. */
#include <string.h>

#include <xrun/rpc.h>

#include "base/status.h"
#include "worker/rpc/agent.h"

static void
copy_worker(const struct peer *p, struct xr_worker *w)
{
	w->id = p->id;
	memcpy(w->name, p->name, sizeof(w->name));
}

static enum xr_status
find_worker(const char *name, int64_t id, struct xr_worker *worker,
	struct xr_error *err)
{
	enum xr_status status = agent_enter(err);
	struct peer *p = NULL;

	if (status != XR_OK)
		return status;
	status = worker == NULL || worker->size < sizeof(*worker) ?
		fail(err, XR_E_INVAL, "struct xr_worker: its size") :
		agent_peer(name, id, &p, err);
	if (status == XR_OK)
		copy_worker(p, worker);
	agent_leave();
	return status;
}

XR_EXPORT enum xr_status
xr_worker_self(struct xr_worker *worker, struct xr_error *err)
{
	enum xr_status status = agent_enter(err);
	uint32_t id;

	if (status != XR_OK)
		return status;
	id = agent_self()->id;
	agent_leave();
	return XR_KEEP_FRAME(find_worker(NULL, id, worker, err));
}

XR_EXPORT enum xr_status
xr_worker_find(const char *name, struct xr_worker *worker, struct xr_error *err)
{
	if (name == NULL)
		return fail(err, XR_E_INVAL, "no name");
	return XR_KEEP_FRAME(find_worker(name, 0, worker, err));
}

XR_EXPORT enum xr_status
xr_worker_find_id(int64_t id, struct xr_worker *worker, struct xr_error *err)
{
	return XR_KEEP_FRAME(find_worker(NULL, id, worker, err));
}

XR_EXPORT enum xr_status
xr_worker_list(struct xr_worker *workers, size_t cap, size_t *count,
	struct xr_error *err)
{
	enum xr_status status = agent_enter(err);
	struct peer *p;
	size_t n = 0;

	if (status != XR_OK)
		return status;
	for (int64_t id = 0; id <= XR_WORKER_ID_MAX; id++)
		if (agent_peer(NULL, id, &p, NULL) == XR_OK) {
			if (n < cap)
				copy_worker(p, &workers[n]);
			n++;
		}
	*count = n;
	agent_leave();
	return XR_OK;
}
