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
#include "base/status.h"
#include "base/utf8.h"
#include "launcher/cmd/logs_put.h"
#include "launcher/cmd/terminal.h"
#include "launcher/job/options.h"
#include "launcher/log/live.h"

#define FLUSH (256 * 1024) /* bytes that are written at once */

/* A screen is needed only where lines change: of stored lines, equal ones are known
 * before the first is printed. */
static enum xr_status
logs_put_make_view(struct logs_put *p, struct xr_error *err)
{
	const struct view_config c = {
		.out = &p->out,
		.route = &p->route,
		.fd = STDOUT_FILENO,
		.tty = p->tty,
		.narrow = p->sink.narrow,
		.screen = p->tty && p->follow && terminal_takes_escapes() &&
			view_alone(STDOUT_FILENO),
		.collapse = p->collapse != COLLAPSE_OFF,
		.stored = true,
	};
	bool everywhere = p->route.lines && p->collapse == COLLAPSE_ON;

	if (p->json || (!p->tty && !everywhere))
		return XR_OK;
	p->view = p->sink.view = view_new(&c);
	if (p->view == NULL)
		return fail(err, XR_E_NOMEM, "no memory for lines");
	logs_put_turn(p);
	return XR_OK;
}

enum xr_status
logs_put_open(struct logs_put *p, struct xr_error *err)
{
	enum xr_status status;
	bool color;

	p->tty = isatty(STDOUT_FILENO);
	color = terminal_wants_color(p->color, p->tty);
	const struct route_config c = {
		.ranks = p->ranks,
		.size = p->ranks,
		.show = p->show,
		.prefix = p->prefix ? "auto" : "none",
		.timestamps = p->timestamps,
		.job = p->job,
		.tty = { p->tty, p->tty },
		.color = { color, color },
		.utf8 = utf8_spoken(),
	};

	p->line = xcalloc(p->ranks * RAW_STREAMS, sizeof(*p->line));
	for (uint32_t i = 0; i < p->ranks * RAW_STREAMS; i++)
		p->line[i].number = i;
	p->sink = (struct line_sink){
		.out = &p->out,
		.filter = p->tty,
		.narrow = p->tty && utf8_narrow(STDOUT_FILENO),
		.clocked = p->timestamps,
	};
	buf_room(&p->out, 2 * FLUSH);
	buf_clear(&p->out);
	status = route_compile(&p->route, &c, err);
	p->sink.rows = !p->tty && p->route.lines;
	return status == XR_OK ? logs_put_make_view(p, err) : status;
}

void
logs_put_close(struct logs_put *p)
{
	view_free(p->view);
	p->view = p->sink.view = NULL;
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

static void
put_line(struct logs_put *p, const struct reader *r, struct span line)
{
	if (!logs_put_wants(p, line))
		return;
	if (p->json)
		put_json(p, r, line);
	else
		put_lines(p, r, line);
}

void
logs_put_run(struct logs_put *p, const struct reader *r)
{
	const char *at = r->run.at, *end = at + r->run.len, *nl;

	if (p->view != NULL)
		view_came(p->view, r->when);
	if (!p->json && p->grep.text == NULL) {
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

int64_t
logs_put_rest(struct logs_put *p, struct reader *r, bool idle)
{
	struct line_stream *st = &p->line[r->stream];
	struct span rest = reader_rest(r, &p->sink.wall);
	bool moves = p->view != NULL && view_moves(p->view);
	size_t used;

	/* A line that is longer would keep others from the sink. */
	if (p->json || p->grep.text != NULL || rest.len == 0 ||
		p->sink.wall < r->since || live_seen(rest).len >= LINE_HOLD ||
		(p->view == NULL && !p->sink.rows))
		return 0;
	p->sink.now = clock_now();
	if (p->view != NULL)
		view_came(p->view, p->sink.wall);
	used = line_cut(&p->sink, st, &p->route.prefix[r->stream], rest,
		idle && moves ? LINE_IDLE : LINE_MORE);
	reader_skip(r, used);
	if (st->row_waits)
		return st->row_ns;
	return moves && !idle && !st->quiet && used < rest.len ?
		p->sink.now + LINE_IDLE_TTY_NS :
		0;
}

void
logs_put_turn(struct logs_put *p)
{
	if (p->view == NULL)
		return;
	if (p->lost)
		view_lost(p->view);
	p->lost = false;
	view_begin(p->view, clock_now());
}

void
logs_put_idle(struct logs_put *p)
{
	if (p->view != NULL)
		view_came(p->view, clock_wall());
}

int64_t
logs_put_due(const struct logs_put *p)
{
	return p->view == NULL ? 0 : view_due(p->view);
}

static bool
logs_put_write(struct logs_put *p)
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

bool
logs_put_flush(struct logs_put *p)
{
	if (p->view != NULL)
		view_paint(p->view);
	return logs_put_write(p);
}

void
logs_put_break(struct logs_put *p)
{
	if (p->view != NULL)
		view_break(p->view);
	logs_put_write(p);
}

void
logs_put_end(struct logs_put *p)
{
	if (p->view != NULL)
		view_end(p->view);
	view_free(p->view);
	p->view = p->sink.view = NULL;
	logs_put_write(p);
}
