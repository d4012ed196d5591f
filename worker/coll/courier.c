/* SPDX-License-Identifier: Apache-2.0 */
/*
 * courier.c - messages of calls, as those of a group: backend process_group.
 *
 * The group is of all members, and its time is never over. A message keeps its record
 * and its body, so that what is lent stays where it lies: its kind says that it is
 * carried, and aux, which messages of calls do not use, bears the stamp of its
 * sender: the group's number folded, and his place in it. Two members of one group
 * never have one stamp. Who receives it knows by the link who sent it, and so which
 * stamp it must have.
 *
 * The group does not fail: that one member is lost is told by the agent, to those who
 * asked something of him. Messages of other groups go straight, as they bear numbers
 * of their own.
 */
#include <stddef.h>

#include "base/status.h"
#include "worker/coll/team.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/message.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/way.h"

/* Made before anybody sends, and gone when nobody does any more. */
static struct xr_coll *team;

static uint16_t
stamp_of(int64_t place)
{
	return (uint16_t)(team->id ^ team->id >> 16 ^ team->id >> 32 ^
		(uint64_t)place);
}

/* All have their rank as their place. */
static bool
is_member(const struct peer *peer)
{
	return peer->id < team->count && team->peer[peer->id] == peer;
}

static enum xr_status
form(uint32_t rank, uint32_t size, struct xr_error *err)
{
	enum xr_status status = team_of_all(size, &team, err);

	if (status != XR_OK || team->me == (int64_t)rank)
		return status;
	status = fail(err, XR_E_CONFLICT,
		"the rank is %u here, and %lld in the group of %u", rank,
		(long long)team->me, size);
	team_unref(team);
	team = NULL;
	return status;
}

static void
dissolve(void)
{
	team_unref(team);
	team = NULL;
}

static enum xr_status
send(struct peer *to, const struct xr_message *message, bool *pending)
{
	struct xr_message one = *message;

	if (one.record.kind != MESSAGE_GUEST) {
		one.record.kind |= MESSAGE_CARRIED;
		one.record.aux = stamp_of(team->me);
	}
	return to->carrier->send(to->link, &one, pending);
}

static void
arrived(struct peer *from, const struct xr_record *record,
	const struct xr_body *body)
{
	struct xr_record inner = *record;

	if (record->kind == MESSAGE_GUEST) {
		message_hand(from, record, body);
	} else if ((record->kind & MESSAGE_CARRIED) == 0) {
		agent_lose(from,
			"it sent a message that is none of the group's");
	} else if (!is_member(from) || record->aux != stamp_of(from->id)) {
		agent_lose(from,
			"it sent a message of a group that it is no member of");
	} else {
		inner.kind &= (uint8_t)~MESSAGE_CARRIED;
		inner.aux = 0;
		message_hand(from, &inner, body);
	}
}

static const struct way way = { form, dissolve, send, arrived };

/* What lies below knows nothing of groups. */
__attribute__((constructor)) static void
offer(void)
{
	way_offer(&way);
}
