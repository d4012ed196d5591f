/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - where a failure was raised: at most 16 return addresses.
 *
 * A trace is taken on the failing thread and printed later, when the functions
 * it names have long returned. Neither allocates: the failure may be that
 * there is no memory. The first backtrace(3) of a process loads libgcc_s; where
 * that fails the trace is empty.
 */
#ifndef WORKER_JOB_TRACE_H
#define WORKER_JOB_TRACE_H

#include <stddef.h>
#include <stdint.h>

#define TRACE_FRAMES 16
#define TRACE_SKIPS  6 /* frames of ours above the one that failed */

struct trace {
	void *at[TRACE_FRAMES + TRACE_SKIPS];
	uint32_t count; /* addresses in at[] */
};

/* trace_take() - the stack of the caller, from the caller on. Keeps errno. */
void trace_take(struct trace *trace);

/*
 * trace_text() - one line a frame, innermost first:
 *
 *	  #0  load+0x3a (train 0x13b9)
 *
 * function and offset where known, file, and the address in it that addr2line
 * takes. At most TRACE_FRAMES whole lines and @cap bytes.
 *
 * @skip: leave out that many innermost frames
 * Returns  bytes written to @out, without the closing 0
 */
size_t trace_text(const struct trace *trace, uint32_t skip, char *out,
	size_t cap);

#endif /* WORKER_JOB_TRACE_H */
