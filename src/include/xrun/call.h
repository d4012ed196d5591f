/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/call.h - calls with bytes: what xrun/rpc.h does, without values.
 *
 * The same agent, the same calls, timeouts and errors; the function called is one
 * with a raw handler. A peer and a method are looked up once, and used for as
 * long as the agent runs.
 */
#ifndef XRUN_CALL_H
#define XRUN_CALL_H

#include <stddef.h>
#include <stdint.h>

#include "xrun/error.h"
#include "xrun/future.h"
#include "xrun/time.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xr_peer;

/* xr_peer_find() - a member, by name or, with @name NULL, by id. Good until the
 * agent is gone. Returns as xr_worker_find(). */
enum xr_status xr_peer_find(const char *name, int64_t id, struct xr_peer **peer,
	struct xr_error *err);

struct xr_method_ref;

/* xr_method_find() - what stands for the function @name, of any peer. Good for
 * the process; XR_E_INVAL: not 1 to 255 bytes, or no memory. */
enum xr_status xr_method_find(const char *name, struct xr_method_ref **method,
	struct xr_error *err);

struct xr_raw_call {
	uint32_t size;                /* sizeof(struct xr_raw_call) */
	struct xr_peer *to;           /* callee */
	struct xr_method_ref *method; /* method to call */
	const void *data; /* [len]; not to be written to until it is answered,
			   * or xr_call_oneway() has returned */
	size_t len;       /* bytes */
	int64_t timeout;  /* ns; 0 and XR_TIMEOUT_DEFAULT: that of the agent;
			   * XR_TIMEOUT_NEVER */
	void *reply;      /* [reply_cap]: where the answer is put; */
	size_t reply_cap; /* 0: it is in memory of the library's */
};

/* An answer: in the caller's memory, or in the library's. */
struct xr_raw_reply {
	const void *data;
	size_t len; /* more than reply_cap: it did not fit, and is cut */
	void *own;  /* of the library */
};

/* xr_raw_reply_free() - and empty it; NULL, and an empty one, are fine. */
void xr_raw_reply_free(struct xr_raw_reply *reply);

/* xr_call_sync() - returns as xr_rpc_sync(); XR_E_RANGE: cut at reply_cap. */
enum xr_status xr_call_sync(const struct xr_raw_call *call,
	struct xr_raw_reply *reply, struct xr_error *err);

/* xr_call_async() - @call's memory is kept until @future ends, with a BYTES; of
 * @reply, where given, which wraps it. May wait for room, as xr_rpc_async(). */
enum xr_status xr_call_async(const struct xr_raw_call *call,
	struct xr_future **future, struct xr_error *err);

/* xr_call_oneway() - nobody answers. XR_OK: it was handed over. May wait for room,
 * as xr_rpc_async(). */
enum xr_status xr_call_oneway(const struct xr_raw_call *call,
	struct xr_error *err);

/* xr_buffer_new() - memory that other ranks of this machine can map, so that a
 * call hands it over whatever its size; any memory where there is none. NULL: no
 * memory. */
void *xr_buffer_new(size_t len);
void xr_buffer_free(void *buffer); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif /* XRUN_CALL_H */
