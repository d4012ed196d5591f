/* SPDX-License-Identifier: Apache-2.0 */
/* test_stdin_all.c - --stdin all: bytes from one descriptor to all ranks. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <criterion/criterion.h>

#include "launcher/keeper/own_tty.h"
#include "launcher/log/thread.h"
#include "launcher/sup/stdin_all.h"
#include "tests/unit/short_memory.h"

#define MOST (64 * 1024) /* that is read at once, and that a pipe holds */

static struct stdin_all *all;
static int rank[3]; /* what each reads */
static int in;      /* what xrun reads */
static int feed;    /* whoever writes that */

static bool is_tty;
static bool is_ours[8]; /* one answer after the other */
static unsigned asked;

bool __wrap_own_tty_is_stdin(void);
bool __wrap_own_tty_is_ours(void);
int __wrap_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

static pthread_t reader;

/* One that can be waited for. */
int
__wrap_thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	int sys = pthread_create(thread, NULL, run, arg);

	reader = *thread;
	return sys;
}

bool
__wrap_own_tty_is_stdin(void)
{
	return is_tty;
}

bool
__wrap_own_tty_is_ours(void)
{
	return asked < 8 && is_ours[asked++];
}

static _Atomic bool wrong; /* ranks that lack nothing are waited for */
static _Atomic int waited; /* poll's last patience that was not for ever */

int __real_poll(struct pollfd *p, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *p, nfds_t count, int timeout);

int
__wrap_poll(struct pollfd *p, nfds_t count, int timeout)
{
	bool reads = p[count - 1].fd == in;

	for (nfds_t i = 0; i + 1 < count; i++)
		wrong = wrong || (reads && p[i].events != 0);
	if (count != 4 || p[3].events != POLLIN)
		wrong = true;
	if (timeout != -1)
		waited = timeout;
	return __real_poll(p, count, timeout != -1 ? 1 : timeout);
}

/* Of three ranks, the first @count are added. */
static void
begin(uint32_t count)
{
	int fd[2];

	alarm(20); /* ends what hangs */
	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	cr_assert_eq(pipe2(fd, O_CLOEXEC), 0);
	in = fd[0];
	feed = fd[1];
	all = stdin_all_open(3, in);
	cr_assert_not_null(all);
	for (uint32_t r = 0; r < 3; r++)
		cr_expect_not(stdin_all_has(all, r));
	for (uint32_t r = 0; r < count; r++) {
		rank[r] = stdin_all_add(all, r);
		cr_assert_neq(rank[r], -1);
		cr_expect(stdin_all_has(all, r));
		cr_expect_neq(fcntl(rank[r], F_GETFD) & FD_CLOEXEC, 0);
		cr_expect_eq(fcntl(rank[r], F_GETFL) & O_NONBLOCK, 0);
	}
}

static void
put(const char *text)
{
	cr_assert_eq(write(feed, text, strlen(text)), (ssize_t)strlen(text));
}

/* Rank @r reads @want, and what is behind it comes later. */
static void
expect(uint32_t r, const char *want)
{
	char text[100];
	size_t len = strlen(want), have = 0;
	ssize_t n = 1;

	while (have < len && n > 0) {
		n = read(rank[r], text + have, len - have);
		have += n > 0 ? (size_t)n : 0;
	}
	cr_expect_eq(have, len, "rank %u", r);
	cr_expect_eq(memcmp(text, want, have), 0, "rank %u", r);
}

/* @fd comes to its end. */
static void
expect_end(int fd)
{
	char byte;

	cr_expect_eq(read(fd, &byte, 1), 0);
}

static void
await_over(void)
{
	cr_assert_eq(pthread_join(reader, NULL), 0);
	cr_expect_not(wrong);
}

/* Is what xrun reads still what it was? If not, it is /dev/null, and who writes
 * learns that nobody reads. */
static bool
is_kept(void)
{
	struct pollfd p = { .fd = feed };
	struct stat st;

	cr_assert_eq(fstat(in, &st), 0);
	cr_expect_eq(__real_poll(&p, 1, 0), S_ISFIFO(st.st_mode) ? 0 : 1);
	return S_ISFIFO(st.st_mode);
}

Test(stdin_all, all_ranks_have_all_bytes_and_the_end)
{
	begin(3);
	put("first ");
	cr_assert_eq(stdin_all_start(all, false), 0);
	for (uint32_t r = 0; r < 3; r++)
		expect(r, "first ");
	put("second");
	for (uint32_t r = 3; r > 0; r--)
		expect(r - 1, "second");
	put("3"); /* no more than a byte */
	for (uint32_t r = 0; r < 3; r++)
		expect(r, "3");
	put("fourth");
	for (uint32_t r = 0; r < 3; r++)
		expect(r, "fourth");
	close(feed);
	for (uint32_t r = 0; r < 3; r++)
		expect_end(rank[r]);
	await_over();
	cr_expect_eq(stdin_all_sys(all), 0);
}

Test(stdin_all, a_rank_that_was_not_added_is_none)
{
	begin(2);
	cr_expect_not(stdin_all_has(all, 2));
	put("word");
	cr_assert_eq(stdin_all_start(all, false), 0);
	expect(0, "word");
	expect(1, "word");
	close(rank[0]);
	put("more");
	expect(1, "more");
	close(rank[1]);
	await_over();
	cr_expect_not(is_kept());
	cr_expect_eq(stdin_all_sys(all), 0);
}

