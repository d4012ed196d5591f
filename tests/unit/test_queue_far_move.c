/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_queue_far_move.c - items to a queue of another machine, and from it: what is asked, how
 * long it is waited for, and what becomes of each answer. The test makes up who serves.
 */
#include <stddef.h>
#include <stdlib.h>

#include <xrun/future.h>

#include "base/clock.h"
#include "base/status.h"
#include "tests/unit/forked.h"
#include "tests/unit/short_memory.h"
#include "worker/queue/far/far.h"
#include "worker/queue/far/wire.h"

TestSuite(queue_far_move, .timeout = 60);

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define STEPS    8
#define NOW      INT64_C(7000000000000)
#define SLOW_NS  (NS_PER_S / FAR_RATE) /* of a byte */
#define NONSENSE "who serves the queue answers nonsense"
#define NO_WORD  "there was no word in time of who serves the queue"
#define TOO_LATE "nothing came in time, nor a word of who serves the queue"

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

/* --- in ------------------------------------------------------------------------------------- */

static const struct xr_part part[] = { { "ab", 2 }, { NULL, 0 }, { "cde", 3 },
	{ "f", 1 } };
static struct letter letters[3];

#define ITEM sizeof(struct far_item)

static void
begin_letters(void)
{
	begin();
	letters[0] = (struct letter){ .parts = part,
		.count = 3,
		.len = 5,
		.kind = CELL_BYTES };
	letters[1] = (struct letter){ .parts = NULL, .kind = CELL_BYTES };
	letters[2] = (struct letter){ .parts = part + 3,
		.count = 1,
		.len = 1,
		.kind = CELL_VALUE };
}

/* Those from @first on. */
static void
expect_letters(const struct step *s, size_t first)
{
	static const uint32_t kind[] = { CELL_BYTES, CELL_BYTES, CELL_VALUE };
	static const size_t len[] = { 5, 0, 1 };
	const char *body = first == 0 ? "abcdef" : "f";
	size_t n = 3 - first;
	struct far_item item;

	EXPECT_EQ(s->len, n * ITEM + strlen(body));
	for (size_t i = 0; i < n; i++) {
		memcpy(&item, s->rest + i * ITEM, ITEM);
		EXPECT_EQ(item.kind, kind[first + i]);
		EXPECT_EQ(item.len, len[first + i]);
		EXPECT_EQ(item.unused, 0);
	}
	EXPECT(memcmp(s->rest + n * ITEM, body, strlen(body)) == 0);
}

static size_t count;

static enum xr_status
give(int64_t timeout)
{
	count = 3;
	return far_give(&queue, letters, &count, timeout, &error);
}

FORKED_TEST(queue_far_move, who_gives_for_ever_asks_once)
{
	const struct {
		struct step step;
		enum xr_status want;
		size_t count;
		const char *text;
	} row[] = {
		{ { .a = { .count = 2 } }, XR_OK, 2, "" },
		{ { .a = { .count = 3 } }, XR_OK, 3, "" },
		{ { .a = { .count = 4 } }, XR_OK, 3, "" },
		{ { .a = { .status = XR_E_CLOSED, .count = 1 },
			  .words = "it is closed" },
			XR_E_CLOSED, 1, "it is closed" },
		{ { .send = XR_E_STATE, .a = { .count = 2 } }, XR_E_STATE, 0,
			"not sent" },
		{ { .await = XR_E_PEER_LOST, .a = { .count = 2 } },
			XR_E_PEER_LOST, 0, "not heard" },
	};

	for (size_t i = 0; i < COUNT(row); i++) {
		begin_letters();
		step[0] = row[i].step;
		EXPECT_EQ(give(XR_TIMEOUT_NEVER), row[i].want);
		EXPECT_EQ(count, row[i].count);
		EXPECT_STR(error.text, row[i].text);
		EXPECT_EQ(sent, 1);
		expect_ask(&step[0], FAR_PUT, 3, INT64_MAX, 0);
		EXPECT_EQ(step[0].ask.acked, 5);
		EXPECT_EQ(step[0].limit, 0);
		expect_letters(&step[0], 0);
		if (row[i].step.send == XR_OK)
			EXPECT_EQ(step[0].until, INT64_MAX);
	}
	begin_letters();
	EXPECT_EQ(give(INT64_MAX - NOW), XR_OK);
	EXPECT_EQ(step[0].ask.op, FAR_PUT);
	begin_letters();
	until_short = 1;
	EXPECT_EQ(give(XR_TIMEOUT_NEVER), XR_E_NOMEM);
	until_short = 0;
	EXPECT_EQ(count, 0);
	EXPECT_STR(error.text, "out of memory");
	end();
}

