/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rref_wire.c - what is said of references.
 *
 * A fork is asked for (FORK), confirmed by the owner (CONFIRM), accepted by its
 * user towards its parent (ACCEPT), and ends (DELETE). None has an answer, or a
 * state of its own: each may come twice, and in any order. Whoever is told that
 * a fork is known which he has not, any more, says that it has ended; so a FORK
 * that comes late cannot leave anything behind.
 *
 * What cannot be sent now is sent again until it is, or its receiver is lost.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/rref_inner.h"

#define AGAIN_FIRST (NS_PER_MS) /* then twice that, and so on */
#define AGAIN_MOST  (200 * NS_PER_MS)

const struct rref_seam *rref_seam;

static struct {
	pthread_mutex_t lock;
	struct control_list list;
	_Atomic uint32_t count;
} untold = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.list = TAILQ_HEAD_INITIALIZER(untold.list),
};

/* --- ids -------------------------------------------------------------------- */

struct rref_wire
rref_wire_of(const struct rref_gid *id, const struct rref_gid *fork,
	uint32_t flags)
{
	return (struct rref_wire){
		.id_worker = id->worker,
		.id_incarnation = id->incarnation,
		.id_local = id->local,
		.fork_worker = fork->worker,
		.fork_incarnation = fork->incarnation,
		.fork_local = fork->local,
		.flags = flags,
	};
}

struct rref_gid
rref_id_of(const struct rref_wire *wire)
{
	return (struct rref_gid){
		.worker = wire->id_worker,
		.incarnation = wire->id_incarnation,
		.local = wire->id_local,
	};
}

struct rref_gid
rref_fork_of(const struct rref_wire *wire)
{
	return (struct rref_gid){
		.worker = wire->fork_worker,
		.incarnation = wire->fork_incarnation,
		.local = wire->fork_local,
	};
}

/* --- sending ---------------------------------------------------------------- */

static enum xr_status
send_now(enum message_kind kind, struct peer *to, const struct rref_wire *wire)
{
	const struct xr_part part = { wire, sizeof(*wire) };
	const struct xr_message m = {
		.record = { .kind = (uint8_t)kind },
		.parts = &part,
		.count = 1,
	};
	enum xr_status status = XR_OK;

	if (rref_seam != NULL && rref_seam->send != NULL)
		status = rref_seam->send(kind, to, wire);
	return status == XR_OK ? peer_post(to, &m) : status;
}

static bool
is_gone(enum xr_status status)
{
	return status == XR_OK || status == XR_E_PEER_LOST ||
		status == XR_E_NOTFOUND;
}

static void
send_again(struct control *c)
{
	int64_t wait = c->tries > 8 ? AGAIN_MOST : AGAIN_FIRST << c->tries;

	c->tries++;
	c->due = clock_now() + (wait > AGAIN_MOST ? AGAIN_MOST : wait);
	pthread_mutex_lock(&untold.lock);
	TAILQ_INSERT_TAIL(&untold.list, c, list);
	pthread_mutex_unlock(&untold.lock);
	lead_due(c->due);
}

/* It is told, or will not be. Who waits for all to be told looked while this one was
 * counted. */
static void
told(uint32_t count)
{
	struct rref_todo todo;

	if (atomic_fetch_sub(&untold.count, count) != count ||
		atomic_load(&rref.settled) == NULL)
		return;
	rref_todo_init(&todo);
	pthread_mutex_lock(&rref.lock);
	rref_look(&todo);
	pthread_mutex_unlock(&rref.lock);
	rref_do(&todo);
}

void
rref_tell(enum message_kind kind, struct peer *to, const struct rref_wire *wire)
{
	enum xr_status status;
	struct control *c;

	/* Before, so that nobody who waits for all to be told goes meanwhile. */
	atomic_fetch_add(&untold.count, 1);
	status = send_now(kind, to, wire);
	c = is_gone(status) ? NULL : malloc(sizeof(*c));
	if (c == NULL) {
		told(1);
		return;
	}
	*c = (struct control){ .kind = kind, .to = to, .wire = *wire };
	send_again(c);
}

uint32_t
rref_untold(void)
{
	return atomic_load(&untold.count);
}

static struct control *
take_due(int64_t now, int64_t *next)
{
	struct control *c, *due = NULL;

	*next = INT64_MAX;
	pthread_mutex_lock(&untold.lock);
	TAILQ_FOREACH(c, &untold.list, list)
	if (c->due <= now)
		due = c;
	else if (c->due < *next)
		*next = c->due;
	if (due != NULL)
		TAILQ_REMOVE(&untold.list, due, list);
	pthread_mutex_unlock(&untold.lock);
	return due;
}

/* What fails again is due later than @now. */
int64_t
rref_tell_again(int64_t now)
{
	struct control *c;
	int64_t next;

	while ((c = take_due(now, &next)) != NULL) {
		if (!is_gone(send_now(c->kind, c->to, &c->wire))) {
			send_again(c);
			continue;
		}
		free(c);
		told(1);
	}
	return next;
}

void
rref_tell_drop(const struct peer *to)
{
	struct control *c, *next;
	uint32_t dropped = 0;

	pthread_mutex_lock(&untold.lock);
	for (c = TAILQ_FIRST(&untold.list); c != NULL; c = next) {
		next = TAILQ_NEXT(c, list);
		if (to != NULL && c->to != to)
			continue;
		TAILQ_REMOVE(&untold.list, c, list);
		free(c);
		dropped++;
	}
	pthread_mutex_unlock(&untold.lock);
	told(dropped);
}

/* --- what comes ------------------------------------------------------------- */

void
rref_deliver(enum message_kind kind, struct peer *from,
	const struct rref_wire *wire)
{
	if (kind == MESSAGE_RREF_CONFIRM)
		user_confirmed(from, wire);
	else if (kind == MESSAGE_RREF_CHILD_ACCEPT)
		user_accepted(from, wire);
	else if (kind == MESSAGE_RREF_FORK_REQUEST)
		owner_forked(from, wire);
	else
		owner_deleted(from, wire);
}

void
rref_on_control(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body)
{
	enum message_kind kind = record->kind;
	struct rref_wire wire;

	if (body->len != sizeof(wire)) {
		agent_lose(peer, "it sent no reference where one belongs");
		return;
	}
	memcpy(&wire, body->data, sizeof(wire));
	if (rref_seam == NULL || rref_seam->arrive == NULL ||
		rref_seam->arrive(kind, peer, &wire))
		rref_deliver(kind, peer, &wire);
}
