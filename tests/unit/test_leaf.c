/* SPDX-License-Identifier: Apache-2.0 */
/* test_leaf.c - groups of ranks, in a folder instead of the kernel's. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/xattr.h>

#include <criterion/criterion.h>

#include "proc/cgroup.h"
#include "proc/leaf.h"
#include "tests/unit/folder.h"

static struct leaves l;
static const char *group; /* of this process; NULL: none */
static bool marked;       /* as delegated */

/* --- the kernel, whose groups are below the test's folder ------------------- */

char *__wrap_cgroup_path(pid_t pid);
int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
ssize_t __wrap_fgetxattr(int fd, const char *name, void *value, size_t size);

char *
__wrap_cgroup_path(pid_t pid)
{
	cr_expect_eq(pid, 0, "the group of process %d", (int)pid);
	return group == NULL ? NULL : strdup(group);
}

/* "./a" for "/sys/fs/cgroup/a"; any other path as it is. */
static const char *
here(const char *path, char out[static CGROUP_DIR_MAX])
{
	static const char top[] = "/sys/fs/cgroup/";
	size_t len = sizeof(top) - 1;

	if (strncmp(path, top, len) != 0)
		return path;
	snprintf(out, CGROUP_DIR_MAX, "./%s", path + len);
	return out;
}

int
__wrap_access(const char *path, int mode)
{
	char out[CGROUP_DIR_MAX];

	return __real_access(here(path, out), mode);
}

/* What is linked makes no files by it. */
int
__wrap_open64(const char *path, int flags, ...)
{
	char out[CGROUP_DIR_MAX];

	return __real_open64(here(path, out), flags, 0644);
}

ssize_t
__wrap_fgetxattr(int fd, const char *name, void *value, size_t size)
{
	cr_expect_neq(fd, STDIN_FILENO);
	if (marked && strcmp(name, "user.delegate") == 0 && size > 0) {
		memcpy(value, "1", 1);
		return 1;
	}
	errno = ENODATA;
	return -1;
}

/* --- the group of a job ------------------------------------------------------ */

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

/* --- the group of this process ----------------------------------------------- */

static void
join_group(void)
{
	group = "/a.service";
	setenv("INVOCATION_ID", "1", 1);
	cr_assert_eq(mkdir("a.service", 0755), 0);
	folder_write("a.service/cgroup.procs", "", 0644);
}

Test(leaf, a_process_without_a_group_of_version_2_makes_none)
{
	struct leaves made;

	setenv("INVOCATION_ID", "1", 1);
	marked = true;
	cr_expect_eq(leaf_can(), LEAF_NONE);
	leaf_open(&made, "k7m2");
	cr_expect_not(made.on);
	cr_expect_eq(made.own, -1);
}

Test(leaf, a_group_that_was_not_delegated_is_left_alone)
{
	struct leaves made;

	join_group();
	cr_expect_eq(leaf_can(), LEAF_NONE);
	leaf_open(&made, "k7m2");
	cr_expect_not(made.on);
	cr_expect_eq(access("a.service/xrun-k7m2", F_OK), -1);
}

Test(leaf, a_job_has_a_group_in_the_delegated_one_of_its_launcher)
{
	char id[LEAF_ID_MAX];
	struct leaves made, again;

	join_group();
	marked = true;
	cr_expect_eq(leaf_can(), LEAF_MAKE);
	folder_write("a.service/cgroup.kill", "", 0644);
	cr_expect_eq(leaf_can(), LEAF_KILL);
	leaf_open(&made, "k7m2");
	cr_assert(made.on);
	cr_expect_eq(access("a.service/xrun-k7m2", F_OK), 0);
	leaf_id(&made, id);
	cr_expect_not(leaf_reopen(&again, group, "k7m2", "1:2"));
	cr_expect(leaf_reopen(&again, group, "k7m2", id));
	leaf_close(&again);
	cr_expect(leaf_remove(&made));
	cr_expect_eq(access("a.service/xrun-k7m2", F_OK), -1);
}
