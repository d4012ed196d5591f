/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handler.h - where Python is, told by the process itself.
 *
 * A rank that imported plugins/python/xrun.py has a file in memory of the name
 * "xrun-stacks", and writes there at SIGURG where its main thread is. It needs no
 * tool and no right to trace. SIGURG does nothing where nobody handles it, so a
 * process that has become another program meanwhile is not harmed.
 */
#ifndef LAUNCHER_STACKS_HANDLER_H
#define LAUNCHER_STACKS_HANDLER_H

#include "launcher/stacks/stacks.h"

/* handler_ask() - all processes that can, and of which no Python is known yet; waits
 * a tenth of a second at most. */
void handler_ask(struct stacks *s);

#endif /* LAUNCHER_STACKS_HANDLER_H */
