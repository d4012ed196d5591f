/* SPDX-License-Identifier: Apache-2.0 */
/* out.c - rings to peers, from the first message to when the peer lets them go;
 * see link.h. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "worker/shm/link.h"
#include "worker/shm/mark.h"
#include "worker/shm/own.h"

#define ENDS 32 /* loans at a time */

/* --- making --------------------------------------------------------------- */

static struct out *
make(struct xr_link *link)
{
	struct carrier *c = link->carrier;
	struct shm *shm = c->shm;
	struct ring_head *head =
		arena_alloc(&shm->arena, ring_bytes(RING_LINES));
	struct out *out = malloc(sizeof(*out));

	if (head == NULL || out == NULL) {
		if (head != NULL)
			arena_unref(&shm->arena, head);
		free(out);
		return NULL;
	}
	memset(out, 0, offsetof(struct out, loans));
	ring_make(head, RING_LINES);
	head->writer = shm->slot;
	head->reader = link->slot;
	head->writer_plane = c->plane;
	head->reader_plane = link->plane;
	head->id = c->id;
	head->incarnation = c->incarnation;
	ring_write(&out->ring, head, RING_LINES);
	loans_init(&out->loans, head);
	out->slot = link->slot;
	out->plane = link->plane;
	out->carrier = c;
	out->word = segment_ring_word((uint64_t)((char *)head - shm->map.base),
		shm->gen, link->plane >> 8);
	return out;
}

static void
destroy(struct shm *shm, struct out *out)
{
	arena_unref(&shm->arena, out->ring.head);
	if (out->window != NULL)
		arena_unref(&shm->arena, out->window);
	pthread_mutex_destroy(&out->loans.lock);
	free(out);
}

enum xr_status
out_open(struct xr_link *link)
{
	struct shm *shm = link->carrier->shm;
	_Atomic uint64_t *dir = segment_dir(&shm->map, link->slot, shm->slot);
	struct out *out;
	uint64_t none = 0;

	/* That of an earlier incarnation of ours is looked at yet. */
	if (atomic_load(dir) != 0)
		return XR_E_AGAIN;
	out = make(link);
	if (out == NULL)
		return XR_E_NOMEM;
	if (!atomic_compare_exchange_strong(dir, &none, out->word)) {
		destroy(shm, out);
		return XR_E_AGAIN;
	}
	MARK(MARK_RING);
	/* Who closes says so, and takes away rings that nobody reads; we write the
	 * ring, and look. */
	if (atomic_load(&link->peer->plane) != link->plane) {
		none = out->word;
		atomic_compare_exchange_strong(dir, &none, 0);
		destroy(shm, out);
		return XR_E_PEER_LOST;
	}
	atomic_store_explicit(&link->out, out, memory_order_release);
	atomic_fetch_add(&link->peer->arrivals, 1);
	bell_ring(&link->peer->bell, NULL, true);
	return XR_OK;
}

/* --- loans ---------------------------------------------------------------- */

/* 1: the host was told. */
static uint32_t
settle(struct shm *shm, struct out *out, const struct loan_end *end)
{
	struct carrier *c = out->carrier;

	if (end->hold != NULL)
		hold_unref(end->hold);
	else if (end->data != NULL)
		arena_unref(&shm->arena, end->data);
	if (!end->has_token || c == NULL)
		return 0;
	c->host.sent(c->host.ctx, end->token);
	return 1;
}

uint32_t
out_collect(struct shm *shm, struct out *out, enum loan_which which)
{
	struct loan_end ends[ENDS];
	uint32_t count, told = 0;

	do {
		count = loans_collect(&out->loans, ends, ENDS, which);
		for (uint32_t i = 0; i < count; i++)
			told += settle(shm, out, &ends[i]);
	} while (count == ENDS);
	return told;
}

/* --- windows -------------------------------------------------------------- */

