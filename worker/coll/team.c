/* SPDX-License-Identifier: Apache-2.0 */
/* team.c - see team.h; making and ending groups, see xrun/coll.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/coll/board.h"
#include "worker/coll/conflict.h"
#include "worker/coll/letter.h"
#include "worker/coll/mail.h"
#include "worker/coll/op.h"
#include "worker/coll/post.h"
#include "worker/coll/team.h"
#include "worker/coll/team_inner.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/crew.h"
#include "worker/rpc/future.h"
#include "worker/rpc/guest.h"
#include "worker/rpc/inside.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/meet.h"
#include "worker/rpc/peer.h"
#include "worker/world/world.h"

LIST_HEAD(team_list, xr_coll);

/* How many groups of a set of ranks there were. */
struct series {
	LIST_ENTRY(series) list;
	uint64_t set;
	uint32_t next;
};
LIST_HEAD(series_list, series);

static struct {
	pthread_mutex_t lock;
	struct team_list all; /* the last one first */
	uint64_t number;
	struct series_list series; /* of this agent */
} teams = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --- finding ------------------------------------------------------------------ */

struct xr_coll *
team_ref(struct xr_coll *team)
{
	atomic_fetch_add(&team->refs, 1);
	return team;
}

void
team_unref(struct xr_coll *team)
{
	if (team == NULL || atomic_fetch_sub(&team->refs, 1) != 1)
		return;
	op_forget_early(team);
	board_free(team->board);
	pthread_cond_destroy(&team->changed);
	pthread_mutex_destroy(&team->lock);
	free(team->account);
	free(team->peer);
	free(team);
}

struct xr_coll *
team_find(uint64_t id)
{
	struct xr_coll *team;

	pthread_mutex_lock(&teams.lock);
	LIST_FOREACH(team, &teams.all, list)
	if (team->id == id)
		break;
	if (team != NULL)
		team_ref(team);
	pthread_mutex_unlock(&teams.lock);
	return team;
}

int64_t
team_place(const struct xr_coll *team, const struct peer *peer)
{
	for (uint32_t i = 0; i < team->count; i++)
		if (team->peer[i] == peer)
			return i;
	return -1;
}

int64_t
team_place_of_rank(const struct xr_coll *team, int64_t rank)
{
	for (uint32_t i = 0; i < team->count; i++)
		if (team->rank[i] == rank)
			return i;
	return -1;
}

int64_t
team_deadline(const struct xr_coll *team, const struct xr_coll_op *op)
{
	int64_t timeout = op->timeout, deadline;

	if (timeout == 0 || timeout == XR_TIMEOUT_DEFAULT)
		timeout = team->timeout;
	future_deadline(timeout, &deadline);
	return deadline;
}

/* --- those that messages find --------------------------------------------------- */

static void
enlist(struct xr_coll *team)
{
	pthread_mutex_lock(&teams.lock);
	team_ref(team); /* not within the macro, which says it several times */
	team->number = ++teams.number;
	team->listed = true;
	LIST_INSERT_HEAD(&teams.all, team, list);
	pthread_mutex_unlock(&teams.lock);
}

/* False: it is not among them any more. */
static bool
unlist(struct xr_coll *team)
{
	bool was_listed;

	pthread_mutex_lock(&teams.lock);
	was_listed = team->listed;
	if (was_listed)
		LIST_REMOVE(team, list);
	team->listed = false;
	pthread_mutex_unlock(&teams.lock);
	return was_listed;
}

/* The one behind @team, with a reference, also where that is not listed any more; NULL:
 * the first. */
static struct xr_coll *
next_of(const struct xr_coll *team)
{
	struct xr_coll *next;

	pthread_mutex_lock(&teams.lock);
	next = team != NULL && team->listed ? LIST_NEXT(team, list) :
					      LIST_FIRST(&teams.all);
	while (next != NULL && team != NULL && next->number >= team->number)
		next = LIST_NEXT(next, list);
	if (next != NULL)
		team_ref(next);
	pthread_mutex_unlock(&teams.lock);
	return next;
}

/* @fn may change the list, and no memory is needed: it is told of what must not be
 * missed. */
void
team_each(void (*fn)(struct xr_coll *team, void *ctx), void *ctx)
{
	struct xr_coll *team = next_of(NULL), *next;

	while (team != NULL) {
		fn(team, ctx);
		next = next_of(team);
		team_unref(team);
		team = next;
	}
}

/* --- waiting -------------------------------------------------------------------- */

