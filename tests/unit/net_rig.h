/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_rig.h - a host of the TCP carrier that writes down what it is told: one
 * `side` is one worker, its `mates` are those it knows, by their ids.
 *
 * Whatever is waited for is waited for at most 30 s (UNTIL()).
 */
#ifndef TESTS_UNIT_NET_RIG_H
#define TESTS_UNIT_NET_RIG_H

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "worker/net/tcp.h"

#define MATES 8

struct side;

struct mate {
	struct side *side;
	uint32_t id;
	struct xr_link *link; /* the last it was told of */
	uint64_t incarnation; /* that accepted() was told */
	unsigned accepted, lost, delivered;
	uint64_t next; /* corr that has to come next, where that is looked at */
	unsigned wrong; /* messages that were not what they had to be */
	char why[256];
};

struct side {
	pthread_mutex_t lock;
	pthread_cond_t news;
	void *self;
	char address[XR_ADDRESS_MAX + 1];
	struct xr_carrier_host host;
	struct xr_carrier_opts opts;
	struct mate mates[MATES]; /* by id */
	bool knows_nobody;
	unsigned sent, awake;
	/* Called without the lock. */
	void (*on_message)(struct mate *m, const struct xr_record *r,
		const struct xr_body *body);
	void *(*on_place)(struct mate *m, uint64_t len);
	void (*on_lost)(struct mate *m, struct xr_link *link);
};

static const uint8_t secret_a[32] = "the secret of this job, 32 bytes";
static const uint8_t secret_b[32] = "the secret of another job: other";
static struct xr_error err;

/* Under the lock: until there are news, but at most @ms. */
static inline bool
rig_wait_for(struct side *s, long ms)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return pthread_cond_timedwait(&s->news, &s->lock, &until) == 0;
}

#define UNTIL(s, what) \
	do { \
		pthread_mutex_lock(&(s)->lock); \
		while (!(what)) \
			if (!rig_wait_for(s, 30000)) \
				break; \
		cr_assert(what, "not within 30 s: %s", #what); \
		pthread_mutex_unlock(&(s)->lock); \
	} while (0)

static inline void
rig_deliver(void *ctx, void *peer, const struct xr_record *record,
	const struct xr_body *body)
{
	struct side *s = ctx;
	struct mate *m = peer;

	if (s->on_message != NULL)
		s->on_message(m, record, body);
	pthread_mutex_lock(&s->lock);
	m->wrong += m->next != 0 && record->corr != m->next;
	m->next += m->next != 0;
	m->delivered++;
	pthread_cond_broadcast(&s->news);
	pthread_mutex_unlock(&s->lock);
}

static inline void *
rig_place(void *ctx, void *peer, const struct xr_record *record, uint64_t len)
{
	struct side *s = ctx;

	(void)record;
	return s->on_place == NULL ? NULL : s->on_place(peer, len);
}

static inline void
rig_sent(void *ctx, void *token)
{
	struct side *s = ctx;

	pthread_mutex_lock(&s->lock);
	s->sent++;
	if (token != NULL)
		++*(unsigned *)token;
	pthread_cond_broadcast(&s->news);
	pthread_mutex_unlock(&s->lock);
}

static inline void *
rig_accepted(void *ctx, uint32_t id, uint64_t incarnation, struct xr_link *link)
{
	struct side *s = ctx;
	struct mate *m = id < MATES && !s->knows_nobody ? &s->mates[id] : NULL;

	if (m == NULL)
		return NULL;
	pthread_mutex_lock(&s->lock);
	m->link = link;
	m->incarnation = incarnation;
	m->accepted++;
	pthread_cond_broadcast(&s->news);
	pthread_mutex_unlock(&s->lock);
	return m;
}

static inline void
rig_lost(void *ctx, void *peer, struct xr_link *link, const char *why)
{
	struct side *s = ctx;
	struct mate *m = peer;

	if (s->on_lost != NULL)
		s->on_lost(m, link);
	pthread_mutex_lock(&s->lock);
	m->lost++;
	snprintf(m->why, sizeof(m->why), "%s", why);
	pthread_cond_broadcast(&s->news);
	pthread_mutex_unlock(&s->lock);
}

static inline void
rig_awake(void *ctx)
{
	struct side *s = ctx;

	pthread_mutex_lock(&s->lock);
	s->awake++;
	pthread_cond_broadcast(&s->news);
	pthread_mutex_unlock(&s->lock);
}

/* What its options are before it is opened. */
static inline struct side *
side_new(uint32_t id)
{
	struct side *s = calloc(1, sizeof(*s));

	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->news, NULL);
	for (uint32_t i = 0; i < MATES; i++) {
		s->mates[i].side = s;
		s->mates[i].id = i;
	}
	s->host = (struct xr_carrier_host){
		.size = sizeof(s->host),
		.ctx = s,
		.deliver = rig_deliver,
		.place = rig_place,
		.sent = rig_sent,
		.accepted = rig_accepted,
		.lost = rig_lost,
		.awake = rig_awake,
	};
	s->opts = (struct xr_carrier_opts){
		.size = sizeof(s->opts),
		.id = id,
		.incarnation = 1,
		.secret = secret_a,
	};
	return s;
}

static inline void
side_start(struct side *s)
{
	cr_assert_eq(tcp_carrier.open(&s->host, &s->opts, &s->self, &err),
		XR_OK, "%s", err.text);
	cr_assert_lt(tcp_carrier.address(s->self, s->address,
			     sizeof(s->address)),
		sizeof(s->address));
}

static inline struct side *
side_open(uint32_t id)
{
	struct side *s = side_new(id);

	side_start(s);
	return s;
}

static inline void
side_close(struct side *s)
{
	tcp_carrier.free(s->self); /* NULL: it was not opened */
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->news);
	free(s);
}

/* A link of @s to @id at @address, @incarnation. */
static inline struct mate *
side_dial(struct side *s, const char *address, uint32_t id,
	uint64_t incarnation)
{
	struct mate *m = &s->mates[id];
	struct xr_link *link = NULL;

	cr_assert_eq(tcp_carrier.connect(s->self, address, id, incarnation, m,
			     &link, &err),
		XR_OK, "%s", err.text);
	pthread_mutex_lock(&s->lock);
	m->link = link;
	pthread_mutex_unlock(&s->lock);
	return m;
}

static inline struct mate *
side_connect(struct side *s, struct side *to)
{
	return side_dial(s, to->address, to->opts.id, to->opts.incarnation);
}

static inline enum xr_status
mate_send(struct mate *m, uint64_t corr, const void *data, size_t len,
	bool *pending)
{
	struct xr_part part = { data, len };
	struct xr_message message = {
		.record = { .kind = 7,
			.flags = 1,
			.aux = 515,
			.method = 9,
			.corr = corr },
		.parts = &part,
		.count = 1,
	};

	return tcp_carrier.send(m->link, &message, pending);
}

/* One that need not be kept. */
static inline void
mate_say(struct mate *m, uint64_t corr, const char *text)
{
	bool pending = true;

	cr_assert_eq(mate_send(m, corr, text, strlen(text), &pending), XR_OK);
	cr_assert(!pending);
}

static inline void
mate_close(struct mate *m)
{
	struct xr_link *link;

	pthread_mutex_lock(&m->side->lock);
	link = m->link;
	m->link = NULL;
	pthread_mutex_unlock(&m->side->lock);
	tcp_carrier.link_close(link);
}

#endif /* TESTS_UNIT_NET_RIG_H */
