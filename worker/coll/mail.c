/* SPDX-License-Identifier: Apache-2.0 */
/* mail.c - see mail.h. */
#include <stdlib.h>
#include <string.h>

#include <xrun/transport.h>

#include "base/clock.h"
#include "base/status.h"
#include "wire/value/storage.h"
#include "worker/coll/mail.h"
#include "worker/coll/op.h"
#include "worker/coll/plan.h"
#include "worker/rpc/due.h"
#include "worker/rpc/message.h"
#include "worker/rpc/parcel.h"
#include "worker/rpc/peer.h"

/* Of what is long all who get some of it get it of one copy, in memory that can be
 * handed over: what was sent may be read when the program has its own again. */
struct copied {
	struct storage *storage; /* NULL: nothing is copied yet */
	const void *of;          /* [len] */
	size_t len;
	struct parcel *parcel;
};

static void
release(void *storage)
{
	storage_unref(storage);
}

static void
copied_fini(struct copied *c)
{
	parcel_unref(c->parcel);
	storage_unref(c->storage);
	*c = (struct copied){ 0 };
}

static bool
has(const struct copied *c, const struct xr_part *part)
{
	return c->storage != NULL && c->of == part->data && c->len == part->len;
}

static bool
make_parcel(struct copied *c)
{
	c->parcel = parcel_new(release, c->storage);
	if (c->parcel != NULL)
		storage_ref(c->storage);
	return c->parcel != NULL;
}

/* What this stage made is handed over as it is. */
static bool
copy_for(struct copied *c, const struct op *op, const struct xr_part *part)
{
	copied_fini(c);
	c->of = part->data;
	c->len = part->len;
	if (op->made != NULL && part->data == op->made->data) {
		c->storage = op->made;
		storage_ref(c->storage);
		return make_parcel(c);
	}
	c->storage = storage_new(part->len);
	if (c->storage == NULL)
		return false;
	memcpy(c->storage->data, part->data, part->len);
	return make_parcel(c);
}

static enum xr_status
send_part(struct op *op, uint32_t to, const struct xr_part *part,
	struct copied *c, struct xr_error *err)
{
	struct due due = { .timeout = op->team->timeout, .at = op->deadline };
	struct xr_part there = *part;
	struct xr_message m = {
		.record = {
			.kind = MESSAGE_GUEST,
			.aux = (uint16_t)op->stage,
			.method = op->check,
			.corr = mail_corr(op->team->id, op->seq),
		},
		/* Who waits for it looks, or has said that it is to ring; who has
		 * not come so far will look. */
		.answer = true,
		.parts = &there,
		.count = part->len > 0,
	};

	if (part->len > PARCEL_MIN) {
		if (!has(c, part) && !copy_for(c, op, part))
			return fail(err, XR_E_NOMEM, "out of memory");
		there.data = c->storage->data;
		m.lent = true;
	}
	return peer_send(op->team->peer[to], &m,
		op->deadline == INT64_MAX ? NULL : &due,
		m.lent ? c->parcel : NULL, err);
}

/* Beginning with the next one, so that not all send to the same. */
enum xr_status
mail_stage(struct op *op, struct xr_error *err)
{
	uint32_t count = op->team->count, to;
	enum xr_status status = XR_OK;
	struct copied c = { 0 };
	struct xr_part part;

	for (uint32_t i = 1; i < count && status == XR_OK; i++) {
		to = ((uint32_t)op->team->me + i) % count;
		part = op->plan->gives(op, op->stage, to);
		if (part.len != PLAN_NONE)
			status = send_part(op, to, &part, &c, err);
	}
	copied_fini(&c);
	return status;
}

void
mail_failed(struct xr_coll *team, uint32_t seq)
{
	int32_t number = team->failed;
	const struct xr_part parts[] = {
		{ &number, sizeof(number) },
		{ team->why, strlen(team->why) },
	};
	const struct xr_message m = {
		.record = {
			.kind = MESSAGE_GUEST,
			.flags = MAIL_FAILED,
			.corr = mail_corr(team->id, seq),
		},
		.parts = parts,
		.count = 2,
	};
	struct due soon = { .timeout = 10 * NS_PER_MS };

	for (uint32_t i = 0; i < team->count; i++)
		if ((int64_t)i != team->me)
			peer_send(team->peer[i], &m, &soon, NULL, NULL);
}

void
mail_call(struct xr_coll *team, uint32_t to, uint32_t seq, const char *call)
{
	const struct xr_part text = { call, strlen(call) };
	const struct xr_message m = {
		.record = {
			.kind = MESSAGE_GUEST,
			.flags = MAIL_CALL,
			.corr = mail_corr(team->id, seq),
		},
		.parts = &text,
		.count = 1,
	};
	struct due soon = { .timeout = 10 * NS_PER_MS };

	peer_send(team->peer[to], &m, &soon, NULL, NULL);
}
