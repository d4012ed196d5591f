/* SPDX-License-Identifier: Apache-2.0 */
/* test_queue_move.c - items into the lanes of a queue and out of them: which lane is next, who is
 * woken, and what is said when it does not go. */
#include "tests/unit/forked.h"
#include "tests/unit/queue_rig.h"
#include "tests/unit/short_memory.h"
#include "worker/queue/queue_inner.h"
#include "worker/queue/user.h"

TestSuite(queue_move, .timeout = 60);

#define ITEMS 2
#define OTHER 0x2001u /* of whom nothing is known */

static struct xr_queue *queue;
static struct hall_head *head;

/* --- who is woken ------------------------------------------------------------------------------ */

static struct {
	const struct wake *wake;
	uint32_t count;
} rung[8];
static unsigned rings;

void __wrap_wake_slow(struct wake *w, uint32_t count);

void
__wrap_wake_slow(struct wake *w, uint32_t count)
{
	NEED(rings < 8);
	rung[rings].wake = w;
	rung[rings++].count = count;
}

/* Somebody may sleep on all three. */
static void
arm(void)
{
	wake_arm(&head->items_wake);
	wake_arm(&head->space_wake);
	wake_arm(&head->memory_wake);
	rings = 0;
}

static void
expect_ring(unsigned i, const struct wake *w, uint32_t count)
{
	EXPECT(i < rings);
	EXPECT(rung[i].wake == w);
	EXPECT_EQ(rung[i].count, count);
}

/* --- queues ------------------------------------------------------------------------------------ */

static void
begin(const struct xr_queue_opts *o)
{
	uint32_t who;

	NEED(xr_queue_new(o, &queue, &err) == XR_OK);
	head = queue->hall->head;
	/* Whoever comes wakes all. */
	EXPECT_EQ(user_self(queue->hall, &who, NULL), XR_OK);
	memset(&err, 0, sizeof(err));
	arm();
}

#define BEGIN(...) \
	begin(&(struct xr_queue_opts)OPTS(.items = ITEMS, .bytes = 1 << 19, \
		__VA_ARGS__))

static size_t count;

/* So many letters of one byte each: "a", "b", and so on. */
static enum xr_status
give(size_t n, char first)
{
	struct letter letters[8] = { 0 };
	struct xr_part parts[8];
	char body[8];

	for (size_t i = 0; i < n; i++) {
		body[i] = (char)(first + (char)i);
		parts[i] = (struct xr_part){ &body[i], 1 };
		letters[i] = (struct letter){ .parts = &parts[i],
			.count = 1,
			.len = 1 };
	}
	count = n;
	rings = 0;
	return give_all(queue, letters, &count, 0, &err);
}

static char text[9]; /* what was got */

static enum xr_status
take_by(bool is_now, size_t n)
{
	struct xr_queue_buf buf[8];
	struct taker takers[8] = { 0 };
	enum xr_status status;

	memset(text, 0, sizeof(text));
	for (size_t i = 0; i < n; i++) {
		buf[i] = (struct xr_queue_buf){ text + i, 1, 0 };
		takers[i].buf = &buf[i];
	}
	count = n;
	rings = 0;
	status = is_now ? take_now(queue, takers, &count, &err) :
			  take_some(queue, takers, &count, 0, &err);
	text[count] = '\0';
	return status;
}

static enum xr_status
take(size_t n)
{
	return take_by(false, n);
}

/* --- in -------------------------------------------------------------------------------------- */

FORKED_TEST(queue_move, as_many_are_put_as_there_is_room_for)
{
	for (int alone = 0; alone < 2; alone++) {
		BEGIN(.kind = alone ? XR_QUEUE_P2P : XR_QUEUE_ANY);
		EXPECT_EQ(give(0, 'a'), XR_OK);
		EXPECT_EQ(rings, 0);
		EXPECT_EQ(give(3, 'a'), XR_E_TIMEOUT);
		EXPECT_STR(err.text, "no room in time");
		EXPECT_EQ(count, 2);
		EXPECT_EQ(rings, 1);
		expect_ring(0, &head->items_wake, 2);
		EXPECT_EQ(give(1, 'c'), XR_E_TIMEOUT);
		EXPECT_EQ(count, 0);
		EXPECT_EQ(rings, 0);
		EXPECT_EQ(take(1), XR_OK);
		EXPECT_STR(text, "a");
		EXPECT_EQ(rings, 1);
		expect_ring(0, &head->space_wake, 1);
		EXPECT_EQ(give(1, 'c'), XR_OK);
		EXPECT_EQ(count, 1);
		expect_ring(0, &head->items_wake, 1);
		EXPECT_EQ(take(5), XR_OK);
		EXPECT_STR(text, "bc");
		EXPECT_EQ(count, 2);
		expect_ring(0, &head->space_wake, 2);
		EXPECT_EQ(rings, 1);
		xr_queue_free(queue);
	}
}

