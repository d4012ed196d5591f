/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c - see loop.h.
 *
 * A call to oneself goes the way of all others. What is sent is copied into a
 * block, which is read where it lies and may be kept.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <sys/queue.h>

#include "base/status.h"
#include "worker/rpc/loop.h"

#define ALIGN 64

/* A message, and what outlives it. */
struct xr_body_buffer {
	TAILQ_ENTRY(xr_body_buffer) list;
	_Atomic uint32_t refs;
	struct xr_record record;
	size_t len;
	_Alignas(ALIGN) uint8_t data[];
};
TAILQ_HEAD(block_list, xr_body_buffer);

struct xr_link {
	const struct xr_carrier_host *host;
	void *peer;
	pthread_mutex_t lock;
	struct block_list queue;
	_Atomic uint32_t count;
};

static enum xr_status
loop_open(const struct xr_carrier_host *host,
	const struct xr_carrier_opts *opts, void **self, struct xr_error *err)
{
	struct xr_link *l = calloc(1, sizeof(*l));

	(void)opts;
	if (l == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	l->host = host;
	pthread_mutex_init(&l->lock, NULL);
	TAILQ_INIT(&l->queue);
	*self = l;
	return XR_OK;
}

static size_t
loop_address(void *self, char *text, size_t cap)
{
	(void)self;
	if (cap > 0)
		text[0] = '\0';
	return 0;
}

static enum xr_status
loop_connect(void *self, const char *address, uint32_t id, uint64_t incarnation,
	void *peer, struct xr_link **link, struct xr_error *err)
{
	struct xr_link *l = self;

	(void)address;
	(void)id;
	(void)incarnation;
	(void)err;
	l->peer = peer;
	*link = l;
	return XR_OK;
}

static enum xr_status
loop_send(struct xr_link *l, const struct xr_message *m, bool *pending)
{
	struct xr_body_buffer *b;
	size_t len = 0, at = 0;

	for (uint32_t i = 0; i < m->count; i++)
		len += m->parts[i].len;
	b = aligned_alloc(ALIGN,
		(sizeof(*b) + len + ALIGN - 1) / ALIGN * ALIGN);
	if (b == NULL)
		return XR_E_NOMEM;
	atomic_init(&b->refs, 1);
	b->record = m->record;
	b->len = len;
	for (uint32_t i = 0; i < m->count; i++) {
		if (m->parts[i].len > 0)
			memcpy(b->data + at, m->parts[i].data, m->parts[i].len);
		at += m->parts[i].len;
	}
	pthread_mutex_lock(&l->lock);
	TAILQ_INSERT_TAIL(&l->queue, b, list);
	pthread_mutex_unlock(&l->lock);
	atomic_fetch_add(&l->count, 1);
	if (!m->more)
		l->host->awake(l->host->ctx);
	if (pending != NULL)
		*pending = false;
	return XR_OK;
}

static void
loop_unref(struct xr_body_buffer *b)
{
	if (atomic_fetch_sub(&b->refs, 1) == 1)
		free(b);
}

static uint32_t
loop_progress(void *self, uint32_t budget)
{
	struct xr_link *l = self;
	struct xr_body_buffer *b;
	struct xr_body body;
	uint32_t n = 0;

	while (n < budget && atomic_load(&l->count) > 0) {
		pthread_mutex_lock(&l->lock);
		b = TAILQ_FIRST(&l->queue);
		if (b != NULL)
			TAILQ_REMOVE(&l->queue, b, list);
		pthread_mutex_unlock(&l->lock);
		if (b == NULL)
			break;
		atomic_fetch_sub(&l->count, 1);
		body = (struct xr_body){
			.data = b->data,
			.len = b->len,
			.own = b,
		};
		l->host->deliver(l->host->ctx, l->peer, &b->record, &body);
		loop_unref(b);
		n++;
	}
	return n;
}

static struct xr_body_buffer *
loop_take(void *self, const struct xr_body *body, const void **data)
{
	struct xr_body_buffer *b = body->own;

	(void)self;
	atomic_fetch_add(&b->refs, 1);
	*data = body->data;
	return b;
}

static void
loop_link_close(struct xr_link *l)
{
	(void)l;
}

static void
loop_free(void *self)
{
	struct xr_link *l = self;
	struct xr_body_buffer *b;

	while ((b = TAILQ_FIRST(&l->queue)) != NULL) {
		TAILQ_REMOVE(&l->queue, b, list);
		free(b);
	}
	pthread_mutex_destroy(&l->lock);
	free(l);
}

const struct xr_carrier loop_carrier = {
	.size = sizeof(loop_carrier),
	.api = XR_CARRIER_API,
	.name = "loop",
	.priority = 1000,
	.caps = XR_CARRIER_LOCAL,
	.copies = UINT32_MAX,
	.open = loop_open,
	.address = loop_address,
	.connect = loop_connect,
	.send = loop_send,
	.progress = loop_progress,
	.body_take = loop_take,
	.buffer_unref = loop_unref,
	.link_close = loop_link_close,
	.free = loop_free,
};
