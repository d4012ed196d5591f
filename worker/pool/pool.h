/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - a pool, as the process has it that made it.
 *
 * What is submitted is a job: a call, or a map. Its items go to workers as tasks, of
 * which the ledger (ledger.h) has as many as may be waiting or in hand. Who submits puts
 * tasks itself, as long as there is room; what is left of a map is put by those who take
 * results. Results are taken by whoever waits for one: one thread at a time leads, as in
 * rpc/lead.h, and the others follow. While nobody waits, the keeper does: one thread for
 * all pools of the process, which also hears of the end of workers and replaces them.
 *
 * All of a pool that changes is under its lock, which is never held together with
 * another one but the keeper's, which comes first, or while anything of the program's is
 * called.
 */
#ifndef WORKER_POOL_POOL_H
#define WORKER_POOL_POOL_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/queue.h>

#include <xrun/pool.h>
#include <xrun/proc.h>

#include "worker/pool/ledger.h"
#include "worker/pool/book.h"
#include "worker/pool/conf.h"
#include "worker/gang/gang.h"
#include "worker/pool/item.h"
#include "worker/queue/queue_inner.h"
#include "worker/rpc/lead.h"

#define TAKE_BATCH 16 /* results at a time */

struct call;
struct gauge_row;
struct job;
struct mate;
struct seat;

/* With threads: who has it. A waiter that has begun a task leaves it in the gang, which has it
 * until its turn would be. */
enum task_held {
	TASK_WAITS,      /* nobody has begun it */
	TASK_RUNS,       /* who took it out of the gang */
	TASK_HELPED,     /* who waits for it (help.h) */
	TASK_HELPED_OUT, /* the same, and the gang has it no more */
	TASK_STALE, /* it is over, or will not run, and is the gang's yet */
	TASK_LOOSE, /* none of the pool's: the gang never has it */
};

/* A task that may be waiting or in hand: of the ledger's line with its number. Whoever runs
 * one of threads has its first line. */
struct task {
	_Alignas(64) struct gang_task gang; /* with threads: how it is posted */
	struct job *job;                    /* a reference; NULL: it is spare */
	struct task *next_done; /* with threads: of its seat's that are over */
	size_t first;           /* of the job's items */
	uint32_t count, gen;
	_Atomic uint32_t held; /* enum task_held */

	uint32_t tries;
	uint32_t place; /* of the worker that it is for, with XR_POOL_P2P */
	/* While somebody puts it: gen << 2 | FEEDING, or | FORSAKEN: its job has ended
	 * meanwhile, and who puts it makes it spare, unless a worker has it. */
	_Atomic uint32_t feeding;
	bool is_again;
	TAILQ_ENTRY(task) list; /* of those that are to be put again */
	/* of a mate's (mate.h), until it is taken: as struct job_part */
	uint32_t done;
	struct xr_value *error;
	uint64_t ns;
};
TAILQ_HEAD(task_list, task);

/* Where a worker is, and the next one after it. */
struct place {
	struct xr_proc *proc; /* one of both; or nobody */
	struct mate *mate;
	pthread_mutex_t puts; /* one thread at a time puts to `in` */
	uint32_t life;        /* of who is there, from 0 */
	uint32_t tasks;       /* given to it and not ended */
	bool coming;          /* somebody starts one */
};

/* What hooks see. */
struct xr_pool_item {
	struct xr_pool_item_info info;
	uint32_t index;
	struct xr_queue_buf buf; /* of a result: what came, */
	void *data;              /* here */
	struct xr_value *value;  /* or of XR_ENC_SHARE */
};

#define FEEDING  1u
#define FORSAKEN 2u

TAILQ_HEAD(room_list, room);

/* Who waits for room for a task. */
struct room {
	struct waiter waiter;
	uint32_t need; /* tasks that are to be spare */
	bool puts;     /* it has a task, for which the queue had no room */
	TAILQ_ENTRY(room) list;
};

