/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool.h - a program that is asked about a process, with its output in memory.
 *
 * It is found in PATH, in folders that are named from the root on, runs without a
 * shell, in a process group of its own, with /dev/null as input, and is killed if
 * the thread that started it dies.
 */
#ifndef LAUNCHER_STACKS_TOOL_H
#define LAUNCHER_STACKS_TOOL_H

#include <stdbool.h>

#include <sys/types.h>

#include "base/buf.h"

#define TOOL_OUTPUT_MAX (8 << 20)

struct tool {
	pid_t pid; /* 0: it does not run */
	int pidfd, out;
	struct buf text; /* what it said, on both streams */
};

/* tool_find() - the file of @name, which the caller frees; NULL: not there. */
char *tool_find(const char *name);

/* tool_start() - false with errno. */
bool tool_start(struct tool *t, char *const *argv);

/* tool_read() - what it said until now, without a wait; what is too much is
 * dropped. */
void tool_read(struct tool *t);

/* tool_end() - it is ended, if it was not, with all it started, and reaped. True if
 * it had exited by itself. */
bool tool_end(struct tool *t);

#endif /* LAUNCHER_STACKS_TOOL_H */
