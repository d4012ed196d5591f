/* SPDX-License-Identifier: Apache-2.0 */
/* target.h - the functions that processes of this program may run. */
#ifndef WORKER_PROC_TARGET_H
#define WORKER_PROC_TARGET_H

#include <xrun/proc.h>

struct target {
	struct target *next;
	xr_proc_fn *fn;
	void *ctx;
	char name[];
};

/* target_find() - NULL: nobody registered it. What is found stays. */
const struct target *target_find(const char *name);

#endif /* WORKER_PROC_TARGET_H */
