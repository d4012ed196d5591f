/* SPDX-License-Identifier: Apache-2.0 */
/* test_history.c - the history of jobs that have no folder. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>

#include <cjson/cJSON.h>
#include <criterion/criterion.h>

#include "base/fd.h"
#include "launcher/state/history.h"
#include "launcher/state/jobs.h"
#include "tests/unit/folder.h"

TestSuite(history, .init = folder_make, .fini = folder_remove);

static void
history_put(const char *line)
{
	cr_assert_eq(history_add_line(folder, line), 0);
}

/* The ids, in their order: "a b ". */
static const char *
history_ids(char out[static 256])
{
	struct history h;

	out[0] = '\0';
	history_read(&h, folder);
	for (size_t i = 0; i < h.count; i++)
		snprintf(out + strlen(out), 256 - strlen(out), "%s ",
			jobs_text(h.job[i], "job"));
	history_fini(&h);
	return out;
}

static bool
history_is(void *ctx, const char *id)
{
	return strcmp(ctx, id) == 0;
}

Test(history, a_later_line_of_a_job_replaces_the_earlier_one)
{
	char ids[256];
	struct history h;

	history_put("{\"job\":\"a\",\"exit\":1}");
	history_put("{\"job\":\"b\",\"exit\":2}");
	history_put("{\"job\":\"a\",\"exit\":3}");
	cr_expect_str_eq(history_ids(ids), "b a ");
	history_read(&h, folder);
	cr_expect_eq(jobs_number(history_find(&h, "a"), "exit", -1), 3);
	cr_expect(history_find(&h, "c") == NULL);
	history_fini(&h);
}

Test(history, a_removed_job_is_gone_until_it_runs_again)
{
	char ids[256];

	history_put("{\"job\":\"a\"}");
	history_put("{\"job\":\"b\"}");
	cr_assert_eq(history_remove(folder, history_is, (char[]){ "a" }), 0);
	cr_expect_str_eq(history_ids(ids), "b ");
	history_put("{\"job\":\"a\"}");
	cr_expect_str_eq(history_ids(ids), "b a ");
}

Test(history, nothing_of_a_removed_job_stays_in_either_file)
{
	char ids[256], *text;

	folder_write(".history.1",
		"{\"job\":\"a\",\"argv\":[\"secret\"]}\n"
		"{\"job\":\"c\"}\n",
		0600);
	history_put("{\"job\":\"b\"}");
	history_put("{\"job\":\"a\",\"argv\":[\"secret\"]}");
	cr_assert_eq(history_remove(folder, history_is, (char[]){ "a" }), 0);
	cr_expect_str_eq(history_ids(ids), "c b ");
	for (int i = 0; i < 2; i++) {
		text = NULL;
		cr_assert_eq(fd_read_file(i == 0 ? ".history" : ".history.1",
				     4096, &text, &(size_t){ 0 }, NULL),
			XR_OK);
		cr_expect(strstr(text, "secret") == NULL);
		free(text);
	}
}

Test(history, the_former_mark_of_a_removed_job_is_read)
{
	char ids[256];

	history_put("{\"job\":\"a\"}");
	history_put("{\"job\":\"b\"}");
	history_put("{\"job\":\"a\",\"removed\":true}");
	cr_expect_str_eq(history_ids(ids), "b ");
}

Test(history, lines_that_are_no_job_are_passed_over)
{
	char ids[256];

	history_put("{\"job\":\"a\"}");
	history_put("");
	history_put("{\"job\":");
	history_put("{\"job\":7}");
	history_put("{\"job\":\"../b\"}");
	history_put("[1]");
	history_put("{\"job\":\"c\"}");
	cr_assert_eq(history_add(folder, "{\"job\":\"d\"", 9), 0);
	cr_expect_str_eq(history_ids(ids), "a c ");
}

Test(history, a_full_file_is_kept_as_the_older_one)
{
	char line[1100], ids[256];
	struct stat st;

	memset(line, 'x', sizeof(line));
	memcpy(line, "{\"job\":\"a\",\"x\":\"", 16);
	memcpy(line + sizeof(line) - 3, "\"}", 3);
	for (int i = 0; i < 250; i++)
		history_put(line);
	history_put("{\"job\":\"b\"}");
	cr_expect_eq(stat(".history.1", &st), 0);
	cr_expect_geq(st.st_size, 256 << 10);
	cr_expect_str_eq(history_ids(ids), "a b ");
}

Test(history, a_link_or_a_missing_folder_is_refused)
{
	char ids[256];

	cr_assert_eq(symlink("/dev/null", ".history"), 0);
	cr_expect_eq(history_add_line(folder, "{\"job\":\"a\"}"), -1);
	cr_expect_eq(history_add_line("/nonexistent", "{\"job\":\"a\"}"), -1);
	cr_expect_str_eq(history_ids(ids), "");
}

/* Neither adding nor removing touches the file. */
static void
expect_refused(int sys)
{
	errno = 0;
	cr_expect_eq(history_add_line(folder, "{\"job\":\"b\"}"), -1);
	cr_expect_eq(errno, sys);
	errno = 0;
	cr_expect_eq(history_remove(folder, history_is, (char[]){ "a" }), -1);
	cr_expect_eq(errno, sys);
}

