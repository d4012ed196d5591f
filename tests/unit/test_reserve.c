/* SPDX-License-Identifier: Apache-2.0 */
/* test_reserve.c - free space that output leaves on its file system. */
#include <fcntl.h>

#include <sys/statvfs.h>

#include <criterion/criterion.h>

#include "launcher/log/reserve.h"

#define NS 1000000000LL

static int dir = -1;
static struct statvfs fs;

static void
begin(void)
{
	dir = open("/dev/shm", O_DIRECTORY | O_CLOEXEC);
	cr_assert_neq(dir, -1);
	cr_assert_eq(fstatvfs(dir, &fs), 0);
}

TestSuite(reserve, .init = begin);

static uint64_t
avail(void)
{
	return (uint64_t)fs.f_bavail * fs.f_frsize;
}

Test(reserve, sizes_have_units)
{
	uint64_t size;

	cr_expect(reserve_parse(NULL, &size));
	cr_expect_eq(size, RESERVE_AUTO);
	cr_expect(reserve_parse("0", &size));
	cr_expect_eq(size, 0);
	cr_expect(reserve_parse("500M", &size));
	cr_expect_eq(size, 500ULL << 20);
	cr_expect_not(reserve_parse("", &size));
	cr_expect_not(reserve_parse("5%", &size));
	cr_expect_not(reserve_parse("-1", &size));
	cr_expect_not(reserve_parse("99999999999999999999", &size));
}

Test(reserve, the_default_is_five_percent_or_two_gibibytes)
{
	uint64_t part = (uint64_t)fs.f_blocks / 100 * 5 * fs.f_frsize;

	cr_expect_eq(reserve_size(dir, RESERVE_AUTO),
		part < RESERVE_MOST ? part : RESERVE_MOST);
	cr_expect_eq(reserve_size(dir, 17), 17);
}

/* /proc has no blocks. */
Test(reserve, a_file_system_without_a_size_has_no_reserve)
{
	int proc = open("/proc", O_DIRECTORY | O_CLOEXEC);

	cr_expect_eq(reserve_size(proc, RESERVE_AUTO), 0);
	cr_expect_eq(reserve_above(proc, RESERVE_AUTO), UINT64_MAX);
}

Test(reserve, nothing_may_be_written_below_the_reserve)
{
	struct reserve r = { .size = 2 * avail() };

	cr_expect_eq(reserve_above(dir, r.size), 0);
	cr_expect_eq(reserve_room(&r, dir), 0);
}

Test(reserve, a_credit_is_a_quarter_of_the_rest_at_most)
{
	struct reserve r = { .size = avail() - (16ULL << 20) };
	uint64_t room = reserve_room(&r, dir);

	cr_expect_gt(room, 0);
	cr_expect_leq(room, 8ULL << 20);
	r = (struct reserve){ .size = 0 };
	cr_expect_leq(reserve_room(&r, dir), RESERVE_CREDIT);
}

Test(reserve, a_credit_is_used_up_by_bytes_and_by_time)
{
	struct reserve r = { .size = 0, .credit = 1000 };

	reserve_spend(&r, 400, 5 * NS);
	cr_expect_eq(r.credit, 600);
	reserve_spend(&r, 100, 5 * NS + NS / 2);
	cr_expect_eq(r.credit, 500);
	reserve_spend(&r, 1, 6 * NS);
	cr_expect_eq(r.credit, 0);
	r = (struct reserve){ .credit = 1000 };
	reserve_spend(&r, 2000, NS);
	cr_expect_eq(r.credit, 0);
}
