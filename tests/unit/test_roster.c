/* SPDX-License-Identifier: Apache-2.0 */
/* test_roster.c - ranks that come together in the job's segment: cards, verdicts, and who
 * can only be met in the store. The test plays the segment, and who sleeps on its words. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/status.h"
#include "segment/roster.h"
#include "tests/unit/file_store.h"
#include "worker/rpc/future.h"
#include "worker/rpc/join.h"
#include "worker/rpc/local.h"
#include "worker/rpc/member.h"
#include "worker/rpc/roster.h"
#include "worker/rpc/shelf.h"

#define WAY      "rpc/0/way"
#define DEADLINE (5 * NS_PER_S)

/* As in roster.c. */
enum {
	COMING,
	JUDGED,
	TOGETHER,
	REFUSED,
	ELSEWHERE,
};

static struct xr_error err;
static struct xr_store *store;

/* --- what is called instead ------------------------------------------------------- */

void __wrap_local_open(void);
const struct segment_map *__wrap_local_job_map(uint32_t size, uint32_t *slot);
bool __wrap_store_is_jobs(const struct xr_store *s);
int64_t __wrap_clock_now(void);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
enum xr_status __real_xr_store_get(struct xr_store *s, const char *key,
	int64_t timeout, struct xr_store_value *value, struct xr_error *e);
enum xr_status __wrap_xr_store_get(struct xr_store *s, const char *key,
	int64_t timeout, struct xr_store_value *value, struct xr_error *e);

static struct segment_map map;
static uint32_t slot;
static bool has_map = true, is_jobs = true;
static unsigned opens;

void
__wrap_local_open(void)
{
	opens++;
}

const struct segment_map *
__wrap_local_job_map(uint32_t size, uint32_t *out)
{
	cr_expect_eq(size, 2);
	*out = slot;
	return has_map ? &map : NULL;
}

bool
__wrap_store_is_jobs(const struct xr_store *s)
{
	cr_expect_eq(s, store);
	return is_jobs;
}

int64_t
__wrap_clock_now(void)
{
	return 0;
}

static unsigned sleeps, wakes;
static const void *slept_on, *woken;
static int64_t until[8];
static void (*on_sleep)(void); /* NULL: the time is over */

