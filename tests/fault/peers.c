/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.c - ranks that call each other all the time, while one after the other is
 * killed by rank 0; peerkill.c starts them.
 *
 *   peers BOARD
 *
 * Each rank has a thread that waits in a call to whoever dies next, which measures
 * how soon it hears of it, and threads that call whoever lives, with little and
 * with much, out of private memory and shared, there and back. What must hold is
 * looked at by everybody: no other error than the loss of one that died, by its
 * name; and by rank 0, in the segment: nothing of the dead stays.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include <xrun/call.h>
#include <xrun/func.h>
#include <xrun/job.h>
#include <xrun/rpc.h>
#include <xrun/value.h>

#include "tests/fault/board.h"
#include "tests/fault/left.h"

#define NS_PER_MS INT64_C(1000000)
#define PATIENCE  (20000 * NS_PER_MS)
#define LONG      (3u << 20) /* bytes of a long call, at most */
#define MIB       (1u << 20)

static struct board *board;
static uint32_t me, size;
static struct segment_map map;

static int64_t
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void
pause_ns(int64_t ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static void __attribute__((format(printf, 1, 2)))
wrong(const char *fmt, ...)
{
	uint32_t at = atomic_fetch_add(&board->wrong, 1);
	va_list ap;
	int n;

	if (at >= BOARD_WRONG)
		return;
	n = snprintf(board->text[at], sizeof(board->text[at]),
		"rank %u, round %u: ", me, atomic_load(&board->round));
	va_start(ap, fmt);
	vsnprintf(board->text[at] + n, sizeof(board->text[at]) - (size_t)n, fmt,
		ap);
	va_end(ap);
}

static uint32_t
draw(uint64_t *random, uint32_t most)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return (uint32_t)(*random >> 20) % most;
}

