/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.c - worlds beside each other, and worlds that lose rank 0.
 *
 *   xrun -n N world together NUMBER MINE OTHER [tcp]   a job of two that meet by
 *                          the FIFOs MINE and OTHER, and whose names are the same
 *   xrun -n 2 world found NUMBER MINE OTHER tcp        one whose rank 1 says in
 *                          the file "said" how it is found, and is called by it
 *   xrun -n 2 world stray NUMBER MINE OTHER tcp        the other, whose rank 1 says
 *                          that it is to be found there
 *   xrun -n 3 world headless [tcp]                     rank 0 is killed
 *   RANK=R .. world storeless                          the same, with the store
 *   xrun -n 3 world withdrawn [tcp]                    rank 2 is killed in a barrier
 *   xrun -n 3 world silent [tcp]                       rank 2 is killed before it has
 *                          spoken to anybody
 *
 * What was not expected ends it with status 1, and a line that says what.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/coll.h>
#include <xrun/group.h>
#include <xrun/job.h>
#include <xrun/store.h>

#include "tests/prog/expect.h"

#define ROUNDS 100
#define SOON   XR_SECONDS(1)

static struct xr_world *world;
static struct xr_coll *all;
static struct xr_group *names;
static int64_t number; /* of the job */
static int mine, other;
static bool by_tcp;
static _Atomic int64_t called;

/* --- both ---------------------------------------------------------------------- */

static void
open_both(char **path)
{
	mine = open(path[0], O_RDWR | O_CLOEXEC);
	other = open(path[1], O_RDWR | O_CLOEXEC);
	EXPECT(mine != -1 && other != -1);
}

/* Rank 0 of either job has come as far. */
static void
meet_other(void)
{
	char byte = '.';

	EXPECT(write(other, &byte, 1) == 1 && read(mine, &byte, 1) == 1);
}

static enum xr_status
whose(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	atomic_fetch_add(&called, 1);
	return xr_reply(call, xr_value_new_i64(number * 100 + rank));
}

static void
join_world(void)
{
	const struct xr_func func = { .size = sizeof(func),
		.name = "whose",
		.schema = "",
		.fn = whose };
	const char *const tcp[] = { "tcp" };
	struct xr_world_opts opts = XR_WORLD_OPTS;
	struct xr_rpc_opts rpc = { .size = sizeof(rpc) };

	EXPECT(xr_rpc_opts_init(0, &rpc, &err) == XR_OK);
	rpc.transports = tcp;
	rpc.transport_count = by_tcp;
	opts.rpc = &rpc;
	EXPECT(xr_fn_register(&func, &err) == XR_OK);
	EXPECT(xr_world_new(&opts, &world, &err) == XR_OK);
	rank = (uint32_t)xr_rank();
	size = xr_world_size(world);
}

static void
make_groups(void)
{
	const struct xr_group_opts opts = { .size = sizeof(opts),
		.name = "all" };

	EXPECT(xr_coll_new(world, NULL, &all, &err) == XR_OK);
	EXPECT(xr_group_new(world, &opts, &names, &err) == XR_OK);
}

static void
leave_world(void)
{
	xr_group_free(names);
	xr_coll_free(all);
	all = NULL; /* what is not freed is seen to be lost */
	names = NULL;
	EXPECT(xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30),
		       &err) == XR_OK);
	xr_world_free(world);
}

static int64_t
number_of(struct xr_value *v)
{
	int64_t n = -1;

	EXPECT(v != NULL && xr_value_get_i64(v, &n) == XR_OK);
	xr_value_unref(v);
	return n;
}

static enum xr_status
call_member(uint32_t to, int64_t *answer)
{
	struct xr_rpc_call call = XR_RPC_CALL;
	struct xr_value *v = NULL;
	enum xr_status status;

	call.to = xr_world_member(world, to);
	call.func = "whose";
	status = xr_rpc_sync(&call, &v, &err);
	if (status == XR_OK)
		*answer = number_of(v);
	return status;
}

/* --- keys ---------------------------------------------------------------------- */

static enum xr_status
pair(const char *key, int64_t n)
{
	struct xr_value *v = xr_value_new_i64(n);
	enum xr_status status = xr_group_pair(names, key, v, &err);

	xr_value_unref(v);
	return status;
}

static enum xr_status
serve(const char *key)
{
	return xr_group_register(names,
		&(struct xr_group_service){
			.size = sizeof(struct xr_group_service),
			.key = key,
			.fn = whose },
		&err);
}

static enum xr_status
read_paired(const char *key, int64_t *n)
{
	struct xr_rref *rref = NULL;
	struct xr_value *v = NULL;
	enum xr_status status = xr_group_get_paired(names, key, &rref, &err);

	if (status != XR_OK)
		return status;
	status = xr_rref_fetch(rref, XR_SECONDS(20), &v, &err);
	xr_rref_unref(rref);
	if (status == XR_OK)
		*n = number_of(v);
	return status;
}

