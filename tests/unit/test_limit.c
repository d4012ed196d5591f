/* SPDX-License-Identifier: Apache-2.0 */
/* test_limit.c - what this shell and this machine allow. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/resource.h>

#include <criterion/criterion.h>

#include "proc/limit.h"
#include "tests/unit/forked.h"
#include "tests/unit/machine.h"

static struct limits l;

TestSuite(limit, .init = folder_make, .fini = folder_remove);

FORKED_TEST(limit, descriptors_are_raised_and_ranks_get_the_old_limit)
{
	struct rlimit r = { .rlim_cur = 400, .rlim_max = 600 };

	NEED(setrlimit(RLIMIT_NOFILE, &r) == 0);
	limit_read(&l);
	EXPECT_EQ(l.files.rlim_cur, 400);
	EXPECT_EQ(l.files.rlim_max, 600);
	EXPECT_EQ(l.files_max, 600);
	NEED(getrlimit(RLIMIT_NOFILE, &r) == 0);
	EXPECT_EQ(r.rlim_cur, 600);
	EXPECT_EQ(r.rlim_max, 600);
	limit_read(&l);
	EXPECT_EQ(l.files.rlim_cur, 600);
	EXPECT_EQ(l.files_max, 600);
}

/* Root is not bound by it. */
FORKED_TEST(limit, a_user_has_only_so_many_processes)
{
	const struct rlimit r = { .rlim_cur = 123, .rlim_max = 123 };

	limit_read(&l);
	EXPECT(l.processes > 123);
	NEED(setrlimit(RLIMIT_NPROC, &r) == 0);
	limit_read(&l);
	if (geteuid() == 0) {
		EXPECT(l.processes > 123);
		NEED(setresuid(12345, 12345, 12345) == 0);
		limit_read(&l);
	}
	EXPECT_EQ(l.processes, 123);
	EXPECT_STR(l.processes_by, "ulimit -u");
}

FORKED_TEST(limit, the_machine_has_only_so_many_processes)
{
	limit_read(&l);
	limit_count(&l, LIMIT_FEW + 1, 0);
	EXPECT(l.processes > 0);
	EXPECT(l.processes <= 1 << 22); /* PID_MAX_LIMIT of the kernel */
	EXPECT(l.processes_by != NULL);
}

static unsigned long long
meminfo(const char *name)
{
	unsigned long long kib = 0;
	char line[256];
	FILE *f = fopen("/proc/meminfo", "re");

	NEED(f != NULL);
	while (kib == 0 && fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, name, strlen(name)) == 0)
			kib = strtoull(line + strlen(name), NULL, 10);
	fclose(f);
	return kib * 1024;
}

/* What the page cache holds can be had back. */
FORKED_TEST(limit, memory_is_what_is_available_and_not_what_is_free)
{
	unsigned long long available = meminfo("MemAvailable:"), apart;

	limit_read(&l);
	limit_count(&l, LIMIT_FEW + 1, 0);
	EXPECT(l.memory <= meminfo("MemTotal:"));
	apart = l.memory > available ? l.memory - available :
				       available - l.memory;
	EXPECT(apart < available / 4); /* others run, too */
}

FORKED_TEST(limit, asking_leaves_no_descriptor)
{
	int before = folder_entries("/proc/self/fd");

	limit_read(&l);
	limit_count(&l, 1000, UINT32_MAX);
	EXPECT_EQ(folder_entries("/proc/self/fd"), before);
}

FORKED_TEST(limit, for_a_few_ranks_no_file_is_read)
{
	limit_read(&l);
	limit_count(&l, LIMIT_FEW, 100);
	EXPECT(l.memory == UINT64_MAX);
	EXPECT_EQ(l.held, 0);
}

FORKED_TEST(limit, inherited_descriptors_are_counted_where_they_may_matter)
{
	const struct rlimit r = { .rlim_cur = 256, .rlim_max = 256 };

	close_range(3, ~0u, 0);
	NEED(setrlimit(RLIMIT_NOFILE, &r) == 0);
	limit_read(&l);
	limit_count(&l, 10, 100);
	EXPECT_EQ(l.held, 0);
	for (int fd = 3; fd < 40; fd++) /* of which 3 to 9 are slots */
		NEED(dup2(0, fd) == fd);
	limit_count(&l, 10, 100);
	EXPECT_EQ(l.held, 30);
}

/* A machine of files: the group that has reached its limit is named. */
FORKED_TEST(limit, the_limit_that_refused_a_process_is_named)
{
	struct buf why = { 0 };

	machine_file("proc/self/cgroup", "0::/a/b\n");
	machine_file("proc/self/mountinfo",
		"30 23 0:26 / /g rw - cgroup2 cgroup2 rw\n");
	machine_file("g/a/pids.max", "20\n");
	machine_file("g/a/pids.current", "19\n");
	limit_put_why(&why, "sys");
	EXPECT_STR(buf_text(&why),
		" (pids.max of cgroup /a is 20, and 19 are used)");
	buf_clear(&why);
	machine_file("g/a/pids.current", "2\n");
	limit_put_why(&why, "sys");
	EXPECT_STR(buf_text(&why), " (ulimit -u, or pids.max of the cgroup)");
	buf_fini(&why);
}

/* Those of a process are folders. */
static void
make_tasks(const char *pid, int count, uid_t user)
{
	char path[64];

	for (int i = 0; i < count; i++)
		machine_file(machine_fmt("proc/%s/task/%d/stat", pid, i), "");
	snprintf(path, sizeof(path), "sys/proc/%s/task", pid);
	NEED(chown(path, user, (gid_t)-1) == 0);
}

static void
expect_why(rlim_t most, const char *want, int line)
{
	const struct rlimit r = { .rlim_cur = most, .rlim_max = 1000 };
	struct buf why = { 0 };

	NEED(setrlimit(RLIMIT_NPROC, &r) == 0);
	limit_put_why(&why, "sys");
	if (strcmp(buf_text(&why), want) != 0)
		forked_note(line, "'%s'", buf_text(&why));
	buf_fini(&why);
}

/* Up to 8 tasks may have ended since. The limit does not bind root. */
FORKED_TEST(limit, a_user_who_has_reached_the_limit_of_tasks_is_told_so)
{
	const char *const any = " (ulimit -u, or pids.max of the cgroup)";
	uid_t user = geteuid() == 0 ? 12345 : geteuid();
	struct stat st;

	make_tasks("1", 2, user);
	make_tasks("98", 3, user);
	make_tasks("self", 4, user);
	NEED(stat("sys/proc/98/task", &st) == 0);
	if (st.st_nlink != 5) /* as in /proc; not of each file system */
		return;
	if (geteuid() == 0) {
		make_tasks("2", 5, 0);
		make_tasks("3", 5, 0);
		expect_why(10, any, __LINE__);
		NEED(chmod(".", 0755) == 0);
		NEED(setresuid(user, user, user) == 0);
	}
	expect_why(14, any, __LINE__);
	expect_why(13, " (ulimit -u is 13, and this user has 5)", __LINE__);
}
