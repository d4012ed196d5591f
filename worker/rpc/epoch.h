/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch.h - the member list of a group that changes, in the store.
 *
 * Each state of the list is a record with a number of its own, which is written
 * once: whoever would change the list reads the newest record and claims the next
 * number by compare-and-set. So there is no lock that somebody could die with, and
 * all see the same states in the same order. A record is complete, so that who
 * missed some goes on with the newest.
 *
 * Who wants to know that all others have a record asks them to acknowledge it.
 *
 *	rpc/dynamic/head          the newest number, or one a little lower
 *	rpc/dynamic/<n>           a record; some of the last ones are kept
 *	rpc/dynamic/<n>/ack/<id>  that member has it
 */
#ifndef WORKER_RPC_EPOCH_H
#define WORKER_RPC_EPOCH_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/error.h>
#include <xrun/store.h>
#include <xrun/value.h>

#define EPOCH_KEY_MAX 64

struct epoch {
	uint64_t number;          /* 0: nobody was ever there */
	struct xr_value *members; /* a LIST, in the order of joining */
	struct xr_value *lost;    /* a LIST of U64: incarnations that did not
				   * leave by themselves, the last ones */
	bool asks;                /* its author waits for acknowledgements */
};

void epoch_fini(struct epoch *e); /* an empty one is fine */

/* epoch_newest() - of which that number 0 is that nobody was ever there. */
enum xr_status epoch_newest(struct xr_store *store, struct epoch *e,
	struct xr_error *err);

/* epoch_await() - the newest, once there is one after @known. */
enum xr_status epoch_await(struct xr_store *store, uint64_t known,
	struct epoch *e, struct xr_error *err);

/*
 * What is to become of @now: @next, whose lists are new ones. XR_E_AGAIN: it is as
 * it should be. Any other failure ends the change.
 */
typedef enum xr_status epoch_edit_fn(const struct epoch *now,
	struct epoch *next, void *ctx, struct xr_error *err);

struct epoch_change {
	epoch_edit_fn *edit;
	void *ctx;
};

/*
 * epoch_change() - until @what's edit() finds nothing to do.
 *
 * @result: receives the newest record
 * @mine:   receives the one that was written here, which may be older; its number
 *          is 0 if none was. NULL: not wanted
 *
 * Returns  XR_OK; what edit() gave; as xr_store_get()
 */
enum xr_status epoch_change(struct xr_store *store,
	const struct epoch_change *what, struct epoch *result,
	struct epoch *mine, struct xr_error *err);

/* epoch_ack() - member @id has record @number. */
enum xr_status epoch_ack(struct xr_store *store, uint64_t number, uint32_t id,
	struct xr_error *err);

/* epoch_ack_key() - where that stands. */
void epoch_ack_key(uint64_t number, uint32_t id, char key[EPOCH_KEY_MAX]);

#endif /* WORKER_RPC_EPOCH_H */
