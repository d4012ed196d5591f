/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stdin_all.h - --stdin all: what xrun reads goes to every rank.
 *
 * A pipe a rank, and one thread that reads and copies: it may wait for ever,
 * in read(2) for whoever writes or in poll(2) for the slowest rank, and neither
 * the loop nor another rank notices. It holds one buffer, and reads on when all
 * ranks have taken that. A rank that closes its input or dies is forgotten; of
 * the last one, so is xrun's own input, so that its writer learns of it.
 *
 * The loop's thread opens and adds; from stdin_all_start() on the thread alone
 * has everything here but the errno.
 */
#ifndef LAUNCHER_SUP_STDIN_ALL_H
#define LAUNCHER_SUP_STDIN_ALL_H

#include <stdbool.h>
#include <stdint.h>

struct stdin_all;

/* stdin_all_open() - for so many ranks, from @fd; NULL: no memory. */
struct stdin_all *stdin_all_open(uint32_t ranks, int fd);

/* stdin_all_add() - the end that local rank @r reads, which the caller closes;
 * -1 with errno. */
int stdin_all_add(struct stdin_all *all, uint32_t r);

/* stdin_all_has() - was the rank added? */
bool stdin_all_has(const struct stdin_all *all, uint32_t r);

/* stdin_all_start() - once all were added: the thread, which takes @all. @keep:
 * xrun's own input stays when nobody listens, for ranks that come later. Gives 0,
 * or an errno, and may be tried again. */
int stdin_all_start(struct stdin_all *all, bool keep);

/* stdin_all_keep() - the same from now on: the ranks are told to end, and others
 * come. */
void stdin_all_keep(struct stdin_all *all);

/* stdin_all_sys() - why the input could not be read to its end; 0: it was, as
 * far as anybody cared. Any thread. */
int stdin_all_sys(const struct stdin_all *all);

#endif /* LAUNCHER_SUP_STDIN_ALL_H */
