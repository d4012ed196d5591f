/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - the keys of a store, found by hash.
 *
 * Linear hashing (Litwin 1980): with each key that is added, one bucket is
 * split, the next in turn. So no addition has to move all that is there, and
 * where there is no memory for more buckets the chains grow instead. Buckets
 * are never given back: the limits of the store bound them.
 *
 * An entry stays where it is until it is dropped. It is there for a value, or
 * for those who wait for one. Inside of src/store only.
 */
#ifndef STORE_TABLE_H
#define STORE_TABLE_H

#include <sys/queue.h>

#include "base/hash.h"
#include "base/span.h"
#include "store/value.h"

struct store_link;

TAILQ_HEAD(store_links, store_link);

struct store_entry {
	struct store_entry *next; /* of its bucket */
	uint64_t hash;
	struct store_value *value; /* NULL: only waited for */
	struct store_links waits;  /* in the order of asking */
	size_t len;
	char key[];
};

struct store_table {
	struct store_entry **buckets;
	size_t room;  /* of @buckets */
	size_t used;  /* of them, from @round on up to twice that */
	size_t round; /* a power of 2: buckets when this round of splits began */
	size_t count; /* entries */
	struct hash_seed seed;
};

/* table_init() - false: no memory. */
bool table_init(struct store_table *t, const struct hash_seed *seed);

struct store_entry *table_find(const struct store_table *t, struct span key);

/* table_add() - an entry for a key that has none; NULL: no memory. */
struct store_entry *table_add(struct store_table *t, struct span key);

/* table_drop() - and its value; nobody may wait for it. */
void table_drop(struct store_table *t, struct store_entry *e);

/* table_next() - each entry, in no order: @e is NULL at first, and NULL is
 * returned behind the last. @e itself may be dropped once its next is known,
 * nothing else may change. */
struct store_entry *table_next(const struct store_table *t,
	const struct store_entry *e);

/* table_fini() - nobody may wait any more. */
void table_fini(struct store_table *t);

static inline struct span
entry_key(const struct store_entry *e)
{
	return (struct span){ .at = e->key, .len = e->len };
}

#endif /* STORE_TABLE_H */
