/* SPDX-License-Identifier: Apache-2.0 */
/* method.c - see method.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "worker/rpc/func.h"
#include "worker/rpc/method.h"

#define BUCKETS 256 /* a power of 2 */

static struct method *_Atomic bucket[BUCKETS];
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
static uint32_t count;

static const struct method *
find(uint32_t hash, const char *name)
{
	const struct method *m =
		atomic_load_explicit(&bucket[hash & (BUCKETS - 1)],
			memory_order_acquire);

	while (m != NULL && (m->hash != hash || strcmp(m->name, name) != 0))
		m = m->next;
	return m;
}

static const struct method *
add(uint32_t hash, const char *name, size_t len)
{
	struct method *m = calloc(1, sizeof(*m));
	uint16_t wire = (uint16_t)len;

	if (m == NULL)
		return NULL;
	m->hash = hash;
	m->place = count++;
	memcpy(m->name, name, len);
	memcpy(m->prefix, &wire, sizeof(wire));
	memcpy(m->prefix + sizeof(wire), name, len);
	m->prefix_len = (uint32_t)((sizeof(wire) + len + 7) & ~(size_t)7);
	m->next = atomic_load(&bucket[hash & (BUCKETS - 1)]);
	atomic_store_explicit(&bucket[hash & (BUCKETS - 1)], m,
		memory_order_release);
	return m;
}

const struct method *
method_get(const char *name)
{
	size_t len = name != NULL ? strnlen(name, 256) : 0;
	const struct method *m;
	uint32_t hash;

	if (len == 0 || len > 255)
		return NULL;
	hash = func_hash(name, len);
	m = find(hash, name);
	if (m != NULL)
		return m;
	pthread_mutex_lock(&adding);
	m = find(hash, name);
	if (m == NULL)
		m = add(hash, name, len);
	pthread_mutex_unlock(&adding);
	return m;
}
