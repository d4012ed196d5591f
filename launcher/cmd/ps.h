/* SPDX-License-Identifier: Apache-2.0 */
/* ps.h - xrun ps: what runs, what ran, and how the ranks of a job are. */
#ifndef LAUNCHER_CMD_PS_H
#define LAUNCHER_CMD_PS_H

#include "base/opt.h"

extern const struct opt ps_options[];

int cmd_ps(int argc, char **argv);

#endif /* LAUNCHER_CMD_PS_H */
