/* SPDX-License-Identifier: Apache-2.0 */
/* pending.c - see pending.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "worker/rpc/future.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/pending.h"

/* Most processes need no more, and all are looked at often. */
#define CHUNK  128 /* places */
#define CHUNKS 131072

enum phase {
	PHASE_FREE,
	PHASE_NEW,
	PHASE_OPEN,
	PHASE_ENDING, /* claimed */
};

static struct {
	struct pending *_Atomic chunk[CHUNKS];
	_Atomic uint32_t chunks;
	_Alignas(64) _Atomic uint64_t free; /* changes << 32 | index + 1 */
	pthread_mutex_t growing;
} t = { .growing = PTHREAD_MUTEX_INITIALIZER };

/* Of each thread the one that it used last: most threads ask one thing at a time. */
static __thread struct pending *spare
	__attribute__((tls_model("initial-exec")));
static __thread bool keeps __attribute__((tls_model("initial-exec")));

static struct pending *
at(uint32_t index)
{
	struct pending *chunk;

	if (index / CHUNK >=
		atomic_load_explicit(&t.chunks, memory_order_acquire))
		return NULL;
	chunk = atomic_load_explicit(&t.chunk[index / CHUNK],
		memory_order_relaxed);
	return &chunk[index % CHUNK];
}

