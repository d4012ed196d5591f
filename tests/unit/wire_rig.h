/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_rig.h - an agent whose peers are played by the test.
 *
 * Its only carrier records the messages that the agent sends, and the test
 * delivers those that a peer sends: wire_sent() and wire_deliver(). This process
 * is "self" (0); the peers are "one" (1), "two" (2) and "three" (3).
 */
#ifndef TESTS_UNIT_WIRE_RIG_H
#define TESTS_UNIT_WIRE_RIG_H

#include <criterion/criterion.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/func.h>
#include <xrun/future.h>
#include <xrun/rpc.h>
#include <xrun/rref.h>
#include <xrun/value.h>

#include "worker/rpc/agent.h"
#include "worker/rpc/message.h"

#define WIRE_PEERS    4  /* with this process */
#define WIRE_LINKS    64 /* with peers that a test adds */
#define WIRE_SENT     2048
#define WIRE_BODY     8192
#define WIRE_PEER_AGE 70 /* incarnation of peer i: WIRE_PEER_AGE + i */

struct xr_body_buffer {
	_Atomic size_t refs;
	char data[];
};

struct wire_message {
	struct xr_record record;
	uint32_t to;
	bool seen; /* by wire_sent() */
	bool lent; /* as the agent said */
	size_t len;
	uint8_t data[WIRE_BODY]; /* its beginning */
};

static struct {
	struct xr_carrier_host host;
	pthread_mutex_t lock; /* of all that follows */
	struct wire_message sent[WIRE_SENT];
	unsigned count;
	enum xr_status answer; /* of send() */
	unsigned refusals;     /* that are left; UINT_MAX: any number */
	pthread_cond_t more;   /* than @count there was */
} played = { .lock = PTHREAD_MUTEX_INITIALIZER,
	.more = PTHREAD_COND_INITIALIZER };

static char wire_link[WIRE_LINKS], wire_self;
static struct peer *wire_peer[WIRE_PEERS];

/* --- the carrier ------------------------------------------------------------ */

static inline enum xr_status
wire_open(const struct xr_carrier_host *host,
	const struct xr_carrier_opts *opts, void **self, struct xr_error *err)
{
	(void)opts;
	(void)err;
	played.host = *host;
	*self = &wire_self;
	return XR_OK;
}

static inline size_t
wire_address(void *self, char *text, size_t cap)
{
	(void)self;
	return (size_t)snprintf(text, cap, "wire:here");
}

static inline enum xr_status
wire_connect(void *self, const char *address, uint32_t id, uint64_t incarnation,
	void *peer, struct xr_link **link, struct xr_error *err)
{
	(void)self;
	(void)address;
	(void)incarnation;
	(void)peer;
	(void)err;
	*link = (struct xr_link *)&wire_link[id];
	return XR_OK;
}

static inline enum xr_status
wire_send(struct xr_link *link, const struct xr_message *m, bool *pending)
{
	struct wire_message *w;
	enum xr_status status;
	size_t room;

	if (pending != NULL)
		*pending = false;
	pthread_mutex_lock(&played.lock);
	status = played.refusals > 0 ? played.answer : XR_OK;
	if (played.refusals > 0 && played.refusals < UINT_MAX)
		played.refusals--;
	if (status == XR_OK && played.count < WIRE_SENT) {
		w = &played.sent[played.count++];
		*w = (struct wire_message){
			.record = m->record,
			.to = (uint32_t)((char *)link - wire_link),
			.lent = m->lent,
		};
		for (uint32_t i = 0; i < m->count; i++) {
			room = w->len < WIRE_BODY ? WIRE_BODY - w->len : 0;
			if (room > m->parts[i].len)
				room = m->parts[i].len;
			if (room > 0)
				memcpy(w->data + w->len, m->parts[i].data,
					room);
			w->len += m->parts[i].len;
		}
		pthread_cond_broadcast(&played.more);
	}
	pthread_mutex_unlock(&played.lock);
	return status;
}

static inline uint32_t
wire_progress(void *self, uint32_t budget)
{
	(void)self;
	(void)budget;
	return 0;
}

