/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpus.c - CPUs that the control group of a process allows (worker/shm/cpus.h), and how
 * long a wait looks before it sleeps (worker/shm/wait.h). */
#include "segment/owner.h"
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

/* What is no limit allows all; a part of a CPU is a whole one. */
Test(cpus, a_quota_and_a_period_make_a_number_of_cpus)
{
	static const struct {
		const char *text;
		uint32_t want;
	} rows[] = {
		{ "200000 100000\n", 2 },
		{ "200200 100000\n", 3 },
		{ "100000 100000\n", 1 },
		{ "1 100000\n", 1 },
		{ "0 100000\n", UINT32_MAX },
		{ "-1 100000\n", UINT32_MAX },
		{ "200000 0\n", UINT32_MAX },
		{ "200000 -1\n", UINT32_MAX },
		{ "200000\n", UINT32_MAX },
		{ "4294967294 1\n", UINT32_MAX - 1 },
		{ "4294967295 1\n", UINT32_MAX },
		{ "9e15 1\n", UINT32_MAX },
	};

	put("proc/self/cgroup", "0::/\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put(CGROUP "/cpu.max", rows[i].text);
		cr_expect_eq(cpus_quota(folder), rows[i].want, "%s",
			rows[i].text);
	}
}

Test(cpus, only_number_0_without_controllers_is_version_2)
{
	put(CGROUP "/cpu.max", "200000 100000\n");
	put("proc/self/cgroup", "1::/\n");
	cr_expect_eq(cpus_quota(folder), UINT32_MAX);
	put("proc/self/cgroup", "0:memory:/\n");
	cr_expect_eq(cpus_quota(folder), UINT32_MAX);
	put("proc/self/cgroup", "0\n");
	cr_expect_eq(cpus_quota(folder), UINT32_MAX);
	put("proc/self/cgroup", "0::/\n");
	cr_expect_eq(cpus_quota(folder), 2);
}

Test(cpus, the_quota_counts_if_it_is_less_than_the_cpus)
{
	static const struct {
		uint64_t cpus[2];
		uint32_t quota, want;
	} rows[] = {
		{ { 0, 0 }, 0, 1 },
		{ { 0, 0 }, 5, 1 },
		{ { 7, 1 }, 0, 4 },
		{ { 7, 1 }, 3, 3 },
		{ { 7, 1 }, 4, 4 },
		{ { 7, 1 }, 5, 4 },
		{ { 7, 1 }, UINT32_MAX, 4 },
	};
	static struct segment_shared shared;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		atomic_store(&shared.quota, rows[i].quota);
		atomic_store(&shared.cpus[0], rows[i].cpus[0]);
		atomic_store(&shared.cpus[SEGMENT_CPUS / 64 - 1],
			rows[i].cpus[1]);
		cr_expect_eq(cpus_count(&shared), rows[i].want, "row %zu", i);
	}
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

Test(cpus, a_wait_for_what_lasts_sleeps_in_its_first_turn_on_one_cpu)
{
	struct wait_site is_long = { .is_long = true };
	struct wait_env env;
	struct wait w;

	wait_env_init(&env, NULL, 0);
	atomic_store(&env.cpus, 1);
	wait_begin(&w, &env, NULL, &is_long);
	cr_expect_eq(wait_turn(&w), WAIT_SLEEP);
	cr_expect_neq(w.begun, 0);
	cr_expect_eq(w.now, w.begun);
}

/* Until it looks at the clock the first time; of @cpus CPUs. */
static struct wait
begin_short(struct wait_env *env, uint32_t cpus)
{
	struct wait w;

	atomic_store(&env->cpus, cpus);
	wait_begin_short(&w, env);
	for (int i = 0; i < WAIT_LOOKS && w.now == 0; i++)
		wait_turn(&w);
	return w;
}

Test(cpus, a_short_wait_pauses_for_a_quarter_of_its_time)
{
	struct wait_env env;
	struct wait w;

	cr_assert_neq(cpus_here(), 0);
	wait_env_init(&env, NULL, 0);
	env.pause_ticks = INT64_C(1) << 40;
	w = begin_short(&env, 2);
	cr_expect_eq(w.phase, WAIT_PAUSES);
	cr_expect_eq(w.pause_end - w.begun, env.pause_ticks / 4);
	cr_expect_eq(w.yield_end - w.begun, env.pause_ticks);
	/* Without a CPU for each it only yields. */
	w = begin_short(&env, 1);
	cr_expect_eq(w.phase, WAIT_YIELDS);
	cr_expect_eq(w.pause_end, w.begun);
	cr_expect_eq(w.yield_end - w.begun, env.pause_ticks);
}

Test(cpus, processes_that_are_awake_are_counted_once_an_interval)
{
	const struct segment_wish wish = {
		.job = "k7m2",
		.ranks = 2,
		.most = UINT64_C(64) << 20,
	};
	struct segment_tag tag = { .fd = segment_create(&wish) };
	struct segment_map map;
	struct wait_env env;
	struct wait w;
	struct stat st;

	cr_assert_eq(fstat(tag.fd, &st), 0);
	tag.inode = st.st_ino;
	cr_assert(segment_map(&tag, &map));
	for (uint32_t i = 0; i < 2; i++)
		atomic_store(&segment_slot(&map, i)->plane, 1);
	wait_env_init(&env, &map, 0);
	/* The last count is not in the past: the clock went back. */
	atomic_store(&env.counted, INT64_MAX);
	w = begin_short(&env, 9);
	cr_expect_eq(atomic_load(&env.running), 2);
	cr_expect_eq(atomic_load(&env.counted), w.begun);
	atomic_store(&segment_slot(&map, 1)->bell.asleep, 1);
	atomic_store(&env.counted, 1);
	env.count_ticks = INT64_MAX;
	begin_short(&env, 9);
	cr_expect_eq(atomic_load(&env.running), 2);
	cr_expect_eq(atomic_load(&env.counted), 1);
	env.count_ticks = 0;
	w = begin_short(&env, 9);
	cr_expect_eq(atomic_load(&env.running), 1);
	cr_expect_eq(atomic_load(&env.counted), w.begun);
	close(tag.fd);
}
