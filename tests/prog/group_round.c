/* SPDX-License-Identifier: Apache-2.0 */
/* group_round.c - cases of group.c: barriers. */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/prog/group_case.h"

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

static void
how_long(void)
{
	int64_t took[501];

	for (int i = 0; i < 501; i++) {
		int64_t begun = now();

		EXPECT(xr_group_barrier(all, XR_SECONDS(20), &err) == XR_OK);
		took[i] = now() - begun;
	}
	qsort(took, 501, sizeof(took[0]), compare);
	if (rank == 0)
		printf("median %lld us\n", (long long)took[250] / 1000);
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
