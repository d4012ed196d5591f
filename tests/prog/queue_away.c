/* SPDX-License-Identifier: Apache-2.0 */
/* queue_away.c - cases of tests/prog/queue.c that are of far handles alone. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include <sys/wait.h>

#include <xrun/rpc.h>
#include <xrun/tensor.h>

#include "tests/prog/queue_far.h"

static void
let_pass(int64_t ns)
{
	const struct timespec t = { .tv_sec = ns / XR_SECONDS(1),
		.tv_nsec = ns % XR_SECONDS(1) };

	nanosleep(&t, NULL);
}

/* --- who serves is gone ------------------------------------------------------------------ */

static void
lose_it(struct xr_queue *q, uint32_t puts)
{
	struct xr_queue_buf buf = { 0 };
	enum xr_status status;

	rig_post(0);
	status = puts != 0 ?
		xr_queue_put_bytes(q, "x", 1, XR_TIMEOUT_NEVER, &rig_err) :
		xr_queue_get_bytes(q, &buf, XR_TIMEOUT_NEVER, &rig_err);
	EXPECT(status == XR_E_PEER_LOST);
	EXPECT(strstr(rig_err.text, "server") != NULL);
}

/* All hear of it, within a second or two, and who serves is named. */
static void
server_killed(void)
{
	struct xr_queue *full = QUEUE(.items = 1), *empty = QUEUE(0);
	struct xr_queue_buf buf = { 0 };
	pid_t pid[2];
	int64_t at;
	int fd;

	rig_put(full, 0, 0, 8);
	EXPECT(xr_queue_fd(empty, &fd, &rig_err) == XR_OK);
	pid[0] = rig_fork(lose_it, full, 1);
	pid[1] = rig_fork(lose_it, empty, 0);
	rig_await(0, 2);
	rig_sleeps(pid[0]);
	rig_sleeps(pid[1]);
	at = rig_now();
	rig_kill(far_server());
	rig_join(pid, 2);
	EXPECT(rig_now() - at < XR_SECONDS(3));
	EXPECT(xr_queue_get_bytes(full, &buf, 0, &rig_err) == XR_E_PEER_LOST);
	printf("%s\n", rig_err.text);
	EXPECT(xr_queue_put_bytes(empty, "x", 1, 0, &rig_err) ==
		XR_E_PEER_LOST);
	EXPECT(xr_queue_empty(empty) && xr_queue_count(full) == 0);
	xr_queue_close(empty);
	xr_queue_leave(empty, XR_QUEUE_WRITER);
	xr_queue_done(empty);
	xr_queue_free(full);
	xr_queue_free(empty);
}

/* --- who serves says nothing for a while -------------------------------------------------- */

static void
stop(bool is_stopped)
{
	int status;

	EXPECT(kill(far_server(), is_stopped ? SIGSTOP : SIGCONT) == 0);
	if (is_stopped)
		EXPECT(waitpid(far_server(), &status, WUNTRACED) ==
				far_server() &&
			WIFSTOPPED(status));
}

/* A call that began @at, and had @timeout, has waited so long, and does not
 * wait for the server, which would be for ever. */
static void
in_time(int64_t at, int64_t timeout)
{
	int64_t took = rig_now() - at;

	EXPECT(took >= timeout && took < timeout + XR_SECONDS(5));
}

static void
be_late(struct xr_queue *q)
{
	struct xr_queue_buf buf = { 0 };
	int64_t at;

	stop(true);
	at = rig_now();
	EXPECT(xr_queue_get_bytes(q, &buf, XR_SECONDS(0.1), &rig_err) ==
		XR_E_TIMEOUT);
	in_time(at, XR_SECONDS(0.1));
	stop(false);
}

/* Where there is room for one, what was not put takes none. */
static void
put_in_vain(struct xr_queue *q, size_t len)
{
	char *much = calloc(1, len);
	struct xr_queue_buf buf = { 0 };
	int64_t at;

	EXPECT(much != NULL);
	stop(true);
	for (int i = 0; i < 3; i++) {
		at = rig_now();
		EXPECT(xr_queue_put_bytes(q, much, len, XR_SECONDS(0.1),
			       &rig_err) == XR_E_TIMEOUT);
		in_time(at, XR_SECONDS(0.1));
	}
	at = rig_now();
	EXPECT(xr_queue_put_bytes(q, much, len, 0, &rig_err) == XR_E_TIMEOUT);
	EXPECT(rig_now() - at < XR_SECONDS(3));
	/* One who gets is asked for right behind what was not put. */
	EXPECT(xr_queue_get_bytes(q, &buf, XR_SECONDS(0.1), &rig_err) ==
		XR_E_TIMEOUT);
	stop(false);
	EXPECT(xr_queue_put_bytes(q, "after", 5, XR_SECONDS(30), &rig_err) ==
		XR_OK);
	EXPECT(xr_queue_get_bytes(q, &buf, XR_SECONDS(30), &rig_err) == XR_OK);
	EXPECT(buf.len == 5 && memcmp(buf.data, "after", 5) == 0);
	free(buf.data);
	buf.data = NULL;
	EXPECT(xr_queue_get_bytes(q, &buf, 0, &rig_err) == XR_E_TIMEOUT);
	free(much);
}

