/* SPDX-License-Identifier: Apache-2.0 */
/*
 * descend.h - ending what a job left behind.
 *
 * A subreaper inherits every process whose parent died. Only direct children
 * are ever signalled here: a child's pid cannot be used again before we reap
 * it, so no stranger can be met. Grandchildren become children when their
 * parent is gone, so rounds of "kill all children, reap them" end with none.
 *
 * No heap: the keeper calls this after a crash of the supervisor.
 */
#ifndef PROC_DESCEND_H
#define PROC_DESCEND_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

/* Asked for each child: true keeps it out of the sweep. */
typedef bool descend_keep_fn(pid_t pid, void *ctx);

/* Told of each child that lives at the first look, and is not on its way out,
 * before its end; comm is its name. Those that become children meanwhile were
 * theirs. */
typedef void descend_tell_fn(pid_t pid, const char *comm, void *ctx);

struct descend {
	descend_keep_fn *keep; /* NULL keeps none */
	descend_tell_fn *tell; /* NULL tells nobody */
	void *ctx;
};

/*
 * descend_end() - SIGKILL and reap all children, and theirs, until none is
 * left or @deadline (clock_now) has passed.
 *
 * Returns  children still there at the deadline: in an uninterruptible sleep
 * Blocks   up to @deadline; ~0.1 ms per generation
 */
uint32_t descend_end(const struct descend *d, int64_t deadline);

/*
 * descend_look() - one round of descend_end(): SIGKILL to each child, and who
 * is dead is reaped. For callers that have more to do than to wait.
 *
 * @alive: receives how many were signalled
 * Returns  how many were met; with none of them nobody is left, or to be found
 */
uint32_t descend_look(const struct descend *d, uint32_t *alive);

/* descend_reap() - reap children that ended by themselves; signals nobody.
 * Returns how many living ones remain. */
uint32_t descend_reap(const struct descend *d);

/*
 * descend_signal() - send @sig to every process of session @sid whose leader
 * is our unreaped child. Returns how many were met.
 */
uint32_t descend_signal(pid_t sid, int sig);

/*
 * descend_wake() - SIGCONT to each stopped child of @parent that still bears
 * the name @comm of its maker: it is not a program yet, and a maker that
 * shares its memory waits for it.
 */
void descend_wake(pid_t parent, const char *comm);

/* descend_hidden() - are there children? Asked after a sweep that met nobody:
 * without /proc they cannot be listed. */
bool descend_hidden(void);

/* proc_each() - every number in a folder of /proc: processes, or, in "/proc/PID/task",
 * threads. */
typedef void proc_each_fn(pid_t pid, void *ctx);
void proc_each(const char *path, proc_each_fn *fn, void *ctx);

/* proc_each_listed() - every number in a file "/proc/PID/task/TID/children". */
void proc_each_listed(const char *path, proc_each_fn *fn, void *ctx);

/* proc_each_thread() - of process @pid. */
void proc_each_thread(pid_t pid, proc_each_fn *fn, void *ctx);

/* What /proc/PID/stat says; false if there is no such process. */
struct proc_stat {
	char comm[17];
	char state; /* R S D T Z X ..., of its main thread */
	pid_t ppid, session;
	bool exiting; /* PF_EXITING of all threads: on its way out, or dead */
};
bool proc_stat_read(pid_t pid, struct proc_stat *out);

/* proc_dumps_core() - is the kernel writing its core file right now? */
bool proc_dumps_core(pid_t pid);

/* proc_is_killed() - has one of its threads been told to end by SIGKILL, and has
 * not begun to? So it is, too, where another one ends them all. */
bool proc_is_killed(pid_t pid);

#endif /* PROC_DESCEND_H */
