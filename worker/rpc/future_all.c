/* SPDX-License-Identifier: Apache-2.0 */
/* future_all.c - several futures as one; see xrun/future.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/timeout.h"
#include "worker/rpc/future.h"

struct all;

struct place {
	struct all *all;
	struct xr_value *value;
};

/* Lives until all of them have ended: each has a callback that refers to it. */
struct all {
	_Atomic size_t refs, left;
	struct xr_future *future;
	size_t count;
	struct place place[]; /* [count] */
};

static void
drop(struct all *a)
{
	if (atomic_fetch_sub(&a->refs, 1) != 1)
		return;
	for (size_t i = 0; i < a->count; i++)
		xr_value_unref(a->place[i].value);
	xr_future_unref(a->future);
	free(a);
}

/* In the order of the list. */
static void
end_all(struct all *a)
{
	struct xr_value *list = xr_value_new_list();
	enum xr_status status = list != NULL ? XR_OK : XR_E_NOMEM;

	for (size_t i = 0; i < a->count && status == XR_OK; i++)
		status = xr_value_append(list, xr_value_ref(a->place[i].value));
	if (status != XR_OK) {
		xr_value_unref(list);
		list = NULL;
	}
	future_end(a->future, list, false);
}

static void
one_ended(struct xr_future *future, void *ctx)
{
	struct place *p = ctx;
	struct all *a = p->all;
	struct xr_value *error = xr_future_error(future);

	if (error != NULL)
		future_end(a->future, error, true);
	else
		xr_future_value(future, &p->value, NULL);
	/* With an error among them it has ended already. */
	if (atomic_fetch_sub(&a->left, 1) == 1 && !xr_future_done(a->future))
		end_all(a);
	drop(a);
}

static bool
are_there(struct xr_future *const *futures, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (futures == NULL || futures[i] == NULL)
			return false;
	return true;
}

XR_EXPORT enum xr_status
xr_future_all(struct xr_future *const *futures, size_t count,
	struct xr_future **all)
{
	enum xr_status status = XR_OK;
	struct xr_future *future;
	struct all *a;

	if (!are_there(futures, count))
		return XR_E_INVAL;
	a = calloc(1, sizeof(*a) + count * sizeof(a->place[0]));
	if (a != NULL)
		a->future = future_new(NULL, NULL);
	if (a == NULL || a->future == NULL) {
		free(a);
		return XR_E_NOMEM;
	}
	a->count = count;
	atomic_init(&a->refs, 1);
	atomic_init(&a->left, count);
	future = xr_future_ref(a->future);
	for (size_t i = 0; i < count && status == XR_OK; i++) {
		a->place[i].all = a;
		atomic_fetch_add(&a->refs, 1);
		status = xr_future_on_done(futures[i], one_ended, &a->place[i]);
		if (status != XR_OK)
			drop(a);
	}
	if (count == 0)
		end_all(a);
	drop(a);
	if (status == XR_OK)
		*all = future;
	else
		xr_future_unref(future);
	return status;
}

static void
unref(void *all)
{
	xr_future_unref(all);
}

/* What is called so may end the thread. */
static void
help_all(struct xr_future *const *futures, size_t count, struct xr_future *all)
{
	pthread_cleanup_push(unref, all);
	for (size_t i = 0; i < count && !xr_future_done(all); i++)
		future_help(futures[i]);
	pthread_cleanup_pop(0);
}

XR_EXPORT enum xr_status
xr_future_wait_all(struct xr_future *const *futures, size_t count,
	int64_t timeout, struct xr_value **values, struct xr_error *err)
{
	struct xr_future *all = NULL;
	enum xr_status status =
		timeout_argument(&timeout, XR_TIMEOUT_NEVER, err);

	if (status != XR_OK)
		return status;
	status = xr_future_all(futures, count, &all);
	if (status != XR_OK)
		return fail(err, status,
			status == XR_E_INVAL ? "a future that is NULL" :
					       "out of memory");
	if (timeout == XR_TIMEOUT_NEVER)
		help_all(futures, count, all);
	status = xr_future_wait(all, timeout, values, err);
	xr_future_unref(all);
	return status;
}
