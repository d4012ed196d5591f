/* SPDX-License-Identifier: Apache-2.0 */
/* test_piece_sys.c - pieces by the system calls that make, find and read them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "launcher/log/piece.h"
#include "tests/unit/folder.h"
#define TOLD_QUIET true
#include "tests/unit/told.h"

#define SIZE PIECE_SIZE_MIN

static struct raw_share *share;
static struct raw_slot *slot;

/* The calls that fail, or of what happens before one. */
static struct {
	int rename;          /* which fails, from 1 */
	int sys_open, opens; /* so many opens fail */
	int sys_read, reads;
	int cut_before_read; /* so many times the newest is another then */
	long peek;
	int sys_peek;
	const char *peeked;
} is;

int __real_openat64(int dir, const char *name, int flags, ...);
int __wrap_openat64(int dir, const char *name, int flags, ...);
int __real_renameat(int dir, const char *name, int to, const char *new);
int __wrap_renameat(int dir, const char *name, int to, const char *new);
int __real_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags);
int __real_faccessat(int dir, const char *name, int mode, int flags);
int __wrap_faccessat(int dir, const char *name, int mode, int flags);
ssize_t __real_pread64(int fd, void *out, size_t cap, off64_t at);
ssize_t __wrap_pread64(int fd, void *out, size_t cap, off64_t at);
int __real_closedir(DIR *dir);
int __wrap_closedir(DIR *dir);
long __wrap_raw_peek(int pipe, char out[static RAW_PEEK]);
int __real_dup3(int fd, int to, int flags);
int __wrap_dup3(int fd, int to, int flags);

/* Without the folder. */
static const char *
short_name(const char *name)
{
	const char *slash = strchr(name, '/');

	return slash == NULL ? name : slash + 1;
}

int
__wrap_openat64(int dir, const char *name, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if ((flags & O_CREAT) != 0) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	tell("open %s%s%s ", short_name(name),
		(flags & O_NOFOLLOW) == 0 ? " follow" : "",
		(flags & O_CLOEXEC) == 0 ? " keep" : "");
	if ((flags & O_CREAT) != 0)
		tell("new %o %d ", mode, (flags & O_EXCL) != 0);
	if (is.opens > 0) {
		is.opens--;
		errno = is.sys_open;
		return -1;
	}
	return __real_openat64(dir, name, flags, mode);
}

int
__wrap_renameat(int dir, const char *name, int to, const char *new)
{
	tell("rename %s %s ", short_name(name), short_name(new));
	if (is.rename > 0 && --is.rename == 0) {
		errno = EIO;
		return -1;
	}
	return __real_renameat(dir, name, to, new);
}

int
__wrap_unlinkat(int dir, const char *name, int flags)
{
	tell("unlink %s %d ", short_name(name), flags);
	return __real_unlinkat(dir, name, flags);
}

int
__wrap_faccessat(int dir, const char *name, int mode, int flags)
{
	tell("look %s %d %d ", short_name(name), mode, flags);
	return __real_faccessat(dir, name, mode, flags);
}

ssize_t
__wrap_pread64(int fd, void *out, size_t cap, off64_t at)
{
	tell("read %zu at %lld ", cap, (long long)at);
	if (is.cut_before_read > 0) {
		is.cut_before_read--;
		slot->start++;
	}
	if (is.reads > 0) {
		is.reads--;
		errno = is.sys_read;
		return -1;
	}
	return __real_pread64(fd, out, cap, at);
}

int
__wrap_closedir(DIR *dir)
{
	tell("closedir ");
	return __real_closedir(dir);
}

int
__wrap_dup3(int fd, int to, int flags)
{
	tell("dup %d ", flags == O_CLOEXEC);
	return __real_dup3(fd, to, flags);
}

