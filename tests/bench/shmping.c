/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shmping.c - how long a message takes over the carrier "shm", and its echo.
 *
 *   shmping [--rounds N] [--case NAME]
 *
 * Two processes, each bound to a CPU; what is echoed is compared. Beside the
 * carrier stand the floors, measured in the same run: a store that the other sees
 * and answers, and a sleep from which the other wakes. A line a case:
 *
 *	NAME                    p50 ns  p99 ns  CPU ns a round  of both
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "tests/kit/shm_rig.h"
#include "worker/shm/tick.h"

#define ROUNDS_MAX 1000000
#define LARGE      (UINT64_C(1) << 20)
#define IDLE_NS    (3 * NS_PER_MS)

enum kind {
	SPIN,  /* a floor: lines of memory */
	YIELD, /* the same on one CPU */
	SLEEP, /* futexes */
	COPY,  /* the carrier, from private memory and back */
	HAND,  /* the carrier: a block there, some bytes back */
	IDLE,  /* the carrier: the other sleeps each time */
};

struct row {
	const char *name;
	enum kind kind;
	uint64_t len;
	int cpu[2];
	int rounds;
};

static const struct row rows[] = {
	{ "floor-line", SPIN, 0, { 0, 1 }, 100000 },
	{ "floor-yield-same-cpu", YIELD, 0, { 0, 0 }, 30000 },
	{ "floor-futex", SLEEP, 0, { 0, 1 }, 3000 },
	{ "floor-futex-same-cpu", SLEEP, 0, { 0, 0 }, 30000 },
	{ "echo-0", COPY, 0, { 0, 1 }, 100000 },
	{ "echo-8", COPY, 8, { 0, 1 }, 100000 },
	{ "echo-40", COPY, 40, { 0, 1 }, 100000 },
	{ "echo-256", COPY, 256, { 0, 1 }, 100000 },
	{ "echo-4096", COPY, 4096, { 0, 1 }, 30000 },
	{ "echo-64K", COPY, 65536, { 0, 1 }, 5000 },
	{ "echo-1M", COPY, LARGE, { 0, 1 }, 500 },
	{ "hand-64K", HAND, 65536, { 0, 1 }, 30000 },
	{ "hand-1M", HAND, LARGE, { 0, 1 }, 30000 },
	{ "echo-8-same-cpu", COPY, 8, { 0, 0 }, 30000 },
	{ "echo-8-asleep", IDLE, 8, { 0, 1 }, 300 },
};

static int64_t *took; /* [ROUNDS_MAX] */

/* What both see of a floor. */
struct floor {
	_Alignas(128) _Atomic uint32_t there;
	_Alignas(128) _Atomic uint32_t back;
};

static struct floor *shared;

/* --- figures -------------------------------------------------------------- */

