/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hand.h - running a registered function for somebody of this process.
 *
 * It is answered as a call of an agent is (rpc/serve_inner.h), by any thread; who runs
 * it waits for the answer of one that was deferred. An error has its own status and
 * text; where it happened is added.
 */
#ifndef WORKER_POOL_HAND_H
#define WORKER_POOL_HAND_H

#include <stdatomic.h>
#include <stdbool.h>

#include <xrun/func.h>

#include "worker/rpc/func.h"
#include "worker/rpc/serve_inner.h"

/* Who runs functions, one at a time. */
struct hand {
	const char *name; /* for errors */
	/* is_cancelled() - of what it runs; NULL: it never is */
	bool (*is_cancelled)(const struct hand *h);
	void *ctx;
	_Atomic uint32_t answered; /* a futex */
	bool failed;
	struct xr_value *value;
	struct xr_value *args; /* while a function runs: its arguments, */
	size_t lent;           /* of which this one is lent (many.h), from 1 */
	struct xr_call call;   /* that it answers; made by the first one */
};

/* hand_run() - false: it failed. @args: LIST, borrowed, as @named is, which may be NULL.
 * @result: a value, NULL: NIL; or an ERROR, NULL: no memory for it. A reference. */
bool hand_run(struct hand *h, const struct func *func, struct xr_value *args,
	struct xr_value *named, struct xr_value **result);

/* hand_left() - the function has not returned: it has ended its thread (pthread_exit(3)). Gives
 * as hand_run(): it failed, unless it was answered before. What it had is let go, as by
 * hand_let_go(). */
bool hand_left(struct hand *h, struct xr_value **result);
void hand_let_go(struct hand *h);

/* hand_find() - the function @name; XR_E_NO_FUNCTION; XR_E_SCHEMA: it takes bytes. */
enum xr_status hand_find(const char *name, const struct func **func,
	struct xr_error *err);

#endif /* WORKER_POOL_HAND_H */
