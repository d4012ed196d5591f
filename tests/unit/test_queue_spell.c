/* SPDX-License-Identifier: Apache-2.0 */
/* test_queue_spell.c - a call of a queue that waits, turn by turn: when it looks, sleeps, sweeps
 * after the dead, and gives up. */
#include "tests/unit/forked.h"
#include "worker/queue/queue_inner.h"
#include "worker/queue/user.h"
#include "worker/queue/vigil.h"

TestSuite(queue_spell, .timeout = 60);

#define SEEN 41
#define WHO  0x2001u

static struct xr_error err;
static struct hall_head head;
static struct hall hall;
static struct spell s;

/* --- what it calls ------------------------------------------------------------------------- */

static int64_t now;
static enum wait_next next_turn;
static int sleep_rc;
static enum xr_status follow_status;
static struct wait_env *env;

static struct {
	unsigned clock, env, begin, turn, woken, end, arm, sleep, follow, all,
		one, abandoned;
} calls;

int64_t __wrap_clock_now(void);
void __wrap_wait_env_init(struct wait_env *e, const struct segment_map *map,
	uint32_t slot);
void __wrap_wait_begin(struct wait *w, struct wait_env *e,
	const _Atomic uint32_t *peer, struct wait_site *site);
enum wait_next __wrap_wait_turn(struct wait *w);
void __wrap_wait_woken(struct wait *w, int64_t ticks);
void __wrap_wait_end(struct wait *w);
uint32_t __wrap_wake_arm(struct wake *w);
int __wrap_wake_sleep(struct wake *w, uint32_t seen, int64_t until);
enum xr_status __wrap_vigil_follow(struct hall *h, struct xr_error *e);
void __wrap_user_check_all(struct hall *h);
void __wrap_user_check(struct hall *h, uint32_t who);
bool __wrap_hall_abandoned(struct hall *h);

int64_t
__wrap_clock_now(void)
{
	calls.clock++;
	return now;
}

void
__wrap_wait_env_init(struct wait_env *e, const struct segment_map *map,
	uint32_t slot)
{
	EXPECT(map == NULL && slot == 0);
	env = e;
	calls.env++;
}

void
__wrap_wait_begin(struct wait *w, struct wait_env *e,
	const _Atomic uint32_t *peer, struct wait_site *site)
{
	EXPECT(w == &s.wait && e == env && env != NULL);
	EXPECT(peer == NULL && site == s.site);
	calls.begin++;
}

enum wait_next
__wrap_wait_turn(struct wait *w)
{
	EXPECT(w == &s.wait);
	calls.turn++;
	return next_turn;
}

void
__wrap_wait_woken(struct wait *w, int64_t ticks)
{
	EXPECT(w == &s.wait && ticks == 0);
	calls.woken++;
}

void
__wrap_wait_end(struct wait *w)
{
	EXPECT(w == &s.wait);
	calls.end++;
}

uint32_t
__wrap_wake_arm(struct wake *w)
{
	EXPECT(w == s.wake);
	calls.arm++;
	return SEEN;
}

int
__wrap_wake_sleep(struct wake *w, uint32_t seen, int64_t until)
{
	EXPECT(w == s.wake && seen == SEEN && until == s.deadline);
	calls.sleep++;
	return sleep_rc;
}

enum xr_status
__wrap_vigil_follow(struct hall *h, struct xr_error *e)
{
	EXPECT(h == &hall && e == &err);
	EXPECT(s.armed);
	calls.follow++;
	return follow_status;
}

void
__wrap_user_check_all(struct hall *h)
{
	EXPECT(h == &hall);
	calls.all++;
}

void
__wrap_user_check(struct hall *h, uint32_t who)
{
	EXPECT(h == &hall && who == WHO);
	calls.one++;
}

bool
__wrap_hall_abandoned(struct hall *h)
{
	EXPECT(h == &hall);
	calls.abandoned++;
	return false;
}

/* --- a spell ------------------------------------------------------------------------------- */

static void
begin(struct wake *wake, int64_t timeout)
{
	memset(&hall, 0, sizeof(hall));
	hall.head = &head;
	memset(&calls, 0, sizeof(calls));
	memset(&s, 0xff, sizeof(s));
	memset(&err, 0, sizeof(err));
	now = 1000;
	next_turn = WAIT_AGAIN;
	sleep_rc = 0;
	follow_status = XR_OK;
	spell_init(&s, &hall, wake, timeout);
	EXPECT(s.hall == &hall && s.wake == wake);
	EXPECT(s.timeout == timeout && s.deadline == INT64_MAX);
	EXPECT(!s.begun && !s.armed && !s.is_last);
	EXPECT(s.met.who == 0 && !s.met.is_memory);
}

/* The look after this turn is the last one. */
static void
expect_last(const char *text)
{
	EXPECT(s.is_last);
	EXPECT_EQ(calls.abandoned, 1);
	EXPECT_EQ(spell_turn(&s, &err), XR_E_TIMEOUT);
	EXPECT_STR(err.text, text);
	EXPECT_EQ(calls.abandoned, 1);
}

#define NOTHING "nothing came in time"
#define NO_ROOM "no room in time"

