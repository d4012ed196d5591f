/* SPDX-License-Identifier: Apache-2.0 */
/* test_track_sys.c - files of a stream that are cut, removed or refused while they are looked for. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/log/piece.h"
#include "launcher/log/track.h"
#include "tests/unit/folder.h"
#define TOLD_QUIET true
#include "tests/unit/told.h"

#define T0 (INT64_C(1000000000) * NS_PER_S)

static int dir;
static struct track track;

static struct {
	int sys_open, opens; /* so many opens fail */
	int sys_read, reads;
	int sys_each, eachs;
	void (*before_each)(void);
} is;

int __real_openat64(int at, const char *name, int flags, ...);
int __wrap_openat64(int at, const char *name, int flags, ...);
ssize_t __real_pread64(int fd, void *out, size_t cap, off64_t at);
ssize_t __wrap_pread64(int fd, void *out, size_t cap, off64_t at);
bool __real_piece_each(int at, uint32_t named, piece_fn *fn, void *ctx);
bool __wrap_piece_each(int at, uint32_t named, piece_fn *fn, void *ctx);

/* Only files of the stream, not their indices. */
int
__wrap_openat64(int at, const char *name, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if ((flags & O_CREAT) != 0) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	if (!quiet && strstr(name, ".idx") == NULL &&
		strchr(name, '/') != NULL) {
		cr_expect_eq(flags & ~O_LARGEFILE,
			(O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) &
				~O_LARGEFILE);
		tell("%s ", strchr(name, '/') + 1);
		if (is.opens > 0) {
			is.opens--;
			errno = is.sys_open;
			return -1;
		}
	}
	return __real_openat64(at, name, flags, mode);
}

ssize_t
__wrap_pread64(int fd, void *out, size_t cap, off64_t at)
{
	if (is.reads > 0) {
		is.reads--;
		errno = is.sys_read;
		return -1;
	}
	return __real_pread64(fd, out, cap, at);
}

bool
__wrap_piece_each(int at, uint32_t named, piece_fn *fn, void *ctx)
{
	tell("each ");
	if (is.before_each != NULL)
		is.before_each();
	if (is.eachs > 0) {
		is.eachs--;
		errno = is.sys_each;
		return false;
	}
	return __real_piece_each(at, named, fn, ctx);
}

/* --- the scene -------------------------------------------------------------- */

static void
begin(void)
{
	alarm(20); /* where a loop has no end */
	folder_make();
	cr_assert_eq(mkdir("rank-0000", 0700), 0);
	dir = open(".", O_DIRECTORY | O_CLOEXEC);
	track_init(&track, dir, 0);
	quiet = false;
}

static void
end(void)
{
	quiet = true;
	track_fini(&track);
	fd_close(dir);
	folder_remove();
}

TestSuite(track_sys, .init = begin, .fini = end);

static void
expect_told(const char *want)
{
	cr_expect_str_eq(told, want, "'%s', not '%s'", told, want);
	told[0] = '\0';
	told_len = 0;
}

/* Piece of the stream that begins at @start; the newest if that is -1. */
static const char *
name_of(int64_t start)
{
	static char name[PIECE_NAME];

	return start == -1 ? raw_name(0, name, sizeof(name)) :
			     piece_name(0, (uint64_t)start, name, sizeof(name));
}

static void
make(int64_t start, const char *text)
{
	bool was = quiet;
	int fd;

	quiet = true;
	fd = open(name_of(start), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
		0600);
	cr_assert_neq(fd, -1);
	cr_assert_eq(fd_write_all(fd, text, strlen(text)), 0);
	fd_close(fd);
	quiet = was;
}

static bool
more(uint64_t at, uint64_t want)
{
	bool is_there = track_more(&track, &at);

	cr_expect_eq(at, want, "%llu", (unsigned long long)at);
	return is_there;
}

static int
free_descriptor(void)
{
	int fd = dup(dir);

	fd_close(fd);
	return fd;
}

/* The newest gets its offset as its name, and another one is there. */
static int64_t cut_at;
static const char *cut_text;

static void
cut(void)
{
	char old[PIECE_NAME];

	is.before_each = NULL;
	snprintf(old, sizeof(old), "%s", name_of(-1));
	cr_assert_eq(rename(old, name_of(cut_at)), 0);
	make(-1, cut_text);
}

/* Each time there is another newest one. */
static void
cut_always(void)
{
	cut();
	cut_at += 1;
	is.before_each = cut_always;
}

