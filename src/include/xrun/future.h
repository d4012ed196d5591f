/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/future.h - a result that is not there yet.
 *
 * A future ends exactly once: with a value, or with an error. Any thread may end
 * it, ask it, wait for it, as often as it likes. Every function that gives one
 * out gives a reference, to be released with xr_future_unref(); the library has
 * its own until it ended, so to drop yours cancels nothing.
 *
 * No callback runs under a lock. One that is registered with XR_SHORT must not
 * wait: it runs on the thread that ends the future, or on the one that registers
 * it, where it has ended. Others run on an executor's thread, which may wait.
 */
#ifndef XRUN_FUTURE_H
#define XRUN_FUTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xrun/device.h"
#include "xrun/error.h"
#include "xrun/time.h"
#include "xrun/value.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xr_future;

struct xr_device_name {
	enum xr_device_kind kind;
	int32_t index;
};

struct xr_future_opts {
	uint32_t size; /* sizeof(struct xr_future_opts) */
	const struct xr_device_name
		*devices;      /* [device_count], where its value's */
	uint32_t device_count; /* tensors may be; 0: anywhere. The CPU always */
};

/* xr_future_new() - pending, for xr_future_set(). @opts NULL: no devices are
 * declared. NULL: no memory. */
struct xr_future *xr_future_new(const struct xr_future_opts *opts);

struct xr_future *xr_future_ref(struct xr_future *future);
void xr_future_unref(struct xr_future *future); /* NULL is fine */

/*
 * xr_future_set() - end it with @value, whose reference is taken, also on
 * failure.
 *
 * Returns  XR_OK; XR_E_STATE: it had ended; XR_E_INVAL: @value is NULL;
 *          XR_E_DEVICE: a tensor is on a device that was not declared: it has
 *          ended with that error
 */
enum xr_status xr_future_set(struct xr_future *future, struct xr_value *value);

/* xr_future_fail() - end it with an ERROR, whose reference is taken, also on
 * failure. XR_E_INVAL: that is no ERROR. XR_E_STATE: it had ended. */
enum xr_status xr_future_fail(struct xr_future *future, struct xr_value *error);

/* xr_future_fail_with() - the same, made of a status and a line. */
enum xr_status xr_future_fail_with(struct xr_future *future,
	enum xr_status status, const char *text);

/* xr_future_cancel() - end it with XR_E_CANCELLED. Of a call: its function is
 * told, and may go on; what it answers is dropped. Memory that was given for it is
 * the caller's again when it has ended: that is now, but for a short callback, which
 * does not wait until it was sent. XR_E_STATE: it had ended, or ends otherwise; an
 * operation of a group (xrun/coll.h) goes on. */
enum xr_status xr_future_cancel(struct xr_future *future);

/* xr_future_done() - has it ended, either way? */
bool xr_future_done(const struct xr_future *future);

/*
 * xr_future_wait() - until it ended.
 *
 * @timeout: ns; 0 does not wait; XR_TIMEOUT_DEFAULT is XR_TIMEOUT_NEVER. It limits
 *           this wait and does not end the future
 * @value:   receives a reference, to be released; may be NULL
 * @err:     of an error: its first line
 *
 * Returns  XR_OK; XR_E_TIMEOUT: it goes on, as xr_future_done() tells;
 *          XR_E_INVAL: @timeout; the status of the error it ended with
 * Thread   any; in a function that serves a call, an executor's thread takes its
 *          place meanwhile.
 */
enum xr_status xr_future_wait(struct xr_future *future, int64_t timeout,
	struct xr_value **value, struct xr_error *err);

/* xr_future_value() - the same without waiting: XR_E_AGAIN, it has not ended. */
enum xr_status xr_future_value(struct xr_future *future,
	struct xr_value **value, struct xr_error *err);

/* xr_future_error() - the ERROR it ended with, a reference; NULL: it has not, or
 * well. */
struct xr_value *xr_future_error(struct xr_future *future);

/* xr_future_successful() - has it ended with a value? XR_E_STATE: it has not ended. */
enum xr_status xr_future_successful(const struct xr_future *future,
	bool *successful);

enum xr_then_flags {
	XR_THEN = 0,
	XR_SHORT = 1, /* it never waits */
};

/*
 * What follows @parent, which has ended.
 *
 * @result: receives the child's value, a reference; left alone: NIL
 *
 * Returns  XR_OK; else the child ends with @parent's error, if that has this
 *          status, or one of this status and @err's text
 */
typedef enum xr_status xr_then_fn(struct xr_future *parent, void *ctx,
	struct xr_value **result, struct xr_error *err);

/*
 * xr_future_then() - have @fn called once @future has ended, with a value or an
 * error; if it has, before this returns.
 *
 * @child: receives a future of what @fn gives; NULL: nobody asks
 *
 * Returns  XR_OK; XR_E_INVAL: no @fn; XR_E_NOMEM: it is never called
 */
enum xr_status xr_future_then(struct xr_future *future, xr_then_fn *fn,
	void *ctx, uint32_t flags, struct xr_future **child);

/* Called once @future has ended, on the thread that ends it, or on the one that
 * registers the callback if it has ended before. It must not wait. @future: borrowed. */
typedef void xr_done_fn(struct xr_future *future, void *ctx);

/* xr_future_on_done() - the same without a child; @fn as with XR_SHORT. */
enum xr_status xr_future_on_done(struct xr_future *future, xr_done_fn *fn,
	void *ctx);

/*
 * xr_future_all() - a future that ends when all of @count have, with a LIST of
 * their values, in this order; with the first error as soon as there is one.
 * None: it has ended, with an empty list. XR_E_INVAL: one is NULL.
 */
enum xr_status xr_future_all(struct xr_future *const *futures, size_t count,
	struct xr_future **all);

/* xr_future_wait_all() - waits for that; @timeout as of xr_future_wait(). @values: a
 * LIST; may be NULL. */
enum xr_status xr_future_wait_all(struct xr_future *const *futures,
	size_t count, int64_t timeout, struct xr_value **values,
	struct xr_error *err);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_FUTURE_H */
