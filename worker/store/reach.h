/* SPDX-License-Identifier: Apache-2.0 */
/* reach.h - what the rest of libxrun asks of a store beside xrun/store.h. */
#ifndef WORKER_STORE_REACH_H
#define WORKER_STORE_REACH_H

#include <stdbool.h>

#include <xrun/store.h>

/* store_host() - the machine that serves it, by name or address, for as long as the
 * store is open; NULL: it is reached without a network. */
const char *store_host(const struct xr_store *store);

/* store_is_open() - Returns true if the store authenticates none of its clients
 * (auth=none). */
bool store_is_open(const struct xr_store *store);

/* store_is_jobs() - is it the one that all ranks of the job find, if they say nothing? */
bool store_is_jobs(const struct xr_store *store);

#endif /* WORKER_STORE_REACH_H */
