/* SPDX-License-Identifier: Apache-2.0 */
/* roster.c - see roster.h. */
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/futex.h>
#include <sys/syscall.h>

#include <xrun/job.h>

#include "base/clock.h"
#include "base/status.h"
#include "segment/roster.h"
#include "worker/rpc/future.h"
#include "worker/rpc/local.h"
#include "worker/rpc/roster.h"
#include "worker/rpc/shelf.h"
#include "worker/store/reach.h"

#define WAY_KEY     "rpc/0/way"
#define BY_SEGMENT  "segment"
#define BY_STORE    "store"
#define PATIENCE_NS NS_PER_S /* with one who judges, when the time is over */

enum state {
	COMING,
	JUDGED,   /* one of them has all cards, or gives up for all */
	TOGETHER, /* go on */
	REFUSED,  /* the verdict says why */
	ELSEWHERE,
};

static const struct segment_map *
map_of(const struct join *j)
{
	uint32_t slot;
	const struct segment_map *map = local_job_map(j->size, &slot);

	return map != NULL && slot == j->rank ? map : NULL;
}

bool
roster_can(const struct join *j)
{
	local_open();
	return j->cycle == 0 && store_is_jobs(j->store) && map_of(j) != NULL;
}

void
roster_secret(const struct join *j, uint8_t out[JOIN_SECRET])
{
	const struct segment_head *head = (const void *)map_of(j)->base;

	_Static_assert(JOIN_SECRET == SEGMENT_SECRET, "the same");
	memcpy(out, head->secret, JOIN_SECRET);
}

/* --- words ---------------------------------------------------------------- */