long
__wrap_syscall(long number, ...)
{
	const struct timespec *t;
	long arg[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	if (number != SYS_futex)
		return __real_syscall(number, arg[0], arg[1], arg[2], arg[3],
			arg[4], arg[5]);
	if (arg[1] == FUTEX_WAKE) {
		woken = (const void *)arg[0];
		wakes++;
		return 1;
	}
	cr_expect_eq(arg[1], FUTEX_WAIT_BITSET);
	cr_assert_lt(sleeps, 8);
	t = (const struct timespec *)arg[3];
	slept_on = (const void *)arg[0];
	until[sleeps++] =
		t == NULL ? INT64_MAX : t->tv_sec * NS_PER_S + t->tv_nsec;
	errno = on_sleep != NULL ? EINTR : ETIMEDOUT;
	if (on_sleep != NULL)
		on_sleep();
	return -1;
}

static int64_t asked; /* how long a key of the way may take */

enum xr_status
__wrap_xr_store_get(struct xr_store *s, const char *key, int64_t timeout,
	struct xr_store_value *value, struct xr_error *e)
{
	enum xr_status status = __real_xr_store_get(s, key, 0, value, e);

	if (strcmp(key, WAY) == 0 && timeout != 0)
		asked = timeout;
	return status;
}

/* --- a segment ----------------------------------------------------------------------- */

static struct segment_roster *r;

static void
begin(void)
{
	store = file_store_open();
	map.plan.roster = 2 * SEGMENT_PAGE;
	map.base = aligned_alloc(SEGMENT_PAGE, 5 * SEGMENT_PAGE);
	cr_assert_not_null(map.base);
	memset(map.base, 0, 5 * SEGMENT_PAGE);
	r = segment_roster(&map);
}

static void
end(void)
{
	free(map.base);
	file_store_close(store);
}

TestSuite(roster, .timeout = 60, .init = begin, .fini = end);

/* Rank @rank of two. */
static struct join
of(uint32_t rank)
{
	slot = rank;
	return (struct join){ .store = store,
		.rank = rank,
		.size = 2,
		.deadline = DEADLINE };
}

static struct xr_value *
info_of(const char *name, uint32_t id)
{
	const struct xr_rpc_opts opts = { .size = sizeof(opts) };
	const struct member m = { .name = name, .addresses = "", .id = id };

	return member_new(&m, &opts);
}

/* Rank @id has come before. */
static void
has_come(const char *name, uint32_t id)
{
	struct segment_card *card = segment_card(&map, id);
	struct xr_value *info = info_of(name, id);

	card->len =
		(uint32_t)shelf_pack_into(info, card->data, sizeof(card->data));
	cr_assert_gt(card->len, 0);
	r->come++;
	xr_value_unref(info);
}

static const char *
said(const char *key)
{
	static char text[64];
	struct xr_store_value v = { 0 };

	snprintf(text, sizeof(text), "-");
	if (__real_xr_store_get(store, key, 0, &v, NULL) == XR_OK)
		snprintf(text, sizeof(text), "%.*s", (int)v.len,
			(const char *)v.data);
	xr_store_value_free(&v);
	return text;
}

static void
say(const char *way)
{
	cr_assert_eq(xr_store_set(store, WAY, way, strlen(way), &err), XR_OK);
}

static unsigned judged;
static enum xr_status opinion;
static const struct join *judged_for;

static enum xr_status
judge(const struct xr_value *infos, void *ctx, struct xr_error *e)
{
	judged++;
	cr_expect_eq(ctx, judged_for);
	cr_expect_eq(xr_value_count(infos), 2);
	return opinion == XR_OK ? XR_OK : fail(e, opinion, "they do not fit");
}

static struct xr_value *infos;

static enum xr_status
meet(const struct join *j, struct xr_value *info)
{
	enum xr_status status;

	judged_for = j;
	err = (struct xr_error){ 0 };
	infos = NULL;
	status = roster_meet(j, info, judge, &infos, &err);
	xr_value_unref(info);
	return status;
}

static const char *
name_in(size_t i)
{
	static char name[XR_WORKER_NAME_MAX + 1];
	struct member m;

	cr_assert(member_read(xr_value_at(infos, i), &m));
	snprintf(name, sizeof(name), "%s", m.name);
	return name;
}

/* --- whose way it is ------------------------------------------------------------------ */

Test(roster, it_is_a_way_for_ranks_that_have_the_segment)
{
	struct join j = of(1);
	uint8_t secret[JOIN_SECRET];
	struct segment_head *head = (void *)map.base;

	cr_expect(roster_can(&j));
	cr_expect_eq(opens, 1);
	slot = 0;
	cr_expect_not(roster_can(&j));
	slot = 1;
	has_map = false;
	cr_expect_not(roster_can(&j));
	has_map = true;
	is_jobs = false;
	cr_expect_not(roster_can(&j));
	is_jobs = true;
	j.cycle = 1;
	cr_expect_not(roster_can(&j));
	j.cycle = 0;
	for (unsigned i = 0; i < JOIN_SECRET; i++)
		head->secret[i] = (uint8_t)(i * 3);
	roster_secret(&j, secret);
	cr_expect_eq(memcmp(secret, head->secret, JOIN_SECRET), 0);
}

Test(roster, who_goes_by_the_store_says_so_first)
{
	struct join j = of(1);

	j.cycle = 1;
	cr_expect_eq(roster_decline(&j, &err), XR_OK);
	j.cycle = 0;
	is_jobs = false;
	cr_expect_eq(roster_decline(&j, &err), XR_OK);
	cr_expect_str_eq(said(WAY), "-");
	is_jobs = true;
	cr_expect_eq(roster_decline(&j, &err), XR_OK);
	cr_expect_str_eq(said(WAY), "store");
	cr_expect_eq(roster_decline(&j, &err), XR_OK);
	say("segment");
	cr_expect_eq(roster_decline(&j, &err), XR_E_EXISTS);
	cr_expect_str_eq(err.text,
		"the ranks of this job have come together without this process, which is not the one of rank 1 that has its shared memory");
	cr_expect_str_eq(said(WAY), "segment");
	xr_store_close(store);
	cr_expect_eq(roster_decline(&j, &err), XR_E_CLOSED);
}

/* --- meeting ------------------------------------------------------------------------------ */

Test(roster, the_last_one_judges_for_all)
{
	struct join j = of(1);

	has_come("ann", 0);
	cr_expect_eq(meet(&j, info_of("bob", 1)), XR_OK);
	cr_expect_eq(judged, 1);
	cr_expect_eq(r->come, 2);
	cr_expect_eq(r->state, TOGETHER);
	cr_expect_eq(wakes, 1);
	cr_expect_eq(woken, &r->state);
	cr_expect_eq(sleeps, 0);
	cr_expect_str_eq(said(WAY), "segment");
	cr_expect_str_eq(said("rpc/kind"), "static");
	cr_expect_eq(xr_value_count(infos), 2);
	cr_expect_str_eq(name_in(0), "ann");
	cr_expect_str_eq(name_in(1), "bob");
	xr_value_unref(infos);
}

static void
bob_judges(void)
{
	has_come("bob", 1);
	cr_expect_eq(slept_on, &r->state);
	r->state = TOGETHER;
}

Test(roster, the_first_one_watches_the_store_and_waits)
{
	struct join j = of(0);

	on_sleep = bob_judges;
	cr_expect_eq(meet(&j, info_of("ann", 0)), XR_OK);
	cr_expect_eq(judged, 0);
	cr_expect_eq(asked, DEADLINE);
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(until[0], DEADLINE);
	cr_expect_eq(xr_value_count(infos), 2);
	cr_expect_str_eq(said(WAY), "-");
	xr_value_unref(infos);
}

Test(roster, somebody_who_can_only_be_met_in_the_store_sends_all_there)
{
	struct join first = of(0), last = of(1);

	say("store");
	slot = 0;
	cr_expect_eq(meet(&first, info_of("ann", 0)), XR_E_STALE);
	cr_expect_eq(r->state, ELSEWHERE);
	cr_expect_eq(wakes, 1);
	/* The last one finds it, too. */
	r->state = COMING;
	slot = 1;
	cr_expect_eq(meet(&last, info_of("bob", 1)), XR_E_STALE);
	cr_expect_eq(r->state, ELSEWHERE);
	cr_expect_eq(judged, 0);
	cr_expect_null(infos);
	/* What was said by then counts. */
	r->state = COMING;
	r->come = 0;
	say("segment");
	slot = 0;
	on_sleep = bob_judges;
	cr_expect_eq(meet(&first, info_of("ann", 0)), XR_OK);
	xr_value_unref(infos);
}

Test(roster, a_card_that_does_not_fit_sends_all_to_the_store)
{
	struct xr_value *long_one = xr_value_new_list();
	struct join j = of(1);
	static char bytes[SEGMENT_CARD];

	xr_value_append(long_one, xr_value_new_bytes(bytes, sizeof(bytes)));
	cr_expect_eq(meet(&j, xr_value_ref(long_one)), XR_E_STALE);
	cr_expect_eq(r->state, ELSEWHERE);
	cr_expect_eq(r->come, 0);
	cr_expect_eq(segment_card(&map, 1)->len, 0);
	cr_expect_eq(wakes, 1);
	/* Unless somebody judges already. */
	r->state = JUDGED;
	cr_expect_eq(meet(&j, long_one), XR_E_STALE);
	cr_expect_eq(r->state, JUDGED);
}

/* --- verdicts --------------------------------------------------------------------------------- */

Test(roster, what_does_not_fit_together_is_refused_for_all)
{
	struct join last = of(1), other = of(0);

	has_come("ann", 0);
	opinion = XR_E_CONFLICT;
	slot = 1;
	cr_expect_eq(meet(&last, info_of("bob", 1)), XR_E_CONFLICT);
	cr_expect_str_eq(err.text, "they do not fit");
	cr_expect_eq(r->state, REFUSED);
	cr_expect_eq(wakes, 1);
	/* Another reads the same. */
	slot = 0;
	r->come = 1;
	cr_expect_eq(meet(&other, info_of("ann", 0)), XR_E_CONFLICT);
	cr_expect_str_eq(err.text, "they do not fit");
	cr_expect_eq(judged, 1);
}

Test(roster, a_group_of_another_kind_is_refused)
{
	struct join j = of(1);

	cr_assert_eq(join_kind(store, false, &err), XR_OK);
	has_come("ann", 0);
	cr_expect_eq(meet(&j, info_of("bob", 1)), XR_E_CONFLICT);
	cr_expect_eq(judged, 0);
	cr_expect_not_null(strstr(err.text, "this member's is static"));
}

Test(roster, a_rank_that_cannot_be_a_member_fails_all)
{
	struct join j = of(1);
	struct xr_value *why = failure_new(XR_E_NODEV, "no carrier works");
	struct xr_error want = { 0 };

	cr_expect_eq(join_check(1, why, &want), XR_E_PEER_LOST);
	cr_expect_eq(meet(&j, xr_value_ref(why)), XR_E_PEER_LOST);
	cr_expect_str_eq(err.text, want.text);
	cr_expect_eq(r->state, REFUSED);
	cr_expect_eq(r->come, 0);
	cr_expect_str_eq(said(WAY), "segment");
	/* In the store it is told there. */
	say("store");
	r->state = COMING;
	cr_expect_eq(meet(&j, xr_value_ref(why)), XR_E_STALE);
	cr_expect_eq(r->state, ELSEWHERE);
	xr_value_unref(why);
}

Test(roster, who_does_not_come_in_time_is_named)
{
	struct join j = of(0), never = of(0);

	cr_expect_eq(meet(&j, info_of("ann", 0)), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "these ranks of 2 did not come in time: 1");
	cr_expect_eq(r->state, REFUSED);
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(until[0], DEADLINE);
	/* Somebody judges, and does not say what. */
	r->state = JUDGED;
	sleeps = 0;
	cr_expect_eq(meet(&j, info_of("ann", 0)), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text,
		"whoever came last has not said in time what came of it");
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(until[0], DEADLINE + NS_PER_S);
	never.deadline = INT64_MAX;
	sleeps = 0;
	cr_expect_eq(meet(&never, info_of("ann", 0)), XR_E_TIMEOUT);
	cr_expect_eq(until[0], INT64_MAX);
}

/* Others may write anything to the segment. */
Test(roster, what_is_no_card_or_verdict_is_refused)
{
	struct segment_card *card = segment_card(&map, 0);
	struct xr_value *stale = failure_new(XR_E_STALE, "not ours");
	struct join j = of(1);

	has_come("ann", 0);
	card->len = sizeof(card->data) + 1;
	cr_expect_eq(meet(&j, info_of("bob", 1)), XR_E_PROTO);
	cr_expect_str_eq(err.text, "that is no card");
	cr_expect_null(infos);
	/* One that says why it cannot be. */
	r->state = COMING;
	r->come = 1;
	card->len = (uint32_t)shelf_pack_into(stale, card->data,
		sizeof(card->data));
	cr_expect_eq(meet(&j, info_of("bob", 1)), XR_E_PEER_LOST);
	cr_expect_str_eq(err.text,
		"rank 0 could not join: XR_E_STALE: not ours");
	cr_expect_eq(r->state, REFUSED);
	cr_expect_eq(judged, 0);
	r->len = (uint32_t)shelf_pack_into(stale, r->verdict, SEGMENT_VERDICT);
	cr_expect_eq(meet(&j, info_of("bob", 1)), XR_E_PROTO);
	cr_expect_str_eq(err.text, "a verdict without an error");
	r->len = SEGMENT_VERDICT + 1;
	cr_expect_neq(meet(&j, info_of("bob", 1)), XR_OK);
	cr_expect_null(infos);
	xr_value_unref(stale);
}

/* --- readiness ------------------------------------------------------------------------------- */

static void
bob_is_ready(void)
{
	cr_expect_eq(slept_on, &r->go);
	r->ready++;
	r->go = 1;
}

Test(roster, the_last_one_that_is_ready_lets_all_go)
{
	struct join j = of(0);

	on_sleep = bob_is_ready;
	cr_expect_eq(roster_ready(&j, &err), XR_OK);
	cr_expect_eq(sleeps, 1);
	cr_expect_eq(until[0], DEADLINE);
	cr_expect_eq(wakes, 0);
	r->ready = 1;
	r->go = 0;
	cr_expect_eq(roster_ready(&j, &err), XR_OK);
	cr_expect_eq(r->go, 1);
	cr_expect_eq(wakes, 1);
	cr_expect_eq(woken, &r->go);
	cr_expect_eq(sleeps, 1);
	r->ready = 0;
	r->go = 0;
	on_sleep = NULL;
	cr_expect_eq(roster_ready(&j, &err), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "1 of 2 were not ready in time");
}
