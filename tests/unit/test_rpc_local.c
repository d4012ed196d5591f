/* SPDX-License-Identifier: Apache-2.0 */
/* test_rpc_local.c - what the agent has of the machine's shared memory, and what it does
 * without: the test plays the plane. */
#include <stdlib.h>
#include <string.h>

#include <sys/uio.h>

#include <criterion/criterion.h>

#include "base/status.h"
#include "segment/member.h"
#include "wire/value/storage.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/local.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/values.h"
#include "worker/shm/cma.h"
#include "worker/shm/link.h"
#include "worker/shm/plane.h"
#include "worker/shm/shm.h"
#include "worker/shm/tick.h"

TestSuite(rpc_local, .timeout = 60);

/* --- the plane ------------------------------------------------------------------- */

enum xr_status __wrap_shm_open_segment(struct shm **out, struct xr_error *err);
void __wrap_arena_on_retire(struct arena *a, void (*retire)(int64_t when));
int64_t __wrap_arena_retire(struct arena *a, int64_t now);
uint32_t __wrap_alive_watch(const struct segment_map *map, uint32_t self,
	struct bell_word *words, uint32_t cap);
void __wrap_alive_look(const struct segment_map *map);
void __wrap_shm_look_everywhere(struct shm *s);
bool __wrap_shm_busy(struct shm *s);
bool __wrap_shm_alive(struct shm *s);
void __wrap_shm_alive_end(struct shm *s);
const _Atomic uint32_t *__wrap_shm_cpu_of(struct shm *s, uint32_t slot);
bool __wrap_shm_is_of(const struct xr_link *link, const void *data, size_t len);
bool __wrap_cma_probe(const struct segment_slot *slot);
int64_t __wrap_cma_read(const struct segment_slot *slot,
	const struct xr_part *parts, uint32_t count, uint64_t skip,
	const struct iovec *to);
void *__wrap_shm_alloc(struct shm *s, size_t len, void **own);
void __wrap_shm_free(struct shm *s, const void *data, void *own);
uint32_t __wrap_xr_job_rank(void);
uint32_t __wrap_xr_job_size(void);

static struct shm plane;
static struct segment_slot *mine, *theirs;
static bool there;
static unsigned opens, calls;
static void (*retire_fn)(int64_t when);

enum xr_status
__wrap_shm_open_segment(struct shm **out, struct xr_error *err)
{
	(void)err;
	opens++;
	if (!there)
		return XR_E_NODEV;
	*out = &plane;
	return XR_OK;
}

void
__wrap_arena_on_retire(struct arena *a, void (*retire)(int64_t when))
{
	cr_expect_eq(a, &plane.arena);
	retire_fn = retire;
	calls++;
}

int64_t
__wrap_arena_retire(struct arena *a, int64_t now)
{
	cr_expect_eq(a, &plane.arena);
	calls++;
	return now + 5;
}

static uint32_t watch_cap;

uint32_t
__wrap_alive_watch(const struct segment_map *map, uint32_t self,
	struct bell_word *words, uint32_t cap)
{
	(void)words;
	cr_expect_eq(map, &plane.map);
	cr_expect_eq(self, 3);
	watch_cap = cap;
	return 7;
}

void
__wrap_alive_look(const struct segment_map *map)
{
	cr_expect_eq(map, &plane.map);
	calls++;
}

void
__wrap_shm_look_everywhere(struct shm *s)
{
	cr_expect_eq(s, &plane);
	calls++;
}

bool
__wrap_shm_busy(struct shm *s)
{
	cr_expect_eq(s, &plane);
	return calls == 0;
}

bool
__wrap_shm_alive(struct shm *s)
{
	cr_expect_eq(s, &plane);
	calls++;
	return true;
}

void
__wrap_shm_alive_end(struct shm *s)
{
	cr_expect_eq(s, &plane);
	calls += 10;
}

static _Atomic uint32_t cpu[8];

const _Atomic uint32_t *
__wrap_shm_cpu_of(struct shm *s, uint32_t slot)
{
	cr_expect_eq(s, &plane);
	cr_assert_lt(slot, 8);
	return &cpu[slot];
}

static struct xr_link link_there;
static bool is_of;

bool
__wrap_shm_is_of(const struct xr_link *link, const void *data, size_t len)
{
	cr_expect_eq(link, &link_there);
	cr_expect_eq(data, &calls);
	cr_expect_eq(len, 12);
	return is_of;
}

static bool readable;

bool
__wrap_cma_probe(const struct segment_slot *slot)
{
	cr_expect_eq(slot, theirs);
	return readable;
}

static const char memory[] = "0123456789";
static int64_t pieces[4]; /* what each read gives */
static unsigned reads;

