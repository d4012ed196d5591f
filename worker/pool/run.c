/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - see run.h. */
#include "base/status.h"
#include "wire/value/many.h"
#include "worker/pool/run.h"
#include "worker/rpc/future.h"

/* What stands before the task's own; NULL: no memory. */
static struct xr_value *
begin(const struct run_plan *plan)
{
	struct xr_value *args = xr_value_new_list();

	if (args != NULL && plan->context != NULL &&
		xr_value_append(args, xr_value_ref(plan->context)) != XR_OK)
		goto failed;
	if (args != NULL && plan->bound != NULL &&
		xr_value_append(args, xr_value_ref(plan->bound)) != XR_OK)
		goto failed;
	return args;
failed:
	xr_value_unref(args);
	return NULL;
}

static bool
append_all(struct xr_value *args, const struct xr_value *values)
{
	for (size_t i = 0; i < xr_value_count(values); i++)
		if (xr_value_append(args,
			    xr_value_ref(xr_value_at(values, i))) != XR_OK)
			return false;
	return true;
}

/* @args are taken. */
static bool
run(struct hand *h, const struct run_plan *plan, struct xr_value *args,
	struct xr_value **result)
{
	bool ok;

	if (args == NULL) {
		*result = failure_new(XR_E_NOMEM, "out of memory");
		return false;
	}
	ok = hand_run(h, plan->func, args, plan->named, result);
	xr_value_unref(args);
	return ok;
}

static struct xr_value *
spread(const struct run_plan *plan, struct xr_value *values)
{
	struct xr_value *args;

	if (plan->context == NULL && plan->bound == NULL)
		return xr_value_ref(values);
	args = begin(plan);
	if (args != NULL && !append_all(args, values)) {
		xr_value_unref(args);
		args = NULL;
	}
	return args;
}

bool
run_apply(struct hand *h, const struct run_plan *plan, struct xr_value *values,
	struct xr_value **result)
{
	return run(h, plan, spread(plan, values), result);
}

/* Where the arguments of calls of a map stand, which nobody may add to. NULL: no memory. */
static struct xr_value *
arrange(struct run_plan *plan)
{
	if (plan->spare != NULL)
		return plan->spare;
	plan->spare = begin(plan);
	plan->at = xr_value_count(plan->spare);
	if (plan->spare != NULL &&
		xr_value_append(plan->spare, xr_value_new_nil()) != XR_OK)
		run_end(plan);
	if (plan->spare != NULL)
		xr_value_unref(xr_value_ref(plan->spare));
	return plan->spare;
}

bool
run_item(struct hand *h, struct run_plan *plan, struct xr_value *item,
	struct xr_value **result)
{
	struct xr_value *args;
	bool ok;

	if (plan->form == ITEM_STARMAP)
		return run(h, plan, spread(plan, item), result);
	args = arrange(plan);
	if (args == NULL) {
		*result = failure_new(XR_E_NOMEM, "out of memory");
		return false;
	}
	many_lend(args, plan->at, item);
	h->lent = plan->at + 1;
	ok = hand_run(h, plan->func, args, NULL, result);
	h->lent = 0;
	if (!many_return(args, plan->at))
		run_end(plan);
	return ok;
}

void
run_end(struct run_plan *plan)
{
	xr_value_unref(plan->spare);
	plan->spare = NULL;
}
