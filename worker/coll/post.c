/* SPDX-License-Identifier: Apache-2.0 */
/* post.c - see post.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/coll/letter.h"
#include "worker/coll/post.h"
#include "worker/coll/team.h"
#include "worker/rpc/crew.h"
#include "worker/rpc/due.h"
#include "worker/rpc/future.h"
#include "worker/rpc/held.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/message.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/values.h"

/* Of a member: the double of what it may send, as whoever gave up waiting may not
 * have been heard. */
static const struct load most_kept = { 2 * LETTERS_MAX, 2 * LETTER_BYTES };

/* One that came, or one that somebody waits for. */
struct post {
	TAILQ_ENTRY(post) list;
	struct label label;
	int64_t from; /* place; XR_COLL_ANY */

	/* That came. */
	struct peer *peer;
	uint64_t corr;
	struct held *held;

	/* That is waited for. */
	struct xr_coll *team;
	void *into;
	size_t len;
	int64_t deadline;
	bool listed;
	struct waiter waiter;
	struct xr_future *future; /* NULL: somebody waits */
	enum xr_status status;
	char why[232];
};

/* --- answers --------------------------------------------------------------------- */

static void
answer(struct peer *to, uint64_t corr, enum xr_status status, const char *why)
{
	struct xr_value *error =
		status != XR_OK ? failure_new(status, "%s", why) : NULL;
	struct due soon = { .timeout = NS_PER_S };
	struct values_out out = { 0 };
	struct xr_message m = {
		.record = { .kind = MESSAGE_REPLY, .corr = corr },
		.answer = true,
	};

	if (error != NULL && values_pack(error, to, &out, NULL) == XR_OK) {
		m.record.flags = MESSAGE_VALUE;
		m.parts = out.parts;
		m.count = out.count;
	}
	if (status != XR_OK)
		m.record.kind = MESSAGE_ERROR;
	peer_send(to, &m, &soon, out.parcel, NULL);
	values_out_fini(&out);
	xr_value_unref(error);
}

/* Returns XR_OK if what is sent is what is awaited; else @why tells the difference. */
static enum xr_status
compare(const struct xr_coll *team, const struct label *sent,
	const struct label *awaited, int64_t from, char why[232])
{
	if (sent->count == awaited->count && sent->dtype == awaited->dtype)
		return XR_OK;
	snprintf(why, 232, "rank %u sends %llu %s, and rank %u awaits %llu %s",
		team->rank[from], (unsigned long long)sent->count,
		xr_dtype_name(sent->dtype), team->rank[team->me],
		(unsigned long long)awaited->count,
		xr_dtype_name(awaited->dtype));
	return XR_E_CONFLICT;
}

/* --- those who wait ---------------------------------------------------------------- */

static struct post *
post_new(struct xr_coll *team, const struct xr_coll_op *call)
{
	struct post *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->label = (struct label){ team->id, call->tag, call->dtype,
		call->count, 0 };
	p->team = team_ref(team);
	p->into = call->data;
	p->len = call->count * xr_dtype_size(call->dtype);
	p->deadline = team_deadline(team, call);
	p->from = call->rank == XR_COLL_ANY ?
		XR_COLL_ANY :
		team_place_of_rank(team, call->rank);
	return p;
}

static void
post_free(void *post)
{
	struct post *p = post;

	team_unref(p->team);
	free(p);
}

/* It is in no list any more. */
static void
end(struct post *p)
{
	struct xr_future *future = p->future;

	if (future == NULL) {
		waiter_done(&p->waiter);
		return;
	}
	if (p->status == XR_OK)
		future_end(future, xr_value_new_i64(p->team->rank[p->from]),
			false);
	else
		future_fail(future, p->status, "%s", p->why);
	xr_future_unref(future);
}

static void
end_with(struct post *p, enum xr_status status, const char *why)
{
	p->status = status;
	snprintf(p->why, sizeof(p->why), "%s", why);
	end(p);
}

/* @data of place @from is for @p. */
static void
receive(struct post *p, const struct label *label, int64_t from,
	const void *data)
{
	p->status = compare(p->team, label, &p->label, from, p->why);
	p->from = from;
	if (p->status == XR_OK && p->len > 0)
		memcpy(p->into, data, p->len);
}

static bool
matches(const struct post *awaited, const struct label *label, int64_t from)
{
	return awaited->label.tag == label->tag &&
		(awaited->from == XR_COLL_ANY || awaited->from == from);
}

/* Out of its list; the lock is held. */
static void
unlist(struct post_list *all, struct post *p)
{
	TAILQ_REMOVE(all, p, list);
	p->listed = false;
}

