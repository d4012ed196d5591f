/* SPDX-License-Identifier: Apache-2.0 */
/* trail.c - see trail.h. */
#include <stdio.h>

#include <sys/stat.h>

#include "base/clock.h"
#include "worker/queue/trail.h"
#include "worker/shm/gauge.h"

/* As others see it, or the number of its memory. */
static void
key_of(const struct hall *h, char *key, size_t room)
{
	char name[GAUGE_NAME];
	struct stat st = { 0 };

	if (h->gauge != NULL) {
		gauge_name(h->gauge, name);
		snprintf(key, room, "queue#%.*s", GAUGE_NAME, name);
		return;
	}
	fstat(h->fd, &st);
	snprintf(key, room, "queue#%llu", (unsigned long long)st.st_ino);
}

/* The lock is held. */
static void
flush(const struct hall *h, struct trail *t)
{
	char key[GAUGE_NAME + 32];

	if (t->at == 0)
		return;
	key_of(h, key, sizeof(key));
	prof_note_items(key, t->at, t->items);
	t->noted = t->at;
	t->at = 0;
}

void
trail_note(struct hall *h)
{
	struct trail *t = &h->trail;
	uint64_t items = 0;
	int64_t now;

	pthread_mutex_lock(&t->lock);
	now = clock_now();
	for (uint32_t i = 0; i < h->plan.lanes; i++)
		items += lane_count(h, &h->lane[i]);
	if (now - t->noted >= TRAIL_NS)
		flush(h, t);
	t->at = now;
	t->items = items;
	if (now - t->noted >= TRAIL_NS)
		flush(h, t);
	pthread_mutex_unlock(&t->lock);
}

static void
flush_one(struct hall *h, void *unused)
{
	(void)unused;
	if (!atomic_load(&h->trail.is_on))
		return;
	pthread_mutex_lock(&h->trail.lock);
	flush(h, &h->trail);
	pthread_mutex_unlock(&h->trail.lock);
}

static void
flush_all(void)
{
	hall_each(flush_one, NULL);
}

void
trail_begin(struct hall *h)
{
	pthread_mutex_init(&h->trail.lock, NULL);
	prof_on_end(flush_all);
	atomic_store(&h->trail.is_on, true);
}

void
trail_end(struct hall *h)
{
	if (!atomic_exchange(&h->trail.is_on, false))
		return;
	flush(h, &h->trail);
	pthread_mutex_destroy(&h->trail.lock);
}