static uint64_t
random_of(uint32_t who)
{
	return (board->seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + me * 977 +
		who * 31 + 1;
}

/* --- functions ------------------------------------------------------------ */

static enum xr_status
echo(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	(void)ctx;
	return xr_reply_bytes(call, data, len);
}

/* As many bytes as the call says. */
static enum xr_status
fill(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	uint32_t want = 0;
	enum xr_status status;
	void *bytes;

	(void)ctx;
	memcpy(&want, data, len < sizeof(want) ? len : sizeof(want));
	want = want > LONG ? LONG : want;
	bytes = calloc(1, want + 1);
	if (bytes == NULL)
		return XR_E_NOMEM;
	status = xr_reply_bytes(call, bytes, want);
	free(bytes);
	return status;
}

static enum xr_status
length(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	uint64_t n = len;

	(void)data, (void)ctx;
	return xr_reply_bytes(call, &n, sizeof(n));
}

/* Is never answered. */
static enum xr_status
park(struct xr_call *call, const void *data, size_t len, void *ctx)
{
	(void)data, (void)len, (void)ctx;
	xr_call_defer(call);
	atomic_fetch_add(&board->arrived[me], 1);
	return XR_OK;
}

static const struct xr_func functions[] = {
	{ .size = sizeof(functions[0]),
		.name = "peers.echo",
		.flags = XR_FN_SHORT,
		.raw = echo },
	{ .size = sizeof(functions[0]), .name = "peers.fill", .raw = fill },
	{ .size = sizeof(functions[0]), .name = "peers.length", .raw = length },
	{ .size = sizeof(functions[0]),
		.name = "peers.park",
		.flags = XR_FN_ASYNC,
		.raw = park },
};

/* --- calling -------------------------------------------------------------- */

static enum xr_status
call(uint32_t to, const char *name, struct xr_part data,
	struct xr_raw_reply *reply, struct xr_error *err)
{
	struct xr_raw_call c = {
		.size = sizeof(c),
		.data = data.data,
		.len = data.len,
		.timeout = XR_TIMEOUT_NEVER,
	};
	enum xr_status status;

	status = xr_peer_find(NULL, to, &c.to, err);
	if (status == XR_OK)
		status = xr_method_find(name, &c.method, err);
	if (status == XR_OK)
		status = xr_call_sync(&c, reply, err);
	return status;
}

/* The only error there may be. */
static void
judge(uint32_t to, enum xr_status status, const struct xr_error *err)
{
	char name[32];

	if (status == XR_OK) {
		atomic_fetch_add(&board->calls[me], 1);
		return;
	}
	/* Who is ready goes home. */
	if (atomic_load(&board->round) == UINT32_MAX)
		return;
	snprintf(name, sizeof(name), "worker%u", to);
	if (status != XR_E_PEER_LOST || !atomic_load(&board->dead[to]) ||
		strstr(err->text, name) == NULL)
		wrong("a call to %u: %s: %s", to, xr_status_name(status),
			err->text);
}

static void
call_briefly(uint32_t to, uint64_t *random)
{
	struct xr_raw_reply reply = { 0 };
	struct xr_error err = { 0 };
	unsigned char body[600];
	size_t len = draw(random, sizeof(body));
	enum xr_status status;

	memset(body, (int)len, sizeof(body));
	status = call(to, "peers.echo", (struct xr_part){ body, len }, &reply,
		&err);
	judge(to, status, &err);
	if (status == XR_OK &&
		(reply.len != len || memcmp(reply.data, body, len) != 0))
		wrong("%u sent back other bytes", to);
	xr_raw_reply_free(&reply);
}

/* A long body, of private memory or of the arena. */
static void
call_at_length(uint32_t to, uint64_t *random)
{
	struct xr_raw_reply reply = { 0 };
	struct xr_error err = { 0 };
	uint64_t len = 9000 + draw(random, LONG - 9000), got = 0;
	bool shared = draw(random, 2) == 0;
	enum xr_status status;
	void *body = shared ? xr_buffer_new(len) : malloc(len);

	if (body == NULL)
		return;
	memset(body, 1, len);
	status = call(to, "peers.length", (struct xr_part){ body, len }, &reply,
		&err);
	judge(to, status, &err);
	if (status == XR_OK && reply.len == sizeof(got))
		memcpy(&got, reply.data, sizeof(got));
	if (status == XR_OK && got != len)
		wrong("%u got %lu of %lu bytes", to, got, len);
	xr_raw_reply_free(&reply);
	if (shared)
		xr_buffer_free(body);
	else
		free(body);
}

static void
fetch(uint32_t to, uint64_t *random)
{
	struct xr_raw_reply reply = { 0 };
	struct xr_error err = { 0 };
	uint32_t want = draw(random, LONG);
	enum xr_status status = call(to, "peers.fill",
		(struct xr_part){ &want, sizeof(want) }, &reply, &err);

	judge(to, status, &err);
	if (status == XR_OK && reply.len != want)
		wrong("%u gave %zu of %u bytes", to, reply.len, want);
	xr_raw_reply_free(&reply);
}

static bool
is_over(void)
{
	return atomic_load(&board->round) == UINT32_MAX;
}

static void *
caller(void *ctx)
{
	uint32_t which = (uint32_t)(uintptr_t)ctx, to;
	uint64_t random = random_of(which);

	while (!is_over()) {
		if (atomic_load(&board->hush)) {
			pause_ns(NS_PER_MS / 5);
			continue;
		}
		atomic_fetch_add(&board->calling[me], 1);
		to = draw(&random, size);
		if (atomic_load(&board->hush) || to == me ||
			(atomic_load(&board->dead[to]) &&
				to != atomic_load(&board->victim)))
			; /* not him */
		else if (which == 0)
			call_briefly(to, &random);
		else if (draw(&random, 2) == 0)
			call_at_length(to, &random);
		else
			fetch(to, &random);
		atomic_fetch_sub(&board->calling[me], 1);
	}
	return NULL;
}

/* Waits in a call to whoever dies. */
static void
wait_in_call(uint32_t round, uint32_t victim)
{
	struct xr_raw_reply reply = { 0 };
	struct xr_error err = { 0 };
	enum xr_status status;

	atomic_store(&board->parked[me], round);
	status = call(victim, "peers.park", (struct xr_part){ "", 0 }, &reply,
		&err);
	atomic_store(&board->was[round - 1].lost_ns[me], now());
	if (status == XR_OK)
		wrong("%u answered what it never answers", victim);
	judge(victim, status, &err);
	xr_raw_reply_free(&reply);
	atomic_store(&board->heard[me], round);
}

/* All threads of this process: those that the library has, too. */
static void
bind_to(const cpu_set_t *set)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *d;

	while (dir != NULL && (d = readdir(dir)) != NULL)
		if (d->d_name[0] != '.')
			sched_setaffinity((pid_t)strtol(d->d_name, NULL, 10),
				sizeof(*set), set);
	if (dir != NULL)
		closedir(dir);
}

static void
stand_apart(bool victim)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	if (!board->apart || cpus < 2)
		return;
	CPU_ZERO(&set);
	for (long i = 0; i < cpus; i++)
		if ((i == cpus - 1) == victim)
			CPU_SET((size_t)i, &set);
	bind_to(&set);
}

static void
touch(uint32_t round)
{
	size_t len = (size_t)atomic_load(&board->touch) * MIB;

	if (len > 0 &&
		mmap(NULL, len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1,
			0) == MAP_FAILED)
		wrong("no memory of %zu bytes", len);
	atomic_store(&board->touched[me], round);
}

static void *
listener(void *ctx)
{
	uint32_t seen = 0, round;

	(void)ctx;
	while (!is_over()) {
		round = atomic_load(&board->round);
		if (round == seen || round == UINT32_MAX) {
			pause_ns(NS_PER_MS / 5);
			continue;
		}
		seen = round;
		stand_apart(atomic_load(&board->victim) == me);
		if (atomic_load(&board->victim) == me)
			touch(round);
		else
			wait_in_call(round, atomic_load(&board->victim));
	}
	return NULL;
}

/* --- rank 0 --------------------------------------------------------------- */

static bool
is_alive(uint32_t rank)
{
	return !atomic_load(&board->dead[rank]);
}

