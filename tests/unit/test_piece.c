/* SPDX-License-Identifier: Apache-2.0 */
/* test_piece.c - raw files in pieces: cut by the mover, read by sinks. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "launcher/log/index.h"
#include "launcher/log/piece.h"
#include "tests/unit/folder.h"

#define SIZE  PIECE_SIZE_MIN
#define CHUNK (64 * 1024)

static struct raw_share *share;
static char data[3 * CHUNK];

static void
begin(void)
{
	int dir;

	folder_make();
	dir = open(".", O_DIRECTORY | O_CLOEXEC);
	share = raw_share_new(2, 0, dir);
	cr_assert_not_null(share);
	share->rule.size = SIZE;
}

static void
end(void)
{
	folder_remove();
}

TestSuite(piece, .init = begin, .fini = end);

Test(piece, a_rule_is_a_size_and_maybe_a_count)
{
	struct piece_rule rule;

	cr_assert_eq(piece_rule_parse("64k", &rule), PIECE_RULE_OK);
	cr_expect_eq(rule.size, 65536);
	cr_expect_eq(rule.count, 0);
	cr_assert_eq(piece_rule_parse("2G,10", &rule), PIECE_RULE_OK);
	cr_expect_eq(rule.size, 2ull << 30);
	cr_expect_eq(rule.count, 10);
	cr_assert_eq(piece_rule_parse("65536,2", &rule), PIECE_RULE_OK);
	cr_expect_eq(rule.size, 65536);
}

Test(piece, what_is_no_rule_is_refused_at_every_truncation)
{
	static const char *const bad[] = { "", "k", "63k", "65535", "64k,",
		"64k,1", "64k,0", "64k,x", "64k,2x", "64kb", "-64k", " 64k",
		"64 k", "64k,,2", "1e9", "16777216T", "99999999999999999999",
		"64k,4294967296" };
	struct piece_rule rule = { 7, 7 };
	char text[] = "128k,12";

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_neq(piece_rule_parse(bad[i], &rule), PIECE_RULE_OK,
			"'%s'", bad[i]);
	cr_expect_eq(rule.size, 7, "a refusal changes nothing");
	for (size_t len = strlen(text); len-- > 0;) {
		text[len] = '\0';
		cr_expect_eq(piece_rule_parse(text, &rule) == PIECE_RULE_OK,
			len == 4, "'%s'", text);
	}
}

/* The file of stream 0, open as the mover has it. */
static int
newest(void)
{
	struct raw_slot *slot = &share->slot[0];

	if (slot->file == -1)
		slot->file = raw_open(share->dir, 0);
	cr_assert_neq(slot->file, -1);
	return slot->file;
}

/* @n bytes, each the low byte of how many there were before it. */
static void
grow(size_t n)
{
	for (size_t i = 0; i < n; i++)
		data[i] = (char)((share->slot[0].moved + i) % 251);
	cr_assert_eq(fd_write_all(newest(), data, n), 0);
	share->slot[0].moved += n;
}

static void
cut(void)
{
	cr_assert_eq(piece_cut(share, 0, newest()), 0);
}

/* All from @at on, over every border; how much there was. */
static uint64_t
read_from(uint64_t at, uint64_t start)
{
	struct piece_at p = { .offset = at, .start = start };
	ssize_t n = 1;

	while (n > 0) {
		n = piece_read(share, 0, &p, data, CHUNK);
		for (ssize_t i = 0; i < n; i++)
			if (data[i] != (char)((p.offset + (uint64_t)i) % 251))
				cr_assert_fail("byte %zd", i);
		piece_pass(&p, n > 0 ? (uint64_t)n : 0);
	}
	return p.offset - at;
}

Test(piece, a_piece_is_named_by_its_first_byte_and_the_newest_is_stdout)
{
	grow(SIZE + 7);
	cut();
	grow(SIZE);
	cut();
	grow(3);
	cr_expect_eq(access("rank-0000/stdout.000000000000000", F_OK), 0);
	cr_expect_eq(access("rank-0000/stdout.000000000065543", F_OK), 0);
	cr_expect_eq(share->slot[0].start, 2 * SIZE + 7);
	cr_expect_eq(lseek(open("rank-0000/stdout", O_RDONLY), 0, SEEK_END), 3);
}

