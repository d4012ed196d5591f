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
struct letter;
struct op;
struct peer;
struct post;

TAILQ_HEAD(op_list, op);
TAILQ_HEAD(early_list, early);
TAILQ_HEAD(post_list, post);
TAILQ_HEAD(letter_list, letter);

#define TEAM_SEQ_BITS 24

/* Operations that are under way in a group, counted from the oldest, and bytes of
 * them, or one: a member is ahead of others by no more. */
#define TEAM_OPS_MAX   ((uint32_t)XR_COLL_AHEAD)
#define TEAM_OPS_BYTES (UINT64_C(1) << 30)

/* So many of something, and bytes of them. */
struct load {
	uint32_t count;
	uint64_t bytes;
};

static inline void
load_add(struct load *l, uint64_t bytes)
{
	l->count++;
	l->bytes += bytes;
}

static inline void
load_drop(struct load *l, uint64_t bytes)
{
	l->count--;
	l->bytes -= bytes;
}

/* load_takes() - can there be one more of @bytes? The first can always. */
static inline bool
load_takes(const struct load *l, uint64_t bytes, const struct load *most)
{
	return l->count == 0 ||
		(l->count < most->count && bytes <= most->bytes &&
			l->bytes <= most->bytes - bytes);
}

/* What a member has with this one; under the group's lock. */
struct account {
	struct load early; /* came for operations that have not begun here */
	struct load kept;  /* messages that nobody has asked for yet */
	struct load out;   /* messages to it that it has not received */
	struct letter_list waiting; /* that are to go then */
	bool sends;                 /* somebody sends those */
};

struct xr_coll {
	LIST_ENTRY(xr_coll) list; /* of those that messages find */
	_Atomic uint32_t refs;
	uint64_t number; /* of all that were ever listed */
	bool listed;
	uint64_t id; /* of 40 bits */
	uint32_t count;
	int64_t me;      /* this process's place; -1: it has none */
	int64_t timeout; /* ns; INT64_MAX: never */

	pthread_mutex_t lock;   /* of what follows */
	pthread_cond_t changed; /* an operation ended, or all: team_await() */
	uint32_t next;          /* number of the next operation */
	struct op_list ops;     /* under way, the oldest first */
	struct load load;       /* of those, what goes by messages */
	struct early_list early;
	struct post_list sent; /* messages that nobody has asked for yet */
	struct post_list awaited;
	_Atomic int32_t failed; /* a status; XR_OK: it has not */
	char why[232];
	char differs
		[232]; /* a member calls something else, and has not answered
			    * with what; "" */
	bool untold;   /* to the others: nobody here has heard of it either */

	struct board *board;   /* NULL: it has none; read under the lock, but by
				* who does something together */
	struct board *opening; /* of who makes the group */
	struct peer **peer;    /* [count], in the order of ranks */
	struct account *account; /* [count] */
	uint32_t rank[];         /* [count] */
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

/* team_heard() - who called something of @team hears by @status whether it has failed: so
 * are the others to, now. Until then each of them finds out for himself, or need not: of
 * a hundred ranks that end at once each would tell all others of each. */
void team_tell(struct xr_coll *team);

static inline void
team_heard(struct xr_coll *team, enum xr_status status)
{
	if (__builtin_expect(status != XR_OK, false))
		team_tell(team);
}

/* team_failed() - XR_OK, or what it failed of; the lock is held. */
enum xr_status team_failed(const struct xr_coll *team, struct xr_error *err);

/* team_await() - until something has changed, or a while before; false: @deadline is over.
 * The lock is held. */
bool team_await(struct xr_coll *team, int64_t deadline);

/* team_deadline() - of CLOCK_MONOTONIC, for an operation that begins now. */
int64_t team_deadline(const struct xr_coll *team, const struct xr_coll_op *op);

/* team_each() - @fn for all that messages find, with a reference. */
void team_each(void (*fn)(struct xr_coll *team, void *ctx), void *ctx);

#endif /* WORKER_COLL_TEAM_H */
