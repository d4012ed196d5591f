/* SPDX-License-Identifier: Apache-2.0 */
/* test_queue_sweep.c - what is looked at when a process that used a queue is dead, and what of it
 * is made free. */
#include "tests/unit/queue_rig.h"
#include "worker/queue/lane.h"
#include "worker/queue/user.h"

TestSuite(queue_sweep, .timeout = 60);

#define ITEMS 4
#define LANES 3
#define USER  5u
#define WHO   (USER << GEN_BITS | 7)
#define OTHER (6u << GEN_BITS | 7)

static struct xr_queue *queue;
static struct hall *h;

/* --- what is called ------------------------------------------------------------------------- */

static unsigned voided[LANES][ITEMS], purges, frees, wakes, lights, asks;
static const struct lane *purged_of[8];
static uint64_t purged[8];
static uint64_t named; /* that a cell of lane @named_in names */
static uint32_t named_in;
static const struct user_id who = { .pid = 1234, .who = WHO };

bool __wrap_lane_void(struct hall *of, struct lane *lane, uint32_t index,
	uint32_t by);
bool __wrap_lane_names(const struct hall *of, const struct lane *lane,
	uint64_t owner);
void __wrap_crate_purge(struct hall *of, struct lane *lane, uint64_t owner);
void __wrap_user_free(struct hall *of, uint32_t user, const struct user_id *id);
void __wrap_hall_wake(struct hall *of);
void __wrap_hall_light(struct hall *of);

bool
__wrap_lane_void(struct hall *of, struct lane *lane, uint32_t index,
	uint32_t by)
{
	EXPECT(of == h && by == WHO && index < ITEMS);
	if (index < ITEMS)
		voided[lane - h->lane][index]++;
	EXPECT_EQ(frees, 0);
	return true;
}

bool
__wrap_lane_names(const struct hall *of, const struct lane *lane,
	uint64_t owner)
{
	EXPECT(of == h);
	EXPECT_EQ(owner_who(owner), WHO);
	asks++;
	return owner == named && lane == &h->lane[named_in];
}

void
__wrap_crate_purge(struct hall *of, struct lane *lane, uint64_t owner)
{
	EXPECT(of == h);
	NEED(purges < 8);
	purged_of[purges] = lane;
	purged[purges++] = owner;
	for (uint32_t i = 0; i < h->plan.blocks; i++)
		if (atomic_load(&lane->owner[i]) == owner)
			atomic_store(&lane->owner[i], 0);
}

void
__wrap_user_free(struct hall *of, uint32_t user, const struct user_id *id)
{
	EXPECT(of == h && user == USER && id == &who);
	frees++;
}

void
__wrap_hall_wake(struct hall *of)
{
	EXPECT(of == h);
	EXPECT_EQ(frees, 1);
	wakes++;
}

void
__wrap_hall_light(struct hall *of)
{
	EXPECT(of == h);
	EXPECT_EQ(wakes, 1);
	EXPECT_EQ(atomic_load(&h->head->lit), 0);
	lights++;
}

static void
begin(uint32_t lanes)
{
	queue = QUEUE(.items = ITEMS, .lanes = lanes, .bytes = 1 << 20);
	h = queue->hall;
	memset(voided, 0, sizeof(voided));
	purges = frees = wakes = lights = asks = 0;
	named = named_in = 0;
}

/* --- a sweep ------------------------------------------------------------------------------------ */

static void
sweep_once(uint32_t lanes)
{
	begin(lanes);
	user_sweep(h, USER, &who);
	for (uint32_t l = 0; l < LANES; l++)
		for (uint32_t i = 0; i < ITEMS; i++)
			EXPECT_EQ(voided[l][i], l < lanes);
	EXPECT_EQ(purges + asks, 0);
	EXPECT_EQ(frees, 1);
	EXPECT_EQ(wakes, 1);
	EXPECT_EQ(lights, 0);
	xr_queue_free(queue);
}

FORKED_TEST(queue_sweep, each_cell_of_each_lane_is_looked_at_once)
{
	sweep_once(1);
	sweep_once(LANES);
}

FORKED_TEST(queue_sweep, who_polls_looks_again)
{
	begin(1);
	atomic_store(&h->head->polled, 1);
	atomic_store(&h->head->lit, 1);
	user_sweep(h, USER, &who);
	EXPECT_EQ(lights, 1);
	atomic_store(&h->head->polled, 0);
	atomic_store(&h->head->lit, 1);
	wakes = frees = 0;
	user_sweep(h, USER, &who);
	EXPECT_EQ(lights, 1);
	EXPECT_EQ(h->head->lit, 1);
	xr_queue_free(queue);
}

FORKED_TEST(queue_sweep, an_end_of_one_to_one_is_free_if_it_was_its)
{
	begin(2);
	h->lane[0].ends->writer = WHO;
	h->lane[0].ends->reader = OTHER;
	h->lane[1].ends->writer = OTHER;
	h->lane[1].ends->reader = WHO;
	user_sweep(h, USER, &who);
	EXPECT_EQ(h->lane[0].ends->writer, 0);
	EXPECT_EQ(h->lane[0].ends->reader, OTHER);
	EXPECT_EQ(h->lane[1].ends->writer, OTHER);
	EXPECT_EQ(h->lane[1].ends->reader, 0);
	xr_queue_free(queue);
}

FORKED_TEST(queue_sweep, memory_of_what_was_not_put_is_free)
{
	const uint64_t put = owner_word(WHO, 1), left = owner_word(WHO, 2),
		       its = owner_word(OTHER, 3);
	_Atomic uint64_t *owner;
	uint32_t last;

	begin(2);
	owner = h->lane[1].owner;
	last = h->plan.blocks - 1;
	owner[0] = owner[1] = owner[2] = put;
	owner[4] = owner[5] = left;
	owner[6] = its;
	owner[last] = owner_word(WHO, 4);
	named = put;
	named_in = 1;
	user_sweep(h, USER, &who);
	EXPECT_EQ(purges, 2);
	EXPECT(purged_of[0] == &h->lane[1] && purged_of[1] == &h->lane[1]);
	EXPECT(purged[0] == left && purged[1] == owner_word(WHO, 4));
	EXPECT_EQ(asks, 3);
	EXPECT(owner[0] == put && owner[1] == put && owner[2] == put);
	EXPECT(owner[4] == 0 && owner[5] == 0 && owner[6] == its);
	/* A cell of another lane says nothing of it. */
	purges = frees = wakes = 0;
	named_in = 0;
	user_sweep(h, USER, &who);
	EXPECT_EQ(purges, 1);
	EXPECT(purged[0] == put);
	xr_queue_free(queue);
}

FORKED_TEST(queue_sweep, a_lot_is_free_that_no_lane_names)
{
	begin(2);
	h->head->lots[0] = owner_word(WHO, 1);
	h->head->lots[1] = owner_word(OTHER, 2);
	h->head->lots[HALL_LOTS - 1] = owner_word(WHO, 3);
	named = owner_word(WHO, 1);
	named_in = 1;
	user_sweep(h, USER, &who);
	EXPECT_EQ(purges, 1);
	EXPECT(purged_of[0] == &h->lane[0] && purged[0] == owner_word(WHO, 3));
	purges = frees = wakes = 0;
	named = owner_word(WHO, 3);
	named_in = 0;
	user_sweep(h, USER, &who);
	EXPECT_EQ(purges, 1);
	EXPECT(purged[0] == owner_word(WHO, 1));
	xr_queue_free(queue);
}
