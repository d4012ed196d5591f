/* SPDX-License-Identifier: Apache-2.0 */
/* porter.c - see porter.h. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

#include "worker/queue/far/porter.h"

#define IDLE_S 2           /* then a thread goes */
#define STACK  (256 << 10) /* bytes */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;
	pthread_once_t once;
	STAILQ_HEAD(, porter_job)
	jobs;                   /* that nobody runs yet: never more than */
	uint32_t waiting, idle; /* those who have nothing to do */
} porters = { .lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT };

/* There are none of them. */
static void
in_child(void)
{
	pthread_mutex_init(&porters.lock, NULL);
	STAILQ_INIT(&porters.jobs);
	porters.waiting = porters.idle = 0;
}

static void
begin(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&porters.more, &attr);
	pthread_condattr_destroy(&attr);
	STAILQ_INIT(&porters.jobs);
	pthread_atfork(NULL, NULL, in_child);
}

/* The lock is held. NULL: nothing came for a while. */
static struct porter_job *
next_job(void)
{
	struct porter_job *job;
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += IDLE_S;
	porters.idle++;
	while (porters.waiting == 0 && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&porters.more, &porters.lock,
			&until);
	porters.idle--;
	job = STAILQ_FIRST(&porters.jobs);
	if (job == NULL)
		return NULL;
	STAILQ_REMOVE_HEAD(&porters.jobs, list);
	porters.waiting--;
	return job;
}

static void *
run(void *first)
{
	struct porter_job *job = first;

	while (job != NULL) {
		job->run(job);
		pthread_mutex_lock(&porters.lock);
		job = next_job();
		pthread_mutex_unlock(&porters.lock);
	}
	return NULL;
}

static bool
start(struct porter_job *job)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int sys;

	if (pthread_attr_init(&attr) != 0)
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	sys = pthread_create(&thread, &attr, run, job);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return sys == 0;
}

bool
porter_post(struct porter_job *job)
{
	bool is_taken;

	pthread_once(&porters.once, begin);
	pthread_mutex_lock(&porters.lock);
	is_taken = porters.idle > porters.waiting;
	if (is_taken) {
		STAILQ_INSERT_TAIL(&porters.jobs, job, list);
		porters.waiting++;
		pthread_cond_signal(&porters.more);
	}
	pthread_mutex_unlock(&porters.lock);
	return is_taken || start(job);
}
