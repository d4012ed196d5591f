/* SPDX-License-Identifier: Apache-2.0 */
/* test_mover.c - pipes to files: what is refused, and folders that go away. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/syscall.h>

#include <criterion/criterion.h>

#include "base/fault.h"
#include "base/fd.h"
#include "launcher/log/mover_inner.h"
#include "launcher/log/sink.h"
#include "tests/unit/folder.h"
#include "tests/unit/seccomp.h"

static struct notes notes;
static struct raw_share *share;
static struct mover *mover;
static int dir = -1;

static void
begin(void)
{
	folder_make();
	dir = open(".", O_DIRECTORY | O_CLOEXEC);
	cr_assert_neq(dir, -1);
	cr_assert_eq(notes_init(&notes), 0);
	share = raw_share_new(3, 0, dir);
	cr_assert_not_null(share);
}

TestSuite(mover, .init = begin, .fini = folder_remove);

static void
open_mover(uint32_t files_max)
{
	struct mover_config config = {
		.share = share,
		.notes = &notes,
		.files_max = files_max,
	};

	mover = mover_open(&config);
	cr_assert_not_null(mover);
}

/* A stream of the mover; gives the end to write to. */
static int
add(uint32_t stream)
{
	int fd[2];

	cr_assert_eq(pipe2(fd, O_CLOEXEC), 0);
	cr_assert(mover_add(mover, stream, fd[0]));
	return fd[1];
}

/* A terminal in raw mode as stream 0; gives the end of the program. */
static int
add_tty(int *master)
{
	struct termios modes;
	int slave;

	cr_assert_eq(openpty(master, &slave, NULL, NULL, NULL), 0);
	cr_assert_eq(tcgetattr(slave, &modes), 0);
	cfmakeraw(&modes);
	cr_assert_eq(tcsetattr(slave, TCSANOW, &modes), 0);
	cr_assert_eq(fcntl(*master, F_SETFL, O_NONBLOCK), 0);
	cr_assert(mover_add_tty(mover, 0, *master));
	return slave;
}

static void
say(int fd, const char *text)
{
	cr_assert_eq(fd_write_all(fd, text, strlen(text)), 0);
}

static struct note
next_note(void)
{
	struct pollfd p = { .fd = notes.rd, .events = POLLIN };
	struct note note = { 0 };

	cr_assert_eq(poll(&p, 1, 20000), 1, "no note came");
	cr_assert_eq(notes_take(&notes, &note, 1), 1);
	return note;
}

static void
expect_note(enum note_kind kind, uint32_t stream)
{
	struct note note = next_note();

	cr_expect_eq(note.kind, kind, "got %d, not %d", note.kind, kind);
	cr_expect_eq(note.value, stream);
}

static int
next_descriptor(void)
{
	int fd = dup(dir);

	fd_close(fd);
	return fd;
}

static int
open_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) != -1;
	return count;
}

