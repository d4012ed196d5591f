/* SPDX-License-Identifier: Apache-2.0 */
/* test_index.c - when which part of a file was written. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "launcher/log/index.h"

#define NAME "rank-0001/stdout.idx"
#define T0   1000000000000000000LL /* any wall time */

static char place[] = "/tmp/xrun-index-XXXXXX";
static int dir = -1;
static struct index one;
static struct index_record seen[64];

static void
begin(void)
{
	cr_assert_not_null(mkdtemp(place));
	dir = open(place, O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(mkdirat(dir, "rank-0001", 0700), 0);
	memset(&one, 0, sizeof(one));
}

static void
end(void)
{
	unlinkat(dir, NAME, 0);
	unlinkat(dir, "rank-0001", AT_REMOVEDIR);
	fd_close(dir);
	rmdir(place);
}

TestSuite(index, .init = begin, .fini = end);

static void
moved(uint64_t to, int64_t after_ms)
{
	index_moved(&one, dir, 2, to, T0 + after_ms * 1000000);
}

/* How many records there are; -1: no file. */
static int
records(void)
{
	int fd = openat(dir, NAME, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd == -1)
		return -1;
	n = fd_read_some(fd, seen, sizeof(seen));
	fd_close(fd);
	cr_assert_eq(n % 16, 0);
	return (int)(n / 16);
}

Test(index, a_burst_has_no_index)
{
	moved(100, 0);
	moved(250, 3);
	moved(300, 9);
	cr_expect_eq(records(), -1);
	index_finish(&one, dir, 2);
	cr_expect_eq(records(), -1);
}

Test(index, a_silent_stream_has_none_either)
{
	index_finish(&one, dir, 2);
	cr_expect_eq(records(), -1);
}

Test(index, later_bytes_write_the_record_of_the_burst_before)
{
	moved(100, 0);
	moved(250, 9);
	moved(400, 10);
	cr_assert_eq(records(), 1);
	cr_expect_eq(seen[0].end, 250);
	cr_expect_eq(seen[0].ns, T0);
	moved(500, 19);
	cr_expect_eq(records(), 1);
	index_finish(&one, dir, 2);
	cr_assert_eq(records(), 2);
	cr_expect_eq(seen[1].end, 500);
	cr_expect_eq(seen[1].ns, T0 + 10000000);
}

Test(index, there_is_at_most_one_record_in_ten_milliseconds)
{
	for (int ms = 0; ms < 200; ms++)
		moved(10 * (uint64_t)(ms + 1), ms);
	index_finish(&one, dir, 2);
	cr_assert_eq(records(), 20);
	for (int i = 0; i < 20; i++) {
		cr_expect_eq(seen[i].ns, T0 + i * 10000000);
		cr_expect_eq(seen[i].end, 100 * (uint64_t)(i + 1));
	}
}

Test(index, bytes_on_disk_are_what_the_header_says)
{
	static const unsigned char want[16] = { 0x08, 0x07, 0x06, 0x05, 0x04,
		0x03, 0x02, 0x01, 0x00, 0x00, 0x64, 0xa7, 0xb3, 0xb6, 0xe0,
		0x0d };

	moved(0x0102030405060708, 0);
	moved(0x0102030405060709, 10);
	cr_assert_eq(records(), 1);
	cr_expect_eq(memcmp(seen, want, 16), 0);
}

Test(index, the_file_is_for_the_owner_alone)
{
	struct stat st;

	umask(0);
	moved(1, 0);
	moved(2, 10);
	cr_assert_eq(fstatat(dir, NAME, &st, 0), 0);
	cr_expect_eq(st.st_mode & 07777, 0600);
}

Test(index, a_record_that_cannot_be_written_is_only_lost)
{
	cr_assert_eq(symlinkat("/nowhere/at/all", dir, NAME), 0);
	moved(1, 0);
	moved(2, 10);
	cr_expect_not(one.file);
	unlinkat(dir, NAME, 0);
	moved(3, 20);
	cr_assert_eq(records(), 1);
	cr_expect_eq(seen[0].end, 2);
}