#define TIME  XR_SECONDS(5)
#define UNTIL (TIME + FAR_SLACK_NS + 6 * SLOW_NS) /* with 6 bytes */

FORKED_TEST(queue_far_move,
	who_gives_in_time_asks_for_room_and_says_then_that_it_is_put)
{
	begin_letters();
	step[0] = (struct step){ .a = { .count = 1, .number = 11 },
		.takes = XR_SECONDS(2) };
	step[2] = (struct step){ .a = { .count = 9, .number = 12 } };
	EXPECT_EQ(give(TIME), XR_OK);
	EXPECT_EQ(count, 3);
	EXPECT_EQ(sent, 4);
	expect_ask(&step[0], FAR_OFFER, 3, TIME, 0);
	expect_letters(&step[0], 0);
	EXPECT_EQ(step[0].limit, UNTIL);
	EXPECT_EQ(step[0].until, NOW + UNTIL);
	expect_ask(&step[1], FAR_COMMIT, 0, 0, 11);
	EXPECT_EQ(step[1].len, 0);
	EXPECT_EQ(step[1].limit, 0);
	EXPECT_EQ(step[1].until, NOW + UNTIL);
	expect_ask(&step[2], FAR_OFFER, 2, XR_SECONDS(3), 0);
	expect_letters(&step[2], 1);
	EXPECT_EQ(step[2].limit, UNTIL - XR_SECONDS(2));
	EXPECT_EQ(step[2].until, NOW + UNTIL);
	expect_ask(&step[3], FAR_COMMIT, 0, 0, 12);
	/* All but one, and then that. */
	begin_letters();
	step[0].a = (struct far_answer){ .count = 2 };
	step[2].a = (struct far_answer){ .count = 1 };
	EXPECT_EQ(give(TIME), XR_OK);
	EXPECT_EQ(count, 3);
	EXPECT_EQ(sent, 4);
	EXPECT_EQ(step[2].ask.count, 1);
	end();
}

FORKED_TEST(queue_far_move,
	who_only_looks_for_room_waits_for_a_word_all_the_same)
{
	begin_letters();
	step[0].a.count = 3;
	EXPECT_EQ(give(0), XR_OK);
	expect_ask(&step[0], FAR_OFFER, 3, 0, 0);
	EXPECT_EQ(step[0].until, NOW + FAR_LOOK_NS + 6 * SLOW_NS);
	begin_letters();
	step[0].a.count = 3;
	EXPECT_EQ(give(1), XR_OK);
	EXPECT_EQ(step[0].ask.timeout, 1);
	EXPECT_EQ(step[0].until, NOW + 1 + FAR_SLACK_NS + 6 * SLOW_NS);
	/* When that is over, too. */
	begin_letters();
	step[0] = (struct step){ .a = { .count = 1 }, .takes = UNTIL };
	step[2].a = (struct far_answer){ .status = XR_E_TIMEOUT };
	step[2].words = "no room in time";
	EXPECT_EQ(give(TIME), XR_E_TIMEOUT);
	EXPECT_STR(error.text, "no room in time");
	EXPECT_EQ(count, 1);
	EXPECT_EQ(sent, 3);
	EXPECT_EQ(step[2].ask.timeout, 0);
	EXPECT_EQ(step[2].limit, 1);
	/* No letter. */
	begin_letters();
	count = 0;
	EXPECT_EQ(far_give(&queue, letters, &count, TIME, &error), XR_OK);
	EXPECT_EQ(sent, 0);
	end();
}