static bool
open_windows(struct xr_link *link, struct out *out)
{
	struct shm *shm = link->carrier->shm;
	struct window *w;

	if (out->window != NULL)
		return true;
	w = arena_alloc(&shm->arena, sizeof(*w));
	if (w == NULL)
		return false;
	atomic_store(&w->fed, 0);
	atomic_store(&w->taken, 0);
	out->window = w;
	out->feed = (struct window_end){ .window = w };
	atomic_store_explicit(&out->ring.head->window,
		(uint64_t)((char *)w - shm->map.base), memory_order_release);
	return true;
}

/* Under the lock of the loans: whoever takes one back knows that its parts are not
 * looked at afterwards. */
static enum window_state
feed(struct xr_link *link, struct out *out, uint32_t asks)
{
	struct loans *l = &out->loans;
	enum window_state state;
	struct loan *loan;

	if (l->feeding == 0) {
		out->asks = asks;
		l->feeding = loans_asked(l);
		out->feed.done = 0;
	}
	if (l->feeding == 0 || !open_windows(link, out))
		return WINDOW_SAME;
	loan = &l->loan[l->feeding - 1];
	state = window_feed(&out->feed, loan->parts, loan->count, loan->len);
	loan->fed = out->feed.done == loan->len;
	if (loan->fed)
		l->feeding = 0;
	return state;
}

void
out_feed(struct xr_link *link)
{
	struct out *out =
		atomic_load_explicit(&link->out, memory_order_acquire);
	uint32_t asks = atomic_load_explicit(&out->ring.head->asks,
		memory_order_acquire);
	enum window_state state;

	if (out->loans.feeding == 0 && asks == out->asks)
		return;
	pthread_mutex_lock(&out->loans.lock);
	state = feed(link, out, asks);
	pthread_mutex_unlock(&out->loans.lock);
	if (state == WINDOW_MOVED)
		bell_ring(link->bell, &link->rang, true);
	else if (state == WINDOW_BROKEN)
		atomic_store_explicit(&link->state, LINK_BROKEN,
			memory_order_relaxed);
}

/* --- the end -------------------------------------------------------------- */

void
out_close(struct xr_link *link)
{
	struct out *out =
		atomic_load_explicit(&link->out, memory_order_acquire);
	struct shm *shm = link->carrier->shm;

	if (out == NULL)
		return;
	atomic_store_explicit(&link->out, NULL, memory_order_relaxed);
	atomic_store_explicit(&out->ring.head->closed, 1, memory_order_release);
	bell_ring(link->bell, NULL, true);
	pthread_mutex_lock(&shm->lock);
	out->next = shm->limbo;
	shm->limbo = out;
	pthread_mutex_unlock(&shm->lock);
}

/* No thread of the reader runs any more: another has its slot, or its process is
 * gone. A mark on its death is too early: its other threads may be about to
 * write. */
static bool
is_buried(const struct shm *shm, const struct out *out)
{
	const struct segment_slot *reader = segment_slot(&shm->map, out->slot);
	uint64_t claim = atomic_load(&reader->claim);

	return !segment_has(claim, out->plane >> 8) ||
		segment_gone(reader, claim, alive_ended(reader));
}

/* The reader has let it go, or never will. */
static bool
is_over(struct shm *shm, struct out *out)
{
	_Atomic uint64_t *dir = segment_dir(&shm->map, out->slot, shm->slot);
	uint64_t word = out->word;

	if (atomic_load_explicit(dir, memory_order_acquire) != word)
		return true;
	if (!is_buried(shm, out))
		return false;
	atomic_compare_exchange_strong(dir, &word, 0);
	return true;
}

static struct out *
next_over(struct shm *shm)
{
	struct out **at, *out;

	pthread_mutex_lock(&shm->lock);
	for (at = &shm->limbo; *at != NULL; at = &(*at)->next)
		if (is_over(shm, *at))
			break;
	out = *at;
	if (out != NULL)
		*at = out->next;
	pthread_mutex_unlock(&shm->lock);
	return out;
}

void
out_limbo(struct shm *shm)
{
	struct out *out;

	for (out = shm->limbo; out != NULL; out = out->next)
		out_collect(shm, out,
			out_is_unread(out) ? LOANS_READ : LOANS_ENDED);
	while ((out = next_over(shm)) != NULL) {
		out_collect(shm, out, LOANS_ALL);
		destroy(shm, out);
	}
}
