/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll_late.c - ranks of which one does not come, and the names that the others get.
 *
 *   xrun -n 3 coll_late CASE FOLDER [tcp]
 *
 * Ranks create files in FOLDER to bring themselves into an order. An unexpected result
 * ends the program with status 1 and a line that states the result.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <xrun/coll.h>
#include <xrun/job.h>

#include "tests/kit/backend.h"
#include "tests/kit/slow_owner.h"
#include "tests/prog/expect.h"

static struct xr_world *world;
static const char *folder;

#define OP(...) \
	(&(struct xr_coll_op){ .size = sizeof(struct xr_coll_op), __VA_ARGS__ })

/* --- order ---------------------------------------------------------------------- */

static void
sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

static void
path_of(const char *mark, char path[4096])
{
	snprintf(path, 4096, "%s/%s", folder, mark);
}

static void
set_mark(const char *mark)
{
	char path[4096];
	int fd;

	path_of(mark, path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	EXPECT(fd != -1);
	close(fd);
}

static void
await_mark(const char *mark)
{
	char path[4096];

	path_of(mark, path);
	while (access(path, F_OK) != 0)
		sleep_ms(5);
}

static struct xr_coll *
new_group(void)
{
	struct xr_coll *coll = NULL;

	EXPECT(xr_coll_new(world, NULL, &coll, &err) == XR_OK);
	return coll;
}

static void
close_world(void)
{
	EXPECT(xr_world_close(world, XR_SHUTDOWN_IMMEDIATE, 0, &err) == XR_OK);
	xr_world_free(world);
}

/* --- a progress owner that does not run ------------------------------------------- */

#define WAIT_MS 2000

static void *
let_it_run(void *unused)
{
	sleep_ms(WAIT_MS + 500);
	slow_owner_continue();
	return unused;
}

/* Rank 1 comes in time, while the progress owner of rank 0 does not read. Rank 2 comes when
 * the time of rank 0 is over: the others fail then, too, or had all they needed. */
static void
slow_owner(void)
{
	struct xr_coll *coll = new_group();
	pthread_t thread;

	if (rank == 0) {
		slow_owner_stop();
		EXPECT(pthread_create(&thread, NULL, let_it_run, NULL) == 0);
		set_mark("waits");
		EXPECT(xr_coll_barrier(coll,
			       OP(.timeout = WAIT_MS * (XR_SECONDS(1) / 1000)),
			       &err) == XR_E_TIMEOUT);
		printf("rank 0: %s\n", err.text);
		pthread_join(thread, NULL);
		set_mark("over");
	} else if (rank == 1) {
		await_mark("waits");
		sleep_ms(300);
		xr_coll_barrier(coll, OP(.timeout = XR_SECONDS(60)), &err);
	} else {
		await_mark("over");
		xr_coll_barrier(coll, NULL, &err);
	}
	xr_coll_free(coll);
	close_world();
}

/* --- a rank that is stopped ---------------------------------------------------------- */

#define STOP_MS 1000 /* time of rank 0, which is stopped when that is over */

/* Rank 2 stops rank 0 while that waits, and rank 1 comes meanwhile. */
static void
stop_rank_0(pid_t pid)
{
	await_mark("waits");
	sleep_ms(STOP_MS / 4);
	EXPECT(kill(pid, SIGSTOP) == 0);
	set_mark("stopped");
	sleep_ms(STOP_MS + STOP_MS / 2);
	EXPECT(kill(pid, SIGCONT) == 0);
	await_mark("over");
}

static pid_t
pid_of_rank_0(struct xr_coll *coll)
{
	int32_t pid = getpid();

	EXPECT(xr_coll_bcast(coll,
		       OP(.dtype = XR_DT_I32, .data = &pid, .count = 1),
		       &err) == XR_OK);
	return pid;
}

static void
stopped(void)
{
	struct xr_coll *coll = new_group();
	pid_t pid = pid_of_rank_0(coll);

	if (rank == 0) {
		set_mark("waits");
		EXPECT(xr_coll_barrier(coll,
			       OP(.timeout = STOP_MS * (XR_SECONDS(1) / 1000)),
			       &err) == XR_E_TIMEOUT);
		printf("rank 0: %s\n", err.text);
		set_mark("over");
	} else if (rank == 1) {
		await_mark("stopped");
		xr_coll_barrier(coll, OP(.timeout = XR_SECONDS(6)), &err);
	} else {
		stop_rank_0(pid);
	}
	xr_coll_free(coll);
	close_world();
}

static void
stopped_close(void)
{
	struct xr_coll *coll = new_group();
	pid_t pid = pid_of_rank_0(coll);
	int64_t timeout =
		rank == 0 ? STOP_MS * (XR_SECONDS(1) / 1000) : XR_SECONDS(60);

	xr_coll_free(coll);
	if (rank == 2) {
		stop_rank_0(pid);
		close_world();
		return;
	}
	if (rank == 0)
		set_mark("waits");
	else
		await_mark("stopped");
	EXPECT(xr_world_close(world, XR_SHUTDOWN_GRACEFUL, timeout, &err) ==
		XR_E_TIMEOUT);
	printf("rank %u: %s\n", rank, err.text);
	if (rank == 0)
		set_mark("over");
	xr_world_free(world);
}

/* --- forms ---------------------------------------------------------------------------- */

/* The call of the root returns before the others begin the form with a future. */
static void
form_of(enum xr_status (*root)(struct xr_coll *, const struct xr_coll_op *,
		struct xr_error *),
	enum xr_status (*other)(struct xr_coll *, const struct xr_coll_op *,
		struct xr_future **, struct xr_error *),
	const char *mark)
{
	struct xr_coll *coll = new_group();
	struct xr_future *future = NULL;
	int32_t data[3] = { 0 }, *each[3] = { &data[0], &data[1], &data[2] };
	const struct xr_coll_op *op = OP(.dtype = XR_DT_I32, .data = data,
		.count = 1,
		.list = rank == 0 && root == xr_coll_scatter ? (void **)each :
							       NULL,
		.timeout = XR_SECONDS(2));
	char name[32];

	if (rank == 0) {
		EXPECT(root(coll, op, &err) == XR_OK);
		set_mark(mark);
	} else {
		await_mark(mark);
		EXPECT(other(coll, op, &future, &err) == XR_OK);
		EXPECT(xr_future_wait(future, XR_SECONDS(60), NULL, &err) ==
			XR_E_CONFLICT);
		printf("rank %u: %s\n", rank, err.text);
		xr_future_unref(future);
	}
	snprintf(name, sizeof(name), "%s.%u", mark, rank);
	set_mark(name);
	for (uint32_t i = 0; i < size; i++) {
		snprintf(name, sizeof(name), "%s.%u", mark, i);
		await_mark(name);
	}
	xr_coll_free(coll);
}

static void
form(void)
{
	form_of(xr_coll_bcast, xr_coll_ibcast, "bcast");
	form_of(xr_coll_scatter, xr_coll_iscatter, "scatter");
	close_world();
}

/* --- leaving ------------------------------------------------------------------------ */

/* Rank 1 dies, which rank 2 knows before rank 0 leaves: a process that learns of two ends
 * at a time takes any for the first. Rank 2 calls after rank 0 has left. */
static void
dead_close(void)
{
	struct xr_coll *coll = new_group();
	int32_t data;
	const struct xr_coll_op *op =
		OP(.dtype = XR_DT_I32, .data = &data, .count = 1, .rank = 1);
	enum xr_status status;

	if (rank == 2)
		set_mark("has a group");
	else
		await_mark("has a group");
	if (rank == 1)
		kill(getpid(), SIGKILL);
	if (rank == 2) {
		EXPECT(xr_coll_recv(coll, op, NULL, &err) == XR_E_PEER_LOST);
		set_mark("knows");
		await_mark("over");
	}
	await_mark("knows");
	xr_coll_free(coll);
	status = xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30),
		&err);
	EXPECT(status == XR_E_PEER_LOST);
	printf("rank %u: %s\n", rank, err.text);
	set_mark("over");
	xr_world_free(world);
}