/* A block of the body's own size: a sanitizer reports a read beyond it. */
static inline struct xr_body_buffer *
wire_take(void *self, const struct xr_body *body, const void **data)
{
	struct xr_body_buffer *b = malloc(sizeof(*b) + body->len);

	(void)self;
	if (b == NULL)
		return NULL;
	atomic_init(&b->refs, 1);
	if (body->len > 0)
		memcpy(b->data, body->data, body->len);
	*data = b->data;
	return b;
}

static inline void
wire_unref(struct xr_body_buffer *b)
{
	if (atomic_fetch_sub(&b->refs, 1) == 1)
		free(b);
}

static inline void
wire_close(struct xr_link *link)
{
	(void)link;
}

static inline void
wire_free(void *self)
{
	(void)self;
}

static const struct xr_carrier wire_carrier = {
	.size = sizeof(wire_carrier),
	.api = XR_CARRIER_API,
	.name = "wire",
	.copies = UINT32_MAX,
	.open = wire_open,
	.address = wire_address,
	.connect = wire_connect,
	.send = wire_send,
	.progress = wire_progress,
	.body_take = wire_take,
	.buffer_unref = wire_unref,
	.link_close = wire_close,
	.free = wire_free,
};

/* --- the agent -------------------------------------------------------------- */

static inline void
wire_begin(void)
{
	static const char *const names[] = { "self", "one", "two", "three" };
	static const struct xr_carrier *const carriers[] = { &wire_carrier };
	const struct agent_wish wish = {
		.name = "self",
		.incarnation = WIRE_PEER_AGE,
		.threads = 2,
		.timeout = INT64_MAX,
		.carriers = carriers,
		.carrier_count = 1,
	};
	struct xr_error err = { 0 };

	played.count = 0;
	played.refusals = 0;
	cr_assert_eq(agent_open(&wish, &err), XR_OK, "%s", err.text);
	agent_begin();
	wire_peer[0] = agent_self();
	for (uint32_t i = 1; i < WIRE_PEERS; i++) {
		wire_peer[i] = agent_add(&(struct agent_member){ names[i], i,
			WIRE_PEER_AGE + i, "wire:there", NULL, 0 });
		cr_assert_not_null(wire_peer[i]);
	}
}

static inline void
wire_end(void)
{
	agent_close(NULL, NULL);
}

/* wire_refuse() - the next @count calls of send() return @status. */
static inline void
wire_refuse(enum xr_status status, unsigned count)
{
	pthread_mutex_lock(&played.lock);
	played.answer = status;
	played.refusals = count;
	pthread_mutex_unlock(&played.lock);
}

/* wire_sent() - the first message of @kind to peer @to that no call returned yet;
 * NULL if there is none. */
static inline const struct wire_message *
wire_sent(enum message_kind kind, uint32_t to)
{
	struct wire_message *w = NULL;

	pthread_mutex_lock(&played.lock);
	for (unsigned i = 0; i < played.count && w == NULL; i++)
		if (!played.sent[i].seen &&
			played.sent[i].record.kind == kind &&
			played.sent[i].to == to)
			w = &played.sent[i];
	if (w != NULL)
		w->seen = true;
	pthread_mutex_unlock(&played.lock);
	return w;
}

/* wire_answer() - the value that question @corr of peer @to was answered, an ERROR or
 * another; NULL if it was not answered. A reference. */
static inline struct xr_value *
wire_answer(uint32_t to, uint64_t corr)
{
	const struct wire_message *m = wire_sent(MESSAGE_REPLY, to);
	struct xr_value *v = NULL;
	struct xr_part part;

	if (m == NULL)
		m = wire_sent(MESSAGE_ERROR, to);
	if (m == NULL)
		return NULL;
	cr_expect_eq(m->record.corr, corr);
	cr_assert_eq(m->record.flags, MESSAGE_VALUE);
	part = (struct xr_part){ m->data, m->len };
	cr_assert_eq(xr_decode(&part, 1, NULL, &v, NULL), XR_OK);
	cr_expect_eq(m->record.kind == MESSAGE_ERROR,
		xr_value_kind(v) == XR_ERROR);
	return v;
}

