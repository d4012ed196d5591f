/* SPDX-License-Identifier: Apache-2.0 */
/* again.c - see again.h. */
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "launcher/job/again.h"

/* Of the second failure on: a second, doubled up to half a minute; Kubernetes
 * waits from 10 s to 5 min, which is long for a person who looks on. */
#define PAUSE_NS     NS_PER_S
#define PAUSE_MAX_NS (30 * NS_PER_S)

/* Those that are too old count no more. */
static void
forget(struct again *a, int64_t window_ns, int64_t now)
{
	uint32_t old = 0;

	while (window_ns > 0 && old < a->counted &&
		now - a->failed_ns[old] > window_ns)
		old++;
	a->counted -= old;
	memmove(a->failed_ns, a->failed_ns + old,
		a->counted * sizeof(a->failed_ns[0]));
}

static int64_t
pause_of(uint32_t counted, uint32_t random)
{
	int64_t pause = PAUSE_NS;

	if (counted < 2)
		return 0;
	for (uint32_t i = 2; i < counted && pause < PAUSE_MAX_NS; i++)
		pause *= 2;
	if (pause > PAUSE_MAX_NS)
		pause = PAUSE_MAX_NS;
	return pause + pause / 10 * (random % 1024) / 1024;
}

/* Progress makes failures forgotten, and not the machine's other users: attempts
 * that end at once begin one in a second. */
static int64_t
spaced(const struct again *a, int64_t now, int64_t pause)
{
	int64_t since = now - a->last_ns;

	if (a->failures > 0 && since < PAUSE_NS && pause < PAUSE_NS - since)
		return PAUSE_NS - since;
	return pause;
}

void
again_judge(struct again *a, const struct again_rule *rule, int64_t now,
	int64_t best, uint32_t random)
{
	a->due = a->spent = 0;
	if (rule->most == 0)
		return;
	if (best > a->best) {
		a->best = best;
		a->counted = 0;
	}
	forget(a, rule->window_ns, now);
	if (a->counted >= rule->most || a->counted >= AGAIN_MOST) {
		a->spent = 1;
		return;
	}
	a->failed_ns[a->counted++] = now;
	a->pause_ns = spaced(a, now, pause_of(a->counted, random));
	a->last_ns = now;
	a->failures++;
	a->restarts++;
	a->due = 1;
}

void
again_asked(struct again *a)
{
	a->spent = 0;
	a->pause_ns = 0;
	a->restarts++;
	a->due = 1;
}

bool
again_is_due(const struct again *a)
{
	return a->due != 0;
}

void
again_cancel(struct again *a)
{
	if (again_is_due(a))
		a->restarts--;
	a->due = 0;
}

void
again_note(struct again *a, const struct again_past *past)
{
	a->past[a->past_count++ % AGAIN_PAST] = *past;
}

const struct again_past *
again_each(const struct again *a, uint32_t i)
{
	uint32_t first =
		a->past_count > AGAIN_PAST ? a->past_count - AGAIN_PAST : 0;

	return first + i >= a->past_count ? NULL :
					    &a->past[(first + i) % AGAIN_PAST];
}