FORKED_TEST(queue_far_move, what_was_not_put_is_told)
{
	const struct {
		struct step offer, commit;
		enum xr_status want;
		const char *text;
	} row[] = {
		{ { .send = XR_E_STATE }, { 0 }, XR_E_STATE, "not sent" },
		{ { .await = XR_E_PEER_LOST }, { 0 }, XR_E_PEER_LOST,
			"not heard" },
		{ { .a = { .status = XR_E_CLOSED }, .words = "closed" }, { 0 },
			XR_E_CLOSED, "closed" },
		{ { .a = { .count = 3 } }, { .send = XR_E_STATE }, XR_E_STATE,
			"not sent" },
		{ { .a = { .count = 3 } }, { .await = XR_E_PEER_LOST },
			XR_E_PEER_LOST, "not heard" },
		{ { .a = { .count = 3 } },
			{ .a = { .status = XR_E_CLOSED }, .words = "closed" },
			XR_E_CLOSED, "closed" },
	};

	for (size_t i = 0; i < COUNT(row); i++) {
		begin_letters();
		step[0] = row[i].offer;
		step[1] = row[i].commit;
		EXPECT_EQ(give(TIME), row[i].want);
		EXPECT_EQ(count, 0);
		EXPECT_STR(error.text, row[i].text);
		EXPECT_EQ(sent, i < 3 ? 1 : 2);
	}
	for (unsigned n = 1; n < 3; n++) {
		begin_letters();
		until_short = n;
		EXPECT_EQ(give(TIME), XR_E_NOMEM);
		until_short = 0;
		EXPECT_STR(error.text, "out of memory");
		EXPECT_EQ(sent, 0);
		EXPECT_EQ(count, 0);
	}
	end();
}

/* Room that is given too late is given back; of a put that is known, somebody hears. */
FORKED_TEST(queue_far_move, what_comes_too_late_is_revoked)
{
	struct step late = { .a = { .count = 3, .number = 8 } };
	struct xr_value *value[] = { answer_of(&late), NULL, NULL, NULL };

	late.a.status = XR_E_TIMEOUT;
	value[1] = answer_of(&late);
	late.cut = sizeof(late.a) - 1;
	value[2] = answer_of(&late);
	for (size_t i = 0; i < COUNT(value); i++) {
		begin_letters();
		step[0].await = XR_E_AGAIN;
		EXPECT_EQ(give(TIME), XR_E_TIMEOUT);
		EXPECT_STR(error.text, NO_WORD);
		EXPECT_EQ(count, 0);
		EXPECT_EQ(sent, 1);
		EXPECT_EQ(far.handles, 101);
		EXPECT_EQ(tellings, 0);
		if (value[i] != NULL)
			xr_future_set(step[0].future, value[i]);
		else
			xr_future_fail_with(step[0].future, XR_E_PEER_LOST,
				"lost");
		EXPECT_EQ(tellings, i == 0);
		if (i == 0) {
			EXPECT_EQ(told[0].op, FAR_REVOKE);
			EXPECT_EQ(told[0].number, 8);
		}
		EXPECT_EQ(far.handles, 100);
	}
	begin_letters();
	step[0].a.count = 3;
	step[1].await = XR_E_AGAIN;
	EXPECT_EQ(give(TIME), XR_OK);
	EXPECT_EQ(count, 3);
	EXPECT_EQ(far.handles, 101);
	xr_future_fail_with(step[1].future, XR_E_PEER_LOST, "lost");
	EXPECT_EQ(tellings, 0);
	end();
}

/* --- out ------------------------------------------------------------------------------------ */

static struct xr_queue_buf buf[3];
static struct taker taker[3];
static char room[2][8];

/* The first two have room for 8 bytes, the third for any. */
static void
begin_takers(void)
{
	begin();
	free(taker[2].made);
	memset(taker, 0, sizeof(taker));
	memset(buf, 0, sizeof(buf));
	memset(room, 0, sizeof(room));
	for (int i = 0; i < 3; i++)
		taker[i].buf = &buf[i];
	for (int i = 0; i < 2; i++)
		buf[i] = (struct xr_queue_buf){ room[i], sizeof(room[i]), 99 };
}

static enum xr_status
take(size_t want, int64_t timeout)
{
	count = want;
	return far_take(&queue, taker, &count, timeout, &error);
}

static const struct step three = { .a = { .count = 3, .number = 6 },
	.item = { { CELL_BYTES, 0, 2 }, { CELL_VALUE, 0, 0 },
		{ CELL_BYTES, 0, 3 } },
	.items = 3,
	.bytes = 5 };

static void
expect_three(void)
{
	EXPECT_EQ(count, 3);
	EXPECT(buf[0].len == 2 && buf[1].len == 0 && buf[2].len == 3);
	EXPECT(memcmp(room[0], "ab\0", 3) == 0 && room[1][0] == 0);
	EXPECT(taker[2].made != NULL && memcmp(taker[2].made, "cde", 3) == 0);
	EXPECT_EQ(taker[2].made_room, 3);
	EXPECT(taker[0].kind == CELL_BYTES && taker[1].kind == CELL_VALUE);
	EXPECT(buf[2].data == NULL && buf[0].data == room[0]);
}

