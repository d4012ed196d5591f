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

static int
width_of(uint32_t size)
{
	int width = 1;

	for (uint32_t last = size - 1; last >= 10; last /= 10)
		width++;
	return width;
}

static void
make_prefix(struct line_prefix *p, const struct route_config *c,
	uint32_t stream)
{
	uint32_t rank = c->first + stream / RAW_STREAMS,
		 kind = stream % RAW_STREAMS;
	bool err = kind == RAW_ERR;
	int width = width_of(c->size), n;
	char name[32];

	if (c->utf8 && c->tty[kind])
		snprintf(name, sizeof(name), "%*u%s", width, rank,
			err ? "┃ " : "│ ");
	else
		snprintf(name, sizeof(name), "[%*u]%s", width, rank,
			err ? "!" : " ");
	if (c->color[kind])
		n = snprintf(p->text, sizeof(p->text), "\033[%s%um%s\033[0m",
			err ? "1;" : "", colors[rank % sizeof(colors)], name);
	else
		n = snprintf(p->text, sizeof(p->text), "%s", name);
	p->len = (uint32_t)n;
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

enum xr_status
route_compile(struct route *r, const struct route_config *c,
	struct xr_error *err)
{
	uint32_t streams = c->ranks * RAW_STREAMS;
	enum xr_status status;

	*r = (struct route){ .lines = c->size > 1 };
	memcpy(r->tty, c->tty, sizeof(r->tty));
	r->shown = xcalloc(streams, sizeof(*r->shown));
	r->prefix = xcalloc(streams, sizeof(*r->prefix));
	status = choose(r, c, err);
	for (uint32_t i = 0; i < streams && r->lines && c->prefix; i++)
		make_prefix(&r->prefix[i], c, i);
	return status;
}

void
route_fini(struct route *r)
{
	free(r->shown);
	free(r->prefix);
}
