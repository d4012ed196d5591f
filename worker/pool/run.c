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
	const struct hand_call call = {
		.func = plan->func,
		.args = args,
		.named = plan->named,
	};
	bool ok;

	if (args == NULL) {
		*result = failure_new(XR_E_NOMEM, "out of memory");
		return false;
	}
	ok = hand_run(h, &call, result);
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

/* The arguments of a call of a map: plan->spare. False: no memory. */
static bool
arrange(struct run_plan *plan, struct xr_value *item)
{
	if (plan->spare != NULL && many_swap(plan->spare, plan->at, item))
		return true;
	run_end(plan);
	plan->spare = begin(plan);
	plan->at = xr_value_count(plan->spare);
	return plan->spare != NULL &&
		xr_value_append(plan->spare, xr_value_ref(item)) == XR_OK;
}

bool
run_item(struct hand *h, struct run_plan *plan, struct xr_value *item,
	struct xr_value **result)
{
	struct hand_call call = { .func = plan->func };

	if (plan->form == ITEM_STARMAP)
		return run(h, plan, spread(plan, item), result);
	if (!arrange(plan, item)) {
		*result = failure_new(XR_E_NOMEM, "out of memory");
		return false;
	}
	call.args = plan->spare;
	return hand_run(h, &call, result);
}

void
run_end(struct run_plan *plan)
{
	xr_value_unref(plan->spare);
	plan->spare = NULL;
}
