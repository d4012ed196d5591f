/* SPDX-License-Identifier: Apache-2.0 */
/* poll.c - what came over a link is delivered; see link.h. */
#include <stdlib.h>
#include <string.h>

#include "worker/shm/link.h"
#include "worker/shm/mark.h"
#include "worker/shm/own.h"
#include "worker/shm/shm.h"

/* --- a body, while it is being delivered ---------------------------------- */

/* Where a body, or a loan, lies. */
enum delivery_kind {
	DELIVERY_HERE,    /* in the ring, or on the stack */
	DELIVERY_FETCHED, /* in memory of ours */
	DELIVERY_LENT,
};

struct delivery {
	struct xr_link *link;
	enum delivery_kind kind;
	struct ring_ref ref; /* of a body that is lent */
	void *own;           /* of one that was fetched */
	const void *data;
	size_t len;
	uint32_t count;        /* loans */
	struct ring_ref *refs; /* [count] */
	bool *kept;            /* [count]: and the body's, behind them */
};

/* A block of ours that the peer has by a loan: with a reference more. */
static bool
comes_back(const struct xr_link *link, const struct ring_ref *ref)
{
	struct shm *shm = link->carrier->shm;
	struct out *out =
		atomic_load_explicit(&link->out, memory_order_acquire);

	return out != NULL &&
		loans_covers(&out->loans, ref->of - 1, &shm->arena,
			shm->map.base + ref->offset, ref->len);
}

bool
shm_is_of(const struct xr_link *link, const void *data, size_t len)
{
	struct shm *shm = link->carrier->shm;

	return arena_has(&shm->arena, data, len) &&
		segment_owns(&shm->map, link->slot, link->plane >> 8,
			(uint64_t)((const char *)data - shm->map.base), len);
}

/* It lies in the arena, and is the writer's, or ours and lent to him. */
static bool
is_inside(const struct xr_link *link, const struct ring_ref *ref)
{
	struct shm *shm = link->carrier->shm;

	if (ref->loan >= RING_LOANS || ref->of > RING_LOANS ||
		ref->offset >= shm->map.plan.size ||
		!arena_has(&shm->arena, shm->map.base + ref->offset, ref->len))
		return false;
	if (ref->of == 0)
		return segment_owns(&shm->map, link->slot, link->plane >> 8,
			ref->offset, ref->len);
	if (!comes_back(link, ref))
		return false;
	arena_unref(&shm->arena, shm->map.base + ref->offset);
	return true;
}

/* Keep what is lent: what comes back to us has a reference again, and what is the
 * peer's a hold. NULL: no memory, or it is not ours. */
static void *
keep(struct delivery *d, const struct ring_ref *ref, bool *kept)
{
	const struct shm *shm = d->link->carrier->shm;
	struct hold *h;

	if (*kept)
		return NULL;
	if (ref->of > 0)
		return comes_back(d->link, ref) ?
			own_word(shm->map.base + ref->offset, OWN_BLOCK) :
			NULL;
	h = hold_new(d->link->lender, ref);
	MARK(MARK_HELD);
	if (h == NULL)
		return NULL;
	*kept = true;
	return own_word(h, OWN_HOLD);
}

static void
finish_loans(struct delivery *d)
{
	for (uint32_t i = 0; i < d->count; i++)
		if (!d->kept[i])
			lender_return(d->link->lender, d->refs[i].loan);
	if (d->kind == DELIVERY_LENT && !d->kept[d->count])
		lender_return(d->link->lender, d->ref.loan);
}

const void *
shm_loan_take(struct shm *shm, const struct xr_body *body, uint32_t index,
	size_t *len, void **own)
{
	struct delivery *d = body->own;
	void *kept = NULL;

	if (index < d->count)
		kept = keep(d, &d->refs[index], &d->kept[index]);
	if (kept == NULL)
		return NULL;
	*own = kept;
	*len = d->refs[index].len;
	return shm->map.base + d->refs[index].offset;
}

struct xr_body_buffer *
poll_loan_take(void *self, const struct xr_body *body, uint32_t index)
{
	struct carrier *c = self;
	void *own;
	size_t len;

	return shm_loan_take(c->shm, body, index, &len, &own) != NULL ? own :
									NULL;
}