long
__wrap_raw_peek(int pipe, char out[static RAW_PEEK])
{
	cr_assert_eq(pipe, 77);
	tell("peek ");
	errno = is.sys_peek;
	if (is.peeked == NULL)
		return is.peek;
	memcpy(out, is.peeked, strlen(is.peeked));
	return (long)strlen(is.peeked);
}

/* --- the scene -------------------------------------------------------------- */

static void
begin(void)
{
	int dir;

	alarm(20); /* where a loop has no end */
	folder_make();
	dir = open(".", O_DIRECTORY | O_CLOEXEC);
	share = raw_share_new(2, 0, dir);
	cr_assert_not_null(share);
	share->rule.size = SIZE;
	slot = &share->slot[0];
	slot->file = raw_open(dir, 0);
	slot->pipe = 77;
	is.peek = -1;
	is.sys_peek = EAGAIN;
	quiet = false;
}

static void
end(void)
{
	quiet = true;
	folder_remove();
}

TestSuite(piece_sys, .init = begin, .fini = end);

static void
expect_told(const char *want)
{
	cr_expect_str_eq(told, want, "'%s', not '%s'", told, want);
	told[0] = '\0';
	told_len = 0;
}

static void
put(const char *text)
{
	cr_assert_eq(fd_write_all(slot->file, text, strlen(text)), 0);
	slot->moved += strlen(text);
}

static void
forget(void)
{
	told[0] = '\0';
	told_len = 0;
}

static int
free_descriptor(void)
{
	int fd = dup(share->dir);

	fd_close(fd);
	return fd;
}

/* --- rules ------------------------------------------------------------------ */

static void
expect_size(const char *text, uint64_t want, const char *rest)
{
	uint64_t size = 1;
	const char *is_left = piece_parse_size(text, &size);

	cr_assert_not_null(is_left, "%s", text);
	cr_expect_str_eq(is_left, rest, "%s", text);
	cr_expect_eq(size, want, "%s: %llu", text, (unsigned long long)size);
}

Test(piece_sys, sizes)
{
	expect_size("0", 0, "");
	expect_size("9", 9, "");
	expect_size("17", 17, "");
	expect_size("1k", 1024, "");
	expect_size("1K,2", 1024, ",2");
	expect_size("3m", 3 << 20, "");
	expect_size("3Mx", 3 << 20, "x");
	expect_size("5g", 5ull << 30, "");
	expect_size("7T", 7ull << 40, "");
	expect_size("16777215T", 16777215ull << 40, "");
	expect_size("16777216T", UINT64_MAX, "");
	expect_size("99999999999999999999k", UINT64_MAX, "");
	expect_size("1b", 1, "b");
	cr_expect_null(piece_parse_size("k", &(uint64_t){ 0 }));
	cr_expect_null(piece_parse_size(":", &(uint64_t){ 0 }));
	cr_expect_null(piece_parse_size("/", &(uint64_t){ 0 }));
}

static void
expect_rule(const char *text, enum piece_rule_verdict want, uint64_t size,
	uint32_t count)
{
	struct piece_rule rule = { 7, 7 };

	cr_expect_eq(piece_rule_parse(text, &rule), want, "%s", text);
	cr_expect_eq(rule.size, size, "%s", text);
	cr_expect_eq(rule.count, count, "%s", text);
}

Test(piece_sys, rules)
{
	expect_rule("65536", PIECE_RULE_OK, 65536, 0);
	expect_rule("65535", PIECE_RULE_SIZE, 7, 7);
	expect_rule("4611686018427387903", PIECE_RULE_OK, INT64_MAX / 2, 0);
	expect_rule("4611686018427387904", PIECE_RULE_SIZE, 7, 7);
	expect_rule("64k,2", PIECE_RULE_OK, 65536, 2);
	expect_rule("64k,1", PIECE_RULE_COUNT, 7, 7);
	expect_rule("64k,4294967295", PIECE_RULE_OK, 65536, UINT32_MAX);
	expect_rule("64k,4294967296", PIECE_RULE_COUNT, 7, 7);
	expect_rule("64k,x", PIECE_RULE_NONE, 7, 7);
	expect_rule("64k,2x", PIECE_RULE_NONE, 7, 7);
	expect_rule("64k;2", PIECE_RULE_NONE, 7, 7);
	expect_rule("x", PIECE_RULE_NONE, 7, 7);
}

