/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/proc.h - processes and threads that run a function, and tell how it went.
 *
 * A function is registered under a name, before xr_init(); a process is started by
 * that name, with a value. Three ways there are to start one:
 *
 *	"zygote"  a child of the zygote: this program, executed once more by the
 *	          first start, which gets as far as its xr_init() and serves forks
 *	          there. Nothing that this process made meanwhile is in it, and no
 *	          thread. The default.
 *	"fork"    a copy of this process, which may have one thread only.
 *	"spawn"   this program, executed anew, as far as its xr_init().
 *
 * With a module, a shared object, xrun-worker takes the place of the program: for
 * programs that have no xr_init().
 *
 * A process ends with the process that started it, however that ends; so does what
 * it left behind, unless "fork" started it. The library touches no signal
 * disposition and no child but its own; the zygote is one, so wait for yours by
 * their pids. Any thread may call any of this; a child of fork() starts anew.
 */
#ifndef XRUN_PROC_H
#define XRUN_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xrun/error.h"
#include "xrun/time.h"
#include "xrun/value.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What a process or thread runs.
 *
 * @ordinal: as its options have it; of xr_spawn(), the global number of the rank
 * @arg:     borrowed; a NIL where none was given
 * @ctx:     as registered
 * @err:     never NULL; what to tell a person, see xr_error_set()
 *
 * Returns  XR_OK, or any other status to fail. An exit(3) inside of a process
 *          keeps its code. A C++ exception must not leave it.
 */
typedef enum xr_status xr_proc_fn(uint32_t ordinal, struct xr_value *arg,
	void *ctx, struct xr_error *err);

/*
 * xr_proc_register() - let processes run @fn, by @name. It stays.
 *
 * Returns  XR_OK; XR_E_INVAL: no function, or a name that is not 1 to 127 bytes;
 *          XR_E_EXISTS; XR_E_NOMEM
 */
enum xr_status xr_proc_register(const char *name, xr_proc_fn *fn, void *ctx,
	struct xr_error *err);

/*
 * xr_init() - from here on this process starts others.
 *
 * Where this process is the zygote, or one that was executed to run a function, it
 * serves, and never returns. So it belongs at the beginning of main(), behind what
 * registers functions, and before any thread. xr_main() calls it, too.
 *
 * Returns  XR_OK, also when called again; XR_E_STATE: it was executed as one of
 *          both, and what it inherited does not fit
 */
enum xr_status xr_init(struct xr_error *err);

/* --- processes ------------------------------------------------------------- */

enum xr_proc_flags {
	XR_PROC_DAEMON = 1, /* a normal exit of this process ends it, and does
			     * not wait for it */
};

struct xr_proc;

/* Zero, but for size and func, is the default. All is borrowed for the call. */
struct xr_proc_opts {
	uint32_t size;          /* sizeof(struct xr_proc_opts) */
	uint32_t flags;         /* enum xr_proc_flags */
	const char *func;       /* name of a registered function to run */
	const char *cleaner;    /* another one, which runs afterwards, even if
			      * func failed or called exit(3); NULL */
	const char *name;       /* for reports; NULL: func */
	struct xr_value *arg;   /* argument of func; NULL: NIL */
	uint32_t ordinal;       /* passed to func */
	const char *method;     /* NULL: "zygote" */
	const char *module;     /* path of a shared object; NULL */
	const char *const *env; /* NAME=VALUE, [..., NULL]; NULL: this
				 * process's */
};

/*
 * xr_proc_start() - start one.
 *
 * Environment, folder, standard input, output and error are those of this process
 * now, also of a child of the zygote.
 *
 * @proc: receives it; release it with xr_proc_free()
 *
 * Returns  XR_OK
 *          XR_E_INVAL        @opts; a method that is none; "fork" with a module
 *          XR_E_NO_FUNCTION  it has no function of that name
 *          XR_E_STATE        xr_init() was not called; "fork" with threads; the
 *                            program ends before it gets to its xr_init()
 *          XR_E_ENCODE       its argument cannot travel; never of "fork"
 *          XR_E_NOTFOUND     xrun-worker is not installed, no such module
 *          XR_E_TIMEOUT      the zygote did not get to its xr_init() in 60 s
 *          XR_E_SYS, XR_E_NOMEM
 */
enum xr_status xr_proc_start(const struct xr_proc_opts *opts,
	struct xr_proc **proc, struct xr_error *err);

/* xr_proc_free() - release it; where it runs, it is killed, with all that descend
 * from it, and waited for. NULL is fine. */
void xr_proc_free(struct xr_proc *proc);

int32_t xr_proc_pid(const struct xr_proc *proc);
const char *xr_proc_name(const struct xr_proc *proc); /* borrowed */

/* xr_proc_started() - when, in ns since the epoch. */
int64_t xr_proc_started(const struct xr_proc *proc);