static enum xr_status
call_service(const char *key, int64_t *n)
{
	struct xr_group_call call = XR_GROUP_CALL;
	struct xr_value *v = NULL;
	enum xr_status status;

	call.key = key;
	status = xr_group_call_sync(names, &call, &v, &err);
	if (status == XR_OK)
		*n = number_of(v);
	return status;
}

/* --- two jobs ------------------------------------------------------------------- */

static void
sum_and_send(void)
{
	int64_t sum = number, got = -1, from = -1, sent = number * 100 + rank;
	struct xr_coll_op op = { .size = sizeof(op),
		.dtype = XR_DT_I64,
		.data = &sum,
		.count = 1,
		.op = XR_SUM };
	struct xr_future *future = NULL;
	uint32_t before = (rank + size - 1) % size;

	EXPECT(xr_coll_allreduce(all, &op, &err) == XR_OK);
	EXPECT(sum == number * size);
	op.data = &sent;
	op.rank = (rank + 1) % size;
	EXPECT(xr_coll_isend(all, &op, &future, &err) == XR_OK);
	op.data = &got;
	op.rank = XR_COLL_ANY;
	EXPECT(xr_coll_recv(all, &op, &from, &err) == XR_OK);
	EXPECT(from == before && got == number * 100 + before);
	EXPECT(xr_future_wait(future, XR_SECONDS(20), NULL, &err) == XR_OK);
	xr_future_unref(future);
}

static void
call_all(void)
{
	int64_t got;

	for (uint32_t r = 0; r < size; r++) {
		EXPECT(call_member(r, &got) == XR_OK);
		EXPECT(got == number * 100 + r);
	}
}

/* The keys are the same in both. */
static void
ask_by_key(void)
{
	int64_t got = -1;
	char key[16];

	for (uint32_t r = 0; r < size; r++) {
		snprintf(key, sizeof(key), "key%u", r);
		EXPECT(read_paired(key, &got) == XR_OK);
		EXPECT(got == number * 1000 + r);
		EXPECT(call_service(key, &got) == XR_OK);
		EXPECT(got == number * 100 + r);
	}
}

static void
together(void)
{
	char key[16];

	if (rank == 0)
		meet_other();
	make_groups();
	snprintf(key, sizeof(key), "key%u", rank);
	EXPECT(pair(key, number * 1000 + rank) == XR_OK);
	EXPECT(serve(key) == XR_OK);
	EXPECT(xr_group_barrier(names, XR_TIMEOUT_DEFAULT, &err) == XR_OK);
	for (int i = 0; i < ROUNDS; i++) {
		sum_and_send();
		call_all();
		ask_by_key();
	}
	EXPECT(xr_group_barrier(names, XR_TIMEOUT_DEFAULT, &err) == XR_OK);
	/* Of each round each has called each, twice. */
	EXPECT(called == 2 * ROUNDS * (int64_t)size);
	if (rank == 0)
		meet_other();
	EXPECT(xr_coll_barrier(all, NULL, &err) == XR_OK);
	printf("job %lld: rank %u heard of its own only\n", (long long)number,
		rank);
}

/* --- who is mistaken for another --------------------------------------------------- */

#define OWN_KEY "rpc/0/member/1"

