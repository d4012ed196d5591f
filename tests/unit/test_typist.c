/* SPDX-License-Identifier: Apache-2.0 */
/* test_typist.c - a keyboard elsewhere, for the terminal of a rank. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/socket.h>

#include <criterion/criterion.h>

#include "base/status.h"
#include "launcher/ctl/server.h"
#include "launcher/sup/steer.h"
#include "launcher/sup/sup.h"
#include "launcher/sup/typist.h"
#include "tests/unit/noted.h"

struct watch {
	watch_fn *fn;
	void *ctx;
	int fd;
	bool on, room;
};

struct ctl_client {
	char name;
	int sends; /* the descriptor that came along */
};

static struct watch watches[8];
static unsigned watch_count, watch_fails; /* at the n-th; 0: none */
static struct ctl_client a = { 'a', -1 }, b = { 'b', -1 };
static struct rank ranks[3];
static struct sup sup;
static struct job job = {
	.sup = &sup,
	.rank = ranks,
	.plan = { .size = 13, .first = 10, .local_size = 3 },
};
static int tty[2]; /* a pipe: what is typed comes out of the first */
static bool no_stream, is_ours;

struct watch *__wrap_watch_open(struct loop *loop, int fd, bool writable,
	watch_fn *fn, void *ctx);
void __wrap_watch_pause(struct watch *watch);
void __wrap_watch_resume(struct watch *watch);
void __wrap_watch_close(struct watch *watch);
void __wrap_steer_close(struct job *j, int fd);
bool __wrap_steer_is_stream(int fd);
void __wrap_ctl_hold(struct ctl_client *client, int by);
int __wrap_ctl_take_fd(struct ctl_client *from);
void __wrap_ctl_send(struct ctl_client *to, const struct control *m);
void __wrap_ctl_refuse(struct ctl_client *to, int64_t id, enum xr_status status,
	const struct xr_error *err);
void __wrap_pty_typed(struct job *j, uint32_t r, const struct winsize *size,
	struct pty_before *before);
void __wrap_pty_left(struct job *j, uint32_t r,
	const struct pty_before *before);
void __wrap_pty_size(struct job *j, uint32_t r, const struct winsize *size);
bool __wrap_tty_in_is_for(const struct tty_in *in, int master);

struct watch *
__wrap_watch_open(struct loop *loop, int fd, bool writable, watch_fn *fn,
	void *ctx)
{
	struct watch *w = &watches[watch_count++];

	(void)loop;
	if (watch_fails > 0 && --watch_fails == 0)
		return NULL;
	*w = (struct watch){ fn, ctx, fd, true, writable };
	return w;
}

void
__wrap_watch_pause(struct watch *watch)
{
	watch->on = false;
}

void
__wrap_watch_resume(struct watch *watch)
{
	watch->on = true;
}

void
__wrap_watch_close(struct watch *watch)
{
	if (watch != NULL)
		note("unwatch:%d ", watch->room);
}

void
__wrap_steer_close(struct job *j, int fd)
{
	cr_expect_eq(j, &job);
	note("close ");
	cr_expect_eq(close(fd), 0);
}

bool
__wrap_steer_is_stream(int fd)
{
	cr_expect_neq(fd, -1);
	return !no_stream;
}

void
__wrap_ctl_hold(struct ctl_client *client, int by)
{
	note("hold:%c,%d ", client->name, by);
}

int
__wrap_ctl_take_fd(struct ctl_client *from)
{
	int fd = from->sends;

	from->sends = -1;
	return fd;
}

void
__wrap_ctl_send(struct ctl_client *to, const struct control *m)
{
	note("%s:%c,%d ", control_rows[m->type].name, to->name, (int)m->id);
}

void
__wrap_ctl_refuse(struct ctl_client *to, int64_t id, enum xr_status status,
	const struct xr_error *err)
{
	note("%s:%c,%d [%s] ", xr_status_name(status), to->name, (int)id,
		err->text);
}

void
__wrap_pty_typed(struct job *j, uint32_t r, const struct winsize *size,
	struct pty_before *before)
{
	cr_expect_eq(j, &job);
	before->changed = true;
	if (size == NULL)
		note("typed:%u ", r);
	else
		note("typed:%u,%ux%u ", r, size->ws_row, size->ws_col);
}

void
__wrap_pty_left(struct job *j, uint32_t r, const struct pty_before *before)
{
	cr_expect_eq(j, &job);
	cr_expect(before->changed);
	note("left:%u ", r);
}

void
__wrap_pty_size(struct job *j, uint32_t r, const struct winsize *size)
{
	cr_expect_eq(j, &job);
	note("size:%u,%ux%u ", r, size->ws_row, size->ws_col);
}

bool
__wrap_tty_in_is_for(const struct tty_in *in, int master)
{
	cr_expect_eq(in, (struct tty_in *)&job);
	return is_ours && master == ranks[1].tty;
}

