/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.c - a body that lies in the writer's own memory, brought here piece by
 * piece; see link.h. */
#include <stdlib.h>
#include <string.h>

#include "worker/shm/link.h"
#include "worker/shm/mark.h"
#include "worker/shm/own.h"

/* What the record says, in memory of ours, where it stays as it was checked. */
static bool
parse(struct fetch *f, const struct ring_record *r, struct ring_word w)
{
	const unsigned char *body = w.len <= RING_INLINE ?
		r->body :
		(const unsigned char *)r + RING_LINE;
	struct ring_bulk bulk;
	uint64_t len = 0;

	if (w.len < sizeof(bulk))
		return false;
	memcpy(&bulk, body, sizeof(bulk));
	if (bulk.count == 0 || bulk.count > CMA_PARTS ||
		bulk.loan >= RING_LOANS || bulk.len > XR_MESSAGE_MAX ||
		w.len != sizeof(bulk) + bulk.count * sizeof(f->parts[0]))
		return false;
	memcpy(f->parts, body + sizeof(bulk), bulk.count * sizeof(f->parts[0]));
	for (uint32_t i = 0; i < bulk.count; i++)
		if (__builtin_add_overflow(len, f->parts[i].len, &len))
			return false;
	f->len = len;
	f->loan = bulk.loan;
	f->count = bulk.count;
	return len == bulk.len;
}

static bool
find_place(struct xr_link *link)
{
	struct carrier *c = link->carrier;
	struct fetch *f = &link->fetch;

	f->to = c->host.place(c->host.ctx, link->ctx, &f->record, f->len);
	f->placed = f->to != NULL;
	if (f->to == NULL)
		f->to = own_new(c->shm, f->len, &f->own);
	return f->to != NULL;
}

/* Did the writer take it back? What was read before this was asked is good if not:
 * he does so before he lets the memory go. */
static bool
is_void(const struct xr_link *link)
{
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&link->in.head->loan[link->fetch.loan],
		       memory_order_acquire) == LOAN_VOID;
}

/* Asks for the windows; the ring's loan says so. */
static void
ask(struct xr_link *link)
{
	struct ring_head *head = link->in.head;
	uint64_t loud = LOAN_LOUD;

	if (!atomic_compare_exchange_strong(&head->loan[link->fetch.loan],
		    &loud, LOAN_WINDOW))
		return;
	atomic_fetch_add_explicit(&head->asks, 1, memory_order_release);
	bell_ring(link->bell, &link->rang, true);
}

enum fetch_begun
fetch_begin(struct xr_link *link, const struct ring_record *r,
	struct ring_word w, uint32_t lines)
{
	struct fetch *f = &link->fetch;

	f->w = w;
	f->lines = lines;
	f->record = r->record;
	f->done = 0;
	if (f->parts == NULL)
		f->parts = malloc(CMA_PARTS * sizeof(f->parts[0]));
	if (f->parts == NULL)
		return FETCH_NO_MEMORY;
	if (!parse(f, r, w))
		return FETCH_NONSENSE;
	if (!find_place(link))
		return FETCH_NO_MEMORY;
	f->active = true;
	if (!link->cma_known) {
		link->cma_known = true;
		link->cma = cma_probe(link->peer);
	}
	f->windows = !link->cma;
	if (f->windows)
		ask(link);
	return FETCH_BEGUN;
}

/* The number of a process may have come to mean another meanwhile: then so has
 * the slot. */
static enum fetch_state
read_piece(struct xr_link *link)
{
	struct fetch *f = &link->fetch;
	uint64_t left = f->len - f->done;
	struct iovec to = { f->to + f->done,
		left < CMA_PIECE ? left : CMA_PIECE };
	int64_t n = cma_read(link->peer, f->parts, f->count, f->done, &to);

	MARK(MARK_CMA);
	if (is_void(link))
		return FETCH_VOID;
	if (n == CMA_GONE ||
		segment_gen(atomic_load(&link->peer->claim)) !=
			link->plane >> 8)
		return FETCH_GONE;
	if (n <= 0)
		return FETCH_FAILED;
	f->done += (uint64_t)n;
	return f->done == f->len ? FETCH_DONE : FETCH_MORE;
}

/* WAIT: there are none yet. */
static enum fetch_state
find_windows(struct xr_link *link)
{
	struct shm *shm = link->carrier->shm;
	uint64_t at = atomic_load_explicit(&link->in.head->window,
		memory_order_acquire);

	if (link->take.window != NULL)
		return FETCH_MORE;
	if (at == 0)
		return FETCH_WAIT;
	if (at % RING_ALIGN != 0 || at >= shm->map.plan.size ||
		!arena_has(&shm->arena, shm->map.base + at,
			sizeof(struct window)) ||
		!segment_owns(&shm->map, link->slot, link->plane >> 8, at,
			sizeof(struct window)))
		return FETCH_BROKEN;
	link->take = (struct window_end){
		.window = (void *)(shm->map.base + at),
	};
	return FETCH_MORE;
}

static enum fetch_state
take_piece(struct xr_link *link)
{
	struct fetch *f = &link->fetch;
	enum fetch_state found;

	if (is_void(link)) {
		window_skip(&link->take);
		return FETCH_VOID;
	}
	found = find_windows(link);
	if (found != FETCH_MORE)
		return found;
	link->take.done = f->done;
	switch (window_take(&link->take, f->to, f->len)) {
	case WINDOW_SAME:
		return FETCH_WAIT;
	case WINDOW_BROKEN:
		return FETCH_BROKEN;
	case WINDOW_MOVED:
		break;
	}
	bell_ring(link->bell, &link->rang, true);
	f->done = link->take.done;
	return f->done == f->len ? FETCH_DONE : FETCH_MORE;
}

enum fetch_state
fetch_step(struct xr_link *link)
{
	struct fetch *f = &link->fetch;

	if (f->done == f->len)
		return FETCH_DONE;
	return f->windows ? take_piece(link) : read_piece(link);
}

void
fetch_end(struct xr_link *link)
{
	struct fetch *f = &link->fetch;

	if (f->active && !f->placed)
		own_unref(link->carrier->shm, f->own);
	f->active = false;
}
