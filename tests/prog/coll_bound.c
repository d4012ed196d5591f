/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll_bound.c - ranks of which one is far ahead of the other, or in its own way.
 *
 *   xrun -n 2 coll_bound CASE [tcp]
 *
 * What a case did not expect ends it with status 1, and a line that says what.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/syscall.h>

#include <xrun/coll.h>
#include <xrun/job.h>

#include "tests/prog/expect.h"

static struct xr_world *world;
static struct xr_coll *all;

#define OP(...) \
	(&(struct xr_coll_op){ .size = sizeof(struct xr_coll_op), __VA_ARGS__ })
#define U8(at, n) .data = (at), .count = (n), .dtype = XR_DT_U8

/* The value of a line of /proc/self/status, KiB. */
static long
kib_of(const char *name)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[128];
	long kib = -1;

	EXPECT(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, name, strlen(name)) == 0)
			kib = strtol(line + strlen(name), NULL, 10);
	fclose(f);
	EXPECT(kib >= 0);
	return kib;
}

static void
end_well(struct xr_future *f)
{
	EXPECT(xr_future_wait(f, XR_SECONDS(50), NULL, &err) == XR_OK);
	xr_future_unref(f);
}

/* --- messages --------------------------------------------------------------------- */

#define LETTERS 700
#define BYTES   (1 << 20)

/* What rank 0 sends now comes after all that it has sent. */
static void
read_what_was_sent(void)
{
	struct xr_rpc_call call = XR_RPC_CALL;

	call.id = 0;
	call.func = "nothing";
	EXPECT(xr_rpc_sync(&call, NULL, &err) == XR_E_NO_FUNCTION);
}

/* So much that a process which kept it all would be seen to. They come in their order,
 * also those that waited. */
static void
flood(void)
{
	static struct xr_future *f[LETTERS];
	static uint8_t x[BYTES], tag[LETTERS];
	long before = kib_of("VmHWM:");
	uint8_t got;

	if (rank == 0) {
		for (int i = 0; i < LETTERS; i++) {
			tag[i] = (uint8_t)i;
			EXPECT(xr_coll_isend(all,
				       OP(U8(x, BYTES), .rank = 1, .tag = 1),
				       &f[i], &err) == XR_OK);
		}
		EXPECT(xr_coll_barrier(all, NULL, &err) == XR_OK);
		for (int i = 0; i < LETTERS; i++)
			end_well(f[i]);
		for (int i = 0; i < LETTERS; i++)
			EXPECT(xr_coll_isend(all, OP(U8(&tag[i], 1), .rank = 1),
				       &f[i], &err) == XR_OK);
		for (int i = 0; i < LETTERS; i++)
			end_well(f[i]);
		return;
	}
	EXPECT(xr_coll_barrier(all, NULL, &err) == XR_OK);
	read_what_was_sent();
	printf("%ld MiB more\n", (kib_of("VmHWM:") - before) / 1024);
	EXPECT(kib_of("VmHWM:") - before < 400 << 10);
	for (int i = 0; i < LETTERS; i++)
		EXPECT(xr_coll_recv(all, OP(U8(x, BYTES), .tag = 1), NULL,
			       &err) == XR_OK);
	for (int i = 0; i < LETTERS; i++) {
		EXPECT(xr_coll_recv(all, OP(U8(&got, 1)), NULL, &err) == XR_OK);
		EXPECT(got == (uint8_t)i);
	}
}

/* Who waits for the answer has its turn behind those that went before. */
static void
in_turn(void)
{
	static struct xr_future *f[1100];
	static uint8_t x[1101];
	uint8_t got;

	for (int i = 0; i < 1101; i++)
		x[i] = (uint8_t)(i * 7);
	if (rank == 0) {
		for (int i = 0; i < 1100; i++)
			EXPECT(xr_coll_isend(all, OP(U8(&x[i], 1), .rank = 1),
				       &f[i], &err) == XR_OK);
		EXPECT(xr_coll_send(all,
			       OP(U8(&x[0], 1), .rank = 1,
				       .timeout = XR_SECONDS(0.1)),
			       &err) == XR_E_TIMEOUT);
		EXPECT(xr_coll_barrier(all, NULL, &err) == XR_OK);
		EXPECT(xr_coll_send(all, OP(U8(&x[1100], 1), .rank = 1),
			       &err) == XR_OK);
		for (int i = 0; i < 1100; i++)
			end_well(f[i]);
		return;
	}
	EXPECT(xr_coll_barrier(all, NULL, &err) == XR_OK);
	for (int i = 0; i < 1101; i++) {
		EXPECT(xr_coll_recv(all, OP(U8(&got, 1)), NULL, &err) == XR_OK);
		EXPECT(got == x[i]);
	}
}

