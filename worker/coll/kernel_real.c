/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_real.c - kernels of f32 and f64, and of products of c64 and c128. */
#include "worker/coll/kernel_inner.h"
#include "worker/coll/kernel_real.h"

#define FIRST     XR_DT_F32
#define LAST      XR_DT_C128
#define AT(dtype) ((dtype) - FIRST)

/* One NaN after each step, though the last would do: a step is bound by memory. */
#define SUM_F32(x, y)  kernel_quiet_f32((x) + (y))
#define SUM_F64(x, y)  kernel_quiet_f64((x) + (y))
#define PROD_F32(x, y) kernel_quiet_f32((x) * (y))
#define PROD_F64(x, y) kernel_quiet_f64((x) * (y))
#define MIN_F32(x, y)  kernel_quiet_f32(kernel_min_f32(x, y))
#define MIN_F64(x, y)  kernel_quiet_f64(kernel_min_f64(x, y))
#define MAX_F32(x, y)  kernel_quiet_f32(kernel_max_f32(x, y))
#define MAX_F64(x, y)  kernel_quiet_f64(kernel_max_f64(x, y))

#define CLOSE(name, real, quiet) \
	static KERNEL_CLONES void name(void *to, const void *from, size_t n, \
		uint32_t parts) \
	{ \
		real *z = to, factor = (real)1 / (real)parts; \
		const real *x = from; \
\
		KERNEL_EACH \
		for (size_t i = 0; i < n; i++) \
			z[i] = quiet(x[i] * factor); \
	}

/* The compiler multiplies as annex G says: two sums of products, and a function
 * for the rare case that no part of the result is a number. That ends the loop
 * over vectors, hence no clones. */
#define COMPLEX_PROD(name, real, quiet) \
	static void name(void *to, const void *a, const void *b, size_t n) \
	{ \
		real _Complex *z = to; \
		const real _Complex *x = a, *y = b; \
\
		for (size_t i = 0; i < n; i++) { \
			real _Complex product = x[i] * y[i]; \
\
			__real__ z[i] = quiet(__real__ product); \
			__imag__ z[i] = quiet(__imag__ product); \
		} \
	}

/* clang-format off: a line of its own for each, without semicolon */
KERNEL_FOLD(sum_f32, float, float, float, SUM_F32)
KERNEL_FOLD(prod_f32, float, float, float, PROD_F32)
KERNEL_FOLD(min_f32, float, float, float, MIN_F32)
KERNEL_FOLD(max_f32, float, float, float, MAX_F32)
KERNEL_FOLD(sum_f64, double, double, double, SUM_F64)
KERNEL_FOLD(prod_f64, double, double, double, PROD_F64)
KERNEL_FOLD(min_f64, double, double, double, MIN_F64)
KERNEL_FOLD(max_f64, double, double, double, MAX_F64)
CLOSE(close_f32, float, kernel_quiet_f32)
CLOSE(close_f64, double, kernel_quiet_f64)
COMPLEX_PROD(prod_c64, float, kernel_quiet_f32)
COMPLEX_PROD(prod_c128, double, kernel_quiet_f64)
/* clang-format on */

#define ROWS(name) \
	[AT(XR_DT_F32)] = KERNEL_ROW(name##_f32, float), \
	[AT(XR_DT_F64)] = KERNEL_ROW(name##_f64, double)

#define AVG_ROW(name, type) \
	{ \
		.fold = sum_##name, \
		.close = close_##name, \
		.size = sizeof(type), \
		.wide = sizeof(type), \
	}

static const struct kernel_row rows[KERNEL_OPS][AT(LAST) + 1] = {
	[XR_SUM] = { ROWS(sum) },
	[XR_PROD] = { ROWS(prod),
		[AT(XR_DT_C64)] = KERNEL_ROW(prod_c64, float _Complex),
		[AT(XR_DT_C128)] = KERNEL_ROW(prod_c128, double _Complex) },
	[XR_MIN] = { ROWS(min) },
	[XR_MAX] = { ROWS(max) },
	[XR_AVG] = { [AT(XR_DT_F32)] = AVG_ROW(f32, float),
		[AT(XR_DT_F64)] = AVG_ROW(f64, double) },
};

const struct kernel_row *
kernel_real_row(enum xr_dtype dtype, enum xr_redop op)
{
	const struct kernel_range range = { FIRST, LAST };

	return kernel_row_in(rows[0], range, dtype, op);
}
