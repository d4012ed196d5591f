/* SPDX-License-Identifier: Apache-2.0 */
/* own_tty.c - see own_tty.h. No heap: the keeper runs this after a crash. */
#include <stdio.h>
#include <unistd.h>

#include "launcher/keeper/own_tty.h"

bool
own_tty_is_stdin(void)
{
	return tcgetpgrp(STDIN_FILENO) != -1;
}

bool
own_tty_is_ours(void)
{
	return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* Announced before it is done: a death in between costs nothing. */
bool
own_tty_raw(struct own_tty *tty)
{
	struct termios modes;

	if (tty->raw)
		return true;
	if (!own_tty_is_ours() || tcgetattr(STDIN_FILENO, &modes) == -1)
		return false;
	tty->modes = modes;
	__atomic_store_n(&tty->raw, 1, __ATOMIC_SEQ_CST);
	cfmakeraw(&modes);
	tcsetattr(STDIN_FILENO, TCSANOW, &modes);
	return true;
}

void
own_tty_restore(struct own_tty *tty)
{
	if (__atomic_exchange_n(&tty->raw, 0, __ATOMIC_SEQ_CST))
		tcsetattr(STDIN_FILENO, TCSANOW, &tty->modes);
}

bool
own_tty_modes(const struct own_tty *tty, struct termios *modes)
{
	if (!tty->raw)
		return tcgetattr(STDIN_FILENO, modes) == 0;
	*modes = tty->modes;
	return true;
}

void
own_tty_size(struct winsize *size)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (ioctl(fd, TIOCGWINSZ, size) == 0 && size->ws_col > 0 &&
			size->ws_row > 0)
			return;
	*size = (struct winsize){ .ws_col = 80, .ws_row = 24 };
}
