/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - a carrier's way to one peer: a ring there, and a ring from there.
 *
 * Whoever connects makes a link; whoever finds a new ring in his row of the
 * directory makes one, too, unless he has one to its writer. A ring is made with
 * the first message. What sends and what polls are different threads at times, and
 * have each their half of a link.
 */
#ifndef WORKER_SHM_LINK_H
#define WORKER_SHM_LINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <xrun/transport.h>

#include "worker/shm/cma.h"
#include "worker/shm/hold.h"
#include "worker/shm/loan.h"
#include "worker/shm/plane.h"
#include "worker/shm/ring.h"
#include "worker/shm/window.h"

#define LINK_EAGER  8192 /* beyond it a body is not copied into the ring */
#define LINK_HANDLE 1024 /* below it one of the arena is copied, too */

/* A ring to a peer. It outlives its link until the peer has let it go. */
struct out {
	struct ring_out ring;
	uint64_t word; /* in the directory */
	uint32_t slot, plane;
	uint32_t rang;
	struct out *next; /* in limbo */
	struct carrier
		*carrier; /* whose host is told of tokens; NULL: nobody */

	/* The polling thread's: a BULK whose reader wants windows. */
	struct window *window;
	struct window_end feed;
	uint32_t asks; /* of the reader, that were looked at */

	struct loans loans; /* 32 KiB of it are touched as they are needed */
};

/* A BULK that is being fetched. */
struct fetch {
	bool active;
	bool windows;
	bool placed; /* by the host; else it is @own */
	uint32_t loan, count;
	uint32_t lines; /* of the record */
	struct ring_word w;
	struct xr_record record;
	unsigned char *to;
	void *own;
	uint64_t len, done;
	struct xr_part *parts; /* [CMA_PARTS]; NULL: there was none yet */
};

enum link_state {
	LINK_OPEN,
	LINK_BROKEN, /* who sends found that; who polls tells the host */
	LINK_LOST,   /* the host knows */
};

struct xr_link {
	/* Both. */
	struct carrier *carrier;
	uint32_t slot, plane; /* the peer's */
	struct segment_slot *peer;
	struct segment_bell *bell;      /* the peer's */
	const _Atomic uint32_t *awaits; /* .. and its word for answers */
	void *ctx;                      /* the host's */
	_Atomic int state;
	struct xr_link *next; /* fresh */
	bool accepting;       /* the host is asked who that is; */
	bool wanted; /* and meanwhile has connected to him: under c->lock */

	/* The sending thread's; the other one looks at it. */
	_Alignas(64) _Atomic(struct out *) out;

	/* The polling thread's; the lender is looked at by the other one. */
	_Alignas(64) struct ring_in in; /* head NULL: there is none */
	_Atomic(struct lender *) lender;
	uint32_t rang;
	bool dying;   /* its process ended: what was published is read yet */
	bool closing; /* the same, since the other end closed it */
	bool cma_known, cma;
	struct window_end take;
	struct fetch fetch;
};

/* What is open: the carrier's self. */
struct carrier {
	struct shm *shm;
	struct xr_carrier_host host;
	uint32_t id;
	uint64_t incarnation;
	uint32_t plane;
	char near[80]; /* how addresses of this segment begin */
	size_t near_len;
	pthread_mutex_t lock;     /* of by_slot and fresh */
	struct xr_link **by_slot; /* [slots]: the newest of each */
	struct xr_link *fresh;    /* made by connect(), not polled yet */
	_Atomic bool has_fresh;

	/* The polling thread's. */
	struct xr_link **link; /* [count] */
	uint32_t count, cap, begin, turn;
	uint32_t arrivals, fails;
	bool again; /* a ring could not be taken: at the next look */
	enum plane_swept
		left;  /* by the dead; before MORE is done it does not sleep */
	int64_t swept; /* when, in ns; 0: never */
};

/* carrier_progress() - progress() of the carrier. */
uint32_t carrier_progress(void *self, uint32_t budget);

/* carrier_busy() - is there something for it? With all that is looked at only now
 * and then. */
bool carrier_busy(struct carrier *c);

/* out_is_unread() - does its reader say that it reads nothing any more? */
static inline bool
out_is_unread(const struct out *out)
{
	return atomic_load_explicit(&out->ring.head->gone,
		       memory_order_acquire) != 0;
}

/* out_open() - the ring to the peer of @link, made if there is none. */
enum xr_status out_open(struct xr_link *link);

/* out_close() - nothing more is written; it goes to limbo. */
void out_close(struct xr_link *link);

/* out_collect() - loans that ended, and their tokens; of how many the host was
 * told. */
uint32_t out_collect(struct shm *shm, struct out *out, enum loan_which which);

/* out_feed() - the windows, if the reader wants them. One that cannot be where it
 * says that it is breaks the link. */
void out_feed(struct xr_link *link);

/* out_limbo() - free the rings that were let go. The polling thread. */
void out_limbo(struct shm *shm);

/* link_send() - send() of the carrier. */
enum xr_status link_send(struct xr_link *link, const struct xr_message *m,
	bool *pending);

/* link_can_lend() - can_lend() of the carrier. */
bool link_can_lend(struct xr_link *link, const struct xr_part *part);

/* link_unsend() - unsend() of the carrier. */
bool link_unsend(struct xr_link *link, void *token);

/* link_poll() - deliver up to @budget messages; how many, with all else that the
 * host was told. Afterwards the link may be lost, and gone. */
uint32_t link_poll(struct xr_link *link, uint32_t budget);

/* link_fail() - it is lost: all that is the host's goes back, and it is told. */
void link_fail(struct xr_link *link, const char *why);

/* link_busy() - is there something for link_poll()? A few loads. */
bool link_busy(const struct xr_link *link);

/* poll_loan_take() - loan_take() of the carrier. */
struct xr_body_buffer *poll_loan_take(void *self, const struct xr_body *body,
	uint32_t index);

/* poll_take() - body_take() of the carrier. */
struct xr_body_buffer *poll_take(void *self, const struct xr_body *body,
	const void **data);

enum fetch_begun {
	FETCH_BEGUN,
	FETCH_NONSENSE,
	FETCH_NO_MEMORY, /* for a body of that length */
};

/* fetch_begin() - a BULK record. */
enum fetch_begun fetch_begin(struct xr_link *link, const struct ring_record *r,
	struct ring_word w, uint32_t lines);

enum fetch_state {
	FETCH_MORE, /* at the next turn */
	FETCH_WAIT, /* for the writer */
	FETCH_DONE,
	FETCH_VOID, /* the writer took it back */
	FETCH_FAILED,
	FETCH_GONE,   /* the writer's process ended */
	FETCH_BROKEN, /* the writer is where it cannot be */
};

/* fetch_step() - the next piece. */
enum fetch_state fetch_step(struct xr_link *link);
void fetch_end(struct xr_link *link); /* what is there is not wanted */

#endif /* WORKER_SHM_LINK_H */
