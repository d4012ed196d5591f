/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_inner.h - what the kernels of all types share: the loop, and the row of
 * functions for an operation on a type.
 */
#ifndef WORKER_COLL_KERNEL_INNER_H
#define WORKER_COLL_KERNEL_INNER_H

#include "worker/coll/kernel.h"

/*
 * A function is compiled once for each of these instruction sets, and the dynamic
 * linker takes the best that the CPU has. It does so before a sanitizer is ready,
 * and by what only glibc and gcc have, the last set since gcc 12; meson.build and
 * the tests say that there is one version only by defining it as nothing.
 *
 * avx512f alone would not do as the last: it has nothing for 16 bits, which halves
 * the speed of f16 and bf16.
 */
#ifndef KERNEL_CLONES
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && \
	__GNUC__ >= 12
#define KERNEL_CLONES \
	__attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define KERNEL_CLONES
#endif
#endif

/* An element is written after those in its place were read, and nobody else reads
 * it: the compiler need not ask whether arrays overlap, and then take the slow
 * way for one that is source and destination. */
#ifdef __clang__
#define KERNEL_EACH _Pragma("clang loop vectorize(assume_safety)")
#else
#define KERNEL_EACH _Pragma("GCC ivdep")
#endif

/* to[i] = a[i] op b[i] */
typedef void kernel_fold_fn(void *to, const void *a, const void *b, size_t n);

/* to[i] = from[i] / parts, in the form of the type; a quotient is a product with
 * 1 / parts. */
typedef void kernel_close_fn(void *to, const void *from, size_t n,
	uint32_t parts);

/*
 * KERNEL_FOLD() - a fold: elements of type @out from those of @left and @right, by
 * @op, a function or macro of an element of each.
 */
#define KERNEL_FOLD(name, out, left, right, op) \
	static KERNEL_CLONES void name(void *to, const void *a, const void *b, \
		size_t n) \
	{ \
		out *z = to; \
		const left *x = a; \
		const right *y = b; \
\
		KERNEL_EACH \
		for (size_t i = 0; i < n; i++) \
			z[i] = (out)op(x[i], y[i]); \
	}

/*
 * How an operation on a type is done. The result of the first two sources, and
 * what is added to it, may be of a wider type than the sources are.
 */
struct kernel_row {
	kernel_fold_fn *fold;   /* wide = source op source */
	kernel_fold_fn *more;   /* wide = wide op source; NULL: as @fold */
	kernel_close_fn *close; /* source's type = wide; NULL: it is that */
	uint8_t size;           /* bytes of a source's element */
	uint8_t wide;           /* bytes of a wide one */
};

/* KERNEL_ROW() - of a type that is its own wide one. */
#define KERNEL_ROW(function, type) \
	{ \
		.fold = function, \
		.size = sizeof(type), \
		.wide = sizeof(type), \
	}

/*
 * Rows by type; NULL: there is none. Of complex types they are for what is not
 * done to real and imaginary parts alone.
 */
const struct kernel_row *kernel_int_row(enum xr_dtype dtype, enum xr_redop op);
const struct kernel_row *kernel_real_row(enum xr_dtype dtype, enum xr_redop op);
const struct kernel_row *kernel_half_row(enum xr_dtype dtype, enum xr_redop op);

#define KERNEL_OPS (XR_AVG + 1)

/* What of the types is in a table, which has a row for each operation and each of
 * them: the linker writes to it when a process begins, page by page. */
struct kernel_range {
	enum xr_dtype first, last;
};

/* kernel_row_in() - of the table that begins at @rows. */
static inline const struct kernel_row *
kernel_row_in(const struct kernel_row *rows, struct kernel_range range,
	enum xr_dtype dtype, enum xr_redop op)
{
	if (dtype < range.first || dtype > range.last ||
		(unsigned)op >= KERNEL_OPS)
		return NULL;
	rows += (unsigned)op * (range.last - range.first + 1);
	rows += dtype - range.first;
	return rows->fold != NULL ? rows : NULL;
}

#endif /* WORKER_COLL_KERNEL_INNER_H */
