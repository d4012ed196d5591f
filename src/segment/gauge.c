/* SPDX-License-Identifier: Apache-2.0 */
/* gauge.c - see gauge.h: what pools and queues say, read and made harmless. */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/vfs.h>

#include <linux/magic.h>

#include "base/fd.h"
#include "base/utf8.h"
#include "segment/gauge.h"

#define MOST  ((INT64_C(1) << 53) - 1) /* readers of JSON count so far */
#define BATCH 64                       /* lines at a time */

static int64_t
within(uint64_t n)
{
	return n < (uint64_t)MOST ? (int64_t)n : MOST;
}

/* Both are in range. */
static int64_t
plus(int64_t a, int64_t b)
{
	return within((uint64_t)a + (uint64_t)b);
}

/* @a is later, or they are nonsense. */
static int64_t
minus(int64_t a, int64_t b)
{
	int64_t n;

	return __builtin_sub_overflow(a, b, &n) || n < 0 ? 0 :
							   within((uint64_t)n);
}

/* --- their memory --------------------------------------------------------- */

/* Nothing is opened before it is known what it is: what is no memory may wait, or do
 * something. -1: it cannot be had. */
static int
open_memory(uint32_t pid, const struct gauge_row *row)
{
	int path_fd, fd = -1;
	struct statfs fs;
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/fd/%u", pid, row->fd);
	path_fd = open(path, O_PATH | O_CLOEXEC);
	if (path_fd == -1)
		return -1;
	if (fstat(path_fd, &st) == 0 && S_ISREG(st.st_mode) &&
		st.st_ino == row->inode && fstatfs(path_fd, &fs) == 0 &&
		fs.f_type == TMPFS_MAGIC) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
		fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	}
	fd_close(path_fd);
	return fd;
}

struct line {
	uint64_t word[GAUGE_LINE / 8];
};

/* Lines @first and on, at most @count and BATCH; gives how many. */
static uint32_t
read_lines(int fd, uint64_t first, uint32_t count, struct line line[BATCH])
{
	size_t len = (count < BATCH ? count : BATCH) * sizeof(*line);
	ssize_t n = pread(fd, line, len, (off_t)(first * sizeof(*line)));

	return n < 0 ? 0 : (uint32_t)((size_t)n / sizeof(*line));
}

/* When each worker began what it has in hand. */
static bool
read_since(int fd, uint32_t workers, int64_t since[GAUGE_PARTS_MAX])
{
	struct line line[BATCH];
	uint32_t n;

	for (uint32_t i = 0; i < workers; i += n) {
		n = read_lines(fd, 1 + i, workers - i, line);
		if (n == 0)
			return false;
		for (uint32_t k = 0; k < n; k++)
			since[i + k] =
				(int64_t)line[k].word[GAUGE_SINCE_AT / 8];
	}
	return true;
}

struct hands {
	int64_t running, answered, ns;
};

/* A thread has in hand what it began. */
static void
count_threads(const struct gauge_row *row, const int64_t *since, int64_t now,
	struct hands *h)
{
	for (uint32_t i = 0; i < row->parts; i++) {
		if (since[i] <= 0)
			continue;
		h->running++;
		h->ns = plus(h->ns, minus(now, since[i]));
	}
}

static bool
read_tasks(int fd, const struct gauge_row *row, int64_t now, struct hands *h)
{
	int64_t since[GAUGE_PARTS_MAX];
	struct line line[BATCH];
	uint32_t n, place;

	if (!read_since(fd, row->parts, since))
		return false;
	if (row->kind == GAUGE_THREADS) {
		count_threads(row, since, now, h);
		return true;
	}
	for (uint32_t i = 0; i < row->room; i += n) {
		n = read_lines(fd, 1 + (uint64_t)row->parts + i, row->room - i,
			line);
		if (n == 0)
			return false;
		for (uint32_t k = 0; k < n; k++) {
			uint64_t word = line[k].word[0];
			uint32_t phase = gauge_task_phase(word);

			place = gauge_task_place(word);
			h->answered += phase == GAUGE_TASK_ANSWERED ||
				phase == GAUGE_TASK_LENT;
			if (phase != GAUGE_TASK_RUNNING)
				continue;
			h->running++;
			if (place < row->parts && since[place] > 0)
				h->ns = plus(h->ns, minus(now, since[place]));
		}
	}
	return true;
}

/* What workers have in hand, which the row does not know. */
static void
look_at_tasks(struct gauge_view *v, const struct gauge_row *row, uint32_t pid,
	int64_t now)
{
	struct hands h = { 0 };
	int fd;

	if (v->open == 0) {
		v->waiting = v->running = 0;
		return;
	}
	fd = row->parts <= GAUGE_PARTS_MAX && row->room <= GAUGE_TASKS_MAX ?
		open_memory(pid, row) :
		-1;
	if (fd == -1)
		return;
	if (read_tasks(fd, row, now, &h)) {
		v->running = h.running;
		v->waiting = minus(v->open, h.running + h.answered);
		v->busy = plus(v->busy, h.ns);
	}
	fd_close(fd);
}