/* --- room --------------------------------------------------------------------- */

/* With @more bytes than the size in the piece; the last of them is @c. */
static uint64_t
room_behind(int64_t more, char c)
{
	off_t len = (off_t)(SIZE + more);

	cr_assert_eq(ftruncate(slot->file, len), 0);
	cr_assert_eq(pwrite(slot->file, &c, 1, len - 1), 1);
	slot->start = 1000;
	slot->moved = 1000 + (uint64_t)len;
	return piece_room(share, 0, slot->file);
}

Test(piece_sys, room_up_to_the_size_and_then_to_a_line_end)
{
	cr_expect_eq(room_behind(-1, 'x'), 1);
	cr_expect_eq(room_behind(-100, '\n'), 100);
	expect_told("");
	cr_expect_eq(room_behind(0, '\n'), 0);
	cr_expect_eq(room_behind(0, 'x'), 1);
	expect_told("read 1 at 65535 read 1 at 65535 peek ");
	is.peek = 0;
	cr_expect_eq(room_behind(0, 'x'), 1);
	is.peek = -1;
	is.sys_peek = EMFILE;
	cr_expect_eq(room_behind(0, 'x'), 0);
	is.peeked = "abc";
	cr_expect_eq(room_behind(0, 'x'), 3);
	is.peeked = "ab\nc\n";
	cr_expect_eq(room_behind(0, 'x'), 3);
	is.peeked = "\n";
	cr_expect_eq(room_behind(0, 'x'), 1);
	is.peeked = "abc";
	cr_expect_eq(room_behind(PIECE_NEAR - 4, 'x'), 3);
	cr_expect_eq(room_behind(PIECE_NEAR - 3, 'x'), 3);
	cr_expect_eq(room_behind(PIECE_NEAR - 2, 'x'), 2);
	cr_expect_eq(room_behind(PIECE_NEAR - 1, 'x'), 1);
	forget();
	cr_expect_eq(room_behind(PIECE_NEAR, 'x'), 0);
	expect_told("");
	is.reads = 1;
	is.sys_read = EIO;
	cr_expect_eq(room_behind(5, 'x'), 0);
	share->rule.size = 0;
	cr_expect_eq(room_behind(5, 'x'), UINT64_MAX);
}

/* --- cuts --------------------------------------------------------------------- */

Test(piece_sys, a_cut_step_by_step)
{
	int free = free_descriptor();
	int file = slot->file;

	put("abc");
	cr_expect_eq(piece_cut(share, 0, file), 0);
	expect_told(
		"unlink stdout.new 0 open stdout.new new 600 1 "
		"rename stdout stdout.000000000000000 "
		"rename stdout.new stdout dup 1 open rank-0000 follow closedir ");
	cr_expect_eq(slot->start, 3);
	cr_expect_eq(lseek(file, 0, SEEK_END), 0);
	cr_expect_eq(free_descriptor(), free);
	put("de");
	cr_expect_eq(piece_cut(share, 0, file), 0);
	cr_expect_eq(slot->start, 5);
	folder_expect("rank-0000/stdout.000000000000000", "abc");
	folder_expect("rank-0000/stdout.000000000000003", "de");
	folder_expect("rank-0000/stdout", "");
}

