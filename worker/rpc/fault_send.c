/* SPDX-License-Identifier: Apache-2.0 */
/* fault_send.c - sending with the backend "faulty"; see fault.h. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/rpc/due.h"
#include "worker/rpc/fault.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/peer.h"

static void
send_held(struct fault_held *h)
{
	peer_send_whole(h->to, &h->message, NULL, NULL, NULL);
	free(h);
}

int64_t
fault_expire(int64_t now)
{
	struct fault_held *h;

	if (!fault_is_on())
		return INT64_MAX;
	while ((h = fault_take(NULL, now)) != NULL)
		send_held(h);
	return fault_due();
}

/* Those that were kept for @p come behind one that went. */
static enum xr_status
send_behind(struct peer *p, const struct xr_message *message, struct due *due,
	struct parcel *parcel, struct xr_error *err)
{
	enum xr_status status = peer_send_whole(p, message, due, parcel, err);
	struct fault_held *held;

	while (status == XR_OK && (held = fault_take(p, INT64_MAX)) != NULL)
		send_held(held);
	return status;
}

/* It goes behind the next one. */
static bool
hold(struct peer *p, const struct xr_message *message)
{
	if (!fault_hold(p, message))
		return false;
	/* Who leads tells the watch nothing of what is due. */
	lead_due(fault_due());
	lead_wake_all();
	return true;
}

enum xr_status
fault_send(struct peer *p, const struct xr_message *message, struct due *due,
	struct parcel *parcel, struct xr_error *err)
{
	int64_t deadline = due_at(due); /* a delay is part of it */
	enum fault_what what = fault_of(p, message);
	enum xr_status status = XR_OK;

	if (what == FAULT_FAIL)
		return fail(err, XR_E_INJECTED,
			"%s (%u): a message failed on purpose", p->name, p->id);
	if (deadline != INT64_MAX && clock_now() >= deadline)
		return fail(err, XR_E_TIMEOUT,
			"%s (%u): a message was delayed on purpose", p->name,
			p->id);
	if (what == FAULT_DROP)
		return XR_OK;
	if (what == FAULT_REORDER && hold(p, message))
		return XR_OK;
	if (what == FAULT_DUP)
		status = peer_send_whole(p, message, due, NULL, err);
	return status == XR_OK ? send_behind(p, message, due, parcel, err) :
				 status;
}

enum xr_status
fault_post(struct peer *p, const struct xr_message *message)
{
	enum fault_what what = fault_of(p, message);
	enum xr_status status = XR_OK;

	if (what == FAULT_FAIL)
		return XR_E_INJECTED;
	if (what == FAULT_DROP)
		return XR_OK;
	if (what == FAULT_REORDER && hold(p, message))
		return XR_OK;
	if (what == FAULT_DUP)
		status = peer_post_whole(p, message);
	return status == XR_OK ? peer_post_whole(p, message) : status;
}
