/* SPDX-License-Identifier: Apache-2.0 */
/* test_roster.c - ranks that come together in a segment, which are threads here; the test
 * plays the store. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <xrun/error.h>

#include "base/clock.h"
#include "base/status.h"
#include "segment/roster.h"
#include "worker/rpc/future.h"
#include "worker/rpc/local.h"
#include "worker/rpc/roster.h"
#include "worker/rpc/shelf.h"
#include "worker/store/reach.h"

#define RANKS 3
#define STORE ((struct xr_store *)&the_store)

static struct xr_error err;

/* --- the segment ----------------------------------------------------------------------- */

static _Alignas(SEGMENT_PAGE) char memory[2 * SEGMENT_PAGE +
	RANKS * SEGMENT_CARD];
static struct segment_map map = { .base = memory,
	.ranks = RANKS,
	.plan = { .roster = SEGMENT_PAGE } };
static bool has_map;
static _Thread_local uint32_t slot; /* of the rank that the thread plays */

void __wrap_local_open(void);
const struct segment_map *__wrap_local_job_map(uint32_t size, uint32_t *at);

void
__wrap_local_open(void)
{
}

const struct segment_map *
__wrap_local_job_map(uint32_t size, uint32_t *at)
{
	cr_expect_eq(size, RANKS);
	*at = slot;
	return has_map ? &map : NULL;
}

static struct segment_roster *
roster(void)
{
	return segment_roster(&map);
}

/* --- the store --------------------------------------------------------------------------- */

static int the_store;
static bool is_jobs;
static char way[16];   /* the value of "rpc/0/way"; "": it has none */
static unsigned swaps; /* that were asked for */
static enum xr_status store_status, kind_status;
static bool watched;       /* xr_store_get() was called */
static int64_t watch_time; /* its timeout */

bool __wrap_store_is_jobs(const struct xr_store *store);
enum xr_status __wrap_xr_store_compare_set(struct xr_store *store,
	const struct xr_store_swap *swap, struct xr_store_value *now,
	bool *there, struct xr_error *e);
enum xr_status __wrap_xr_store_get(struct xr_store *store, const char *key,
	int64_t timeout, struct xr_store_value *value, struct xr_error *e);
enum xr_status __wrap_join_kind(struct xr_store *store, bool is_static,
	struct xr_error *e);

bool
__wrap_store_is_jobs(const struct xr_store *store)
{
	cr_expect_eq(store, STORE);
	return is_jobs;
}

enum xr_status
__wrap_xr_store_compare_set(struct xr_store *store,
	const struct xr_store_swap *swap, struct xr_store_value *now,
	bool *there, struct xr_error *e)
{
	cr_expect_eq(store, STORE);
	cr_expect_eq(swap->size, sizeof(*swap));
	cr_expect_str_eq(swap->key, "rpc/0/way");
	cr_expect(swap->expected == NULL && swap->expected_len == 0);
	swaps++;
	if (store_status != XR_OK)
		return fail(e, store_status, "no store");
	if (way[0] == '\0') {
		memcpy(way, swap->desired, swap->desired_len);
		way[swap->desired_len] = '\0';
	}
	*there = true;
	*now = (struct xr_store_value){ .data = way, .len = strlen(way) };
	return XR_OK;
}

enum xr_status
__wrap_xr_store_get(struct xr_store *store, const char *key, int64_t timeout,
	struct xr_store_value *value, struct xr_error *e)
{
	cr_expect_eq(store, STORE);
	cr_expect_str_eq(key, "rpc/0/way");
	(void)e;
	watched = true;
	watch_time = timeout;
	if (way[0] == '\0')
		return XR_E_TIMEOUT;
	*value = (struct xr_store_value){ .data = way, .len = strlen(way) };
	return XR_OK;
}

enum xr_status
__wrap_join_kind(struct xr_store *store, bool is_static, struct xr_error *e)
{
	cr_expect_eq(store, STORE);
	cr_expect(is_static);
	return kind_status == XR_OK ? XR_OK :
				      fail(e, kind_status, "another kind");
}

/* --- the ranks ---------------------------------------------------------------------------- */

