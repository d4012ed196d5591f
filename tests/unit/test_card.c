/* SPDX-License-Identifier: Apache-2.0 */
/* test_card.c - what a process is told and reports, and where ranks meet: whole, cut
 * anywhere, with lies in it, and without memory. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "tests/unit/short_memory.h"
#include "worker/proc/card.h"
#include "worker/proc/meet.h"

TestSuite(card, .timeout = 60);

static struct xr_error err;

static int
written(void)
{
	static const char *const env[] = { "COLOUR=green", "EMPTY=", NULL };
	struct xr_value *arg = xr_value_new_text("hello", 5);
	struct card card = {
		.flags = CARD_TELLS,
		.ordinal = 7,
		.started = 4711,
		.text = { "loader", "load", "", "/tmp" },
		.env = env,
		.arg = arg,
	};
	int fd = -1;

	card_write(&card, &fd, &err);
	xr_value_unref(arg);
	return fd;
}

static void
drop(struct card *card)
{
	free(card->own);
	free((void *)(uintptr_t)card->env);
	xr_value_unref(card->arg);
}

Test(card, what_is_written_is_read)
{
	int fd = written();
	struct card card;
	size_t len;

	cr_assert_eq(card_read(fd, &card, &err), XR_OK, "%s", err.text);
	cr_assert_eq(card.flags, CARD_TELLS);
	cr_assert_eq(card.ordinal, 7);
	cr_assert_eq(card.started, 4711);
	cr_assert_str_eq(card.text[CARD_NAME], "loader");
	cr_assert_str_eq(card.text[CARD_FUNC], "load");
	cr_assert_str_eq(card.text[CARD_CLEANER], "");
	cr_assert_str_eq(card.text[CARD_FOLDER], "/tmp");
	cr_assert_str_eq(card.env[0], "COLOUR=green");
	cr_assert_str_eq(card.env[1], "EMPTY=");
	cr_assert_null(card.env[2]);
	cr_assert_str_eq(xr_value_data(card.arg, &len), "hello");
	drop(&card);
	close(fd);
}

Test(card, one_that_is_cut_is_refused)
{
	struct stat st;
	int fd = written();

	cr_assert_eq(fstat(fd, &st), 0);
	for (off_t len = st.st_size - 1; len >= 0; len--) {
		struct card card;

		cr_assert_eq(ftruncate(fd, len), 0);
		cr_assert_neq(card_read(fd, &card, &err), XR_OK, "%d bytes",
			(int)len);
	}
	close(fd);
}

/* Each byte of the head, of which lengths are part. */
Test(card, one_that_lies_is_refused_or_read_and_no_more)
{
	struct xr_value *reports[2];
	struct stat st;
	int fd = written();
	char byte;

	cr_assert_eq(fstat(fd, &st), 0);
	for (off_t at = 0; at < st.st_size; at++) {
		struct card card;
		uint32_t n;

		cr_assert_eq(pread(fd, &byte, 1, at), 1);
		cr_assert_eq(pwrite(fd, "\xff", 1, at), 1);
		if (card_read(fd, &card, &err) == XR_OK)
			drop(&card);
		n = card_reports(fd, reports, 2);
		while (n > 0)
			xr_value_unref(reports[--n]);
		cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
	}
	close(fd);
}

static struct xr_value *
report(const char *text)
{
	struct xr_failure f = {
		.size = sizeof(f),
		.status = XR_E_RANGE,
		.text = text,
	};

	return xr_value_new_error(&f);
}

Test(card, two_reports_are_read_in_their_order_and_a_third_finds_no_room)
{
	struct xr_value *reports[3] = { report("a"), report("b"), report("c") };
	struct xr_value *read[3];
	struct xr_failure f = { .size = sizeof(f) };
	int fd = written();

	cr_assert_eq(card_reports(fd, read, 3), 0);
	cr_assert(card_report(fd, reports[0]));
	cr_assert(card_report(fd, reports[1]));
	cr_assert_not(card_report(fd, reports[2]));
	cr_assert_eq(card_reports(fd, read, 3), 2);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(xr_value_failure(read[i], &f), XR_OK);
		cr_assert_str_eq(f.text, i == 0 ? "a" : "b");
		xr_value_unref(read[i]);
	}
	for (int i = 0; i < 3; i++)
		xr_value_unref(reports[i]);
	close(fd);
}

Test(card, without_memory_it_says_so)
{
	struct card card;
	int fd = -1;

	/* The first allocation is the argument's: without it the card has none. */
	was_short = true;
	for (unsigned n = 1; was_short; n++) {
		close(fd);
		was_short = false;
		until_short = n;
		fd = written();
		until_short = 0;
		cr_assert_eq(fd == -1, was_short && n > 1, "%u: %s", n,
			err.text);
	}
	was_short = true;
	for (unsigned n = 1; was_short; n++) {
		enum xr_status status;

		was_short = false;
		until_short = n;
		status = card_read(fd, &card, &err);
		until_short = 0;
		if (status == XR_OK)
			drop(&card);
		cr_assert(was_short || status == XR_OK, "%s", err.text);
	}
	close(fd);
}

