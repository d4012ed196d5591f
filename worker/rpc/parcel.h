/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parcel.h - memory that a carrier may keep for a while, instead of a copy.
 *
 * It has two parties: who sends it, and each carrier that has not finished with
 * it. What it stands for is let go when the last of them is done.
 */
#ifndef WORKER_RPC_PARCEL_H
#define WORKER_RPC_PARCEL_H

#include <stdatomic.h>
#include <stdint.h>

#include <xrun/error.h>

struct parcel;
struct peer;

/* What a token of a message stands for. */
struct token {
	void (*sent)(struct token *token);
};

struct parcel {
	struct token token;
	_Atomic uint32_t refs;
	_Atomic uint32_t pending; /* carriers that have it */
	void (*free)(void *what); /* NULL: it is somebody else's memory */
	void *what;
};

/* Bodies up to so many bytes are worth none: carriers copy them anyway. */
#define PARCEL_MIN 2048

/* parcel_new() - with one reference, for @what, which is let go by @free with the
 * last one. NULL: no memory. */
struct parcel *parcel_new(void (*free)(void *what), void *what);
struct parcel *parcel_ref(struct parcel *parcel);
void parcel_unref(struct parcel *parcel); /* NULL is fine */

/* parcel_lend(), parcel_keep() - before it is given to a carrier, and if that did
 * not keep it. */
void parcel_lend(struct parcel *parcel);
void parcel_keep(struct parcel *parcel);

/* parcel_await_sent() - until no carrier has any; XR_E_TIMEOUT. One thread at a
 * time. */
enum xr_status parcel_await_sent(int64_t deadline, struct xr_error *err);

/* parcel_end() - the memory is not looked at any more by the carrier that took it
 * to @peer; then parcel_unref(). NULL is fine. */
void parcel_end(struct parcel *parcel, struct peer *peer);

#endif /* WORKER_RPC_PARCEL_H */