static void
begin(void)
{
	has_map = is_jobs = true;
}

TestSuite(roster, .timeout = 20, .init = begin);

static struct join
join_of(uint32_t rank)
{
	return (struct join){ .store = STORE,
		.rank = rank,
		.size = RANKS,
		.deadline = INT64_MAX };
}

/* A rank that is a thread, and what roster_meet() gave it. */
static struct member {
	struct join j;
	struct xr_value *info; /* taken */
	struct xr_value *infos;
	enum xr_status status, ready;
	struct xr_error err;
	pthread_t thread;
} member[RANKS];

static unsigned judged;
static enum xr_status verdict;

static enum xr_status
judge(const struct xr_value *infos, void *ctx, struct xr_error *e)
{
	const struct join *j = ctx;

	cr_expect_eq(j->size, RANKS);
	cr_expect_eq(xr_value_count(infos), RANKS);
	judged++;
	return verdict == XR_OK ? XR_OK : fail(e, verdict, "they do not fit");
}

static void
meet(struct member *m)
{
	slot = m->j.rank;
	m->status = roster_meet(&m->j, m->info, judge, &m->infos, &m->err);
	xr_value_unref(m->info);
	m->info = NULL;
}

static void *
meet_in_thread(void *arg)
{
	meet(arg);
	return NULL;
}

static void
prepare(void)
{
	for (uint32_t i = 0; i < RANKS; i++)
		member[i] = (struct member){ .j = join_of(i),
			.info = xr_value_new_i64(10 + i) };
}

/* start() - a rank that waits for the others, in a thread; its card is written. */
static void
start(uint32_t rank)
{
	uint32_t come = atomic_load(&roster()->come);

	cr_assert_eq(pthread_create(&member[rank].thread, NULL, meet_in_thread,
			     &member[rank]),
		0);
	while (atomic_load(&roster()->come) == come)
		sched_yield();
}

/* All ranks, of which the last one judges. */
static void
meet_all(void)
{
	start(1);
	start(0);
	meet(&member[2]);
	pthread_join(member[0].thread, NULL);
	pthread_join(member[1].thread, NULL);
}

static void
all_failed(enum xr_status status, const char *words)
{
	for (uint32_t i = 0; i < RANKS; i++) {
		cr_expect_eq(member[i].status, status, "rank %u", i);
		cr_expect_str_eq(member[i].err.text, words);
		cr_expect_null(member[i].infos);
	}
}

static void
all_together(void)
{
	int64_t n = 0;

	for (uint32_t i = 0; i < RANKS; i++) {
		cr_assert_eq(member[i].status, XR_OK, "rank %u: %s", i,
			member[i].err.text);
		cr_expect_eq(xr_value_count(member[i].infos), RANKS);
		for (uint32_t k = 0; k < RANKS; k++) {
			cr_expect_eq(xr_value_get_i64(
					     xr_value_at(member[i].infos, k),
					     &n),
				XR_OK);
			cr_expect_eq(n, 10 + k);
		}
		xr_value_unref(member[i].infos);
	}
}

Test(roster, ranks_of_the_job_that_have_its_memory_can_meet_there_once)
{
	struct join j = join_of(1);

	slot = 1;
	cr_expect(roster_can(&j));
	slot = 2; /* that of another rank */
	cr_expect_not(roster_can(&j));
	slot = 1;
	j.cycle = 1;
	cr_expect_not(roster_can(&j));
	j.cycle = 0;
	is_jobs = false;
	cr_expect_not(roster_can(&j));
	is_jobs = true;
	has_map = false;
	cr_expect_not(roster_can(&j));
}

Test(roster, the_secret_is_the_segments)
{
	struct segment_head *head = (void *)memory;
	struct join j = join_of(0);
	uint8_t out[JOIN_SECRET];

	for (size_t i = 0; i < sizeof(out); i++)
		head->secret[i] = (uint8_t)(i + 1);
	roster_secret(&j, out);
	cr_expect_eq(memcmp(out, head->secret, sizeof(out)), 0);
}

