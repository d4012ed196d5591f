/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callback.c - the thread that calls what the program wants to hear of results by.
 *
 * There is one for all pools of the process, from the first callback on, until the last
 * pool is gone and it has nothing more to do. Who frees a pool waits for its callbacks; of
 * the last one until the thread is over, too, or goes on because there is a pool again. A
 * callback that ends it (pthread_exit(3)) has ended, and nothing else: another thread takes
 * its place.
 */
#include <pthread.h>

#include "base/status.h"
#include "base/thread.h"
#include "worker/pool/job.h"
#include "worker/rpc/future.h"

TAILQ_HEAD(work_list, work);

static struct {
	pthread_mutex_t lock;
	pthread_cond_t come;
	pthread_cond_t over; /* a callback is, or the thread; or there is a pool
			      * again */
	struct work_list list;
	uint32_t pools;
	bool runs; /* there is a thread, @thread */
	bool left; /* there was one, which is to be joined */
	pthread_t thread;
} c = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.come = PTHREAD_COND_INITIALIZER,
	.over = PTHREAD_COND_INITIALIZER,
	.list = TAILQ_HEAD_INITIALIZER(c.list),
};

/* With the lock held. */
static bool
is_us(void)
{
	return c.runs && pthread_equal(c.thread, pthread_self());
}

/* With the lock held: nobody runs callbacks any more. */
static void
stop(bool left)
{
	c.runs = false;
	c.left = left;
	pthread_cond_broadcast(&c.over);
}

/* With the lock held, which who is joined needs no more. */
static void
join(void)
{
	if (c.left)
		pthread_join(c.thread, NULL);
	c.left = false;
}

/* NULL: it is over. */
static struct work *
next_work(void)
{
	struct work *work;

	pthread_mutex_lock(&c.lock);
	while (TAILQ_EMPTY(&c.list) && c.pools > 0)
		pthread_cond_wait(&c.come, &c.lock);
	work = TAILQ_FIRST(&c.list);
	if (work != NULL)
		TAILQ_REMOVE(&c.list, work, list);
	else
		stop(true);
	pthread_mutex_unlock(&c.lock);
	return work;
}

static void *run(void *unused);

/* With the lock held. */
static bool
start(void)
{
	join();
	c.runs = thread_begin(&c.thread, run, NULL) == 0;
	return c.runs;
}

/* A callback did not return. */
static void
ended(void *work)
{
	struct work *w = work;

	if (w->ended_thread != NULL)
		w->ended_thread(w);
	pthread_mutex_lock(&c.lock);
	pthread_detach(c.thread);
	stop(false);
	if (!TAILQ_EMPTY(&c.list)) /* else who adds something does */
		start();
	pthread_mutex_unlock(&c.lock);
}

static void *
run(void *unused)
{
	struct work *work;

	(void)unused;
	while ((work = next_work()) != NULL) {
		pthread_cleanup_push(ended, work);
		work->run(work);
		pthread_cleanup_pop(0);
	}
	return NULL;
}

bool
callback_work(struct work *work)
{
	bool ok;

	pthread_mutex_lock(&c.lock);
	ok = c.pools > 0 && (c.runs || start());
	if (ok) {
		TAILQ_INSERT_TAIL(&c.list, work, list);
		pthread_cond_signal(&c.come);
	}
	pthread_mutex_unlock(&c.lock);
	return ok;
}

static struct job *
job_of(struct work *work)
{
	return (struct job *)((char *)work - offsetof(struct job, work));
}

static void
settle(struct work *work)
{
	struct job *job = job_of(work);

	job_settle(job);
	pthread_mutex_lock(&c.lock);
	job->pool->callbacks--;
	pthread_cond_broadcast(&c.over);
	pthread_mutex_unlock(&c.lock);
	job_unref(job);
}

static void
call(struct work *work)
{
	struct job *job = job_of(work);

	if (job->failed)
		job->error_callback(job->result, job->ctx);
	else
		job->callback(job->result, job->ctx);
	settle(work);
}

void
callback_post(struct job *job)
{
	if (job->result == NULL) {
		job->result = failure_new(XR_E_NOMEM, "out of memory");
		job->failed = true;
	}
	job_ref(job);
	pthread_mutex_lock(&c.lock);
	job->pool->callbacks++;
	pthread_mutex_unlock(&c.lock);
	job->work.run = call;
	job->work.ended_thread = settle;
	if (job->result == NULL || !callback_work(&job->work))
		settle(&job->work);
}

void
callback_come(void)
{
	pthread_mutex_lock(&c.lock);
	c.pools++;
	pthread_cond_broadcast(&c.over);
	pthread_mutex_unlock(&c.lock);
}

void
callback_leave(const struct xr_pool *pool)
{
	pthread_mutex_lock(&c.lock);
	while (pool->callbacks > 0 && !is_us())
		pthread_cond_wait(&c.over, &c.lock);
	c.pools--;
	pthread_cond_signal(&c.come);
	while (c.pools == 0 && c.runs && !is_us())
		pthread_cond_wait(&c.over, &c.lock);
	join();
	pthread_mutex_unlock(&c.lock);
}

void
callback_forked(void)
{
	pthread_mutex_init(&c.lock, NULL);
	pthread_cond_init(&c.come, NULL);
	pthread_cond_init(&c.over, NULL);
	TAILQ_INIT(&c.list);
	c.pools = 0;
	c.runs = c.left = false;
}
