/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shm_death.c - a rank that dies at one of the marked points (mark.h), at the
 * first time that it comes by there and at later ones: who lives hears of it and
 * goes on, and what the dead had is given back. So is what it had where its ring is
 * let go only when everybody has swept.
 */
#include "tests/unit/shm_rig.h"

#define SURVIVOR 0
#define VICTIM   1
#define LOST_NS  (5 * NS_PER_S) /* others may have the processors */
#define CLEAN_NS (5 * NS_PER_S)
#define VISIT_NS (20 * NS_PER_S) /* that it takes to come to the mark */

static struct {
	enum mark mark;
	unsigned after;
	bool windows; /* the memory of processes cannot be read */
} plan;

/* Each kind of message, one after the other; what has no room is tried later. */
static void
send_some(struct rig_peer *p, unsigned *turn)
{
	for (int i = 0; i < 4 && !p->lost; i++) {
		enum xr_status status =
			rig_send(p, (enum rig_kind)(*turn % RIG_KINDS));

		if (status == XR_OK)
			++*turn;
		else if (status != XR_E_AGAIN)
			return;
		else if (*turn % RIG_KINDS == RIG_A_BULK)
			rig_send(p, RIG_SHORT);
	}
}

/* --- who dies ------------------------------------------------------------- */

/* What takes runs of spans, and gives them back. */
static void
take_and_give(void)
{
	void *own, *data = shm_alloc(rig.shm, 3 * SEGMENT_SPAN, &own);

	if (data != NULL)
		shm_free(rig.shm, data, own);
	arena_trim(&rig.shm->arena, 0);
}

static void
victim(uint32_t rank)
{
	struct rig_peer *p;
	unsigned turn = plan.after;

	cma_forbid(plan.windows);
	rig_open(rank, atomic_load(&notes->go));
	p = rig_connect(SURVIVOR);
	while (atomic_load(&notes->ready[SURVIVOR]) != atomic_load(&notes->go))
		sched_yield();
	mark_after = plan.after;
	mark_at = plan.mark;
	for (;;) {
		if (!p->lost)
			send_some(p, &turn);
		else
			rig_drop_all();
		shm_poll(rig.shm);
		take_and_give();
		if (plan.mark == MARK_ARMED)
			shm_sleep(rig.shm, clock_now() + NS_PER_MS);
		else if (turn % 3 == 0 || p->lost)
			rig_sleep(NS_PER_MS);
	}
}

/* --- who lives ------------------------------------------------------------ */

static void
drain(void)
{
	int64_t end = clock_now() + CLEAN_NS;

	/* Blocks that were lent to the dead process return when its death is noticed. A poll may
	 * still deliver messages of it. */
	while ((rig.bulk_out || rig.shm->limbo != NULL || rig_used() > 0) &&
		clock_now() < end) {
		shm_look_everywhere(rig.shm);
		shm_poll(rig.shm);
		rig_drop_all();
		sched_yield();
	}
	EXPECT(!rig.bulk_out);
	EXPECT(rig.shm->limbo == NULL);
	EXPECT_EQ(rig_used(), 0);
	while (shm_busy(rig.shm)) {
		shm_poll(rig.shm);
		rig_drop_all();
	}
}

/* As long as the other lives, or until it is told to close. */
static void
live_a_round(uint32_t round)
{
	struct rig_peer *p;
	unsigned turn = 0;

	p = rig_connect(VICTIM);
	atomic_store(&notes->ready[SURVIVOR], round);
	while (!p->lost && atomic_load(&notes->stop) < round) {
		send_some(p, &turn);
		if (shm_poll(rig.shm) == 0)
			rig_sleep(NS_PER_MS);
	}
	rig_disconnect(p);
	rig_drop_all();
	drain();
	arena_trim(&rig.shm->arena, 0);
	atomic_store(&notes->idle[SURVIVOR], round);
}

static void
survivor(uint32_t rank)
{
	uint32_t round = 0;

	rig_open(rank, 1);
	for (;;) {
		while (atomic_load(&notes->go) == round)
			sched_yield();
		round = atomic_load(&notes->go);
		if (round == UINT32_MAX)
			break;
		live_a_round(round);
	}
	rig_close();
	EXPECT_EQ(rig_spans(VICTIM), 0);
}

