/* SPDX-License-Identifier: Apache-2.0 */
/*
 * func.h - the functions that this process lets others call.
 *
 * A table of the process, which only grows: what was found once stays. A call
 * names its function by a 32-bit hash of the name, and by the name as well until
 * the callee has answered once (method.h); two functions of one process cannot
 * have one hash.
 */
#ifndef WORKER_RPC_FUNC_H
#define WORKER_RPC_FUNC_H

#include <stdint.h>

#include <xrun/func.h>

#include "base/span.h"

struct func {
	struct xr_func f; /* with texts of its own */
	uint32_t hash;
	uint32_t name_len;
};

/* func_hash() - of a name; never 0. */
uint32_t func_hash(const char *name, size_t len);

/* func_find() - NULL: nobody registered it. Any thread.  Blocks: no. */
const struct func *func_find(uint32_t hash);

/* func_schema_is() - is @schema one? NULL is. */
bool func_schema_is(const char *schema);

/* func_check() - does the LIST @args fit @schema? XR_E_SCHEMA says which does
 * not; NULL fits everything. */
enum xr_status func_check(const char *schema, const struct xr_value *args,
	struct xr_error *err);

#endif /* WORKER_RPC_FUNC_H */
