/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seen.h - what the thread sanitizer cannot see of a task.
 *
 * Who puts it and who takes its result are in order by the worker that had it in between,
 * which is another process. The word of the ledger that all three change stands for that.
 */
#ifndef WORKER_POOL_SEEN_H
#define WORKER_POOL_SEEN_H

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

/* seen_put() - from here on a worker may have what has that @word. */
static inline void
seen_put(void *word)
{
#if defined(__SANITIZE_THREAD__)
	__tsan_release(word);
#else
	(void)word;
#endif
}

#endif /* WORKER_POOL_SEEN_H */
