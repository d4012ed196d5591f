/* SPDX-License-Identifier: Apache-2.0 */
/* stdin_all.c - see stdin_all.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "launcher/keeper/own_tty.h"
#include "launcher/log/thread.h"
#include "launcher/sup/stdin_all.h"

#define CHUNK    (64 * 1024) /* what a pipe holds */
#define AGAIN_MS 1000        /* in the background: is it still? */

struct stdin_all {
	int fd;
	uint32_t ranks;
	uint32_t open; /* ranks that still read */
	bool keep;     /* atomic: fd stays when nobody listens */
	bool tty;      /* fd is our terminal: only read in the foreground */
	int sys;
	size_t len;    /* of data */
	size_t *taken; /* bytes of data that each rank has */
	struct pollfd
		*poll; /* a rank each, fd -1 if it is forgotten; then fd */
	char data[CHUNK];
};

struct stdin_all *
stdin_all_open(uint32_t ranks, int fd)
{
	struct stdin_all *all = calloc(1, sizeof(*all));

	if (all == NULL)
		return NULL;
	*all = (struct stdin_all){ .fd = fd, .ranks = ranks };
	all->taken = calloc(ranks, sizeof(*all->taken));
	all->poll = calloc((size_t)ranks + 1, sizeof(*all->poll));
	if (all->taken == NULL || all->poll == NULL) {
		free(all->taken);
		free(all->poll);
		free(all);
		return NULL;
	}
	for (uint32_t r = 0; r < ranks; r++)
		all->poll[r].fd = -1;
	return all;
}

int
stdin_all_add(struct stdin_all *all, uint32_t r)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC) == -1)
		return -1;
	fcntl(fd[1], F_SETFL, O_NONBLOCK);
	all->poll[r].fd = fd[1];
	all->open++;
	return fd[0];
}

bool
stdin_all_has(const struct stdin_all *all, uint32_t r)
{
	return all->poll[r].fd != -1;
}

static void
forget(struct stdin_all *all, uint32_t r)
{
	if (all->poll[r].fd == -1)
		return;
	fd_close(all->poll[r].fd);
	all->poll[r].fd = -1;
	all->open--;
}

/* As much as the rank takes now. True: it has all there is. */
static bool
give(struct stdin_all *all, uint32_t r)
{
	ssize_t n;

	while (all->taken[r] < all->len) {
		n = write(all->poll[r].fd, all->data + all->taken[r],
			all->len - all->taken[r]);
		if (n > 0)
			all->taken[r] += (size_t)n;
		else if (n == -1 && errno == EAGAIN)
			return false;
		else if (n == 0 || errno != EINTR) {
			forget(all, r);
			return true;
		}
	}
	return true;
}

/* To all ranks; gives how many of them are not at its end. Those are waited
 * for, the others only watched for their end. */
static uint32_t
give_all(struct stdin_all *all)
{
	uint32_t behind = 0;

	for (uint32_t r = 0; r < all->ranks; r++) {
		if (all->poll[r].fd == -1)
			continue;
		all->poll[r].events = 0;
		if (give(all, r))
			continue;
		all->poll[r].events = POLLOUT;
		behind++;
	}
	return behind;
}

/* For a rank to end, one behind to have room, and, with @input, something to
 * read. True: there is. */
static bool
await(struct stdin_all *all, bool input, int ms)
{
	struct pollfd *in = &all->poll[all->ranks];

	*in = (struct pollfd){ .fd = input ? all->fd : -1, .events = POLLIN };
	if (poll(all->poll, (nfds_t)all->ranks + 1, ms) <= 0)
		return false;
	for (uint32_t r = 0; r < all->ranks; r++)
		if ((all->poll[r].revents & (POLLERR | POLLNVAL)) != 0)
			forget(all, r);
	return in->revents != 0;
}

/* The next bytes into data. False: there are no more. */
static bool
take(struct stdin_all *all)
{
	ssize_t n;

	/* In the background a read would fail, and the line is not ours. */
	if (all->tty && !own_tty_is_ours()) {
		await(all, false, AGAIN_MS);
		return true;
	}
	n = read(all->fd, all->data, CHUNK);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n < 0 && !(all->tty && errno == EIO))
		__atomic_store_n(&all->sys, errno, __ATOMIC_SEQ_CST);
	if (n <= 0)
		return false;
	all->len = (size_t)n;
	for (uint32_t r = 0; r < all->ranks; r++)
		all->taken[r] = 0;
	return true;
}

/* Nothing stands behind @fd any more. */
static void
end_input(int fd)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null != -1)
		dup2(null, fd);
	fd_close(null);
}

static void *
run(void *arg)
{
	struct stdin_all *all = arg;

	while (all->open > 0) {
		if (give_all(all) > 0)
			await(all, false, -1);
		else if (all->open > 0 && await(all, true, -1) && !take(all))
			break;
	}
	/* Nobody listens: whoever writes to us is to know. */
	if (all->open == 0 && !all->tty &&
		!__atomic_load_n(&all->keep, __ATOMIC_SEQ_CST))
		end_input(all->fd);
	for (uint32_t r = 0; r < all->ranks; r++)
		forget(all, r);
	return NULL;
}

void
stdin_all_keep(struct stdin_all *all)
{
	__atomic_store_n(&all->keep, true, __ATOMIC_SEQ_CST);
}

int
stdin_all_start(struct stdin_all *all, bool keep)
{
	pthread_t thread;

	if (keep)
		stdin_all_keep(all);
	all->tty = own_tty_is_stdin();
	return thread_start(&thread, run, all);
}

int
stdin_all_sys(const struct stdin_all *all)
{
	return __atomic_load_n(&all->sys, __ATOMIC_SEQ_CST);
}
