/* SPDX-License-Identifier: Apache-2.0 */
/*
 * last.h - the last words of a rank: of what it failed, and where.
 *
 * Where a thread failed last is kept from last_keep() on, since the stack is gone
 * when somebody wants to know. Others do not pay for it.
 */
#ifndef WORKER_JOB_LAST_H
#define WORKER_JOB_LAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/error.h>

/* One write of at most PIPE_BUF bytes stays whole among the writers of a pipe. */
#define LAST_MAX 4096

/* last_keep() - of this thread, where it fails from now on, or no more. Gives what it
 * was before. */
bool last_keep(bool keep);

/* last_place() - where this thread failed with @status last, or where it stands:
 * lines of trace_text(), with the closing 0. */
size_t last_place(enum xr_status status, char *out, size_t cap);

/*
 * last_words() - tell on stderr: the device, the rank and the text of the error in
 * one write, the place in another. stdout and stderr are flushed first.
 *
 * @ordinal: NULL: it is not known
 * @err:     gets the text of @status if it has none
 */
void last_words(enum xr_status status, const uint32_t *ordinal,
	struct xr_error *err);

#endif /* WORKER_JOB_LAST_H */
