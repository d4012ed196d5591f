/* SPDX-License-Identifier: Apache-2.0 */
/* heir.c - see heir.h. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "worker/net/heir.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned generation; /* written in a child that has one thread */

/* A bit for each descriptor: under the lock. */
static uint64_t *noted;
static size_t words;

static void
before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void
in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void
in_child(void)
{
	for (size_t i = 0; i < words; i++)
		for (; noted[i] != 0; noted[i] &= noted[i] - 1)
			close((int)(i * 64) + __builtin_ctzll(noted[i]));
	generation++;
	pthread_mutex_unlock(&lock);
}

static void
prepare(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

unsigned
heir_generation(void)
{
	return generation;
}

/* Room for the bit of @fd. */
static bool
make_room(size_t fd)
{
	size_t n = words == 0 ? 16 : words;
	uint64_t *more;

	while (n * 64 <= fd)
		n *= 2;
	if (n == words)
		return true;
	more = reallocarray(noted, n, sizeof(*more));
	if (more == NULL)
		return false;
	for (size_t i = words; i < n; i++)
		more[i] = 0;
	noted = more;
	words = n;
	return true;
}

/* Under the lock. */
static bool
note(int fd)
{
	if (!make_room((size_t)fd))
		return false;
	noted[fd / 64] |= UINT64_C(1) << (fd % 64);
	return true;
}

bool
heir_note(int fd)
{
	bool done = true;

	if (fd < 0)
		return true;
	pthread_once(&once, prepare);
	pthread_mutex_lock(&lock);
	done = note(fd);
	pthread_mutex_unlock(&lock);
	return done;
}

/* Under the lock. */
static int
note_new(int fd)
{
	if (fd == -1 || note(fd))
		return fd;
	close(fd);
	errno = ENOMEM;
	return -1;
}

int
heir_socket(int family)
{
	int fd;

	pthread_once(&once, prepare);
	pthread_mutex_lock(&lock);
	fd = note_new(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		0));
	pthread_mutex_unlock(&lock);
	return fd;
}

int
heir_accept(int door, struct sockaddr *at, socklen_t *len)
{
	int fd;

	pthread_once(&once, prepare);
	pthread_mutex_lock(&lock);
	fd = note_new(accept4(door, at, len, SOCK_CLOEXEC | SOCK_NONBLOCK));
	pthread_mutex_unlock(&lock);
	return fd;
}

void
heir_close(int fd)
{
	if (fd < 0)
		return;
	pthread_mutex_lock(&lock);
	if ((size_t)fd / 64 < words)
		noted[fd / 64] &= ~(UINT64_C(1) << (fd % 64));
	fd_close(fd);
	pthread_mutex_unlock(&lock);
}
