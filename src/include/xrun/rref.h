/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/rref.h - remote references: a value that stays with its owner.
 *
 * The owner has the value; others, users, have handles, which they may pass on in
 * calls and answers. The value lives until the last handle is released, or its
 * holder is lost. Handles are counted; the last release of a process tells the
 * owner, and never blocks, and may come after the agent is gone. A function is not
 * called before the owners of all references that it is given know of them.
 */
#ifndef XRUN_RREF_H
#define XRUN_RREF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xrun/error.h"
#include "xrun/future.h"
#include "xrun/rpc.h"
#include "xrun/time.h"
#include "xrun/value.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xr_rref;

/* xr_rref_from_value() - this worker owns @value, whose reference is taken, also
 * on failure. No message; XR_E_STATE: no agent. */
enum xr_status xr_rref_from_value(struct xr_value *value, struct xr_rref **rref,
	struct xr_error *err);

struct xr_rref *xr_rref_ref(struct xr_rref *rref);
void xr_rref_unref(struct xr_rref *rref); /* NULL is fine */

/* xr_value_new_rref() - an RREF, for arguments, answers, lists; it has a
 * reference of its own. It cannot be encoded outside of a call. */
struct xr_value *xr_value_new_rref(struct xr_rref *rref);

/* xr_value_rref() - of an RREF, borrowed; NULL: it is none. */
struct xr_rref *xr_value_rref(const struct xr_value *value);

bool xr_rref_is_owner(const struct xr_rref *rref);

/* xr_rref_owner() - who has the value. @worker->size is set by the caller. */
enum xr_status xr_rref_owner(const struct xr_rref *rref,
	struct xr_worker *worker);

/* xr_rref_confirmed() - does the owner know of this handle? The owner's own are
 * always known. */
bool xr_rref_confirmed(const struct xr_rref *rref);

struct xr_rref_id {
	uint32_t worker; /* that made it */
	uint64_t local;
};

/* xr_rref_id() - of the reference and of this handle; an owner's handle has the
 * reference's. */
void xr_rref_id(const struct xr_rref *rref, struct xr_rref_id *id,
	struct xr_rref_id *fork);

/* xr_rref_text() - "UserRRef(RRefId = GloballyUniqueId(created_on=0,
 * local_id=1), ...)"; cut at @cap; gives the length it has. */
size_t xr_rref_text(const struct xr_rref *rref, char *text, size_t cap);

/*
 * xr_rref_fetch() - the value, or a copy of it.
 *
 * @timeout: ns; 0 does not wait; XR_TIMEOUT_DEFAULT: that of the agent;
 *           XR_TIMEOUT_NEVER. On the owner it limits
 *           the wait for the value to exist
 *
 * Returns  XR_OK; the error of the function that was to make it, each time;
 *          XR_E_TIMEOUT: the handle is as good as before; XR_E_PEER_LOST;
 *          XR_E_CLOSED: after shutdown, or the handle was released by it
 */
enum xr_status xr_rref_fetch(struct xr_rref *rref, int64_t timeout,
	struct xr_value **value, struct xr_error *err);

/* xr_rref_fetch_async() - the same, without waiting. */
enum xr_status xr_rref_fetch_async(struct xr_rref *rref, int64_t timeout,
	struct xr_future **future, struct xr_error *err);

/* xr_rref_local() - the value itself, on the owner, a reference; waits until it
 * exists. XR_E_INVAL: this is a user, which @err names, and the owner. */
enum xr_status xr_rref_local(struct xr_rref *rref, int64_t timeout,
	struct xr_value **value, struct xr_error *err);

/* xr_rref_created() - a future of NIL: the call that makes the value. */
enum xr_status xr_rref_created(struct xr_rref *rref, struct xr_future **future);

struct xr_rref_call {
	uint32_t size;          /* sizeof(struct xr_rref_call) */
	struct xr_rref *rref;   /* the value whose method is called; borrowed */
	const char *method;     /* its name */
	struct xr_value *args;  /* a LIST, borrowed; NULL: empty */
	struct xr_value *named; /* a DICT, borrowed; NULL: empty */
	int64_t timeout;        /* ns; 0 and XR_TIMEOUT_DEFAULT: that of the
				 * agent; XR_TIMEOUT_NEVER */
};

/*
 * xr_rref_call_...() - call a method of the value's type, on the owner.
 *
 * The methods are those of the type's xr_type_register() there.
 *
 * Returns  as xr_rpc_sync() and its kin; XR_E_NO_FUNCTION: no such method
 */
enum xr_status xr_rref_call_sync(const struct xr_rref_call *call,
	struct xr_value **value, struct xr_error *err);
enum xr_status xr_rref_call_async(const struct xr_rref_call *call,
	struct xr_future **future, struct xr_error *err);
enum xr_status xr_rref_call_remote(const struct xr_rref_call *call,
	struct xr_rref **result, struct xr_error *err);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_RREF_H */
