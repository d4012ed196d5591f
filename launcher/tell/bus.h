/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus.h - what happens to the job, told to whoever wants to know.
 *
 * Each happening is one row of the table below and becomes one JSON line:
 * v, seq, mono_ns, time, event, and the fields of the row. Lines are made on
 * the loop and written by the helper thread: to the job's events.jsonl and to
 * --events FILE. Nothing is lost when the disk is slow, or full for a while; the loop never
 * waits.
 */
#ifndef LAUNCHER_TELL_BUS_H
#define LAUNCHER_TELL_BUS_H

#include <stdbool.h>
#include <stdint.h>

#include "event/loop.h"
#include "event/work.h"
#include "launcher/job/job.h"

/* E(NAME, "name") */
#define BUS_EVENTS(E) \
	E(JOB_START, "job.start")   /* job, host, pid, ranks, argv */ \
	E(RANK_START, "rank.start") /* rank, pid */ \
	E(RANK_ERROR, "rank.error") /* rank, step, error: it did not start */ \
	E(RANK_EXIT, \
		"rank.exit")    /* rank, pid, status | signal, oom, stopped */ \
	E(JOB_STOP, "job.stop") /* reason, signal */ \
	E(JOB_HANG, "job.hang") /* rule, seconds, hung */ \
	E(JOB_STACKS, "job.stacks")   /* why, ranks, path */ \
	E(LOG_FULL, "log.full")       /* rank, stream */ \
	E(LOG_ROOM, "log.room")       /* rank, stream */ \
	E(JOB_RESTART, "job.restart") /* exit, reason, culprit, next, pause */ \
	E(JOB_END, "job.end")         /* exit, reason, culprit */

enum bus_event {
#define E(name, text) BUS_##name,
	BUS_EVENTS(E)
#undef E
		BUS_EVENT_COUNT,
};

struct bus;
struct json;

/*
 * bus_new() - @file: descriptor of --events, or -1; the job's own file is
 * opened by the helper thread with the first line that goes there.
 * NULL if out of memory.
 */
struct bus *bus_new(struct job *job, struct loop *loop, struct work *work,
	int file);

/* bus_tell() - @r: the rank it is about, or with LOG_FULL and LOG_ROOM the
 * stream; ignored by rows without one. */
void bus_tell(struct bus *bus, enum bus_event event, uint32_t r);

/* bus_listen() - @fn gets each event as well, its line without the end; it may
 * not tell any. One. */
typedef void bus_fn(enum bus_event event, struct span line, void *ctx);
void bus_listen(struct bus *bus, bus_fn *fn, void *ctx);

/* bus_flush() - hand what is collected to the helper thread. @keep: false if
 * the job's folder will be removed. False if there was no memory; it is kept
 * till the next time. */
bool bus_flush(struct bus *bus, bool keep);

/* bus_flush_last() - the same; what finds no room now is lost. Before, it is
 * tried again with each flush. */
bool bus_flush_last(struct bus *bus, bool keep);

/* bus_lose() - note why in job->events_sys and the like; the first stays. */
void bus_lose(int *sys, int why);

/* bus_put_job() - what job.start and reports begin with; @pid: of the keeper */
void bus_put_job(struct json *j, const struct job *job, pid_t pid);

/* bus_event_name() - "rank.exit". */
const char *bus_event_name(enum bus_event event);

#endif /* LAUNCHER_TELL_BUS_H */