Test(stdin_all, of_the_last_rank_that_closes_the_input_is_told)
{
	begin(3);
	cr_assert_eq(stdin_all_start(all, false), 0);
	for (uint32_t r = 0; r < 3; r++)
		close(rank[r]);
	await_over();
	cr_expect_not(is_kept());
	expect_end(in);
	cr_expect_neq(fcntl(in, F_GETFL) & O_ACCMODE, O_WRONLY);
}

/* Puts @bytes, and the last @readers ranks read until each has @want in @got. */
static void
pump(size_t bytes, uint32_t readers, size_t want, size_t got[3])
{
	static char block[MOST];
	bool more = true;

	memset(block, 'a', sizeof(block));
	while (more) {
		struct pollfd p[4] = { { bytes > 0 ? feed : -1, POLLOUT, 0 } };

		for (uint32_t r = 0; r < 3; r++)
			p[r + 1] = (struct pollfd){ -1, POLLIN, 0 };
		for (uint32_t r = 3 - readers; r < 3; r++)
			p[r + 1].fd = got[r] < want ? rank[r] : -1;
		cr_assert_gt(__real_poll(p, 4, -1), 0);
		if (p[0].revents != 0) {
			ssize_t n = write(feed, block, bytes);

			bytes -= n > 0 ? (size_t)n : 0;
		}
		more = bytes > 0;
		for (uint32_t r = 3 - readers; r < 3; r++) {
			if (p[r + 1].revents != 0) {
				char text[MOST];
				ssize_t n = read(rank[r], text, sizeof(text));

				cr_assert_gt(n, 0);
				cr_assert_eq(memcmp(text, block, (size_t)n), 0);
				got[r] += (size_t)n;
			}
			more = more || got[r] < want;
		}
	}
}

Test(stdin_all, the_slowest_rank_is_waited_for)
{
	size_t got[3] = { 0, 0, 0 };

	begin(3);
	fcntl(feed, F_SETFL, O_NONBLOCK);
	cr_assert_eq(stdin_all_start(all, false), 0);
	pump(MOST, 2, MOST, got);             /* rank 0 has room for this .. */
	pump(MOST, 2, 2 * (size_t)MOST, got); /* .. and not for this */
	close(feed);
	pump(0, 3, 2 * (size_t)MOST, got);
	for (uint32_t r = 0; r < 3; r++)
		expect_end(rank[r]);
	await_over();
	cr_expect_eq(stdin_all_sys(all), 0);
}

Test(stdin_all, with_keep_the_input_stays)
{
	begin(1);
	put("word");
	cr_assert_eq(stdin_all_start(all, true), 0);
	expect(0, "word");
	close(rank[0]);
	await_over();
	cr_expect(is_kept());
}

Test(stdin_all, so_it_does_if_that_is_said_later)
{
	begin(1);
	cr_assert_eq(stdin_all_start(all, false), 0);
	stdin_all_keep(all);
	close(rank[0]);
	await_over();
	cr_expect(is_kept());
}

Test(stdin_all, why_the_input_came_to_no_end_is_told)
{
	int folder_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	begin(2);
	dup2(folder_fd, in);
	cr_assert_eq(stdin_all_start(all, false), 0);
	await_over();
	expect_end(rank[0]);
	expect_end(rank[1]);
	cr_expect_eq(stdin_all_sys(all), EISDIR);
	close(folder_fd);
}

Test(stdin_all, a_terminal_is_read_in_the_foreground)
{
	begin(1);
	is_tty = true;
	is_ours[1] = true; /* asked again after a while */
	put("x");
	cr_assert_eq(stdin_all_start(all, false), 0);
	expect(0, "x");
	cr_expect_geq(asked, 2);
	cr_expect_eq(waited, 1000);
	close(rank[0]);
	await_over();
	cr_expect(is_kept());
}

Test(stdin_all, a_terminal_that_hung_up_is_at_its_end)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;

	begin(1);
	cr_assert_neq(master, -1);
	cr_assert_eq(grantpt(master), 0);
	cr_assert_eq(unlockpt(master), 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	cr_assert_neq(slave, -1);
	close(slave);
	dup2(master, in); /* a master without slave gives EIO */
	is_tty = true;
	is_ours[0] = is_ours[1] = true;
	cr_assert_eq(stdin_all_start(all, false), 0);
	await_over();
	cr_expect_eq(stdin_all_sys(all), 0);
}

Test(stdin_all, without_memory_there_is_none)
{
	for (unsigned i = 1; i <= 3; i++) {
		until_short = i;
		cr_expect_null(stdin_all_open(3, 0), "%u", i);
		cr_expect_eq(until_short, 0);
	}
}

Test(stdin_all, without_descriptors_a_rank_is_not_added)
{
	int fd;

	begin(0);
	while ((fd = dup(in)) != -1)
		;
	cr_expect_eq(stdin_all_add(all, 0), -1);
	cr_expect_eq(errno, EMFILE);
	cr_expect_not(stdin_all_has(all, 0));
}
