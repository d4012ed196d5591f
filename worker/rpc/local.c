/* SPDX-License-Identifier: Apache-2.0 */
/* local.c - see local.h. */
#include <pthread.h>
#include <stddef.h>

#include <xrun/job.h>

#include "wire/value/storage.h"
#include "worker/rpc/local.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/values.h"
#include "worker/shm/cma.h"
#include "worker/shm/link.h"
#include "worker/shm/plane.h"
#include "worker/shm/shm.h"
#include "worker/shm/tick.h"

static struct shm *shm; /* kept until the process ends; NULL: there is none */
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static void *
lend_alloc(size_t len, void **own)
{
	return len < LEND_MIN ? NULL : shm_alloc(shm, len, own);
}

static void
lend_free(void *data, void *own)
{
	shm_free(shm, data, own);
}

static const struct storage_source lent = {
	.alloc = lend_alloc,
	.free = lend_free,
};

static void
open_once(void)
{
	if (shm_open_segment(&shm, NULL) == XR_OK)
		storage_set_source(&lent);
}

void
local_open(void)
{
	pthread_once(&opened, open_once);
}

void
local_retire_begin(void)
{
	if (shm != NULL)
		arena_on_retire(&shm->arena, lead_due);
}

void
local_retire_end(void)
{
	if (shm != NULL)
		arena_on_retire(&shm->arena, NULL);
}

int64_t
local_retire(int64_t now)
{
	return shm != NULL ? arena_retire(&shm->arena, now) : INT64_MAX;
}

static uint32_t
watch(void *ctx, struct bell_word *words, uint32_t cap)
{
	(void)ctx;
	return alive_watch(&shm->map, shm->slot, words,
		cap < ALIVE_WATCHED ? cap : ALIVE_WATCHED);
}

static void
look(void *ctx)
{
	(void)ctx;
	alive_look(&shm->map);
}

static void
thorough(void *ctx)
{
	(void)ctx;
	shm_look_everywhere(shm);
}

static bool
busy(void *ctx)
{
	(void)ctx;
	return shm_busy(shm);
}

void
local_place(struct lead_place *place)
{
	if (shm == NULL)
		return;
	place->bell = &shm->mine->bell;
	place->awaits = &shm->mine->awaits;
	place->env = shm_env(shm);
	place->watch = watch;
	place->look = look;
	place->thorough = thorough;
	place->busy = busy;
}

void
local_live(void)
{
	if (shm != NULL)
		shm_alive(shm);
}

void
local_live_end(void)
{
	if (shm != NULL)
		shm_alive_end(shm);
}

bool
local_bell_of(struct peer *p, struct local_bell *bell)
{
	bool is_near;

	pthread_mutex_lock(&p->lock);
	is_near = shm != NULL && p->carrier == &shm_carrier && p->link != NULL;
	if (is_near)
		*bell = (struct local_bell){ p->link->bell, p->link->awaits,
			shm_cpu_of(shm, shm_link_slot(p->link)) };
	pthread_mutex_unlock(&p->lock);
	return is_near;
}

bool
local_shares(struct peer *p, const void *data, size_t len)
{
	bool shares;

	pthread_mutex_lock(&p->lock);
	shares = shm != NULL && p->carrier == &shm_carrier && p->link != NULL &&
		shm_is_of(p->link, data, len);
	pthread_mutex_unlock(&p->lock);
	return shares;
}

/* NULL: it is not on this machine, or not connected. It stays where it is. */
static const struct segment_slot *
slot_of(struct peer *p, uint64_t *plane)
{
	const struct segment_slot *slot = NULL;

	pthread_mutex_lock(&p->lock);
	if (shm != NULL && p->carrier == &shm_carrier && p->link != NULL) {
		slot = p->link->peer;
		*plane = p->link->plane;
	}
	pthread_mutex_unlock(&p->lock);
	return slot;
}

bool
local_can_read(struct peer *p)
{
	uint64_t plane;
	const struct segment_slot *slot = slot_of(p, &plane);

	return slot != NULL && cma_probe(slot);
}

/* The number of a process may have come to mean another meanwhile: then so has the
 * slot. */
bool
local_read(struct peer *p, uint64_t from, void *to, size_t len)
{
	uint64_t plane;
	const struct segment_slot *slot = slot_of(p, &plane);
	const struct xr_part part = { (void *)(uintptr_t)from, len };
	size_t done = 0;
	int64_t n = 1;

	if (slot == NULL)
		return false;
	while (done < len && n > 0) {
		const struct iovec rest = { (char *)to + done, len - done };

		n = cma_read(slot, &part, 1, done, &rest);
		done += n > 0 ? (size_t)n : 0;
	}
	return done == len &&
		segment_gen(atomic_load(&slot->claim)) == plane >> 8;
}

bool
local_can_lend(const void *data, size_t len)
{
	return shm != NULL && arena_has(&shm->arena, data, len);
}

uint32_t
local_cpus(void)
{
	uint32_t cpus = shm != NULL ? atomic_load_explicit(&shm_env(shm)->cpus,
					      memory_order_relaxed) :
				      1;

	return cpus > 0 ? cpus : 1;
}

struct wait_env *
local_env(void)
{
	return shm != NULL ? shm_env(shm) : NULL;
}

void
local_met(struct peer *p)
{
	if (shm != NULL && p->carrier == &shm_carrier && p->link != NULL)
		p->cpu = shm_cpu_of(shm, shm_link_slot(p->link));
}

struct segment_figures *
local_figures(uint32_t *gen)
{
	if (shm == NULL)
		return NULL;
	*gen = shm->gen;
	return segment_figures(&shm->map, shm->slot);
}

/* Spare slots are of processes that a rank made. */
bool
local_is_of_job(bool *rank)
{
	*rank = shm != NULL && shm->of_job && shm->slot < shm->map.ranks;
	return shm != NULL && shm->of_job;
}

const struct segment_map *
local_job_map(uint32_t size, uint32_t *slot)
{
	bool is_rank;

	if (!local_is_of_job(&is_rank) || !is_rank || shm->map.ranks != size ||
		xr_job_rank() != shm->slot || xr_job_size() != size)
		return NULL;
	*slot = shm->slot;
	return &shm->map;
}

uint32_t
local_tick_rate(void)
{
	return shm != NULL ? shm->wait.rate : tick_rate(NULL);
}
