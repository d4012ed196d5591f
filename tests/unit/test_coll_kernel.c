/* SPDX-License-Identifier: Apache-2.0 */
/* test_coll_kernel.c - the kernels, bit for bit. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "tests/unit/kernel_want.h"

TestSuite(coll_kernel, .timeout = 60);

/* --- what is tested -------------------------------------------------------- */

/* meson.build makes them of the same source, without clones. */
void plain_reduce(const struct kernel_job *job);
void avx2_reduce(const struct kernel_job *job);

typedef void reduce_fn(const struct kernel_job *job);

static const struct version {
	const char *name;
	reduce_fn *reduce;
} versions[] = {
	{ "best", kernel_reduce },
	{ "plain", plain_reduce },
	{ "avx2", avx2_reduce },
};
#define VERSIONS (sizeof(versions) / sizeof(versions[0]))

static bool
runs_here(const struct version *version)
{
#if defined(__x86_64__)
	return version->reduce != avx2_reduce ||
		(__builtin_cpu_supports("avx2") &&
			__builtin_cpu_supports("fma"));
#else
	return version->reduce != avx2_reduce;
#endif
}

/* --- sources --------------------------------------------------------------- */

#define SOURCES 9

static uint64_t seed = 1;

/* Marsaglia, "Xorshift RNGs", 2003 */
static uint64_t
any(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* The edges of a format: zero, subnormal, one, great, infinite, NaN. */
static uint64_t
edge(const struct type *type, unsigned which)
{
	uint64_t inf = inf_of(type), last = UINT64_C(1) << type->frac;
	uint64_t one = (inf >> 1) & ~(last - 1);
	const uint64_t edges[] = { 0, 1, last - 1, last, last + 1, one, one + 1,
		inf - 1, inf, inf + 1, inf + last / 2, last / 2 };

	return edges[which % (sizeof(edges) / sizeof(edges[0]))];
}
#define EDGES 12

static void
fill_real(const struct type *type, void *to)
{
	uint64_t bits = any();

	switch (any() % 4) {
	case 0:
		bits = edge(type, (unsigned)(bits >> 8)) |
			(bits & 1) << (8 * type->size - 1);
		break;
	case 1:
		break;
	default:
		put_real(type, ((double)(bits % 4001) - 2000) / 64, to);
		return;
	}
	memcpy(to, &bits, type->size);
}

static void
fill(enum xr_dtype dtype, char *to, size_t n)
{
	const struct type *type = &types[dtype];
	uint64_t bits;

	for (size_t i = 0; i < n * type->parts; i++, to += type->size) {
		bits = dtype == XR_DT_BOOL && any() % 2 == 0 ? 0 : any();
		if (type->exp != 0)
			fill_real(type, to);
		else
			memcpy(to, &bits, type->size);
	}
}

/* Aligned as an element must be and no better; what follows is not ours. */
static char *
room(enum xr_dtype dtype, size_t n)
{
	size_t part = types[dtype].size;
	char *memory = malloc(part + n * element_size(dtype));

	cr_assert_not_null(memory);
	return memory + part;
}

static void
room_free(enum xr_dtype dtype, char *room)
{
	free(room - types[dtype].size);
}

/* --- comparing ------------------------------------------------------------- */

static const char *const op_names[] = { "?", "sum", "prod", "min", "max",
	"band", "bor", "bxor", "avg" };

static void
same(const struct kernel_job *job, const char *version, const char *right)
{
	size_t size = element_size(job->dtype);
	const char *got = job->dst;

	if (memcmp(got, right, job->n * size) == 0)
		return;
	for (size_t i = 0; i < job->n * size; i++)
		cr_assert(got[i] == right[i],
			"%s %s of %u x %zu: element %zu: byte %02x, not %02x",
			version, op_names[job->op], job->count, job->n,
			i / size, got[i] & 0xffU, right[i] & 0xffU);
}

/* All versions of the kernel, to memory of its own and over a source. */
static void
agree(const struct kernel_job *job)
{
	size_t bytes = job->n * element_size(job->dtype);
	uint32_t over = (uint32_t)(job->n % job->count);
	char *right = room(job->dtype, job->n);
	char *got = room(job->dtype, job->n);
	const void *src[SOURCES];
	struct kernel_job run = *job;

	cr_assert(job->count <= SOURCES);
	want(job, right);
	run.src = src;
	run.dst = got;
	for (unsigned i = 0; i < VERSIONS; i++) {
		if (!runs_here(&versions[i]))
			continue;
		memcpy(src, job->src, job->count * sizeof(src[0]));
		memset(got, 0x55, bytes);
		versions[i].reduce(&run);
		same(&run, versions[i].name, right);
		memcpy(got, src[over], bytes);
		src[over] = got;
		versions[i].reduce(&run);
		same(&run, versions[i].name, right);
	}
	room_free(job->dtype, right);
	room_free(job->dtype, got);
}

static void
agree_at_random(enum xr_dtype dtype, enum xr_redop op, uint32_t count, size_t n)
{
	char *src[SOURCES];
	struct kernel_job job = {
		.src = (const void *const *)src,
		.count = count,
		.n = n,
		.dtype = dtype,
		.op = op,
	};

	for (uint32_t i = 0; i < count; i++) {
		src[i] = room(dtype, n);
		fill(dtype, src[i], n);
	}
	agree(&job);
	for (uint32_t i = 0; i < count; i++)
		room_free(dtype, src[i]);
}

/* --- tests ----------------------------------------------------------------- */

/* sum, prod, min, max, band, bor, bxor, avg */
static const char *const can[] = {
	[XR_DT_BOOL] = "--+++++-",
	[XR_DT_U8] = "+++++++-",
	[XR_DT_I8] = "+++++++-",
	[XR_DT_U16] = "+++++++-",
	[XR_DT_I16] = "+++++++-",
	[XR_DT_U32] = "+++++++-",
	[XR_DT_I32] = "+++++++-",
	[XR_DT_U64] = "+++++++-",
	[XR_DT_I64] = "+++++++-",
	[XR_DT_F16] = "++++---+",
	[XR_DT_BF16] = "++++---+",
	[XR_DT_F32] = "++++---+",
	[XR_DT_F64] = "++++---+",
	[XR_DT_C64] = "++-----+",
	[XR_DT_C128] = "++-----+",
};

static bool
can_do(int dtype, int op)
{
	return dtype >= XR_DT_BOOL && dtype <= XR_DT_C128 && op >= XR_SUM &&
		op <= XR_AVG && can[dtype][op - XR_SUM] == '+';
}

typedef void pair_fn(enum xr_dtype dtype, enum xr_redop op);

static void
each_pair(pair_fn *visit)
{
	for (enum xr_dtype dtype = XR_DT_BOOL; dtype <= XR_DT_C128; dtype++)
		for (enum xr_redop op = XR_SUM; op <= XR_AVG; op++)
			if (can_do((int)dtype, (int)op))
				visit(dtype, op);
}

Test(coll_kernel, what_a_type_cannot_do_is_refused)
{
	for (int dtype = -1; dtype < 300; dtype++)
		for (int op = -1; op < 300; op++)
			cr_expect(kernel_can((enum xr_dtype)dtype,
					  (enum xr_redop)op) ==
					can_do(dtype, op),
				"dtype %d, op %d", dtype, op);
}

/* Vectors have 2 to 64 elements: just below them, as many, just beyond, with all rests of
 * the short ones. */
static const size_t sizes[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15,
	16, 17, 23, 31, 32, 33, 47, 63, 64, 65, 67 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void
agree_when_short(enum xr_dtype dtype, enum xr_redop op)
{
	for (uint32_t count = 1; count <= SOURCES; count++)
		for (size_t i = 0; i < SIZES; i++)
			agree_at_random(dtype, op, count, sizes[i]);
}

Test(coll_kernel, every_result_is_what_it_should_be)
{
	each_pair(agree_when_short);
}

/* Blocks of kernel.c have so many elements, or half as many where those are wider there. */
static size_t
block_of(enum xr_dtype dtype)
{
	return 8192 / types[dtype].size;
}

static void
agree_when_long(enum xr_dtype dtype, enum xr_redop op)
{
	size_t block = block_of(dtype);

	agree_at_random(dtype, op, 2, 2 * block + block / 2 - 1);
	agree_at_random(dtype, op, 3, block);
	agree_at_random(dtype, op, 5, block - 1);
}

Test(coll_kernel, long_arrays_are_cut_where_nobody_sees_it)
{
	each_pair(agree_when_long);
}

/* --- in steps --------------------------------------------------------------- */

/* All in one place; or each in its own. */
static void
in_places(const struct kernel_job *job, uint32_t places, char *to)
{
	enum xr_dtype wide = kernel_wide(job->dtype);
	const void *of[SOURCES];
	char *part[SOURCES];
	struct kernel_job step = *job;

	step.count = job->count / places;
	for (uint32_t i = 0; i < places; i++) {
		step.src = job->src + i * step.count;
		step.dst = part[i] = room(wide, job->n);
		of[i] = part[i];
		kernel_begin(&step);
	}
	kernel_reduce(&(struct kernel_job){ part[0], of, places, job->n, wide,
		kernel_step(job->op) });
	step.src = of;
	step.count = 1;
	step.dst = to;
	kernel_end(&step, job->count);
	for (uint32_t i = 0; i < places; i++)
		room_free(wide, part[i]);
}

static void
agree_in_steps(enum xr_dtype dtype, enum xr_redop op, uint32_t count, size_t n)
{
	char *src[SOURCES], *right = room(dtype, n), *got = room(dtype, n);
	const struct kernel_job job = { got, (const void *const *)src, count, n,
		dtype, op };

	for (uint32_t i = 0; i < count; i++) {
		src[i] = room(dtype, n);
		fill(dtype, src[i], n);
	}
	want(&job, right);
	in_places(&job, 1, got);
	same(&job, "one place", right);
	in_places(&job, count, got);
	same(&job, "a place for each", right);
	for (uint32_t i = 0; i < count; i++)
		room_free(dtype, src[i]);
	room_free(dtype, right);
	room_free(dtype, got);
}

static void
agree_in_any_steps(enum xr_dtype dtype, enum xr_redop op)
{
	for (uint32_t count = 1; count <= SOURCES; count++)
		for (size_t i = 0; i < SIZES && sizes[i] <= 33; i++)
			agree_in_steps(dtype, op, count, sizes[i]);
	agree_in_steps(dtype, op, 3, block_of(dtype));
	agree_in_steps(dtype, op, 5, block_of(dtype) - 1);
}

Test(coll_kernel, what_is_done_in_steps_is_what_is_done_at_once)
{
	each_pair(agree_in_any_steps);
}

/* --- f16 and bf16 ---------------------------------------------------------- */

#define HALVES 65536

/* @other is with each half there is, as second source. */
static void
agree_with_all(enum xr_dtype dtype, enum xr_redop op, uint16_t other)
{
	uint16_t *all = malloc(HALVES * sizeof(*all));
	uint16_t *others = malloc(HALVES * sizeof(*others));
	const void *src[] = { all, others };
	struct kernel_job job = {
		.src = src,
		.count = 2,
		.n = HALVES,
		.dtype = dtype,
		.op = op,
	};

	cr_assert(all != NULL && others != NULL);
	for (unsigned i = 0; i < HALVES; i++) {
		all[i] = (uint16_t)i;
		others[i] = other;
	}
	agree(&job);
	free(all);
	free(others);
}

Test(coll_kernel, sums_and_products_of_any_half_are_rounded_to_even)
{
	for (enum xr_dtype dtype = XR_DT_F16; dtype <= XR_DT_BF16; dtype++)
		for (unsigned i = 0; i < EDGES; i++) {
			uint16_t half = (uint16_t)edge(&types[dtype], i);

			agree_with_all(dtype, XR_SUM, half);
			agree_with_all(dtype, XR_PROD, half);
		}
}

/* Of a half and the next: the middle, which is a tie. Of one: itself. */
Test(coll_kernel, the_mean_of_neighbours_is_the_even_one)
{
	static uint16_t all[HALVES + 1];
	const void *src[] = { all, all + 1 };
	struct kernel_job job = {
		.src = src,
		.count = 2,
		.n = HALVES,
		.op = XR_AVG,
	};

	for (unsigned i = 0; i <= HALVES; i++)
		all[i] = (uint16_t)i;
	for (job.dtype = XR_DT_F16; job.dtype <= XR_DT_BF16; job.dtype++) {
		job.count = 2;
		agree(&job);
		job.count = 1;
		agree(&job);
	}
}

/* By every version: @a op @b op @c gives @right, of halves. */
static void
three_halves(enum xr_dtype dtype, const uint16_t source[3], uint16_t right)
{
	const void *src[] = { &source[0], &source[1], &source[2] };
	uint16_t got = 0;
	struct kernel_job job = {
		.dst = &got,
		.src = src,
		.count = 3,
		.n = 1,
		.dtype = dtype,
		.op = XR_SUM,
	};

	for (unsigned i = 0; i < VERSIONS; i++) {
		if (!runs_here(&versions[i]))
			continue;
		versions[i].reduce(&job);
		cr_expect(got == right, "%s: %#x + %#x + %#x is %#x, not %#x",
			versions[i].name, source[0], source[1], source[2], got,
			right);
	}
}

Test(coll_kernel, halves_are_rounded_once)
{
	/* 2048 + 1 + 1; 65504 + 8 + 8, halfway to what is not finite any more;
	 * 65504 + 8 + 7; 2^-24 + 2^-24 - 2^-24; 1 + 2^-11, and 2^-20 more */
	three_halves(XR_DT_F16, (uint16_t[]){ 0x6800, 0x3c00, 0x3c00 }, 0x6801);
	three_halves(XR_DT_F16, (uint16_t[]){ 0x7bff, 0x4800, 0x4800 }, 0x7c00);
	three_halves(XR_DT_F16, (uint16_t[]){ 0x7bff, 0x4800, 0x4700 }, 0x7bff);
	three_halves(XR_DT_F16, (uint16_t[]){ 0x0001, 0x0001, 0x8001 }, 0x0001);
	three_halves(XR_DT_F16, (uint16_t[]){ 0x3c00, 0x1000, 0x0000 }, 0x3c00);
	three_halves(XR_DT_F16, (uint16_t[]){ 0x3c00, 0x1000, 0x0010 }, 0x3c01);
	/* 256 + 1 + 1; the greatest and half of its last bit; NaN; -0 */
	three_halves(XR_DT_BF16, (uint16_t[]){ 0x4380, 0x3f80, 0x3f80 },
		0x4381);
	three_halves(XR_DT_BF16, (uint16_t[]){ 0x7f7f, 0x7b00, 0x0000 },
		0x7f80);
	three_halves(XR_DT_BF16, (uint16_t[]){ 0xff81, 0x3f80, 0x3f80 },
		0x7fc0);
	three_halves(XR_DT_BF16, (uint16_t[]){ 0x8000, 0x8000, 0x8000 },
		0x8000);
}

/* --- numbers that are none, and states of the thread ------------------------- */

/* By every version: @x op @y gives the bits of @right, in any order. */
static void
pair(enum xr_redop op, float x, float y, uint32_t right)
{
	const void *src[] = { &x, &y };
	uint32_t got = 0;
	struct kernel_job job = {
		.dst = &got,
		.src = src,
		.count = 2,
		.n = 1,
		.dtype = XR_DT_F32,
		.op = op,
	};

	for (unsigned i = 0; i < 2 * VERSIONS; i++) {
		const struct version *version = &versions[i / 2];

		src[i % 2] = &x;
		src[!(i % 2)] = &y;
		if (!runs_here(version))
			continue;
		version->reduce(&job);
		cr_expect(got == right, "%s %s of %a and %a is %#x, not %#x",
			version->name, op_names[op], (double)x, (double)y, got,
			right);
	}
}

Test(coll_kernel, there_is_one_nan_and_minus_zero_is_less)
{
	static const enum xr_redop ops[] = { XR_SUM, XR_PROD, XR_MIN, XR_MAX,
		XR_AVG };

	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		pair(ops[i], -NAN, 1, 0x7fc00000);
		pair(ops[i], __builtin_nansf("0x1234"), 1, 0x7fc00000);
		pair(ops[i], -NAN, INFINITY, 0x7fc00000);
	}
	pair(XR_SUM, INFINITY, -INFINITY, 0x7fc00000);
	pair(XR_PROD, INFINITY, 0, 0x7fc00000);
	pair(XR_MIN, -0.0F, 0.0F, 0x80000000);
	pair(XR_MAX, -0.0F, 0.0F, 0x00000000);
	pair(XR_MAX, -0.0F, -0.0F, 0x80000000);
	pair(XR_MIN, -INFINITY, 0, 0xff800000);
}

Test(coll_kernel, what_is_infinite_stays_so_in_a_product)
{
	const float x[2] = { INFINITY, NAN }, y[2] = { 3, -2 };
	const void *src[] = { x, y };
	float got[2] = { 0 };
	struct kernel_job job = {
		.dst = got,
		.src = src,
		.count = 2,
		.n = 1,
		.dtype = XR_DT_C64,
		.op = XR_PROD,
	};

	kernel_reduce(&job);
	cr_expect(isinf(got[0]) && isinf(got[1]));
}

#if defined(__x86_64__)
/* FTZ, DAZ, rounds up, traps what is inexact: no number may show it. */
#define CSR_ODD    0xcfc0U
#define CSR_STICKY 0x003fU

static void
reduce_oddly(const struct kernel_job *job)
{
	unsigned was = _mm_getcsr(), left;

	_mm_setcsr(CSR_ODD);
	kernel_reduce(job);
	left = _mm_getcsr();
	_mm_setcsr(was);
	cr_expect((left & ~CSR_STICKY) == CSR_ODD);
}

static void
agree_oddly(enum xr_dtype dtype, enum xr_redop op)
{
	char *src[] = { room(dtype, 999), room(dtype, 999) };
	char *right = room(dtype, 999), *got = room(dtype, 999);
	struct kernel_job job = {
		.dst = got,
		.src = (const void *const *)src,
		.count = 2,
		.n = 999,
		.dtype = dtype,
		.op = op,
	};

	fill(dtype, src[0], job.n);
	fill(dtype, src[1], job.n);
	want(&job, right);
	reduce_oddly(&job);
	same(&job, "oddly", right);
	room_free(dtype, src[0]);
	room_free(dtype, src[1]);
	room_free(dtype, right);
	room_free(dtype, got);
}

Test(coll_kernel, the_state_of_the_thread_is_nothing_to_it)
{
	each_pair(agree_oddly);
}
#endif
