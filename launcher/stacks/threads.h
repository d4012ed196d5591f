/* SPDX-License-Identifier: Apache-2.0 */
/* threads.h - what /proc says of a process and its threads, without a tool. */
#ifndef LAUNCHER_STACKS_THREADS_H
#define LAUNCHER_STACKS_THREADS_H

#include "base/span.h"
#include "launcher/stacks/stacks.h"

/* threads_read() - its threads: names, states, where they wait in the kernel; for
 * root the kernel's stack. */
void threads_read(struct process *p);

/* threads_state() - name and state of t->tid of @pid; false: there is none. */
bool threads_state(pid_t pid, struct thread *t);

/* threads_file() - the beginning of a file of /proc/PID/task/TID, without its
 * last newline; 0 and "" if it cannot be read. */
size_t threads_file(pid_t pid, pid_t tid, const char *name, char *out,
	size_t cap);

/* call_parse() - of /proc/PID/syscall: the number of the call, or -1; and its
 * first argument, or -1. */
long call_parse(struct span text, int64_t *first);

/* call_name() - "futex"; NULL: not known. @on_file: its first argument is a
 * descriptor. */
const char *call_name(long number, bool *on_file);

#endif /* LAUNCHER_STACKS_THREADS_H */
