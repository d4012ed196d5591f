/* SPDX-License-Identifier: Apache-2.0 */
/*
 * made_pool.h - a pool made by hand, without workers: what is done to it can be looked at.
 *
 * For programs that are linked with made_pool (meson.build): what a pool would do to wake
 * others, to end, and to put tasks is counted in place of that.
 */
#ifndef TESTS_UNIT_MADE_POOL_H
#define TESTS_UNIT_MADE_POOL_H

#include "tests/unit/forked.h"
#include "worker/pool/call.h"
#include "worker/pool/job.h"
#include "worker/pool/tell.h"
#include "worker/pool/thread.h"
#include "worker/rpc/future.h"

#define MADE_TASKS   8
#define MADE_WORKERS 2
#define MADE_REFS    1000

static struct xr_pool made;
static struct place made_place[MADE_WORKERS];
/* And one behind them, which is not the pool's. */
static struct task made_task[MADE_TASKS + 1];
static struct call made_call[MADE_TASKS + 1];
static uint32_t made_spare[MADE_TASKS];
static struct gauge_row made_row;
static struct entry made_entry;
static struct xr_error error;
static unsigned nudges, closings, feedings, tidyings;

void __wrap_take_nudge(struct xr_pool *pool);
void __wrap_pool_close_queues(struct xr_pool *pool);
void __wrap_feed(struct xr_pool *pool);
void __wrap_thread_tidy(struct xr_pool *pool);
bool __wrap_take_await(struct xr_pool *pool, struct waiter *w,
	int64_t deadline);
void __real_feed(struct xr_pool *pool);

void
__wrap_take_nudge(struct xr_pool *pool)
{
	nudges += pool == &made;
}

void
__wrap_pool_close_queues(struct xr_pool *pool)
{
	closings += pool == &made;
}

void
__wrap_feed(struct xr_pool *pool)
{
	feedings += pool == &made;
}

void
__wrap_thread_tidy(struct xr_pool *pool)
{
	tidyings += pool == &made;
}

/* Who waits does that, which ends his wait. */
static void (*while_waiting)(void);

bool
__wrap_take_await(struct xr_pool *pool, struct waiter *w, int64_t deadline)
{
	EXPECT(pool == &made && deadline == INT64_MAX && while_waiting != NULL);
	if (while_waiting != NULL)
		while_waiting();
	return waiter_is_done(w);
}

/* What was counted, and is not from now on. */
static inline unsigned
taken(unsigned *count)
{
	unsigned n = *count;

	*count = 0;
	return n;
}

static inline void
make_pool(void)
{
	memset(&made, 0, sizeof(made));
	memset(&made_row, 0, sizeof(made_row));
	memset(made_place, 0, sizeof(made_place));
	memset(made_task, 0, sizeof(made_task));
	memset(made_call, 0, sizeof(made_call));
	made.refs = MADE_REFS;
	made.conf.workers = MADE_WORKERS;
	made.conf.tasks = MADE_TASKS;
	made.in_count = MADE_WORKERS;
	made.place = made_place;
	made.task = made_task;
	made.call = made_call;
	made.spare = made_spare;
	for (uint32_t i = 0; i < MADE_TASKS; i++)
		made_spare[i] = MADE_TASKS - 1 - i;
	made.spare_count = MADE_TASKS;
	made.gauge = &made_row;
	made_entry = (struct entry){ .name = "made", .users = MADE_REFS };
	pthread_mutex_init(&made.lock, NULL);
	TAILQ_INIT(&made.again);
	TAILQ_INIT(&made.jobs);
	TAILQ_INIT(&made.kept);
	TAILQ_INIT(&made.waiting);
	TAILQ_INIT(&made.rooms);
	NEED(ledger_new(&made.ledger, MADE_WORKERS, MADE_TASKS, NULL) == XR_OK);
	nudges = closings = feedings = tidyings = 0;
}

/* All of it is as it was. */
static inline void
unmake_pool(void)
{
	EXPECT_EQ(made.refs, MADE_REFS);
	EXPECT_EQ(made.spare_count, MADE_TASKS);
	EXPECT_EQ(made.open, 0);
	EXPECT_EQ(made.unfed, 0);
	EXPECT_EQ(made.calls, 0);
	EXPECT_EQ(made.map_tasks, 0);
	EXPECT_EQ(made.stale, 0);
	EXPECT_EQ(made_row.open, 0);
	EXPECT_EQ(made_place[0].tasks, 0);
	EXPECT_EQ(made_place[1].tasks, 0);
	EXPECT(TAILQ_EMPTY(&made.jobs) && TAILQ_EMPTY(&made.waiting));
	EXPECT(TAILQ_EMPTY(&made.again) && TAILQ_EMPTY(&made.kept));
	ledger_fini(&made.ledger);
}

static unsigned gone; /* of kept() */

static inline void
go(void *object, void *ctx)
{
	(void)ctx;
	gone += object == &made;
}

/* A value of which is known when nobody has it any more. */
static inline struct xr_value *
kept(void)
{
	static const struct xr_type type = { .size = sizeof(type),
		.name = "test.kept",
		.free = go };

	xr_type_register(&type, NULL);
	return xr_value_new_opaque(type.name, &made);
}

static inline struct xr_value *
made_list(size_t count)
{
	struct xr_value *list = xr_value_new_list();

	for (size_t i = 0; i < count; i++)
		NEED(xr_value_append(list, xr_value_new_i64((int64_t)i)) ==
			XR_OK);
	return list;
}

/* In no list, with a function, and so many items a task; takes @items. */
static inline struct job *
made_job_of(enum job_kind kind, struct xr_value *items, size_t chunk)
{
	const struct xr_pool_task t = { .size = sizeof(t),
		.name = "made",
		.args = items };
	const struct job_ask ask = { &t, kind, ITEM_MAP, false };
	struct job *job = NULL;

	NEED(job_new(&made, &ask, &job, NULL) == XR_OK);
	xr_value_unref(items);
	job->func = &made_entry;
	job->chunk = chunk;
	return job;
}

static inline struct job *
made_job(enum job_kind kind, size_t count, size_t chunk)
{
	return made_job_of(kind, made_list(count), chunk);
}

/* The next items of a job, as a task. */
static inline struct task *
made_take(struct job *job)
{
	uint32_t index = MADE_TASKS;

	NEED(feed_take(&made, job, &index) && index < MADE_TASKS);
	return &made_task[index];
}

static inline void
made_over(struct task *t, uint32_t done, struct xr_value *failure, uint64_t ns)
{
	const struct job_part part = { .task = t,
		.done = done,
		.error = failure,
		.ns = ns };

	job_part_over(&made, &part);
}

#endif /* TESTS_UNIT_MADE_POOL_H */
