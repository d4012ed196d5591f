/* SPDX-License-Identifier: Apache-2.0 */
/* test_queue_lane.c - the cells of a lane, step by step: what is put, offered, got, given back,
 * withdrawn, and what the dead leave. */
#include "tests/unit/forked.h"
#include "tests/unit/queue_rig.h"
#include "tests/unit/short_memory.h"
#include "worker/queue/queue_inner.h"

TestSuite(queue_lane, .timeout = 60);

#define ITEMS 4
#define WHO   0x1001u /* of whom nothing is looked at */
#define OTHER 0x2001u

static struct xr_queue *queue;
static struct hall *h;
static struct lane *lane;
static struct lane_met met;
static char room[256];

static void
begin(const struct xr_queue_opts *o)
{
	NEED(xr_queue_new(o, &queue, &err) == XR_OK);
	h = queue->hall;
	lane = &h->lane[0];
}

#define BEGIN(...) \
	begin(&(struct xr_queue_opts)OPTS(.items = ITEMS, .lanes = 2, \
		.bytes = 1 << 19, __VA_ARGS__))

static uint64_t
state(uint64_t ticket)
{
	return atomic_load(&lane->cell[ticket % ITEMS].state);
}

/* The cell of @ticket. */
#define EXPECT_CELL(ticket, phase, who, lap) \
	EXPECT_EQ(state(ticket), cell_word((phase), (who), (lap)))

static struct letter
letter_of(const struct xr_part *part)
{
	return (struct letter){ .parts = part,
		.count = 1,
		.len = part->len,
		.kind = CELL_VALUE };
}

static uint64_t
put(const char *text)
{
	const struct xr_part part = { text, strlen(text) };
	struct letter l = letter_of(&part);

	EXPECT_EQ(lane_put(h, lane, WHO, &l, &met), XR_OK);
	EXPECT(l.lane == lane);
	return l.ticket;
}

static struct letter
offer(const struct xr_part *part)
{
	struct letter l = letter_of(part);

	l.is_offer = true;
	EXPECT_EQ(lane_put(h, lane, WHO, &l, &met), XR_OK);
	return l;
}

static enum xr_status
get(struct taker *t, struct xr_queue_buf *buf)
{
	*buf = (struct xr_queue_buf){ room, sizeof(room), 0 };
	*t = (struct taker){ .who = OTHER, .buf = buf };
	memset(room, '.', sizeof(room));
	return lane_get(h, lane, t, &met);
}

static void
expect_get(const char *text)
{
	struct xr_queue_buf buf;
	struct taker t;

	EXPECT_EQ(get(&t, &buf), XR_OK);
	EXPECT_EQ(buf.len, strlen(text));
	EXPECT(memcmp(room, text, strlen(text)) == 0);
	EXPECT_EQ(room[strlen(text)], '.');
	EXPECT_EQ(t.kind, CELL_VALUE);
}

static void
expect_none(void)
{
	struct xr_queue_buf buf;
	struct taker t;

	EXPECT_EQ(get(&t, &buf), XR_E_AGAIN);
	EXPECT(lane_is_empty(h, lane));
}

/* Blocks of memory that somebody has. */
static unsigned
used(const struct lane *l)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < h->plan.blocks; i++)
		n += atomic_load(&l->owner[i]) != 0;
	return n;
}

FORKED_TEST(queue_lane, a_cell_is_full_and_then_free_for_the_next_lap)
{
	for (int alone = 0; alone < 2; alone++) {
		BEGIN(.kind = alone ? XR_QUEUE_P2P : XR_QUEUE_ANY);
		EXPECT_CELL(0, CELL_FREE, 0, 0);
		for (uint64_t i = 0; i < 3 * ITEMS; i++) {
			uint64_t lap = i / ITEMS;

			EXPECT_EQ(lane_count(h, lane), 0);
			EXPECT(!lane_has(h, lane, i));
			EXPECT_EQ(put("text"), i);
			EXPECT_CELL(i, CELL_FULL, 0, lap);
			EXPECT_EQ(lane->ends->tail, i + 1);
			EXPECT_EQ(lane_count(h, lane), 1);
			EXPECT(lane_has(h, lane, i) && !lane_is_empty(h, lane));
			EXPECT(!lane_has(h, lane, i + ITEMS));
			expect_get("text");
			EXPECT_CELL(i, CELL_FREE, 0, lap + 1);
			EXPECT_EQ(lane->ends->head, i + 1);
			EXPECT(!lane_has(h, lane, i));
			expect_none();
		}
		xr_queue_free(queue);
	}
}