FORKED_TEST(queue_far_move, who_takes_says_how_much_room_there_is)
{
	static const uint64_t rooms[] = { 8, 8, FAR_ANY_ROOM };

	begin_takers();
	step[0] = three;
	EXPECT_EQ(take(3, TIME), XR_OK);
	expect_three();
	EXPECT_EQ(sent, 1);
	expect_ask(&step[0], FAR_GET, 3, TIME, 0);
	EXPECT_EQ(step[0].len, sizeof(rooms));
	EXPECT(memcmp(step[0].rest, rooms, sizeof(rooms)) == 0);
	EXPECT_EQ(step[0].limit, TIME + FAR_SLACK_NS);
	EXPECT_EQ(step[0].until, NOW + TIME + FAR_SLACK_NS);
	EXPECT_EQ(step[0].call_until, 0);
	/* What has come is told. */
	EXPECT_EQ(far.acked, 6);
	EXPECT_EQ(tellings, 1);
	EXPECT_EQ(told[0].op, FAR_ACK);
	EXPECT_EQ(told[0].number, 6);
	EXPECT_EQ(pushes + returns + darkens, 0);
	begin_takers();
	step[0] = three;
	step[0].a.number = 0;
	EXPECT_EQ(take(3, XR_TIMEOUT_NEVER), XR_OK);
	expect_three();
	EXPECT_EQ(step[0].ask.timeout, INT64_MAX);
	EXPECT_EQ(step[0].until, INT64_MAX);
	EXPECT_EQ(step[0].limit, INT64_MAX);
	EXPECT_EQ(tellings, 0);
	EXPECT_EQ(far.acked, 5);
	begin_takers();
	EXPECT_EQ(take(0, TIME), XR_OK);
	EXPECT_EQ(sent, 0);
	begin_takers();
	step[0] = three;
	EXPECT_EQ(take(3, 0), XR_OK);
	EXPECT_EQ(step[0].until, NOW + FAR_LOOK_NS);
	end();
}

/* They come first the next time, and are acknowledged once. */
FORKED_TEST(queue_far_move, items_that_nobody_asked_for_yet_are_kept)
{
	for (uint64_t number = 0; number < 2; number++) {
		begin_takers();
		step[0] = three;
		step[0].a.number = number;
		EXPECT_EQ(take(1, TIME), XR_OK);
		EXPECT_EQ(count, 1);
		EXPECT_EQ(tellings, number);
		EXPECT_EQ(pushes, 1);
		NEED(pushed != NULL);
		EXPECT_EQ(pushed->next, 1);
		EXPECT(pushed->is_kept);
		popped = pushed;
		pushed = NULL;
		EXPECT_EQ(take(1, TIME), XR_OK);
		EXPECT_EQ(buf[0].len, 0);
		EXPECT_EQ(taker[0].kind, CELL_VALUE);
		NEED(pushed != NULL);
		popped = pushed;
		pushed = NULL;
		EXPECT_EQ(take(3, TIME), XR_OK);
		EXPECT_EQ(count, 1);
		EXPECT_EQ(buf[0].len, 3);
		EXPECT(memcmp(room[0], "cde", 3) == 0);
		EXPECT(pushed == NULL);
		EXPECT_EQ(pushes, 2);
		EXPECT_EQ(sent, 1);
		EXPECT_EQ(tellings, number);
	}
	end();
}

FORKED_TEST(queue_far_move, what_does_not_fit_is_given_back_or_kept)
{
	begin_takers();
	step[0] = three;
	buf[0].room = 1;
	EXPECT_EQ(take(2, TIME), XR_E_RANGE);
	EXPECT_STR(error.text, "an item of 2 bytes does not fit");
	EXPECT_EQ(count, 0);
	EXPECT_EQ(returns, 1);
	EXPECT_EQ(next_of_returned, 0);
	EXPECT_EQ(return_until, NOW + TIME + FAR_SLACK_NS);
	EXPECT_EQ(pushes + tellings, 0);
	begin_takers();
	step[0] = three;
	step[0].a.number = 0;
	buf[0].room = 1;
	EXPECT_EQ(take(2, TIME), XR_E_RANGE);
	EXPECT_EQ(returns, 0);
	EXPECT_EQ(pushes, 1);
	NEED(pushed != NULL);
	EXPECT_EQ(pushed->next, 0);
	far_call_unref(pushed);
	/* Behind one that did. */
	begin_takers();
	step[0] = three;
	step[0].item[1].len = 3;
	step[0].item[2].len = 0;
	buf[1].room = 2;
	EXPECT_EQ(take(3, TIME), XR_OK);
	EXPECT_EQ(count, 1);
	EXPECT_EQ(tellings, 1);
	EXPECT_EQ(returns, 0);
	NEED(pushed != NULL);
	EXPECT_EQ(pushed->next, 1);
	far_call_unref(pushed);
	/* No memory for it: the call's is the first. */
	begin_takers();
	step[0] = three;
	buf[0].data = NULL;
	until_short = 3;
	EXPECT_EQ(take(1, TIME), XR_E_NOMEM);
	EXPECT_EQ(returns, until_short == 0);
	until_short = 0;
	EXPECT_STR(error.text, "out of memory");
	begin_takers();
	until_short = 1;
	EXPECT_EQ(take(1, TIME), XR_E_NOMEM);
	until_short = 0;
	EXPECT_STR(error.text, "out of memory");
	EXPECT_EQ(sent, 0);
	end();
}

