/* SPDX-License-Identifier: Apache-2.0 */
/* test_live.c - the list of jobs that no xrun has closed. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/stat.h>

#include <criterion/criterion.h>

#include "launcher/state/state.h"
#include "tests/unit/folder.h"
#include "tests/unit/sys_hook.h"

static void
prepare(void)
{
	char path[PATH_MAX];

	folder_make();
	snprintf(path, sizeof(path), "%.4000s/state", folder);
	setenv("XDG_STATE_HOME", path, 1);
}

TestSuite(live, .init = prepare, .fini = folder_remove);

static void
let_go(struct state *st)
{
	close(st->dir_fd);
	close(st->attempt_fd);
	close(st->lock_fd);
	state_fini(st);
}

struct open_jobs {
	char met[8][STATE_ID_MAX + 1];
	int count;
	bool close;
};

static bool
note_open(void *ctx, int root, const char *id)
{
	struct open_jobs *o = ctx;

	cr_assert_lt(o->count, 8);
	snprintf(o->met[o->count++], sizeof(o->met[0]), "%s", id);
	return o->close;
}

Test(live, who_is_open_is_known_without_a_look_at_all)
{
	const struct state_wish wish = { .logs = true };
	struct open_jobs jobs = { 0 };
	struct state st, other;

	cr_assert_eq(state_open(&st, &wish, NULL), XR_OK);
	cr_expect(!st.others);
	cr_assert_eq(state_open(&other, &wish, NULL), XR_OK);
	cr_expect(other.others);
	state_close(&other);
	state_each_open("state/xrun", note_open, &jobs);
	cr_expect_eq(jobs.count, 1);
	cr_expect_str_eq(jobs.met[0], st.id);
	/* A lock without a job, long ago and just now. */
	cr_assert_eq(close(open("state/xrun/.live/old", O_CREAT, 0600)), 0);
	cr_assert_eq(close(open("state/xrun/.live/new", O_CREAT, 0600)), 0);
	cr_assert_eq(utimensat(AT_FDCWD, "state/xrun/.live/old",
			     (struct timespec[2]){ { .tv_sec = 1 },
				     { .tv_sec = 1 } },
			     0),
		0);
	jobs = (struct open_jobs){ .close = true };
	state_each_open("state/xrun", note_open, &jobs);
	cr_expect_eq(jobs.count, 2, "the job and the new one");
	cr_expect_eq(folder_entries("state/xrun/.live"), 0);
	let_go(&other);
	let_go(&st);
}

/* None of them takes a job for closed, or asks about one without its folder. */
FORKED_TEST(live, where_a_folder_cannot_be_opened_no_job_is_told_of)
{
	struct open_jobs jobs = { .close = true };
	bool failed;
	unsigned n = 1;

	NEED(mkdir("state", 0700) == 0 && mkdir("state/xrun", 0700) == 0);
	NEED(mkdir("state/xrun/.live", 0700) == 0);
	NEED(close(open("state/xrun/.live/k7m2", O_CREAT, 0600)) == 0);
	sys_trap(SYS_openat);
	do {
		sys_fail_begin(n++, EMFILE);
		state_look_open("state/xrun", note_open, &jobs);
		failed = sys_fail_end();
		EXPECT_EQ(jobs.count, failed ? 0 : 1);
		NEED(n < 10);
	} while (failed);
	EXPECT(n > 3); /* one that tells of it, and two that were refused */
	EXPECT_STR(jobs.met[0], "k7m2");
	EXPECT_EQ(folder_entries("state/xrun/.live"), 0);
}