FORKED_TEST(queue_lane, there_is_room_for_as_many_as_there_are_cells)
{
	static const struct xr_part part = { "x", 1 };
	struct letter l = letter_of(&part);

	for (int alone = 0; alone < 2; alone++) {
		BEGIN(.kind = alone ? XR_QUEUE_P2P : XR_QUEUE_ANY);
		for (int i = 0; i < ITEMS; i++)
			put(i == 0 ? "first" : "");
		EXPECT_EQ(lane_count(h, lane), ITEMS);
		EXPECT_EQ(lane_put(h, lane, WHO, &l, &met), XR_E_AGAIN);
		EXPECT(met.who == 0 && !met.is_memory && !met.is_coming);
		expect_get("first");
		EXPECT_EQ(put("last"), ITEMS);
		for (int i = 1; i < ITEMS; i++)
			expect_get("");
		expect_get("last");
		/* As far as the ends may be wrong. */
		lane->ends->tail = 100;
		lane->ends->head = 100;
		EXPECT_EQ(lane_count(h, lane), 0);
		lane->ends->head = 101;
		EXPECT_EQ(lane_count(h, lane), 0);
		lane->ends->head = 96;
		EXPECT_EQ(lane_count(h, lane), 4);
		lane->ends->head = 95;
		EXPECT_EQ(lane_count(h, lane), ITEMS);
		xr_queue_free(queue);
	}
}

FORKED_TEST(queue_lane, nothing_is_put_where_it_is_closed)
{
	static const struct xr_part part = { "x", 1 };
	struct letter l = letter_of(&part);

	BEGIN(.kind = XR_QUEUE_ANY);
	put("before");
	h->head->end = HALL_CLOSED;
	EXPECT_EQ(lane_put(h, lane, WHO, &l, &met), XR_E_CLOSED);
	expect_get("before");
	expect_none();
	h->head->end = HALL_WRITERS;
	EXPECT_EQ(lane_put(h, lane, WHO, &l, &met), XR_E_CLOSED);
	xr_queue_free(queue);
}

/* --- offers ------------------------------------------------------------------------------- */

FORKED_TEST(queue_lane, what_is_offered_is_seen_when_it_is_put)
{
	static const struct xr_part part = { "offered", 7 };
	struct letter l;

	for (int alone = 0; alone < 2; alone++) {
		BEGIN(.kind = alone ? XR_QUEUE_P2P : XR_QUEUE_ANY);
		l = offer(&part);
		EXPECT_CELL(0, CELL_CLAIMED, WHO, 0);
		EXPECT_EQ(lane->ends->tail, 1);
		expect_none();
		EXPECT(met.who == WHO && met.is_coming);
		EXPECT_EQ(lane->ends->head, 0);
		lane_return(h, lane, l.ticket);
		EXPECT_CELL(0, CELL_FULL, 0, 0);
		expect_get("offered");
		EXPECT(met.who == 0 && !met.is_coming);
		l = offer(&part);
		EXPECT_CELL(1, CELL_CLAIMED, WHO, 0);
		lane_release(h, lane, l.ticket);
		EXPECT_CELL(1, CELL_FREE, 0, 1);
		put("next");
		expect_get("next");
		xr_queue_free(queue);
	}
}

