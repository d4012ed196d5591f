/* SPDX-License-Identifier: Apache-2.0 */
/* test_queue_pipe.c - the pipe of a queue: who polls sees that there is something to get, and who
 * waits hears of the end. */
#include <sys/ioctl.h>

#include "tests/unit/queue_rig.h"
#include "worker/queue/hall.h"

TestSuite(queue_pipe, .timeout = 60);

static struct xr_queue *queue;
static struct hall *h;
static int lowest;

static void
begin(uint32_t polled)
{
	queue = QUEUE(.items = 4);
	h = queue->hall;
	atomic_store(&h->head->polled, polled);
	lowest = lowest_fd();
	errno = ENOSPC;
}

/* No descriptor was left, and errno is what it was. */
static void
end(void)
{
	EXPECT_EQ(errno, ENOSPC);
	EXPECT_EQ(lowest_fd(), lowest);
	xr_queue_free(queue);
}

static int
bytes(void)
{
	int saved = errno, n = -1;

	NEED(ioctl(h->ear, FIONREAD, &n) == 0);
	errno = saved;
	return n;
}

/* A byte that nobody has read yet, and no more. */
static void
expect_lit(uint32_t lit, int count)
{
	EXPECT_EQ(atomic_load(&h->head->lit), lit);
	EXPECT_EQ(bytes(), count);
}

static void
fill(void)
{
	char all[4096] = { 0 };

	while (write(h->mouth, all, sizeof(all)) > 0)
		;
	NEED(errno == EAGAIN);
	errno = ENOSPC;
}

/* --- light --------------------------------------------------------------------------------- */

FORKED_TEST(queue_pipe, nothing_is_said_where_nobody_polls)
{
	begin(0);
	hall_light(h);
	expect_lit(0, 0);
	NEED(write(h->mouth, "ab", 2) == 2);
	atomic_store(&h->head->lit, 1);
	hall_darken(h);
	expect_lit(1, 2);
	end();
}

FORKED_TEST(queue_pipe, one_byte_says_that_there_is_something)
{
	begin(1);
	hall_light(h);
	expect_lit(1, 1);
	hall_light(h);
	expect_lit(1, 1);
	NEED(write(h->mouth, (char[150]){ 0 }, 150) == 150);
	hall_darken(h);
	expect_lit(0, 0);
	hall_light(h);
	expect_lit(1, 1);
	end();
}

/* One that is no writer lends itself an end. */
FORKED_TEST(queue_pipe, who_is_no_writer_can_say_it_too)
{
	int mouth;

	begin(1);
	mouth = h->mouth;
	hall_mute(h);
	EXPECT_EQ(h->mouth, -1);
	EXPECT_EQ(h->roles, XR_QUEUE_READER);
	EXPECT_EQ(fcntl(mouth, F_GETFD), -1);
	hall_mute(h);
	EXPECT_EQ(h->roles, XR_QUEUE_READER);
	lowest = lowest_fd();
	errno = ENOSPC;
	hall_light(h);
	expect_lit(1, 1);
	end();
}

FORKED_TEST(queue_pipe, a_pipe_that_is_full_says_enough)
{
	int was;

	begin(1);
	fill();
	was = bytes();
	hall_light(h);
	expect_lit(1, was);
	hall_mute(h);
	lowest = lowest_fd();
	atomic_store(&h->head->lit, 0);
	hall_light(h);
	expect_lit(1, was);
	end();
}

/* --- the end ------------------------------------------------------------------------------- */

static void
expect_rung(uint32_t count)
{
	EXPECT_EQ(h->head->items_wake.rung, count);
	EXPECT_EQ(h->head->space_wake.rung, count);
	EXPECT_EQ(h->head->memory_wake.rung, count);
}

FORKED_TEST(queue_pipe, what_is_finished_stays_lit_and_wakes_all)
{
	begin(1);
	expect_rung(0);
	hall_wake(h);
	expect_rung(1);
	hall_finish(h, HALL_CLOSED);
	EXPECT_EQ(h->head->end, HALL_CLOSED);
	expect_rung(2);
	expect_lit(0, 1);
	atomic_store(&h->head->lit, 1);
	hall_darken(h);
	expect_lit(1, 1);
	hall_finish(h, HALL_WRITERS);
	EXPECT_EQ(h->head->end, HALL_CLOSED);
	expect_rung(3);
	end();
	begin(0);
	hall_finish(h, HALL_WRITERS);
	EXPECT_EQ(h->head->end, HALL_WRITERS);
	expect_rung(1);
	expect_lit(0, 0);
	end();
}

FORKED_TEST(queue_pipe, a_queue_is_abandoned_when_the_last_writer_is_gone)
{
	int other;

	begin(0);
	other = fcntl(h->mouth, F_DUPFD_CLOEXEC, 0);
	NEED(other != -1);
	EXPECT(!hall_abandoned(h));
	hall_mute(h);
	EXPECT(!hall_abandoned(h));
	EXPECT_EQ(h->head->end, HALL_OPEN);
	expect_rung(0);
	/* What can be read is no end. */
	NEED(write(other, "a", 1) == 1);
	EXPECT(!hall_abandoned(h));
	close(other);
	lowest = lowest_fd();
	errno = ENOSPC;
	EXPECT(hall_abandoned(h));
	EXPECT_EQ(h->head->end, HALL_WRITERS);
	expect_rung(1);
	end();
}

FORKED_TEST(queue_pipe, a_closed_queue_has_ended_for_who_is_no_writer)
{
	int other;

	begin(0);
	hall_finish(h, HALL_CLOSED);
	EXPECT(!hall_abandoned(h));
	other = fcntl(h->mouth, F_DUPFD_CLOEXEC, 0);
	hall_mute(h);
	lowest = lowest_fd();
	EXPECT(hall_abandoned(h));
	EXPECT_EQ(h->head->end, HALL_CLOSED);
	expect_rung(1);
	end();
	close(other);
}
