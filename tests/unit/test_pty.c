/* SPDX-License-Identifier: Apache-2.0 */
/* test_pty.c - the terminals of ranks: their size and their modes. */
#include <fcntl.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <sys/ioctl.h>
#include <sys/resource.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "launcher/keeper/keeper.h"
#include "launcher/keeper/own_tty.h"
#include "launcher/sup/sup.h"
#include "launcher/sup/sup.h"
#include "tests/unit/at_end.h"

static struct line_prefix prefix[2 * RAW_STREAMS];
static struct rank rank[3]; /* the last is none of the job */
static struct sup sup;
static struct keeper_page page;
static struct job job = {
	.sup = &sup,
	.page = &page,
	.rank = rank,
	.route = { .prefix = prefix, .config = { .tty[RAW_OUT] = true } },
	.opt = { .pty = true },
	.plan = { .local_size = 2 },
};
static struct winsize screen = { .ws_row = 24, .ws_col = 80 };
static bool there = true; /* xrun's own terminal */

void __wrap_own_tty_size(struct winsize *size);
bool __wrap_own_tty_modes(const struct own_tty *tty, struct termios *modes);
void __wrap_typist_over(struct job *job_, uint32_t r);
bool __wrap_tty_in_is_for(const struct tty_in *in, int tty);
void __wrap_tty_in_close(struct tty_in *in);

static int keyboard = -1; /* the terminal that xrun's own keyboard is for */
static unsigned closed;

bool
__wrap_tty_in_is_for(const struct tty_in *in, int tty)
{
	cr_expect_eq((const void *)in, &keyboard);
	return tty == keyboard;
}

void
__wrap_tty_in_close(struct tty_in *in)
{
	cr_expect_eq((void *)in, &keyboard);
	closed++;
}

void
__wrap_own_tty_size(struct winsize *size)
{
	*size = screen;
}

bool
__wrap_own_tty_modes(const struct own_tty *tty, struct termios *modes)
{
	cr_expect_eq(tty, &page.own);
	if (there) {
		modes->c_cc[VINTR] = 'Z';
		modes->c_lflag |= ECHONL;
	}
	return there;
}

void
__wrap_typist_over(struct job *job_, uint32_t r)
{
	cr_expect_eq(job_, &job);
	cr_expect_lt(r, 2);
	cr_expect_neq(job.rank[r].tty, -1);
}

static void
init(void)
{
	rank[0].tty = rank[1].tty = -1;
}

static void
fini(void)
{
	pty_close(&job, 0);
	pty_close(&job, 1);
	AT_END(rank[0].tty == -1);
}

TestSuite(pty, .init = init, .fini = fini, .timeout = 60);

static void
set_prefix(uint32_t r, const char *text)
{
	struct line_prefix *p = &prefix[r * RAW_STREAMS];

	p->len = (uint16_t)strlen(text);
	memcpy(p->text, text, p->len);
}

static int
columns(int fd)
{
	struct winsize size = { 0 };

	cr_assert_eq(ioctl(fd, TIOCGWINSZ, &size), 0);
	cr_expect_eq(size.ws_row, screen.ws_row);
	return size.ws_col;
}

/* Of rank 0's terminal behind @text, as it begins on a screen of @wide and on one that
 * became so. */
static void
expect_columns(const char *text, unsigned short wide, int want)
{
	int slave;

	set_prefix(0, text);
	screen.ws_col = wide;
	slave = pty_open(&job, 0, false);
	cr_assert_neq(slave, -1);
	cr_expect_eq(columns(slave), want, "%d behind '%s'", columns(slave),
		text);
	screen.ws_col = 1000;
	screen.ws_row = 30;
	pty_resize(&job);
	screen.ws_col = wide;
	screen.ws_row = 24;
	pty_resize(&job);
	cr_expect_eq(columns(slave), want, "%d later", columns(slave));
	fd_close(slave);
	pty_close(&job, 0);
}

