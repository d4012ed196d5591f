/* SPDX-License-Identifier: Apache-2.0 */
/* gauges.c - see gauges.h. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "launcher/tell/gauges.h"
#include "segment/gauge.h"

struct gauges {
	int fd;    /* memory that it sent; -1: it has a slot, or told nothing */
	pid_t pid; /* whose it is; 0: not known */
	struct gauges_view view;
};

/* --- looking ------------------------------------------------------------------ */

static const struct gauge_view *
find(const struct gauges_view *all, const struct gauge_view *like)
{
	for (uint32_t i = 0; i < all->count; i++)
		if ((all->row[i].kind == GAUGE_QUEUE) ==
				(like->kind == GAUGE_QUEUE) &&
			strcmp(all->row[i].name, like->name) == 0)
			return &all->row[i];
	return NULL;
}

static void
at_least(int64_t *n, int64_t least)
{
	if (*n < least)
		*n = least;
}

/* What is counted never goes back: the time of a task in hand is not known any more
 * when its worker is gone, nor is a queue's memory when the rank is. */
static void
keep(struct gauges_view *now, const struct gauges_view *before)
{
	for (uint32_t i = 0; i < now->count; i++) {
		struct gauge_view *v = &now->row[i];
		const struct gauge_view *old = find(before, v);

		if (old == NULL || old->done > v->done)
			continue;
		at_least(&v->busy, old->busy);
		at_least(&v->spent, old->spent);
		at_least(&v->put, old->put);
		at_least(&v->got, old->got);
	}
}

/* Without memory for it nothing is known of this rank. */
static struct gauges *
have(struct rank *rank)
{
	if (rank->gauges == NULL) {
		rank->gauges = calloc(1, sizeof(*rank->gauges));
		if (rank->gauges != NULL)
			rank->gauges->fd = -1;
	}
	return rank->gauges;
}

static bool
look(struct job *job, uint32_t r)
{
	struct gauges *g = job->rank[r].gauges;
	bool is_sent = g != NULL && g->fd != -1;
	struct gauges_view view;

	if (!segment_gauge(is_sent ? g->fd : SPAWN_SLOT_SEGMENT,
		    is_sent ? GAUGE_SENT_AT : job->gauges_at, is_sent ? 0 : r,
		    clock_now(), &view))
		return false;
	g = have(&job->rank[r]);
	if (g == NULL)
		return false;
	keep(&view, &g->view);
	g->view = view;
	return true;
}

void
gauges_look(struct job *job, uint32_t r)
{
	look(job, r);
}

void
gauges_reaped(struct job *job, uint32_t r)
{
	struct gauges *g;

	look(job, r);
	g = job->rank[r].gauges;
	if (g == NULL)
		return;
	for (uint32_t i = 0; i < g->view.count; i++) {
		struct gauge_view *v = &g->view.row[i];

		v->live = false;
		v->parts = v->open = v->waiting = v->running = v->items = 0;
	}
	if (g->fd == -1)
		segment_ungauge(SPAWN_SLOT_SEGMENT, job->gauges_at, r);
	fd_close(g->fd);
	g->fd = -1;
}

/* Nothing but the seals may be asked of a file of an unknown kind. */
static bool
is_memory(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals != -1 && (seals & F_SEAL_SHRINK) != 0 &&
		fstat(fd, &st) == 0 &&
		st.st_size == GAUGE_SENT_AT + SEGMENT_GAUGES;
}

/* The first one tells, as long as it is there. */
bool
gauges_sent(struct job *job, uint32_t r, pid_t pid, int fd)
{
	struct gauges *g = have(&job->rank[r]);

	if (g == NULL || !is_memory(fd) ||
		(g->fd != -1 && g->pid != 0 && kill(g->pid, 0) == 0))
		return false;
	fd_close(g->fd);
	g->fd = fd;
	g->pid = pid;
	return true;
}

void
gauges_free(struct rank *rank)
{
	if (rank->gauges != NULL)
		fd_close(rank->gauges->fd);
	free(rank->gauges);
	rank->gauges = NULL;
}

/* --- JSON --------------------------------------------------------------------- */

static double
seconds(int64_t ns)
{
	return (double)ns / NS_PER_S;
}

/* Of the last bucket nobody knows where it ends. */
static void
put_times(struct json *j, const struct gauge_view *v)
{
	json_open_array(j, "times");
	for (uint32_t i = 0; i < GAUGE_TIMES; i++) {
		if (v->time[i] == 0)
			continue;
		json_open_object(j, NULL);
		if (gauge_above(i) != UINT64_MAX)
			json_real(j, "below", seconds((int64_t)gauge_above(i)));
		json_int(j, "tasks", v->time[i]);
		json_close_object(j);
	}
	json_close_array(j);
}

static void
put_pool(struct json *j, const struct gauge_view *v)
{
	double share = v->spent > 0 ? (double)v->busy / (double)v->spent : 0;

	json_open_object(j, NULL);
	json_text(j, "name", v->name);
	json_text(j, "kind",
		v->kind == GAUGE_THREADS ? "threads" : "processes");
	json_int(j, "workers", v->parts);
	json_int(j, "open", v->open);
	if (v->running != -1) {
		json_int(j, "waiting", v->waiting);
		json_int(j, "running", v->running);
	}
	json_int(j, "done", v->done);
	json_int(j, "failed", v->failed);
	json_real(j, "busy", share < 1 ? share : 1);
	json_real(j, "busy_seconds", seconds(v->busy));
	json_real(j, "worker_seconds", seconds(v->spent));
	json_int(j, "timed", v->tasks);
	json_real(j, "task_seconds", seconds(v->took));
	json_real(j, "p50", seconds(gauge_quantile(v, 500)));
	json_real(j, "p99", seconds(gauge_quantile(v, 990)));
	put_times(j, v);
	json_close_object(j);
}

static void
put_queue(struct json *j, const struct gauge_view *v)
{
	json_open_object(j, NULL);
	json_text(j, "name", v->name);
	if (v->items != -1)
		json_int(j, "items", v->items);
	json_int(j, "room", v->room * v->parts);
	json_int(j, "put", v->put);
	json_int(j, "got", v->got);
	json_close_object(j);
}

static void
put_kind(struct json *j, const struct gauges_view *all, const char *key,
	void (*put)(struct json *j, const struct gauge_view *v))
{
	const bool of_queues = put == put_queue;
	bool any = false;

	for (uint32_t i = 0; i < all->count; i++) {
		if ((all->row[i].kind == GAUGE_QUEUE) != of_queues)
			continue;
		if (!any)
			json_open_array(j, key);
		any = true;
		put(j, &all->row[i]);
	}
	if (any)
		json_close_array(j);
}

void
gauges_put(struct json *j, const struct rank *rank)
{
	const struct gauges_view *all;

	if (rank->gauges == NULL)
		return;
	all = &rank->gauges->view;
	put_kind(j, all, "pools", put_pool);
	put_kind(j, all, "queues", put_queue);
	if (all->more > 0)
		json_int(j, "unlisted", all->more);
}
