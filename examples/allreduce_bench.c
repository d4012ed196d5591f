/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allreduce_bench.c - how long ranks take to sum what they have.
 *
 *   xrun -n 4 ./allreduce_bench [--type f32|bf16] [--most BYTES]
 *
 * Of each size the median of some sums, with other numbers each time; and what of it
 * went over the bus, as nccl-tests count it: 2 (n - 1) / n of the bytes, a second.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <xrun/coll.h>

#define SUMS 21 /* of each size */

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int
by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* 1 or 2 as an element of @type. */
static void
fill(void *data, size_t count, enum xr_dtype type, int number)
{
	const float f = (float)number;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	for (size_t i = 0; i < count; i++) {
		if (type == XR_DT_F32)
			((float *)data)[i] = f;
		else
			((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
	}
}

static enum xr_status
measure(struct xr_coll *coll, enum xr_dtype type, size_t bytes,
	struct xr_error *err)
{
	struct xr_coll_op op = { .size = sizeof(op),
		.dtype = type,
		.data = calloc(1, bytes),
		.count = bytes / xr_dtype_size(type),
		.op = XR_SUM };
	double took[SUMS], n = xr_coll_size(coll);
	enum xr_status status = XR_OK;

	if (op.data == NULL)
		return xr_error_set(err, XR_E_NOMEM, "no memory");
	for (int i = 0; i < SUMS && status == XR_OK; i++) {
		fill(op.data, op.count, type, 1 + i % 2);
		took[i] = -seconds();
		status = xr_coll_allreduce(coll, &op, err);
		took[i] += seconds();
	}
	free(op.data);
	if (status != XR_OK)
		return status;
	qsort(took, SUMS, sizeof(took[0]), by_time);
	if (xr_rank() == 0)
		printf("%10zu %12.2f %10.2f\n", bytes, took[SUMS / 2] * 1e6,
			2 * (n - 1) / n * (double)bytes / took[SUMS / 2] / 1e9);
	return XR_OK;
}

static enum xr_status
measure_all(struct xr_world *world, enum xr_dtype type, size_t most,
	struct xr_error *err)
{
	struct xr_coll *coll = NULL;
	enum xr_status status = xr_coll_new(world, NULL, &coll, err);

	if (status == XR_OK && xr_rank() == 0)
		printf("%10s %12s %10s\n", "bytes", "us", "GB/s");
	for (size_t bytes = 8; bytes <= most && status == XR_OK; bytes *= 8)
		status = measure(coll, type, bytes, err);
	xr_coll_free(coll);
	return status;
}

int
main(int argc, char **argv)
{
	enum xr_dtype type = XR_DT_F32;
	struct xr_world *world = NULL;
	struct xr_error err = { 0 };
	size_t most = 16 << 20;

	if (getenv("XRUN_RANK") == NULL && getenv("RANK") == NULL) {
		fprintf(stderr, "%s needs several ranks; run: xrun -n 4 %s\n",
			argv[0], argv[0]);
		return 2;
	}
	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--most") == 0)
			most = strtoul(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i + 1], "bf16") == 0)
			type = XR_DT_BF16;
	}
	if (xr_world_new(NULL, &world, &err) == XR_OK) {
		measure_all(world, type, most, &err);
		xr_world_close(world, XR_SHUTDOWN_GRACEFUL, XR_SECONDS(30),
			NULL);
		xr_world_free(world);
	}
	if (err.status != XR_OK)
		fprintf(stderr, "%s: %s\n", xr_status_name(err.status),
			err.text);
	return err.status != XR_OK;
}
