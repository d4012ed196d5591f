/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_map.c - pi, by darts that are thrown at a square by all processors: a pool of
 * processes, and results as they come.
 *
 *   pool_map [DARTS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <xrun/func.h>
#include <xrun/pool.h>
#include <xrun/proc.h>

#define PARTS 64

/* The same numbers each time, and other ones for each part: xorshift64*, Vigna 2016. */
static double
next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (double)((*state * UINT64_C(2685821657736338717)) >> 11) /
		(double)(UINT64_C(1) << 53);
}

/* How many of so many darts hit the circle. */
static enum xr_status
throw_darts(struct xr_call *call, struct xr_value *args, void *ctx)
{
	uint64_t part = 0, darts = 0, hits = 0, state;

	(void)ctx;
	xr_value_get_u64(xr_value_at(xr_value_at(args, 0), 0), &part);
	xr_value_get_u64(xr_value_at(xr_value_at(args, 0), 1), &darts);
	state = (part + 1) * UINT64_C(0x9e3779b97f4a7c15);
	for (uint64_t i = 0; i < darts; i++) {
		double x = next(&state), y = next(&state);

		hits += x * x + y * y < 1;
	}
	return xr_reply(call, xr_value_new_u64(hits));
}

static struct xr_value *
parts_of(uint64_t darts)
{
	struct xr_value *parts = xr_value_new_list();

	for (uint64_t i = 0; i < PARTS; i++) {
		struct xr_value *pair[2] = { xr_value_new_u64(i),
			xr_value_new_u64(darts / PARTS) };

		xr_value_append(parts, xr_value_new_list_of(pair, 2));
	}
	return parts;
}

static int
refuse(const struct xr_error *err)
{
	fprintf(stderr, "pool_map: %s\n", err->text);
	return 1;
}

/* XR_E_END: all are there. */
static enum xr_status
add_up(struct xr_pool_iter *iter, uint64_t *hits, struct xr_error *err)
{
	struct xr_value *value;
	enum xr_status status;
	uint64_t some = 0;
	int done = 0;

	while ((status = xr_pool_iter_next(iter, XR_TIMEOUT_NEVER, &value,
			err)) == XR_OK) {
		xr_value_get_u64(value, &some);
		xr_value_unref(value);
		*hits += some;
		done++;
		if (isatty(STDERR_FILENO))
			fprintf(stderr, "\r%3d %%", 100 * done / PARTS);
	}
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r     \r");
	return status;
}

int
main(int argc, char **argv)
{
	const struct xr_func func = {
		.size = sizeof(func),
		.name = "throw_darts",
		.schema = "L",
		.fn = throw_darts,
	};
	uint64_t darts = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000000;
	struct xr_pool_task task = { .size = sizeof(task),
		.name = "throw_darts" };
	struct xr_error err = { 0 };
	struct xr_pool *pool = NULL;
	struct xr_pool_iter *iter;
	uint64_t hits = 0;
	double pi;

	if (xr_fn_register(&func, &err) != XR_OK || xr_init(&err) != XR_OK ||
		xr_pool_new(NULL, &pool, &err) != XR_OK)
		return refuse(&err);
	task.args = parts_of(darts);
	if (xr_pool_imap_unordered(pool, &task, &iter, &err) != XR_OK)
		return refuse(&err);
	if (add_up(iter, &hits, &err) != XR_E_END)
		return refuse(&err);
	pi = 4.0 * (double)hits / (double)(darts / PARTS * PARTS);
	printf("pi is about %.4f, by %u workers\n", pi, xr_pool_size(pool));
	xr_pool_iter_free(iter);
	xr_value_unref(task.args);
	xr_pool_free(pool);
	return pi > 3.13 && pi < 3.15 ? 0 : 1;
}
