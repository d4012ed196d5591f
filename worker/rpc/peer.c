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
	TAILQ_INIT(&p->behind);
	return p;
}

static void
outgoing_free(struct outgoing *o)
{
	parcel_unref(o->parcel);
	free(o);
}

static void
drop_behind(struct peer *p)
{
	struct outgoing *o;

	while ((o = TAILQ_FIRST(&p->behind)) != NULL) {
		TAILQ_REMOVE(&p->behind, o, list);
		outgoing_free(o);
	}
	atomic_store(&p->is_behind, false);
}

void
peer_free(struct peer *p)
{
	if (p == NULL)
		return;
	if (p->link != NULL)
		p->carrier->link_close(p->link);
	drop_behind(p);
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
		atomic_store(&p->state, state);
		drop_behind(p);
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

static struct outgoing *
outgoing_new(const struct xr_message *m, uint32_t parts, size_t bytes)
{
	struct outgoing *o =
		calloc(1, sizeof(*o) + parts * sizeof(o->part[0]) + bytes);

	if (o == NULL)
		return NULL;
	o->message = *m;
	o->message.parts = o->part;
	o->message.more = false;
	o->message.token = NULL;
	return o;
}

static struct outgoing *
outgoing_copy(const struct xr_message *m)
{
	size_t len = length_of(m);
	struct outgoing *o = outgoing_new(m, 1, len);
	uint8_t *to;

	if (o == NULL)
		return NULL;
	to = (uint8_t *)&o->part[1];
	o->part[0] = (struct xr_part){ to, len };
	o->message.count = 1;
	o->message.lent = false;
	for (uint32_t i = 0; i < m->count; i++) {
		if (m->parts[i].len > 0)
			memcpy(to, m->parts[i].data, m->parts[i].len);
		to += m->parts[i].len;
	}
	return o;
}

static struct outgoing *
outgoing_of(const struct xr_message *m, struct parcel *parcel)
{
	struct outgoing *o = outgoing_new(m, m->count + m->loan_count, 0);

	if (o == NULL)
		return NULL;
	o->parcel = parcel_ref(parcel);
	memcpy(o->part, m->parts, m->count * sizeof(o->part[0]));
	o->message.loans = o->part + m->count;
	if (m->loan_count > 0)
		memcpy(o->part + m->count, m->loans,
			m->loan_count * sizeof(o->part[0]));
	return o;
}

/* It lies with what is to follow it; the lock is held. */
static enum xr_status
leave_behind(struct peer *p, const struct xr_message *m, struct parcel *parcel)
{
	struct outgoing *o = NULL;

	if (parcel != NULL && parcel->free != NULL)
		o = outgoing_of(m, parcel);
	else if (m->loan_count == 0)
		o = outgoing_copy(m);
	if (o == NULL)
		return XR_E_NOMEM;
	TAILQ_INSERT_TAIL(&p->behind, o, list);
	atomic_store(&p->is_behind, true);
	agent_has_behind();
	return XR_OK;
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

/* What a carrier may keep: of a peer that takes nothing there is no more than
 * COPIES_MAX, and one. */
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

/* A carrier that would keep the parts gets a copy, which it may keep. */
static enum xr_status
send_copy(struct peer *p, const struct xr_message *m, size_t len)
{
	size_t out = atomic_load(&p->copied);
	struct parcel *parcel;
	struct xr_message one = *m;
	struct xr_part part;
	enum xr_status status;
	struct copy *c;

	if (out > 0 && (len > COPIES_MAX || out > COPIES_MAX - len))
		return XR_E_AGAIN;
	c = copy_parts(p, m, len);
	parcel = c != NULL ? parcel_new(copy_free, c) : NULL;
	if (parcel == NULL) {
		free(c);
		return XR_E_NOMEM;
	}
	atomic_fetch_add(&p->copied, len);
	part = (struct xr_part){ c->data, len };
	one.parts = &part;
	one.count = 1;
	one.lent = false;
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
	if (!TAILQ_EMPTY(&p->behind))
		return XR_E_AGAIN;
	status = send_message(p, m, parcel);
	if (status == XR_OK)
		count(p, m);
	return status;
}

/* Whoever waits for room reads meanwhile, or the other end could wait for the
 * same. */
static enum xr_status
await_room(struct due *due)
{
	if (clock_now() >= due_at(due))
		return XR_E_TIMEOUT;
	if (agent_state() == AGENT_CLOSING)
		return XR_E_CLOSED;
	lead_poll();
	return XR_E_AGAIN;
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
	return clock_now() < due_at(told) && await_room(due) == XR_E_AGAIN;
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
	bool untold;

	do {
		pthread_mutex_lock(&p->lock);
		status = send_now(p, message, parcel);
		if (status == XR_E_AGAIN && lead_delivers())
			status = leave_behind(p, message, parcel);
		untold = status == XR_E_PEER_LOST && is_untold(p);
		if (status == XR_E_PEER_LOST)
			status = lost_error(p, err);
		pthread_mutex_unlock(&p->lock);
		if (status == XR_E_AGAIN)
			status = await_room(due);
		else if (untold && await_cause(due, &told))
			status = XR_E_AGAIN;
	} while (status == XR_E_AGAIN);
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
	if (status == XR_E_AGAIN) {
		status = leave_behind(p, message, NULL);
		/* What makes room may have told so before. */
		lead_bell();
	}
	pthread_mutex_unlock(&p->lock);
	return status;
}

static uint32_t
flush_one(struct peer *p)
{
	enum xr_status status = XR_OK;
	struct outgoing *o;
	uint32_t n = 0;

	/* Who sends at this moment looks after it. */
	if (pthread_mutex_trylock(&p->lock) != 0)
		return 0;
	while ((o = TAILQ_FIRST(&p->behind)) != NULL && status == XR_OK) {
		TAILQ_REMOVE(&p->behind, o, list);
		status = send_message(p, &o->message, o->parcel);
		if (status == XR_E_AGAIN || status == XR_E_NOMEM) {
			TAILQ_INSERT_HEAD(&p->behind, o, list);
		} else {
			if (status == XR_OK)
				count(p, &o->message);
			outgoing_free(o);
			n++;
		}
	}
	atomic_store(&p->is_behind, !TAILQ_EMPTY(&p->behind));
	pthread_mutex_unlock(&p->lock);
	return n;
}

uint32_t
peer_flush(void *unused, uint32_t budget)
{
	uint32_t n = 0;

	(void)unused;
	(void)budget;
	if (!agent_is_behind())
		return 0;
	for (struct peer *p = agent_first(); p != NULL; p = agent_next(p))
		if (atomic_load_explicit(&p->is_behind, memory_order_relaxed))
			n += flush_one(p);
	return n;
}

void
peer_await_flushed(int64_t deadline)
{
	for (struct peer *p = agent_first(); p != NULL; p = agent_next(p))
		while (atomic_load(&p->is_behind) && clock_now() < deadline)
			lead_poll();
}
