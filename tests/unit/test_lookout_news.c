/* SPDX-License-Identifier: Apache-2.0 */
/* test_lookout_news.c - what a lookout tells of, and without what it looks by itself
 * (launcher/cmd/lookout.c). */
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include <sys/file.h>
#include <sys/inotify.h>

#include "launcher/cmd/lookout.h"
#include "launcher/log/thread.h"
#include "tests/unit/folder.h"
#include "tests/unit/short_memory.h"
#include "tests/unit/sys_hook.h"

int __real_poll(struct pollfd *p, nfds_t n, int ms);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms);
int __real_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);
int __wrap_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

/* Of poll(): what it says of standard output, or that it fails; what it is given. */
static short end_of_stdout;
static bool poll_fails;
static bool made_up; /* it waits for nothing */
static int asked_ms;
static bool no_thread;

int
__wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	int got = poll_fails ? -1 : __real_poll(p, n, made_up ? 0 : ms);

	asked_ms = ms;
	if (poll_fails)
		errno = EINTR;
	else if (end_of_stdout != 0)
		p[0].revents = end_of_stdout;
	return got;
}

int
__wrap_thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	return no_thread ? EAGAIN : __real_thread_start(thread, run, arg);
}

TestSuite(lookout_news, .init = folder_make, .fini = folder_remove);

/* The number of descriptors that are open. */
static int
open_fds(void)
{
	return folder_entries("/proc/self/fd");
}

/* What lookout_fn was told. */
static struct {
	int folder;
	char name[NAME_MAX + 1];
} told[8];
static int told_count;

static void
note(void *ctx, int at, const char *name)
{
	NEED(ctx == told);
	NEED(told_count < 8);
	told[told_count].folder = at;
	snprintf(told[told_count++].name, sizeof(told[0].name), "%s", name);
}

static enum lookout_news
wait_for(struct lookout *w, bool patient)
{
	told_count = 0;
	return lookout_wait(w, patient, note, told);
}

static void
close_all(struct lookout *w)
{
	lookout_close(w);
	EXPECT_EQ(w->inotify, -1);
	close(w->over);
}

/* --- opening ---------------------------------------------------------------- */

static bool splice_tells;

/* A kernel that tells of splice(2), or does not; and a folder that has files without
 * a name. */
