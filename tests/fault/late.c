/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late.c - a rank that is late, and the ranks that the error of the others names.
 *
 *   xrun -n N fault_late OPERATIONS PAGE [tcp] [stop]
 *
 * In each round the ranks make GROUPS groups, and all but one rank of each group call an
 * operation of it, each by a thread of its own. The operation times out, and the error has
 * to name the late rank only. PAGE is a file that all ranks map: each rank writes there
 * when it calls. A rank that the machine kept from calling until the time of another rank
 * was over is late, too, and may be named.
 *
 * With stop, another rank stops one rank in each round (SIGSTOP) while that waits, until
 * its time is over. The others call meanwhile, so they came in time, and that rank has not
 * read that they did.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/mman.h>

#include <xrun/coll.h>
#include <xrun/job.h>
#include <xrun/rpc.h>
#include <xrun/world.h>

#define GROUPS    32
#define RANKS_MAX 16
#define WAIT_NS   (XR_SECONDS(1) / 2)
#define LONG      XR_SECONDS(300)

static struct page {
	_Atomic int64_t called[GROUPS][RANKS_MAX]; /* ns; 0: not yet */
	_Atomic pid_t pid[RANKS_MAX];
	_Atomic uint32_t
		stopped; /* the last round, from 1, whose rank is stopped */
} *page;

static struct xr_world *world;
static uint32_t rank, size, round_now;
static _Atomic uint32_t violations, excused;
static bool stops;

struct late_call {
	struct xr_coll *coll;
	uint32_t group;
	pthread_t thread;
};

static int64_t
late_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * XR_SECONDS(1) + t.tv_nsec;
}

static void
late_must(enum xr_status status, const struct xr_error *err, const char *what)
{
	if (status == XR_OK)
		return;
	fprintf(stderr, "VIOLATION rank %u round %u: %s: %s\n", rank, round_now,
		what, err->text);
	_exit(1);
}

/* The rank that does not come to a group of this round. */
static uint32_t
late_rank(uint32_t group)
{
	return (round_now + group) % size;
}

/* --- a rank that is stopped ------------------------------------------------------- */

static uint32_t
late_victim(void)
{
	return (round_now + 2) % size;
}

static void
late_sleep(int64_t ns)
{
	nanosleep(&(struct timespec){ ns / XR_SECONDS(1), ns % XR_SECONDS(1) },
		NULL);
}

/* Until the victim has called in all groups to which it comes. */
static void
late_await_victim(void)
{
	for (uint32_t g = 0; g < GROUPS; g++)
		while (late_rank(g) != late_victim() &&
			page->called[g][late_victim()] == 0)
			late_sleep(WAIT_NS / 500);
}

static void
late_stop(void)
{
	pid_t pid = page->pid[late_victim()];

	late_await_victim();
	late_sleep(WAIT_NS / 10); /* it waits */
	kill(pid, SIGSTOP);
	page->stopped = round_now + 1;
	late_sleep(2 * WAIT_NS);
	kill(pid, SIGCONT);
}

/* The others call while the victim is stopped. */
static void
late_await_stop(void)
{
	while (stops && rank != late_victim() && page->stopped <= round_now)
		late_sleep(WAIT_NS / 500);
}

/* Returns true if rank @r called when the time of the first rank was over. */
static bool
late_is_excused(uint32_t group, uint32_t r)
{
	int64_t first = INT64_MAX, at;

	for (uint32_t i = 0; i < size; i++) {
		at = page->called[group][i];
		if (at != 0 && at < first)
			first = at;
	}
	at = page->called[group][r];
	return at == 0 || at >= first + WAIT_NS;
}

/* Does the text name the late rank, and no rank that was not? */
static void
late_check(uint32_t group, enum xr_status status, const char *text)
{
	const char *at = strstr(text, "did not come in time: ");
	bool named = false, wrong = status != XR_E_TIMEOUT || at == NULL;
	uint32_t others = 0, r;
	char *end;

	at = at != NULL ? at + strlen("did not come in time: ") : "";
	for (; *at >= '0' && *at <= '9'; at = *end == ',' ? end + 2 : end) {
		r = (uint32_t)strtoul(at, &end, 10);
		if (r == late_rank(group))
			named = true;
		else if (r < size && late_is_excused(group, r))
			others++;
		else
			wrong = true;
	}
	excused += others;
	if (named && !wrong && *at == '\0')
		return;
	violations++;
	fprintf(stderr,
		"VIOLATION rank %u round %u group %u, late %u: %s: %s\n", rank,
		round_now, group, late_rank(group), xr_status_name(status),
		text);
}

