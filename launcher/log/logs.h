/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logs.h - the output of a job as one thing: mover, sinks, routes.
 *
 * The supervisor opens it before the first rank, hands it the read ends of the
 * pipes, and hears through logs_notes() what happened to them.
 */
#ifndef LAUNCHER_LOG_LOGS_H
#define LAUNCHER_LOG_LOGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "launcher/log/note.h"
#include "launcher/log/raw.h"
#include "launcher/log/route.h"
#include "launcher/log/sink.h"

#define LOGS_PEEK 64 /* streams */

struct logs;
struct modes;

struct logs_config {
	uint32_t ranks;
	struct raw_share *share; /* share->dir -1: no files are kept */
	struct route route;
	bool carriage; /* words at a terminal in raw mode: begin and end with \r */
	bool reclaim;        /* NOTE_RECLAIM is answered by logs_reclaimed() */
	bool drop;           /* what finds no room on the disk goes */
	uint32_t files_max;  /* raw files that may stay open */
	struct modes *modes; /* [RAW_STREAMS] of xrun's terminals; or NULL */
};

/* logs_open() - NULL with errno. */
struct logs *logs_open(const struct logs_config *config);

/* logs_add() - the read end of a stream's pipe; logs owns it from now on. */
bool logs_add(struct logs *logs, uint32_t stream, int pipe);

/* logs_add_tty() - the same of the master of a terminal, which does not block
 * and stays open till its NOTE_EOF. */
bool logs_add_tty(struct logs *logs, uint32_t stream, int master);

/* logs_first() - descriptor to watch until logs_start() gave 0. Readable:
 * logs_peek(), and logs_start() if that is true. -1: logs_start() at once. */
int logs_first(const struct logs *logs);

/* logs_peek() - end streams without a byte: those @ended, without a note. True if
 * one has bytes. */
bool logs_peek(struct logs *logs, uint32_t ended[static LOGS_PEEK],
	uint32_t *count);

/* logs_start() - the threads that read the pipes; 0 or an errno; then it may be
 * tried again. Done once, it does nothing more. */
int logs_start(struct logs *logs);

/* logs_notes() - its rd is to be watched; then notes_take(). */
const struct notes *logs_notes(const struct logs *logs);

/* logs_tell_first() - NOTE_FIRST is to come with the next byte that goes to a
 * file. */
void logs_tell_first(struct logs *logs);

/* logs_reclaimed() - see mover_reclaimed(). */
void logs_reclaimed(struct logs *logs, bool freed);

/* logs_drop() - see mover_drop() and sink_drop(). */
enum drop_end logs_drop(struct logs *logs, uint32_t stream);

/* logs_say() - xrun's own words, whole lines, to stderr between other lines. */
void logs_say(struct logs *logs, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void logs_put(struct logs *logs, const char *text, size_t len);

/* logs_last_words() - as logs_put(), behind all that is still to come out, and
 * through the filter of escape.h. */
void logs_last_words(struct logs *logs, const char *text, size_t len);

/* logs_hint() - one dim line on a terminal, erased by the next output. */
void logs_hint(struct logs *logs, const char *text);

/* logs_look() - see sink_look(). */
void logs_look(struct logs *logs, bool lost);

/* logs_finish() - see sink_finish(). */
enum sink_end logs_finish(struct logs *logs, uint32_t sink, int *sys);
uint32_t logs_sinks(const struct logs *logs); /* 1 or 2; the last is stderr */

/* logs_backlog() - bytes that a sink has not delivered yet. */
uint64_t logs_backlog(const struct logs *logs, uint32_t sink);

/* logs_left() - streams whose last bytes nobody read, as there was no thread for
 * it: they are left to the keeper; lost, where no files are kept. */
uint32_t logs_left(const struct logs *logs);

/* logs_bytes() - what the rank wrote to the stream so far. */
uint64_t logs_bytes(const struct logs *logs, uint32_t stream);
uint64_t logs_total(const struct logs *logs);

/* logs_dropped() - bytes of a stream for which there was no room, and
 * logs_unseen() - those that were removed before they were shown. */
uint64_t logs_dropped(const struct logs *logs, uint32_t stream);
uint64_t logs_unseen(const struct logs *logs, uint32_t stream);

/* logs_last() - wall time of the last byte of a stream; 0: none, or no files. */
int64_t logs_last(const struct logs *logs, uint32_t stream);

/* logs_tail() - append at most @lines last lines of a stream to @out, each
 * ended by a newline; returns how many. At the end of a job. */
uint32_t logs_tail(const struct logs *logs, uint32_t stream, uint32_t lines,
	struct buf *out);

#endif /* LAUNCHER_LOG_LOGS_H */
