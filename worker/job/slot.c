/* SPDX-License-Identifier: Apache-2.0 */
/* slot.c - see slot.h. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "segment/layout.h"
#include "segment/member.h"
#include "worker/job/slot.h"

enum {
	SLOT_NONE,    /* nobody named one */
	SLOT_NAMED,   /* not looked at yet */
	SLOT_LOOKING, /* somebody does, who may be what we interrupted */
	SLOT_HERE,
};

static struct segment_tag tag;
static uint32_t rank;
static struct segment_slot *slot;
static atomic_int state;

void
slot_init(void)
{
	const char *text = getenv("XRUN_LOCAL_RANK");
	char *end = NULL;
	unsigned long n = 0;
	int saved = errno;

	if (text != NULL && text[0] >= '0' && text[0] <= '9')
		n = strtoul(text, &end, 10);
	errno = saved;
	rank = (uint32_t)n;
	atomic_store(&state,
		end != NULL && *end == '\0' && n < UINT32_MAX &&
				segment_tag_parse(getenv("XRUN_SEGMENT_FD"),
					&tag) ?
			SLOT_NAMED :
			SLOT_NONE);
}

__attribute__((constructor)) static void
when_loaded(void)
{
	slot_init();
}

/* Whoever comes while another looks has no slot for this once. */
static struct segment_slot *
find(void)
{
	int seen = atomic_load_explicit(&state, memory_order_acquire);

	if (seen == SLOT_NAMED &&
		atomic_compare_exchange_strong(&state, &seen, SLOT_LOOKING)) {
		slot = segment_join(&tag, rank);
		seen = slot != NULL ? SLOT_HERE : SLOT_NONE;
		atomic_store_explicit(&state, seen, memory_order_release);
	}
	return seen == SLOT_HERE ? slot : NULL;
}

/* Of a few milliseconds, and without a system call. */
static void
step_tick(struct segment_slot *s)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	atomic_store_explicit(&s->when,
		(int64_t)t.tv_sec * 1000000000 + t.tv_nsec,
		memory_order_relaxed);
	atomic_fetch_add_explicit(&s->tick, 1, memory_order_release);
}

bool
slot_beat(void)
{
	struct segment_slot *s = find();

	if (s != NULL)
		step_tick(s);
	return s != NULL;
}

bool
slot_progress(int64_t step, int64_t total)
{
	struct segment_slot *s = find();

	if (s == NULL)
		return false;
	atomic_store_explicit(&s->step, step < INT64_MAX ? step + 1 : step,
		memory_order_relaxed);
	atomic_store_explicit(&s->total, total, memory_order_relaxed);
	step_tick(s);
	return true;
}

void
slot_lost(void)
{
	struct segment_slot *s = find();

	if (s != NULL)
		atomic_fetch_add_explicit(&s->lost, 1, memory_order_relaxed);
}

bool
slot_hold(pid_t *holder)
{
	struct segment_slot *s = find();

	*holder = s != NULL ? segment_hold(s) : 0;
	return s != NULL;
}

void
slot_let_go(void)
{
	struct segment_slot *s = find();

	if (s != NULL)
		segment_let_go(s);
}
