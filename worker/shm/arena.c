/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c - see arena.h. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/shm/arena.h"
#include "worker/shm/mark.h"
#include "worker/shm/span.h"

#define KEPT_SHARE 16 /* of the arena, with a process that does not need it */
#define KEPT_MIN   (UINT64_C(64) << 20)
/* malloc() maps as much, so that what of it is not used costs nothing. */
#define TABLE_MIN (UINT64_C(256) << 10)
#define RETIRE_NS NS_PER_S         /* unused for so long: it goes back */
#define SWEEP_NS  (10 * NS_PER_MS) /* from one look for the dead to the next */

/* Four sizes a doubling from 256 on: 64 128 192 256 320 384 448 512 640 ... */
static uint32_t
class_of(size_t len)
{
	uint32_t up, shift;

	if (len <= 256)
		return len == 0 ? 0 : (uint32_t)(len - 1) / 64;
	up = 31 - (uint32_t)__builtin_clz((uint32_t)len - 1);
	shift = up - 2;
	return 4 * (up - 8) + ((uint32_t)(len - 1) >> shift);
}

static uint32_t
class_size(uint32_t class)
{
	if (class < 4)
		return (class + 1) * 64;
	return (class % 4 + 5) << (class / 4 + 5);
}

size_t
arena_room(size_t len)
{
	return len <= ARENA_LARGE ? class_size(class_of(len)) :
				    segment_round(len, SEGMENT_SPAN);
}

static uint64_t
kept_most(const struct arena *a)
{
	uint64_t share = a->map.plan.spans * SEGMENT_SPAN / KEPT_SHARE;

	return share > KEPT_MIN ? share : KEPT_MIN;
}

bool
arena_init(struct arena *a, const struct segment_map *map, uint32_t slot,
	uint32_t gen)
{
	size_t table = map->plan.spans * sizeof(*a->span);

	*a = (struct arena){ .map = *map, .slot = slot, .gen = gen };
	a->span = calloc(1, table < TABLE_MIN ? TABLE_MIN : table);
	a->kept_max = kept_most(a);
	return a->span != NULL && pthread_mutex_init(&a->lock, NULL) == 0;
}

/* --- spans; under the lock ------------------------------------------------ */

static void
list_add(struct arena_span **list, struct arena_span *s)
{
	s->next = *list;
	s->prev = NULL;
	if (*list != NULL)
		(*list)->prev = s;
	*list = s;
	s->listed = true;
}

static void
list_drop(struct arena_span **list, struct arena_span *s)
{
	if (s->prev != NULL)
		s->prev->next = s->next;
	else
		*list = s->next;
	if (s->next != NULL)
		s->next->prev = s->prev;
	s->listed = false;
}

static void
point(struct arena *a, const struct arena_span *of, struct arena_span *to)
{
	for (uint32_t i = 0; i < of->run; i++)
		atomic_store_explicit(&a->span[of->first + i], to,
			memory_order_release);
}

static void
give_oldest(struct arena *a)
{
	struct arena_span *s = a->kept;

	while (s->next != NULL) /* the one that was freed first */
		s = s->next;
	list_drop(&a->kept, s);
	a->kept_bytes -= s->run * SEGMENT_SPAN;
	span_give(&a->map, a->slot, a->gen,
		(struct span_run){ s->first, s->run });
	free(s);
}

static void
keep_down_to(struct arena *a, uint64_t bytes)
{
	while (a->kept != NULL && a->kept_bytes > bytes)
		give_oldest(a);
}

/* There is more than an idle process keeps: see later whether it is used. */
static void
retire_later(struct arena *a)
{
	a->kept_moved = true;
	if (a->retire == NULL || a->retire_at != 0 ||
		a->kept_bytes <= ARENA_IDLE)
		return;
	a->retire_at = clock_now() + RETIRE_NS;
	a->retire(a->retire_at);
}

