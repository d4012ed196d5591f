/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callback.c - the thread that calls what the program wants to hear of results by.
 *
 * There is one for all pools of the process, from the first callback on, until the last
 * pool is gone and it has nothing more to do. A callback that ends it (pthread_exit(3))
 * has ended, and nothing else: another thread takes its place.
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
	struct work_list list;
	uint32_t pools;
	bool runs; /* there is a thread, @thread */
	pthread_t thread;
} c = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.come = PTHREAD_COND_INITIALIZER,
	.list = TAILQ_HEAD_INITIALIZER(c.list),
};

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
	pthread_mutex_unlock(&c.lock);
	return work;
}

static void *run(void *unused);

/* With the lock held. */
static bool
start(void)
{
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
	pthread_mutex_unlock(&c.lock);
}

void
callback_leave(void)
{
	pthread_t thread;
	bool ends;

	pthread_mutex_lock(&c.lock);
	ends = --c.pools == 0 && c.runs;
	thread = c.thread;
	if (ends) {
		c.runs = false;
		pthread_cond_signal(&c.come);
	}
	pthread_mutex_unlock(&c.lock);
	if (!ends)
		return;
	if (pthread_equal(thread, pthread_self()))
		pthread_detach(thread);
	else
		pthread_join(thread, NULL);
}

void
callback_forked(void)
{
	pthread_mutex_init(&c.lock, NULL);
	pthread_cond_init(&c.come, NULL);
	TAILQ_INIT(&c.list);
	c.pools = 0;
	c.runs = false;
}