Test(mover, a_pipe_that_cannot_be_watched_stays_its_callers)
{
	int file = open("plain", O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	open_mover(1);
	cr_expect_not(mover_add(mover, 1, file)); /* epoll takes no files */
	cr_expect_eq(errno, EPERM);
	cr_expect_eq(share->slot[1].pipe, -1);
	fd_close(file);
}

Test(mover, a_mover_that_cannot_be_made_leaves_no_descriptor)
{
	struct mover_config config = { .share = share, .notes = &notes };
	int next = next_descriptor(), open = open_descriptors(), sys;
	struct rlimit files, few;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
	for (rlim_t room = 0; mover == NULL && room < 64; room++) {
		few = files;
		few.rlim_cur = (rlim_t)next + room;
		cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
		mover = mover_open(&config);
		sys = errno;
		cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
		if (mover == NULL) {
			cr_expect_eq(sys, EMFILE);
			cr_expect_eq(open_descriptors(), open);
		}
	}
	cr_expect_not_null(mover);
}

/* Stream 0 has a file, and goes on; 2 gets one without a name; 5 finds no room
 * for its own; 4 says nothing. */
Test(mover, without_its_folder_every_stream_still_ends)
{
	char text[64] = "";
	int w[6];

	open_mover(2);
	for (uint32_t i = 0; i < 6; i++)
		w[i] = i == 1 || i == 3 ? -1 : add(i);
	say(w[0], "one ");
	cr_assert_eq(mover_start(mover), 0);
	while (mover_bytes(mover, 0) < 4)
		poll(NULL, 0, 1);
	cr_assert_eq(unlinkat(dir, "rank-0000/stdout", 0), 0);
	cr_assert_eq(unlinkat(dir, "rank-0000", AT_REMOVEDIR), 0);
	cr_assert_eq(rmdir(folder), 0);
	say(w[2], "begins here");
	expect_note(NOTE_GONE, 2);
	say(w[0], "two");
	fd_close(w[0]);
	expect_note(NOTE_EOF, 0);
	fd_close(w[2]);
	expect_note(NOTE_EOF, 2);
	say(w[5], "lost");
	fd_close(w[5]);
	expect_note(NOTE_EOF, 5);
	cr_expect_eq(pread(share->slot[0].file, text, 63, 0), 7);
	cr_expect_str_eq(text, "one two");
	memset(text, 0, sizeof(text));
	cr_expect_eq(pread(share->slot[2].file, text, 63, 0), 11);
	cr_expect_str_eq(text, "begins here");
	cr_expect_str_eq(raw_lost_text(share, (char[RAW_LOST_MAX]){ 0 }),
		"xrun: 4 bytes came after the folder of the job was removed and are lost\n");
	fd_close(w[4]);
	expect_note(NOTE_EOF, 4);
}

/* Its file would begin in the middle. */
Test(mover, a_stream_whose_file_was_removed_is_counted)
{
	int w[2];

	open_mover(0);
	for (uint32_t i = 0; i < 2; i++)
		w[i] = add(2 * i);
	say(w[0], "saved");
	cr_assert_eq(mover_start(mover), 0);
	while (mover_bytes(mover, 0) < 5)
		poll(NULL, 0, 1);
	folder_remove();
	say(w[0], "lost");
	expect_note(NOTE_GONE, 0);
	for (int i = 0; i < 40; i++) /* more than a pipe takes */
		for (int k = 0; k < 100; k++)
			say(w[0], "all of these forty bytes are lost, too.\n");
	mover_drop(mover, 2);
	expect_note(NOTE_LEFT_OPEN, 2);
	expect_note(NOTE_EOF, 2);
	fd_close(w[0]);
	expect_note(NOTE_EOF, 0);
	cr_expect_eq(raw_lost(share, &(int){ 0 }), 4 + 160000);
	cr_expect_eq(mover_bytes(mover, 0), 5);
	fd_close(w[1]);
}

/* Its writer goes on, and nobody has to give it up. */
Test(mover, of_a_file_that_may_not_grow_the_rest_is_counted_at_once)
{
	const struct rlimit small = { .rlim_cur = 5, .rlim_max = 5 };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	int w, sys = 0;

	open_mover(1);
	w = add(0);
	cr_assert_eq(sigaction(SIGXFSZ, &ignore, NULL), 0);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	say(w, "saved");
	cr_assert_eq(mover_start(mover), 0);
	while (mover_bytes(mover, 0) < 5)
		poll(NULL, 0, 1);
	say(w, "not");
	expect_note(NOTE_FULL, 0);
	fd_close(w);
	expect_note(NOTE_EOF, 0);
	cr_expect_eq(raw_lost(share, &sys), 3);
	cr_expect_eq(sys, EFBIG);
}

/* A folder that cannot be made, and nobody waits for it any more. */
Test(mover, what_is_given_up_is_counted_with_its_reason)
{
	int w, sys = 0;

	open_mover(1);
	w = add(0);
	cr_assert_eq(symlink("elsewhere", "rank-0000"), 0);
	say(w, "text");
	cr_assert_eq(mover_start(mover), 0);
	expect_note(NOTE_FULL, 0);
	mover_drop(mover, 0);
	mover_drop(mover, 0);
	expect_note(NOTE_LEFT_OPEN, 0);
	expect_note(NOTE_ROOM, 0);
	expect_note(NOTE_EOF, 0);
	cr_expect_eq(raw_lost(share, &sys), 4);
	cr_expect_neq(sys, 0);
	fd_close(w);
}

static void
refuse_threads(void)
{
	cr_assert_eq(seccomp_refuse(SYS_clone3, ENOSYS), 0);
	cr_assert_eq(seccomp_refuse_flag(SYS_clone, CLONE_THREAD, EPERM), 0);
}

Test(mover, without_a_thread_the_loop_leaves_what_is_in_pipes_to_the_keeper)
{
	int w[3];

	open_mover(1);
	for (uint32_t i = 0; i < 3; i++)
		w[i] = add(i);
	say(w[0], "text");
	fd_close(w[2]);
	refuse_threads();
	cr_expect_eq(mover_drop(mover, 0), DROP_LEFT_OPEN);
	cr_expect_eq(mover_drop(mover, 0), DROP_LATER, "once");
	cr_expect_eq(mover_drop(mover, 1), DROP_LEFT_OPEN, "nothing is in it");
	cr_expect_eq(mover_drop(mover, 2), DROP_OVER, "nor has it a writer");
	cr_expect_eq(share->left, 1);
	cr_expect_eq(share->slot[1].pipe, -1);
	cr_expect_eq(access("rank-0000", F_OK), -1, "no file was touched");
	cr_expect_eq(raw_drain(share, 1000000000), 0);
	folder_expect("rank-0000/stdout", "text");
	for (int i = 0; i < 2; i++)
		fd_close(w[i]);
}

/* A sink of all streams of @share, which writes to @fd. */
static struct sink *
sink_of_share(int fd)
{
	static struct line_prefix prefix[6];
	static const bool shown[6] = { true, true, true, true, true, true };
	const struct sink_config config = {
		.fd = fd,
		.lines = true,
		.idle_ns = LINE_IDLE_NS,
		.dir = dir,
		.streams = 6,
		.prefix = prefix,
		.shown = shown,
		.notes = &notes,
	};
	struct sink *sink = sink_open(&config);

	cr_assert_not_null(sink);
	return sink;
}

/* The first thread is the mover's, the second one the sink's. The rank writes nothing more. */
Test(mover, a_sink_whose_thread_was_refused_gets_it_while_its_stream_is_silent)
{
	struct mover_config config = { .share = share, .notes = &notes };
	struct pollfd p = { .events = POLLIN };
	char text[64] = "";
	int fd[2], w, sys;

	cr_assert_eq(pipe2(fd, O_CLOEXEC), 0);
	p.fd = fd[0];
	config.sink[0] = sink_of_share(fd[1]);
	mover = mover_open(&config);
	cr_assert_not_null(mover);
	cr_assert_eq(fault_arm("thread.start:fail=EAGAIN;nth=2", NULL), XR_OK);
	w = add(0);
	say(w, "line\n");
	cr_assert_eq(mover_start(mover), 0);
	cr_assert_eq(poll(&p, 1, 20000), 1, "nothing is shown");
	cr_expect_eq(read(fd[0], text, sizeof(text) - 1), 5);
	cr_expect_str_eq(text, "line\n");
	fd_close(w);
	expect_note(NOTE_EOF, 0);
	cr_expect_eq(sink_finish(config.sink[0], &sys), SINK_LATER);
	expect_note(NOTE_SINK_DONE, 0);
}

/* It reads the notes itself. */
Test(mover, the_loop_tells_itself_nothing)
{
	uint32_t ended[MOVER_PEEK], n = 0, streams = 0;
	struct note note;

	open_mover(1);
	for (uint32_t i = 0; i < 3; i++)
		fd_close(add(i));
	cr_expect_not(mover_peek(mover, ended, &n));
	for (uint32_t i = 0; i < n; i++)
		streams |= 1u << ended[i];
	cr_expect_eq(streams, 7);
	cr_expect_eq(notes_take(&notes, &note, 1), 0);
}

/* It may be made for a stream that is given up, without a byte of any; and it may
 * have heard of that before the loop asks. An end told by both would count for
 * two streams. */
Test(mover, what_the_thread_has_the_loop_does_not_end)
{
	uint32_t ended[MOVER_PEEK], n = 1;
	int w[2];

	open_mover(1);
	w[0] = add(0);
	w[1] = add(1);
	cr_expect_eq(mover_drop(mover, 0), DROP_LATER, "there is a thread");
	expect_note(NOTE_LEFT_OPEN, 0);
	expect_note(NOTE_EOF, 0);
	cr_expect(mover_peek(mover, ended, &n), "the loop need not ask again");
	cr_expect_eq(n, 0);
	for (int i = 0; i < 2; i++)
		fd_close(w[i]);
}

/* The writer of stream 0 exited, and its bytes were not moved before it is given up. This
 * thread is the mover's. */
Test(mover, a_stream_without_a_writer_is_moved_and_not_left_open)
{
	struct note note;
	int w[2];

	open_mover(1);
	for (uint32_t i = 0; i < 2; i++) {
		w[i] = add(i);
		say(w[i], "text");
	}
	fd_close(w[0]);
	for (uint32_t i = 0; i < 2; i++)
		move_drop(mover, i);
	expect_note(NOTE_LEFT_OPEN, 1);
	cr_expect_eq(notes_take(&notes, &note, 1), 0);
	notes_flush(&notes, &mover->ended);
	for (uint32_t i = 0; i < 2; i++)
		expect_note(NOTE_EOF, i);
	folder_expect("rank-0000/stdout", "text");
	folder_expect("rank-0000/stderr", "text");
	fd_close(w[1]);
}

/* As where xrun was begun without an input. This thread is the mover's. */
Test(mover, a_file_may_be_descriptor_0)
{
	int w, file = open("plain", O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	open_mover(1);
	w = add(0);
	say(w, "text");
	cr_assert_eq(dup2(file, STDIN_FILENO), STDIN_FILENO);
	share->slot[0].file = STDIN_FILENO;
	fd_close(w);
	move_drop(mover, 0);
	notes_flush(&notes, &mover->ended);
	expect_note(NOTE_EOF, 0);
	cr_expect_eq(mover_bytes(mover, 0), 4);
	folder_expect("plain", "text");
	cr_expect_eq(access("rank-0000", F_OK), -1);
	fd_close(file);
}

/* Its pipe holds less than the terminal. This thread is the mover's. */
static void
give_up_terminal(bool is_open)
{
	static char text[6001];
	int master, slave;

	memset(text, 'x', 6000);
	open_mover(1);
	slave = add_tty(&master);
	cr_assert_eq(fcntl(share->slot[0].pipe, F_SETPIPE_SZ, 4096), 4096);
	say(slave, text);
	if (!is_open)
		fd_close(slave);
	move_drop(mover, 0);
	if (is_open)
		expect_note(NOTE_LEFT_OPEN, 0);
	notes_flush(&notes, &mover->ended);
	expect_note(NOTE_EOF, 0);
	cr_expect_eq(mover_bytes(mover, 0), 6000);
	if (is_open)
		fd_close(slave);
}

Test(mover, a_closed_terminal_that_is_given_up_is_moved_whole)
{
	give_up_terminal(false);
}

Test(mover, an_open_terminal_that_is_given_up_is_moved_whole)
{
	give_up_terminal(true);
}

/* More than the pipe behind it holds; the last of it when nobody has it open
 * any more. */
Test(mover, a_terminal_is_moved_to_its_end)
{
	char line[101], text[101];
	int master, slave, fd;

	memset(line, 'x', 99);
	line[99] = '\n';
	open_mover(1);
	slave = add_tty(&master);
	cr_assert_eq(mover_start(mover), 0);
	for (int i = 0; i < 2000; i++)
		cr_assert_eq(fd_write_all(slave, line, 100), 0);
	fd_close(slave);
	expect_note(NOTE_EOF, 0);
	cr_expect_eq(mover_bytes(mover, 0), 200000);
	fd = open("rank-0000/stdout", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < 2000; i++) {
		cr_assert_eq(fd_read_some(fd, text, 100), 100);
		cr_assert_eq(memcmp(text, line, 100), 0);
	}
	fd_close(fd);
}

Test(mover, a_silent_terminal_makes_no_file)
{
	int master, slave;

	open_mover(1);
	slave = add_tty(&master);
	cr_assert_eq(mover_start(mover), 0);
	fd_close(slave);
	expect_note(NOTE_EOF, 0);
	cr_expect_eq(access("rank-0000", F_OK), -1);
}

Test(mover, a_terminal_without_room_loses_nothing_until_it_is_given_up)
{
	int master, slave, sys;

	open_mover(1);
	cr_assert_eq(symlink("elsewhere", "rank-0000"), 0);
	slave = add_tty(&master);
	say(slave, "text");
	cr_assert_eq(mover_start(mover), 0);
	expect_note(NOTE_FULL, 0);
	cr_assert_eq(unlink("rank-0000"), 0);
	expect_note(NOTE_ROOM, 0);
	say(slave, "more");
	fd_close(slave);
	expect_note(NOTE_EOF, 0);
	cr_expect_eq(raw_lost(share, &sys), 0);
	cr_expect_eq(mover_bytes(mover, 0), 8);
}
