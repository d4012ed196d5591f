/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.h - a thread with a small stack and no signals of its own: they are
 * all blocked in the thread that makes it, and reach the loop by signalfd.
 */
#ifndef LAUNCHER_LOG_THREAD_H
#define LAUNCHER_LOG_THREAD_H

#include <pthread.h>

/* thread_start() - detached; 0 or an errno. */
int thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

#endif /* LAUNCHER_LOG_THREAD_H */
