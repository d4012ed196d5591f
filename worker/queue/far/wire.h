/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - what a handle elsewhere asks the process that serves its queue, and what
 * that answers: one function of the agent's, with bytes; little endian.
 *
 *	ask     struct far_ask, and behind it
 *	        FAR_ATTACH  the queue's text
 *	        FAR_PUT, FAR_OFFER
 *	                    struct far_item [count], and the items' bytes
 *	        FAR_GET     uint64_t [count]: bytes that each has room for; FAR_ANY_ROOM
 *	answer  struct far_answer, and behind it
 *	        XR_OK       of FAR_ATTACH struct far_shape; of FAR_GET struct far_item
 *	                    [count], and the items' bytes
 *	        else        words
 */
#ifndef WORKER_QUEUE_FAR_WIRE_H
#define WORKER_QUEUE_FAR_WIRE_H

#include <stdint.h>

#define FAR_FUNC     "xr.queue"
#define FAR_ANY_ROOM UINT64_MAX
/* Bytes that come within the slack of a call (FAR_RATE, FAR_SLACK_NS): items that are
 * longer are announced. */
#define FAR_SHORT (UINT64_C(40) << 10)

enum far_op {
	FAR_ATTACH,
	FAR_PUT,
	FAR_OFFER, /* room is taken for what is put once FAR_COMMIT says so */
	FAR_GET,
	FAR_WATCH, /* answered when there may be something to get */
	FAR_COUNT,
	FAR_CLOSE,
	FAR_COMMIT,
	FAR_RETURN, /* what was got nobody waited for any more */
	FAR_LEAVE,  /* the rest are not answered */
	FAR_DONE,
	FAR_ACK,    /* what was got has come */
	FAR_REVOKE, /* what was offered is not put */
	FAR_DETACH,
};

struct far_ask {
	uint32_t op;
	uint32_t first, lanes; /* of the handle */
	uint32_t count;        /* items; of FAR_LEAVE roles */
	uint64_t token;        /* of whom, as FAR_ATTACH gave it */
	int64_t timeout;       /* ns from now on */
	uint64_t acked; /* the last answer to a get that has come, or 0 */
	uint64_t
		number; /* which: as the answer had it; of FAR_GET the bytes of items
			  * that the client has time for, at least FAR_SHORT */
};

struct far_item {
	uint32_t kind; /* enum cell_kind, but CELL_SHARED */
	uint32_t unused;
	uint64_t len;
};

struct far_answer {
	int32_t status;
	uint32_t count; /* items that were put, or got, or are there */
	uint64_t
		number; /* a token; of XR_E_RANGE how long the item is; of what was
			  * got: it is to be acknowledged by this, if not 0; of
			  * what was offered; of XR_E_AGAIN, which answers FAR_GET, the
			  * bytes that wait: more than the client has time for */
};

struct far_shape {
	uint32_t lanes;
	uint32_t roles;
	uint32_t kind; /* enum xr_queue_kind */
	uint32_t unused;
};

#endif /* WORKER_QUEUE_FAR_WIRE_H */
