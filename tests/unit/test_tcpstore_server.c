/* SPDX-License-Identifier: Apache-2.0 */
/* test_tcpstore_server.c - connections to the store of PyTorch's process groups: those
 * that are too many, slow, odd or without memory. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "launcher/tcpstore/tcpstore_server.h"
#include "tests/unit/folder.h"
#include "tests/unit/forked.h"
#include "tests/unit/seccomp.h"
#include "tests/unit/short_memory.h"
#include "tests/unit/sys_hook.h"

#define HELLO     "\0\xce\xf7\x85\x3c" /* VALIDATE */
#define HELLO_LEN 5
#define PING \
	"\x0d" \
	"ping"

static struct loop *loop;
static struct timer *tick;
static struct tcpstore_server *server;
static struct tcpstore_server_config config;
static struct sockaddr_in place = { .sin_family = AF_INET };
static int bad;
static char why_bad[256];

static void
on_bad(void *ctx, const struct xr_error *why)
{
	cr_expect_eq(ctx, &bad);
	bad++;
	snprintf(why_bad, sizeof(why_bad), "%s", why->text);
}

static void
stop(void *ctx)
{
	(void)ctx;
	loop_stop(loop);
}

static void
begin(void)
{
	socklen_t len = sizeof(place);

	loop = loop_new();
	tick = timer_open(loop, stop, NULL);
	cr_assert_not_null(tick);
	config = (struct tcpstore_server_config){ .loop = loop,
		.fd = tcpstore_server_listen(0),
		.most = 4,
		.bad = on_bad,
		.ctx = &bad };
	cr_assert_neq(config.fd, -1);
	cr_assert_eq(getsockname(config.fd, (struct sockaddr *)&place, &len),
		0);
	server = tcpstore_server_open(&config);
	cr_assert_not_null(server);
}

static void
end(void)
{
	tcpstore_server_close(server);
	close(config.fd);
	timer_close(tick);
	loop_free(loop);
}

TestSuite(tcpstore_server, .init = begin, .fini = end, .timeout = 60);

static int
dialled(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	/* What is said is there, though what was said before has no reply. */
	cr_assert_eq(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)),
		0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&place, sizeof(place)), 0);
	return fd;
}

