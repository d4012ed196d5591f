/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/spawn.h - the body of a rank as a function: of this process, or of several
 * that it starts.
 *
 * A program that xrun starts may be any program. One that prefers the function
 * form hands xr_main() a function, which gets the global number of its rank
 * and says how it went with a status. What a failing rank owes the person who
 * reads its stderr (device, cause, where it happened) and its exit code are
 * then the same for every program.
 */
#ifndef XRUN_SPAWN_H
#define XRUN_SPAWN_H

#include <stddef.h>
#include <stdint.h>

#include "xrun/error.h"
#include "xrun/proc.h"
#include "xrun/status.h"
#include "xrun/time.h"
#include "xrun/value.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xr_exit {
	XR_EXIT_OK = 0,
	XR_EXIT_RANK_FAILED = 17 /* as torch_xla's multiprocessing gives */
};

/*
 * The body of a rank.
 *
 * @ordinal: global number of this rank, 0 in a program started by hand
 * @ctx:     as given to xr_main()
 * @err:     never NULL; what to tell a person, see xr_error_set()
 *
 * Returns  XR_OK, or any other status to fail
 * Thread   the caller's of xr_main().  An exit(3) inside keeps its code.
 *          A C++ exception must not leave it.
 */
typedef enum xr_status xr_main_fn(uint32_t ordinal, void *ctx,
	struct xr_error *err);

/*
 * xr_main() - run the body of this rank and say what main() shall return.
 *
 *	int main(void) { return xr_main(train, NULL); }
 *
 * The ordinal is the first of XRUN_RANK, RANK and XRT_SHARD_ORDINAL that is
 * set and not empty, else 0; one that is not a number fails the rank before
 * @fn is called.
 *
 * A failure is told on stderr, which is flushed first together with stdout:
 * one write with the device (XRUN_DEVICE, else XRT_MULTI_PROCESSING_DEVICE,
 * else "cpu"), the rank and the text of the error, and one with a backtrace of
 * at most 16 frames. The backtrace is that of the last xr_error_set(), or
 * failing call of libxrun, on this thread with the status that @fn returned;
 * without one, that of xr_main() itself. It may be missing when the process
 * has no memory or descriptors left.
 *
 * @fn:  called once
 * @ctx: passed through, may be NULL
 *
 * Returns  XR_EXIT_OK, or XR_EXIT_RANK_FAILED
 * Thread   the main thread, before the program makes others: it calls xr_init().
 * Blocks   as long as @fn does.  Touches no signal disposition.
 */
int xr_main(xr_main_fn *fn, void *ctx);

/* --- several of them -------------------------------------------------------- */

enum xr_spawn_flags {
	XR_SPAWN_NO_JOIN = 1, /* return at once; xr_procset_join() waits */
	XR_SPAWN_DAEMON = 2,  /* as XR_PROC_DAEMON */
};

/* Zero, but for size, is the default. */
struct xr_spawn_opts {
	uint32_t size;  /* sizeof(struct xr_spawn_opts) */
	uint32_t flags; /* enum xr_spawn_flags */
	uint32_t
		nprocs; /* 0: the devices of a host under a worker list, or 1 */
	const char *method; /* as of struct xr_proc_opts */
	const char *module; /* as of struct xr_proc_opts */
	int64_t grace;      /* ns from SIGTERM to SIGKILL; 0 and
			* XR_TIMEOUT_DEFAULT: 10 s; XR_TIMEOUT_NEVER: no
			* SIGKILL */
};

struct xr_procset;

/* How a set ended. */
struct xr_spawn_end {
	uint32_t size;        /* sizeof(struct xr_spawn_end) */
	uint32_t index;       /* of the process that decided it, on this host */
	int32_t pid;          /* its pid; 0: all ended well */
	int32_t code, signal; /* as struct xr_proc_end */
	struct xr_value *error; /* borrowed: its report; NULL: it made none */
};

/*
 * xr_spawn() - run @func, which is registered by xr_proc_register(), in several
 * processes, as ranks of a job of their own.
 *
 * Under a worker list (XRT_TPU_CONFIG or XRT_LOCAL_WORKER is set) they are the ranks of
 * this host: 1, or as many as TPU_NUM_DEVICES says, 8 if it does not. Each has its
 * global number as ordinal, and its place in its environment, by the names of XRT, of
 * xrun and of torch; rank 0 alone has the list. A service address that is not set is
 * a port of this host, held until the set is released.
 *
 * One that fails tells so on stderr as xr_main() does, and ends with 17. If there is
 * but one, it is this process: @func is called, and xr_spawn() does not return; the
 * process exits with 0 or 17.
 *
 * @arg:  as of struct xr_proc_opts
 * @opts: NULL is the default
 * @set:  receives it; release it with xr_procset_free(). NULL: it is joined here
 *
 * Returns  as xr_procset_join(), or with XR_SPAWN_NO_JOIN XR_OK
 *          XR_E_INVAL, XR_E_RANGE, XR_E_EXISTS  @opts, a number of processes that
 *             cannot be, a variable: which, and what it says
 *          as xr_proc_start(): none was started then, or all were ended
 */
enum xr_status xr_spawn(const char *func, struct xr_value *arg,
	const struct xr_spawn_opts *opts, struct xr_procset **set,
	struct xr_error *err);

/*
 * xr_procset_join() - until all ended well, or one did not. That decides it: the others
 * are told to end, by SIGTERM, all at once, and killed after the grace.
 *
 * @timeout: ns; 0 does not wait; XR_TIMEOUT_DEFAULT is XR_TIMEOUT_NEVER. It does not
 *           include the grace
 * @end:     NULL is fine; its size is set by the caller
 *
 * Returns  XR_OK; XR_E_TIMEOUT: some run; as xr_proc_watch(), of the one that failed,
 *          which @err names. Called again, the same at once.
 * Thread   one at a time.
 */
enum xr_status xr_procset_join(struct xr_procset *set, int64_t timeout,
	struct xr_spawn_end *end, struct xr_error *err);

/* xr_procset_pids() - by their index, up to @cap. Gives how many there are. */
size_t xr_procset_pids(const struct xr_procset *set, int32_t *pids, size_t cap);

/* xr_procset_free() - release it; those that run are killed. NULL is fine. */
void xr_procset_free(struct xr_procset *set);

/*
 * xr_rendezvous() - until every rank has called it with @tag, and all payloads.
 *
 * Ranks of xr_spawn() on one host meet in shared memory, all others by the store
 * (xrun/store.h, env://). Each call with a tag that ended well is a round of its own;
 * after one that did not, the next is the same. A process that is rank 0 of 1 has met
 * itself.
 *
 * @tag:     1 to 127 bytes of UTF-8
 * @payload: borrowed; NULL: NIL
 * @timeout: ns; 0 does not wait; XR_TIMEOUT_DEFAULT is 60 s; XR_TIMEOUT_NEVER
 * @all:     receives a LIST, by rank; a reference of the caller's
 *
 * Returns  XR_OK; XR_E_TIMEOUT: @err names who is missing; XR_E_INVAL; XR_E_ENCODE;
 *          XR_E_DECODE: a payload is of a type that is not known here; XR_E_NOMEM;
 *          as xr_store_open(), xr_store_get()
 * Thread   any, one at a time with a tag.  Blocks: until all have called.
 */
enum xr_status xr_rendezvous(const char *tag, struct xr_value *payload,
	int64_t timeout, struct xr_value **all, struct xr_error *err);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_SPAWN_H */
