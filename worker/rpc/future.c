/* SPDX-License-Identifier: Apache-2.0 */
/* future.c - see xrun/future.h and future.h: its life, its end, and who waits for that. */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/queue.h>

#include <xrun/tensor.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/stock.h"
#include "base/timeout.h"
#include "base/zalloc.h"
#include "wire/value/device_ops.h"
#include "worker/rpc/crew.h"
#include "worker/rpc/future_inner.h"
#include "worker/rpc/inside.h"

/* --- times ---------------------------------------------------------------- */

bool
future_deadline(int64_t timeout, int64_t *deadline)
{
	int64_t now;

	if (timeout < 0)
		return false;
	now = clock_now();
	*deadline = timeout > INT64_MAX - now ? INT64_MAX : now + timeout;
	return true;
}

int64_t
future_left(int64_t deadline)
{
	int64_t now;

	if (deadline == INT64_MAX)
		return XR_TIMEOUT_NEVER;
	now = clock_now();
	return deadline > now ? deadline - now : 0;
}

/* --- life ----------------------------------------------------------------- */

static struct xr_future *
alloc_future(uint32_t devices)
{
	struct xr_future *f = devices == 0 ?
		stock_get_zeroed(sizeof(*f)) :
		zalloc(sizeof(*f) + devices * sizeof(f->device[0]));

	if (f == NULL)
		return NULL;
	atomic_init(&f->refs, 1);
	atomic_init(&f->unsettled, 1);
	f->last = &f->first;
	TAILQ_INIT(&f->waits);
	return f;
}

struct xr_future *
future_new(const struct future_maker *maker, void *ctx)
{
	struct xr_future *f = alloc_future(0);

	if (f == NULL)
		return NULL;
	f->maker = maker;
	f->ctx = ctx;
	return f;
}

void
future_bind(struct xr_future *future, void *ctx)
{
	future->ctx = ctx;
}

XR_EXPORT struct xr_future *
xr_future_new(const struct xr_future_opts *opts)
{
	uint32_t n = opts != NULL ? opts->device_count : 0;
	struct xr_future *f = alloc_future(n);

	if (f == NULL || opts == NULL)
		return f;
	f->bound = n > 0;
	f->device_count = n;
	if (n > 0)
		memcpy(f->device, opts->devices, n * sizeof(f->device[0]));
	return f;
}

XR_EXPORT struct xr_future *
xr_future_ref(struct xr_future *future)
{
	atomic_fetch_add_explicit(&future->refs, 1, memory_order_relaxed);
	return future;
}

/* It never ended, and now it never will: what follows it is told. */
static void
end_dropped(struct xr_future *future)
{
	atomic_store(&future->refs, 1);
	future_fail(future, XR_E_CANCELLED, "what it waited for was dropped");
	xr_future_unref(future);
}

XR_EXPORT void
xr_future_unref(struct xr_future *future)
{
	if (future == NULL)
		return;
	/* Nobody makes one more of the last one, which is ours. */
	if (atomic_load_explicit(&future->refs, memory_order_acquire) != 1 &&
		atomic_fetch_sub_explicit(&future->refs, 1,
			memory_order_acq_rel) != 1)
		return;
	if (future->first != NULL) {
		end_dropped(future);
		return;
	}
	if (future->maker != NULL && future->maker->free != NULL)
		future->maker->free(future->ctx);
	xr_value_unref(future->result);
	if (future->device_count == 0)
		stock_put(future, sizeof(*future));
	else
		free(future);
}

/* --- ending --------------------------------------------------------------- */

/* Without memory even for an error, all such futures share one. */
static struct xr_value *
no_memory(void)
{
	static struct xr_value *_Atomic kept;
	struct xr_value *v = atomic_load(&kept), *made;

	if (v != NULL)
		return xr_value_ref(v);
	made = failure_new(XR_E_NOMEM, "out of memory");
	if (made != NULL && atomic_compare_exchange_strong(&kept, &v, made))
		return xr_value_ref(made);
	return made;
}

/* The waiters' memory is gone once they know. The lock is held. */
static void
wake_all(struct xr_future *f)
{
	struct wait_one *w;

	while ((w = TAILQ_FIRST(&f->waits)) != NULL) {
		TAILQ_REMOVE(&f->waits, w, list);
		waiter_done(&w->waiter);
	}
}

