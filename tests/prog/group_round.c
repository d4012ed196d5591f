/* SPDX-License-Identifier: Apache-2.0 */
/* group_round.c - cases of group.c: barriers. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/stat.h>

#include "tests/prog/group_case.h"

#define PLAIN_MAX 8
#define SAMPLES   101 /* medians are of so many */

/* Now and then a member comes late, or leaves late. */
static void
dawdle(unsigned *seed)
{
	int what = rand_r(seed) % 64;

	if (what < 8)
		usleep((useconds_t)what * 20);
	else if (what < 16)
		for (volatile int i = 0; i < what * 200; i++)
			continue;
}

static void
many(void)
{
	unsigned seed = rank + 1;

	for (int i = 0; i < 10000; i++) {
		dawdle(&seed);
		EXPECT(xr_group_barrier(all, XR_SECONDS(20), &err) == XR_OK);
	}
}

static _Atomic int rounds;

static void *
enter_once(void *unused)
{
	struct xr_error why = { 0 };

	(void)unused;
	EXPECT(xr_group_barrier(all, XR_SECONDS(20), &why) == XR_OK);
	atomic_fetch_add(&rounds, 1);
	return NULL;
}

/* Two threads of 0 make two rounds: one of 1 lets one of them go. */
static void
two_threads(void)
{
	pthread_t thread[2];

	for (int i = 0; i < 2 && rank == 0; i++)
		EXPECT(pthread_create(&thread[i], NULL, enter_once, NULL) == 0);
	if (rank != 0) {
		usleep(200000); /* both threads of 0 are waiting */
		EXPECT(xr_group_barrier(all, XR_SECONDS(20), &err) == XR_OK);
	}
	while (rank == 0 && atomic_load(&rounds) == 0)
		usleep(1000);
	meet_all();
	usleep(100000);
	EXPECT(rank != 0 || atomic_load(&rounds) == 1);
	meet_all();
	if (rank != 0)
		EXPECT(xr_group_barrier(all, XR_SECONDS(20), &err) == XR_OK);
	for (int i = 0; i < 2 && rank == 0; i++)
		pthread_join(thread[i], NULL);
	EXPECT(rank != 0 || atomic_load(&rounds) == 2);
}

static void
missing(void)
{
	int64_t begun = now();

	if (rank != 2) {
		EXPECT(xr_group_barrier(all, XR_SECONDS(1), &err) ==
			XR_E_TIMEOUT);
		EXPECT(now() - begun >= XR_SECONDS(0.9));
		printf("rank %u: %s\n", rank, err.text);
	}
	meet_all();
	/* Who comes late hears the same; the next round is one again. */
	if (rank == 2)
		EXPECT(xr_group_barrier(all, XR_SECONDS(1), &err) ==
			XR_E_TIMEOUT);
	EXPECT(xr_group_barrier(all, XR_SECONDS(20), &err) == XR_OK);
}

static int
compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* A barrier without xrun, to compare with: rank 0 reads a byte from each other rank,
 * then writes one to each. */
static struct plain {
	int in;             /* pipe to rank 0 */
	int out[PLAIN_MAX]; /* by rank, the pipe to it; 0: not open in this process */
} plain;

static int
plain_pipe(uint32_t to)
{
	char name[16];
	int fd;

	snprintf(name, sizeof(name), "pipe.%u", to);
	EXPECT(mkfifo(name, 0600) == 0 || errno == EEXIST);
	fd = open(name, O_RDWR | O_CLOEXEC);
	EXPECT(fd != -1);
	return fd;
}

static void
plain_open(void)
{
	EXPECT(size <= PLAIN_MAX);
	plain.in = plain_pipe(0);
	for (uint32_t r = 1; r < size; r++)
		if (rank == 0 || rank == r)
			plain.out[r] = plain_pipe(r);
}

static void
plain_barrier(void)
{
	char byte = 0;

	if (rank != 0) {
		EXPECT(write(plain.in, &byte, 1) == 1);
		EXPECT(read(plain.out[rank], &byte, 1) == 1);
		return;
	}
	for (uint32_t r = 1; r < size; r++)
		EXPECT(read(plain.in, &byte, 1) == 1);
	for (uint32_t r = 1; r < size; r++)
		EXPECT(write(plain.out[r], &byte, 1) == 1);
}

static void
group_barrier(void)
{
	EXPECT(xr_group_barrier(all, XR_SECONDS(20), &err) == XR_OK);
}

/* ns of one of ten barriers in a row. */
static int64_t
time_of(void (*barrier)(void))
{
	int64_t begun = now();

	for (int i = 0; i < 10; i++)
		barrier();
	return (now() - begun) / 10;
}

/* Both kinds in turn: other load on the machine slows both. */
static void
how_long(void)
{
	int64_t ours[SAMPLES], pipes[SAMPLES];

	plain_open();
	for (int i = 0; i < SAMPLES; i++) {
		pipes[i] = time_of(plain_barrier);
		ours[i] = time_of(group_barrier);
	}
	qsort(ours, SAMPLES, sizeof(ours[0]), compare);
	qsort(pipes, SAMPLES, sizeof(pipes[0]), compare);
	if (rank == 0)
		printf("median %lld us, by pipes %lld us\n",
			(long long)ours[SAMPLES / 2] / 1000,
			(long long)pipes[SAMPLES / 2] / 1000);
}

/* Barriers of two groups of the same members do not meet. */
static void
two_groups(void)
{
	struct xr_group *other = NULL;

	EXPECT(make_group("other", NULL, 0, &other) == XR_OK);
	EXPECT(xr_group_barrier(rank == 0 ? all : other, XR_SECONDS(0.3),
		       &err) == XR_E_TIMEOUT);
	meet_all();
	EXPECT(xr_group_barrier(rank == 0 ? other : all, XR_SECONDS(0.3),
		       &err) == XR_E_TIMEOUT);
	meet_all();
	EXPECT(xr_group_barrier(all, XR_SECONDS(20), &err) == XR_OK);
	EXPECT(xr_group_barrier(other, XR_SECONDS(20), &err) == XR_OK);
	xr_group_free(other);
}

/* Bytes of memory that this process has in use. */
static size_t
in_use(void)
{
	meet_all(); /* nothing is on its way */
	return mallinfo2().uordblks;
}

/* What a group was is gone with it, its barriers too. */
static void
made_often(void)
{
	struct xr_group *g;
	size_t before = 0, now;

	for (int i = 0; i < 3000; i++) {
		if (i == 1000)
			before = in_use();
		EXPECT(make_group("again", NULL, 0, &g) == XR_OK);
		EXPECT(xr_group_barrier(g, XR_SECONDS(20), &err) == XR_OK);
		xr_group_free(g);
	}
	now = in_use();
	printf("rank %u: %zd bytes more\n", rank, (ssize_t)(now - before));
	EXPECT(now < before + 16384);
}

const struct group_case round_cases[] = {
	{ "many", many },
	{ "two-threads", two_threads },
	{ "missing", missing },
	{ "how-long", how_long },
	{ "two-groups", two_groups },
	{ "made-often", made_often },
	{ NULL, NULL },
};
