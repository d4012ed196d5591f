/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - what was submitted, until its result is there.
 *
 * A job has a reference of each task of its, of its future or iterator, and of the pool's
 * list. Its items' results are written by whoever ends the task that has them; it ends
 * once: with its last task, or with the pool, or because it was cancelled.
 */
#ifndef WORKER_POOL_JOB_H
#define WORKER_POOL_JOB_H

#include "worker/pool/pool.h"
#include "worker/rpc/crew.h"

enum job_kind {
	JOB_APPLY,
	JOB_MAP,
	JOB_ITER, /* results one by one, in the order of items */
	JOB_ITER_ANY,
};

enum job_item {
	JOB_PENDING,
	JOB_VALUE,
	JOB_ERROR,
};

/* Who runs a call reads its first line only. */
struct job {
	struct xr_pool *pool; /* a reference */
	struct entry *func;
	struct xr_value *args, *named; /* references */
	struct xr_future *future;      /* a reference, until it has ended */
	enum job_kind kind;
	enum item_form form;
	uint32_t flags;     /* enum xr_pool_task_flags */
	bool is_own;        /* call.h */
	_Atomic bool ended; /* set with the pool's lock, but for a call's */
	bool here; /* its submitter waits for it, for as long as it takes */
	bool failed;

	size_t count;
	_Atomic uint32_t refs; /* of one that is not its task's own */
	xr_pool_fn *callback, *error_callback;
	void *ctx;
	struct xr_future *mine; /* the submitter's reference of it */

	/* under the pool's lock */
	TAILQ_ENTRY(job) list, waits;
	uint64_t number;
	size_t next;  /* item that no task has */
	size_t chunk; /* items a task */
	size_t left;  /* items without a result */
	uint32_t tasks;
	bool is_listed, is_waiting;
	struct xr_value *error; /* the first, or of all; a reference */

	/* of the items: written by who ends their task */
	struct xr_value **value; /* [count] references; NULL: NIL */
	struct xr_value *one;    /* where there is one */

	/* of an iterator, under the pool's lock */
	uint8_t *item; /* [count]: enum job_item; written as value is */
	bool *shown;   /* [count]: and may be looked at */
	size_t *order; /* [count]: of JOB_ITER_ANY, as they came */
	size_t came, given;
	struct room_list takers;

	/* while it waits for its callback */
	struct work work;
	struct xr_value *result;
};

/* One that is part of its task (call.h). */
struct call {
	_Alignas(64) struct job job;
};

/* What is asked for. */
struct job_ask {
	const struct xr_pool_task *task;
	enum job_kind kind;
	enum item_form form;
	bool here; /* as of struct job */
};

/* job_check() - what is asked for is something. */
enum xr_status job_check(const struct job_ask *ask, struct xr_error *err);

/* job_new() - in no list. */
enum xr_status job_new(struct xr_pool *pool, const struct job_ask *ask,
	struct job **job, struct xr_error *err);
struct job *job_ref(struct job *job);
void job_unref(struct job *job); /* NULL is fine */

/* job_find() - its function; with the lock held. job_chunk() - how many items a task of
 * it has. */
enum xr_status job_find(struct xr_pool *pool, const struct xr_pool_task *t,
	struct entry **entry, struct xr_error *err);
size_t job_chunk(const struct job *job, const struct xr_pool_task *t);

/* job_give_up() - it was not submitted; takes it. */
void job_give_up(struct job *job);

/* job_empty() - it has no items, and so its result is there. */
void job_empty(struct job *job);

/* job_list() - it is the pool's, and @job->next is its first item without a task; with
 * the lock held. */
void job_list(struct job *job);

/* job_waits_in() - the list of those that are waiting that it is in, or would be. */
static inline struct job_list *
job_waits_in(const struct job *job)
{
	return job->kind == JOB_APPLY ? &job->pool->kept : &job->pool->waiting;
}

/* A task that is over. */
struct job_part {
	struct task *task;
	uint32_t done;          /* items that have results */
	struct xr_value *error; /* of the one behind them, taken; NULL */
	uint64_t ns;            /* 0: not known */
	bool inside; /* it is a part of another one's time (help.h) */
	bool led;    /* by who leads, who looks at what he waits for */
};

/* job_part_over() - with results written to job->value and, of an iterator, job->item.
 * The task is spare then. The lock is not held. */
void job_part_over(struct xr_pool *pool, const struct job_part *part);

/* job_make_spare() - with the lock held; a reference of its job is left over. Before that
 * it is over for job_close(), which needs no lock; job_reclaim() - the rest. */
void job_close(struct xr_pool *pool);
void job_reclaim(struct xr_pool *pool, struct task *task);
void job_make_spare(struct xr_pool *pool, struct task *task);

/* job_leave() - who has run @task is done with it. False: so is everybody; the gang will make
 * it spare when it comes to it, which may be at once. */
bool job_leave(struct xr_pool *pool, struct task *task);

/* job_drop() - the job of @task has ended, with the lock held: who has it in hand is told,
 * and if nobody has, it is spare, or, with threads, will not run. True: so it is; a reference of the job, or of its own
 * one what is put into @rest, is left over. */
struct call_rest;
bool job_drop(struct xr_pool *pool, struct task *task, struct call_rest *rest);

/* job_part_dropped() - nobody runs the task, whose job has ended: it is spare. */
void job_part_dropped(struct xr_pool *pool, struct task *task);

/* job_abort() - it ends with @error, borrowed, now. False: it has ended. */
bool job_abort(struct job *job, struct xr_value *error);

/* job_nobody() - the same, of an iterator that was freed. */
void job_nobody(struct job *job);

/* --- callback.c ------------------------------------------------------------------ */

/* callback_post() - have its callback called, and then its future ended. */
void callback_post(struct job *job);

/* callback_work() - have it run, by the thread that calls callbacks. False: there is no
 * pool any more. */
bool callback_work(struct work *work);

/* callback_come(), callback_leave() - there is one more pool, or less, whose callbacks have
 * run then; of the last the thread is over. By a callback it waits for neither. */
void callback_come(void);
void callback_leave(const struct xr_pool *pool);

/* callback_forked() - in a child of fork(). */
void callback_forked(void);

/* job_settle() - its future ends with what job->result says. */
void job_settle(struct job *job);

#endif /* WORKER_POOL_JOB_H */