Test(pty, lines_fit_behind_their_prefix)
{
	expect_columns("", 80, 80);
	expect_columns("[0] ", 80, 76);
	expect_columns("[0] ", 5, 1);
	/* A prefix that leaves nothing takes nothing away. */
	expect_columns("[0] ", 4, 4);
	expect_columns("[0] ", 3, 3);
	/* Colours take no columns, and a character of several bytes takes one. */
	expect_columns("\033[36m0 \xe2\x94\x82 \033[0m", 80, 76);
	expect_columns("\033[1;36mm\033[0m", 80, 79);
	expect_columns("\xc2\x80\xc3\xbf", 80, 78);
	/* Of lines that go elsewhere nobody sees where they end. */
	job.route.config.tty[RAW_OUT] = false;
	expect_columns("[0] ", 80, 80);
}

Test(pty, each_rank_has_the_size_behind_its_own_prefix)
{
	int slave[2];

	set_prefix(0, "0 ");
	set_prefix(1, "long ");
	for (uint32_t r = 0; r < 2; r++) {
		slave[r] = pty_open(&job, r, false);
		cr_assert_neq(slave[r], -1);
	}
	cr_expect_eq(columns(slave[0]), 78);
	cr_expect_eq(columns(slave[1]), 75);
	screen.ws_col = 40;
	job.opt.pty = false;
	pty_resize(&job);
	cr_expect_eq(columns(slave[0]), 78);
	job.opt.pty = true;
	pty_close(&job, 0);
	pty_resize(&job);
	cr_expect_eq(columns(slave[1]), 35);
	for (uint32_t r = 0; r < 2; r++)
		fd_close(slave[r]);
}

/* What of a terminal's modes its kind decides. */
static void
expect_modes(bool typed, bool cooks, bool echoes, bool in_lines)
{
	struct termios modes;
	int slave = pty_open(&job, 0, typed);

	cr_assert_eq(tcgetattr(slave, &modes), 0);
	cr_expect_eq((modes.c_oflag & OPOST) != 0, cooks);
	cr_expect_eq((modes.c_lflag & ECHO) != 0, echoes);
	cr_expect_eq((modes.c_lflag & ICANON) != 0, in_lines);
	cr_expect_eq(modes.c_cc[VMIN] != 0, in_lines);
	cr_expect_eq((modes.c_lflag & ECHONL) != 0, echoes && there);
	cr_expect_neq(modes.c_lflag & NOFLSH, 0);
	cr_expect_eq(modes.c_cc[VINTR], there ? 'Z' : 3);
	fd_close(slave);
	pty_close(&job, 0);
}

Test(pty, its_modes_are_those_of_its_kind)
{
	for (int i = 0; i < 2; i++, there = false) {
		expect_modes(false, false, false, false);
		expect_modes(true, false, false, true);
		job.interactive = true;
		expect_modes(false, true, true, true);
		expect_modes(true, true, true, true);
		job.interactive = false;
		job.detach = (struct detach *)&job; /* who types comes later */
		expect_modes(false, false, false, false);
		expect_modes(true, true, true, true);
		job.detach = NULL;
	}
}

static struct termios
modes_of(int fd)
{
	struct termios modes;

	cr_assert_eq(tcgetattr(fd, &modes), 0);
	return modes;
}

static bool
is_same(const struct termios *a, const struct termios *b)
{
	return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag &&
		a->c_cflag == b->c_cflag && a->c_lflag == b->c_lflag &&
		memcmp(a->c_cc, b->c_cc, sizeof(a->c_cc)) == 0;
}

static bool
is_typed_at(const struct termios *m)
{
	return (m->c_oflag & OPOST) != 0 &&
		(m->c_lflag & (ICANON | ECHO)) == (ICANON | ECHO) &&
		m->c_cc[VMIN] == 1;
}

Test(pty, it_is_like_any_terminal_while_somebody_types)
{
	const struct winsize size = { .ws_row = 9, .ws_col = 33 };
	int slave = pty_open(&job, 0, false);
	struct termios old = modes_of(slave), now;
	struct pty_before before;
	struct winsize got;

	pty_typed(&job, 0, &size, &before);
	cr_expect(before.changed);
	now = modes_of(slave);
	cr_expect(is_typed_at(&now));
	cr_assert_eq(ioctl(slave, TIOCGWINSZ, &got), 0);
	cr_expect_eq(memcmp(&got, &size, sizeof(size)), 0);
	pty_left(&job, 0, &before);
	now = modes_of(slave);
	cr_expect(is_same(&now, &old));
	pty_typed(&job, 0, NULL, &before);
	cr_assert_eq(ioctl(slave, TIOCGWINSZ, &got), 0);
	cr_expect_eq(memcmp(&got, &size, sizeof(size)), 0);
	fd_close(slave);
}

