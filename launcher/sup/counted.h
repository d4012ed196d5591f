/* SPDX-License-Identifier: Apache-2.0 */
/* counted.h - messages in which a rank without a slot tells what its agent has
 * counted, and whom it has lost. */
#ifndef LAUNCHER_SUP_COUNTED_H
#define LAUNCHER_SUP_COUNTED_H

#include "launcher/job/job.h"

struct control;

/* counted_told() - rank @r says @m. False: that is another message. */
bool counted_told(struct job *job, uint32_t r, const struct control *m);

#endif /* LAUNCHER_SUP_COUNTED_H */
