/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll.h - what the collective steps of peers share with collstep: the clock, numbers
 * that change with each step and whose result is compared, and the line of JSON.
 *
 *   PROGRAM OPERATION BYTES CALLS
 *
 * OPERATION is barrier, allreduce, bcast, allgather, reduce, gather or scatter, of f32.
 * Every rank changes its numbers before each step, and looks at some of the result
 * afterwards; neither counts. Each prints a line.
 */
#ifndef TESTS_BENCH_PEERS_COLL_H
#define TESTS_BENCH_PEERS_COLL_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/resource.h>

enum what { BARRIER, ALLREDUCE, BCAST, ALLGATHER, REDUCE, GATHER, SCATTER };

struct step {
	enum what what;
	size_t count; /* floats */
	long calls;
	uint32_t rank, ranks;
	float *in, *out, *all; /* [count], [count], [ranks * count] */
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
	s->count = strtoul(argv[2], NULL, 10) / sizeof(float);
	s->calls = strtol(argv[3], NULL, 10);
	s->rank = rank;
	s->ranks = ranks;
	s->in = calloc(s->count + 1, sizeof(float));
	s->out = calloc(s->count + 1, sizeof(float));
	s->all = calloc(s->count * ranks + 1, sizeof(float));
	s->took = calloc((size_t)s->calls, sizeof(s->took[0]));
	if (s->in == NULL || s->out == NULL || s->all == NULL ||
		s->took == NULL)
		abort();
}

/* What rank @rank has at @i in step @n: a small whole number, so that sums are exact
 * in any order. */
static inline float
step_number(uint32_t rank, long n, size_t i)
{
	return (float)((rank * 5 + (uint32_t)n * 3 + (uint32_t)i) % 251);
}

static inline void
step_fill(struct step *s, long n)
{
	for (size_t i = 0; i < s->count; i++)
		s->in[i] = s->out[i] = step_number(s->rank, n, i);
	if (s->what == SCATTER && s->rank == 0)
		for (size_t i = 0; i < s->count * s->ranks; i++)
			s->all[i] = step_number((uint32_t)(i / s->count), n,
				i % s->count);
}

static inline void
step_expect(float got, float want)
{
	if (got == want)
		return;
	fprintf(stderr, "got %g and not %g\n", (double)got, (double)want);
	abort();
}

/* At both ends and in the middle. */
static inline void
step_check(const struct step *s, long n)
{
	size_t where[] = { 0, s->count / 2, s->count - 1 };
	float sum;

	for (int k = 0; k < 3 && s->count > 0 && s->what != BARRIER; k++) {
		size_t i = where[k];

		sum = 0;
		for (uint32_t r = 0; r < s->ranks; r++)
			sum += step_number(r, n, i);
		if (s->what == ALLREDUCE || (s->what == REDUCE && s->rank == 0))
			step_expect(s->out[i], sum);
		else if (s->what == BCAST)
			step_expect(s->out[i], step_number(0, n, i));
		else if (s->what == SCATTER)
			step_expect(s->out[i], step_number(s->rank, n, i));
		else if (s->what == ALLGATHER ||
			(s->what == GATHER && s->rank == 0))
			step_expect(s->all[(s->ranks - 1) * s->count + i],
				step_number(s->ranks - 1, n, i));
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

/* @run: one step. A tenth is done beforehand, and does not count. */
static inline void
step_all(struct step *s, void (*run)(struct step *s), const char *who)
{
	long warm = s->calls / 10 + 2;
	double cpu = 0;
	int64_t begun;

	(void)who;
	for (long n = 0; n < s->calls + warm; n++) {
		if (n == warm)
			cpu = step_cpu();
		step_fill(s, n);
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
		s->count * sizeof(float), s->calls,
		(double)s->took[s->calls / 2] / 1e3,
		(double)s->took[s->calls - s->calls / 100 - 1] / 1e3,
		cpu * 1e6 / (double)s->calls);
}

#endif /* TESTS_BENCH_PEERS_COLL_H */
