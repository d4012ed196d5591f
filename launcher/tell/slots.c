/* SPDX-License-Identifier: Apache-2.0 */
/* slots.c - see slots.h. The descriptor is in its slot for ranks, and nowhere
 * else. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launcher/job/sup.h"
#include "launcher/tell/figures.h"
#include "launcher/tell/gauges.h"
#include "launcher/tell/slots.h"
#include "launcher/tell/slow.h"
#include "segment/gauge.h"
#include "segment/owner.h"

#define BESIDE_NS (2 * NS_PER_S)

bool
slots_wanted(const struct job *job)
{
	bool wanted = job->opt.hang_timeout != 0;

	for (uint32_t i = 0; i < job->part_count && !wanted; i++)
		wanted = job->parts[i].needs_xrun;
	return wanted;
}

void
slots_open(struct job *job)
{
	struct segment_wish wish = {
		.job = job->state.id,
		.attempt = job->state.number,
		.first = job->plan.first,
		.ranks = job_size(job),
	};
	struct stat st;
	int fd;

	if (!slots_wanted(job))
		return;
	wish.spare = segment_spare();
	job->slots = wish.ranks + wish.spare;
	fd = segment_create(&wish);
	if (fd == -1)
		return;
	job->figures_at = segment_figures_at(fd, job->slots);
	job->gauges_at = segment_gauges_at(fd, job->slots);
	if (fstat(fd, &st) == 0 && spawn_slot_set(SPAWN_SLOT_SEGMENT, fd) == 0)
		snprintf(job->segment, sizeof(job->segment), "%d:%llu",
			SLOTS_FD, (unsigned long long)st.st_ino);
	fd_close(fd);
}

static bool
look(const struct job *job, uint32_t r, struct segment_view *view)
{
	return job->segment[0] != '\0' &&
		segment_look(SPAWN_SLOT_SEGMENT, r, clock_now(), view);
}

void
slots_started(struct job *job, uint32_t r)
{
	if (job->segment[0] != '\0')
		segment_name(SPAWN_SLOT_SEGMENT, r, job->rank[r].pid);
}

uint64_t
slots_tick(const struct job *job, uint32_t r)
{
	struct segment_view view;

	return look(job, r, &view) ? view.tick : 0;
}

/* A message is read later than it was sent, and the store of a newer step may
 * have been before that. Where the slot says nothing for longer than a message
 * takes, somebody else tells who has no slot. */
static void
take(struct rank *rank, const struct segment_view *view)
{
	rank->unheard = view->lost;
	if (view->tick == 0)
		return;
	if (view->when + BESIDE_NS >= rank->told_ns) {
		if (view->step != -1) {
			rank->step = view->step;
			if (view->step > rank->best)
				rank->best = view->step;
			slow_note(rank, view->step, view->when);
		}
		rank->total = view->total != -1 ? view->total : rank->total;
	}
	if (view->when > rank->told_ns)
		rank->told_ns = view->when;
}

void
slots_look(struct job *job, uint32_t r)
{
	struct segment_view view;

	gauges_look(job, r);
	if (!look(job, r, &view))
		return;
	take(&job->rank[r], &view);
	figures_look(job, r);
}

/* --- what the dead had ---------------------------------------------------- */

struct reclaim {
	int fd;
	uint32_t ranks, slots;
};

/* One is posted that has not begun: it sees all who have died by then, so that of many
 * who end at once not each is one. Set on the loop, cleared by the helper. */
static bool posted;

static void
reclaim(void *ctx)
{
	struct reclaim *r = ctx;

	__atomic_store_n(&posted, false, __ATOMIC_SEQ_CST);
	segment_reclaim(r->fd, r->ranks, r->slots);
	fd_close(r->fd);
	free(r);
}

static bool
is_anybody_else(const struct job *job, uint32_t r)
{
	for (uint32_t i = 0; i < job_size(job); i++)
		if (i != r && job->rank[i].pidfd != -1)
			return true;
	return false;
}

/* It may take a second for some GiB. Where there is no memory for it, the next
 * death makes up for that. */
static void
post_reclaim(struct job *job)
{
	struct reclaim *r;

	if (__atomic_exchange_n(&posted, true, __ATOMIC_SEQ_CST))
		return;
	r = calloc(1, sizeof(*r));
	if (r == NULL) {
		__atomic_store_n(&posted, false, __ATOMIC_SEQ_CST);
		return;
	}
	r->fd = fcntl(SPAWN_SLOT_SEGMENT, F_DUPFD_CLOEXEC, SPAWN_SLOT_SEGMENT);
	r->ranks = job_size(job);
	r->slots = job->slots;
	if (r->fd != -1 && work_post(job->sup->work, reclaim, r))
		return;
	__atomic_store_n(&posted, false, __ATOMIC_SEQ_CST);
	fd_close(r->fd);
	free(r);
}

/* Does a process of the rank have its slot that is not dead with it? */
static bool
is_anothers(const struct rank *rank, const struct segment_view *view)
{
	return view->holder != 0 && view->holder != (uint32_t)rank->pid &&
		kill((pid_t)view->holder, 0) == 0;
}

/* The slot is free, and others know; false: another process has it. */
static bool
release(struct job *job, uint32_t r, const struct segment_view *view)
{
	if (is_anothers(&job->rank[r], view))
		return false;
	segment_recycle(SPAWN_SLOT_SEGMENT, r, view->gen);
	if (view->open)
		segment_alarm(SPAWN_SLOT_SEGMENT, job->slots);
	return true;
}

void
slots_reaped(struct job *job, uint32_t r)
{
	struct segment_view view;

	gauges_reaped(job, r);
	if (!look(job, r, &view))
		return;
	take(&job->rank[r], &view);
	figures_reaped(job, r);
	if (!is_anybody_else(job, r))
		segment_recycle(SPAWN_SLOT_SEGMENT, r, view.gen);
	else if (!release(job, r, &view))
		job->slots_left++;
	else if (view.shares)
		post_reclaim(job);
}

void
slots_strangers(struct job *job)
{
	struct segment_view view;
	uint32_t released = 0, left = 0;

	if (job->slots_left == 0)
		return;
	for (uint32_t r = 0; r < job_size(job); r++) {
		if (job->rank[r].pidfd != -1 || job->rank[r].pid == 0 ||
			!look(job, r, &view) || view.holder == 0)
			continue;
		if (release(job, r, &view))
			released++;
		else
			left++;
	}
	job->slots_left = left;
	if (released > 0)
		post_reclaim(job);
}