/* Until all that live, but @but, have @round in their word. */
static bool
await(const _Atomic uint32_t *word, uint32_t round, uint32_t but,
	const char *what)
{
	int64_t end = now() + PATIENCE;

	for (uint32_t i = 0; i < size; i++)
		while (is_alive(i) && i != but &&
			atomic_load(&word[i]) != round) {
			if (now() > end) {
				wrong("%u %s", i, what);
				return false;
			}
			pause_ns(NS_PER_MS / 10);
		}
	return true;
}

static bool
await_arrivals(uint32_t victim, uint32_t count)
{
	int64_t end = now() + PATIENCE;

	while (atomic_load(&board->arrived[victim]) < count) {
		if (now() > end) {
			wrong("calls to %u do not arrive", victim);
			return false;
		}
		pause_ns(NS_PER_MS / 10);
	}
	return true;
}

static uint64_t
living(void)
{
	uint64_t alive = 0;

	for (uint32_t i = 0; i < size; i++)
		alive |= (uint64_t)is_alive(i) << i;
	return alive;
}

/* Nobody calls; what the dead had is given back as soon as he is reaped, and the
 * others have let go. */
static void
look_into_segment(void)
{
	int64_t end = now() + PATIENCE;
	uint32_t spans, rings;

	do {
		spans = left_spans(&map);
		rings = left_rings(&map, size, living());
		if (spans + rings == 0)
			return;
		pause_ns(NS_PER_MS / 2);
	} while (now() < end);
	wrong("%u spans and %u rings of the dead are left", spans, rings);
}

static uint32_t
count_alive(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < size; i++)
		count += is_alive(i);
	return count;
}

static void
make_quiet(void)
{
	atomic_store(&board->hush, true);
	await(board->calling, 0, UINT32_MAX, "does not come to an end");
}

/* All can call all. */
static void
call_all(void)
{
	uint64_t random = random_of(99);

	for (uint32_t i = 1; i < size; i++)
		if (is_alive(i))
			call_briefly(i, &random);
}

static bool
play(uint32_t round, uint64_t *random)
{
	static const uint32_t sizes[] = { 0, 0, 100, 0, 0, 0, 1000, 0, 100, 0 };
	uint32_t victim, alive = count_alive();
	pid_t pid;

	do
		victim = 1 + draw(random, size - 1);
	while (!is_alive(victim));
	pid = atomic_load(&segment_slot(&map, victim)->pid);
	board->was[round - 1].touch = sizes[draw(random, 10)];
	board->was[round - 1].busy = draw(random, 2) == 0;
	atomic_store(&board->touch, board->was[round - 1].touch);
	atomic_store(&board->victim, victim);
	atomic_store(&board->round, round);
	while (atomic_load(&board->touched[victim]) != round)
		pause_ns(NS_PER_MS / 10);
	if (!await(board->parked, round, victim, "does not call") ||
		!await_arrivals(victim, alive - 1))
		return false;
	if (!board->was[round - 1].busy)
		make_quiet();
	pause_ns(draw(random, 20) * NS_PER_MS + draw(random, 1000) * 1000);
	atomic_store(&board->dead[victim], true);
	atomic_store(&board->was[round - 1].killed_ns, now());
	if (pid <= 0 || kill(pid, SIGKILL) == -1)
		wrong("%u is not there", victim);
	if (!await(board->heard, round, victim, "does not hear of it"))
		return false;
	make_quiet();
	look_into_segment();
	call_all();
	atomic_store(&board->hush, false);
	return true;
}

static void
conduct(void)
{
	uint64_t random = random_of(50);
	uint32_t round = 0;

	while (count_alive() > 2 && play(++round, &random))
		board->done = round;
	atomic_store(&board->hush, false);
	atomic_store(&board->round, UINT32_MAX);
}

/* --- a rank --------------------------------------------------------------- */

static bool
open_board(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd == -1)
		return false;
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED,
		fd, 0);
	close(fd);
	return board != MAP_FAILED;
}

int
main(int argc, char **argv)
{
	static void *(*const does[])(void *) = { listener, caller, caller };
	struct xr_error err = { 0 };
	enum xr_status status;
	pthread_t thread[3];
	char name[32];

	me = xr_job_rank();
	size = xr_job_size();
	if (argc != 2 || size > BOARD_RANKS || !open_board(argv[1]) ||
		!left_map(&map)) {
		fprintf(stderr, "peers: no board, or no segment\n");
		return 2;
	}
	snprintf(name, sizeof(name), "worker%u", me);
	status = xr_module_static(functions, 4, &err);
	if (status == XR_OK)
		status = xr_rpc_init(name, -1, -1, NULL, &err);
	if (status != XR_OK) {
		wrong("%s", err.text);
		return 1;
	}
	for (uintptr_t i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, does[i],
			(void *)(i > 0 ? i - 1 : 0));
	if (me == 0)
		conduct();
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	xr_rpc_shutdown(XR_SHUTDOWN_IMMEDIATE, XR_SECONDS(10), &err);
	return 0;
}