Test(roster, all_read_the_cards_of_all)
{
	prepare();
	meet_all();
	all_together();
	cr_expect_eq(judged, 1);
	cr_expect_eq(swaps, 1);
	cr_expect_str_eq(way, "segment");
	cr_expect(watched);
	cr_expect_eq(watch_time, XR_TIMEOUT_NEVER);
}

Test(roster, only_the_first_watches_the_store)
{
	prepare();
	start(1);
	while (!watched)
		sched_yield();
	watched = false;
	start(0);
	meet(&member[2]);
	pthread_join(member[0].thread, NULL);
	pthread_join(member[1].thread, NULL);
	cr_expect_not(watched);
	all_together();
}

Test(roster, what_the_judge_says_is_said_to_all)
{
	prepare();
	verdict = XR_E_CONFLICT;
	meet_all();
	all_failed(XR_E_CONFLICT, "they do not fit");
	cr_expect_eq(judged, 1);
}

Test(roster, a_group_of_another_kind_is_refused)
{
	prepare();
	kind_status = XR_E_CONFLICT;
	meet_all();
	all_failed(XR_E_CONFLICT, "another kind");
	cr_expect_eq(judged, 0);
}

Test(roster, without_a_store_there_is_no_group)
{
	prepare();
	store_status = XR_E_CLOSED;
	meet_all();
	all_failed(XR_E_CLOSED, "no store");
	cr_expect_eq(judged, 0);
}

/* A rank without the segment was faster there. */
Test(roster, all_go_by_the_store_if_one_does)
{
	prepare();
	snprintf(way, sizeof(way), "store");
	roster()->come = 1; /* nobody watches */
	start(1);
	meet(&member[2]);
	pthread_join(member[1].thread, NULL);
	cr_expect_eq(member[1].status, XR_E_STALE);
	cr_expect_eq(member[2].status, XR_E_STALE);
	cr_expect_eq(judged, 0);
	cr_expect_str_eq(way, "store");
}

Test(roster, the_first_hears_that_one_goes_by_the_store)
{
	prepare();
	snprintf(way, sizeof(way), "store");
	meet(&member[0]);
	cr_expect_eq(member[0].status, XR_E_STALE);
	meet(&member[1]);
	cr_expect_eq(member[1].status, XR_E_STALE);
	meet(&member[2]);
	cr_expect_eq(member[2].status, XR_E_STALE);
	cr_expect_eq(judged, 0);
	cr_expect_eq(swaps, 0);
}

/* What stands there is of another way. */
Test(roster, the_first_is_not_misled_by_another_word)
{
	prepare();
	snprintf(way, sizeof(way), "segment");
	meet_all();
	all_together();
}

Test(roster, a_card_that_does_not_fit_sends_all_to_the_store)
{
	const size_t room = sizeof(((struct segment_card *)0)->data);
	char text[2 * SEGMENT_CARD];
	struct xr_value *v;
	size_t len = room;

	memset(text, 'x', sizeof(text));
	prepare();
	/* The longest that fits. */
	do {
		len--;
		v = xr_value_new_text(text, len);
	} while (shelf_pack_into(v, text, room) == 0 &&
		(xr_value_unref(v), memset(text, 'x', sizeof(text))));
	cr_assert_lt(len, room);
	memset(text, 'x', sizeof(text));
	xr_value_unref(member[2].info);
	member[2].info = v;
	meet_all();
	for (uint32_t i = 0; i < RANKS; i++) {
		cr_assert_eq(member[i].status, XR_OK);
		cr_expect_eq(atomic_load(&segment_card(&map, 2)->len), room);
		xr_value_unref(member[i].infos);
	}
	memset(memory, 0, sizeof(memory));
	prepare();
	xr_value_unref(member[2].info);
	member[2].info = xr_value_new_text(text, len + 1);
	start(1);
	meet(&member[2]);
	pthread_join(member[1].thread, NULL);
	cr_expect_eq(member[1].status, XR_E_STALE);
	cr_expect_eq(member[2].status, XR_E_STALE);
	cr_expect_eq(atomic_load(&roster()->come), 1);
}

/* --- ranks that cannot come --------------------------------------------------------------- */

#define BROKEN "rank 1 could not join: XR_E_SYS: it is broken"