void
future_settle_one(struct xr_future *f)
{
	const struct future_maker *maker = f->maker;

	if (maker != NULL && maker->settled != NULL &&
		atomic_fetch_sub(&f->unsettled, 1) == 1)
		maker->settled(f->ctx);
}

/* As future_end(), by who has a reference: whoever sees it end may release his. */
static bool
settle(struct xr_future *f, struct xr_value *result, bool failed)
{
	struct then *first;

	if (result == NULL) {
		result = no_memory();
		failed = true;
	}
	future_lock(f);
	if (atomic_load_explicit(&f->state, memory_order_relaxed) !=
		FUTURE_PENDING) {
		future_unlock(f);
		xr_value_unref(result);
		return false;
	}
	f->result = result;
	atomic_store_explicit(&f->state, failed ? FUTURE_ERROR : FUTURE_VALUE,
		memory_order_release);
	first = f->first;
	f->first = NULL;
	wake_all(f);
	future_unlock(f);
	then_dispatch_all(f, first);
	future_settle_one(f);
	return true;
}

bool
future_end(struct xr_future *future, struct xr_value *result, bool failed)
{
	bool ended;

	xr_future_ref(future);
	ended = settle(future, result, failed);
	xr_future_unref(future);
	return ended;
}

void
future_finish(struct xr_future *future, struct xr_value *result, bool failed)
{
	settle(future, result, failed);
	xr_future_unref(future);
}

bool
future_fail(struct xr_future *future, enum xr_status status, const char *fmt,
	...)
{
	char text[512];
	va_list ap;

	if (future == NULL)
		return false;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return future_end(future, failure_new(status, "%s", text), true);
}

/* --- devices -------------------------------------------------------------- */

static bool
is_declared(const struct xr_future *f, const struct xr_tensor_desc *d)
{
	if (d->device_kind == XR_DEVICE_CPU)
		return true;
	for (uint32_t i = 0; i < f->device_count; i++)
		if (f->device[i].kind == d->device_kind &&
			f->device[i].index == d->device_index)
			return true;
	return false;
}

/* The first tensor on another device. */
static bool
find_stray(const struct xr_future *f, struct xr_value *v,
	struct xr_tensor_desc *d)
{
	d->size = sizeof(*d);
	if (xr_tensor_desc(v, d) == XR_OK)
		return !is_declared(f, d);
	for (size_t i = 0; i < xr_value_count(v); i++)
		if (find_stray(f, xr_value_at(v, i), d))
			return true;
	return false;
}

static void
put_declared(const struct xr_future *f, char *text, size_t cap)
{
	size_t n = (size_t)snprintf(text, cap, "cpu");

	for (uint32_t i = 0; i < f->device_count && n < cap; i++)
		n += (size_t)snprintf(text + n, cap - n, ", %s:%d",
			device_kind_name(f->device[i].kind),
			f->device[i].index);
}

/* --- public --------------------------------------------------------------- */

XR_EXPORT enum xr_status
xr_future_set(struct xr_future *future, struct xr_value *value)
{
	struct xr_tensor_desc stray;
	char declared[200];

	if (value == NULL)
		return XR_E_INVAL;
	if (!future->bound || !find_stray(future, value, &stray))
		return future_end(future, value, false) ? XR_OK : XR_E_STATE;
	put_declared(future, declared, sizeof(declared));
	xr_value_unref(value);
	return future_fail(future, XR_E_DEVICE,
		       "a tensor is on %s:%d, and declared were %s",
		       device_kind_name(stray.device_kind), stray.device_index,
		       declared) ?
		XR_E_DEVICE :
		XR_E_STATE;
}

XR_EXPORT enum xr_status
xr_future_fail(struct xr_future *future, struct xr_value *error)
{
	if (error == NULL || xr_value_kind(error) != XR_ERROR) {
		xr_value_unref(error);
		return XR_E_INVAL;
	}
	return future_end(future, error, true) ? XR_OK : XR_E_STATE;
}

XR_EXPORT enum xr_status
xr_future_fail_with(struct xr_future *future, enum xr_status status,
	const char *text)
{
	if (status == XR_OK)
		return XR_E_INVAL;
	return future_fail(future, status, "%s", text != NULL ? text : "") ?
		XR_OK :
		XR_E_STATE;
}

/* Who may wait has it ended when it was cancelled, either way. */
static void
await_end(struct xr_future *future)
{
	if (!lead_delivers())
		xr_future_wait(future, XR_TIMEOUT_NEVER, NULL, NULL);
}

