/* SPDX-License-Identifier: Apache-2.0 */
/* events_put.h - a line of events.jsonl as a row that people read. */
#ifndef LAUNCHER_CMD_EVENTS_PUT_H
#define LAUNCHER_CMD_EVENTS_PUT_H

#include "base/buf.h"

/* events_put_head() - the names of the columns. */
void events_put_head(struct buf *out);

/* events_put_row() - of @line; of an event that is not known here, all its
 * members as they are. Nothing of a line that is no JSON. */
void events_put_row(struct buf *out, struct span line);

#endif /* LAUNCHER_CMD_EVENTS_PUT_H */
