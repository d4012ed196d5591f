/* SPDX-License-Identifier: Apache-2.0 */
/* queue_many.c - cases of tests/prog/queue.c where processes put and get. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include <sys/wait.h>

#include "tests/prog/queue_far.h"
#include "tests/prog/queue_rig.h"

#define WRITERS 4
#define READERS 4

static uint32_t items;
static size_t bytes;

void
many_init(void)
{
	rig_keep(&items, sizeof(items));
	rig_keep(&bytes, sizeof(bytes));
}

/* --- each item once, in its order ------------------------------------------------------ */

static size_t
size_of(uint32_t seq)
{
	return bytes != 0 ? bytes : 8 + (size_t)(seq * 37 % 4000);
}

static void
writer(struct xr_queue *q, uint32_t index)
{
	rig_leave(q, XR_QUEUE_READER);
	for (uint32_t i = 0; i < items; i++)
		rig_put(q, index, i, size_of(i));
}

static void
reader(struct xr_queue *q, uint32_t index)
{
	uint32_t next[RIG_WRITERS] = { 0 };
	struct rig_item item;
	size_t len;

	(void)index;
	rig_leave(q, XR_QUEUE_WRITER);
	while (rig_get(q, &item, &len)) {
		EXPECT(item.writer < RIG_WRITERS && item.seq < items);
		EXPECT(len == size_of(item.seq));
		/* Of one writer none comes before an earlier one. */
		EXPECT(item.seq >= next[item.writer]);
		next[item.writer] = item.seq + 1;
		EXPECT(atomic_fetch_add(&rig_board->seen[item.writer][item.seq],
			       1) == 0);
		atomic_fetch_add(&rig_board->got, 1);
	}
}

static void
many(struct xr_queue *q, uint32_t writers, uint32_t readers)
{
	pid_t pid[WRITERS + READERS];
	uint32_t n = 0;

	for (uint32_t i = 0; i < readers; i++)
		pid[n++] = rig_fork(reader, q, i);
	for (uint32_t i = 0; i < writers; i++)
		pid[n++] = rig_fork(writer, q, i);
	rig_leave(q, XR_QUEUE_WRITER | XR_QUEUE_READER);
	rig_join(pid, n);
	EXPECT(atomic_load(&rig_board->got) == (uint64_t)writers * items);
	for (uint32_t w = 0; w < writers; w++)
		for (uint32_t i = 0; i < items; i++)
			EXPECT(rig_board->seen[w][i] == 1);
	xr_queue_free(q);
}

static void
all_once(void)
{
	items = rig_many(100000);
	bytes = 8;
	many(QUEUE(.items = 1024), 4, 4);
}

static void
all_sizes(void)
{
	items = 2000;
	many(QUEUE(.items = 100, .bytes = 64 << 10), 4, 4);
}

static void
few_cells(void)
{
	items = 3000;
	bytes = 200;
	many(QUEUE(.items = 3, .bytes = 2048), 3, 3);
}

static void
one_cell(void)
{
	items = 2000;
	bytes = 16;
	many(QUEUE(.items = 1), 4, 4);
}

static void
p2p_once(void)
{
	items = rig_many(200000);
	bytes = 64;
	many(QUEUE(.kind = XR_QUEUE_P2P, .items = 256), 1, 1);
}

static void
p2p_sizes(void)
{
	items = 5000;
	many(QUEUE(.kind = XR_QUEUE_P2P, .items = 64, .bytes = 32 << 10), 1, 1);
}

/* --- who is in the way ------------------------------------------------------------------ */

static void
get_for_ever(struct xr_queue *q, uint32_t index)
{
	struct rig_item item;
	size_t len;

	(void)index;
	rig_post(0);
	EXPECT(!rig_get(q, &item, &len));
}

/* Within a second, of 0.1 s: others may have the processors. */
static void
late_beside(void)
{
	struct xr_queue *q = QUEUE(0);
	struct xr_queue_buf buf = { 0 };
	pid_t pid = rig_fork(get_for_ever, q, 0);
	int64_t at;

	rig_await(0, 1);
	rig_sleeps(pid);
	at = rig_now();
	EXPECT(xr_queue_get_bytes(q, &buf, XR_SECONDS(0.1), &rig_err) ==
		XR_E_TIMEOUT);
	at = rig_now() - at;
	EXPECT(at >= XR_SECONDS(0.1) && at < XR_SECONDS(1));
	xr_queue_close(q);
	rig_join(&pid, 1);
	xr_queue_free(q);
}