static int
by_size(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int64_t
cpu_ns(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
		(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

static void
show(const struct row *row, int rounds, int64_t cpu)
{
	double per = (double)NS_PER_MS / tick_rate(NULL);

	qsort(took, (size_t)rounds, sizeof(*took), by_size);
	printf("%-22s %9.0f %9.0f %9.0f\n", row->name,
		(double)took[rounds / 2] * per,
		(double)took[rounds / 100 * 99] * per, (double)cpu / rounds);
	fflush(stdout);
}

/* --- the floors ----------------------------------------------------------- */

static void
await(const struct row *row, _Atomic uint32_t *word, uint32_t value)
{
	uint32_t seen;

	while ((seen = atomic_load_explicit(word, memory_order_acquire)) !=
		value)
		switch (row->kind) {
		case SLEEP:
			syscall(SYS_futex, word, FUTEX_WAIT, seen, NULL, NULL,
				0);
			break;
		case YIELD:
			sched_yield();
			break;
		case SPIN:
		case COPY:
		case HAND:
		case IDLE:
			tick_pause();
			break;
		}
}

static void
tell(const struct row *row, _Atomic uint32_t *word, uint32_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
	if (row->kind == SLEEP)
		syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void
floor_child(const struct row *row, uint32_t rounds)
{
	for (uint32_t i = 1; i <= rounds; i++) {
		await(row, &shared->there, i);
		tell(row, &shared->back, i);
	}
}

static void
floor_parent(const struct row *row, uint32_t rounds)
{
	for (uint32_t i = 1; i <= rounds; i++) {
		int64_t begin = tick_now();

		tell(row, &shared->there, i);
		await(row, &shared->back, i);
		took[i - 1] = tick_now() - begin;
	}
}

/* --- the carrier ---------------------------------------------------------- */

static unsigned char source[LARGE], sink[LARGE];

static void *
to_sink(struct rig *rig, uint64_t len)
{
	return len <= LARGE ? sink : NULL;
}

/* The same back, or of what was handed over its first bytes. */
static void
echo(struct rig *rig, struct rig_peer *from, const struct xr_record *record,
	const struct xr_body *body)
{
	const struct row *row = rig->ctx;
	size_t len = row->kind == HAND ? 8 : body->len;
	const struct xr_part part = { body->data, len };
	const struct xr_message m = {
		.record = *record,
		.parts = &part,
		.count = 1,
	};
	bool pending;

	if (shm_carrier.send(from->link, &m, &pending) != XR_OK)
		exit(3);
}

static void
check(struct rig *rig, struct rig_peer *from, const struct xr_record *record,
	const struct xr_body *body)
{
	const struct row *row = rig->ctx;
	size_t len = row->kind == HAND ? 8 : row->len;

	if (body->len != len ||
		(len > 0 && *(const unsigned char *)body->data != source[0]))
		exit(4);
}

static void
carrier_child(const struct row *row, int rounds)
{
	struct rig rig = {
		.deliver = echo,
		.place = to_sink,
		.ctx = (void *)(uintptr_t)row,
	};

	rig_open(&rig, 1);
	while (rig.lost == 0)
		rig_until(&rig, &rig.delivered, UINT64_MAX);
}

static void
one_round(struct rig *rig, struct rig_peer *peer, unsigned char *data, int i)
{
	const struct row *row = rig->ctx;
	const struct xr_part part = { data, row->len };
	const struct xr_message m = {
		.record = { .corr = (uint64_t)i },
		.parts = &part,
		.count = 1,
	};
	bool pending = false;
	struct wait w;
	uint64_t sent = rig->sent;

	if (row->len > 0)
		data[0] = source[0] = (unsigned char)i;
	if (shm_carrier.send(peer->link, &m, &pending) != XR_OK)
		exit(5);
	wait_begin(&w, shm_env(rig->shm),
		shm_cpu_of(rig->shm, shm_link_slot(peer->link)), &rig->site);
	while (rig->delivered <= (uint64_t)i || (pending && rig->sent == sent))
		rig_turn(rig, &w, INT64_MAX);
	wait_end(&w);
}

static void
carrier_parent(const struct row *row, int rounds)
{
	struct rig rig = {
		.deliver = check,
		.place = to_sink,
		.ctx = (void *)(uintptr_t)row,
	};
	unsigned char *data = source;
	struct rig_peer *peer;
	void *own = NULL;

	rig_open(&rig, 0);
	peer = rig_connect(&rig, 1);
	if (row->kind == HAND)
		data = shm_alloc(rig.shm, row->len, &own);
	for (int i = 0; i < rounds; i++) {
		int64_t begin;

		if (row->kind == IDLE)
			usleep(IDLE_NS / 1000);
		begin = tick_now();
		one_round(&rig, peer, data, i);
		took[i] = tick_now() - begin;
	}
	rig_close(&rig);
}

/* --- a case --------------------------------------------------------------- */

static void
half(const struct row *row, int rounds, int which)
{
	bool floor = row->kind <= SLEEP;

	rig_pin(row->cpu[which]);
	if (which == 1 && floor)
		floor_child(row, (uint32_t)rounds);
	else if (which == 1)
		carrier_child(row, rounds);
	else if (floor)
		floor_parent(row, (uint32_t)rounds);
	else
		carrier_parent(row, rounds);
}

/* Both in processes of their own: each opens its shared memory once. */
static void
run(const struct row *row, int rounds)
{
	int64_t cpu = cpu_ns(RUSAGE_CHILDREN);
	int status, fd = rig_segment(2, 0);
	pid_t pid[2];

	*shared = (struct floor){ .there = 0 };
	for (int i = 0; i < 2; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			half(row, rounds, i);
			_exit(0);
		}
	}
	for (int i = 0; i < 2; i++)
		if (waitpid(pid[i], &status, 0) != pid[i] || status != 0)
			fprintf(stderr, "shmping: %s: process %d: %x\n",
				row->name, i, (unsigned)status);
	close(fd);
	show(row, rounds, cpu_ns(RUSAGE_CHILDREN) - cpu);
}

static void *
share(size_t len)
{
	void *at = mmap(NULL, len, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		exit(2);
	return at;
}

int
main(int argc, char **argv)
{
	const char *only = NULL;
	int rounds = 0;

	for (int i = 1; i + 1 < argc; i += 2)
		if (strcmp(argv[i], "--rounds") == 0)
			rounds = (int)strtol(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--case") == 0)
			only = argv[i + 1];
	if (rounds < 0 || rounds > ROUNDS_MAX)
		return 2;
	took = share(ROUNDS_MAX * sizeof(*took));
	shared = share(sizeof(*shared));
	printf("%-22s %9s %9s %9s\n", "", "p50 ns", "p99 ns", "CPU ns");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (only == NULL || strcmp(rows[i].name, only) == 0)
			run(&rows[i], rounds > 0 ? rounds : rows[i].rounds);
	return 0;
}