int64_t
__wrap_cma_read(const struct segment_slot *slot, const struct xr_part *parts,
	uint32_t count, uint64_t skip, const struct iovec *to)
{
	int64_t n = pieces[reads++];

	cr_expect_eq(slot, theirs);
	cr_expect_eq(count, 1);
	cr_expect_eq((uintptr_t)parts->data, 0x1000);
	cr_expect_eq(parts->len, 10);
	cr_expect_eq(to->iov_len, 10 - skip);
	if (n > 0)
		memcpy(to->iov_base, memory + skip, (size_t)n);
	return n;
}

void *
__wrap_shm_alloc(struct shm *s, size_t len, void **own)
{
	cr_expect_eq(s, &plane);
	*own = &calls;
	return malloc(len);
}

void
__wrap_shm_free(struct shm *s, const void *data, void *own)
{
	cr_expect_eq(s, &plane);
	cr_expect_eq(own, &calls);
	free((void *)data);
}

static uint32_t job_rank, job_size;

uint32_t
__wrap_xr_job_rank(void)
{
	return job_rank;
}

uint32_t
__wrap_xr_job_size(void)
{
	return job_size;
}

/* Slot 3 of a job of 4 ranks, and of 6 slots. */
static void
open_plane(void)
{
	mine = aligned_alloc(64, sizeof(*mine));
	theirs = aligned_alloc(64, sizeof(*theirs));
	memset(mine, 0, sizeof(*mine));
	memset(theirs, 0, sizeof(*theirs));
	plane.mine = mine;
	plane.slot = 3;
	plane.gen = 9;
	plane.of_job = true;
	plane.map.ranks = 4;
	plane.wait.rate = 1234;
	plane.wait.cpus = 6;
	job_rank = 3;
	job_size = 4;
	there = true;
	local_open();
}

static void
close_plane(void)
{
	free(mine);
	free(theirs);
}

static struct peer *
near_peer(void)
{
	static struct peer p = { .lock = PTHREAD_MUTEX_INITIALIZER };

	p.carrier = &shm_carrier;
	p.link = &link_there;
	link_there.slot = 5;
	link_there.plane = 8 << 8 | 3;
	link_there.peer = theirs;
	link_there.bell = &theirs->bell;
	link_there.awaits = &theirs->awaits;
	atomic_store(&theirs->claim, (uint64_t)8 << 40);
	return &p;
}

/* --- without ------------------------------------------------------------------------ */

Test(rpc_local, without_a_segment_there_is_nothing, .fini = close_plane)
{
	const struct storage_source *source = storage_source();
	struct lead_place place = { .ctx = &calls };
	struct local_bell bell;
	bool rank = true;
	uint32_t n = 77;
	char data[10];

	theirs = aligned_alloc(64, sizeof(*theirs));
	memset(theirs, 0, sizeof(*theirs));
	local_open();
	local_open();
	cr_expect_eq(opens, 1);
	cr_expect_eq(storage_source(), source);
	local_retire_begin();
	local_retire_end();
	local_live();
	local_live_end();
	cr_expect_eq(calls, 0);
	cr_expect_eq(local_retire(5), INT64_MAX);
	local_place(&place);
	cr_expect_null(place.bell);
	cr_expect_null(place.look);
	cr_expect_not(local_bell_of(near_peer(), &bell));
	cr_expect_not(local_shares(near_peer(), &calls, 12));
	cr_expect_not(local_can_read(near_peer()));
	cr_expect_not(local_read(near_peer(), 0x1000, data, 10));
	cr_expect_not(local_can_lend(&calls, 1));
	cr_expect_eq(local_cpus(), 1);
	cr_expect_null(local_env());
	local_met(near_peer());
	cr_expect_null(near_peer()->cpu);
	cr_expect_null(local_figures(&n));
	cr_expect_eq(n, 77);
	cr_expect_not(local_is_of_job(&rank));
	cr_expect_not(rank);
	cr_expect_null(local_job_map(4, &n));
	cr_expect_geq(local_tick_rate(), 1000);
}

/* --- with one ------------------------------------------------------------------------- */

Test(rpc_local, the_agent_waits_as_the_segment_says, .fini = close_plane)
{
	struct lead_place place = { .ctx = &calls };
	struct bell_word words[4];

	open_plane();
	local_place(&place);
	cr_expect_eq(place.bell, &mine->bell);
	cr_expect_eq(place.awaits, &mine->awaits);
	cr_expect_eq(place.env, &plane.wait);
	cr_expect_eq(local_env(), &plane.wait);
	cr_expect_eq(place.watch(place.ctx, words, 4), 7);
	cr_expect_eq(watch_cap, 4);
	place.watch(place.ctx, words, ALIVE_WATCHED + 1);
	cr_expect_eq(watch_cap, ALIVE_WATCHED);
	cr_expect(place.busy(place.ctx));
	place.look(place.ctx);
	place.thorough(place.ctx);
	cr_expect_eq(calls, 2);
	cr_expect_not(place.busy(place.ctx));
	local_live();
	cr_expect_eq(calls, 3);
	local_live_end();
	cr_expect_eq(calls, 13);
	local_retire_begin();
	cr_expect_eq(retire_fn, lead_due);
	cr_expect_eq(local_retire(100), 105);
	local_retire_end();
	cr_expect_null(retire_fn);
	cr_expect_eq(local_cpus(), 6);
	plane.wait.cpus = 0;
	cr_expect_eq(local_cpus(), 1);
	cr_expect_eq(local_tick_rate(), 1234);
}

