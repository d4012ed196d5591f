/* SPDX-License-Identifier: Apache-2.0 */
/* hold.c - see hold.h. */
#include <stdlib.h>

#include "worker/shm/bell.h"
#include "worker/shm/hold.h"
#include "worker/shm/loan.h"
#include "worker/shm/mark.h"
#include "worker/shm/span.h"

struct lender *
lender_new(const struct segment_map *map, uint32_t slot, uint32_t gen,
	uint32_t writer, uint64_t word)
{
	struct lender *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->map = *map;
	l->slot = slot;
	l->gen = gen;
	l->writer = writer;
	l->word = word;
	l->head = (void *)(map->base + segment_word_offset(word));
	l->bell = &segment_slot(map, writer)->bell;
	l->refs = 1;
	pthread_mutex_init(&l->lock, NULL);
	return l;
}

void
lender_attach(struct lender *l, _Atomic uint64_t *attached)
{
	l->attached = attached;
	atomic_store_explicit(attached, l->word, memory_order_relaxed);
}

/* --- under the lock ------------------------------------------------------- */

/* A loan ended; the writer may want to hear it. */
static bool
give_back(struct lender *l, uint32_t index)
{
	uint64_t word = atomic_exchange_explicit(&l->head->loan[index],
		LOAN_NONE, memory_order_release);

	atomic_fetch_add_explicit(&l->head->done, 1, memory_order_release);
	return word != LOAN_QUIET;
}

/* What an earlier generation of ours left is free, too. */
static bool
is_free_entry(const struct lender *l, uint64_t word)
{
	return word == 0 || segment_hold_gen(word) != (l->gen & 0xffffff);
}

static uint32_t
enter(struct lender *l, const struct hold *h)
{
	_Atomic uint64_t *table = segment_holds(&l->map, l->slot);
	uint64_t word = segment_hold_word((uint64_t)((const char *)h->data -
						  l->map.base),
		l->gen);

	for (uint32_t n = 0; n < SEGMENT_HOLDS; n++) {
		uint32_t i = l->place++ % SEGMENT_HOLDS;
		uint64_t seen =
			atomic_load_explicit(&table[i], memory_order_relaxed);

		if (is_free_entry(l, seen) &&
			atomic_compare_exchange_strong(&table[i], &seen, word))
			return i + 1;
	}
	return 0;
}

static void
leave(struct lender *l, struct hold *h)
{
	if (h->entry > 0)
		atomic_store(&segment_holds(&l->map, l->slot)[h->entry - 1], 0);
	h->entry = 0;
}

/* All of them, or none. */
static bool
enter_all(struct lender *l)
{
	atomic_store(&segment_slot(&l->map, l->slot)->holds, l->gen & 0xffffff);
	for (struct hold *h = l->first; h != NULL; h = h->next) {
		h->entry = enter(l, h);
		if (h->entry > 0)
			continue;
		for (struct hold *e = l->first; e != h; e = e->next)
			leave(l, e);
		return false;
	}
	return true;
}

/* From here on the ring is the writer's alone, or whose its spans come to be. True:
 * what the writer had is to be swept. */
static bool
let_go(struct lender *l)
{
	bool sweep = segment_ring_drop(&l->map, l->slot, l->writer, l->word);

	MARK(MARK_LETGO);
	if (l->attached != NULL)
		atomic_store(l->attached, 0);
	l->moved = true;
	l->head = NULL;
	return sweep;
}

static void
unlink(struct lender *l, struct hold *h)
{
	if (h->prev != NULL)
		h->prev->next = h->next;
	else
		l->first = h->next;
	if (h->next != NULL)
		h->next->prev = h->prev;
}

/* --- by anybody ----------------------------------------------------------- */

void
lender_unref(struct lender *l)
{
	if (atomic_fetch_sub(&l->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&l->lock);
	free(l);
}

struct hold *
hold_new(struct lender *l, const struct ring_ref *ref)
{
	struct hold *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	h->lender = l;
	h->data = l->map.base + ref->offset;
	h->len = ref->len;
	h->loan = (uint32_t)ref->loan;
	h->refs = 1;
	atomic_fetch_add(&l->refs, 1);
	pthread_mutex_lock(&l->lock);
	h->next = l->first;
	if (h->next != NULL)
		h->next->prev = h;
	l->first = h;
	pthread_mutex_unlock(&l->lock);
	return h;
}

struct hold *
hold_find(struct lender *l, const void *data, uint64_t len)
{
	struct hold *h;

	pthread_mutex_lock(&l->lock);
	for (h = l->first; h != NULL; h = h->next) {
		uint64_t at =
			(uint64_t)((const char *)data - (const char *)h->data);

		if (at <= h->len && len <= h->len - at)
			break;
	}
	if (h != NULL)
		hold_ref(h);
	pthread_mutex_unlock(&l->lock);
	return h;
}

void
hold_ref(struct hold *h)
{
	atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed);
}

void
hold_unref(struct hold *h)
{
	struct lender *l = h->lender;
	bool loud = false, last = false;

	/* Under the lock, lest hold_find() bring it back. */
	pthread_mutex_lock(&l->lock);
	if (atomic_fetch_sub(&h->refs, 1) != 1) {
		pthread_mutex_unlock(&l->lock);
		return;
	}
	unlink(l, h);
	if (l->moved) {
		leave(l, h);
		last = l->first == NULL;
	} else {
		loud = give_back(l, h->loan);
	}
	if (l->over && !l->moved && l->first == NULL) {
		last = let_go(l);
		loud = true;
	}
	pthread_mutex_unlock(&l->lock);
	if (loud)
		bell_ring(l->bell, NULL, true);
	/* It kept what the dead had from being given back. */
	if (last)
		span_sweep(&l->map, l->slot, l->gen, UINT32_MAX);
	free(h);
	lender_unref(l);
}

void
lender_return(struct lender *l, uint32_t index)
{
	bool loud = false;

	pthread_mutex_lock(&l->lock);
	if (!l->moved)
		loud = give_back(l, index);
	pthread_mutex_unlock(&l->lock);
	if (loud)
		bell_ring(l->bell, NULL, true);
}

bool
lender_close(struct lender *l, bool dead)
{
	bool sweep = false;

	pthread_mutex_lock(&l->lock);
	l->over = true;
	if (!l->moved) {
		atomic_store_explicit(&l->head->gone, 1, memory_order_release);
		if (l->first == NULL || (dead && enter_all(l)))
			sweep = let_go(l);
	}
	pthread_mutex_unlock(&l->lock);
	bell_ring(l->bell, NULL, true);
	return sweep;
}
