/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rref.h - ranks that hold references to each other's values, for rpc_rref.bats.
 *
 * Built twice: against libxrun, as any program, and over its objects, with
 * RREF_INSIDE, to be in the way of its messages.
 */
#ifndef TESTS_RREF_RREF_H
#define TESTS_RREF_RREF_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/func.h>
#include <xrun/job.h>
#include <xrun/rpc.h>
#include <xrun/rref.h>
#include <xrun/value.h>

/* CHECK() - ends the rank if it does not hold. */
#define CHECK(holds) check((holds), #holds, __FILE__, __LINE__)
/* EXPECT() - the same of a status, whose text is in @last_err. */
#define EXPECT(got, want) expect((got), (want), #got, __FILE__, __LINE__)

extern struct xr_error last_err;

void check(bool holds, const char *what, const char *file, int line);
void expect(enum xr_status got, enum xr_status want, const char *what,
	const char *file, int line);

struct scene {
	const char *name;
	void (*run)(void);
};

/* find_scene() - what runs the scene of this name; none ends the rank. */
void (*find_scene(const char *name))(void);

extern const struct scene lifetime_scenes[], value_scenes[], inside_scenes[];

/* --- calls; arguments are taken ------------------------------------------------ */

struct xr_value *of_int(int64_t i);
struct xr_value *of_rref(struct xr_rref *rref); /* which stays the caller's */
int64_t as_int(struct xr_value *value);         /* takes it */

/* list() - of up to four, NULL at the end. */
struct xr_value *list(struct xr_value *a, struct xr_value *b,
	struct xr_value *c);

enum xr_status try_call(uint32_t rank, const char *func, struct xr_value *args,
	struct xr_value **value);
struct xr_value *call(uint32_t rank, const char *func, struct xr_value *args);
struct xr_rref *remote(uint32_t rank, const char *func, struct xr_value *args);
enum xr_status try_remote(uint32_t rank, const char *func,
	struct xr_value *args, int64_t timeout, struct xr_rref **rref);
int64_t fetch_int(struct xr_rref *rref);
void barrier(void);

/* --- tables --------------------------------------------------------------------- */

enum table { OWNERS, FORKS, USERS, PENDING_USERS, CHILDREN, WANTED, TABLES };

/* await_table() - until it has @want of them, on @rank. */
void await_table(uint32_t rank, enum table table, int64_t want);
void await_empty(void); /* all of all ranks */

/* freed_here() - objects of type "thing" that were made and freed, of all time. */
extern _Atomic uint64_t things_made, things_freed;

void register_functions(void);

#endif /* TESTS_RREF_RREF_H */
