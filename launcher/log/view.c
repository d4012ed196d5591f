/* SPDX-License-Identifier: Apache-2.0 */
/* view.c - see view.h. Sequences: ECMA-48 CUU, ED, EL; DEC private mode 7. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/ioctl.h>
#include <sys/stat.h>

#include "launcher/log/burst.h"
#include "launcher/log/escape.h"
#include "launcher/log/live.h"
#include "launcher/log/rows.h"
#include "launcher/log/view.h"

#define SET_TEXT 20 /* a longer list of ranks is their number */

/* Rows are cut by the terminal itself, whatever it thinks characters are wide:
 * the cursor must not get into a row that we do not count. */
#define NO_WRAP "\033[?7l"
#define WRAP    "\033[?7h"
#define ERASE   "\033[J" /* from the cursor on, all rows below */

struct view {
	struct view_config config;
	struct burst burst;
	struct live_list live;
	uint32_t lives;
	uint32_t cols, rows;
	bool moves;       /* a screen, in this turn */
	bool changed;     /* live lines differ from what stands there */
	bool gone;        /* and were erased to make room */
	uint32_t painted; /* live rows; the cursor is at the end of the last */
	int64_t painted_ns, now;
	int64_t came;    /* of the line at hand, by the clock of bursts */
	int64_t known;   /* see view_known() */
	struct buf text; /* the line at hand */
	struct prefix_clock clock;
};

/* The longest list of ranks must leave room for the rest, and nothing else tell
 * one rank from another. */
static bool
sets_fit(const struct route *route)
{
	static const char longest[] = "01234567890123456789";
	struct line_prefix prefix;

	for (uint32_t k = 0; k < RAW_STREAMS; k++)
		if (!prefix_has(&route->format[k], PREFIX_RANK) ||
			prefix_has(&route->format[k], PREFIX_PART) ||
			route_prefix(route, k, longest, &prefix, NULL) != XR_OK)
			return false;
	return true;
}

struct view *
view_new(const struct view_config *config)
{
	const struct route_config *c = &config->route->config;
	struct view *v = calloc(1, sizeof(*v));

	if (v == NULL)
		return NULL;
	v->config = *config;
	v->config.collapse = config->collapse && sets_fit(config->route);
	TAILQ_INIT(&v->live);
	if (!burst_init(&v->burst, c->first, c->ranks, RAW_STREAMS)) {
		free(v);
		return NULL;
	}
	return v;
}

void
view_free(struct view *v)
{
	if (v == NULL)
		return;
	while (!TAILQ_EMPTY(&v->live))
		live_drop(&v->live, TAILQ_FIRST(&v->live));
	burst_fini(&v->burst);
	buf_fini(&v->text);
	free(v);
}

bool
view_holds(const struct view *v)
{
	return v->config.collapse &&
		(!v->config.tty || (v->config.stored && !v->config.screen));
}

