/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - the rendezvous store: keys, values, and who waits for them.
 *
 * An engine: it does no I/O, has no thread, no clock and no randomness of its
 * own. Whoever serves it (a control socket, a TCP listener, a handle in the
 * same process) asks here and carries answers away. A key is any bytes, also
 * none; namespaces are prefixes that the server puts before a client's key.
 *
 * Who asks for a key that is not there may wait. The engine keeps a waiter for
 * the owner, a connection say, and calls answer() when all that it waits for
 * has come, in the order of asking. Deadlines are the server's: it cancels the
 * waiter and says itself what did not come (store_waiter_key()).
 *
 * answer() may call any function of the store, store_free() too. What was asked
 * has been done before it is called, and nothing is left half done.
 *
 * What is beyond a limit is refused, with words, as is what finds no memory:
 * a function that fails has changed nothing. One thread at a time.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/queue.h>

#include "base/hash.h"
#include "base/span.h"
#include "store/value.h"
#include "xrun/error.h"

#define STORE_KEY_MAX   4096       /* bytes */
#define STORE_VALUE_MAX (64 << 20) /* bytes */

struct store;
struct store_waiter;

struct store_limits {
	size_t bytes; /* of keys and values in all; keys waited for count */
	size_t value; /* of one value; STORE_VALUE_MAX, mostly */
	size_t keys;  /* that have a value */
	size_t waits; /* keys waited for, once for each who waits */
	size_t owner; /* waiters of one owner */
};

/*
 * Whom waiters belong to; part of a connection. It stays where it is until it
 * has no waiters: store_owner_close() or store_owner_drop(), or the store's end.
 */
struct store_owner {
	void *of; /* the caller's */
	TAILQ_HEAD(, store_waiter) waiters;
	size_t count;
	bool closed;
};

struct store_answer {
	struct store_owner *owner;
	uint64_t id;
	enum xr_status status;     /* XR_OK or XR_E_CLOSED */
	struct store_value *value; /* of a get that is XR_OK; borrowed */
	struct span key;           /* XR_E_CLOSED: the first that is missing */
};

/* store_answer_fn - the waiter is no more; all that is pointed to is borrowed
 * for the call. */
typedef void store_answer_fn(const struct store_answer *answer, void *ctx);

struct store_setup {
	struct store_limits limits;
	struct hash_seed seed; /* random, lest somebody aims at a bucket */
	store_answer_fn *answer;
	void *ctx;
};

/* store_new() - NULL: no memory. */
struct store *store_new(const struct store_setup *setup);

/* store_owner_init() - nobody waits yet. */
void store_owner_init(struct store_owner *owner, void *of);

/* Who asks, if he would wait. */
struct store_ask {
	struct store_owner *owner;
	uint64_t id;                 /* comes back with the answer */
	struct store_waiter *waiter; /* out; NULL: no need to wait */
};

/*
 * store_set() - @key has @value from now on; the store keeps a reference.
 *
 * Returns  XR_OK; XR_E_RANGE: key or value is too long; XR_E_NOMEM: the store is
 *          full, or there is no memory
 */
enum xr_status store_set(struct store *s, struct span key,
	struct store_value *value, struct xr_error *err);

/*
 * store_get() - the value of @key, or a waiter for it.
 *
 * @ask:   NULL: does not wait
 * @value: a reference for the caller; NULL if there is a waiter. A waiter's
 *         answer has the first value that the key gets, whatever becomes of it.
 *
 * Returns  XR_OK; XR_E_NOTFOUND: not there, and @ask is NULL; XR_E_RANGE: the key
 *          is too long; XR_E_AGAIN: too many wait; XR_E_CLOSED: owner or store
 *          is closed; XR_E_NOMEM
 */
enum xr_status store_get(struct store *s, struct span key,
	struct store_ask *ask, struct store_value **value,
	struct xr_error *err);

/*
 * store_wait() - until each of @n keys has been there since; one that is deleted
 * meanwhile is not waited for again. Of all that, the answer has no value.
 *
 * Returns  as store_get(), but never XR_E_NOTFOUND: @ask is needed.
 */
enum xr_status store_wait(struct store *s, const struct span *keys, size_t n,
	struct store_ask *ask, struct xr_error *err);

/* store_check() - are all of them there? */
bool store_check(const struct store *s, const struct span *keys, size_t n);

/*
 * store_add() - @by is added to the number that is the value of @key, in decimal
 * text; a key that is not there counts as 0.
 *
 * Returns  XR_OK, and the sum in @sum; XR_E_INVAL: the value is no number;
 *          XR_E_RANGE: the sum is beyond 64 bits; or as store_set()
 */
enum xr_status store_add(struct store *s, struct span key, int64_t by,
	int64_t *sum, struct xr_error *err);

struct store_swap {
	struct span key;
	struct span expected;
	struct store_value *desired;
};

/*
 * store_compare_set() - @desired, if the value is @expected now. A key that is
 * not there is as one that is empty.
 *
 * @now: the value afterwards, a reference for the caller; NULL: there is none
 *
 * Returns  XR_OK, whether it was replaced or not; or as store_set()
 */
enum xr_status store_compare_set(struct store *s, const struct store_swap *swap,
	struct store_value **now, struct xr_error *err);

/* store_delete() - was it there? */
bool store_delete(struct store *s, struct span key);

/* store_clear() - delete all keys that begin with @prefix; returns how many.
 * Looks at each key of the store. */
size_t store_clear(struct store *s, struct span prefix);

/* store_count() - keys that begin with @prefix. Looks at each, unless @prefix is
 * empty. */
size_t store_count(const struct store *s, struct span prefix);

/* store_each() - each key that has a value, in no order, until @fn says false;
 * which it returns then. Nothing may change meanwhile. */
typedef bool store_each_fn(struct span key, const struct store_value *value,
	void *ctx);
bool store_each(const struct store *s, store_each_fn *fn, void *ctx);

/* store_bytes() - as struct store_limits counts them. */
size_t store_bytes(const struct store *s);

/* store_waiter_key() - the first key of it that is missing, borrowed till the
 * next call. */
struct span store_waiter_key(const struct store_waiter *waiter);

/* store_cancel() - the waiter is no more, and is not answered. */
void store_cancel(struct store *s, struct store_waiter *waiter);

/*
 * store_owner_close() - all its waiters are answered XR_E_CLOSED, in the order
 * of asking, but for what has come and could not be told yet. It cannot wait
 * again.
 *
 * store_owner_drop() - the same without a word.
 */
void store_owner_close(struct store *s, struct store_owner *owner);
void store_owner_drop(struct store *s, struct store_owner *owner);

/* store_close() - all waiters are answered as by store_owner_close(), and nobody
 * can wait again. The rest goes on. */
void store_close(struct store *s);

/* store_free() - without a word to who waits. References to values stay good. */
void store_free(struct store *s);

#endif /* STORE_STORE_H */
