/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leave.h - the keys that leave a rank's terminal, among those that are typed:
 * Ctrl-P Ctrl-Q, as docker-attach(1) has them. Pure.
 *
 * A Ctrl-P is kept back until it is known what follows. Whoever waits for the
 * next key lets it go after a while, for programs that know the key as well.
 */
#ifndef LAUNCHER_CMD_LEAVE_H
#define LAUNCHER_CMD_LEAVE_H

#include <stdbool.h>
#include <stddef.h>

#define LEAVE_FIRST  '\020' /* Ctrl-P */
#define LEAVE_SECOND '\021' /* Ctrl-Q */

struct leave {
	bool kept; /* the first of them was typed, and not passed on */
};

/*
 * leave_pass() - @len bytes of @in were typed: what goes on to @out.
 *
 * @out:  room for @len + 1 bytes
 * @passed: receives how many they are
 * Returns true if the keys are among them; what follows them is dropped
 */
bool leave_pass(struct leave *l, const char *in, size_t len, char *out,
	size_t *passed);

/* leave_let_go() - what was kept goes on to @out; 0 or 1 bytes. */
size_t leave_let_go(struct leave *l, char *out);

#endif /* LAUNCHER_CMD_LEAVE_H */
