/* SPDX-License-Identifier: Apache-2.0 */
/* tcpstore_internal.h - the parts of a store that its two files share. */
#ifndef LAUNCHER_TCPSTORE_TCPSTORE_INTERNAL_H
#define LAUNCHER_TCPSTORE_TCPSTORE_INTERNAL_H

#include <stdbool.h>

#include <sys/queue.h>

#include "launcher/tcpstore/tcpstore.h"
#include "store/store.h"

struct tcpstore_queue;

struct tcpstore {
	struct store *keys;
	tcpstore_ready_fn *ready;
	TAILQ_HEAD(, tcpstore_client) waiting; /* the longest waiting first */
	LIST_HEAD(, tcpstore_queue) queues;
	size_t queued; /* bytes of all items and of the names of queues */
};

enum tcpstore_dialect {
	TCPSTORE_UNKNOWN,
	TCPSTORE_BEFORE_2_2,
	TCPSTORE_SINCE_2_2,
};

struct tcpstore_client {
	struct tcpstore *store;
	void *of; /* the caller's */
	struct buf out;
	enum tcpstore_dialect dialect;
	struct store_owner owner;
	struct store_waiter *waiter;       /* NULL: it does not wait */
	TAILQ_ENTRY(tcpstore_client) list; /* while it waits */
	char *wait_key; /* [wait_len], if it waits for one key; else NULL */
	size_t wait_len;
};

/* A request that is being read. */
struct tcpstore_reader {
	const char *at, *end;
	bool is_short; /* the request is incomplete */
	bool is_bad;   /* a length exceeds its limit, or memory is exhausted */
};

/* Each reads one argument. The bytes are borrowed; of an incomplete request they are
 * empty. */
struct span tcpstore_read_key(struct tcpstore_reader *r);
struct span tcpstore_read_value(struct tcpstore_reader *r);

/* tcpstore_read_end() - all arguments were read; the verdict. */
enum tcpstore_verdict tcpstore_read_end(const struct tcpstore_reader *r);

void tcpstore_put_number(struct tcpstore_client *c, int64_t number);
void tcpstore_put_bytes(struct tcpstore_client *c, struct span bytes);

/* tcpstore_wake_one() - ends the wait of the client that waits longest for @key. */
void tcpstore_wake_one(struct tcpstore *store, struct span key);

/* tcpstore_queue.c: named queues of values, since version 2.7 */
size_t tcpstore_queue_length(const struct tcpstore *store, struct span name);
void tcpstore_queues_free(struct tcpstore *store);
enum tcpstore_verdict tcpstore_on_queue_push(struct tcpstore_client *c,
	struct tcpstore_reader *r, struct xr_error *err);
enum tcpstore_verdict tcpstore_on_queue_pop(struct tcpstore_client *c,
	struct tcpstore_reader *r, struct xr_error *err);
enum tcpstore_verdict tcpstore_on_queue_len(struct tcpstore_client *c,
	struct tcpstore_reader *r, struct xr_error *err);

#endif /* LAUNCHER_TCPSTORE_TCPSTORE_INTERNAL_H */