static void
put_and_end(struct xr_queue *q, uint32_t index)
{
	for (uint32_t i = 0; i < 10; i++)
		rig_put(q, index, i, 8 + (size_t)i * 500);
}

/* The last writer's end is the end, when all was got; who waits hears of it. */
static void
last_writer(void)
{
	struct xr_queue *q = QUEUE(0);
	struct rig_item item;
	pid_t pid[2];
	size_t len;

	pid[0] = rig_fork(put_and_end, q, 0);
	pid[1] = rig_fork(put_and_end, q, 1);
	rig_join(pid, 2);
	rig_leave(q, XR_QUEUE_WRITER);
	for (int i = 0; i < 20; i++)
		EXPECT(rig_get(q, &item, &len));
	EXPECT(!rig_get(q, &item, &len));
	EXPECT(strstr(rig_err.text, "closed") != NULL);
	xr_queue_free(q);
}

static void
hold_on(struct xr_queue *q, uint32_t index)
{
	rig_put(q, index, 0, 8);
	rig_post(0);
	pause();
}

static void
last_writer_killed(void)
{
	struct xr_queue *q = QUEUE(0);
	pid_t writer = rig_fork(hold_on, q, 0), sleeper;
	struct rig_item item;
	size_t len;

	rig_await(0, 1);
	rig_leave(q, XR_QUEUE_WRITER);
	EXPECT(rig_get(q, &item, &len));
	sleeper = rig_fork(get_for_ever, q, 0);
	rig_await(0, 2);
	rig_sleeps(sleeper);
	rig_kill(writer);
	rig_join(&sleeper, 1);
	EXPECT(!rig_get(q, &item, &len));
	xr_queue_free(q);
}

static void
put_for_ever(struct xr_queue *q, uint32_t index)
{
	(void)index;
	rig_post(0);
	EXPECT(xr_queue_put_bytes(q, "x", 1, XR_TIMEOUT_NEVER, &rig_err) ==
		XR_E_CLOSED);
}

/* Two who get and two who put, on two queues, all asleep. */
static void
close_wakes(void)
{
	struct xr_queue *empty = QUEUE(0), *full = QUEUE(.items = 1);
	struct xr_queue_buf buf = { 0 };
	pid_t pid[4];

	EXPECT(xr_queue_put_bytes(full, "y", 1, 0, &rig_err) == XR_OK);
	for (int i = 0; i < 2; i++) {
		pid[i] = rig_fork(get_for_ever, empty, 0);
		pid[2 + i] = rig_fork(put_for_ever, full, 0);
	}
	rig_await(0, 4);
	for (int i = 0; i < 4; i++)
		rig_sleeps(pid[i]);
	xr_queue_close(empty);
	xr_queue_close(full);
	rig_join(pid, 4);
	EXPECT(xr_queue_get_bytes(full, &buf, 0, &rig_err) == XR_OK);
	free(buf.data);
	buf = (struct xr_queue_buf){ 0 };
	EXPECT(xr_queue_get_bytes(full, &buf, 0, &rig_err) == XR_E_CLOSED);
	xr_queue_free(empty);
	xr_queue_free(full);
}

/* --- who is woken for nothing ------------------------------------------------------------ */

/* Who sleeps first is woken first: when each is known already, and so wakes nobody by its
 * coming. */
static void
in_turn(uint32_t index)
{
	rig_post(0);
	rig_await(10 + index, 1);
	rig_post(0);
}

static void
let_sleep(const pid_t *pid)
{
	rig_await(0, 2);
	for (uint32_t i = 0; i < 2; i++) {
		rig_post(10 + i);
		rig_await(0, 3 + i);
		rig_sleeps(pid[i]);
	}
}

static void
get_in_turn(struct xr_queue *q, uint32_t index)
{
	char small[4];
	struct xr_queue_buf buf = { .data = small, .room = sizeof(small) };
	struct rig_item item;
	size_t len;

	EXPECT(xr_queue_get_bytes(q, &buf, 0, &rig_err) == XR_E_TIMEOUT);
	in_turn(index);
	if (index == 0)
		EXPECT(xr_queue_get_bytes(q, &buf, XR_TIMEOUT_NEVER,
			       &rig_err) == XR_E_RANGE);
	else
		EXPECT(rig_get(q, &item, &len));
}

