/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk.c - see sup.h: output files that find no room.
 *
 * The mover reports that a stream finds no room (launcher/log/mover.h). First the
 * helper thread removes ended jobs. If that does not suffice, the ranks wait or
 * their output is dropped, as --log-full specifies.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "event/work.h"
#include "launcher/host/oom.h"
#include "launcher/log/reserve.h"
#include "launcher/state/retain.h"
#include "launcher/sup/sup.h"
#include "launcher/tell/report.h"

#define DISK_SAY_NS   (60 * NS_PER_S) /* between two messages */
#define DISK_FREE_MIN (1ULL << 20)    /* bytes to free above the reserve */

/* A request to the helper thread, which fills in @freed. */
struct disk_reclaim {
	char *root;               /* of the user's jobs */
	int dir;                  /* borrowed: the attempt's folder */
	uint64_t reserve, enough; /* bytes */
	const struct notes *notes;
	struct retain_freed freed;
};

/* --- a file that may not grow ---------------------------------------------- */

/* The limit of the ranks is xrun's own. */
static void
disk_put_size_limit(char *out, size_t cap)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_FSIZE, &r) == 0 && r.rlim_cur != RLIM_INFINITY)
		snprintf(out, cap, "ulimit -f is %llu KiB",
			(unsigned long long)(r.rlim_cur / 1024));
	else
		snprintf(out, cap, "%s", strerror(EFBIG));
}

/* Waiting would not end. The output is dropped if --log-full says so; otherwise
 * the job ends. */
static void
disk_hopeless(struct job *job, uint32_t rank)
{
	struct sup *sup = job->sup;
	char limit[64];

	disk_put_size_limit(limit, sizeof(limit));
	if (job->opt.log_full != LOG_FULL_DROP)
		stop_fail(job,
			"rank %u: log file in %s cannot grow any more (%s): raise the limit, or take --log-rotate SIZE, --log-full drop or --no-logs",
			rank, job->state.attempt, limit);
	else if (!sup->too_large)
		logs_say(sup->logs,
			"xrun: rank %u: log file cannot grow any more (%s): what such ranks write is dropped",
			rank, limit);
	sup->too_large = true;
}

/* --- a full disk ----------------------------------------------------------- */

/* "/home; --log-reserve keeps 2.0 GiB free". */
static void
disk_put_where(const struct job *job, struct buf *out)
{
	uint64_t keeps = reserve_size(job->share->dir, job->share->reserve);
	char at[PATH_MAX];

	buf_put_text(out, state_mount(job->state.dir, at));
	if (keeps == 0)
		return;
	buf_put_text(out, "; --log-reserve keeps ");
	oom_put_size(out, keeps);
	buf_put_text(out, " free");
}

static void
disk_say(struct job *job, uint32_t rank, int sys, bool drop)
{
	struct logs *logs = job->sup->logs;
	struct buf where = { 0 };

	disk_put_where(job, &where);
	if (!raw_no_room(sys))
		logs_say(logs,
			"xrun: rank %u: log file in %s: %s: ranks wait until it can be written; nothing is lost while the job goes on",
			rank, job->state.attempt, strerror(sys));
	else if (drop)
		logs_say(logs,
			"xrun: rank %u: log file system full (%s): what ranks write is dropped until there is room",
			rank, buf_text(&where));
	else
		logs_say(logs,
			"xrun: rank %u: log file system full (%s): ranks wait until there is room; nothing is lost while the job goes on",
			rank, buf_text(&where));
	buf_fini(&where);
}

static bool
disk_is_waited_for(const struct job *job)
{
	for (uint32_t r = 0; r < job_size(job); r++)
		if (job->rank[r].full != 0)
			return true;
	return false;
}

/* job.json states that the job waits, for xrun ps. @before: what it states. */
static void
disk_report(struct job *job, bool before)
{
	if (disk_is_waited_for(job) != before && job->state.dir_fd != -1 &&
		job->sup->phase == PHASE_RUN)
		report_job(job);
}

void
disk_full(struct job *job, uint32_t stream, int sys)
{
	struct sup *sup = job->sup;
	struct rank *rank = &job->rank[stream / RAW_STREAMS];
	bool drop = raw_no_room(sys) && job->opt.log_full == LOG_FULL_DROP;
	bool waited = disk_is_waited_for(job);

	if (raw_hopeless(sys)) {
		bus_tell(sup->bus, BUS_LOG_FULL, stream);
		disk_hopeless(job, job_rank(job, stream / RAW_STREAMS));
		return;
	}
	if (!drop)
		rank->full |= (uint8_t)(1u << stream % RAW_STREAMS);
	disk_report(job, waited);
	bus_tell(sup->bus, BUS_LOG_FULL, stream);
	if (sup->full_ns != 0 && clock_now() - sup->full_ns < DISK_SAY_NS)
		return;
	sup->full_ns = clock_now();
	disk_say(job, job_rank(job, stream / RAW_STREAMS), sys, drop);
}