static void
keep(struct arena *a, struct arena_span *s)
{
	point(a, s, NULL);
	free(s->block);
	s->block = NULL;
	list_add(&a->kept, s);
	a->kept_bytes += s->run * SEGMENT_SPAN;
	keep_down_to(a, a->kept_max);
	retire_later(a);
}

/* Of those kept, the smallest that is not much too large. */
static struct arena_span *
take_kept(struct arena *a, uint32_t run)
{
	struct arena_span *best = NULL;

	for (struct arena_span *s = a->kept; s != NULL; s = s->next) {
		if (s->run < run || s->run > run + run / 4)
			continue;
		if (best == NULL || s->run < best->run)
			best = s;
		if (best->run == run)
			break;
	}
	if (best != NULL) {
		list_drop(&a->kept, best);
		a->kept_bytes -= best->run * SEGMENT_SPAN;
		a->kept_moved = true;
	}
	return best;
}

/* The arena is full: what can be given back by us, and what the dead had. */
static void
make_room(struct arena *a)
{
	int64_t now = clock_now();

	keep_down_to(a, 0);
	if (a->swept != 0 && now - a->swept < SWEEP_NS)
		return;
	a->swept = now;
	span_sweep(&a->map, a->slot, a->gen, UINT32_MAX);
}

static struct arena_span *
take_new(struct arena *a, uint32_t run)
{
	struct arena_span *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->first = span_take(&a->map, a->slot, a->gen, run);
	if (s->first == SPAN_NONE) {
		make_room(a);
		s->first = span_take(&a->map, a->slot, a->gen, run);
	}
	s->run = run;
	MARK(MARK_SPAN);
	if (s->first != SPAN_NONE)
		return s;
	free(s);
	return NULL;
}

/* A run with @blocks of @size; 0: with one that is all of it. */
static struct arena_span *
make(struct arena *a, uint32_t run, uint32_t size)
{
	struct arena_span *s = take_kept(a, run);

	if (s == NULL)
		s = take_new(a, run);
	if (s == NULL)
		return NULL;
	s->size = size;
	s->blocks = size == 0 ? 1 : (uint32_t)(SEGMENT_SPAN / size);
	s->used = s->free = s->fresh = 0;
	s->block = calloc(s->blocks, sizeof(*s->block));
	if (s->block == NULL) {
		keep(a, s);
		return NULL;
	}
	point(a, s, s);
	return s;
}

/* --- blocks --------------------------------------------------------------- */

static char *
data_of(const struct arena *a, const struct arena_span *s, uint32_t index)
{
	return span_data(&a->map, s->first) + (size_t)index * s->size;
}

static uint32_t
pop(struct arena_span *s)
{
	uint32_t index;

	if (s->free == 0)
		index = s->fresh++;
	else {
		index = s->free - 1;
		s->free = s->block[index].next;
	}
	s->used++;
	atomic_store_explicit(&s->block[index].refs, 1, memory_order_relaxed);
	return index;
}

static void *
alloc_small(struct arena *a, uint32_t class)
{
	struct arena_span *s = a->room[class];
	uint32_t index;

	if (s == NULL) {
		s = make(a, 1, class_size(class));
		if (s == NULL)
			return NULL;
		list_add(&a->room[class], s);
	}
	index = pop(s);
	if (s->used == s->blocks)
		list_drop(&a->room[class], s);
	return data_of(a, s, index);
}

static void *
alloc_large(struct arena *a, size_t len)
{
	uint64_t run = (len + SEGMENT_SPAN - 1) / SEGMENT_SPAN;
	struct arena_span *s = NULL;

	if (run <= ARENA_RUN_MAX)
		s = make(a, (uint32_t)run, 0);
	if (s == NULL)
		return NULL;
	pop(s);
	return data_of(a, s, 0);
}

void *
arena_alloc(struct arena *a, size_t len)
{
	void *data;

	pthread_mutex_lock(&a->lock);
	data = len > ARENA_LARGE ? alloc_large(a, len) :
				   alloc_small(a, class_of(len));
	pthread_mutex_unlock(&a->lock);
	return data;
}

