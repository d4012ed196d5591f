/* SPDX-License-Identifier: Apache-2.0 */
/* test_own_tty.c - the terminal that xrun was started on, made raw and put back. */
#include <pty.h>
#include <string.h>

#include "launcher/keeper/own_tty.h"
#include "tests/unit/forked.h"

static int screen = -1; /* the other end of the terminal */

/* Stdin is a terminal, and that of our session. */
static void
take_terminal(void)
{
	int fd;

	NEED(openpty(&screen, &fd, NULL, NULL, NULL) == 0);
	NEED(setsid() != -1);
	NEED(ioctl(fd, TIOCSCTTY, 0) == 0);
	NEED(dup2(fd, STDIN_FILENO) == STDIN_FILENO);
	close(fd);
}

static struct termios
modes_now(void)
{
	struct termios modes;

	NEED(tcgetattr(STDIN_FILENO, &modes) == 0);
	return modes;
}

static bool
is_raw(void)
{
	struct termios modes = modes_now(), raw = modes;

	cfmakeraw(&raw);
	return modes.c_iflag == raw.c_iflag && modes.c_oflag == raw.c_oflag &&
		modes.c_lflag == raw.c_lflag && modes.c_cflag == raw.c_cflag;
}

/* As it was: with the lines of a person, and an own key for ^C. */
static bool
is_old(const struct termios *modes)
{
	return (modes->c_lflag & (ICANON | ECHO | ISIG)) ==
		(ICANON | ECHO | ISIG) &&
		(modes->c_oflag & OPOST) != 0 && modes->c_cc[VINTR] == 'Z';
}

static void
choose_old(void)
{
	struct termios modes = modes_now();

	modes.c_cc[VINTR] = 'Z';
	NEED(tcsetattr(STDIN_FILENO, TCSANOW, &modes) == 0);
	modes = modes_now();
	NEED(is_old(&modes) && !is_raw());
}

FORKED_TEST(own_tty, it_is_raw_until_it_is_put_back)
{
	struct own_tty tty = { 0 };
	struct termios modes;

	take_terminal();
	choose_old();
	own_tty_restore(&tty); /* it is as it was */
	modes = modes_now();
	EXPECT(is_old(&modes));
	for (int i = 0; i < 2; i++) {
		EXPECT(own_tty_raw(&tty));
		EXPECT_EQ(tty.raw, 1);
		EXPECT(is_old(&tty.modes));
		EXPECT(is_raw());
		EXPECT(own_tty_raw(&tty));
		EXPECT(is_old(&tty.modes));
		own_tty_restore(&tty);
		EXPECT_EQ(tty.raw, 0);
		modes = modes_now();
		EXPECT(is_old(&modes));
		EXPECT(!is_raw());
	}
	/* Whoever has changed it since then keeps what he has chosen. */
	modes.c_lflag &= ~(tcflag_t)ECHO;
	NEED(tcsetattr(STDIN_FILENO, TCSANOW, &modes) == 0);
	own_tty_restore(&tty);
	modes = modes_now();
	EXPECT_EQ(modes.c_lflag & ECHO, 0);
}

FORKED_TEST(own_tty, the_modes_are_those_a_person_has_chosen)
{
	struct own_tty tty = { 0 };
	struct termios modes;

	take_terminal();
	choose_old();
	memset(&modes, 0, sizeof(modes));
	EXPECT(own_tty_modes(&tty, &modes));
	EXPECT(is_old(&modes));
	EXPECT(own_tty_raw(&tty));
	memset(&modes, 0, sizeof(modes));
	EXPECT(own_tty_modes(&tty, &modes));
	EXPECT(is_old(&modes));
	own_tty_restore(&tty);
	modes.c_cc[VINTR] = 'Y';
	NEED(tcsetattr(STDIN_FILENO, TCSANOW, &modes) == 0);
	memset(&modes, 0, sizeof(modes));
	EXPECT(own_tty_modes(&tty, &modes));
	EXPECT_EQ(modes.c_cc[VINTR], 'Y');
}

/* A terminal that belongs to another group of processes. */
FORKED_TEST(own_tty, in_the_background_it_is_left_alone)
{
	struct own_tty tty = { 0 };
	struct termios modes;
	pid_t other;
	int status;

	take_terminal();
	choose_old();
	EXPECT(own_tty_is_stdin() && own_tty_is_ours());
	other = fork();
	NEED(other != -1);
	if (other == 0) {
		alarm(FORKED_PATIENCE_S);
		setpgid(0, 0);
		for (;;)
			pause();
	}
	setpgid(other, other); /* the child may not have done it yet */
	NEED(tcsetpgrp(STDIN_FILENO, other) == 0);
	EXPECT(own_tty_is_stdin() && !own_tty_is_ours());
	EXPECT(!own_tty_raw(&tty));
	EXPECT_EQ(tty.raw, 0);
	modes = modes_now();
	EXPECT(is_old(&modes));
	kill(other, SIGKILL);
	EXPECT_EQ(waitpid(other, &status, 0), other);
}

FORKED_TEST(own_tty, what_is_no_terminal_of_ours_is_not_made_raw)
{
	struct own_tty tty = { 0 };
	struct termios modes;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	NEED(dup2(fd, STDIN_FILENO) == STDIN_FILENO);
	EXPECT(!own_tty_is_stdin() && !own_tty_is_ours());
	EXPECT(!own_tty_raw(&tty) && tty.raw == 0);
	EXPECT(!own_tty_modes(&tty, &modes));
	close(fd);
	/* A terminal of no session. */
	NEED(openpty(&screen, &fd, NULL, NULL, NULL) == 0);
	NEED(dup2(fd, STDIN_FILENO) == STDIN_FILENO);
	choose_old();
	EXPECT(!own_tty_is_stdin() && !own_tty_is_ours());
	EXPECT(!own_tty_raw(&tty) && tty.raw == 0);
	EXPECT(own_tty_modes(&tty, &modes) && is_old(&modes));
}

static void
expect_size(unsigned short columns, unsigned short rows)
{
	struct winsize size = { 0 };

	own_tty_size(&size);
	EXPECT_EQ(size.ws_col, columns);
	EXPECT_EQ(size.ws_row, rows);
}

static void
set_size(int fd, unsigned short columns, unsigned short rows)
{
	const struct winsize size = { .ws_col = columns, .ws_row = rows };

	NEED(ioctl(fd, TIOCSWINSZ, &size) == 0);
}

FORKED_TEST(own_tty, its_size_is_that_of_the_first_that_has_one)
{
	int none = open("/dev/null", O_RDWR | O_CLOEXEC), fd[3];

	for (int i = 0; i < 3; i++) {
		NEED(openpty(&screen, &fd[i], NULL, NULL, NULL) == 0);
		NEED(dup2(none, i) == i);
	}
	expect_size(80, 24);
	for (int i = 2; i >= 0; i--) {
		NEED(dup2(fd[i], i) == i);
		set_size(fd[i], 1, (unsigned short)(i + 1));
		expect_size(1, (unsigned short)(i + 1));
		set_size(fd[i], (unsigned short)(i + 1), 1);
		expect_size((unsigned short)(i + 1), 1);
	}
	set_size(fd[0], 0, 50);
	expect_size(2, 1);
	set_size(fd[0], 50, 0);
	expect_size(2, 1);
	set_size(fd[1], 0, 0);
	expect_size(3, 1);
	set_size(fd[2], 0, 0);
	expect_size(80, 24);
}