struct xr_body_buffer *
poll_take(void *self, const struct xr_body *body, const void **data)
{
	struct carrier *c = self;
	struct delivery *d = body->own;
	void *own = NULL, *copy;

	switch (d->kind) {
	case DELIVERY_HERE:
		copy = own_new(c->shm, d->len, &own);
		if (copy == NULL)
			return NULL;
		memcpy(copy, d->data, d->len);
		*data = copy;
		return own;
	case DELIVERY_FETCHED:
		own = d->own;
		d->own = NULL;
		break;
	case DELIVERY_LENT:
		own = keep(d, &d->ref, &d->kept[d->count]);
		break;
	}
	if (own != NULL)
		*data = d->data;
	return own;
}

static void
deliver(struct delivery *d, const struct xr_record *record)
{
	struct carrier *c = d->link->carrier;
	struct xr_body body = { .data = d->data, .len = d->len, .own = d };

	c->host.deliver(c->host.ctx, d->link->ctx, record, &body);
}

/* With what was lent: @refs are ours, and were checked. */
static void
deliver_loans(struct delivery *d, const struct xr_record *record)
{
	struct carrier *c = d->link->carrier;
	struct xr_part loans[XR_LOANS_MAX];
	bool kept[XR_LOANS_MAX + 1];
	struct xr_body body = {
		.data = d->data,
		.len = d->len,
		.own = d,
		.loans = loans,
		.loan_count = d->count,
	};

	for (uint32_t i = 0; i < d->count; i++) {
		loans[i].data = c->shm->map.base + d->refs[i].offset;
		loans[i].len = d->refs[i].len;
	}
	memset(kept, 0, d->count + 1);
	d->kept = kept;
	c->host.deliver(c->host.ctx, d->link->ctx, record, &body);
	finish_loans(d);
}

/* --- records -------------------------------------------------------------- */

static const unsigned char *
body_of(const struct ring_record *r, struct ring_word w)
{
	return w.len <= RING_INLINE ? r->body :
				      (const unsigned char *)r + RING_LINE;
}

/* The refs behind the body, copied and checked. */
static bool
read_refs(const struct xr_link *link, const struct ring_record *r,
	struct ring_word w, struct ring_ref *refs)
{
	memcpy(refs, body_of(r, w) + ((w.len + 7) & ~7u),
		w.loans * sizeof(refs[0]));
	for (uint32_t i = 0; i < w.loans; i++)
		if (!is_inside(link, &refs[i]))
			return false;
	return true;
}

static void
consume(struct xr_link *link, uint32_t lines)
{
	if (__builtin_expect(ring_consume(&link->in, lines), false))
		bell_ring(link->bell, &link->rang, true);
}

/* Nearly all: the whole message is copied, and the ring's lines are free before
 * anybody looks at it. */
static void
take_short(struct xr_link *link, const struct ring_record *r,
	struct ring_word w, uint32_t lines)
{
	_Alignas(64) unsigned char copy[RING_INLINE];
	struct xr_record record = r->record;
	struct delivery d;

	if (lines == 1)
		memcpy(copy, r->body, RING_LINE - RING_HEAD);
	else
		memcpy(copy, r->body, w.len);
	consume(link, lines);
	d.link = link;
	d.kind = DELIVERY_HERE;
	d.data = copy;
	d.len = w.len;
	d.count = 0;
	deliver(&d, &record);
}

/* A body in the ring, where it stays unless the host has a place for it. */
static bool
take_body(struct xr_link *link, const struct ring_record *r, struct ring_word w,
	uint32_t lines)
{
	struct carrier *c = link->carrier;
	struct ring_ref refs[XR_LOANS_MAX];
	struct xr_record record = r->record;
	struct delivery d = {
		.link = link,
		.kind = DELIVERY_HERE,
		.data = body_of(r, w),
		.len = w.len,
		.count = w.loans,
		.refs = refs,
	};
	void *to = NULL;

	if (w.loans > 0 && !read_refs(link, r, w, refs))
		return false;
	if (w.len > RING_INLINE)
		to = c->host.place(c->host.ctx, link->ctx, &record, w.len);
	if (to != NULL)
		d.data = memcpy(to, d.data, w.len);
	deliver_loans(&d, &record);
	consume(link, lines);
	return true;
}

static bool
take_handle(struct xr_link *link, const struct ring_record *r,
	struct ring_word w, uint32_t lines)
{
	struct shm *shm = link->carrier->shm;
	struct ring_ref refs[XR_LOANS_MAX];
	struct xr_record record = r->record;
	struct delivery d = {
		.link = link,
		.kind = DELIVERY_LENT,
		.count = w.loans,
		.refs = refs,
	};

