/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meet.c - ranks that know nothing of each other meet at the store: each leaves
 * word of itself, and reads that of all others.
 *
 *   xrun -n 4 build/examples/meet
 *
 * Without xrun, RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT specify the store. It is
 * a file if MASTER_ADDR is localhost, and otherwise a server in rank 0.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/spawn.h>
#include <xrun/store.h>

/* Where rank 0 serves the store itself it leaves last. */
static enum xr_status
leave(struct xr_store *store, struct xr_error *err)
{
	const char *all = "all have read";
	int64_t others = xr_store_size(store) - 1, gone = 0;
	enum xr_status status;

	if (others == 0)
		return XR_OK;
	if (xr_store_rank(store) == 0)
		return xr_store_wait(store, &all, 1, XR_TIMEOUT_DEFAULT, err);
	status = xr_store_add(store, "have read", 1, &gone, err);
	if (status == XR_OK && gone == others)
		status = xr_store_set(store, all, "", 0, err);
	return status;
}

static enum xr_status
meet(struct xr_store *store, struct xr_error *err)
{
	int64_t size = xr_store_size(store), rank = xr_store_rank(store);
	struct xr_store_value word = { 0 };
	enum xr_status status;
	char key[32], text[64];

	snprintf(key, sizeof(key), "word/%" PRId64, rank);
	snprintf(text, sizeof(text), "rank %" PRId64 " is here", rank);
	status = xr_store_set(store, key, text, strlen(text), err);
	for (int64_t r = 0; r < size && status == XR_OK; r++) {
		snprintf(key, sizeof(key), "word/%" PRId64, r);
		status = xr_store_get(store, key, XR_TIMEOUT_DEFAULT, &word,
			err);
		if (status == XR_OK && r == (rank + 1) % size)
			printf("rank %" PRId64 " of %" PRId64 " reads: %s\n",
				rank, size, (char *)word.data);
		xr_store_value_free(&word);
	}
	return status == XR_OK ? leave(store, err) : status;
}

static enum xr_status
body(uint32_t ordinal, void *ctx, struct xr_error *err)
{
	struct xr_store_options options = XR_STORE_OPTIONS;
	struct xr_store *store = NULL;
	enum xr_status status;

	(void)ordinal;
	(void)ctx;
	options.prefix = "meet";
	status = xr_store_open("env://", &options, &store, err);
	if (status != XR_OK)
		return status;
	status = meet(store, err);
	xr_store_free(store);
	return status;
}

int
main(int argc, char **argv)
{
	if (getenv("XRUN_RANK") == NULL && getenv("RANK") == NULL) {
		fprintf(stderr, "%s needs several ranks; run: xrun -n 4 %s\n",
			argv[0], argv[0]);
		return 2;
	}
	return xr_main(body, NULL);
}
