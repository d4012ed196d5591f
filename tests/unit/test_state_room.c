/* SPDX-License-Identifier: Apache-2.0 */
/* test_state_room.c - a job's folder on a full file system: old jobs make room, once. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <sys/statvfs.h>

#include <criterion/criterion.h>

#include "base/fault.h"
#include "launcher/state/retain.h"
#include "tests/unit/noted.h"
#include "tests/unit/state_folder.h"

static uint32_t freed;
static struct statvfs fs;
static int fs_status;
static retain_enough_fn *enough;

struct retain_freed __wrap_retain_free(const char *root, retain_enough_fn *fn,
	void *ctx);
int __wrap_statvfs64(const char *path, struct statvfs *out);

struct retain_freed
__wrap_retain_free(const char *root, retain_enough_fn *fn, void *ctx)
{
	cr_expect_str_eq(root, in_folder("state/xrun"));
	cr_expect_str_eq(ctx, root);
	enough = fn;
	note("free ");
	return (struct retain_freed){ .jobs = freed };
}

int
__wrap_statvfs64(const char *path, struct statvfs *out)
{
	cr_expect_str_eq(path, "/r");
	*out = fs;
	return fs_status;
}

TestSuite(state_room, .init = state_folder_make, .fini = folder_remove);

static enum xr_status
open_with(const char *faults)
{
	const struct state_wish wish = { .logs = true };
	struct xr_error bad = { 0 };

	done[0] = '\0';
	memset(&err, 0, sizeof(err));
	cr_assert_eq(fault_arm(faults, &bad), XR_OK, "%s", bad.text);
	return state_open(&st, &wish, &err);
}

Test(state_room, it_is_tried_again_if_a_job_was_removed)
{
	freed = 1;
	cr_expect_eq(open_with("state.open:fail=ENOSPC;nth=1"), XR_OK);
	cr_expect_str_eq(done, "free ");
	cr_expect_neq(st.dir_fd, -1);
	let_go();
}

Test(state_room, a_quota_is_a_limit_as_well)
{
	freed = 2;
	cr_expect_eq(open_with("state.open:fail=EDQUOT;nth=1"), XR_OK);
	cr_expect_str_eq(done, "free ");
	let_go();
}

Test(state_room, without_room_it_is_tried_once)
{
	cr_expect_neq(open_with("state.open:fail=ENOSPC;nth=1"), XR_OK);
	cr_expect_str_eq(done, "free ");
	cr_expect(state_is_full(&err));
	cr_expect_eq(err.sys, ENOSPC);
}

Test(state_room, it_is_tried_twice_at_most)
{
	freed = 1;
	cr_expect_neq(open_with("state.open:fail=ENOSPC"), XR_OK);
	cr_expect_str_eq(done, "free ");
	cr_expect(state_is_full(&err));
}

Test(state_room, another_error_has_nothing_to_do_with_room)
{
	freed = 1;
	cr_expect_neq(open_with("state.open:fail=EACCES;nth=1"), XR_OK);
	cr_expect_str_eq(done, "");
	cr_expect(!state_is_full(&err));
}

Test(state_room, nothing_is_removed_if_there_is_room)
{
	freed = 1;
	cr_expect_eq(open_with("state.open:fail=ENOSPC;nth=2"), XR_OK);
	cr_expect_str_eq(done, "");
	let_go();
}

static bool
is_enough(unsigned long blocks, unsigned long files, unsigned long free_files)
{
	fs = (struct statvfs){ .f_bavail = blocks,
		.f_files = files,
		.f_favail = free_files };
	return enough((void *)"/r");
}

Test(state_room, blocks_and_inodes_for_some_ranks_are_enough)
{
	open_with("state.open:fail=ENOSPC;nth=1");
	cr_assert_not_null(enough);
	cr_expect(is_enough(256, 1000, 256));
	cr_expect(!is_enough(255, 1000, 256));
	cr_expect(!is_enough(256, 1000, 255));
	cr_expect(is_enough(256, 0, 0)); /* it does not count them */
	cr_expect(!is_enough(256, 1, 0));
	fs_status = -1;
	cr_expect(!is_enough(256, 1000, 256));
}

Test(state_room, without_logs_there_is_only_an_id)
{
	struct state_wish wish = { .name = "mine", .batch = "123" };
	struct xr_error bad = { 0 };

	cr_assert_eq(fault_arm("state.open:fail=ENOSPC", &bad), XR_OK);
	cr_expect_eq(state_open(&st, &wish, NULL), XR_OK);
	cr_expect_str_eq(st.id, "mine");
	cr_expect(st.dir == NULL && st.dir_fd == -1 && st.root == NULL);
	wish.name = NULL;
	cr_expect_eq(state_open(&st, &wish, NULL), XR_OK);
	cr_expect_str_eq(st.id, "123");
	wish.batch = NULL;
	cr_expect_eq(state_open(&st, &wish, NULL), XR_OK);
	cr_expect(strlen(st.id) >= 4 && strchr(st.id, '.') == NULL, "%s",
		st.id);
}
