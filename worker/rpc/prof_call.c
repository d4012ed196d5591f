/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prof_call.c - calls that are recorded, here and where they run; see prof.h.
 *
 * What is sent back, MESSAGE_EVENTS with the number of the call, is u32 count and
 * for each event i64 start, i64 end, u32 worker, u32 thread, u16 length, key.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/method.h"
#include "worker/rpc/prof.h"
#include "worker/rpc/serve_inner.h"

#define BUCKETS   64 /* a power of 2 */
#define KEY_MAX   4095
#define HEAD      26        /* bytes of an event before its key */
#define BYTES_MAX (4 << 20) /* of events that are sent back */
#define SAID      "#remote_op: "

struct prof_call {
	LIST_ENTRY(prof_call) list;
	uint64_t corr;
	struct peer *to;
	struct prof_into into; /* references */
	int64_t start;
	uint32_t came; /* events of where it ran */
	char key[];
};
LIST_HEAD(calls, prof_call);

static struct {
	pthread_mutex_t lock;
	struct calls bucket[BUCKETS];
} open_calls = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct calls *
bucket_of(uint64_t corr)
{
	return &open_calls.bucket[corr & (BUCKETS - 1)];
}

/* --- at the caller -------------------------------------------------------- */

/* "rpc_sync#f(a -> b)"; what has no function is a fetch. */
static int
write_key(char *out, size_t cap, const struct question *q, const char *mode)
{
	const char *from = agent_self()->name, *to = q->to->name;

	if (q->method == NULL)
		return snprintf(out, cap, "to_here#(%s)->(%s)", from, to);
	if ((q->flags & MESSAGE_REMOTE) != 0)
		mode = "remote";
	return snprintf(out, cap, "rpc_%s#%s(%s -> %s)", mode, q->method->name,
		from, to);
}

struct prof_call *
prof_call_open(const struct question *q, uint64_t corr, const char *mode)
{
	int len = write_key(NULL, 0, q, mode);
	struct prof_call *c = malloc(sizeof(*c) + (size_t)len + 1);

	if (c == NULL)
		return NULL;
	*c = (struct prof_call){
		.corr = corr,
		.to = q->to,
		.start = clock_now(),
	};
	write_key(c->key, (size_t)len + 1, q, mode);
	c->into.thread = prof_thread();
	c->into.own = prof_ref(prof_into()->own);
	c->into.serving = prof_ref(prof_into()->serving);
	pthread_mutex_lock(&open_calls.lock);
	LIST_INSERT_HEAD(bucket_of(corr), c, list);
	pthread_mutex_unlock(&open_calls.lock);
	return c;
}

bool
prof_call_travels(const struct prof_call *c)
{
	return c->into.own != NULL || c->into.serving != NULL;
}

void
prof_call_close(struct prof_call *c)
{
	if (c == NULL)
		return;
	pthread_mutex_lock(&open_calls.lock);
	LIST_REMOVE(c, list);
	pthread_mutex_unlock(&open_calls.lock);
	prof_note(&c->into, c->key, c->start, clock_now());
	prof_unref(c->into.own);
	prof_unref(c->into.serving);
	free(c);
}

/* The next event of what came; its key is in @key. */
static bool
read_event(struct xr_body *body, struct prof_event *e, char *key)
{
	const uint8_t *at = body->data;
	uint16_t len;

	if (body->len < HEAD)
		return false;
	memcpy(&e->start, at, 8);
	memcpy(&e->end, at + 8, 8);
	memcpy(&e->worker, at + 16, 4);
	memcpy(&e->thread, at + 20, 4);
	memcpy(&len, at + 24, 2);
	if (len > body->len - HEAD || len > KEY_MAX)
		return false;
	memcpy(key, at + HEAD, len);
	key[len] = '\0';
	e->key = key;
	body->data = at + HEAD + len;
	body->len -= HEAD + (size_t)len;
	return true;
}

/* The lock is held. */
static void
take_events(struct prof_call *c, struct xr_body body, uint32_t count)
{
	char own[KEY_MAX + 1];
	struct prof_event e = { .open = 0 };

	for (uint32_t i = 0; i < count && read_event(&body, &e, own); i++) {
		size_t len = strlen(c->key) + strlen(SAID) + strlen(own) + 1;
		char *key = malloc(len);

		if (key == NULL)
			return;
		snprintf(key, len, "%s" SAID "%s", c->key, own);
		e.key = key;
		e.order = c->start;
		e.sub = ++c->came;
		e.remote = true;
		prof_add(c->into.own, &e);
		prof_add(c->into.serving, &e);
		free(key);
	}
}

