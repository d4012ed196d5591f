/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values.h - values in the bodies of messages.
 *
 * A call's body is a LIST: the arguments, a DICT of named ones or NIL, what its
 * function was bound to or NIL. An answer's is the value. References (rref.h) and
 * devices are seen to on the way.
 */
#ifndef WORKER_RPC_VALUES_H
#define WORKER_RPC_VALUES_H

#include <stdint.h>

#include <xrun/transport.h>
#include <xrun/value.h>

#include "worker/rpc/rref.h"

struct parcel;
struct peer;
struct xr_call;

#define VALUES_LOANS 16   /* of a message; the rest is copied */
#define LEND_MIN     2048 /* bytes: to copy less costs less than to lend it */

/* A value that is sent: its parts, and what keeps them until that is done. */
struct values_out {
	struct xr_encoded *encoded;  /* NULL: nothing, or the parcel's */
	struct parcel *parcel;       /* of a long one; NULL */
	const struct xr_part *parts; /* [count] */
	uint32_t count, loan_count;
	struct xr_part loans[VALUES_LOANS]; /* [loan_count] */
	struct refs_out refs;               /* that stand in it */
	struct xr_part *owned; /* @parts, where there are any; or NULL */
};

/* values_pack() - @value, for @to; @out is empty but for @out->refs. What is not
 * sent is told to refs_out_undo(), then. */
enum xr_status values_pack(struct xr_value *value, struct peer *to,
	struct values_out *out, struct xr_error *err);

/* values_pack_shared() - the same, of XR_RPC_SHARE. */
enum xr_status values_pack_shared(struct xr_value *value, struct peer *to,
	struct values_out *out, struct xr_error *err);

/* values_pack_answer() - the same for what answers @call. */
enum xr_status values_pack_answer(struct xr_value *value,
	const struct xr_call *call, struct values_out *out,
	struct xr_error *err);
void values_out_fini(struct values_out *out); /* an empty one is fine */

/* values_unpack() - what @body from @from says. */
enum xr_status values_unpack(const struct xr_body *body, struct peer *from,
	struct xr_value **value, struct xr_error *err);

/* values_unpack_call() - into @call's args and named. */
enum xr_status values_unpack_call(struct xr_call *call,
	const struct xr_body *body, struct xr_error *err);

#endif /* WORKER_RPC_VALUES_H */
