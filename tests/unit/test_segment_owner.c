/* SPDX-License-Identifier: Apache-2.0 */
/* test_segment_owner.c - how large the segment of a job is, and how many slots it has to
 * spare (src/segment/owner.h), on machines that the test makes up. */
#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#include <criterion/criterion.h>

#include "segment/layout.h"
#include "segment/owner.h"

#define MB   (UINT64_C(1) << 20)
#define NONE RLIM_INFINITY

static uint64_t file_limit = NONE, map_limit = NONE, memory = 1 << 20;
static unsigned unit = 1 << 20; /* of memory */
static bool no_info, no_limits;
static int cpus = 3;

int __wrap_getrlimit64(int what, struct rlimit *limit);
int __wrap_sysinfo(struct sysinfo *info);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);

int
__wrap_getrlimit64(int what, struct rlimit *limit)
{
	cr_expect(what == RLIMIT_FSIZE || what == RLIMIT_AS);
	limit->rlim_cur = what == RLIMIT_FSIZE ? file_limit : map_limit;
	limit->rlim_max = 0;
	return no_limits ? -1 : 0;
}

int
__wrap_sysinfo(struct sysinfo *info)
{
	info->totalram = memory;
	info->mem_unit = unit;
	return no_info ? -1 : 0;
}

int
__wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	cr_expect_eq(pid, 0);
	cr_expect_eq(size, sizeof(*set));
	CPU_ZERO(set);
	for (int i = 0; i < cpus; i++)
		CPU_SET(2 * i, set);
	return cpus > 0 ? 0 : -1;
}

/* The real limit must not be below the limits that the test sets. */
static void
allow_large_files(void)
{
	struct rlimit limit;

	cr_assert_eq(prlimit(0, RLIMIT_FSIZE, NULL, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	cr_assert_eq(prlimit(0, RLIMIT_FSIZE, &limit, NULL), 0);
}

TestSuite(segment_owner, .init = allow_large_files, .timeout = 60);

#define SLOTS 6

/* The size of a segment of SLOTS slots; 0: there is none, for its size. */
static uint64_t
size_of(uint64_t most)
{
	const struct segment_wish wish = { .job = "k7m2",
		.ranks = SLOTS - 2,
		.spare = 2,
		.most = most };
	int fd = segment_create(&wish);
	struct stat st;

	if (fd == -1) {
		cr_expect_eq(errno, EFBIG);
		return 0;
	}
	cr_assert_eq(fstat(fd, &st), 0);
	close(fd);
	return (uint64_t)st.st_size;
}

/* What a segment of at most @size takes. */
static uint64_t
plan_of(uint64_t size)
{
	struct segment_plan plan;

	cr_assert(segment_plan(SLOTS, size, &plan));
	return plan.size;
}

Test(segment_owner, a_segment_is_as_large_as_memory_and_limits_allow)
{
	const struct {
		uint64_t memory, file, map, most, size;
	} rows[] = {
		{ 1 << 20, NONE, NONE, 0, SEGMENT_SIZE_MAX },
		{ 1 << 20, NONE, NONE, SEGMENT_SIZE_MAX + MB,
			SEGMENT_SIZE_MAX },
		{ 300, NONE, NONE, 0, segment_round(300 * MB, SEGMENT_SPAN) },
		{ 300, 200 * MB, NONE, 0, 200 * MB },
		{ 100, 200 * MB, NONE, 0,
			segment_round(100 * MB, SEGMENT_SPAN) },
		{ 300, 200 * MB, NONE, 100 * MB, 100 * MB },
		{ 300, 200 * MB, NONE, 250 * MB, 200 * MB },
		{ 300, 200 * MB, NONE, 100 * MB + SEGMENT_PAGE - 1, 100 * MB },
		{ 300, NONE, 400 * MB, 0, 100 * MB },
		{ 300, NONE, 4000 * MB, 0,
			segment_round(300 * MB, SEGMENT_SPAN) },
		{ 300, NONE, 400 * MB, 60 * MB, 60 * MB },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memory = rows[i].memory;
		file_limit = rows[i].file;
		map_limit = rows[i].map;
		cr_expect_eq(size_of(rows[i].most), plan_of(rows[i].size),
			"%zu", i);
	}
	/* Of a machine that tells nothing nothing is known. */
	no_info = no_limits = true;
	cr_expect_eq(size_of(0), plan_of(SEGMENT_SIZE_MAX));
}

Test(segment_owner, there_is_always_room_for_the_slots)
{
	const uint64_t slots = segment_slot_at(SLOTS);

	cr_expect_eq(size_of(1), slots);
	cr_expect_eq(size_of(slots - 1), slots);
	map_limit = 4096;
	cr_expect_eq(size_of(0), slots);
	map_limit = NONE;
	file_limit = slots;
	cr_expect_eq(size_of(0), slots);
	file_limit = slots - 1;
	cr_expect_eq(size_of(0), 0);
}

Test(segment_owner, there_are_four_spare_slots_a_cpu_and_64_more)
{
	cr_expect_eq(segment_spare(), 76);
	cpus = 1;
	cr_expect_eq(segment_spare(), 68);
	cpus = 100;
	cr_expect_eq(segment_spare(), 464);
	cpus = 0; /* it is not known */
	cr_expect_eq(segment_spare(), 68);
}
