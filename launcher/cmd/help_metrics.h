/* SPDX-License-Identifier: Apache-2.0 */
/* help_metrics.h - xrun help metrics: what is counted of a job. */
#ifndef LAUNCHER_CMD_HELP_METRICS_H
#define LAUNCHER_CMD_HELP_METRICS_H

#include "base/buf.h"

void help_metrics(struct buf *out);
void help_metrics_man(struct buf *out);

#endif /* LAUNCHER_CMD_HELP_METRICS_H */
