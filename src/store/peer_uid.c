/* SPDX-License-Identifier: Apache-2.0 */
/* peer_uid.c - see peer_uid.h. */
#include <string.h>
#include <unistd.h>

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "store/peer_uid.h"

struct peer_query {
	struct nlmsghdr head;
	struct inet_diag_req_v2 req;
};

union peer_address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* One end of the connection; returns its port. An IPv4 address that is mapped into
 * IPv6 is looked up as it is: the other end may be a socket of either family. */
static __be16
peer_put(const union peer_address *a, __be32 *out, bool *v4)
{
	if (a->any.sa_family == AF_INET) {
		out[0] = a->in.sin_addr.s_addr;
		*v4 = true;
		return a->in.sin_port;
	}
	*v4 = IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr);
	if (*v4)
		memcpy(out, &a->in6.sin6_addr.s6_addr[12], 4);
	else
		memcpy(out, &a->in6.sin6_addr, 16);
	return a->in6.sin6_port;
}

/* The query for the socket at the other end: its source is our peer. */
static bool
peer_query_fill(struct peer_query *q, int fd)
{
	union peer_address ours, theirs;
	socklen_t len = sizeof(ours);
	bool v4 = false;

	if (getsockname(fd, &ours.any, &len) == -1)
		return false;
	len = sizeof(theirs);
	if (getpeername(fd, &theirs.any, &len) == -1)
		return false;
	if (ours.any.sa_family != AF_INET && ours.any.sa_family != AF_INET6)
		return false;
	*q = (struct peer_query){
		.head = { .nlmsg_len = sizeof(*q),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST },
		.req = { .sdiag_protocol = IPPROTO_TCP,
			.idiag_states = ~0u,
			.id.idiag_cookie = { INET_DIAG_NOCOOKIE,
				INET_DIAG_NOCOOKIE } },
	};
	q->req.id.idiag_sport = peer_put(&theirs, q->req.id.idiag_src, &v4);
	q->req.id.idiag_dport = peer_put(&ours, q->req.id.idiag_dst, &v4);
	q->req.sdiag_family = v4 ? AF_INET : AF_INET6;
	return true;
}

bool
peer_uid(int fd, uid_t *uid)
{
	struct peer_query q;
	struct {
		struct nlmsghdr head;
		struct inet_diag_msg msg;
		char more[512];
	} reply = { 0 };
	ssize_t n = -1;
	int diag;

	if (!peer_query_fill(&q, fd))
		return false;
	diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
		NETLINK_SOCK_DIAG);
	if (diag == -1)
		return false;
	/* The kernel answers before send() returns. */
	if (send(diag, &q, sizeof(q), 0) == sizeof(q))
		n = recv(diag, &reply, sizeof(reply), 0);
	fd_close(diag);
	if (n < (ssize_t)(sizeof(reply.head) + sizeof(reply.msg)) ||
		reply.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
		reply.msg.idiag_inode == 0)
		return false;
	*uid = reply.msg.idiag_uid;
	return true;
}

bool
peer_is_foreign(int fd)
{
	uid_t uid = 0;

	return peer_uid(fd, &uid) && uid != geteuid() && uid != 0;
}