static void
list(struct post_list *all, struct post *p)
{
	TAILQ_INSERT_TAIL(all, p, list);
	p->listed = true;
}

/* --- what comes --------------------------------------------------------------------- */

static bool
read_label(const struct xr_body *body, struct label *label)
{
	size_t size;

	if (body->len < sizeof(*label))
		return false;
	memcpy(label, body->data, sizeof(*label));
	size = xr_dtype_size(label->dtype);
	return size > 0 &&
		label->count <= (uint64_t)XR_VALUE_BYTES_MAX / size &&
		label->count * size == body->len - sizeof(*label);
}

static uint64_t
bytes_of(const struct label *label)
{
	return label->count * xr_dtype_size(label->dtype);
}

/* Nobody awaits it yet; the lock is held. */
static enum xr_status
keep(struct xr_coll *team, const struct post *from, const struct xr_body *body,
	struct xr_error *err)
{
	struct load *kept = &team->account[from->from].kept;
	struct post *p;

	if (!load_takes(kept, bytes_of(&from->label), &most_kept))
		return fail(err, XR_E_AGAIN,
			"rank %u keeps %u messages of rank %u, %llu bytes, which nobody asks for",
			team->rank[team->me], kept->count,
			team->rank[from->from],
			(unsigned long long)kept->bytes);
	p = malloc(sizeof(*p));
	if (p == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	*p = *from;
	p->held = held_take(body);
	if (p->held == NULL) {
		free(p);
		return fail(err, XR_E_NOMEM, "out of memory");
	}
	load_add(kept, bytes_of(&p->label));
	list(&team->sent, p);
	return XR_OK;
}

/* One that was kept is somebody's now; the lock is held. */
static void
unkeep(struct xr_coll *team, struct post *p)
{
	load_drop(&team->account[p->from].kept, bytes_of(&p->label));
	unlist(&team->sent, p);
}

static void
arrived_at(struct xr_coll *team, struct post *came, const struct xr_body *body)
{
	enum xr_status status;
	struct xr_error err = { 0 };
	struct post *p = NULL;

	pthread_mutex_lock(&team->lock);
	status = team_failed(team, &err);
	if (status == XR_OK) {
		TAILQ_FOREACH(p, &team->awaited, list)
		if (matches(p, &came->label, came->from))
			break;
		/* Who cancels has his memory back when he knows: the lock. */
		if (p != NULL) {
			unlist(&team->awaited, p);
			receive(p, &came->label, came->from,
				(const char *)body->data + sizeof(came->label));
		} else {
			status = keep(team, came, body, &err);
		}
	}
	pthread_mutex_unlock(&team->lock);
	if (p != NULL) {
		answer(came->peer, came->corr, p->status, p->why);
		end(p);
	} else if (status != XR_OK) {
		answer(came->peer, came->corr, status, err.text);
	}
}

void
post_arrived(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body)
{
	struct post came = { .peer = peer, .corr = record->corr };
	struct xr_coll *team;

	if (!read_label(body, &came.label)) {
		answer(peer, record->corr, XR_E_PROTO, "that is no message");
		return;
	}
	team = team_find(came.label.team);
	if (team != NULL)
		came.from = team_place(team, peer);
	if (team == NULL || came.from < 0)
		answer(peer, record->corr, XR_E_CLOSED,
			"the receiver's group was closed");
	else
		arrived_at(team, &came, body);
	team_unref(team);
}

/* --- receiving ------------------------------------------------------------------------- */

/* What is here already, or @p waits for it. True: it is over; else it is others', who
 * may have ended it. */
static bool
take_or_wait(struct xr_coll *team, struct post *p)
{
	struct xr_error err = { 0 };
	struct post *came = NULL;
	enum xr_status status;

	pthread_mutex_lock(&team->lock);
	status = team_failed(team, &err);
	if (status == XR_OK) {
		TAILQ_FOREACH(came, &team->sent, list)
		if (matches(p, &came->label, came->from))
			break;
		if (came != NULL)
			unkeep(team, came);
		else
			list(&team->awaited, p);
	}
	pthread_mutex_unlock(&team->lock);
	if (came != NULL) {
		receive(p, &came->label, came->from,
			(const char *)held_data(came->held) +
				sizeof(came->label));
		answer(came->peer, came->corr, p->status, p->why);
		held_unref(came->held);
		free(came);
		return true;
	}
	if (status != XR_OK) {
		p->status = status;
		snprintf(p->why, sizeof(p->why), "%s", err.text);
	}
	return status != XR_OK;
}

/* True: nobody else ends it. */
static bool
take_back(struct post *p)
{
	bool ours;

	pthread_mutex_lock(&p->team->lock);
	ours = p->listed;
	if (ours)
		unlist(&p->team->awaited, p);
	pthread_mutex_unlock(&p->team->lock);
	return ours;
}

static void
late_text(const struct post *p, char *text, size_t cap)
{
	if (p->from == XR_COLL_ANY)
		snprintf(text, cap, "no message with tag %u came in time",
			p->label.tag);
	else
		snprintf(text, cap,
			"no message with tag %u of rank %u came in time",
			p->label.tag, p->team->rank[p->from]);
}

static void
await_post(struct post *p)
{
	crew_wait_begin();
	if (!lead_wait(&p->waiter, NULL, p->deadline)) {
		lead_catch_up(); /* it may have come in time */
		lead_decline();
		if (take_back(p)) {
			p->status = XR_E_TIMEOUT;
			late_text(p, p->why, sizeof(p->why));
		} else {
			lead_wait(&p->waiter, NULL, INT64_MAX);
		}
	}
	crew_wait_end();
}

enum xr_status
post_recv(struct xr_coll *team, const struct xr_coll_op *call, int64_t *from,
	struct xr_error *err)
{
	struct post *p = post_new(team, call);
	enum xr_status status;

