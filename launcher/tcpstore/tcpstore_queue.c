/* SPDX-License-Identifier: Apache-2.0 */
/* tcpstore_queue.c - named queues of values; see tcpstore_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "launcher/tcpstore/tcpstore_internal.h"

#define QUEUED_MAX (256 << 20) /* bytes of all queues */

struct queue_item {
	STAILQ_ENTRY(queue_item) list;
	size_t len;
	char data[];
};

struct tcpstore_queue {
	LIST_ENTRY(tcpstore_queue) list;
	STAILQ_HEAD(, queue_item) items;
	size_t count;
	size_t len; /* of the name */
	char name[];
};

/* Programs have few of them. */
static struct tcpstore_queue *
tcpstore_queue_find(const struct tcpstore *s, struct span name)
{
	struct tcpstore_queue *q;

	LIST_FOREACH(q, &s->queues, list)
	if (q->len == name.len && memcmp(q->name, name.at, name.len) == 0)
		return q;
	return NULL;
}

static struct tcpstore_queue *
tcpstore_queue_new(struct tcpstore *s, struct span name)
{
	struct tcpstore_queue *q = malloc(sizeof(*q) + name.len);

	if (q == NULL)
		return NULL;
	STAILQ_INIT(&q->items);
	q->count = 0;
	q->len = name.len;
	memcpy(q->name, name.at, name.len);
	LIST_INSERT_HEAD(&s->queues, q, list);
	s->queued += sizeof(*q) + name.len;
	return q;
}

/* A queue without items does not exist. */
static void
tcpstore_queue_drop_first(struct tcpstore *s, struct tcpstore_queue *q)
{
	struct queue_item *item = STAILQ_FIRST(&q->items);

	STAILQ_REMOVE_HEAD(&q->items, list);
	s->queued -= sizeof(*item) + item->len;
	free(item);
	if (--q->count > 0)
		return;
	LIST_REMOVE(q, list);
	s->queued -= sizeof(*q) + q->len;
	free(q);
}

size_t
tcpstore_queue_length(const struct tcpstore *s, struct span name)
{
	const struct tcpstore_queue *q = tcpstore_queue_find(s, name);

	return q == NULL ? 0 : q->count;
}

void
tcpstore_queues_free(struct tcpstore *s)
{
	while (!LIST_EMPTY(&s->queues))
		tcpstore_queue_drop_first(s, LIST_FIRST(&s->queues));
}

enum tcpstore_verdict
tcpstore_on_queue_push(struct tcpstore_client *c, struct tcpstore_reader *r,
	struct xr_error *err)
{
	struct span name = tcpstore_read_key(r);
	struct span value = tcpstore_read_value(r);
	enum tcpstore_verdict verdict = tcpstore_read_end(r);
	struct tcpstore_queue *q;
	struct queue_item *item;

	if (verdict != TCPSTORE_DONE)
		return verdict;
	if (c->store->queued + name.len + value.len > QUEUED_MAX) {
		fail(err, XR_E_NOMEM, "the queues hold %d MiB already",
			QUEUED_MAX >> 20);
		return TCPSTORE_BAD;
	}
	item = malloc(sizeof(*item) + value.len);
	q = tcpstore_queue_find(c->store, name);
	if (q == NULL && item != NULL)
		q = tcpstore_queue_new(c->store, name);
	if (q == NULL || item == NULL) {
		free(item);
		fail(err, XR_E_NOMEM, "out of memory");
		return TCPSTORE_BAD;
	}
	item->len = value.len;
	memcpy(item->data, value.at, value.len);
	STAILQ_INSERT_TAIL(&q->items, item, list);
	q->count++;
	c->store->queued += sizeof(*item) + item->len;
	tcpstore_wake_one(c->store, name);
	return TCPSTORE_DONE;
}

/* The reply is the length of the queue before, and the value if there is one. */
enum tcpstore_verdict
tcpstore_on_queue_pop(struct tcpstore_client *c, struct tcpstore_reader *r,
	struct xr_error *err)
{
	struct span name = tcpstore_read_key(r);
	enum tcpstore_verdict verdict = tcpstore_read_end(r);
	struct tcpstore_queue *q;
	const struct queue_item *item;

	(void)err;
	if (verdict != TCPSTORE_DONE)
		return verdict;
	q = tcpstore_queue_find(c->store, name);
	tcpstore_put_number(c, q == NULL ? 0 : (int64_t)q->count);
	if (q == NULL)
		return verdict;
	item = STAILQ_FIRST(&q->items);
	tcpstore_put_bytes(c, (struct span){ item->data, item->len });
	tcpstore_queue_drop_first(c->store, q);
	return verdict;
}

enum tcpstore_verdict
tcpstore_on_queue_len(struct tcpstore_client *c, struct tcpstore_reader *r,
	struct xr_error *err)
{
	struct span name = tcpstore_read_key(r);
	enum tcpstore_verdict verdict = tcpstore_read_end(r);

	(void)err;
	if (verdict == TCPSTORE_DONE)
		tcpstore_put_number(c,
			(int64_t)tcpstore_queue_length(c->store, name));
	return verdict;
}
