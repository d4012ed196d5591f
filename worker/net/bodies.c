/* SPDX-License-Identifier: Apache-2.0 */
/* bodies.c - see bodies.h. */
#include <stdlib.h>

#include "worker/net/bodies.h"
#include "worker/net/heir.h"

_Static_assert(sizeof(struct xr_body_buffer) <= BODIES_ALIGN,
	"data begins behind it");

struct bodies *
bodies_new(void)
{
	struct bodies *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	pthread_mutex_init(&b->lock, NULL);
	b->generation = heir_generation();
	return b;
}

static void
free_waiting(struct bodies *b)
{
	struct xr_body_buffer *buffer, *next;

	for (unsigned i = 0; i < BODIES_CLASSES; i++) {
		for (buffer = b->waiting[i]; buffer != NULL; buffer = next) {
			next = buffer->next;
			free(buffer);
		}
		b->waiting[i] = NULL;
	}
	b->kept = 0;
}

static void
destroy(struct bodies *b)
{
	pthread_mutex_destroy(&b->lock);
	free(b);
}

void
bodies_close(struct bodies *b)
{
	bool last;

	if (b == NULL)
		return;
	pthread_mutex_lock(&b->lock);
	free_waiting(b);
	b->closed = true;
	last = b->out == 0;
	pthread_mutex_unlock(&b->lock);
	if (last)
		destroy(b);
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
	struct xr_body_buffer *buffer = NULL;

	pthread_mutex_lock(&b->lock);
	if (class < BODIES_CLASSES)
		buffer = b->waiting[class];
	if (buffer != NULL) {
		b->waiting[class] = buffer->next;
		b->kept -= buffer->cap;
	}
	b->out++;
	pthread_mutex_unlock(&b->lock);
	return buffer;
}

static struct xr_body_buffer *
make(struct bodies *b, unsigned class, uint64_t len)
{
	struct xr_body_buffer *buffer = NULL;
	size_t cap;

	if (len <= SIZE_MAX - 2 * BODIES_ALIGN) {
		cap = class < BODIES_CLASSES ?
			(size_t)1 << (class + BODIES_LEAST) :
			((size_t)len + BODIES_ALIGN - 1) / BODIES_ALIGN *
				BODIES_ALIGN;
		buffer = aligned_alloc(BODIES_ALIGN, BODIES_ALIGN + cap);
	}
	if (buffer == NULL) {
		pthread_mutex_lock(&b->lock);
		b->out--;
		pthread_mutex_unlock(&b->lock);
		return NULL;
	}
	buffer->cap = cap;
	buffer->from = b;
	return buffer;
}

struct xr_body_buffer *
bodies_get(struct bodies *b, uint64_t len)
{
	unsigned class = class_of(len);
	struct xr_body_buffer *buffer = take_waiting(b, class);

	if (buffer == NULL)
		buffer = make(b, class, len);
	if (buffer == NULL)
		return NULL;
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

/* Under the lock: is it to wait for the next of its size? */
static bool
keep(struct bodies *b, struct xr_body_buffer *buffer)
{
	unsigned class = class_of(buffer->cap);

	if (b->closed || class == BODIES_CLASSES ||
		b->kept + buffer->cap > BODIES_KEPT)
		return false;
	buffer->next = b->waiting[class];
	b->waiting[class] = buffer;
	b->kept += buffer->cap;
	return true;
}

void
bodies_unref(struct xr_body_buffer *buffer)
{
	struct bodies *b;
	bool kept, last;

	if (buffer == NULL || buffer->from->generation != heir_generation() ||
		__atomic_sub_fetch(&buffer->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	b = buffer->from;
	pthread_mutex_lock(&b->lock);
	kept = keep(b, buffer);
	last = --b->out == 0 && b->closed;
	pthread_mutex_unlock(&b->lock);
	if (!kept)
		free(buffer);
	if (last)
		destroy(b);
}
