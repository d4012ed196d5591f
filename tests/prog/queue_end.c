/* SPDX-License-Identifier: Apache-2.0 */
/* queue_end.c - cases of tests/prog/queue.c where somebody ends, or is the only one. */
#include <sched.h>
#include <signal.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/prog/queue_far.h"
#include "tests/prog/queue_rig.h"

/* --- an end that is another's ------------------------------------------------------------- */

static void
be_the_reader(struct xr_queue *q, uint32_t index)
{
	struct rig_item item;
	size_t len;

	(void)index;
	EXPECT(rig_get(q, &item, &len));
	rig_post(0);
	pause();
}

/* Of a p2p queue one process gets, until it is gone: then the next one does. */
static void
one_reader(void)
{
	struct xr_queue *q = QUEUE(.kind = XR_QUEUE_P2P);
	pid_t pid = rig_fork(be_the_reader, q, 0);
	struct xr_queue_buf buf = { 0 };
	struct xr_queue_buf none = { .data = (void *)"", .room = 0 };
	struct rig_item item;
	char its[16];
	size_t len;

	snprintf(its, sizeof(its), "%d has", (int)pid);
	rig_put(q, 0, 0, 1000);
	rig_await(0, 1);
	rig_put(q, 0, 1, 1000);
	EXPECT(xr_queue_get_bytes(q, &buf, 0, &rig_err) == XR_E_EXISTS);
	EXPECT(strstr(rig_err.text, its) != NULL);
	printf("%s\n", rig_err.text);
	rig_kill(pid);
	/* Here it is known at once; elsewhere once that has heard of it. */
	while (far_is_on() &&
		xr_queue_get_bytes(q, &none, 0, &rig_err) == XR_E_EXISTS)
		sched_yield();
	EXPECT(rig_get(q, &item, &len) && item.seq == 1);
	xr_queue_free(q);
}

/* --- in the middle of an item -------------------------------------------------------------- */

/* @before bytes that can be read and written, and whoever goes on is ended. */
static uint8_t *
edge(size_t before)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(at != MAP_FAILED && before <= page);
	EXPECT(mprotect(at + page, page, PROT_NONE) == 0);
	return at + page - before;
}

/* By the signal alone: it is no crash to be told of. */
static void
quietly(void)
{
	const struct rlimit none = { 0 };
	const struct sigaction plain = { .sa_handler = SIG_DFL };

	EXPECT(setrlimit(RLIMIT_CORE, &none) == 0);
	EXPECT(sigaction(SIGSEGV, &plain, NULL) == 0);
}

static void
put_half(struct xr_queue *q, uint32_t len)
{
	quietly();
	xr_queue_put_bytes(q, edge(len / 2), len, XR_TIMEOUT_NEVER, NULL);
}

static void
get_half(struct xr_queue *q, uint32_t len)
{
	struct xr_queue_buf buf = { .data = edge(len / 2), .room = len };

	quietly();
	xr_queue_get_bytes(q, &buf, XR_TIMEOUT_NEVER, NULL);
}

