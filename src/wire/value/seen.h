/* SPDX-License-Identifier: Apache-2.0 */
/* seen.h - what an encoder met before, by its address; inside of src/wire/value
 * only. */
#ifndef WIRE_VALUE_SEEN_H
#define WIRE_VALUE_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seen_row {
	const void *at;
	uint32_t number;
};

/* All 0: nothing. */
struct seen {
	struct seen_row
		*rows; /* [slots], with open addressing; at is NULL: free */
	size_t count, slots;
};

/* seen_find() - the number that was given to @at. */
bool seen_find(const struct seen *seen, const void *at, uint32_t *number);

/* seen_add() - of what is not there; false: no memory. */
bool seen_add(struct seen *seen, const void *at, uint32_t number);

void seen_fini(struct seen *seen);

#endif /* WIRE_VALUE_SEEN_H */
