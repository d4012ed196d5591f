/* SPDX-License-Identifier: Apache-2.0 */
/* test_port.c - ports that are held, and who may still have them. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "place/port.h"

static struct xr_error err;

/* A socket on the wildcard of @family; -1 with errno. */
static int
open_on(int family, uint16_t port, int reuse_addr, int reuse_port)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
		.sin6_port = htons(port) };
	struct sockaddr_in four = { .sin_family = AF_INET,
		.sin_port = htons(port) };
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int sys = 0;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse_addr, sizeof(int));
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &reuse_port, sizeof(int));
	if (bind(fd,
		    family == AF_INET ? (struct sockaddr *)&four :
					(struct sockaddr *)&six,
		    family == AF_INET ? sizeof(four) : sizeof(six)) == 0)
		return fd;
	sys = errno;
	close(fd);
	errno = sys;
	return -1;
}

/* Listens, and is reached through the loopback. */
static void
expect_listener(int family, uint16_t port, int reuse_port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = open_on(family, port, 1, reuse_port);
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int server = -1;

	cr_assert(ne(i32, fd, -1), "bind %d: %s", port, strerror(errno));
	cr_assert(zero(i32, listen(fd, 8)), "%s", strerror(errno));
	cr_assert(zero(i32,
		connect(client, (struct sockaddr *)&to, sizeof(to))));
	server = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	cr_assert(ne(i32, server, -1));
	/* Ours closes first: the pair's TIME_WAIT is not on the port. */
	close(client);
	close(server);
	close(fd);
}

static void
expect_taken(int family, uint16_t port)
{
	cr_assert(eq(i32, open_on(family, port, 0, 0), -1));
	cr_assert(eq(i32, errno, EADDRINUSE));
}

/* Not even the loopback of IPv6 alone, which an IPv4 holder would let go. */
static void
expect_taken_alone(uint16_t port)
{
	struct sockaddr_in6 at = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT,
	};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	cr_assert(eq(i32, bind(fd, (struct sockaddr *)&at, sizeof(at)), -1));
	cr_assert(eq(i32, errno, EADDRINUSE));
	close(fd);
}

static bool
have_ipv6(void)
{
	int fd = open_on(AF_INET6, 0, 0, 0);

	if (fd != -1)
		close(fd);
	return fd != -1;
}

/* Takes and gives back ports of the kernel's choice till it is killed. */
static pid_t
start_load(uint16_t low)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails ends here, too */
	for (;;) {
		struct sockaddr_in at = { .sin_family = AF_INET };
		socklen_t len = sizeof(at);
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		if (bind(fd, (struct sockaddr *)&at, len) == 0 &&
			getsockname(fd, (struct sockaddr *)&at, &len) == 0 &&
			ntohs(at.sin_port) < low)
			_exit(1);
		close(fd);
	}
}

static void
end_load(pid_t pid)
{
	int status = 0;

	kill(pid, SIGKILL);
	cr_assert(eq(i32, waitpid(pid, &status, 0), pid));
	cr_assert(eq(i32, status, SIGKILL), "the kernel left its range");
}

Test(port, AC_L9_a_held_port_lets_listeners_in_and_nobody_else, .timeout = 60)
{
	struct port_limits limits;
	pid_t load[2];
	bool six = have_ipv6();

	port_limits_read(&limits);
	load[0] = start_load(limits.low);
	load[1] = start_load(limits.low);
	for (int i = 0; i < 1000; i++) {
		struct port port = { .fd = -1 };

		cr_assert(port_hold(&port, &limits, &err) == XR_OK, "%s",
			err.text);
		cr_assert(port.number < limits.low ||
			port.number > limits.high);
		expect_taken(AF_INET, port.number);
		expect_listener(AF_INET, port.number, 0);
		expect_listener(AF_INET, port.number, 1);
		if (six) {
			expect_taken(AF_INET6, port.number);
			expect_taken_alone(port.number);
			expect_listener(AF_INET6, port.number, 0);
			expect_listener(AF_INET6, port.number, 1);
		}
		expect_taken(AF_INET, port.number);
		port_release(&port);
	}
	end_load(load[0]);
	end_load(load[1]);
}

/* Somebody else on this machine may be quicker now and then: that is what
 * holding is for. */
Test(port, AC_L9_a_port_that_was_let_go_can_be_bound_plainly)
{
	struct port_limits limits;
	struct port port = { .fd = -1 };
	int bound = 0;

	port_limits_read(&limits);
	for (int i = 0; i < 100; i++) {
		int fd = -1;

		cr_assert(port_hold(&port, &limits, &err) == XR_OK);
		port_release(&port);
		cr_assert(eq(i32, port.fd, -1));
		fd = open_on(AF_INET, port.number, 0, 0);
		cr_assert(ne(i32, fd == -1 && errno != EADDRINUSE, 1));
		bound += fd != -1;
		close(fd);
	}
	cr_assert(gt(i32, bound, 90));
	port_release(&port);
}

Test(port, a_second_holder_cannot_have_it)
{
	struct port_limits limits = { .low = 1, .high = 65535 };
	struct port first = { .fd = -1 }, second = { .fd = -1 };
	uint16_t left = 0;

	/* All but one are reserved, so both would have to take the same. */
	port_limits_read(&limits);
	cr_assert(port_hold(&first, &limits, &err) == XR_OK);
	left = first.number;
	memset(limits.reserved, 0xff, sizeof(limits.reserved));
	limits.reserved[left / 8] &= (uint8_t)~(1u << left % 8);
	cr_assert(port_hold(&second, &limits, &err) == XR_E_NOTFOUND);
	cr_assert(eq(str, err.text, "no TCP port is free on this machine"));
	port_release(&first);
	cr_assert(port_hold(&second, &limits, &err) == XR_OK);
	cr_assert(eq(u16, second.number, left));
	port_release(&second);
}

