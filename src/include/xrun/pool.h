/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/pool.h - functions on many inputs, by workers that stay.
 *
 * A pool has workers, processes or threads, and runs what it is given on any of them.
 * Functions are those of xr_fn_register() (xrun/func.h), given by name, or as a FUNC
 * with a value bound to it (xr_fn_bind()); each answers as it would answer a call. What
 * a task gives is a future (xrun/future.h). The values that go to processes are
 * encoded; what a FUNC was bound to is read once by each worker. Threads have the
 * values themselves.
 *
 *	struct xr_pool_task square = { .size = sizeof(square), .name = "square",
 *		.args = numbers };
 *
 *	xr_pool_new(NULL, &pool, &err);
 *	xr_pool_map(pool, &square, XR_TIMEOUT_NEVER, &squares, &err);
 *	xr_pool_free(pool);
 *
 * A worker that ends is replaced. The task that it had in hand, and no other, ends with
 * XR_E_WORKER_LOST, or is given to another one, if it may run twice. Workers end with
 * the process that made the pool, however that ends.
 *
 * Processes are started as by xr_proc_start() (xrun/proc.h), so a program with a pool
 * calls xr_init(), or names a module. Any thread may call any of this at any time, but
 * for xr_pool_free(); a child of fork() has no pool. A function that a process of
 * a pool runs must not wait for another task of the same pool: all of its workers may be
 * waiting so. One of threads may, with XR_TIMEOUT_NEVER: what nobody has begun of what it
 * waits for, it does itself; what it submits without room is kept. What it calls by
 * xr_pool_apply(), xr_pool_map() and xr_pool_starmap() so, without callbacks, runs in its
 * place, at once, and is no task.
 */
#ifndef XRUN_POOL_H
#define XRUN_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xrun/error.h"
#include "xrun/future.h"
#include "xrun/queue.h"
#include "xrun/time.h"
#include "xrun/value.h"

