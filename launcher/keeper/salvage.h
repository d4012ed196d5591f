/* SPDX-License-Identifier: Apache-2.0 */
/*
 * salvage.h - stores remaining output and restores the terminal after the supervisor has
 * ended. Called by the keeper.
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
 * A child process moves it, because a write to a frozen disk never returns. The keeper
 * moves it itself if fork(2) fails. Prints what is lost. Takes a few seconds at most.
 */
void salvage_output(struct job *job);

/* salvage_terminal() - switches off the terminal modes that ranks have left on. Does
 * nothing if the terminal is stopped (Ctrl-S), which may never end. */
void salvage_terminal(const struct job *job);

#endif /* LAUNCHER_KEEPER_SALVAGE_H */
