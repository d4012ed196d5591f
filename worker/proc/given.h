/* SPDX-License-Identifier: Apache-2.0 */
/* given.h - descriptors that a process has of the one that started it, by proc_start(). */
#ifndef WORKER_PROC_GIVEN_H
#define WORKER_PROC_GIVEN_H

#include <stdbool.h>
#include <stdint.h>

#define GIVEN_MAX 6
#define GIVEN_VARIABLE \
	"XRUN_GIVEN_FDS" /* "5:4711,6:4712", of who was executed */

/* given_fds() - this process's, [@count]; they stay. */
const int *given_fds(uint32_t *count);

/* given_add() - @fd is one of them. */
void given_add(int fd);

/* given_bequeath() - to what is executed, by the variable that @entry receives; NULL
 * where there are none. False: no memory, or they cannot be. */
bool given_bequeath(char **entry);

/* given_inherit() - what that variable names; it is gone then. */
void given_inherit(void);

#endif /* WORKER_PROC_GIVEN_H */
