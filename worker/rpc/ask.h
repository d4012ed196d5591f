/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.h - one question to a peer, and its answer: what all calls are made of.
 *
 * Whoever asks either waits, with all of it on his stack, or has a future.
 */
#ifndef WORKER_RPC_ASK_H
#define WORKER_RPC_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/error.h>
#include <xrun/future.h>
#include <xrun/transport.h>

#include "worker/rpc/lead.h"
#include "worker/rpc/message.h"

struct asked;
struct xr_raw_call;
struct held;
struct parcel;
struct peer;
struct refs_out;
struct method;
struct pending;

struct question {
	struct peer *to;
	enum message_kind kind;
	uint8_t flags;               /* enum message_flags */
	const struct method *method; /* NULL: none is named */
	const struct xr_part *parts; /* [count], of the body */
	uint32_t count;
	const struct xr_part *loans; /* [loan_count], beside the body */
	uint32_t loan_count;
	struct parcel *parcel; /* what they lie in; NULL: see peer_send() */
	bool lent; /* they are the program's: not looked at when it is answered,
		    * and until then the callee may see them where they are */
	bool apart; /* of what is lent: the callee gets a copy in any case, so that
		     * all of it can be taken back */
	int64_t timeout; /* ns, INT64_MAX: never */
	int64_t limit;   /* of ask_future(): of sending alone; 0: @timeout */
	uint64_t corr;   /* of ask_tell(): which question it is about; 0 */
	bool call;       /* of the program's */
	/* ended() - of ask_future(): before it ends, and once nobody looks at the
	 * parts any more. Any thread, may not wait; NULL. */
	void (*ended)(void *ctx);
	void *ctx;
	struct refs_out *refs;  /* of a value in @parts; or NULL */
	struct wait_site *site; /* of ask_wait(); NULL: as all others */
};

#define QUESTION_PARTS 64 /* more need memory */

/* What an answer is made of where it is read: a value, or bytes. Gives what the
 * future ends with; NULL: it cannot be read, as @err says. */
typedef struct xr_value *ask_read_fn(struct peer *from,
	const struct xr_record *record, const struct xr_body *body,
	struct xr_error *err);

/* An answer that is waited for. */
struct ask_sync {
	struct waiter waiter;
	enum xr_status status;
	struct xr_value *error; /* an ERROR, or NULL */

	/* Of bytes: they are copied here, or kept by the carrier. */
	void *into;
	size_t cap, len;
	const void *data;
	struct held *held;
	/* Of a value. */
	ask_read_fn *read; /* NULL: bytes */
	struct xr_value *value;
};

/* ask_wait() - ask, and wait. @a is zero but for what is asked of it; what it has
 * then is the caller's. Returns as xr_rpc_sync(). */
enum xr_status ask_wait(const struct question *q, struct ask_sync *a,
	struct xr_error *err);

/* ask_future() - sends a question. @future receives a reference; it ends with the
 * value that @read makes of the reply, or with a BYTES if @read is NULL. Returns XR_E_TIMEOUT, and no
 * future, if there was no room for the question in time. All other failures are
 * the future's. */
enum xr_status ask_future(const struct question *q, ask_read_fn *read,
	struct xr_future **future, struct xr_error *err);

/* ask_open(), ask_send() - the same in two steps: what is asked may be late, or
 * cancelled, before it is sent, and is not sent then. @a is there as long as a
 * reference to its future. NULL: no memory. ask_send() returns XR_E_TIMEOUT if there was
 * no room for @a in time; its future has failed then. XR_OK otherwise: the future reports
 * all other failures. */
struct asked *ask_open(const struct question *q, ask_read_fn *read,
	struct xr_future **future);
enum xr_status ask_send(struct asked *a, const struct question *q,
	struct xr_error *err);

/* ask_fail() - nobody need answer it any more; too late: nothing. */
void ask_fail(struct asked *a, enum xr_status status, const char *why);

/* ask_tell() - what nobody answers. */
enum xr_status ask_tell(const struct question *q, struct xr_error *err);

/* A handler of messages. */
void ask_answered(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body);

/* ask_await_idle() - until there are none; XR_E_TIMEOUT. One thread at a time. */
enum xr_status ask_await_idle(int64_t deadline, struct xr_error *err);

/* ask_active() - calls of the program's whose callbacks have not all run. */
uint32_t ask_active(void);

/* ask_begun() - how many there ever were. */
uint64_t ask_begun(void);

/* --- call.c --------------------------------------------------------------------- */

/* call_within() - as xr_call_async(), which waits for room for no longer than @limit
 * ns, whatever the call's timeout is; 0: as long as that. */
enum xr_status call_within(const struct xr_raw_call *call, int64_t limit,
	struct xr_future **future, struct xr_error *err);

#endif /* WORKER_RPC_ASK_H */