static bool
view_same_file(int a, int b)
{
	struct stat sa, sb;

	return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 &&
		sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/* What reads a pipe may well write to the same terminal: `xrun ... | tee log`. */
bool
view_alone(int fd)
{
	int other = fd == STDOUT_FILENO ? STDERR_FILENO : STDOUT_FILENO;
	struct stat st;

	if (view_same_file(STDOUT_FILENO, STDERR_FILENO))
		return true;
	return fstat(other, &st) == 0 &&
		(S_ISREG(st.st_mode) ||
			(S_ISCHR(st.st_mode) && !isatty(other)));
}

/* Whether no line can join one that came at @ns. The wall time of files may be set back. */
static bool
view_is_old(const struct view *v, int64_t ns)
{
	return v->known - ns >= BURST_NS ||
		(v->config.stored && ns - v->known >= BURST_NS);
}

/* A job in the background shares its terminal with the shell. A terminal that
 * is not ours to ask for (ENOTTY) has nobody else in the foreground. */
static bool
in_foreground(int fd)
{
	pid_t group = tcgetpgrp(fd);

	return group == -1 || group == getpgrp();
}

static bool
look(struct view *v)
{
	struct winsize size;

	if (!v->config.screen || !in_foreground(v->config.fd) ||
		ioctl(v->config.fd, TIOCGWINSZ, &size) == -1 ||
		size.ws_col < 8 || size.ws_row < 4)
		return false;
	v->cols = size.ws_col;
	v->rows = size.ws_row;
	return true;
}

/* Lines that are out cannot be reached any more, or none can join them. */
static void
drop_final(struct view *v, bool all)
{
	uint32_t n = 0;

	while (n < v->burst.count && burst_at(&v->burst, n)->out &&
		(all || view_is_old(v, burst_at(&v->burst, n)->ns)))
		n++;
	burst_drop(&v->burst, n);
}

/* The cursor goes up to the row where something changes. */
static void
go_up(struct view *v, uint32_t rows)
{
	buf_put_char(v->config.out, '\r');
	if (rows > 0)
		buf_fmt(v->config.out, "\033[%uA", rows);
}

/* The live rows go, and with them @rows of lines above. */
static void
erase(struct view *v, uint32_t rows)
{
	if (v->painted == 0 && rows == 0)
		return;
	go_up(v, rows + (v->painted > 0 ? v->painted - 1 : 0));
	buf_put_text(v->config.out, ERASE);
	v->gone = v->changed = v->painted > 0 || v->changed;
	v->painted = 0;
}

void
view_lost(struct view *v)
{
	v->moves = false;
	v->changed = v->changed || v->painted > 0;
	v->painted = 0;
}

/*
 * Live rows are found again after another size: each is a row of its own, which
 * is cut or wrapped, as the terminal likes, where it has become too narrow. One
 * that wraps has more rows than we go up: the first of them stay, and a line
 * above is never painted over.
 */
void
view_begin(struct view *v, int64_t now)
{
	bool moved = v->moves, stays;
	uint32_t cols = v->cols, rows = v->rows;

	v->now = now;
	if (!v->config.stored)
		v->came = now;
	v->moves = look(v);
	stays = moved && v->moves && v->cols == cols && v->rows == rows;
	if (!stays && v->moves)
		erase(v, 0);
	if (!v->moves)
		v->painted = 0;
	drop_final(v, !stays);
}

void
view_came(struct view *v, int64_t ns)
{
	v->came = ns;
	if (v->config.stored)
		v->known = ns;
}

void
view_known(struct view *v, int64_t ns)
{
	v->known = ns;
}

bool
view_moves(const struct view *v)
{
	return v->moves;
}

/* --- lines ---------------------------------------------------------------- */

static void
put_prefix(struct view *v, const struct line_prefix *prefix, int64_t wall)
{
	struct buf *out = v->config.out;
	size_t at = out->len;

	buf_put(out, prefix->text, prefix->len);
	if (prefix->time != 0 && out->bad == XR_OK)
		memcpy(out->data + at + prefix->time - PREFIX_TIME,
			prefix_clock(&v->clock, wall), PREFIX_TIME);
}

/* "0-7", or "12 ranks" if that is too long. */
static void
put_set_prefix(struct view *v, const struct burst_line *line)
{
	struct line_prefix prefix = v->config.route->prefix[line->stream];
	struct buf set = { 0 };

	ranks_put(&line->set, &set);
	if (set.len > SET_TEXT || set.bad != XR_OK) {
		buf_clear(&set);
		buf_fmt(&set, "%u ranks", line->members);
	}
	route_prefix(v->config.route, line->stream, buf_text(&set), &prefix,
		NULL);
	put_prefix(v, &prefix, line->wall);
	buf_fini(&set);
}

static void
put_line(struct view *v, struct burst_line *line)
{
	struct buf *out = v->config.out;
	size_t at = out->len;

	if (line->members > 1)
		put_set_prefix(v, line);
	else
		put_prefix(v, &v->config.route->prefix[line->stream],
			line->wall);
	buf_put(out, buf_text(&line->text), line->text.len);
	line->rows = v->moves && out->bad == XR_OK ?
		rows_of((struct span){ out->data + at, out->len - at },
			v->cols) :
		0;
	buf_put_char(out, '\n');
	line->out = true;
	line->wider = false;
}

static uint32_t
live_rows_max(const struct view *v)
{
	return v->rows / 2 < VIEW_LIVE_MAX ? v->rows / 2 : VIEW_LIVE_MAX;
}

/* Only what surely stands on the screen, at a known place, may change. */
static void
drop_unreachable(struct view *v)
{
	uint32_t i = v->burst.count, left = v->rows - 1 - live_rows_max(v);

	if (!v->moves)
		left = 0;
	while (i > 0 && burst_at(&v->burst, i - 1)->rows > 0 &&
		burst_at(&v->burst, i - 1)->rows <= left) {
		left -= burst_at(&v->burst, i - 1)->rows;
		i--;
	}
	burst_drop(&v->burst, i);
}

/* In a pipe: what was waited with for long enough, or all. */
static void
release(struct view *v, bool all)
{
	struct burst_line *line;

	while (v->burst.count > 0) {
		line = burst_at(&v->burst, 0);
		if (!all && !view_is_old(v, line->ns))
			break;
		put_line(v, line);
		burst_drop(&v->burst, 1);
	}
}

/* True if there were any. */
static bool
lines_out(struct view *v)
{
	uint32_t first = 0, rows = 0;
	struct burst_line *line;

	for (; first < v->burst.count; first++) {
		line = burst_at(&v->burst, first);
		if (!line->out || line->wider)
			break;
	}
	if (first == v->burst.count)
		return false;
	for (uint32_t i = first; i < v->burst.count; i++)
		if (burst_at(&v->burst, i)->out)
			rows += burst_at(&v->burst, i)->rows;
	erase(v, rows);
	for (uint32_t i = first; i < v->burst.count; i++)
		put_line(v, burst_at(&v->burst, i));
	drop_unreachable(v);
	return true;
}

static void
make_room(struct view *v)
{
	if (v->burst.count < BURST_LINES)
		return;
	if (view_holds(v))
		release(v, true);
	else
		lines_out(v);
	if (v->burst.count == BURST_LINES)
		burst_drop(&v->burst, BURST_LINES / 2);
}

/* As it will stand there. */
static void
put_text(const struct view *v, struct buf *out, bool resumed, struct span text)
{
	bool colored = false;
	uint8_t state = 0;

	if (resumed)
		buf_put_text(out, "…");
	if (!v->config.tty) {
		buf_put(out, text.at, text.len);
		return;
	}
	escape_filter(out, text, v->config.narrow, &state, &colored);
	escape_end(out, &state);
	if (colored)
		buf_put_text(out, "\033[0m");
}

/* In v->text; false if there is no memory for it. */
static bool
make_text(struct view *v, bool resumed, struct span text)
{
	buf_clear(&v->text);
	put_text(v, &v->text, resumed, text);
	return v->text.bad == XR_OK;
}

/* A line that cannot be kept goes out at once, below all others: none can join
 * it, and it is not known where it stands. */
static void
pass_line(struct view *v, const struct line_stream *st, struct span text,
	int64_t wall)
{
	view_break(v);
	put_prefix(v, &v->config.route->prefix[st->number], wall);
	put_text(v, v->config.out, st->resumed, text);
	buf_put_char(v->config.out, '\n');
}

static void
end_live(struct view *v, struct line_stream *st)
{
	if (st->live == NULL)
		return;
	live_drop(&v->live, st->live);
	st->live = NULL;
	v->lives--;
	v->changed = true;
}

void
view_line(struct view *v, struct line_stream *st, struct span text,
	int64_t wall)
{
	bool kept = make_text(v, st->resumed, text);
	struct span whole;

	end_live(v, st);
	if (!kept)
		pass_line(v, st, text, wall);
	st->resumed = false;
	if (!kept)
		return;
	whole = (struct span){ buf_text(&v->text), v->text.len };
	if (v->config.collapse && (v->moves || view_holds(v)) &&
		burst_join(&v->burst, st->number, whole, v->came))
		return;
	make_room(v);
	burst_add(&v->burst, st->number, &v->text, v->came)->wall = wall;
}

/* --- live lines ----------------------------------------------------------- */

void
view_live(struct view *v, struct line_stream *st, struct span text,
	int64_t wall)
{
	struct buf old;

	if (text.len > LIVE_TEXT)
		text.len = LIVE_TEXT;
	if (st->live == NULL) {
		st->live = live_of(&v->live, st->number);
		v->lives += st->live != NULL;
	}
	if (st->live == NULL || !make_text(v, st->resumed, text))
		return;
	old = st->live->text;
	if (old.len == v->text.len && old.len > 0 &&
		memcmp(old.data, v->text.data, old.len) == 0)
		return;
	st->live->text = v->text;
	st->live->wall = wall;
	v->text = old;
	v->changed = true;
}

bool
view_sample(struct view *v, struct line_stream *st)
{
	if (st->sampled_ns == 0)
		st->sampled_ns = v->now;
	if (v->now - st->sampled_ns <
		(v->config.tty ? VIEW_SAMPLE_NS : LINE_ROW_NS))
		return false;
	st->sampled_ns = v->now;
	return true;
}

static void
put_live_row(struct view *v, const struct live *live)
{
	struct buf *out = v->config.out;
	size_t at = out->len;

	put_prefix(v, &v->config.route->prefix[live->stream], live->wall);
	buf_put(out, buf_text(&live->text), live->text.len);
	if (out->bad != XR_OK)
		return;
	/* One less: what erases the rest of a row begins in the last column. */
	out->len = at +
		rows_clip((struct span){ out->data + at, out->len - at },
			v->cols - 1);
	if (memchr(out->data + at, '\033', out->len - at) != NULL)
		buf_put_text(out, "\033[0m");
}

static void
put_live_rows(struct view *v)
{
	uint32_t most = live_rows_max(v), n = 0;
	struct live *live;

	for (live = TAILQ_FIRST(&v->live); live != NULL;
		live = TAILQ_NEXT(live, list)) {
		if (n > 0)
			buf_put_text(v->config.out, "\033[K\n");
		n++;
		if (n == most && v->lives > most)
			break;
		put_live_row(v, live);
	}
	if (live != NULL)
		buf_fmt(v->config.out, "... and %u more", v->lives - most + 1);
	v->painted = n;
}

/* No row is left of a stream whose row has ended: the line that ended it is in the burst, and
 * lines_out() erases the rows before it puts that. */
static void
live_out(struct view *v)
{
	if (v->painted > 0)
		go_up(v, v->painted - 1);
	if (v->lives > 0) {
		buf_put_text(v->config.out, NO_WRAP);
		put_live_rows(v);
		buf_put_text(v->config.out, WRAP ERASE);
	}
	v->painted_ns = v->now;
	v->changed = v->gone = false;
}

/* --- turns ---------------------------------------------------------------- */

void
view_break(struct view *v)
{
	if (view_holds(v))
		release(v, true);
	else
		lines_out(v);
	if (v->moves)
		erase(v, 0);
	burst_drop(&v->burst, v->burst.count);
}

void
view_paint(struct view *v)
{
	bool fresh = false;

	if (view_holds(v))
		release(v, false);
	else
		fresh = lines_out(v);
	if (v->moves && v->changed &&
		(fresh || v->gone || view_due(v) <= v->now))
		live_out(v);
}

int64_t
view_due(const struct view *v)
{
	const struct burst *b = &v->burst;

	if (view_holds(v) && b->count > 0)
		return b->line[b->head].ns + BURST_NS +
			(v->config.stored ? v->now - v->known : 0);
	if (view_holds(v))
		return 0;
	return v->moves && v->changed ? v->painted_ns + VIEW_LIVE_NS : 0;
}

void
view_end(struct view *v)
{
	struct live *live;

	view_break(v);
	for (live = TAILQ_FIRST(&v->live); live != NULL;
		live = TAILQ_NEXT(live, list)) {
		put_prefix(v, &v->config.route->prefix[live->stream],
			live->wall);
		buf_put(v->config.out, buf_text(&live->text), live->text.len);
		buf_put_char(v->config.out, '\n');
	}
}