bool
team_await(struct xr_coll *team, int64_t deadline)
{
	const struct timespec at = {
		.tv_sec = deadline / NS_PER_S,
		.tv_nsec = deadline % NS_PER_S,
	};
	int sys = 0;

	crew_wait_begin();
	if (deadline == INT64_MAX)
		pthread_cond_wait(&team->changed, &team->lock);
	else
		sys = pthread_cond_timedwait(&team->changed, &team->lock, &at);
	crew_wait_end();
	return sys != ETIMEDOUT;
}

/* --- what the agent hears ---------------------------------------------------------- */

static void
received_call(struct xr_coll *team, uint32_t from, uint32_t seq,
	const struct xr_body *body)
{
	char call[CONFLICT_CALL];

	snprintf(call, sizeof(call), "%.*s",
		body->len < sizeof(call) ? (int)body->len : (int)sizeof(call),
		(const char *)body->data);
	conflict_arrived(team, from, seq, call);
}

/* Whatever it is each finds out himself, as far as it keeps him from his end; who tells
 * of it sends nothing more. It is passed on: who hears of it may end, and others, who see
 * that first, are to know what of. */
static void
told_of_failure(struct xr_coll *team, const struct op_reach *reach,
	const struct xr_body *body)
{
	struct xr_error err = { 0 };
	int32_t status;
	size_t len;

	if (body->len < sizeof(status))
		return;
	memcpy(&status, body->data, sizeof(status));
	len = body->len - sizeof(status);
	fail(&err, status < 0 ? status : XR_E_PROTO, "%.*s",
		len < sizeof(err.text) ? (int)len : (int)sizeof(err.text),
		(const char *)body->data + sizeof(status));
	team_fail_what_needs(team, &err, reach, true);
}

static void
on_arrived(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body)
{
	struct xr_coll *team;
	int64_t from;

	if ((record->flags & MAIL_POST) != 0) {
		post_arrived(peer, record, body);
		return;
	}
	team = team_find(record->corr >> TEAM_SEQ_BITS);
	from = team != NULL ? team_place(team, peer) : -1;
	if (from < 0)
		; /* of one that was closed */
	else if ((record->flags & MAIL_FAILED) != 0)
		told_of_failure(team,
			&(struct op_reach){ from,
				(uint32_t)record->corr & 0xffffff },
			body);
	else if ((record->flags & MAIL_CALL) != 0)
		received_call(team, (uint32_t)from,
			(uint32_t)record->corr & 0xffffff, body);
	else
		op_arrived(team, (uint32_t)from, record, body);
	team_unref(team);
}

static void
lose_member(struct xr_coll *team, void *ctx)
{
	struct peer *peer = ctx;
	struct op_reach reach = { .place = team_place(team, peer) };
	struct xr_error err = { 0 };

	if (reach.place < 0)
		return;
	pthread_mutex_lock(&team->lock);
	reach.seq = (team->next - 0x7fffff) & 0xffffff; /* of any */
	pthread_mutex_unlock(&team->lock);
	peer_lost_error(peer, &err);
	team_fail_what_needs(team, &err, &reach, true);
}

static void
on_lost(struct peer *peer)
{
	team_each(lose_member, peer);
}

struct question_name {
	struct peer *peer;
	uint64_t corr;
};

static void
cancel_in(struct xr_coll *team, void *ctx)
{
	const struct question_name *q = ctx;

	post_cancelled(team, q->peer, q->corr);
}

static void
on_cancelled(struct peer *peer, uint64_t corr)
{
	team_each(cancel_in, &(struct question_name){ peer, corr });
}

struct clock {
	int64_t now, next;
};

/* Those with a future; whoever waits looks after its time. */
static void
expire_one(struct xr_coll *team, void *ctx)
{
	enum xr_status status = XR_OK;
	struct clock *c = ctx;
	char why[232];
	int64_t next;
	struct op *op;

	pthread_mutex_lock(&team->lock);
	board_look(team->board);
	op = op_overdue(team, c->now, &next);
	if (op != NULL)
		status = op_late(op, why, sizeof(why));
	pthread_mutex_unlock(&team->lock);
	if (op != NULL)
		team_fail(team, status, why, true);
	else if (next < c->next)
		c->next = next;
	next = post_expire(team, c->now);
	if (next < c->next)
		c->next = next;
}

static int64_t
on_expire(int64_t now)
{
	struct clock c = { now, INT64_MAX };

	team_each(expire_one, &c);
	return c.next;
}

static void
close_one(struct xr_coll *team, void *unused)
{
	(void)unused;
	xr_coll_close(team);
	op_finish_left(team);
}

