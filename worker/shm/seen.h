/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seen.h - what the thread sanitizer cannot see.
 *
 * Two threads of this process may be in order by another process that had something in
 * between. A word that all three change stands for that: the second one changes it before
 * it goes on.
 */
#ifndef WORKER_SHM_SEEN_H
#define WORKER_SHM_SEEN_H

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

/* seen_put() - from here on another process may have what has that @word. */
static inline void
seen_put(void *word)
{
#if defined(__SANITIZE_THREAD__)
	__tsan_release(word);
#else
	(void)word;
#endif
}

#endif /* WORKER_SHM_SEEN_H */