/* What was late was not put, nor is it later. */
static void
server_takes_nothing(void)
{
	static const size_t lens[] = { 8, 5000, 2 << 20 };

	for (int kind = XR_QUEUE_ANY; kind <= XR_QUEUE_P2P; kind++)
		for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			struct xr_queue *q =
				QUEUE(.kind = (enum xr_queue_kind)kind,
					.items = 1);

			put_in_vain(q, lens[i]);
			xr_queue_free(q);
		}
}

static void *
continue_later(void *unused)
{
	(void)unused;
	let_pass(XR_SECONDS(2));
	stop(false);
	return NULL;
}

/* A put that does not wait for room takes as long as its bytes need, here beyond the
 * second of a short one. */
static void
long_put_is_slow(void)
{
	struct xr_queue *q = QUEUE(.items = 1);
	struct xr_queue_buf buf = { 0 };
	const size_t len = 64 << 20;
	char *much = calloc(1, len);
	pthread_t thread;

	EXPECT(much != NULL);
	stop(true);
	EXPECT(pthread_create(&thread, NULL, continue_later, NULL) == 0);
	EXPECT(xr_queue_put_bytes(q, much, len, 0, &rig_err) == XR_OK);
	pthread_join(thread, NULL);
	EXPECT(xr_queue_get_bytes(q, &buf, XR_SECONDS(60), &rig_err) == XR_OK);
	EXPECT(buf.len == len);
	free(buf.data);
	free(much);
	xr_queue_free(q);
}

static _Atomic bool is_stopped, is_got;

/* Bytes of memory that this process has touched. */
static uint64_t
own_size(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	EXPECT(f != NULL && fscanf(f, "%*u %lu", &pages) == 1);
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Stops the server as soon as a part of an item has come. */
static void *
stop_in_between(void *arg)
{
	const uint64_t *size = arg;

	while (own_size() < *size && !atomic_load(&is_got))
		sched_yield();
	atomic_store(&is_stopped, true);
	stop(true);
	let_pass(XR_SECONDS(1.5));
	stop(false);
	return NULL;
}

/* Returns the status of a get during whose call the server was stopped, while bytes came.
 * Until then the server may be late. */
static enum xr_status
get_while_stopped(struct xr_queue *q, struct xr_queue_buf *buf, size_t len,
	int64_t timeout)
{
	const uint64_t size = own_size() + len / 4;
	enum xr_status status;
	pthread_t thread;
	bool was_stopped;

	atomic_store(&is_stopped, false);
	atomic_store(&is_got, false);
	EXPECT(pthread_create(&thread, NULL, stop_in_between, (void *)&size) ==
		0);
	do {
		was_stopped = atomic_load(&is_stopped);
		status = xr_queue_get_bytes(q, buf, timeout, &rig_err);
	} while (status == XR_E_TIMEOUT && !was_stopped &&
		!atomic_load(&is_stopped));
	atomic_store(&is_got, true);
	pthread_join(thread, NULL);
	return status;
}

/* The bytes may be those of a get before, to which the server answered too late: then this
 * one is out of time, and the next is looked at. */
static void
get_slowly(struct xr_queue *q, size_t len, int64_t timeout)
{
	struct xr_queue_buf buf = { 0 };
	enum xr_status status = XR_E_TIMEOUT;

	for (int i = 0; i < 10 && status == XR_E_TIMEOUT; i++)
		status = get_while_stopped(q, &buf, len, timeout);
	EXPECT(status == XR_OK && buf.len == len);
	free(buf.data);
}

/* A get whose bytes are under way waits for them, also beyond its time. */
static void
long_get_is_slow(void)
{
	const size_t len = 40 << 20;
	struct xr_queue_buf buf = { 0 };
	char *much = calloc(1, len);

	EXPECT(much != NULL);
	for (int kind = XR_QUEUE_ANY; kind <= XR_QUEUE_P2P; kind++) {
		struct xr_queue *q = QUEUE(.kind = (enum xr_queue_kind)kind);

		for (int i = 0; i < 2; i++)
			EXPECT(xr_queue_put_bytes(q, much, len,
				       XR_TIMEOUT_NEVER, &rig_err) == XR_OK);
		get_slowly(q, len, 0);
		get_slowly(q, len, XR_SECONDS(0.02));
		EXPECT(xr_queue_get_bytes(q, &buf, 0, &rig_err) ==
			XR_E_TIMEOUT);
		xr_queue_free(q);
	}
	free(much);
}

static int
server_threads(void)
{
	char path[64];
	struct dirent *e;
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)far_server());
	dir = opendir(path);
	EXPECT(dir != NULL);
	while ((e = readdir(dir)) != NULL)
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

