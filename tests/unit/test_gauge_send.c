/* SPDX-License-Identifier: Apache-2.0 */
/* test_gauge_send.c - a rank without a slot sends the memory of what its pools and queues
 * say (worker/job/gauge.c). */
#include <criterion/criterion.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <xrun/error.h>

#include "wire/control.h"
#include "worker/shm/gauge.h"

static int told = -1, teller = -1; /* xrun's end, and the rank's */
static char text[4096];

/* The rank waits by this: calls, and whether they make room. */
static unsigned polls;
static bool makes_room;
static bool xrun_ends; /* meanwhile */

int __real_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);

/* Of rank 3. */
static void
join_job(void)
{
	struct stat st;
	int fd[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd), 0);
	told = fd[0];
	teller = fd[1];
	cr_assert_eq(fstat(teller, &st), 0);
	snprintf(text, sizeof(text), "%d:%llu", teller,
		(unsigned long long)st.st_ino);
	setenv("XRUN_CONTROL_FD", text, 1);
	setenv("XRUN_RANK", "3", 1);
	unsetenv("XRUN_SEGMENT_FD");
}

static void
fill_queue(void)
{
	static const char much[999];

	while (send(teller, much, sizeof(much), MSG_DONTWAIT) > 0)
		continue;
}

/* Returns what it was: the bytes, and the descriptor that came along or -1. */
static ssize_t
next(int *along)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} ancillary;
	struct iovec io = { .iov_base = text, .iov_len = sizeof(text) - 1 };
	struct msghdr m = { .msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = &ancillary,
		.msg_controllen = sizeof(ancillary) };
	ssize_t n = recvmsg(told, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);

	*along = -1;
	if (c != NULL && c->cmsg_type == SCM_RIGHTS)
		memcpy(along, CMSG_DATA(c), sizeof(*along));
	text[n < 0 ? 0 : n] = '\0';
	return n;
}

int
__wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
	int along;

	if (n > 0 && fds[0].fd != teller)
		return __real_poll(fds, n, ms); /* somebody else's */
	polls++;
	cr_assert_eq(n, 1);
	cr_expect_eq(fds[0].events, POLLOUT);
	cr_expect_eq(ms, 100);
	while (makes_room && next(&along) > 0)
		cr_expect_neq(text[0], '{');
	if (xrun_ends)
		close(told);
	return __real_poll(fds, n, 0);
}

static struct gauge_row *
tell(void)
{
	const struct gauge_of of = { .kind = GAUGE_QUEUE,
		.name = "jobs",
		.parts = 1,
		.room = 1 };

	return gauge_new(&of);
}

/* What was told is a message of the protocol, and the memory has the row. */
static void
expect_told(void)
{
	static struct control m;
	struct xr_error err = { 0 };
	const char *memory, *name = NULL;
	struct stat st;
	int fd;
	ssize_t n = next(&fd);

	cr_assert_gt(n, 0);
	cr_expect_str_eq(text, "{\"type\":\"gauges\",\"rank\":3}");
	cr_expect_eq(control_read(&m, text, (size_t)n, CONTROL_BY_RANK, &err),
		XR_OK, "%s", err.text);
	cr_assert_neq(fd, -1);
	cr_assert_eq(fstat(fd, &st), 0);
	memory = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	cr_assert_neq(memory, MAP_FAILED);
	name = memmem(memory, (size_t)st.st_size, "jobs", 5);
	cr_expect_not_null(name);
	cr_expect_lt(next(&fd), 0);
}

TestSuite(gauge_send, .init = join_job, .timeout = 60);

Test(gauge_send, the_memory_is_sent_once)
{
	int fd;

	errno = EAGAIN; /* of a call before it */
	cr_expect_not_null(tell());
	expect_told();
	cr_expect_not_null(tell());
	cr_expect_lt(next(&fd), 0);
	cr_expect_eq(polls, 0);
}

Test(gauge_send, it_waits_until_there_is_room)
{
	fill_queue();
	makes_room = true;
	cr_expect_not_null(tell());
	cr_expect_eq(polls, 1);
	expect_told();
}

Test(gauge_send, without_room_it_is_not_told_and_not_tried_again)
{
	int fd;

	fill_queue();
	cr_expect_null(tell());
	cr_expect_eq(polls, 1);
	while (next(&fd) > 0)
		cr_expect_neq(text[0], '{');
	cr_expect_null(tell());
	cr_expect_eq(polls, 1);
	cr_expect_lt(next(&fd), 0);
}

static volatile sig_atomic_t broken_pipes;

static void
on_broken_pipe(int sig)
{
	(void)sig;
	broken_pipes = 1;
}

static void
watch_signals(void)
{
	const struct sigaction action = { .sa_handler = on_broken_pipe };

	cr_assert_eq(sigaction(SIGPIPE, &action, NULL), 0);
}

Test(gauge_send, an_xrun_that_is_gone_is_not_waited_for)
{
	watch_signals();
	close(told);
	cr_expect_null(tell());
	cr_expect_eq(polls, 0);
	cr_expect_eq(broken_pipes, 0);
}

Test(gauge_send, an_xrun_that_ends_meanwhile_has_no_signal_sent)
{
	watch_signals();
	fill_queue();
	xrun_ends = true;
	cr_expect_null(tell());
	cr_expect_eq(polls, 1);
	cr_expect_eq(broken_pipes, 0);
}

Test(gauge_send, what_is_no_rank_tells_nothing)
{
	int fd;

	unsetenv("XRUN_RANK");
	cr_expect_null(tell());
	cr_expect_lt(next(&fd), 0);
}

Test(gauge_send, without_a_socket_nothing_is_told)
{
	unsetenv("XRUN_CONTROL_FD");
	cr_expect_null(tell());
}
