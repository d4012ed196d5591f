/* SPDX-License-Identifier: Apache-2.0 */
/*
 * letter.h - messages from one member to another, by tag: sending.
 *
 * A letter is a question, whose answer is that it was received. Of those that were
 * sent to a member and not received there are so many, or so many bytes, or one;
 * further ones wait here, in their order, and cost nobody memory but their sender.
 * What is sent is the program's memory, until the letter has ended: over shared
 * memory its reader copies it, so that it can be taken back at any time.
 */
#ifndef WORKER_COLL_LETTER_H
#define WORKER_COLL_LETTER_H

#include <stdint.h>

#include <xrun/coll.h>

#define LETTERS_MAX  UINT32_C(1024)
#define LETTER_BYTES (UINT64_C(256) << 20)

/* In front of the data; little-endian. */
struct label {
	uint64_t team;
	uint32_t tag, dtype;
	uint64_t count;
	uint64_t unused; /* what follows is aligned as the body is */
};

/* letter_send(), letter_isend() - @call is checked; as xr_coll_send(). */
enum xr_status letter_send(struct xr_coll *team, const struct xr_coll_op *call,
	struct xr_error *err);
enum xr_status letter_isend(struct xr_coll *team, const struct xr_coll_op *call,
	struct xr_future **future, struct xr_error *err);

/* letter_fail_all() - those of a group that has failed which were not sent; its lock is
 * not held. */
void letter_fail_all(struct xr_coll *team);

#endif /* WORKER_COLL_LETTER_H */
