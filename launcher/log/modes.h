/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modes.h - what a rank has switched on in the user's terminal. Pure.
 *
 * A single rank's output reaches a terminal as it is. A program that ends in
 * order puts back what it changed; one that is killed leaves an alternate
 * screen, no cursor, or a mouse that types. So each sequence that passes is
 * looked at, and at the end exactly what is still on is switched off: a
 * terminal in which nothing was switched gets no byte.
 *
 * It holds no pointer and needs no memory: it may stand in a shared page, where
 * the keeper finds it after a crash.
 */
#ifndef LAUNCHER_LOG_MODES_H
#define LAUNCHER_LOG_MODES_H

#include <stdint.h>

#include "base/buf.h"

#define MODES_END_MAX 320 /* bytes of modes_end() */
#define MODES_PARAMS  16  /* of a sequence; what follows is not looked at */

struct modes {
	uint32_t on;     /* a bit for each row of the table */
	uint8_t state;   /* of a sequence that goes on in the next piece: */
	uint8_t private; /* its '?', '>', '<' or '='; 0 */
	uint8_t between; /* its intermediate byte, before the final; 0 */
	uint8_t count;
	uint16_t param[MODES_PARAMS + 1]; /* the last is of the rest */
	uint8_t keyboards;                /* pushed: kitty's CSI > u */
};

/* modes_follow() - @data goes to the terminal. */
void modes_follow(struct modes *modes, struct span data);

/* modes_end() - what puts back all that is on, in @out; gives its length. Then
 * nothing is on. */
size_t modes_end(struct modes *modes, char out[static MODES_END_MAX]);

#endif /* LAUNCHER_LOG_MODES_H */
