/* SPDX-License-Identifier: Apache-2.0 */
/* test_unstored.c - a sink reads bytes of a file, and bytes that found no room
 * in it, each once and in order. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "launcher/log/feed.h"
#include "launcher/log/raw.h"
#include "tests/unit/folder.h"
#include "tests/unit/short_memory.h"

#define STREAM 40000 /* bytes of a round */

static char scratch[FEED_CHUNK + LINE_HOLD];
static char source[STREAM], want[STREAM], got[STREAM];
static size_t written;          /* bytes of the source that left the pipe */
static size_t wanted, received; /* bytes to be delivered; that were */
static struct feed feed;
static uint64_t total;
static int dir = -1, file = -1;

static void
begin(void)
{
	folder_make();
	dir = open(".", O_DIRECTORY | O_CLOEXEC);
	file = raw_open(dir, 0);
	cr_assert_neq(file, -1);
	for (size_t i = 0; i < STREAM; i++)
		source[i] = (char)(i * 2654435761u >> 13);
}

static void
end(void)
{
	feed_fini(&feed);
	fd_close(file);
	fd_close(dir);
	folder_remove();
}

TestSuite(unstored, .init = begin, .fini = end);

static void
restart(void)
{
	feed_fini(&feed);
	feed = (struct feed){ .file = file, .pipe = -1 };
	feed.unstored = unstored_new(&total);
	written = wanted = received = total = 0;
	cr_assert_eq(ftruncate(file, 0), 0);
	cr_assert_eq(lseek(file, 0, SEEK_SET), 0);
}

static void
want_bytes(const char *at, size_t n)
{
	memcpy(want + wanted, at, n);
	wanted += n;
}

/* The next @n bytes go to the file. */
static void
store(size_t n)
{
	cr_assert_eq(fd_write_all(file, source + written, n), 0);
	want_bytes(source + written, n);
	written += n;
	feed.end += n;
}

/* @n bytes wait in the pipe. */
static size_t
pend(size_t n)
{
	n = unstored_add(feed.unstored, feed.end,
		(struct span){ source + written, n }, false);
	unstored_take(feed.unstored);
	return n;
}

static size_t
drop(size_t n)
{
	size_t taken = unstored_add(feed.unstored, feed.end,
		(struct span){ source + written, n }, true);

	want_bytes(source + written, taken);
	written += n;
	unstored_take(feed.unstored);
	return taken;
}

/* Delivers @most bytes of what can be read now. Returns how many could. */
static size_t
deliver(size_t most)
{
	struct span data;

	cr_assert(feed_peek(&feed, dir, scratch, &data));
	cr_assert_leq(data.len, feed_left(&feed));
	most = most < data.len ? most : data.len;
	memcpy(got + received, data.at, most);
	received += most;
	cr_assert(feed_took(&feed, data, most));
	return data.len;
}

static void
deliver_all(void)
{
	while (deliver(STREAM) > 0)
		;
	cr_assert_eq(feed_left(&feed), 0);
}

static void
expect_all(void)
{
	deliver_all();
	cr_assert_eq(received, wanted, "%zu of %zu", received, wanted);
	cr_assert_eq(memcmp(got, want, wanted), 0);
	cr_assert_eq(total, 0);
}

Test(unstored, pending_bytes_are_delivered_once)
{
	restart();
	store(10);
	cr_expect_eq(pend(20), 20);
	cr_expect_eq(deliver(STREAM), 30, "in one piece");
	cr_expect_eq(pend(30), 10);
	cr_expect_eq(deliver(4), 10);
	store(30);
	expect_all();
}

Test(unstored, dropped_bytes_stand_between_stored_bytes)
{
	restart();
	store(10);
	cr_expect_eq(drop(20), 20);
	store(10);
	cr_expect_eq(deliver(15), 40, "in one piece");
	expect_all();
}

Test(unstored, dropped_bytes_of_two_places_are_not_mixed)
{
	restart();
	store(10);
	cr_expect_eq(drop(20), 20);
	store(10);
	cr_expect_eq(drop(20), 0, "those before were not delivered");
	expect_all();
	cr_expect_eq(drop(20), 20);
	expect_all();
}

static char much[UNSTORED_MAX + 1];

static size_t
add(uint64_t at, size_t n, bool dropped)
{
	return unstored_add(feed.unstored, at, (struct span){ much, n },
		dropped);
}

