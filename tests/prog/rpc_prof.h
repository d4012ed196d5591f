/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_prof.h - what the parts of rpc_prof have in common. */
#ifndef TESTS_PROG_RPC_PROF_H
#define TESTS_PROG_RPC_PROF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <xrun/func.h>
#include <xrun/rpc.h>

struct settings {
	const char *transport, *backend; /* NULL: any */
	const char *fault;               /* XRUN_FAULT; NULL: as it is */
	const char *extra[3];
	uint32_t extra_count;
	int64_t threads;
};
extern struct settings set;

/* must(), holds() - or the program ends with a line that says what was not so. */
void must(enum xr_status status, const struct xr_error *err, const char *what);
void holds(bool is, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

int64_t metric(const char *name);

/* Calls of worker @id; @arg, of which the reference is taken, may be NULL. */
enum xr_status call_raw(int64_t id, const char *func, size_t len,
	struct xr_error *err);
struct xr_rpc_call call_of(int64_t id, const char *func, struct xr_value *arg);
struct xr_value *call_sync(int64_t id, const char *func, struct xr_value *arg);
struct xr_future *call_async(int64_t id, const char *func,
	struct xr_value *arg);

/* rpc_prof_record.c: functions, and what is tried. */
xr_func_fn record_hop, record_later, record_begin, record_end;
void try_record(void);
void try_quiet(void);
void try_nested(void);
void try_cost(const char *count);

/* rpc_prof_fault.c: with the backend "faulty", each with what is said there. */
void try_delayed(void); /* delay:CALL:1.5 */
void try_failed(void);  /* the first 3 of each REQUEST */
void try_odd(void);     /* the first REQUEST of each is dropped, doubled, ... */
void try_whole(void);   /* none */

#endif /* TESTS_PROG_RPC_PROF_H */
