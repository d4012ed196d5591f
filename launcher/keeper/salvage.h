/* SPDX-License-Identifier: Apache-2.0 */
/*
 * salvage.h - what the keeper does for the output and the terminal of a job whose
 * supervisor has ended.
 */
#ifndef LAUNCHER_KEEPER_SALVAGE_H
#define LAUNCHER_KEEPER_SALVAGE_H

#include "base/clock.h"

#define SALVAGE_PATIENCE \
	(5 * NS_PER_S) /* for output that a full disk does not take */

struct job;

/*
 * salvage_output() - stores what ranks wrote and no thread of the supervisor moved.
 *
 * A process of its own moves it, because a disk may keep it waiting for ever; the keeper
 * itself does if no process can be made. Prints what is lost. Takes a few seconds at most.
 */
void salvage_output(struct job *job);

/* salvage_terminal() - switches off the terminal modes that ranks have left on. Does
 * nothing if the terminal is stopped (Ctrl-S), which may never end. */
void salvage_terminal(const struct job *job);

#endif /* LAUNCHER_KEEPER_SALVAGE_H */
