/* SPDX-License-Identifier: Apache-2.0 */
/* peer_rig.h - one peer without an agent, over a carrier of the test. */
#ifndef TESTS_UNIT_PEER_RIG_H
#define TESTS_UNIT_PEER_RIG_H

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/error.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/due.h"
#include "worker/rpc/figures.h"
#include "worker/rpc/message.h"
#include "worker/rpc/parcel.h"
#include "worker/rpc/peer.h"

static struct xr_error err;
static struct peer *p; /* "one" (1), the only one */
static _Atomic unsigned bells;
static enum agent_state state;

/* --- what is called instead ------------------------------------------------------------ */

void __wrap_lead_bell(void);
struct peer *__wrap_agent_first(void);
struct peer *__wrap_agent_next(const struct peer *of);
enum agent_state __wrap_agent_state(void);
void __wrap_agent_connect(struct peer *of);

void
__wrap_lead_bell(void)
{
	atomic_fetch_add(&bells, 1);
}

struct peer *
__wrap_agent_first(void)
{
	return p;
}

struct peer *
__wrap_agent_next(const struct peer *of)
{
	cr_expect_eq(of, p);
	return NULL;
}

enum agent_state
__wrap_agent_state(void)
{
	return state;
}

static uint32_t lost_ranks[4]; /* that the job was told of */
static unsigned lost_count;

void __wrap_tell_lost(uint32_t rank);

void
__wrap_tell_lost(uint32_t rank)
{
	lost_ranks[lost_count++ % 4] = rank;
}

static unsigned connects;
static enum peer_state becomes; /* by agent_connect() */

void
__wrap_agent_connect(struct peer *of)
{
	cr_expect_eq(of, p);
	connects++;
	atomic_store(&of->state, becomes);
}

/* --- the carrier ----------------------------------------------------------------------- */

/* What it does with a message, and the last one that it took. */
static struct {
	_Atomic enum xr_status status;
	bool keeps; /* the message is pending */
	unsigned tries, count;
	size_t len;
	char data[64];
	uint32_t parts;
	struct token *token;
	bool more, lent;
	unsigned closed;
} out;

static inline enum xr_status
send_it(struct xr_link *link, const struct xr_message *m, bool *pending)
{
	(void)link;
	out.tries++;
	*pending = false;
	if (out.status != XR_OK)
		return out.status;
	*pending = out.keeps && m->token != NULL;
	out.count++;
	out.parts = m->count;
	out.len = 0;
	for (uint32_t i = 0; i < m->count; i++) {
		if (out.len + m->parts[i].len <= sizeof(out.data))
			memcpy(out.data + out.len, m->parts[i].data,
				m->parts[i].len);
		out.len += m->parts[i].len;
	}
	out.token = m->token;
	out.more = m->more;
	out.lent = m->lent;
	return XR_OK;
}

static inline void
close_link(struct xr_link *link)
{
	cr_expect_eq(link, (struct xr_link *)&out);
	out.closed++;
}

static bool can, unsent;

static inline bool
can_lend(struct xr_link *link, const struct xr_part *part)
{
	cr_expect_eq(link, (struct xr_link *)&out);
	return can && part->len == 3;
}

static inline bool
unsend(struct xr_link *link, void *token)
{
	cr_expect_eq(link, (struct xr_link *)&out);
	return unsent && token == &out;
}

static struct xr_carrier carrier;

static inline void
begin(void)
{
	carrier = (struct xr_carrier){ .copies = 4,
		.send = send_it,
		.link_close = close_link,
		.caps = XR_CARRIER_LENDS,
		.can_lend = can_lend,
		.unsend = unsend };
	out.status = XR_OK;
	p = peer_new("one", 1, 71);
	cr_assert_not_null(p);
	p->carrier = &carrier;
	p->link = (struct xr_link *)&out;
	atomic_store(&p->state, PEER_UP);
}

static inline void
end(void)
{
	peer_free(p);
}

/* A message of @text, in two parts. */
static inline struct xr_message
message(const char *text)
{
	static struct xr_part part[2];
	size_t len = strlen(text);

	part[0] = (struct xr_part){ text, len > 0 };
	part[1] = (struct xr_part){ text + (len > 0), len - (len > 0) };
	return (struct xr_message){ .record.kind = MESSAGE_REQUEST,
		.parts = part,
		.count = 2,
		.more = true };
}

static inline enum xr_status
send_text(const char *text)
{
	const struct xr_message m = message(text);

	err.text[0] = '\0';
	return peer_send(p, &m, NULL, NULL, &err);
}

/* Of a thread that may not wait. */
static inline enum xr_status
post(const char *text)
{
	const struct xr_message m = message(text);

	return peer_post(p, &m);
}

static inline bool
sent(const char *text)
{
	return out.len == strlen(text) && memcmp(out.data, text, out.len) == 0;
}

static inline int64_t
figure(enum figure which)
{
	struct figures_view view;

	figures_sum(&view);
	return view.count[which];
}

#endif /* TESTS_UNIT_PEER_RIG_H */