static void
dies(rig_fn *fn, struct xr_queue *q, uint32_t len)
{
	pid_t pid = rig_fork(fn, q, len);
	int status;

	EXPECT(waitpid(pid, &status, 0) == pid);
	EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

/* Four, at once: nobody waits for the dead, nor for their memory. */
static void
refill(struct xr_queue *q)
{
	static uint8_t data[1900];
	struct rig_item item;
	size_t len;

	for (uint32_t n = 0; n < 4; n++) {
		item = (struct rig_item){ 0, n };
		memset(data, 0, sizeof(data));
		memcpy(data, &item, sizeof(item));
		EXPECT(xr_queue_put_bytes(q, data, sizeof(item), 0, &rig_err) ==
			XR_OK);
	}
	for (uint32_t n = 0; n < 4; n++)
		EXPECT(rig_get(q, &item, &len) && item.seq == n);
	for (uint32_t n = 0; n < 4; n++)
		EXPECT(xr_queue_put_bytes(q, data, sizeof(data), 0, &rig_err) ==
			XR_OK);
	for (uint32_t n = 0; n < 4; n++) {
		struct xr_queue_buf buf = { .data = data,
			.room = sizeof(data) };

		EXPECT(xr_queue_get_bytes(q, &buf, 0, &rig_err) == XR_OK);
		EXPECT(buf.len == sizeof(data));
	}
}

/* In a cell, and in blocks. What is put behind it is there, at once; and there is as much
 * room as before. */
static void
half_put(void)
{
	static const uint32_t sizes[] = { 80, 1500 };

	for (int kind = XR_QUEUE_ANY; kind <= XR_QUEUE_P2P; kind++)
		for (int i = 0; i < 8; i++) {
			struct xr_queue *q =
				QUEUE(.kind = (enum xr_queue_kind)kind,
					.items = 4, .bytes = 8 << 10);
			struct xr_queue_buf buf = { 0 };

			for (int n = 0; n < 1 + i / 2; n++)
				dies(put_half, q, sizes[i % 2]);
			EXPECT(xr_queue_get_bytes(q, &buf, 0, &rig_err) ==
				XR_E_TIMEOUT);
			refill(q);
			xr_queue_free(q);
		}
}

/* What a reader had not got whole is lost with it, and with nothing else. */
static void
half_got(void)
{
	static const uint32_t sizes[] = { 80, 1500 };

	for (int i = 0; i < 2; i++) {
		struct xr_queue *q = QUEUE(.items = 4, .bytes = 8 << 10);
		struct rig_item item;
		size_t len;

		for (uint32_t n = 0; n < 4; n++)
			rig_put(q, 0, n, sizes[i]);
		dies(get_half, q, sizes[i]);
		for (uint32_t n = 1; n < 4; n++)
			EXPECT(rig_get(q, &item, &len) && item.seq == n);
		/* Its cell, and its memory. */
		refill(q);
		xr_queue_free(q);
	}
}

/* --- again, or not ------------------------------------------------------------------------ */

static void
take_two(struct xr_queue *q, uint32_t is_done)
{
	struct rig_item item;
	size_t len;

	EXPECT(rig_get(q, &item, &len) && item.seq == 0);
	if (is_done != 0)
		xr_queue_done(q);
	EXPECT(rig_get(q, &item, &len) && item.seq == 1);
	rig_post(0);
	pause();
}

/* One who has got items 0 and 1 is killed; those from @first on are there. */
static void
after_reader(bool redeliver, uint32_t is_done, uint32_t first)
{
	struct xr_queue *q = QUEUE(.redeliver = redeliver);
	uint32_t turn = atomic_load(&rig_word[0]) + 1;
	struct xr_queue_buf buf = { 0 };
	uint32_t seen = 0;
	struct rig_item item;
	size_t len;
	pid_t pid;

	for (uint32_t i = 0; i < 4; i++)
		rig_put(q, 0, i, 700);
	pid = rig_fork(take_two, q, is_done);
	rig_await(0, turn);
	rig_kill(pid);
	for (uint32_t i = first; i < 4; i++) {
		EXPECT(rig_get(q, &item, &len));
		seen |= 1u << item.seq;
	}
	EXPECT(seen == (0xfu << first & 0xf));
	xr_queue_done(q);
	EXPECT(xr_queue_get_bytes(q, &buf, 0, &rig_err) == XR_E_TIMEOUT);
	xr_queue_free(q);
}

static void
lost_with_reader(void)
{
	after_reader(false, 0, 2);
}

static void
again_with_reader(void)
{
	after_reader(true, 0, 0);
	after_reader(true, 1, 1);
}

/* --- how long it takes ------------------------------------------------------------------- */

#define TRIPS 20000

static void
echo(struct xr_queue *q, uint32_t index)
{
	struct xr_queue *lane[2];
	struct rig_item item;
	size_t len;

	(void)index;
	for (uint32_t i = 0; i < 2; i++)
		EXPECT(xr_queue_lane(q, i, &lane[i], &rig_err) == XR_OK);
	for (int i = 0; i < TRIPS; i++) {
		EXPECT(rig_get(lane[0], &item, &len));
		rig_put(lane[1], item.writer, item.seq, len);
	}
}

static int
compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void
latency(void)
{
	static int64_t ns[TRIPS];
	struct xr_queue *q = QUEUE(.kind = XR_QUEUE_P2P, .lanes = 2);
	pid_t pid = rig_fork(echo, q, 0);
	struct xr_queue *lane[2];
	struct rig_item item;
	size_t len;

	for (uint32_t i = 0; i < 2; i++)
		EXPECT(xr_queue_lane(q, i, &lane[i], &rig_err) == XR_OK);
	for (uint32_t i = 0; i < TRIPS; i++) {
		int64_t at = rig_now();

		rig_put(lane[0], 1, i, 8);
		EXPECT(rig_get(lane[1], &item, &len) && item.seq == i);
		ns[i] = (rig_now() - at) / 2;
	}
	rig_join(&pid, 1);
	qsort(ns, TRIPS, sizeof(ns[0]), compare);
	printf("one way: median %ld ns, 99 of 100 %ld ns\n",
		(long)ns[TRIPS / 2], (long)ns[TRIPS / 100 * 99]);
	for (uint32_t i = 0; i < 2; i++)
		xr_queue_free(lane[i]);
	xr_queue_free(q);
}

/* A handle of a lane is one of its own, whichever is freed first; also in a child. */
static void
free_all(struct xr_queue *q, uint32_t index)
{
	(void)index;
	xr_queue_free(q);
}

static void
lanes_freed(void)
{
	struct xr_queue *q = QUEUE(.lanes = 3), *lane = NULL;
	struct rig_item item;
	pid_t pid;
	size_t len;

	EXPECT(xr_queue_lane(q, 3, &lane, &rig_err) == XR_E_RANGE);
	EXPECT(xr_queue_lane(q, 1, &lane, &rig_err) == XR_OK);
	pid = rig_fork(free_all, q, 0);
	rig_join(&pid, 1);
	rig_put(lane, 0, 5, 8);
	EXPECT(xr_queue_count(q) == 1);
	xr_queue_free(q);
	EXPECT(rig_get(lane, &item, &len) && item.seq == 5);
	xr_queue_free(lane);
	xr_queue_close(NULL);
	xr_queue_free(NULL);
}

const struct rig_case end_cases[] = {
	{ "one-reader", one_reader },
	{ "half-put", half_put },
	{ "half-got", half_got },
	{ "lost-with-reader", lost_with_reader },
	{ "again-with-reader", again_with_reader },
	{ "latency", latency },
	{ "lanes-freed", lanes_freed },
	{ NULL, NULL },
};
