/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tty_in.c - the terminal's input, for the rank that has it.
 *
 * A rank is in a session of its own and cannot read the terminal itself: what
 * is typed is copied to it through a pipe, and only while xrun's own group is
 * in the foreground; nothing tells a process that it came there, so that is
 * looked at again and again as long as input waits. A pipe or file as stdin is not ours to read: the rank
 * inherits it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/sup/sup.h"

#define AGAIN_NS (500 * NS_PER_MS)

struct tty_in {
	struct watch *input, *room;
	struct timer *again; /* in the background: is it still? */
	int pipe;            /* to the rank; non-blocking */
	char data[4096];
	size_t len; /* typed, and not taken by the rank yet */
};

static void
stop_reading(struct tty_in *in)
{
	watch_close(in->input);
	watch_close(in->room);
	timer_close(in->again);
	in->input = in->room = NULL;
	in->again = NULL;
	fd_close(in->pipe);
	in->pipe = -1;
}

static void
pass_on(struct tty_in *in)
{
	ssize_t n = write(in->pipe, in->data, in->len);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		stop_reading(in); /* the rank reads no more */
		return;
	}
	if (n > 0) {
		in->len -= (size_t)n;
		for (size_t i = 0; i < in->len; i++)
			in->data[i] = in->data[i + (size_t)n];
	}
	if (in->len > 0) {
		watch_pause(in->input);
		watch_resume(in->room);
	} else {
		watch_pause(in->room);
		watch_resume(in->input);
	}
}

static void
on_room(int fd, void *ctx)
{
	(void)fd;
	pass_on(ctx);
}

static void
on_input(int fd, void *ctx)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct tty_in *in = ctx;
	ssize_t n;

	/* In the background a read would fail, and the line is not ours. */
	if (tcgetpgrp(fd) != getpgrp()) {
		watch_pause(in->input);
		timer_arm(in->again, AGAIN_NS);
		return;
	}
	if (poll(&p, 1, 0) != 1)
		return;
	n = read(fd, in->data, sizeof(in->data));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) { /* ^D, or the terminal is gone */
		stop_reading(in);
		return;
	}
	in->len = (size_t)n;
	pass_on(in);
}

static void
on_again(void *ctx)
{
	tty_in_resume(ctx);
}

struct tty_in *
tty_in_open(struct job *job, int *rank_end)
{
	struct tty_in *in = calloc(1, sizeof(*in));
	struct loop *loop = job->sup->loop;
	int fd[2];

	if (in == NULL || pipe2(fd, O_CLOEXEC) == -1) {
		free(in);
		return NULL;
	}
	*rank_end = fd[0];
	in->pipe = fd[1];
	fcntl(in->pipe, F_SETFL, O_NONBLOCK);
	in->room = watch_open(loop, in->pipe, true, on_room, in);
	in->input = watch_open(loop, STDIN_FILENO, false, on_input, in);
	in->again = timer_open(loop, on_again, in);
	if (in->room != NULL)
		watch_pause(in->room);
	if (in->room == NULL || in->input == NULL || in->again == NULL) {
		fd_close(fd[0]);
		tty_in_close(in);
		return NULL;
	}
	return in;
}

void
tty_in_resume(struct tty_in *in)
{
	if (in->input != NULL && in->len == 0)
		watch_resume(in->input);
}

void
tty_in_close(struct tty_in *in)
{
	if (in == NULL)
		return;
	stop_reading(in);
	free(in);
}
