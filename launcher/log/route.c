/* SPDX-License-Identifier: Apache-2.0 */
/* route.c - see route.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/ranks.h"
#include "base/status.h"
#include "launcher/log/route.h"

#define MANY_RANKS 16 /* above that a terminal shows a part */

/* ANSI foregrounds; red is xrun's own. */
static const unsigned char colors[] = { 36, 32, 33, 35, 34, 96 };

/* Of the largest of @count numbers from 0 on. */
static int
width_of(uint32_t count)
{
	int width = 1;

	for (uint32_t last = count - 1; last >= 10 && width < 10; last /= 10)
		width++;
	return width;
}

static const char *
put_number(char out[16], uint32_t number, int width)
{
	snprintf(out, 16, "%*u", width, number);
	return out;
}

/* What xrun puts there by itself; one rank alone needs no name. */
static const char *
format_of(const struct route_config *c, uint32_t kind)
{
	bool bars = c->utf8 && c->tty[kind];

	if (strcmp(c->prefix, "auto") != 0)
		return strcmp(c->prefix, "none") == 0 ? "" : c->prefix;
	if (c->size == 1)
		return "";
	if (kind == RAW_OUT)
		return bars ? "{rank}│ " : "[{rank}] ";
	return bars ? "{rank}┃ " : "[{rank}]!";
}

static enum xr_status
parse_formats(struct route *r, struct xr_error *err)
{
	enum xr_status status = XR_OK;

	for (uint32_t k = 0; k < RAW_STREAMS && status == XR_OK; k++) {
		const char *text = format_of(&r->config, k);

		status = prefix_parse(&r->format[k],
			(struct span){ text, strlen(text) }, err);
		r->format[k].time_first = r->config.timestamps &&
			!prefix_has(&r->format[k], PREFIX_CLOCK);
		r->times = r->times || r->config.timestamps ||
			prefix_has(&r->format[k], PREFIX_CLOCK);
	}
	return status;
}

enum xr_status
route_prefix(const struct route *r, uint32_t stream, const char *ranks,
	struct line_prefix *out, struct xr_error *err)
{
	const struct route_config *c = &r->config;
	uint32_t local = stream / RAW_STREAMS, kind = stream % RAW_STREAMS;
	uint32_t rank = c->first + local;
	char number[4][16], color[16], set[32];
	const char *values[PREFIX_NAMES] = {
		[PREFIX_RANK] = ranks,
		[PREFIX_LOCAL_RANK] = ranks,
		[PREFIX_SIZE] = put_number(number[0], c->size, 1),
		[PREFIX_HOST] = c->host,
		[PREFIX_JOB] = c->job,
		[PREFIX_PART] = put_number(number[3],
			c->part == NULL ? 0 : c->part(c->ctx, local), 1),
		[PREFIX_STREAM] = kind == RAW_OUT ? "stdout" : "stderr",
	};

	if (ranks != NULL) {
		snprintf(set, sizeof(set), "%*s", width_of(c->size), ranks);
		values[PREFIX_RANK] = set;
	} else {
		values[PREFIX_RANK] =
			put_number(number[1], rank, width_of(c->size));
		values[PREFIX_LOCAL_RANK] =
			put_number(number[2], local, width_of(c->ranks));
	}
	snprintf(color, sizeof(color), "%s%u", kind == RAW_ERR ? "1;" : "",
		colors[rank % sizeof(colors)]);
	return prefix_make(&r->format[kind], values,
		c->color[kind] ? color : NULL, out, err);
}

static enum xr_status
choose(struct route *r, const struct route_config *c, struct xr_error *err)
{
	bool reduced = c->size > MANY_RANKS && c->tty[RAW_OUT];
	enum xr_status status;
	struct ranks set;

	status = ranks_init(&set, c->size);
	if (status != XR_OK)
		return status;
	if (strcmp(c->show, "first") == 0)
		ranks_add(&set, 0);
	else if (strcmp(c->show, "auto") != 0 && strcmp(c->show, "all") != 0 &&
		strcmp(c->show, "none") != 0)
		status = ranks_parse(&set, c->show, err);
	else
		for (uint32_t i = 0; c->show[0] == 'a' && i < c->size; i++)
			ranks_add(&set, i);
	r->reduced = strcmp(c->show, "auto") == 0 && reduced;
	for (uint32_t i = 0; i < c->ranks * RAW_STREAMS; i++) {
		uint32_t rank = c->first + i / RAW_STREAMS;

		r->shown[i] = ranks_has(&set, rank);
		if (r->reduced && rank != 0 && i % RAW_STREAMS == RAW_OUT)
			r->shown[i] = false;
	}
	ranks_fini(&set);
	return status;
}

static enum xr_status
make_prefixes(struct route *r, struct xr_error *err)
{
	enum xr_status status = parse_formats(r, err);

	for (uint32_t i = 0;
		status == XR_OK && i < r->config.ranks * RAW_STREAMS; i++)
		status = route_prefix(r, i, NULL, &r->prefix[i], err);
	return status;
}

enum xr_status
route_compile(struct route *r, const struct route_config *c,
	struct xr_error *err)
{
	uint32_t streams = c->ranks * RAW_STREAMS;
	struct xr_error why = { .text = "" };
	enum xr_status status;

	*r = (struct route){ .config = *c };
	r->lines = c->size > 1 || c->timestamps ||
		(strcmp(c->prefix, "auto") != 0 &&
			strcmp(c->prefix, "none") != 0);
	r->shown = xcalloc(streams, sizeof(*r->shown));
	r->prefix = xcalloc(streams, sizeof(*r->prefix));
	status = choose(r, c, &why);
	if (status != XR_OK)
		return fail(err, status, "--show: %s", why.text);
	if (r->lines)
		status = make_prefixes(r, &why);
	if (status != XR_OK)
		return fail(err, status, "--prefix: %s", why.text);
	return XR_OK;
}

void
route_fini(struct route *r)
{
	free(r->shown);
	free(r->prefix);
}
