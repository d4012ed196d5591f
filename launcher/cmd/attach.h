/* SPDX-License-Identifier: Apache-2.0 */
/* attach.h - xrun attach: a job that runs, as if it had been started here. */
#ifndef LAUNCHER_CMD_ATTACH_H
#define LAUNCHER_CMD_ATTACH_H

#include "base/opt.h"

extern const struct opt attach_options[];

int cmd_attach(int argc, char **argv);

#endif /* LAUNCHER_CMD_ATTACH_H */
