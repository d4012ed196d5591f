/* SPDX-License-Identifier: Apache-2.0 */
/* vars.h - the environment another process was started with. */
#ifndef PROC_VARS_H
#define PROC_VARS_H

#include <sys/types.h>

#define VARS_ROOM (256 * 1024)

/*
 * vars_of() - the value of @name in the environment of @pid: what getenv(3) of
 * the process would have found when its program began.
 *
 * @room: of VARS_ROOM bytes; what is returned stands in it. What an environment
 * has beyond it is not seen.
 * Returns NULL: it has no such variable, or may not be read.
 */
const char *vars_of(pid_t pid, const char *name, char *room);

#endif /* PROC_VARS_H */
