/* SPDX-License-Identifier: Apache-2.0 */
/* test_slots.c - the slot of a rank that was reaped; see launcher/tell/slots.h. */
#include <stddef.h>

#include "base/clock.h"
#include "launcher/job/sup.h"
#include "launcher/tell/slots.h"
#include "segment/member.h"
#include "segment/owner.h"
#include "tests/unit/forked.h"

#define RANKS 2
#define DEAD  0
#define OTHER 1

TestSuite(slots, .timeout = 60);

static struct rank ranks[RANKS];
static struct sup sup;
static struct job job = { .rank = ranks, .sup = &sup };
static struct segment_slot *slot; /* of rank DEAD */

/* The slot of rank DEAD is held by this process, which is no rank. */
static void
begin(bool other_runs)
{
	struct segment_tag tag;

	NEED(spawn_slots_init() == 0);
	snprintf(job.state.id, sizeof(job.state.id), "k7m2");
	job.opt.hang_timeout = 1;
	job.plan.local_size = RANKS;
	for (uint32_t r = 0; r < RANKS; r++)
		ranks[r] = (struct rank){ .pid = getppid(), .pidfd = -1 };
	if (other_runs)
		ranks[OTHER].pidfd = STDIN_FILENO;
	slots_open(&job);
	NEED(segment_tag_parse(job.segment, &tag));
	tag.fd = SPAWN_SLOT_SEGMENT;
	slot = segment_join(&tag, DEAD);
	NEED(slot != NULL && segment_hold(slot) == 0);
}

static uint32_t
holder(void)
{
	struct segment_view view;

	NEED(segment_look(SPAWN_SLOT_SEGMENT, DEAD, clock_now(), &view));
	return view.holder;
}

FORKED_TEST(slots,
	a_live_process_keeps_the_slot_of_a_dead_rank_while_others_run)
{
	begin(true);
	slots_reaped(&job, DEAD);
	EXPECT_EQ(holder(), getpid());
	EXPECT_EQ(job.slots_left, 1);
	slots_strangers(&job);
	EXPECT_EQ(holder(), getpid());
	EXPECT_EQ(job.slots_left, 1);
}

/* Deaths for which the supervisor woke other ranks. */
static uint32_t
alarms(void)
{
	uint32_t word;

	NEED(pread(SPAWN_SLOT_SEGMENT, &word, sizeof(word),
		     SEGMENT_SHARED + offsetof(struct segment_shared, fails)) ==
		sizeof(word));
	return word;
}

FORKED_TEST(slots, the_slot_of_a_dead_rank_is_free)
{
	uint32_t before;

	begin(true);
	before = alarms();
	ranks[DEAD].pid = getpid();
	slots_reaped(&job, DEAD);
	EXPECT_EQ(holder(), 0);
	EXPECT_EQ(job.slots_left, 0);
	EXPECT_EQ(alarms(), before);
}

FORKED_TEST(slots, the_death_of_a_rank_with_links_wakes_the_others)
{
	uint32_t before;

	begin(true);
	before = alarms();
	ranks[DEAD].pid = getpid();
	atomic_store(&slot->plane, 1);
	slots_reaped(&job, DEAD);
	EXPECT(alarms() != before);
}

static unsigned posted; /* to the helper thread */

bool __real_work_post(struct work *work, work_fn *fn, void *ctx);
bool __wrap_work_post(struct work *work, work_fn *fn, void *ctx);

bool
__wrap_work_post(struct work *work, work_fn *fn, void *ctx)
{
	EXPECT(work == sup.work);
	posted++;
	return __real_work_post(work, fn, ctx);
}

static pid_t
start_stranger(void)
{
	pid_t pid;

	segment_let_go(slot);
	pid = fork();
	NEED(pid != -1);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		NEED(segment_hold(slot) == 0);
		raise(SIGSTOP);
		_exit(0);
	}
	NEED(waitpid(pid, NULL, WUNTRACED) == pid);
	return pid;
}

FORKED_TEST(slots, the_slot_is_free_after_the_process_that_kept_it_has_ended)
{
	pid_t pid;

	begin(true);
	sup.work = work_new();
	NEED(sup.work != NULL);
	pid = start_stranger();
	slots_reaped(&job, DEAD);
	EXPECT_EQ(holder(), pid);
	EXPECT_EQ(job.slots_left, 1);
	kill(pid, SIGKILL);
	NEED(waitpid(pid, NULL, 0) == pid);
	EXPECT_EQ(posted, 0);
	slots_strangers(&job);
	EXPECT_EQ(holder(), 0);
	EXPECT_EQ(job.slots_left, 0);
	EXPECT_EQ(posted, 1);
	EXPECT(work_wait(sup.work, 20 * NS_PER_S));
}

FORKED_TEST(slots, the_slot_of_the_last_rank_is_free_although_a_process_has_it)
{
	begin(false);
	slots_reaped(&job, DEAD);
	EXPECT_EQ(holder(), 0);
	EXPECT_EQ(job.slots_left, 0);
}
