/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gauge.h - how the pools and queues of a slot's process are, where the supervisor
 * reads it.
 *
 * Some pages for each slot, which nobody touches who has no pool and no queue. There is
 * a row for each. What a pool has done stands in its row, so it stands there when the
 * process was killed. What of it changes with each task or item does not: that lies in
 * the pool's or queue's own memory anyway, a memfd that the row names, and is looked at
 * there. So a queue costs nothing to tell, and nobody need wake up for it.
 *
 * The pages have one writer, the first process of the rank that has anything to tell;
 * another may take them when that is gone. What was freed keeps its row, and counts on
 * in it if there is another one of that name, until the row is needed.
 */
#ifndef SEGMENT_GAUGE_H
#define SEGMENT_GAUGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "segment/layout.h"
#include "segment/scale.h"

#define GAUGES          20
#define GAUGE_NAME      40        /* bytes, with the 0 */
#define GAUGE_PARTS_MAX 1024      /* workers of a pool, lanes of a queue */
#define GAUGE_TASKS_MAX (1 << 16) /* of a pool */

/* How long tasks took: buckets of half an octave each. The first has all below 1 us,
 * the last all of 37 minutes and more. */
#define GAUGE_TIMES      64
#define GAUGE_FIRST_LOG2 10

enum gauge_kind {
	GAUGE_NONE,
	GAUGE_PROCESSES, /* a pool of these */
	GAUGE_THREADS,
	GAUGE_QUEUE,
	GAUGE_KINDS,
};

/* Of a queue: workers, tasks and open stay 0; of a pool: at, stride, put, got. */
struct gauge_row {
	_Alignas(SEGMENT_LINE) _Atomic uint32_t kind;
	_Atomic uint32_t live; /* 0: it was freed, and has no memory */
	char name[GAUGE_NAME];
	_Atomic uint64_t inode; /* of its memory, which is descriptor .. */
	_Atomic uint32_t fd;
	_Atomic uint32_t parts; /* workers; or lanes */
	_Atomic uint32_t room;  /* tasks that may be open; or items of a lane */
	_Atomic int64_t born;   /* CLOCK_MONOTONIC */
	_Atomic uint64_t at, stride;                  /* lanes, in the memory */
	_Alignas(SEGMENT_LINE) _Atomic uint64_t open; /* tasks not over */
	_Atomic uint64_t done, failed; /* tasks that are over; those of them */
	_Atomic uint64_t busy;         /* ns that tasks took */
	/* Of those of this name that were freed: workers' ns; items. */
	_Atomic uint64_t spent, put, got;
	_Atomic uint64_t time[GAUGE_TIMES]; /* tasks, by how long they took */
};

struct segment_gauges {
	_Atomic uint32_t owner; /* process id; 0: nobody has told anything */
	_Atomic uint32_t more;  /* that found no row */
	uint64_t unused[127];
	struct gauge_row row[GAUGES];
};

_Static_assert(sizeof(struct segment_gauges) == SEGMENT_GAUGES, "whole pages");

/* A rank without a slot has them in a sealed memfd of so many bytes and SEGMENT_GAUGES,
 * there, and sends that: message gauges of wire/control.def. */
#define GAUGE_SENT_AT SEGMENT_PAGE

#define GAUGE_SCALE ((struct scale){ GAUGE_FIRST_LOG2, 1, GAUGE_TIMES })

/* gauge_bucket() - of a task that took @ns. */
static inline uint32_t
gauge_bucket(uint64_t ns)
{
	return scale_bucket(GAUGE_SCALE, ns);
}

/* gauge_above() - as scale_above(). */
static inline uint64_t
gauge_above(uint32_t i)
{
	return scale_above(GAUGE_SCALE, i);
}

/* --- the memory of a pool ------------------------------------------------- */

/* A line for its head, one for each worker, one for each task: worker/pool/ledger.h. */
#define GAUGE_LINE     64
#define GAUGE_SINCE_AT 8 /* in a worker's: when it began what it has in hand */

enum gauge_phase {
	GAUGE_TASK_WAITING = 1,
	GAUGE_TASK_RUNNING,
	GAUGE_TASK_ANSWERED,
	GAUGE_TASK_LENT,
};

/* A task's line begins with a word. */
static inline uint32_t
gauge_task_phase(uint64_t word)
{
	return (uint32_t)(word >> 61);
}

/* gauge_task_place() - of the worker that has it. */
static inline uint32_t
gauge_task_place(uint64_t word)
{
	return (uint32_t)word >> 20;
}

/* --- the memory of a queue ------------------------------------------------ */

/* What of a lane is looked at: worker/queue/layout.h. */
struct gauge_lane {
	_Alignas(SEGMENT_LINE) uint64_t put; /* items, since it was made */
	_Alignas(SEGMENT_LINE) uint64_t got;
};

/* --- who reads ------------------------------------------------------------ */

/* A row, made harmless: nothing is below 0, or beyond what readers of JSON can count,
 * but what is -1, which is not known. */
struct gauge_view {
	enum gauge_kind kind;
	bool live;
	char name[GAUGE_NAME]; /* of its kind no other has it */
	int64_t parts, room;
	int64_t open, waiting, running; /* tasks; -1 where it cannot be seen */
	int64_t done, failed, tasks;    /* @tasks: whose time is known */
	int64_t took;                   /* ns, of tasks that are over */
	int64_t busy, spent;            /* ns of workers: in tasks; in all */
	int64_t items, put, got;        /* of a queue; -1 the same */
	int64_t time[GAUGE_TIMES];
};

struct gauges_view {
	uint32_t count;
	int64_t more;
	struct gauge_view row[GAUGES];
};

/* segment_gauges_at() - where those of slot 0 stand, as segment_figures_at(). */
uint64_t segment_gauges_at(int fd, uint32_t slots);

/*
 * segment_gauge() - how the pools and queues of slot @index are.
 *
 * Their memory is that of a descriptor of the process that tells of them: it is opened
 * only if it is of tmpfs and has the number that the row says, and never waited for.
 *
 * @at:  what segment_gauges_at() gave
 * @now: clock_now()
 * Returns  false, with @view untouched: it cannot be read, or there were none
 */
bool segment_gauge(int fd, uint64_t at, uint32_t index, int64_t now,
	struct gauges_view *view);

/* segment_ungauge() - there were none. */
void segment_ungauge(int fd, uint64_t at, uint32_t index);

/* gauge_quantile() - as scale_quantile(), of tasks. */
static inline int64_t
gauge_quantile(const struct gauge_view *v, uint32_t per_mille)
{
	return scale_quantile(GAUGE_SCALE, v->time, v->tasks, per_mille);
}

#endif /* SEGMENT_GAUGE_H */