XR_EXPORT enum xr_status
xr_future_cancel(struct xr_future *future)
{
	const struct future_maker *maker = future->maker;
	enum xr_status status = inside_not_forked(NULL);
	bool ends;

	if (status != XR_OK)
		return status;
	if (atomic_load(&future->state) != FUTURE_PENDING ||
		(maker != NULL && maker->goes_on))
		return XR_E_STATE;
	xr_future_ref(future);
	if (maker != NULL && maker->cancel != NULL)
		ends = maker->cancel(future, future->ctx);
	else
		ends = future_fail(future, XR_E_CANCELLED, "canceled");
	await_end(future);
	xr_future_unref(future);
	return ends ? XR_OK : XR_E_STATE;
}

XR_EXPORT bool
xr_future_done(const struct xr_future *future)
{
	return future_has_ended(future);
}

XR_EXPORT enum xr_status
xr_future_successful(const struct xr_future *future, bool *successful)
{
	if (!future_has_ended(future))
		return XR_E_STATE;
	*successful = atomic_load(&future->state) == FUTURE_VALUE;
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_future_value(struct xr_future *future, struct xr_value **value,
	struct xr_error *err)
{
	if (!future_has_ended(future))
		return fail(err, XR_E_AGAIN, "it has not ended");
	if (atomic_load(&future->state) == FUTURE_ERROR)
		return failure_status(future->result, err);
	if (value != NULL)
		*value = xr_value_ref(future->result);
	return XR_OK;
}

XR_EXPORT struct xr_value *
xr_future_error(struct xr_future *future)
{
	return future_has_ended(future) &&
			atomic_load(&future->state) == FUTURE_ERROR ?
		xr_value_ref(future->result) :
		NULL;
}

/* Its time was over; whoever ends it may be about to tell it. */
static void
delist(struct xr_future *f, struct wait_one *w)
{
	future_lock(f);
	if (!waiter_is_done(&w->waiter))
		TAILQ_REMOVE(&f->waits, w, list);
	future_unlock(f);
}

/* False: it ended meanwhile. */
static bool
enlist(struct xr_future *f, struct wait_one *w)
{
	bool pending;

	future_lock(f);
	pending = !future_has_ended(f);
	if (pending)
		TAILQ_INSERT_TAIL(&f->waits, w, list);
	future_unlock(f);
	return pending;
}

static bool
await(struct xr_future *f, struct waiter *w, int64_t deadline)
{
	if (f->maker != NULL && f->maker->wait != NULL)
		return f->maker->wait(w, deadline, f->ctx);
	return lead_wait(w, NULL, deadline);
}

bool
future_may_help(void)
{
	return !lead_delivers() && inside_not_forked(NULL) == XR_OK;
}

void
future_help(struct xr_future *future)
{
	const struct future_maker *maker = future->maker;

	if (maker == NULL || maker->help == NULL || !future_may_help())
		return;
	while (!future_has_ended(future) && maker->help(future, future->ctx))
		;
}

XR_EXPORT enum xr_status
xr_future_wait(struct xr_future *future, int64_t timeout,
	struct xr_value **value, struct xr_error *err)
{
	struct wait_one w = { 0 };
	enum xr_status status;
	int64_t deadline = INT64_MAX;

	if (timeout < 0) {
		status = timeout_argument(&timeout, XR_TIMEOUT_NEVER, err);
		if (status != XR_OK)
			return status;
	}
	if (future_has_ended(future))
		return xr_future_value(future, value, err);
	future_deadline(timeout, &deadline);
	if (timeout == 0)
		return fail(err, XR_E_TIMEOUT, "it has not ended");
	if (inside_not_forked(err) != XR_OK)
		return XR_E_STATE;
	if (lead_delivers())
		return fail(err, XR_E_STATE,
			"a short function or callback may not wait");
	if (lead_is_abandoned())
		return fail(err, XR_E_STATE,
			"after fork() nobody reads what would end it");
	if (timeout == XR_TIMEOUT_NEVER)
		future_help(future);
	if (enlist(future, &w)) {
		crew_wait_begin();
		if (!await(future, &w.waiter, deadline))
			delist(future, &w);
		crew_wait_end();
	}
	if (!future_has_ended(future))
		return fail(err, XR_E_TIMEOUT, "not ended after %lld ms",
			(long long)(timeout / NS_PER_MS));
	return xr_future_value(future, value, err);
}
