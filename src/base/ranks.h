/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.h - sets of ranks as people write them: "0,3-7", "-1" for the last.
 *
 * A set is a bitmap of a fixed size given at init. One owner, one thread.
 */
#ifndef BASE_RANKS_H
#define BASE_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "xrun/error.h"

struct ranks {
	uint64_t *word; /* bit r of the set, 64 to a word */
	uint32_t size;  /* ranks 0..size-1 may be members */
};

/* ranks_init() - an empty set; XR_E_NOMEM. */
enum xr_status ranks_init(struct ranks *set, uint32_t size);
void ranks_fini(struct ranks *set);

void ranks_add(struct ranks *set, uint32_t rank);
bool ranks_has(const struct ranks *set, uint32_t rank);
uint32_t ranks_count(const struct ranks *set);

/* ranks_next() - the lowest member >= @from, or size if there is none. */
uint32_t ranks_next(const struct ranks *set, uint32_t from);

/*
 * ranks_parse() - add the ranks of @text: numbers and ranges, split by commas;
 * -1 is the last rank, -2 the one before. Nothing is added on failure.
 *
 * Returns  XR_OK; XR_E_INVAL (not a list), XR_E_RANGE (no such rank), with
 *          the offending piece in @err
 */
enum xr_status ranks_parse(struct ranks *set, const char *text,
	struct xr_error *err);

/* ranks_check() - is it such a list? Whatever ranks there are. */
enum xr_status ranks_check(const char *text, struct xr_error *err);

/* ranks_put() - append "0-3,7" to @out; "none" for the empty set. */
void ranks_put(const struct ranks *set, struct buf *out);

/* RANKS_EACH(r, set) - loop over the members in order. */
#define RANKS_EACH(r, set) \
	for (uint32_t r = ranks_next((set), 0); r < (set)->size; \
		r = ranks_next((set), r + 1))

#endif /* BASE_RANKS_H */
