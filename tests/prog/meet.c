/* SPDX-License-Identifier: Apache-2.0 */
/* meet.c - see meet.h. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/fd.h"
#include "tests/prog/meet.h"
#include "tests/prog/prog.h"

struct place {
	char shown[96];
	char hidden[100];
};

static struct place
place_of(const char *path, int64_t rank)
{
	struct place p;

	if (strlen(path) > sizeof(p.shown) - 22)
		prog_die(0, "%s: too long for a socket", path);
	snprintf(p.shown, sizeof(p.shown), "%s.%lld", path, (long long)rank);
	snprintf(p.hidden, sizeof(p.hidden), "%s~", p.shown);
	return p;
}

static int
listen_unix(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	unlink(path);
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) == -1 ||
		listen(fd, SOMAXCONN) == -1)
		prog_die(errno, "listen on %s", path);
	return fd;
}

static int
listen_tcp(const char *path)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), file;

	if (bind(fd, (struct sockaddr *)&at, len) == -1 ||
		listen(fd, SOMAXCONN) == -1 ||
		getsockname(fd, (struct sockaddr *)&at, &len) == -1)
		prog_die(errno, "listen on the loopback");
	file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (file == -1 || fd_write_all(file, &at, len) == -1)
		prog_die(errno, "%s", path);
	fd_close(file);
	return fd;
}

int
meet_listen(const char *path, int64_t rank, bool tcp)
{
	struct place p = place_of(path, rank);
	int fd = tcp ? listen_tcp(p.hidden) : listen_unix(p.hidden);

	if (rename(p.hidden, p.shown) == -1)
		prog_die(errno, "%s", p.shown);
	return fd;
}

static void
await(const char *path)
{
	char folder[128], event[4096];
	int fd = inotify_init1(IN_CLOEXEC);

	snprintf(folder, sizeof(folder), "%s", path);
	if (inotify_add_watch(fd, dirname(folder), IN_MOVED_TO) == -1)
		prog_die(errno, "watch %s", folder);
	while (access(path, F_OK) == -1)
		if (read(fd, event, sizeof(event)) == -1 && errno != EINTR)
			prog_die(errno, "wait for %s", path);
	fd_close(fd);
}

static int
connect_tcp(const char *path)
{
	struct sockaddr_in at;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd == -1 || fd_read_some(fd, &at, sizeof(at)) != sizeof(at))
		prog_die(errno, "%s", path);
	fd_close(fd);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == -1)
		prog_die(errno, "connect to %s", path);
	return fd;
}

int
meet_connect(const char *path, int64_t rank, bool tcp)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct place p = place_of(path, rank);
	int fd;

	await(p.shown);
	if (tcp)
		return connect_tcp(p.shown);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", p.shown);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == -1)
		prog_die(errno, "connect to %s", p.shown);
	return fd;
}

int
meet_accept(int fd)
{
	int peer;

	do {
		peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	} while (peer == -1 && errno == EINTR);
	if (peer == -1)
		prog_die(errno, "accept");
	return peer;
}
