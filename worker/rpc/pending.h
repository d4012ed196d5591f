/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pending.h - what this process has asked and has no answer to yet.
 *
 * A table of places that are used again, and stay for the process, since whoever
 * comes late looks at them. A question is named on the wire by its
 * place and by how often that was used, so an answer that comes late is nobody's.
 * Answer, timeout, cancelling and the loss of the peer race for it: who claims it
 * ends it, and gives the place back.
 */
#ifndef WORKER_RPC_PENDING_H
#define WORKER_RPC_PENDING_H

#include <stdbool.h>
#include <stdint.h>

#include <xrun/transport.h>
#include <xrun/value.h>

struct peer;
struct pending;

/* How whoever asked is told; once, by the thread that claimed it. */
struct pending_ops {
	bool call; /* of the program's, which the figures count */
	/* answer() - @body is the carrier's, good until it returns. */
	void (*answer)(struct pending *p, const struct xr_record *record,
		const struct xr_body *body);
	/* fail() - @error is taken; NULL: no memory for one. */
	void (*fail)(struct pending *p, struct xr_value *error);
};

struct pending {
	_Atomic uint64_t word; /* uses << 32 | phase */
	uint32_t index;
	_Atomic uint32_t next; /* of the free ones: index + 1 */
	/* Also looked at by who has not claimed it, and finds out then that it
	 * has become another. */
	struct peer *_Atomic peer;
	_Atomic int64_t deadline; /* of CLOCK_MONOTONIC; INT64_MAX: none */
	_Atomic bool call;        /* of @ops */
	/* By who claimed it. */
	int64_t timeout; /* ns, of which @deadline was made */
	const struct pending_ops *ops;
	void *ctx;
};

/* pending_new() - in nobody's way yet; NULL: no memory. The caller sets @timeout,
 * @ops and @ctx, then calls pending_open(). */
struct pending *pending_new(void);

/* pending_name() - its name on the wire, once it is open. */
uint64_t pending_name(const struct pending *p);

/* pending_open() - it can be claimed from now on; gives its name on the wire. */
uint64_t pending_open(struct pending *p, struct peer *peer, int64_t deadline);

/* pending_peer() - of whom it is asked; by who claimed it. */
struct peer *pending_peer(const struct pending *p);

/* pending_claim() - by its name; NULL: somebody was faster, there is none, or it
 * was asked of another than @peer; NULL: of whomever. */
struct pending *pending_claim(uint64_t corr, const struct peer *peer);

/* pending_put() - give the place back; by who claimed it. */
void pending_put(struct pending *p);

/* pending_expire() - fail those that were due by @now with XR_E_TIMEOUT; gives
 * when the next is due, or INT64_MAX. */
int64_t pending_expire(int64_t now);

/* pending_fail_all() - those to @peer; NULL: all. @why: a line. */
void pending_fail_all(const struct peer *peer, enum xr_status status,
	const char *why);

/* pending_first() - whom one of the program's calls that are open is asked of; NULL:
 * there is none. A peer stays as long as the agent. */
const struct peer *pending_first(void);

/* pending_count() - how many are open; only calls of the program's. */
uint32_t pending_count(bool calls);

#endif /* WORKER_RPC_PENDING_H */