	if (w.len != sizeof(d.ref))
		return false;
	memcpy(&d.ref, r->body, sizeof(d.ref));
	if (!is_inside(link, &d.ref) || d.ref.offset % ARENA_ALIGN != 0 ||
		!read_refs(link, r, w, refs))
		return false;
	d.data = shm->map.base + d.ref.offset;
	d.len = d.ref.len;
	consume(link, lines);
	deliver_loans(&d, &record);
	return true;
}

/* The last piece is there. */
static bool
take_fetched(struct xr_link *link)
{
	struct fetch *f = &link->fetch;
	struct ring_record *r =
		ring_line(link->in.head, link->in.at, link->in.lines);
	struct ring_ref refs[XR_LOANS_MAX];
	struct delivery d = {
		.link = link,
		.kind = DELIVERY_FETCHED,
		.own = f->placed ? NULL : f->own,
		.data = f->to,
		.len = f->len,
		.count = f->w.loans,
		.refs = refs,
	};

	if (!read_refs(link, r, f->w, refs))
		return false;
	f->active = false;
	consume(link, f->lines);
	lender_return(link->lender, f->loan);
	deliver_loans(&d, &f->record);
	if (d.own != NULL)
		own_unref(link->carrier->shm, d.own);
	return true;
}

/* The writer took it back: it is as if it had not come. */
static bool
drop_fetched(struct xr_link *link)
{
	struct fetch *f = &link->fetch;
	struct ring_record *r =
		ring_line(link->in.head, link->in.at, link->in.lines);
	struct ring_ref refs[XR_LOANS_MAX];

	if (!read_refs(link, r, f->w, refs))
		return false;
	fetch_end(link);
	consume(link, f->lines);
	lender_return(link->lender, f->loan);
	for (uint32_t i = 0; i < f->w.loans; i++)
		lender_return(link->lender, refs[i].loan);
	return true;
}

/* --- a link --------------------------------------------------------------- */

enum step {
	STEP_DELIVERED,
	STEP_SKIPPED,
	STEP_MORE, /* at the next turn */
	STEP_NOTHING,
	STEP_BROKEN,
	STEP_UNREADABLE,
	STEP_NO_MEMORY,
};

static enum step
step_fetch(struct xr_link *link)
{
	switch (fetch_step(link)) {
	case FETCH_DONE:
		return take_fetched(link) ? STEP_DELIVERED : STEP_BROKEN;
	case FETCH_VOID:
		return drop_fetched(link) ? STEP_SKIPPED : STEP_BROKEN;
	case FETCH_FAILED:
		return STEP_UNREADABLE;
	case FETCH_GONE:
		link->dying = true;
		return STEP_UNREADABLE;
	case FETCH_BROKEN:
		return STEP_BROKEN;
	case FETCH_WAIT:
		return STEP_NOTHING;
	case FETCH_MORE:
		break;
	}
	return STEP_MORE;
}

static enum step
step_bulk(struct xr_link *link, const struct ring_record *r, struct ring_word w,
	uint32_t lines)
{
	switch (fetch_begin(link, r, w, lines)) {
	case FETCH_NONSENSE:
		return STEP_BROKEN;
	case FETCH_NO_MEMORY:
		return STEP_NO_MEMORY;
	case FETCH_BEGUN:
		break;
	}
	return step_fetch(link);
}

static enum step
step_record(struct xr_link *link, struct ring_word w, uint32_t lines)
{
	struct ring_record *r =
		ring_line(link->in.head, link->in.at, link->in.lines);
	bool good = true;

	switch (w.type) {
	case RING_BODY:
		if (w.len <= RING_INLINE && w.loans == 0)
			take_short(link, r, w, lines);
		else
			good = take_body(link, r, w, lines);
		break;
	case RING_HANDLE:
		good = take_handle(link, r, w, lines);
		break;
	case RING_BULK:
		return step_bulk(link, r, w, lines);
	case RING_SKIP:
		consume(link, lines);
		return STEP_SKIPPED;
	}
	return good ? STEP_DELIVERED : STEP_BROKEN;
}

static enum step
step(struct xr_link *link)
{
	struct ring_word w;
	uint32_t lines;

	if (link->fetch.active)
		return step_fetch(link);
	switch (ring_peek(&link->in, &w, &lines)) {
	case RING_OK:
		return step_record(link, w, lines);
	case RING_EMPTY:
		return STEP_NOTHING;
	case RING_FULL:
	case RING_BROKEN:
		break;
	}
	return STEP_BROKEN;
}