/* Which block of mine @data is in. */
static struct arena_span *
find(struct arena *a, const void *data, uint32_t *index)
{
	uint64_t at = (uint64_t)((const char *)data - a->map.base) -
		a->map.plan.arena;
	struct arena_span *s;

	if (at / SEGMENT_SPAN >= a->map.plan.spans)
		return NULL;
	s = atomic_load_explicit(&a->span[at / SEGMENT_SPAN],
		memory_order_acquire);
	if (s == NULL)
		return NULL;
	*index = s->size == 0 ? 0 : (uint32_t)(at % SEGMENT_SPAN) / s->size;
	return *index < s->blocks ? s : NULL;
}

static uint64_t
size_of(const struct arena_span *s)
{
	return s->size == 0 ? s->run * SEGMENT_SPAN : s->size;
}

bool
arena_ref(struct arena *a, const void *data, uint64_t len)
{
	struct arena_span *s;
	uint32_t index, refs = 0;
	uint64_t from;

	if (!arena_has(a, data, len))
		return false;
	s = find(a, data, &index);
	if (s == NULL)
		return false;
	from = (uint64_t)((const char *)data - data_of(a, s, index));
	if (from + len <= size_of(s))
		refs = atomic_load_explicit(&s->block[index].refs,
			memory_order_relaxed);
	while (refs > 0 && refs < UINT32_MAX)
		if (atomic_compare_exchange_weak_explicit(&s->block[index].refs,
			    &refs, refs + 1, memory_order_relaxed,
			    memory_order_relaxed))
			return true;
	return false;
}

/* The last reference is gone. */
static void
give(struct arena *a, struct arena_span *s, uint32_t index)
{
	uint32_t class = s->size == 0 ? 0 : class_of(s->size);

	s->block[index].next = s->free;
	s->free = index + 1;
	s->used--;
	if (s->size == 0) {
		keep(a, s);
		return;
	}
	if (!s->listed)
		list_add(&a->room[class], s);
	/* One that is empty may serve another class, if there is a second. */
	if (s->used == 0 && (s->next != NULL || s->prev != NULL)) {
		list_drop(&a->room[class], s);
		keep(a, s);
	}
}

void
arena_unref(struct arena *a, const void *data)
{
	uint32_t index = 0;
	struct arena_span *s = find(a, data, &index);

	XR_ASSERT(s != NULL);
	if (atomic_fetch_sub_explicit(&s->block[index].refs, 1,
		    memory_order_acq_rel) != 1)
		return;
	pthread_mutex_lock(&a->lock);
	give(a, s, index);
	pthread_mutex_unlock(&a->lock);
}

/* A run at a time, since the thread that calls this reads for all others. */
int64_t
arena_retire(struct arena *a, int64_t now)
{
	int64_t next;

	pthread_mutex_lock(&a->lock);
	if (a->retire_at != 0 && a->retire_at <= now) {
		if (a->kept_moved)
			now += RETIRE_NS;
		else if (a->kept_bytes > ARENA_IDLE)
			give_oldest(a);
		a->kept_moved = false;
		a->retire_at = a->kept_bytes > ARENA_IDLE ? now : 0;
	}
	next = a->retire_at;
	pthread_mutex_unlock(&a->lock);
	return next != 0 ? next : INT64_MAX;
}

void
arena_on_retire(struct arena *a, void (*retire)(int64_t when))
{
	pthread_mutex_lock(&a->lock);
	a->retire = retire;
	a->retire_at = 0;
	a->kept_max = retire != NULL ? kept_most(a) : ARENA_IDLE;
	keep_down_to(a, a->kept_max);
	retire_later(a);
	pthread_mutex_unlock(&a->lock);
}

void
arena_trim(struct arena *a, uint64_t bytes)
{
	pthread_mutex_lock(&a->lock);
	keep_down_to(a, bytes);
	pthread_mutex_unlock(&a->lock);
}
