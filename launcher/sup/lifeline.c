/* SPDX-License-Identifier: Apache-2.0 */
/* lifeline.c - see lifeline.h. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/epoll.h>

#include "base/fd.h"
#include "launcher/sup/lifeline.h"

struct lifelines {
	uint32_t ranks;
	int epoll;
	int *fd; /* [ranks]; read ends, -1: none */
};

struct lifelines *
lifelines_open(uint32_t ranks)
{
	struct lifelines *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->ranks = ranks;
	l->fd = malloc(ranks * sizeof(*l->fd));
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->fd == NULL || l->epoll == -1) {
		fd_close(l->epoll);
		free(l->fd);
		free(l);
		return NULL;
	}
	for (uint32_t i = 0; i < ranks; i++)
		l->fd[i] = -1;
	return l;
}

int
lifelines_add(struct lifelines *l, uint32_t rank)
{
	/* Nothing is ever written: the end of the pipe is all that counts. */
	struct epoll_event e = { .events = 0, .data.u32 = rank };
	int fd[2];

	lifelines_drop(l, rank);
	if (pipe2(fd, O_CLOEXEC) == -1)
		return -1;
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd[0], &e) == -1) {
		fd_close(fd[0]);
		fd_close(fd[1]);
		return -1;
	}
	l->fd[rank] = fd[0];
	return fd[1];
}

void
lifelines_order(struct lifelines *l, uint32_t *order)
{
	struct epoll_event *events = malloc(l->ranks * sizeof(*events));
	int n = 0;

	memset(order, 0, l->ranks * sizeof(*order));
	if (events != NULL)
		n = epoll_wait(l->epoll, events, (int)l->ranks, 0);
	for (int i = 0; i < n; i++)
		order[events[i].data.u32] = (uint32_t)i + 1;
	free(events);
}

void
lifelines_drop(struct lifelines *l, uint32_t rank)
{
	if (l->fd[rank] == -1)
		return;
	epoll_ctl(l->epoll, EPOLL_CTL_DEL, l->fd[rank], NULL);
	fd_close(l->fd[rank]);
	l->fd[rank] = -1;
}
