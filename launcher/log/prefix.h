/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefix.h - what stands before a line, as --prefix describes it. Pure.
 *
 * A FORMAT is text with names in braces (base/brace.h): "{time} {host}:{rank}> ".
 * It is parsed once, and made into the text of a stream
 * once; only the clock of {time} is put in for each line.
 */
#ifndef LAUNCHER_LOG_PREFIX_H
#define LAUNCHER_LOG_PREFIX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "xrun/error.h"

#define PREFIX_MAX    80 /* with its colour */
#define PREFIX_BRACES 24 /* names and braces of the text */
#define PREFIX_PIECES (2 * PREFIX_BRACES + 1)
#define PREFIX_TIME   12 /* "12:34:56.789" */

enum prefix_name {
	PREFIX_TEXT, /* no name: text as it is */
	PREFIX_RANK,
	PREFIX_LOCAL_RANK,
	PREFIX_SIZE,
	PREFIX_HOST,
	PREFIX_JOB,
	PREFIX_PART,
	PREFIX_STREAM,
	PREFIX_CLOCK, /* {time} */
	PREFIX_NAMES,
};

struct prefix_piece {
	enum prefix_name name;
	struct span text; /* of PREFIX_TEXT; borrowed from the format */
};

struct prefix {
	struct prefix_piece piece[PREFIX_PIECES];
	uint32_t count;
	uint32_t braces; /* pieces that are no plain text */
	uint32_t names;  /* a bit for each that occurs */
	bool time_first; /* a clock and a blank before all else */
};

/* What stands before each line of a stream. */
struct line_prefix {
	char text[PREFIX_MAX];
	uint16_t len;  /* 0: lines go out as they are */
	uint16_t time; /* where the clock's PREFIX_TIME bytes end; 0: none */
};

/*
 * prefix_parse() - take a FORMAT apart.
 *
 * Returns  XR_OK; XR_E_INVAL, with the byte and what would be right in @err
 */
enum xr_status prefix_parse(struct prefix *out, struct span format,
	struct xr_error *err);

/* prefix_has() - does {name} occur? */
bool prefix_has(const struct prefix *prefix, enum prefix_name name);

/*
 * prefix_make() - the text of one stream.
 *
 * @values: of each name, as text; NULL is ""
 * @color:  parameters of an SGR sequence around it, such as "1;36"; or NULL
 *
 * Returns  XR_OK; XR_E_RANGE if it is too long, which @err tells
 */
enum xr_status prefix_make(const struct prefix *prefix,
	const char *const values[PREFIX_NAMES], const char *color,
	struct line_prefix *out, struct xr_error *err);

/* A clock as text, which most lines have in common; all 0 at first. */
struct prefix_clock {
	int64_t second; /* that it shows */
	char text[16];
};

/* prefix_clock() - "12:34:56.789", in local time, of @wall ns; borrowed. */
const char *prefix_clock(struct prefix_clock *clock, int64_t wall);

#endif /* LAUNCHER_LOG_PREFIX_H */
