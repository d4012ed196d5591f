/* SPDX-License-Identifier: Apache-2.0 */
/* thread.c - see thread.h. */
#include "base/fault.h"
#include "launcher/log/thread.h"

#define STACK (256 * 1024) /* getdents and path buffers are the largest users */

int
thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	int sys = fault(FAULT_THREAD_START, FAULT_ANY);

	if (sys == 0)
		sys = pthread_attr_init(&attr);
	if (sys != 0)
		return sys;
	pthread_attr_setstacksize(&attr, STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sys = pthread_create(thread, &attr, run, arg);
	pthread_attr_destroy(&attr);
	return sys;
}
