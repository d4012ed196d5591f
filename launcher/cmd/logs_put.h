/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logs_put.h - the lines of xrun logs on standard output.
 *
 * As a job shows them: behind the number of the rank, through a view (view.h) on a
 * terminal, and with --collapse on. Or each as a JSON object. All of them on standard output, one
 * behind the other, whichever stream they were of: `!` or the bar tells.
 */
#ifndef LAUNCHER_CMD_LOGS_PUT_H
#define LAUNCHER_CMD_LOGS_PUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "launcher/cmd/logs_grep.h"
#include "launcher/log/line.h"
#include "launcher/log/reader.h"
#include "launcher/log/route.h"
#include "launcher/log/view.h"

struct logs_put {
	/* What is wanted. */
	struct logs_grep grep; /* lines that match; stays open, see logs.c */
	const char *job;
	uint32_t ranks;
	int color;        /* enum color_mode */
	int collapse;     /* enum collapse_mode */
	const char *show; /* as of route.h */
	bool prefix, timestamps, json, follow;
	/* Its own. */
	struct route route;
	struct line_stream *line; /* [ranks * RAW_STREAMS] */
	struct line_sink sink;
	struct view *view; /* or NULL */
	struct buf out;
	bool tty;
	bool lost; /* somebody else may have written to the terminal */
	bool torn; /* the last line has no newline, and got none yet */
	int sys;   /* why nothing can be written any more, or 0 */
};

/* logs_put_open() - what is wanted is set, all else 0. */
enum xr_status logs_put_open(struct logs_put *p, struct xr_error *err);
void logs_put_close(struct logs_put *p);

/* logs_put_turn() - a turn begins; it ends with logs_put_flush(). */
void logs_put_turn(struct logs_put *p);

/* logs_put_wants() - has the line what is looked for? @ctx: struct logs_put */
bool logs_put_wants(void *ctx, struct span line);

/* logs_put_run() - the run of @r. */
void logs_put_run(struct logs_put *p, const struct reader *r);

/*
 * logs_put_rest() - the unfinished line of @r, which has no run now, as far as a view
 * or progress shows it. Nothing with --grep and --json.
 *
 * @idle: the line has not grown since the last call
 * Returns when to call again if the line does not grow, by clock_now(); 0: never
 */
int64_t logs_put_rest(struct logs_put *p, struct reader *r, bool idle);

/* logs_put_idle() - no run is left: lines that come later are of later times. */
void logs_put_idle(struct logs_put *p);

/* logs_put_due() - when to flush without anything new, by clock_now(); 0: never. */
int64_t logs_put_due(const struct logs_put *p);

/* logs_put_break() - as logs_put_flush(), and the caller may write a line to the
 * terminal. */
void logs_put_break(struct logs_put *p);

/* logs_put_end() - as logs_put_flush(), and no line follows. */
void logs_put_end(struct logs_put *p);

/* logs_put_flush() - all of it goes out. False: it cannot, see `sys`; nothing
 * is written any more then. */
bool logs_put_flush(struct logs_put *p);

#endif /* LAUNCHER_CMD_LOGS_PUT_H */
