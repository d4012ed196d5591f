/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/store.h - the rendezvous store: keys and values that ranks share.
 *
 * A key is set by one rank and got by others, who wait for it; so ranks that
 * know nothing of each other meet. An address says where the store is:
 *
 *	env://                 with xrun, where XRUN_STORE is set. Else by RANK,
 *	                       WORLD_SIZE, MASTER_ADDR and MASTER_PORT: a file if
 *	                       MASTER_ADDR is the loopback, or tcp://
 *	control:               with xrun, whose rank this is
 *	control:/PATH/control  the same for other programs of its user
 *	tcp://HOST:PORT        with rank 0, whose process serves it; outside of xrun
 *	file:///PATH           in a file, which outlives all that use it
 *
 * behind the last two ?rank=R&world_size=W, unless both are options. The store
 * of a job is empty at each attempt and outlives its ranks; that of tcp:// ends
 * with rank 0. Clients of tcp:// prove that they know the secret in the file
 * XRUN_STORE_SECRET_FILE, or in ~/.config/xrun/store.secret; with &auth=none they
 * need none, and each process that reaches the port has access.
 *
 * Keys and prefixes are UTF-8. Handles with the same prefix see the same keys,
 * others see none of theirs. Any thread may use a handle at any time; one that
 * waits keeps none from setting. After fork() it is the parent's: XR_E_STATE.
 */
#ifndef XRUN_STORE_H
#define XRUN_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xrun/error.h"
#include "xrun/time.h"