/* As rank 1 is known in the store of its job. */
static void
found(void)
{
	struct xr_store_value own = { 0 };
	struct xr_store *store = NULL;
	int fd;

	EXPECT(xr_store_open(NULL, NULL, &store, &err) == XR_OK);
	EXPECT(xr_store_get(store, OWN_KEY, 0, &own, &err) == XR_OK);
	fd = open("said", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	EXPECT(fd != -1 && write(fd, own.data, own.len) == (ssize_t)own.len);
	close(fd);
	xr_store_value_free(&own);
	xr_store_free(store);
}

static void
be_found(void)
{
	int64_t got;

	make_groups();
	if (rank == 1) {
		found();
		meet_other(); /* it is said */
		meet_other(); /* the other job has tried */
		EXPECT(called == 0);
	}
	EXPECT(xr_coll_barrier(all, NULL, &err) == XR_OK);
	EXPECT(call_member(1, &got) == XR_OK && got == number * 100 + 1);
	printf("job %lld: rank %u was not called\n", (long long)number, rank);
}

/* Rank 1 joins as who it is not. */
static void
pose(void)
{
	struct xr_store_value tried = { 0 };
	struct xr_store *store = NULL;
	char said[4096];
	int64_t sum = 0;
	ssize_t len;
	int fd;

	meet_other();
	fd = open("said", O_RDONLY | O_CLOEXEC);
	len = fd != -1 ? read(fd, said, sizeof(said)) : -1;
	EXPECT(len > 0);
	close(fd);
	EXPECT(xr_store_open(NULL, NULL, &store, &err) == XR_OK);
	EXPECT(xr_store_set(store, OWN_KEY, said, (size_t)len, &err) == XR_OK);
	EXPECT(xr_store_add(store, "rpc/0/ready", 1, &sum, &err) == XR_OK);
	if (sum == 2)
		EXPECT(xr_store_set(store, "rpc/0/go", "1", 1, &err) == XR_OK);
	/* Until rank 0 has tried. */
	EXPECT(xr_store_get(store, "tried", XR_SECONDS(30), &tried, &err) ==
		XR_OK);
	xr_store_value_free(&tried);
	meet_other();
	xr_store_free(store);
}

static void
be_refused(void)
{
	struct xr_store *store = NULL;
	int64_t got = -1;

	EXPECT(call_member(1, &got) == XR_E_PEER_LOST);
	printf("job %lld: rank %u: %s\n", (long long)number, rank, err.text);
	EXPECT(xr_store_open(NULL, NULL, &store, &err) == XR_OK);
	EXPECT(xr_store_set(store, "tried", "1", 1, &err) == XR_OK);
	xr_store_free(store);
	xr_world_close(world, XR_SHUTDOWN_IMMEDIATE, 0, &err);
	xr_world_free(world);
}

/* --- without rank 0 -------------------------------------------------------------- */

static void
own_keys(void)
{
	char key[16];

	snprintf(key, sizeof(key), "of%u", rank);
	EXPECT(pair(key, 1000 + rank) == XR_OK);
	EXPECT(serve(key) == XR_OK);
	EXPECT(xr_group_barrier(names, XR_TIMEOUT_DEFAULT, &err) == XR_OK);
}

/* Each is over soon, and @status. */
#define IN_TIME(call, status) \
	do { \
		int64_t begun = now(); \
		EXPECT((call) == (status)); \
		EXPECT(now() - begun < SOON); \
	} while (0)

static void
look_for_keys(void)
{
	bool is = true;
	int64_t n = 0;
	char key[16];

	IN_TIME(xr_group_is_paired(names, "of0", &is, &err), XR_OK);
	EXPECT(!is);
	IN_TIME(xr_group_is_registered(names, "of0", &is, &err), XR_OK);
	EXPECT(!is);
	IN_TIME(read_paired("of0", &n), XR_E_NOTFOUND);
	/* Where it was is remembered. */
	IN_TIME(call_service("of0", &n), XR_E_PEER_LOST);
	for (uint32_t r = 1; r < size; r++) {
		snprintf(key, sizeof(key), "of%u", r);
		IN_TIME(read_paired(key, &n), XR_OK);
		EXPECT(n == 1000 + r);
		IN_TIME(call_service(key, &n), XR_OK);
		EXPECT(n == number * 100 + r);
	}
}

/* Of those that are left, whose keys go on. */
static void
go_on(void)
{
	static const char *const left[] = { "rank1", "rank2" };
	struct xr_group_opts opts = { .size = sizeof(opts),
		.name = "left",
		.members = left,
		.count = 2 };
	struct xr_group *both = NULL;
	int64_t n = 0;

	IN_TIME(xr_group_barrier(names, XR_TIMEOUT_DEFAULT, &err),
		XR_E_PEER_LOST);
	printf("rank %u: %s\n", rank, err.text);
	EXPECT(xr_group_new(world, &opts, &both, &err) == XR_OK);
	if (rank == 1) {
		IN_TIME(pair("of0", 7), XR_OK);
		IN_TIME(serve("of0"), XR_OK);
		IN_TIME(xr_group_unpair(names, "of1", &err), XR_OK);
		IN_TIME(xr_group_deregister(names, "of1", &err), XR_OK);
	}
	EXPECT(xr_group_barrier(both, XR_TIMEOUT_DEFAULT, &err) == XR_OK);
	IN_TIME(read_paired("of0", &n), XR_OK);
	EXPECT(n == 7);
	IN_TIME(call_service("of0", &n), XR_OK);
	IN_TIME(read_paired("of1", &n), XR_E_NOTFOUND);
	IN_TIME(call_service("of1", &n), XR_E_NOTFOUND);
	EXPECT(xr_group_barrier(both, XR_TIMEOUT_DEFAULT, &err) == XR_OK);
	printf("rank %u: keys without rank 0\n", rank);
	_exit(0);
}

/* It is nobody's business any more; what was found of it before, too. */
static void
lose_rank_0(void)
{
	struct xr_coll_op op = { .size = sizeof(op),
		.timeout = XR_SECONDS(20) };
	int64_t n = 0;

	make_groups();
	own_keys();
	EXPECT(call_service("of0", &n) == XR_OK && n == number * 100);
	EXPECT(xr_coll_barrier(all, &op, &err) == XR_OK);
	if (rank == 0)
		kill(getpid(), SIGKILL);
	/* Another member may have told of it: this one waits for its own link. */
	EXPECT(xr_coll_barrier(all, &op, &err) == XR_E_PEER_LOST);
	EXPECT(call_member(0, &n) == XR_E_PEER_LOST);
}

static void
headless(void)
{
	lose_rank_0();
	look_for_keys();
	go_on();
}

/* What is in a table cannot be known; what is said at once is that. */
static void
storeless(void)
{
	struct xr_group *group = NULL;
	const struct xr_group_opts opts = { .size = sizeof(opts),
		.name = "another" };
	bool is = false;
	int64_t n = 0;

	lose_rank_0();
	IN_TIME(xr_group_is_paired(names, "of1", &is, &err), XR_E_PEER_LOST);
	IN_TIME(xr_group_is_registered(names, "of1", &is, &err),
		XR_E_PEER_LOST);
	IN_TIME(read_paired("of2", &n), XR_E_PEER_LOST);
	IN_TIME(pair("new", 1), XR_E_PEER_LOST);
	printf("rank %u: %s\n", rank, err.text);
	IN_TIME(serve("new"), XR_E_PEER_LOST);
	IN_TIME(xr_group_barrier(names, XR_TIMEOUT_DEFAULT, &err),
		XR_E_PEER_LOST);
	IN_TIME(xr_group_new(world, &opts, &group, &err), XR_E_PEER_LOST);
	printf("rank %u: told at once\n", rank);
	_exit(0);
}

/* --- who has come, and is dead ------------------------------------------------------ */

static int64_t
bytes_out(void)
{
	int64_t n = -1;

	EXPECT(xr_metrics_get("net.bytes_out", &n) == XR_OK);
	return n;
}

static void *
die_once_sent(void *sent)
{
	while (bytes_out() == *(int64_t *)sent)
		sched_yield();
	kill(getpid(), SIGKILL);
	return NULL;
}

/* Rank 2 comes to a barrier, and dies there; rank 1 does not come. */
static void
withdrawn(void)
{
	static const uint32_t two[] = { 0, 1 };
	const struct xr_coll_opts opts = { .size = sizeof(opts),
		.ranks = two,
		.count = 2 };
	struct xr_coll *left = NULL;
	int64_t sent, begun;
	pthread_t thread;

	make_groups();
	if (rank != 2)
		EXPECT(xr_coll_new(world, &opts, &left, &err) == XR_OK);
	EXPECT(xr_group_barrier(names, XR_TIMEOUT_DEFAULT, &err) == XR_OK);
	if (rank == 2) {
		sent = bytes_out();
		pthread_create(&thread, NULL, die_once_sent, &sent);
	}
	begun = now();
	if (rank != 1)
		EXPECT(xr_group_barrier(names, XR_SECONDS(30), &err) ==
			XR_E_PEER_LOST);
	EXPECT(now() - begun < XR_SECONDS(10));
	if (rank == 0)
		printf("rank 0: %s\n", err.text);
	EXPECT(xr_coll_barrier(left, NULL, &err) == XR_OK);
	_exit(0);
}

/* Nobody has a way to rank 2 when it dies. */
static void
silent(void)
{
	const struct xr_group_opts opts = { .size = sizeof(opts),
		.name = "all",
		.timeout = XR_SECONDS(30) };
	int64_t begun = now();

	if (rank == 2)
		kill(getpid(), SIGKILL);
	EXPECT(xr_group_new(world, &opts, &names, &err) == XR_E_PEER_LOST);
	EXPECT(now() - begun < XR_SECONDS(10));
	printf("rank %u: %s\n", rank, err.text);
	_exit(0);
}

int
main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	EXPECT(argc > 1);
	by_tcp = strcmp(argv[argc - 1], "tcp") == 0;
	number = argc > 4 ? strtoll(argv[2], NULL, 10) : 0;
	if (argc > 4)
		open_both(argv + 3);
	if (strcmp(argv[1], "stray") == 0 && xr_job_rank() == 1) {
		pose();
		return 0;
	}
	join_world();
	if (strcmp(argv[1], "together") == 0)
		together();
	else if (strcmp(argv[1], "found") == 0)
		be_found();
	else if (strcmp(argv[1], "headless") == 0)
		headless();
	else if (strcmp(argv[1], "storeless") == 0)
		storeless();
	else if (strcmp(argv[1], "withdrawn") == 0)
		withdrawn();
	else if (strcmp(argv[1], "silent") == 0)
		silent();
	else
		EXPECT(strcmp(argv[1], "stray") == 0);
	if (strcmp(argv[1], "stray") == 0)
		be_refused();
	else
		leave_world();
	return 0;
}