static int pair[2]; /* the first is the keyboard's end */

static void
begin(void)
{
	cr_assert_eq(pipe2(tty, O_NONBLOCK | O_CLOEXEC), 0);
	for (int i = 0; i < 3; i++)
		ranks[i].tty = tty[1];
	job.opt.pty = true;
	snprintf(job.state.id, sizeof(job.state.id), "k7m2");
}

TestSuite(typist, .init = begin, .timeout = 20);

static const char *
attach(struct ctl_client *from, int64_t rank, int64_t rows, int64_t cols)
{
	struct control m = control_new(CONTROL_ATTACH, 5);

	m.attach.rank = rank;
	m.attach.rows = rows;
	m.attach.cols = cols;
	done[0] = '\0';
	typist_asked(&job, from, &m);
	return done;
}

/* The same, with a keyboard. */
static const char *
attach_with(struct ctl_client *from, int64_t rank, int64_t rows, int64_t cols)
{
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair),
		0);
	from->sends = pair[1];
	return attach(from, rank, rows, cols);
}

static const char *
resize(struct ctl_client *from, int64_t rows, int64_t cols)
{
	struct control m = control_new(CONTROL_RESIZE, 6);

	m.resize.rows = rows;
	m.resize.cols = cols;
	done[0] = '\0';
	typist_asked(&job, from, &m);
	return done;
}

Test(typist, who_may_not_attach_is_told_why)
{
	cr_expect_str_eq(attach(&a, 9, 0, 0),
		"XR_E_RANGE:a,5 [attach: there is no rank 9] ");
	cr_expect_str_eq(attach(&a, 13, 0, 0),
		"XR_E_RANGE:a,5 [attach: there is no rank 13] ");
	job.opt.pty = false;
	cr_expect_str_eq(attach(&a, 12, 0, 0),
		"XR_E_STATE:a,5 [attach: ranks of k7m2 have no terminal to "
		"type at: it was started without --pty] ");
	job.opt.pty = true;
	ranks[2].tty = -1;
	cr_expect_str_eq(attach(&a, 12, 0, 0),
		"XR_E_STATE:a,5 [attach: the terminal of rank 12 is closed] ");
	cr_expect_str_eq(attach(&a, 10, 0, 0),
		"XR_E_INVAL:a,5 [attach: a stream socket has to come along] ");
	no_stream = true;
	cr_expect_str_eq(attach_with(&a, 10, 0, 0),
		"close XR_E_INVAL:a,5 [attach: a stream socket has to come "
		"along] ");
	no_stream = false;
	watch_fails = 1;
	cr_expect_str_eq(attach_with(&a, 10, 0, 0),
		"unwatch:0 close XR_E_NOMEM:a,5 [attach: no memory for it] ");
	watch_fails = 2;
	cr_expect_str_eq(attach_with(&a, 10, 0, 0),
		"unwatch:1 close XR_E_NOMEM:a,5 [attach: no memory for it] ");
	cr_expect_str_eq(resize(&a, 1, 1),
		"XR_E_STATE:a,6 [resize: this connection is not attached] ");
}

Test(typist, a_rank_has_one_keyboard)
{
	cr_expect_str_eq(attach_with(&a, 10, 24, 80),
		"hold:a,1 typed:0,24x80 done:a,5 ");
	cr_expect_str_eq(attach_with(&a, 11, 0, 0),
		"XR_E_EXISTS:a,5 [attach: this connection is attached already] ");
	close(a.sends);
	a.sends = -1;
	cr_expect_str_eq(attach_with(&b, 10, 0, 0),
		"XR_E_EXISTS:b,5 [rank 10 of k7m2: somebody types there already] ");
	close(b.sends);
	b.sends = -1;
	sup.tty_in = (struct tty_in *)&job;
	is_ours = true;
	cr_expect_str_eq(attach_with(&b, 11, 0, 0),
		"XR_E_EXISTS:b,5 [rank 11 of k7m2: somebody types there already] ");
	is_ours = false;
	cr_expect_str_eq(attach(&b, 11, 0, 0), "hold:b,1 typed:1 done:b,5 ");
	/* Each ends by itself. */
	done[0] = '\0';
	typist_over(&job, 2);
	cr_expect_str_eq(done, "");
	typist_over(&job, 0);
	cr_expect_str_eq(done, "unwatch:0 unwatch:1 close hold:a,-1 left:0 ");
	done[0] = '\0';
	typist_gone(&job, &a);
	cr_expect_str_eq(done, "");
	typist_gone(&job, &b);
	cr_expect_str_eq(done, "unwatch:0 unwatch:1 close hold:b,-1 left:1 ");
	cr_expect(LIST_EMPTY(&sup.typists));
}