/* Rank 1 does not call before the time of the others is over. */
static void
late_close(void)
{
	enum xr_status status;
	bool late = rank == 1;

	xr_coll_free(new_group());
	if (late)
		await_mark("over");
	status = xr_world_close(world,
		late ? XR_SHUTDOWN_IMMEDIATE : XR_SHUTDOWN_GRACEFUL,
		XR_SECONDS(2), &err);
	EXPECT(status == (late ? XR_OK : XR_E_TIMEOUT));
	if (!late)
		printf("rank %u: %s\n", rank, err.text);
	set_mark("over");
	xr_world_free(world);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "slow-owner", slow_owner },
	{ "dead-close", dead_close },
	{ "late-close", late_close },
	{ "stopped", stopped },
	{ "stopped-close", stopped_close },
	{ "form", form },
};

int
main(int argc, char **argv)
{
	struct xr_world_opts opts = XR_WORLD_OPTS;
	struct xr_rpc_opts rpc = { .size = sizeof(rpc) };
	const char *const tcp[] = { "tcp" };
	size_t i = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (argc < 3 || strcmp(argv[1], cases[i].name) != 0)
		EXPECT(++i < sizeof(cases) / sizeof(cases[0]));
	folder = argv[2];
	EXPECT(xr_rpc_opts_init(tested_backend(), &rpc, &err) == XR_OK);
	rpc.transports = tcp;
	rpc.transport_count = argc > 3;
	opts.rpc = &rpc;
	EXPECT(xr_world_new(&opts, &world, &err) == XR_OK);
	rank = (uint32_t)xr_rank();
	size = xr_world_size(world);
	cases[i].run();
	return 0;
}
