/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/func.h - functions that others may call, and answering them.
 *
 * A function is called by its name, and only if it was registered; nothing is
 * looked up in the program's symbols. Its schema says what it takes, a letter an
 * argument, and is checked before it runs:
 *
 *	n nil  b bool  i I64  u U64  f F64  c C128  B bytes  T text  L list
 *	D dict  t tensor  r rref  w worker  e error  o opaque  F func  ? any
 *	* any number of what stands before it, at the end
 *
 * Each call is answered exactly once: by xr_reply() and its kin, else by what the
 * function returns: XR_OK is NIL. What is registered stays for the process.
 */
#ifndef XRUN_FUNC_H
#define XRUN_FUNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xrun/error.h"
#include "xrun/future.h"
#include "xrun/value.h"

#ifdef __cplusplus
extern "C" {
#endif

enum xr_func_flags {
	XR_FN_ASYNC = 1, /* answers with xr_reply_future(), or is deferred */
	XR_FN_SHORT = 2, /* never waits, and returns: it runs on the thread that
			  * reads, which may be one of the program's */
	XR_FN_SHARE =
		4, /* tensors it answers with are not copied where they need
			  * not be: XR_RPC_SHARE */
};

/* A call that is being served. The library's, until its function returns. */
struct xr_call;

/* @args: a LIST, of which the function's schema holds; borrowed. Any thread. */
typedef enum xr_status xr_func_fn(struct xr_call *call, struct xr_value *args,
	void *ctx);

/* The same with bytes as they came, by xr_call_sync() and xr_call_async(). They
 * are good until it returns. */
typedef enum xr_status xr_raw_fn(struct xr_call *call, const void *data,
	size_t len, void *ctx);

struct xr_func {
	uint32_t size;      /* sizeof(struct xr_func) */
	const char *name;   /* 1 to 255 bytes of UTF-8 */
	const char *schema; /* NULL: anything */
	uint32_t flags;     /* enum xr_func_flags */
	xr_func_fn *fn;     /* one of both */
	xr_raw_fn *raw;
	void *ctx;
};

/*
 * xr_fn_register() - let others call it. @func is copied, with its texts.
 *
 * Returns  XR_OK; XR_E_INVAL: name, schema, flags, none or both of the functions;
 *          XR_E_EXISTS; XR_E_NOMEM
 */
enum xr_status xr_fn_register(const struct xr_func *func, struct xr_error *err);

/* xr_module_static() - a table of them; all or none. */
enum xr_status xr_module_static(const struct xr_func *funcs, size_t count,
	struct xr_error *err);

/* --- in a function -------------------------------------------------------- */

/* xr_call_caller() - who calls: name, borrowed, and id. */
const char *xr_call_caller(const struct xr_call *call, uint32_t *id);
const char *xr_call_func(const struct xr_call *call); /* its name */
struct xr_value *xr_call_named(const struct xr_call
		*call); /* a DICT, or NULL */

/* xr_call_cancelled() - does nobody wait for the answer any more? */
bool xr_call_cancelled(const struct xr_call *call);

/*
 * xr_reply() - answer with @value, whose reference is taken, also on failure.
 *
 * Returns  XR_OK, also if the caller is gone; XR_E_STATE: it was answered;
 *          XR_E_ENCODE: it cannot be encoded, or is NULL, as of a constructor
 *          that failed; XR_E_NOMEM: the caller has that error now
 */
enum xr_status xr_reply(struct xr_call *call, struct xr_value *value);

/* xr_reply_bytes() - the same, of bytes, which are copied before it returns. */
enum xr_status xr_reply_bytes(struct xr_call *call, const void *data,
	size_t len);

/* xr_reply_error() - the same, with an ERROR, which is taken, or with a status
 * and a line. Where and in which function is added. */
enum xr_status xr_reply_error(struct xr_call *call, struct xr_value *error);
enum xr_status xr_reply_fail(struct xr_call *call, enum xr_status status,
	const char *text);

/* xr_reply_future() - the same, with what @future will end with; its reference is
 * taken. Only in a function that is XR_FN_ASYNC; another's caller has an error. */
enum xr_status xr_reply_future(struct xr_call *call, struct xr_future *future);

/*
 * xr_call_defer() - the answer comes later, by xr_reply() on @call, from any
 * thread. It is the caller's from now on, to be released with xr_call_drop();
 * dropped without an answer, its caller has XR_E_CANCELLED. Any function may.
 */
struct xr_call *xr_call_defer(struct xr_call *call);
void xr_call_drop(struct xr_call *call); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif /* XRUN_FUNC_H */