#ifdef __cplusplus
extern "C" {
#endif

#define XR_POOL_WORKERS_MAX    1000
#define XR_POOL_TASKS          1024 /* waiting or in hand, unless it is said */
#define XR_POOL_TASKS_MAX      (1 << 16)
#define XR_POOL_START_FAILURES 3
#define XR_POOL_START_WINDOW   XR_SECONDS(10)
#define XR_POOL_GRACE          XR_SECONDS(10) /* default of xr_pool_terminate() */

enum xr_pool_kind {
	XR_POOL_PROCESSES = 0,
	XR_POOL_THREADS = 1,
};

enum xr_pool_routing {
	XR_POOL_SHARED = 0, /* one queue: whoever is free takes the next task */
	XR_POOL_P2P = 1, /* a queue for each worker: a task is given to the one
			     * that has the fewest. With threads: as SHARED */
};

/* What the end of a worker, other than after max_tasks, means for the others. */
enum xr_pool_on_error {
	XR_POOL_REPLACE = 0,
	XR_POOL_TERMINATE = 1, /* all results fail with it, and the pool ends */
};

enum xr_pool_flags {
	XR_POOL_CONTEXT =
		1,          /* a function's first argument is the context of its
			      * worker, NIL where there are none */
	XR_POOL_DRAINS = 2, /* a normal exit of this process waits for what was
			      * submitted; otherwise it ends the workers */
};

struct xr_pool;
struct xr_pool_ops;

/* Zero, but for size, is the default. All is borrowed for the call, but for ops' ctx. */
struct xr_pool_opts {
	uint32_t size;                /* sizeof(struct xr_pool_opts) */
	enum xr_pool_kind kind;       /* of workers: processes or threads */
	enum xr_pool_routing routing; /* of tasks to workers */
	enum xr_pool_on_error on_worker_error; /* if a worker ends */
	uint32_t flags;                        /* enum xr_pool_flags */
	uint32_t workers;          /* 0: processors that this process may use */
	struct xr_value *contexts; /* LIST: one for each worker, which those
				    * that replace it have, too; with
				    * XR_POOL_CONTEXT; or NULL */
	const char *
		initializer; /* a function that each worker calls first; NULL */
	struct xr_value *initargs; /* LIST: its arguments; NULL: none */
	uint64_t max_tasks; /* a worker ends after so many; 0: it stays. A chunk
			     * is one. Threads stay */
	const char *method; /* as xr_proc_start() has them; NULL: "zygote" */
	const char *module; /* as struct xr_proc_opts */
	const char *name;   /* for reports, and xrun ps; NULL: "pool" */
	uint32_t start_failures; /* so many workers in a row that end, or whose
				  * initializer fails, before they take a task, */
	int64_t start_window;    /* ns: in this time, and the pool gives up.
				  * 0 and XR_TIMEOUT_DEFAULT:
				  * XR_POOL_START_WINDOW; XR_TIMEOUT_NEVER */
	enum xr_enc_mode mode;   /* of arguments and results; threads have both
				  * as they are: XR_ENC_SHARE */
	uint32_t tasks; /* that may be waiting or in hand; 0: XR_POOL_TASKS */
	uint64_t bytes; /* of what waits, each way; 0: XR_QUEUE_BYTES */
	const struct xr_pool_ops *ops; /* copied; NULL: all as they are */
};

/*
 * xr_pool_new() - a pool, whose workers are being started.
 *
 * Of a "fork" the workers, and those that replace them, are copies of this process as
 * it is now, which may have one thread only.
 *
 * @opts: NULL: processes, as many as there are processors
 * @pool: receives it; release with xr_pool_free()
 *
 * Returns  XR_OK
 *          XR_E_INVAL        @opts; as many contexts as workers there are not
 *          XR_E_RANGE        too many workers or tasks
 *          XR_E_NO_FUNCTION  the initializer; where there is a module, its
 *                            first result has that error
 *          XR_E_STATE, XR_E_NOTFOUND, XR_E_TIMEOUT, XR_E_SYS, XR_E_NOMEM,
 *          XR_E_ENCODE       as xr_proc_start()
 */
enum xr_status xr_pool_new(const struct xr_pool_opts *opts,
	struct xr_pool **pool, struct xr_error *err);

/* xr_pool_free() - end it, as xr_pool_terminate() with 0, if it has not ended, and
 * release it. It waits for callbacks, but not in one. Nobody may be in a call of it; its
 * futures and iterators may stay, and be waited for. NULL is fine. */
void xr_pool_free(struct xr_pool *pool);

/* --- submitting ------------------------------------------------------------- */

enum xr_pool_task_flags {
	XR_POOL_IDEMPOTENT = 1, /* it may run again if its worker is lost: so do
				 * its next ones, 3 at most */
	XR_POOL_CHUNK = 2,      /* chunk is said */
};

/*
 * What is called before a result is ready, once: the value, or the ERROR. It runs on
 * the thread that all pools of this process have for it; it may wait, for anything but
 * this result and another callback. What it returns changes nothing.
 *
 * @value: borrowed
 */
typedef enum xr_status xr_pool_fn(struct xr_value *value, void *ctx);

struct xr_pool_task {
	uint32_t size;          /* sizeof(struct xr_pool_task) */
	uint32_t flags;         /* enum xr_pool_task_flags */
	const char *name;       /* of the function; or NULL, and */
	struct xr_value *func;  /* a FUNC; a reference is kept */
	struct xr_value *args;  /* LIST: the arguments, NULL: none; of maps, the
				* items; of star maps, LISTs of arguments. A
				* reference is kept, and what tensors in it refer
				* to must not change until the result is ready */
	struct xr_value *named; /* DICT, as xr_call_named(); or NULL */
	int64_t chunk;          /* of maps: items a task, with XR_POOL_CHUNK */
	int64_t timeout;      /* ns to wait for room; 0 and XR_TIMEOUT_DEFAULT:
				* no limit, as XR_TIMEOUT_NEVER */
	xr_pool_fn *callback; /* NULL */
	xr_pool_fn *error_callback; /* NULL */
	void *ctx;                  /* of both */
};

/*
 * xr_pool_apply_async() - one call.
 *
 * @future: receives the result; to cancel it tells the function
 *          (xr_call_cancelled()), if it runs, and else it will not run
 *
 * Returns  XR_OK
 *          XR_E_TIMEOUT      as many tasks as the pool may have wait or are in hand
 *          XR_E_STATE        the pool was closed, or terminated
 *          XR_E_INVAL        @task
 *          XR_E_NO_FUNCTION  it is not registered here; where there is a module,
 *                            the future ends with that
 *          XR_E_ENCODE, XR_E_RANGE: an argument cannot travel
 *          XR_E_NOMEM, XR_E_SYS; what made the pool give up
 * Future   the error of the function: its own status and text, with the worker's
 *          name and pid, and a backtrace; XR_E_WORKER_LOST: the worker ended, by the
 *          exit code or signal that the text names; XR_E_CANCELLED: the pool was
 *          terminated; XR_E_ENCODE, XR_E_RANGE: what it answered cannot travel;
 *          XR_E_SCHEMA; what made the pool give up
 * Thread   any; blocks until there is room, but not in a function of the same pool of
 *          threads without ops. A callback should set a timeout.
 */
enum xr_status xr_pool_apply_async(struct xr_pool *pool,
	const struct xr_pool_task *task, struct xr_future **future,
	struct xr_error *err);

/* xr_pool_apply() - and wait for it; @timeout is of all, in ns: 0 does not wait, and
 * XR_TIMEOUT_DEFAULT is XR_TIMEOUT_NEVER. XR_E_TIMEOUT: it goes on. Of
 * threads, with XR_TIMEOUT_NEVER and without an initializer, it may run on the calling
 * one. */
enum xr_status xr_pool_apply(struct xr_pool *pool,
	const struct xr_pool_task *task, int64_t timeout,
	struct xr_value **value, struct xr_error *err);

/*
 * xr_pool_map_async() - a call for each item, with it as the argument.
 *
 * Items travel in chunks, each of which is a task; one that fails ends its chunk.
 * Where XR_POOL_CHUNK says nothing, a chunk has a fourth of what each worker's share
 * would be, rounded up; and more, up to that share, if it is known from earlier maps of
 * this function that those take less than 20 us. It never waits for room: chunks are put
 * as others end.
 *
 * @future: receives the result: a LIST, in the order of items; or, when all chunks are
 *          done, the first error. None: an empty list, at once
 *
 * Returns as xr_pool_apply_async(); XR_E_INVAL: a chunk of less than 1
 */
enum xr_status xr_pool_map_async(struct xr_pool *pool,
	const struct xr_pool_task *task, struct xr_future **future,
	struct xr_error *err);

/* xr_pool_map() - and wait for it; as xr_pool_apply(). */
enum xr_status xr_pool_map(struct xr_pool *pool,
	const struct xr_pool_task *task, int64_t timeout,
	struct xr_value **values, struct xr_error *err);

/* xr_pool_starmap_async(), xr_pool_starmap() - the same of items that are LISTs of
 * arguments. */
enum xr_status xr_pool_starmap_async(struct xr_pool *pool,
	const struct xr_pool_task *task, struct xr_future **future,
	struct xr_error *err);
enum xr_status xr_pool_starmap(struct xr_pool *pool,
	const struct xr_pool_task *task, int64_t timeout,
	struct xr_value **values, struct xr_error *err);

/* --- one after the other ---------------------------------------------------- */

/* Results that are taken as they are wanted. Any number of threads may take. */
struct xr_pool_iter;

/*
 * xr_pool_imap() - as xr_pool_map_async(), but results are had one by one, in the order
 * of items; xr_pool_imap_unordered(): in that in which they come.
 *
 * A chunk is of one item, if XR_POOL_CHUNK says nothing; of more, one that fails does
 * not end it. There are no callbacks.
 *
 * @iter: receives it; release with xr_pool_iter_free()
 */
enum xr_status xr_pool_imap(struct xr_pool *pool,
	const struct xr_pool_task *task, struct xr_pool_iter **iter,
	struct xr_error *err);
enum xr_status xr_pool_imap_unordered(struct xr_pool *pool,
	const struct xr_pool_task *task, struct xr_pool_iter **iter,
	struct xr_error *err);

/*
 * xr_pool_iter_next() - the next one.
 *
 * @timeout: ns; 0 does not wait; XR_TIMEOUT_DEFAULT is XR_TIMEOUT_NEVER
 * @value:   receives a reference: of an item that failed, the ERROR. Else NULL
 *
 * Returns  XR_OK; the status of the item's error, after which there may be others;
 *          XR_E_END: there are no more; XR_E_TIMEOUT: not yet; XR_E_INVAL: @timeout
 */
enum xr_status xr_pool_iter_next(struct xr_pool_iter *iter, int64_t timeout,
	struct xr_value **value, struct xr_error *err);

/* xr_pool_iter_free() - what was not begun is not done. NULL is fine. */
void xr_pool_iter_free(struct xr_pool_iter *iter);

/* --- ending ------------------------------------------------------------------ */

enum xr_pool_state {
	XR_POOL_RUNNING = 0,
	XR_POOL_CLOSED = 1,
	XR_POOL_TERMINATED = 2,
};

enum xr_pool_state xr_pool_state(const struct xr_pool *pool);

/* xr_pool_close() - it takes nothing more; its workers end when all is done. NULL is
 * fine. */
void xr_pool_close(struct xr_pool *pool);

/*
 * xr_pool_terminate() - end it: all results that are not there are XR_E_CANCELLED,
 * functions that run are told (xr_call_cancelled()), and workers that are processes have
 * SIGTERM.
 *
 * @grace: ns until SIGKILL; threads are waited for as long. 0: at once;
 *         XR_TIMEOUT_DEFAULT: XR_POOL_GRACE; XR_TIMEOUT_NEVER: no SIGKILL
 *
 * Returns  XR_OK: no worker is left; XR_E_TIMEOUT: a thread's function goes on;
 *          XR_E_INVAL: @grace
 */
enum xr_status xr_pool_terminate(struct xr_pool *pool, int64_t grace,
	struct xr_error *err);

/*
 * xr_pool_join() - until its workers have ended.
 *
 * @timeout: ns; 0 does not wait; XR_TIMEOUT_DEFAULT is XR_TIMEOUT_NEVER
 *
 * Returns  XR_OK; XR_E_TIMEOUT; XR_E_INVAL; XR_E_STATE: neither close nor terminate came
 *          first
 */
enum xr_status xr_pool_join(struct xr_pool *pool, int64_t timeout,
	struct xr_error *err);

/* --- asking ------------------------------------------------------------------ */

/* xr_pool_size() - workers that there are. */
uint32_t xr_pool_size(const struct xr_pool *pool);

/* xr_pool_pids() - their pids into @pids[@cap], 0 of threads; how many there are. */
uint32_t xr_pool_pids(const struct xr_pool *pool, int32_t *pids, uint32_t cap);

/* xr_pool_value() - an OPAQUE that stands for it, for functions of thread pools; it
 * cannot be encoded. NULL: no memory. */
struct xr_value *xr_pool_value(struct xr_pool *pool);
struct xr_pool *xr_pool_of(const struct xr_value *value); /* NULL: it is none */

/* --- other ways to do it ------------------------------------------------------ */

/* A task on its way to a worker, or back. */
struct xr_pool_item;

struct xr_pool_item_info {
	uint32_t size;    /* sizeof(struct xr_pool_item_info) */
	uint32_t count;   /* items of its chunk; 1 of xr_pool_apply_async() */
	uint64_t job;     /* number of the submission */
	uint64_t first;   /* which of its items is the chunk's first */
	const char *func; /* its name; borrowed */
	uint32_t worker;  /* that it goes to, with XR_POOL_P2P, or comes from */
};

/* xr_pool_item_info() - @info->size is set by the caller. */
enum xr_status xr_pool_item_info(const struct xr_pool_item *item,
	struct xr_pool_item_info *info);

/* Queues of a pool of processes. */
struct xr_pool_queues {
	uint32_t size;  /* sizeof(struct xr_pool_queues) */
	uint32_t count; /* of @in: 1, or with XR_POOL_P2P one for each worker */
	struct xr_queue *
		*in; /* [count]: of tasks; any to any with redeliver, or with
			       * XR_POOL_P2P one to one. Each taken */
	struct xr_queue *out; /* of results: any to any; taken */
};

/*
 * What a pool does, replaced. NULL: as it is; that is a function with a similar name
 * below, which those that take its place may call. A field that is not NULL is called
 * as described, with no lock held, and with @ctx last but for @err. Timeouts that it
 * receives are 0 or more, or XR_TIMEOUT_NEVER.
 *
 * In pools of threads values do not travel through the queues, which have the numbers of
 * tasks; a worker ends when its function ends the thread, and all else is the same.
 */
struct xr_pool_ops {
	uint32_t size; /* sizeof(struct xr_pool_ops) */
	void *ctx;

	/* setup_queues() - once, by xr_pool_new(), before there is a worker: make
	 * queues. @queues has count, and room for in. */
	enum xr_status (*setup_queues)(struct xr_pool *pool,
		struct xr_pool_queues *queues, void *ctx, struct xr_error *err);

	/* inqueue_put() - a task to the workers, without waiting. XR_E_AGAIN: there
	 * is no room now; other failures end its result. By any thread. */
	enum xr_status (*inqueue_put)(struct xr_pool *pool,
		struct xr_pool_item *item, void *ctx, struct xr_error *err);

	/* outqueue_get() - a result, within @timeout. XR_E_TIMEOUT; XR_E_CLOSED:
	 * all results that are not there fail with that, and it is not called
	 * again. By one thread at a time, whichever waits. */
	enum xr_status (*outqueue_get)(struct xr_pool *pool, int64_t timeout,
		struct xr_pool_item **item, void *ctx, struct xr_error *err);

	/* repopulate() - start the workers that are missing. By xr_pool_new(), and
	 * by maintain(). */
	enum xr_status (*repopulate)(struct xr_pool *pool, void *ctx,
		struct xr_error *err);

	/* maintain() - a worker has ended: see to its task, and repopulate. */
	enum xr_status (*maintain)(struct xr_pool *pool, void *ctx,
		struct xr_error *err);

	/* terminate_workers() - by xr_pool_terminate(): have them end, within
	 * @grace. */
	enum xr_status (*terminate_workers)(struct xr_pool *pool, int64_t grace,
		void *ctx, struct xr_error *err);

	/* join_workers() - by xr_pool_join(): until they have ended. */
	enum xr_status (*join_workers)(struct xr_pool *pool, int64_t timeout,
		void *ctx, struct xr_error *err);

	/* worker - the name of a function of xr_proc_register(): what a worker
	 * runs, with its number and what it is told, which is for
	 * xr_pool_worker(). */
	const char *worker;
};

enum xr_status xr_pool_setup_queues(struct xr_pool *pool,
	struct xr_pool_queues *queues, struct xr_error *err);
enum xr_status xr_pool_inqueue_put(struct xr_pool *pool,
	struct xr_pool_item *item, struct xr_error *err);
enum xr_status xr_pool_outqueue_get(struct xr_pool *pool, int64_t timeout,
	struct xr_pool_item **item, struct xr_error *err);
enum xr_status xr_pool_repopulate(struct xr_pool *pool, struct xr_error *err);
enum xr_status xr_pool_maintain(struct xr_pool *pool, struct xr_error *err);
enum xr_status xr_pool_terminate_workers(struct xr_pool *pool, int64_t grace,
	struct xr_error *err);
enum xr_status xr_pool_join_workers(struct xr_pool *pool, int64_t timeout,
	struct xr_error *err);

/* xr_pool_worker() - in a worker: take tasks and answer, until it is to end. @arg is
 * what the worker was told. */
enum xr_status xr_pool_worker(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *err);

/* --- loops ---------------------------------------------------------------------- */

/* A part of a loop: its first number, and that behind its last one. @worker: in whose
 * place it runs, or XR_POOL_WORKERS_MAX: nobody's, as each has something to do. */
typedef void xr_pool_part_fn(uint64_t begin, uint64_t end, uint32_t worker,
	void *ctx);

struct xr_pool_loop {
	uint32_t size;       /* sizeof(struct xr_pool_loop) */
	xr_pool_part_fn *fn; /* runs each part */
	void *ctx;           /* passed to fn */
	uint64_t count;      /* of numbers, from 0 */
	uint64_t grain; /* that a part has at least, but for the last; 0 is 1 */
};

/*
 * xr_pool_for() - a function over numbers, in parts, each of which runs once; for pools
 * of threads. It is over when the last part is.
 *
 * The calling thread runs parts, too, and all of a loop that is short: others are woken
 * if they save more than that costs. No part may wait for another one. Nothing is
 * encoded, and nothing counts as a task.
 *
 * Returns  XR_OK
 *          XR_E_INVAL      @loop; a pool of processes, or whose workers are replaced
 *          XR_E_STATE      it was closed, or terminated
 *          XR_E_CANCELLED  it was terminated meanwhile; not all parts were run
 * Thread   any, also in a function of the pool.  Cost: 0.1 us, as much again for each
 *          worker that is awake, and 50 ns a part.
 */
enum xr_status xr_pool_for(struct xr_pool *pool,
	const struct xr_pool_loop *loop, struct xr_error *err);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_POOL_H */
