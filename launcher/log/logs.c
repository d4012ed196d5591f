/* SPDX-License-Identifier: Apache-2.0 */
/* logs.c - see logs.h. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/fd.h"
#include "base/utf8.h"
#include "launcher/log/escape.h"
#include "launcher/log/logs.h"
#include "launcher/log/modes.h"
#include "launcher/log/mover.h"
#include "launcher/log/piece.h"
#include "launcher/log/sink.h"
#include "launcher/log/view.h"

#define TAIL_BYTES (16 * 1024) /* of a file, looked through for last lines */

struct logs {
	struct logs_config config;
	struct notes notes;
	struct mover *mover; /* NULL: no files, the sinks read */
	struct sink *sink[RAW_STREAMS];
	uint32_t sinks; /* 1: stdout and stderr are one file */
};

static bool
same_file(int a, int b)
{
	struct stat sa, sb;

	return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 &&
		sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static void
choose_view(const struct logs *l, uint32_t kind, struct sink_config *config)
{
	const struct route_config *c = &l->config.route.config;

	if (!l->config.route.lines || (!c->tty[kind] && !c->everywhere))
		return;
	config->view = &l->config.route;
	config->screen = c->tty[kind] && c->escapes && view_alone(config->fd);
	config->collapse = c->collapse;
}

static struct sink *
open_sink(struct logs *l, uint32_t kind)
{
	const struct route *r = &l->config.route;
	struct sink_config config = {
		.id = l->sinks++,
		.fd = kind == RAW_OUT ? STDOUT_FILENO : STDERR_FILENO,
		.lines = r->lines,
		.filter = r->lines && r->config.tty[kind],
		.narrow = r->config.narrow[kind],
		.times = r->times,
		.idle_ns =
			r->config.tty[kind] ? LINE_IDLE_TTY_NS : LINE_IDLE_NS,
		.dir = l->config.share->dir,
		.streams = l->config.ranks * RAW_STREAMS,
		.base = l->config.share->base,
		.prefix = r->prefix,
		.shown = r->shown,
		.notes = &l->notes,
		.share = l->config.share->rule.size != 0 ? l->config.share :
							   NULL,
	};

	choose_view(l, kind, &config);
	if (!r->lines && r->config.tty[kind] && l->config.modes != NULL)
		config.modes = &l->config.modes[kind];
	return sink_open(&config);
}

static bool
open_mover(struct logs *l)
{
	struct mover_config config = {
		.share = l->config.share,
		.notes = &l->notes,
		.sink = { l->sink[RAW_OUT], l->sink[RAW_ERR] },
		.reclaim = l->config.reclaim,
		.drop = l->config.drop,
		.files_max = l->config.files_max,
	};

	if (l->config.share->dir < 0)
		return true;
	l->mover = mover_open(&config);
	return l->mover != NULL;
}

struct logs *
logs_open(const struct logs_config *config)
{
	struct logs *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->config = *config;
	if (notes_init(&l->notes) == -1)
		goto fail;
	l->sink[RAW_OUT] = open_sink(l, RAW_OUT);
	l->sink[RAW_ERR] = same_file(STDOUT_FILENO, STDERR_FILENO) ?
		l->sink[RAW_OUT] :
		open_sink(l, RAW_ERR);
	if (l->sink[RAW_OUT] == NULL || l->sink[RAW_ERR] == NULL ||
		!open_mover(l))
		goto fail;
	return l;
fail:
	free(l);
	return NULL;
}

bool
logs_add(struct logs *l, uint32_t stream, int pipe)
{
	if (l->mover != NULL)
		return mover_add(l->mover, stream, pipe);
	return sink_add(l->sink[stream % RAW_STREAMS], stream, pipe);
}

bool
logs_add_tty(struct logs *l, uint32_t stream, int master)
{
	int own;

	if (l->mover != NULL)
		return mover_add_tty(l->mover, stream, master);
	own = fcntl(master, F_DUPFD_CLOEXEC, 0);
	if (own == -1)
		return false;
	if (sink_add(l->sink[stream % RAW_STREAMS], stream, own))
		return true;
	fd_close(own);
	return false;
}

int
logs_first(const struct logs *l)
{
	return l->mover == NULL ? -1 : mover_fd(l->mover);
}

_Static_assert(LOGS_PEEK == MOVER_PEEK, "one is the other");

bool
logs_peek(struct logs *l, uint32_t ended[static LOGS_PEEK], uint32_t *count)
{
	return mover_peek(l->mover, ended, count);
}

int
logs_start(struct logs *l)
{
	int sys;

	if (l->mover != NULL)
		return mover_start(l->mover);
	sys = sink_start(l->sink[RAW_OUT]);
	return sys != 0 ? sys : sink_start(l->sink[RAW_ERR]);
}

const struct notes *
logs_notes(const struct logs *l)
{
	return &l->notes;
}

void
logs_tell_first(struct logs *l)
{
	if (l->mover != NULL)
		mover_tell_first(l->mover);
}

void
logs_reclaimed(struct logs *l, bool freed)
{
	if (l->mover != NULL)
		mover_reclaimed(l->mover, freed);
}

enum drop_end
logs_drop(struct logs *l, uint32_t stream)
{
	if (l->mover != NULL)
		return mover_drop(l->mover, stream);
	return sink_drop(l->sink[stream % RAW_STREAMS], stream);
}

/* Whole lines to stderr. Where the terminal moves down only at "\n" each begins
 * at its left edge all the same. */
static void
put_words(struct logs *l, sink_words_fn *put, struct span text)
{
	struct buf out = { 0 };

	for (size_t i = 0; l->config.carriage && i < text.len; i++) {
		if (i == 0 || text.at[i] == '\n')
			buf_put_char(&out, '\r');
		buf_put_char(&out, text.at[i]);
	}
	if (out.len > 0 && out.bad == XR_OK)
		put(l->sink[RAW_ERR], out.data, out.len);
	else if (text.len > 0)
		put(l->sink[RAW_ERR], text.at, text.len);
	buf_fini(&out);
}

static bool
is_narrow(const struct logs *l)
{
	return l->config.route.config.narrow[RAW_ERR];
}

void
logs_put(struct logs *l, const char *text, size_t len)
{
	put_words(l, sink_say, (struct span){ text, len });
}

void
logs_last_words(struct logs *l, const char *text, size_t len)
{
	struct buf tame = { 0 };
	uint8_t state = 0;
	bool colored = false;

	escape_filter(&tame, (struct span){ text, len }, is_narrow(l), &state,
		&colored);
	if (tame.bad == XR_OK) {
		text = buf_text(&tame);
		len = tame.len;
	}
	put_words(l, sink_last, (struct span){ text, len });
	buf_fini(&tame);
}

void
logs_say(struct logs *l, const char *fmt, ...)
{
	char line[2048];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	/* It may stand over the echo of a key. */
	utf8_tame(line + (line[0] == '\r'), is_narrow(l));
	line[n] = '\n';
	logs_put(l, line, (size_t)n + 1);
}

void
logs_hint(struct logs *l, const char *text)
{
	sink_hint(l->sink[RAW_ERR], text, strlen(text));
}

uint32_t
logs_sinks(const struct logs *l)
{
	return l->sinks;
}

/* Sinks are numbered in the order they were opened: stderr's is the last. */
static struct sink *
sink_of(const struct logs *l, uint32_t id)
{
	return id + 1 == l->sinks ? l->sink[RAW_ERR] : l->sink[RAW_OUT];
}

void
logs_look(struct logs *l, bool lost)
{
	for (uint32_t i = 0; i < l->sinks; i++)
		sink_look(sink_of(l, i), lost);
}

enum sink_end
logs_finish(struct logs *l, uint32_t sink, int *sys)
{
	return sink_finish(sink_of(l, sink), sys);
}

uint64_t
logs_backlog(const struct logs *l, uint32_t sink)
{
	return sink_backlog(sink_of(l, sink));
}

uint32_t
logs_left(const struct logs *l)
{
	uint32_t count = l->config.share->left;

	for (uint32_t i = 0; i < l->sinks; i++)
		count += sink_left(sink_of(l, i));
	return count;
}

uint64_t
logs_bytes(const struct logs *l, uint32_t stream)
{
	if (l->mover != NULL)
		return mover_bytes(l->mover, stream);
	return sink_bytes(l->sink[stream % RAW_STREAMS], stream);
}

uint64_t
logs_total(const struct logs *l)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < l->config.ranks * RAW_STREAMS; i++)
		total += logs_bytes(l, i);
	return total;
}