#ifdef __cplusplus
extern "C" {
#endif

#define XR_STORE_UNSAID       INT64_C(-1) /* a rank or size: the address says it */
#define XR_STORE_KEY_MAX      4096        /* bytes, with prefix and one more */
#define XR_STORE_KEYS_MAX     1024        /* of one wait or check */
#define XR_STORE_VALUE_MAX    (64 << 20) /* bytes */
#define XR_STORE_EXPECTED_MAX (32 << 10) /* bytes that compare_set can expect */

struct xr_store;

struct xr_store_options {
	uint32_t size;      /* sizeof(struct xr_store_options) */
	bool dynamic;       /* how many there are need not be known */
	const char *prefix; /* without a '/'; NULL: none */
	int64_t rank;       /* XR_STORE_UNSAID, or beside the address */
	int64_t world_size; /* the same */
	int64_t timeout;    /* ns, of each request, and the default of
			  * xr_store_get() and xr_store_wait(); 0 and
			  * XR_TIMEOUT_DEFAULT: 60 s; XR_TIMEOUT_NEVER */
};

#define XR_STORE_OPTIONS \
	{ sizeof(struct xr_store_options), false, NULL, XR_STORE_UNSAID, \
		XR_STORE_UNSAID, XR_TIMEOUT_DEFAULT }

/*
 * xr_store_open() - find the store, and rank 0 where it is with that.
 *
 * @address: NULL is env://
 * @options: borrowed; NULL: XR_STORE_OPTIONS
 * @store:   receives a handle; release with xr_store_free()
 *
 * Returns  XR_OK
 *          XR_E_INVAL, XR_E_RANGE, XR_E_NOTFOUND  an address that is none, or
 *              says too little or too much; a prefix that is none
 *          XR_E_TIMEOUT    nobody served it in time
 *          XR_E_PEER_LOST  the job is ending
 *          XR_E_PROTO, XR_E_VERSION  another program or version listens there
 *          XR_E_AUTH       the secret is missing, or not the same on both sides
 *          XR_E_NODEV      there is no libcrypto, which tcp:// needs
 *          XR_E_NOMEM, XR_E_SYS
 * Thread   any.  Blocks: until the store's timeout is over.
 */
enum xr_status xr_store_open(const char *address,
	const struct xr_store_options *options, struct xr_store **store,
	struct xr_error *err);

/* xr_store_rank(), xr_store_size() - of address, options or variables;
 * XR_STORE_UNSAID: nobody said. */
int64_t xr_store_rank(const struct xr_store *store);
int64_t xr_store_size(const struct xr_store *store);

/*
 * All of these return, beside what they name,
 *
 *          XR_OK
 *          XR_E_INVAL      a key that is no UTF-8
 *          XR_E_RANGE      a key or value is too long, or there are too many
 *          XR_E_NOMEM      the store is full, or there is no memory
 *          XR_E_TIMEOUT    not in time
 *          XR_E_CLOSED     xr_store_close() was called
 *          XR_E_PEER_LOST  the store is gone
 *          XR_E_STATE      this process was forked
 *
 * and change nothing then, but after XR_E_TIMEOUT and XR_E_PEER_LOST, when
 * nobody knows. Each of them blocks until it is answered, or for the store's
 * timeout.
 */

/* xr_store_set() - @key has @len bytes at @data from now on. */
enum xr_status xr_store_set(struct xr_store *store, const char *key,
	const void *data, size_t len, struct xr_error *err);

/* A value that is the caller's. Behind it is a byte of 0, which does not count. */
struct xr_store_value {
	void *data;
	size_t len;
	void *own; /* of the library */
};

/* xr_store_value_free() - and empty it; NULL, and an empty one, are fine. */
void xr_store_value_free(struct xr_store_value *value);

/*
 * xr_store_get() - the value of @key, when it has one.
 *
 * @timeout: ns; 0 does not wait: XR_E_NOTFOUND if it has none now;
 *           XR_TIMEOUT_DEFAULT: that of the store; XR_TIMEOUT_NEVER
 * @value:   written if it is XR_OK; release with xr_store_value_free()
 *
 * Returns  as all; XR_E_TIMEOUT names the key; XR_E_AGAIN: 64 waits are open
 */
enum xr_status xr_store_get(struct xr_store *store, const char *key,
	int64_t timeout, struct xr_store_value *value, struct xr_error *err);

/*
 * xr_store_add() - add @by to the number that is the value of @key, decimal
 * text; a key without a value counts as 0.
 *
 * @sum: receives what it is now; may be NULL
 *
 * Returns  as all; XR_E_INVAL: the value is no number; XR_E_RANGE: the sum has
 *          more than 64 bits
 */
enum xr_status xr_store_add(struct xr_store *store, const char *key, int64_t by,
	int64_t *sum, struct xr_error *err);

struct xr_store_swap {
	uint32_t size; /* sizeof(struct xr_store_swap) */
	const char *key;
	const void *expected; /* [expected_len]; a key without a value is as */
	size_t expected_len;  /* one with an empty one */
	const void *desired;  /* [desired_len] */
	size_t desired_len;
};

/*
 * xr_store_compare_set() - @swap's desired value, if it has the expected one.
 *
 * @now:   receives what it has afterwards; not written if @there is false
 * @there: has it any? May be NULL
 */
enum xr_status xr_store_compare_set(struct xr_store *store,
	const struct xr_store_swap *swap, struct xr_store_value *now,
	bool *there, struct xr_error *err);

/* xr_store_wait() - until each of @count keys has been there. Returns as
 * xr_store_get(). */
enum xr_status xr_store_wait(struct xr_store *store, const char *const *keys,
	size_t count, int64_t timeout, struct xr_error *err);

/* xr_store_check() - are all of them @there now? */
enum xr_status xr_store_check(struct xr_store *store, const char *const *keys,
	size_t count, bool *there, struct xr_error *err);

/* xr_store_delete() - @key has no value any more. @was: had it? May be NULL. */
enum xr_status xr_store_delete(struct xr_store *store, const char *key,
	bool *was, struct xr_error *err);

/* xr_store_close() - whoever waits has XR_E_CLOSED, at once, as has all that is
 * asked from now on. Any thread, also while others are in calls of it. */
void xr_store_close(struct xr_store *store);

/* xr_store_free() - close it, wait for those who are in calls of it, and forget
 * it. Where rank 0 serves, and it is its last handle, the store ends. NULL is
 * fine. */
void xr_store_free(struct xr_store *store);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_STORE_H */