TAILQ_HEAD(job_list, job);
TAILQ_HEAD(waiter_list, waiter);

struct xr_pool {
	_Atomic uint32_t refs;
	LIST_ENTRY(xr_pool) list; /* the keeper's */
	struct pool_conf conf;
	struct xr_pool_ops ops;
	uint32_t born; /* forks before it */
	uint32_t
		callbacks; /* posted, and not over: under the lock of callback.c */
	struct xr_final *final;
	sigset_t mask; /* of signals, of who made it: its workers' */
	struct ledger ledger;
	struct xr_queue **in, *out; /* [in_count] */
	uint32_t in_count;
	bool by_fork;  /* it has a zygote of its own */
	bool by_mates; /* threads that the program's ops have to do with */

	struct gang *gang;  /* of threads; or NULL */
	struct seat *seats; /* [conf.workers], of these */

	pthread_mutex_t lock; /* what follows */
	pthread_cond_t changed;
	enum xr_pool_state state;
	struct xr_value *failure; /* what made it give up; or NULL */
	bool queues_closed;
	struct book book;
	struct place *place; /* [conf.workers] */
	uint32_t alive;
	uint32_t starts_failed; /* in a row, */
	int64_t first_failed;   /* since then */
	int64_t kill_at;        /* INT64_MAX: nobody is to be killed */
	void *tables;           /* memory of: */
	struct task *task;      /* [conf.tasks] */
	struct call *call;      /* [conf.tasks] */
	uint32_t calls;         /* of these that are not spare */
	uint32_t *spare, spare_count;
	uint32_t map_tasks;      /* of maps, of those that are not spare */
	uint64_t unfed;          /* of maps, that items make that no task has */
	struct gauge_row *gauge; /* tell.c; or NULL */
	struct task_list again;
	struct job_list jobs,
		kept,    /* calls that no task has: of functions of the pool */
		waiting; /* and others with items that none has */
	uint64_t numbers;
	struct room_list rooms;

	/* Who takes results. */
	struct waiter_list followers;
	struct waiter *heir;   /* was handed the lead */
	_Atomic uint32_t led;  /* somebody leads */
	_Atomic uint32_t open; /* tasks that are not spare, but for threads */
	_Atomic uint32_t watched; /* the keeper looks at the queue of results */
	_Atomic uint32_t nudges;  /* who leads is to look whether it has to */
	_Atomic bool
		stirs; /* threads that have done a task look after who waits
			     * for room, or for the end: thread.h */
	_Atomic uint32_t stale; /* tasks, TASK_STALE */
	_Atomic bool hungry;    /* something is to be put, once there is room */
	_Atomic bool starves;   /* somebody found none: feed_starve() */
	_Atomic bool out_is_over; /* no result comes any more */
	_Atomic bool naps;        /* who leads sleeps on @nudges */
	struct taker *taker;      /* who leads has these: */
	struct xr_queue_buf *buf;
	uint64_t task_ns, task_len; /* of a task, its time and its result */
};

struct xr_pool *pool_ref(struct xr_pool *pool);
void pool_unref(struct xr_pool *pool);

/* pool_forked() - XR_E_STATE: this is a child of fork(), and it is its parent's. */
enum xr_status pool_forked(const struct xr_pool *pool, struct xr_error *err);

/* pool_is_busy() - has it something that has not ended? With the lock held. */
static inline bool
pool_is_busy(const struct xr_pool *pool)
{
	return pool->calls > 0 || !TAILQ_EMPTY(&pool->jobs);
}

/* --- pool.c -------------------------------------------------------------------- */

/* pool_fail_all() - all jobs end with @error, which is borrowed. */
void pool_fail_all(struct xr_pool *pool, struct xr_value *error);

/* pool_terminated() - what results that are not there have when it is; NULL: no memory. */
struct xr_value *pool_terminated(void);

/* pool_give_up() - the same, and it takes nothing more: for @error, which is taken. */
void pool_give_up(struct xr_pool *pool, struct xr_value *error);

