/* SPDX-License-Identifier: Apache-2.0 */
/* test_tty_in.c - what is typed at xrun's terminal, for the rank that has it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "launcher/keeper/keeper.h"
#include "launcher/keeper/own_tty.h"
#include "launcher/sup/sup.h"
#include "tests/unit/at_end.h"

static struct sup sup;
static struct keeper_page page;
static struct job job = { .sup = &sup, .page = &page };

/* --- the loop and the terminal ---------------------------------------------- */

struct watch {
	bool open, on;
	int fd;
	watch_fn *fn;
	void *ctx;
};

static struct watch input, room;
static int64_t armed_ns, now = NS_PER_S;
static timer_fn *on_time;
static void *on_time_ctx;
static bool timer_is_open, refuses_timer, ours = true;
static unsigned raws, stops;

struct watch *__wrap_watch_open(struct loop *loop, int fd, bool write,
	watch_fn *fn, void *ctx);
void __wrap_watch_pause(struct watch *w);
void __wrap_watch_resume(struct watch *w);
void __wrap_watch_close(struct watch *w);
struct timer *__wrap_timer_open(struct loop *loop, timer_fn *fn, void *ctx);
void __wrap_timer_arm(struct timer *timer, int64_t ns);
void __wrap_timer_close(struct timer *timer);
bool __wrap_own_tty_is_ours(void);
bool __wrap_own_tty_raw(struct own_tty *tty);
int64_t __wrap_clock_now(void);
void __wrap_stop_by_ctrl_c(struct job *job_);

struct watch *
__wrap_watch_open(struct loop *loop, int fd, bool write, watch_fn *fn,
	void *ctx)
{
	struct watch *w = write ? &room : &input;

	(void)loop;
	*w = (struct watch){ true, true, fd, fn, ctx };
	return w;
}

void
__wrap_watch_pause(struct watch *w)
{
	w->on = false;
}

void
__wrap_watch_resume(struct watch *w)
{
	w->on = true;
}

void
__wrap_watch_close(struct watch *w)
{
	if (w != NULL)
		w->open = w->on = false;
}

struct timer *
__wrap_timer_open(struct loop *loop, timer_fn *fn, void *ctx)
{
	(void)loop;
	on_time = fn;
	on_time_ctx = ctx;
	timer_is_open = !refuses_timer;
	return refuses_timer ? NULL : (struct timer *)&armed_ns;
}

void
__wrap_timer_arm(struct timer *timer, int64_t ns)
{
	cr_expect_eq(timer, (struct timer *)&armed_ns);
	armed_ns = ns;
}

void
__wrap_timer_close(struct timer *timer)
{
	if (timer != NULL)
		timer_is_open = false;
}

bool
__wrap_own_tty_is_ours(void)
{
	return ours;
}

bool
__wrap_own_tty_raw(struct own_tty *tty)
{
	cr_expect_eq(tty, &page.own);
	raws++;
	return ours;
}

int64_t
__wrap_clock_now(void)
{
	return now;
}

void
__wrap_stop_by_ctrl_c(struct job *job_)
{
	cr_expect_eq(job_, &job);
	stops++;
}

/* --- what is typed ---------------------------------------------------------- */

static int keyboard = -1, master = -1, rank_end = -1;
static struct tty_in *in;

/* Each message is what one read() gives; an empty one is ^D. */
static void
make_keyboard(void)
{
	int pair[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
			     pair),
		0);
	cr_assert_eq(dup2(pair[1], STDIN_FILENO), STDIN_FILENO);
	close(pair[1]);
	keyboard = pair[0];
}