FORKED_TEST(queue_far_move, an_answer_that_is_none_is_nonsense)
{
	const size_t head = sizeof(struct far_answer);
	const struct {
		uint64_t number;
		size_t cut, count;
	} row[] = { { 0, head + 3 * ITEM - 1, 0 },
		{ 6, head + 3 * ITEM - 1, 0 }, { 6, head + 3 * ITEM + 1, 0 },
		{ 6, head, 0 }, { 6, head + 3 * ITEM + 4, 2 },
		{ 0, head + 3 * ITEM + 4, 2 } };

	for (size_t i = 0; i < COUNT(row); i++) {
		begin_takers();
		step[0] = three;
		step[0].a.number = row[i].number;
		step[0].cut = row[i].cut;
		EXPECT_EQ(take(3, TIME), row[i].count > 0 ? XR_OK : XR_E_PROTO);
		EXPECT_EQ(count, row[i].count);
		if (row[i].count == 0)
			EXPECT_STR(error.text, NONSENSE);
		EXPECT_EQ(returns, row[i].count == 0 && row[i].number != 0);
		EXPECT_EQ(pushes, 0);
	}
	/* None at all. */
	begin_takers();
	step[0].a.number = 6;
	EXPECT_EQ(take(3, TIME), XR_E_PROTO);
	EXPECT_STR(error.text, NONSENSE);
	end();
}

FORKED_TEST(queue_far_move, an_answer_without_items_says_why)
{
	const struct {
		struct step step;
		enum xr_status want;
		const char *text;
		unsigned darkens, pushes;
	} row[] = {
		{ { .a = { .status = XR_E_TIMEOUT }, .words = "nothing" },
			XR_E_TIMEOUT, "nothing", 1, 0 },
		{ { .a = { .status = XR_E_CLOSED }, .words = "closed" },
			XR_E_CLOSED, "closed", 1, 0 },
		{ { .a = { .status = XR_E_RANGE, .number = 4711 },
			  .words = "long" },
			XR_E_RANGE, "long", 0, 0 },
		{ { .a = { .status = XR_E_DECODE }, .words = "bad" },
			XR_E_DECODE, "bad", 0, 0 },
		{ { .send = XR_E_STATE }, XR_E_STATE, "not sent", 0, 0 },
		{ { .await = XR_E_PEER_LOST }, XR_E_PEER_LOST, "not heard", 0,
			0 },
		{ { .await = XR_E_AGAIN }, XR_E_TIMEOUT, TOO_LATE, 0, 1 },
	};

	for (size_t i = 0; i < COUNT(row); i++) {
		begin_takers();
		step[0] = row[i].step;
		EXPECT_EQ(take(2, TIME), row[i].want);
		EXPECT_STR(error.text, row[i].text);
		EXPECT_EQ(count, 0);
		EXPECT_EQ(sent, 1);
		EXPECT_EQ(darkens, row[i].darkens);
		EXPECT_EQ(pushes, row[i].pushes);
		EXPECT_EQ(returns + tellings, 0);
		EXPECT_EQ(buf[0].len, row[i].want == XR_E_RANGE ? 4711 : 99);
		if (darkens > 0)
			EXPECT_EQ(darkened_over, row[i].want == XR_E_CLOSED);
		far_call_unref(pushed);
	}
	end();
}

#define MOST (UINT64_C(1) << 40)

