/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hear.h - what ranks tell.
 *
 * All ranks have the same socket at descriptor HEAR_FD; each write to it is one
 * message of src/wire/control.def, and the kernel says whose process wrote it.
 * A rank that wants answers sends one end of a socket pair of its own along with
 * hello. So a rank that says nothing costs one dup2, a shell can report with
 * echo, and there is no socket for each of a thousand ranks.
 *
 * The loop looks at it from the first rank on, and with each death: ranks that form a
 * world wait for its answer before anything else.
 */
#ifndef LAUNCHER_SUP_HEAR_H
#define LAUNCHER_SUP_HEAR_H

#include "launcher/job/job.h"

#define HEAR_FD 97

/* hear_open() - make the socket, before the environment of ranks; they have
 * none where that cannot be done. */
void hear_open(struct job *job);

/* hear_promise() - what XRUN_CONTROL_FD would be like, for --show-env. */
void hear_promise(struct job *job);

/* hear_begin() - listen. */
void hear_begin(struct job *job);

/* hear_turn() - take what was told by now; false: there may be more. */
bool hear_turn(struct job *job);

void hear_close(struct job *job);

#endif /* LAUNCHER_SUP_HEAR_H */