/* --- operations ------------------------------------------------------------------- */

#define AHEAD 4096 /* of operations, as xr_coll(3) says */
#define MORE  300

static void
ahead(void)
{
	static struct xr_future *f[AHEAD + MORE];
	uint8_t go = 0;

	for (int i = 0; i < AHEAD + MORE; i++) {
		if (i == AHEAD && rank == 0) {
			EXPECT(xr_coll_ibarrier(all,
				       OP(.timeout = XR_SECONDS(0.1)), &f[i],
				       &err) == XR_E_TIMEOUT);
			printf("%s\n", err.text);
			EXPECT(xr_coll_send(all, OP(U8(&go, 1), .rank = 1),
				       &err) == XR_OK);
		}
		if (i == 0 && rank == 1)
			EXPECT(xr_coll_recv(all, OP(U8(&go, 1)), NULL, &err) ==
				XR_OK);
		EXPECT(xr_coll_ibarrier(all, NULL, &f[i], &err) == XR_OK);
	}
	for (int i = 0; i < AHEAD + MORE; i++)
		end_well(f[i]);
}

/* --- a turn ----------------------------------------------------------------------- */

static _Atomic pid_t first;

static void *
enter_first(void *unused)
{
	struct xr_error own = { 0 };

	(void)unused;
	atomic_store(&first, (pid_t)syscall(SYS_gettid));
	EXPECT(xr_coll_barrier(all, NULL, &own) == XR_OK);
	return NULL;
}

/* It waits for others. */
static void
await_asleep(pid_t tid)
{
	char path[64], state = ' ';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	while (state != 'S') {
		f = fopen(path, "r");
		EXPECT(f != NULL && fscanf(f, "%*d (%*[^)]) %c", &state) == 1);
		fclose(f);
	}
}

/* A thread waits for its turn no longer than it may. */
static void
turn(void)
{
	pthread_t thread;
	uint8_t go = 0;

	if (rank == 1) {
		EXPECT(xr_coll_recv(all, OP(U8(&go, 1)), NULL, &err) == XR_OK);
		EXPECT(xr_coll_barrier(all, NULL, &err) == XR_OK);
		EXPECT(xr_coll_barrier(all, NULL, &err) == XR_OK);
		return;
	}
	EXPECT(pthread_create(&thread, NULL, enter_first, NULL) == 0);
	while (atomic_load(&first) == 0)
		sched_yield();
	await_asleep(atomic_load(&first));
	EXPECT(xr_coll_barrier(all, OP(.timeout = XR_SECONDS(0.1)), &err) ==
		XR_E_TIMEOUT);
	printf("%s\n", err.text);
	EXPECT(xr_coll_send(all, OP(U8(&go, 1), .rank = 1), &err) == XR_OK);
	/* That is of the one call only. */
	EXPECT(xr_coll_barrier(all, NULL, &err) == XR_OK);
	EXPECT(pthread_join(thread, NULL) == 0);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "flood", flood },
	{ "in-turn", in_turn },
	{ "ahead", ahead },
	{ "turn", turn },
};

int
main(int argc, char **argv)
{
	struct xr_world_opts opts = XR_WORLD_OPTS;
	struct xr_rpc_opts rpc = { .size = sizeof(rpc) };
	const char *const tcp[] = { "tcp" };
	size_t i = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (argc < 2 || strcmp(argv[1], cases[i].name) != 0)
		EXPECT(++i < sizeof(cases) / sizeof(cases[0]));
	EXPECT(xr_rpc_opts_init(0, &rpc, &err) == XR_OK);
	rpc.transports = tcp;
	rpc.transport_count = argc > 2;
	opts.rpc = &rpc;
	EXPECT(xr_world_new(&opts, &world, &err) == XR_OK);
	rank = (uint32_t)xr_rank();
	EXPECT(xr_coll_new(world, NULL, &all, &err) == XR_OK);
	cases[i].run();
	xr_coll_free(all);
	all = NULL; /* what is not freed is seen to be lost */
	EXPECT(xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30),
		       &err) == XR_OK);
	xr_world_free(world);
	return 0;
}
