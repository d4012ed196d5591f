/* SPDX-License-Identifier: Apache-2.0 */
/* letter.c - see letter.h. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/coll/letter.h"
#include "worker/coll/mail.h"
#include "worker/coll/team.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/future.h"
#include "worker/rpc/held.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/parcel.h"

static const struct load most = { LETTERS_MAX, LETTER_BYTES };

enum letter_state {
	LETTER_NEW, /* or nobody will send it any more */
	LETTER_WAITS,
	LETTER_OUT,
	LETTER_OVER,
};

struct letter {
	TAILQ_ENTRY(letter) list; /* of those that wait */
	_Atomic uint32_t refs; /* one until it is over, and of who sends it */
	struct xr_coll *team;  /* a reference, if it has a future */
	struct account *to;
	struct label label;
	struct xr_part part[2];
	struct question q;
	struct asked *asked;
	struct xr_future *future; /* a reference, for @asked */
	int64_t deadline;
	enum letter_state state; /* under the group's lock */
};

/* --- writing ---------------------------------------------------------------------- */

static void
write_letter(struct letter *l, struct xr_coll *team,
	const struct xr_coll_op *call)
{
	size_t len = call->count * xr_dtype_size(call->dtype);
	int64_t place = team_place_of_rank(team, call->rank);

	*l = (struct letter){
		.team = team,
		.to = &team->account[place],
		.label = { team->id, call->tag, call->dtype, call->count, 0 },
		.deadline = team_deadline(team, call),
	};
	l->part[0] = (struct xr_part){ &l->label, sizeof(l->label) };
	l->part[1] = (struct xr_part){ call->data, len };
	l->q = (struct question){
		.to = team->peer[place],
		.kind = MESSAGE_GUEST,
		.flags = MAIL_POST,
		.parts = l->part,
		.count = len > 0 ? 2 : 1,
		.apart = true,
		.timeout = future_left(l->deadline),
	};
	/* What is long stays where it is; without memory for that it is copied. */
	if (len > PARCEL_MIN)
		l->q.parcel = parcel_new(NULL, NULL);
	l->q.lent = l->q.parcel != NULL;
}

static size_t
bytes_of(const struct letter *l)
{
	return l->part[1].len;
}

static void
letter_unref(struct letter *l)
{
	if (atomic_fetch_sub(&l->refs, 1) != 1)
		return;
	parcel_unref(l->q.parcel);
	xr_future_unref(l->future);
	team_unref(l->team);
	free(l);
}

/* --- the order -------------------------------------------------------------------- */

/* The lock is held, also when it returns. Nothing is waited for: what finds no room is
 * copied, and sent later. */
static void
send_waiting(struct xr_coll *team, struct account *a)
{
	struct letter *l;

	while ((l = TAILQ_FIRST(&a->waiting)) != NULL &&
		load_takes(&a->out, bytes_of(l), &most)) {
		TAILQ_REMOVE(&a->waiting, l, list);
		l->state = LETTER_OUT;
		load_add(&a->out, bytes_of(l));
		atomic_fetch_add(&l->refs, 1);
		pthread_mutex_unlock(&team->lock);
		lead_deliver_begin();
		ask_send(l->asked, &l->q, NULL);
		lead_deliver_end();
		letter_unref(l);
		pthread_mutex_lock(&team->lock);
	}
}

/* One at a time, so that they go in their order; he looks again when something has
 * changed. */
static void
go_on(struct xr_coll *team, struct account *a)
{
	pthread_mutex_lock(&team->lock);
	if (!a->sends) {
		a->sends = true;
		send_waiting(team, a);
		a->sends = false;
	}
	pthread_mutex_unlock(&team->lock);
}

/* May it go at once? Then it counts. The lock is held. */
static bool
is_first(struct letter *l)
{
	struct account *a = l->to;

	if (a->sends || !TAILQ_EMPTY(&a->waiting) ||
		!load_takes(&a->out, bytes_of(l), &most))
		return false;
	load_add(&a->out, bytes_of(l));
	l->state = LETTER_OUT;
	return true;
}

/* Out of what it is in. */
static void
leave(struct xr_coll *team, struct letter *l)
{
	pthread_mutex_lock(&team->lock);
	if (l->state == LETTER_WAITS)
		TAILQ_REMOVE(&l->to->waiting, l, list);
	else if (l->state == LETTER_OUT)
		load_drop(&l->to->out, bytes_of(l));
	l->state = LETTER_OVER;
	pthread_mutex_unlock(&team->lock);
	go_on(team, l->to);
}

/* --- with a future ---------------------------------------------------------------- */

static struct xr_value *
read_nothing(struct peer *from, const struct xr_record *record,
	const struct xr_body *body, struct xr_error *err)
{
	(void)from;
	(void)record;
	(void)body;
	(void)err;
	return xr_value_new_nil();
}

