/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late.h - how long something took, less what the load of the machine explains: so that a
 * limit of time holds beside other programs, too, and is exact on an idle machine.
 *
 * A thread sleeps for 1 ms again and again, and notes how much too late it continues at
 * worst. A wait that passes through several processes may be that late at each step.
 */
#ifndef TESTS_PROG_LATE_H
#define TESTS_PROG_LATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define LATE_STEPS  20
#define LATE_NAP_NS 1000000

struct late {
	int64_t from, worst; /* ns */
	atomic_bool over;
	pthread_t thread;
};

static inline int64_t
late_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static inline void *
late_run(void *ctx)
{
	const struct timespec nap = { .tv_nsec = LATE_NAP_NS };
	struct late *l = ctx;
	int64_t begun, over;

	while (!atomic_load(&l->over)) {
		begun = late_now();
		nanosleep(&nap, NULL);
		over = late_now() - begun - LATE_NAP_NS;
		l->worst = over > l->worst ? over : l->worst;
	}
	return NULL;
}

/* late_begin() - the time begins. Until late_end() there is one thread more. */
static inline void
late_begin(struct late *l)
{
	l->worst = 0;
	atomic_init(&l->over, false);
	if (pthread_create(&l->thread, NULL, late_run, l) != 0)
		atomic_store(&l->over, true);
	l->from = late_now();
}

/* late_end() - ns since late_begin(), less what the load explains; 0: all. */
static inline int64_t
late_end(struct late *l)
{
	int64_t took = late_now() - l->from;

	if (!atomic_exchange(&l->over, true))
		pthread_join(l->thread, NULL);
	took -= LATE_STEPS * l->worst;
	return took > 0 ? took : 0;
}

#endif /* TESTS_PROG_LATE_H */
