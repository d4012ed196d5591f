/* SPDX-License-Identifier: Apache-2.0 */
/* along.c - see along.h. */
#include <string.h>

#include <sys/socket.h>

#include "base/along.h"
#include "base/fd.h"

#ifndef SCM_PIDFD
#define SCM_PIDFD 4 /* Linux 6.5 */
#endif

union ancillary {
	struct cmsghdr align;
	char room[CMSG_SPACE(ALONG_MAX * sizeof(int))];
};

ssize_t
along_send(int socket, const void *data, size_t len, int fd)
{
	union ancillary ancillary = { 0 };
	struct iovec io = { (void *)data, len };
	struct msghdr h = { .msg_iov = &io, .msg_iovlen = 1 };
	struct cmsghdr *m;

	if (fd != -1) {
		h.msg_control = &ancillary;
		h.msg_controllen = CMSG_SPACE(sizeof(fd));
		m = CMSG_FIRSTHDR(&h);
		m->cmsg_level = SOL_SOCKET;
		m->cmsg_type = SCM_RIGHTS;
		m->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(m), &fd, sizeof(fd));
	}
	return sendmsg(socket, &h, MSG_DONTWAIT | MSG_NOSIGNAL);
}

ssize_t
along_receive(int socket, void *data, size_t room, struct along *got)
{
	union ancillary ancillary;
	struct iovec io = { data, room };
	struct msghdr h = {
		.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = &ancillary,
		.msg_controllen = sizeof(ancillary),
	};
	ssize_t n = recvmsg(socket, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	size_t count;
	int pidfd;

	got->count = 0;
	if (n < 0)
		return n;
	for (struct cmsghdr *m = CMSG_FIRSTHDR(&h); m != NULL;
		m = CMSG_NXTHDR(&h, m)) {
		if (m->cmsg_level != SOL_SOCKET)
			continue;
		/* Whoever shares the socket may have asked for it. */
		if (m->cmsg_type == SCM_PIDFD) {
			memcpy(&pidfd, CMSG_DATA(m), sizeof(pidfd));
			fd_close(pidfd);
		}
		if (m->cmsg_type != SCM_RIGHTS)
			continue;
		count = (m->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(got->fd + got->count, CMSG_DATA(m), count * sizeof(int));
		got->count += (unsigned)count;
	}
	return n;
}