/* The rank's terminal is behind @master. */
static void
open_pty(bool interactive)
{
	int fd[2];

	make_keyboard();
	job.interactive = interactive;
	cr_assert_eq(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
	master = fd[1];
	rank_end = fd[0];
	in = tty_in_open_pty(&job, master);
	cr_assert_not_null(in);
	cr_expect(tty_in_is_for(in, master));
	cr_expect_not(tty_in_is_for(in, master + 1));
	cr_expect(input.on);
	cr_expect_not(room.on);
	cr_expect_eq(input.fd, STDIN_FILENO);
	cr_expect_eq(room.fd, master);
}

static void
open_pipe(void)
{
	make_keyboard();
	in = tty_in_open(&job, &rank_end);
	cr_assert_not_null(in);
	cr_expect_not(tty_in_is_for(in, room.fd));
	cr_expect(fcntl(room.fd, F_GETFL) & O_NONBLOCK);
	cr_assert_eq(fcntl(rank_end, F_SETFL, O_NONBLOCK), 0);
}

static void
type(const char *keys)
{
	cr_assert_eq(send(keyboard, keys, strlen(keys), 0),
		(ssize_t)strlen(keys));
	input.fn(STDIN_FILENO, input.ctx);
}

/* The rank has got just @want since. */
static void
is_got(const char *want)
{
	char got[8192] = "";
	ssize_t n = read(rank_end, got, sizeof(got) - 1);

	got[n < 0 ? 0 : n] = '\0';
	cr_expect_str_eq(got, want);
}

static void
fini(void)
{
	tty_in_close(in);
	AT_END(!input.open && !room.open && !timer_is_open);
}

TestSuite(tty_in, .fini = fini);

Test(tty_in, lines_go_through_a_pipe_as_they_are)
{
	open_pipe();
	type("a line\n");
	is_got("a line\n");
	type("half");
	is_got("half");
	cr_expect_eq(raws, 0);
	/* the keys of the way out are those of --pty */
	job.interactive = true;
	type("\035\035\035");
	is_got("\035\035\035");
	cr_expect_eq(stops, 0);
	/* ^D is the end */
	type("");
	cr_expect_not(input.open);
	cr_expect_not(timer_is_open);
	cr_expect_eq(read(rank_end, &(char){ 0 }, 1), 0);
	tty_in_resume(in);
	cr_expect_not(input.on);
}

Test(tty_in, a_line_that_is_ended_by_the_end_key_ends_so_in_the_terminal)
{
	open_pty(false);
	type("a line\n");
	is_got("a line\n");
	type("half");
	is_got("half\004");
	type("");
	is_got("\004");
	cr_expect(input.on);
	type("\035\035\035\n"); /* not the way out */
	is_got("\035\035\035\n");
	cr_expect_eq(stops, 0);
	cr_expect_eq(raws, 0);
	/* the end of the terminal */
	close(keyboard);
	input.fn(STDIN_FILENO, input.ctx);
	cr_expect_not(input.open);
	cr_expect_neq(fcntl(master, F_GETFD), -1); /* it is borrowed */
}

Test(tty_in, keys_of_a_single_rank_are_passed_on_as_they_are)
{
	open_pty(true);
	cr_expect_eq(raws, 1);
	type("x");
	is_got("x");
	type("");
	is_got("\004");
	cr_expect_eq(raws, 3);
}

Test(tty_in, three_times_the_key_within_a_second_is_the_way_out)
{
	open_pty(true);
	type("\035");
	type("\035");
	cr_expect_eq(stops, 0);
	type("\035");
	cr_expect_eq(stops, 1);
	is_got("\035\035\035");
	/* the next three begin anew */
	type("\035\035");
	cr_expect_eq(stops, 1);
	type("\035x");
	cr_expect_eq(stops, 2);
	/* another key between them */
	type("\035\035x\035");
	cr_expect_eq(stops, 2);
	type("\035\035");
	cr_expect_eq(stops, 3);
	/* a fourth one in the same piece */
	type("\035\035\035\035x");
	cr_expect_eq(stops, 4);
	stops = 3;
	/* at most one second after the first */
	type("\035\035");
	now += NS_PER_S;
	type("\035");
	cr_expect_eq(stops, 4);
	type("\035\035");
	now += NS_PER_S + 1;
	type("\035");
	cr_expect_eq(stops, 4);
	type("\035");
	cr_expect_eq(stops, 4);
	type("\035");
	cr_expect_eq(stops, 5);
}

Test(tty_in, in_the_background_nothing_is_read)
{
	open_pty(true);
	ours = false;
	type("x");
	is_got("");
	cr_expect_not(input.on);
	cr_expect_eq(armed_ns, 500 * NS_PER_MS);
	armed_ns = 0;
	on_time(on_time_ctx);
	cr_expect(input.on);
	cr_expect_eq(armed_ns, NS_PER_S);
	ours = true;
	armed_ns = 0;
	input.fn(STDIN_FILENO, input.ctx);
	is_got("x");
	cr_expect_eq(armed_ns, 0);
	tty_in_resume(in);
	cr_expect_eq(armed_ns, 0);
	/* nothing is there to be read */
	input.fn(STDIN_FILENO, input.ctx);
	cr_expect(input.open);
	is_got("");
}

Test(tty_in, a_rank_that_does_not_read_stops_the_keyboard)
{
	char block[4096], got[4096];

	open_pipe();
	memset(block, 'x', sizeof(block));
	while (write(room.fd, block, sizeof(block)) > 0)
		continue;
	type("typed\n");
	cr_expect_not(input.on);
	cr_expect(room.on);
	tty_in_resume(in);
	cr_expect_not(input.on);
	while (read(rank_end, got, sizeof(got)) > 0)
		continue;
	room.fn(room.fd, room.ctx);
	is_got("typed\n");
	cr_expect(input.on);
	cr_expect_not(room.on);
	/* nobody reads it any more */
	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	close(rank_end);
	type("typed\n");
	cr_expect_not(input.open);
}

Test(tty_in, without_a_timer_nothing_stays_open)
{
	int free_fd;

	make_keyboard();
	free_fd = dup(STDERR_FILENO);
	close(free_fd);
	refuses_timer = true;
	cr_expect_null(tty_in_open(&job, &rank_end));
	cr_expect_eq(rank_end, -1);
	cr_expect_eq(dup(STDERR_FILENO), free_fd);
}
