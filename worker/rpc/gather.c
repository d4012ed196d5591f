/* SPDX-License-Identifier: Apache-2.0 */
/* gather.c - see gather.h; meetings of the program's, see xrun/rpc.h. */
#include <stdlib.h>

#include <xrun/rpc.h>

#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/gather.h"
#include "worker/rpc/meet.h"

const char **
gather_names(size_t *count)
{
	const char **names;
	size_t n = 0;

	*count = 0;
	for (struct peer *p = agent_first(); p != NULL; p = agent_next(p))
		n++;
	names = calloc(n, sizeof(*names));
	for (struct peer *p = agent_first(); p != NULL && names != NULL;
		p = agent_next(p))
		if (*count < n && !peer_is_gone(p))
			names[(*count)++] = p->name;
	return names;
}

static enum xr_status
check(const struct xr_rpc_meeting *m, struct xr_error *err)
{
	if (m->size < sizeof(*m))
		return fail(err, XR_E_INVAL,
			"a meeting's size is %u, and %zu here", m->size,
			sizeof(*m));
	for (size_t i = 0; m->names != NULL && i < m->count; i++)
		if (m->names[i] == NULL)
			return fail(err, XR_E_INVAL,
				"name %zu of a meeting is NULL", i);
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_rpc_allgather(const struct xr_rpc_meeting *meeting, struct xr_value *value,
	struct xr_value **all, struct xr_error *err)
{
	const struct xr_rpc_meeting everybody = {
		.size = sizeof(everybody),
		.timeout = XR_TIMEOUT_DEFAULT,
	};
	enum xr_status status = agent_enter(err);
	const char **names = NULL;
	struct xr_rpc_meeting all_of_it;

	if (status != XR_OK)
		return status;
	all_of_it = meeting != NULL ? *meeting : everybody;
	status = check(&all_of_it, err);
	if (status != XR_OK) {
		agent_leave();
		return status;
	}
	if (all_of_it.names == NULL) {
		names = gather_names(&all_of_it.count);
		all_of_it.names = names;
	}
	if (all_of_it.names == NULL)
		status = fail(err, XR_E_NOMEM, "out of memory");
	else
		status = agent_timeout_field(all_of_it.timeout,
			&all_of_it.timeout, err);
	if (status == XR_OK)
		status = meet(&all_of_it, MEET_PROGRAM, value, all, err);
	free(names);
	agent_leave();
	return status;
}

XR_EXPORT enum xr_status
xr_rpc_barrier(const struct xr_rpc_meeting *meeting, struct xr_error *err)
{
	struct xr_value *nil = xr_value_new_nil();
	enum xr_status status = nil == NULL ?
		fail(err, XR_E_NOMEM, "out of memory") :
		xr_rpc_allgather(meeting, nil, NULL, err);

	xr_value_unref(nil);
	return status;
}