/* What a program has made of it before, or makes of it meanwhile, stays. */
Test(pty, modes_of_a_programs_own_are_kept)
{
	int slave = pty_open(&job, 0, false);
	struct termios modes = modes_of(slave), own, now;
	struct pty_before before;

	for (int i = 0; i < 5; i++) {
		own = modes;
		own.c_oflag |= i == 0 ? OPOST : 0;
		own.c_lflag |= i == 1 ? ICANON : i == 2 ? ECHO : 0;
		own.c_cc[VMIN] = i == 3;
		own.c_cc[VTIME] = i == 4;
		cr_assert_eq(tcsetattr(slave, TCSANOW, &own), 0);
		own = modes_of(slave);
		pty_typed(&job, 0, NULL, &before);
		cr_expect_not(before.changed, "%d", i);
		pty_left(&job, 0, &before);
		now = modes_of(slave);
		cr_expect(is_same(&now, &own), "%d", i);
	}
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(tcsetattr(slave, TCSANOW, &modes), 0);
		pty_typed(&job, 0, NULL, &before);
		own = modes_of(slave);
		own.c_oflag ^= i == 0 ? OPOST : 0;
		own.c_lflag ^= i == 1 ? ECHO : 0;
		cr_assert_eq(tcsetattr(slave, TCSANOW, &own), 0);
		own = modes_of(slave);
		pty_left(&job, 0, &before);
		now = modes_of(slave);
		cr_expect(is_same(&now, &own), "%d", i);
	}
	fd_close(slave);
}

Test(pty, it_is_closed_when_the_rank_and_its_output_are_over)
{
	int slave = pty_open(&job, 0, false);

	rank[0].state = RANK_DONE;
	rank[0].open = 1;
	pty_close_if_over(&job, 0);
	cr_expect_neq(rank[0].tty, -1);
	rank[0].state = RANK_RUNNING;
	rank[0].open = 0;
	pty_close_if_over(&job, 0);
	cr_expect_neq(rank[0].tty, -1);
	rank[0].state = RANK_DONE;
	pty_close_if_over(&job, 0);
	cr_expect_eq(rank[0].tty, -1);
	fd_close(slave);
}

Test(pty, the_keyboard_goes_with_the_terminal_that_it_is_for)
{
	int slave[2] = { pty_open(&job, 0, false), pty_open(&job, 1, false) };

	keyboard = rank[1].tty;
	sup.tty_in = (struct tty_in *)&keyboard;
	pty_close(&job, 0);
	cr_expect_eq((void *)sup.tty_in, &keyboard);
	cr_expect_eq(closed, 0);
	pty_close(&job, 1);
	cr_expect_null(sup.tty_in);
	cr_expect_eq(closed, 1);
	fd_close(slave[0]);
	fd_close(slave[1]);
}

Test(pty, terminals_of_others_keep_their_size)
{
	struct winsize size = { .ws_row = 10, .ws_col = 11 };

	rank[2].tty = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	cr_assert_neq(rank[2].tty, -1);
	cr_assert_eq(ioctl(rank[2].tty, TIOCSWINSZ, &size), 0);
	pty_resize(&job);
	size = (struct winsize){ 0 };
	cr_assert_eq(ioctl(rank[2].tty, TIOCGWINSZ, &size), 0);
	cr_expect_eq(size.ws_row, 10);
	cr_expect_eq(size.ws_col, 11);
	fd_close(rank[2].tty);
}

Test(pty, without_descriptors_there_is_none)
{
	struct rlimit all, few;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &all), 0);
	for (int more = 0; more < 2; more++) { /* none, and one of the two */
		few = all;
		few.rlim_cur = (rlim_t)fd + 1 + (rlim_t)more;
		cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
		cr_expect_eq(pty_open(&job, 0, false), -1, "%d", more);
		cr_expect_eq(rank[0].tty, -1, "%d", more);
		cr_assert_eq(setrlimit(RLIMIT_NOFILE, &all), 0);
		cr_expect_eq(fcntl(fd + 1, F_GETFD), -1, "%d", more);
	}
	fd_close(fd);
}
