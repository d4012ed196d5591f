/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c - see peer.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/due.h"
#include "worker/rpc/fault.h"
#include "worker/rpc/figures.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/message.h"
#include "worker/rpc/parcel.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/pending.h"
#include "worker/rpc/tell.h"
#include "worker/rpc/way.h"

#define COPIES_MAX (UINT32_C(64) << 20) /* bytes */
#define CAUSE_NS   XR_SECONDS(1) /* until a loss that was met has been told of */

struct peer *
peer_new(const char *name, uint32_t id, uint64_t incarnation)
{
	struct peer *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->id = id;
	p->incarnation = incarnation;
	pthread_mutex_init(&p->lock, NULL);
	send_queue_init(&p->queue);
	return p;
}

void
peer_free(struct peer *p)
{
	if (p == NULL)
		return;
	if (p->link != NULL)
		p->carrier->link_close(p->link);
	send_queue_end_all(&p->queue, XR_E_CLOSED, false);
	free(p->devices);
	free(p->addresses);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void
peer_learns(struct peer *p, uint32_t i)
{
	if (i < PEER_METHODS && !peer_knows(p, i))
		atomic_fetch_or(&p->knows[i / 64], UINT64_C(1) << (i % 64));
}

static enum xr_status
lost_error(const struct peer *p, struct xr_error *err)
{
	if (atomic_load(&p->state) == PEER_LEFT || p->left)
		return fail(err, XR_E_NOTFOUND, "%s (%u) has left the group",
			p->name, p->id);
	return fail(err, XR_E_PEER_LOST, "lost %s (%u)%s%s", p->name, p->id,
		p->why[0] != '\0' ? ": " : "", p->why);
}

enum xr_status
peer_lost_error(struct peer *p, struct xr_error *err)
{
	enum xr_status status;

	pthread_mutex_lock(&p->lock);
	status = lost_error(p, err);
	pthread_mutex_unlock(&p->lock);
	return status;
}

void
peer_note_loss(struct peer *p)
{
	static _Atomic uint64_t losses;

	atomic_store(&p->loss, atomic_fetch_add(&losses, 1) + 1);
}

struct peer *
peer_first_lost(struct peer *const *peer, size_t count)
{
	struct peer *first = NULL;
	uint64_t least = UINT64_MAX, loss;

	for (size_t i = 0; i < count; i++) {
		loss = atomic_load(&peer[i]->loss);
		if (loss == 0 || loss >= least)
			continue;
		least = loss;
		first = peer[i];
	}
	return first;
}

void
peer_lose(struct peer *p, enum peer_state state, const char *why)
{
	enum xr_status status;
	struct xr_error err;
	uint32_t was;

	pthread_mutex_lock(&p->lock);
	was = atomic_load(&p->state);
	if (was == PEER_NEW || was == PEER_UP) {
		snprintf(p->why, sizeof(p->why), "%s", why);
		if (p->left)
			state = PEER_LEFT;
		/* Before anybody can fail of it. */
		if (state == PEER_LOST)
			tell_lost(p->rank);
		if (state == PEER_LOST)
			peer_note_loss(p);
		atomic_store(&p->state, state);
		send_queue_end_all(&p->queue, XR_E_PEER_LOST, false);
	}
	status = lost_error(p, &err);
	pthread_mutex_unlock(&p->lock);
	if (was == PEER_NEW || was == PEER_UP)
		pending_fail_all(p, status, err.text);
}

void
peer_gone(struct peer *p, bool lost)
{
	bool is_up;

	pthread_mutex_lock(&p->lock);
	p->left = !lost;
	is_up = atomic_load(&p->state) == PEER_UP;
	if (p->left && atomic_load(&p->state) == PEER_LOST)
		atomic_store(&p->state, PEER_LEFT);
	pthread_mutex_unlock(&p->lock);
	atomic_store_explicit(&p->gone, true, memory_order_release);
	if (lost || !is_up)
		peer_lose(p, lost ? PEER_LOST : PEER_LEFT,
			"the group has found it dead");
}

void
peer_reach(struct peer *p)
{
	pthread_mutex_lock(&p->lock);
	if (atomic_load(&p->state) == PEER_NEW)
		agent_connect(p);
	pthread_mutex_unlock(&p->lock);
}

void
peer_unlink(struct peer *p, struct xr_link *link)
{
	bool ours;

	pthread_mutex_lock(&p->lock);
	ours = p->link == link;
	if (ours)
		p->link = NULL;
	pthread_mutex_unlock(&p->lock);
	if (ours)
		p->carrier->link_close(link);
}

/* --- sending -------------------------------------------------------------- */

static size_t
length_of(const struct xr_message *m)
{
	size_t len = 0;

	for (uint32_t i = 0; i < m->count; i++)
		len += m->parts[i].len;
	return len;
}

static enum xr_status
hand_over(struct peer *p, const struct xr_message *m, bool *pending)
{
	return __builtin_expect(way_is_group(), false) ?
		way_send(p, m, pending) :
		p->carrier->send(p->link, m, pending);
}

/* With what a carrier may keep. */
static enum xr_status
send_parcel(struct peer *p, const struct xr_message *m, struct parcel *parcel)
{
	struct xr_message one = *m;
	enum xr_status status;
	bool pending = false;

	one.token = &parcel->token;
	parcel_lend(parcel);
	status = hand_over(p, &one, &pending);
	if (status != XR_OK || !pending)
		parcel_keep(parcel);
	return status;
}

/* A copy that a transport may keep. For a peer that takes nothing there are at most
 * COPIES_MAX bytes, and one message. */
struct copy {
	struct peer *to;
	size_t len;
	char data[];
};

static void
copy_free(void *what)
{
	struct copy *c = what;

	atomic_fetch_sub(&c->to->copied, c->len);
	/* A message may wait for that. The transport has no room to report. */
	if (atomic_load(&c->to->queue.is_filled))
		lead_bell();
	free(c);
}

static struct copy *
copy_parts(struct peer *p, const struct xr_message *m, size_t len)
{
	struct copy *c = malloc(sizeof(*c) + len);
	size_t at = 0;

	if (c == NULL)
		return NULL;
	c->to = p;
	c->len = len;
	for (uint32_t i = 0; i < m->count; i++) {
		if (m->parts[i].len > 0)
			memcpy(c->data + at, m->parts[i].data, m->parts[i].len);
		at += m->parts[i].len;
	}
	return c;
}

/* Returns true if the peer has so many copies that one of @len bytes has to wait. */
static bool
peer_is_full(struct peer *p, size_t len)
{
	size_t out = atomic_load(&p->copied);

	return out > 0 && (len > COPIES_MAX || out > COPIES_MAX - len);
}

/* Replaces the parts of @m by a copy, which the transport may keep. @part lives as
 * long as @m. Returns NULL if memory is exhausted. */
static struct parcel *
peer_copy(struct peer *p, struct xr_message *m, struct xr_part *part)
{
	size_t len = length_of(m);
	struct copy *c = copy_parts(p, m, len);
	struct parcel *parcel = c != NULL ? parcel_new(copy_free, c) : NULL;

	if (parcel == NULL) {
		free(c);
		return NULL;
	}
	atomic_fetch_add(&p->copied, len);
	*part = (struct xr_part){ c->data, len };
	m->parts = part;
	m->count = 1;
	m->lent = false;
	return parcel;
}

static enum xr_status
send_copy(struct peer *p, const struct xr_message *m, size_t len)
{
	struct xr_message one = *m;
	struct parcel *parcel;
	struct xr_part part;
	enum xr_status status;

	if (peer_is_full(p, len))
		return XR_E_AGAIN;
	parcel = peer_copy(p, &one, &part);
	if (parcel == NULL)
		return XR_E_NOMEM;
	status = send_parcel(p, &one, parcel);
	parcel_unref(parcel);
	return status;
}

/* Is connected. */
static enum xr_status
send_message(struct peer *p, const struct xr_message *m, struct parcel *parcel)
{
	bool pending;
	size_t len;

	if (parcel != NULL)
		return send_parcel(p, m, parcel);
	len = length_of(m);
	return len > p->carrier->copies ? send_copy(p, m, len) :
					  hand_over(p, m, &pending);
}

static void
plus(_Atomic uint64_t *word, uint64_t n)
{
	atomic_store_explicit(word,
		atomic_load_explicit(word, memory_order_relaxed) + n,
		memory_order_relaxed);
}

/* It went; the lock is held. */
static void
count(struct peer *p, const struct xr_message *m)
{
	uint64_t len = figures_parts(m->parts, m->count) +
		figures_parts(m->loans, m->loan_count);

	plus(&p->bytes_out, len);
	if (m->record.kind == MESSAGE_REQUEST ||
		m->record.kind == MESSAGE_ONEWAY)
		plus(&p->calls, 1);
	figures_add(FIGURE_BYTES_OUT, len);
}

/* The lock is held. */
static enum xr_status
send_now(struct peer *p, const struct xr_message *m, struct parcel *parcel)
{
	enum xr_status status;

	if (atomic_load(&p->state) == PEER_NEW)
		agent_connect(p);
	if (atomic_load(&p->state) != PEER_UP)
		return XR_E_PEER_LOST;
	if (send_queue_first(&p->queue) != NULL)
		return XR_E_AGAIN;
	status = send_message(p, m, parcel);
	if (status == XR_OK)
		count(p, m);
	return status;
}

static struct wait_site room_site; /* shared by the waits for room */

/* The queue ends the wait of @e, or @due has come. The lock is held, and given
 * back. */
static enum xr_status
await_queued(struct peer *p, struct send_queue_entry *e, int64_t deadline)
{
	const struct wait_hint hint = { p->cpu, &room_site };
	bool late;

	send_queue_add(&p->queue, e);
	pthread_mutex_unlock(&p->lock);
	if (lead_wait(e->sender, &hint, deadline))
		return e->status;
	pthread_mutex_lock(&p->lock);
	late = send_queue_remove(&p->queue, e);
	/* flush_one() skips a peer whose lock is held: later entries may wait. */
	if (late && send_queue_first(&p->queue) != NULL)
		lead_bell();
	pthread_mutex_unlock(&p->lock);
	return late ? XR_E_TIMEOUT : e->status;
}

/*
 * Sends @m when there is room. The thread reads meanwhile, or the other end could
 * wait for the same; it sleeps while nothing comes. The lock is held, and given
 * back.
 */
static enum xr_status
send_when_room(struct peer *p, const struct xr_message *m,
	struct parcel *parcel, struct due *due)
{
	struct waiter sender = { 0 };
	struct send_queue_entry e = {
		.message = *m,
		.parcel = parcel != NULL ? parcel_ref(parcel) : NULL,
		.sender = &sender,
	};
	enum xr_status status = XR_E_CLOSED;

	e.message.more = false;
	if (agent_state() != AGENT_CLOSING)
		status = await_queued(p, &e, due_at(due));
	else
		pthread_mutex_unlock(&p->lock);
	parcel_unref(e.parcel);
	return status;
}

/* The carrier knows that @p is lost, and who reads does not yet: a moment later there
 * is a cause to name. Who delivers cannot wait for it. The lock is held. */
static bool
is_untold(struct peer *p)
{
	return atomic_load(&p->state) == PEER_UP && !lead_delivers();
}

/* A carrier that never tells is not awaited for long. */
static bool
await_cause(struct due *due, struct due *told)
{
	int64_t now = clock_now();

	if (now >= due_at(told) || now >= due_at(due) ||
		agent_state() == AGENT_CLOSING)
		return false;
	lead_poll();
	return true;
}

/* Queues a copy of @m, for a thread that may not wait. The lock is held. The transport
 * may have reported room before the entry was there: the progress owner has to look
 * again. */
static enum xr_status
peer_enqueue(struct peer *p, const struct xr_message *m, struct parcel *parcel)
{
	enum xr_status status = send_queue_put(&p->queue, m, parcel);

	lead_bell();
	return status;
}

enum xr_status
peer_send(struct peer *p, const struct xr_message *message, struct due *due,
	struct parcel *parcel, struct xr_error *err)
{
	return fault_is_on() ? fault_send(p, message, due, parcel, err) :
			       peer_send_whole(p, message, due, parcel, err);
}

enum xr_status
peer_send_whole(struct peer *p, const struct xr_message *message,
	struct due *due, struct parcel *parcel, struct xr_error *err)
{
	struct due told = { .timeout = CAUSE_NS };
	enum xr_status status;
	bool untold, again;

	do {
		pthread_mutex_lock(&p->lock);
		status = send_now(p, message, parcel);
		if (status == XR_E_AGAIN && !lead_delivers()) {
			status = send_when_room(p, message, parcel, due);
			pthread_mutex_lock(&p->lock);
		} else if (status == XR_E_AGAIN) {
			status = peer_enqueue(p, message, parcel);
		}
		untold = status == XR_E_PEER_LOST && is_untold(p);
		if (status == XR_E_PEER_LOST)
			status = lost_error(p, err);
		pthread_mutex_unlock(&p->lock);
		again = untold && await_cause(due, &told);
	} while (again);
	if (status == XR_E_TIMEOUT && due != NULL)
		due->no_room = true;
	if (status == XR_E_TIMEOUT)
		return fail(err, status, "%s (%u) takes nothing more", p->name,
			p->id);
	if (status == XR_E_RANGE)
		return fail(err, status,
			"%s (%u): a message of %zu bytes, with %u loans: there can be 1 TiB and %u",
			p->name, p->id, length_of(message), message->loan_count,
			XR_LOANS_MAX);
	if (status != XR_OK && status != XR_E_PEER_LOST &&
		status != XR_E_NOTFOUND)
		return fail(err, status, "%s (%u): %s", p->name, p->id,
			xr_status_text(status));
	return status;
}

bool
peer_unsend(struct peer *p, void *token)
{
	bool unsent;

	pthread_mutex_lock(&p->lock);
	unsent = p->link != NULL && p->carrier->unsend != NULL &&
		p->carrier->unsend(p->link, token);
	pthread_mutex_unlock(&p->lock);
	return unsent;
}

bool
peer_can_lend(struct peer *p, const struct xr_part *part)
{
	bool can;

	pthread_mutex_lock(&p->lock);
	can = p->link != NULL && (p->carrier->caps & XR_CARRIER_LENDS) != 0 &&
		p->carrier->can_lend(p->link, part);
	pthread_mutex_unlock(&p->lock);
	return can;
}

enum xr_status
peer_post(struct peer *p, const struct xr_message *message)
{
	return fault_is_on() ? fault_post(p, message) :
			       peer_post_whole(p, message);
}

enum xr_status
peer_post_whole(struct peer *p, const struct xr_message *message)
{
	enum xr_status status;

	if (pthread_mutex_trylock(&p->lock) != 0)
		return XR_E_AGAIN;
	status = send_now(p, message, NULL);
	if (status == XR_E_AGAIN)
		status = peer_enqueue(p, message, NULL);
	pthread_mutex_unlock(&p->lock);
	return status;
}

/* A message that the transport would keep is copied once, not at each try. */
static enum xr_status
send_queued(struct peer *p, struct send_queue_entry *e)
{
	size_t len = length_of(&e->message);

	if (e->is_mark)
		return XR_OK;
	if (e->parcel == NULL && len > p->carrier->copies) {
		if (peer_is_full(p, len))
			return XR_E_AGAIN;
		e->parcel = peer_copy(p, &e->message, &e->copy);
		if (e->parcel == NULL)
			return XR_E_NOMEM;
	}
	return send_message(p, &e->message, e->parcel);
}

static uint32_t
flush_one(struct peer *p)
{
	enum xr_status status = XR_OK;
	struct send_queue_entry *e;
	uint32_t n = 0;

	/* Who sends at this moment looks after it. */
	if (pthread_mutex_trylock(&p->lock) != 0)
		return 0;
	while ((e = send_queue_first(&p->queue)) != NULL) {
		status = send_queued(p, e);
		if (status == XR_E_AGAIN ||
			(status == XR_E_NOMEM && e->sender == NULL))
			break;
		if (status == XR_OK && !e->is_mark)
			count(p, &e->message);
		send_queue_end(&p->queue, e, status);
		n++;
	}
	pthread_mutex_unlock(&p->lock);
	return n;
}

uint32_t
peer_flush(void *unused, uint32_t budget)
{
	uint32_t n = 0;

	(void)unused;
	(void)budget;
	if (!send_queue_any())
		return 0;
	for (struct peer *p = agent_first(); p != NULL; p = agent_next(p))
		if (send_queue_is_filled(&p->queue))
			n += flush_one(p);
	return n;
}

void
peer_await_flushed(int64_t deadline)
{
	for (struct peer *p = agent_first(); p != NULL; p = agent_next(p)) {
		struct waiter sender = { 0 };
		struct send_queue_entry mark = { .sender = &sender,
			.is_mark = true };

		if (!send_queue_is_filled(&p->queue))
			continue;
		pthread_mutex_lock(&p->lock);
		await_queued(p, &mark, deadline);
	}
}

void
peer_refuse_senders(void)
{
	/* A sender checks the state of the agent and adds its entry under the lock:
	 * without the lock, its entry could come after a look at an empty queue. */
	for (struct peer *p = agent_first(); p != NULL; p = agent_next(p)) {
		pthread_mutex_lock(&p->lock);
		send_queue_end_all(&p->queue, XR_E_CLOSED, true);
		pthread_mutex_unlock(&p->lock);
	}
}
