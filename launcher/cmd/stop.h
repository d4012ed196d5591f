/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop.h - stops one job and waits for its end, for the verb stop.
 *
 * The supervisor is asked over the control socket. If it does not answer, or the job
 * has no socket, the keeper gets SIGTERM: it continues a stopped supervisor, and kills
 * one that is stuck.
 */
#ifndef LAUNCHER_CMD_STOP_H
#define LAUNCHER_CMD_STOP_H

#include "launcher/cmd/which.h"
#include "wire/control.h"

/*
 * stop_and_wait() - stops @job and waits for its end.
 *
 * @answer: receives the reply of the supervisor, if there was one
 * Returns  XR_OK; XR_E_STATE if the job had ended before; XR_E_TIMEOUT if it still
 *          runs after --grace and 10 seconds; else as dial_ask(), with words in @err
 */
enum xr_status stop_and_wait(struct which *job, struct control_done *answer,
	struct xr_error *err);

#endif /* LAUNCHER_CMD_STOP_H */
