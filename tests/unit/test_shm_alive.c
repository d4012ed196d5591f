/* SPDX-License-Identifier: Apache-2.0 */
/* test_shm_alive.c - who ends is marked, whoever sleeps hears of it, and no ring of
 * a bell is lost. */
#include "tests/unit/shm_rig.h"
#include "worker/shm/alive.h"
#include "worker/shm/bell.h"

#define ROUNDS 20000

static struct alive alive;

/* A child that has the words of slot 1, and ends by @how. */
static pid_t
child_that(void (*how)(void))
{
	struct segment_slot *slot = segment_slot(&rig_map, 1);
	pid_t pid = fork();

	NEED(pid != -1);
	if (pid == 0) {
		segment_hold(slot);
		if (!alive_take(&alive, slot))
			_exit(9);
		atomic_store(&slot->plane,
			segment_gen(atomic_load(&slot->claim)) << 8 | 1);
		how();
		_exit(0);
	}
	return pid;
}

static void
end_at_once(void)
{
}

static void
leave_first(void)
{
	alive_leave(&alive);
}

static void
kill_itself(void)
{
	kill(getpid(), SIGKILL);
}

static void
become_another(void)
{
	execl("/bin/sleep", "sleep", "30", (char *)NULL);
}

static void
sleep_long(void)
{
	for (;;)
		pause();
}

static void
await_plane(void)
{
	while (atomic_load(&segment_slot(&rig_map, 1)->plane) == 0)
		sched_yield();
}

static void
reap(pid_t pid)
{
	int status;

	NEED(waitpid(pid, &status, 0) == pid);
	EXPECT(!WIFEXITED(status) || WEXITSTATUS(status) == 0);
}

FORKED_TEST(shm_alive, whatever_ends_it_the_end_is_marked)
{
	struct segment_slot *slot;

	rig_make();
	slot = segment_slot(&rig_map, 1);
	reap(child_that(end_at_once));
	EXPECT(alive_ended(slot));
	EXPECT(!alive_is(slot, atomic_load(&slot->plane)));
	reap(child_that(kill_itself));
	EXPECT(alive_ended(slot));
}

FORKED_TEST(shm_alive, who_leaves_first_is_not_marked)
{
	rig_make();
	reap(child_that(leave_first));
	EXPECT(!alive_ended(segment_slot(&rig_map, 1)));
}

FORKED_TEST(shm_alive, who_becomes_another_program_has_ended_and_is_not_gone)
{
	struct segment_slot *slot;
	pid_t pid;

	rig_make();
	slot = segment_slot(&rig_map, 1);
	pid = child_that(become_another);
	while (!alive_ended(slot))
		sched_yield();
	EXPECT(!segment_gone(slot, atomic_load(&slot->claim), true));
	kill(pid, SIGKILL);
	reap(pid);
	EXPECT(segment_gone(slot, atomic_load(&slot->claim), true));
}

/* One that sleeps on a word of the other; its neighbour only at its bell. */
static void
sleep_until_told(uint32_t slot, bool watches)
{
	struct segment_shared *shared = segment_shared(&rig_map);
	struct bell_word words[ALIVE_WATCHED];
	struct bell bell;
	uint32_t count = 0;

	bell_init(&bell, &segment_slot(&rig_map, slot)->bell, true);
	bell_arm(&bell);
	if (watches)
		count = alive_watch(&rig_map, slot, words, ALIVE_WATCHED);
	atomic_store(&notes->ready[slot], 1);
	while (atomic_load(&shared->fails) == 0) {
		bell_sleep(&bell, words, count, INT64_MAX);
		alive_look(&rig_map);
	}
	bell_disarm(&bell);
}

static void
watcher(uint32_t rank)
{
	sleep_until_told(rank, true);
}

static void
sleeper(uint32_t rank)
{
	sleep_until_told(rank, false);
}