static void
on_closed(void)
{
	struct series *s;

	team_each(close_one, NULL);
	board_forget();
	pthread_mutex_lock(&teams.lock);
	while ((s = LIST_FIRST(&teams.series)) != NULL) {
		LIST_REMOVE(s, list);
		free(s);
	}
	pthread_mutex_unlock(&teams.lock);
}

static const struct guest guest = { on_arrived, on_lost, on_cancelled,
	on_expire, on_closed };

/* --- making ----------------------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void
init_lock(struct xr_coll *team)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&team->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&team->changed, &attr);
	pthread_condattr_destroy(&attr);
}

static struct xr_coll *
team_new(uint32_t count)
{
	struct xr_coll *team =
		calloc(1, sizeof(*team) + count * sizeof(team->rank[0]));

	if (team == NULL)
		return NULL;
	team->peer = calloc(count, sizeof(struct peer *));
	team->account = calloc(count, sizeof(*team->account));
	if (team->peer == NULL || team->account == NULL) {
		free(team->account);
		free(team->peer);
		free(team);
		return NULL;
	}
	atomic_init(&team->refs, 1);
	team->count = count;
	team->me = -1;
	for (uint32_t i = 0; i < count; i++)
		TAILQ_INIT(&team->account[i].waiting);
	init_lock(team);
	TAILQ_INIT(&team->ops);
	TAILQ_INIT(&team->early);
	TAILQ_INIT(&team->sent);
	TAILQ_INIT(&team->awaited);
	return team;
}

/* In their order, each once, and of the world. */
static enum xr_status
find_members(struct xr_coll *team, const uint32_t *ranks, struct xr_error *err)
{
	for (uint32_t i = 0; i < team->count; i++)
		team->rank[i] = ranks != NULL ? ranks[i] : i;
	qsort(team->rank, team->count, sizeof(team->rank[0]), compare);
	for (uint32_t i = 0; i < team->count; i++) {
		if (i > 0 && team->rank[i] == team->rank[i - 1])
			return fail(err, XR_E_INVAL, "rank %u stands twice",
				team->rank[i]);
		team->peer[i] = agent_find_id(team->rank[i]);
		if (team->peer[i] == NULL)
			return fail(err, XR_E_INVAL, "the world has no rank %u",
				team->rank[i]);
		if (team->peer[i]->self)
			team->me = i;
	}
	return XR_OK;
}

static uint64_t
stir(uint64_t hash, uint64_t number)
{
	for (int i = 0; i < 8; i++)
		hash = (hash ^ (uint8_t)(number >> (8 * i))) *
			UINT64_C(0x100000001b3);
	return hash;
}

/* FNV-1a of its members' lives, and of how many groups of them there were. */
static bool
number_it(struct xr_coll *team)
{
	uint64_t set = UINT64_C(0xcbf29ce484222325);
	struct series *s;

	for (uint32_t i = 0; i < team->count; i++)
		set = stir(stir(set, team->rank[i]),
			team->peer[i]->incarnation);
	pthread_mutex_lock(&teams.lock);
	LIST_FOREACH(s, &teams.series, list)
	if (s->set == set)
		break;
	if (s == NULL) {
		s = calloc(1, sizeof(*s));
		if (s != NULL) {
			s->set = set;
			LIST_INSERT_HEAD(&teams.series, s, list);
		}
	}
	if (s != NULL)
		team->id = stir(set, s->next++) >> TEAM_SEQ_BITS;
	pthread_mutex_unlock(&teams.lock);
	return s != NULL;
}

enum xr_status
team_of_all(uint32_t count, struct xr_coll **team, struct xr_error *err)
{
	struct xr_coll *all = team_new(count);
	enum xr_status status = all != NULL ?
		find_members(all, NULL, err) :
		fail(err, XR_E_NOMEM, "out of memory");

	if (status == XR_OK && !number_it(all))
		status = fail(err, XR_E_NOMEM, "out of memory");
	if (status != XR_OK) {
		team_unref(all);
		return status;
	}
	guest_set(&guest); /* it counts groups as long as the agent lives */
	all->timeout = INT64_MAX;
	*team = all;
	return XR_OK;
}

/* From when this returns each member can be sent to: all have it.
 *
 * @turns: what this member says of a board; receives the least of all */
static enum xr_status
come_together(const struct xr_coll *team, uint32_t *turns, struct xr_error *err)
{
	uint64_t least = *turns;
	enum xr_status status = meet_least(&(struct meet_team){ .id = team->id,
						   .peer = team->peer,
						   .count = team->count,
						   .timeout = team->timeout },
		&least, err);

	*turns = status == XR_OK ? (uint32_t)least : 0;
	return status;
}