Test(piece, a_reader_goes_over_every_border)
{
	for (int i = 0; i < 5; i++) {
		grow(SIZE + 1000);
		cut();
	}
	grow(500);
	cr_expect_eq(read_from(0, 0), 5 * (SIZE + 1000) + 500);
	cr_expect_eq(read_from(SIZE + 999, 0), 4 * (SIZE + 1000) + 501);
	/* Where no descriptor is kept the newest is found by name. */
	close(share->slot[0].file);
	share->slot[0].file = -1;
	cr_expect_eq(read_from(0, 0), 5 * (SIZE + 1000) + 500);
}

Test(piece, the_descriptor_of_the_mover_stays_the_same)
{
	int fd = newest();

	grow(SIZE);
	cut();
	cr_expect_eq(lseek(fd, 0, SEEK_END), 0);
	grow(4);
	cr_expect_eq(lseek(fd, 0, SEEK_END), 4);
}

Test(piece, no_more_are_kept_than_the_rule_says)
{
	struct piece_at p = { .offset = 10 };

	share->rule.count = 3;
	for (int i = 0; i < 5; i++) {
		grow(SIZE);
		cut();
	}
	cr_expect_eq(folder_entries("rank-0000"), 3);
	cr_expect_eq(piece_read(share, 0, &p, data, CHUNK), -1);
	cr_expect_eq(errno, ENOENT);
	cr_expect_eq(piece_after(share, 0, 10), 3 * SIZE);
	cr_expect_eq(piece_of(share, 0, 10), PIECE_NONE);
	cr_expect_eq(piece_of(share, 0, 3 * SIZE), 3 * SIZE);
	cr_expect_eq(piece_of(share, 0, 4 * SIZE - 1), 3 * SIZE);
	cr_expect_eq(piece_of(share, 0, 9 * SIZE), 5 * SIZE);
	cr_expect_eq(read_from(3 * SIZE, 3 * SIZE), 2 * SIZE);
}

/* Where a kill left it, between the two new names. */
Test(piece, a_cut_that_was_not_finished_loses_nothing)
{
	grow(SIZE);
	cr_assert_eq(rename("rank-0000/stdout",
			     "rank-0000/stdout.000000000000000"),
		0);
	folder_write("rank-0000/stdout.new", "", 0600);
	grow(10); /* by whoever still has it open */
	cr_expect_eq(read_from(0, 0), SIZE + 10);
	close(share->slot[0].file);
	share->slot[0].file = -1;
	cr_expect_eq(read_from(0, 0), SIZE + 10);
	share->slot[0].start = SIZE + 10; /* the next one makes stdout */
	grow(5);
	cut();
	cr_expect_eq(read_from(0, 0), SIZE + 15);
}

Test(piece, where_none_can_be_made_all_is_as_it_was)
{
	grow(SIZE);
	cr_assert_eq(rename("rank-0000", "elsewhere"), 0);
	cr_expect_eq(piece_cut(share, 0, newest()), -1);
	cr_expect_eq(share->slot[0].start, 0);
	grow(6);
	cr_expect_eq(read_from(0, 0), SIZE + 6);
}

