/* SPDX-License-Identifier: Apache-2.0 */
/* inside.c - see inside.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <linux/membarrier.h>
#include <sys/queue.h>
#include <sys/syscall.h>

#include "base/status.h"
#include "worker/rpc/inside.h"
#include "worker/rpc/word.h"

struct thread {
	_Atomic uint32_t depth; /* written by the thread alone */
	LIST_ENTRY(thread) list;
};
LIST_HEAD(thread_list, thread);

static struct {
	pthread_mutex_t lock;
	struct thread_list threads;
	pthread_key_t key;
	_Atomic bool open, forked;
	bool has_key;
	_Atomic bool light;       /* membarrier() is there */
	_Atomic uint32_t awaited; /* somebody waits for threads to go */
	_Atomic uint32_t gone;    /* a futex: one did meanwhile */
} in = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread struct thread *me __attribute__((tls_model("initial-exec")));
/* Of threads for which there was no memory, and how often this one came so. */
static struct thread nobody;
static __thread uint32_t unnamed __attribute__((tls_model("initial-exec")));

static void
thread_ends(void *arg)
{
	struct thread *t = arg;

	pthread_mutex_lock(&in.lock);
	LIST_REMOVE(t, list);
	pthread_mutex_unlock(&in.lock);
	me = NULL; /* what else ends with the thread may come again */
	free(t);
}

/* --- fork() --------------------------------------------------------------- */

/* There is but this thread, and the lock is whoever's held it. */
static void
in_child(void)
{
	if (in.open)
		atomic_store(&in.forked, true);
	pthread_mutex_init(&in.lock, NULL);
	LIST_INIT(&in.threads);
	if (me != NULL)
		LIST_INSERT_HEAD(&in.threads, me, list);
}

static void
watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

enum xr_status
inside_not_forked(struct xr_error *err)
{
	if (!atomic_load_explicit(&in.forked, memory_order_relaxed))
		return XR_OK;
	return fail(err, XR_E_STATE,
		"this process was forked: the agent is its parent's");
}

/* --- coming and going ----------------------------------------------------- */

void
inside_close(void)
{
	in.open = false;
}

void
inside_open(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	in.open = true;
	atomic_store(&in.light,
		syscall(SYS_membarrier,
			MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0);
}

static struct thread *
introduce(void)
{
	struct thread *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return &nobody;
	pthread_mutex_lock(&in.lock);
	LIST_INSERT_HEAD(&in.threads, t, list);
	if (!in.has_key)
		in.has_key = pthread_key_create(&in.key, thread_ends) == 0;
	if (in.has_key)
		pthread_setspecific(in.key, t);
	pthread_mutex_unlock(&in.lock);
	me = t;
	return t;
}

void
inside_order(void)
{
	if (atomic_load_explicit(&in.light, memory_order_relaxed))
		atomic_signal_fence(memory_order_seq_cst);
	else
		atomic_thread_fence(memory_order_seq_cst);
}

void
inside_enter(void)
{
	struct thread *t = me;

	if (t == NULL)
		t = unnamed == 0 ? introduce() : &nobody;
	if (t == &nobody) {
		unnamed++;
		atomic_fetch_add(&t->depth, 1);
		return;
	}
	atomic_store_explicit(&t->depth,
		atomic_load_explicit(&t->depth, memory_order_relaxed) + 1,
		memory_order_relaxed);
	inside_order();
}

void
inside_leave(void)
{
	struct thread *t = me != NULL ? me : &nobody;

	if (t == &nobody) {
		unnamed--;
		atomic_fetch_sub(&t->depth, 1);
	} else {
		atomic_store_explicit(&t->depth,
			atomic_load_explicit(&t->depth, memory_order_relaxed) -
				1,
			memory_order_release);
	}
	inside_order();
	if (atomic_load_explicit(&in.awaited, memory_order_relaxed) == 0)
		return;
	atomic_fetch_add(&in.gone, 1);
	word_wake(&in.gone, 1);
}

static bool
anybody(void)
{
	bool any = atomic_load(&nobody.depth) > 0;
	struct thread *t;

	pthread_mutex_lock(&in.lock);
	LIST_FOREACH(t, &in.threads, list)
	any = any || (t != me && atomic_load(&t->depth) > 0);
	pthread_mutex_unlock(&in.lock);
	return any;
}

void
inside_await_empty(void (*each)(void *ctx), void *ctx)
{
	uint32_t seen;

	atomic_store(&in.awaited, 1);
	for (;;) {
		if (atomic_load(&in.light))
			syscall(SYS_membarrier,
				MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
		seen = atomic_load(&in.gone);
		each(ctx);
		if (!anybody())
			break;
		word_sleep(&in.gone, seen, INT64_MAX);
	}
	atomic_store(&in.awaited, 0);
}
