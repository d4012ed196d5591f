/* SPDX-License-Identifier: Apache-2.0 */
/* steer.h - the verbs that tell a running job something: signal, stop, restart,
 * wait. */
#ifndef LAUNCHER_CMD_STEER_H
#define LAUNCHER_CMD_STEER_H

#include "base/opt.h"
#include "launcher/cmd/which.h"

extern const struct opt signal_options[], stop_options[], restart_options[],
	wait_options[];

int cmd_signal(int argc, char **argv);
int cmd_stop(int argc, char **argv);
int cmd_restart(int argc, char **argv);
int cmd_wait(int argc, char **argv);

/* steer_wait() - for the end of the job; its exit status, or 125 with words. */
int steer_wait(struct which *job);

#endif /* LAUNCHER_CMD_STEER_H */
