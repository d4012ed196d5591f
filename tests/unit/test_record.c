/* SPDX-License-Identifier: Apache-2.0 */
/* test_record.c - records of running jobs, and the folders that they are in. */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "launcher/ctl/record.h"
#include "tests/unit/folder.h"

static void
record_begin(void)
{
	char path[PATH_MAX + 8];

	folder_make();
	cr_assert_eq(mkdir("run", 0700), 0);
	snprintf(path, sizeof(path), "%s/run", folder);
	setenv("XDG_RUNTIME_DIR", path, 1);
	snprintf(path, sizeof(path), "%s/state", folder);
	setenv("XDG_STATE_HOME", path, 1);
}

TestSuite(record, .init = record_begin, .fini = folder_remove);

struct record_seen {
	unsigned held, free;
	bool remove;
};

static bool
record_see(void *ctx, const struct ctl_record_found *found)
{
	struct record_seen *seen = ctx;

	/* Jobs of this user have records, too. */
	if (strcmp(found->text, "{}") != 0)
		return false;
	seen->held += found->held;
	seen->free += !found->held;
	return seen->remove;
}

static struct ctl_record
record_make(uint64_t number)
{
	struct ctl_record record;
	struct ctl_root root;

	cr_assert(ctl_root_open(&root, true, NULL));
	cr_assert_eq(root.kind, CTL_ROOT_RUNTIME);
	cr_assert_eq(ctl_record_make(&record, &root, number,
			     (struct span){ "{}", 2 }),
		0);
	cr_assert_eq(access(record.path, F_OK), record.is_named ? 0 : -1);
	cr_assert_eq(ctl_record_name(&record, (struct span){ "{}", 2 }), 0);
	cr_assert(record.is_named);
	fd_close(root.dir);
	return record;
}

static void
record_end(struct ctl_record *record)
{
	ctl_record_remove(record);
	ctl_record_free(record);
}

static struct record_seen
record_walk(bool sweep, bool remove)
{
	struct record_seen seen = { .remove = remove };

	if (sweep)
		ctl_record_sweep(record_see, &seen);
	else
		ctl_record_each(false, record_see, &seen);
	return seen;
}

Test(record, it_is_held_until_its_descriptor_is_closed_and_then_swept)
{
	struct ctl_record record = record_make(7);

	cr_expect(!ctl_record_others(&record));
	cr_expect_eq(record_walk(true, true).held, 1);
	cr_expect_eq(record_walk(false, true).held, 1);
	fd_close(record.fd);
	cr_expect_eq(record_walk(false, true).free, 1); /* stays */
	cr_expect_eq(record_walk(true, false).free, 1); /* stays */
	cr_expect_eq(record_walk(true, true).free, 1);
	cr_expect_eq(record_walk(true, true).free, 0);
	ctl_record_free(&record);
}

/* A supervisor that was killed had a descriptor that nobody knows. */
Test(record, it_is_removed_without_its_descriptor)
{
	struct ctl_record record = record_make(7);

	cr_expect_eq(record_walk(false, false).held, 1);
	fd_close(record.fd);
	record.fd = -1;
	record_end(&record);
	cr_expect_eq(record_walk(false, false).free, 0);
}

Test(record, a_second_one_knows_that_there_is_another)
{
	struct ctl_record one = record_make(1);
	struct ctl_record two = record_make(2);

	cr_expect(ctl_record_others(&two));
	record_end(&one);
	cr_expect(!ctl_record_others(&two));
	record_end(&two);
	cr_expect_eq(record_walk(false, false).held, 0);
}

/* As if the next xrun ran in another environment. */
static void
record_move(const char *name)
{
	char path[PATH_MAX + 8];

	cr_assert_eq(mkdir(name, 0700), 0);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	setenv("XDG_RUNTIME_DIR", path, 1);
}

Test(record, one_of_another_runtime_folder_is_found_once_and_swept)
{
	struct ctl_record one = record_make(1), two;

	record_move("run2");
	cr_expect_eq(record_walk(true, true).held, 1);
	two = record_make(2);
	cr_expect(ctl_record_others(&two));
	ctl_record_remove(&two);
	cr_expect_eq(access(two.link, F_OK), -1);
	ctl_record_free(&two);
	fd_close(one.fd);
	cr_expect_eq(record_walk(false, true).free, 0); /* for verbs */
	cr_expect_eq(record_walk(true, true).free, 1);
	cr_expect_eq(access(one.path, F_OK), -1);
	cr_expect_eq(readlink(one.link, (char[8]){ 0 }, 8), -1);
	two = record_make(3);
	cr_expect(!ctl_record_others(&two));
	record_end(&two);
	ctl_record_free(&one);
}

Test(record, a_link_to_a_folder_that_is_gone_is_removed)
{
	struct ctl_record one = record_make(1);

	record_move("run2");
	cr_expect_eq(unlink(one.path), 0);
	cr_expect_eq(rmdir("run/xrun"), 0);
	cr_expect_eq(record_walk(true, true).free, 0);
	cr_expect_eq(readlink(one.link, (char[8]){ 0 }, 8), -1);
	ctl_record_free(&one);
}

Test(record, one_in_the_state_folder_is_another_for_a_new_job)
{
	struct ctl_root root;
	struct ctl_record one;
	int fd;

	cr_assert(ctl_root_open_state(&root));
	fd = openat(root.dir, ".job-1", O_WRONLY | O_CREAT, 0600);
	cr_assert_neq(fd, -1);
	fd_close(fd);
	fd_close(root.dir);
	one = record_make(2);
	cr_expect(ctl_record_others(&one));
	record_end(&one);
}

/* Its xrun was killed before it wrote, or comes to it next. */
Test(record, an_empty_one_is_swept_unless_it_is_locked)
{
	int fd;

	cr_assert_eq(mkdir("run/xrun", 0700), 0);
	folder_write("run/xrun/.job-1", "", 0600);
	fd = open("run/xrun/.job-1", O_RDWR);
	cr_assert_eq(flock(fd, LOCK_EX), 0);
	cr_expect_eq(record_walk(true, true).held, 0);
	cr_expect_eq(access("run/xrun/.job-1", F_OK), 0);
	fd_close(fd);
	cr_expect_eq(record_walk(true, true).free, 0);
	cr_expect_eq(access("run/xrun/.job-1", F_OK), -1);
}

static void *
record_sweep_often(void *stop)
{
	while (!__atomic_load_n((bool *)stop, __ATOMIC_SEQ_CST))
		record_walk(true, false);
	return NULL;
}

Test(record, one_that_a_sweep_meets_while_it_is_made_has_its_name)
{
	pthread_t thread;
	bool stop = false;

	cr_assert_eq(pthread_create(&thread, NULL, record_sweep_often, &stop),
		0);
	for (uint64_t i = 1; i <= 3000; i++) {
		struct ctl_record one = record_make(i);

		cr_assert_eq(access(one.path, F_OK), 0);
		record_end(&one);
		fd_close(one.fd);
	}
	__atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
}

Test(record, a_runtime_folder_with_a_wrong_mode_is_reported_and_not_used)
{
	struct xr_error trouble = { 0 };
	struct ctl_root root;

	cr_assert_eq(chmod("run", 0755), 0);
	if (ctl_root_open(&root, false, &trouble))
		fd_close(root.dir);
	cr_expect_neq(root.kind, CTL_ROOT_RUNTIME);
	cr_expect(strstr(trouble.text, "/run has mode 0755, not 0700") != NULL,
		"%s", trouble.text);
	cr_expect_eq(strncmp(trouble.text, "XDG_RUNTIME_DIR: ", 17), 0);
}