FORKED_TEST(shm_alive, who_hears_of_it_tells_all_others)
{
	pid_t dying, first, second;

	rig_make();
	if (!bell_watches())
		return; /* then the supervisor tells */
	dying = child_that(sleep_long);
	await_plane();
	first = rig_rank(2, watcher);
	second = rig_rank(3, sleeper);
	while (atomic_load(&notes->ready[2]) == 0 ||
		atomic_load(&notes->ready[3]) == 0)
		sched_yield();
	kill(dying, SIGKILL);
	reap(dying);
	reap(first);
	reap(second);
	EXPECT_EQ(atomic_load(&segment_slot(&rig_map, 1)->told),
		segment_gen(atomic_load(&segment_slot(&rig_map, 1)->claim)));
}

/* --- bells ---------------------------------------------------------------- */

static _Atomic uint64_t *work;

/* Each piece of work is done, and none is waited for in vain: there is no limit
 * to the sleep. */
static void
worker(uint32_t rank)
{
	struct bell bell;
	uint64_t done = 0;

	bell_init(&bell, &segment_slot(&rig_map, rank)->bell, true);
	while (done < ROUNDS) {
		bell_arm(&bell);
		if (atomic_load_explicit(work, memory_order_relaxed) == done)
			bell_sleep(&bell, NULL, 0, INT64_MAX);
		bell_disarm(&bell);
		done = atomic_load(work);
		atomic_store(&notes->delivered[rank], (uint32_t)done);
	}
}

FORKED_TEST(shm_alive, no_ring_of_a_bell_is_lost)
{
	struct segment_bell *bell;
	uint32_t rang = 0;
	pid_t pid;

	rig_make();
	bell = &segment_slot(&rig_map, 0)->bell;
	work = (_Atomic uint64_t *)&segment_slot(&rig_map, 3)->tick;
	pid = rig_rank(0, worker);
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		atomic_store_explicit(work, i, memory_order_relaxed);
		bell_ring(bell, &rang, true);
		while (i % 16 == 0 && atomic_load(&notes->delivered[0]) != i)
			sched_yield();
	}
	reap(pid);
}

FORKED_TEST(shm_alive, a_sleep_ends_in_time)
{
	struct bell bell;
	int64_t from;

	rig_make();
	bell_init(&bell, &segment_slot(&rig_map, 0)->bell, true);
	bell_arm(&bell);
	from = clock_now();
	EXPECT_EQ(bell_sleep(&bell, NULL, 0, from + 5 * NS_PER_MS), ETIMEDOUT);
	EXPECT(clock_now() - from >= 5 * NS_PER_MS);
	EXPECT_EQ(bell_disarm(&bell), 0);
	bell_arm(&bell);
	bell_ring(bell.at, NULL, true);
	EXPECT_EQ(bell_sleep(&bell, NULL, 0, INT64_MAX), 0);
	EXPECT(bell_disarm(&bell) > 0);
}

/* --- links of several openings ---------------------------------------------------------- */

static struct rig_peer later; /* the opening of rank 1 that comes next */

static uint64_t
await_word(_Atomic uint64_t *at)
{
	uint64_t word;

	while ((word = atomic_load(at)) == 0)
		sched_yield();
	return word;
}

static void
connect_later(uint64_t incarnation)
{
	char text[XR_ADDRESS_MAX + 16], *plane;

	snprintf(text, sizeof(text), "%s", notes->address[1]);
	plane = strrchr(text, ':') + 1;
	snprintf(plane, 16, "%lu", strtoul(plane, NULL, 10) + 1);
	EXPECT_EQ(shm_carrier.connect(rig.self, text, 1, incarnation, &later,
			  &later.link, NULL),
		XR_OK);
	EXPECT(later.link != NULL);
}

/* As if it had opened the segment again: what is accepted is of the opening before. */
static void *
connect_to_next(void *ctx, uint32_t id, uint64_t incarnation,
	struct xr_link *link)
{
	connect_later(incarnation + 1);
	EXPECT(later.link != link);
	return rig_accepted(ctx, id, incarnation, link);
}