/* Whoever of them ends meanwhile is heard of. */
static void
reach_all(const struct xr_coll *team)
{
	for (uint32_t i = 0; i < team->count; i++)
		peer_reach(team->peer[i]);
}

static enum xr_status
open_with(struct xr_coll *team, struct board *board, struct xr_error *err)
{
	uint32_t turns = board_turns(board);
	enum xr_status status = board_hand(board, err);

	if (status == XR_OK)
		status = come_together(team, &turns, err);
	if (status == XR_OK && turns > 0)
		status = board_open(board, turns, err);
	team->opening = NULL;
	if (team->board == NULL)
		board_free(board);
	return status;
}

static enum xr_status
open_up(struct xr_coll *team, struct xr_error *err)
{
	struct board *board;
	uint32_t none = 0;

	reach_all(team);
	if (team->count == 1)
		return come_together(team, &none, err);
	board = board_new(team);
	return board != NULL ? open_with(team, board, err) :
			       fail(err, XR_E_NOMEM, "out of memory");
}

static enum xr_status
make(struct xr_coll *team, const uint32_t *ranks, struct xr_error *err)
{
	enum xr_status status = find_members(team, ranks, err);
	struct xr_error why = { 0 };

	if (status != XR_OK || team->me < 0)
		return status;
	if (lead_delivers())
		return fail(err, XR_E_STATE,
			"a short function or callback may not wait");
	if (!number_it(team))
		return fail(err, XR_E_NOMEM, "out of memory");
	guest_set(&guest);
	enlist(team);
	status = open_up(team, &why);
	if (status == XR_OK)
		return XR_OK;
	team_fail(team, status, why.text, true);
	team_tell(team);
	xr_coll_close(team);
	return fail(err, status, "%s", why.text);
}

static enum xr_status
check(struct xr_world *world, const struct xr_coll_opts *opts,
	struct xr_error *err)
{
	if (world == NULL || world != xr_world_get())
		return fail(err, XR_E_STATE,
			"that is not this process's world");
	if (opts->size < sizeof(*opts) || opts->timeout < XR_TIMEOUT_DEFAULT)
		return fail(err, XR_E_INVAL,
			"struct xr_coll_opts: size %u, timeout %lld",
			opts->size, (long long)opts->timeout);
	if (opts->ranks != NULL &&
		(opts->count == 0 || opts->count > xr_world_size(world)))
		return fail(err, XR_E_INVAL, "%zu ranks of %u", opts->count,
			xr_world_size(world));
	return XR_OK;
}

static bool
says_time(const struct xr_coll_opts *opts)
{
	return opts->timeout != 0 && opts->timeout != XR_TIMEOUT_DEFAULT;
}

XR_EXPORT enum xr_status
xr_coll_new(struct xr_world *world, const struct xr_coll_opts *opts,
	struct xr_coll **coll, struct xr_error *err)
{
	const struct xr_coll_opts none = { .size = sizeof(none) };
	enum xr_status status = agent_enter(err);
	struct xr_coll *team = NULL;

	if (status != XR_OK)
		return status;
	if (opts == NULL)
		opts = &none;
	status = check(world, opts, err);
	if (status == XR_OK) {
		team = team_new(opts->ranks != NULL ? (uint32_t)opts->count :
						      xr_world_size(world));
		if (team == NULL)
			status = fail(err, XR_E_NOMEM, "out of memory");
	}
	if (team != NULL) {
		team->timeout =
			says_time(opts) ? opts->timeout : world_timeout(world);
		status = make(team, opts->ranks, err);
	}
	agent_leave();
	if (status == XR_OK)
		*coll = team;
	else
		team_unref(team);
	return status;
}

XR_EXPORT void
xr_coll_close(struct xr_coll *coll)
{
	if (inside_not_forked(NULL) != XR_OK)
		return;
	team_fail(coll, XR_E_CLOSED, "the group was closed", false);
	if (unlist(coll))
		team_unref(coll);
}

XR_EXPORT void
xr_coll_free(struct xr_coll *coll)
{
	if (coll == NULL || inside_not_forked(NULL) != XR_OK)
		return;
	xr_coll_close(coll);
	team_unref(coll);
}

XR_EXPORT uint32_t
xr_coll_size(const struct xr_coll *coll)
{
	return coll->count;
}

XR_EXPORT int64_t
xr_coll_index(const struct xr_coll *coll)
{
	return coll->me;
}
