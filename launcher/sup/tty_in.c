/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tty_in.c - the terminal's input, for the rank that has it.
 *
 * A rank is in a session of its own and cannot read the terminal itself: what
 * is typed is copied to it through a pipe, and only while xrun's own group is
 * in the foreground; nothing tells a process that it came there, so that is
 * looked at again and again as long as input waits. A pipe or file as stdin is
 * not ours to read: the rank inherits it.
 *
 * With --pty what is typed goes into the rank's terminal. Of a single rank all
 * keys do, Ctrl-C as well, and ours is in raw mode meanwhile: three times
 * Ctrl-] within a second are the way out, as of systemd-nspawn(1). In the
 * background it is looked every second whether we are in front. Else whole
 * lines do, and our ^D is typed there, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/keeper/keeper.h"
#include "launcher/keeper/own_tty.h"
#include "launcher/sup/sup.h"

#define AGAIN_NS (500 * NS_PER_MS)
#define BACK_NS  NS_PER_S
#define OUT_KEY  '\035' /* Ctrl-] */
#define OUT_KEYS 3
#define OUT_NS   NS_PER_S

struct tty_in {
	struct watch *input, *room;
	struct timer *again; /* in the background: is it still? */
	struct job *job;
	int pipe;     /* to the rank; non-blocking */
	bool tty;     /* it is the borrowed master of its terminal */
	char stop;    /* what ends a line there, and the input */
	int out_keys; /* pressed, since: */
	int64_t out_ns;
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
	if (!in->tty)
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

/* Who wants to leave? The keys are the program's all the same. */
static bool
wants_out(struct tty_in *in)
{
	bool out = false;

	for (size_t i = 0; i < in->len; i++) {
		if (in->data[i] != OUT_KEY) {
			in->out_keys = 0;
			continue;
		}
		if (in->out_keys == 0 || clock_now() - in->out_ns > OUT_NS) {
			in->out_keys = 0;
			in->out_ns = clock_now();
		}
		out = ++in->out_keys == OUT_KEYS || out;
		in->out_keys %= OUT_KEYS;
	}
	return out;
}

/* A line that was ended by ^D, or ^D alone, ends so in the rank's terminal. */
static void
end_line(struct tty_in *in)
{
	if (in->len == 0 || in->data[in->len - 1] != '\n')
		in->data[in->len++] = in->stop;
}

static void
take_input(struct tty_in *in)
{
	bool keys = in->tty && in->job->interactive;
	bool out = keys && wants_out(in);
	struct job *job = in->job;

	if (in->tty && (!keys || in->len == 0))
		end_line(in);
	pass_on(in);
	if (out)
		stop_by_ctrl_c(job);
}

static void
on_input(int fd, void *ctx)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct tty_in *in = ctx;
	ssize_t n;

	/* In the background a read would fail, and the line is not ours. */
	if (!own_tty_is_ours()) {
		watch_pause(in->input);
		timer_arm(in->again, AGAIN_NS);
		return;
	}
	if (in->job->interactive)
		own_tty_raw(&in->job->page->own);
	if (poll(&p, 1, 0) != 1)
		return;
	n = read(fd, in->data, sizeof(in->data) - 1);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	/* ^D, or the terminal is gone. */
	if (n < 0 || (n == 0 && (!in->tty || (p.revents & POLLHUP) != 0))) {
		stop_reading(in);
		return;
	}
	in->len = (size_t)n;
	take_input(in);
}

static void
on_again(void *ctx)
{
	tty_in_resume(ctx);
}

/* To @pipe, which does not block. */
static struct tty_in *
open_to(struct job *job, int pipe, bool tty)
{
	struct tty_in *in = calloc(1, sizeof(*in));
	struct loop *loop = job->sup->loop;

	if (in == NULL)
		return NULL;
	*in = (struct tty_in){ .job = job, .pipe = pipe, .tty = tty };
	in->room = watch_open(loop, in->pipe, true, on_room, in);
	in->input = watch_open(loop, STDIN_FILENO, false, on_input, in);
	in->again = timer_open(loop, on_again, in);
	if (in->room != NULL)
		watch_pause(in->room);
	if (in->room != NULL && in->input != NULL && in->again != NULL)
		return in;
	tty_in_close(in);
	return NULL;
}

struct tty_in *
tty_in_open(struct job *job, int *rank_end)
{
	struct tty_in *in;
	int fd[2];

	if (pipe2(fd, O_CLOEXEC) == -1)
		return NULL;
	fcntl(fd[1], F_SETFL, O_NONBLOCK);
	in = open_to(job, fd[1], false);
	if (in == NULL)
		fd_close(fd[0]);
	else
		*rank_end = fd[0];
	return in;
}

struct tty_in *
tty_in_open_pty(struct job *job, int master)
{
	struct tty_in *in = open_to(job, master, true);
	struct termios modes;

	if (in == NULL)
		return NULL;
	in->stop =
		tcgetattr(master, &modes) == 0 ? (char)modes.c_cc[VEOF] : CEOF;
	tty_in_resume(in);
	return in;
}

bool
tty_in_is_for(const struct tty_in *in, int master)
{
	return in->tty && in->pipe == master;
}

void
tty_in_resume(struct tty_in *in)
{
	if (in->input == NULL)
		return;
	if (in->job->interactive && !own_tty_raw(&in->job->page->own))
		timer_arm(in->again, BACK_NS);
	if (in->len == 0)
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
