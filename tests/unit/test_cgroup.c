/* SPDX-License-Identifier: Apache-2.0 */
/* test_cgroup.c - control groups made of files: where, and how much. */
#include <string.h>

#include <criterion/criterion.h>

#include "proc/cgroup.h"
#include "tests/unit/machine.h"

#define SYS "sys/fs/cgroup"

TestSuite(cgroup, .init = folder_make, .fini = folder_remove);

static struct cgroup c;

/* machine_file() writes below sys; here /proc and /sys both are. */
static void
proc(const char *groups, const char *mounts)
{
	machine_file("proc/self/cgroup", groups);
	machine_file("proc/self/mountinfo", mounts);
}

static void
file(const char *path, const char *text)
{
	machine_file(machine_fmt(SYS "/%s", path), text);
}

#define V2_MOUNT \
	"30 23 0:26 / /" SYS " rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"

Test(cgroup, the_only_hierarchy_of_a_new_system_has_all)
{
	proc("0::/user.slice/run.scope\n",
		"22 1 8:1 / / rw - ext4 /dev/sda rw\n" V2_MOUNT);
	cr_assert(cgroup_find(&c, "sys", "memory"));
	cr_expect_str_eq(c.dir, "sys/" SYS "/user.slice/run.scope");
	cr_expect_str_eq(cgroup_name(&c), "/user.slice/run.scope");
	cr_expect_not(c.v1);
	cr_assert(cgroup_find(&c, "sys", NULL));
	cr_expect_str_eq(cgroup_name(&c), "/user.slice/run.scope");
}

Test(cgroup, controllers_of_the_old_kind_have_their_own)
{
	proc("9:name=systemd:/\n8:pids:/a\n4:cpu,memory:/b/c\n0::/d\n",
		"31 30 0:27 / /" SYS
		"/cpu,memory rw shared:5 - cgroup cgroup rw,cpu,memory\n"
		"32 30 0:28 / /" SYS "/pids rw - cgroup cgroup rw,pids\n"
		"33 30 0:29 / /" SYS "/unified rw - cgroup2 cgroup2 rw\n");
	cr_assert(cgroup_find(&c, "sys", "memory"));
	cr_expect_str_eq(c.dir, "sys/" SYS "/cpu,memory/b/c");
	cr_expect(c.v1);
	cr_assert(cgroup_find(&c, "sys", "pids"));
	cr_expect_str_eq(cgroup_name(&c), "/a");
	cr_assert(cgroup_find(&c, "sys", NULL));
	cr_expect_str_eq(c.dir, "sys/" SYS "/unified/d");
	cr_assert(cgroup_find(&c, "sys", "io"), "of version 2 then");
	cr_expect_str_eq(cgroup_name(&c), "/d");
}

/* A container sees its own part of the tree as the mount. */
Test(cgroup, the_root_of_a_mount_is_cut_off)
{
	proc("4:memory:/docker/77/x\n",
		"31 30 0:27 /docker/7 /wrong rw - cgroup cgroup rw,memory\n"
		"31 30 0:27 /docker/66 /wrong rw - cgroup cgroup rw,memory\n"
		"31 30 0:27 /docker/77 /" SYS
		"/memory rw - cgroup cgroup rw,memory\n");
	cr_assert(cgroup_find(&c, "sys", "memory"));
	cr_expect_str_eq(c.dir, "sys/" SYS "/memory/x");
}

Test(cgroup, the_top_is_called_so)
{
	proc("0::/\n", V2_MOUNT);
	cr_assert(cgroup_find(&c, "sys", NULL));
	cr_expect_str_eq(c.dir, "sys/" SYS);
	cr_expect_str_eq(cgroup_name(&c), "/");
}

Test(cgroup, without_files_there_is_none)
{
	cr_expect_not(cgroup_find(&c, "sys", "memory"));
	proc("0::/a\n", "22 1 8:1 / / rw - ext4 /dev/sda rw\n");
	cr_expect_not(cgroup_find(&c, "sys", "memory"));
}

