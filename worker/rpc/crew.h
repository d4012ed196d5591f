/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crew.h - the agent's own threads: they read when nobody else does, and run
 * what may wait.
 *
 * At most @limit pieces of work run at a time, not counting those that wait
 * inside of the library; one thread more than that is always there to read, so
 * that answers and timeouts never wait for a thread. Threads are made when they
 * are needed, and stay.
 */
#ifndef WORKER_RPC_CREW_H
#define WORKER_RPC_CREW_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/queue.h>

struct work {
	void (*run)(struct work *work); /* may free it */
	/* ended_thread() - run() will not return: what it called has ended the
	 * thread (pthread_exit(3)). NULL: nothing is to be done. */
	void (*ended_thread)(struct work *work);
	/* refuse() - it cannot run, @why says so; may free it. NULL: it stays in
	 * the queue until a thread is free. */
	void (*refuse)(struct work *work, const char *why);
	TAILQ_ENTRY(work) list;
};

/* What its first thread, which ends last, does at its beginning and end. */
struct crew_first {
	void (*begin)(void);
	void (*end)(void);
};

/* crew_open() - with its first thread. 0, or an errno. */
int crew_open(uint32_t limit, const struct crew_first *first);

/* crew_post() - have it run, soon, in the order of posts. False: there is no crew,
 * or it ends, and will not run it. Any thread. */
bool crew_post(struct work *work);

/*
 * crew_help() - for lead_place: a thread of the crew waits in a piece of work.
 *
 * Where no more threads can be made, it runs the next piece on its own stack. If that
 * is used up, the piece is refused. Returns true if there was one.
 */
bool crew_help(void *unused);

/* crew_has_work() - for lead_place. */
bool crew_has_work(void *unused);

/* crew_wait_begin(), crew_wait_end() - a piece of work waits inside of the
 * library: another may run meanwhile. Nothing for other threads. */
void crew_wait_begin(void);
void crew_wait_end(void);

/* crew_is_member() - is this one of its threads? */
bool crew_is_member(void);

/* crew_limit() - pieces of work that run at a time, at most. */
uint32_t crew_limit(void);

/* crew_idle() - threads that could run work at this moment. */
uint32_t crew_idle(void);

/* crew_abandon() - after fork(), in the child. */
void crew_abandon(void);

/* crew_close() - end all threads, once what was posted has run. Not by one of
 * them.
 *
 * @late: called once if that takes longer than @patience, ns; NULL
 */
void crew_close(int64_t patience, void (*late)(void));

#endif /* WORKER_RPC_CREW_H */
