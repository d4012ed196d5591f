/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shm.h - what programs that were killed left in /dev/shm.
 *
 * Libraries give their objects a name for the moment in which two processes
 * meet, and one that is killed in that moment leaves it, memory and all; a job
 * that begins again and again fills the file system with them. Only objects of
 * ours are looked at, with names of libraries that are known, which nobody who
 * lives made, has open or has mapped.
 */
#ifndef PROC_SHM_H
#define PROC_SHM_H

#include <stdint.h>

/* Told of each that was removed. */
typedef void shm_fn(const char *name, void *ctx);

/*
 * shm_sweep() - remove those in @dir ("/dev/shm") that were made after @since
 * (wall ns); @fn may be NULL.
 *
 * No heap. Looks at the files and maps of all processes once for 64 that would go.
 * Returns how many were removed.
 */
uint32_t shm_sweep(const char *dir, int64_t since, shm_fn *fn, void *ctx);

#endif /* PROC_SHM_H */
