/* SPDX-License-Identifier: Apache-2.0 */
/* bodies.c - see bodies.h. */
#include <stdlib.h>

#include "worker/net/bodies.h"

_Static_assert(sizeof(struct xr_body_buffer) <= BODIES_ALIGN,
	"data begins behind it");

void
bodies_init(struct bodies *b)
{
	*b = (struct bodies){ .kept = 0 };
	pthread_mutex_init(&b->lock, NULL);
}

void
bodies_fini(struct bodies *b)
{
	struct xr_body_buffer *buffer, *next;

	for (unsigned i = 0; i < BODIES_CLASSES; i++)
		for (buffer = b->waiting[i]; buffer != NULL; buffer = next) {
			next = buffer->next;
			free(buffer);
		}
	pthread_mutex_destroy(&b->lock);
}

/* The row of sizes that @len falls into; BODIES_CLASSES: it is too large. */
static unsigned
class_of(uint64_t len)
{
	unsigned bits = len <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(len - 1);

	if (bits < BODIES_LEAST)
		bits = BODIES_LEAST;
	return bits > BODIES_MOST ? BODIES_CLASSES : bits - BODIES_LEAST;
}

static struct xr_body_buffer *
take_waiting(struct bodies *b, unsigned class)
{
	struct xr_body_buffer *buffer;

	if (class == BODIES_CLASSES)
		return NULL;
	pthread_mutex_lock(&b->lock);
	buffer = b->waiting[class];
	if (buffer != NULL) {
		b->waiting[class] = buffer->next;
		b->kept -= buffer->cap;
	}
	pthread_mutex_unlock(&b->lock);
	return buffer;
}

struct xr_body_buffer *
bodies_get(struct bodies *b, uint64_t len)
{
	unsigned class = class_of(len);
	struct xr_body_buffer *buffer = take_waiting(b, class);
	size_t cap;

	if (buffer == NULL && len > SIZE_MAX - 2 * BODIES_ALIGN)
		return NULL;
	if (buffer == NULL) {
		cap = class < BODIES_CLASSES ?
			(size_t)1 << (class + BODIES_LEAST) :
			((size_t)len + BODIES_ALIGN - 1) / BODIES_ALIGN *
				BODIES_ALIGN;
		buffer = aligned_alloc(BODIES_ALIGN, BODIES_ALIGN + cap);
		if (buffer == NULL)
			return NULL;
		buffer->cap = cap;
	}
	buffer->next = NULL;
	__atomic_store_n(&buffer->refs, 1, __ATOMIC_RELAXED);
	return buffer;
}

struct xr_body_buffer *
bodies_ref(struct xr_body_buffer *buffer)
{
	__atomic_add_fetch(&buffer->refs, 1, __ATOMIC_RELAXED);
	return buffer;
}

void
bodies_unref(struct bodies *b, struct xr_body_buffer *buffer)
{
	unsigned class;

	if (buffer == NULL ||
		__atomic_sub_fetch(&buffer->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	if (b == NULL) {
		free(buffer);
		return;
	}
	class = class_of(buffer->cap);
	pthread_mutex_lock(&b->lock);
	if (class < BODIES_CLASSES && b->kept + buffer->cap <= BODIES_KEPT) {
		buffer->next = b->waiting[class];
		b->waiting[class] = buffer;
		b->kept += buffer->cap;
		buffer = NULL;
	}
	pthread_mutex_unlock(&b->lock);
	free(buffer);
}
