/* SPDX-License-Identifier: Apache-2.0 */
/*
 * escape.h - keeping a rank's escape sequences off the user's terminal. Pure.
 *
 * Colour (SGR, ESC [ ... m) passes, but for SGR 8, which hides text. The control
 * characters that change the direction of text do not pass. Everything else that steers a terminal
 * (title, clipboard, cursor, bells) does not, be it written with ESC or as a
 * control character of 8 bits, in UTF-8 or not: bytes from 80 to 9f pass only as parts
 * of letters. Text, tabs, carriage returns and other bytes of 128 and above
 * pass. The raw files hold the original.
 */
#ifndef LAUNCHER_LOG_ESCAPE_H
#define LAUNCHER_LOG_ESCAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * escape_filter() - append @data to @out without such sequences.
 *
 * @narrow:  the terminal does not read UTF-8: no byte from 80 to 9f passes
 * @state:   kept between pieces of one stream; 0 at its beginning
 * @colored: set when an SGR sequence went through
 */
void escape_filter(struct buf *out, struct span data, bool narrow,
	uint8_t *state, bool *colored);

/* escape_end() - the line ends here: what was held back of it goes out. */
void escape_end(struct buf *out, uint8_t *state);

#endif /* LAUNCHER_LOG_ESCAPE_H */
