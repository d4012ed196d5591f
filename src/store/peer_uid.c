/* SPDX-License-Identifier: Apache-2.0 */
/* peer_uid.c - see peer_uid.h. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "store/peer_uid.h"

#define LOOPBACK_INDEX 1 /* of "lo" in every network namespace */

struct peer_query {
	struct nlmsghdr head;
	struct inet_diag_req_v2 req;
};

union peer_address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct peer_ends {
	union peer_address ours, theirs;
};

enum peer_finding {
	PEER_FOUND,
	PEER_ORPHAN, /* the socket exists, and no process has it any more */
	PEER_ABSENT, /* or the kernel does not tell */
};

/* One end of a connection. An IPv4 address that is mapped into IPv6 is looked up as
 * IPv4: the other end may be a socket of either family. */
struct peer_end {
	uint32_t address[4]; /* in network order; IPv4: the first */
	uint16_t port;       /* in network order */
	bool v4;
};

static struct peer_end
peer_end_of(const union peer_address *a)
{
	struct peer_end end = { .v4 = true };

	if (a->any.sa_family == AF_INET) {
		end.address[0] = a->in.sin_addr.s_addr;
		end.port = a->in.sin_port;
		return end;
	}
	end.port = a->in6.sin6_port;
	end.v4 = IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr);
	if (end.v4)
		memcpy(end.address, &a->in6.sin6_addr.s6_addr[12], 4);
	else
		memcpy(end.address, &a->in6.sin6_addr, 16);
	return end;
}

static bool
peer_is_tcp(int fd)
{
	int family = AF_UNSPEC;
	socklen_t len = sizeof(family);

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len);
	return family == AF_INET || family == AF_INET6;
}

/* Fails if the connection was reset. */
static bool
peer_ends_get(int fd, struct peer_ends *ends)
{
	socklen_t len = sizeof(ends->ours);

	if (getsockname(fd, &ends->ours.any, &len) == -1)
		return false;
	len = sizeof(ends->theirs);
	return getpeername(fd, &ends->theirs.any, &len) == 0;
}

/* --- sock_diag(7) ---------------------------------------------------------- */

/* The query for the socket at @source that is connected to @target. With the index
 * of "lo" the kernel finds sockets that are bound to no device and those that are
 * bound to "lo"; with 0 it does not find the latter. */
static struct peer_query
peer_query_of(struct peer_end source, struct peer_end target)
{
	struct peer_query q = {
		.head = { .nlmsg_len = sizeof(q),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST },
		.req = { .sdiag_family = source.v4 ? AF_INET : AF_INET6,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_states = ~0u,
			.id.idiag_if = LOOPBACK_INDEX,
			.id.idiag_cookie = { INET_DIAG_NOCOOKIE,
				INET_DIAG_NOCOOKIE } },
	};

	q.req.id.idiag_sport = source.port;
	q.req.id.idiag_dport = target.port;
	memcpy(q.req.id.idiag_src, source.address, sizeof(source.address));
	memcpy(q.req.id.idiag_dst, target.address, sizeof(target.address));
	return q;
}

static enum peer_finding
peer_ask_kernel(struct peer_end source, struct peer_end target, uid_t *uid)
{
	struct peer_query q = peer_query_of(source, target);
	struct {
		struct nlmsghdr head;
		struct inet_diag_msg msg;
	} reply = { 0 };
	ssize_t n = -1;
	int diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
		NETLINK_SOCK_DIAG);

	if (diag == -1)
		return PEER_ABSENT;
	/* The kernel answers before send() returns. Attributes that follow are cut off. */
	if (send(diag, &q, sizeof(q), 0) == sizeof(q))
		n = recv(diag, &reply, sizeof(reply), 0);
	fd_close(diag);
	/* A listener has no port at the other end. */
	if (n < (ssize_t)(sizeof(reply.head) + sizeof(reply.msg)) ||
		reply.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
		reply.msg.id.idiag_dport != target.port)
		return PEER_ABSENT;
	*uid = reply.msg.idiag_uid;
	return reply.msg.idiag_inode == 0 ? PEER_ORPHAN : PEER_FOUND;
}

/* --- /proc/net, for kernels without sock_diag ------------------------------ */

/* An end as the kernel prints it: each word of the address in the order of this
 * machine. */
static void
peer_end_print(struct peer_end end, bool mapped, char out[static 40])
{
	const uint32_t *a = end.address;
	uint16_t port = ntohs(end.port);

	if (end.v4 && mapped)
		snprintf(out, 40, "%016X%08X%08X:%04X", 0, htonl(0xffff), a[0],
			port);
	else if (end.v4)
		snprintf(out, 40, "%08X:%04X", a[0], port);
	else
		snprintf(out, 40, "%08X%08X%08X%08X:%04X", a[0], a[1], a[2],
			a[3], port);
}

