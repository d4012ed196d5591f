/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - what the programs have in common that time a queue: who puts and gets, each in
 * a process of its own, and what they say.
 *
 *   PROGRAM WRITERS READERS BYTES ITEMS BATCH [KIND]
 *
 * ITEMS are those of one who puts. All begin at once, and it ends with the last item that
 * somebody has got, and looked at. Printed is the time of one item, and what of processors
 * it took, all processes together.
 */
#ifndef TESTS_BENCH_PEERS_QUEUE_H
#define TESTS_BENCH_PEERS_QUEUE_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define RUN_BATCH 64 /* at most */

struct run_board {
	_Alignas(128) _Atomic uint64_t got;
	_Alignas(128) _Atomic uint64_t sum;
	_Atomic int64_t end_ns;
};

struct run {
	long writers, readers, items, batch;
	size_t bytes;
	const char *kind;
	struct run_board *board;
	int gate[2];
	/* of a reader */
	uint64_t got, sum;
};

static inline int64_t
run_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static inline void
run_init(struct run *r, int argc, char **argv)
{
	if (argc < 6)
		exit(2);
	*r = (struct run){
		.writers = strtol(argv[1], NULL, 10),
		.readers = strtol(argv[2], NULL, 10),
		.bytes = strtoul(argv[3], NULL, 10),
		.items = strtol(argv[4], NULL, 10),
		.batch = strtol(argv[5], NULL, 10),
		.kind = argc > 6 ? argv[6] : "",
	};
	r->board = mmap(NULL, sizeof(*r->board), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r->bytes < 8 || r->batch < 1 || r->batch > RUN_BATCH ||
		r->board == MAP_FAILED || pipe(r->gate) != 0)
		exit(2);
}

/* run_wait() - until all begin. */
static inline void
run_wait(struct run *r)
{
	char c;

	close(r->gate[1]);
	if (read(r->gate[0], &c, 1) != 0)
		exit(2);
}

/* run_fill() - item @i of a writer; run_check() - what was got is one. */
static inline void
run_fill(const struct run *r, uint8_t *data, uint64_t i)
{
	memcpy(data + r->bytes - 8, &i, 8);
	memcpy(data, &i, 8);
}

static inline void
run_check(struct run *r, const uint8_t *data, size_t bytes)
{
	if (bytes != r->bytes || memcmp(data, data + bytes - 8, 8) != 0)
		exit(3);
	r->sum += *(const uint64_t *)(const void *)data;
	r->got++;
}

static inline uint64_t
run_all(const struct run *r)
{
	return (uint64_t)r->writers * (uint64_t)r->items;
}

/* run_tell() - what was checked since; 1: that was all. */
static inline int
run_tell(struct run *r)
{
	uint64_t now;

	atomic_fetch_add(&r->board->sum, r->sum);
	now = atomic_fetch_add(&r->board->got, r->got) + r->got;
	r->sum = r->got = 0;
	if (now == run_all(r))
		atomic_store(&r->board->end_ns, run_now());
	return now >= run_all(r);
}

typedef void run_fn(struct run *r, long index);

/* run_play() - in processes: those who get first. @begun, which may be NULL, is called in
 * the parent once all are there. */
static inline int
run_play(struct run *r, run_fn *put, run_fn *get, void (*begun)(void))
{
	struct rusage used;
	int64_t begin, ns;
	double cpu;
	uint64_t want;

	for (long i = 0; i < r->readers + r->writers; i++)
		if (fork() == 0) {
			if (i < r->readers)
				get(r, i);
			else
				put(r, i - r->readers);
			_exit(0);
		}
	if (begun != NULL)
		begun();
	begin = run_now();
	close(r->gate[1]);
	for (long i = 0; i < r->readers + r->writers; i++) {
		int status;

		if (wait(&status) == -1 || status != 0)
			return 1;
	}
	want = (uint64_t)r->items * (uint64_t)(r->items - 1) / 2 *
		(uint64_t)r->writers;
	if (r->board->got != run_all(r) || r->board->sum != want)
		return 3;
	getrusage(RUSAGE_CHILDREN, &used);
	ns = r->board->end_ns - begin;
	cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e9 +
		(double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e3;
	printf("{\"ns\": %.2f, \"cpu_ns\": %.2f}\n",
		(double)ns / (double)run_all(r), cpu / (double)run_all(r));
	return 0;
}

#endif /* TESTS_BENCH_PEERS_QUEUE_H */
