/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.h - many arrays of numbers into one, element by element.
 *
 * The result depends on the numbers and their order, and on nothing else: not on
 * the instructions that the CPU has, not on where the arrays lie or how they are
 * cut, not on the floating-point state of the calling thread. So members that
 * compute the same get the same bits. For that,
 *
 *   - sources are combined in order, (src[0] op src[1]) op src[2] and so on, and
 *     f32, f64, c64 and c128 are rounded after each step;
 *   - f16 and bf16 are combined as f32, over all sources, and rounded to nearest,
 *     ties to even, once;
 *   - what is no number is the one quiet NaN: 0x7e00 of f16, 0x7fc0 of bf16,
 *     0x7fc00000 of f32, 0x7ff8000000000000 of f64;
 *   - the least and the greatest of a NaN and anything is NaN, and -0 is less
 *     than +0;
 *   - integers wrap.
 *
 * Any byte but 0 is true in a BOOL; results are 0 or 1. Products of complex
 * numbers are those of C11, annex G: the infinite stay so.
 *
 * Nothing here waits, allocates or fails; any thread may call it.
 */
#ifndef WORKER_COLL_KERNEL_H
#define WORKER_COLL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xrun/coll.h>

/*
 * kernel_can() - is there @op of @dtype?
 *
 *            SUM  PROD  MIN MAX  BAND BOR BXOR  AVG
 * BOOL        no    no      yes            yes   no
 * integers   yes   yes      yes            yes   no
 * floats     yes   yes      yes             no  yes
 * complex    yes   yes       no             no  yes
 *
 * Either may be any number: what is no type or no operation, there is not.
 */
bool kernel_can(enum xr_dtype dtype, enum xr_redop op);

struct kernel_job {
	void *dst;              /* may be one of @src; else overlaps none */
	const void *const *src; /* @count arrays of @n elements */
	uint32_t count;         /* 1 or more */
	size_t n;               /* elements; 0 is allowed */
	enum xr_dtype dtype; /* of all arrays, each aligned as an element of */
	enum xr_redop op;    /* it is; kernel_can() */
};

/* kernel_reduce() - @dst[i] = @src[0][i] @op @src[1][i] @op ... */
void kernel_reduce(const struct kernel_job *job);

/*
 * Of arrays that lie in several places each place combines its own by
 * kernel_begin(); what that gave is combined by kernel_reduce(), as numbers of
 * kernel_wide() and by kernel_step(); and kernel_end() makes the result of it. So
 * halves are f32 until then, and an average is divided once.
 *
 * kernel_wide() - F32 of halves, else the same. kernel_step() - SUM of AVG, else
 * the same.
 *
 * kernel_begin() - as kernel_reduce(), but @dst is of kernel_wide(), and is none of
 * @src where that is another type.
 *
 * kernel_end() - @src[0], of kernel_wide(), as @dst; of @parts sources in all. They
 * may be the same where their types are.
 */
enum xr_dtype kernel_wide(enum xr_dtype dtype);
enum xr_redop kernel_step(enum xr_redop op);
void kernel_begin(const struct kernel_job *job);
void kernel_end(const struct kernel_job *job, uint32_t parts);

#endif /* WORKER_COLL_KERNEL_H */
