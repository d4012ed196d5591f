/* SPDX-License-Identifier: Apache-2.0 */
/* help.c - see help.h. */
#include <stdlib.h>

#include "worker/pool/help.h"
#include "worker/pool/thread.h"

/* Not on the stack: the function may end its thread; and not freed before the seat: who has
 * kept the call may ask late whether it was cancelled. */
struct help {
	struct stint stint;
	struct task loose; /* of items that no task has */
	struct help *next;
};

/* NULL: no seat of it is ours, or there is no memory. */
static struct help *
help_new(const struct xr_pool *pool)
{
	struct seat *seat;
	struct help *h;

	if (pool_forked(pool, NULL) != XR_OK || !seat_is_ours(pool))
		return NULL;
	seat = &pool->seats[gang_seat(pool->gang)];
	h = seat->helps;
	if (h == NULL)
		return aligned_alloc(_Alignof(struct help), sizeof(*h));
	seat->helps = h->next;
	return h;
}

static void
put_back(struct seat *seat, struct help *h)
{
	h->next = seat->helps;
	seat->helps = h;
}

void
help_free(struct stint *s)
{
	put_back(s->seat,
		(struct help *)((char *)s - offsetof(struct help, stint)));
}

void
help_fini(struct seat *seat)
{
	struct help *h;

	while ((h = seat->helps) != NULL) {
		seat->helps = h->next;
		free(h);
	}
}

/* Nobody has begun it, nor will. */
static bool
claim(struct task *t)
{
	uint32_t waits = TASK_WAITS;

	return atomic_compare_exchange_strong(&t->held, &waits, TASK_HELPED);
}

static bool
help(struct help *h, struct xr_pool *pool, struct task *t)
{
	if (t == NULL) {
		put_back(&pool->seats[gang_seat(pool->gang)], h);
		return false;
	}
	stint_begin_inside(&h->stint, pool, t);
	thread_run(&h->stint);
	help_free(&h->stint);
	thread_tidy(pool);
	return true;
}

bool
help_call(struct task *t, const struct job *job, const struct xr_future *future)
{
	struct xr_pool *pool = job->pool;
	struct help *h = help_new(pool);
	bool is_ours;

	if (h == NULL)
		return false;
	pthread_mutex_lock(&pool->lock);
	is_ours = job->future == future && !atomic_load(&job->ended) &&
		t->job == job && claim(t);
	pthread_mutex_unlock(&pool->lock);
	return help(h, pool, is_ours ? t : NULL);
}

/* Has it what who waits for @job has to have first? Of a map that is all of it, of an iterator
 * with order one item. */
static bool
is_due(const struct job *job, size_t first, size_t count)
{
	return job->kind != JOB_ITER ||
		(first <= job->given && job->given < first + count);
}

/* The first that was posted and is not begun. With the lock held. */
static struct task *
claim_first(const struct job *job)
{
	struct xr_pool *pool = job->pool;
	struct task *first;

	do {
		uint32_t left = job->tasks;

		first = NULL;
		for (uint32_t i = 0; i < pool->conf.tasks && left > 0; i++) {
			struct task *t = &pool->task[i];

			if (t->job != job)
				continue;
			left--;
			if (atomic_load(&t->held) == TASK_WAITS &&
				is_due(job, t->first, t->count) &&
				(first == NULL || t->first < first->first))
				first = t;
		}
	} while (first != NULL && !claim(first));
	return first;
}

/* With the lock held. Of a map, what no task has is had for less. */
static struct task *
find(struct job *job, struct task *loose)
{
	struct task *t = NULL;

	if (atomic_load(&job->ended))
		return NULL;
	if (job->item != NULL)
		t = claim_first(job);
	if (t == NULL && is_due(job, job->next, job->chunk) &&
		feed_loose(job, loose))
		return loose;
	return t != NULL || job->item != NULL ? t : claim_first(job);
}

bool
help_job(struct job *job)
{
	struct xr_pool *pool = job->pool;
	struct help *h = help_new(pool);
	struct task *t;

	if (h == NULL)
		return false;
	pthread_mutex_lock(&pool->lock);
	t = find(job, &h->loose);
	pthread_mutex_unlock(&pool->lock);
	return help(h, pool, t);
}