/* wire_failed() - was it answered with an ERROR of @status, which has these words? */
static inline bool
wire_failed(uint32_t to, uint64_t corr, enum xr_status status,
	const char *words)
{
	struct xr_value *v = wire_answer(to, corr);
	struct xr_failure f = { .size = sizeof(f) };
	bool is = v != NULL && xr_value_failure(v, &f) == XR_OK &&
		f.status == status && strstr(f.text, words) != NULL;

	if (!is && v != NULL && f.text != NULL)
		cr_log_error("%u: %s", to, f.text);
	xr_value_unref(v);
	return is;
}

/* wire_await() - until @count messages were sent, since wire_forget(). */
static inline void
wire_await(unsigned count)
{
	pthread_mutex_lock(&played.lock);
	while (played.count < count)
		pthread_cond_wait(&played.more, &played.lock);
	pthread_mutex_unlock(&played.lock);
}

/* wire_left() - messages that wire_sent() has not returned. */
static inline unsigned
wire_left(void)
{
	unsigned n = 0;

	pthread_mutex_lock(&played.lock);
	for (unsigned i = 0; i < played.count; i++)
		n += !played.sent[i].seen;
	pthread_mutex_unlock(&played.lock);
	return n;
}

static inline void
wire_forget(void)
{
	pthread_mutex_lock(&played.lock);
	played.count = 0;
	pthread_mutex_unlock(&played.lock);
}

/* --- messages of peers ------------------------------------------------------ */

static inline void
wire_deliver(uint32_t from, const struct xr_record *record, const void *data,
	size_t len)
{
	/* Of its own size: a sanitizer reports a read beyond it. */
	void *copy = malloc(len > 0 ? len : 1);
	const struct xr_body body = { .data = copy, .len = len };

	cr_assert_not_null(copy);
	if (len > 0)
		memcpy(copy, data, len);
	played.host.deliver(played.host.ctx, wire_peer[from], record, &body);
	free(copy);
}

static inline void
wire_say(uint32_t from, enum message_kind kind, uint64_t corr, const void *data,
	size_t len)
{
	const struct xr_record record = { .kind = (uint8_t)kind, .corr = corr };

	wire_deliver(from, &record, data, len);
}

/* wire_encode() - takes @value; returns the bytes in @data[@cap]. */
static inline size_t
wire_encode(struct xr_value *value, uint8_t *data, size_t cap)
{
	struct xr_encoded *encoded = NULL;
	const struct xr_part *parts;
	size_t n, len = 0;

	cr_assert_not_null(value);
	cr_assert_eq(xr_encode(value, NULL, &encoded, NULL), XR_OK);
	parts = xr_encoded_parts(encoded, &n);
	for (size_t i = 0; i < n; i++) {
		cr_assert_leq(len + parts[i].len, cap);
		memcpy(data + len, parts[i].data, parts[i].len);
		len += parts[i].len;
	}
	xr_encoded_free(encoded);
	xr_value_unref(value);
	return len;
}

/* wire_reply() - the answer to a question of this process; takes @value. */
static inline void
wire_reply(uint32_t from, enum message_kind kind, uint64_t corr,
	struct xr_value *value)
{
	const struct xr_record record = { .kind = (uint8_t)kind,
		.flags = MESSAGE_VALUE,
		.corr = corr };
	uint8_t data[WIRE_BODY];

	wire_deliver(from, &record, data,
		wire_encode(value, data, sizeof(data)));
}

/* wire_is_lost() - the agent has given up peer @i, for this reason. */
static inline void
wire_is_lost(uint32_t i, const char *why)
{
	struct xr_error err = { 0 };

	cr_assert_eq(atomic_load(&wire_peer[i]->state), PEER_LOST);
	cr_expect_eq(peer_lost_error(wire_peer[i], &err), XR_E_PEER_LOST);
	cr_expect_not_null(strstr(err.text, why), "%s", err.text);
}

#endif /* TESTS_UNIT_WIRE_RIG_H */