static int
pipe_with(const char *text)
{
	int fd[2];

	cr_assert_eq(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
	cr_assert_eq(fd_write_all(fd[1], text, strlen(text)), 0);
	share->slot[0].pipe = fd[0];
	return fd[0];
}

Test(piece, it_is_cut_behind_the_first_line_end_after_its_size)
{
	cr_expect_eq(piece_room(share, 0, newest()), SIZE);
	grow(SIZE - 10);
	cr_expect_eq(piece_room(share, 0, newest()), 10);
	grow(10);
	pipe_with("rest\nmore\n");
	cr_expect_eq(piece_room(share, 0, newest()), 5);
	cr_expect_eq(raw_waiting(share->slot[0].pipe), 10, "nothing is taken");
	share->slot[0].moved += 5;
	cr_assert_eq(fd_write_all(newest(), "rest\n", 5), 0);
	cr_expect_eq(piece_room(share, 0, newest()), 0);
}

Test(piece, a_line_without_an_end_is_cut_somewhere)
{
	grow(SIZE);
	pipe_with("no end");
	cr_expect_eq(piece_room(share, 0, newest()), 6);
	grow(PIECE_NEAR - 2);
	cr_expect_eq(piece_room(share, 0, newest()), 2);
	grow(2);
	cr_expect_eq(piece_room(share, 0, newest()), 0);
}

Test(piece, without_bytes_in_the_pipe_there_is_room_for_one)
{
	struct raw_slot *slot = &share->slot[0];
	int fd[2], unread;

	grow(SIZE);
	cr_assert_eq(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
	slot->pipe = fd[0];
	cr_expect_eq(piece_room(share, 0, newest()), 1, "it is open");
	cr_assert_eq(fd_write_all(fd[1], "x\n", 2), 0);
	cr_expect_eq(piece_room(share, 0, newest()), 2);
	/* Where the last byte cannot be read, it is cut at its size. */
	unread = open("rank-0000/stdout", O_WRONLY | O_CLOEXEC);
	cr_expect_eq(piece_room(share, 0, unread), 0);
	fd_close(unread);
	cr_assert_eq(read(fd[0], data, 2), 2);
	fd_close(fd[1]);
	cr_expect_eq(piece_room(share, 0, newest()), 1, "it is over");
	fd_close(fd[0]);
	slot->pipe = -1;
	cr_expect_eq(piece_room(share, 0, newest()), 0, "it is none");
}

Test(piece, each_offset_is_found_in_its_piece)
{
	for (int i = 0; i < 9; i++) {
		grow(10);
		cut();
	}
	grow(5);
	for (uint64_t at = 0; at < 95; at++) {
		cr_expect_eq(piece_of(share, 0, at), at / 10 * 10);
		cr_expect_eq(piece_after(share, 0, at),
			at >= 90 ? PIECE_NONE : at / 10 * 10 + 10);
	}
	cr_assert_eq(unlink("rank-0000/stdout.000000000000000"), 0);
	cr_expect_eq(piece_of(share, 0, 9), PIECE_NONE);
	cr_expect_eq(piece_after(share, 0, 0), 10);
}

Test(piece, a_read_ends_before_what_is_not_there)
{
	struct piece_at p = { 0 };

	grow(10);
	cut();
	grow(10);
	cut();
	grow(10);
	cr_expect_eq(piece_read(share, 0, &p, data, CHUNK), 20);
	/* A link is not followed. */
	cr_assert_eq(unlink("rank-0000/stdout.000000000000010"), 0);
	cr_assert_eq(symlink("stdout", "rank-0000/stdout.000000000000010"), 0);
	cr_expect_eq(piece_read(share, 0, &p, data, CHUNK), 10);
	p = (struct piece_at){ .offset = 10, .start = 10 };
	cr_expect_eq(piece_read(share, 0, &p, data, CHUNK), -1);
	cr_expect_eq(errno, ELOOP);
	cr_assert_eq(unlink("rank-0000/stdout.000000000000010"), 0);
	p = (struct piece_at){ 0 };
	cr_expect_eq(piece_read(share, 0, &p, data, CHUNK), 10);
	cr_expect_eq(p.border, PIECE_NONE);
	p = (struct piece_at){ .offset = 10, .start = 10 };
	cr_expect_eq(piece_read(share, 0, &p, data, CHUNK), -1);
	cr_expect_eq(errno, ENOENT);
}

Test(piece, a_link_in_place_of_the_newest_is_not_followed)
{
	struct piece_at p = { 0 };

	grow(10);
	cr_assert_eq(rename("rank-0000/stdout", "rank-0000/other"), 0);
	cr_assert_eq(symlink("other", "rank-0000/stdout"), 0);
	cr_assert_eq(symlink("other", "rank-0000/stdout.000000000000000"), 0);
	fd_close(share->slot[0].file);
	share->slot[0].file = -1;
	cr_expect_eq(piece_read(share, 0, &p, data, CHUNK), -1);
	cr_expect_eq(errno, ELOOP);
}

Test(piece, without_a_rule_there_is_room_for_all)
{
	share->rule.size = 0;
	cr_expect_eq(piece_room(share, 0, -1), UINT64_MAX);
}

Test(piece, an_index_goes_with_its_piece)
{
	struct index index = { 0 };

	grow(SIZE);
	index_moved(&index, share->dir, 0, 100, 1000000000);
	index_moved(&index, share->dir, 0, SIZE, 1000000000 + INDEX_STEP_NS);
	cr_assert_eq(access("rank-0000/stdout.idx", F_OK), 0);
	cut();
	index_cut(&index, share->dir, 0, 0);
	cr_expect_eq(access("rank-0000/stdout.idx", F_OK), -1);
	cr_expect_eq(lseek(open("rank-0000/stdout.000000000000000.idx",
				   O_RDONLY),
			     0, SEEK_END),
		32);
	share->rule.count = 2;
	grow(SIZE);
	cut();
	cr_expect_eq(folder_entries("rank-0000"), 2, "it is removed with it");
}

/* --- a cut that is taken back while somebody reads -------------------------- */

int __real_renameat(int from, const char *old, int to, const char *new);
int __wrap_renameat(int from, const char *old, int to, const char *new);
int __real_openat64(int dir, const char *name, int flags, ...);
int __wrap_openat64(int dir, const char *name, int flags, ...);

/* The reader begins in the midst of the cut, and looks for the piece by the name
 * that it has then; it has found it, or not, when that name is gone. */
static struct {
	bool on;
	unsigned renames;
	sem_t begin, looks, gone, read;
	uint64_t bytes;
	bool held; /* the reader's */
} race;

static __thread bool is_reader;

int
__wrap_renameat(int from, const char *old, int to, const char *new)
{
	int status;

	if (race.on && ++race.renames == 2) {
		sem_post(&race.begin);
		sem_wait(&race.looks);
		errno = EIO;
		return -1;
	}
	status = __real_renameat(from, old, to, new);
	if (race.on && race.renames == 3) {
		sem_post(&race.gone);
		sem_wait(&race.read);
	}
	return status;
}

int
__wrap_openat64(int dir, const char *name, int flags, ...)
{
	mode_t mode;
	va_list ap;

	va_start(ap, flags);
	mode = (flags & O_CREAT) != 0 ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (is_reader && !race.held) {
		race.held = true;
		sem_post(&race.looks);
		sem_wait(&race.gone);
	}
	return __real_openat64(dir, name, flags, mode);
}

static void *
read_amid(void *unused)
{
	is_reader = true;
	sem_wait(&race.begin);
	race.bytes = read_from(0, 0);
	sem_post(&race.read);
	return unused;
}

static void
race_begin(void)
{
	begin();
	memset(&race, 0, sizeof(race));
	sem_init(&race.begin, 0, 0);
	sem_init(&race.looks, 0, 0);
	sem_init(&race.gone, 0, 0);
	sem_init(&race.read, 0, 0);
}

static void
cut_amid_a_read(int fd)
{
	pthread_t reader;

	cr_assert_eq(pthread_create(&reader, NULL, read_amid, NULL), 0);
	race.on = true;
	cr_expect_eq(piece_cut(share, 0, fd), -1);
	race.on = false;
	pthread_join(reader, NULL);
	cr_expect(race.held);
	cr_expect_eq(race.renames, 3);
	cr_expect_eq(race.bytes, SIZE);
	cr_expect_eq(share->slot[0].start, 0);
	cr_expect_eq(read_from(0, 0), SIZE);
}

TestSuite(piece_race, .init = race_begin, .fini = end);

Test(piece_race, a_reader_finds_what_is_called_back)
{
	grow(SIZE);
	cut_amid_a_read(newest());
}

Test(piece_race, also_where_no_descriptor_is_kept)
{
	int fd;

	grow(SIZE);
	fd = share->slot[0].file;
	share->slot[0].file = -1;
	cut_amid_a_read(fd);
}