Test(typist, a_size_has_limits)
{
	cr_expect_str_eq(attach_with(&a, 12, 1, 65535),
		"hold:a,1 typed:2,1x65535 done:a,5 ");
	cr_expect_str_eq(resize(&a, 65535, 1), "size:2,65535x1 done:a,6 ");
	cr_expect_str_eq(resize(&a, 1, 1), "size:2,1x1 done:a,6 ");
	for (int i = 0; i < 4; i++)
		cr_expect_str_eq(resize(&a,
					 i == 0         ? 0 :
						 i == 1 ? 65536 :
							  1,
					 i == 2         ? 0 :
						 i == 3 ? 65536 :
							  1),
			"XR_E_RANGE:a,6 [resize: no such size] ");
	cr_expect_str_eq(resize(&b, 1, 1),
		"XR_E_STATE:b,6 [resize: this connection is not attached] ");
	typist_gone(&job, &a);
	cr_expect_str_eq(attach_with(&a, 12, 0, 80),
		"hold:a,1 typed:2 done:a,5 ");
	typist_gone(&job, &a);
}

/* The watches of the one that was opened last. */
static struct watch *
room(void)
{
	return &watches[watch_count - 2];
}

static struct watch *
input(void)
{
	return &watches[watch_count - 1];
}

static void
turn(struct watch *w)
{
	cr_assert(w->on);
	w->fn(w->fd, w->ctx);
}

static void
expect_typed(const char *text)
{
	char got[200];
	ssize_t n = read(tty[0], got, sizeof(got) - 1);

	got[n > 0 ? n : 0] = '\0';
	cr_expect_str_eq(got, text);
}

Test(typist, what_comes_is_typed_as_fast_as_the_terminal_takes_it)
{
	static char much[1 << 20], got[8192];
	ssize_t n;

	attach_with(&a, 11, 0, 0);
	cr_expect(room()->room && !room()->on && room()->fd == tty[1]);
	cr_expect(!input()->room && input()->on && input()->fd == pair[1]);
	cr_assert_eq(write(pair[0], "abc", 3), 3);
	turn(input());
	expect_typed("abc");
	cr_expect(input()->on && !room()->on);
	input()->fn(pair[1], input()->ctx); /* nothing is there */
	expect_typed("");
	cr_expect(!LIST_EMPTY(&sup.typists));
	/* The terminal is full but for some bytes. */
	cr_assert(fcntl(tty[1], F_SETPIPE_SZ, 4096) >= 4096);
	n = write(tty[1], much, sizeof(much));
	cr_assert(n >= 4096);
	cr_assert_eq(write(pair[0], "defgh", 5), 5);
	turn(input());
	cr_expect(room()->on && !input()->on);
	turn(room());
	cr_expect(room()->on && !input()->on);
	while (n > 0)
		n -= read(tty[0], got, sizeof(got));
	turn(room());
	expect_typed("defgh");
	cr_expect(!room()->on && input()->on);
	/* 4 KiB are held at most. */
	cr_assert_eq(write(pair[0], much, 5000), 5000);
	turn(input());
	cr_expect_eq(read(tty[0], got, sizeof(got)), 4096);
	turn(input());
	cr_expect_eq(read(tty[0], got, sizeof(got)), 5000 - 4096);
	done[0] = '\0';
	close(pair[0]);
	turn(input());
	cr_expect_str_eq(done, "unwatch:0 unwatch:1 close hold:a,-1 left:1 ");
}

/* A part of it is taken. */
Test(typist, the_rest_is_typed_later)
{
	static char got[70000], want[4096];
	ssize_t n, sum = 0, all;
	int fd;

	attach_with(&a, 11, 0, 0);
	cr_assert_eq(socketpair(AF_UNIX,
			     SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
			     tty),
		0);
	ranks[1].tty = tty[1];
	for (size_t i = 0; i < sizeof(want); i++)
		want[i] = (char)('a' + i % 23);
	all = 0;
	fd = tty[1];
	while ((n = write(fd, "......................................", 37)) >
		0)
		all += n;
	cr_assert_eq(write(pair[0], want, sizeof(want)), sizeof(want));
	turn(input());
	cr_expect(room()->on);
	for (int i = 0; i < 10000 && sum < all + (ssize_t)sizeof(want); i++) {
		n = read(tty[0], got, 1000);
		if (n > 0)
			sum += n;
		if (room()->on)
			turn(room());
	}
	cr_expect_eq(sum, all + (ssize_t)sizeof(want));
	cr_expect(!room()->on && input()->on);
	typist_gone(&job, &a);
}

Test(typist, a_terminal_that_is_gone_ends_it)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	sigaction(SIGPIPE, &ignore, NULL);
	attach_with(&a, 11, 0, 0);
	close(tty[0]);
	cr_assert_eq(write(pair[0], "abc", 3), 3);
	done[0] = '\0';
	turn(input());
	cr_expect_str_eq(done, "unwatch:0 unwatch:1 close hold:a,-1 left:1 ");
	cr_expect(LIST_EMPTY(&sup.typists));
}
