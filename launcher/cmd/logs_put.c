/* SPDX-License-Identifier: Apache-2.0 */
/* logs_put.c - see logs_put.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "launcher/cmd/logs_put.h"
#include "launcher/cmd/terminal.h"
#include "launcher/log/live.h"

#define FLUSH (256 * 1024) /* bytes that are written at once */

enum xr_status
logs_put_open(struct logs_put *p, struct xr_error *err)
{
	bool color;

	p->tty = isatty(STDOUT_FILENO);
	color = terminal_wants_color(p->color, p->tty);
	const struct route_config c = {
		.ranks = p->ranks,
		.size = p->ranks,
		.show = "all",
		.prefix = p->prefix ? "auto" : "none",
		.timestamps = p->timestamps,
		.job = p->job,
		.tty = { p->tty, p->tty },
		.color = { color, color },
		.utf8 = utf8_spoken(),
	};

	p->line = xcalloc(p->ranks * RAW_STREAMS, sizeof(*p->line));
	p->sink = (struct line_sink){
		.out = &p->out,
		.filter = p->tty,
		.narrow = p->tty && utf8_narrow(STDOUT_FILENO),
		.clocked = p->timestamps,
	};
	buf_room(&p->out, 2 * FLUSH);
	buf_clear(&p->out);
	return route_compile(&p->route, &c, err);
}

void
logs_put_close(struct logs_put *p)
{
	route_fini(&p->route);
	p->route = (struct route){ 0 };
	buf_fini(&p->out);
	free(p->line);
	p->line = NULL;
}

bool
logs_put_wants(void *ctx, struct span line)
{
	const struct logs_put *p = ctx;

	return logs_grep_fits(&p->grep, line);
}

static struct span
without_end(struct span line)
{
	if (line.len > 0 && line.at[line.len - 1] == '\n')
		line.len--;
	return line;
}

static void
put_json(struct logs_put *p, const struct reader *r, struct span line)
{
	char stamp[40];
	struct json j;

	json_init(&j, &p->out);
	json_open_object(&j, NULL);
	json_text(&j, "time", clock_stamp(r->when, stamp, sizeof(stamp)));
	json_int(&j, "rank", r->stream / RAW_STREAMS);
	json_text(&j, "stream",
		r->stream % RAW_STREAMS == RAW_OUT ? "stdout" : "stderr");
	json_bytes(&j, "text", without_end(line));
	json_close_object(&j);
	buf_put_char(&p->out, '\n');
}

/* Lines, or one, as bytes behind their prefix. */
static void
put_lines(struct logs_put *p, const struct reader *r, struct span lines)
{
	bool whole = lines.at[lines.len - 1] == '\n';

	if (p->torn)
		buf_put_char(&p->out, '\n');
	p->torn = !whole && !p->route.lines && !p->tty;
	p->sink.wall = r->when;
	if (p->torn)
		buf_put(&p->out, lines.at, lines.len);
	else
		line_cut(&p->sink, &p->line[r->stream],
			&p->route.prefix[r->stream], lines,
			whole ? LINE_MORE : LINE_LAST);
}

/* On a terminal, what is to be seen of it. */
static void
put_seen(struct logs_put *p, const struct reader *r, struct span line)
{
	struct span seen = live_seen(without_end(line));

	p->sink.wall = r->when;
	if (seen.len == 0)
		seen = (struct span){ "\n", 1 };
	line_cut(&p->sink, &p->line[r->stream], &p->route.prefix[r->stream],
		seen, LINE_LAST);
}

static void
put_line(struct logs_put *p, const struct reader *r, struct span line)
{
	if (!logs_put_wants(p, line))
		return;
	if (p->json)
		put_json(p, r, line);
	else if (p->tty)
		put_seen(p, r, line);
	else
		put_lines(p, r, line);
}

void
logs_put_run(struct logs_put *p, const struct reader *r)
{
	const char *at = r->run.at, *end = at + r->run.len, *nl;

	if (!p->json && !p->tty && p->grep.text == NULL) {
		put_lines(p, r, r->run);
		at = end;
	} else if (!logs_grep_may(&p->grep, r->run)) {
		at = end;
	}
	while (at < end) {
		nl = memchr(at, '\n', (size_t)(end - at));
		nl = nl == NULL ? end : nl + 1;
		put_line(p, r, (struct span){ at, (size_t)(nl - at) });
		at = nl;
	}
	if (p->out.len >= FLUSH)
		logs_put_flush(p);
}

bool
logs_put_flush(struct logs_put *p)
{
	if (p->sys == 0 && p->out.bad != XR_OK)
		p->sys = ENOMEM;
	if (p->sys == 0 &&
		fd_write_all(STDOUT_FILENO, buf_text(&p->out), p->out.len) ==
			-1)
		p->sys = errno;
	buf_clear(&p->out);
	return p->sys == 0;
}
