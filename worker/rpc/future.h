/* SPDX-License-Identifier: Apache-2.0 */
/*
 * future.h - inside of xrun/future.h: what the library ends, waits for and
 * follows.
 */
#ifndef WORKER_RPC_FUTURE_H
#define WORKER_RPC_FUTURE_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/future.h>

struct waiter;
struct work;

/* What is done for whoever made a future; each may be NULL. */
struct future_maker {
	/* cancel() - have it end with XR_E_CANCELLED, as soon as nobody looks at
	 * the caller's memory any more; NULL: nobody does. False: somebody
	 * ends it otherwise, at this moment. */
	bool (*cancel)(struct xr_future *future, void *ctx);
	/* wait() - in place of lead_wait(), by whoever waits for it; NULL. */
	bool (*wait)(struct waiter *w, int64_t deadline, void *ctx);
	/* help() - before somebody waits for it, for as long as it takes: a part of
	 * what is to be done for it, on this thread; false: there is none. NULL. */
	bool (*help)(const struct xr_future *future, void *ctx);
	/* post() - have a callback run that may wait, where no crew does; false:
	 * it does not. NULL. */
	bool (*post)(struct work *work);
	/* It cannot be cancelled. */
	bool goes_on;
	/* settled() - it ended, and its callbacks have run. */
	void (*settled)(void *ctx);
	/* free() - nobody has it any more. */
	void (*free)(void *ctx);
};

/* future_new() - pending, @maker's, which is borrowed for ever. */
struct xr_future *future_new(const struct future_maker *maker, void *ctx);

/* future_bind() - @ctx in place of NULL, before anybody else has it. */
void future_bind(struct xr_future *future, void *ctx);

/* future_end() - @result: a value, or an ERROR with @failed; taken. False: it had
 * ended, and @result was released. Any thread, one that delivers, too. */
bool future_end(struct xr_future *future, struct xr_value *result, bool failed);

/* future_finish() - the same, and the caller's reference goes. */
void future_finish(struct xr_future *future, struct xr_value *result,
	bool failed);

/* future_fail() - as future_end() with an ERROR made of these; where there is no memory
 * for one, with a fixed one. */
bool future_fail(struct xr_future *future, enum xr_status status,
	const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* future_help() - whatever of it this thread may do, before it waits for it for ever.
 * future_may_help() - may it do any such thing, or is it delivering, or in a child of fork()? */
void future_help(struct xr_future *future);
bool future_may_help(void);

/* future_deadline() - of CLOCK_MONOTONIC; false: @timeout is none. 0 is now. */
bool future_deadline(int64_t timeout, int64_t *deadline);

/* future_left() - ns until @deadline, not below 0. */
int64_t future_left(int64_t deadline);

/* failure_new() - an ERROR of a status and words. NULL: no memory. */
struct xr_value *failure_new(enum xr_status status, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* failure_status() - of an ERROR, and its first line in @err; XR_E_NOMEM for NULL. */
enum xr_status failure_status(const struct xr_value *error,
	struct xr_error *err);

#endif /* WORKER_RPC_FUTURE_H */