static void
break_one(void)
{
	xr_value_unref(member[1].info);
	member[1].info = failure_new(XR_E_SYS, "it is broken");
}

Test(roster, a_rank_that_cannot_be_a_member_ends_the_group)
{
	prepare();
	break_one();
	start(0);
	meet(&member[1]);
	pthread_join(member[0].thread, NULL);
	meet(&member[2]);
	all_failed(XR_E_PEER_LOST, BROKEN);
	cr_expect_eq(judged, 0);
	cr_expect_str_eq(way, "segment");
	/* It has no card. */
	cr_expect_eq(atomic_load(&roster()->come), 2);
}

/* Whatever the store says of it. */
Test(roster, a_rank_that_cannot_be_a_member_ends_it_without_a_store)
{
	prepare();
	break_one();
	store_status = XR_E_CLOSED;
	meet(&member[1]);
	meet(&member[0]);
	cr_expect_neq(member[0].status, XR_OK);
	cr_expect_eq(member[0].status, member[1].status);
}

Test(roster, a_rank_that_cannot_be_a_member_says_so_by_the_store)
{
	prepare();
	break_one();
	snprintf(way, sizeof(way), "store");
	meet(&member[1]);
	cr_expect_eq(member[1].status, XR_E_STALE);
	meet(&member[0]);
	cr_expect_eq(member[0].status, XR_E_STALE);
}

Test(roster, only_the_first_failure_counts)
{
	prepare();
	verdict = XR_E_CONFLICT;
	meet_all();
	all_failed(XR_E_CONFLICT, "they do not fit");
	member[1].info = failure_new(XR_E_SYS, "it is broken");
	meet(&member[1]);
	cr_expect_eq(member[1].status, XR_E_CONFLICT);
	cr_expect_eq(swaps, 1);
}

Test(roster, ranks_that_do_not_come_in_time_are_named)
{
	prepare();
	member[1].j.deadline = clock_now();
	meet(&member[1]);
	cr_expect_eq(member[1].status, XR_E_TIMEOUT);
	cr_expect_str_eq(member[1].err.text,
		"these ranks of 3 did not come in time: 0, 2");
	cr_expect(watched);
	cr_expect_leq(watch_time, 0);
	meet(&member[0]);
	meet(&member[2]);
	all_failed(XR_E_TIMEOUT, "these ranks of 3 did not come in time: 0, 2");
	cr_expect_eq(judged, 0);
}

/* The one who judges has died. */
Test(roster, a_verdict_is_awaited_for_a_second)
{
	int64_t begun = clock_now();

	prepare();
	atomic_store(&roster()->state, 1);
	member[1].j.deadline = begun - XR_SECONDS(1) + 10 * NS_PER_MS;
	meet(&member[1]);
	cr_expect_eq(member[1].status, XR_E_TIMEOUT);
	cr_expect_str_eq(member[1].err.text,
		"whoever came last has not said in time what came of it");
	cr_expect_geq(clock_now() - begun, 10 * NS_PER_MS);
}

/* --- what others write ---------------------------------------------------------------------- */

static void
spoil(uint32_t state, uint32_t len)
{
	atomic_store(&roster()->state, state);
	atomic_store(&roster()->len, len);
}

/* fails_so() - of a rank that finds the verdict there. */
static void
fails_so(enum xr_status status, const char *words)
{
	prepare();
	meet(&member[1]);
	cr_expect_eq(member[1].status, status);
	if (words != NULL)
		cr_expect_str_eq(member[1].err.text, words);
	cr_expect_null(member[1].infos);
}

Test(roster, a_verdict_is_an_error)
{
	struct xr_value *v = failure_new(XR_E_STALE, "stale");
	struct segment_roster *r = roster();

	spoil(3, (uint32_t)shelf_pack_into(v, r->verdict, sizeof(r->verdict)));
	fails_so(XR_E_PROTO, "a verdict without an error");
	xr_value_unref(v);
	v = failure_new(XR_E_RANGE, "a range");
	spoil(3, (uint32_t)shelf_pack_into(v, r->verdict, sizeof(r->verdict)));
	fails_so(XR_E_RANGE, "a range");
	xr_value_unref(v);
	spoil(3, 0);
	fails_so(XR_E_DECODE, NULL);
	spoil(3, SEGMENT_VERDICT + 1);
	fails_so(XR_E_DECODE, NULL);
	spoil(3, UINT32_MAX);
	fails_so(XR_E_DECODE, NULL);
}

