/* SPDX-License-Identifier: Apache-2.0 */
/* test_lookout.c - sleeping until files of a job change, or the job is over
 * (launcher/cmd/lookout.c). */
#include <sys/file.h>

#include "launcher/cmd/lookout.h"
#include "tests/unit/folder.h"
#include "tests/unit/forked.h"

TestSuite(lookout, .init = folder_make, .fini = folder_remove, .timeout = 120);

static struct lookout w;
static int out[2]; /* standard output is its second end */

/* Of the next waits: nobody waits, or they fail; how long they would be. */
static bool at_once, fails;
static int asked_ms;

int __real_poll(struct pollfd *p, nfds_t n, int ms);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms);

int
__wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	asked_ms = ms;
	if (!fails)
		return __real_poll(p, n, at_once ? 0 : ms);
	for (nfds_t i = 0; i < n; i++)
		p[i].revents = POLLIN | POLLHUP;
	errno = EINTR;
	return -1;
}

/* What was told of, besides LOOKOUT_ALL. */
static unsigned told, told_all;
static int told_folder;
static char told_name[64];

static void
tell(void *ctx, int number, const char *name)
{
	EXPECT(ctx == &w);
	if (number == LOOKOUT_ALL) {
		told_all++;
		EXPECT_STR(name, "");
		return;
	}
	told++;
	told_folder = number;
	snprintf(told_name, sizeof(told_name), "%s", name);
}

/* With a kernel that tells of everything, or with one that does not. */
static void
open_it(bool blind)
{
	NEED(pipe2(out, O_CLOEXEC) == 0);
	NEED(dup2(out[1], STDOUT_FILENO) == STDOUT_FILENO);
	close(out[1]);
	NEED(lookout_open(&w));
	w.blind = blind;
	told = told_all = 0;
}

static enum lookout_news
look(void)
{
	return lookout_wait(&w, false, tell, &w);
}

static void
make_file(const char *name)
{
	int fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	NEED(fd != -1);
	close(fd);
}

FORKED_TEST(lookout, what_else_ends_a_wait_is_told_to_its_owner)
{
	int fd[2];

	open_it(false);
	NEED(pipe2(fd, O_CLOEXEC) == 0);
	for (int i = 0; i < LOOKOUT_ALSO; i++)
		EXPECT_EQ(w.also[i].fd, -1);
	w.also[1] = (struct pollfd){ fd[0], POLLIN, 0 };
	w.also[3] = (struct pollfd){ fd[1], POLLOUT, 0 };
	EXPECT_EQ(look(), LOOKOUT_CHANGED);
	EXPECT_EQ(w.also[1].revents, 0);
	EXPECT_EQ(w.also[3].revents, POLLOUT);
	NEED(write(fd[1], "x", 1) == 1);
	EXPECT_EQ(look(), LOOKOUT_CHANGED);
	EXPECT_EQ(w.also[1].fd, fd[0]);
	EXPECT_EQ(w.also[1].events, POLLIN);
	EXPECT_EQ(w.also[1].revents, POLLIN);
	EXPECT_EQ(w.also[3].fd, fd[1]);
	for (int i = 0; i < LOOKOUT_ALSO; i += 2) {
		EXPECT_EQ(w.also[i].fd, -1);
		EXPECT_EQ(w.also[i].revents, 0);
	}
	/* The end of one of them is not that of standard output. */
	w.also[0] = w.also[1];
	close(fd[1]);
	w.also[3].fd = -1;
	EXPECT_EQ(look(), LOOKOUT_CHANGED);
	EXPECT(w.also[0].revents & POLLHUP);
	EXPECT_EQ(told + told_all, 0);
	lookout_close(&w);
}

FORKED_TEST(lookout, the_end_of_standard_output_is_told_before_all_else)
{
	open_it(true);
	NEED(lookout_folder(&w, ".") != -1);
	make_file("a");
	close(out[0]);
	EXPECT_EQ(lookout_wait(&w, true, tell, &w), LOOKOUT_CLOSED);
	EXPECT_EQ(told + told_all, 0);
	lookout_close(&w);
}

