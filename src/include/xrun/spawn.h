/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/spawn.h - the body of a rank as a function.
 *
 * A program that xrun starts may be any program. One that prefers the function
 * form hands xr_main() a function, which gets the global number of its rank
 * and says how it went with a status. What a failing rank owes the person who
 * reads its stderr (device, cause, where it happened) and its exit code are
 * then the same for every program.
 */
#ifndef XRUN_SPAWN_H
#define XRUN_SPAWN_H

#include <stdint.h>

#include "xrun/error.h"
#include "xrun/status.h"

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
 * Thread   the main thread, before the program makes others.
 * Blocks   as long as @fn does.  Touches no signal disposition.
 */
int xr_main(xr_main_fn *fn, void *ctx);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_SPAWN_H */