/* It was received, or will not be. */
static void
ended(void *ctx)
{
	struct letter *l = ctx;

	leave(l->team, l);
	letter_unref(l);
}

static struct letter *
letter_new(struct xr_coll *team, const struct xr_coll_op *call,
	struct xr_future **future)
{
	struct letter *l = malloc(sizeof(*l));

	if (l == NULL)
		return NULL;
	write_letter(l, team_ref(team), call);
	atomic_init(&l->refs, 2);
	l->q.ended = ended;
	l->q.ctx = l;
	l->asked = ask_open(&l->q, read_nothing, future);
	if (l->asked != NULL) {
		l->future = xr_future_ref(*future);
		return l;
	}
	atomic_init(&l->refs, 1);
	letter_unref(l);
	return NULL;
}

/* True: it may go at once, and nothing else does meanwhile. It may be over already. */
static bool
take_place(struct xr_coll *team, struct letter *l, enum xr_status *status,
	struct xr_error *err)
{
	bool first = false;

	pthread_mutex_lock(&team->lock);
	*status = team_failed(team, err);
	if (*status == XR_OK && l->state == LETTER_NEW) {
		first = is_first(l);
		if (first) {
			l->to->sends = true;
		} else {
			l->state = LETTER_WAITS;
			TAILQ_INSERT_TAIL(&l->to->waiting, l, list);
		}
	}
	pthread_mutex_unlock(&team->lock);
	return first;
}

static void
send_first(struct xr_coll *team, struct letter *l)
{
	struct account *a = l->to;

	ask_send(l->asked, &l->q, NULL);
	pthread_mutex_lock(&team->lock);
	send_waiting(team, a);
	a->sends = false;
	pthread_mutex_unlock(&team->lock);
}

enum xr_status
letter_isend(struct xr_coll *team, const struct xr_coll_op *call,
	struct xr_future **future, struct xr_error *err)
{
	struct letter *l = letter_new(team, call, future);
	struct xr_error why = { 0 };
	enum xr_status status;

	if (l == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	if (take_place(team, l, &status, &why))
		send_first(team, l);
	else if (status != XR_OK)
		ask_fail(l->asked, status, why.text);
	if (l->deadline != INT64_MAX)
		lead_due(l->deadline);
	letter_unref(l);
	if (status == XR_OK)
		return XR_OK;
	xr_future_unref(*future);
	return fail(err, status, "%s", why.text);
}

void
letter_fail_all(struct xr_coll *team)
{
	struct letter *l;

	for (uint32_t i = 0; i < team->count; i++)
		do {
			pthread_mutex_lock(&team->lock);
			l = TAILQ_FIRST(&team->account[i].waiting);
			if (l != NULL) {
				TAILQ_REMOVE(&team->account[i].waiting, l,
					list);
				l->state = LETTER_NEW;
				atomic_fetch_add(&l->refs, 1);
			}
			pthread_mutex_unlock(&team->lock);
			if (l != NULL) {
				ask_fail(l->asked, team->failed, team->why);
				letter_unref(l);
			}
		} while (l != NULL);
}

/* --- and who waits ---------------------------------------------------------------- */

/* Behind others. */
static enum xr_status
send_in_turn(struct xr_coll *team, const struct xr_coll_op *call,
	struct xr_error *err)
{
	struct xr_future *future = NULL;
	enum xr_status status;

	if (lead_delivers())
		return fail(err, XR_E_STATE,
			"a short function or callback may not wait");
	status = letter_isend(team, call, &future, err);
	if (status == XR_OK)
		status = xr_future_wait(future, XR_TIMEOUT_NEVER, NULL, err);
	xr_future_unref(future);
	return status;
}

static enum xr_status
send_now(struct xr_coll *team, struct letter *l, struct xr_error *err)
{
	struct ask_sync a = { 0 };
	enum xr_status status = ask_wait(&l->q, &a, err);

	parcel_end(l->q.parcel, l->q.to);
	held_unref(a.held);
	xr_value_unref(a.error);
	leave(team, l);
	return status;
}

enum xr_status
letter_send(struct xr_coll *team, const struct xr_coll_op *call,
	struct xr_error *err)
{
	enum xr_status status;
	struct letter l;
	bool first;

	write_letter(&l, team, call);
	pthread_mutex_lock(&team->lock);
	status = team_failed(team, err);
	first = status == XR_OK && is_first(&l);
	pthread_mutex_unlock(&team->lock);
	if (first)
		return send_now(team, &l, err);
	parcel_unref(l.q.parcel);
	return status == XR_OK ? send_in_turn(team, call, err) : status;
}
