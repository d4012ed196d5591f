/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_want.h - what worker/coll/kernel.h promises, worked out number by number
 * and without a thought to speed.
 */
#ifndef TESTS_UNIT_KERNEL_WANT_H
#define TESTS_UNIT_KERNEL_WANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/coll/kernel.h"

struct type {
	const char *name;
	size_t size;    /* bytes of a part */
	unsigned parts; /* 2: complex */
	unsigned exp;   /* bits of the exponent; 0: not a real */
	unsigned frac;  /* bits below it */
	bool sign;
};

extern const struct type types[XR_DT_C128 + 1]; /* by enum xr_dtype */

/* inf_of() - the bits of infinity. */
uint64_t inf_of(const struct type *type);

/* put_real() - the nearest number of @type, to memory. */
void put_real(const struct type *type, double number, void *to);

size_t element_size(enum xr_dtype dtype);

/* want() - the result of @job, to @to. */
void want(const struct kernel_job *job, char *to);

#endif /* TESTS_UNIT_KERNEL_WANT_H */