FORKED_TEST(queue_move, lanes_have_their_turn)
{
	BEGIN(.kind = XR_QUEUE_ANY, .lanes = 3);
	EXPECT_EQ(give(1, 'a'), XR_OK);
	EXPECT_EQ(queue->put_at, 1);
	/* Of lanes anybody may wait for another one. */
	expect_ring(0, &head->items_wake, UINT32_MAX);
	EXPECT_EQ(give(3, 'b'), XR_OK);
	EXPECT_EQ(queue->put_at, 1);
	for (uint32_t i = 0; i < 3; i++)
		EXPECT_EQ(lane_count(queue->hall, &queue->hall->lane[i]),
			i == 0 ? 2 : 1);
	/* The second is full: the third has it. */
	EXPECT_EQ(give(1, 'e'), XR_OK);
	queue->put_at = 1;
	EXPECT_EQ(give(1, 'f'), XR_OK);
	EXPECT_EQ(queue->put_at, 0);
	EXPECT_EQ(give(1, 'g'), XR_E_TIMEOUT);
	EXPECT_EQ(queue->put_at, 0);
	EXPECT_EQ(take(1), XR_OK);
	EXPECT_STR(text, "a");
	EXPECT_EQ(queue->get_at, 1);
	expect_ring(0, &head->space_wake, UINT32_MAX);
	EXPECT_EQ(take(3), XR_OK);
	EXPECT_STR(text, "bec");
	EXPECT_EQ(queue->get_at, 0);
	EXPECT_EQ(take(3), XR_OK);
	EXPECT_STR(text, "df");
	EXPECT_EQ(queue->get_at, 0);
	xr_queue_free(queue);
}

FORKED_TEST(queue_move, who_may_not_put_or_get_is_told_why)
{
	BEGIN(.kind = XR_QUEUE_ANY);
	xr_queue_leave(queue, XR_QUEUE_READER);
	EXPECT_EQ(take(1), XR_E_STATE);
	EXPECT_STR(err.text, "this process is no reader of the queue");
	EXPECT_EQ(count, 0);
	EXPECT_EQ(take_by(true, 1), XR_E_STATE);
	EXPECT_EQ(count, 0);
	EXPECT_EQ(give(1, 'a'), XR_OK);
	xr_queue_free(queue);
	BEGIN(.kind = XR_QUEUE_ANY);
	xr_queue_leave(queue, XR_QUEUE_WRITER);
	EXPECT_EQ(give(1, 'a'), XR_E_STATE);
	EXPECT_STR(err.text, "this process is no writer of the queue");
	EXPECT_EQ(count, 0);
	xr_queue_free(queue);
	queue = NULL;
	EXPECT_EQ(give(1, 'a'), XR_E_INVAL);
	EXPECT_STR(err.text, "the queue is NULL");
	EXPECT_EQ(take_by(true, 1), XR_E_INVAL);
	BEGIN(.kind = XR_QUEUE_ANY);
	EXPECT_EQ(xr_queue_put_bytes(queue, "", 0, -2, &err), XR_E_INVAL);
	EXPECT_EQ(xr_queue_put_bytes(queue, "", 0, XR_TIMEOUT_DEFAULT, &err),
		XR_OK);
	xr_queue_free(queue);
}

FORKED_TEST(queue_move, an_end_of_one_to_one_is_one_process_s)
{
	struct lane *lane;
	uint32_t me;

	BEGIN(.kind = XR_QUEUE_P2P);
	lane = &queue->hall->lane[0];
	lane->ends->writer = OTHER;
	EXPECT_EQ(give(1, 'a'), XR_E_EXISTS);
	EXPECT(strstr(err.text, " has this end of the queue already") != NULL);
	EXPECT_EQ(count, 0);
	lane->ends->writer = 0;
	EXPECT_EQ(give(1, 'a'), XR_OK);
	me = lane->ends->writer;
	EXPECT(me != 0 && me == queue->hall->me);
	EXPECT_EQ(lane->ends->reader, 0);
	lane->ends->reader = OTHER;
	EXPECT_EQ(take(1), XR_E_EXISTS);
	lane->ends->reader = 0;
	EXPECT_EQ(take(1), XR_OK);
	EXPECT_EQ(lane->ends->reader, me);
	xr_queue_free(queue);
}

FORKED_TEST(queue_move, nothing_is_put_into_a_closed_queue)
{
	for (int alone = 0; alone < 2; alone++) {
		BEGIN(.kind = alone ? XR_QUEUE_P2P : XR_QUEUE_ANY, .lanes = 2);
		EXPECT_EQ(give(1, 'a'), XR_OK);
		xr_queue_close(queue);
		EXPECT_EQ(give(1, 'b'), XR_E_CLOSED);
		EXPECT_STR(err.text, "the queue is closed");
		EXPECT_EQ(count, 0);
		EXPECT_EQ(queue->hall->lane[0].ends->shut, 0);
		EXPECT_EQ(take(3), XR_OK);
		EXPECT_STR(text, "a");
		EXPECT_EQ(take(1), XR_E_CLOSED);
		EXPECT_STR(err.text, "the queue is closed, and empty");
		for (int i = 0; i < 2; i++)
			EXPECT_EQ(queue->hall->lane[i].ends->shut, alone);
		EXPECT_EQ(take(0), XR_OK);
		xr_queue_free(queue);
	}
}

