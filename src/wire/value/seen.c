/* SPDX-License-Identifier: Apache-2.0 */
/* seen.c - see seen.h. */
#include <stdlib.h>

#include "wire/value/seen.h"

#define FIRST 16 /* slots */

/* The slot of @at, or the free one where it would stand. Addresses are multiples
 * of 16 mostly; Fibonacci hashing, Knuth, TAOCP 3, section 6.4. */
static struct seen_row *
slot_of(const struct seen *seen, const void *at)
{
	uint64_t hash = (uint64_t)(uintptr_t)at * UINT64_C(0x9e3779b97f4a7c15);
	size_t i = hash >> 32 & (seen->slots - 1);

	while (seen->rows[i].at != NULL && seen->rows[i].at != at)
		i = (i + 1) & (seen->slots - 1);
	return &seen->rows[i];
}

bool
seen_find(const struct seen *seen, const void *at, uint32_t *number)
{
	const struct seen_row *row =
		seen->slots == 0 ? NULL : slot_of(seen, at);

	if (row == NULL || row->at == NULL)
		return false;
	*number = row->number;
	return true;
}

static bool
make_room(struct seen *seen)
{
	struct seen old = *seen, more = { 0 };

	if (old.count * 2 < old.slots)
		return true;
	more.slots = old.slots == 0 ? FIRST : old.slots * 2;
	more.count = old.count;
	more.rows = calloc(more.slots, sizeof(*more.rows));
	if (more.rows == NULL)
		return false;
	for (size_t i = 0; i < old.slots; i++)
		if (old.rows[i].at != NULL)
			*slot_of(&more, old.rows[i].at) = old.rows[i];
	free(old.rows);
	*seen = more;
	return true;
}

bool
seen_add(struct seen *seen, const void *at, uint32_t number)
{
	if (!make_room(seen))
		return false;
	*slot_of(seen, at) = (struct seen_row){ at, number };
	seen->count++;
	return true;
}

void
seen_fini(struct seen *seen)
{
	free(seen->rows);
	*seen = (struct seen){ 0 };
}