/* Every fourth group calls the form with a future; every second does an operation with all
 * ranks before. */
static void *
late_call_one(void *arg)
{
	struct late_call *c = arg;
	struct xr_future *future = NULL;
	struct xr_error err = { 0 };
	int64_t x = rank;
	const struct xr_coll_op op = {
		.size = sizeof(op),
		.dtype = XR_DT_I64,
		.data = &x,
		.count = 1,
		.op = XR_SUM,
		.timeout = WAIT_NS,
	};
	enum xr_status status;

	late_await_stop();
	page->called[c->group][rank] = late_now();
	if (c->group % 4 != 3) {
		status = xr_coll_allreduce(c->coll, &op, &err);
	} else {
		status = xr_coll_iallreduce(c->coll, &op, &future, &err);
		if (status == XR_OK)
			status = xr_future_wait(future, LONG, NULL, &err);
		xr_future_unref(future);
	}
	late_check(c->group, status, err.text);
	return NULL;
}

static void
late_barrier(struct xr_coll *coll)
{
	const struct xr_coll_op op = { .size = sizeof(op), .timeout = LONG };
	struct xr_error err = { 0 };

	late_must(xr_coll_barrier(coll, &op, &err), &err, "barrier");
}

static void
late_round(struct xr_coll *all)
{
	const struct xr_coll_opts opts = { .size = sizeof(opts),
		.timeout = LONG };
	struct late_call call[GROUPS];
	struct xr_error err = { 0 };

	for (uint32_t g = 0; g < GROUPS; g++) {
		call[g].group = g;
		page->called[g][rank] = 0;
		late_must(xr_coll_new(world, &opts, &call[g].coll, &err), &err,
			"xr_coll_new");
		if (g % 2 != 0)
			late_barrier(call[g].coll);
	}
	late_barrier(all);
	for (uint32_t g = 0; g < GROUPS; g++)
		if (late_rank(g) != rank &&
			pthread_create(&call[g].thread, NULL, late_call_one,
				&call[g]) != 0)
			_exit(1);
	if (stops && rank == (late_victim() + 1) % size)
		late_stop();
	for (uint32_t g = 0; g < GROUPS; g++)
		if (late_rank(g) != rank)
			pthread_join(call[g].thread, NULL);
	late_barrier(all);
	for (uint32_t g = 0; g < GROUPS; g++)
		xr_coll_free(call[g].coll);
}

static void
late_join(bool tcp)
{
	static const char *const only_tcp[] = { "tcp" };
	struct xr_rpc_opts rpc = { .size = sizeof(rpc) };
	struct xr_world_opts opts = XR_WORLD_OPTS;
	struct xr_error err = { 0 };

	late_must(xr_rpc_opts_init(0, &rpc, &err), &err, "xr_rpc_opts_init");
	rpc.transports = only_tcp;
	rpc.transport_count = tcp;
	opts.rpc = &rpc;
	late_must(xr_world_new(&opts, &world, &err), &err, "xr_world_new");
	rank = (uint32_t)xr_rank();
	size = xr_world_size(world);
}

static void
late_map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd == -1 || ftruncate(fd, sizeof(*page)) == -1)
		_exit(2);
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		0);
	if (page == MAP_FAILED)
		_exit(2);
	close(fd);
}

int
main(int argc, char **argv)
{
	struct xr_coll *all = NULL;
	struct xr_error err = { 0 };
	uint32_t rounds;

	if (argc < 3)
		return 2;
	rounds = ((uint32_t)strtoul(argv[1], NULL, 10) + GROUPS - 1) / GROUPS;
	late_map(argv[2]);
	stops = strcmp(argv[argc - 1], "stop") == 0;
	late_join(strcmp(argv[3 < argc ? 3 : 0], "tcp") == 0);
	if (size < 2 || size > RANKS_MAX)
		return 2;
	page->pid[rank] = getpid();
	page->stopped = 0;
	late_must(xr_coll_new(world, NULL, &all, &err), &err, "xr_coll_new");
	for (round_now = 0; round_now < rounds; round_now++)
		late_round(all);
	xr_coll_free(all);
	printf("%u operations, %u violations, %u ranks that the machine made late\n",
		rounds * GROUPS, violations, excused);
	xr_world_close(world, XR_SHUTDOWN_GRACEFUL, LONG, &err);
	xr_world_free(world);
	return violations > 0;
}