/* What is late there, too, has nobody wait any more: beside the vigil, and who waits for
 * some of them, there are no more threads than before. */
static void
late_is_over(void)
{
	struct xr_queue *q = QUEUE(.items = 1);
	int before = server_threads();

	rig_put(q, 0, 0, 8);
	for (int i = 0; i < 12; i++)
		EXPECT(xr_queue_put_bytes(q, "x", 1, XR_SECONDS(0.05),
			       &rig_err) == XR_E_TIMEOUT);
	EXPECT(server_threads() < before + 8);
	xr_queue_free(q);
}

/* More than there is room for, piece by piece; and no more than there is. */
static void
many_in_time(void)
{
	struct xr_queue *q = QUEUE(.items = 4),
			*p2p = QUEUE(.kind = XR_QUEUE_P2P, .items = 4);
	struct xr_part parts[10];
	size_t n;

	for (uint32_t i = 0; i < 10; i++)
		parts[i] = (struct xr_part){ &"0123456789"[i], 1 };
	for (struct xr_queue *at = q; at != NULL; at = at == q ? p2p : NULL) {
		n = 10;
		EXPECT(xr_queue_put_many_bytes(at, parts, &n, XR_SECONDS(0.1),
			       &rig_err) == XR_E_TIMEOUT);
		EXPECT(n == 4 && xr_queue_count(at) == 4);
		n = 6;
		EXPECT(xr_queue_put_many_bytes(at, parts + 4, &n, 0,
			       &rig_err) == XR_E_TIMEOUT);
		EXPECT(n == 0);
		for (uint32_t i = 0; i < 4; i++) {
			struct xr_queue_buf buf = { 0 };

			EXPECT(xr_queue_get_bytes(at, &buf, 0, &rig_err) ==
				XR_OK);
			EXPECT(buf.len == 1 &&
				*(char *)buf.data == (char)('0' + i));
			free(buf.data);
		}
	}
	xr_queue_free(q);
	xr_queue_free(p2p);
}

static void
get_three(struct xr_queue *q, uint32_t in_turn)
{
	uint32_t seen = 0;
	struct rig_item item;
	size_t len;

	for (uint32_t i = 0; i < 3; i++) {
		EXPECT(rig_get(q, &item, &len));
		EXPECT(in_turn == 0 || item.seq == i);
		seen |= 1u << item.seq;
	}
	EXPECT(seen == 7);
}

/* What came too late is the next one's, in its order; and of another process, if there
 * is no next one. */
static void
server_stopped(void)
{
	for (int kind = XR_QUEUE_ANY; kind <= XR_QUEUE_P2P; kind++) {
		struct xr_queue *q = QUEUE(.kind = (enum xr_queue_kind)kind);

		for (uint32_t i = 0; i < 3; i++)
			rig_put(q, 0, i, 8 + i * 300);
		be_late(q);
		get_three(q, 1);
		xr_queue_free(q);
	}
	for (int again = 0; again < 2; again++) {
		struct xr_queue *q = QUEUE(.redeliver = again != 0);
		pid_t pid;

		for (uint32_t i = 0; i < 3; i++)
			rig_put(q, 0, i, 8 + i * 300);
		be_late(q);
		pid = rig_fork(get_three, q, 0);
		rig_join(&pid, 1);
		xr_queue_free(q);
	}
}

/* --- times that are over as an item comes -------------------------------------------------- */

#define RACERS 2

static uint32_t racing;

void
away_init(void)
{
	rig_keep(&racing, sizeof(racing));
}

static int64_t
some_time(uint32_t n)
{
	return (int64_t)(n * 7919 % 400) * 1000;
}

/* What was late was not put: it is put again. */
static void
put_late(struct xr_queue *q, uint32_t index)
{
	uint32_t tries = 0;

	rig_leave(q, XR_QUEUE_READER);
	for (uint32_t i = 0; i < racing;) {
		struct rig_item item = { index, i };
		enum xr_status status = xr_queue_put_bytes(q, &item,
			sizeof(item), some_time(tries++), &rig_err);

		EXPECT(status == XR_OK || status == XR_E_TIMEOUT);
		i += status == XR_OK;
	}
}

