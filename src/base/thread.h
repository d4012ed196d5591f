/* SPDX-License-Identifier: Apache-2.0 */
/* thread.h - threads that a program does not know it has. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* thread_begin() - with all signals blocked: they are the program's other threads'.
 * Returns 0, or errno. */
static inline int
thread_begin(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	sigset_t all, before;
	int sys;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	sys = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return sys;
}

#endif /* BASE_THREAD_H */
