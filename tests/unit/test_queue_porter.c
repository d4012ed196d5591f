/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_queue_porter.c - threads that wait for others (porter.h): how many there are, and
 * when one is used again.
 */
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "tests/kit/entries.h"
#include "tests/unit/forked.h"
#include "tests/unit/seccomp.h"
#include "worker/queue/far/porter.h"

TestSuite(queue_porter, .timeout = 60);

struct errand {
	struct porter_job job;
	sem_t begun, may_end;
	pid_t tid;
	_Atomic bool is_over; /* its thread is idle */
	bool is_signalled;    /* signals reach its thread */
};

static __thread struct errand *mine; /* that this thread has run last */

/* An idle thread waits until @expired; then its time is over. */
static _Atomic bool expired;
static time_t begun; /* seconds, at the first job of this process */

/* A thread that was woken keeps the lock while @is_stopped, and says so. */
static _Atomic bool is_stopped, has_stopped;

int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
	const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
	const struct timespec *until);

int
__wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
	const struct timespec *until)
{
	struct timespec now, later = *until;
	int rc;

	/* Who posts the next job gets the lock once this thread waits. */
	if (mine != NULL)
		mine->is_over = true;
	mine = NULL;
	clock_gettime(CLOCK_MONOTONIC, &now);
	EXPECT(until->tv_sec - 2 >= begun && until->tv_sec - 2 <= now.tv_sec);
	if (expired)
		return ETIMEDOUT;
	later.tv_sec += 1000;
	rc = __real_pthread_cond_timedwait(cond, lock, &later);
	while (is_stopped) {
		has_stopped = true;
		sched_yield();
	}
	return rc;
}

/* Nobody joins it, and it needs little memory. */
static void
expect_attributes(void)
{
	pthread_attr_t attr;
	size_t stack = 0;
	int detached = 0;

	NEED(pthread_getattr_np(pthread_self(), &attr) == 0);
	pthread_attr_getdetachstate(&attr, &detached);
	pthread_attr_getstacksize(&attr, &stack);
	pthread_attr_destroy(&attr);
	EXPECT_EQ(detached, PTHREAD_CREATE_DETACHED);
	EXPECT_EQ(stack, 256 << 10);
}

static void
run(struct porter_job *job)
{
	struct errand *e = (struct errand *)(void *)job;
	sigset_t mask;

	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	e->is_signalled = sigismember(&mask, SIGUSR1) != 1;
	e->tid = gettid();
	mine = e;
	expect_attributes();
	sem_post(&e->begun);
	while (sem_wait(&e->may_end) == -1)
		;
}

static void
post(struct errand *e)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	begun = begun == 0 ? now.tv_sec : begun;
	memset(e, 0, sizeof(*e));
	e->job.run = run;
	sem_init(&e->begun, 0, 0);
	sem_init(&e->may_end, 0, 0);
	NEED(porter_post(&e->job));
}

static void
await_begin(struct errand *e)
{
	while (sem_wait(&e->begun) == -1)
		;
	EXPECT(!e->is_signalled);
}

static unsigned
threads(void)
{
	return entries("/proc/self/task") - 2; /* . and .. */
}

/* Its thread is idle, and the next job finds it so. */
static void
end(struct errand *e)
{
	sem_post(&e->may_end);
	while (!e->is_over)
		sched_yield();
}

FORKED_TEST(queue_porter, an_idle_thread_runs_the_next_job)
{
	struct errand a, b, c;
	sigset_t mask;
	pid_t tid;

	post(&a);
	await_begin(&a);
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	EXPECT_EQ(sigismember(&mask, SIGUSR1), 0);
	tid = a.tid;
	EXPECT(tid != gettid());
	end(&a);
	post(&a);
	await_begin(&a);
	EXPECT_EQ(a.tid, tid);
	end(&a);
	/* All run at a time, though one thread is idle. */
	post(&a);
	post(&b);
	post(&c);
	await_begin(&a);
	await_begin(&b);
	await_begin(&c);
	EXPECT_EQ(a.tid, tid);
	EXPECT(b.tid != tid && c.tid != tid && b.tid != c.tid);
	EXPECT_EQ(threads(), 4);
	end(&a);
	end(&b);
	end(&c);
	for (int i = 0; i < 2; i++) {
		post(&a);
		post(&b);
		await_begin(&a);
		await_begin(&b);
		end(&a);
		end(&b);
	}
	EXPECT_EQ(threads(), 4);
}

FORKED_TEST(queue_porter, a_thread_that_was_idle_for_long_ends)
{
	struct errand e;

	expired = true;
	post(&e);
	await_begin(&e);
	end(&e);
	while (threads() != 1)
		sched_yield();
	/* It does not count as idle, so another one is made. */
	expired = false;
	post(&e);
	await_begin(&e);
	end(&e);
}

FORKED_TEST(queue_porter, a_child_makes_threads_of_its_own)
{
	struct errand e;
	int status;
	pid_t pid;

	post(&e);
	await_begin(&e);
	end(&e);
	pid = fork();
	if (pid == 0) {
		alarm(FORKED_PATIENCE_S);
		post(&e);
		await_begin(&e);
		_exit(threads() != 2);
	}
	NEED(pid > 0 && waitpid(pid, &status, 0) == pid);
	EXPECT_EQ(status, 0);
}

/* The child has the parent's list, and a lock that none of its threads holds. */
FORKED_TEST(queue_porter, a_child_does_not_run_the_jobs_of_its_parent)
{
	struct errand a, b, c;
	int status;
	pid_t pid;

	post(&a);
	await_begin(&a);
	end(&a);
	is_stopped = true;
	post(&b);
	while (!has_stopped)
		sched_yield();
	pid = fork();
	if (pid == 0) {
		alarm(FORKED_PATIENCE_S);
		is_stopped = false;
		post(&a);
		await_begin(&a);
		end(&a);
		post(&c);
		await_begin(&c);
		_exit(c.tid != a.tid || threads() != 2);
	}
	NEED(pid > 0 && waitpid(pid, &status, 0) == pid);
	EXPECT_EQ(status, 0);
	is_stopped = false;
	await_begin(&b);
	end(&b);
}

FORKED_TEST(queue_porter, without_a_thread_a_job_is_refused)
{
	struct porter_job job = { .run = run };
	struct errand e;

	post(&e);
	await_begin(&e);
	NEED(seccomp_refuse(SYS_clone3, EAGAIN) == 0);
	NEED(seccomp_refuse(SYS_clone, EAGAIN) == 0);
	EXPECT(!porter_post(&job));
	end(&e);
	post(&e);
	await_begin(&e);
}
