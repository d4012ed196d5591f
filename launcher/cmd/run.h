/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - the main form: xrun [options] PROGRAM [ARG...]. */
#ifndef LAUNCHER_CMD_RUN_H
#define LAUNCHER_CMD_RUN_H

#include "launcher/job/options.h"

/*
 * cmd_run() - run a job.
 *
 * @opt:   taken over as they are
 * @found: with the programs; borrowed
 * Returns the exit status of xrun
 */
int cmd_run(const struct run_options *opt, const struct options_found *found);

/* cmd_refused() - the options are wrong: @why goes to the file of --report, if
 * that was read before. */
void cmd_refused(const struct run_options *opt, const char *why);

#endif /* LAUNCHER_CMD_RUN_H */