void
link_fail(struct xr_link *link, const char *why)
{
	struct carrier *c = link->carrier;
	struct out *out =
		atomic_load_explicit(&link->out, memory_order_acquire);
	struct lender *lender = link->lender;
	bool dead = link->dying || !alive_is(link->peer, link->plane);

	atomic_store_explicit(&link->state, LINK_LOST, memory_order_relaxed);
	fetch_end(link);
	link->in.head = NULL;
	if ((lender != NULL && lender_close(lender, dead)) || dead)
		c->left = PLANE_MORE;
	if (out != NULL && (dead || out_is_unread(out))) {
		out->loans.feeding = 0;
		out_collect(c->shm, out, LOANS_READ);
	}
	c->host.lost(c->host.ctx, link->ctx, link, why);
}

/* Nothing more comes; why. */
static const char *
why_over(const struct xr_link *link, enum step s)
{
	if (s == STEP_BROKEN)
		return "it wrote what is no record";
	if (link->dying || !alive_is(link->peer, link->plane))
		return "its process ended";
	if (s == STEP_NO_MEMORY)
		return "there is no memory for what it sent";
	return s == STEP_UNREADABLE ? "its memory cannot be read" :
				      "the other end closed it";
}

/* Up to @budget records, until there is a reason not to go on. Between two of them there is
 * at most one to skip; a writer that puts others keeps nobody here. */
static enum step
read_some(struct xr_link *link, uint32_t budget, uint32_t *count)
{
	enum step s = STEP_NOTHING;
	uint64_t steps = 2 * (uint64_t)budget;

	while (*count < budget && steps-- > 0 && link->in.head != NULL) {
		s = step(link);
		*count += s == STEP_DELIVERED;
		if (s > STEP_SKIPPED)
			return s;
	}
	return link->in.head == NULL ? STEP_NOTHING : STEP_MORE;
}

/* What came back, and what the other side waits for. */
static uint32_t
serve_loans(struct xr_link *link, struct out *out)
{
	uint32_t told = 0;

	if (atomic_load_explicit(&out->loans.count, memory_order_relaxed) > 0) {
		told = out_collect(link->carrier->shm, out, LOANS_ENDED);
		out_feed(link);
	}
	return told;
}

uint32_t
link_poll(struct xr_link *link, uint32_t budget)
{
	struct out *out =
		atomic_load_explicit(&link->out, memory_order_acquire);
	int state = atomic_load_explicit(&link->state, memory_order_relaxed);
	uint32_t count = 0, told = 0;
	enum step s = STEP_BROKEN;

	if (state == LINK_LOST)
		return 0;
	if (out != NULL)
		told = serve_loans(link, out);
	if (state == LINK_OPEN)
		s = read_some(link, budget, &count);
	if (__builtin_expect(s < STEP_BROKEN, true) &&
		!(s == STEP_NOTHING && (link->dying || link->closing)))
		return count + told;
	link_fail(link, why_over(link, s));
	return count + told + 1;
}

/* A count of windows that cannot be is news, too: the link is lost. */
static bool
has_news(const struct out *out)
{
	const struct ring_head *head = out->ring.head;

	if (atomic_load_explicit(&out->loans.count, memory_order_relaxed) == 0)
		return false;
	return atomic_load_explicit(&head->done, memory_order_relaxed) !=
		out->loans.seen ||
		atomic_load_explicit(&head->asks, memory_order_relaxed) !=
		out->asks ||
		(out->loans.feeding != 0 && out->window != NULL &&
			out->feed.at -
					atomic_load_explicit(&out->window
								     ->taken,
						memory_order_relaxed) !=
				WINDOW_COUNT);
}

static bool
can_fetch(const struct xr_link *link)
{
	if (!link->fetch.windows)
		return true;
	if (link->take.window == NULL)
		return atomic_load_explicit(&link->in.head->window,
			       memory_order_relaxed) != 0;
	return atomic_load_explicit(&link->take.window->fed,
		       memory_order_relaxed) != link->take.at;
}

bool
link_busy(const struct xr_link *link)
{
	const struct out *out =
		atomic_load_explicit(&link->out, memory_order_acquire);
	const struct ring_in *in = &link->in;
	int state = atomic_load_explicit(&link->state, memory_order_relaxed);

	if (state != LINK_OPEN || link->dying || link->closing)
		return state != LINK_LOST;
	if (out != NULL && has_news(out))
		return true;
	if (in->head == NULL)
		return false;
	if (link->fetch.active)
		return can_fetch(link);
	return (uint32_t)atomic_load_explicit(&ring_line(in->head, in->at,
						      in->lines)
						      ->word,
		       memory_order_relaxed) != 0;
}
