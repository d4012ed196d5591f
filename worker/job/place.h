/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h - which file an address of this process is of, and which function, found
 * in a signal handler: /proc/self/maps and the file itself are read, nothing of
 * the loader's is asked.
 */
#ifndef WORKER_JOB_PLACE_H
#define WORKER_JOB_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "worker/job/symbol.h"

#define PLACE_PATH 256

struct place {
	/* what is asked */
	uintptr_t address;
	/* what is found */
	uintptr_t base;        /* where the file begins in memory; 0: no file */
	uint64_t inode;        /* of the file */
	uint64_t in_file;      /* as the file counts, for addr2line */
	char path[PLACE_PATH]; /* "": none, or too long */
	struct symbol symbol;  /* name "" where it is not known */
};

/* place_find() - fill in all @count of them. Async-signal-safe. */
void place_find(struct place *places, size_t count);

/* place_file() - the last part of its path; "?" without. */
const char *place_file(const struct place *place);

#endif /* WORKER_JOB_PLACE_H */
