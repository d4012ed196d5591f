/* SPDX-License-Identifier: Apache-2.0 */
/* mesh.c - see mesh.h. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "mesh.h"

#define PATIENCE 60 /* seconds for all ranks to meet */
#define MAGIC    0x7a11ed64u

/* What a rank says first, and what rank 0 answers. */
struct hello {
	uint32_t magic, size, rank;
};

__attribute__((noreturn, format(printf, 2, 3))) static void
give_up(const struct mesh *mesh, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fflush(stdout);
	fprintf(stderr, "train: rank %d: %s\n", mesh->rank, text);
	exit(1);
}

static void *
need(struct mesh *mesh, void *p)
{
	if (p == NULL)
		give_up(mesh, "out of memory");
	return p;
}

/* A number in the environment; @dflt where it is not set. */
static int
number(const struct mesh *mesh, const char *name, int dflt)
{
	const char *text = getenv(name);
	char *end;
	long n;

	if (text == NULL || *text == '\0')
		return dflt;
	n = strtol(text, &end, 10);
	if (*end != '\0' || n < 0 || n > 1000000)
		give_up(mesh, "%s: '%s' is not a number of ranks", name, text);
	return (int)n;
}

/* errno of a connection that ended, as text. */
static const char *
why(ssize_t n)
{
	return n == 0 ? "it closed the connection" : strerror(errno);
}

/* All of it; 1, or 0 and -1 as recv(2) says it. */
static ssize_t
receive(int fd, void *data, size_t len)
{
	char *p = data;
	ssize_t n;

	while (len > 0) {
		n = recv(fd, p, len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n;
		p += n;
		len -= (size_t)n;
	}
	return 1;
}

static ssize_t
send_all(int fd, const void *data, size_t len)
{
	const char *p = data;
	ssize_t n;

	while (len > 0) {
		n = send(fd, p, len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		p += n;
		len -= (size_t)n;
	}
	return 1;
}

static void
check(const struct mesh *mesh, int peer, ssize_t n)
{
	if (n <= 0)
		give_up(mesh, "rank %d is gone: %s", peer, why(n));
}

static struct addrinfo *
find_master(const struct mesh *mesh)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV };
	const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
	struct addrinfo *found;
	int rc;

	if (host == NULL || port == NULL)
		give_up(mesh,
			"WORLD_SIZE is %d but MASTER_%s is not set; start it with xrun -n %d",
			mesh->size, host == NULL ? "ADDR" : "PORT", mesh->size);
	rc = getaddrinfo(host, port, &hints, &found);
	if (rc != 0)
		give_up(mesh, "%s:%s: %s", host, port, gai_strerror(rc));
	return found;
}

/* SO_REUSEADDR: whoever handed the port out may still hold it, unlistened. */
static int
listen_here(const struct mesh *mesh, const struct addrinfo *at)
{
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd == -1 ||
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) !=
			0 ||
		bind(fd, at->ai_addr, at->ai_addrlen) != 0 ||
		listen(fd, mesh->size) != 0)
		give_up(mesh, "%s:%s: %s", getenv("MASTER_ADDR"),
			getenv("MASTER_PORT"), strerror(errno));
	return fd;
}

