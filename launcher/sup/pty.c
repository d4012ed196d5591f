/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pty.c - a terminal for each rank (--pty).
 *
 * What the rank writes comes out of the master, which the mover reads; the
 * loop owns that descriptor: a program may close all it has of its terminal and
 * live on. What is typed goes into it; tty_in.c does that, for one rank.
 *
 * Where a person sits at it (one rank, xrun's own terminal a window to it) or
 * will (typist.c; the rank that has the input of a job that was left alone) it
 * is like any terminal: it echoes, and "\n" leaves it as "\r\n". Elsewhere the
 * lines of many ranks go through files and prefixes, and what comes out is
 * what was written: no echo, no "\r". A terminal at which nobody types is at
 * its end whenever it is read. Ctrl-C drops no output: files hold all.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <sys/ioctl.h>

#include "base/fd.h"
#include "launcher/keeper/keeper.h"
#include "launcher/keeper/own_tty.h"
#include "launcher/sup/sup.h"
#include "launcher/sup/typist.h"

static void
choose_modes(const struct job *job, bool typed, struct termios *modes)
{
	own_tty_modes(&job->page->own, modes);
	modes->c_lflag |= NOFLSH;
	if (job->interactive || (typed && job->detach != NULL))
		return;
	modes->c_oflag &= ~(tcflag_t)OPOST;
	modes->c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
	if (typed)
		return;
	modes->c_lflag &= ~(tcflag_t)ICANON;
	modes->c_cc[VMIN] = modes->c_cc[VTIME] = 0;
}

/* Columns of what stands before the rank's lines: characters outside of escape
 * sequences, which are colours. */
static unsigned
prefix_width(const struct line_prefix *p)
{
	bool escape = false;
	unsigned width = 0;

	for (uint32_t i = 0; i < p->len; i++) {
		if (p->text[i] == '\033')
			escape = true;
		else if (!escape && (p->text[i] & 0xc0) != 0x80)
			width++;
		if (p->text[i] == 'm')
			escape = false;
	}
	return width;
}

/* A rank's line fits the screen together with its prefix. */
static void
set_size(const struct job *job, uint32_t r, const struct winsize *size)
{
	struct winsize own = *size;
	unsigned width = prefix_width(&job->route.prefix[r * RAW_STREAMS]);

	if (job->route.config.tty[RAW_OUT] && width < own.ws_col)
		own.ws_col = (unsigned short)(own.ws_col - width);
	ioctl(job->rank[r].tty, TIOCSWINSZ, &own);
}

/* The rank's side. Without a name: the file system of terminals may not be
 * where we are. */
static int
open_slave(int master)
{
	int zero = 0;

	if (ioctl(master, TIOCSPTLCK, &zero) == -1)
		return -1;
	return ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

int
pty_open(struct job *job, uint32_t r, bool typed)
{
	struct termios modes;
	struct winsize size;
	int slave;

	job->rank[r].tty =
		open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (job->rank[r].tty == -1)
		return -1;
	slave = open_slave(job->rank[r].tty);
	if (slave == -1 || tcgetattr(slave, &modes) == -1) {
		pty_close(job, r);
		fd_close(slave);
		return -1;
	}
	choose_modes(job, typed, &modes);
	tcsetattr(slave, TCSANOW, &modes);
	own_tty_size(&size);
	set_size(job, r, &size);
	return slave;
}

/* The kernel tells the programs there. */
void
pty_resize(struct job *job)
{
	struct winsize size;

	if (!job->opt.pty)
		return;
	own_tty_size(&size);
	for (uint32_t i = 0; i < job_size(job); i++)
		if (job->rank[i].tty != -1)
			set_size(job, i, &size);
}

/* As choose_modes() makes those at which nobody types. No program wants it so:
 * one that takes each key by itself waits for it. */
static bool
is_nobodys(const struct termios *m)
{
	return (m->c_oflag & OPOST) == 0 &&
		(m->c_lflag & (ICANON | ECHO)) == 0 && m->c_cc[VMIN] == 0 &&
		m->c_cc[VTIME] == 0;
}

/* Twice, since a size that is none is no news: a program that has filled the
 * screen is to do so again. */
void
pty_size(struct job *job, uint32_t r, const struct winsize *size)
{
	struct winsize other = *size;

	other.ws_xpixel = 1;
	ioctl(job->rank[r].tty, TIOCSWINSZ, &other);
	ioctl(job->rank[r].tty, TIOCSWINSZ, size);
}

void
pty_typed(struct job *job, uint32_t r, const struct winsize *size,
	struct pty_before *before)
{
	struct termios now;

	*before = (struct pty_before){ 0 };
	if (tcgetattr(job->rank[r].tty, &now) == 0 && is_nobodys(&now)) {
		before->was = now;
		now.c_oflag |= OPOST;
		now.c_lflag |= ICANON | ECHO;
		now.c_cc[VMIN] = 1;
		before->changed =
			tcsetattr(job->rank[r].tty, TCSANOW, &now) == 0;
		before->is = now;
	}
	if (size != NULL)
		pty_size(job, r, size);
}

void
pty_left(struct job *job, uint32_t r, const struct pty_before *before)
{
	struct termios now;

	if (before->changed && tcgetattr(job->rank[r].tty, &now) == 0 &&
		now.c_oflag == before->is.c_oflag &&
		now.c_lflag == before->is.c_lflag)
		tcsetattr(job->rank[r].tty, TCSANOW, &before->was);
}

void
pty_close(struct job *job, uint32_t r)
{
	struct rank *rank = &job->rank[r];

	if (rank->tty == -1)
		return;
	if (job->sup->tty_in != NULL &&
		tty_in_is_for(job->sup->tty_in, rank->tty)) {
		tty_in_close(job->sup->tty_in);
		job->sup->tty_in = NULL;
	}
	typist_over(job, r);
	fd_close(rank->tty);
	rank->tty = -1;
}

void
pty_close_if_over(struct job *job, uint32_t r)
{
	if (job->rank[r].open == 0 && job->rank[r].state == RANK_DONE)
		pty_close(job, r);
}