static void
say(int fd, const void *bytes, size_t len)
{
	cr_assert_eq(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* A turn of the loop, and what comes of it. */
static void
turn(void)
{
	timer_arm(tick, NS_PER_MS);
	loop_run(loop);
}

/* Turns until @fd has @len bytes, or is closed. Returns how many it has. */
static ssize_t
receive(int fd, char *at, size_t len)
{
	ssize_t n, got = 0;

	while (got < (ssize_t)len) {
		n = recv(fd, at + got, len - (size_t)got, MSG_DONTWAIT);
		if (n == 0 || (n == -1 && errno != EAGAIN))
			break;
		if (n == -1)
			turn();
		else
			got += n;
	}
	return got;
}

/* The server answers a ping of this connection. */
static void
expect_served(int fd)
{
	char got[8] = "";

	say(fd, PING, 5);
	cr_expect_eq(receive(fd, got, 4), 4);
	cr_expect_str_eq(got, "ping");
}

static int
greeted(void)
{
	int fd = dialled();

	say(fd, HELLO, HELLO_LEN);
	expect_served(fd);
	return fd;
}

Test(tcpstore_server, more_clients_than_may_come_wait_until_one_leaves)
{
	int fd[5];
	char byte;

	for (int i = 0; i < 4; i++)
		fd[i] = greeted();
	fd[4] = dialled();
	say(fd[4], HELLO PING, HELLO_LEN + 5);
	for (int i = 0; i < 5; i++)
		turn();
	cr_expect_eq(recv(fd[4], &byte, 1, MSG_DONTWAIT), -1);
	expect_served(fd[3]);
	close(fd[0]);
	cr_expect_eq(receive(fd[4], &byte, 1), 1);
	cr_expect_eq(byte, 'p');
	for (int i = 1; i < 5; i++)
		close(fd[i]);
}

/* In one turn as many are accepted as there is room for. */
Test(tcpstore_server, a_crowd_is_accepted_in_turns_and_up_to_the_most)
{
	int fd[24];
	char byte;

	tcpstore_server_close(server);
	config.most = 20;
	server = tcpstore_server_open(&config);
	for (int i = 0; i < 24; i++) {
		fd[i] = dialled();
		say(fd[i], HELLO PING, HELLO_LEN + 5);
	}
	for (int i = 0; i < 20; i++)
		cr_expect_eq(receive(fd[i], &byte, 1), 1, "%d", i);
	for (int i = 20; i < 24; i++) {
		turn();
		cr_expect_eq(recv(fd[i], &byte, 1, MSG_DONTWAIT), -1, "%d", i);
	}
	for (int i = 0; i < 24; i++)
		close(fd[i]);
	turn();
}

Test(tcpstore_server, a_request_in_pieces_is_answered_when_it_is_whole)
{
	static const char set[] = HELLO "\x01\x01\0\0\0\0\0\0\0kv";
	int fd = dialled();
	char byte;

	for (size_t i = 0; i < HELLO_LEN; i++) {
		say(fd, set + i, 1);
		turn();
	}
	say(fd, PING PING, 7);
	cr_expect_eq(receive(fd, (char[4]){ 0 }, 4), 4);
	turn();
	cr_expect_eq(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	say(fd, "ing", 3);
	cr_expect_eq(receive(fd, (char[4]){ 0 }, 4), 4);
	close(fd);
}

Test(tcpstore_server, a_bad_request_closes_its_connection_with_a_reason)
{
	int fd = greeted(), other = greeted();
	char byte;

	say(fd, "\xff", 1);
	cr_expect_eq(receive(fd, &byte, 1), 0);
	cr_expect_eq(bad, 1);
	cr_expect_str_eq(why_bad, "unknown request 255");
	expect_served(other);
	close(fd);
	/* A connection that is reset. */
	fd = greeted();
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 },
		sizeof(struct linger));
	close(fd);
	expect_served(other);
	cr_expect_eq(bad, 1);
	close(other);
}

static char value[1 << 20], got[1 << 20];

static void
set_value(int fd, uint64_t size)
{
	const uint64_t key = 1;
	ssize_t n;

	memset(value, 'v', size);
	say(fd, "\x01", 1);
	say(fd, &key, 8);
	say(fd, "k", 1);
	say(fd, &size, 8);
	for (size_t at = 0; at < size;) {
		n = send(fd, value + at, size - at, MSG_DONTWAIT);
		at += n > 0 ? (size_t)n : 0;
		turn();
	}
}

static void
expect_value(int fd, uint64_t size)
{
	cr_assert_eq(receive(fd, got, 8), 8);
	cr_expect_eq(memcmp(got, &size, 8), 0);
	cr_assert_eq(receive(fd, got, size), (ssize_t)size);
	cr_expect_eq(memcmp(got, value, size), 0);
}

static void
expect_keys(int fd, char count)
{
	say(fd, "\x07", 1);
	cr_expect_eq(receive(fd, got, 8), 8);
	cr_expect_eq(got[0], count, "%d keys", got[0]);
}

/* The socket takes all of a reply at once, though it is longer than what may be unsent. */
Test(tcpstore_server, after_a_long_reply_the_next_request_is_served)
{
	int fd = greeted();

	set_value(fd, 300 << 10);
	for (int i = 0; i < 3; i++) {
		say(fd, "\x03\x01\0\0\0\0\0\0\0k" PING, 15);
		expect_value(fd, 300 << 10);
		cr_expect_eq(receive(fd, got, 4), 4);
		cr_expect_eq(memcmp(got, "ping", 4), 0);
	}
	close(fd);
}

/* Replies of 40 MiB that are not read; the socket does not take so many. */
Test(tcpstore_server, a_client_that_does_not_read_is_asked_nothing_more)
{
	int fd = greeted(), other = greeted();

	set_value(fd, sizeof(value));
	for (int i = 0; i < 40; i++) {
		say(fd, "\x03\x01\0\0\0\0\0\0\0k", 10);
		turn();
	}
	say(fd, "\x01\x01\0\0\0\0\0\0\0z\0\0\0\0\0\0\0\0", 18);
	expect_served(other);
	expect_keys(other, 1);
	for (int i = 0; i < 40; i++)
		expect_value(fd, sizeof(value));
	expect_served(fd);
	expect_keys(other, 2);
	close(fd);
	close(other);
}

#define OUT_HIGH ((uint64_t)256 << 10) /* bytes unsent */

#define ROOM     (16 << 10) /* of a socket, when it has some */
#define READ_MAX (64 << 10)

static struct {
	size_t room;    /* bytes that sockets take of long replies */
	long fd;        /* of the server, that was read last */
	long of;        /* of which ... */
	unsigned reads; /* ... reads are counted */
} kernel;

/* Sockets take no more of long replies than there is room. */
static long
take_some(int nr, const long arg[5])
{
	long some[5] = { arg[0], arg[1], arg[2], arg[3], arg[4] };
	long n;

	if (nr == SYS_recvfrom && arg[2] == READ_MAX) {
		kernel.fd = arg[0];
		kernel.reads += arg[0] == kernel.of;
	}
	if (nr != SYS_sendto || arg[2] < 1024)
		return 0;
	if (kernel.room == 0)
		return -EAGAIN;
	if ((size_t)arg[2] > kernel.room)
		some[2] = (long)kernel.room;
	n = sys_do(nr, some);
	if (n > 0)
		kernel.room -= (size_t)n;
	return n;
}

/* A request for the value, and one that adds a key of @letter. */
static void
ask_and_add(int fd, char letter)
{
	char ask[] = "\x03\x01\0\0\0\0\0\0\0k"
		     "\x01\x01\0\0\0\0\0\0\0z\0\0\0\0\0\0\0\0";

	ask[19] = letter;
	say(fd, ask, sizeof(ask) - 1);
}

/* What others have said before was seen when this client has the number of keys. */
static int
keys_seen(int other)
{
	char keys[8] = "";

	expect_served(other);
	expect_served(other);
	say(other, "\x07", 1);
	EXPECT_EQ(receive(other, keys, 8), 8);
	return keys[0];
}

/* How many keys there are while a reply of @len bytes is not sent, and behind the
 * request for it there is one that adds a key of @letter. */
static int
keys_behind(int fd, int other, uint64_t len, char letter)
{
	int keys;

	set_value(fd, len - 8);
	expect_served(fd);
	sys_hook = take_some;
	ask_and_add(fd, letter);
	keys = keys_seen(other);
	sys_hook = NULL;
	expect_value(fd, len - 8);
	expect_served(fd); /* after the other request */
	return keys;
}

FORKED_TEST(tcpstore_server, with_256_KiB_unsent_the_next_request_waits)
{
	int fd = greeted(), other = greeted();

	sys_trap(SYS_sendto);
	EXPECT_EQ(keys_behind(fd, other, OUT_HIGH - 1, 'a'), 2);
	EXPECT_EQ(keys_behind(fd, other, OUT_HIGH, 'b'), 2);
	EXPECT_EQ(keys_behind(fd, other, OUT_HIGH + 1, 'c'), 3);
	EXPECT_EQ(keys_behind(fd, other, OUT_HIGH - 1, 'd'), 5);
	close(fd);
	close(other);
}

/* Receives @len bytes of replies, of which the socket has taken no more yet. */
static void
expect_some(int fd, size_t len)
{
	EXPECT_EQ(receive(fd, got, len), (ssize_t)len);
	EXPECT_EQ(kernel.room, 0);
}

FORKED_TEST(tcpstore_server, what_the_socket_has_taken_is_not_unsent)
{
	const uint64_t size = (132 << 10) - 8;
	int fd = greeted(), other = greeted();

	sys_trap(SYS_sendto);
	set_value(fd, size);
	expect_served(fd);
	kernel.room = ROOM;
	sys_hook = take_some;
	ask_and_add(fd, 'a');
	expect_some(fd, ROOM);
	EXPECT_EQ(keys_seen(other), 2);
	/* 264 KiB of replies, of which 248 are unsent. */
	ask_and_add(fd, 'b');
	EXPECT_EQ(keys_seen(other), 3);
	/* Nothing more until all of these are sent: some is not enough. */
	ask_and_add(fd, 'c');
	EXPECT_EQ(keys_seen(other), 3);
	kernel.room = 9 * ROOM;
	expect_some(fd, 9 * ROOM);
	EXPECT_EQ(keys_seen(other), 3);
	sys_hook = NULL;
	EXPECT_EQ(receive(fd, got, 3 * (size + 8) - 10 * ROOM),
		(ssize_t)(3 * (size + 8) - 10 * ROOM));
	expect_served(fd);
	EXPECT_EQ(keys_seen(other), 4);
	close(fd);
	close(other);
}

FORKED_TEST(tcpstore_server, who_is_asked_nothing_more_is_not_read)
{
	int fd = greeted(), other = greeted();

	sys_trap(SYS_sendto);
	sys_trap(SYS_recvfrom);
	set_value(fd, OUT_HIGH);
	sys_hook = take_some;
	expect_served(fd);
	kernel.of = kernel.fd;
	kernel.reads = 0;
	ask_and_add(fd, 'a');
	EXPECT_EQ(keys_seen(other), 1);
	EXPECT_EQ(kernel.reads, 1);
	say(fd, PING, 5);
	EXPECT_EQ(keys_seen(other), 1);
	EXPECT_EQ(kernel.reads, 1);
	sys_hook = NULL;
	expect_value(fd, OUT_HIGH);
	EXPECT_EQ(receive(fd, got, 4), 4);
	expect_served(fd);
	EXPECT_EQ(keys_seen(other), 2);
	close(fd);
	close(other);
}

Test(tcpstore_server, a_server_that_is_closed_closes_its_connections)
{
	int fd[3];
	char byte;

	for (int i = 0; i < 3; i++)
		fd[i] = greeted();
	tcpstore_server_close(server);
	server = NULL;
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(recv(fd[i], &byte, 1, MSG_DONTWAIT), 0);
		close(fd[i]);
	}
	tcpstore_server_close(NULL);
}

