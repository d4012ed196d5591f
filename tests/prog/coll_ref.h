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

/* ref_fill() - @count elements that rank @rank has, the same at each call. */
void ref_fill(void *data, size_t count, enum xr_dtype dtype, uint32_t rank);

/* ref_reduce() - those of ranks 0 to @ranks - 1, combined in this order. */
void ref_reduce(void *data, size_t count, enum xr_dtype dtype, enum xr_redop op,
	uint32_t ranks);

/* ref_can() - is there such a reduction? */
bool ref_can(enum xr_dtype dtype, enum xr_redop op);

#endif /* TESTS_PROG_COLL_REF_H */
