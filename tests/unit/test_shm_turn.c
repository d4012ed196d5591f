/* SPDX-License-Identifier: Apache-2.0 */
/* test_shm_turn.c - in which turn the carrier of shared memory reads its links, which it
 * forgets, and who is there (worker/shm/carrier.c). */
#include "tests/unit/shm_rig.h"

#define EACH 4 /* messages of each sender */

TestSuite(shm_turn, .timeout = 60);

static void
run_ranks(void (*const *fn)(uint32_t rank), uint32_t count)
{
	pid_t pid[RIG_RANKS];
	int status;

	rig_make();
	for (uint32_t i = 0; i < count; i++)
		pid[i] = rig_rank(i, fn[i]);
	for (uint32_t i = 0; i < count; i++) {
		NEED(waitpid(pid[i], &status, 0) == pid[i]);
		EXPECT_EQ(status, 0);
	}
}

static void
await(const _Atomic uint32_t *word, uint32_t value)
{
	while (atomic_load(word) < value)
		sched_yield();
}

/* --- turns ---------------------------------------------------------------------------- */

static void
send_some(uint32_t rank)
{
	struct rig_peer *p;

	alarm(20);
	rig_open(rank, 1);
	p = rig_connect(0);
	for (int i = 0; i < EACH; i++)
		while (rig_send(p, RIG_SHORT) == XR_E_AGAIN)
			shm_carrier.progress(rig.self, 16);
	atomic_store(&notes->ready[rank], 1);
	while (atomic_load(&notes->stop) == 0) {
		shm_carrier.progress(rig.self, 16);
		sched_yield();
	}
	rig_close();
}

/* All have sent before the first is read: of each as many are read, and no more than are
 * asked for. */
static void
read_in_turn(uint32_t rank)
{
	uint32_t from[3];

	alarm(20);
	rig_open(rank, 1);
	for (uint32_t i = 1; i < 4; i++)
		await(&notes->ready[i], 1);
	for (uint32_t n = 0; n < 3 * (EACH - 1);) {
		uint32_t count = shm_carrier.progress(rig.self, 1);

		n += count;
		EXPECT(count <= 1);
		EXPECT_EQ(notes->delivered[rank], n);
		for (int i = 0; i < 3; i++)
			from[i] = atomic_load(&notes->from[i + 1]);
		for (int i = 0; i < 3; i++)
			if (from[i] < n / 3 || from[i] > n / 3 + 1)
				forked_note(__LINE__, "%u: %u %u %u", n,
					from[0], from[1], from[2]);
	}
	EXPECT_EQ(shm_carrier.progress(rig.self, 2), 2);
	EXPECT_EQ(shm_carrier.progress(rig.self, 16), 1);
	EXPECT_EQ(shm_carrier.progress(rig.self, 16), 0);
	EXPECT_EQ(notes->wrong[rank], 0);
	atomic_store(&notes->stop, 1);
	rig_close();
}

FORKED_TEST(shm_turn, links_are_read_in_turn)
{
	void (*const fn[])(uint32_t) = { read_in_turn, send_some, send_some,
		send_some };

	run_ranks(fn, 4);
}

/* --- who is nobody ----------------------------------------------------------------------- */

static void *
refuse(void *ctx, uint32_t id, uint64_t incarnation, struct xr_link *link)
{
	(void)ctx;
	EXPECT_EQ(id, 1);
	EXPECT_EQ(incarnation, 77);
	EXPECT_EQ(shm_link_slot(link), 1);
	atomic_fetch_add(&notes->turns, 1);
	return NULL;
}

static void
refuse_one(uint32_t rank)
{
	struct xr_carrier_host host = rig_host;
	const struct xr_carrier_opts opts = {
		.size = sizeof(opts),
		.id = rank,
		.incarnation = 1,
	};

	alarm(20);
	host.accepted = refuse;
	NEED(shm_open_segment(&rig.shm, NULL) == XR_OK);
	NEED(shm_alive(rig.shm));
	NEED(shm_carrier.open(&host, &opts, &rig.self, NULL) == XR_OK);
	NEED(shm_carrier.address(rig.self, notes->address[rank],
		     XR_ADDRESS_MAX + 1) > 0);
	atomic_store(&notes->incarnation[rank], 1);
	while (atomic_load(&notes->lost[1]) == 0) {
		shm_carrier.progress(rig.self, 16);
		EXPECT_EQ(rig.shm->carrier->count, 0);
		EXPECT(rig.shm->carrier->by_slot[1] == NULL);
		sched_yield();
	}
	EXPECT_EQ(notes->turns, 1);
	EXPECT_EQ(notes->delivered[rank], 0);
	shm_carrier.free(rig.self);
	shm_alive_end(rig.shm);
}

static void
be_refused(uint32_t rank)
{
	struct rig_peer *p;

	alarm(20);
	rig_open(rank, 77);
	p = rig_connect(0);
	EXPECT_EQ(rig_send(p, RIG_SHORT), XR_OK);
	while (!p->lost) {
		shm_carrier.progress(rig.self, 16);
		sched_yield();
	}
	EXPECT_EQ(notes->lost[rank], 1);
	rig_close();
}

FORKED_TEST(shm_turn, a_link_that_the_host_does_not_want_is_forgotten)
{
	void (*const fn[])(uint32_t) = { refuse_one, be_refused };

	run_ranks(fn, 2);
	EXPECT_EQ(rig_rings(), 0);
}

/* --- who is there ----------------------------------------------------------------------------- */

static void
look_who_is_there(uint32_t rank)
{
	char text[XR_ADDRESS_MAX + 16], *slot;

	rig_open(rank, 1);
	EXPECT_EQ(shm_carrier.there(rig.self, notes->address[rank], 9, 9),
		XR_THERE_YES);
	/* Another opening, and a slot that nobody has. */
	snprintf(text, sizeof(text), "%s", notes->address[rank]);
	slot = strrchr(text, ':') - 1;
	NEED(slot[0] == '0' && slot[1] == ':');
	slot[0] = '1';
	EXPECT_EQ(shm_carrier.there(rig.self, text, 9, 9), XR_THERE_NO);
	snprintf(slot, 16, "0:4711");
	EXPECT_EQ(shm_carrier.there(rig.self, text, 9, 9), XR_THERE_NO);
	slot[0] = 'x';
	EXPECT_EQ(shm_carrier.there(rig.self, text, 9, 9), XR_THERE_UNKNOWN);
	rig_close();
}

FORKED_TEST(shm_turn, an_opening_is_there_or_not)
{
	void (*const fn[])(uint32_t) = { look_who_is_there };

	run_ranks(fn, 1);
}
