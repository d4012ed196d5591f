/* SPDX-License-Identifier: Apache-2.0 */
/* test_along.c - descriptors that go with bytes. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include "base/along.h"

static int a, b;
static char data[256];

static void
begin(void)
{
	int fd[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	a = fd[0];
	b = fd[1];
}

TestSuite(along, .init = begin);

Test(along, a_descriptor_ends_what_it_is_received_with)
{
	int pipes[2];
	struct along got;

	cr_assert_eq(pipe(pipes), 0);
	cr_assert_eq(along_send(a, "one", 3, -1), 3);
	cr_assert_eq(along_send(a, "two", 3, pipes[1]), 3);
	cr_assert_eq(along_send(a, "three", 5, -1), 5);
	cr_assert_eq(along_receive(b, data, sizeof(data), &got), 6);
	cr_expect_eq(memcmp(data, "onetwo", 6), 0);
	cr_assert_eq(got.count, 1);
	cr_expect_eq(fcntl(got.fd[0], F_GETFD), FD_CLOEXEC);
	cr_expect_eq(write(got.fd[0], "x", 1), 1);
	cr_expect_eq(read(pipes[0], data, 1), 1);
	cr_assert_eq(along_receive(b, data, sizeof(data), &got), 5);
	cr_expect_eq(got.count, 0);
}

Test(along, neither_waits_nor_dies)
{
	struct along got;

	cr_expect_eq(along_receive(b, data, sizeof(data), &got), -1);
	cr_expect_eq(errno, EAGAIN);
	cr_expect_eq(got.count, 0);
	close(b);
	cr_expect_eq(along_send(a, "x", 1, -1), -1);
	cr_expect_eq(errno, EPIPE);
	cr_expect_eq(along_receive(a, data, sizeof(data), &got), 0);
}

/* Who receives may have asked for more about who sends. */
Test(along, what_else_comes_with_the_bytes_is_no_descriptor)
{
	struct along got = { .count = 7 };
	int on = 1;

	cr_assert_eq(setsockopt(b, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)),
		0);
	cr_assert_eq(along_send(a, "x", 1, -1), 1);
	cr_expect_eq(along_receive(b, data, sizeof(data), &got), 1);
	cr_expect_eq(got.count, 0);
	cr_assert_eq(along_send(a, "y", 1, STDERR_FILENO), 1);
	cr_expect_eq(along_receive(b, data, sizeof(data), &got), 1);
	cr_assert_eq(got.count, 1);
	cr_expect_eq(fcntl(got.fd[0], F_GETFD), FD_CLOEXEC);
	close(got.fd[0]);
}

/* @count descriptors with one byte. */
static void
send_many(int count)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(20 * sizeof(int))];
	} control = { .head = { .cmsg_len =
					CMSG_LEN((size_t)count * sizeof(int)),
			      .cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { "z", 1 };
	struct msghdr m = { .msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int)) };
	int err = STDERR_FILENO;

	for (int i = 0; i < count; i++)
		memcpy(CMSG_DATA(&control.head) + (size_t)i * sizeof(int), &err,
			sizeof(err));
	cr_assert_eq(sendmsg(a, &m, 0), 1);
}

Test(along, sixteen_descriptors_may_come_at_once)
{
	static const int counts[] = { 2, 15, 16, 17 };
	struct along got;

	for (int i = 0; i < 4; i++) {
		send_many(counts[i]);
		cr_expect_eq(along_receive(b, data, sizeof(data), &got), 1);
		cr_assert_eq((int)got.count, counts[i] > 16 ? 16 : counts[i]);
		for (unsigned k = 0; k < got.count; k++)
			cr_expect_eq(close(got.fd[k]), 0);
	}
}
