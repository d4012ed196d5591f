/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_agent.h - a handle of a queue of another machine, whose agent is the test's: what is asked
 * and told is noted, and answered when the test says so.
 *
 * For programs that are linked with own_agent (meson.build).
 */
#ifndef TESTS_UNIT_OWN_AGENT_H
#define TESTS_UNIT_OWN_AGENT_H

#include <stddef.h>

#include <xrun/call.h>

#include "base/status.h"
#include "tests/unit/forked.h"
#include "tests/unit/short_memory.h"
#include "worker/queue/far/far.h"
#include "worker/queue/far/wire.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/ask.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SENT     16
#define LIFE     4242
#define TEXT     "1:2:3:4:5:6:7"
#define SHUT     "the agent by which the queue was opened was shut down"
#define NONSENSE "who serves the queue answers nonsense"

static struct xr_error error;

/* --- the agent ------------------------------------------------------------------------------- */

static struct peer us = { .incarnation = LIFE };
static enum agent_state agent = AGENT_RUNS;
static int inside;
static enum xr_status enters, finds_peer, finds_method, sends;
static char home, method; /* what stands for both */

/* What was asked, or told. */
static struct sent {
	struct far_ask ask;
	char rest[128];
	size_t len;
	int64_t timeout, limit;
	bool is_told;
	struct xr_future *future;
} sent[SENT];
static unsigned sents;

/* What each call is answered at once; NULL: it is not. */
static struct xr_value *reply;

enum xr_status __wrap_agent_enter(struct xr_error *err);
void __wrap_agent_leave(void);
struct peer *__wrap_agent_self(void);
enum agent_state __wrap_agent_state(void);
enum xr_status __wrap_call_within(const struct xr_raw_call *call, int64_t limit,
	struct xr_future **future, struct xr_error *err);
enum xr_status __wrap_xr_call_oneway(const struct xr_raw_call *call,
	struct xr_error *err);
enum xr_status __wrap_xr_peer_find(const char *name, int64_t id,
	struct xr_peer **peer, struct xr_error *err);
enum xr_status __wrap_xr_method_find(const char *name,
	struct xr_method_ref **ref, struct xr_error *err);

enum xr_status
__wrap_agent_enter(struct xr_error *err)
{
	if (enters != XR_OK)
		return fail(err, enters, "not entered");
	inside++;
	return XR_OK;
}

void
__wrap_agent_leave(void)
{
	inside--;
}

struct peer *
__wrap_agent_self(void)
{
	return &us;
}

enum agent_state
__wrap_agent_state(void)
{
	return agent;
}

static void
take(const struct xr_raw_call *call, int64_t limit, bool is_told)
{
	struct sent *s = &sent[sents];

	NEED(sents < SENT && call->len >= sizeof(s->ask));
	sents++;
	EXPECT_EQ(inside, 1);
	EXPECT_EQ(call->size, sizeof(*call));
	EXPECT(call->to == (struct xr_peer *)&home);
	EXPECT(call->method == (struct xr_method_ref *)&method);
	memcpy(&s->ask, call->data, sizeof(s->ask));
	s->len = call->len - sizeof(s->ask);
	NEED(s->len < sizeof(s->rest));
	memcpy(s->rest, (const char *)call->data + sizeof(s->ask), s->len);
	s->rest[s->len] = '\0';
	s->timeout = call->timeout;
	s->limit = limit;
	s->is_told = is_told;
}

enum xr_status
__wrap_call_within(const struct xr_raw_call *call, int64_t limit,
	struct xr_future **future, struct xr_error *err)
{
	if (sends != XR_OK)
		return fail(err, sends, "not sent");
	take(call, limit, false);
	*future = xr_future_new(NULL);
	sent[sents - 1].future = xr_future_ref(*future);
	if (reply != NULL)
		EXPECT_EQ(xr_future_set(*future, xr_value_ref(reply)), XR_OK);
	return XR_OK;
}

enum xr_status
__wrap_xr_call_oneway(const struct xr_raw_call *call, struct xr_error *err)
{
	(void)err;
	take(call, -1, true);
	return XR_OK;
}

enum xr_status
__wrap_xr_peer_find(const char *name, int64_t id, struct xr_peer **peer,
	struct xr_error *err)
{
	EXPECT(name == NULL && id == 3);
	*peer = (struct xr_peer *)&home;
	return finds_peer == XR_OK ? XR_OK : fail(err, finds_peer, "no peer");
}

enum xr_status
__wrap_xr_method_find(const char *name, struct xr_method_ref **ref,
	struct xr_error *err)
{
	EXPECT_STR(name, FAR_FUNC);
	*ref = (struct xr_method_ref *)&method;
	return finds_method == XR_OK ? XR_OK :
				       fail(err, finds_method, "no method");
}

/* --- answers --------------------------------------------------------------------------------- */

static struct xr_value *
answer(enum xr_status status, uint32_t count, uint64_t number,
	const char *words)
{
	struct far_answer a = { status, count, number };
	char whole[512];

	memcpy(whole, &a, sizeof(a));
	memcpy(whole + sizeof(a), words, strlen(words));
	return xr_value_new_bytes(whole, sizeof(a) + strlen(words));
}

static void
replies(struct xr_value *value)
{
	xr_value_unref(reply);
	reply = value;
}

static void
end_with(unsigned i, struct xr_value *value)
{
	NEED(i < sents && sent[i].future != NULL);
	EXPECT_EQ(xr_future_set(sent[i].future, value), XR_OK);
}

static struct far *far;
static struct xr_queue queue = { .first = 1, .count = 2 };

static enum xr_status
open_far(int worker)
{
	const struct where_queue where = { .worker = worker };

	memset(&error, 0, sizeof(error));
	far = NULL;
	return far_open(TEXT, &where, &far, &error);
}

/* A handle of two lanes of three. */
static void
begin_of(enum xr_queue_kind kind)
{
	struct {
		struct far_answer a;
		struct far_shape shape;
	} whole = { { XR_OK, 0, 99 },
		{ 3, XR_QUEUE_READER | XR_QUEUE_WRITER, kind, 0 } };

	replies(xr_value_new_bytes(&whole, sizeof(whole)));
	NEED(open_far(3) == XR_OK);
	replies(NULL);
	far_come(far);
	far_unref(far);
	queue.far = far;
	sents = 0;
}

static void
begin(void)
{
	begin_of(XR_QUEUE_ANY);
}

static void
end(void)
{
	unsigned n = sents;

	EXPECT_EQ(far->handles, 1);
	EXPECT_EQ(far->refs, 1);
	EXPECT(TAILQ_EMPTY(&far->late));
	far_go(far);
	EXPECT_EQ(sents, n + 1);
	EXPECT_EQ(sent[n].ask.op, FAR_DETACH);
	EXPECT(sent[n].is_told);
	EXPECT_EQ(inside, 0);
	replies(NULL);
	for (unsigned i = 0; i < SENT; i++)
		xr_future_unref(sent[i].future);
	memset(sent, 0, sizeof(sent));
	sents = 0;
}

static void
expect_sent(unsigned i, uint32_t op, uint32_t first, uint32_t lanes)
{
	NEED(i < sents);
	EXPECT_EQ(sent[i].ask.op, op);
	EXPECT_EQ(sent[i].ask.first, first);
	EXPECT_EQ(sent[i].ask.lanes, lanes);
	EXPECT_EQ(sent[i].ask.token, 99);
}

#endif /* TESTS_UNIT_OWN_AGENT_H */