/* --- the supervisor ------------------------------------------------------- */

static void
await(_Atomic uint32_t *word, uint32_t value, int64_t ns)
{
	int64_t end = clock_now() + ns;

	while (atomic_load(word) != value && clock_now() < end)
		usleep(100);
	EXPECT_EQ(atomic_load(word), value);
}

/* The victim dies at the mark; or there is no such place on its way, and it is
 * killed wherever it is. */
static void
end_victim(pid_t pid, uint32_t round)
{
	int64_t end = clock_now() + VISIT_NS;
	int status;
	pid_t got;

	while ((got = waitpid(pid, &status, WNOHANG)) == 0 &&
		clock_now() < end) {
		/* A ring is let go when the other end closes. */
		if (plan.mark == MARK_LETGO &&
			atomic_load(&notes->delivered[VICTIM]) > 10)
			atomic_store(&notes->stop, round);
		usleep(100);
	}
	if (got == 0) {
		EXPECT(plan.mark == MARK_NONE);
		kill(pid, SIGKILL);
		NEED(waitpid(pid, &status, 0) == pid);
	}
	EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void
play(uint32_t round)
{
	uint32_t lost = atomic_load(&notes->lost[SURVIVOR]);
	unsigned before = forked_wrong;
	int64_t died;
	pid_t pid;

	atomic_store(&notes->delivered[VICTIM], 0);
	atomic_store(&notes->go, round);
	pid = rig_rank(VICTIM, victim);
	end_victim(pid, round);
	died = clock_now();
	rig_bury(VICTIM);
	await(&notes->idle[SURVIVOR], round, CLEAN_NS);
	if (plan.mark != MARK_LETGO) {
		EXPECT_EQ(atomic_load(&notes->lost[SURVIVOR]), lost + 1);
		EXPECT_STR(notes->why[SURVIVOR], "its process ended");
		EXPECT(atomic_load(&notes->lost_at[SURVIVOR]) - died < LOST_NS);
	}
	EXPECT_EQ(atomic_load(&notes->wrong[SURVIVOR]), 0);
	EXPECT_EQ(rig_spans(RIG_SLOTS), rig_spans(SURVIVOR));
	EXPECT_EQ(rig_rings(), 0);
	EXPECT_EQ(rig_holds(SURVIVOR), 0);
	if (forked_wrong > before)
		forked_note(__LINE__, "mark %d after %u%s", plan.mark,
			plan.after, plan.windows ? ", windows" : "");
}

static void
die_at(enum mark mark, bool windows)
{
	static const unsigned after[] = { 0, 1, 2, 5, 13, 40 };
	uint32_t round = 0;
	pid_t pid;
	int status;

	rig_make();
	cma_forbid(windows);
	pid = rig_rank(SURVIVOR, survivor);
	for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
		plan.mark = mark;
		plan.after = after[i];
		plan.windows = windows;
		play(++round);
	}
	atomic_store(&notes->go, UINT32_MAX);
	NEED(waitpid(pid, &status, 0) == pid);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	rig_bury(SURVIVOR);
	EXPECT_EQ(rig_spans(RIG_SLOTS), 0);
}

FORKED_TEST(shm_death, a_record_that_is_not_published_is_not_there)
{
	die_at(MARK_RECORD, false);
}

FORKED_TEST(shm_death, one_that_nobody_was_woken_for_is_read)
{
	die_at(MARK_SENT, false);
}

/* There is one a link, and so only the first time. */
FORKED_TEST(shm_death, a_ring_that_nobody_was_told_of_is_given_back)
{
	uint32_t round = 0;
	pid_t pid;

	rig_make();
	pid = rig_rank(SURVIVOR, survivor);
	plan.mark = MARK_RING;
	while (round < 10)
		play(++round);
	atomic_store(&notes->go, UINT32_MAX);
	NEED(waitpid(pid, NULL, 0) == pid);
}

FORKED_TEST(shm_death, half_a_run_that_was_taken_is_given_back)
{
	die_at(MARK_TAKEN, false);
}

FORKED_TEST(shm_death, a_run_that_its_owner_does_not_know_is_given_back)
{
	die_at(MARK_SPAN, false);
}