FORKED_TEST(queue_spell, without_time_there_is_one_more_look)
{
	begin(&head.items_wake, 0);
	EXPECT(s.site == &hall.gets);
	EXPECT_EQ(spell_turn(&s, &err), XR_OK);
	EXPECT_EQ(calls.all + calls.one, 0);
	expect_last(NOTHING);
	spell_end(&s);
	EXPECT_EQ(calls.clock + calls.begin + calls.turn + calls.end, 0);
	begin(&head.space_wake, 0);
	EXPECT(s.site == &hall.puts);
	s.met.who = WHO;
	EXPECT_EQ(spell_turn(&s, &err), XR_OK);
	EXPECT_EQ(calls.all, 0);
	EXPECT_EQ(calls.one, 1);
	expect_last(NO_ROOM);
	begin(&head.memory_wake, 0);
	EXPECT(s.site == &hall.puts);
	s.met.who = WHO;
	s.met.is_memory = true;
	EXPECT_EQ(spell_turn(&s, &err), XR_OK);
	EXPECT_EQ(calls.all, 1);
	EXPECT_EQ(calls.one, 0);
	expect_last(NO_ROOM);
}

FORKED_TEST(queue_spell, who_is_told_to_go_waits_no_longer)
{
	begin(&head.items_wake, 0);
	EXPECT_EQ(spell_turn(&s, &err), XR_OK);
	atomic_store(&hall.is_quit, true);
	EXPECT_EQ(spell_turn(&s, &err), XR_E_CANCELLED);
	EXPECT_STR(err.text, "nobody waits for it");
	EXPECT_EQ(calls.abandoned, 1);
}

FORKED_TEST(queue_spell, it_begins_once_and_ends_if_it_has_begun)
{
	begin(&head.items_wake, 50);
	EXPECT_EQ(spell_turn(&s, &err), XR_OK);
	EXPECT_EQ(s.deadline, 1050);
	now = 9000;
	EXPECT_EQ(spell_turn(&s, &err), XR_OK);
	EXPECT_EQ(s.deadline, 1050);
	EXPECT_EQ(calls.env, 1);
	EXPECT_EQ(calls.begin, 1);
	EXPECT_EQ(calls.turn, 2);
	EXPECT_EQ(calls.clock, 1);
	EXPECT_EQ(calls.abandoned, 0);
	spell_end(&s);
	EXPECT_EQ(calls.end, 1);
	begin(&head.items_wake, 50);
	EXPECT_EQ(spell_turn(&s, &err), XR_OK);
	EXPECT_EQ(calls.env, 0);
	EXPECT_EQ(calls.begin, 1);
}

FORKED_TEST(queue_spell, a_time_that_is_too_long_is_none)
{
	begin(&head.items_wake, INT64_MAX - 1001);
	EXPECT_EQ(spell_turn(&s, &err), XR_OK);
	EXPECT_EQ(s.deadline, INT64_MAX - 1);
	begin(&head.items_wake, INT64_MAX);
	EXPECT_EQ(spell_turn(&s, &err), XR_OK);
	EXPECT_EQ(s.deadline, INT64_MAX);
}

FORKED_TEST(queue_spell, now_and_then_it_looks_at_the_clock)
{
	begin(&head.items_wake, 50);
	EXPECT_EQ(spell_turn(&s, &err), XR_OK);
	next_turn = WAIT_LOOK;
	now = 1049;
	EXPECT_EQ(spell_turn(&s, &err), XR_OK);
	EXPECT(!s.is_last && !s.armed);
	now = 1050;
	EXPECT_EQ(spell_turn(&s, &err), XR_OK);
	EXPECT_EQ(calls.arm + calls.sleep + calls.follow, 0);
	expect_last(NOTHING);
}

FORKED_TEST(queue_spell, it_arms_and_looks_before_it_sleeps)
{
	begin(&head.items_wake, 50);
	next_turn = WAIT_SLEEP;
	now = 1000;
	for (unsigned i = 1; i <= 2; i++) {
		EXPECT_EQ(spell_turn(&s, &err), XR_OK);
		EXPECT(s.armed && !s.is_last);
		EXPECT_EQ(calls.arm, i);
		EXPECT_EQ(calls.follow, i);
		EXPECT_EQ(calls.sleep, i - 1);
		now = 1049;
		EXPECT_EQ(spell_turn(&s, &err), XR_OK);
		EXPECT(!s.armed && !s.is_last);
		EXPECT_EQ(calls.sleep, i);
		EXPECT_EQ(calls.woken, i);
		EXPECT_EQ(calls.turn, i);
	}
	EXPECT_EQ(spell_turn(&s, &err), XR_OK);
	sleep_rc = ETIMEDOUT;
	EXPECT_EQ(spell_turn(&s, &err), XR_OK);
	EXPECT_EQ(calls.woken, 3);
	EXPECT(!s.armed);
	expect_last(NOTHING);
}

FORKED_TEST(queue_spell, it_does_not_sleep_when_its_time_is_over)
{
	begin(&head.space_wake, 50);
	EXPECT_EQ(spell_turn(&s, &err), XR_OK);
	next_turn = WAIT_SLEEP;
	now = 1050;
	EXPECT_EQ(spell_turn(&s, &err), XR_OK);
	EXPECT_EQ(calls.arm + calls.follow, 0);
	expect_last(NO_ROOM);
}

FORKED_TEST(queue_spell, who_could_not_hear_of_the_dead_does_not_wait)
{
	begin(&head.items_wake, INT64_MAX);
	next_turn = WAIT_SLEEP;
	follow_status = XR_E_NOMEM;
	EXPECT_EQ(spell_turn(&s, &err), XR_E_NOMEM);
	EXPECT_EQ(calls.sleep, 0);
}
