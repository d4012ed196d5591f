/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remove.h - xrun rm and xrun prune: stored jobs are removed.
 *
 * A stored job is a folder in the state directory, or a line of the history
 * (state/history.h). Output that --log-dir put elsewhere stays. A job that runs
 * is never removed.
 */
#ifndef LAUNCHER_CMD_REMOVE_H
#define LAUNCHER_CMD_REMOVE_H

#include "base/opt.h"

extern const struct opt rm_options[], prune_options[];

int cmd_rm(int argc, char **argv);
int cmd_prune(int argc, char **argv);

#endif /* LAUNCHER_CMD_REMOVE_H */
