/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aide.h - processes of the supervisor that are no ranks: who answers HTTP,
 * sends web hooks, runs a command of --exec-on, looks at stacks.
 *
 * An aide leads a session of its own, has no descriptor of a rank, and dies with
 * the supervisor's main thread. It is not reaped as a stranger, nor ended as
 * what a rank left behind. The loop's thread only; none is there unless it was
 * asked for.
 *
 * Close rule: once aide_end() was called its owner hears nothing more of it. It
 * is ended in two steps (TERM, and KILL after a second), and frees itself.
 */
#ifndef LAUNCHER_TELL_AIDE_H
#define LAUNCHER_TELL_AIDE_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

struct aide;
struct job;

/* It is dead and reaped, with all of its process group. @status: as waitpid(2)
 * gives it. @late: its time was over. The aide is freed after the call. */
typedef void aide_fn(int status, bool late, void *ctx);

struct aide_config {
	const char *path; /* the program's file; not searched for */
	char *const *argv;
	char *const *envp;
	int in, out, err; /* descriptors, borrowed; -1: /dev/null */
	int64_t time_ns;  /* that it may run; 0: till it is told to end */
	aide_fn *fn;
	void *ctx;
};

/* aide_start() - NULL with errno: it could not be started. */
struct aide *aide_start(struct job *job, const struct aide_config *config);
pid_t aide_pid(const struct aide *aide);
void aide_end(struct aide *aide); /* NULL is fine */

/* aide_is() - is @pid an aide's? Not to be reaped or killed by others. */
bool aide_is(const struct job *job, pid_t pid);
bool aide_any(const struct job *job);

/* aide_end_all() - at the end of the job: each is killed, and reaped. Waits for
 * the kernel, 100 ms at most. */
void aide_end_all(struct job *job);

#endif /* LAUNCHER_TELL_AIDE_H */