static struct pending *
pop(void)
{
	uint64_t head = atomic_load(&t.free), next;
	struct pending *p;

	do {
		if ((uint32_t)head == 0)
			return NULL;
		p = at((uint32_t)head - 1);
		next = ((head >> 32) + 1) << 32 |
			atomic_load_explicit(&p->next, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak(&t.free, &head, next));
	return p;
}

static void
push(struct pending *p)
{
	uint64_t head = atomic_load(&t.free), next;

	do {
		atomic_store_explicit(&p->next, (uint32_t)head,
			memory_order_relaxed);
		next = ((head >> 32) + 1) << 32 | (p->index + 1);
	} while (!atomic_compare_exchange_weak(&t.free, &head, next));
}

static pthread_key_t key;
static bool has_key;

static void
thread_ends(void *unused)
{
	(void)unused;
	keeps = false;
	if (spare != NULL)
		push(spare);
	spare = NULL;
}

static void
make_key(void)
{
	has_key = pthread_key_create(&key, thread_ends) == 0;
}

/* False: nobody would give it back when the thread ends. */
static bool
may_keep(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (keeps)
		return true;
	pthread_once(&once, make_key);
	keeps = has_key && pthread_setspecific(key, &t) == 0;
	return keeps;
}

static void
give_back(struct pending *p)
{
	if (spare == NULL && may_keep())
		spare = p;
	else
		push(p);
}

static bool
grow(void)
{
	uint32_t n = atomic_load(&t.chunks);
	struct pending *chunk =
		n < CHUNKS ? calloc(CHUNK, sizeof(*chunk)) : NULL;

	if (chunk == NULL)
		return false;
	atomic_store(&t.chunk[n], chunk);
	atomic_store_explicit(&t.chunks, n + 1, memory_order_release);
	for (uint32_t i = CHUNK; i-- > 0;) {
		chunk[i].index = n * CHUNK + i;
		push(&chunk[i]);
	}
	return true;
}

static void
set_phase(struct pending *p, enum phase phase)
{
	uint64_t word = atomic_load_explicit(&p->word, memory_order_relaxed);

	atomic_store_explicit(&p->word, (word & ~UINT64_C(0xff)) | phase,
		memory_order_release);
}

struct pending *
pending_new(void)
{
	struct pending *p = spare;

	if (p != NULL)
		spare = NULL;
	else
		p = pop();
	while (p == NULL) {
		pthread_mutex_lock(&t.growing);
		p = pop();
		if (p == NULL && !grow()) {
			pthread_mutex_unlock(&t.growing);
			return NULL;
		}
		pthread_mutex_unlock(&t.growing);
	}
	set_phase(p, PHASE_NEW);
	return p;
}

uint64_t
pending_name(const struct pending *p)
{
	return (atomic_load_explicit(&p->word, memory_order_relaxed) &
		       ~UINT64_C(0xffffffff)) |
		p->index;
}

uint64_t
pending_open(struct pending *p, struct peer *peer, int64_t deadline)
{
	uint64_t name = pending_name(p);

	atomic_store_explicit(&p->peer, peer, memory_order_relaxed);
	atomic_store_explicit(&p->deadline, deadline, memory_order_relaxed);
	atomic_store_explicit(&p->call, p->ops->call, memory_order_relaxed);
	set_phase(p, PHASE_OPEN);
	return name;
}

struct peer *
pending_peer(const struct pending *p)
{
	return atomic_load_explicit(&p->peer, memory_order_relaxed);
}

struct pending *
pending_claim(uint64_t corr, const struct peer *peer)
{
	struct pending *p = at((uint32_t)corr);
	uint64_t open = (corr & ~UINT64_C(0xffffffff)) | PHASE_OPEN;

	if (p == NULL || (peer != NULL && pending_peer(p) != peer) ||
		!atomic_compare_exchange_strong(&p->word, &open,
			(open & ~UINT64_C(0xff)) | PHASE_ENDING))
		return NULL;
	return p;
}

void
pending_put(struct pending *p)
{
	uint64_t word = atomic_load_explicit(&p->word, memory_order_relaxed);

	atomic_store_explicit(&p->word, ((word >> 32) + 1) << 32 | PHASE_FREE,
		memory_order_release);
	give_back(p);
}

/* --- of many -------------------------------------------------------------- */

/* The name of @p if it is open now; 0 if not, which is no name of an open one. */
static bool
is_open(struct pending *p, uint64_t *corr)
{
	uint64_t word = atomic_load_explicit(&p->word, memory_order_acquire);

	*corr = (word & ~UINT64_C(0xffffffff)) | p->index;
	return (uint8_t)word == PHASE_OPEN;
}

static void
fail_one(struct pending *p, struct xr_value *error)
{
	p->ops->fail(p, error);
	pending_put(p);
}

static void
time_out(struct pending *p)
{
	const struct peer *to = pending_peer(p);

	fail_one(p,
		failure_new(XR_E_TIMEOUT,
			"no answer from %s (%u) within %lld ms", to->name,
			to->id, (long long)(p->timeout / NS_PER_MS)));
}

int64_t
pending_expire(int64_t now)
{
	uint32_t chunks = atomic_load(&t.chunks);
	int64_t next = INT64_MAX, deadline;
	struct pending *p;
	uint64_t corr;

	for (uint32_t i = 0; i < chunks * CHUNK; i++) {
		p = at(i);
		if (!is_open(p, &corr))
			continue;
		deadline = atomic_load_explicit(&p->deadline,
			memory_order_relaxed);
		if (deadline > now) {
			next = deadline < next ? deadline : next;
			continue;
		}
		/* The claim says that what was read is of this use. */
		p = pending_claim(corr, NULL);
		if (p != NULL)
			time_out(p);
	}
	return next;
}

void
pending_fail_all(const struct peer *peer, enum xr_status status,
	const char *why)
{
	uint32_t chunks = atomic_load(&t.chunks);
	struct pending *p;
	uint64_t corr;

	for (uint32_t i = 0; i < chunks * CHUNK; i++) {
		p = at(i);
		if (!is_open(p, &corr) ||
			(peer != NULL && pending_peer(p) != peer))
			continue;
		p = pending_claim(corr, NULL);
		if (p != NULL)
			fail_one(p, failure_new(status, "%s", why));
	}
}

static bool
is_call(struct pending *p)
{
	uint64_t corr;

	return is_open(p, &corr) &&
		atomic_load_explicit(&p->call, memory_order_relaxed);
}

const struct peer *
pending_first(void)
{
	uint32_t count = atomic_load(&t.chunks) * CHUNK;

	for (uint32_t i = 0; i < count; i++)
		if (is_call(at(i)))
			return pending_peer(at(i));
	return NULL;
}

uint32_t
pending_count(bool calls)
{
	uint32_t count = atomic_load(&t.chunks) * CHUNK, n = 0;
	uint64_t corr;

	for (uint32_t i = 0; i < count; i++)
		n += calls ? is_call(at(i)) : is_open(at(i), &corr);
	return n;
}
