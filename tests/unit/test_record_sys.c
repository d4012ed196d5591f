/* SPDX-License-Identifier: Apache-2.0 */
/* test_record_sys.c - records and error files of running jobs if a system call fails,
 * or another process is faster (launcher/ctl). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "launcher/ctl/errors.h"
#include "launcher/ctl/record.h"
#include "launcher/ctl/root.h"
#include "tests/unit/ctl_sys.h"

#define TEXT(s) ((struct span){ s, strlen(s) })

TestSuite(record_sys, .init = ctl_sys_begin, .fini = folder_remove);

static struct ctl_root root;

/* --- records --------------------------------------------------------------------- */

static int found;
static bool found_held;

static bool
note_record(void *ctx, const struct ctl_record_found *f)
{
	(void)ctx;
	found += strcmp(f->text, "record") == 0;
	found_held = f->held;
	return true;
}

/* Makes, names and removes a record. The @n-th call fails. */
static bool
record_failing(unsigned n, int sys)
{
	struct ctl_record r = CTL_RECORD_NONE;
	int before = fds(), made, named = -1;
	bool failed;

	fail_nth(n, sys);
	made = ctl_record_make(&r, &root, 0x5, TEXT("record"));
	if (made == 0)
		named = ctl_record_name(&r, TEXT("record"));
	failed = sys_fail_end();
	EXPECT(failed || named == 0);
	EXPECT_EQ(made == 0 && named == 0, r.fd != -1);
	if (named == 0) {
		found = 0;
		ctl_record_each(false, note_record, NULL);
		EXPECT_EQ(found, 1);
		EXPECT(found_held);
		EXPECT_EQ(r.is_named, true);
		EXPECT(ctl_record_remove(&r));
	} else {
		EXPECT(r.path == NULL);
	}
	ctl_record_free(&r);
	fd_close(r.fd);
	EXPECT_EQ(fds(), before);
	EXPECT_EQ(folder_entries("xrun"), 0);
	return failed;
}

static bool has_unnamed; /* files: open(2) with O_TMPFILE */
static unsigned unlinks; /* before a lock that another takes */

/* A file system without files that have no name; a sweep that removes what it finds. */
static long
old_files(int nr, const long arg[5])
{
	if (nr == SYS_openat && !has_unnamed &&
		(arg[2] & O_TMPFILE) == O_TMPFILE)
		return -EOPNOTSUPP;
	if (nr == SYS_flock && unlinks > 0) {
		unlinks--;
		NEED(unlink("xrun/.job-0000000000000005") == 0);
	}
	return fail_inside(nr, arg);
}

FORKED_TEST(record_sys, a_record_is_whole_or_not_there)
{
	unsigned n;

	NEED(ctl_root_open(&root, true, NULL));
	trap_all();
	for (n = 1; record_failing(n, EIO); n++)
		NEED(n < 100);
	EXPECT(n > 6);
	fd_close(root.dir);
}

/* Makes a record where files have a name from the start, @sweeps times in vain. */
static void
expect_named_record(unsigned sweeps, int want)
{
	struct ctl_record r;
	int before = fds();

	fail_nth(0, 0);
	sys_hook = old_files;
	unlinks = sweeps;
	errno = 0;
	EXPECT_EQ(ctl_record_make(&r, &root, 5, TEXT("record")),
		want == 0 ? 0 : -1);
	sys_hook = NULL;
	EXPECT_EQ(want == 0 || errno == want, true);
	EXPECT_EQ(r.is_named, want == 0);
	EXPECT_EQ(r.fd != -1, want == 0);
	EXPECT_EQ(folder_entries("xrun"), want == 0);
	if (want == 0) {
		EXPECT_EQ(ctl_record_name(&r, TEXT("other")), 0);
		folder_expect("xrun/.job-0000000000000005", "record");
		EXPECT(ctl_record_remove(&r));
		EXPECT(ctl_record_remove(&r));
	}
	ctl_record_free(&r);
	fd_close(r.fd);
	EXPECT_EQ(fds(), before);
}

FORKED_TEST(record_sys, a_record_that_a_sweep_removes_is_made_again)
{
	NEED(ctl_root_open(&root, true, NULL));
	trap_all();
	expect_named_record(0, 0);
	expect_named_record(1, 0);
	expect_named_record(99, 0);
	expect_named_record(100, EBUSY);
	fd_close(root.dir);
}

FORKED_TEST(record_sys,
	a_record_with_a_name_from_the_start_is_whole_or_not_there)
{
	struct ctl_record r;
	int before, made;
	unsigned n = 0;

	NEED(ctl_root_open(&root, true, NULL));
	trap_all();
	before = fds();
	do {
		fail_nth(++n, EIO);
		sys_hook = old_files;
		errno = 0;
		made = ctl_record_make(&r, &root, 5, TEXT("record"));
		sys_hook = NULL;
		EXPECT(made == 0 || (errno != 0 && r.path == NULL));
		EXPECT(made == 0 || sys_fail.nr != -1);
		EXPECT_EQ(folder_entries("xrun"), made == 0);
		EXPECT(made == -1 || ctl_record_remove(&r));
		ctl_record_free(&r);
		fd_close(r.fd);
		EXPECT_EQ(fds(), before);
	} while (sys_fail.nr != -1);
	EXPECT(n > 3);
	fd_close(root.dir);
}

static bool links;

/* Old kernels link a descriptor by its name in /proc only; some cannot link at all. */
static long
old_links(int nr, const long arg[5])
{
	if (nr == SYS_linkat && (!links || (arg[4] & AT_EMPTY_PATH) != 0))
		return -ENOENT;
	return is_outside(nr, arg) ? -EACCES : 0;
}