/* Writes a card while the soft limit @what is @max, and checks that no descriptor is
 * returned or left open. */
static void
write_with_limit(__rlimit_resource_t what, rlim_t max, int sys,
	const char *text)
{
	static const char *const env[] = { NULL };
	struct card card = { .text = { "a", "b", "", "" }, .env = env };
	int before = dup(0), fd = -1, after;
	struct rlimit usual, tight;
	enum xr_status status;

	close(before);
	cr_assert_eq(getrlimit(what, &usual), 0);
	tight = (struct rlimit){ max, usual.rlim_max };
	cr_assert_eq(setrlimit(what, &tight), 0);
	status = card_write(&card, &fd, &err);
	cr_assert_eq(setrlimit(what, &usual), 0);
	cr_expect_eq(status, XR_E_SYS);
	cr_expect_eq(err.sys, sys);
	cr_expect_str_eq(err.text, text);
	cr_expect_eq(fd, -1);
	after = dup(0);
	cr_expect_eq(after, before);
	close(after);
}

Test(card, a_card_that_cannot_be_written_is_an_error)
{
	sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	write_with_limit(RLIMIT_FSIZE, 16, EFBIG, "write: File too large");
	write_with_limit(RLIMIT_NOFILE, 0, EMFILE,
		"memfd_create: Too many open files");
}

/* --- meeting ---------------------------------------------------------------- */

static int
place(void)
{
	int fd = -1;

	cr_assert_eq(meet_make(2, &fd, &err), XR_OK);
	meet_take(fd, 0);
	cr_assert(meet_is_here());
	return fd;
}

/* As the other rank, which is this process, too. */
static void
both_leave(int fd, struct meet *m)
{
	struct xr_value *one = xr_value_new_i64(1), *two = xr_value_new_i64(2);

	meet_take(fd, 1);
	cr_assert_eq(meet_leave(m, two, &err), XR_OK);
	meet_take(fd, 0);
	cr_assert_eq(meet_leave(m, one, &err), XR_OK);
	xr_value_unref(one);
	xr_value_unref(two);
}

Test(card, AC_L30_payloads_stand_in_the_order_of_ranks)
{
	struct meet m = { .tag = "start", .deadline = INT64_MAX };
	struct xr_value *all = NULL;
	int fd = place();
	int64_t n;

	both_leave(fd, &m);
	m.round = 1;
	both_leave(fd, &m);
	for (m.round = 0; m.round < 2; m.round++) {
		cr_assert_eq(meet_collect(&m, &all, &err), XR_OK);
		cr_assert_eq(xr_value_count(all), 2);
		for (size_t i = 0; i < 2; i++) {
			xr_value_get_i64(xr_value_at(all, i), &n);
			cr_assert_eq(n, (int64_t)i + 1);
		}
		xr_value_unref(all);
	}
}

Test(card, AC_L30_who_did_not_come_is_named)
{
	struct meet m = { .tag = "start", .deadline = clock_now() };
	struct xr_value *all = NULL, *one = xr_value_new_i64(1);

	place();
	cr_assert_eq(meet_leave(&m, one, &err), XR_OK);
	cr_assert_eq(meet_collect(&m, &all, &err), XR_E_TIMEOUT);
	cr_assert_str_eq(err.text,
		"rendezvous start: rank 1 did not come in time");
	xr_value_unref(one);
}

/* Every byte of a record of the other's, and behind it nothing at all. */
Test(card, a_record_that_lies_harms_nobody)
{
	struct meet m = { .tag = "start", .deadline = clock_now() };
	struct xr_value *all;
	int fd = place();
	struct stat st;
	char byte;

	both_leave(fd, &m);
	cr_assert_eq(fstat(fd, &st), 0);
	/* Behind what says how many they are. */
	for (off_t at = 16; at < st.st_size; at++) {
		cr_assert_eq(pread(fd, &byte, 1, at), 1);
		cr_assert_eq(pwrite(fd, "\xff", 1, at), 1);
		if (meet_collect(&m, &all, &err) == XR_OK)
			xr_value_unref(all);
		cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
	}
}

Test(card, what_nobody_reads_any_more_needs_no_memory)
{
	struct meet m = { .tag = "start", .deadline = INT64_MAX };
	struct xr_value *big, *all = NULL;
	char *data = calloc(1, 1 << 20);
	struct stat before, st;
	int fd = place();

	both_leave(fd, &m);
	cr_assert_eq(fstat(fd, &before), 0);
	big = xr_value_new_bytes(data, 1 << 20);
	free(data);
	for (m.round = 1; m.round < 20; m.round++) {
		struct meet_spot former = m.left;

		cr_assert_eq(meet_leave(&m, big, &err), XR_OK);
		if (m.round > 1)
			meet_drop(former);
	}
	xr_value_unref(big);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_assert_lt(st.st_blocks - before.st_blocks, 3 * (1 << 20) / 512);
	/* And the oldest is found behind all of them. */
	m.round = 0;
	cr_assert_eq(meet_collect(&m, &all, &err), XR_OK);
	xr_value_unref(all);
}