static void
look_at_items(struct gauge_view *v, const struct gauge_row *row, uint32_t pid)
{
	int fd = row->parts <= GAUGE_PARTS_MAX ? open_memory(pid, row) : -1;
	struct gauge_lane lane;
	int64_t items = 0, put = 0, got = 0, n;
	uint32_t i = 0;

	if (fd == -1)
		return;
	for (; i < row->parts; i++) {
		uint64_t at = row->at + i * row->stride;

		if (at > INT64_MAX - sizeof(lane) ||
			pread(fd, &lane, sizeof(lane), (off_t)at) !=
				sizeof(lane))
			break;
		/* Who gets one may come before who puts it has said so. */
		n = minus(within(lane.put), within(lane.got));
		items += n < row->room ? n : row->room;
		put = plus(put, within(lane.put));
		got = plus(got, within(lane.got));
	}
	if (i == row->parts) {
		v->items = within((uint64_t)items);
		v->put = plus(v->put, put);
		v->got = plus(v->got, got);
	}
	fd_close(fd);
}

/* --- rows ----------------------------------------------------------------- */

static int64_t
parts_of(const struct gauge_row *row)
{
	if (row->live == 0)
		return 0;
	return row->parts < GAUGE_PARTS_MAX ? row->parts : GAUGE_PARTS_MAX;
}

static bool
is_twice(const struct gauges_view *all, const struct gauge_view *v)
{
	for (uint32_t i = 0; i < all->count; i++)
		if ((all->row[i].kind == GAUGE_QUEUE) ==
				(v->kind == GAUGE_QUEUE) &&
			strcmp(all->row[i].name, v->name) == 0)
			return true;
	return false;
}

/* One word, for tables and labels. */
static void
take_name(struct gauge_view *v, const struct gauge_row *row)
{
	memcpy(v->name, row->name, sizeof(v->name));
	v->name[sizeof(v->name) - 1] = '\0';
	utf8_tame(v->name, false);
	for (char *c = v->name; *c != '\0'; c++)
		if (*c == '\t' || *c == '\n')
			*c = '?';
}

static void
take_counts(struct gauge_view *v, const struct gauge_row *row, int64_t now)
{
	*v = (struct gauge_view){
		.kind = (enum gauge_kind)row->kind,
		.live = row->live != 0,
		.parts = parts_of(row),
		.room = row->room,
		.open = row->live != 0 ? within(row->open) : 0,
		.waiting = row->live != 0 ? -1 : 0,
		.running = row->live != 0 ? -1 : 0,
		.done = within(row->done),
		.failed = within(row->failed),
		.took = within(row->busy),
		.busy = within(row->busy),
		.spent = within(row->spent),
		.items = row->live != 0 ? -1 : 0,
		.put = within(row->put),
		.got = within(row->got),
	};
	for (uint32_t i = 0; i < GAUGE_TIMES; i++) {
		v->time[i] = within(row->time[i]);
		v->tasks = plus(v->tasks, v->time[i]);
	}
	for (int64_t i = 0; i < v->parts; i++)
		v->spent = plus(v->spent, minus(now, row->born));
	take_name(v, row);
}

static void
take(struct gauges_view *all, const struct gauge_row *row, uint32_t pid,
	int64_t now)
{
	struct gauge_view *v = &all->row[all->count];

	if (row->kind == GAUGE_NONE || row->kind >= GAUGE_KINDS)
		return;
	take_counts(v, row, now);
	if (v->name[0] == '\0' || is_twice(all, v)) {
		all->more = plus(all->more, 1);
		return;
	}
	if (v->live && v->kind == GAUGE_QUEUE)
		look_at_items(v, row, pid);
	else if (v->live)
		look_at_tasks(v, row, pid, now);
	all->count++;
}

bool
segment_gauge(int fd, uint64_t at, uint32_t index, int64_t now,
	struct gauges_view *view)
{
	/* Nobody else writes it. Not on the stack, whose alignment is less in gcc's address
	 * sanitizer. */
	static _Thread_local struct segment_gauges g;
	off_t from = (off_t)(at + (uint64_t)index * SEGMENT_GAUGES);
	uint32_t owner;

	/* Of most slots nothing more is read. */
	if (at == 0 ||
		pread(fd, &owner, sizeof(owner), from) != sizeof(owner) ||
		owner == 0 || pread(fd, &g, sizeof(g), from) != sizeof(g))
		return false;
	view->count = 0;
	view->more = g.more;
	for (uint32_t i = 0; i < GAUGES; i++)
		take(view, &g.row[i], g.owner, now);
	return true;
}

void
segment_ungauge(int fd, uint64_t at, uint32_t index)
{
	const uint32_t nobody = 0;
	ssize_t n = pwrite(fd, &nobody, sizeof(nobody),
		(off_t)(at + (uint64_t)index * SEGMENT_GAUGES +
			offsetof(struct segment_gauges, owner)));

	(void)n; /* then who is next counts on */
}
