/* SPDX-License-Identifier: Apache-2.0 */
/* crew.c - see crew.h. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "worker/rpc/crew.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/word.h"

TAILQ_HEAD(work_list, work);

static struct {
	pthread_mutex_t lock;
	struct work_list queue;
	_Atomic uint32_t queued;
	_Atomic uint32_t running; /* pieces of work that do not wait */
	uint32_t limit;
	struct crew_first first;
	pthread_t *thread; /* [count] */
	uint32_t count, cap;
	uint32_t busy; /* threads that run or wait in a piece of work */
	_Atomic uint32_t living; /* threads that do not end yet */
	_Atomic bool closing;
	bool open;             /* takes work */
	sem_t begun;           /* the first thread has */
	_Atomic bool is_short; /* the last thread could not be made */
} crew = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.queue = TAILQ_HEAD_INITIALIZER(crew.queue),
};

static __thread bool member __attribute__((tls_model("initial-exec")));
/* It runs a piece of work, or waits in one. */
static __thread bool runs __attribute__((tls_model("initial-exec")));
static __thread bool is_first __attribute__((tls_model("initial-exec")));
static __thread bool is_over __attribute__((tls_model("initial-exec")));

bool
crew_is_member(void)
{
	return member;
}

bool
crew_has_work(void *unused)
{
	(void)unused;
	return atomic_load(&crew.closing) ||
		(atomic_load(&crew.queued) > 0 &&
			atomic_load(&crew.running) < crew.limit);
}

/* The next piece, if one more may run. */
static struct work *
take(void)
{
	struct work *work = NULL;

	pthread_mutex_lock(&crew.lock);
	if (atomic_load(&crew.running) < crew.limit)
		work = TAILQ_FIRST(&crew.queue);
	if (work != NULL) {
		TAILQ_REMOVE(&crew.queue, work, list);
		atomic_fetch_sub(&crew.queued, 1);
		atomic_fetch_add(&crew.running, 1);
		crew.busy++;
	}
	pthread_mutex_unlock(&crew.lock);
	return work;
}

static void *run(void *first);

static int
start(pthread_t *thread)
{
	return thread_begin(thread, run, crew.count == 0 ? &crew.first : NULL);
}

/* One that is not busy is always there to read. Where none can be made, those that
 * there are do it later. */
static void
grow(void)
{
	pthread_t *more;
	uint32_t cap;

	pthread_mutex_lock(&crew.lock);
	if (crew.busy < crew.count)
		atomic_store(&crew.is_short, false);
	if (crew.busy < crew.count || atomic_load(&crew.closing))
		goto out;
	if (crew.count == crew.cap) {
		cap = crew.cap == 0 ? 8 : 2 * crew.cap;
		more = reallocarray(crew.thread, cap, sizeof(*more));
		if (more == NULL)
			goto out;
		crew.thread = more;
		crew.cap = cap;
	}
	atomic_fetch_add(&crew.living, 1);
	if (start(&crew.thread[crew.count]) == 0) {
		crew.count++;
		atomic_store(&crew.is_short, false);
	} else {
		atomic_fetch_sub(&crew.living, 1);
		atomic_store(&crew.is_short, true);
	}
out:
	pthread_mutex_unlock(&crew.lock);
}

static void
work_is_over(void)
{
	runs = false;
	pthread_mutex_lock(&crew.lock);
	crew.busy--;
	atomic_fetch_sub(&crew.running, 1);
	pthread_mutex_unlock(&crew.lock);
}

static void go_on(void);

static void
crew_put_back(struct work *work)
{
	pthread_mutex_lock(&crew.lock);
	TAILQ_INSERT_HEAD(&crew.queue, work, list);
	atomic_fetch_add(&crew.queued, 1);
	pthread_mutex_unlock(&crew.lock);
}

/* What it called ends the thread, which is not its own: the rest of the thread's life
 * takes place here, and it ends when it would have. It may happen again in there:
 * the C library then comes by here once more for each. */
static void
thread_ended(void *arg)
{
	struct work *work = arg;

	if (is_over)
		return;
	if (work->ended_thread != NULL)
		work->ended_thread(work);
	work_is_over();
	go_on();
}

static void
run_one(struct work *work)
{
	lead_busy();
	grow();
	/* More of them, for another thread. */
	if (crew_has_work(NULL))
		lead_wake_crew();
	runs = true;
	pthread_cleanup_push(thread_ended, work);
	work->run(work);
	pthread_cleanup_pop(0);
	work_is_over();
}

/* --- without threads ------------------------------------------------------- */