static long
new_kernel(int nr, const long arg[5])
{
	char c;

	if (nr == SYS_openat && (arg[2] & O_TMPFILE) == O_TMPFILE)
		return open("spliced", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	if (nr != SYS_splice)
		return 0;
	if (read((int)arg[0], &c, 1) != 1 ||
		(splice_tells && write((int)arg[2], &c, 1) != 1))
		return -EIO;
	return 1;
}

static void
expect_blind(bool tells)
{
	struct lookout w;
	int before = open_fds();

	splice_tells = tells;
	EXPECT(lookout_open(&w));
	EXPECT_EQ(w.blind, !tells);
	EXPECT_EQ(w.also_ms, -1);
	for (int i = 0; i < LOOKOUT_ALSO; i++)
		EXPECT_EQ(w.also[i].fd, -1);
	EXPECT_EQ(fcntl(w.inotify, F_GETFD), FD_CLOEXEC);
	EXPECT_EQ(fcntl(w.over, F_GETFD), FD_CLOEXEC);
	EXPECT((fcntl(w.inotify, F_GETFL) & O_NONBLOCK) != 0);
	EXPECT((fcntl(w.over, F_GETFL) & O_NONBLOCK) != 0);
	EXPECT_EQ(open_fds(), before + 2);
	/* Nothing is left of the trial. */
	EXPECT_EQ(wait_for(&w, false), LOOKOUT_CHANGED);
	EXPECT_EQ(told_count, tells ? 0 : 1);
	close_all(&w);
	EXPECT_EQ(open_fds(), before);
}

FORKED_TEST(lookout_news, it_is_blind_if_the_kernel_does_not_tell_of_splice)
{
	sys_trap(SYS_openat);
	sys_trap(SYS_splice);
	sys_hook = new_kernel;
	expect_blind(true);
	expect_blind(false);
}

static unsigned fails_at, calls;
static int failed_nr;

static long
fail_at(int nr, const long arg[5])
{
	if (++calls != fails_at)
		return new_kernel(nr, arg);
	failed_nr = nr;
	return -EMFILE;
}

/* A watch that cannot be removed stays until the lookout is closed. */
FORKED_TEST(lookout_news, where_a_call_fails_it_is_blind_or_is_not_opened)
{
	static const int nrs[] = { SYS_openat, SYS_splice, SYS_pipe2,
		SYS_inotify_init1, SYS_inotify_add_watch, SYS_eventfd2,
		SYS_inotify_rm_watch };
	int before = open_fds();
	unsigned met = 0;
	struct lookout w;
	bool opened;

	for (unsigned i = 0; i < sizeof(nrs) / sizeof(nrs[0]); i++)
		sys_trap(nrs[i]);
	splice_tells = true;
	for (fails_at = 1; fails_at < 20; fails_at++) {
		failed_nr = -1;
		calls = 0;
		sys_hook = fail_at;
		opened = lookout_open(&w);
		sys_hook = NULL;
		met += failed_nr != -1;
		EXPECT_EQ(opened, failed_nr != SYS_eventfd2);
		EXPECT_EQ(w.blind,
			failed_nr != -1 && failed_nr != SYS_eventfd2 &&
				failed_nr != SYS_inotify_rm_watch);
		EXPECT_EQ(w.inotify == -1,
			failed_nr == SYS_eventfd2 ||
				failed_nr == SYS_inotify_init1);
		if (opened)
			close_all(&w);
		EXPECT_EQ(open_fds(), before);
	}
	EXPECT_EQ(met, sizeof(nrs) / sizeof(nrs[0]));
}

/* --- folders ---------------------------------------------------------------- */

static long
no_room(int nr, const long arg[5])
{
	(void)nr;
	(void)arg;
	return -ENOSPC;
}

FORKED_TEST(lookout_news, files_that_are_made_grow_or_are_renamed_are_told_of)
{
	struct lookout w;
	int a, b, fd;

	NEED(lookout_open(&w));
	w.blind = false;
	NEED(mkdir("a", 0700) == 0 && mkdir("b", 0700) == 0);
	a = lookout_folder(&w, "a");
	b = lookout_folder(&w, "b");
	EXPECT(a != -1 && b != -1 && a != b);
	fd = open("a/new", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	EXPECT_EQ(wait_for(&w, true), LOOKOUT_CHANGED);
	EXPECT_EQ(told_count, 1);
	EXPECT_EQ(told[0].folder, a);
	EXPECT_STR(told[0].name, "new");
	EXPECT_EQ(write(fd, "x", 1), 1);
	EXPECT_EQ(rename("a/new", "b/old"), 0);
	EXPECT_EQ(wait_for(&w, true), LOOKOUT_CHANGED);
	EXPECT_EQ(told_count, 2);
	EXPECT_EQ(told[0].folder, a);
	EXPECT_STR(told[0].name, "new");
	EXPECT_EQ(told[1].folder, b);
	EXPECT_STR(told[1].name, "old");
	close(fd);
	EXPECT_EQ(unlink("b/old"), 0);
	EXPECT_EQ(wait_for(&w, false), LOOKOUT_CHANGED);
	EXPECT_EQ(told_count, 0);
	close_all(&w);
}

FORKED_TEST(lookout_news, it_is_blind_if_a_folder_cannot_be_watched)
{
	struct lookout w;

	NEED(lookout_open(&w));
	w.blind = false;
	folder_write("file", "", 0600);
	EXPECT_EQ(lookout_folder(&w, "nowhere"), -1);
	EXPECT_EQ(lookout_folder(&w, "file"), -1);
	EXPECT(!w.blind);
	sys_trap(SYS_inotify_add_watch);
	sys_hook = no_room;
	EXPECT_EQ(lookout_folder(&w, "."), -1);
	EXPECT(w.blind);
	sys_hook = NULL;
	close_all(&w);
	EXPECT_EQ(lookout_folder(&w, "."), -1);
}

/* --- the lock --------------------------------------------------------------- */

static int
take_lock(void)
{
	int fd = open("lock", O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	NEED(fd != -1 && flock(fd, LOCK_EX) == 0);
	return fd;
}

static unsigned interrupted;

static long
interrupt(int nr, const long arg[5])
{
	(void)nr;
	(void)arg;
	return __atomic_fetch_add(&interrupted, 1, __ATOMIC_SEQ_CST) < 2 ?
		-EINTR :
		0;
}

FORKED_TEST(lookout_news, it_is_over_when_the_lock_is_free)
{
	struct lookout w;
	int before, lock;

	NEED(lookout_open(&w));
	w.blind = false;
	before = open_fds();
	for (int i = 0; i < 2; i++) {
		lock = take_lock();
		if (i == 1) {
			sys_trap(SYS_flock);
			sys_hook = interrupt;
		}
		lookout_lock(&w, ".");
		EXPECT_EQ(wait_for(&w, false), LOOKOUT_CHANGED);
		close(lock);
		EXPECT_EQ(wait_for(&w, true), LOOKOUT_OVER);
		EXPECT_EQ(wait_for(&w, false), LOOKOUT_CHANGED);
		EXPECT_EQ(open_fds(), before);
	}
	EXPECT_EQ(interrupted, 3);
	close_all(&w);
}

FORKED_TEST(lookout_news, without_a_lock_it_is_over_at_once)
{
	struct lookout w;
	int before;

	NEED(lookout_open(&w));
	w.blind = false;
	before = open_fds();
	lookout_lock(&w, ".");
	EXPECT_EQ(wait_for(&w, false), LOOKOUT_OVER);
	EXPECT(!w.blind);
	/* No link is followed. */
	folder_write("file", "", 0600);
	NEED(symlink("file", "lock") == 0);
	lookout_lock(&w, ".");
	EXPECT_EQ(wait_for(&w, false), LOOKOUT_OVER);
	EXPECT_EQ(open_fds(), before);
	/* Who is blind looks often enough. */
	w.blind = true;
	lookout_lock(&w, ".");
	EXPECT_EQ(wait_for(&w, false), LOOKOUT_CHANGED);
	close_all(&w);
}

FORKED_TEST(lookout_news,
	without_a_thread_or_memory_the_lock_is_looked_at_again)
{
	struct lookout w;
	int lock, before;

	NEED(lookout_open(&w));
	lock = take_lock();
	before = open_fds();
	w.blind = false;
	until_short = 1;
	lookout_lock(&w, ".");
	until_short = 0;
	EXPECT(!w.blind);
	EXPECT_EQ(wait_for(&w, false), LOOKOUT_OVER);
	no_thread = true;
	lookout_lock(&w, ".");
	EXPECT(w.blind);
	EXPECT_EQ(wait_for(&w, false), LOOKOUT_CHANGED);
	EXPECT_EQ(open_fds(), before);
	close(lock);
	close_all(&w);
}

/* --- waiting ---------------------------------------------------------------- */

static void
expect_ms(bool blind, int also_ms, int want)
{
	struct lookout w = { .inotify = -1, .over = -1, .blind = blind };

	for (int i = 0; i < LOOKOUT_ALSO; i++)
		w.also[i].fd = -1;
	w.also_ms = also_ms;
	EXPECT_EQ(wait_for(&w, true), LOOKOUT_CHANGED);
	EXPECT_EQ(asked_ms, want);
	EXPECT_EQ(told_count, blind);
	EXPECT(!blind || told[0].folder == LOOKOUT_ALL);
	EXPECT(!blind || told[0].name[0] == '\0');
	EXPECT_EQ(wait_for(&w, false), LOOKOUT_CHANGED);
	EXPECT_EQ(asked_ms, 0);
}

FORKED_TEST(lookout_news, who_is_blind_looks_ten_times_a_second)
{
	made_up = true;
	expect_ms(true, -1, LOOKOUT_BLIND_MS);
	expect_ms(true, 0, 0);
	expect_ms(true, LOOKOUT_BLIND_MS - 1, LOOKOUT_BLIND_MS - 1);
	expect_ms(true, LOOKOUT_BLIND_MS + 1, LOOKOUT_BLIND_MS);
	expect_ms(false, -1, -1);
	expect_ms(false, 0, 0);
	expect_ms(false, LOOKOUT_BLIND_MS + 1, LOOKOUT_BLIND_MS + 1);
}

/* A lookout whose folders are told of by a pipe: the end for writing. */
static int
open_made_up(struct lookout *w)
{
	int fd[2];

	NEED(lookout_open(w));
	w->blind = false;
	NEED(pipe2(fd, O_CLOEXEC | O_NONBLOCK) == 0);
	lookout_close(w);
	w->inotify = fd[0];
	return fd[1];
}

FORKED_TEST(lookout_news, each_event_of_a_read_is_told_and_lost_ones_may_be_any)
{
	const struct inotify_event modified = { .wd = 3,
		.mask = IN_MODIFY,
		.len = 16 };
	const struct inotify_event lost = { .wd = 4,
		.mask = IN_Q_OVERFLOW | IN_MODIFY };
	char data[sizeof(modified) + 16 + sizeof(lost)] = { 0 };
	struct lookout w;
	int to = open_made_up(&w);

	memcpy(data, &modified, sizeof(modified));
	memcpy(data + sizeof(modified), "stdout", 6);
	memcpy(data + sizeof(modified) + 16, &lost, sizeof(lost));
	EXPECT_EQ(write(to, data, sizeof(data)), (int)sizeof(data));
	EXPECT_EQ(wait_for(&w, true), LOOKOUT_CHANGED);
	EXPECT_EQ(told_count, 2);
	EXPECT_EQ(told[0].folder, 3);
	EXPECT_STR(told[0].name, "stdout");
	EXPECT_EQ(told[1].folder, LOOKOUT_ALL);
	EXPECT_STR(told[1].name, "");
	close(to);
	close_all(&w);
}

FORKED_TEST(lookout_news, what_else_ends_a_wait_is_seen)
{
	struct lookout w;
	int to = open_made_up(&w), fd[2];

	NEED(pipe2(fd, O_CLOEXEC) == 0);
	w.also[0].revents = w.also[LOOKOUT_ALSO - 1].revents = POLLIN;
	EXPECT_EQ(wait_for(&w, false), LOOKOUT_CHANGED);
	EXPECT_EQ(w.also[0].revents, 0);
	EXPECT_EQ(w.also[LOOKOUT_ALSO - 1].revents, 0);
	w.also[LOOKOUT_ALSO - 1] =
		(struct pollfd){ .fd = fd[0], .events = POLLIN };
	EXPECT_EQ(write(fd[1], "x", 1), 1);
	EXPECT_EQ(wait_for(&w, true), LOOKOUT_CHANGED);
	EXPECT_EQ(w.also[LOOKOUT_ALSO - 1].revents, POLLIN);
	EXPECT_EQ(told_count, 0);
	/* If poll() is interrupted nothing is known. */
	poll_fails = w.blind = true;
	EXPECT_EQ(wait_for(&w, true), LOOKOUT_CHANGED);
	EXPECT_EQ(told_count, 0);
	EXPECT_EQ(w.also[LOOKOUT_ALSO - 1].revents, 0);
	close(fd[0]);
	close(fd[1]);
	close(to);
	close_all(&w);
}

FORKED_TEST(lookout_news, the_end_of_standard_output_ends_a_wait)
{
	static const short ends[] = { POLLERR, POLLHUP, POLLERR | POLLHUP };
	struct lookout w;
	int to = open_made_up(&w);

	w.blind = true;
	for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		end_of_stdout = ends[i];
		EXPECT_EQ(wait_for(&w, false), LOOKOUT_CLOSED);
		EXPECT_EQ(told_count, 0);
	}
	end_of_stdout = POLLIN;
	EXPECT_EQ(wait_for(&w, false), LOOKOUT_CHANGED);
	close(to);
	close_all(&w);
}
