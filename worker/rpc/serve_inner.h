/* SPDX-License-Identifier: Apache-2.0 */
/* serve_inner.h - a call that is being served, for serve.c and reply.c. */
#ifndef WORKER_RPC_SERVE_INNER_H
#define WORKER_RPC_SERVE_INNER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sys/queue.h>

#include <xrun/func.h>
#include <xrun/transport.h>

#include "worker/rpc/crew.h"
#include "worker/rpc/func.h"
#include "worker/rpc/rref.h"

struct held;
struct prof;
struct peer;

/* Who is answered, where that is no peer. */
struct call_desk {
	/* answer() - once; @value is taken; NULL: there is no memory. @failed: it is
	 * an ERROR. Any thread. */
	void (*answer)(struct xr_call *call, struct xr_value *value,
		bool failed);
	/* is_cancelled() - while it is not answered. */
	bool (*is_cancelled)(const struct xr_call *call);
};

struct xr_call {
	_Atomic uint32_t refs;
	_Atomic bool answered;
	_Atomic bool cancelled;
	_Atomic bool orphan; /* the agent is gone that it came to: @peer, too */
	bool oneway;
	bool values;       /* what it came with, and is answered with */
	_Atomic bool runs; /* its function has not returned */
	bool deferred;     /* somebody has it beside the function */
	struct peer *peer; /* NULL: @desk */
	const struct call_desk *desk;
	void *ctx; /* of @desk */
	uint64_t corr;
	uint32_t flags;    /* of the request's record */
	struct prof *prof; /* NULL: nobody asked for one */
	int64_t began;     /* its function, clock_now(), if anything is
			    * recorded */
	const struct func *func;
	uint32_t promises; /* enum xr_func_flags, beside those of @func: of what
			    * that found by its arguments */
	struct xr_value *args, *named; /* of a function with values */
	struct rref_wire birth;        /* of MESSAGE_REMOTE: what it makes */
	struct refs_in *rrefs;         /* among the arguments; or NULL */
	/* Of MESSAGE_METHOD, and so not on the stack. */
	struct xr_value *object;
	char *method;

	/* Of one that outlives its message; empty for one on the stack. */
	struct xr_call *kept; /* what it became */
	struct work work;
	struct held *held; /* what @body lies in */
	struct xr_body body;
	const struct xr_body *whole; /* of one on the stack: the message's */
	LIST_ENTRY(xr_call) list;
};

/* call_promises() - has what is called that flag? */
static inline bool
call_promises(const struct xr_call *call, enum xr_func_flags flag)
{
	uint32_t own = call->func != NULL ? call->func->f.flags : 0;

	return ((own | call->promises) & flag) != 0;
}

/* call_keep() - a copy of @call, with a reference, that outlives the message that
 * it came with. NULL: no memory. */
struct xr_call *call_keep(struct xr_call *call);
void call_unref(struct xr_call *call);

/* call_refuse() - answer it with what kept its function from running; XR_E_STATE: it
 * was answered already. */
enum xr_status call_refuse(struct xr_call *call, enum xr_status status,
	const char *text);

/* call_done() - answer it with NIL; as xr_reply(). */
enum xr_status call_done(struct xr_call *call);

/* call_take_answer() - false: it was answered already. */
bool call_take_answer(struct xr_call *call);

#endif /* WORKER_RPC_SERVE_INNER_H */
