/* SPDX-License-Identifier: Apache-2.0 */
/* fault.c - what becomes of a message on purpose; see fault.h. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "worker/rpc/fault.h"
#include "worker/rpc/message.h"
#include "worker/rpc/peer.h"

#define BUCKETS  1024
#define SENT_MAX 65536 /* messages that are told apart */
#define HOLD_NS  (20 * NS_PER_MS)

/* A message that was sent, by what tells it from others. */
struct sent {
	struct sent *next;
	uint64_t hash;
	uint32_t rule, times;
};

_Atomic bool fault_rules_are;

static struct {
	pthread_mutex_t lock; /* of what follows */
	struct fault_rules rules;
	struct sent *bucket[BUCKETS];
	uint32_t count;
	struct fault_held *held; /* the first one to come is due first */
} f = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void
forget_all(void)
{
	struct sent *s;

	for (uint32_t i = 0; i < BUCKETS; i++)
		while ((s = f.bucket[i]) != NULL) {
			f.bucket[i] = s->next;
			free(s);
		}
	f.count = 0;
}

enum xr_status
fault_open(const struct xr_rpc_opts *opts, struct xr_error *err)
{
	const char *text = secure_getenv("XRUN_FAULT");
	struct fault_rules rules = { .count = 0 };
	enum xr_status status = XR_OK;

	if (opts->backend == xr_backend_find("faulty")) {
		status = fault_read_opts(&rules, opts, err);
		if (status == XR_OK && text != NULL && text[0] != '\0')
			status = fault_read(&rules, text, err);
	}
	if (status != XR_OK)
		return status;
	pthread_mutex_lock(&f.lock);
	forget_all();
	f.rules = rules;
	pthread_mutex_unlock(&f.lock);
	atomic_store(&fault_rules_are, rules.count > 0);
	return XR_OK;
}

/* FNV-1a, 64 bits. The function's name, which is not sent once it is known, does not
 * count. */
static uint64_t
hash_of(const struct peer *p, const struct xr_message *m)
{
	const uint32_t head[3] = { p->id, m->record.method, m->record.kind };
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	const uint8_t *at = (const uint8_t *)head;
	size_t len = sizeof(head);

	uint32_t i = (m->record.flags & MESSAGE_NAMED) != 0;

	for (;;) {
		for (size_t k = 0; k < len; k++)
			hash = (hash ^ at[k]) * UINT64_C(0x100000001b3);
		if (i >= m->count)
			return hash;
		at = m->parts[i].data;
		len = m->parts[i++].len;
	}
}

/* How often it was sent before; the lock is held. Where there is no memory, or are
 * too many, each is taken for a new one. */
static uint32_t
times_before(uint32_t rule, uint64_t hash)
{
	struct sent **bucket = &f.bucket[hash % BUCKETS], *s = *bucket;

	while (s != NULL && (s->hash != hash || s->rule != rule))
		s = s->next;
	if (s == NULL && f.count < SENT_MAX) {
		s = calloc(1, sizeof(*s));
		if (s == NULL)
			return 0;
		*s = (struct sent){ .next = *bucket,
			.hash = hash,
			.rule = rule };
		*bucket = s;
		f.count++;
	}
	return s != NULL ? s->times++ : 0;
}

static bool
fits(const struct fault_rule *r, const struct xr_record *record)
{
	return r->kind == record->kind &&
		(record->flags & r->flags) == r->flags_are;
}

/* The lock is held. */
static struct fault_rule
find(const struct peer *p, const struct xr_message *m)
{
	const struct fault_rule none = { .what = FAULT_NONE };

	for (uint32_t i = 0; i < f.rules.count; i++) {
		const struct fault_rule *r = &f.rules.rule[i];

		if (!fits(r, &m->record) ||
			(r->count != FAULT_ALWAYS &&
				times_before(i, hash_of(p, m)) >= r->count))
			continue;
		return *r;
	}
	return none;
}

static void
sleep_for(int64_t ns)
{
	struct timespec t = { ns / NS_PER_S, ns % NS_PER_S };

	while (nanosleep(&t, &t) == -1 && errno == EINTR)
		continue;
}

enum fault_what
fault_of(const struct peer *p, const struct xr_message *m)
{
	struct fault_rule rule;

	pthread_mutex_lock(&f.lock);
	rule = find(p, m);
	pthread_mutex_unlock(&f.lock);
	if (rule.what != FAULT_DELAY)
		return rule.what;
	sleep_for(rule.delay);
	return FAULT_NONE;
}

/* --- what is kept for later ------------------------------------------------ */

bool
fault_hold(struct peer *p, const struct xr_message *m)
{
	struct fault_held *h, **last = &f.held;
	size_t len = 0;

	for (uint32_t i = 0; i < m->count; i++)
		len += m->parts[i].len;
	/* What is lent is not there later. */
	h = m->loan_count == 0 ? malloc(sizeof(*h) + len) : NULL;
	if (h == NULL)
		return false;
	*h = (struct fault_held){ .to = p,
		.due = clock_now() + HOLD_NS,
		.message = *m,
		.part = { h->data, len } };
	len = 0;
	for (uint32_t i = 0; i < m->count; len += m->parts[i++].len)
		if (m->parts[i].len > 0)
			memcpy(h->data + len, m->parts[i].data,
				m->parts[i].len);
	h->message.parts = &h->part;
	h->message.count = 1;
	h->message.lent = false;
	h->message.token = NULL;
	pthread_mutex_lock(&f.lock);
	while (*last != NULL)
		last = &(*last)->next;
	*last = h;
	pthread_mutex_unlock(&f.lock);
	return true;
}

struct fault_held *
fault_take(const struct peer *p, int64_t now)
{
	struct fault_held **at = &f.held, *h;

	pthread_mutex_lock(&f.lock);
	while (*at != NULL &&
		((p != NULL && (*at)->to != p) || (*at)->due > now))
		at = &(*at)->next;
	h = *at;
	if (h != NULL)
		*at = h->next;
	pthread_mutex_unlock(&f.lock);
	return h;
}

int64_t
fault_due(void)
{
	int64_t due;

	pthread_mutex_lock(&f.lock);
	due = f.held != NULL ? f.held->due : INT64_MAX;
	pthread_mutex_unlock(&f.lock);
	return due;
}

void
fault_close(void)
{
	struct fault_held *h;

	while ((h = fault_take(NULL, INT64_MAX)) != NULL)
		free(h);
}
