/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock_watch.h - locks that a thread takes twice, or gives back without having them.
 *
 * For programs that are linked with watched_locks (meson.build). Either ends the
 * program.
 */
#ifndef TESTS_UNIT_LOCK_WATCH_H
#define TESTS_UNIT_LOCK_WATCH_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define LOCKS_HELD 16 /* by one thread */

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_mutex_trylock(pthread_mutex_t *lock);
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);

static __thread pthread_mutex_t *lock_held[LOCKS_HELD];

/* lock_find() - where @lock is noted; NULL: it is not. */
static pthread_mutex_t **
lock_find(const pthread_mutex_t *lock)
{
	for (int i = 0; i < LOCKS_HELD; i++)
		if (lock_held[i] == lock)
			return &lock_held[i];
	return NULL;
}

static void
lock_wrong(const char *what)
{
	fprintf(stderr, "a lock %s\n", what);
	abort();
}

static void
lock_note(pthread_mutex_t *lock)
{
	pthread_mutex_t **place = lock_find(NULL);

	if (place == NULL)
		lock_wrong("too many");
	else
		*place = lock;
}

int
__wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	int sys;

	if (lock_find(lock) != NULL)
		lock_wrong("is taken twice");
	sys = __real_pthread_mutex_lock(lock);
	if (sys == 0)
		lock_note(lock);
	return sys;
}

int
__wrap_pthread_mutex_trylock(pthread_mutex_t *lock)
{
	int sys = __real_pthread_mutex_trylock(lock);

	if (sys == 0)
		lock_note(lock);
	return sys;
}

int
__wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	pthread_mutex_t **place = lock_find(lock);

	if (place == NULL)
		lock_wrong("is given back that was not taken");
	else
		*place = NULL;
	return __real_pthread_mutex_unlock(lock);
}

#endif /* TESTS_UNIT_LOCK_WATCH_H */