Test(unstored, a_stream_holds_a_limited_number_of_bytes)
{
	for (int dropped = 0; dropped < 2; dropped++) {
		restart();
		cr_expect_eq(add(0, UNSTORED_MAX - 10, dropped),
			UNSTORED_MAX - 10);
		cr_expect_eq(add(dropped ? 0 : UNSTORED_MAX - 10, 11, dropped),
			10);
		cr_expect_eq(add(dropped ? 0 : UNSTORED_MAX, 1, dropped), 0);
		cr_expect_eq(total, UNSTORED_MAX);
		cr_expect_eq(feed.unstored->fresh.len, UNSTORED_MAX);
		cr_expect_eq(feed.unstored->pending,
			dropped ? 0 : UNSTORED_MAX);
	}
	/* Also those that were taken over. */
	unstored_take(feed.unstored);
	cr_expect_eq(add(0, 1, true), 0);
	unstored_delivered(feed.unstored, 5);
	cr_expect_eq(add(0, 6, true), 5);
}

Test(unstored, a_sink_holds_a_limited_number_of_bytes)
{
	for (int dropped = 0; dropped < 2; dropped++) {
		restart();
		total = UNSTORED_ALL;
		cr_expect_eq(add(0, 20, dropped), 0);
		total = UNSTORED_ALL - 10;
		cr_expect_eq(add(0, 20, dropped), 10);
		cr_expect_eq(total, UNSTORED_ALL);
		total = 10;
	}
}

Test(unstored, pending_bytes_wait_until_dropped_bytes_are_delivered)
{
	restart();
	cr_expect_eq(add(0, 20, true), 20);
	cr_expect_eq(add(0, 10, false), 0);
	unstored_take(feed.unstored);
	cr_expect_eq(add(0, 10, false), 0);
	unstored_delivered(feed.unstored, 20);
	cr_expect_eq(add(0, 10, false), 10);
	unstored_take(feed.unstored);
	cr_expect_not(feed.unstored->dropped);
	cr_expect_eq(feed.unstored->data.len, 10);
}

Test(unstored, dropped_bytes_do_not_continue_pending_bytes)
{
	restart();
	cr_expect_eq(add(0, 10, false), 10);
	cr_expect_eq(add(9, 10, true), 0, "its place was displayed");
	unstored_take(feed.unstored);
	cr_expect_eq(add(10, 20, true), 20);
	unstored_take(feed.unstored);
	cr_expect(feed.unstored->dropped);
	cr_expect_eq(feed.unstored->at, 10);
	cr_expect_eq(feed.unstored->data.len, 20);
	cr_expect_eq(total, 20);
	/* Nor if the others were not taken over. */
	restart();
	cr_expect_eq(add(0, 10, false), 10);
	cr_expect_eq(add(10, 20, true), 20);
	cr_expect_eq(feed.unstored->fresh.len, 20);
	cr_expect_eq(total, 20);
}

Test(unstored, without_memory_nothing_is_held_nor_counted)
{
	until_short = 1;
	cr_expect_null(unstored_new(&total));
	for (int dropped = 0; dropped < 2; dropped++) {
		restart();
		until_short = 1;
		cr_expect_eq(add(0, 10, dropped), 0);
		cr_expect_eq(feed.unstored->left, 0);
		/* when it grows */
		cr_expect_eq(add(0, 10, dropped), 10);
		until_short = 1;
		cr_expect_eq(add(dropped ? 0 : 10, 10000, dropped), 0);
		cr_expect_eq(feed.unstored->fresh.len, 0);
		cr_expect_eq(feed.unstored->left, 0);
		cr_expect_eq(total, 0);
		/* when it is taken over */
		cr_expect_eq(add(10, 10, dropped), 10);
		unstored_take(feed.unstored);
		cr_expect_eq(add(dropped ? 10 : 20, 10000, dropped), 10000);
		until_short = 1;
		unstored_take(feed.unstored);
		cr_expect_eq(until_short, 0, "it was short");
		cr_expect_eq(feed.unstored->data.len, 0);
		cr_expect_eq(feed.unstored->left, 0);
		cr_expect_eq(total, 0);
		/* and afterwards */
		cr_expect_eq(add(20000, 10, dropped), 10);
		unstored_take(feed.unstored);
		cr_expect_eq(feed.unstored->data.len, 10);
	}
}

static void
step(bool drops)
{
	size_t n = (size_t)random() % 300;

	switch (random() % 4) {
	case 0:
		store(n);
		break;
	case 1:
		if (drops)
			drop(n);
		else
			pend(n);
		break;
	case 2:
		deliver(n);
		break;
	case 3:
		deliver_all();
	}
}

Test(unstored, whatever_comes_each_byte_is_delivered_once_and_in_order)
{
	for (unsigned seed = 0; seed < 400; seed++) {
		srandom(seed);
		restart();
		while (written + 300 < STREAM / 2)
			step(seed % 2 == 0);
		/* Pending bytes are stored at last. */
		if (seed % 2 == 1 && received > wanted)
			store(received - wanted);
		store(300);
		expect_all();
	}
}
