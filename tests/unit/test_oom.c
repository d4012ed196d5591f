/* SPDX-License-Identifier: Apache-2.0 */
/* test_oom.c - counters of the OOM killer, made of files. */
#include <dirent.h>

#include <criterion/criterion.h>

#include "launcher/host/oom.h"
#include "tests/unit/machine.h"

static struct oom oom;

static void
begin(void)
{
	folder_make();
	machine_file("proc/vmstat", "nr_free_pages 5\noom_kill 3\nswap_ra 0\n");
}

static void
end(void)
{
	oom_end(&oom);
	folder_remove();
}

TestSuite(oom, .init = begin, .fini = end);

static void
version_2(const char *kills)
{
	machine_file("proc/self/cgroup", "0::/a/b\n");
	machine_file("proc/self/mountinfo",
		"30 23 0:26 / /g rw - cgroup2 cgroup2 rw\n");
	machine_file("g/a/b/memory.events",
		machine_fmt("low 0\nhigh 0\nmax 7\noom 9\noom_kill %s\n"
			    "oom_group_kill 0\n",
			kills));
}

static void
version_1(const char *kills)
{
	machine_file("proc/self/cgroup", "4:memory:/b\n0::/\n");
	machine_file("proc/self/mountinfo",
		"31 30 0:27 / /m rw - cgroup cgroup rw,memory\n");
	machine_file("m/b/memory.oom_control",
		machine_fmt("oom_kill_disable 0\nunder_oom 0\noom_kill %s\n",
			kills));
}

static void
vmstat(const char *kills)
{
	machine_file("proc/vmstat", machine_fmt("oom_kill %s\n", kills));
}

Test(oom, nothing_is_claimed_before_the_counters_were_looked_at)
{
	version_2("4");
	cr_expect_eq(oom_killed(&oom), OOM_NO);
	cr_expect_eq(oom_unexplained(&oom), OOM_NO);
}

Test(oom, nothing_is_claimed_unless_a_counter_moved)
{
	version_2("4");
	oom_begin(&oom, "sys");
	cr_expect_eq(oom_killed(&oom), OOM_NO);
	machine_file("g/a/b/memory.events", "oom 99\noom_kill 4\n");
	cr_expect_eq(oom_killed(&oom), OOM_NO);
}

Test(oom, each_kill_of_the_group_explains_one)
{
	version_2("4");
	oom_begin(&oom, "sys");
	version_2("6");
	vmstat("5");
	cr_expect_eq(oom_unexplained(&oom), OOM_CGROUP);
	cr_expect_eq(oom_killed(&oom), OOM_CGROUP);
	cr_expect_eq(oom_killed(&oom), OOM_CGROUP);
	cr_expect_eq(oom_killed(&oom), OOM_NO, "the machine's were the same");
}

Test(oom, version_1_counts_as_well)
{
	version_1("0");
	oom_begin(&oom, "sys");
	version_1("1");
	cr_expect_eq(oom_killed(&oom), OOM_CGROUP);
	cr_expect_eq(oom_killed(&oom), OOM_NO);
}

Test(oom, a_kill_somewhere_is_called_that)
{
	version_2("4");
	oom_begin(&oom, "sys");
	vmstat("4");
	cr_expect_eq(oom_killed(&oom), OOM_MACHINE);
	cr_expect_eq(oom_killed(&oom), OOM_NO);
}

Test(oom, without_groups_the_machine_is_left)
{
	oom_begin(&oom, "sys");
	cr_expect_eq(oom.group.fd, -1);
	vmstat("12");
	cr_expect_eq(oom_killed(&oom), OOM_MACHINE);
}

Test(oom, without_counters_nothing_is_claimed)
{
	cr_assert_eq(remove("sys/proc/vmstat"), 0);
	oom_begin(&oom, "sys");
	cr_expect_eq(oom.machine.fd, -1);
	cr_expect_eq(oom_killed(&oom), OOM_NO);
}

Test(oom, a_counter_is_found_on_any_page_of_vmstat)
{
	char text[20000];
	size_t n = 0;

	while (n < 17000)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
			"some_counter_of_the_kernel_%zu 0\n", n);
	snprintf(text + n, sizeof(text) - n, "oom_kill 1\n");
	machine_file("proc/vmstat", text);
	oom_begin(&oom, "sys");
	cr_expect_eq(oom.machine.known, 1);
	cr_expect_eq(oom.ready, 1);
}

static const char *
words(enum oom_kind kind)
{
	static struct buf out;

	buf_clear(&out);
	oom_put(&out, kind, "sys");
	return buf_text(&out);
}

Test(oom, the_limit_and_the_peak_are_named)
{
	version_1("0");
	machine_file("m/b/memory.limit_in_bytes", "20971520\n");
	machine_file("m/b/memory.max_usage_in_bytes", "20971520\n");
	cr_expect_str_eq(words(OOM_CGROUP),
		"out of memory: the limit of cgroup /b is 20 MiB, its peak 20 MiB");
	version_2("0");
	remove("sys/m/b/memory.limit_in_bytes");
	machine_file("g/a/memory.max", "3221225472\n");
	cr_expect_str_eq(words(OOM_CGROUP),
		"out of memory: the limit of cgroup /a is 3.0 GiB");
	machine_file("g/a/memory.peak", "3221221376\n");
	cr_expect_str_eq(words(OOM_CGROUP),
		"out of memory: the limit of cgroup /a is 3.0 GiB, its peak 3.0 GiB");
}

/* The kernel counts those in the group too that it ended for the machine. */
Test(oom, a_limit_that_was_not_reached_is_not_blamed)
{
	version_2("0");
	cr_expect_str_eq(words(OOM_CGROUP),
		"out of memory: the machine has no more");
	machine_file("g/a/memory.max", "3221225472\n");
	machine_file("g/a/memory.peak", "1000000\n");
	cr_expect_str_eq(words(OOM_CGROUP),
		"out of memory: the machine has no more");
	cr_expect_str_eq(words(OOM_MACHINE),
		"the kernel's OOM killer was active meanwhile");
	cr_expect_str_eq(words(OOM_NO), "");
}

Test(oom, kinds_have_names)
{
	cr_expect_null(oom_kind_name(OOM_NO));
	cr_expect_str_eq(oom_kind_name(OOM_CGROUP), "cgroup");
	cr_expect_str_eq(oom_kind_name(OOM_MACHINE), "machine");
}