Test(piece_sys, a_cut_that_fails_leaves_all_as_it_was)
{
	int free = free_descriptor();

	put("abc");
	slot->start = 1;
	is.rename = 1;
	cr_expect_eq(piece_cut(share, 0, slot->file), -1);
	expect_told(
		"unlink stdout.new 0 open stdout.new new 600 1 "
		"rename stdout stdout.000000000000001 unlink stdout.new 0 ");
	cr_expect_eq(slot->start, 1);
	is.rename = 2;
	cr_expect_eq(piece_cut(share, 0, slot->file), -1);
	expect_told(
		"unlink stdout.new 0 open stdout.new new 600 1 "
		"rename stdout stdout.000000000000001 rename stdout.new stdout "
		"rename stdout.000000000000001 stdout unlink stdout.new 0 ");
	cr_expect_eq(slot->start, 1);
	folder_expect("rank-0000/stdout", "abc");
	cr_expect_eq(access("rank-0000/stdout.000000000000001", F_OK), -1);
	cr_expect_eq(access("rank-0000/stdout.new", F_OK), -1);
	is.opens = 1;
	is.sys_open = EMFILE;
	cr_expect_eq(piece_cut(share, 0, slot->file), -1);
	expect_told("unlink stdout.new 0 open stdout.new new 600 1 ");
	cr_expect_eq(free_descriptor(), free);
}

static void
make(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert_neq(fd, -1);
	cr_assert_eq(fd_write_all(fd, text, strlen(text)), 0);
	fd_close(fd);
}

Test(piece_sys, the_oldest_are_removed_with_their_indices)
{
	make("rank-0000/stdout.000000000000001", "a");
	make("rank-0000/stdout.000000000000001.idx", "a");
	make("rank-0000/stdout.000000000000002", "a");
	make("rank-0000/stdout.000000000000004", "a");
	slot->start = 6;
	slot->moved = 8;
	share->rule.count = 3;
	cr_expect_eq(piece_cut(share, 0, slot->file), 0);
	cr_expect_not_null(strstr(told,
		"unlink stdout.000000000000001.idx 0 unlink stdout.000000000000001 0 "
		"open rank-0000 follow closedir "
		"unlink stdout.000000000000002.idx 0 unlink stdout.000000000000002 0 "
		"open rank-0000 follow closedir "));
	cr_expect_eq(access("rank-0000/stdout.000000000000001", F_OK), -1);
	cr_expect_eq(access("rank-0000/stdout.000000000000001.idx", F_OK), -1);
	cr_expect_eq(access("rank-0000/stdout.000000000000002", F_OK), -1);
	cr_expect_eq(access("rank-0000/stdout.000000000000004", F_OK), 0);
	cr_expect_eq(access("rank-0000/stdout.000000000000006", F_OK), 0);
}

Test(piece_sys, no_more_than_sixteen_are_removed_at_once)
{
	char name[64];
	int left = 0;

	for (uint32_t i = 0; i < 20; i++)
		make(piece_name(0, i, name, sizeof(name)), "a");
	share->rule.count = 2;
	slot->start = slot->moved = 20;
	forget();
	quiet = true;
	cr_expect_eq(piece_cut(share, 0, slot->file), 0);
	for (uint32_t i = 0; i <= 20; i++)
		left += access(piece_name(0, i, name, sizeof(name)), F_OK) == 0;
	cr_expect_eq(left, 5);
	cr_expect_eq(access(piece_name(0, 15, name, sizeof(name)), F_OK), -1);
	cr_expect_eq(access(piece_name(0, 16, name, sizeof(name)), F_OK), 0);
}

/* --- what there is --------------------------------------------------------------- */

static char starts[500];

static void
add_start(void *ctx, uint64_t start)
{
	size_t at = strlen(starts);

	cr_assert_eq(ctx, &is);
	snprintf(starts + at, sizeof(starts) - at, "%llu ",
		(unsigned long long)start);
}

