/* SPDX-License-Identifier: Apache-2.0 */
/* held.h - the body of a message, with what was lent with it, kept beyond it, and
 * counted. */
#ifndef WORKER_RPC_HELD_H
#define WORKER_RPC_HELD_H

#include <stddef.h>

#include <xrun/transport.h>

struct held;

/* held_take() - keep @body, which is being delivered on this thread. It may lie
 * elsewhere from now on. NULL: no memory. */
struct held *held_take(const struct xr_body *body);
struct held *held_ref(struct held *held);
void held_unref(struct held *held); /* NULL is fine */

/* held_data() - where it lies. */
const void *held_data(const struct held *held);

/* held_loan() - what was lent, by its number, if it is @len bytes at least; else
 * NULL. */
void *held_loan(const struct held *held, uint64_t number, uint64_t len);

#endif /* WORKER_RPC_HELD_H */
