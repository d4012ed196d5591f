/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rref_inner.h - the tables of references, for rref.c and its like.
 *
 * All of it is under one lock, @rref.lock, which is held for a few stores: no
 * other is taken meanwhile, nothing is sent, no value is released, and nobody is
 * called. What a function under the lock leaves to be done is a struct rref_todo,
 * for rref_do() without it.
 */
#ifndef WORKER_RPC_RREF_INNER_H
#define WORKER_RPC_RREF_INNER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sys/queue.h>

#include "worker/rpc/lead.h"
#include "worker/rpc/message.h"
#include "worker/rpc/rref.h"

/* --- a map by ids ----------------------------------------------------------- */

#define GID_FEW 64 /* buckets of a map that has no memory for more */

struct gid_node {
	struct rref_gid id;
	struct gid_node *next;
};

struct gid_map {
	struct gid_node **bucket; /* [buckets], a power of 2; NULL: @few */
	uint32_t buckets, count;
	struct gid_node *few[GID_FEW];
};

struct gid_node *gid_find(struct gid_map *map, const struct rref_gid *id);
void gid_add(struct gid_map *map, struct gid_node *node);
void gid_remove(struct gid_map *map, struct gid_node *node);

/* gid_first() - any; NULL: it is empty. gid_next() - those behind @node, which may
 * be removed meanwhile but for @node itself. */
struct gid_node *gid_first(struct gid_map *map);
struct gid_node *gid_next(struct gid_map *map, const struct gid_node *node);
void gid_free(struct gid_map *map); /* it is empty */

/* --- the owner's ------------------------------------------------------------ */

struct owned;

/* Somebody's handle of a value here. */
struct fork {
	struct gid_node node; /* of rref.forks; first */
	struct owned *of;
	struct peer *user;
	LIST_ENTRY(fork) list;
};
LIST_HEAD(fork_list, fork);

/* Who waits for a value: a fetch of a peer, a future here, or a method. */
struct want {
	TAILQ_ENTRY(want) list;
	struct peer *peer; /* of a fetch, or of a method */
	uint64_t corr;     /* of a fetch */
	struct rref_gid fork;
	int64_t deadline; /* INT64_MAX: none */
	bool only_created;
	struct xr_future *future; /* a reference; of one here */
	rref_object_fn *fn;       /* of a method */
	void *ctx;
	/* What it is told, outside of the lock: references. */
	struct xr_value *value, *error;
};
TAILQ_HEAD(want_list, want);

struct owned {
	struct gid_node node; /* of rref.owned; first */
	uint32_t handles;     /* here, and calls that it is the object of */
	uint32_t fork_count;
	bool begun;    /* its function was called */
	bool creating; /* and has not answered */
	bool ready;    /* there is @value, or @error */
	bool closed;   /* with the agent */
	bool is_late;  /* its maker is confirmed when it is ready */
	/* Of a call to oneself with a limit, until it has begun, or has ended. */
	int64_t due;
	struct xr_future *asked; /* a reference; NULL: none */
	struct xr_value *value, *error;
	struct fork_list forks;
	struct want_list wants;
};

/* --- the users' -------------------------------------------------------------- */

enum user_state {
	USER_PENDING,
	USER_CONFIRMED,
	USER_FAILED, /* with @error */
	USER_CLOSED, /* with the agent */
};

/* References of a message that came, which a call waits for. */
struct await {
	LIST_ENTRY(await) list;
	struct refs_in *refs;
};
LIST_HEAD(await_list, await);

struct xr_rref {
	struct gid_node node; /* of rref.users, by the fork; first */
	struct rref_gid id;
	_Atomic uint32_t refs;
	bool is_owner;
	bool mapped;   /* it is in rref.users */
	bool ended;    /* its owner was told */
	bool unmade;   /* the call that was to make its value failed here */
	uint8_t state; /* enum user_state */
	uint32_t life; /* of the agent that it belongs to */
	struct peer *owner,
		*parent;     /* in that life; parent: to be told; NULL */
	struct owned *owned; /* of an owner's */
	struct xr_value *error;
	/* Of one that a call here makes. */
	struct xr_future *asked, *created; /* references */
	int64_t due; /* of the owner's word; INT64_MAX: whenever */
	struct await_list awaits;
	uint32_t owner_id;
	char owner_name[XR_WORKER_NAME_MAX + 1];
};

/* A fork that was sent, and keeps its parent. */
struct child {
	struct gid_node node; /* of rref.children, by the fork; first */
	struct xr_rref *parent;
	struct peer *to;
};

/* --- what is said of them --------------------------------------------------- */

struct control {
	TAILQ_ENTRY(control) list;
	enum message_kind kind;
	struct peer *to;
	struct rref_wire wire;
	int64_t due; /* of one that failed */
	uint32_t tries;
};
TAILQ_HEAD(control_list, control);

/* rref_tell() - send it; what cannot be sent now is, later. Any thread, without
 * the lock.  Blocks: no. */
void rref_tell(enum message_kind kind, struct peer *to,
	const struct rref_wire *wire);

/* rref_tell_again() - those that are due by @now; gives when the next is. */
int64_t rref_tell_again(int64_t now);
uint32_t rref_untold(void);
void rref_tell_drop(const struct peer *to); /* NULL: whomever */

/* rref_wire_of() - ids on the wire. */
struct rref_wire rref_wire_of(const struct rref_gid *id,
	const struct rref_gid *fork, uint32_t flags);