/* Then it is asked again, and waited for as long as they need. */
FORKED_TEST(queue_far_move, many_bytes_are_given_their_time)
{
	const uint64_t bytes = 100 << 20;
	const int64_t more = FAR_LOOK_NS + (int64_t)(bytes * SLOW_NS);

	begin_takers();
	step[0].a = (struct far_answer){ XR_E_AGAIN, 0, bytes };
	step[0].takes = XR_SECONDS(1);
	step[1] = three;
	EXPECT_EQ(take(3, TIME), XR_OK);
	expect_three();
	EXPECT_EQ(sent, 2);
	expect_ask(&step[1], FAR_GET, 3, XR_SECONDS(4), bytes);
	EXPECT_EQ(step[1].until, NOW + XR_SECONDS(1) + more);
	EXPECT_EQ(step[1].call_until, NOW + XR_SECONDS(1) + more);
	EXPECT_EQ(step[1].limit, more);
	/* Fewer change nothing; more than there can be are as many as there can be. */
	begin_takers();
	step[0].a = (struct far_answer){ XR_E_AGAIN, 0, bytes };
	step[1].a = (struct far_answer){ XR_E_AGAIN, 0, bytes - 1 };
	step[2].a = (struct far_answer){ XR_E_AGAIN, 0, MOST + 1 };
	step[3] = three;
	EXPECT_EQ(take(3, 0), XR_OK);
	EXPECT_EQ(sent, 4);
	EXPECT_EQ(step[1].ask.number, bytes);
	EXPECT_EQ(step[2].ask.number, bytes);
	EXPECT_EQ(step[2].until, NOW + more);
	EXPECT_EQ(step[3].ask.number, MOST);
	EXPECT_EQ(step[3].until, NOW + FAR_LOOK_NS + (int64_t)(MOST * SLOW_NS));
	end();
}

/* --- late ones ------------------------------------------------------------------------------- */

static struct far_call *
late_call(const struct step *s)
{
	struct far_call *c = far_call_new(&queue, FAR_GET, 0);

	NEED(c != NULL);
	c->is_late = true;
	if (s != NULL)
		c->answer = answer_of(s);
	return c;
}

FORKED_TEST(queue_far_move, what_an_earlier_get_was_told_is_not_for_this_one)
{
	const struct {
		enum xr_status said, want;
	} row[] = { { XR_E_TIMEOUT, XR_OK }, { XR_E_RANGE, XR_OK },
		{ XR_E_CLOSED, XR_E_CLOSED }, { XR_E_DECODE, XR_E_DECODE } };

	for (size_t i = 0; i < COUNT(row); i++) {
		const struct step late = { .a = { .status = row[i].said } };

		begin_takers();
		step[0] = three;
		popped = late_call(&late);
		EXPECT_EQ(take(3, TIME), row[i].want);
		EXPECT_EQ(sent, row[i].want == XR_OK);
		EXPECT_EQ(darkens, row[i].want == XR_E_CLOSED);
	}
	end();
}

FORKED_TEST(queue_far_move,
	an_earlier_get_is_waited_for_as_long_as_its_bytes_need)
{
	begin_takers();
	step[0] = three;
	popped = late_call(NULL);
	popped->until = NOW + XR_SECONDS(9);
	EXPECT_EQ(take(3, TIME), XR_OK);
	EXPECT_EQ(step[0].until, NOW + XR_SECONDS(9));
	EXPECT_EQ(sent, 0);
	expect_three();
	begin_takers();
	step[0] = three;
	popped = late_call(NULL);
	popped->until = NOW + XR_SECONDS(4);
	EXPECT_EQ(take(3, TIME), XR_OK);
	EXPECT_EQ(step[0].until, NOW + TIME + FAR_SLACK_NS);
	end();
}

FORKED_TEST(queue_far_move, what_is_being_given_back_is_waited_for)
{
	begin_takers();
	step[0] = three;
	is_back = true;
	popped = late_call(NULL);
	popped->back = late_call(NULL);
	EXPECT_EQ(take(3, TIME), XR_OK);
	EXPECT_EQ(sent, 1);
	EXPECT_EQ(looks, 2);
	EXPECT_EQ(back_until, NOW + TIME + FAR_SLACK_NS);
	begin_takers();
	popped = late_call(NULL);
	popped->back = late_call(NULL);
	EXPECT_EQ(take(3, TIME), XR_E_TIMEOUT);
	EXPECT_STR(error.text, TOO_LATE);
	EXPECT_EQ(sent, 0);
	EXPECT_EQ(pushes, 1);
	NEED(pushed != NULL && pushed->back != NULL);
	far_call_unref(pushed);
	end();
}
