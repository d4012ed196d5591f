/* SPDX-License-Identifier: Apache-2.0 */
/* future_then.c - see xrun/future.h: what is called when a future has ended. */
#include <stdlib.h>

#include "base/status.h"
#include "base/zalloc.h"
#include "worker/rpc/crew.h"
#include "worker/rpc/future_inner.h"

struct then {
	struct work work;                 /* of one that may wait */
	struct later later;               /* of one that is short */
	struct xr_future *parent, *child; /* references; child: or NULL */
	xr_then_fn *fn;
	xr_done_fn *done; /* instead of @fn */
	void *ctx;
	bool is_short;
	bool counted; /* @parent is not settled before it has run */
	struct then *next;
};

/* The child ends with the parent's own error where @fn handed that on. */
static struct xr_value *
error_of(struct xr_future *parent, enum xr_status status,
	const struct xr_error *err)
{
	struct xr_failure f = { .size = sizeof(f) };

	if (atomic_load(&parent->state) == FUTURE_ERROR &&
		xr_value_failure(parent->result, &f) == XR_OK &&
		f.status == status)
		return xr_value_ref(parent->result);
	return failure_new(status, "%s",
		err->status == status ? err->text : xr_status_text(status));
}

static void
then_over(struct then *t)
{
	xr_future_unref(t->child);
	if (t->counted)
		future_settle_one(t->parent);
	xr_future_unref(t->parent);
	free(t);
}

static void
call_then(struct then *t)
{
	struct xr_value *result = NULL;
	struct xr_error err = { 0 };
	enum xr_status status = XR_OK;

	if (t->done != NULL)
		t->done(t->parent, t->ctx);
	else
		status = t->fn(t->parent, t->ctx, &result, &err);
	if (t->child != NULL && status == XR_OK)
		future_end(t->child,
			result != NULL ? result : xr_value_new_nil(), false);
	else if (t->child != NULL)
		future_end(t->child, error_of(t->parent, status, &err), true);
	if (t->child == NULL || status != XR_OK)
		xr_value_unref(result);
	then_over(t);
}

static struct then *
then_of(struct work *work)
{
	return (struct then *)((char *)work - offsetof(struct then, work));
}

static void
run_work(struct work *work)
{
	call_then(then_of(work));
}

static void
thread_ended(struct work *work)
{
	struct then *t = then_of(work);

	if (t->child != NULL)
		future_fail(t->child, XR_E_STATE,
			"a callback has ended its thread (pthread_exit), which is the agent's");
	then_over(t);
}

static void
run_later(struct later *later)
{
	call_then((struct then *)((char *)later -
		offsetof(struct then, later)));
}

static bool
post(const struct future_maker *maker, struct work *work)
{
	return crew_post(work) ||
		(maker != NULL && maker->post != NULL && maker->post(work));
}

/* Without a crew, which only an agent has, it is done here. */
static void
dispatch(struct then *t)
{
	t->work.run = run_work;
	t->work.ended_thread = thread_ended;
	t->later.run = run_later;
	t->later.waits = !t->is_short;
	if (t->is_short || !post(t->parent->maker, &t->work))
		lead_later(&t->later);
}

/* In the order of registration. */
void
then_dispatch_all(struct xr_future *f, struct then *t)
{
	struct then *next;

	for (; t != NULL; t = next) {
		next = t->next;
		xr_future_ref(f);
		dispatch(t);
	}
}

/* False: it has ended. */
static bool
append(struct xr_future *f, struct then *t)
{
	bool pending;

	future_lock(f);
	pending = !future_has_ended(f);
	if (pending) {
		t->counted = true;
		*f->last = t;
		f->last = &t->next;
		atomic_fetch_add(&f->unsettled, 1);
	}
	future_unlock(f);
	return pending;
}

/* Until the parent ends it keeps the callback, and not the other way round. */
static void
follow(struct xr_future *parent, struct then *t)
{
	t->parent = parent;
	if (append(parent, t))
		return;
	xr_future_ref(parent);
	call_then(t);
}

XR_EXPORT enum xr_status
xr_future_then(struct xr_future *future, xr_then_fn *fn, void *ctx,
	uint32_t flags, struct xr_future **child)
{
	struct then *t;

	if (fn == NULL || (flags & ~(uint32_t)XR_SHORT) != 0)
		return XR_E_INVAL;
	t = zalloc(sizeof(*t));
	if (t == NULL)
		return XR_E_NOMEM;
	t->fn = fn;
	t->ctx = ctx;
	t->is_short = (flags & XR_SHORT) != 0;
	if (child != NULL) {
		t->child = future_new(NULL, NULL);
		if (t->child == NULL) {
			free(t);
			return XR_E_NOMEM;
		}
		*child = xr_future_ref(t->child);
	}
	follow(future, t);
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_future_on_done(struct xr_future *future, xr_done_fn *fn, void *ctx)
{
	struct then *t;

	if (fn == NULL)
		return XR_E_INVAL;
	t = zalloc(sizeof(*t));
	if (t == NULL)
		return XR_E_NOMEM;
	t->done = fn;
	t->ctx = ctx;
	t->is_short = true;
	follow(future, t);
	return XR_OK;
}