static enum peer_finding
peer_read_table(const char *path, const char *ends, uid_t *uid)
{
	enum peer_finding found = PEER_ABSENT;
	FILE *table = fopen(path, "re");
	char line[512];
	const char *at;
	unsigned owner;
	unsigned long inode;

	while (found == PEER_ABSENT && table != NULL &&
		fgets(line, sizeof(line), table) != NULL) {
		at = strstr(line, ends);
		if (at == NULL ||
			sscanf(at + strlen(ends), "%*x %*s %*s %*s %u %*d %lu",
				&owner, &inode) != 2)
			continue;
		*uid = owner;
		found = inode == 0 ? PEER_ORPHAN : PEER_FOUND;
	}
	if (table != NULL)
		fclose(table);
	return found;
}

static enum peer_finding
peer_read_tables(struct peer_end source, struct peer_end target, uid_t *uid)
{
	enum peer_finding found = PEER_ABSENT;
	char from[40], to[40], ends[96];

	for (int six = source.v4 ? 0 : 1; found == PEER_ABSENT && six < 2;
		six++) {
		peer_end_print(source, six == 1, from);
		peer_end_print(target, six == 1, to);
		snprintf(ends, sizeof(ends), " %s %s ", from, to);
		found = peer_read_table(six == 1 ? "/proc/net/tcp6" :
						   "/proc/net/tcp",
			ends, uid);
	}
	return found;
}

/* --- both ------------------------------------------------------------------ */

static bool
peer_end_is_loopback(struct peer_end end)
{
	struct in6_addr six;

	if (end.v4)
		return (ntohl(end.address[0]) >> 24) == IN_LOOPBACKNET;
	memcpy(&six, end.address, sizeof(six));
	return IN6_IS_ADDR_LOOPBACK(&six);
}

/* Returns true if the other end is an address of this machine: from such an address
 * the kernel sends to that address itself. Also true if that cannot be found out. */
static bool
peer_is_here(const struct peer_ends *ends)
{
	struct peer_end theirs = peer_end_of(&ends->theirs);
	struct peer_end ours = peer_end_of(&ends->ours);
	union peer_address from = { 0 };
	socklen_t len = sizeof(from);
	bool here = true;
	int fd;

	if (peer_end_is_loopback(theirs) || peer_end_is_loopback(ours) ||
		memcmp(theirs.address, ours.address, sizeof(ours.address)) == 0)
		return true;
	fd = socket(ends->theirs.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd != -1 &&
		connect(fd, &ends->theirs.any, sizeof(ends->theirs)) == 0 &&
		getsockname(fd, &from.any, &len) == 0) {
		ours = peer_end_of(&from);
		here = memcmp(theirs.address, ours.address,
			       sizeof(ours.address)) == 0;
	}
	fd_close(fd);
	return here;
}

/* A kernel with sock_diag knows our own socket, too. */
static enum peer_finding
peer_find_elsewhere(const struct peer_ends *ends, uid_t *uid)
{
	struct peer_end theirs = peer_end_of(&ends->theirs);
	struct peer_end ours = peer_end_of(&ends->ours);
	uid_t own;

	if (peer_ask_kernel(ours, theirs, &own) == PEER_FOUND)
		return PEER_ABSENT;
	return peer_read_tables(theirs, ours, uid);
}

bool
peer_uid(int fd, uid_t *uid)
{
	struct peer_ends ends = { 0 };
	enum peer_finding found;

	if (!peer_is_tcp(fd) || !peer_ends_get(fd, &ends))
		return false;
	found = peer_ask_kernel(peer_end_of(&ends.theirs),
		peer_end_of(&ends.ours), uid);
	if (found == PEER_ABSENT)
		found = peer_find_elsewhere(&ends, uid);
	return found == PEER_FOUND;
}

bool
peer_is_foreign(int fd)
{
	struct peer_ends ends = { 0 };
	enum peer_finding found;
	uid_t uid = 0;

	if (!peer_is_tcp(fd))
		return false;
	if (!peer_ends_get(fd, &ends))
		return true;
	found = peer_ask_kernel(peer_end_of(&ends.theirs),
		peer_end_of(&ends.ours), &uid);
	if (found == PEER_ABSENT && !peer_is_here(&ends))
		return false;
	if (found == PEER_ABSENT)
		found = peer_find_elsewhere(&ends, &uid);
	return found != PEER_FOUND || (uid != geteuid() && uid != 0);
}