/* And comes when it is, though the head was beyond it. */
FORKED_TEST(queue_lane, an_offer_is_passed_over)
{
	static const struct xr_part part = { "offered", 7 };
	struct letter l;

	BEGIN(.kind = XR_QUEUE_ANY);
	l = offer(&part);
	put("second");
	put("third");
	expect_get("second");
	EXPECT_CELL(1, CELL_FREE, 0, 1);
	EXPECT_EQ(lane->ends->head, 0);
	lane_return(h, lane, l.ticket);
	expect_get("offered");
	expect_get("third");
	expect_none();
	EXPECT_EQ(lane->ends->head, 3);
	put("fourth");
	lane->ends->head = 7;
	lane_return(h, lane, 3);
	EXPECT_EQ(lane->ends->head, 3);
	expect_get("fourth");
	/* Who waits for the oldest to go is told whose it is. */
	l = offer(&part);
	for (int i = 1; i < ITEMS; i++)
		put("");
	EXPECT_EQ(lane_put(h, lane, OTHER, &l, &met), XR_E_AGAIN);
	EXPECT_EQ(met.who, WHO);
	xr_queue_free(queue);
}

/* --- memory ------------------------------------------------------------------------------- */

static char large[200];

FORKED_TEST(queue_lane, what_does_not_fit_into_a_cell_has_memory)
{
	const struct {
		size_t len;
		unsigned blocks;
	} row[] = { { 0, 0 }, { 1, 0 }, { CELL_BODY, 0 }, { CELL_BODY + 1, 1 },
		{ 200, 1 } };
	struct xr_part part[3] = { { large, 0 }, { NULL, 0 }, { NULL, 0 } };
	struct xr_queue_buf buf;
	struct letter l;
	struct taker t;

	for (size_t i = 0; i < sizeof(large); i++)
		large[i] = (char)i;
	for (int alone = 0; alone < 2; alone++) {
		BEGIN(.kind = alone ? XR_QUEUE_P2P : XR_QUEUE_ANY);
		for (size_t i = 0; i < ROWS(row); i++) {
			const struct cell *cell = &lane->cell[i % ITEMS];

			part[0].len = row[i].len / 2;
			part[2] = (struct xr_part){ large + part[0].len,
				row[i].len - part[0].len };
			l = letter_of(part);
			l.count = 3;
			l.len = row[i].len;
			EXPECT_EQ(lane_put(h, lane, WHO, &l, &met), XR_OK);
			EXPECT_EQ(used(lane), row[i].blocks);
			EXPECT_EQ(cell->owner != 0, row[i].blocks > 0);
			EXPECT_EQ(cell->len, row[i].len);
			if (row[i].blocks > 0) {
				EXPECT_EQ(owner_who(cell->owner), WHO);
				EXPECT(lane_names(h, lane, cell->owner));
				EXPECT(!lane_names(h, lane, cell->owner + 1));
			}
			EXPECT_EQ(get(&t, &buf), XR_OK);
			EXPECT_EQ(buf.len, row[i].len);
			EXPECT(memcmp(room, large, row[i].len) == 0);
			EXPECT_EQ(room[row[i].len], '.');
			EXPECT_EQ(used(lane), 0);
			EXPECT(!lane_names(h, lane, cell->owner) ||
				cell->owner == 0);
		}
		xr_queue_free(queue);
	}
}

/* It is a lane's, and goes with an offer that is not put. */
FORKED_TEST(queue_lane, memory_is_freed_with_what_is_not_put)
{
	const struct xr_part part = { large, sizeof(large) };
	struct letter l;

	BEGIN(.kind = XR_QUEUE_ANY);
	l = offer(&part);
	EXPECT_EQ(used(lane), 1);
	lane_release(h, lane, l.ticket);
	EXPECT_EQ(used(lane), 0);
	l = letter_of(&part);
	EXPECT_EQ(lane_put(h, lane, WHO, &l, &met), XR_OK);
	EXPECT(l.crate.owner != 0);
	/* As if there had been no cell for it. */
	EXPECT_EQ(lane_put(h, &h->lane[1], WHO, &l, &met), XR_OK);
	EXPECT_EQ(used(lane), 0);
	EXPECT_EQ(used(&h->lane[1]), 1);
	EXPECT(l.lane == &h->lane[1]);
	lane_unpack(h, &l);
	EXPECT_EQ(used(&h->lane[1]), 0);
	EXPECT_EQ(l.crate.owner, 0);
	lane_unpack(h, &l);
	xr_queue_free(queue);
}

