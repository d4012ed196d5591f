/* SPDX-License-Identifier: Apache-2.0 */
/* leave.c - leaving; see xrun/rpc.h. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <xrun/rpc.h>
#include <xrun/store.h>

#include "base/status.h"
#include "base/timeout.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/crew.h"
#include "worker/rpc/dynamic.h"
#include "worker/rpc/future.h"
#include "worker/rpc/gather.h"
#include "worker/rpc/group.h"
#include "worker/rpc/inside.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/meet.h"
#include "worker/rpc/parcel.h"
#include "worker/rpc/rref.h"
#include "worker/rpc/settle.h"

#define SHUTDOWN_FLAGS (XR_SHUTDOWN_IMMEDIATE | XR_SHUTDOWN_STRICT)

/* What this member calls now, and how often it did. */
static struct xr_value *
own_calls(void)
{
	struct xr_value *items[2];

	/* In this order: see settle.h. */
	items[1] = xr_value_new_u64(ask_begun());
	items[0] = xr_value_new_u64(ask_active());
	return xr_value_new_list_of(items, 2);
}

static struct call_sums
sum_calls(const struct xr_value *all)
{
	uint64_t n, sum[2] = { 0 };

	for (size_t i = 0; i < xr_value_count(all); i++)
		for (size_t k = 0; k < 2; k++)
			if (xr_value_get_u64(xr_value_at(xr_value_at(all, i),
						     k),
				    &n) == XR_OK)
				sum[k] += n;
	return (struct call_sums){ .active = sum[0], .begun = sum[1] };
}

/* Until no member of the group calls any more. */
static enum xr_status
settle_calls(int64_t deadline, struct xr_error *err)
{
	struct call_sums before = { .active = 1 }, now;
	enum xr_status status = XR_OK;
	struct xr_value *mine, *all;
	const char **names;
	size_t count;

	names = gather_names(&count);
	if (names == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	for (bool over = false; !over && status == XR_OK; before = now) {
		status = ask_await_idle(deadline, err);
		mine = own_calls();
		all = NULL;
		if (status == XR_OK && mine == NULL)
			status = fail(err, XR_E_NOMEM, "out of memory");
		if (status == XR_OK)
			status =
				meet(&(struct xr_rpc_meeting){ .names = names,
					     .count = count,
					     .timeout = future_left(deadline) },
					MEET_LEAVING, mine, &all, err);
		now = sum_calls(all);
		over = call_sums_settled(&before, &now);
		xr_value_unref(mine);
		xr_value_unref(all);
	}
	free(names);
	return status;
}

/* All members, at the same point. */
static enum xr_status
meet_all(int64_t deadline, struct xr_error *err)
{
	struct xr_rpc_meeting who = { .size = sizeof(who),
		.timeout = future_left(deadline) };
	struct xr_value *nil = xr_value_new_nil();
	const char **names = gather_names(&who.count);
	enum xr_status status = XR_E_NOMEM;

	who.names = names;
	if (nil != NULL && names != NULL)
		status = meet(&who, MEET_LEAVING, nil, NULL, err);
	else
		fail(err, status, "out of memory");
	free(names);
	xr_value_unref(nil);
	return status;
}

/* Until nobody calls, and nobody has references; then all go. */
static enum xr_status
settle_all(int64_t deadline, struct xr_error *err)
{
	enum xr_status status = settle_calls(deadline, err);

	if (status == XR_OK)
		status = rref_settle(true, deadline, err);
	if (status == XR_OK)
		status = meet_all(deadline, err);
	return status;
}

struct leaving {
	uint32_t flags;
	enum xr_status status;
	struct xr_error *err;
};

/* What this rank holds yet, when no function of it runs any more: one that has
 * answered may hold its arguments a moment longer. */
static void
look_for_leaks(void *ctx)
{
	struct leaving *l = ctx;
	char text[4096];
	uint32_t count = rref_leaks(text, sizeof(text));

	if (count == 0)
		return;
	if ((l->flags & XR_SHUTDOWN_STRICT) == 0)
		dprintf(STDERR_FILENO,
			"xrun: %s: %u references were not released: %s\n",
			agent_self()->name, count, text);
	else if (l->status == XR_OK)
		l->status = fail(l->err, XR_E_EXISTS,
			"%u references leaked: %s", count, text);
}

static void
close_agent(struct leaving *l)
{
	void (*look)(void *ctx) =
		l->flags != XR_SHUTDOWN_IMMEDIATE ? look_for_leaks : NULL;

	if (dynamic_is())
		dynamic_end(look, l);
	else
		agent_close(look, l);
}

/* Where members come and go one waits for one's own calls, and the others keep what
 * they have. */
static enum xr_status
settle(uint32_t flags, int64_t deadline, struct xr_error *err)
{
	bool waits = (flags & XR_SHUTDOWN_IMMEDIATE) == 0;
	enum xr_status status = XR_OK;

	if (!dynamic_is())
		return waits ? settle_all(deadline, err) : XR_OK;
	if (waits)
		status = ask_await_idle(deadline, err);
	if (waits && status == XR_OK)
		status = rref_settle(false, deadline, err);
	dynamic_leave(waits, deadline);
	return status;
}

XR_EXPORT enum xr_status
xr_rpc_shutdown(uint32_t flags, int64_t timeout, struct xr_error *err)
{
	enum xr_status status = XR_OK;
	struct xr_error why = { 0 };
	struct leaving leaving;
	int64_t deadline;

	if (timeout_check(timeout, err) != XR_OK)
		return XR_E_INVAL;
	if ((flags & ~(uint32_t)SHUTDOWN_FLAGS) != 0)
		return fail(err, XR_E_INVAL, "flags: %#x has unknown ones",
			flags);
	if (crew_is_member() || lead_delivers())
		return fail(err, XR_E_STATE,
			"a function that serves a call cannot shut the agent down");
	status = inside_not_forked(err);
	if (status != XR_OK)
		return status;
	pthread_mutex_lock(&group.changing);
	status = agent_enter(&why);
	if (status == XR_OK) {
		agent_timeout(timeout, &timeout, NULL);
		future_deadline(timeout, &deadline);
		status = settle(flags, deadline, &why);
		if (status == XR_OK && (flags & XR_SHUTDOWN_IMMEDIATE) == 0) {
			peer_await_flushed(deadline);
			status = parcel_await_sent(deadline, &why);
		}
		agent_leave();
		leaving = (struct leaving){ flags, status, &why };
		close_agent(&leaving);
		status = leaving.status;
		xr_store_free(group.store);
		group.store = NULL;
	}
	pthread_mutex_unlock(&group.changing);
	return status == XR_OK ? XR_OK : fail(err, status, "%s", why.text);
}
