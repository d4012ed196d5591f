/* SPDX-License-Identifier: Apache-2.0 */
/* proc.h - processes, as the rest of the library starts them. */
#ifndef WORKER_PROC_PROC_H
#define WORKER_PROC_PROC_H

#include <xrun/proc.h>

/* proc_start() - as xr_proc_start(), with enum card_flags. */
enum xr_status proc_start(const struct xr_proc_opts *opts, uint32_t card_flags,
	struct xr_proc **proc, struct xr_error *err);

/* proc_method() - is @name one? NULL is. */
enum xr_status proc_method(const char *name, struct xr_error *err);

#endif /* WORKER_PROC_PROC_H */
