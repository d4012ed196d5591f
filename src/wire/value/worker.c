/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - see xrun/value.h: members, functions by their names, and references
 * (xrun/rref.h). */
#include <string.h>

#include <xrun/rpc.h>
#include <xrun/rref.h>

#include "base/status.h"
#include "wire/value/node.h"
#include "wire/value/value_hooks.h"

/* --- members --------------------------------------------------------------- */

bool
worker_name_valid(struct span name)
{
	return name.at != NULL && name.len >= 1 &&
		name.len <= XR_WORKER_NAME_MAX && text_valid(name.at, name.len);
}

struct xr_value *
worker_new(struct span name, uint32_t id)
{
	struct value_worker *w;

	if (!worker_name_valid(name))
		return NULL;
	w = node_new(XR_WORKER, sizeof(*w) + name.len + 1);
	if (w == NULL)
		return NULL;
	w->id = id;
	memcpy(w->name, name.at, name.len);
	w->name[name.len] = '\0';
	return &w->head;
}

XR_EXPORT struct xr_value *
xr_value_new_worker(const char *name, uint32_t id)
{
	return worker_new(span_of(name), id);
}

XR_EXPORT const char *
xr_value_worker(const struct xr_value *value, uint32_t *id)
{
	const struct value_worker *w = (const struct value_worker *)value;

	if (!node_is(value, XR_WORKER))
		return NULL;
	if (id != NULL)
		*id = w->id;
	return w->name;
}

/* --- functions ------------------------------------------------------------- */

bool
func_name_valid(struct span name)
{
	return name.at != NULL && name.len >= 1 && name.len <= VALUE_NAME_MAX &&
		text_valid(name.at, name.len);
}

struct xr_value *
func_new(struct span name, struct xr_value *bound)
{
	struct value_func *f = NULL;
	uint8_t depth = 0;

	if (func_name_valid(name) &&
		(bound == NULL || node_above(bound, &depth)))
		f = node_new(XR_FUNC, sizeof(*f) + name.len + 1);
	if (f == NULL) {
		xr_value_unref(bound);
		return NULL;
	}
	f->head.depth = depth;
	f->bound = bound;
	if (bound != NULL)
		node_held(bound);
	memcpy(f->name, name.at, name.len);
	f->name[name.len] = '\0';
	return &f->head;
}

void
func_fini(struct xr_value *value)
{
	xr_value_unref(((struct value_func *)value)->bound);
}

XR_EXPORT struct xr_value *
xr_fn_bind(const char *name, struct xr_value *bound)
{
	return func_new(span_of(name), bound);
}

XR_EXPORT const char *
xr_value_func(const struct xr_value *value, struct xr_value **bound)
{
	const struct value_func *f = (const struct value_func *)value;

	if (!node_is(value, XR_FUNC))
		return NULL;
	if (bound != NULL)
		*bound = f->bound;
	return f->name;
}

/* --- references ------------------------------------------------------------ */

static _Atomic(const struct value_rref_ops *) rref_ops;

void
value_set_rref_ops(const struct value_rref_ops *ops)
{
	atomic_store_explicit(&rref_ops, ops, memory_order_release);
}

const struct value_rref_ops *
value_rref_ops(void)
{
	return atomic_load_explicit(&rref_ops, memory_order_acquire);
}

XR_EXPORT struct xr_value *
xr_value_new_rref(struct xr_rref *rref)
{
	const struct value_rref_ops *ops = value_rref_ops();
	struct value_rref *r;

	if (rref == NULL || ops == NULL)
		return NULL;
	r = node_new(XR_RREF, sizeof(*r));
	if (r == NULL)
		return NULL;
	r->rref = ops->ref(rref);
	return &r->head;
}

void
rref_fini(struct xr_value *value)
{
	const struct value_rref_ops *ops = value_rref_ops();

	if (ops != NULL)
		ops->unref(((struct value_rref *)value)->rref);
}

XR_EXPORT struct xr_rref *
xr_value_rref(const struct xr_value *value)
{
	return node_is(value, XR_RREF) ? ((struct value_rref *)value)->rref :
					 NULL;
}