Test(roster, a_card_that_is_none_is_refused)
{
	struct segment_card *card = segment_card(&map, 0);

	spoil(2, 0);
	atomic_store(&card->len, (uint32_t)sizeof(card->data) + 1);
	fails_so(XR_E_PROTO, "that is no card");
	atomic_store(&card->len, UINT32_MAX);
	fails_so(XR_E_PROTO, "that is no card");
	atomic_store(&card->len, (uint32_t)sizeof(card->data));
	fails_so(XR_E_DECODE, NULL);
	atomic_store(&card->len, 0);
	fails_so(XR_E_DECODE, NULL);
}

/* An error that only the reader finds. */
Test(roster, a_card_of_who_cannot_join_is_an_error)
{
	struct xr_value *v = failure_new(XR_E_SYS, "it is broken");
	struct segment_card *card = segment_card(&map, 0);

	spoil(2, 0);
	atomic_store(&card->len,
		(uint32_t)shelf_pack_into(v, card->data, sizeof(card->data)));
	fails_so(XR_E_PEER_LOST,
		"rank 0 could not join: XR_E_SYS: it is broken");
	xr_value_unref(v);
}

/* --- by the store ---------------------------------------------------------------------------- */

#define DONE \
	"the ranks of this job have come together without this process, which is not the one of rank 1 that has its shared memory"

Test(roster, who_goes_by_the_store_says_so_first)
{
	struct join j = join_of(1);

	cr_expect_eq(roster_decline(&j, &err), XR_OK);
	cr_expect_str_eq(way, "store");
	cr_expect_eq(roster_decline(&j, &err), XR_OK);
	snprintf(way, sizeof(way), "segment");
	cr_expect_eq(roster_decline(&j, &err), XR_E_EXISTS);
	cr_expect_str_eq(err.text, DONE);
	store_status = XR_E_CLOSED;
	cr_expect_eq(roster_decline(&j, &err), XR_E_CLOSED);
	cr_expect_str_eq(err.text, "no store");
	cr_expect_eq(swaps, 4);
	/* Later, and in another store, nobody is in the segment. */
	j.cycle = 1;
	cr_expect_eq(roster_decline(&j, &err), XR_OK);
	j.cycle = 0;
	is_jobs = false;
	cr_expect_eq(roster_decline(&j, &err), XR_OK);
	cr_expect_eq(swaps, 4);
}

/* --- all are ready ------------------------------------------------------------------------------ */

static void *
be_ready(void *arg)
{
	struct member *m = arg;

	slot = m->j.rank;
	m->ready = roster_ready(&m->j, &m->err);
	return NULL;
}

Test(roster, all_wait_until_all_are_ready)
{
	prepare();
	for (uint32_t i = 0; i < 2; i++) {
		cr_assert_eq(pthread_create(&member[i].thread, NULL, be_ready,
				     &member[i]),
			0);
		while (atomic_load(&roster()->ready) == i)
			sched_yield();
		cr_expect_eq(atomic_load(&roster()->go), 0);
	}
	be_ready(&member[2]);
	cr_expect_eq(atomic_load(&roster()->go), 1);
	for (uint32_t i = 0; i < 2; i++)
		pthread_join(member[i].thread, NULL);
	for (uint32_t i = 0; i < RANKS; i++) {
		cr_expect_eq(member[i].ready, XR_OK);
		xr_value_unref(member[i].info);
	}
}

Test(roster, ranks_that_are_not_ready_in_time_are_counted)
{
	prepare();
	member[0].j.deadline = clock_now();
	be_ready(&member[0]);
	cr_expect_eq(member[0].ready, XR_E_TIMEOUT);
	cr_expect_str_eq(member[0].err.text, "2 of 3 were not ready in time");
	cr_expect_eq(atomic_load(&roster()->go), 0);
	for (uint32_t i = 0; i < RANKS; i++)
		xr_value_unref(member[i].info);
}