/* What does not fit goes to another one who sleeps. */
static void
too_small(void)
{
	struct xr_queue *q = QUEUE(0);
	struct rig_item item;
	pid_t pid[2];
	size_t len;

	rig_put(q, 0, 0, 8);
	EXPECT(rig_get(q, &item, &len));
	for (uint32_t i = 0; i < 2; i++)
		pid[i] = rig_fork(get_in_turn, q, i);
	let_sleep(pid);
	rig_put(q, 0, 0, 8);
	rig_join(&pid[1], 1);
	/* The order in which calls reach a server is not known: the second may have been
	 * the first there. */
	if (far_is_on())
		rig_put(q, 0, 1, 8);
	rig_join(&pid[0], 1);
	xr_queue_free(q);
}

static void
put_in_turn(struct xr_queue *q, uint32_t index)
{
	EXPECT(xr_queue_put_bytes(q, "x", 1, 0, &rig_err) == XR_E_TIMEOUT);
	in_turn(index);
	rig_put(q, 0, 9, index == 0 ? 2048 : 8);
	rig_post(1 + index);
}

/* A cell is free: who is woken for it lacks memory, and another one does not. */
static void
no_memory(void)
{
	struct xr_queue *q = QUEUE(.items = 5, .bytes = 8 << 10);
	struct rig_item item;
	pid_t pid[2];
	size_t len;

	rig_put(q, 0, 0, 8);
	for (uint32_t i = 1; i < 5; i++)
		rig_put(q, 0, i, 2048);
	for (uint32_t i = 0; i < 2; i++)
		pid[i] = rig_fork(put_in_turn, q, i);
	let_sleep(pid);
	EXPECT(rig_get(q, &item, &len) && item.seq == 0);
	rig_await(2, 1);
	EXPECT(atomic_load(&rig_word[1]) == 0);
	EXPECT(rig_get(q, &item, &len) && item.seq == 1);
	rig_await(1, 1);
	rig_join(pid, 2);
	xr_queue_free(q);
}

/* --- what costs nothing ------------------------------------------------------------------ */

static void
sleep_idly(struct xr_queue *q, uint32_t index)
{
	struct rig_item item;
	int64_t before;
	size_t len;

	(void)index;
	rig_post(0);
	EXPECT(rig_get(q, &item, &len)); /* once all is there that is needed */
	before = rig_cpu();
	rig_post(1);
	EXPECT(rig_get(q, &item, &len));
	printf("%ld us of a processor in a wait of a second\n",
		(long)((rig_cpu() - before) / 1000));
	EXPECT(rig_cpu() - before < XR_SECONDS(0.02));
}

/* The other one waits that long, too, by the clock of the queue. */
static void
idle(void)
{
	struct xr_queue *q = QUEUE(0), *never = QUEUE(0);
	struct xr_queue_buf buf = { 0 };
	pid_t pid = rig_fork(sleep_idly, q, 0);

	rig_await(0, 1);
	rig_put(q, 0, 0, 8);
	rig_await(1, 1);
	EXPECT(xr_queue_get_bytes(never, &buf, XR_SECONDS(1), &rig_err) ==
		XR_E_TIMEOUT);
	rig_put(q, 0, 1, 8);
	rig_join(&pid, 1);
	xr_queue_free(q);
	xr_queue_free(never);
}

/* --- lanes ------------------------------------------------------------------------------ */

/* All of one lane is full, and the others have one each: nobody waits longer than two
 * rounds. */
static void
flooded(void)
{
	struct xr_queue *q =
		QUEUE(.kind = XR_QUEUE_P2P, .lanes = 8, .items = 64);
	struct xr_queue *lane[8];
	uint32_t served = 0;
	struct rig_item item;
	size_t len;

	for (uint32_t i = 0; i < 8; i++)
		EXPECT(xr_queue_lane(q, i, &lane[i], &rig_err) == XR_OK);
	for (uint32_t i = 0; i < 64; i++)
		rig_put(lane[2], 2, i, 8);
	for (uint32_t i = 0; i < 8; i++)
		if (i != 2)
			rig_put(lane[i], i, 0, 8);
	for (int n = 0; n < 16; n++) {
		EXPECT(rig_get(q, &item, &len));
		served |= 1u << item.writer;
		EXPECT(xr_queue_put_bytes(lane[2], &(struct rig_item){ 2, 0 },
			       8, 0, &rig_err) != XR_E_CLOSED);
	}
	EXPECT(served == 0xff);
	for (uint32_t i = 0; i < 8; i++)
		xr_queue_free(lane[i]);
	xr_queue_free(q);
}