/* Who waits for a cell and was woken for it leaves it to another. */
FORKED_TEST(queue_move, a_cell_without_memory_is_left_to_another)
{
	static char large[200];
	struct lane *lane;
	bool left = false;

	BEGIN(.kind = XR_QUEUE_ANY);
	lane = &queue->hall->lane[0];
	for (uint32_t i = 0; i < queue->hall->plan.blocks; i++)
		lane->owner[i] = owner_word(OTHER, 1);
	EXPECT_EQ(xr_queue_put_bytes(queue, large, sizeof(large), 0, &err),
		XR_E_TIMEOUT);
	for (unsigned i = 0; i < rings; i++)
		left |= rung[i].wake == &head->space_wake && rung[i].count == 1;
	EXPECT(left);
	for (uint32_t i = 0; i < queue->hall->plan.blocks; i++)
		lane->owner[i] = 0;
	EXPECT_EQ(xr_queue_put_bytes(queue, large, sizeof(large), 0, &err),
		XR_OK);
	xr_queue_free(queue);
}

/* --- out -------------------------------------------------------------------------------------- */

FORKED_TEST(queue_move, what_is_about_to_be_put_keeps_a_closed_queue_open)
{
	static const struct xr_part part = { "x", 1 };
	struct letter l = { .parts = &part, .count = 1, .len = 1 };

	BEGIN(.kind = XR_QUEUE_ANY);
	EXPECT_EQ(take(1), XR_E_TIMEOUT);
	EXPECT_STR(err.text, "nothing came in time");
	EXPECT_EQ(take_by(true, 1), XR_E_AGAIN);
	EXPECT_EQ(rings, 0);
	l.is_offer = true;
	count = 1;
	EXPECT_EQ(give_all(queue, &l, &count, 0, &err), XR_OK);
	xr_queue_close(queue);
	EXPECT_EQ(take(1), XR_E_TIMEOUT);
	lane_return(queue->hall, l.lane, l.ticket);
	EXPECT_EQ(take(1), XR_OK);
	EXPECT_STR(text, "x");
	EXPECT_EQ(take(1), XR_E_CLOSED);
	xr_queue_free(queue);
}

FORKED_TEST(queue_move, what_cannot_be_got_is_left_to_another)
{
	struct xr_queue_buf buf = { 0 };

	BEGIN(.kind = XR_QUEUE_ANY);
	EXPECT_EQ(xr_queue_put_bytes(queue, "long", 4, 0, NULL), XR_OK);
	rings = 0;
	EXPECT_EQ(take(1), XR_E_RANGE);
	EXPECT_STR(err.text, "an item of 4 bytes does not fit");
	EXPECT_EQ(rings, 1);
	expect_ring(0, &head->items_wake, 1);
	EXPECT_EQ(take_by(true, 1), XR_E_RANGE);
	EXPECT_EQ(rings, 0);
	until_short = 1;
	EXPECT_EQ(xr_queue_get_bytes(queue, &buf, 0, &err), XR_E_NOMEM);
	until_short = 0;
	EXPECT_STR(err.text, "out of memory");
	EXPECT_EQ(rings, 1);
	expect_ring(0, &head->items_wake, 1);
	/* Behind one that can, it is no reason to fail. */
	EXPECT_EQ(xr_queue_get_bytes(queue, &buf, 0, &err), XR_OK);
	free(buf.data);
	EXPECT_EQ(give(1, 'a'), XR_OK);
	EXPECT_EQ(xr_queue_put_bytes(queue, "long", 4, 0, NULL), XR_OK);
	EXPECT_EQ(take(2), XR_OK);
	EXPECT_STR(text, "a");
	EXPECT_EQ(count, 1);
	/* Nonsense is gone, and said. */
	queue->hall->lane[0].cell[0].len = CELL_BODY + 1;
	EXPECT_EQ(take(1), XR_E_PROTO);
	EXPECT_STR(err.text, "a queue that somebody has damaged");
	xr_queue_free(queue);
}

FORKED_TEST(queue_move, who_polls_is_told_when_there_is_nothing)
{
	int fd = -1;

	BEGIN(.kind = XR_QUEUE_ANY, .lanes = 2);
	EXPECT_EQ(give(1, 'a'), XR_OK);
	EXPECT_EQ(xr_queue_fd(queue, &fd, &err), XR_OK);
	EXPECT_EQ(head->lit, 1);
	EXPECT_EQ(take(1), XR_OK);
	EXPECT_EQ(head->lit, 1);
	EXPECT_EQ(take(1), XR_E_TIMEOUT);
	EXPECT_EQ(head->lit, 0);
	EXPECT_EQ(give(1, 'b'), XR_OK);
	EXPECT_EQ(head->lit, 1);
	xr_queue_free(queue);
}
