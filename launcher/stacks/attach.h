/* SPDX-License-Identifier: Apache-2.0 */
/* attach.h - may a tool attach to a process, and what is due if it was killed
 * while it was attached. */
#ifndef LAUNCHER_STACKS_ATTACH_H
#define LAUNCHER_STACKS_ATTACH_H

#include "launcher/stacks/stacks.h"

/* attach_allowed() - by ptrace(2); if not, p->why says why not. */
bool attach_allowed(struct process *p);

/*
 * attach_undo() - a tool was killed, and is reaped: @p goes on, unless it stood
 * still before.
 *
 * The kernel lets go of what a dead tracer had stopped, but lets it have the
 * SIGSTOP by which it was attached to, if the tracer had not taken note of it. For
 * an instant that is seen neither in its state nor among its pending signals, so
 * SIGCONT is sent in any case (kernel/signal.c, ptrace_signal: it counts if it comes
 * before the stop is made).
 */
void attach_undo(const struct process *p);

#endif /* LAUNCHER_STACKS_ATTACH_H */