Test(rpc_local, long_values_lie_in_the_segment, .fini = close_plane)
{
	const struct storage_source *source;
	void *own = NULL, *data;

	open_plane();
	source = storage_source();
	cr_assert_not_null(source);
	cr_expect_null(source->alloc(LEND_MIN - 1, &own));
	cr_expect_null(own);
	data = source->alloc(LEND_MIN, &own);
	cr_expect_not_null(data);
	cr_expect_eq(own, &calls);
	source->free(data, own);
}

Test(rpc_local, who_is_near_has_a_bell_and_memory, .fini = close_plane)
{
	struct local_bell bell = { .bell = NULL };
	uint32_t gen = 0;
	struct peer *p;

	open_plane();
	p = near_peer();
	cr_expect(local_bell_of(p, &bell));
	cr_expect_eq(bell.bell, &theirs->bell);
	cr_expect_eq(bell.awaits, &theirs->awaits);
	cr_expect_eq(bell.cpu, &cpu[5]);
	local_met(p);
	cr_expect_eq(p->cpu, &cpu[5]);
	cr_expect_not(local_shares(p, &calls, 12));
	is_of = true;
	cr_expect(local_shares(p, &calls, 12));
	cr_expect_not(local_can_read(p));
	readable = true;
	cr_expect(local_can_read(p));
	plane.map.base = (char *)0x10000;
	plane.map.plan.figures = 0x2000;
	cr_expect_eq((uintptr_t)local_figures(&gen),
		0x12000 + 3 * SEGMENT_FIGURES);
	cr_expect_eq(gen, 9);
	/* Over another carrier, or over none, it is not. */
	for (int i = 0; i < 2; i++) {
		p = near_peer();
		p->cpu = NULL;
		if (i == 0)
			p->link = NULL;
		else
			p->carrier = NULL;
		cr_expect_not(local_bell_of(p, &bell));
		cr_expect_not(local_shares(p, &calls, 12));
		cr_expect_not(local_can_read(p));
		local_met(p);
		cr_expect_null(p->cpu);
	}
}

/* @n is what each read gives. */
static bool
reads_all(int64_t a, int64_t b, int64_t c, char data[11])
{
	pieces[0] = a;
	pieces[1] = b;
	pieces[2] = c;
	reads = 0;
	memset(data, 0, 11);
	return local_read(near_peer(), 0x1000, data, 10);
}

Test(rpc_local, the_memory_of_who_is_near_is_read_whole, .fini = close_plane)
{
	struct peer *p;
	char data[11];

	open_plane();
	cr_expect(reads_all(10, 0, 0, data));
	cr_expect_eq(reads, 1);
	cr_expect_str_eq(data, memory);
	cr_expect(reads_all(4, 5, 1, data));
	cr_expect_eq(reads, 3);
	cr_expect_str_eq(data, memory);
	cr_expect_not(reads_all(4, 0, 6, data));
	cr_expect_eq(reads, 2);
	cr_expect_not(reads_all(4, CMA_GONE, 6, data));
	cr_expect_eq(reads, 2);
	/* By then it has come to mean another process. */
	pieces[0] = 10;
	reads = 0;
	p = near_peer();
	atomic_store(&theirs->claim, (uint64_t)9 << 40);
	cr_expect_not(local_read(p, 0x1000, data, 10));
	cr_expect_eq(reads, 1);
}

Test(rpc_local, a_rank_has_its_own_slot_of_the_job, .fini = close_plane)
{
	uint32_t slot = 77;
	bool rank = false;

	open_plane();
	cr_expect(local_is_of_job(&rank));
	cr_expect(rank);
	cr_expect_eq(local_job_map(4, &slot), &plane.map);
	cr_expect_eq(slot, 3);
	slot = 77;
	cr_expect_null(local_job_map(5, &slot));
	job_size = 5;
	cr_expect_null(local_job_map(4, &slot));
	job_size = 4;
	job_rank = 2;
	cr_expect_null(local_job_map(4, &slot));
	job_rank = 3;
	/* Spare slots are of processes that a rank made. */
	plane.slot = job_rank = 4;
	cr_expect(local_is_of_job(&rank));
	cr_expect_not(rank);
	cr_expect_null(local_job_map(4, &slot));
	plane.slot = job_rank = 3;
	plane.of_job = false;
	cr_expect_not(local_is_of_job(&rank));
	cr_expect_not(rank);
	cr_expect_null(local_job_map(4, &slot));
	cr_expect_eq(slot, 77);
}
