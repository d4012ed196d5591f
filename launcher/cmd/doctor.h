/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.h - xrun doctor: is this machine ready? */
#ifndef LAUNCHER_CMD_DOCTOR_H
#define LAUNCHER_CMD_DOCTOR_H

#include "base/opt.h"

extern const struct opt doctor_options[];

int cmd_doctor(int argc, char **argv);

#endif /* LAUNCHER_CMD_DOCTOR_H */
