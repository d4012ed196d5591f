/* SPDX-License-Identifier: Apache-2.0 */
/* stock.c - see stock.h. */
#include <pthread.h>
#include <stdbool.h>

#include <sys/queue.h>

#include "base/stock.h"

#define SLAB      ((size_t)64 << 10) /* where one begins, */
#define SLAB_SIZE (SLAB - 64) /* and malloc()'s word has room behind it */
#define MOST      ((size_t)32 << 20) /* bytes of batches that are kept as they are */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PLAIN true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(memory_sanitizer)
#define PLAIN true
#endif
#endif
#ifndef PLAIN
#define PLAIN false
#endif

/* Of blocks of one size. */
struct slab {
	LIST_ENTRY(slab) list;     /* of those that have something */
	struct stock_block *first; /* that came back, */
	uint32_t back;             /* as many; and, of its end, */
	uint32_t cut, whole;       /* blocks that were cut; it has */
	bool is_listed;
};
LIST_HEAD(slab_list, slab);

/* Of who keeps nothing. */
static struct stock none;

__thread struct stock *stock_mine __attribute__((tls_model("initial-exec"))) =
	&none;
static __thread bool ends __attribute__((tls_model("initial-exec")));

/* For all; one lock, which is held for a batch. */
static struct {
	pthread_mutex_t lock;
	size_t kept; /* bytes of batches */
	struct stock_block *batch[STOCK_SIZES];
	struct slab_list slabs[STOCK_SIZES];
} depot = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool is_off; /* before the first block */
static pthread_once_t once = PTHREAD_ONCE_INIT;
/* From then on: */
static bool plain, has_key;
static pthread_key_t key;

static size_t
size_of(size_t place)
{
	return 16 * place + 24;
}

/* --- slabs; with the lock -------------------------------------------------------- */

static struct slab *
slab_new(size_t place)
{
	struct slab *slab = aligned_alloc(SLAB, SLAB_SIZE);

	if (slab == NULL)
		return NULL;
	*slab = (struct slab){
		.whole = (uint32_t)((SLAB_SIZE - sizeof(*slab)) /
			size_of(place)),
		.is_listed = true,
	};
	LIST_INSERT_HEAD(&depot.slabs[place], slab, list);
	return slab;
}

static struct stock_block *
slab_cut(struct slab *slab, size_t place)
{
	char *at = (char *)(slab + 1) + slab->cut++ * size_of(place);

	return (struct stock_block *)at;
}

/* Up to a batch; NULL: no memory. */
static struct stock_block *
slab_take(size_t place, uint32_t *count)
{
	struct slab *slab = LIST_FIRST(&depot.slabs[place]);
	struct stock_block *all = NULL, *b;

	if (slab == NULL)
		slab = slab_new(place);
	for (*count = 0; slab != NULL && *count < STOCK_BATCH; ++*count) {
		b = slab->first;
		if (b != NULL) {
			slab->first = b->next;
			slab->back--;
		} else if (slab->cut < slab->whole) {
			b = slab_cut(slab, place);
		} else {
			break;
		}
		b->next = all;
		all = b;
	}
	if (slab != NULL && slab->first == NULL && slab->cut == slab->whole) {
		LIST_REMOVE(slab, list);
		slab->is_listed = false;
	}
	return all;
}

static void
slab_put(size_t place, struct stock_block *b)
{
	struct slab *slab = (struct slab *)((uintptr_t)b & ~(SLAB - 1));

	b->next = slab->first;
	slab->first = b;
	slab->back++;
	if (!slab->is_listed)
		LIST_INSERT_HEAD(&depot.slabs[place], slab, list);
	slab->is_listed = true;
	if (slab->back < slab->cut)
		return;
	LIST_REMOVE(slab, list);
	free(slab);
}

static void
slab_put_all(size_t place, struct stock_block *b)
{
	struct stock_block *next;

	for (; b != NULL; b = next) {
		next = b->next;
		slab_put(place, b);
	}
}

/* --- batches ------------------------------------------------------------------------- */

static struct stock_block *
take(size_t place, uint32_t *count)
{
	struct stock_block *b;

	pthread_mutex_lock(&depot.lock);
	b = depot.batch[place];
	if (b != NULL) {
		depot.batch[place] = b->batch;
		depot.kept -= STOCK_BATCH * size_of(place);
		*count = STOCK_BATCH;
	} else {
		b = slab_take(place, count);
	}
	pthread_mutex_unlock(&depot.lock);
	return b;
}

/* @is_whole: it is a batch. */
static void
put(size_t place, struct stock_block *b, bool is_whole)
{
	if (b == NULL)
		return;
	pthread_mutex_lock(&depot.lock);
	if (is_whole && depot.kept < MOST) {
		b->batch = depot.batch[place];
		depot.batch[place] = b;
		depot.kept += STOCK_BATCH * size_of(place);
	} else {
		slab_put_all(place, b);
	}
	pthread_mutex_unlock(&depot.lock);
}

/* --- threads -------------------------------------------------------------------------- */

static void
thread_ends(void *mine)
{
	struct stock *stock = mine;

	stock_mine = &none;
	ends = true;
	for (size_t i = 0; i < STOCK_SIZES; i++) {
		put(i, stock->shelf[i].first, false);
		put(i, stock->shelf[i].batch, true);
	}
	free(stock);
}

static void
lock(void)
{
	pthread_mutex_lock(&depot.lock);
}

static void
unlock(void)
{
	pthread_mutex_unlock(&depot.lock);
}

static void
begin(void)
{
	plain = PLAIN || is_off;
	if (plain)
		return;
	has_key = pthread_key_create(&key, thread_ends) == 0;
	pthread_atfork(lock, unlock, unlock);
}

static bool
is_plain(void)
{
	pthread_once(&once, begin);
	return plain;
}

void
stock_off(void)
{
	is_off = true;
}

/* NULL: this thread keeps nothing. */
static struct stock *
open_stock(void)
{
	struct stock *stock = NULL;

	if (stock_mine != &none)
		return stock_mine;
	if (has_key && !ends)
		stock = calloc(1, sizeof(*stock));
	if (stock == NULL || pthread_setspecific(key, stock) != 0) {
		free(stock);
		return NULL;
	}
	stock_mine = stock;
	return stock;
}

void *
stock_fetch(size_t size)
{
	size_t place = stock_place(size);
	struct stock_block *b = NULL;
	uint32_t count = STOCK_BATCH;
	struct stock *stock;

	if (is_plain())
		return malloc(size);
	stock = open_stock();
	if (stock != NULL) {
		b = stock->shelf[place].batch;
		stock->shelf[place].batch = NULL;
	}
	if (b == NULL)
		b = take(place, &count);
	if (b == NULL)
		return NULL;
	if (stock != NULL) {
		stock->shelf[place].first = b->next;
		stock->shelf[place].count = count - 1;
	} else {
		put(place, b->next, false);
	}
	return b;
}

void
stock_stow(void *block, size_t size)
{
	size_t place = stock_place(size);
	struct stock_block *b = block;
	struct stock_shelf *s;
	struct stock *stock;

	if (is_plain()) {
		free(block);
		return;
	}
	stock = open_stock();
	s = stock != NULL ? &stock->shelf[place] : NULL;
	b->next = s != NULL ? s->first : NULL;
	if (s == NULL) {
		put(place, b, false);
		return;
	}
	s->first = b;
	if (++s->count < STOCK_BATCH)
		return;
	put(place, s->batch, true);
	s->batch = s->first;
	s->first = NULL;
	s->count = 0;
}
