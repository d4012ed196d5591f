/* SPDX-License-Identifier: Apache-2.0 */
/* test_peer_uid.c - the user at the other end of a connection (src/store/peer_uid.h). */
#include <grp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "forked.h"
#include "store/peer_uid.h"

#define OTHER 1001

/* Addresses of other machines, for documentation: RFC 5737. */
#define FAR  0xc0000201
#define NEAR 0xc0000202

enum pair_client {
	PAIR_PLAIN,
	PAIR_BOUND,
	PAIR_CLOSED,
	PAIR_RESET,
	PAIR_SECOND
};

struct pair {
	int server, client;
};

static bool no_netlink;
static bool is_forwarded; /* see FAR */
static uint32_t ours;     /* instead of the address of this end; 0: none */

/* Of the socket that finds out from which address this machine sends. */
enum probe {
	PROBE_LOOPBACK,
	PROBE_SAME, /* from the address of the other end itself */
	PROBE_NO_SOCKET,
	PROBE_NO_ROUTE,
	PROBE_NO_NAME,
};
static enum probe probe;
static int probed; /* the sockets that were made for it */

static bool no_tables;
static int tables; /* of /proc that were opened */

FILE *__real_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);
int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol);
int __real_getpeername(int fd, struct sockaddr *at, socklen_t *len);
int __wrap_getpeername(int fd, struct sockaddr *at, socklen_t *len);
int __real_getsockname(int fd, struct sockaddr *at, socklen_t *len);
int __wrap_getsockname(int fd, struct sockaddr *at, socklen_t *len);
int __real_connect(int fd, const struct sockaddr *at, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *at, socklen_t len);

FILE *
__wrap_fopen64(const char *path, const char *mode)
{
	tables++;
	return no_tables ? NULL : __real_fopen64(path, mode);
}

int
__wrap_socket(int family, int type, int protocol)
{
	if (no_netlink && family == AF_NETLINK) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	if (type == (SOCK_DGRAM | SOCK_CLOEXEC) && ++probed > 0 &&
		probe == PROBE_NO_SOCKET) {
		errno = EMFILE;
		return -1;
	}
	return __real_socket(family, type, protocol);
}

static bool
is_probe(int fd)
{
	int type = 0;
	socklen_t len = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
		type == SOCK_DGRAM;
}

int
__wrap_getsockname(int fd, struct sockaddr *at, socklen_t *len)
{
	int got = __real_getsockname(fd, at, len);
	struct sockaddr_in *in = (struct sockaddr_in *)at;

	if (is_probe(fd)) {
		if (probe == PROBE_SAME)
			in->sin_addr.s_addr = htonl(FAR);
		return probe == PROBE_NO_NAME ? -1 : got;
	}
	if (got == 0 && ours != 0)
		in->sin_addr.s_addr = htonl(ours);
	return got;
}

/* The other end appears to be FAR. */
int
__wrap_getpeername(int fd, struct sockaddr *at, socklen_t *len)
{
	int got = __real_getpeername(fd, at, len);

	if (got == 0 && is_forwarded)
		((struct sockaddr_in *)at)->sin_addr.s_addr = htonl(FAR);
	return got;
}

/* This machine sends to FAR from an address of its own: the loopback's will do. */
int
__wrap_connect(int fd, const struct sockaddr *at, socklen_t len)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_port = htons(9),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	if (probe == PROBE_NO_ROUTE && is_probe(fd)) {
		errno = ENETUNREACH;
		return -1;
	}
	if (is_forwarded)
		return __real_connect(fd, (struct sockaddr *)&in, sizeof(in));
	return __real_connect(fd, at, len);
}

static int
pair_listen(int family, struct sockaddr_storage *at, socklen_t *len)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
		.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*len = family == AF_INET ? sizeof(in) : sizeof(in6);
	memcpy(at, family == AF_INET ? (void *)&in : (void *)&in6, *len);
	if (fd == -1 || bind(fd, (struct sockaddr *)at, *len) == -1 ||
		listen(fd, 1) == -1)
		return -1;
	getsockname(fd, (struct sockaddr *)at, len);
	return fd;
}

static void
pair_spoil(struct pair *p, enum pair_client kind)
{
	struct linger now = { .l_onoff = 1 };

	if (kind == PAIR_PLAIN || kind == PAIR_BOUND)
		return;
	NEED(send(p->client, "x", 1, MSG_NOSIGNAL) == 1);
	if (kind == PAIR_RESET)
		setsockopt(p->client, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(p->client);
	p->client = -1;
}

/* 127.0.0.2 instead of the address of the server. */
static void
pair_bind_second(int fd)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1) };

	NEED(bind(fd, (struct sockaddr *)&in, sizeof(in)) == 0);
}