FORKED_TEST(shm_death, half_a_run_that_was_given_back_is_given_back)
{
	die_at(MARK_GIVEN, false);
}

FORKED_TEST(shm_death, memory_that_is_lent_and_not_told_of_is_given_back)
{
	die_at(MARK_LOAN, false);
}

FORKED_TEST(shm_death, memory_of_ours_that_the_dead_used_is_ours_again)
{
	die_at(MARK_HELD, false);
}

FORKED_TEST(shm_death, who_lets_go_and_dies_has_let_go)
{
	uint32_t round = 0;
	pid_t pid;

	rig_make();
	pid = rig_rank(SURVIVOR, survivor);
	plan.mark = MARK_LETGO;
	while (round < 10)
		play(++round);
	atomic_store(&notes->go, UINT32_MAX);
	NEED(waitpid(pid, NULL, 0) == pid);
}

FORKED_TEST(shm_death, a_body_that_is_fetched_and_never_all_there)
{
	die_at(MARK_CMA, false);
}

FORKED_TEST(shm_death, windows_that_are_filled_no_further)
{
	die_at(MARK_WINDOW, true);
}

FORKED_TEST(shm_death, windows_that_are_emptied_no_further)
{
	die_at(MARK_EMPTIED, true);
}

FORKED_TEST(shm_death, who_was_about_to_sleep)
{
	die_at(MARK_ARMED, false);
}

/* --- what a death costs ---------------------------------------------------- */

static unsigned looks; /* at all slots */

void __real_alive_look(const struct segment_map *map);
void __wrap_alive_look(const struct segment_map *map);

void
__wrap_alive_look(const struct segment_map *map)
{
	looks++;
	__real_alive_look(map);
}

static void
killed(uint32_t rank)
{
	rig_open(rank, 1);
	rig_connect(SURVIVOR);
	atomic_store(&notes->ready[VICTIM], 1);
	for (;;)
		pause();
}

/* If a thousand ranks end at once, each look costs a thousand loads. */
static void
polls_on(uint32_t rank)
{
	struct rig_peer *p;
	unsigned before;

	rig_open(rank, 1);
	p = rig_connect(VICTIM);
	atomic_store(&notes->ready[SURVIVOR], 1);
	while (!p->lost)
		shm_poll(rig.shm);
	shm_busy(rig.shm);
	before = looks;
	EXPECT(before > 0);
	for (int i = 0; i < 100; i++)
		shm_busy(rig.shm);
	EXPECT_EQ(looks, before);
	rig_disconnect(p);
}

