/* SPDX-License-Identifier: Apache-2.0 */
/* test_pids.c - processes that a control group refused, made of files. */
#include <criterion/criterion.h>

#include "launcher/host/pids.h"
#include "tests/unit/machine.h"

static struct pids pids;

static void
begin(void)
{
	folder_make();
}

static void
end(void)
{
	pids_end(&pids);
	folder_remove();
}

TestSuite(pids, .init = begin, .fini = end);

static void
version_2(void)
{
	machine_file("proc/self/cgroup", "0::/a/b\n");
	machine_file("proc/self/mountinfo",
		"30 23 0:26 / /g rw - cgroup2 cgroup2 rw\n");
}

static void
version_1(const char *refused)
{
	machine_file("proc/self/cgroup", "4:pids:/b\n0::/\n");
	machine_file("proc/self/mountinfo",
		"31 30 0:27 / /p rw - cgroup cgroup rw,pids\n");
	machine_file("p/b/pids.events", machine_fmt("max %s\n", refused));
	machine_file("p/b/pids.max", "40\n");
	machine_file("p/b/pids.current", "40\n");
}

static void
expect_words(uint64_t refused, const char *want)
{
	struct buf out = { 0 };

	pids_put(&out, refused, "sys");
	cr_expect_str_eq(buf_text(&out), want);
	buf_fini(&out);
}

Test(pids, nothing_is_claimed_before_the_counter_was_looked_at)
{
	version_1("5");
	cr_expect_eq(pids_refused(&pids), 0);
	pids_end(&pids);
}

Test(pids, what_was_refused_before_does_not_count)
{
	version_1("5");
	pids_begin(&pids, "sys");
	cr_expect_eq(pids_refused(&pids), 0);
	version_1("7");
	cr_expect_eq(pids_refused(&pids), 2);
	expect_words(2,
		"the kernel refused 2 new processes or threads: pids.max of cgroup /b is 40");
	expect_words(1,
		"the kernel refused 1 new process or thread: pids.max of cgroup /b is 40");
}

Test(pids, either_our_group_counts_or_the_one_with_the_limit)
{
	version_2();
	machine_file("g/a/pids.max", "9\n");
	machine_file("g/a/pids.current", "9\n");
	machine_file("g/a/pids.events", "max 1\n");
	machine_file("g/a/b/pids.max", "max\n");
	machine_file("g/a/b/pids.events", "max 0\n");
	pids_begin(&pids, "sys");
	cr_expect_eq(pids_refused(&pids), 0);
	machine_file("g/a/pids.events", "max 4\n");
	cr_expect_eq(pids_refused(&pids), 3);
	machine_file("g/a/b/pids.events", "max 6\n");
	cr_expect_eq(pids_refused(&pids), 6);
	expect_words(3,
		"the kernel refused 3 new processes or threads: pids.max of cgroup /a is 9");
}

Test(pids, without_a_group_or_a_counter_nothing_is_claimed)
{
	version_2();
	pids_begin(&pids, "sys");
	cr_expect_eq(pids_refused(&pids), 0);
	pids_end(&pids);
	machine_file("g/a/b/pids.events", "damaged");
	pids_begin(&pids, "sys");
	cr_expect_eq(pids.at[0].fd, -1);
	cr_expect_eq(pids_refused(&pids), 0);
	pids_end(&pids);
	machine_file("proc/self/cgroup", "");
	pids_begin(&pids, "sys");
	cr_expect_eq(pids_refused(&pids), 0);
}