/* pool_close_queues() - if it was closed, and nothing is to be done any more; or it was
 * terminated. The lock is not held. */
void pool_close_queues(struct xr_pool *pool);

/* --- feed.c: tasks to workers -------------------------------------------------- */

/* feed_one() - task @index, which is the caller's: XR_OK; XR_E_AGAIN: there is no room;
 * others: it cannot travel. */
enum xr_status feed_one(struct xr_pool *pool, uint32_t index,
	struct xr_error *err);

/* feed() - whatever there is, as long as there is room. */
void feed(struct xr_pool *pool);

/* feed_hungry() - the same, if there is anything; with no lock. */
static inline void
feed_hungry(struct xr_pool *pool)
{
	if (__builtin_expect(atomic_load(&pool->hungry), false))
		feed(pool);
}

/*
 * feed_starve() - there was no room for a task; to be tried once more behind it. Most room
 * is told of by the result of who made it. Of what nobody waits for any more there is none,
 * nor of who was killed: a worker that took such a task looks whether somebody starves, and
 * has who leads, or the keeper, look; who leads, and who buries a worker, call feed_room(),
 * and all try again.
 */
void feed_starve(struct xr_pool *pool);
void feed_room(struct xr_pool *pool);

/* feed_told() - has a worker said that there may be room? Then the same. */
static inline void
feed_told(struct xr_pool *pool)
{
	if (__builtin_expect(atomic_load_explicit(&pool->starves,
				     memory_order_relaxed),
		    false) &&
		atomic_load(&pool->ledger.head->starved) == 0)
		feed_room(pool);
}

/* feed_take() - a spare task for @count items of @job from @first on, with the lock
 * held; false: there is none. feed_begin() - the same of one that is taken already. */
bool feed_take(struct xr_pool *pool, struct job *job, uint32_t *index);
void feed_begin(struct xr_pool *pool, uint32_t index, struct job *job);

/* feed_loose() - the next items of @job, if it has some that no task has, as @t, which is none
 * of the pool's; with the lock held. */
bool feed_loose(struct job *job, struct task *t);

/* feed_give_back() - what was taken is spare again, and was never put. With the lock
 * held, and a reference of the job, if those are counted. */
void feed_give_back(struct xr_pool *pool, uint32_t index);

/* --- take.c: results ------------------------------------------------------------ */

/* take_await() - until @w is done; as lead_wait(). */
bool take_await(struct xr_pool *pool, struct waiter *w, int64_t deadline);

/* take_await_in() - the same of @r, which is in a list meanwhile. The lock is held, and given
 * back meanwhile. */
bool take_await_in(struct xr_pool *pool, struct room_list *list, struct room *r,
	int64_t deadline);

/* take_begun() - a task is on its way, and its submitter does not wait for it. */
void take_begun(struct xr_pool *pool);

/* take_for_keeper() - there may be something to take. */
void take_for_keeper(struct xr_pool *pool);

/* take_end() - nobody leads any more, and there will be no results: whoever waits for one
 * that its callback has just sleeps. */
void take_end(struct xr_pool *pool);

/* take_nudge() - something ended otherwise: who leads looks. */
void take_nudge(struct xr_pool *pool);

/* --- staff.c: workers ------------------------------------------------------------ */

/* staff_repopulate() - workers for all places, however that is done. */
enum xr_status staff_repopulate(struct xr_pool *pool, struct xr_error *err);

/* staff_look() - has one of them ended? Then maintain. By the keeper. */
void staff_look(struct xr_pool *pool);

/* staff_signal() - all of them. */
void staff_signal(struct xr_pool *pool, int sig);

/* staff_late() - who was to end by now is killed; gives when that is. */
int64_t staff_late(struct xr_pool *pool, int64_t now);

/* staff_await() - until none is left; false: @deadline came first. */
bool staff_await(struct xr_pool *pool, int64_t deadline);

#endif /* WORKER_POOL_POOL_H */
