/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_rig.h - what the programs that test pools share: flavours of pools, functions that
 * they run, and values.
 */
#ifndef TESTS_PROG_POOL_RIG_H
#define TESTS_PROG_POOL_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/func.h>
#include <xrun/pool.h>

#include "tests/prog/rig.h"

#define WORKERS 2
#define SOON    XR_SECONDS(20)

/* One of the six kinds: base, pool, p2p, ctx, thread, ctx-thread. */
struct flavour {
	const char *name;
	enum xr_pool_kind kind;
	enum xr_pool_routing routing;
	bool contexts; /* functions take one: "c0", "c1", ... */
	bool bound;    /* functions are given as FUNC */
};

extern const struct flavour *flavour; /* of this run */
extern int64_t rig_secret;            /* of this process, for secret() */

void rig_register(void); /* all functions; before xr_init() */

/* rig_opts() - of the flavour, with WORKERS; rig_pool() - one. */
struct xr_pool_opts rig_opts(void);
struct xr_pool *rig_pool_of(const struct xr_pool_opts *opts);
struct xr_pool *rig_pool(void);
bool rig_threads(void); /* is it one of threads? */

/* rig_end() - close, join and free; all went well. */
void rig_end(struct xr_pool *pool);

/* rig_task() - of function @name; @args are taken. */
struct xr_pool_task rig_task(const char *name, struct xr_value *args);
void rig_done(struct xr_pool_task *task); /* lets go of what it has */

/* Values; a list of @n numbers from 0 on; of one number. */
struct xr_value *rig_numbers(int64_t n);
struct xr_value *rig_one(int64_t i);
struct xr_value *rig_two(int64_t i, int64_t k);
#define RIG_TENSOR 100000          /* bytes */
struct xr_value *rig_tensor(void); /* of 1s, in shared memory */
int64_t rig_int(const struct xr_value *value);
/* rig_result() - of a function of numbers: of the flavours with contexts, behind the
 * context, which is one. */
int64_t rig_result(const struct xr_value *value);

/* rig_get() - what it ends with, soon; released. */
int64_t rig_get(struct xr_future *future);
enum xr_status rig_fails(struct xr_future *future);

/* rig_call() - function @name of @i, with xr_pool_apply(). */
int64_t rig_call(struct xr_pool *pool, const char *name, int64_t i);
struct xr_future *rig_async(struct xr_pool *pool, const char *name, int64_t i);

/* Of rig_word, which lie in the file that POOL_PAGE names. */
#define RIG_WORDS 4096

/* rig_until() - a condition that nothing tells of but a look, soon. */
#define rig_until(x) \
	do { \
		int64_t rig_from = rig_now(); \
		while (!(x) && rig_now() - rig_from < SOON) \
			usleep(1000); \
		EXPECT(x); \
	} while (0)

extern const struct rig_case result_cases[]; /* pool_result.c */
extern const struct rig_case end_cases[];    /* pool_end.c */
extern const struct rig_case op_cases[];     /* pool_op.c */

#endif /* TESTS_PROG_POOL_RIG_H */
