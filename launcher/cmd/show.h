/* SPDX-License-Identifier: Apache-2.0 */
/* show.h - answers instead of a job: --dry-run and --show-env. On stdout. */
#ifndef LAUNCHER_CMD_SHOW_H
#define LAUNCHER_CMD_SHOW_H

#include "launcher/cmd/prepare.h"

/* show_plan() - who would run where, with what. 0, or 125 if it cannot be
 * written. */
int show_plan(const struct job *job, const struct prepared *p);

/* show_env() - every variable of a rank and where it came from, and every one
 * it does not get. */
int show_env(const struct job *job, uint32_t rank);

#endif /* LAUNCHER_CMD_SHOW_H */
