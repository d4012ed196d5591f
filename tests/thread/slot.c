/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slot.c - threads of a rank that tell through its slot, for the thread sanitizer.
 *
 * All of them begin at once, so they race for the mapping, too; one thread plays
 * the supervisor and reads. TAP.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <xrun/job.h>

#include "segment/owner.h"
#include "worker/job/slot.h"

#define THREADS 6
#define ROUNDS  20000

static pthread_barrier_t gate;
static atomic_bool over;
static int fd;

static void *
work(void *arg)
{
	struct xr_progress p = { .size = sizeof(p), .total = ROUNDS * 2 };
	struct xr_error err = { 0 };

	pthread_barrier_wait(&gate);
	for (int i = 1; i <= ROUNDS; i++) {
		p.step = i;
		xr_job_progress(&p);
		xr_heartbeat();
		if (i % 1000 == 0)
			xr_job_attach(&err);
	}
	return arg;
}

static void *
look(void *arg)
{
	struct segment_view view;
	uint64_t before = 0;
	bool grows = true;

	pthread_barrier_wait(&gate);
	while (!atomic_load(&over)) {
		segment_look(fd, 0, INT64_MAX, &view);
		grows = grows && view.tick >= before && view.step <= ROUNDS;
		before = view.tick;
	}
	*(bool *)arg = grows;
	return NULL;
}

static void
join_job(void)
{
	const struct segment_wish wish = { .job = "k7m2", .ranks = 1 };
	struct stat st;
	char name[64];

	fd = segment_create(&wish);
	if (fd == -1 || fstat(fd, &st) == -1)
		exit(2);
	snprintf(name, sizeof(name), "%d:%llu", fd,
		(unsigned long long)st.st_ino);
	setenv("XRUN_SEGMENT_FD", name, 1);
	setenv("XRUN_LOCAL_RANK", "0", 1);
	setenv("XRUN_JOB", "k7m2", 1);
	slot_init();
}

static unsigned test;

static void
claim(bool holds, const char *what)
{
	printf("%sok %u - %s\n", holds ? "" : "not ", ++test, what);
}

int
main(void)
{
	pthread_t thread[THREADS], reader;
	struct segment_view view;
	bool grows = false;

	puts("1..4");
	join_job();
	pthread_barrier_init(&gate, NULL, THREADS + 1);
	pthread_create(&reader, NULL, look, &grows);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	atomic_store(&over, true);
	pthread_join(reader, NULL);
	segment_look(fd, 0, INT64_MAX, &view);
	/* While one thread maps the segment, the others tell nobody. */
	claim(view.tick > THREADS * ROUNDS && view.tick <= 2 * THREADS * ROUNDS,
		"each word of each thread is counted");
	claim(view.step == ROUNDS, "the last step is there");
	claim((pid_t)view.holder == getpid(), "the process is the rank");
	claim(grows, "who reads meanwhile sees it grow");
	return 0;
}
