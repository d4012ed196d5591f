/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_server.h - a handle of a queue of another machine, whose server the test makes up: what each
 * call is told, and what it asked.
 *
 * For programs that are linked with own_server (meson.build).
 */
#ifndef TESTS_UNIT_OWN_SERVER_H
#define TESTS_UNIT_OWN_SERVER_H

#include <stddef.h>
#include <stdlib.h>

#include <xrun/future.h>

#include "base/clock.h"
#include "base/status.h"
#include "tests/unit/forked.h"
#include "tests/unit/short_memory.h"
#include "worker/queue/far/far.h"
#include "worker/queue/far/wire.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define STEPS    8
#define NOW      INT64_C(7000000000000)
#define TIME     XR_SECONDS(5)
#define SLOW_NS  (NS_PER_S / FAR_RATE) /* of a byte */
#define NONSENSE "who serves the queue answers nonsense"
#define NO_WORD  "there was no word in time of who serves the queue"
#define TOO_LATE "nothing came in time, nor a word of who serves the queue"

#define ITEM sizeof(struct far_item)

static struct far far = { .refs = 100, .handles = 100, .token = 77 };
static struct xr_queue queue = { .far = &far, .first = 2, .count = 3 };
static struct xr_error error;

/* --- the clock ------------------------------------------------------------------------------ */

static int64_t now;

int64_t __wrap_clock_now(void);

int64_t
__wrap_clock_now(void)
{
	return now;
}

/* --- who serves ----------------------------------------------------------------------------- */

/* What becomes of a call, and what was asked. */
static struct step {
	enum xr_status send, await,
		again; /* the second time it is waited for */
	int64_t takes; /* ns */
	struct far_answer a;
	struct far_item item[3];
	size_t items, bytes; /* that are there; of items "abcdefgh.." */
	size_t cut;          /* all is so long, if not 0 */
	const char *words;
	/* what was seen */
	struct far_ask ask;
	uint8_t rest[256];
	size_t len;
	int64_t limit, until, call_until;
	unsigned awaits;
	struct xr_future *future;
} step[STEPS];
static unsigned sent;

static struct {
	uint32_t op;
	uint64_t number;
} told[STEPS];
static unsigned tellings, darkens, pushes, returns, looks;
static bool darkened_over, is_back;
static struct far_call *pushed, *popped;
static int64_t return_until, back_until;
static uint32_t next_of_returned;

static struct xr_value *
answer_of(const struct step *s)
{
	char whole[256];
	size_t len = sizeof(s->a);

	memcpy(whole, &s->a, len);
	memcpy(whole + len, s->item, s->items * sizeof(s->item[0]));
	len += s->items * sizeof(s->item[0]);
	for (size_t i = 0; i < s->bytes; i++)
		whole[len++] = (char)('a' + i);
	if (s->words != NULL) {
		memcpy(whole + len, s->words, strlen(s->words));
		len += strlen(s->words);
	}
	return xr_value_new_bytes(whole, s->cut > 0 ? s->cut : len);
}

enum xr_status __wrap_far_send(struct far *f, struct far_call *c,
	struct xr_error *err);
enum xr_status __wrap_far_await(struct far_call *c, int64_t until,
	struct xr_error *err);
void __wrap_far_tell(struct far *f, uint32_t op, uint64_t number);
void __wrap_far_darken(struct far *f, bool is_over);
void __wrap_far_go(struct far *f);
struct far_call *__wrap_late_pop(const struct xr_queue *q);
void __wrap_late_push(const struct xr_queue *q, struct far_call *c);
bool __wrap_late_is_back(struct far_call *c, int64_t until);
void __wrap_late_return(const struct xr_queue *q, const struct far_call *c,
	int64_t until);

enum xr_status
__wrap_far_send(struct far *f, struct far_call *c, struct xr_error *err)
{
	struct step *s = &step[sent];

	NEED(sent < STEPS && f == &far);
	sent++;
	memcpy(&s->ask, c->ask, sizeof(s->ask));
	s->len = c->len - sizeof(s->ask);
	NEED(s->len <= sizeof(s->rest));
	memcpy(s->rest, c->ask + sizeof(s->ask), s->len);
	s->limit = c->limit;
	s->call_until = c->until;
	if (s->send != XR_OK)
		return fail(err, s->send, "not sent");
	if (s->await == XR_E_AGAIN)
		c->future = xr_future_new(NULL);
	s->future = c->future != NULL ? xr_future_ref(c->future) : NULL;
	return XR_OK;
}

enum xr_status
__wrap_far_await(struct far_call *c, int64_t until, struct xr_error *err)
{
	struct step *s = &step[sent > 0 ? sent - 1 : 0];
	enum xr_status status = s->awaits++ == 0 ? s->await : s->again;

	s->until = until;
	now += s->takes;
	if (c->answer != NULL)
		return XR_OK;
	if (status == XR_OK)
		c->answer = answer_of(s);
	return status == XR_OK ? XR_OK : fail(err, status, "not heard");
}

void
__wrap_far_tell(struct far *f, uint32_t op, uint64_t number)
{
	NEED(f == &far && tellings < STEPS);
	told[tellings].op = op;
	told[tellings++].number = number;
}

void
__wrap_far_darken(struct far *f, bool is_over)
{
	EXPECT(f == &far);
	darkens++;
	darkened_over = is_over;
}

void
__wrap_far_go(struct far *f)
{
	EXPECT(f == &far);
	f->handles--;
	f->refs--;
}

struct far_call *
__wrap_late_pop(const struct xr_queue *q)
{
	struct far_call *c = popped;

	EXPECT(q == &queue);
	looks++;
	popped = NULL;
	return c;
}

void
__wrap_late_push(const struct xr_queue *q, struct far_call *c)
{
	EXPECT(q == &queue && pushed == NULL);
	pushes++;
	pushed = c;
}

bool
__wrap_late_is_back(struct far_call *c, int64_t until)
{
	EXPECT(c->back != NULL);
	back_until = until;
	return is_back;
}

void
__wrap_late_return(const struct xr_queue *q, const struct far_call *c,
	int64_t until)
{
	EXPECT(q == &queue);
	returns++;
	return_until = until;
	next_of_returned = c->next;
}

static void
begin(void)
{
	for (int i = 0; i < STEPS; i++)
		xr_future_unref(step[i].future);
	memset(step, 0, sizeof(step));
	memset(told, 0, sizeof(told));
	memset(&error, 0, sizeof(error));
	sent = tellings = darkens = pushes = returns = looks = 0;
	pushed = popped = NULL;
	now = NOW;
	far.acked = 5;
	is_back = false;
}

static void
end(void)
{
	begin();
	EXPECT_EQ(far.refs, 100);
	EXPECT_EQ(far.handles, 100);
}

static void
expect_ask(const struct step *s, uint32_t op, uint32_t count, int64_t timeout,
	uint64_t number)
{
	EXPECT_EQ(s->ask.op, op);
	EXPECT_EQ(s->ask.first, 2);
	EXPECT_EQ(s->ask.lanes, 3);
	EXPECT_EQ(s->ask.count, count);
	EXPECT_EQ(s->ask.token, 77);
	EXPECT_EQ(s->ask.timeout, timeout);
	EXPECT_EQ(s->ask.number, number);
}

static size_t count; /* of items */

#endif /* TESTS_UNIT_OWN_SERVER_H */
