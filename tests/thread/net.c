/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.c - three workers with carriers of TCP, each linked to each, under the
 * thread sanitizer: many threads send, while others close links, make them again,
 * and both ends do so at once.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/net/tcp.h"

#define WORKERS 3
#define SENDERS 4
#define CLOSERS 2
#define ROUNDS  300 /* of those who close */
#define APART   20  /* messages between two of them */
#define BIG     40000

struct mate {
	struct worker *worker;
	uint32_t id;
	pthread_mutex_t lock; /* one sends at a time, and nobody closes then */
	struct xr_link *link;
	bool closing; /* connect() would give the link that is being closed, ... */
	struct xr_link *closed; /* ... as accepted() may, in a last call */
};

struct worker {
	struct xr_carrier_host host;
	void *self;
	char address[XR_ADDRESS_MAX + 1];
	struct mate mates[WORKERS];
};

static struct worker workers[WORKERS];
static const uint8_t secret[32] = "of these three";
static char body[BIG];
static unsigned failures, pending_count, sent_count, delivered_count,
	lost_count, closing_count = CLOSERS;

static void
check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "# %s\n", what);
	__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
}

static void
count(unsigned *what)
{
	__atomic_add_fetch(what, 1, __ATOMIC_RELAXED);
}

static unsigned
now(const unsigned *what)
{
	return __atomic_load_n(what, __ATOMIC_RELAXED);
}

/* --- the host -------------------------------------------------------------- */

static void
deliver(void *ctx, void *peer, const struct xr_record *record,
	const struct xr_body *b)
{
	struct worker *w = ctx;
	const struct mate *m = peer;
	struct xr_body_buffer *buffer;
	const void *data;

	check(m->worker == w && record->aux == m->id, "of another peer");
	check(b->len == record->method, "of another length");
	buffer = tcp_carrier.body_take(w->self, b, &data);
	check(buffer != NULL && memcmp(data, body, b->len) == 0, "body");
	tcp_carrier.buffer_unref(buffer);
	count(&delivered_count);
}

static void *
place(void *ctx, void *peer, const struct xr_record *record, uint64_t len)
{
	(void)ctx;
	(void)peer;
	(void)record;
	(void)len;
	return NULL;
}

static void
sent(void *ctx, void *token)
{
	(void)ctx;
	check(token == &pending_count, "token");
	count(&sent_count);
}

static void *
accepted(void *ctx, uint32_t id, uint64_t incarnation, struct xr_link *link)
{
	struct worker *w = ctx;
	struct mate *m = &w->mates[id];

	(void)incarnation;
	pthread_mutex_lock(&m->lock);
	if (!m->closing || link != m->closed)
		m->link = link;
	pthread_mutex_unlock(&m->lock);
	return m;
}

static void
lost(void *ctx, void *peer, struct xr_link *link, const char *why)
{
	struct mate *m = peer;
	bool ours;

	(void)ctx;
	check(strncmp(why, "worker ", 7) == 0, why);
	count(&lost_count);
	pthread_mutex_lock(&m->lock);
	ours = m->link == link;
	if (ours)
		m->link = NULL;
	pthread_mutex_unlock(&m->lock);
	if (ours)
		tcp_carrier.link_close(link);
}

static void
awake(void *ctx)
{
	(void)ctx;
}

/* --- the threads ----------------------------------------------------------- */

static struct mate *
any_mate(unsigned *seed)
{
	unsigned w = (unsigned)rand_r(seed) % WORKERS;
	unsigned other =
		(w + 1 + (unsigned)rand_r(seed) % (WORKERS - 1)) % WORKERS;

	return &workers[w].mates[other];
}

/* Under the lock of @m; there may be a link that it does not know of yet. */
static void
connect_to(struct mate *m)
{
	struct xr_error err = { 0 };

	if (m->link == NULL && !m->closing)
		check(tcp_carrier.connect(m->worker->self,
			      workers[m->id].address, m->id, 1, m, &m->link,
			      &err) == XR_OK,
			err.text);
}