void
prof_arrived(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body)
{
	struct xr_body rest = *body;
	struct prof_call *c;
	uint32_t count;

	if (body->len < sizeof(count))
		return;
	memcpy(&count, body->data, sizeof(count));
	rest.data = (const char *)body->data + sizeof(count);
	rest.len -= sizeof(count);
	pthread_mutex_lock(&open_calls.lock);
	LIST_FOREACH(c, bucket_of(record->corr), list)
	if (c->corr == record->corr && c->to == peer) {
		take_events(c, rest, count);
		break;
	}
	pthread_mutex_unlock(&open_calls.lock);
}

/* --- where it runs -------------------------------------------------------- */

/* What this thread records is not the function's. */
void
prof_run_begin(struct prof_run *run, struct xr_call *call)
{
	struct prof_into *into = prof_into();

	run->before = *into;
	run->start = clock_now();
	*into = (struct prof_into){ .serving = call->prof };
	call->began = run->start;
	if (call->kept != NULL)
		call->kept->began = run->start;
}

/* One that the function has begun, and left. */
static void
leave_own(struct prof_into *into)
{
	if (into->own != NULL)
		prof_close(into->own);
	prof_unref(into->own);
}

void
prof_run_left(void)
{
	struct prof_into *into = prof_into();

	leave_own(into);
	*into = (struct prof_into){ .own = NULL };
}

void
prof_run_end(struct prof_run *run, const char *func)
{
	struct prof_into *into = prof_into();
	const struct prof_into nobody = { .own = NULL };

	leave_own(into);
	*into = run->before;
	/* Its caller has it from prof_answer(). */
	prof_note(&nobody, func, run->start, clock_now());
}

/* Up to the last whole character of it. */
static uint16_t
key_length(const char *key)
{
	size_t len = strlen(key);

	if (len > KEY_MAX) {
		len = KEY_MAX;
		while (len > 0 && (key[len] & 0xc0) == 0x80)
			len--;
	}
	return (uint16_t)len;
}

static size_t
write_event(uint8_t *out, const struct prof_event *e)
{
	uint16_t len = key_length(e->key);

	memcpy(out, &e->start, 8);
	memcpy(out + 8, &e->end, 8);
	memcpy(out + 16, &e->worker, 4);
	memcpy(out + 20, &e->thread, 4);
	memcpy(out + 24, &len, 2);
	memcpy(out + HEAD, e->key, len);
	return HEAD + (size_t)len;
}

/* As many of them as there is room for, first things first. */
static uint8_t *
pack(const struct prof_event *e, size_t count, size_t *len)
{
	uint32_t n = 0;
	uint8_t *out;

	*len = sizeof(n);
	while (n < count && *len < BYTES_MAX)
		*len += HEAD + (size_t)key_length(e[n++].key);
	out = malloc(*len);
	if (out == NULL)
		return NULL;
	memcpy(out, &n, sizeof(n));
	*len = sizeof(n);
	for (uint32_t i = 0; i < n; i++)
		*len += write_event(out + *len, &e[i]);
	return out;
}

void
prof_answer(struct xr_call *call)
{
	struct xr_message m = {
		.record = { .kind = MESSAGE_EVENTS, .corr = call->corr },
		.count = 1,
	};
	struct prof_event run = {
		.start = call->began,
		.end = clock_now(),
		.order = call->began,
		.worker = agent_self()->id,
		.thread = prof_thread(),
	};
	const struct prof_event *events;
	struct xr_part part;
	uint8_t *data;
	size_t count;

	if (call->func != NULL && call->began != 0) {
		run.key = (char *)call->func->f.name;
		prof_add(call->prof, &run);
	}
	prof_close(call->prof);
	events = prof_sort(call->prof, &count);
	data = count > 0 ? pack(events, count, &part.len) : NULL;
	if (data != NULL) {
		part.data = data;
		m.parts = &part;
		peer_send(call->peer, &m, NULL, NULL, NULL);
	}
	free(data);
}