/* --- the newest ------------------------------------------------------------- */

Test(track_sys, the_newest_is_opened_before_the_others_are_counted)
{
	int free = free_descriptor();

	make(0, "abc");
	make(-1, "de");
	cr_expect(more(4, 4));
	expect_told("stdout each ");
	cr_expect(track.newest);
	cr_expect(track.listed);
	cr_expect_eq(track.start, 3);
	cr_expect_eq(track.end, 5);
	cr_expect_eq(track.count, 2);
	cr_expect(more(1, 1));
	expect_told("stdout.000000000000000 ");
	cr_expect_not(track.newest);
	cr_expect(more(0, 0));
	expect_told("");
	cr_expect(more(3, 3));
	expect_told("stdout each ");
	cr_expect_not(more(5, 5));
	expect_told("");
	make(-1, "f");
	cr_expect(more(5, 5));
	expect_told("");
	cr_expect_eq(track.end, 6);
	track_fini(&track);
	cr_expect_eq(track.fd, -1);
	cr_expect_eq(track.count, 0);
	cr_expect_null(track.piece);
	cr_expect_eq(free_descriptor(), free);
}

Test(track_sys, one_that_is_cut_while_it_is_looked_at_is_looked_for_again)
{
	int free = free_descriptor();

	make(-1, "abc");
	cut_at = 0;
	cut_text = "de";
	is.before_each = cut;
	cr_expect(more(4, 4));
	expect_told("stdout each stdout each ");
	cr_expect_eq(track.start, 3);
	cr_expect(track.newest);
	track_fini(&track);
	cr_expect_eq(free_descriptor(), free);
}

Test(track_sys, one_that_is_cut_without_end_is_given_up_after_16_tries)
{
	int free = free_descriptor();
	size_t n = 0;

	make(-1, "a");
	cut_text = "a";
	is.before_each = cut_always;
	cr_expect_not(more(1000, 1000));
	for (const char *p = told; (p = strstr(p, "each")) != NULL; p++)
		n++;
	/* 16 looks, and the last of the pieces that they met. */
	cr_expect_eq(n, 16, "%zu", n);
	is.before_each = NULL;
	track_fini(&track);
	cr_expect_eq(free_descriptor(), free);
}

Test(track_sys, without_a_newest_the_last_of_the_others_is_it)
{
	make(0, "abc");
	make(3, "de");
	cr_expect(more(3, 3));
	expect_told(
		"stdout each stdout each stdout each stdout each stdout.000000000000003 ");
	cr_expect_not(track.newest);
	cr_expect_eq(track.end, 5);
	track_fini(&track);
	cr_assert_eq(unlink(name_of(0)), 0);
	cr_assert_eq(unlink(name_of(3)), 0);
	told[0] = '\0';
	told_len = 0;
	cr_expect_not(more(0, 0));
	expect_told("stdout each ");
	cr_expect_eq(track.fd, -1);
}

Test(track_sys, an_open_piece_that_was_cut_goes_on_in_the_next)
{
	make(-1, "abc");
	cr_expect(more(0, 0));
	cr_expect_not(more(3, 3));
	cut_at = 0;
	cut_text = "de";
	cut();
	expect_told("stdout each ");
	cr_expect(more(3, 3));
	expect_told("stdout each ");
	cr_expect_eq(track.start, 3);
	/* What came before the cut is read first. */
	cr_expect(more(4, 4));
	make(-1, "f");
	cut_at = 3;
	cut_text = "ghi";
	cut();
	cr_expect(more(5, 5));
	expect_told("");
	cr_expect_eq(track.start, 3);
	cr_expect_eq(track.end, 6);
	cr_expect(more(6, 6));
	cr_expect_eq(track.start, 6);
}

/* --- what is away ------------------------------------------------------------ */

Test(track_sys, what_was_removed_is_passed_over)
{
	make(2, "cd");
	make(4, "ef");
	make(8, "ij");
	make(-1, "kl");
	cr_expect(more(0, 2));
	cr_expect_eq(track_first(&track), 2);
	cr_expect(more(6, 8));
	cr_expect_eq(track.start, 8);
	cr_assert_eq(unlink(name_of(2)), 0);
	cr_assert_eq(unlink(name_of(4)), 0);
	cr_expect(more(2, 8));
	cr_expect_eq(track_first(&track), 8);
	cr_expect(more(11, 11));
	cr_expect_not(more(12, 12));
	cr_expect_eq(track_end(&track), 12);
}

