/* SPDX-License-Identifier: Apache-2.0 */
/* ward_inner.h - a far handle as who serves it has it, for ward.c and errand.c. */
#ifndef WORKER_QUEUE_FAR_WARD_INNER_H
#define WORKER_QUEUE_FAR_WARD_INNER_H

#include <sys/queue.h>

#include "worker/queue/far/porter.h"
#include "worker/queue/far/wire.h"
#include "worker/queue/queue_inner.h"

struct peer;
struct xr_call;

/* What was got, and is not known to have come. */
struct ward_held {
	LIST_ENTRY(ward_held) list;
	uint64_t number;
	size_t count;
	struct hall_hand hand[]; /* [count] */
};

/* What has room, and is put when that is said. */
struct ward_offer {
	LIST_ENTRY(ward_offer) list;
	uint64_t number;
	size_t count;
	struct hall_hand hand[]; /* [count] */
};

struct ward {
	LIST_ENTRY(ward) list; /* of all that are not dismissed */
	_Atomic uint32_t
		refs; /* the list's, and of who does something for it */
	struct peer *peer;
	uint64_t token;
	struct xr_queue *queue;
	struct porter_job job; /* its end */
	pthread_mutex_t lock;  /* what follows */
	LIST_HEAD(, ward_held) held;
	LIST_HEAD(, ward_offer) offers;
	uint64_t number; /* the last */
};

void ward_unref(struct ward *w);

/* ward_has_lanes() - does @ask name all lanes, or one there is? */
static inline bool
ward_has_lanes(const struct ward *w, const struct far_ask *ask)
{
	return (ask->first == 0 && ask->lanes == w->queue->count) ||
		(ask->lanes == 1 && ask->first < w->queue->count);
}

/* ward_lane() - what @ask is of, for as long as it is asked; where there is but one
 * lane, all of them. */
static inline struct xr_queue
ward_lane(const struct ward *w, const struct far_ask *ask)
{
	return (struct xr_queue){
		.hall = w->queue->hall,
		.first = ask->first,
		.count = ask->lanes,
	};
}

/* ward_hold() - what @takers got is the far handle's once it says that it has come;
 * gives the number by which it does; 0: no memory, and nothing has changed. */
uint64_t ward_hold(struct ward *w, const struct taker *takers, size_t count);

/* ward_settle() - @number has come; or, with @is_back, came too late. */
void ward_settle(struct ward *w, uint64_t number, bool is_back);

/* ward_pass() - what one of @takers got is its, whatever comes. */
void ward_pass(struct ward *w, const struct taker *taker);

/* ward_offer() - @offer, which is whole but for its number, is the ward's; gives that. */
uint64_t ward_offer(struct ward *w, struct ward_offer *offer);

/* ward_decide() - what was offered as @number is put, or it is not. */
void ward_decide(struct ward *w, uint64_t number, bool is_put);

/* ward_answer() - without items. @err: words of a failure; NULL. */
void ward_answer(struct xr_call *call, enum xr_status status, uint32_t count,
	const struct xr_error *err);

/* --- errand.c ---------------------------------------------------------------------- */

/* errand_begin() - what may have to wait: FAR_PUT, FAR_OFFER, FAR_GET, FAR_WATCH. @rest is what
 * stands behind @ask, until it returns. */
void errand_begin(struct xr_call *call, struct ward *w,
	const struct far_ask *ask, struct xr_part rest);

#endif /* WORKER_QUEUE_FAR_WARD_INNER_H */
