/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather.h - the stacks of all ranks, by whatever is there.
 *
 * For each process: eu-stack; where that told nothing, gdb; of a Python program
 * py-spy, or gdb where it has the extension for it, or the process itself
 * (handler.h). Several processes at once, and
 * one tool at a time for each. What /proc says is read before, and stays where no
 * tool can tell more.
 */
#ifndef LAUNCHER_STACKS_GATHER_H
#define LAUNCHER_STACKS_GATHER_H

#include "launcher/stacks/stacks.h"

struct gather {
	int64_t patience; /* ns, for all of it */
	int signals;      /* signalfd of what ends it; -1 */
};

/*
 * gather_stacks() - of the ranks that were added to @s.
 *
 * When the time is over, what was told stays, and the rest has what /proc says.
 * Returns  0, or the signal that ended it; no tool runs any more, and no process
 *          stands still that did not before
 */
int gather_stacks(struct stacks *s, const struct gather *settings);

#endif /* LAUNCHER_STACKS_GATHER_H */
