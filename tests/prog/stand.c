/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stand.c - a rank that stands still, in functions whose names are known:
 *
 *   stand RANK   in wait_for_the_lock() of train(), if XRUN_RANK is RANK, else in
 *                wait_for_others() of train(); and in beside(), of a thread
 *
 * "ready" is said when all do.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/prctl.h>

/* None is a jump to the next. */
#define FRAME __attribute__((noinline))
#define STAY  __asm__ volatile("" ::: "memory")

FRAME static void
wait_for_the_lock(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	pthread_mutex_lock(&lock);
	STAY;
}

FRAME static void
wait_for_others(void)
{
	for (;;)
		pause();
}

FRAME static void
train(const char *who)
{
	const char *rank = getenv("XRUN_RANK");

	if (rank != NULL && strcmp(rank, who) == 0)
		wait_for_the_lock();
	else
		wait_for_others();
	STAY;
}

FRAME static void *
beside(void *barrier)
{
	pthread_barrier_wait(barrier);
	for (;;)
		pause();
	return NULL;
}

int
main(int argc, char **argv)
{
	pthread_barrier_t barrier;
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* where a test has no xrun */
	pthread_barrier_init(&barrier, NULL, 2);
	if (argc != 2 || pthread_create(&thread, NULL, beside, &barrier) != 0)
		return 2;
	pthread_barrier_wait(&barrier);
	printf("ready\n");
	fflush(stdout);
	train(argv[1]);
	return 0;
}