FORKED_TEST(queue_lane, where_no_cell_is_free_nothing_is_copied)
{
	const struct xr_part part = { large, sizeof(large) };
	struct letter l = letter_of(&part);

	BEGIN(.kind = XR_QUEUE_ANY);
	for (int i = 0; i < ITEMS; i++)
		put("");
	EXPECT_EQ(lane_put(h, lane, WHO, &l, &met), XR_E_AGAIN);
	EXPECT(!met.is_memory && l.crate.owner == 0);
	EXPECT_EQ(used(lane), 0);
	/* A cell, and no memory. */
	expect_get("");
	for (uint32_t i = 0; i < h->plan.blocks; i++)
		lane->owner[i] = owner_word(OTHER, 1);
	EXPECT_EQ(lane_put(h, lane, WHO, &l, &met), XR_E_AGAIN);
	EXPECT(met.is_memory && l.crate.owner == 0);
	xr_queue_free(queue);
}

/* --- one to one ---------------------------------------------------------------------------- */

FORKED_TEST(queue_lane, what_comes_behind_the_last_look_is_withdrawn)
{
	const struct xr_part part = { large, sizeof(large) };
	struct letter l = letter_of(&part);

	BEGIN(.kind = XR_QUEUE_P2P);
	EXPECT_EQ(lane_put(h, lane, WHO, &l, &met), XR_OK);
	EXPECT(!lane_withdraw(h, &l));
	EXPECT_CELL(0, CELL_FULL, 0, 0);
	EXPECT(lane_shut(lane));
	EXPECT_EQ(lane->ends->shut, 1);
	EXPECT(!lane_shut(lane));
	EXPECT(lane_withdraw(h, &l));
	EXPECT_CELL(0, CELL_FREE, 0, 1);
	EXPECT_EQ(used(lane), 0);
	EXPECT(!lane_withdraw(h, &l));
	/* Or it was got. */
	l = letter_of(&part);
	EXPECT_EQ(lane_put(h, lane, WHO, &l, &met), XR_OK);
	EXPECT_EQ(l.ticket, 1);
	lane->ends->head = 1;
	{
		struct xr_queue_buf buf;
		struct taker t;

		EXPECT_EQ(get(&t, &buf), XR_OK);
	}
	EXPECT(!lane_withdraw(h, &l));
	EXPECT_CELL(1, CELL_FREE, 0, 1);
	xr_queue_free(queue);
}

/* --- getting -------------------------------------------------------------------------------- */