FORKED_TEST(record_sys, a_record_gets_its_name_in_three_ways)
{
	struct ctl_record r;

	NEED(ctl_root_open(&root, true, NULL));
	trap_all();
	for (int i = 0; i < 2; i++) {
		links = i == 0;
		NEED(ctl_record_make(&r, &root, 5, TEXT("record")) == 0);
		EXPECT_EQ(r.is_named, false);
		sys_hook = old_links;
		EXPECT_EQ(ctl_record_name(&r, TEXT("record")), 0);
		sys_hook = NULL;
		folder_expect("xrun/.job-0000000000000005", "record");
		EXPECT(is_locked(AT_FDCWD, "xrun/.job-0000000000000005"));
		EXPECT(ctl_record_remove(&r));
		ctl_record_free(&r);
		fd_close(r.fd);
	}
	fd_close(root.dir);
}

static const char *replaces; /* what another file is renamed to, once */

static long
replace_record(int nr, const long arg[5])
{
	if (nr == SYS_newfstatat && replaces != NULL &&
		strcmp((const char *)arg[1], ".job-1") == 0) {
		NEED(rename("other", replaces) == 0);
		replaces = NULL;
	}
	return is_outside(nr, arg) ? -EACCES : 0;
}

FORKED_TEST(record_sys, a_record_is_a_short_file_of_ours_with_its_name)
{
	enum { MAX = 64 << 10 };

	NEED(ctl_root_open(&root, true, NULL));
	fd_close(root.dir);
	trap_all();
	sys_hook = replace_record;
	folder_write("xrun/.job-1", "record", 0600);
	ctl_record_each(false, note_record, NULL);
	EXPECT_EQ(found, 1);
	EXPECT(!found_held);
	NEED(truncate("xrun/.job-1", MAX - 1) == 0); /* the rest is NUL */
	ctl_record_each(false, note_record, NULL);
	EXPECT_EQ(found, 2);
	NEED(truncate("xrun/.job-1", MAX) == 0);
	ctl_record_each(false, note_record, NULL);
	EXPECT_EQ(found, 2);
	folder_write("xrun/.job-1", "record", 0600);
	folder_write("other", "record", 0600);
	replaces = "xrun/.job-1";
	ctl_record_each(false, note_record, NULL);
	EXPECT(replaces == NULL);
	EXPECT_EQ(found, 2);
	if (geteuid() == 0) {
		NEED(chown("xrun/.job-1", 12345, 12345) == 0);
		ctl_record_each(false, note_record, NULL);
		EXPECT_EQ(found, 2);
	}
	NEED(unlink("xrun/.job-1") == 0 && mkfifo("xrun/.job-1", 0600) == 0);
	ctl_record_each(false, note_record, NULL);
	EXPECT_EQ(found, 2);
	NEED(unlink("xrun/.job-1") == 0 && symlink("../r", "xrun/.job-1") == 0);
	folder_write("r", "record", 0600);
	ctl_record_sweep(note_record, NULL);
	EXPECT_EQ(found, 2);
	EXPECT_EQ(access("r", F_OK), 0);
}

/* --- error files ----------------------------------------------------------------- */

Test(record_sys, error_files_are_those_with_the_prefix_and_a_hyphen)
{
	char prefix[PATH_MAX + 64];

	cr_assert_eq(mkdir("xrun", 0700), 0);
	folder_write("xrun/.errors-1-rank-0000.error.json", "", 0600);
	folder_write("xrun/.errors-1", "", 0600);
	folder_write("xrun/.errors-10-rank", "", 0600);
	folder_write("xrun/.other-1-rank", "", 0600);
	cr_assert_eq(mkdir("xrun/.errors-1-folder", 0700), 0);
	snprintf(prefix, sizeof(prefix), "%s/xrun/.errors-1", folder);
	cr_expect(errors_remove(prefix));
	cr_expect_eq(folder_entries("xrun"), 3);
	cr_expect_eq(access("xrun/.errors-1", F_OK), 0);
	cr_expect_eq(access("xrun/.errors-10-rank", F_OK), 0);
	/* No other prefix is taken from a record. */
	snprintf(prefix, sizeof(prefix), "%s/xrun/.other-1", folder);
	cr_expect(errors_remove(prefix));
	cr_expect_eq(access("xrun/.other-1-rank", F_OK), 0);
	cr_expect(errors_remove(NULL));
	cr_expect(errors_remove(".errors-1"));
	cr_expect_eq(access("xrun/.errors-1", F_OK), 0);
	/* Nothing is there. */
	snprintf(prefix, sizeof(prefix), "%s/none/.errors-1", folder);
	cr_expect(errors_remove(prefix));
	snprintf(prefix, sizeof(prefix), "%s/xrun/.other-1-rank/.errors-1",
		folder);
	cr_expect_not(errors_remove(prefix), "no folder");
}

Test(record_sys, an_error_file_that_stays_is_reported, .timeout = 20)
{
	char prefix[PATH_MAX + 64];

	cr_assert_eq(mkdir("xrun", 0700), 0);
	cr_assert_eq(mkdir("xrun/.errors-1-a", 0700), 0);
	folder_write("xrun/.errors-1-a/file", "", 0600);
	folder_write("xrun/.errors-1-b", "", 0600);
	snprintf(prefix, sizeof(prefix), "%s/xrun/.errors-1", folder);
	cr_expect_not(errors_remove(prefix));
	cr_expect_eq(folder_entries("xrun"), 1);
}