static void
get_late(struct xr_queue *q, uint32_t index)
{
	struct rig_item item;
	enum xr_status status;
	uint32_t tries = index;

	rig_leave(q, XR_QUEUE_WRITER);
	do {
		struct xr_queue_buf buf = { .data = &item,
			.room = sizeof(item) };

		status = xr_queue_get_bytes(q, &buf, some_time(tries++),
			&rig_err);
		EXPECT(status == XR_OK || status == XR_E_TIMEOUT ||
			status == XR_E_CLOSED);
		if (status != XR_OK)
			continue;
		EXPECT(atomic_fetch_add(&rig_board->seen[item.writer][item.seq],
			       1) == 0);
		atomic_fetch_add(&rig_board->got, 1);
	} while (status != XR_E_CLOSED);
}

/* All is got once, though @stops times nobody heard anything for longer than they
 * wait. */
static void
race(uint32_t items, uint32_t stops)
{
	struct xr_queue *q = QUEUE(.items = 4);
	pid_t pid[2 * RACERS];

	racing = items;
	for (uint32_t i = 0; i < RACERS; i++) {
		pid[i] = rig_fork(get_late, q, i);
		pid[RACERS + i] = rig_fork(put_late, q, i);
	}
	rig_leave(q, XR_QUEUE_WRITER | XR_QUEUE_READER);
	for (uint32_t i = 0; i < stops; i++) {
		let_pass(XR_SECONDS(0.05));
		stop(true);
		let_pass(XR_SECONDS(1.2));
		stop(false);
	}
	rig_join(pid, 2 * RACERS);
	EXPECT(atomic_load(&rig_board->got) == RACERS * (uint64_t)items);
	xr_queue_free(q);
}

static void
late_race(void)
{
	race(3000, 0);
}

static void
stopped_race(void)
{
	race(rig_many(80000), 3);
}

/* --- what is not memory of both -------------------------------------------------------------- */

/* By reference there, and a copy here; as what is put here is. */
static void
by_reference(void)
{
	struct xr_queue *q = QUEUE(.mode = XR_ENC_SHARE);
	struct xr_value *t = NULL, *u = NULL;
	size_t bytes;

	EXPECT(xr_queue_get(q, &t, 0, &rig_err) == XR_OK);
	EXPECT(((uint8_t *)xr_tensor_data(t, &bytes))[99999] == 1);
	EXPECT(bytes == 100000);
	EXPECT(xr_queue_put(q, t, 0, &rig_err) == XR_OK);
	EXPECT(xr_queue_get(q, &u, 0, &rig_err) == XR_OK);
	EXPECT(xr_value_equal(t, u));
	((uint8_t *)xr_tensor_data(u, NULL))[5] = 7;
	EXPECT(((uint8_t *)xr_tensor_data(t, NULL))[5] == 1);
	xr_value_unref(t);
	xr_value_unref(u);
	xr_queue_free(q);
}

/* --- without an agent ------------------------------------------------------------------------ */

/* Both sides are told what is to be done. */
static void
no_agent(void)
{
	struct xr_queue *q = QUEUE(0), *other = NULL;
	char text[XR_QUEUE_TEXT_MAX];
	struct xr_queue_buf buf = { 0 };

	/* As if it had been made before there was one. */
	EXPECT(xr_queue_text(q, text, sizeof(text), &rig_err) == XR_OK);
	memcpy(strrchr(text, ':'), ":-1", 4);
	EXPECT(xr_queue_open(text, &other, &rig_err) == XR_E_NOTFOUND);
	printf("%s\n", rig_err.text);
	EXPECT(xr_queue_text(q, text, sizeof(text), &rig_err) == XR_OK);
	EXPECT(xr_rpc_shutdown(XR_SHUTDOWN_IMMEDIATE, XR_SECONDS(10),
		       &rig_err) == XR_OK);
	EXPECT(xr_queue_get_bytes(q, &buf, 0, &rig_err) == XR_E_STATE);
	EXPECT(xr_queue_put_bytes(q, "x", 1, 0, &rig_err) == XR_E_STATE);
	xr_queue_free(q);
	EXPECT(xr_queue_open(text, &other, &rig_err) == XR_E_STATE);
	printf("%s\n", rig_err.text);
}

const struct rig_case away_cases[] = {
	{ "server-killed", server_killed },
	{ "server-stopped", server_stopped },
	{ "server-takes-nothing", server_takes_nothing },
	{ "many-in-time", many_in_time },
	{ "long-put-is-slow", long_put_is_slow },
	{ "long-get-is-slow", long_get_is_slow },
	{ "late-is-over", late_is_over },
	{ "late-race", late_race },
	{ "stopped-race", stopped_race },
	{ "by-reference", by_reference },
	{ "no-agent", no_agent },
	{ NULL, NULL },
};
