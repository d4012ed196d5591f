/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll.c - groups of three processes under the thread sanitizer: several threads of
 * each, one a group; what waits and what does not; short and long; in shared memory
 * and over TCP; groups that are made and closed meanwhile, and one that a member
 * leaves in the middle.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/wait.h>

#include <xrun/coll.h>

#include "segment/owner.h"
#include "tests/kit/backend.h"

#define RANKS  3
#define GROUPS 3
#define ROUNDS 60

#define SEGMENT_FD 98 /* any that is free */

static uint32_t rank;
static struct xr_world *world;
static struct xr_coll *group[GROUPS];
static _Atomic int failures;

static bool
check(bool ok, const char *what, const struct xr_error *err)
{
	if (!ok && atomic_fetch_add(&failures, 1) < 20)
		fprintf(stderr, "# rank %u: %s: %s\n", rank, what,
			err != NULL ? err->text : "");
	return ok;
}

#define OP(...) \
	(&(struct xr_coll_op){ .size = sizeof(struct xr_coll_op), \
		.dtype = XR_DT_I64, \
		__VA_ARGS__ })

static const size_t counts[] = { 1, 12, 500, 30000 };

/* Each has its rank and the number everywhere. */
static void
fill(int64_t *x, size_t count, int64_t n)
{
	for (size_t i = 0; i < count; i++)
		x[i] = (int64_t)rank * 1000 + n;
}

static bool
is_sum(const int64_t *x, size_t count, int64_t n)
{
	for (size_t i = 0; i < count; i++)
		if (x[i] != 3000 + RANKS * n)
			return false;
	return true;
}

static void
one_round(struct xr_coll *coll, int64_t *x, int64_t n)
{
	size_t count = counts[n % 4];
	struct xr_future *f = NULL;
	struct xr_error err = { 0 };

	fill(x, count, n);
	check(xr_coll_allreduce(coll,
		      OP(.data = x, .count = count, .op = XR_SUM),
		      &err) == XR_OK &&
			is_sum(x, count, n),
		"all_reduce", &err);
	fill(x, count, n);
	if (check(xr_coll_iallreduce(coll,
			  OP(.data = x, .count = count, .op = XR_SUM), &f,
			  &err) == XR_OK,
		    "iall_reduce", &err)) {
		check(xr_future_wait(f, XR_SECONDS(100), NULL, &err) == XR_OK &&
				is_sum(x, count, n),
			"its future", &err);
		xr_future_unref(f);
	}
	check(xr_coll_barrier(coll, NULL, &err) == XR_OK, "barrier", &err);
}

/* To the next, of the one before. */
static void
pass_on(struct xr_coll *coll, int64_t *x, int64_t n)
{
	size_t count = counts[n % 4];
	struct xr_future *f = NULL;
	struct xr_error err = { 0 };
	int64_t from = -1;

	fill(x, count, n);
	if (!check(xr_coll_isend(coll,
			   OP(.data = x, .count = count,
				   .rank = (rank + 1) % RANKS),
			   &f, &err) == XR_OK,
		    "isend", &err))
		return;
	check(xr_coll_recv(coll,
		      OP(.data = x + 30000, .count = count,
			      .rank = XR_COLL_ANY),
		      &from, &err) == XR_OK &&
			from == (rank + RANKS - 1) % RANKS &&
			x[30000] == from * 1000 + n,
		"recv", &err);
	check(xr_future_wait(f, XR_SECONDS(100), NULL, &err) == XR_OK, "sent",
		&err);
	xr_future_unref(f);
}

#define AHEAD 1300 /* more than are on their way at once */

/* More to the next than it may have, of which it gets what is not cancelled before. */
static void
send_ahead(struct xr_coll *coll, int64_t *x)
{
	struct xr_future *f[AHEAD] = { NULL };
	struct xr_error err = { 0 };
	int64_t end = -1, got = 0;
	uint32_t to = (rank + 1) % RANKS, from = (rank + RANKS - 1) % RANKS;

	for (int64_t i = 0; i < AHEAD; i++) {
		x[i] = i;
		check(xr_coll_isend(coll,
			      OP(.data = &x[i], .count = 1, .rank = to,
				      .tag = 7),
			      &f[i], &err) == XR_OK,
			"isend ahead", &err);
	}
	for (int64_t i = 0; i < AHEAD; i += 3) {
		xr_future_cancel(f[i]);
		check(xr_future_done(f[i]), "cancelled", &err);
	}
	xr_future_unref(f[0]);
	/* It waits for its turn. */
	check(xr_coll_isend(coll,
		      OP(.data = &end, .count = 1, .rank = to, .tag = 7), &f[0],
		      &err) == XR_OK,
		"the last", &err);
	while (got >= 0 &&
		check(xr_coll_recv(coll,
			      OP(.data = &got, .count = 1, .rank = from,
				      .tag = 7),
			      NULL, &err) == XR_OK,
			"recv of many", &err))
		;
	for (int64_t i = 0; i < AHEAD; i++) {
		if (i == 0 || i % 3 != 0)
			check(xr_future_wait(f[i], XR_SECONDS(100), NULL,
				      &err) == XR_OK,
				"sent ahead", &err);
		xr_future_unref(f[i]);
	}
}

