/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook.c - see xrun/pool.h: results, where the program takes them from the queue.
 *
 * By whoever leads (take.c). A result that comes is an item with what is needed to read
 * it; who gave it has nothing more to do with it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/timeout.h"
#include "worker/pool/job.h"
#include "worker/pool/take.h"
#include "worker/rpc/future.h"

static void
describe(struct xr_pool *pool, struct xr_pool_item *item,
	const struct result_head *head)
{
	const struct task *t;

	item->info.size = sizeof(item->info);
	item->info.worker = head->place;
	if (head->index >= pool->conf.tasks)
		return;
	pthread_mutex_lock(&pool->lock);
	t = &pool->task[head->index];
	if (t->job != NULL && t->gen == head->gen) {
		item->info.count = t->count;
		item->info.first = t->first;
		item->info.job = t->job->number;
		item->info.func = t->job->func->name;
	}
	pthread_mutex_unlock(&pool->lock);
}

static void
item_free(struct xr_pool_item *item)
{
	free(item->data);
	xr_value_unref(item->value);
	free(item);
}

/* What is there. XR_E_AGAIN. */
static enum xr_status
look(struct xr_pool *pool, struct xr_pool_item *item, struct xr_error *err)
{
	struct taker taker = { .buf = &item->buf };
	enum xr_status status;
	struct result_head head = { 0 };
	struct xr_value *list;
	size_t count = 1;

	if (pool->conf.mode == XR_ENC_SHARE) {
		if (xr_queue_empty(pool->out))
			return XR_E_AGAIN;
		status = xr_queue_get(pool->out, &item->value, 0, err);
		if (status == XR_OK)
			share_head(item->value, &head, sizeof(head), &list);
	} else {
		status = take_now(pool->out, &taker, &count, err);
		item->data = taker.made;
		if (status == XR_OK && item->buf.len >= sizeof(head))
			memcpy(&head, item->data, sizeof(head));
	}
	if (status == XR_OK)
		describe(pool, item, &head);
	return status == XR_E_TIMEOUT ? XR_E_AGAIN : status;
}

/* Also when somebody has to look at something else (take_nudge()). */
XR_EXPORT enum xr_status
xr_pool_outqueue_get(struct xr_pool *pool, int64_t timeout,
	struct xr_pool_item **item, struct xr_error *err)
{
	struct xr_pool_item *it = calloc(1, sizeof(*it));
	uint32_t nudges = atomic_load(&pool->nudges);
	enum xr_status status;
	struct spell s;

	if (it == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	status = timeout_argument(&timeout, XR_TIMEOUT_NEVER, err);
	if (status != XR_OK) {
		free(it);
		return status;
	}
	spell_init(&s, pool->out->hall, &pool->out->hall->head->items_wake,
		timeout);
	while ((status = look(pool, it, err)) == XR_E_AGAIN) {
		status = atomic_load(&pool->nudges) != nudges || timeout == 0 ?
			XR_E_TIMEOUT :
			spell_turn(&s, err);
		if (status != XR_OK)
			break;
	}
	spell_end(&s);
	if (status == XR_OK)
		*item = it;
	else
		item_free(it);
	return status;
}

bool
hook_take(struct xr_pool *pool, int64_t timeout)
{
	struct xr_pool_item *item = NULL;
	struct xr_error err = { 0 };
	enum xr_status status;

	if (atomic_load(&pool->out_is_over))
		return false;
	status = pool->ops.outqueue_get(pool, timeout, &item, pool->ops.ctx,
		&err);
	if (status == XR_OK && item != NULL) {
		if (item->value != NULL)
			take_shared(pool, item->value);
		else
			take_result(pool, item->data, item->buf.len);
		item_free(item);
		feed_hungry(pool);
		return true;
	}
	if (status != XR_E_TIMEOUT && status != XR_OK) {
		atomic_store(&pool->out_is_over, true);
		pool_give_up(pool,
			failure_new(status, "%s",
				err.text[0] != '\0' ? err.text :
						      xr_status_text(status)));
	}
	return false;
}