/* Both files end anywhere, and nothing is made up. */
Test(cgroup, truncated_files_are_no_group_or_a_shorter_one)
{
	static const char groups[] = "9:pids:/p\n4:memory:/b\n0::/d\n";
	static const char mounts[] = V2_MOUNT
		"31 30 0:27 / /m rw shared:5 - cgroup cgroup rw,memory\n";
	char text[sizeof(groups) + sizeof(mounts)];

	for (size_t n = 0; n < sizeof(groups); n++) {
		snprintf(text, n + 1, "%s", groups);
		proc(text, mounts);
		if (cgroup_find(&c, "sys", "memory"))
			cr_expect(strncmp("sys/m/b", c.dir, strlen(c.dir)) ==
					0 ||
				strcmp(c.dir, "sys/" SYS "/d") == 0 ||
				strcmp(c.dir, "sys/" SYS) == 0);
	}
	for (size_t n = 0; n < sizeof(mounts); n++) {
		snprintf(text, n + 1, "%s", mounts);
		proc(groups, text);
		if (cgroup_find(&c, "sys", "memory"))
			cr_expect(strcmp(c.dir, "sys/m/b") == 0 ||
				strcmp(c.dir, "sys/" SYS "/d") == 0);
	}
}

Test(cgroup, the_tightest_limit_on_the_way_up_counts)
{
	struct cgroup_limit l;

	proc("0::/a/b\n", V2_MOUNT);
	file("a/b/pids.max", "max\n");
	file("a/b/pids.current", "3\n");
	file("a/pids.max", "20\n");
	file("a/pids.current", "18\n");
	file("pids.max", "100\n");
	file("pids.current", "50\n");
	cgroup_limits(NULL, &l, "sys");
	cr_expect_eq(l.max, 20);
	cr_expect_eq(l.used, 18);
	cr_expect_str_eq(cgroup_name(&l.of), "/a");
	file("pids.current", "99\n");
	cgroup_limits(NULL, &l, "sys");
	cr_expect_eq(l.max, 100);
	cr_expect_str_eq(cgroup_name(&l.of), "/");
}

Test(cgroup, the_largest_number_of_pages_is_no_limit)
{
	struct cgroup_limit l;

	proc("4:memory:/b\n",
		"31 30 0:27 / /" SYS "/memory rw - cgroup cgroup rw,memory\n");
	file("memory/b/memory.limit_in_bytes", "9223372036854771712\n");
	cgroup_limits(&l, NULL, "sys");
	cr_expect_eq(l.max, CGROUP_NONE);
	file("memory/b/memory.limit_in_bytes", "20971520\n");
	file("memory/b/memory.usage_in_bytes", "4096\n");
	cgroup_limits(&l, NULL, "sys");
	cr_expect_eq(l.max, 20971520);
	cr_expect_eq(l.used, 4096);
}

Test(cgroup, fields_are_found_by_their_whole_name)
{
	static const char text[] =
		"oom 5\noom_kill_disable 0\nunder_oom 0\noom_kill 12\n";

	cr_expect_eq(cgroup_field(text, "oom_kill"), 12);
	cr_expect_eq(cgroup_field(text, "oom"), 5);
	cr_expect_eq(cgroup_field(text, "kill"), CGROUP_NONE);
	cr_expect_eq(cgroup_field("", "oom"), CGROUP_NONE);
	cr_expect_eq(cgroup_field("oom", "oom"), CGROUP_NONE);
	cr_expect_eq(cgroup_field("oom ", "oom"), CGROUP_NONE);
	for (size_t n = 0; n < sizeof(text); n++) {
		char cut[sizeof(text)];
		uint64_t v;

		snprintf(cut, n + 1, "%s", text);
		v = cgroup_field(cut, "oom_kill");
		cr_expect(v == CGROUP_NONE || v == 1 || v == 12, "%s", cut);
	}
}
