/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll_multi.h - ranks with two devices each: what the cases of coll_multi.c stand on.
 */
#ifndef TESTS_PROG_COLL_MULTI_H
#define TESTS_PROG_COLL_MULTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/coll.h>

#include "tests/prog/expect.h"

#define EACH     2 /* tensors of a rank */
#define RANKS    8
#define ENTRIES  (RANKS * EACH)
#define HOST     (-1) /* a device: its memory */
#define PATIENCE XR_SECONDS(20)

extern struct xr_world *world;
extern struct xr_coll *all;

/* new_group() - of all. */
struct xr_coll *new_group(void);

/* --- devices, and memory ---------------------------------------------------- */

/* What of device fake:@index breaks, after so many @good copies. */
struct breaks {
	bool reads, writes;
	int32_t index;
	int good;
};
extern struct breaks breaks;

/* devices_begin() - fake:0 and fake:1 are there. devices_left() - blocks of their
 * memory that were not freed. */
void devices_begin(void);
int devices_left(void);

extern _Thread_local unsigned until_short; /* allocations; 0: there is enough */
extern bool was_short;

/* --- tensors ------------------------------------------------------------------ */

#define MULTI(...) \
	(&(struct xr_coll_multi){ .size = sizeof(struct xr_coll_multi), \
		__VA_ARGS__ })
#define LIST(list, n) .tensors = (list), .count = (n)

struct xr_value *tensor(int32_t device, size_t count, enum xr_dtype dtype);

/* fill() - with what ref_fill() says array @number has. has_array() - is it so? */
void fill(struct xr_value *v, uint32_t number);
bool has_array(const struct xr_value *v, uint32_t number);
bool has(const struct xr_value *v, const void *want);

/* make() - this rank's, filled: arrays rank * EACH and so on. */
void make(struct xr_value *list[EACH], size_t count, enum xr_dtype dtype);
void drop(struct xr_value **list, size_t count);

/* --- cases of what does not go well: coll_multi_bad.c ---------------------------- */

void refused(void);
void other_length(void);
void other_index(void);
void other_count(void);
void other_form(void);
void broken_read(void);
void broken_write(void);
void broken_piece(void);
void late(void);
void short_of_memory(void);

#endif /* TESTS_PROG_COLL_MULTI_H */
