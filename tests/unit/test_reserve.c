/* SPDX-License-Identifier: Apache-2.0 */
/* test_reserve.c - free space that output leaves on its file system. */
#include <errno.h>
#include <fcntl.h>

#include <sys/statvfs.h>

#include <criterion/criterion.h>

#include "launcher/log/reserve.h"

#define NS 1000000000LL

static int dir = -1;
static struct statvfs fs;

/* What the disk says instead, if @blocks is not 0. */
static struct {
	uint64_t blocks, avail, size;
	bool fails;
} disk;

int __real_fstatvfs64(int fd, struct statvfs *out);
int __wrap_fstatvfs64(int fd, struct statvfs *out);

int
__wrap_fstatvfs64(int fd, struct statvfs *out)
{
	if (disk.blocks == 0)
		return __real_fstatvfs64(fd, out);
	cr_expect_eq(fd, 80);
	*out = (struct statvfs){ .f_blocks = disk.blocks,
		.f_bavail = disk.avail,
		.f_bfree = 2 * disk.avail,
		.f_bsize = 7,
		.f_frsize = disk.size };
	errno = EIO;
	return disk.fails ? -1 : 0;
}

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

Test(reserve, sizes_up_to_the_largest_offset)
{
	uint64_t size;

	cr_expect(reserve_parse("9223372036854775807", &size));
	cr_expect_eq(size, INT64_MAX);
	cr_expect_not(reserve_parse("9223372036854775808", &size));
	cr_expect_not(reserve_parse("5x", &size));
}

Test(reserve, what_a_disk_leaves_free)
{
	disk.blocks = 199;
	disk.avail = 50;
	disk.size = 1000;
	errno = 9;
	cr_expect_eq(reserve_size(80, RESERVE_AUTO), 5000);
	cr_expect_eq(reserve_size(80, 1), 1);
	cr_expect_eq(reserve_above(80, RESERVE_AUTO), 45000);
	cr_expect_eq(reserve_above(80, 49999), 1);
	cr_expect_eq(reserve_above(80, 50000), 0);
	cr_expect_eq(reserve_above(80, 50001), 0);
	cr_expect_eq(reserve_above(80, 0), 50000);
	cr_expect_eq(errno, 9);
	disk.blocks = 4096 * 100;
	disk.size = RESERVE_MOST / 5 / 4096 - 1;
	cr_expect_eq(reserve_size(80, RESERVE_AUTO), 5ull * 4096 * disk.size);
	disk.size = 1 << 20;
	cr_expect_eq(reserve_size(80, RESERVE_AUTO), RESERVE_MOST);
	disk.fails = true;
	cr_expect_eq(reserve_size(80, 5), 0);
	cr_expect_eq(reserve_above(80, 5), UINT64_MAX);
	cr_expect_eq(errno, 9);
}

Test(reserve, a_credit_of_each_rest)
{
	static const struct {
		uint64_t rest, credit;
	} of[] = {
		{ 1, 1 },
		{ (1 << 20) - 1, (1 << 20) - 1 },
		{ 1 << 20, 1 << 18 },
		{ (256 << 20) - 4, (64 << 20) - 1 },
		{ 256 << 20, 64 << 20 },
		{ 1 << 30, 64 << 20 },
	};

	disk.blocks = 1;
	disk.size = 1;
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct reserve r = { .size = 10, .since = 5 };

		disk.avail = of[i].rest + 10;
		cr_expect_eq(reserve_room(&r, 80), of[i].credit, "%zu", i);
		cr_expect_eq(r.credit, of[i].credit);
		cr_expect_eq(r.since, 0);
		r.since = 5;
		disk.avail = 0;
		cr_expect_eq(reserve_room(&r, 80), of[i].credit);
		cr_expect_eq(r.since, 5, "it is not asked again");
	}
}

Test(reserve, how_long_a_credit_lives)
{
	struct reserve r = { .credit = 1000 };

	reserve_spend(&r, 1, 5 * NS);
	cr_expect_eq(r.since, 5 * NS);
	reserve_spend(&r, 1, 6 * NS - 1);
	cr_expect_eq(r.credit, 998);
	cr_expect_eq(r.since, 5 * NS);
	reserve_spend(&r, 1, 5 * NS);
	cr_expect_eq(r.credit, 997);
	reserve_spend(&r, 1, 5 * NS - 1);
	cr_expect_eq(r.credit, 0, "the clock was set back");
	r = (struct reserve){ .credit = 10 };
	reserve_spend(&r, 9, 1);
	cr_expect_eq(r.credit, 1);
	reserve_spend(&r, 1, 1);
	cr_expect_eq(r.credit, 0);
}
