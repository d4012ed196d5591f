/* SPDX-License-Identifier: Apache-2.0 */
/* loan.c - see loan.h. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "worker/shm/loan.h"
#include "worker/shm/mark.h"

void
loans_init(struct loans *l, struct ring_head *head)
{
	memset(l, 0, offsetof(struct loans, loan));
	l->word = head->loan;
	l->done = &head->done;
	l->first = l->last = l->free = LOAN_END;
	pthread_mutex_init(&l->lock, NULL);
}

/* --- under the lock ------------------------------------------------------- */

static void
append(struct loans *l, uint16_t index)
{
	struct loan *loan = &l->loan[index];

	loan->prev = l->last;
	loan->next = LOAN_END;
	loan->out = true;
	if (l->last != LOAN_END)
		l->loan[l->last].next = index;
	else
		l->first = index;
	l->last = index;
	atomic_fetch_add_explicit(&l->count, 1, memory_order_relaxed);
}

static struct loan_end
drop(struct loans *l, uint16_t index)
{
	struct loan *loan = &l->loan[index];

	if (loan->prev != LOAN_END)
		l->loan[loan->prev].next = loan->next;
	else
		l->first = loan->next;
	if (loan->next != LOAN_END)
		l->loan[loan->next].prev = loan->prev;
	else
		l->last = loan->prev;
	free(loan->parts);
	loan->parts = NULL;
	loan->out = false;
	loan->next = l->free;
	l->free = index;
	atomic_fetch_sub_explicit(&l->count, 1, memory_order_relaxed);
	return (struct loan_end){ loan->data, loan->hold, loan->token,
		loan->has_token };
}

/* Its token, and the loan itself if nothing of ours can be written to by it. */
static bool
end_reading(struct loans *l, uint16_t index, struct loan_end *end)
{
	struct loan *loan = &l->loan[index];

	if (loan->data == NULL) {
		*end = drop(l, index);
		return true;
	}
	*end = (struct loan_end){
		.token = loan->token,
		.has_token = loan->has_token,
	};
	loan->has_token = false;
	return end->has_token;
}

static uint32_t
collect(struct loans *l, struct loan_end *ends, uint32_t cap,
	enum loan_which which)
{
	uint32_t count = 0;
	uint16_t next;

	for (uint16_t i = l->first; i != LOAN_END && count < cap; i = next) {
		next = l->loan[i].next;
		if (which == LOANS_ALL ||
			atomic_load_explicit(&l->word[i],
				memory_order_acquire) == LOAN_NONE)
			ends[count++] = drop(l, i);
		else if (which == LOANS_READ)
			count += end_reading(l, i, &ends[count]);
	}
	return count;
}

/* LOAN_END: all are out. */
static uint16_t
find_free(struct loans *l)
{
	uint16_t index = l->free;

	if (index != LOAN_END)
		l->free = l->loan[index].next;
	else if (l->used < RING_LOANS)
		index = l->used++;
	return index;
}

/* --- by anybody ----------------------------------------------------------- */

int
loans_take(struct loans *l, const struct loan *what, enum loan_word word)
{
	uint16_t index;

	pthread_mutex_lock(&l->lock);
	index = find_free(l);
	if (index != LOAN_END) {
		l->loan[index] = *what;
		append(l, index);
		atomic_store_explicit(&l->word[index], word,
			memory_order_relaxed);
	}
	pthread_mutex_unlock(&l->lock);
	MARK(MARK_LOAN);
	return index == LOAN_END ? -1 : index;
}

/* A loan that ended just before has changed `done`, which the next poll checks. */
void
loans_all_loud(struct loans *l)
{
	pthread_mutex_lock(&l->lock);
	for (uint16_t i = l->first; i != LOAN_END; i = l->loan[i].next) {
		uint64_t quiet = LOAN_QUIET;

		atomic_compare_exchange_strong(&l->word[i], &quiet, LOAN_LOUD);
	}
	pthread_mutex_unlock(&l->lock);
}

struct loan_end
loans_back(struct loans *l, uint32_t index)
{
	struct loan_end end;

	XR_ASSERT(index < RING_LOANS && l->loan[index].out);
	pthread_mutex_lock(&l->lock);
	atomic_store_explicit(&l->word[index], LOAN_NONE, memory_order_relaxed);
	end = drop(l, (uint16_t)index);
	pthread_mutex_unlock(&l->lock);
	return end;
}

/* `done` is looked at before the words, so that what ends meanwhile is seen at the
 * next look. */
uint32_t
loans_collect(struct loans *l, struct loan_end *ends, uint32_t cap,
	enum loan_which which)
{
	uint32_t done = atomic_load_explicit(l->done, memory_order_acquire);
	uint32_t count = 0;

	if (done == l->seen && which == LOANS_ENDED)
		return 0;
	pthread_mutex_lock(&l->lock);
	count = collect(l, ends, cap, which);
	pthread_mutex_unlock(&l->lock);
	if (count < cap)
		l->seen = done;
	return count;
}

bool
loans_covers(struct loans *l, uint32_t index, struct arena *a, const void *data,
	uint64_t len)
{
	const char *from = data;
	struct loan *loan;
	bool covers = false;

	pthread_mutex_lock(&l->lock);
	loan = index < l->used ? &l->loan[index] : NULL;
	if (loan != NULL && loan->out && loan->data != NULL &&
		loan->hold == NULL)
		covers = from >= (const char *)loan->data && len <= loan->len &&
			(uint64_t)(from - (const char *)loan->data) <=
				loan->len - len &&
			arena_ref(a, data, len);
	pthread_mutex_unlock(&l->lock);
	return covers;
}

uint32_t
loans_asked(const struct loans *l)
{
	for (uint16_t i = l->first; i != LOAN_END; i = l->loan[i].next)
		if (l->loan[i].data == NULL && !l->loan[i].fed &&
			atomic_load_explicit(&l->word[i],
				memory_order_relaxed) == LOAN_WINDOW)
			return i + 1u;
	return 0;
}

/* The reader looks at the word after each piece, and believes none that it read
 * before it saw this. What it has ended stays ended. */
static void
make_void(_Atomic uint64_t *word)
{
	uint64_t was = atomic_load(word);

	while (was != LOAN_NONE &&
		!atomic_compare_exchange_weak(word, &was, LOAN_VOID))
		continue;
}

/* Under the lock. */
static void
void_one(struct loans *l, uint16_t i)
{
	struct loan *loan = &l->loan[i];

	loan->has_token = false;
	loan->fed = true;
	if (l->feeding == i + 1u)
		l->feeding = 0;
	if (loan->data == NULL)
		make_void(&l->word[i]);
}

bool
loans_void(struct loans *l, const void *token)
{
	bool found = false;

	pthread_mutex_lock(&l->lock);
	for (uint16_t i = l->first; i != LOAN_END && !found;
		i = l->loan[i].next) {
		found = l->loan[i].has_token && l->loan[i].token == token;
		if (found)
			void_one(l, i);
	}
	pthread_mutex_unlock(&l->lock);
	return found;
}

bool
loans_void_any(struct loans *l, void **token)
{
	bool found = false;

	pthread_mutex_lock(&l->lock);
	for (uint16_t i = l->first; i != LOAN_END && !found;
		i = l->loan[i].next) {
		found = l->loan[i].has_token;
		*token = l->loan[i].token;
		if (found)
			void_one(l, i);
	}
	pthread_mutex_unlock(&l->lock);
	return found;
}
