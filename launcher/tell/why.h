/* SPDX-License-Identifier: Apache-2.0 */
/* why.h - what the kernel ended a rank for, where it was the kernel: memory and
 * the limits of ulimit(1). */
#ifndef LAUNCHER_TELL_WHY_H
#define LAUNCHER_TELL_WHY_H

#include "launcher/job/job.h"

/* why_begin() - timer_fn: the ranks run; counters of the kernel are looked at
 * from here on. */
void why_begin(void *job);

/* why_note() - local rank @r has died, and its state does not say so yet: was
 * it for want of memory? */
void why_note(struct job *job, uint32_t r);

/* why_put() - ", ulimit -t is 1 s"; nothing where nothing is known. */
void why_put(const struct job *job, const struct rank *rank, struct buf *out);

/* why_put_refused() - a line, if the control group of local rank @r, which
 * failed, or ours had no room for new processes meanwhile. */
void why_put_refused(const struct job *job, uint32_t r, struct buf *out);

#endif /* LAUNCHER_TELL_WHY_H */
