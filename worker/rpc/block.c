/* SPDX-License-Identifier: Apache-2.0 */
/* block.c - see block.h and xrun/rpc.h. They nest: each has its own. */
#include <stdbool.h>
#include <stdlib.h>

#include <xrun/rpc.h>

#include "base/status.h"
#include "base/timeout.h"
#include "worker/rpc/block.h"
#include "worker/rpc/future.h"

struct block {
	struct block *outer;
	struct xr_future **futures; /* [count], references */
	size_t count, cap;
	bool incomplete; /* there was no memory for one */
};

static __thread struct block *innermost;

void
block_add(struct xr_future *future)
{
	struct block *b = innermost;
	struct xr_future **more;

	if (b == NULL)
		return;
	if (b->count == b->cap) {
		more = reallocarray(b->futures, b->cap == 0 ? 16 : 2 * b->cap,
			sizeof(*more));
		if (more == NULL) {
			b->incomplete = true;
			return;
		}
		b->futures = more;
		b->cap = b->cap == 0 ? 16 : 2 * b->cap;
	}
	b->futures[b->count++] = xr_future_ref(future);
}

XR_EXPORT enum xr_status
xr_rpc_wait_begin(struct xr_error *err)
{
	struct block *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	b->outer = innermost;
	innermost = b;
	return XR_OK;
}

/* All of them, whatever becomes of one; the first error is told. */
static enum xr_status
wait_for_all(const struct block *b, int64_t deadline, struct xr_error *err)
{
	enum xr_status first = XR_OK, status;
	struct xr_error why;
	int64_t left;

	for (size_t i = 0; i < b->count; i++) {
		left = future_left(deadline);
		why = (struct xr_error){ 0 };
		status = xr_future_wait(b->futures[i], left, NULL, &why);
		if (status == XR_OK || first != XR_OK)
			continue;
		first = status;
		if (err != NULL)
			*err = why;
	}
	return first;
}

XR_EXPORT enum xr_status
xr_rpc_wait_end(int64_t timeout, struct xr_error *err)
{
	struct block *b = innermost;
	enum xr_status status = XR_OK;
	int64_t deadline;

	if (b == NULL)
		return fail(err, XR_E_STATE, "xr_rpc_wait_begin() comes first");
	innermost = b->outer;
	status = timeout_argument(&timeout, XR_TIMEOUT_NEVER, err);
	if (status == XR_OK) {
		future_deadline(timeout, &deadline);
		status = wait_for_all(b, deadline, err);
	}
	if (status == XR_OK && b->incomplete)
		status = fail(err, XR_E_NOMEM,
			"some calls were not waited for: out of memory");
	for (size_t i = 0; i < b->count; i++)
		xr_future_unref(b->futures[i]);
	free(b->futures);
	free(b);
	return status;
}
