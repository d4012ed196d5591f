/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.h - xrun stacks [JOB]: where the ranks of a job are. */
#ifndef LAUNCHER_CMD_STACKS_H
#define LAUNCHER_CMD_STACKS_H

#include "base/opt.h"

extern const struct opt stacks_options[];

/* cmd_stacks() - argv[0] is the verb; gives the exit status. */
int cmd_stacks(int argc, char **argv);

#endif /* LAUNCHER_CMD_STACKS_H */
