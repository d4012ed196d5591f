/* SPDX-License-Identifier: Apache-2.0 */
/* send_queue.c - see send_queue.h. */
#include <stdlib.h>
#include <string.h>

#include "worker/rpc/lead.h"
#include "worker/rpc/parcel.h"
#include "worker/rpc/send_queue.h"

_Atomic uint32_t send_queue_filled;

void
send_queue_init(struct send_queue *q)
{
	TAILQ_INIT(&q->entries);
	atomic_store(&q->is_filled, false);
}

/* --- copies ---------------------------------------------------------------- */

static struct send_queue_entry *
send_queue_entry_new(const struct xr_message *m, uint32_t parts, size_t bytes)
{
	struct send_queue_entry *e =
		calloc(1, sizeof(*e) + parts * sizeof(e->part[0]) + bytes);

	if (e == NULL)
		return NULL;
	e->message = *m;
	e->message.parts = e->part;
	e->message.more = false;
	e->message.token = NULL;
	return e;
}

static struct send_queue_entry *
send_queue_copy_new(const struct xr_message *m)
{
	struct send_queue_entry *e;
	size_t len = 0;
	uint8_t *to;

	for (uint32_t i = 0; i < m->count; i++)
		len += m->parts[i].len;
	e = send_queue_entry_new(m, 1, len);
	if (e == NULL)
		return NULL;
	to = (uint8_t *)&e->part[1];
	e->part[0] = (struct xr_part){ to, len };
	e->message.count = 1;
	e->message.lent = false;
	for (uint32_t i = 0; i < m->count; i++) {
		if (m->parts[i].len > 0)
			memcpy(to, m->parts[i].data, m->parts[i].len);
		to += m->parts[i].len;
	}
	return e;
}

static struct send_queue_entry *
send_queue_parcel_new(const struct xr_message *m, struct parcel *parcel)
{
	struct send_queue_entry *e =
		send_queue_entry_new(m, m->count + m->loan_count, 0);

	if (e == NULL)
		return NULL;
	e->parcel = parcel_ref(parcel);
	memcpy(e->part, m->parts, m->count * sizeof(e->part[0]));
	e->message.loans = e->part + m->count;
	if (m->loan_count > 0)
		memcpy(e->part + m->count, m->loans,
			m->loan_count * sizeof(e->part[0]));
	return e;
}

/* --- the queue ------------------------------------------------------------- */

static void
send_queue_append(struct send_queue *q, struct send_queue_entry *e)
{
	e->is_queued = true;
	TAILQ_INSERT_TAIL(&q->entries, e, list);
	if (atomic_exchange(&q->is_filled, true))
		return;
	atomic_fetch_add(&send_queue_filled, 1);
}

static void
send_queue_take_out(struct send_queue *q, struct send_queue_entry *e)
{
	e->is_queued = false;
	TAILQ_REMOVE(&q->entries, e, list);
	if (!TAILQ_EMPTY(&q->entries))
		return;
	atomic_store(&q->is_filled, false);
	atomic_fetch_sub(&send_queue_filled, 1);
}

enum xr_status
send_queue_put(struct send_queue *q, const struct xr_message *m,
	struct parcel *parcel)
{
	struct send_queue_entry *e = NULL;

	if (parcel != NULL && parcel->free != NULL)
		e = send_queue_parcel_new(m, parcel);
	else if (m->loan_count == 0)
		e = send_queue_copy_new(m);
	if (e == NULL)
		return XR_E_NOMEM;
	send_queue_append(q, e);
	return XR_OK;
}

void
send_queue_add(struct send_queue *q, struct send_queue_entry *e)
{
	send_queue_append(q, e);
}

bool
send_queue_remove(struct send_queue *q, struct send_queue_entry *e)
{
	bool was_queued = e->is_queued;

	if (was_queued)
		send_queue_take_out(q, e);
	return was_queued;
}

void
send_queue_end(struct send_queue *q, struct send_queue_entry *e,
	enum xr_status status)
{
	send_queue_take_out(q, e);
	if (e->sender != NULL) {
		e->status = status;
		waiter_done(e->sender); /* afterwards the entry may be gone */
		return;
	}
	parcel_unref(e->parcel);
	free(e);
}

void
send_queue_end_all(struct send_queue *q, enum xr_status status,
	bool senders_only)
{
	struct send_queue_entry *e, *next;

	for (e = TAILQ_FIRST(&q->entries); e != NULL; e = next) {
		next = TAILQ_NEXT(e, list);
		if (e->sender != NULL || !senders_only)
			send_queue_end(q, e, status);
	}
}
