/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain.h - a stack in a line, from the outside in: "main > train > sem_wait".
 *
 * How every stack begins, and by what waiting functions wait, is left out. What
 * is no function stands in brackets: "[libfoo.so]" for those without a name,
 * "[read pipe, pipe_read]" where only the kernel told something.
 */
#ifndef LAUNCHER_STACKS_CHAIN_H
#define LAUNCHER_STACKS_CHAIN_H

#include "base/buf.h"
#include "launcher/stacks/stacks.h"

/* chain_put() - @cols: at most so many columns, where "..." stands for what is
 * left out behind the first function; 0: no limit. */
void chain_put(struct buf *out, const struct thread *t, uint32_t cols);

#endif /* LAUNCHER_STACKS_CHAIN_H */
