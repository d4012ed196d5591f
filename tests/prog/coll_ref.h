/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll_ref.h - what a reduction is to give, worked out in the plainest way.
 */
#ifndef TESTS_PROG_COLL_REF_H
#define TESTS_PROG_COLL_REF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/coll.h>

/* ref_fill() - @count elements, those of array @number, the same at each call. */
void ref_fill(void *data, size_t count, enum xr_dtype dtype, uint32_t number);

/* So many, each with as many arrays: numbers 0 to each - 1 are those of rank 0. */
struct ref_ranks {
	uint32_t count, each;
};

/* ref_reduce() - those of a rank, combined in their order; then the ranks'. */
void ref_reduce(void *data, size_t count, enum xr_dtype dtype, enum xr_redop op,
	struct ref_ranks ranks);

/* ref_can() - returns true if there is such a reduction. */
bool ref_can(enum xr_dtype dtype, enum xr_redop op);

/* ref_numbers() - @count numbers that follow from @seed; the caller frees them. */
int32_t *ref_numbers(size_t count, uint32_t seed);

/* ref_holds() - returns whether @x holds them. */
bool ref_holds(const int32_t *x, size_t count, uint32_t seed);

/* ref_free() - frees the @count lists of numbers in @list. */
void ref_free(uint32_t count, int32_t **list);

#endif /* TESTS_PROG_COLL_REF_H */
