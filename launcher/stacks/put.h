/* SPDX-License-Identifier: Apache-2.0 */
/* put.h - stacks as a person reads them, and as a program does. */
#ifndef LAUNCHER_STACKS_PUT_H
#define LAUNCHER_STACKS_PUT_H

#include "base/buf.h"
#include "launcher/stacks/stacks.h"

/* put_table() - a line for equal stacks; what could not be seen, and why.
 * @cols: of the terminal, or 0; @most: stacks, or 0 for all */
void put_table(struct buf *out, const struct stacks *s, uint32_t cols,
	uint32_t most);

/* put_full() - each stack with a line a function. */
void put_full(struct buf *out, const struct stacks *s);

/* put_first() - if most ranks have one stack, the lines of differ_put() and that stack:
 * "ranks 0-2: main > train > ...". Else the stacks of the two smallest groups. */
void put_first(struct buf *out, const struct stacks *s);

/* put_json() - all of it, as share/schema/stacks.json has it. @job: its id; NULL */
void put_json(struct buf *out, const struct stacks *s, const char *job);

#endif /* LAUNCHER_STACKS_PUT_H */