FORKED_TEST(shm_death, a_process_looks_at_all_slots_once_for_each_death)
{
	pid_t pid, other;
	int status;

	rig_make();
	pid = rig_rank(SURVIVOR, polls_on);
	other = rig_rank(VICTIM, killed);
	await(&notes->ready[VICTIM], 1, VISIT_NS);
	await(&notes->ready[SURVIVOR], 1, VISIT_NS);
	kill(other, SIGKILL);
	NEED(waitpid(other, NULL, 0) == other);
	NEED(waitpid(pid, &status, 0) == pid);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* --- who lets go when everybody has swept --------------------------------- */

/* Lends something, and is killed. */
static void
late_victim(uint32_t rank)
{
	struct rig_peer *p;

	rig_open(rank, 1);
	p = rig_connect(SURVIVOR);
	EXPECT_EQ(rig_send(p, RIG_LOAN), XR_OK);
	atomic_store(&notes->ready[VICTIM], 1);
	for (;;)
		pause();
}

static void
take_loan(void)
{
	while (atomic_load(&notes->delivered[SURVIVOR]) == 0)
		shm_poll(rig.shm);
}

/* The victim is killed, buried, and swept but for what is read. */
static void
outlive(void)
{
	atomic_store(&notes->ready[SURVIVOR], 1);
	while (atomic_load(&notes->go) == 0)
		sched_yield();
}

static void
hears_late(uint32_t rank)
{
	struct rig_peer *p;

	rig_open(rank, 1);
	p = rig_connect(VICTIM);
	take_loan();
	rig_drop_all();
	outlive();
	/* Another death was swept for a moment ago. */
	((struct carrier *)rig.self)->swept = clock_now() + NS_PER_S;
	while (!p->lost)
		shm_poll(rig.shm);
	shm_busy(rig.shm);
	EXPECT_EQ(rig_spans(VICTIM), 0);
}

static void
holds_long(uint32_t rank)
{
	rig_open(rank, 1);
	rig_connect(VICTIM);
	take_loan();
	rig_disconnect(&rig.peer[VICTIM]);
	outlive();
	EXPECT(rig_spans(VICTIM) > 0);
	rig_drop_all();
	EXPECT_EQ(rig_spans(VICTIM), 0);
}

static void
closes_late(uint32_t rank)
{
	rig_open(rank, 1);
	rig_connect(VICTIM);
	take_loan();
	rig_drop_all();
	outlive();
	rig_close();
	EXPECT_EQ(rig_spans(VICTIM), 0);
}

static void
never_looks(uint32_t rank)
{
	rig_open(rank, 1);
	outlive();
	rig_close();
	EXPECT_EQ(rig_spans(VICTIM), 0);
}

static void
outlived_by(void (*fn)(uint32_t rank))
{
	pid_t pid, other;
	int status;

	rig_make();
	pid = rig_rank(SURVIVOR, fn);
	other = rig_rank(VICTIM, late_victim);
	await(&notes->ready[VICTIM], 1, VISIT_NS);
	await(&notes->ready[SURVIVOR], 1, VISIT_NS);
	kill(other, SIGKILL);
	NEED(waitpid(other, NULL, 0) == other);
	rig_bury(VICTIM);
	EXPECT(rig_spans(VICTIM) > 0);
	atomic_store(&notes->go, 1);
	NEED(waitpid(pid, &status, 0) == pid);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

FORKED_TEST(shm_death, who_hears_of_it_late_sweeps_at_once)
{
	outlived_by(hears_late);
}

FORKED_TEST(shm_death, who_held_something_beyond_the_link_sweeps)
{
	outlived_by(holds_long);
}

FORKED_TEST(shm_death, who_closes_without_having_heard_sweeps)
{
	outlived_by(closes_late);
}

FORKED_TEST(shm_death, who_never_looked_at_the_ring_sweeps)
{
	outlived_by(never_looks);
}

/* The kernel marks the end of a thread first; what it had cannot be swept before the whole
 * process is gone. */
static void
sweeps_early(uint32_t rank)
{
	rig_open(rank, 1);
	EXPECT_EQ(plane_sweep(rig.shm), PLANE_CLEAN);
	atomic_store(&notes->ready[SURVIVOR], 1);
	await(&notes->go, 1, VISIT_NS);
	EXPECT_EQ(plane_sweep(rig.shm), PLANE_LATER);
	EXPECT_EQ(plane_sweep(rig.shm), PLANE_LATER);
	EXPECT(rig_spans(VICTIM) > 0);
	atomic_store(&notes->ready[SURVIVOR], 2);
	await(&notes->go, 2, VISIT_NS);
	EXPECT_EQ(plane_sweep(rig.shm), PLANE_CLEAN);
	EXPECT_EQ(rig_spans(VICTIM), 0);
	rig_close();
}

static void
stays(uint32_t rank)
{
	void *own;

	rig_open(rank, 1);
	NEED(shm_alloc(rig.shm, SEGMENT_SPAN, &own) != NULL);
	atomic_store(&notes->ready[VICTIM], 1);
	for (;;)
		pause();
}

FORKED_TEST(shm_death, what_cannot_be_swept_yet_is_swept_later)
{
	pid_t pid, other;
	int status;

	rig_make();
	pid = rig_rank(SURVIVOR, sweeps_early);
	await(&notes->ready[SURVIVOR], 1, VISIT_NS);
	other = rig_rank(VICTIM, stays);
	await(&notes->ready[VICTIM], 1, VISIT_NS);
	atomic_fetch_or(&segment_slot(&rig_map, VICTIM)->alive[0].word,
		SEGMENT_OWNER_DIED);
	atomic_store(&notes->go, 1);
	await(&notes->ready[SURVIVOR], 2, VISIT_NS);
	kill(other, SIGKILL);
	NEED(waitpid(other, NULL, 0) == other);
	atomic_store(&notes->go, 2);
	NEED(waitpid(pid, &status, 0) == pid);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
