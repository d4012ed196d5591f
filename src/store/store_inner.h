/* SPDX-License-Identifier: Apache-2.0 */
/* store_inner.h - what store.c and wait.c share. No other file includes it. */
#ifndef STORE_STORE_INNER_H
#define STORE_STORE_INNER_H

#include "store/store.h"
#include "store/table.h"

TAILQ_HEAD(store_waiters, store_waiter);

struct store {
	struct store_setup setup;
	struct store_table table;
	size_t bytes, keys, waits; /* as struct store_limits counts them */
	struct store_waiters waiting;
	struct store_waiters ready; /* all has come; to be answered */
	unsigned calls;             /* of functions that answer, under way */
	bool answering;             /* one of them is at it */
	bool closed;                /* store_close() */
	bool gone;                  /* store_free(), in an answer */
};

/* store_key() - is the length of @key within its limit? */
enum xr_status store_key(struct span key, struct xr_error *err);

/* store_entry_new() - an entry for a key that has none, if there is room for it
 * and @more bytes. */
enum xr_status store_entry_new(struct store *s, struct span key, size_t more,
	struct store_entry **entry, struct xr_error *err);

/* store_entry_leave() - it goes if nothing holds it. */
void store_entry_leave(struct store *s, struct store_entry *e);

/* store_begin() and store_end() - around all that may answer. Behind the latter
 * the store may be gone. */
void store_begin(struct store *s);
void store_end(struct store *s);

/* store_wake() - @e has just got a value; whoever waited for nothing else will
 * be answered by store_end(). */
void store_wake(struct store *s, struct store_entry *e);

/* store_drop_all() - no waiters any more. */
void store_drop_all(struct store *s);

#endif /* STORE_STORE_INNER_H */