Test(tcpstore_server, a_port_that_is_taken_is_not_listened_on)
{
	errno = 0;
	cr_expect_eq(tcpstore_server_listen(ntohs(place.sin_port)), -1);
	cr_expect_eq(errno, EADDRINUSE);
}

/* --- little memory, few descriptors ----------------------------------------- */

Test(tcpstore_server, a_server_without_memory_is_not_made)
{
	unsigned n = 0;

	do {
		tcpstore_server_close(server);
		was_short = false;
		until_short = ++n;
		server = tcpstore_server_open(&config);
		until_short = 0;
		cr_expect_eq(server == NULL, was_short, "allocation %u", n);
	} while (was_short);
	cr_expect_gt(n, 3);
	close(greeted());
}

/* A connection for which there is no memory is closed; the others stay. */
Test(tcpstore_server, a_connection_without_memory_is_closed)
{
	int other = greeted(), fd;
	unsigned n = 0;
	char byte;

	do {
		fd = dialled();
		say(fd, HELLO PING, HELLO_LEN + 5);
		was_short = false;
		until_short = ++n;
		cr_expect_eq(receive(fd, &byte, 1), until_short > 0, "%u", n);
		until_short = 0;
		close(fd);
		turn();
		expect_served(other);
	} while (was_short);
	cr_expect_gt(n, 4);
	close(other);
}

