/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll.h - what the collective steps of peers share with collstep: the clock, numbers
 * that change with each step and whose result is compared, and the line of JSON.
 *
 *   PROGRAM OPERATION BYTES CALLS TYPE REDUCTION
 *
 * OPERATION is barrier, allreduce, bcast, allgather, reduce, gather or scatter; TYPE f32
 * or bf16, REDUCTION sum or max. Every rank changes its numbers before each step, and
 * looks at some of the result afterwards; before a step all meet. None of that counts.
 * Each prints a line.
 */
#ifndef TESTS_BENCH_PEERS_COLL_H
#define TESTS_BENCH_PEERS_COLL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/resource.h>

enum what { BARRIER, ALLREDUCE, BCAST, ALLGATHER, REDUCE, GATHER, SCATTER };

struct step {
	enum what what;
	bool is_bf16, is_max;
	size_t count, one; /* elements, and bytes of one */
	long calls;
	uint32_t rank, ranks;
	char *in, *out, *all; /* [count], [count], [ranks * count] */
	int64_t *took;
};

static inline int64_t
step_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void
step_init(struct step *s, char **argv, uint32_t rank, uint32_t ranks)
{
	static const char *const names[] = { "barrier", "allreduce", "bcast",
		"allgather", "reduce", "gather", "scatter" };

	for (s->what = BARRIER; strcmp(argv[1], names[s->what]) != 0; s->what++)
		if (s->what == SCATTER)
			abort();
	s->is_bf16 = strcmp(argv[4], "bf16") == 0;
	s->is_max = strcmp(argv[5], "max") == 0;
	s->one = s->is_bf16 ? 2 : 4;
	s->count = strtoul(argv[2], NULL, 10) / s->one;
	s->calls = strtol(argv[3], NULL, 10);
	s->rank = rank;
	s->ranks = ranks;
	s->in = calloc(s->count + 1, s->one);
	s->out = calloc(s->count + 1, s->one);
	s->all = calloc(s->count * ranks + 1, s->one);
	s->took = calloc((size_t)s->calls, sizeof(s->took[0]));
	if (s->in == NULL || s->out == NULL || s->all == NULL ||
		s->took == NULL)
		abort();
}

/* What rank @rank has at @i in step @n: a small whole number, so that sums are exact
 * in any order, also in bf16. */
static inline float
step_number(const struct step *s, uint32_t rank, long n, size_t i)
{
	uint32_t most = s->is_bf16 ? 13 : 101;

	return (float)((rank * 5 + (uint32_t)n * 3) % most +
		((uint32_t)i & (s->is_bf16 ? 15 : 127)));
}

static inline void
step_put(const struct step *s, char *at, size_t i, float number)
{
	uint32_t bits;

	memcpy(&bits, &number, sizeof(bits));
	if (s->is_bf16)
		((uint16_t *)(void *)at)[i] = (uint16_t)(bits >> 16);
	else
		((float *)(void *)at)[i] = number;
}

static inline float
step_get(const struct step *s, const char *at, size_t i)
{
	float number;
	uint32_t bits;

	if (!s->is_bf16)
		return ((const float *)(const void *)at)[i];
	bits = (uint32_t)((const uint16_t *)(const void *)at)[i] << 16;
	memcpy(&number, &bits, sizeof(number));
	return number;
}

/* As many as there are, quickly: the others wait. */
static inline void
step_fill_one(const struct step *s, uint32_t rank, long n, char *to)
{
	uint32_t first = (uint32_t)step_number(s, rank, n, 0);

	if (s->is_bf16)
		for (size_t i = 0; i < s->count; i++)
			step_put(s, to, i, (float)(first + (i & 15)));
	else
		for (size_t i = 0; i < s->count; i++)
			((float *)(void *)to)[i] =
				(float)(int32_t)(first + ((uint32_t)i & 127));
}

static inline void
step_fill(struct step *s, long n)
{
	step_fill_one(s, s->rank, n, s->in);
	memcpy(s->out, s->in, s->count * s->one);
	if (s->what == SCATTER && s->rank == 0)
		for (uint32_t r = 0; r < s->ranks; r++)
			step_fill_one(s, r, n, s->all + r * s->count * s->one);
}

static inline void
step_expect(float got, float want)
{
	if (got == want)
		return;
	fprintf(stderr, "got %g and not %g\n", (double)got, (double)want);
	abort();
}

static inline float
step_reduced(const struct step *s, long n, size_t i)
{
	float reduced = 0, one;

	for (uint32_t r = 0; r < s->ranks; r++) {
		one = step_number(s, r, n, i);
		if (!s->is_max)
			reduced += one;
		else if (one > reduced)
			reduced = one;
	}
	return reduced;
}

/* At both ends and in the middle. */
static inline void
step_check(const struct step *s, long n)
{
	size_t where[] = { 0, s->count / 2, s->count - 1 };
	uint32_t last = s->ranks - 1;

	for (int k = 0; k < 3 && s->count > 0 && s->what != BARRIER; k++) {
		size_t i = where[k];

		if (s->what == ALLREDUCE || (s->what == REDUCE && s->rank == 0))
			step_expect(step_get(s, s->out, i),
				step_reduced(s, n, i));
		else if (s->what == BCAST)
			step_expect(step_get(s, s->out, i),
				step_number(s, 0, n, i));
		else if (s->what == SCATTER)
			step_expect(step_get(s, s->out, i),
				step_number(s, s->rank, n, i));
		else if (s->what == ALLGATHER ||
			(s->what == GATHER && s->rank == 0))
			step_expect(step_get(s, s->all, last * s->count + i),
				step_number(s, last, n, i));
	}
}

static int
step_by_time(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static inline double
step_cpu(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (double)r.ru_utime.tv_sec + (double)r.ru_utime.tv_usec / 1e6 +
		(double)r.ru_stime.tv_sec + (double)r.ru_stime.tv_usec / 1e6;
}

/* @run: one step; @meet: all are there. A tenth is done beforehand, and does not count. */
static inline void
step_all(struct step *s, void (*run)(struct step *s), void (*meet)(void))
{
	long warm = s->calls / 10 + 2;
	double cpu = 0;
	int64_t begun;

	for (long n = 0; n < s->calls + warm; n++) {
		if (n == warm)
			cpu = step_cpu();
		step_fill(s, n);
		meet();
		begun = step_now();
		run(s);
		if (n >= warm)
			s->took[n - warm] = step_now() - begun;
		step_check(s, n);
	}
	cpu = step_cpu() - cpu;
	qsort(s->took, (size_t)s->calls, sizeof(s->took[0]), step_by_time);
	printf("{\"bytes\":%zu,\"calls\":%ld,\"p50_us\":%.3f,"
	       "\"p99_us\":%.3f,\"cpu_us\":%.3f}\n",
		s->count * s->one, s->calls,
		(double)s->took[s->calls / 2] / 1e3,
		(double)s->took[s->calls - s->calls / 100 - 1] / 1e3,
		cpu * 1e6 / (double)s->calls);
}

#endif /* TESTS_BENCH_PEERS_COLL_H */