static void *
work(void *arg)
{
	struct xr_coll **coll = arg;
	int64_t *x = calloc(60000, sizeof(*x));

	for (int64_t n = 0; n < ROUNDS && x != NULL; n++) {
		one_round(*coll, x, n);
		pass_on(*coll, x, n);
	}
	if (x != NULL)
		send_ahead(*coll, x);
	free(x);
	return NULL;
}

static void
all_at_once(void)
{
	pthread_t thread[GROUPS];
	struct xr_error err = { 0 };

	for (int i = 0; i < GROUPS; i++)
		check(xr_coll_new(world, NULL, &group[i], &err) == XR_OK,
			"group", &err);
	for (int i = 0; i < GROUPS; i++)
		pthread_create(&thread[i], NULL, work, &group[i]);
	for (int i = 0; i < GROUPS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < GROUPS; i++)
		xr_coll_free(group[i]);
}

/* One goes while the others wait: they are late, or told. */
static void
one_leaves(void)
{
	struct xr_coll *coll = NULL;
	struct xr_error err = { 0 };
	enum xr_status status;

	for (int i = 0; i < 5; i++) {
		if (!check(xr_coll_new(world, NULL, &coll, &err) == XR_OK,
			    "group", &err))
			return;
		status = rank == 1 ?
			XR_E_TIMEOUT :
			xr_coll_barrier(coll, OP(.timeout = XR_SECONDS(0.3)),
				&err);
		check(status == XR_E_TIMEOUT, "a barrier that one left", &err);
		xr_coll_free(coll);
	}
}

static int
be_rank(bool by_tcp, const char *method)
{
	const char *const tcp[] = { "tcp" };
	struct xr_world_opts opts = XR_WORLD_OPTS;
	struct xr_rpc_opts rpc = { .size = sizeof(rpc) };
	struct xr_error err = { 0 };

	xr_rpc_opts_init(tested_backend(), &rpc, NULL);
	rpc.init_method = method;
	rpc.transports = tcp;
	rpc.transport_count = by_tcp;
	opts.rpc = &rpc;
	opts.rank = rank;
	opts.world_size = RANKS;
	if (!check(xr_world_new(&opts, &world, &err) == XR_OK, "world", &err))
		return 1;
	all_at_once();
	one_leaves();
	check(xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(100),
		      &err) == XR_OK,
		"close", &err);
	xr_world_free(world);
	return atomic_load(&failures) != 0;
}

static pid_t
begin_rank(uint32_t r, const char *how, const char *method)
{
	char number[16];
	pid_t pid;

	snprintf(number, sizeof(number), "%u", r);
	pid = fork();
	if (pid == 0) {
		setenv("XRUN_LOCAL_RANK", number, 1);
		execl("/proc/self/exe", "coll", number, how, method, NULL);
		_exit(127);
	}
	return pid;
}

static bool
run_ranks(const char *how)
{
	char path[] = "/tmp/xrun-thread-XXXXXX", method[64];
	pid_t pid[RANKS];
	bool good = true;
	int end;

	close(mkstemp(path));
	snprintf(method, sizeof(method), "file://%s", path);
	for (uint32_t r = 0; r < RANKS; r++)
		pid[r] = begin_rank(r, how, method);
	for (uint32_t r = 0; r < RANKS; r++)
		good &= waitpid(pid[r], &end, 0) == pid[r] && end == 0;
	unlink(path);
	return good;
}

/* As the supervisor gives it to its ranks. */
static bool
make_segment(void)
{
	const struct segment_wish wish = { .job = "coll", .ranks = RANKS };
	int fd = segment_create(&wish);
	struct stat st;
	char text[64];

	/* Without close-on-exec. */
	if (fd == -1 || dup2(fd, SEGMENT_FD) == -1 ||
		fstat(SEGMENT_FD, &st) == -1)
		return false;
	snprintf(text, sizeof(text), "%d:%llu", SEGMENT_FD,
		(unsigned long long)st.st_ino);
	return setenv("XRUN_SEGMENT_FD", text, 1) == 0;
}

int
main(int argc, char **argv)
{
	bool good;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 3) {
		rank = (uint32_t)strtoul(argv[1], NULL, 10);
		return be_rank(strcmp(argv[2], "tcp") == 0, argv[3]);
	}
	printf("1..2\n");
	good = run_ranks("tcp");
	printf("%sok 1 - groups of processes over TCP\n", good ? "" : "not ");
	good = make_segment() && run_ranks("shm") && good;
	printf("%sok 2 - and in shared memory\n", good ? "" : "not ");
	return !good;
}