Test(history, a_file_of_two_names_or_of_another_user_is_refused)
{
	int fds = folder_entries("/proc/self/fd");

	history_put("{\"job\":\"a\"}");
	cr_assert_eq(link(".history", "other"), 0);
	expect_refused(EMLINK);
	folder_expect("other", "{\"job\":\"a\"}\n");
	cr_assert_eq(unlink("other"), 0);
	if (geteuid() == 0) {
		cr_assert_eq(chown(".history", 12345, -1), 0);
		expect_refused(EMLINK);
		folder_expect(".history", "{\"job\":\"a\"}\n");
		cr_assert_eq(chown(".history", 0, -1), 0);
	}
	cr_expect_eq(folder_entries("/proc/self/fd"), fds);
	history_put("{\"job\":\"b\"}");
	folder_expect(".history", "{\"job\":\"a\"}\n{\"job\":\"b\"}\n");
}

Test(history, one_file_that_is_refused_does_not_keep_the_other)
{
	cr_expect_eq(history_remove(folder, history_is, (char[]){ "a" }), 0);
	folder_write(".history.1", "{\"job\":\"a\"}\n", 0600);
	cr_expect_eq(history_remove(folder, history_is, (char[]){ "a" }), 0);
	folder_expect(".history.1", "           \n");
	folder_write(".history.1", "{\"job\":\"a\"}\n", 0600);
	cr_assert_eq(symlink(".history.1", ".history"), 0);
	cr_expect_eq(history_remove(folder, history_is, (char[]){ "a" }), -1);
	cr_expect_eq(errno, ELOOP);
	folder_expect(".history.1", "           \n");
	cr_assert_eq(rename(".history.1", "x"), 0);
	cr_assert_eq(unlink(".history"), 0);
	history_put("{\"job\":\"a\"}");
	cr_assert_eq(symlink("x", ".history.1"), 0);
	errno = 0;
	cr_expect_eq(history_remove(folder, history_is, (char[]){ "a" }), -1);
	cr_expect_eq(errno, ELOOP);
	folder_expect(".history", "           \n");
}

Test(history, a_path_that_is_too_long_is_refused)
{
	char root[PATH_MAX];
	struct history h;

	for (size_t i = 0; i < sizeof(root); i++)
		root[i] = i % 2 == 0 ? '/' : 'x';
	/* With a slash, the name and its end. */
	root[PATH_MAX - 10] = '\0';
	cr_expect_eq(history_add_line(root, "{}"), -1);
	cr_expect_eq(errno, ENOENT);
	memcpy(root + PATH_MAX - 10, "x", 2);
	errno = 0;
	cr_expect_eq(history_add_line(root, "{}"), -1);
	cr_expect_eq(errno, ENAMETOOLONG);
	errno = 0;
	cr_expect_eq(history_remove(root, history_is, (char[]){ "a" }), -1);
	cr_expect_eq(errno, ENAMETOOLONG);
	history_read(&h, root);
	cr_expect_eq(h.count, 0);
	history_fini(&h);
}

Test(history, a_fifo_is_refused_and_the_first_error_counts)
{
	int fd;

	cr_assert_eq(mkfifo(".history", 0600), 0);
	fd = open(".history", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	cr_assert_neq(fd, -1);
	errno = 0;
	cr_expect_eq(history_add_line(folder, "{}"), -1);
	cr_expect_eq(errno, EMLINK);
	folder_write(".history.1", "{}\n", 0600);
	cr_assert_eq(link(".history.1", "other"), 0);
	errno = 0;
	cr_expect_eq(history_remove(folder, history_is, (char[]){ "a" }), -1);
	cr_expect_eq(errno, EIO);
	cr_assert_eq(unlink(".history"), 0);
	errno = 0;
	cr_expect_eq(history_remove(folder, history_is, (char[]){ "a" }), -1);
	cr_expect_eq(errno, EMLINK);
	close(fd);
}

/* A file that is @size bytes long. */
static void
put_size(off_t size)
{
	int fd = open(".history", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
		0600);

	cr_assert_neq(fd, -1);
	cr_assert_eq(ftruncate(fd, size), 0);
	cr_assert_eq(close(fd), 0);
}

Test(history, a_file_is_renamed_at_its_limit_unless_another_process_does_it)
{
	int fds = folder_entries("/proc/self/fd"), fd;
	struct stat st;

	put_size((256 << 10) - 1);
	history_put("{}");
	cr_expect_eq(access(".history.1", F_OK), -1);
	put_size(256 << 10);
	fd = open(".history", O_RDONLY | O_CLOEXEC);
	cr_assert_eq(flock(fd, LOCK_EX), 0);
	history_put("{}");
	cr_expect_eq(access(".history.1", F_OK), -1);
	cr_assert_eq(stat(".history", &st), 0);
	cr_expect_eq(st.st_size, (256 << 10) + 3);
	close(fd);
	put_size(256 << 10);
	history_put("{}");
	folder_expect(".history", "{}\n");
	cr_assert_eq(stat(".history.1", &st), 0);
	cr_expect_eq(st.st_size, 256 << 10);
	cr_expect_eq(folder_entries("/proc/self/fd"), fds);
}
