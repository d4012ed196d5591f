/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_file.c - the report goes to the file that was asked for, once. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>

#include <criterion/criterion.h>

#include "base/buf.h"
#include "launcher/keeper/keeper.h"
#include "launcher/keeper/report_file.h"
#include "tests/unit/folder.h"

#define FILE_NAME "report"

static struct keeper_page page;
static struct job job = { .page = &page };

static void
prepare(const char *what)
{
	struct buf text = { 0 };

	buf_put_text(&text, what);
	cr_assert(report_file_prepare(&job, &text));
	cr_expect_eq(fcntl(page.text, F_GETFD), FD_CLOEXEC);
	cr_expect_eq(lseek(page.text, 0, SEEK_CUR), 0);
	buf_fini(&text);
}

/* What stood there is longer than the report. */
static void
open_file(int flags)
{
	folder_write(FILE_NAME, "what stood there before\n", 0600);
	job.report_fd = open(FILE_NAME, O_RDWR | flags);
	cr_assert_neq(job.report_fd, -1);
}

TestSuite(report_file, .init = folder_make, .fini = folder_remove);

Test(report_file, it_takes_the_place_of_what_stood_there)
{
	prepare("{\"new\": 1}\n");
	open_file(0);
	cr_expect_eq(report_file_write(&job), 0);
	folder_expect(FILE_NAME, "{\"new\": 1}\n");
	cr_expect_eq(report_file_finish(&job), 0);
	folder_expect(FILE_NAME, "{\"new\": 1}\n");
}

Test(report_file, text_that_is_at_hand_is_put_in_its_place)
{
	struct buf text = { 0 };

	buf_put_text(&text, "short\n");
	open_file(0);
	cr_expect_eq(report_file_put(job.report_fd, &text), 0);
	folder_expect(FILE_NAME, "short\n");
	job.report_fd = open(FILE_NAME, O_RDONLY);
	cr_expect_eq(report_file_put(job.report_fd, &text), EBADF);
	buf_fini(&text);
}

Test(report_file, it_is_appended_where_that_is_wanted)
{
	prepare("new\n");
	open_file(O_APPEND);
	cr_expect_eq(report_file_write(&job), 0);
	folder_expect(FILE_NAME, "what stood there before\nnew\n");
}

/* Somebody else has written to the same open file, as to stdout. */
Test(report_file, nothing_goes_behind_which_it_is_to_stand)
{
	prepare("new\n");
	open_file(0);
	cr_assert_eq(lseek(job.report_fd, 5, SEEK_SET), 5);
	cr_expect_eq(report_file_write(&job), 0);
	folder_expect(FILE_NAME, "what new\nd there before\n");
}

Test(report_file, a_file_that_cannot_be_written_is_an_error)
{
	prepare("new\n");
	folder_write(FILE_NAME, "old\n", 0600);
	job.report_fd = open(FILE_NAME, O_RDONLY);
	cr_expect_eq(report_file_write(&job), EBADF);
	cr_expect_eq(report_file_finish(&job), EBADF);
	folder_expect(FILE_NAME, "old\n");
	job.report_fd = open("/dev/full", O_WRONLY | O_APPEND);
	cr_expect_eq(report_file_write(&job), ENOSPC);
	cr_expect_eq(report_file_finish(&job), ENOSPC);
}

/* What stood there cannot go, and stays as it was. */
Test(report_file, a_file_that_cannot_be_emptied_is_an_error)
{
	struct buf text = { 0 };
	char got[8] = "";

	prepare("new\n");
	buf_put_text(&text, "new\n");
	job.report_fd = memfd_create("report", MFD_ALLOW_SEALING);
	cr_assert_eq(pwrite(job.report_fd, "old", 3, 0), 3);
	cr_assert_eq(fcntl(job.report_fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	cr_expect_eq(report_file_write(&job), EPERM);
	cr_expect_eq(report_file_put(job.report_fd, &text), EPERM);
	cr_expect_eq(report_file_finish(&job), EPERM);
	cr_expect_eq(pread(job.report_fd, got, sizeof(got), 0), 3);
	cr_expect_str_eq(got, "old");
	buf_fini(&text);
}

Test(report_file, the_last_byte_of_a_large_text_is_written)
{
	const size_t size = (1 << 20) + 1; /* one more than goes at once */
	char *text = calloc(1, size + 1);
	char last = 0;

	memset(text, 'a', size);
	text[size - 1] = 'z';
	prepare(text);
	open_file(0);
	errno = EIO; /* of something before */
	cr_expect_eq(report_file_write(&job), 0);
	cr_expect_eq(lseek(job.report_fd, 0, SEEK_END), (off_t)size);
	cr_expect_eq(pread(job.report_fd, &last, 1, (off_t)size - 1), 1);
	cr_expect_eq(last, 'z');
	free(text);
}

Test(report_file, what_was_begun_is_finished)
{
	char rest[8] = "";

	prepare("123456789\n");
	open_file(0);
	cr_assert_eq(ftruncate(job.report_fd, 0), 0);
	cr_assert_eq(write(job.report_fd, "1234", 4), 4);
	cr_assert_eq(lseek(page.text, 4, SEEK_SET), 4);
	cr_expect_eq(report_file_finish(&job), 0);
	folder_expect(FILE_NAME, "123456789\n");
	cr_expect_eq(pread(page.text, rest, sizeof(rest), 4), 6);
}

Test(report_file, what_was_not_begun_is_begun)
{
	prepare("new\n");
	open_file(0);
	cr_expect_eq(report_file_finish(&job), 0);
	folder_expect(FILE_NAME, "new\n");
}

Test(report_file, without_a_text_nothing_is_done)
{
	open_file(0);
	cr_expect_eq(report_file_finish(&job), 0);
	folder_expect(FILE_NAME, "what stood there before\n");
}

/* A text of several parts, through a pipe that holds all of it, and to a file that is
 * appended to. */
Test(report_file, a_long_text_is_complete)
{
	char *long_text = malloc(10001), got[10001] = "";
	int fd[2];

	for (int i = 0; i < 10000; i++)
		long_text[i] = (char)('a' + i % 23);
	long_text[10000] = '\0';
	prepare(long_text);
	cr_assert_eq(pipe(fd), 0);
	job.report_fd = fd[1];
	cr_expect_eq(report_file_finish(&job), 0);
	cr_expect_eq(read(fd[0], got, 10000), 10000);
	cr_expect_str_eq(got, long_text);
	cr_assert_eq(lseek(page.text, 0, SEEK_SET), 0);
	open_file(O_APPEND | O_TRUNC);
	cr_expect_eq(report_file_write(&job), 0);
	cr_expect_eq(pread(job.report_fd, got, 10000, 0), 10000);
	cr_expect_str_eq(got, long_text);
	cr_expect_eq(lseek(job.report_fd, 0, SEEK_END), 10000);
	free(long_text);
}
