/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - running a function, and its cleaner, and what they failed of as values.
 *
 * The same for processes and for threads: an error is a status, with a line in
 * struct xr_error or, from xr_proc_raise(), a value with a text of any length. Which
 * function failed, in which process, since when, and where, is added.
 */
#ifndef WORKER_PROC_REPORT_H
#define WORKER_PROC_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/proc.h>

/* What runs. */
struct run {
	xr_proc_fn *fn;
	void *ctx;
	const char *func; /* its name */
	const char *name; /* of the process or thread */
	int64_t started;  /* ns since the epoch */
	uint32_t ordinal;
	struct xr_value *arg; /* NULL: NIL */
};

/*
 * run_do() - call it.
 *
 * @err:    its words, with the text of its status if it had none
 * @report: receives an ERROR if it failed; NULL: out of memory
 * Returns  what it returned
 */
enum xr_status run_do(const struct run *run, struct xr_error *err,
	struct xr_value **report);

/* run_ms() - milliseconds until @deadline (clock_now), for poll(2): -1 for ever. */
int run_ms(int64_t deadline);

/* run_deadline() - stores the deadline of an argument @timeout, whose default is to wait
 * without limit. Returns XR_OK, or XR_E_INVAL as timeout_check(). */
enum xr_status run_deadline(int64_t timeout, int64_t *deadline,
	struct xr_error *err);

#endif /* WORKER_PROC_REPORT_H */
