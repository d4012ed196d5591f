/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - all calls of a task, one after the other.
 *
 * The arguments of a call are the context of the worker, where functions take one, what
 * the function is bound to, and what the task has.
 */
#ifndef WORKER_POOL_RUN_H
#define WORKER_POOL_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/pool/hand.h"
#include "worker/pool/item.h"

/* What is the same for all calls of a task. */
struct run_plan {
	const struct func *func;
	enum item_form form;
	struct xr_value *context; /* NULL: functions take none */
	struct xr_value *bound;   /* or NULL */
	struct xr_value *named;   /* or NULL */

	/* of run_item(): the arguments of the last call, which are those of the
	 * next one where nobody has kept them; NULL */
	struct xr_value *spare;
	size_t at; /* of the item, in them */
};

/* run_apply() - the one call; @values: its arguments. */
bool run_apply(struct hand *h, const struct run_plan *plan,
	struct xr_value *values, struct xr_value **result);

/* run_item() - a call of a map; @item is borrowed. run_end() - of the last one. */
bool run_item(struct hand *h, struct run_plan *plan, struct xr_value *item,
	struct xr_value **result);
void run_end(struct run_plan *plan);

#endif /* WORKER_POOL_RUN_H */