void
disk_room(struct job *job, uint32_t stream)
{
	struct rank *rank = &job->rank[stream / RAW_STREAMS];
	bool waited = disk_is_waited_for(job);

	rank->full &= (uint8_t)~(1u << stream % RAW_STREAMS);
	disk_report(job, waited);
	if (rank->state == RANK_ENDED)
		step_drain(job, rank);
	bus_tell(job->sup->bus, BUS_LOG_ROOM, stream);
}

/* --- ended jobs make room -------------------------------------------------- */

static bool
disk_is_enough(void *ctx)
{
	const struct disk_reclaim *r = ctx;

	return reserve_above(r->dir, r->reserve) >= r->enough;
}

/* work_fn. Jobs on another file system would make no room. */
static void
disk_remove_ended(void *ctx)
{
	struct disk_reclaim *r = ctx;
	struct stat root, dir;

	if (stat(r->root, &root) == 0 && fstat(r->dir, &dir) == 0 &&
		root.st_dev == dir.st_dev)
		r->freed = retain_free(r->root, disk_is_enough, r);
	notes_send(r->notes, NOTE_RECLAIMED, 0, 0);
}

static void
disk_reclaim_free(struct disk_reclaim *r)
{
	if (r != NULL)
		free(r->root);
	free(r);
}

/* NULL if there is no such folder, or no memory. */
static struct disk_reclaim *
disk_reclaim_new(const struct job *job)
{
	struct disk_reclaim *r = calloc(1, sizeof(*r));
	uint64_t keeps = reserve_size(job->share->dir, job->share->reserve);

	if (r == NULL)
		return NULL;
	r->root = job->state.root != NULL ? strdup(job->state.root) :
					    state_home();
	r->dir = job->share->dir;
	r->reserve = job->share->reserve;
	r->enough = keeps / 4 > DISK_FREE_MIN ? keeps / 4 : DISK_FREE_MIN;
	r->notes = logs_notes(job->sup->logs);
	if (r->root != NULL)
		return r;
	disk_reclaim_free(r);
	return NULL;
}

void
disk_reclaim(struct job *job)
{
	struct sup *sup = job->sup;

	if (sup->reclaim != NULL)
		return;
	sup->reclaim = disk_reclaim_new(job);
	if (sup->reclaim != NULL &&
		work_post(sup->work, disk_remove_ended, sup->reclaim))
		return;
	disk_reclaim_free(sup->reclaim);
	sup->reclaim = NULL;
	logs_reclaimed(sup->logs, false);
}

void
disk_reclaimed(struct job *job)
{
	struct sup *sup = job->sup;
	const struct retain_freed *freed = &sup->reclaim->freed;
	struct buf where = { 0 };

	if (freed->jobs > 0) {
		disk_put_where(job, &where);
		buf_put_text(&where, "): removed ");
		buf_fmt(&where, "%u ended job%s, the oldest first, ",
			freed->jobs, freed->jobs == 1 ? "" : "s");
		oom_put_size(&where, (uint64_t)freed->bytes);
		logs_say(sup->logs, "xrun: log file system full (%s",
			buf_text(&where));
	}
	logs_reclaimed(sup->logs, freed->jobs > 0);
	buf_fini(&where);
	disk_reclaim_free(sup->reclaim);
	sup->reclaim = NULL;
}

/* --- a job that writes very much ------------------------------------------- */

static uint64_t
disk_bytes_of(const struct job *job, uint32_t r)
{
	return logs_bytes(job->sup->logs, r * RAW_STREAMS) +
		logs_bytes(job->sup->logs, r * RAW_STREAMS + 1);
}

void
disk_large(struct job *job, uint32_t gib)
{
	struct buf size = { 0 };
	uint32_t most = 0;

	for (uint32_t r = 1; r < job_size(job); r++)
		if (disk_bytes_of(job, r) > disk_bytes_of(job, most))
			most = r;
	oom_put_size(&size, disk_bytes_of(job, most));
	logs_say(job->sup->logs,
		"xrun: warning: the output of the job has reached %u GiB (%s); rank %u wrote most, %s; --log-rotate SIZE,COUNT limits the files",
		gib, job->state.attempt, job_rank(job, most), buf_text(&size));
	buf_fini(&size);
}