/* A connection over the loopback; the client is ready before it is accepted. */
static struct pair
pair_make(int family, enum pair_client kind)
{
	struct pair p = { -1, -1 };
	struct sockaddr_storage at;
	socklen_t len;
	int door = pair_listen(family, &at, &len);

	NEED(door != -1);
	p.client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	NEED(p.client != -1);
	if (kind == PAIR_BOUND)
		NEED(setsockopt(p.client, SOL_SOCKET, SO_BINDTODEVICE, "lo",
			     3) == 0);
	if (kind == PAIR_SECOND)
		pair_bind_second(p.client);
	NEED(connect(p.client, (struct sockaddr *)&at, len) == 0);
	pair_spoil(&p, kind);
	p.server = accept4(door, NULL, NULL, SOCK_CLOEXEC);
	NEED(p.server != -1);
	close(door);
	return p;
}

static void
pair_end(struct pair *p)
{
	fd_close(p->server);
	fd_close(p->client);
}

static void
expect_ours(int family, enum pair_client kind)
{
	struct pair p = pair_make(family, kind);
	uid_t uid = geteuid() + 1;

	EXPECT(peer_uid(p.server, &uid));
	EXPECT_EQ(uid, geteuid());
	EXPECT(!peer_is_foreign(p.server));
	EXPECT(!peer_is_foreign(p.client));
	pair_end(&p);
}

static void
expect_unknown(enum pair_client kind)
{
	struct pair p = pair_make(AF_INET, kind);
	uid_t uid;
	char c;

	EXPECT(!peer_uid(p.server, &uid));
	EXPECT(peer_is_foreign(p.server));
	/* What it sent could be read all the same. */
	EXPECT_EQ(recv(p.server, &c, 1, MSG_DONTWAIT), 1);
	pair_end(&p);
}

static void
expect_all(void)
{
	expect_ours(AF_INET, PAIR_PLAIN);
	expect_ours(AF_INET, PAIR_BOUND);
	expect_unknown(PAIR_CLOSED);
	expect_unknown(PAIR_RESET);
	expect_unknown(PAIR_SECOND);
}

FORKED_TEST(peer_uid, a_socket_of_this_user_is_found_also_if_it_is_bound_to_lo)
{
	expect_all();
}

FORKED_TEST(peer_uid, without_sock_diag_the_tables_of_proc_are_read)
{
	no_netlink = true;
	expect_all();
	EXPECT(tables > 0);
}

FORKED_TEST(peer_uid, with_sock_diag_no_table_is_read)
{
	no_tables = true;
	expect_ours(AF_INET, PAIR_PLAIN);
	expect_ours(AF_INET, PAIR_BOUND);
	expect_unknown(PAIR_CLOSED);
	EXPECT_EQ(tables, 0);
}

FORKED_TEST(peer_uid, without_either_nobody_is_known)
{
	struct pair p = pair_make(AF_INET, PAIR_PLAIN);
	uid_t uid;

	no_netlink = no_tables = true;
	EXPECT(!peer_uid(p.server, &uid));
	EXPECT(peer_is_foreign(p.server));
	pair_end(&p);
}

/* The kernel can be told to forward connections from elsewhere to 127.0.0.1. */
FORKED_TEST(peer_uid, what_arrives_at_the_loopback_from_elsewhere_is_foreign)
{
	struct pair p = pair_make(AF_INET, PAIR_PLAIN);
	uid_t uid;

	is_forwarded = true;
	EXPECT(!peer_uid(p.server, &uid));
	EXPECT(peer_is_foreign(p.server));
	pair_end(&p);
}

/* The number of the first descriptor that is free. */
static int
first_free(void)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

	NEED(fd != -1);
	close(fd);
	return fd;
}

static void
expect_far(enum probe kind, uint32_t here, bool foreign)
{
	struct pair p = pair_make(AF_INET, PAIR_PLAIN);
	int before = first_free();

	is_forwarded = true;
	ours = here;
	probe = kind;
	probed = 0;
	if (peer_is_foreign(p.server) != foreign)
		forked_note(__LINE__, "probe %d, %x: not %d", kind, here,
			foreign);
	EXPECT_EQ(probed, here == NEAR);
	EXPECT_EQ(first_free(), before);
	is_forwarded = false;
	ours = 0;
	pair_end(&p);
}

