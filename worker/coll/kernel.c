/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.c - see kernel.h.
 *
 * Arrays are gone through in blocks: all sources of a block are combined in a
 * small array on the stack before the next block is looked at. So each source is
 * read from memory once, the result is written once, and not before all sources
 * of its block were read, of which it may be one.
 */
#include <string.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "worker/coll/kernel.h"
#include "worker/coll/kernel_inner.h"

/* A quarter of the smallest level-1 caches, which hold 32 KiB: there is room for
 * as much of a source, and for what the CPU fetches ahead. */
#define BLOCK 8192

/* As each kernel sees it. */
union block {
	uint8_t u8[BLOCK];
	uint16_t u16[BLOCK / 2];
	uint32_t u32[BLOCK / 4];
	uint64_t u64[BLOCK / 8];
	float f32[BLOCK / 4];
	double f64[BLOCK / 8];
};

/*
 * Round to nearest, subnormals are numbers, nothing traps; else the same numbers
 * gave other bits in a process that asked for speed (-ffast-math sets FTZ and
 * DAZ for all of it).
 */
#if defined(__x86_64__)
#define CSR_STICKY 0x003fU /* Intel SDM, volume 1, 10.2.3: what happened */
#define CSR_PLAIN  0x1f80U /* as it is when a process begins */

static unsigned
arithmetic_plain(void)
{
	unsigned was = _mm_getcsr();

	if ((was & ~CSR_STICKY) != CSR_PLAIN)
		_mm_setcsr(CSR_PLAIN);
	return was;
}

static void
arithmetic_back(unsigned was)
{
	if ((was & ~CSR_STICKY) != CSR_PLAIN)
		_mm_setcsr(was);
}
#else
static unsigned
arithmetic_plain(void)
{
	return 0;
}

static void
arithmetic_back(unsigned was)
{
	(void)was;
}
#endif

static bool
is_complex(enum xr_dtype dtype)
{
	return dtype == XR_DT_C64 || dtype == XR_DT_C128;
}

/* Of what real and imaginary parts are. */
static enum xr_dtype
part_of(enum xr_dtype dtype)
{
	return dtype == XR_DT_C64 ? XR_DT_F32 : XR_DT_F64;
}

static const struct kernel_row *
row_of(enum xr_dtype dtype, enum xr_redop op)
{
	const struct kernel_row *row = kernel_int_row(dtype, op);

	if (row == NULL)
		row = kernel_real_row(dtype, op);
	return row != NULL ? row : kernel_half_row(dtype, op);
}

static bool
is_by_parts(enum xr_dtype dtype, enum xr_redop op)
{
	return is_complex(dtype) && (op == XR_SUM || op == XR_AVG);
}

bool
kernel_can(enum xr_dtype dtype, enum xr_redop op)
{
	return row_of(is_by_parts(dtype, op) ? part_of(dtype) : dtype, op) !=
		NULL;
}

static const void *
source(const struct kernel_job *job, uint32_t i, size_t offset)
{
	return (const char *)job->src[i] + offset;
}

/* @n elements from the @at-th on. Only the last step writes to the destination. */
static void
reduce_block(const struct kernel_job *job, const struct kernel_row *row,
	size_t at, size_t n)
{
	size_t offset = at * row->size;
	void *dst = (char *)job->dst + offset;
	uint32_t last = job->count - 1;
	union block block;

	for (uint32_t i = 1; i <= last; i++) {
		bool ends = i == last && row->close == NULL;
		kernel_fold_fn *fold = row->fold;

		if (i > 1 && row->more != NULL)
			fold = row->more;
		fold(ends ? dst : &block,
			i > 1 ? &block : source(job, 0, offset),
			source(job, i, offset), n);
	}
	if (row->close != NULL)
		row->close(dst, &block, n, job->op == XR_AVG ? job->count : 1);
}

static void
reduce(const struct kernel_job *job)
{
	const struct kernel_row *row = row_of(job->dtype, job->op);
	size_t most = BLOCK / row->wide;

	/* Nothing is put aside. */
	if (job->count == 2 && row->close == NULL)
		most = job->n;
	for (size_t at = 0; at < job->n; at += most)
		reduce_block(job, row, at,
			job->n - at < most ? job->n - at : most);
}

/* One source is the least of it and itself, whatever the operation is: the same
 * numbers, each NaN the one, and each true 1. */
void
kernel_reduce(const struct kernel_job *job)
{
	struct kernel_job plain = *job;
	const void *twice[2] = { job->src[0], job->src[0] };
	unsigned was;

	if (is_by_parts(job->dtype, job->op) ||
		(is_complex(job->dtype) && job->count == 1)) {
		plain.dtype = part_of(job->dtype);
		plain.n = 2 * job->n;
	}
	if (job->count == 1) {
		plain.src = twice;
		plain.count = 2;
		plain.op = XR_MIN;
	}
	was = arithmetic_plain();
	reduce(&plain);
	arithmetic_back(was);
}

/* --- in steps ------------------------------------------------------------------ */

enum xr_dtype
kernel_wide(enum xr_dtype dtype)
{
	return dtype == XR_DT_F16 || dtype == XR_DT_BF16 ? XR_DT_F32 : dtype;
}

enum xr_redop
kernel_step(enum xr_redop op)
{
	return op == XR_AVG ? XR_SUM : op;
}

/* @n elements from the @at-th on, into wider ones. */
static void
widen_block(const struct kernel_job *job, const struct kernel_row *row,
	size_t at, size_t n)
{
	void *dst = (char *)job->dst + at * row->wide;
	size_t offset = at * row->size;

	row->fold(dst, source(job, 0, offset), source(job, 1, offset), n);
	for (uint32_t i = 2; i < job->count; i++)
		row->more(dst, dst, source(job, i, offset), n);
}

static void
widen(const struct kernel_job *job)
{
	const struct kernel_row *row = row_of(job->dtype, job->op);
	size_t most = BLOCK / row->wide;
	unsigned was = arithmetic_plain();

	for (size_t at = 0; at < job->n; at += most)
		widen_block(job, row, at,
			job->n - at < most ? job->n - at : most);
	arithmetic_back(was);
}

void
kernel_begin(const struct kernel_job *job)
{
	const void *twice[2] = { job->src[0], job->src[0] };
	struct kernel_job step = *job;

	step.op = kernel_step(job->op);
	if (kernel_wide(job->dtype) == job->dtype) {
		kernel_reduce(&step);
		return;
	}
	if (job->count == 1) {
		step.src = twice;
		step.count = 2;
		step.op = XR_MIN;
	}
	widen(&step);
}

void
kernel_end(const struct kernel_job *job, uint32_t parts)
{
	bool by_parts = is_by_parts(job->dtype, job->op);
	const struct kernel_row *row =
		row_of(by_parts ? part_of(job->dtype) : job->dtype, job->op);
	size_t n = by_parts ? 2 * job->n : job->n;
	unsigned was;

	if (row->close == NULL) {
		if (n > 0 && job->dst != job->src[0])
			memcpy(job->dst, job->src[0], n * row->size);
		return;
	}
	was = arithmetic_plain();
	row->close(job->dst, job->src[0], n, job->op == XR_AVG ? parts : 1);
	arithmetic_back(was);
}