static void
lane_writer(struct xr_queue *q, uint32_t index)
{
	struct xr_queue *lane;

	EXPECT(xr_queue_lane(q, index, &lane, &rig_err) == XR_OK);
	for (uint32_t i = 0; i < items; i++)
		rig_put(lane, index, i, 8 + i % 300);
	xr_queue_free(lane);
}

/* A lane for each who puts, and one who gets of all, asleep now and then. */
static void
lanes(void)
{
	struct xr_queue *q =
		QUEUE(.kind = XR_QUEUE_P2P, .lanes = 4, .items = 16);
	uint32_t next[4] = { 0 };
	struct rig_item item;
	pid_t pid[4];
	size_t len;

	items = rig_many(20000);
	for (uint32_t i = 0; i < 4; i++)
		pid[i] = rig_fork(lane_writer, q, i);
	rig_leave(q, XR_QUEUE_WRITER);
	while (rig_get(q, &item, &len)) {
		EXPECT(item.seq == next[item.writer]);
		EXPECT(len == 8 + item.seq % 300);
		next[item.writer]++;
	}
	for (int i = 0; i < 4; i++)
		EXPECT(next[i] == items);
	rig_join(pid, 4);
	xr_queue_free(q);
}

/* --- a descriptor ------------------------------------------------------------------------ */

static int
polls(int fd, int timeout)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	EXPECT(poll(&p, 1, timeout) != -1);
	return p.revents;
}

static void
put_when_told(struct xr_queue *q, uint32_t index)
{
	for (uint32_t i = 0; i < 100; i++) {
		rig_await(0, i + 1);
		rig_put(q, index, i, 8);
	}
}

static void
pollable(void)
{
	struct xr_queue *q = QUEUE(0);
	pid_t pid = rig_fork(put_when_told, q, 0);
	struct xr_queue_buf buf = { 0 };
	struct rig_item item;
	size_t len;
	int fd;

	EXPECT(xr_queue_fd(q, &fd, &rig_err) == XR_OK);
	rig_leave(q, XR_QUEUE_WRITER);
	for (int i = 0; i < 100; i++) {
		EXPECT(polls(fd, 0) == 0);
		rig_post(0);
		EXPECT(polls(fd, 30000) == POLLIN || i == 99);
		EXPECT(rig_get(q, &item, &len));
		EXPECT(xr_queue_get_bytes(q, &buf, 0, &rig_err) ==
				XR_E_TIMEOUT ||
			i == 99);
	}
	rig_join(&pid, 1);
	EXPECT(polls(fd, 30000) != 0);
	EXPECT(xr_queue_get_bytes(q, &buf, 0, &rig_err) == XR_E_CLOSED);
	xr_queue_free(q);

	q = QUEUE(0);
	rig_put(q, 0, 0, 8);
	EXPECT(xr_queue_fd(q, &fd, &rig_err) == XR_OK);
	EXPECT(polls(fd, 0) == POLLIN);
	EXPECT(rig_get(q, &item, &len));
	EXPECT(xr_queue_get_bytes(q, &buf, 0, &rig_err) == XR_E_TIMEOUT);
	EXPECT(polls(fd, 0) == 0);
	xr_queue_close(q);
	EXPECT(polls(fd, 0) == POLLIN);
	EXPECT(xr_queue_get_bytes(q, &buf, 0, &rig_err) == XR_E_CLOSED);
	EXPECT(polls(fd, 0) == POLLIN);
	xr_queue_free(q);
}

const struct rig_case many_cases[] = {
	{ "all-once", all_once },
	{ "all-sizes", all_sizes },
	{ "few-cells", few_cells },
	{ "one-cell", one_cell },
	{ "p2p-once", p2p_once },
	{ "p2p-sizes", p2p_sizes },
	{ "late-beside", late_beside },
	{ "last-writer", last_writer },
	{ "last-writer-killed", last_writer_killed },
	{ "close-wakes", close_wakes },
	{ "too-small", too_small },
	{ "no-memory", no_memory },
	{ "idle", idle },
	{ "flooded", flooded },
	{ "lanes", lanes },
	{ "pollable", pollable },
	{ NULL, NULL },
};