/* Small and large messages alternate: nothing is to wait for more. */
static void
tune(int fd, int patience)
{
	struct timeval limit = { .tv_sec = patience };
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

/* One who connected: a rank that was not here yet, or a stranger. */
static int
meet(struct mesh *mesh, int fd)
{
	struct hello hello = { 0 };

	if (fd == -1)
		return 0;
	tune(fd, PATIENCE);
	if (receive(fd, &hello, sizeof(hello)) <= 0 || hello.magic != MAGIC ||
		hello.size != (uint32_t)mesh->size || hello.rank == 0 ||
		hello.rank >= hello.size || mesh->fd[hello.rank] != -1) {
		close(fd);
		return 0;
	}
	mesh->fd[hello.rank] = fd;
	check(mesh, (int)hello.rank, send_all(fd, &hello, sizeof(hello)));
	tune(fd, 0);
	return 1;
}

static void
gather(struct mesh *mesh, const struct addrinfo *at)
{
	int fd = listen_here(mesh, at), came = 0, ready;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	while (came < mesh->size - 1) {
		ready = poll(&p, 1, PATIENCE * 1000);
		if (ready == 0)
			give_up(mesh, "%d of %d ranks did not come in %d s",
				mesh->size - 1 - came, mesh->size, PATIENCE);
		if (ready > 0)
			came += meet(mesh,
				accept4(fd, NULL, NULL, SOCK_CLOEXEC));
	}
	close(fd);
}

/* Rank 0 may not be there yet, and nothing tells when it is: ask again. */
static int
reach(const struct mesh *mesh, const struct addrinfo *at)
{
	const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
	int fd, tries;

	for (tries = 0; tries < PATIENCE * 100; tries++) {
		fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd != -1 && connect(fd, at->ai_addr, at->ai_addrlen) == 0)
			return fd;
		if (fd == -1 || errno != ECONNREFUSED)
			break;
		close(fd);
		nanosleep(&pause, NULL);
	}
	give_up(mesh, "rank 0 at %s:%s: %s", getenv("MASTER_ADDR"),
		getenv("MASTER_PORT"), strerror(errno));
}

static void
join(struct mesh *mesh, const struct addrinfo *at)
{
	struct hello hello = { MAGIC, (uint32_t)mesh->size,
		(uint32_t)mesh->rank };
	struct hello back;
	int fd = reach(mesh, at);

	tune(fd, PATIENCE);
	check(mesh, 0, send_all(fd, &hello, sizeof(hello)));
	check(mesh, 0, receive(fd, &back, sizeof(back)));
	if (memcmp(&hello, &back, sizeof(back)) != 0)
		give_up(mesh, "%s:%s is not rank 0 of this job",
			getenv("MASTER_ADDR"), getenv("MASTER_PORT"));
	tune(fd, 0);
	mesh->fd[0] = fd;
}

void
mesh_open(struct mesh *mesh)
{
	struct addrinfo *at;
	int i;

	*mesh = (struct mesh){ 0 };
	mesh->rank = number(mesh, "RANK", 0);
	mesh->size = number(mesh, "WORLD_SIZE", 1);
	if (mesh->rank >= mesh->size)
		give_up(mesh, "RANK is %d, but WORLD_SIZE is %d", mesh->rank,
			mesh->size);
	mesh->fd = need(mesh, calloc((size_t)mesh->size, sizeof(int)));
	for (i = 0; i < mesh->size; i++)
		mesh->fd[i] = -1;
	if (mesh->size == 1)
		return;
	at = find_master(mesh);
	if (mesh->rank == 0)
		gather(mesh, at);
	else
		join(mesh, at);
	freeaddrinfo(at);
}

static void
add_all(struct mesh *mesh, float *value, size_t count)
{
	size_t len = count * sizeof(*value), k;
	int i;

	if (count > mesh->cap) {
		mesh->room = need(mesh, realloc(mesh->room, len));
		mesh->cap = count;
	}
	for (i = 1; i < mesh->size; i++) {
		check(mesh, i, receive(mesh->fd[i], mesh->room, len));
		for (k = 0; k < count; k++)
			value[k] += mesh->room[k];
	}
	for (i = 1; i < mesh->size; i++)
		check(mesh, i, send_all(mesh->fd[i], value, len));
}

void
mesh_sum(struct mesh *mesh, float *value, size_t count)
{
	size_t len = count * sizeof(*value);

	if (mesh->rank == 0) {
		add_all(mesh, value, count);
		return;
	}
	check(mesh, 0, send_all(mesh->fd[0], value, len));
	check(mesh, 0, receive(mesh->fd[0], value, len));
}

void
mesh_close(struct mesh *mesh)
{
	int i;

	for (i = 0; i < mesh->size; i++)
		if (mesh->fd[i] != -1)
			close(mesh->fd[i]);
	free(mesh->fd);
	free(mesh->room);
}