static void *
send_some(void *ctx)
{
	unsigned seed = (unsigned)(long)ctx;

	for (int i = 0; now(&closing_count) > 0; i++) {
		struct mate *m = any_mate(&seed);
		struct xr_part parts[2];
		struct xr_message message = { .parts = parts,
			.count = 2,
			.token = &pending_count };
		uint32_t len =
			(uint32_t)rand_r(&seed) % (i % 10 == 0 ? BIG : 600);
		enum xr_status status = XR_E_AGAIN;
		bool pending = false;

		parts[0] = (struct xr_part){ body, len / 2 };
		parts[1] = (struct xr_part){ body + len / 2, len - len / 2 };
		message.record.aux = (uint16_t)(m->worker - workers);
		message.record.method = len;
		message.more = i % 3 == 0;
		pthread_mutex_lock(&m->lock);
		connect_to(m);
		if (m->link != NULL)
			status = tcp_carrier.send(m->link, &message, &pending);
		pthread_mutex_unlock(&m->lock);
		check(status == XR_OK || status == XR_E_AGAIN ||
				status == XR_E_PEER_LOST,
			"send");
		if (status == XR_OK && pending)
			count(&pending_count);
	}
	return NULL;
}

static void *
close_some(void *ctx)
{
	unsigned seed = (unsigned)(long)ctx, from;

	for (int i = 0; i < ROUNDS; i++) {
		struct mate *m = any_mate(&seed);
		struct xr_link *link;

		pthread_mutex_lock(&m->lock);
		link = m->closing ? NULL : m->link;
		m->closing = m->closing || link != NULL;
		m->closed = link != NULL ? link : m->closed;
		m->link = link == NULL ? m->link : NULL;
		pthread_mutex_unlock(&m->lock);
		if (link == NULL)
			continue;
		tcp_carrier.link_close(link);
		pthread_mutex_lock(&m->lock);
		m->closing = false;
		connect_to(m);
		pthread_mutex_unlock(&m->lock);
		from = now(&delivered_count);
		while (now(&delivered_count) - from < APART)
			sched_yield();
	}
	__atomic_sub_fetch(&closing_count, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void
open_all(void)
{
	struct xr_carrier_opts opts = { .size = sizeof(opts),
		.incarnation = 1,
		.secret = secret };
	struct xr_error err = { 0 };

	for (uint32_t w = 0; w < WORKERS; w++) {
		workers[w].host = (struct xr_carrier_host){
			sizeof(struct xr_carrier_host), &workers[w], deliver,
			place, sent, accepted, lost, awake
		};
		for (uint32_t i = 0; i < WORKERS; i++) {
			workers[w].mates[i].worker = &workers[w];
			workers[w].mates[i].id = i;
			pthread_mutex_init(&workers[w].mates[i].lock, NULL);
		}
		opts.id = w;
		if (tcp_carrier.open(&workers[w].host, &opts, &workers[w].self,
			    &err) != XR_OK)
			check(false, err.text);
		tcp_carrier.address(workers[w].self, workers[w].address,
			sizeof(workers[w].address));
	}
}

static void
close_all(void)
{
	struct xr_link *link;

	for (uint32_t w = 0; w < WORKERS; w++) {
		for (uint32_t i = 0; i < WORKERS; i++) {
			struct mate *m = &workers[w].mates[i];

			pthread_mutex_lock(&m->lock);
			link = m->link;
			m->link = NULL;
			pthread_mutex_unlock(&m->lock);
			tcp_carrier.link_close(link);
		}
	}
	for (uint32_t w = 0; w < WORKERS; w++)
		tcp_carrier.free(workers[w].self);
}

int
main(void)
{
	pthread_t thread[SENDERS + CLOSERS];

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("1..1");
	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = (char)(i * 31 >> 3);
	open_all();
	for (long t = 0; t < SENDERS + CLOSERS; t++)
		pthread_create(&thread[t], NULL,
			t < SENDERS ? send_some : close_some, (void *)(t + 1));
	for (int t = 0; t < SENDERS + CLOSERS; t++)
		pthread_join(thread[t], NULL);
	close_all();
	check(pending_count == sent_count, "what was pending was given back");
	check(delivered_count > 0 && lost_count > 0, "nothing happened");
	printf("# %u delivered, %u links lost, %u were pending\n",
		delivered_count, lost_count, pending_count);
	printf("%s 1 - threads send over links that come and go\n",
		failures ? "not ok" : "ok");
	return failures != 0;
}
