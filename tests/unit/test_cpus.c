/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpus.c - CPUs that the control group of a process allows (worker/shm/cpus.h), and how
 * long a wait looks before it sleeps (worker/shm/wait.h). */
#include "tests/unit/folder.h"
#include "worker/shm/cpus.h"
#include "worker/shm/wait.h"

TestSuite(cpus, .init = folder_make, .fini = folder_remove);

#define CGROUP "sys/fs/cgroup"

static void
make_folders(char *path)
{
	for (char *p = path; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
}

static void
put(const char *name, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", name);
	make_folders(path);
	folder_write(path, text, 0644);
}

Test(cpus, without_a_limit_all_are_allowed)
{
	cr_expect_eq(cpus_quota(folder), UINT32_MAX);
	put("proc/self/cgroup", "0::/\n");
	cr_expect_eq(cpus_quota(folder), UINT32_MAX);
	put(CGROUP "/cpu.max", "max 100000\n");
	cr_expect_eq(cpus_quota(folder), UINT32_MAX);
}

Test(cpus, the_least_limit_of_a_group_and_those_above_counts)
{
	put("proc/self/cgroup", "0::/a/b\n");
	put(CGROUP "/a/b/cpu.max", "max 100000\n");
	put(CGROUP "/a/cpu.max", "150000 100000\n");
	cr_expect_eq(cpus_quota(folder), 2);
	put(CGROUP "/a/b/cpu.max", "400000 100000\n");
	cr_expect_eq(cpus_quota(folder), 2);
	put(CGROUP "/a/b/cpu.max", "10000 100000\n");
	cr_expect_eq(cpus_quota(folder), 1);
}

Test(cpus, the_least_limit_of_several_hierarchies_counts)
{
	put("proc/self/cgroup",
		"9:memory:/m\n4:cpu,cpuacct:/a\n3:cpu:/c\n0::/b\n");
	put(CGROUP "/cpu,cpuacct/a/cpu.cfs_quota_us", "300000\n");
	put(CGROUP "/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
	put(CGROUP "/memory/m/cpu.max", "100000 100000\n");
	cr_expect_eq(cpus_quota(folder), 3);
	put(CGROUP "/b/cpu.max", "500000 100000\n");
	cr_expect_eq(cpus_quota(folder), 3);
	put(CGROUP "/cpu/c/cpu.cfs_quota_us", "-1\n");
	put(CGROUP "/cpu/c/cpu.cfs_period_us", "100000\n");
	cr_expect_eq(cpus_quota(folder), 3);
	put(CGROUP "/b/cpu.max", "200000 100000\n");
	cr_expect_eq(cpus_quota(folder), 2);
}

/* How long it yields after the tight loop, in ticks. */
static int64_t
yields_for(struct wait_env *env, struct wait_site *site)
{
	struct wait w;

	wait_begin(&w, env, NULL, site);
	while (w.now == 0)
		wait_turn(&w);
	return w.yield_end - w.pause_end;
}

Test(cpus, a_wait_for_what_lasts_does_not_yield_first)
{
	struct wait_site fresh = { 0 }, is_long = { .is_long = true };
	struct wait_env env;

	wait_env_init(&env, NULL, 0);
	cr_expect_gt(yields_for(&env, NULL), 0);
	cr_expect_gt(yields_for(&env, &fresh), 0);
	cr_expect_eq(yields_for(&env, &is_long), 0);
}
