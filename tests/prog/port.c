/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port.c - rank 0 (or --rank) listens on MASTER_PORT as programs do.
 *
 * Prints "listening PORT" or "bind PORT: reason", which ends with 1. --connect:
 * a connection to it must be accepted, too. --times: again and again, each time
 * a new socket. --hold: stays until it is killed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/prog/prog.h"

static struct settings {
	int64_t rank, port, times, last;
	bool reuseaddr, reuseport, v6, connect, hold;
} set = { .port = -1, .times = 1, .last = 60000 };

static void
turn_on(int fd, int option)
{
	int one = 1;

	if (setsockopt(fd, SOL_SOCKET, option, &one, sizeof(one)) == -1)
		prog_die(errno, "setsockopt %d", option);
}

static int
bind_any(int fd)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
		.sin6_port = htons((uint16_t)set.port) };
	struct sockaddr_in four = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)set.port) };

	if (set.v6)
		return bind(fd, (struct sockaddr *)&six, sizeof(six));
	return bind(fd, (struct sockaddr *)&four, sizeof(four));
}

static void
try_connect(int listener)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)set.port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), peer;

	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == -1)
		prog_die(errno, "connect to %lld", (long long)set.port);
	peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (peer == -1)
		prog_die(errno, "accept on %lld", (long long)set.port);
	close(fd); /* first: TIME_WAIT stays on the far port */
	close(peer);
}

static int
open_listener(void)
{
	int fd = socket(set.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC,
		0);

	if (fd == -1)
		prog_die(errno, "socket");
	if (set.reuseaddr)
		turn_on(fd, SO_REUSEADDR);
	if (set.reuseport)
		turn_on(fd, SO_REUSEPORT);
	if (bind_any(fd) == -1 || listen(fd, 16) == -1) {
		printf("bind %lld: %s\n", (long long)set.port, strerror(errno));
		exit(1);
	}
	if (set.connect)
		try_connect(fd);
	return fd;
}

int
main(int argc, char **argv)
{
	const struct prog_opt table[] = {
		{ "rank", PROG_NUM, &set.rank, "who listens; default 0" },
		{ "port", PROG_NUM, &set.port, "instead of MASTER_PORT" },
		{ "reuseaddr", PROG_FLAG, &set.reuseaddr, "SO_REUSEADDR" },
		{ "reuseport", PROG_FLAG, &set.reuseport, "SO_REUSEPORT" },
		{ "v6", PROG_FLAG, &set.v6, "the IPv6 wildcard" },
		{ "connect", PROG_FLAG, &set.connect, "and take a connection" },
		{ "times", PROG_NUM, &set.times, "how often" },
		{ "hold", PROG_FLAG, &set.hold, "stay" },
		{ "last", PROG_NUM, &set.last, "ms it never outlives" },
		{ 0 },
	};
	const char *port = getenv("MASTER_PORT");

	prog_opts(argc, argv, table);
	if (prog_rank() > 0 ? prog_rank() != set.rank : set.rank > 0)
		return 0;
	if (set.port == -1 && port == NULL)
		prog_die(0, "MASTER_PORT is not set");
	if (set.port == -1)
		set.port = prog_num("MASTER_PORT", port);
	prog_lifetime(set.last);
	while (set.times-- > 1)
		close(open_listener());
	open_listener();
	printf("listening %lld\n", (long long)set.port);
	fflush(stdout);
	if (set.hold)
		prog_rest();
	return 0;
}
