/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logs_put.h - the lines of xrun logs on standard output.
 *
 * As a job shows them: behind the number of the rank, and on a terminal with
 * nothing in them that steers it but colour, of a line that was written over
 * its last state. Or each as a JSON object. All of them on standard output, one
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

struct logs_put {
	/* What is wanted. */
	struct logs_grep grep; /* lines that match; stays open, see logs.c */
	const char *job;
	uint32_t ranks;
	int color; /* enum color_mode */
	bool prefix, timestamps, json;
	/* Its own. */
	struct route route;
	struct line_stream *line; /* [ranks * RAW_STREAMS] */
	struct line_sink sink;
	struct buf out;
	bool tty;
	bool torn; /* the last line has no newline, and got none yet */
	int sys;   /* why nothing can be written any more, or 0 */
};

/* logs_put_open() - what is wanted is set, all else 0. */
enum xr_status logs_put_open(struct logs_put *p, struct xr_error *err);
void logs_put_close(struct logs_put *p);

/* logs_put_wants() - has the line what is looked for? @ctx: struct logs_put */
bool logs_put_wants(void *ctx, struct span line);

/* logs_put_run() - the run of @r. */
void logs_put_run(struct logs_put *p, const struct reader *r);

/* logs_put_flush() - all of it goes out. False: it cannot, see `sys`; nothing
 * is written any more then. */
bool logs_put_flush(struct logs_put *p);

#endif /* LAUNCHER_CMD_LOGS_PUT_H */
