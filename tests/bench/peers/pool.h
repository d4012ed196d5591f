/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - what the programs have in common that time threads that share tasks: what is
 * done, by whom, and what they say. C and C++.
 *
 *   PROGRAM OPERATION WORKERS COUNT NS [KIND]
 *
 *   map    COUNT tasks given at once; the figure is the time of one
 *   post   COUNT tasks given one by one, and waited for together
 *   apply  a task is given, and waited for, COUNT times
 *   loop   a loop over as many indices as there are workers, COUNT times
 *
 * A task computes for NS, and adds its number to what the thread has; all of it is
 * compared at the end. Printed is the time of one, and what of processors it took. The
 * first figures are taken after some of the same, which do not count.
 */
#ifndef TESTS_BENCH_PEERS_POOL_H
#define TESTS_BENCH_PEERS_POOL_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RUN_THREADS 256

struct run_slot {
	uint64_t sum, count, unused[14];
};

struct run {
	const char *operation, *kind;
	long workers, count;
	double ns;
	uint64_t turns; /* that a task computes for */
};

static struct run run;
static struct run_slot run_slots[RUN_THREADS] __attribute__((aligned(128)));
static unsigned run_slot_count;
static __thread struct run_slot *run_mine;

static inline double
run_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Of other processes that run tasks; NULL. */
static double (*run_cpu_others)(void);

static inline double
run_cpu(void)
{
	double others = run_cpu_others != NULL ? run_cpu_others() : 0;
	struct timespec t;

	/* In ns, where getrusage() may say that 300 tasks took nothing. */
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return others + (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline void
run_compute(uint64_t turns)
{
	uint64_t x = turns + 1;

	for (uint64_t i = 0; i < turns; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		__asm__ volatile("" : "+r"(x));
	}
}

static inline struct run_slot *
run_slot(void)
{
	if (run_mine == NULL)
		run_mine = &run_slots[__atomic_fetch_add(&run_slot_count, 1,
					      __ATOMIC_RELAXED) %
			RUN_THREADS];
	return run_mine;
}

/* run_task() - what a task does, of its number. */
static inline void
run_task(uint64_t number)
{
	struct run_slot *slot = run_slot();

	if (run.turns > 0)
		run_compute(run.turns);
	slot->sum += number;
	slot->count++;
}

/* How many turns take NS: the best of some milliseconds. */
static inline void
run_calibrate(void)
{
	double best = 1e18;

	for (int i = 0; i < 20 && run.ns > 0; i++) {
		double begun = run_now(), took;

		run_compute(100000);
		took = run_now() - begun;
		best = took < best ? took : best;
	}
	run.turns = run.ns > 0 ? (uint64_t)(run.ns * 100000 / best) : 0;
}

static inline void
run_init(int argc, char **argv)
{
	if (argc < 5)
		exit(2);
	run.operation = argv[1];
	run.workers = strtol(argv[2], NULL, 10);
	run.count = strtol(argv[3], NULL, 10);
	run.ns = strtod(argv[4], NULL);
	run.kind = argc > 5 ? argv[5] : "";
	if (run.workers < 1 || run.count < 1)
		exit(2);
	run_calibrate();
}

/* run_is() - is it the operation @name? */
static inline int
run_is(const char *name)
{
	return strcmp(run.operation, name) == 0;
}

/* What is to be done, @count times; false: it is not known here. */
typedef int run_fn(uint64_t count);

static inline int
run_verify(uint64_t count)
{
	uint64_t sum = 0, done = 0, want = count * (count - 1) / 2, all = count;

	if (run_is("loop")) {
		all = count * (uint64_t)run.workers;
		want = count *
			((uint64_t)run.workers * (uint64_t)(run.workers - 1) /
				2);
	} else if (run_is("apply")) {
		want = 0;
	}
	for (int i = 0; i < RUN_THREADS; i++) {
		sum += run_slots[i].sum;
		done += run_slots[i].count;
		run_slots[i].sum = run_slots[i].count = 0;
	}
	return sum == want && done == all;
}

/* run_play() - the exit status of the program. */
static inline int
run_play(run_fn *play)
{
	uint64_t count = (uint64_t)run.count, warm = (count + 9) / 10;
	double begun, cpu, took;

	if (!play(warm)) {
		fprintf(stderr, "no %s here\n", run.operation);
		return 4;
	}
	if (!run_verify(warm))
		return 3;
	cpu = run_cpu();
	begun = run_now();
	play(count);
	took = run_now() - begun;
	cpu = run_cpu() - cpu;
	if (!run_verify(count))
		return 3;
	printf("{\"ns\": %.2f, \"cpu_ns\": %.2f}\n", took / (double)count,
		cpu / (double)count);
	return 0;
}

#endif /* TESTS_BENCH_PEERS_POOL_H */
