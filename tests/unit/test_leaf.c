/* SPDX-License-Identifier: Apache-2.0 */
/* test_leaf.c - groups of ranks, in a folder instead of the kernel's. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "proc/cgroup.h"
#include "proc/leaf.h"
#include "tests/unit/folder.h"

static struct leaves l;

static void
begin(void)
{
	folder_make();
	cr_assert_eq(mkdir("xrun-k7m2", 0755), 0);
	l = (struct leaves){
		.on = true,
		.own = open(".", O_DIRECTORY | O_CLOEXEC),
		.dir = open("xrun-k7m2", O_DIRECTORY | O_CLOEXEC),
		.job = "xrun-k7m2",
	};
}

TestSuite(leaf, .init = begin, .fini = folder_remove);

Test(leaf, a_rank_has_a_folder_and_who_writes_there_enters)
{
	char text[4] = "";
	int fd;

	errno = 0;
	cr_expect_eq(leaf_make(&l, 3), -1);
	cr_expect_eq(errno, ENOENT); /* no such file yet */
	cr_expect_eq(access("xrun-k7m2/rank-0003", F_OK), 0);
	folder_write("xrun-k7m2/rank-0003/cgroup.procs", "", 0644);
	fd = leaf_make(&l, 3); /* a rank that is tried again */
	cr_assert_neq(fd, -1);
	cr_expect_eq(write(fd, "0", 1), 1);
	close(fd);
	fd = open("xrun-k7m2/rank-0003/cgroup.procs", O_RDONLY);
	cr_expect_eq(read(fd, text, sizeof(text)), 1);
	close(fd);
}

Test(leaf, all_of_a_job_is_killed_by_one_write)
{
	char text[4] = "";
	int fd;

	leaf_kill(&l); /* an old kernel */
	folder_write("xrun-k7m2/cgroup.kill", "", 0644);
	leaf_kill(&l);
	fd = open("xrun-k7m2/cgroup.kill", O_RDONLY);
	cr_expect_eq(read(fd, text, sizeof(text)), 1);
	cr_expect_str_eq(text, "1");
	close(fd);
}

Test(leaf, kills_for_want_of_memory_are_counted_where_there_is_a_counter)
{
	mkdir("xrun-k7m2/rank-0001", 0755);
	cr_expect_eq(leaf_kills(&l, 1), CGROUP_NONE);
	folder_write("xrun-k7m2/rank-0001/memory.events", "oom 9\noom_kill 2\n",
		0644);
	cr_expect_eq(leaf_kills(&l, 1), 2);
	cr_expect_eq(leaf_kills(&l, 12345), CGROUP_NONE);
}

Test(leaf, groups_go_with_what_ranks_made_in_them)
{
	mkdir("xrun-k7m2/rank-0000", 0755);
	mkdir("xrun-k7m2/rank-0001", 0755);
	mkdir("xrun-k7m2/rank-0001/a", 0755);
	mkdir("xrun-k7m2/rank-0001/a/b", 0755);
	cr_expect(leaf_remove(&l));
	cr_expect_not(l.on);
	cr_expect_eq(access("xrun-k7m2", F_OK), -1);
	cr_expect(leaf_remove(&l));
}

Test(leaf, a_group_that_cannot_go_is_tried_again)
{
	mkdir("xrun-k7m2/rank-0000", 0755);
	folder_write("xrun-k7m2/rank-0000/busy", "", 0644);
	cr_expect_not(leaf_remove(&l));
	cr_expect(l.on);
	unlink("xrun-k7m2/rank-0000/busy");
	cr_expect(leaf_remove(&l));
}

Test(leaf, here_nobody_made_one_for_a_job_that_is_not)
{
	struct leaves other;

	cr_expect_not(leaf_reopen(&other, "/no/such/group", "k7m2", "1:2"));
	cr_expect_not(other.on);
	cr_expect_eq(other.dir, -1);
}