FORKED_TEST(queue_lane, an_item_stays_where_it_does_not_fit)
{
	struct xr_queue_buf buf = { room, 4, 0 };
	struct taker t = { .who = OTHER, .buf = &buf };

	for (int alone = 0; alone < 2; alone++) {
		BEGIN(.kind = alone ? XR_QUEUE_P2P : XR_QUEUE_ANY);
		put("12345");
		buf = (struct xr_queue_buf){ room, 4, 0 };
		EXPECT_EQ(lane_get(h, lane, &t, &met), XR_E_RANGE);
		EXPECT_EQ(buf.len, 5);
		EXPECT_CELL(0, CELL_FULL, 0, 0);
		buf.room = 5;
		EXPECT_EQ(lane_get(h, lane, &t, &met), XR_OK);
		/* In memory of its own, with a limit, which stays for the next. */
		put("12345");
		buf = (struct xr_queue_buf){ 0 };
		t.over = 5;
		EXPECT_EQ(lane_get(h, lane, &t, &met), XR_E_RANGE);
		EXPECT(t.made == NULL);
		t.over = 6;
		EXPECT_EQ(lane_get(h, lane, &t, &met), XR_OK);
		NEED(t.made != NULL);
		EXPECT(memcmp(t.made, "12345", 5) == 0);
		EXPECT_EQ(t.made_room, 5);
		put("54321");
		until_short = 1;
		EXPECT_EQ(lane_get(h, lane, &t, &met), XR_OK);
		EXPECT_EQ(until_short, 1);
		EXPECT(memcmp(t.made, "54321", 5) == 0);
		put("543210");
		t.over = 0;
		EXPECT_EQ(lane_get(h, lane, &t, &met), XR_E_NOMEM);
		until_short = 0;
		EXPECT_EQ(lane_get(h, lane, &t, &met), XR_OK);
		EXPECT_EQ(t.made_room, 6);
		free(t.made);
		t.made = NULL;
		/* NULL would be that there was no memory. */
		put("");
		EXPECT_EQ(lane_get(h, lane, &t, &met), XR_OK);
		EXPECT(t.made != NULL);
		free(t.made);
		t.made = NULL;
		xr_queue_free(queue);
	}
}

FORKED_TEST(queue_lane, a_length_that_cannot_be_is_not_read)
{
	struct xr_queue_buf buf;
	struct taker t;

	for (int alone = 0; alone < 2; alone++) {
		BEGIN(.kind = alone ? XR_QUEUE_P2P : XR_QUEUE_ANY);
		put("x");
		lane->cell[0].len = CELL_BODY + 1;
		EXPECT_EQ(get(&t, &buf), XR_E_PROTO);
		EXPECT_EQ(room[0], '.');
		EXPECT_CELL(0, CELL_FREE, 0, 1);
		put("x");
		lane->cell[1].len = CELL_BODY;
		EXPECT_EQ(get(&t, &buf), XR_OK);
		EXPECT_EQ(buf.len, CELL_BODY);
		xr_queue_free(queue);
	}
}

static uint64_t before_saw;

static void
look_before(struct taker *t)
{
	EXPECT(memcmp(t->buf->data, "text", 4) == 0);
	before_saw = state(0);
}

/* Before others hear that it was taken. */
FORKED_TEST(queue_lane, what_is_to_be_done_before_is_done_while_it_is_claimed)
{
	struct xr_queue_buf buf = { room, sizeof(room), 0 };
	struct taker t = { .who = OTHER, .buf = &buf, .before = look_before };

	BEGIN(.kind = XR_QUEUE_ANY);
	put("text");
	EXPECT_EQ(lane_get(h, lane, &t, &met), XR_OK);
	EXPECT_EQ(before_saw, cell_word(CELL_TAKEN, OTHER, 0));
	xr_queue_free(queue);
}

/* --- what is kept --------------------------------------------------------------------------- */