uint64_t
logs_dropped(const struct logs *l, uint32_t stream)
{
	return __atomic_load_n(&l->config.share->slot[stream].dropped,
		__ATOMIC_RELAXED);
}

uint64_t
logs_unseen(const struct logs *l, uint32_t stream)
{
	return __atomic_load_n(&l->config.share->slot[stream].unseen,
		__ATOMIC_RELAXED);
}

int64_t
logs_last(const struct logs *l, uint32_t stream)
{
	return l->mover == NULL ? 0 : mover_last(l->mover, stream);
}

/* Of the newest piece, and the one before it. */
static size_t
read_pieces_tail(const struct raw_share *share, uint32_t stream, uint64_t from,
	char *out, size_t cap)
{
	struct piece_at at = { from, piece_of(share, stream, from), 0 };
	ssize_t n;

	if (at.start == PIECE_NONE) {
		at.start = piece_after(share, stream, from);
		cap -= at.start - from < cap ? at.start - from : cap;
		at.offset = at.start;
	}
	n = piece_read(share, stream, &at, out, cap);
	return n < 0 ? 0 : (size_t)n;
}

static size_t
read_file_tail(const struct logs *l, uint32_t stream, char *out, size_t cap)
{
	const struct raw_share *share = l->config.share;
	uint64_t end = mover_bytes(l->mover, stream);
	uint64_t from = end > cap ? end - cap : 0;
	int open = __atomic_load_n(&share->slot[stream].file, __ATOMIC_ACQUIRE);
	int fd = open;
	char name[64];
	ssize_t n;

	if (share->rule.size != 0)
		return read_pieces_tail(share, stream, from, out, cap);
	if (open < 0)
		fd = openat(share->dir,
			raw_name(share->base + stream, name, sizeof(name)),
			O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = pread(fd, out, cap, (off_t)from);
	if (open < 0)
		fd_close(fd);
	return n < 0 ? 0 : (size_t)n;
}

/* The last bytes of a stream, wherever they are; the count. */
static size_t
read_tail(const struct logs *l, uint32_t stream, char *out, size_t cap)
{
	struct span kept;

	if (l->mover != NULL)
		return read_file_tail(l, stream, out, cap);
	kept = sink_tail(l->sink[stream % RAW_STREAMS], stream);
	if (kept.len > 0)
		memcpy(out, kept.at, kept.len);
	return kept.len;
}

uint32_t
logs_tail(const struct logs *l, uint32_t stream, uint32_t lines,
	struct buf *out)
{
	char *data = malloc(TAIL_BYTES);
	size_t len, at;
	uint32_t got = 0;

	if (data == NULL)
		return 0;
	len = read_tail(l, stream, data, TAIL_BYTES);
	if (len > 0 && data[len - 1] == '\n')
		len--; /* the newline ends the last line, it begins none */
	for (at = len; got < lines && (got == 0 || at > 0); got++) {
		at -= got > 0; /* the newline of the line before */
		while (at > 0 && data[at - 1] != '\n')
			at--;
	}
	if (len > at) {
		buf_put(out, data + at, len - at);
		buf_put_char(out, '\n');
	}
	free(data);
	return len > at ? got : 0;
}