Test(track_sys, a_reader_that_never_looked_has_the_first)
{
	make(2, "cd");
	make(-1, "ef");
	cr_expect_eq(track_first(&track), 2);
	cr_expect_eq(track.start, 2);
	told[0] = '\0';
	told_len = 0;
	cr_expect_eq(track_first(&track), 2);
	expect_told("");
	track_fini(&track);
	cr_expect_eq(track_end(&track), 6);
	cr_expect_eq(track.start, 4);
}

/* --- what is refused ----------------------------------------------------------- */

Test(track_sys, why_a_file_cannot_be_opened)
{
	static const int fine[] = { ENOENT, ELOOP };

	make(-1, "abc");
	for (int i = 0; i < 2; i++) {
		is.opens = 1;
		is.sys_open = fine[i];
		cr_expect_not(more(0, 0));
		cr_expect_eq(track.sys, 0);
	}
	is.opens = 1;
	is.sys_open = EACCES;
	cr_expect_not(more(0, 0));
	cr_expect_eq(track.sys, EACCES);
	track.sys = 0;
	is.eachs = 1;
	is.sys_each = EMFILE;
	cr_expect(more(0, 0));
	cr_expect_eq(track.sys, EMFILE);
}

Test(track_sys, reads_that_are_interrupted_or_fail)
{
	char out[9] = "";

	make(2, "abc");
	make(-1, "de");
	cr_assert(more(2, 2));
	is.reads = 1;
	is.sys_read = EINTR;
	cr_expect_eq(track_read(&track, 3, out, 8), 2);
	cr_expect_str_eq(out, "bc");
	cr_expect_eq(track.bytes, 2);
	is.reads = 1;
	is.sys_read = EIO;
	cr_expect_eq(track_read(&track, 3, out, 8), 0);
	cr_expect_eq(track.bytes, 2);
	cr_expect_eq(track_read(&track, 2, out, 1), 1);
	cr_expect_eq(track.bytes, 3);
	cr_expect_eq(track_read(&track, 1, out, 1), 0);
	cr_expect_eq(track_read(&track, 5, out, 1), 0);
	cr_expect_eq(track_read(&track, 6, out, 1), 0);
	make(2, "grown");
	cr_expect_eq(track_read(&track, 5, out, 1), 0, "not looked at");
	cr_expect_eq(track_read(&track, 6, out, 1), 0);
}

/* --- times ----------------------------------------------------------------------- */

static void
changed(int64_t start, int64_t ns)
{
	struct timespec t[2] = { { .tv_nsec = UTIME_OMIT },
		{ ns / NS_PER_S, ns % NS_PER_S } };

	cr_assert_eq(utimensat(dir, name_of(start), t, 0), 0);
}

/* A stamp may be 20 ms early. */
Test(track_sys, the_first_piece_that_may_hold_a_time)
{
	make(0, "ab");
	changed(0, T0);
	make(2, "cd");
	changed(2, T0 + 100 * NS_PER_MS);
	make(-1, "ef");
	changed(-1, T0 + 200 * NS_PER_MS);
	cr_expect_eq(track_since(&track, T0), 0);
	cr_expect_eq(track.changed, T0);
	told[0] = '\0';
	told_len = 0;
	cr_expect_eq(track_since(&track, T0 + 20 * NS_PER_MS), 2);
	expect_told(
		"stdout each stdout.000000000000000 stdout.000000000000002 ");
	cr_expect_eq(track_since(&track, T0 + 20 * NS_PER_MS + 1), 2);
	expect_told("stdout each stdout.000000000000002 ");
	cr_expect_eq(track_since(&track, T0 + 200 * NS_PER_MS), 4);
	cr_expect_eq(track_since(&track, T0 + 200 * NS_PER_MS + 1), 6);
}

Test(track_sys, all_is_given_back)
{
	size_t before = 0;

	quiet = true;
	for (int i = 0; i < 5; i++)
		make(i, "a");
	make(-1, "a");
	for (int i = 0; i < 20; i++) {
		cr_expect(more(5, 5));
		cr_expect_eq(track.count, 6);
		track_fini(&track);
		if (i == 10)
			before = mallinfo2().uordblks;
	}
	cr_expect_eq(mallinfo2().uordblks, before);
}
