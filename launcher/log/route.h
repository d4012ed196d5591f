/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route.h - which stream goes where, and what stands before its lines.
 * Compiled once, before the first rank; then only looked up.
 */
#ifndef LAUNCHER_LOG_ROUTE_H
#define LAUNCHER_LOG_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/log/prefix.h"
#include "launcher/log/raw.h"
#include "xrun/error.h"

struct route_config {
	uint32_t ranks;
	uint32_t first;     /* number of the first rank here */
	uint32_t size;      /* of the job: the widest number */
	const char *show;   /* "auto", "all", "first", "none" or a rank list */
	const char *prefix; /* "auto", "none" or a format */
	bool timestamps;
	const char *host, *job; /* borrowed for as long as the route */
	/* The number of the program that local rank @local runs; NULL: 0. */
	uint32_t (*part)(const void *ctx, uint32_t local);
	const void *ctx;
	bool tty[RAW_STREAMS]; /* xrun's stdout, stderr is a terminal */
	bool color[RAW_STREAMS];
	bool utf8;                /* bars rather than brackets on terminals */
	bool narrow[RAW_STREAMS]; /* a terminal that does not read UTF-8 */
	bool escapes;             /* terminals take sequences for the cursor */
	bool collapse; /* equal lines of several ranks are one, on terminals */
	bool everywhere; /* and in pipes and files */
};

struct route {
	struct route_config config;
	struct prefix format[RAW_STREAMS];
	bool lines;  /* cut into lines; false: bytes as they are */
	bool times;  /* each line bears the time of its arrival */
	bool *shown; /* [ranks * RAW_STREAMS] */
	struct line_prefix *prefix; /* [ranks * RAW_STREAMS] */
	bool reduced;               /* `auto` shows only a part: worth a line */
};

/* route_compile() - XR_OK, or XR_E_INVAL / XR_E_RANGE for a bad --show or
 * --prefix, which @err names. */
enum xr_status route_compile(struct route *route,
	const struct route_config *config, struct xr_error *err);

/*
 * route_prefix() - the prefix of a stream, or of several ranks' equal lines.
 *
 * @ranks: stands for the numbers of the ranks, such as "0-7"; NULL: its own
 *
 * Returns  XR_OK; XR_E_RANGE: it is too long
 */
enum xr_status route_prefix(const struct route *route, uint32_t stream,
	const char *ranks, struct line_prefix *out, struct xr_error *err);
void route_fini(struct route *route);

#endif /* LAUNCHER_LOG_ROUTE_H */
