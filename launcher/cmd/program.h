/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - finding the program of a job once, before the first rank, and
 * saying what is wrong with it while it is only one message and not N.
 */
#ifndef LAUNCHER_CMD_PROGRAM_H
#define LAUNCHER_CMD_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "xrun/error.h"

struct program {
	char *path;      /* what execve(2) gets; the caller frees, or NULL */
	int exit_status; /* on failure, after which path may be set: 126, 127 */
};

/*
 * program_find() - as a shell would: through PATH unless it has a slash.
 *
 * @ranks: the number behind -n, for "try: xrun -n 8 python3 train.py"
 * Returns  XR_OK; XR_E_NOTFOUND (127) or XR_E_INVAL (126); a tab in @err's
 *          text parts what is wrong from what to try
 */
enum xr_status program_find(struct program *program, const char *name,
	uint32_t ranks, struct xr_error *err);

/* program_exists() - would PATH have a program called @name? */
bool program_exists(const char *name);

#endif /* LAUNCHER_CMD_PROGRAM_H */