static void
accept_one(uint32_t rank)
{
	struct xr_carrier_host host = rig_host;
	const struct xr_carrier_opts opts = {
		.size = sizeof(opts),
		.id = rank,
		.incarnation = 1,
	};
	int64_t until = clock_now() + 20 * NS_PER_S;

	host.accepted = connect_to_next;
	NEED(shm_open_segment(&rig.shm, NULL) == XR_OK);
	NEED(shm_alive(rig.shm));
	NEED(shm_carrier.open(&host, &opts, &rig.self, NULL) == XR_OK);
	NEED(shm_carrier.address(rig.self, notes->address[rank],
		     XR_ADDRESS_MAX + 1) > 0);
	atomic_store(&notes->incarnation[rank], 1);
	while (atomic_load(&notes->delivered[rank]) == 0 &&
		clock_now() < until) {
		shm_carrier.progress(rig.self, 16);
		sched_yield();
	}
	EXPECT_EQ(notes->delivered[rank], 1);
	atomic_store(&notes->stop, 1);
	rig_disconnect(&later);
	rig_close();
}

static void
send_one(uint32_t rank)
{
	int64_t until = clock_now() + 20 * NS_PER_S;
	struct rig_peer *p;

	rig_open(rank, 1);
	p = rig_connect(0);
	while (rig_send(p, RIG_SHORT) == XR_E_AGAIN)
		shm_carrier.progress(rig.self, 16);
	while (atomic_load(&notes->stop) == 0 && clock_now() < until) {
		shm_carrier.progress(rig.self, 16);
		sched_yield();
	}
	rig_close();
}

/* Rank 1 sends one message to rank 0, which runs @receiver. */
static void
run_both(void (*receiver)(uint32_t rank))
{
	pid_t pid[2];
	int status;

	rig_make();
	pid[0] = rig_rank(0, receiver);
	pid[1] = rig_rank(1, send_one);
	for (int i = 0; i < 2; i++) {
		NEED(waitpid(pid[i], &status, 0) == pid[i]);
		EXPECT_EQ(status, 0);
	}
}

FORKED_TEST(shm_alive, a_link_that_is_accepted_is_of_one_opening)
{
	run_both(accept_one);
}

/* The link to the next opening has no ring yet when the ring of this opening comes. */
static void
accept_beside(uint32_t rank)
{
	const struct rig_peer *p = &rig.peer[1];

	alarm(20);
	rig_open(rank, 1);
	await_word(segment_dir(&rig_map, rank, 1));
	connect_later(2);
	while (atomic_load(&notes->delivered[rank]) == 0 || !later.lost) {
		shm_carrier.progress(rig.self, 16);
		sched_yield();
	}
	EXPECT(p->link != NULL && p->link != later.link);
	EXPECT(!p->lost);
	EXPECT_EQ(notes->delivered[rank], 1);
	EXPECT_EQ(notes->lost[rank], 1);
	atomic_store(&notes->stop, 1);
	rig_disconnect(&later);
	rig_close();
}

FORKED_TEST(shm_alive, a_ring_is_not_read_by_the_link_to_another_opening)
{
	run_both(accept_beside);
}

/* --- words of earlier lives ------------------------------------------------------------- */

/* The ring was made anew in the place where the other life had one. */
static void
refuse(_Atomic uint64_t *at, uint64_t word)
{
	atomic_store(at, word);
	atomic_fetch_add(&rig.shm->mine->arrivals, 1);
	while (atomic_load(at) != 0 && notes->delivered[0] == 0)
		shm_poll(rig.shm);
	EXPECT_EQ(notes->delivered[0], 0);
	EXPECT_EQ(rig.shm->carrier->count, 0);
}

static void
accept_the_third(uint32_t rank)
{
	_Atomic uint64_t *at;
	uint64_t word;

	rig_open(rank, 1);
	at = segment_dir(&rig_map, rank, 1);
	word = await_word(at);
	refuse(at, word ^ 1);
	refuse(at, word ^ 1 << 16);
	atomic_store(at, word);
	atomic_fetch_add(&rig.shm->mine->arrivals, 1);
	while (atomic_load(&notes->delivered[rank]) == 0)
		shm_poll(rig.shm);
	EXPECT_EQ(notes->delivered[rank], 1);
	EXPECT_EQ(atomic_load(at), word);
	atomic_store(&notes->stop, 1);
	rig_close();
}

FORKED_TEST(shm_alive, a_ring_is_refused_by_the_word_of_an_earlier_life)
{
	run_both(accept_the_third);
}