FORKED_TEST(queue_lane, what_was_got_is_ours_until_it_is_done)
{
	const struct xr_part part = { large, sizeof(large) };
	struct letter l = letter_of(&part);
	struct xr_queue_buf buf;
	struct taker t;

	BEGIN(.kind = XR_QUEUE_ANY, .redeliver = true);
	put("first");
	EXPECT_EQ(lane_put(h, lane, WHO, &l, &met), XR_OK);
	EXPECT_EQ(get(&t, &buf), XR_OK);
	EXPECT_CELL(0, CELL_TAKEN, OTHER, 0);
	EXPECT(t.hand.lane == lane && t.hand.ticket == 0);
	EXPECT_EQ(h->hand_count, 1);
	EXPECT_EQ(h->hand_room, 16);
	EXPECT(h->hand[0].lane == lane && h->hand[0].ticket == 0);
	EXPECT_EQ(get(&t, &buf), XR_OK);
	EXPECT_EQ(h->hand[1].ticket, 1);
	EXPECT_EQ(used(lane), 1);
	EXPECT_EQ(lane->ends->head, 2);
	/* The second is given back, and is got again. */
	lane_return(h, lane, 1);
	EXPECT_EQ(lane->ends->head, 1);
	EXPECT_CELL(1, CELL_FULL, 0, 0);
	EXPECT_EQ(get(&t, &buf), XR_OK);
	EXPECT_EQ(t.hand.ticket, 1);
	h->me = WHO;
	lane_release(h, lane, 0);
	lane_release(h, lane, 1);
	EXPECT_CELL(0, CELL_FREE, 0, 1);
	EXPECT_CELL(1, CELL_FREE, 0, 1);
	EXPECT_EQ(used(lane), 0);
	h->hand_count = 0;
	for (int i = 0; i < 40; i++) {
		put("");
		EXPECT_EQ(get(&t, &buf), XR_OK);
		EXPECT_EQ(h->hand_count, i + 1);
		EXPECT_EQ(h->hand_room, i < 16 ? 16 : i < 32 ? 32 : 64);
		lane_release(h, lane, t.hand.ticket);
	}
	h->hand_count = h->hand_room;
	put("stays");
	until_short = 1;
	EXPECT_EQ(get(&t, &buf), XR_E_NOMEM);
	until_short = 0;
	EXPECT_EQ(h->hand_count, 64);
	h->hand_count = 0;
	expect_get("stays");
	h->hand_count = 0;
	h->me = 0;
	xr_queue_free(queue);
}

/* --- the dead ------------------------------------------------------------------------------ */

/* What a reader had goes to others, where there is such a thing; a writer's claim is free. */
FORKED_TEST(queue_lane, what_the_dead_claimed_is_free_or_another_ones)
{
	const struct xr_part part = { large, sizeof(large) };
	struct xr_queue_buf buf;
	struct letter l;
	struct taker t;

	for (int again = 0; again < 2; again++) {
		BEGIN(.kind = XR_QUEUE_ANY, .redeliver = again);
		l = letter_of(&part);
		EXPECT_EQ(lane_put(h, lane, WHO, &l, &met), XR_OK);
		EXPECT(!lane_void(h, lane, 0, WHO));
		atomic_store(&lane->cell[0].state,
			cell_word(CELL_TAKEN, OTHER, 0));
		lane->ends->head = 1;
		EXPECT(!lane_void(h, lane, 0, WHO));
		EXPECT(!lane_void(h, lane, 1, OTHER));
		EXPECT_CELL(0, CELL_TAKEN, OTHER, 0);
		EXPECT_EQ(used(lane), 1);
		EXPECT(lane_void(h, lane, 0, OTHER));
		EXPECT_EQ(used(lane), again);
		EXPECT_EQ(lane->ends->head, !again);
		if (again)
			EXPECT_CELL(0, CELL_FULL, 0, 0);
		else
			EXPECT_CELL(0, CELL_FREE, 0, 1);
		l = offer(&part);
		EXPECT_EQ(l.ticket, 1);
		EXPECT_EQ(used(lane), 1 + again);
		EXPECT(lane_void(h, lane, 1, WHO));
		EXPECT_CELL(1, CELL_FREE, 0, 1);
		EXPECT_EQ(used(lane), again);
		if (again)
			EXPECT_EQ(get(&t, &buf), XR_OK);
		h->hand_count = 0;
		xr_queue_free(queue);
	}
}

FORKED_TEST(queue_lane, memory_of_a_free_cell_is_nobodys)
{
	BEGIN(.kind = XR_QUEUE_ANY);
	lane->cell[3].owner = 77;
	EXPECT(!lane_names(h, lane, 77));
	lane->cell[3].state = cell_word(CELL_CLAIMED, WHO, 0);
	EXPECT(lane_names(h, lane, 77));
	lane->cell[3].state = cell_word(CELL_TAKEN, WHO, 0);
	EXPECT(lane_names(h, lane, 77));
	EXPECT(!lane_names(h, lane, 78));
	lane->cell[3].state = cell_word(CELL_FREE, 0, 0);
	lane->cell[3].owner = 0;
	xr_queue_free(queue);
}
