/* SPDX-License-Identifier: Apache-2.0 */
/* test_stamps.c - which records of an index are held, and what they tell. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <sys/stat.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "launcher/log/stamps.h"
#include "tests/unit/folder.h"

static struct stamps s;
static int dir, file;

static void
begin(void)
{
	folder_make();
	dir = open(".", O_DIRECTORY | O_CLOEXEC);
	file = open("idx", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	cr_assert_neq(file, -1);
	s = STAMPS_NONE;
}

static void
end(void)
{
	stamps_close(&s);
	fd_close(file);
	fd_close(dir);
	folder_remove();
}

TestSuite(stamps, .init = begin, .fini = end);

/* Record i ends at 10 * (i + 1), and came at 1000 + i. */
static void
records(uint64_t from, uint64_t count)
{
	for (uint64_t i = from; i < from + count; i++) {
		const struct index_record r = { 10 * (i + 1),
			1000 + (int64_t)i };

		cr_assert_eq(fd_write_all(file, &r, sizeof(r)), 0);
	}
}

static void
expect_when(uint64_t offset, int64_t when, uint64_t end)
{
	uint64_t got;

	cr_expect_eq(stamps_when(&s, offset, &got), when, "of %llu",
		(unsigned long long)offset);
	cr_expect_eq(got, end, "%llu", (unsigned long long)got);
}

Test(stamps, what_an_index_tells)
{
	records(0, 200);
	cr_expect(stamps_look(&s, dir, "idx", 7777));
	cr_expect_eq(s.count, 200);
	cr_expect_eq(s.known, 2000);
	cr_expect_eq(s.rest, 7777);
	cr_expect_eq(s.held, 0);
	cr_expect_eq(fcntl(s.fd, F_GETFD), FD_CLOEXEC);
	expect_when(0, 1000, 10);
	cr_expect_eq(s.first, 0);
	cr_expect_eq(s.held, STAMPS_HELD);
	expect_when(639, 1063, 640);
	cr_expect_eq(s.first, 0);
	/* Reading on: the last that was held is the first now. */
	expect_when(640, 1064, 650);
	cr_expect_eq(s.first, 63);
	cr_expect_eq(s.held, STAMPS_HELD);
	/* Elsewhere: as many before as behind. */
	expect_when(1999, 1199, 2000);
	cr_expect_eq(s.first, 199 - 32);
	cr_expect_eq(s.held, 33);
	expect_when(405, 1040, 410);
	cr_expect_eq(s.first, 8);
	expect_when(325, 1032, 330);
	cr_expect_eq(s.first, 8, "it is held");
	expect_when(75, 1007, 80);
	cr_expect_eq(s.first, 0);
	expect_when(2000, 7777, UINT64_MAX);
}

Test(stamps, half_of_what_is_held_is_before)
{
	records(0, 200);
	cr_expect(stamps_look(&s, dir, "idx", 7777));
	expect_when(310, 1031, 320);
	cr_expect_eq(s.first, 0);
	stamps_close(&s);
	cr_expect(stamps_look(&s, dir, "idx", 7777));
	expect_when(330, 1033, 340);
	cr_expect_eq(s.first, 1);
	stamps_close(&s);
	cr_expect(stamps_look(&s, dir, "idx", 7777));
	expect_when(400, 1040, 410);
	cr_expect_eq(s.first, 8);
}

Test(stamps, what_came_after_the_look_is_not_known)
{
	records(0, 3);
	cr_expect(stamps_look(&s, dir, "idx", 5));
	records(3, 3);
	expect_when(5, 1000, 10);
	cr_expect_eq(s.held, 3);
	expect_when(29, 1002, 30);
	expect_when(30, 5, UINT64_MAX);
	cr_expect(stamps_look(&s, dir, "idx", 6));
	cr_expect_eq(s.count, 6);
	cr_expect_eq(s.known, 60);
	expect_when(30, 1003, 40);
	expect_when(60, 6, UINT64_MAX);
	cr_assert_eq(ftruncate(file, 8), 0);
	cr_expect(stamps_look(&s, dir, "idx", 6));
	cr_expect_eq(s.count, 0);
	cr_expect_eq(s.known, 0);
	expect_when(5, 6, UINT64_MAX);
}

Test(stamps, the_first_byte_since_a_time)
{
	records(0, 5);
	cr_expect(stamps_look(&s, dir, "idx", 1010));
	cr_expect_eq(stamps_since(&s, 0), 0);
	cr_expect_eq(stamps_since(&s, 1000), 0);
	cr_expect_eq(stamps_since(&s, 1001), 10);
	cr_expect_eq(stamps_since(&s, 1004), 40);
	cr_expect_eq(stamps_since(&s, 1005), 50);
	cr_expect_eq(stamps_since(&s, 1010), 50);
	cr_expect_eq(stamps_since(&s, 1011), UINT64_MAX);
}

Test(stamps, one_that_is_not_there_or_no_file)
{
	int fd;

	cr_expect(stamps_look(&s, dir, "none", 5));
	cr_expect_eq(s.fd, -1);
	expect_when(0, 5, UINT64_MAX);
	cr_assert_eq(symlink("idx", "link"), 0);
	cr_expect(stamps_look(&s, dir, "link", 5));
	cr_expect_eq(s.fd, -1);
	cr_expect_not(stamps_look(&s, dir, "idx/x", 5));
	cr_expect_eq(errno, ENOTDIR);
	cr_assert_eq(mkfifo("fifo", 0600), 0);
	cr_expect(stamps_look(&s, dir, "fifo", 5));
	cr_expect_neq(s.fd, -1);
	cr_expect_eq(s.count, 0);
	fd = s.fd;
	stamps_close(&s);
	cr_expect_eq(fcntl(fd, F_GETFD), -1);
	cr_expect_eq(s.fd, -1);
	cr_expect_eq(s.rest, 0);
}
