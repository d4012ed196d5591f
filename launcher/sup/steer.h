/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steer.h - the job's control socket: who asks how it is, and who steers it.
 *
 * A job has none before it is 20 ms old: short ones do not pay for it. The
 * helper thread makes it, since $XDG_RUNTIME_DIR may be on a disk; the loop
 * serves it. Without one the job goes on, and says so with -v.
 */
#ifndef LAUNCHER_SUP_STEER_H
#define LAUNCHER_SUP_STEER_H

#include <stdbool.h>

#include "launcher/job/job.h"
#include "wire/control.h"

/* steer_begin() - have the socket made. */
void steer_begin(struct job *job);

/* steer_resume() - with the socket of the attempt before, if it had one. */
void steer_resume(struct job *job);

/* steer_made() - NOTE_STEER: the socket listens as descriptor @fd, or could not
 * be made (-1). */
void steer_made(struct job *job, int fd);

/* steer_admit() - a connection of its own for local rank @r; @fd is taken. */
void steer_admit(struct job *job, int fd, uint32_t r);

/* steer_close() - a descriptor that a rank sent, beside the loop: to close it
 * may wait, for a file server or what is unsent. */
void steer_close(struct job *job, int fd);

/* steer_is_stream() - is it a stream socket? Nothing else that a stranger sends
 * is taken: what a descriptor of another kind does when it is read or closed is
 * not known. */
bool steer_is_stream(int fd);

/* steer_spares() - may @fd, which somebody sent, stay? Those that the job itself
 * may come to need are left. */
bool steer_spares(const struct job *job, int fd);

/* steer_told() - local rank @r said @m. */
void steer_told(struct job *job, uint32_t r, const struct control *m);

/* steer_end() - the last words to who waits; then there is no socket. */
void steer_end(struct job *job);

#endif /* LAUNCHER_SUP_STEER_H */
