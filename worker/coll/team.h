/* SPDX-License-Identifier: Apache-2.0 */
/*
 * team.h - a group of ranks that do things together: struct xr_coll.
 *
 * It is known by a number that all members work out alike, from the lives of its
 * ranks and how many groups of them there were. What is done has a number, too, one
 * more each time, so that messages find what they belong to, also where they come
 * before it has begun here.
 *
 * What keeps one operation from its end keeps all: the group has failed, each of its
 * members is told, and everything else in it ends with that error.
 *
 * Lock: of a group, for a few stores; nothing is called under it but waiter_done()
 * and crew_post(). A group is counted: its owner has a reference, and who works with
 * it for a while.
 */
#ifndef WORKER_COLL_TEAM_H
#define WORKER_COLL_TEAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sys/queue.h>

#include <xrun/coll.h>

struct board;
struct early;
struct op;
struct peer;
struct post;

TAILQ_HEAD(op_list, op);
TAILQ_HEAD(early_list, early);
TAILQ_HEAD(post_list, post);

#define TEAM_SEQ_BITS 24

struct xr_coll {
	LIST_ENTRY(xr_coll) list; /* of those that messages find */
	_Atomic uint32_t refs;
	uint64_t id; /* of 40 bits */
	uint32_t count;
	int64_t me;      /* this process's place; -1: it has none */
	int64_t timeout; /* ns; INT64_MAX: never */

	pthread_mutex_t lock; /* of what follows */
	uint32_t next;        /* number of the next operation */
	struct op_list ops;   /* under way */
	struct early_list early;
	struct post_list sent; /* messages that nobody has asked for yet */
	struct post_list awaited;
	_Atomic int32_t failed; /* a status; XR_OK: it has not */
	char why[232];

	struct board *board;   /* NULL: it has none; read under the lock, but by
				* who does something together */
	struct board *opening; /* of who makes the group */
	struct peer **peer;    /* [count], in the order of ranks */
	uint32_t rank[];       /* [count] */
};

struct xr_coll *team_ref(struct xr_coll *team);
void team_unref(struct xr_coll *team); /* NULL is fine */

/* team_of_all() - of all @count members of the agent, by their ranks: at hand for
 * who makes it, and not among those that messages find, or that fail of a loss.
 * XR_E_INVAL: there are not so many; XR_E_NOMEM. */
enum xr_status team_of_all(uint32_t count, struct xr_coll **team,
	struct xr_error *err);

/* team_find() - by its number, with a reference; NULL: there is none, or none any
 * more. */
struct xr_coll *team_find(uint64_t id);

/* team_place() - of a peer; -1: it is no member. */
int64_t team_place(const struct xr_coll *team, const struct peer *peer);

/* team_place_of_rank() - of a rank of the world. */
int64_t team_place_of_rank(const struct xr_coll *team, int64_t rank);

/* team_fail() - once: all that is under way ends so, and what follows.
 *
 * @tell: the other members, too */
void team_fail(struct xr_coll *team, enum xr_status status, const char *why,
	bool tell);

/* team_failed() - XR_OK, or what it failed of; the lock is held. */
enum xr_status team_failed(const struct xr_coll *team, struct xr_error *err);

/* team_deadline() - of CLOCK_MONOTONIC, for an operation that begins now. */
int64_t team_deadline(const struct xr_coll *team, const struct xr_coll_op *op);

/* team_each() - @fn for all that messages find, with a reference. */
void team_each(void (*fn)(struct xr_coll *team, void *ctx), void *ctx);

#endif /* WORKER_COLL_TEAM_H */
