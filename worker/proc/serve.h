/* SPDX-License-Identifier: Apache-2.0 */
/* serve.h - being a zygote. */
#ifndef WORKER_PROC_SERVE_H
#define WORKER_PROC_SERVE_H

#include <stdbool.h>

/* serve() - as zygote, on @socket; it ends with the process. */
void serve(int socket) __attribute__((noreturn));

/* serve_has_threads() - a fork of a process with threads would be one whose locks may be
 * held. */
bool serve_has_threads(void);

/* serve_is_known() - has this process called xr_init()? */
bool serve_is_known(void);

/* serve_path() - of this program, to be executed again; @path has PATH_MAX. */
const char *serve_path(char *path);

/* serve_argv() - how it was called, [..., NULL]; one piece of memory, to be freed.
 * NULL: no memory. */
char **serve_argv(void);

#endif /* WORKER_PROC_SERVE_H */