FORKED_TEST(peer_uid, a_connection_from_another_machine_is_not_foreign)
{
	expect_far(PROBE_LOOPBACK, NEAR, false);
}

FORKED_TEST(peer_uid, an_unknown_end_that_may_be_of_this_machine_is_foreign)
{
	expect_far(PROBE_SAME, NEAR, true);
	expect_far(PROBE_NO_SOCKET, NEAR, true);
	expect_far(PROBE_NO_ROUTE, NEAR, true);
	expect_far(PROBE_NO_NAME, NEAR, true);
	/* The same address at both ends; any of the loopback's at ours. */
	expect_far(PROBE_LOOPBACK, FAR, true);
	expect_far(PROBE_LOOPBACK, INADDR_LOOPBACK, true);
	expect_far(PROBE_LOOPBACK, INADDR_LOOPBACK + 0xfffffd, true);
}

FORKED_TEST(peer_uid, what_is_no_connection_by_tcp_is_of_no_user)
{
	int fd[2], door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uid_t uid = 77;

	NEED(door != -1);
	NEED(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
	EXPECT(!peer_uid(fd[0], &uid));
	EXPECT(!peer_is_foreign(fd[0]));
	EXPECT(!peer_uid(-1, &uid));
	EXPECT(!peer_is_foreign(-1));
	/* Not connected, or no more: it may have been anybody's. */
	EXPECT(!peer_uid(door, &uid));
	EXPECT(peer_is_foreign(door));
	EXPECT_EQ(uid, 77);
	/* And nothing is asked about it. */
	ours = NEAR;
	probed = tables = 0;
	EXPECT(peer_is_foreign(door));
	EXPECT_EQ(probed, 0);
	EXPECT_EQ(tables, 0);
	close(fd[0]);
	close(fd[1]);
	close(door);
}

FORKED_TEST(peer_uid, ipv6_is_found_both_ways)
{
	struct sockaddr_storage at;
	socklen_t len;
	int fd = pair_listen(AF_INET6, &at, &len);

	if (fd == -1)
		return; /* a machine without IPv6 */
	close(fd);
	for (int i = 0; i < 2; i++) {
		no_netlink = i == 1;
		expect_ours(AF_INET6, PAIR_PLAIN);
		expect_ours(AF_INET6, PAIR_BOUND);
	}
}

static void
connect_as_other(struct pair *p, const struct sockaddr_storage *at, bool bound)
{
	NEED(setgroups(0, NULL) == 0 && setresgid(OTHER, OTHER, OTHER) == 0 &&
		setresuid(OTHER, OTHER, OTHER) == 0);
	p->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	NEED(p->client != -1);
	if (bound)
		NEED(setsockopt(p->client, SOL_SOCKET, SO_BINDTODEVICE, "lo",
			     3) == 0);
	NEED(connect(p->client, (const struct sockaddr *)at,
		     sizeof(struct sockaddr_in)) == 0);
}

/* The client belongs to a child of another user, until that reads the end of the
 * connection. */
static void
expect_foreign(bool bound)
{
	struct pair p = { -1, -1 };
	struct sockaddr_storage at;
	socklen_t len;
	int door = pair_listen(AF_INET, &at, &len), status;
	uid_t uid = 0;
	char c;
	pid_t pid;

	NEED(door != -1);
	pid = fork();
	NEED(pid != -1);
	if (pid == 0) {
		close(door);
		connect_as_other(&p, &at, bound);
		_exit(recv(p.client, &c, 1, 0) > 0);
	}
	p.server = accept4(door, NULL, NULL, SOCK_CLOEXEC);
	NEED(p.server != -1);
	EXPECT(peer_uid(p.server, &uid));
	EXPECT_EQ(uid, OTHER);
	EXPECT(peer_is_foreign(p.server));
	pair_end(&p);
	close(door);
	NEED(waitpid(pid, &status, 0) == pid);
	EXPECT_EQ(status, 0);
}

FORKED_TEST(peer_uid, a_socket_of_another_user_is_foreign_also_if_bound_to_lo)
{
	if (geteuid() != 0)
		return;
	for (int i = 0; i < 2; i++) {
		no_netlink = i == 1;
		expect_foreign(false);
		expect_foreign(true);
	}
}
