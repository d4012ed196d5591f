/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - the functions that a worker has read of the pool's book.
 *
 * Each is looked up, and what it was bound to decoded, when a task names it first.
 */
#ifndef WORKER_POOL_PAGE_H
#define WORKER_POOL_PAGE_H

#include <stdint.h>

#include <xrun/error.h>
#include <xrun/value.h>

#include "worker/pool/item.h"
#include "worker/rpc/func.h"

struct page {
	uint32_t serial; /* 0: nothing is known */
	enum xr_status status;
	struct xr_error err; /* why it cannot be run */
	struct xr_value *value;
	struct xr_value *bound; /* of @value; or NULL */
	const struct func *func;
};

struct pages {
	int book;
	struct page *page; /* [count], by entry */
	uint32_t count;
};

/* pages_find() - of @task; it is good until the next call. NULL: no memory. */
const struct page *pages_find(struct pages *p, const struct task_head *task);
void pages_fini(struct pages *p);

#endif /* WORKER_POOL_PAGE_H */
