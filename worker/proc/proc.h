/* SPDX-License-Identifier: Apache-2.0 */
/* proc.h - processes, as the rest of the library starts them. */
#ifndef WORKER_PROC_PROC_H
#define WORKER_PROC_PROC_H

#include <signal.h>

#include <xrun/proc.h>

/* What xr_proc_start() leaves out. */
struct proc_more {
	uint32_t card_flags; /* enum card_flags */
	int place;           /* to meet, by ordinal: meet.h; borrowed; -1 */
	const int *give;     /* [give_count]: what it is to have, as */
	uint32_t give_count; /* given_fds() tells it; borrowed */
	const void
		*of; /* method "fork": of the zygote that this one has; NULL */
	const sigset_t *mask; /* of signals; NULL: this thread's */
};

/* proc_start() - as xr_proc_start(). */
enum xr_status proc_start(const struct xr_proc_opts *opts,
	const struct proc_more *more, struct xr_proc **proc,
	struct xr_error *err);

/* proc_method() - is @name one? NULL is. */
enum xr_status proc_method(const char *name, struct xr_error *err);

#endif /* WORKER_PROC_PROC_H */
