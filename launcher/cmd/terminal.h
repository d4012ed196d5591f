/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.h - what may be sent to a terminal, by the environment. */
#ifndef LAUNCHER_CMD_TERMINAL_H
#define LAUNCHER_CMD_TERMINAL_H

#include <stdbool.h>

/* terminal_takes_escapes() - does the terminal, if there is one, take escape
 * sequences? */
bool terminal_takes_escapes(void);

/* terminal_wants_color() - is output to be coloured? @mode: of --color, enum
 * color_mode; @tty: it goes to a terminal */
bool terminal_wants_color(int mode, bool tty);

#endif /* LAUNCHER_CMD_TERMINAL_H */