Test(port, two_hundred_holders_never_collide, .timeout = 60)
{
	uint8_t seen[65536] = { 0 };
	int numbers[2], gate[2];
	uint16_t number = 0;
	pid_t pids[200];

	cr_assert(zero(i32, pipe2(numbers, O_CLOEXEC)));
	cr_assert(zero(i32, pipe2(gate, O_CLOEXEC)));
	for (int i = 0; i < 200; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct port_limits limits;
			struct port port = { .fd = -1 };
			char byte = 0;

			close(gate[1]);
			port_limits_read(&limits);
			if (port_hold(&port, &limits, NULL) != XR_OK ||
				write(numbers[1], &port.number, 2) != 2)
				_exit(1);
			if (read(gate[0], &byte, 1) < 0)
				_exit(1);
			_exit(0);
		}
	}
	for (int i = 0; i < 200; i++) {
		cr_assert(eq(i64, read(numbers[0], &number, 2), 2));
		cr_assert(zero(u8, seen[number]), "%u twice", number);
		seen[number] = 1;
	}
	close(gate[1]);
	for (int i = 0; i < 200; i++)
		waitpid(pids[i], NULL, 0);
}

Test(port, a_holder_does_not_outlive_an_exec)
{
	struct port_limits limits;
	struct port port = { .fd = -1 };

	port_limits_read(&limits);
	cr_assert(port_hold(&port, &limits, &err) == XR_OK);
	cr_assert(eq(i32, fcntl(port.fd, F_GETFD), FD_CLOEXEC));
	port_release(&port);
}

static bool
reserved(const struct port_limits *limits, int port)
{
	return (limits->reserved[port / 8] & 1 << port % 8) != 0;
}

Test(port, limits_are_read_as_the_kernel_writes_them)
{
	struct port_limits limits;

	port_limits_parse(&limits, "15000\t20000\n", "8080,9148-9150\n");
	cr_assert(eq(u16, limits.low, 15000));
	cr_assert(eq(u16, limits.high, 20000));
	cr_assert(reserved(&limits, 8080));
	cr_assert(not(reserved(&limits, 8081)));
	cr_assert(not(reserved(&limits, 9147)));
	cr_assert(reserved(&limits, 9148));
	cr_assert(reserved(&limits, 9150));
	cr_assert(not(reserved(&limits, 9151)));
	port_limits_parse(&limits, "", "\n");
	cr_assert(eq(u16, limits.low, 32768));
	cr_assert(eq(u16, limits.high, 60999));
}

Test(port, every_truncation_of_the_limits_is_read)
{
	static const char range[] = "15000\t20000\n";
	static const char list[] = "8080,9148-9150,65535\n";

	for (size_t len = 0; len < sizeof(list); len++) {
		struct port_limits limits;
		char *r = strndup(range, len), *l = strndup(list, len);

		port_limits_parse(&limits, r, l);
		cr_expect(le(u16, limits.low, limits.high));
		cr_expect(eq(i32, reserved(&limits, 8080), len >= 4));
		free(r);
		free(l);
	}
}

Test(port, choices_are_outside_of_range_and_reservations)
{
	struct port_limits limits;
	uint8_t seen[65536] = { 0 };
	uint32_t count = 0;

	port_limits_parse(&limits, "32768 60999", "61000-65000");
	for (uint16_t p = 0; (p = port_choose(&limits, 65530, count));
		count++) {
		cr_assert(zero(u8, seen[p]));
		seen[p] = 1;
		cr_assert(not(reserved(&limits, p)));
		if (count < 535) /* 65001 to 65535 */
			cr_assert(gt(u16, p, 65000));
		else if (count < 535 + 22528) /* 10240 to 32767 */
			cr_assert(lt(u16, p, 32768));
		if (count > 600)
			count += 97; /* a look at some of the rest will do */
	}
	cr_assert(gt(u32, count, 50000));
	cr_assert(eq(u16, port_choose(&limits, 0, 0), 65001));
}

/* Jobs that start at once and let their ports go would meet else. */
Test(port, seeds_are_spread_over_all_that_are_best)
{
	struct port_limits limits = { .low = 32768, .high = 60999 };
	bool seen[65536] = { 0 };
	int distinct = 0, low_half = 0;
	uint16_t number;

	for (uint32_t i = 0; i < 1000; i++) {
		number = port_choose(&limits, i * 2654435761u, 0);
		cr_assert(number >= 61000);
		distinct += !seen[number];
		seen[number] = true;
		low_half += number < 63268;
	}
	cr_expect(distinct > 800, "%d", distinct);
	cr_expect(low_half > 400 && low_half < 600, "%d", low_half);
}

/* The best first: private, then registered, then the kernel's own. */
Test(port, each_candidate_is_chosen_once)
{
	static const uint16_t free_ones[] = { 60000, 30000, 15000 };
	struct port_limits limits = { .low = 10500, .high = 20000 };

	memset(limits.reserved, 0xff, sizeof(limits.reserved));
	for (int i = 0; i < 3; i++)
		limits.reserved[free_ones[i] / 8] &=
			(uint8_t)~(1u << free_ones[i] % 8);
	for (uint32_t i = 0; i < 3; i++)
		cr_expect(eq(u16, port_choose(&limits, 77, i), free_ones[i]));
	for (uint32_t i = 3; i < 6; i++)
		cr_expect(eq(u16, port_choose(&limits, 77, i), 0));
}