FORKED_TEST(tcpstore_server, without_descriptors_clients_wait)
{
	struct rlimit rl, none;
	int fd = dialled(), next = dup(0);
	char byte;

	NEED(next != -1);
	close(next);
	say(fd, HELLO PING, HELLO_LEN + 5);
	NEED(getrlimit(RLIMIT_NOFILE, &rl) == 0);
	none = rl;
	none.rlim_cur = (rlim_t)next;
	NEED(setrlimit(RLIMIT_NOFILE, &none) == 0);
	for (int i = 0; i < 3; i++)
		turn();
	EXPECT_EQ(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	EXPECT_EQ(errno, EAGAIN);
	EXPECT_EQ(tcpstore_server_listen(0), -1);
	EXPECT_EQ(errno, EMFILE);
	NEED(setrlimit(RLIMIT_NOFILE, &rl) == 0);
	EXPECT_EQ(receive(fd, &byte, 1), 1);
	close(fd);
}

static const struct {
	int call, sys;
} refused[] = { { SYS_listen, EOPNOTSUPP }, { SYS_bind, EACCES },
	{ SYS_socket, EAFNOSUPPORT } };

FORKED_TEST(tcpstore_server, a_socket_that_does_not_listen_is_closed)
{
	int before = folder_entries("/proc/self/fd");

	for (int i = 0; i < 3; i++) {
		NEED(seccomp_refuse(refused[i].call, refused[i].sys) == 0);
		EXPECT_EQ(tcpstore_server_listen(0), -1);
		EXPECT_EQ(errno, refused[i].sys);
		EXPECT_EQ(folder_entries("/proc/self/fd"), before);
	}
}