Test(piece_sys, only_names_of_pieces_count)
{
	int free = free_descriptor();

	make("rank-0000/stdout.00000000000007", "14 digits");
	make("rank-0000/stdout.000000000000008x", "");
	make("rank-0000/stdout.000000000000009.idx", "");
	make("rank-0000/stdoutx000000000000010", "");
	make("rank-0000/stderr.000000000000011", "");
	make("rank-0000/stdou.000000000000012", "");
	make("rank-0000/stdout.1000000000000013", "16 digits");
	forget();
	cr_expect(piece_each(share->dir, 0, add_start, &is));
	expect_told("open rank-0000 follow closedir ");
	cr_expect_str_eq(starts, "1000000000000013 ");
	starts[0] = '\0';
	cr_expect(piece_each(share->dir, 1, add_start, &is));
	cr_expect_str_eq(starts, "11 ");
	cr_expect(piece_each(share->dir, 2, add_start, &is), "no folder");
	is.opens = 1;
	is.sys_open = EACCES;
	cr_expect_not(piece_each(share->dir, 0, add_start, &is));
	cr_expect_eq(errno, EACCES);
	cr_expect_eq(free_descriptor(), free);
}

Test(piece_sys, the_piece_of_an_offset_and_the_one_behind)
{
	static const struct {
		uint64_t offset, of, after;
	} at[] = {
		{ 0, PIECE_NONE, 5 },
		{ 4, PIECE_NONE, 5 },
		{ 5, 5, 9 },
		{ 8, 5, 9 },
		{ 9, 9, 20 },
		{ 19, 9, 20 },
		{ 20, 20, PIECE_NONE },
		{ 21, 20, PIECE_NONE },
	};

	make("rank-0000/stdout.000000000000009", "");
	make("rank-0000/stdout.000000000000005", "");
	slot->start = 20;
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		cr_expect_eq(piece_of(share, 0, at[i].offset), at[i].of, "%zu",
			i);
		cr_expect_eq(piece_after(share, 0, at[i].offset), at[i].after,
			"%zu", i);
	}
	/* One with a name of its own that begins behind the newest. */
	make("rank-0000/stdout.000000000000030", "");
	cr_expect_eq(piece_after(share, 0, 19), 20);
	cr_expect_eq(piece_after(share, 0, 20), 30);
	cr_expect_eq(piece_of(share, 0, 30), 20);
}

/* --- reads --------------------------------------------------------------------------- */

static char out[100];

static ssize_t
read_at(uint64_t offset, uint64_t start, size_t cap, uint64_t border)
{
	struct piece_at at = { .offset = offset, .start = start, .border = 7 };
	ssize_t n = piece_read(share, 0, &at, out, cap);

	cr_expect_eq(at.offset, offset);
	cr_expect_eq(at.start, start);
	cr_expect_eq(at.border, border, "%llu", (unsigned long long)at.border);
	return n;
}

/* Pieces at 0, 3 and 5: "abc", "de", "fgh". */
static void
three_pieces(void)
{
	put("abc");
	cr_assert_eq(piece_cut(share, 0, slot->file), 0);
	put("de");
	cr_assert_eq(piece_cut(share, 0, slot->file), 0);
	put("fgh");
	forget();
}

Test(piece_sys, a_read_meets_two_pieces_at_most)
{
	int free = free_descriptor();

	three_pieces();
	cr_expect_eq(read_at(1, 0, 3, 3), 3);
	cr_expect_eq(memcmp(out, "bcd", 3), 0);
	expect_told(
		"open stdout.000000000000000 read 3 at 1 look stdout.000000000000003 0 0 "
		"open stdout.000000000000003 read 1 at 0 ");
	cr_expect_eq(read_at(4, 3, 100, 5), 4);
	cr_expect_eq(memcmp(out, "efgh", 4), 0);
	expect_told("open stdout.000000000000003 read 100 at 1 read 99 at 0 ");
	cr_expect_eq(read_at(1, 0, 2, PIECE_NONE), 2);
	expect_told("open stdout.000000000000000 read 2 at 1 ");
	cr_expect_eq(read_at(6, 5, 100, PIECE_NONE), 2);
	expect_told("read 100 at 1 ");
	cr_expect_eq(read_at(8, 5, 100, PIECE_NONE), 0);
	cr_expect_eq(free_descriptor(), free);
	/* The mover keeps no descriptor. */
	forget();
	fd_close(slot->file);
	free = free_descriptor();
	slot->file = -1;
	cr_expect_eq(read_at(5, 5, 100, PIECE_NONE), 3);
	expect_told("open stdout read 100 at 0 ");
	cr_expect_eq(free_descriptor(), free);
}

