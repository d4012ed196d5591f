/* SPDX-License-Identifier: Apache-2.0 */
/*
 * iter.c - see xrun/pool.h: results one by one.
 *
 * Who wants the next one has it if it is there; so of several none has a turn that it
 * could lose by being late.
 */
#include <stdlib.h>

#include "base/status.h"
#include "base/timeout.h"
#include "worker/pool/help.h"
#include "worker/pool/iter.h"
#include "worker/pool/job.h"
#include "worker/rpc/future.h"

struct xr_pool_iter {
	struct job *job; /* a reference */
};

enum xr_status
iter_new(struct job *job, struct xr_pool_iter **iter, struct xr_error *err)
{
	struct xr_pool_iter *it = calloc(1, sizeof(*it));

	if (it == NULL) {
		job_nobody(job);
		job_unref(job);
		return fail(err, XR_E_NOMEM, "out of memory");
	}
	it->job = job;
	*iter = it;
	return XR_OK;
}

XR_EXPORT void
xr_pool_iter_free(struct xr_pool_iter *iter)
{
	if (iter == NULL)
		return;
	if (pool_forked(iter->job->pool, NULL) == XR_OK)
		job_nobody(iter->job);
	job_unref(iter->job);
	free(iter);
}

/* An ERROR, as a status; the reference is handed on. */
static enum xr_status
give_error(struct xr_value *error, struct xr_value **value,
	struct xr_error *err)
{
	if (value != NULL)
		*value = xr_value_ref(error);
	return failure_status(error, err);
}

/* The one that is due, with the lock held. XR_E_AGAIN: it is not there. */
static enum xr_status
look(struct job *job, struct xr_value **value, struct xr_error *err)
{
	size_t i = job->given;

	if (job->given == job->count)
		return fail(err, XR_E_END, "there are no more");
	if (job->order != NULL && job->given < job->came)
		i = job->order[job->given];
	else if (job->order != NULL || !job->shown[i]) {
		if (!job->ended || job->error == NULL)
			return XR_E_AGAIN;
		job->given++;
		return give_error(job->error, value, err);
	}
	job->given++;
	if (job->item[i] == JOB_ERROR)
		return give_error(job->value[i], value, err);
	if (value != NULL)
		*value = job->value[i];
	else
		xr_value_unref(job->value[i]);
	job->value[i] = NULL;
	return XR_OK;
}

/* With the lock held, and given back meanwhile. */
static bool
help(struct job *job)
{
	bool is_some;

	if (!future_may_help())
		return false;
	pthread_mutex_unlock(&job->pool->lock);
	is_some = help_job(job);
	pthread_mutex_lock(&job->pool->lock);
	return is_some;
}

XR_EXPORT enum xr_status
xr_pool_iter_next(struct xr_pool_iter *iter, int64_t timeout,
	struct xr_value **value, struct xr_error *err)
{
	struct job *job = iter->job;
	struct xr_pool *pool = job->pool;
	struct room r;
	enum xr_status status =
		timeout_argument(&timeout, XR_TIMEOUT_NEVER, err);
	int64_t deadline;
	bool in_time = true, helps = timeout == XR_TIMEOUT_NEVER;

	if (value != NULL)
		*value = NULL;
	if (status == XR_OK)
		status = pool_forked(pool, err);
	if (status != XR_OK)
		return status;
	future_deadline(timeout, &deadline);
	pthread_mutex_lock(&pool->lock);
	while ((status = look(job, value, err)) == XR_E_AGAIN && in_time) {
		if (helps) {
			helps = help(job);
			continue;
		}
		r = (struct room){ 0 };
		in_time = take_await_in(pool, &job->takers, &r, deadline);
		helps = timeout == XR_TIMEOUT_NEVER;
	}
	pthread_mutex_unlock(&pool->lock);
	return status == XR_E_AGAIN ?
		fail(err, XR_E_TIMEOUT, "the next one is not there yet") :
		status;
}