struct rref_gid rref_id_of(const struct rref_wire *wire);
struct rref_gid rref_fork_of(const struct rref_wire *wire);

/* For tests: what becomes of messages of references, in their way. */
struct rref_seam {
	/* send() - XR_OK: go on; else it fails to be sent. */
	enum xr_status (*send)(enum message_kind kind, const struct peer *to,
		const struct rref_wire *wire);
	/* begin() - false: this remote call never came. */
	bool (*begin)(const struct peer *from);
	/* arrive() - false: it has been taken, for rref_deliver(). */
	bool (*arrive)(enum message_kind kind, struct peer *from,
		const struct rref_wire *wire);
};
extern const struct rref_seam *rref_seam; /* NULL: none */

void rref_deliver(enum message_kind kind, struct peer *from,
	const struct rref_wire *wire);

/* What rref_deliver() does. */
void user_confirmed(struct peer *from, const struct rref_wire *wire);
void user_accepted(struct peer *from, const struct rref_wire *wire);
void owner_forked(struct peer *from, const struct rref_wire *wire);
void owner_deleted(struct peer *from, const struct rref_wire *wire);

/* --- what is left to be done ------------------------------------------------- */

struct rref_todo {
	struct want_list wants;    /* to be told */
	struct gid_node *owned;    /* to be freed */
	struct gid_node *handles;  /* to be freed */
	struct gid_node *children; /* to be freed; their parents are released */
	struct refs_in *ready;     /* whose calls may run */
	struct control_list control; /* to be sent */
	struct waiter *settled;      /* to be woken */
};

void rref_todo_init(struct rref_todo *todo);
void rref_do(struct rref_todo *todo);

/* rref_later() - of @todo: to be sent. Without memory it is not. */
void rref_later(struct rref_todo *todo, enum message_kind kind, struct peer *to,
	const struct rref_wire *wire);

/* --- state -------------------------------------------------------------------- */

extern struct rref_state {
	pthread_mutex_t lock;
	struct gid_map owned, forks, users, children;
	uint64_t next; /* id */
	uint32_t life; /* of the agent; 0: there was none */
	bool open;
	uint32_t flags;   /* enum xr_rref_flags */
	uint32_t pending; /* of @users */
	uint32_t wanted;  /* wants that wait */
	uint32_t births;  /* of @owned, that have a limit */
	/* Waits for tables to be empty, and for all to be told; set under the lock. Of
	 * who sets it, and then counts who is told at that moment, and who has told,
	 * and then looks at it, one sees the other. */
	struct waiter *_Atomic settled;
	bool settles_owners; /* those of the owner's; else the users' */
} rref;

/* rref_new_gid() - the next id of this process; under the lock. */
struct rref_gid rref_new_gid(void);

/* rref_look() - wake who waits for empty tables; under the lock. */
void rref_look(struct rref_todo *todo);

/* --- between the files --------------------------------------------------------- */

/* All under the lock but where it says so. */
struct owned *owned_find(const struct rref_gid *id);
struct owned *owned_new(const struct rref_gid *id);       /* NULL: no memory */
void owned_look(struct owned *o, struct rref_todo *todo); /* needed still? */

/* owned_limit() - @asked ends with XR_E_TIMEOUT, unless the call has begun by @due. */
void owned_limit(struct owned *o, struct xr_future *asked, int64_t due);

/* births_expire() - gives when the next is due; not under the lock. */
int64_t births_expire(int64_t now);
enum xr_status owned_fork(struct owned *o, const struct rref_gid *fork,
	struct peer *user);
void owned_unfork(const struct rref_gid *fork, struct peer *user,
	const struct xr_value *why, struct rref_todo *todo);
void owned_set(struct owned *o, struct xr_value *value, bool failed,
	struct rref_todo *todo);
void owned_want(struct owned *o, struct want *w, struct rref_todo *todo);
void want_told(struct want *w); /* not under the lock */
void owners_lost(struct peer *peer, struct rref_todo *todo);
int64_t owners_expire(int64_t now, struct rref_todo *todo);
void owners_abandon(struct rref_todo *todo);
/* owners_close() - one of them, and what it had, a reference; false: there is
 * none. */
bool owners_close(struct rref_todo *todo, struct xr_value **value);

struct xr_rref *handle_of_owned(struct owned *o);
void handle_free(struct xr_rref *h); /* not under the lock */
/* user_new() - pending, not in the table; @owner NULL: unknown, by its id. */
struct xr_rref *user_new(const struct rref_gid *id, const struct rref_gid *fork,
	struct peer *owner, uint32_t owner_id);
void user_add(struct xr_rref *h);
void user_fail(struct xr_rref *h, struct xr_value *error, bool tell,
	struct rref_todo *todo);
void user_confirm(struct xr_rref *h, struct rref_todo *todo);
enum xr_status user_usable(const struct xr_rref *h, struct xr_error *err);
void child_remove(struct child *c, struct rref_todo *todo);
void users_lost(struct peer *peer, struct rref_todo *todo);
int64_t users_expire(int64_t now); /* not under the lock */
struct child *child_new(const struct rref_gid *fork, struct xr_rref *parent,
	struct peer *to);
void users_release(struct rref_todo *todo);
void users_close(struct rref_todo *todo);
void refs_one_ready(struct await *a, bool failed, struct rref_todo *todo);
/* refs_tell_ready() - not under the lock; gives the next of the todo. */
struct refs_in *refs_tell_ready(struct refs_in *refs);

#endif /* WORKER_RPC_RREF_INNER_H */
