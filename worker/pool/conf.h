/* SPDX-License-Identifier: Apache-2.0 */
/* conf.h - what a pool was asked to be. */
#ifndef WORKER_POOL_CONF_H
#define WORKER_POOL_CONF_H

#include <stdint.h>

#include <xrun/pool.h>

/* With texts of its own, and all that was left open said. */
struct pool_conf {
	enum xr_pool_kind kind;
	enum xr_pool_routing routing;
	enum xr_pool_on_error on_error;
	uint32_t flags, workers, tasks, start_failures;
	int64_t start_window;
	uint64_t max_tasks, bytes;
	enum xr_enc_mode mode;
	struct xr_value *contexts, *initargs; /* references; or NULL */
	char *initializer, *method, *module, *name;
};

/* conf_init() - XR_E_INVAL, XR_E_RANGE, XR_E_NO_FUNCTION, XR_E_SCHEMA, XR_E_NOMEM. */
enum xr_status conf_init(struct pool_conf *c, const struct xr_pool_opts *o,
	struct xr_error *err);
void conf_fini(struct pool_conf *c); /* zeroed is fine */

#endif /* WORKER_POOL_CONF_H */
