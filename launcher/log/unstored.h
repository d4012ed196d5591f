/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unstored.h - bytes of a stream that are in no file, for its sink.
 *
 * If an output file finds no room, the mover gives its sink a copy of what waits
 * in the pipe, so that it is displayed.
 *
 *   pending   The bytes stay in the pipe and are stored later. Their offset in
 *             the stream is known, so the sink displays each offset once,
 *             whether it reads the byte here or in the file.
 *   dropped   The bytes are never stored. They belong before the byte of the
 *             file that has the offset @at.
 *
 * A stream holds at most UNSTORED_MAX bytes, a sink UNSTORED_ALL. Bytes beyond
 * that are not copied: pending bytes are displayed when they are stored, dropped
 * bytes not at all.
 *
 * The mover adds, the sink's thread takes over; both hold the sink's grow_lock.
 * The fields under "sink" belong to the sink's thread alone.
 */
#ifndef LAUNCHER_LOG_UNSTORED_H
#define LAUNCHER_LOG_UNSTORED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define UNSTORED_MAX (1 << 20)
#define UNSTORED_ALL (16 << 20)

struct unstored {
	struct buf fresh; /* not taken over yet */
	uint64_t fresh_at;
	bool fresh_dropped;
	uint64_t pending; /* offset behind the last pending byte; 0: none */

	/* sink */
	struct buf data;
	uint64_t at;  /* offset of the stream where @data begins */
	bool dropped; /* or pending */

	/* atomic */
	uint64_t left;   /* dropped bytes that were not delivered */
	uint64_t *total; /* bytes held for all streams of the sink */
};

/* unstored_new() - @total: borrowed. NULL without memory. */
struct unstored *unstored_new(uint64_t *total);
void unstored_free(struct unstored *u);

/* unstored_add() - @data waits in the pipe, or was dropped, while the file ends
 * at the offset @at. Returns how many bytes of it are new to the sink. */
size_t unstored_add(struct unstored *u, uint64_t at, struct span data,
	bool dropped);

/* unstored_take() - hands what the mover added to the sink. */
void unstored_take(struct unstored *u);

/* unstored_delivered() - the first @count bytes of @data were delivered. */
void unstored_delivered(struct unstored *u, size_t count);

#endif /* LAUNCHER_LOG_UNSTORED_H */
