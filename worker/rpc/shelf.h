/* SPDX-License-Identifier: Apache-2.0 */
/* shelf.h - values in the rendezvous store. */
#ifndef WORKER_RPC_SHELF_H
#define WORKER_RPC_SHELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/error.h>
#include <xrun/store.h>
#include <xrun/value.h>

/* shelf_get() - as xr_store_get(). */
enum xr_status shelf_get(struct xr_store *store, const char *key,
	int64_t timeout, struct xr_value **v, struct xr_error *err);

enum xr_status shelf_set(struct xr_store *store, const char *key,
	struct xr_value *v, struct xr_error *err);

/* shelf_claim() - @v, if nothing is there. @won: it is what is there now. */
enum xr_status shelf_claim(struct xr_store *store, const char *key,
	struct xr_value *v, bool *won, struct xr_error *err);

/* shelf_pack_into() - the bytes of @v as the store has them, to memory; gives how many;
 * 0: they do not fit, or there is no memory. shelf_unpack() - of such bytes. */
size_t shelf_pack_into(struct xr_value *v, void *out, size_t cap);
enum xr_status shelf_unpack(const void *data, size_t len, struct xr_value **v,
	struct xr_error *err);

#endif /* WORKER_RPC_SHELF_H */