/* Returns true if a function may run on top of what this thread has on its stack. */
static bool
crew_has_stack(void)
{
	static __thread char *low __attribute__((tls_model("initial-exec")));
	pthread_attr_t attr;
	void *at = NULL;
	size_t size = 0;

	if (low == NULL && pthread_getattr_np(pthread_self(), &attr) == 0) {
		if (pthread_attr_getstack(&attr, &at, &size) == 0)
			low = (char *)at + size / 2;
		pthread_attr_destroy(&attr);
	}
	return low != NULL && (char *)__builtin_frame_address(0) > low;
}

/* As run_one(); this thread runs something already, and waits in it. */
static void
crew_run_nested(struct work *work)
{
	pthread_cleanup_push(thread_ended, work);
	work->run(work);
	pthread_cleanup_pop(0);
	work_is_over();
	runs = true;
}

bool
crew_help(void *unused)
{
	struct work *work;
	bool refused;

	(void)unused;
	if (!runs ||
		!atomic_load_explicit(&crew.is_short, memory_order_relaxed))
		return false;
	grow(); /* maybe there is one now */
	if (!atomic_load(&crew.is_short) || atomic_load(&crew.queued) == 0)
		return false;
	work = take();
	if (work == NULL)
		return false;
	if (crew_has_stack()) {
		crew_run_nested(work);
		return true;
	}
	refused = work->refuse != NULL;
	if (refused)
		work->refuse(work,
			"no thread can be made for it (RLIMIT_NPROC, ulimit -u, or pids.max)");
	else
		crew_put_back(work);
	work_is_over();
	runs = true;
	return refused;
}

static void
go_on(void)
{
	struct work *work;
	bool closing;

	for (;;) {
		/* Before the look: what was posted before is done yet. */
		closing = atomic_load(&crew.closing);
		work = take();
		if (work != NULL)
			run_one(work);
		else if (closing)
			break;
		else
			lead_crew();
	}
	if (is_first)
		crew.first.end();
	is_over = true;
	atomic_fetch_sub(&crew.living, 1);
	word_wake(&crew.living, 1);
}

static void *
run(void *first)
{
	member = true;
	is_first = first != NULL;
	if (is_first) {
		crew.first.begin();
		sem_post(&crew.begun);
	}
	go_on();
	return NULL;
}

int
crew_open(uint32_t limit, const struct crew_first *first)
{
	crew.limit = limit;
	crew.first = *first;
	atomic_store(&crew.closing, false);
	sem_init(&crew.begun, 0, 0);
	grow();
	pthread_mutex_lock(&crew.lock);
	crew.open = crew.count > 0;
	pthread_mutex_unlock(&crew.lock);
	/* From here on others may be told where we are: they shall hear of our end,
	 * too. */
	while (crew.count > 0 && sem_wait(&crew.begun) == -1)
		continue;
	return crew.count > 0 ? 0 : EAGAIN;
}

bool
crew_post(struct work *work)
{
	bool open;

	pthread_mutex_lock(&crew.lock);
	open = crew.open;
	if (open) {
		TAILQ_INSERT_TAIL(&crew.queue, work, list);
		atomic_fetch_add(&crew.queued, 1);
	}
	pthread_mutex_unlock(&crew.lock);
	/* Of the crew, this one will come back for it. */
	if (open && (!member || runs || !lead_delivers()))
		lead_wake_crew();
	return open;
}

void
crew_wait_begin(void)
{
	if (!runs)
		return;
	atomic_fetch_sub(&crew.running, 1);
	if (crew_has_work(NULL))
		lead_wake_crew();
}

void
crew_wait_end(void)
{
	if (runs)
		atomic_fetch_add(&crew.running, 1);
}

uint32_t
crew_limit(void)
{
	return crew.limit;
}

uint32_t
crew_idle(void)
{
	uint32_t running = atomic_load(&crew.running);

	return running < crew.limit ? crew.limit - running : 0;
}

void
crew_abandon(void)
{
	crew.open = false;
}

/* All of them are about to end, or @patience is over. */
static void
await_end(int64_t patience)
{
	int64_t deadline = clock_now() + patience;
	uint32_t living = atomic_load(&crew.living);

	while (living > 0 && clock_now() < deadline) {
		word_sleep(&crew.living, living, deadline);
		living = atomic_load(&crew.living);
	}
}

void
crew_close(int64_t patience, void (*late)(void))
{
	uint32_t count;

	pthread_mutex_lock(&crew.lock);
	crew.open = false;
	atomic_store(&crew.closing, true);
	count = crew.count;
	pthread_mutex_unlock(&crew.lock);
	lead_wake_all();
	await_end(patience);
	if (atomic_load(&crew.living) > 0 && late != NULL)
		late();
	for (uint32_t i = 0; i < count; i++)
		pthread_join(crew.thread[i], NULL);
	free(crew.thread);
	crew.thread = NULL;
	crew.count = crew.cap = crew.busy = 0;
}