	if (p == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	if (!take_or_wait(team, p))
		await_post(p);
	status =
		p->status != XR_OK ? fail(err, p->status, "%s", p->why) : XR_OK;
	if (status == XR_OK && from != NULL)
		*from = team->rank[p->from];
	post_free(p);
	return status;
}

static bool
cancel(struct xr_future *future, void *ctx)
{
	struct post *p = ctx;
	bool ours = take_back(p);

	(void)future;
	if (ours)
		end_with(p, XR_E_CANCELLED, "canceled");
	return ours;
}

static const struct future_maker maker = {
	.cancel = cancel,
	.free = post_free,
};

enum xr_status
post_irecv(struct xr_coll *team, const struct xr_coll_op *call,
	struct xr_future **future, struct xr_error *err)
{
	struct post *p = post_new(team, call);
	int64_t deadline;

	if (p != NULL)
		p->future = future_new(&maker, p);
	if (p == NULL || p->future == NULL) {
		if (p != NULL)
			post_free(p);
		return fail(err, XR_E_NOMEM, "out of memory");
	}
	*future = xr_future_ref(p->future);
	deadline = p->deadline;
	if (take_or_wait(team, p))
		end(p);
	else if (deadline != INT64_MAX)
		lead_due(deadline);
	return XR_OK;
}

/* --- the end ------------------------------------------------------------------------------ */

static bool
is_of(const struct post *p, const struct peer *peer, uint64_t corr)
{
	return p->peer == peer && p->corr == corr;
}

void
post_cancelled(struct xr_coll *team, const struct peer *peer, uint64_t corr)
{
	struct post *p;

	pthread_mutex_lock(&team->lock);
	TAILQ_FOREACH(p, &team->sent, list)
	if (is_of(p, peer, corr))
		break;
	if (p != NULL)
		unkeep(team, p);
	pthread_mutex_unlock(&team->lock);
	if (p == NULL)
		return;
	held_unref(p->held);
	free(p);
}

static struct post *
pop(struct xr_coll *team, struct post_list *all)
{
	struct post *p;

	pthread_mutex_lock(&team->lock);
	p = TAILQ_FIRST(all);
	if (p != NULL && all == &team->sent)
		unkeep(team, p);
	else if (p != NULL)
		unlist(all, p);
	pthread_mutex_unlock(&team->lock);
	return p;
}

void
post_fail_all(struct xr_coll *team)
{
	struct post *p;

	while ((p = pop(team, &team->awaited)) != NULL)
		end_with(p, team->failed, team->why);
	while ((p = pop(team, &team->sent)) != NULL) {
		answer(p->peer, p->corr, team->failed, team->why);
		held_unref(p->held);
		free(p);
	}
}

int64_t
post_expire(struct xr_coll *team, int64_t now)
{
	int64_t next = INT64_MAX;
	struct post *p;
	char why[100];

	do {
		pthread_mutex_lock(&team->lock);
		TAILQ_FOREACH(p, &team->awaited, list)
		{
			if (p->future == NULL)
				continue; /* its thread looks after its time */
			if (p->deadline <= now)
				break;
			if (p->deadline < next)
				next = p->deadline;
		}
		if (p != NULL)
			unlist(&team->awaited, p);
		pthread_mutex_unlock(&team->lock);
		if (p != NULL) {
			late_text(p, why, sizeof(why));
			end_with(p, XR_E_TIMEOUT, why);
		}
	} while (p != NULL);
	return next;
}
