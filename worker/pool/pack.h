/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.h - values of a task in few bytes.
 *
 * Nil, numbers, short texts and bytes, and lists of these, are a byte that says which
 * and what there is to say; nils in a row are counted. All else, and so the whole of a
 * task that has any of it, goes as xr_encode() has it.
 */
#ifndef WORKER_POOL_PACK_H
#define WORKER_POOL_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/value.h>

#define PACK_OWN  512
#define PACK_TEXT 1024 /* bytes of a text or bytes, at most */

/* Being written. Zero is empty. */
struct pack {
	char *data; /* @own, or malloc'ed */
	size_t len, cap;
	size_t nils; /* where the nils in a row are counted; 0: there are none */
	bool bad;    /* there was no memory */
	char own[PACK_OWN];
};

void pack_init(struct pack *p);
void pack_fini(struct pack *p);

/* pack_add() - one more. False: it is not as plain as that, and @p is as it was, or is
 * bad. */
bool pack_add(struct pack *p, const struct xr_value *value);

/* Being read. */
struct unpack {
	const uint8_t *at, *end;
	uint32_t nils;        /* in a row, to come */
	struct xr_value *nil; /* one for all; or NULL */
};

/* unpack_nils() - up to @most nils that come next are passed over: how many. */
uint32_t unpack_nils(struct unpack *u, uint32_t most);

void unpack_fini(struct unpack *u);

/* unpack_next() - the next value, a reference. NULL: there is none, it is broken, or
 * there is no memory. */
struct xr_value *unpack_next(struct unpack *u);

#endif /* WORKER_POOL_PACK_H */
