/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.h - lines that are not finished and stand at the bottom of a terminal:
 * progress that is written over itself with carriage returns, and what waits
 * for its newline. Sorted by stream. One thread.
 */
#ifndef LAUNCHER_LOG_LIVE_H
#define LAUNCHER_LOG_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/queue.h>

#include "base/buf.h"

#define LIVE_TEXT 1024 /* bytes of it that are kept: a row has no more */

struct live {
	TAILQ_ENTRY(live) list;
	uint32_t stream;
	int64_t wall; /* for its prefix */
	struct buf text;
};

TAILQ_HEAD(live_list, live);

/* live_of() - a new one for @stream, in its place; NULL: no memory. */
struct live *live_of(struct live_list *list, uint32_t stream);

/* live_drop() - NULL is fine. */
void live_drop(struct live_list *list, struct live *live);

/*
 * live_seen() - what of an unfinished or finished line is to be seen: that
 * which was written last from its beginning on, behind the last carriage
 * return that something follows. Ends without carriage returns.
 */
struct span live_seen(struct span line);

#endif /* LAUNCHER_LOG_LIVE_H */
