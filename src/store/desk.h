/* SPDX-License-Identifier: Apache-2.0 */
/*
 * desk.h - where a store is asked: requests in, replies out, and patience.
 *
 * The part that all who serve a store share, whatever they speak. It is pure as
 * the store is: no I/O, and the time is told to it. A guest is a connection.
 * desk_ask() answers at once, or keeps the request until what it waits for has
 * come or its patience is over; then ready() is called, which only takes note,
 * and whoever serves takes the reply with desk_take() when the connection has
 * room. So a key that a thousand wait for costs its setter no thousand answers.
 *
 * One thread at a time.
 */
#ifndef STORE_DESK_H
#define STORE_DESK_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/queue.h>

#include "store/store.h"

#define DESK_NEVER    INT64_MAX
#define DESK_KEYS_MAX 1024 /* of one wait or check */

/* Its numbers are those of frames (frame.h). */
enum store_op {
	STORE_SET = 1,
	STORE_GET,
	STORE_ADD,
	STORE_COMPARE_SET,
	STORE_WAIT,
	STORE_CHECK,
	STORE_DELETE,
	STORE_OPS,
};

/* All of it is borrowed for the call. */
struct store_request {
	enum store_op op;
	int64_t id;                /* comes back with the reply */
	struct span key;           /* of all but wait and check */
	const struct span *keys;   /* of those two, */
	size_t count;              /* so many */
	struct store_value *value; /* to set; of compare_set the desired one */
	struct span expected;      /* of compare_set */
	int64_t number;            /* of add */
	int64_t patience;          /* of get and wait: ns, 0 or DESK_NEVER */
};

struct store_reply {
	int64_t id;
	enum xr_status status;
	struct xr_error err; /* unless it is XR_OK */
	int64_t number;      /* add: the sum; check and delete: how many */
	/* Of get and compare_set, a reference for who takes the reply; NULL:
	 * there is none. */
	struct store_value *value;
};

struct desk;
struct desk_wait;

TAILQ_HEAD(desk_waits, desk_wait);

struct desk_guest {
	void *of; /* the caller's */
	struct store_owner owner;
	struct desk_waits open;  /* waits */
	struct desk_waits ready; /* to be taken */
};

/* desk_ready_fn - @guest has something to take, and had not before. Asks
 * nothing of the desk. */
typedef void desk_ready_fn(struct desk_guest *guest, void *ctx);

struct desk_setup {
	struct store_limits limits;
	struct hash_seed seed;
	desk_ready_fn *ready;
	void *ctx;
};

/* desk_new() - NULL: no memory. */
struct desk *desk_new(const struct desk_setup *setup);

/* desk_enter() - a guest; it stays where it is until it leaves. */
void desk_enter(struct desk_guest *guest, void *of);

/* desk_leave() - what it waits for is forgotten, and so are its replies. */
void desk_leave(struct desk *desk, struct desk_guest *guest);

/* desk_ask() - true: @reply is the answer. False: it will be told of. */
bool desk_ask(struct desk *desk, struct desk_guest *guest,
	const struct store_request *request, int64_t now,
	struct store_reply *reply);

/* desk_take() - the next reply; false: there is none. */
bool desk_take(struct desk_guest *guest, struct store_reply *reply);
bool desk_has(const struct desk_guest *guest);

/* desk_due() - when somebody's patience is over; DESK_NEVER: nobody's is. */
int64_t desk_due(const struct desk *desk);

/* desk_turn() - it is @now; at most so many replies are made of it that a turn
 * of a loop bears. */
void desk_turn(struct desk *desk, int64_t now);

/* desk_store() - what it asks. */
struct store *desk_store(struct desk *desk);

/* desk_free() - all guests have left. NULL is fine. */
void desk_free(struct desk *desk);

#endif /* STORE_DESK_H */
