/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_tty.h - the terminal that xrun itself was started on.
 *
 * With --pty and one rank it is only a window to the rank's own terminal: each
 * key is a byte, Ctrl-C as well, and goes there. How it was before stands in a
 * page that keeper and supervisor share; either of them puts it back, at the
 * end, before it stops, or when the other one has died.
 */
#ifndef LAUNCHER_KEEPER_OWN_TTY_H
#define LAUNCHER_KEEPER_OWN_TTY_H

#include <stdbool.h>
#include <stdint.h>

#include <termios.h>

#include <sys/ioctl.h>

struct own_tty {
	int32_t raw; /* it is ours, and @modes is how it was */
	struct termios modes;
};

/* own_tty_is_stdin() - is stdin a terminal, and that of our session? Whoever
 * reads another one asks nobody who may. */
bool own_tty_is_stdin(void);

/* own_tty_is_ours() - are we in its foreground, so that keys are for us? */
bool own_tty_is_ours(void);

/* own_tty_raw() - from now on each key is a byte; not in the background:
 * then false. */
bool own_tty_raw(struct own_tty *tty);

/* own_tty_restore() - as it was; nothing if it is. */
void own_tty_restore(struct own_tty *tty);

/* own_tty_modes() - what a person has chosen for it; false: it is none. */
bool own_tty_modes(const struct own_tty *tty, struct termios *modes);

/* own_tty_size() - of the terminal at stdin, stdout or stderr; else 80x24. */
void own_tty_size(struct winsize *size);

#endif /* LAUNCHER_KEEPER_OWN_TTY_H */
