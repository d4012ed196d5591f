/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - xrun events: what happened to a job, from its events.jsonl. */
#ifndef LAUNCHER_CMD_EVENTS_H
#define LAUNCHER_CMD_EVENTS_H

#include "base/opt.h"

extern const struct opt events_options[];

int cmd_events(int argc, char **argv);

#endif /* LAUNCHER_CMD_EVENTS_H */
