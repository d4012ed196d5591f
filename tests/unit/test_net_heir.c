/* SPDX-License-Identifier: Apache-2.0 */
/* test_net_heir.c - descriptors that a forked child does not inherit (worker/net/heir.h). */
#include <netinet/in.h>

#include <sys/resource.h>
#include <sys/socket.h>

#include "tests/unit/forked.h"
#include "tests/unit/short_memory.h"
#include "worker/net/heir.h"

TestSuite(net_heir, .timeout = 60);

static bool
is_open(int fd)
{
	return fcntl(fd, F_GETFD) != -1;
}

/* Numbers around those at which a word of bits begins. */
static const int numbers[] = { 320, 382, 383, 384, 385, 447, 448, 1023, 1024,
	1025 };
#define NUMBERS (int)(sizeof(numbers) / sizeof(numbers[0]))

static void
open_all(void)
{
	struct rlimit limit;

	NEED(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = limit.rlim_max;
	NEED(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	for (int i = 0; i < NUMBERS; i++)
		NEED(dup3(STDERR_FILENO, numbers[i], O_CLOEXEC) == numbers[i]);
}

/* In a child those of @open, a bit each, are open, and no others. */
static void
expect_open(int line, unsigned open)
{
	pid_t pid = fork();
	int status;

	NEED(pid != -1);
	if (pid == 0) {
		unsigned got = 0;

		for (int i = 0; i < NUMBERS; i++)
			got |= is_open(numbers[i]) ? 1u << i : 0;
		if (got != open)
			forked_note(line, "%x are open, not %x", got, open);
		_exit(forked_wrong > 0);
	}
	NEED(waitpid(pid, &status, 0) == pid);
	EXPECT_EQ(status, 0);
	for (int i = 0; i < NUMBERS; i++)
		EXPECT(is_open(numbers[i]));
}

#define EXPECT_OPEN(open) expect_open(__LINE__, open)

FORKED_TEST(net_heir, a_child_has_all_but_those_that_were_noted)
{
	open_all();
	EXPECT_OPEN(0x3ff);
	EXPECT(heir_note(-1));
	EXPECT_OPEN(0x3ff);
	EXPECT(heir_note(383));
	EXPECT(heir_note(384));
	EXPECT_OPEN(0x3f3);
	EXPECT(heir_note(320));
	EXPECT(heir_note(447));
	EXPECT(heir_note(1023));
	EXPECT_OPEN(0x352);
	EXPECT(heir_note(1024));
	EXPECT(heir_note(1024));
	EXPECT_OPEN(0x252);
	/* What is closed is noted no more, and only that. */
	heir_close(383);
	heir_close(1024);
	heir_close(-1);
	EXPECT(!is_open(383));
	EXPECT(!is_open(1024));
	open_all();
	EXPECT_OPEN(0x356);
	/* Of what was never noted there is no word. */
	NEED(dup3(STDERR_FILENO, 4000, O_CLOEXEC) == 4000);
	heir_close(4000);
	EXPECT(!is_open(4000));
	EXPECT_OPEN(0x356);
}

FORKED_TEST(net_heir, generations_are_counted_from_0)
{
	int status;
	pid_t pid;

	EXPECT_EQ(heir_generation(), 0);
	EXPECT(heir_note(600));
	pid = fork();
	NEED(pid != -1);
	if (pid == 0) {
		EXPECT_EQ(heir_generation(), 1);
		pid = fork();
		if (pid == 0) {
			EXPECT_EQ(heir_generation(), 2);
			EXPECT(heir_note(601)); /* the lock is free */
			_exit(forked_wrong > 0);
		}
		EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
		EXPECT(heir_note(601));
		_exit(forked_wrong > 0);
	}
	NEED(waitpid(pid, &status, 0) == pid);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(heir_generation(), 0);
	EXPECT(heir_note(601));
}

/* A kibibit at first; it doubles until it is enough. */
FORKED_TEST(net_heir, room_for_bits_grows_when_it_must)
{
	most_asked = 0;
	EXPECT(heir_note(3));
	EXPECT_EQ(most_asked, 128);
	until_short = 1;
	EXPECT(heir_note(1023));
	EXPECT_EQ(until_short, 1);
	EXPECT(!heir_note(1024));
	EXPECT_EQ(until_short, 0);
	EXPECT_EQ(most_asked, 256);
	EXPECT(heir_note(1024));
	EXPECT(heir_note(5000));
	EXPECT_EQ(most_asked, 1024);
}

static void
expect_socket(int fd)
{
	int type = 0;
	socklen_t len = sizeof(type);

	NEED(fd != -1);
	EXPECT(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0);
	EXPECT_EQ(type, SOCK_STREAM);
	EXPECT(fcntl(fd, F_GETFL) & O_NONBLOCK);
	EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
}

static void
expect_gone_in_child(int fd)
{
	int status;
	pid_t pid = fork();

	NEED(pid != -1);
	if (pid == 0)
		_exit(is_open(fd));
	NEED(waitpid(pid, &status, 0) == pid);
	EXPECT_EQ(status, 0);
	EXPECT(is_open(fd));
}

FORKED_TEST(net_heir, sockets_are_noted_when_they_are_made)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in from = { 0 };
	socklen_t len = sizeof(at), from_len = sizeof(from);
	int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd, got;

	NEED(bind(door, (struct sockaddr *)&at, len) == 0);
	NEED(listen(door, 8) == 0);
	NEED(getsockname(door, (struct sockaddr *)&at, &len) == 0);
	fd = heir_socket(AF_INET);
	expect_socket(fd);
	expect_gone_in_child(fd);
	NEED(fcntl(fd, F_SETFL, 0) == 0);
	NEED(connect(fd, (struct sockaddr *)&at, len) == 0);
	got = heir_accept(door, (struct sockaddr *)&from, &from_len);
	expect_socket(got);
	expect_gone_in_child(got);
	EXPECT_EQ(from.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	EXPECT_EQ(from_len, sizeof(from));
	heir_close(fd);
	heir_close(got);
	EXPECT(!is_open(fd) && !is_open(got));
	/* An error is that of the kernel. */
	EXPECT_EQ(heir_socket(-1), -1);
	EXPECT_EQ(errno, EAFNOSUPPORT);
	EXPECT_EQ(heir_accept(STDERR_FILENO, NULL, NULL), -1);
	EXPECT_EQ(errno, ENOTSOCK);
	close(door);
}

FORKED_TEST(net_heir, a_socket_that_cannot_be_noted_is_not_made)
{
	int next = dup(STDERR_FILENO);

	NEED(next != -1);
	close(next);
	until_short = 1;
	EXPECT_EQ(heir_socket(AF_INET), -1);
	EXPECT_EQ(errno, ENOMEM);
	EXPECT(was_short);
	EXPECT(!is_open(next));
	EXPECT_EQ(heir_socket(AF_INET), next);
	heir_close(next);
}