FORKED_TEST(lookout, a_file_is_told_of_with_its_folder)
{
	int here, there;

	open_it(false);
	NEED(mkdir("there", 0700) == 0);
	here = lookout_folder(&w, ".");
	there = lookout_folder(&w, "there");
	EXPECT(here != -1 && there != -1 && here != there);
	EXPECT_EQ(look(), LOOKOUT_CHANGED);
	EXPECT_EQ(told + told_all, 0);
	make_file("a");
	EXPECT_EQ(lookout_wait(&w, true, tell, &w), LOOKOUT_CHANGED);
	EXPECT_EQ(told, 1);
	EXPECT_EQ(told_folder, here);
	EXPECT_STR(told_name, "a");
	make_file("b");
	make_file("there/c");
	EXPECT_EQ(look(), LOOKOUT_CHANGED);
	EXPECT_EQ(told, 3);
	EXPECT_EQ(told_folder, there);
	EXPECT_STR(told_name, "c");
	EXPECT_EQ(told_all, 0);
	/* Folders that are not there make nobody blind. */
	EXPECT_EQ(lookout_folder(&w, "none"), -1);
	EXPECT_EQ(lookout_folder(&w, "a"), -1);
	EXPECT(!w.blind);
	lookout_close(&w);
}

FORKED_TEST(lookout, who_is_blind_looks_at_all_again)
{
	int fd;

	open_it(true);
	EXPECT_EQ(look(), LOOKOUT_CHANGED);
	EXPECT_EQ(told_all, 1);
	EXPECT_EQ(lookout_wait(&w, true, tell, &w), LOOKOUT_CHANGED);
	EXPECT_EQ(told_all, 2);
	EXPECT_EQ(told, 0);
	/* Nothing tells of folders. */
	fd = w.inotify;
	w.inotify = -1;
	EXPECT_EQ(lookout_folder(&w, "."), -1);
	w.inotify = fd;
	lookout_close(&w);
	EXPECT_EQ(w.inotify, -1);
	EXPECT_EQ(fcntl(fd, F_GETFD), -1);
	EXPECT(fcntl(w.over, F_GETFD) != -1);
}

FORKED_TEST(lookout, a_lock_that_is_free_is_told_of_once)
{
	int lock;

	open_it(false);
	make_file("lock");
	lock = open("lock", O_RDWR | O_CLOEXEC);
	NEED(flock(lock, LOCK_EX) == 0);
	lookout_lock(&w, folder);
	EXPECT_EQ(look(), LOOKOUT_CHANGED);
	NEED(flock(lock, LOCK_UN) == 0);
	EXPECT_EQ(lookout_wait(&w, true, tell, &w), LOOKOUT_OVER);
	EXPECT_EQ(look(), LOOKOUT_CHANGED);
	EXPECT(!w.blind);
	lookout_close(&w);
}

/* Whoever is told looks for himself; who is blind looks in any case. */
FORKED_TEST(lookout, a_lock_that_is_not_there_is_told_of_unless_one_is_blind)
{
	open_it(false);
	lookout_lock(&w, folder);
	EXPECT_EQ(look(), LOOKOUT_OVER);
	EXPECT(!w.blind);
	w.blind = true;
	lookout_lock(&w, folder);
	EXPECT_EQ(look(), LOOKOUT_CHANGED);
	lookout_close(&w);
}

FORKED_TEST(lookout,
	a_wait_is_as_long_as_its_owner_says_and_short_for_the_blind)
{
	static const struct {
		bool blind, patient;
		int also_ms, ms;
	} row[] = {
		{ false, true, -1, -1 },
		{ false, true, 0, 0 },
		{ false, true, 70000, 70000 },
		{ false, false, -1, 0 },
		{ false, false, 70000, 0 },
		{ true, true, -1, LOOKOUT_BLIND_MS },
		{ true, true, 0, 0 },
		{ true, true, LOOKOUT_BLIND_MS - 1, LOOKOUT_BLIND_MS - 1 },
		{ true, true, LOOKOUT_BLIND_MS + 1, LOOKOUT_BLIND_MS },
		{ true, false, -1, 0 },
	};

	open_it(false);
	EXPECT_EQ(w.also_ms, -1);
	at_once = true;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		w.blind = row[i].blind;
		w.also_ms = row[i].also_ms;
		lookout_wait(&w, row[i].patient, tell, &w);
		if (asked_ms != row[i].ms)
			forked_note(__LINE__, "row %zu: %d ms", i, asked_ms);
	}
	lookout_close(&w);
}

FORKED_TEST(lookout, a_wait_that_is_interrupted_tells_nothing)
{
	open_it(true);
	fails = true;
	w.also[2] = (struct pollfd){ out[0], POLLIN, POLLIN };
	EXPECT_EQ(lookout_wait(&w, true, tell, &w), LOOKOUT_CHANGED);
	for (int i = 0; i < LOOKOUT_ALSO; i++)
		EXPECT_EQ(w.also[i].revents, 0);
	EXPECT_EQ(told + told_all, 0);
	lookout_close(&w);
}