/* xr_proc_fd() - a descriptor, borrowed, which poll(2) finds readable once it ended
 * and xr_proc_wait() does not wait. Nothing is to be read from it. */
int xr_proc_fd(const struct xr_proc *proc);

/* How it ended. */
struct xr_proc_end {
	uint32_t size;  /* sizeof(struct xr_proc_end) */
	int32_t code;   /* of its exit; -1: a signal ended it */
	int32_t signal; /* that ended it, or 0 */
};

/*
 * xr_proc_wait() - until it ended.
 *
 * @timeout: ns; 0 does not wait; XR_TIMEOUT_DEFAULT is XR_TIMEOUT_NEVER
 * @end:     NULL is fine; its size is set by the caller
 *
 * Returns  XR_OK: it has, in whatever way; XR_E_TIMEOUT: it runs; XR_E_INVAL:
 *          @timeout; XR_E_STATE: this is not the process that started it;
 *          XR_E_SYS: somebody else waited for it, and how it ended is not known
 */
enum xr_status xr_proc_wait(struct xr_proc *proc, int64_t timeout,
	struct xr_proc_end *end, struct xr_error *err);

/*
 * xr_proc_watch() - the same, and how it went. Asked again, it says the same.
 *
 * Returns  XR_OK: it ended with 0; XR_E_REMOTE: it reported an error, whose text
 *          @err has; XR_E_WORKER_LOST: it ended otherwise, by the exit code or
 *          signal that @err names; as xr_proc_wait()
 */
enum xr_status xr_proc_watch(struct xr_proc *proc, int64_t timeout,
	struct xr_error *err);

/*
 * xr_proc_report() - what it reported: ERROR values, borrowed. The first is of its
 * function where that failed, that of its cleaner the last. Each has the text, of
 * any length, the function, its process by name and pid ("worker"), with the time
 * it was started, and a backtrace of at most 16 frames.
 *
 * Returns  NULL: there is no report @i, or it runs
 */
struct xr_value *xr_proc_report(struct xr_proc *proc, size_t i);

/* xr_proc_kill() - send it @sig. XR_E_STATE: it has ended; XR_E_INVAL; XR_E_SYS. */
enum xr_status xr_proc_kill(struct xr_proc *proc, int sig,
	struct xr_error *err);

/* xr_proc_kill_tree() - to it, and to all that descend from it, of which none
 * slips away meanwhile. What has lost its parent is not found; it ends when this
 * process does. */
enum xr_status xr_proc_kill_tree(struct xr_proc *proc, int sig,
	struct xr_error *err);

/*
 * xr_proc_raise() - in a function: fail with @error, whose reference is taken, as
 * it is: its text, of any length, its type, backtrace and cause are reported.
 * What it lacks of function, process and backtrace is added.
 *
 *	return xr_proc_raise(xr_value_new_error(&failure), err);
 *
 * Returns  the error's status; XR_E_NOMEM: @error is NULL; XR_E_INVAL: it is none,
 *          or its status is XR_OK
 */
enum xr_status xr_proc_raise(struct xr_value *error, struct xr_error *err);

/* --- threads --------------------------------------------------------------- */

struct xr_thread;

/* As struct xr_proc_opts, but for the functions themselves. */
struct xr_thread_opts {
	uint32_t size;        /* sizeof(struct xr_thread_opts) */
	uint32_t ordinal;     /* passed to fn */
	xr_proc_fn *fn;       /* function to run */
	xr_proc_fn *cleaner;  /* or NULL */
	void *ctx;            /* of both */
	const char *name;     /* NULL: "thread"; the system has its first 15
			      * bytes */
	struct xr_value *arg; /* a reference is kept */
};

/* xr_thread_start() - XR_E_INVAL, XR_E_NOMEM, XR_E_SYS. Release it with
 * xr_thread_free(). */
enum xr_status xr_thread_start(const struct xr_thread_opts *opts,
	struct xr_thread **thread, struct xr_error *err);

/* xr_thread_free() - waits for it. NULL is fine. */
void xr_thread_free(struct xr_thread *thread);

/* xr_thread_wait() - until it ended: XR_OK, however; XR_E_TIMEOUT; XR_E_INVAL.
 * @timeout as of xr_proc_wait(). */
enum xr_status xr_thread_wait(struct xr_thread *thread, int64_t timeout,
	struct xr_error *err);

/* xr_thread_watch() - the same, and how it went: the status its function returned,
 * or its cleaner, with the text; each time. */
enum xr_status xr_thread_watch(struct xr_thread *thread, int64_t timeout,
	struct xr_error *err);

/* xr_thread_report() - as xr_proc_report(). */
struct xr_value *xr_thread_report(struct xr_thread *thread, size_t i);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_PROC_H */
