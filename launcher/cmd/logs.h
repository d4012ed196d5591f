/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logs.h - xrun logs: what the ranks of a job wrote, while it runs or later.
 *
 * Reads the files of the job and never asks it for them: neither a rank nor
 * xrun notices a reader, however slow it is.
 */
#ifndef LAUNCHER_CMD_LOGS_H
#define LAUNCHER_CMD_LOGS_H

#include "base/opt.h"

extern const struct opt logs_options[];

int cmd_logs(int argc, char **argv);

#endif /* LAUNCHER_CMD_LOGS_H */
