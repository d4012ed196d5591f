/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gang.h - threads that share tasks: the engine below pools of threads.
 *
 * A gang has seats, and as many threads of its own. Who runs a task sits on a seat: a
 * thread of the gang, which takes its own one if that is free, or another thread that
 * runs its own task at once (gang_run()), or a loop (gang_for()), where a thread of the
 * gang leaves its seat unused. So there are never more tasks that run than seats, and
 * what belongs to a seat, by its number, is used by one thread at a time. As long as no
 * other thread does either of both, a thread and its seat are one.
 *
 * Tasks that are posted from outside run in the order of posts, as they are taken; those
 * that a task posts run before that, the newest first, unless a thread that has nothing
 * to do takes the oldest of them. What was posted begins within a millisecond or so of
 * when a seat could be had, whatever other tasks do: for less than some 50 us of work
 * nobody is woken beside those who run, but one of those who sleep looks after them as
 * long as something goes on. Then all sleep, and nothing beats.
 *
 * A task is run or dropped, once, if its post was accepted. No lock is held meanwhile;
 * it may post, run loops, and free or post itself again. One that ends its thread is
 * over with that: a thread of the gang is replaced by another one. After fork() a gang is
 * of no use to the child.
 */
#ifndef WORKER_GANG_GANG_H
#define WORKER_GANG_GANG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GANG_SEATS_MAX 1024
#define GANG_NOBODY    UINT32_MAX /* who has no seat */

struct gang;

/* What is to be done: part of its owner's memory, from gang_post() until one of both
 * functions is called, which may free it. */
struct gang_task {
	void (*run)(struct gang_task *task, uint32_t seat);
	void (*drop)(struct gang_task *task); /* it will not run */
	_Atomic(struct gang_task *) next;     /* the gang's */
};

struct gang_opts {
	uint32_t seats;   /* 1 to GANG_SEATS_MAX */
	const char *name; /* of its threads; 15 bytes of it count */
	/* begin(), end() - of each thread of the gang, on it; NULL */
	void (*begin)(void *ctx, uint32_t seat);
	void (*end)(void *ctx, uint32_t seat);
	/* left() - a task, or a part of a loop, has ended its thread (pthread_exit(3)), which
	 * had that seat, and has it until this returns; on it, at its end. NULL */
	void (*left)(void *ctx, uint32_t seat);
	/* lost() - after that of a thread of the gang there is no other for it, which @sys
	 * tells of. NULL */
	void (*lost)(void *ctx, int sys);
	void *ctx;
};

/* gang_new() - with all its threads, which have all signals blocked. 0, or an errno. */
int gang_new(const struct gang_opts *opts, struct gang **gang);

/*
 * gang_post() - have it run.
 *
 * Returns  false: it ends, and will neither run nor drop it. A task that runs may post
 *          others until gang_stop().
 * Thread   any.  Blocks: no.  Cost: 20 ns; a system call where somebody is woken.
 */
bool gang_post(struct gang *gang, struct gang_task *task);

/* gang_post_list() - the same of several, linked by their `next`, the last one's NULL. */
bool gang_post_list(struct gang *gang, struct gang_task *first,
	struct gang_task *last);

/*
 * gang_run() - run it now, on this thread.
 *
 * Returns  false: no seat is free, or others have been posted before it; nothing was
 *          done. Also, where this thread has one already.
 */
bool gang_run(struct gang *gang, struct gang_task *task);

/*
 * gang_sweep() - tasks of which @is_stale says that it is nothing to run them are run now.
 *
 * In any order, and on no seat. The others stay in theirs, but for those that wait behind
 * others than us, and come to the end of what was posted from outside. @most: of each so many
 * are looked at.
 */
void gang_sweep(struct gang *gang, uint32_t most,
	bool (*is_stale)(const struct gang_task *task));

/* gang_seat() - this thread's, or GANG_NOBODY. */
uint32_t gang_seat(const struct gang *gang);

/* A loop over 0 .. count, of which parts run at the same time, each once. */
struct gang_loop {
	/* @seat: GANG_NOBODY: of the thread that called, while all are taken */
	void (*run)(void *ctx, uint64_t begin, uint64_t end, uint32_t seat);
	void *ctx;
	uint64_t count;
	uint64_t grain;   /* no part is shorter, but the last; 0 is 1 */
	const void *site; /* what tells it from others, of which is known how
			   * long they took; NULL: @run does */
	/* run(), where to look at the clock would take as long; NULL: run() */
	void (*brief)(void *ctx, uint64_t begin, uint64_t end, uint32_t seat);
};

/*
 * gang_for() - all of it; back when the last part is over.
 *
 * The calling thread runs parts, and alone if the loop is short. Others are woken when
 * what is left would take longer than that. No part may wait for another one.
 */
void gang_for(struct gang *gang, const struct gang_loop *loop);

/* gang_close() - accept no more; what was posted runs, and the threads end. */
void gang_close(struct gang *gang);

/* gang_stop() - the same, and what does not run yet is dropped, most of it before this
 * returns. */
void gang_stop(struct gang *gang);

/* gang_stops() - was it stopped? For tasks that can end early. */
bool gang_stops(const struct gang *gang);

/* gang_join() - until its threads have ended; not by one of them. @until: ns of
 * CLOCK_MONOTONIC; INT64_MAX: never. False: the time is up. */
bool gang_join(struct gang *gang, int64_t until);

/* gang_free() - stopped, if it was not, and joined. What was posted too late is dropped
 * now. Nobody may use it meanwhile. NULL is fine. */
void gang_free(struct gang *gang);

/* gang_forget() - the memory of it only, in a child of fork(), which has none of its threads
 * and does not know where they were. */
void gang_forget(struct gang *gang);

/* What goes on, for whoever counts. Others may be about to change it. */
struct gang_figures {
	uint32_t seats, taken; /* of which somebody sits on */
	uint32_t asleep;       /* threads that can be woken for work */
	uint64_t runs;         /* tasks and parts of loops, begun on seats */
	uint64_t wakes;        /* of threads that slept */
};

void gang_figures(const struct gang *gang, struct gang_figures *figures);

#endif /* WORKER_GANG_GANG_H */