static void
wake_all(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* False: @deadline is over. */
static bool
await_change(_Atomic uint32_t *word, uint32_t from, int64_t deadline)
{
	const struct timespec t = { deadline / NS_PER_S, deadline % NS_PER_S };

	while (atomic_load(word) == from) {
		if (syscall(SYS_futex, word, FUTEX_WAIT_BITSET, from,
			    deadline == INT64_MAX ? NULL : &t, NULL,
			    FUTEX_BITSET_MATCH_ANY) == -1 &&
			errno == ETIMEDOUT)
			return atomic_load(word) != from;
	}
	return true;
}

static void
set_state(struct segment_roster *r, enum state state)
{
	atomic_store(&r->state, state);
	wake_all(&r->state);
}

static bool
begin_judging(struct segment_roster *r)
{
	uint32_t was = COMING;

	return atomic_compare_exchange_strong(&r->state, &was, JUDGED);
}

/* --- cards ---------------------------------------------------------------- */

/* False: it does not fit. */
static bool
write_card(struct segment_card *card, struct xr_value *info)
{
	size_t len = shelf_pack_into(info, card->data, sizeof(card->data));

	if (len > 0)
		atomic_store(&card->len, (uint32_t)len);
	return len > 0;
}

static enum xr_status
read_card(struct segment_card *card, struct xr_value **info,
	struct xr_error *err)
{
	uint8_t copy[sizeof(card->data)];
	uint32_t len = atomic_load(&card->len);

	if (len > sizeof(copy))
		return fail(err, XR_E_PROTO, "that is no card");
	memcpy(copy, card->data, len);
	return shelf_unpack(copy, len, info, err);
}

static enum xr_status
read_all(const struct join *j, struct xr_value **infos, struct xr_error *err)
{
	const struct segment_map *map = map_of(j);
	struct xr_value *list = xr_value_new_list(), *info;
	enum xr_status status =
		list != NULL ? XR_OK : fail(err, XR_E_NOMEM, "out of memory");

	for (uint32_t i = 0; i < j->size && status == XR_OK; i++) {
		info = NULL;
		status = read_card(segment_card(map, i), &info, err);
		if (status == XR_OK)
			status = join_check(i, info, err);
		if (status == XR_OK)
			status = xr_value_append(list, info);
		else
			xr_value_unref(info);
	}
	if (status == XR_OK)
		*infos = list;
	else
		xr_value_unref(list);
	return status;
}

/* --- verdicts ------------------------------------------------------------- */

static void
refuse(struct segment_roster *r, enum xr_status status, const char *why)
{
	struct xr_value *error = failure_new(status, "%s", why);
	size_t len = error == NULL ?
		0 :
		shelf_pack_into(error, r->verdict, sizeof(r->verdict));

	xr_value_unref(error);
	atomic_store(&r->len, (uint32_t)len);
	set_state(r, REFUSED);
}

static enum xr_status
verdict(struct segment_roster *r, struct xr_error *err)
{
	uint8_t copy[SEGMENT_VERDICT];
	uint32_t len = atomic_load(&r->len);
	struct xr_value *error = NULL;
	enum xr_status status;

	if (len > sizeof(copy))
		len = 0;
	memcpy(copy, r->verdict, len);
	status = shelf_unpack(copy, len, &error, err);
	if (status == XR_OK)
		status = failure_status(error, err);
	xr_value_unref(error);
	if (status == XR_OK || status == XR_E_STALE)
		return fail(err, XR_E_PROTO, "a verdict without an error");
	return status;
}

/* Of what is said in the store of the way the first word counts. */
static enum xr_status
say_way(const struct join *j, const char *way, bool *ours, struct xr_error *err)
{
	struct xr_store_swap swap = {
		.size = sizeof(swap),
		.key = WAY_KEY,
		.desired = way,
		.desired_len = strlen(way),
	};
	struct xr_store_value now = { 0 };
	bool there = false;
	enum xr_status status =
		xr_store_compare_set(j->store, &swap, &now, &there, err);

	*ours = status == XR_OK &&
		(!there || strcmp((const char *)now.data, way) == 0);
	xr_store_value_free(&now);
	return status;
}

enum xr_status
roster_decline(const struct join *j, struct xr_error *err)
{
	bool ours = true;
	enum xr_status status = XR_OK;

	if (j->cycle == 0 && store_is_jobs(j->store))
		status = say_way(j, BY_STORE, &ours, err);
	if (status == XR_OK && !ours)
		status = fail(err, XR_E_EXISTS,
			"the ranks of this job have come together without this process, which is not the one of rank %u that has its shared memory",
			j->rank);
	return status;
}

/* All cards are there. */
static void
judge_all(const struct join *j, join_judge_fn *judge)
{
	struct segment_roster *r = segment_roster(map_of(j));
	struct xr_error why = { 0 };
	struct xr_value *infos = NULL;
	enum xr_status status;
	bool ours = true;

	if (!begin_judging(r))
		return;
	status = say_way(j, BY_SEGMENT, &ours, &why);
	if (status == XR_OK && !ours) {
		set_state(r, ELSEWHERE);
		return;
	}
	if (status == XR_OK)
		status = join_kind(j->store, true, &why);
	if (status == XR_OK)
		status = read_all(j, &infos, &why);
	if (status == XR_OK)
		status = judge(infos, (void *)j, &why);
	xr_value_unref(infos);
	if (status == XR_OK)
		set_state(r, TOGETHER);
	else
		refuse(r, status, why.text);
}

/* This rank cannot be a member: so nobody can. */
static void
tell_failure(const struct join *j, const struct xr_value *info)
{
	struct segment_roster *r = segment_roster(map_of(j));
	struct xr_error why = { 0 };
	bool ours = true;

	if (!begin_judging(r))
		return;
	say_way(j, BY_SEGMENT, &ours, NULL);
	if (ours)
		refuse(r, join_check(j->rank, info, &why), why.text);
	else
		set_state(r, ELSEWHERE);
}

/* --- waiting -------------------------------------------------------------- */

/* Whoever comes first looks for those who cannot come here. */
static void
watch_store(const struct join *j)
{
	struct segment_roster *r = segment_roster(map_of(j));
	struct xr_store_value way = { 0 };
	enum xr_status status = xr_store_get(j->store, WAY_KEY,
		future_left(j->deadline), &way, NULL);

	if (status == XR_OK && strcmp(way.data, BY_STORE) == 0 &&
		begin_judging(r))
		set_state(r, ELSEWHERE);
	xr_store_value_free(&way);
}

static bool
has_card(const struct join *j, uint32_t rank)
{
	return atomic_load(&segment_card(map_of(j), rank)->len) != 0;
}

/* Our time is over: so is that of all, or one of them judges at this moment. */
static void
give_up(const struct join *j)
{
	struct segment_roster *r = segment_roster(map_of(j));
	char why[200];

	if (!begin_judging(r))
		return;
	join_late_text(j, 0, has_card, why, sizeof(why));
	refuse(r, XR_E_TIMEOUT, why);
}

static enum xr_status
await_verdict(const struct join *j, struct xr_value **infos,
	struct xr_error *err)
{
	struct segment_roster *r = segment_roster(map_of(j));

	if (!await_change(&r->state, COMING, j->deadline))
		give_up(j);
	await_change(&r->state, JUDGED,
		j->deadline == INT64_MAX ? INT64_MAX :
					   j->deadline + PATIENCE_NS);
	switch (atomic_load(&r->state)) {
	case TOGETHER:
		return read_all(j, infos, err);
	case REFUSED:
		return verdict(r, err);
	case ELSEWHERE:
		return XR_E_STALE;
	default:
		return fail(err, XR_E_TIMEOUT,
			"whoever came last has not said in time what came of it");
	}
}

enum xr_status
roster_meet(const struct join *j, struct xr_value *info, join_judge_fn *judge,
	struct xr_value **infos, struct xr_error *err)
{
	const struct segment_map *map = map_of(j);
	struct segment_roster *r = segment_roster(map);
	uint32_t come;

	if (xr_value_kind(info) == XR_ERROR) {
		tell_failure(j, info);
		return await_verdict(j, infos, err);
	}
	if (!write_card(segment_card(map, j->rank), info)) {
		if (begin_judging(r))
			set_state(r, ELSEWHERE);
		return XR_E_STALE;
	}
	come = atomic_fetch_add(&r->come, 1) + 1;
	if (come == j->size)
		judge_all(j, judge);
	else if (come == 1)
		watch_store(j);
	return await_verdict(j, infos, err);
}

enum xr_status
roster_ready(const struct join *j, struct xr_error *err)
{
	struct segment_roster *r = segment_roster(map_of(j));

	if (atomic_fetch_add(&r->ready, 1) + 1 == j->size) {
		atomic_store(&r->go, 1);
		wake_all(&r->go);
	}
	if (await_change(&r->go, 0, j->deadline))
		return XR_OK;
	return fail(err, XR_E_TIMEOUT, "%u of %u were not ready in time",
		j->size - atomic_load(&r->ready), j->size);
}
