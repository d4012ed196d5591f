/* SPDX-License-Identifier: Apache-2.0 */
/* ps_ranks.h - xrun ps JOB: a line a rank. */
#ifndef LAUNCHER_CMD_PS_RANKS_H
#define LAUNCHER_CMD_PS_RANKS_H

#include <stdbool.h>

#include "launcher/cmd/which.h"

/* ps_ranks() - say how the ranks of @job are, or were; the exit status. */
int ps_ranks(struct which *job, bool json);

#endif /* LAUNCHER_CMD_PS_RANKS_H */
