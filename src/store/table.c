/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - see table.h. */
#include <stdlib.h>
#include <string.h>

#include "store/table.h"

#define FIRST 16 /* buckets */

bool
table_init(struct store_table *t, const struct hash_seed *seed)
{
	*t = (struct store_table){
		.buckets = calloc(FIRST, sizeof(struct store_entry *)),
		.room = FIRST,
		.used = FIRST,
		.round = FIRST,
		.seed = *seed,
	};
	return t->buckets != NULL;
}

/* Behind the last bucket in use lie those whose keys are not split off yet. */
static size_t
bucket_of(const struct store_table *t, uint64_t hash)
{
	size_t i = hash & (2 * t->round - 1);

	return i < t->used ? i : i - t->round;
}

struct store_entry *
table_find(const struct store_table *t, struct span key)
{
	uint64_t hash = hash_bytes(&t->seed, key.at, key.len);
	struct store_entry *e = t->buckets[bucket_of(t, hash)];

	while (e != NULL &&
		(e->hash != hash || e->len != key.len ||
			memcmp(e->key, key.at, key.len) != 0))
		e = e->next;
	return e;
}

static bool
make_room(struct store_table *t)
{
	struct store_entry **more;

	if (t->used < t->room)
		return true;
	more = reallocarray(t->buckets, t->room * 2, sizeof(*more));
	if (more == NULL)
		return false;
	t->buckets = more;
	t->room *= 2;
	return true;
}

static void
split(struct store_table *t)
{
	struct store_entry **from = &t->buckets[t->used - t->round];
	struct store_entry **to = &t->buckets[t->used];

	*to = NULL;
	while (*from != NULL) {
		struct store_entry *e = *from;

		if ((e->hash & t->round) == 0) {
			from = &e->next;
			continue;
		}
		*from = e->next;
		e->next = *to;
		*to = e;
	}
	if (++t->used == 2 * t->round)
		t->round *= 2;
}

struct store_entry *
table_add(struct store_table *t, struct span key)
{
	struct store_entry *e = malloc(sizeof(*e) + key.len);
	struct store_entry **bucket;

	if (e == NULL)
		return NULL;
	*e = (struct store_entry){
		.hash = hash_bytes(&t->seed, key.at, key.len),
		.len = key.len,
	};
	TAILQ_INIT(&e->waits);
	if (key.len > 0)
		memcpy(e->key, key.at, key.len);
	bucket = &t->buckets[bucket_of(t, e->hash)];
	e->next = *bucket;
	*bucket = e;
	if (++t->count > t->used && make_room(t))
		split(t);
	return e;
}

void
table_drop(struct store_table *t, struct store_entry *e)
{
	struct store_entry **at = &t->buckets[bucket_of(t, e->hash)];

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	t->count--;
	store_value_unref(e->value);
	free(e);
}

struct store_entry *
table_next(const struct store_table *t, const struct store_entry *e)
{
	size_t i = 0;

	if (e != NULL && e->next != NULL)
		return e->next;
	if (e != NULL)
		i = bucket_of(t, e->hash) + 1;
	while (i < t->used && t->buckets[i] == NULL)
		i++;
	return i < t->used ? t->buckets[i] : NULL;
}

void
table_fini(struct store_table *t)
{
	struct store_entry *e, *next;

	for (e = table_next(t, NULL); e != NULL; e = next) {
		next = table_next(t, e);
		store_value_unref(e->value);
		free(e);
	}
	free(t->buckets);
	*t = (struct store_table){ 0 };
}
