/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo.h - what the echoes of peers share with rpcecho: the clock, bytes that
 * change with each call and are compared, and the line of JSON.
 *
 *   PROGRAM BYTES CALLS [WINDOW]
 *
 * With a window that many are under way at a time, and all of it carry the same.
 */
#ifndef TESTS_BENCH_PEERS_ECHO_H
#define TESTS_BENCH_PEERS_ECHO_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/resource.h>

struct echo {
	size_t bytes;
	long calls, window; /* 0: one by one */
	unsigned char *data, *back;
	int64_t *took;
	struct rusage before;
};

static inline void
echo_init(struct echo *e, char **argv)
{
	e->bytes = strtoul(argv[1], NULL, 10);
	e->calls = strtol(argv[2], NULL, 10);
	e->window = argv[3] != NULL ? strtol(argv[3], NULL, 10) : 0;
	e->data = calloc(1, e->bytes + 8);
	e->back = calloc((size_t)e->window + 1, e->bytes + 8);
	e->took = calloc((size_t)e->calls, sizeof(e->took[0]));
	if (e->data == NULL || e->back == NULL || e->took == NULL)
		abort();
	memset(e->data, 1, e->bytes);
}

static inline int64_t
echo_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* As rpcecho's fill(): the number in the first line and in the last. */
static inline void
echo_fill(struct echo *e, uint64_t number)
{
	for (size_t i = 0; i + 8 <= e->bytes; i += 8) {
		if (i >= 64 && i + 64 < e->bytes)
			i = e->bytes - 64;
		memcpy(e->data + i, &number, sizeof(number));
	}
}

/* Where the answer to the call @i of a window goes. */
static inline unsigned char *
echo_back(const struct echo *e, long i)
{
	return e->back + (size_t)i * (e->bytes + 8);
}

static inline void
echo_check_at(const struct echo *e, long i)
{
	if (memcmp(e->data, echo_back(e, i), e->bytes) != 0) {
		fprintf(stderr, "what came back is not what was sent\n");
		abort();
	}
}

static inline void
echo_check(const struct echo *e)
{
	echo_check_at(e, 0);
}

static int
echo_by_time(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static inline double
echo_cpu(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (double)r.ru_utime.tv_sec + (double)r.ru_utime.tv_usec / 1e6 +
		(double)r.ru_stime.tv_sec + (double)r.ru_stime.tv_usec / 1e6;
}

static inline void
echo_print(struct echo *e, double cpu)
{
	qsort(e->took, (size_t)e->calls, sizeof(e->took[0]), echo_by_time);
	printf("{\"bytes\":%zu,\"calls\":%ld,\"p50_us\":%.3f,\"p99_us\":%.3f,"
	       "\"cpu_us\":%.3f}\n",
		e->bytes, e->calls, (double)e->took[e->calls / 2] / 1e3,
		(double)e->took[e->calls - e->calls / 100 - 1] / 1e3,
		cpu * 1e6 / (double)e->calls);
}

/* Of windows there is no time of each: what a call took of the whole. */
static inline void
echo_print_rate(const struct echo *e, int64_t took, double cpu)
{
	printf("{\"bytes\":%zu,\"calls\":%ld,\"rate\":%.0f,\"cpu_us\":%.3f}\n",
		e->bytes, e->calls, (double)e->calls / ((double)took / 1e9),
		cpu * 1e6 / (double)e->calls);
}

#define ECHO_WARM(calls) ((calls) < 100000 ? (calls) / 10 + 1 : 10000)

#endif /* TESTS_BENCH_PEERS_ECHO_H */
