/* SPDX-License-Identifier: Apache-2.0 */
/* glib_pool.c - GThreadPool, see pool.h. */
#include <glib.h>

#include "pool.h"

static GThreadPool *pool;
static GMutex lock;
static GCond over;
static gint left;

static void
work(gpointer data, gpointer unused)
{
	(void)unused;
	run_task(GPOINTER_TO_SIZE(data) - 1);
	if (!g_atomic_int_dec_and_test(&left))
		return;
	g_mutex_lock(&lock);
	g_cond_signal(&over);
	g_mutex_unlock(&lock);
}

static void
push(uint64_t from, uint64_t to)
{
	g_atomic_int_set(&left, (gint)(to - from));
	for (uint64_t i = from; i < to; i++)
		g_thread_pool_push(pool, GSIZE_TO_POINTER(i + 1), NULL);
	g_mutex_lock(&lock);
	while (g_atomic_int_get(&left) > 0)
		g_cond_wait(&over, &lock);
	g_mutex_unlock(&lock);
}

static int
play(uint64_t count)
{
	if (run_is("map") || run_is("post")) {
		push(0, count);
	} else if (run_is("apply")) {
		for (uint64_t i = 0; i < count; i++)
			push(0, 1);
	} else if (run_is("loop")) {
		for (uint64_t i = 0; i < count; i++)
			push(0, (uint64_t)run.workers);
	} else {
		return 0;
	}
	return 1;
}

int
main(int argc, char **argv)
{
	run_init(argc, argv);
	pool = g_thread_pool_new(work, NULL, (gint)run.workers, TRUE, NULL);
	return run_play(play);
}