Test(piece_sys, a_read_ends_before_what_cannot_be_read)
{
	three_pieces();
	cr_assert_eq(unlink("rank-0000/stdout.000000000000003"), 0);
	cr_expect_eq(read_at(1, 0, 100, PIECE_NONE), 2);
	expect_told(
		"open stdout.000000000000000 read 100 at 1 look stdout.000000000000003 0 0 ");
	cr_expect_eq(read_at(3, 3, 100, PIECE_NONE), -1);
	cr_expect_eq(errno, ENOENT);
	expect_told("open stdout.000000000000003 ");
	is.opens = 1;
	is.sys_open = EMFILE;
	cr_expect_eq(read_at(1, 0, 100, PIECE_NONE), -1);
	cr_expect_eq(errno, EMFILE);
	expect_told("open stdout.000000000000000 ");
	is.reads = 1;
	is.sys_read = EINTR;
	cr_expect_eq(read_at(1, 0, 2, PIECE_NONE), 2);
	expect_told("open stdout.000000000000000 read 2 at 1 read 2 at 1 ");
	is.reads = 1;
	is.sys_read = EIO;
	cr_expect_eq(read_at(1, 0, 2, PIECE_NONE), -1);
	cr_expect_eq(errno, EIO);
}

Test(piece_sys, a_second_piece_that_fails_leaves_what_was_read)
{
	three_pieces();
	make("rank-0000/stdout.000000000000003", "");
	cr_assert_eq(unlink("rank-0000/stdout.000000000000003"), 0);
	cr_assert_eq(symlink("nowhere", "rank-0000/stdout.000000000000003"), 0);
	make("rank-0000/nowhere", "");
	cr_expect_eq(read_at(1, 0, 100, 3), 2);
	cr_expect_eq(memcmp(out, "bc", 2), 0);
}

Test(piece_sys, the_newest_that_is_cut_meanwhile_is_read_by_its_name)
{
	three_pieces();
	is.cut_before_read = 1;
	cr_assert_eq(rename("rank-0000/stdout",
			     "rank-0000/stdout.000000000000005"),
		0);
	cr_expect_eq(read_at(5, 5, 2, PIECE_NONE), 2);
	expect_told("read 2 at 0 open stdout.000000000000005 read 2 at 0 ");
}

Test(piece_sys, one_that_is_not_there_is_looked_for_three_times)
{
	three_pieces();
	fd_close(slot->file);
	slot->file = -1;
	cr_assert_eq(unlink("rank-0000/stdout"), 0);
	cr_expect_eq(read_at(5, 5, 2, PIECE_NONE), -1);
	cr_expect_eq(errno, ENOENT);
	expect_told("open stdout open stdout.000000000000005 "
		    "open stdout open stdout.000000000000005 "
		    "open stdout open stdout.000000000000005 ");
}

Test(piece_sys, a_reader_that_passes_a_border_is_in_the_next_piece)
{
	struct piece_at at = { .offset = 5, .start = 1, .border = 9 };

	piece_pass(&at, 3);
	cr_expect_eq(at.offset, 8);
	cr_expect_eq(at.start, 1);
	piece_pass(&at, 1);
	cr_expect_eq(at.offset, 9);
	cr_expect_eq(at.start, 9);
	at.border = 12;
	piece_pass(&at, 4);
	cr_expect_eq(at.offset, 13);
	cr_expect_eq(at.start, 12);
}
