/* SPDX-License-Identifier: Apache-2.0 */
/* crowd_work.c - what ranks of crowd.c do together, and to each other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/func.h>
#include <xrun/rpc.h>
#include <xrun/rref.h>

#include "tests/fault/crowd.h"

#define MOST 200000 /* numbers */

static int32_t own[MOST], lists[CROWD_RANKS][MOST];
static const uint32_t sizes[] = { 0, 1, 14, 28, 100, 1000, 8192, 20000, MOST };

/* One operation of all: what it is of, and how it is to end. */
struct work {
	const struct crowd_team *t;
	uint64_t seed;
	uint32_t root; /* place */
	struct xr_coll_op op;
	void *list[CROWD_RANKS];
};

/* --- numbers ------------------------------------------------------------------- */

static int32_t
number(const struct work *w, uint32_t rank, uint32_t at)
{
	return (int32_t)(w->seed % 65521 * 31 + rank * 7919 + at * 3);
}

static void
fill(const struct work *w, int32_t *x, uint32_t rank)
{
	for (uint32_t i = 0; i < w->op.count; i++)
		x[i] = number(w, rank, i);
}

static void
expect(const struct work *w, const char *what, const int32_t *x, uint32_t rank)
{
	for (uint32_t i = 0; i < w->op.count; i++)
		if (x[i] != number(w, rank, i)) {
			crowd_wrong("%s: [%u] of %u is %d, not %d", what, i,
				rank, x[i], number(w, rank, i));
			return;
		}
}

static void
expect_sum(const struct work *w, const char *what)
{
	for (uint32_t i = 0; i < w->op.count; i++) {
		uint32_t sum = 0;

		for (uint32_t m = 0; m < w->t->count; m++)
			sum += (uint32_t)number(w, w->t->member[m], i);
		if (own[i] != (int32_t)sum) {
			crowd_wrong("%s: [%u] is %d, not %d", what, i, own[i],
				(int32_t)sum);
			return;
		}
	}
}

static bool
is_root(const struct work *w)
{
	return w->t->member[w->root] == crowd_me;
}

static void
set_list(struct work *w, bool filled)
{
	for (uint32_t m = 0; m < w->t->count; m++) {
		w->list[m] = lists[m];
		if (filled)
			fill(w, lists[m], w->t->member[m]);
		else
			memset(lists[m], 0, w->op.count * sizeof(int32_t));
	}
	w->op.list = w->list;
}

/* --- together -------------------------------------------------------------------- */

typedef enum xr_status op_fn(struct xr_coll *coll, const struct xr_coll_op *op,
	struct xr_error *err);

static bool
run(const struct work *w, const char *what, op_fn *fn)
{
	struct xr_error err = { 0 };
	int64_t begun = crowd_now();

	return crowd_judge(w->t, what, begun, fn(w->t->coll, &w->op, &err),
		&err);
}

static bool
broadcast(struct work *w)
{
	fill(w, own, crowd_me);
	if (!run(w, "bcast", xr_coll_bcast))
		return false;
	expect(w, "bcast", own, w->t->member[w->root]);
	return true;
}

static bool
all_reduce(struct work *w)
{
	fill(w, own, crowd_me);
	if (!run(w, "allreduce", xr_coll_allreduce))
		return false;
	expect_sum(w, "allreduce");
	return true;
}

static bool
reduce(struct work *w)
{
	fill(w, own, crowd_me);
	if (!run(w, "reduce", xr_coll_reduce))
		return false;
	if (is_root(w))
		expect_sum(w, "reduce");
	else
		expect(w, "reduce", own, crowd_me);
	return true;
}

static void
expect_list(const struct work *w, const char *what)
{
	for (uint32_t m = 0; m < w->t->count; m++)
		expect(w, what, lists[m], w->t->member[m]);
}

static bool
all_gather(struct work *w)
{
	fill(w, own, crowd_me);
	set_list(w, false);
	if (!run(w, "allgather", xr_coll_allgather))
		return false;
	expect_list(w, "allgather");
	return true;
}

static bool
gather(struct work *w)
{
	fill(w, own, crowd_me);
	if (is_root(w))
		set_list(w, false);
	if (!run(w, "gather", xr_coll_gather))
		return false;
	if (is_root(w))
		expect_list(w, "gather");
	return true;
}

static bool
scatter(struct work *w)
{
	if (is_root(w))
		set_list(w, true);
	if (!run(w, "scatter", xr_coll_scatter))
		return false;
	expect(w, "scatter", own, crowd_me);
	return true;
}

/* --- without waiting ----------------------------------------------------------------- */

/* Until it has ended, well or not: what it reads or writes is ours then. */
static bool
finish(const struct work *w, const char *what, int64_t begun,
	struct xr_future *future)
{
	struct xr_error err = { 0 };
	enum xr_status status =
		xr_future_wait(future, XR_SECONDS(30), NULL, &err);

	xr_future_unref(future);
	return crowd_judge(w->t, what, begun, status, &err);
}

static bool
two_at_once(struct work *w)
{
	struct xr_future *sum = NULL, *met = NULL;
	struct xr_error err = { 0 };
	int64_t begun = crowd_now();
	bool well;

	fill(w, own, crowd_me);
	if (!crowd_judge(w->t, "iallreduce", begun,
		    xr_coll_iallreduce(w->t->coll, &w->op, &sum, &err), &err))
		return false;
	well = crowd_judge(w->t, "ibarrier", begun,
		xr_coll_ibarrier(w->t->coll, NULL, &met, &err), &err);
	if (well)
		well = finish(w, "ibarrier", begun, met);
	well = finish(w, "iallreduce", begun, sum) && well;
	if (well)
		expect_sum(w, "iallreduce");
	return well;
}

/* To the next, from the one before. */
static bool
pass_on(struct work *w)
{
	const struct crowd_team *t = w->t;
	struct xr_future *sent = NULL;
	struct xr_error err = { 0 };
	int64_t begun = crowd_now(), from = -1;
	uint32_t at = 0, before;
	enum xr_status status;
	bool well;

	while (t->member[at] != crowd_me)
		at++;
	before = t->member[(at + t->count - 1) % t->count];
	fill(w, own, crowd_me);
	w->op.rank = t->member[(at + 1) % t->count];
	w->op.tag = (uint32_t)w->seed % 5;
	if (!crowd_judge(t, "isend", begun,
		    xr_coll_isend(t->coll, &w->op, &sent, &err), &err))
		return false;
	w->op.data = lists[0];
	w->op.rank = before;
	begun = crowd_now();
	status = xr_coll_recv(t->coll, &w->op, &from, &err);
	well = crowd_judge(t, "recv", begun, status, &err);
	if (well && from != before)
		crowd_wrong("recv: from %lld, not %u", (long long)from, before);
	if (well)
		expect(w, "recv", lists[0], before);
	return finish(w, "isend", begun, sent) && well;
}

/* --- calls -------------------------------------------------------------------------- */

static enum xr_status
add(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t a = 0, b = 0;

	(void)ctx;
	xr_value_get_i64(xr_value_at(args, 0), &a);
	xr_value_get_i64(xr_value_at(args, 1), &b);
	return xr_reply(call, xr_value_new_i64(a + b));
}

static enum xr_status
who(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	return xr_reply(call, xr_value_new_i64(crowd_me));
}

enum xr_status
crowd_serve(struct xr_error *err)
{
	const struct xr_func func = { .size = sizeof(func),
		.name = "crowd.add",
		.schema = "ii",
		.fn = add };

	return xr_fn_register(&func, err);
}

/* Whom this rank calls: each another. */
static uint32_t
partner(const struct work *w)
{
	return w->t->member[(w->seed + crowd_me) % w->t->count];
}

static void
expect_one(const char *what, struct xr_value *v, int64_t want)
{
	int64_t n = -1;

	if (v == NULL || xr_value_get_i64(v, &n) != XR_OK || n != want)
		crowd_wrong("%s: %lld, not %lld", what, (long long)n,
			(long long)want);
	xr_value_unref(v);
}

static void
key_of(uint32_t rank, char key[16])
{
	snprintf(key, 16, "key%u", rank);
}

static bool
call(struct work *w, bool remote)
{
	struct xr_rpc_call c = XR_RPC_CALL;
	struct xr_value *items[] = { xr_value_new_i64(crowd_me),
		xr_value_new_i64((int64_t)w->seed % 1000) };
	struct xr_error err = { 0 };
	struct xr_rref *rref = NULL;
	struct xr_value *v = NULL;
	int64_t begun = crowd_now();
	enum xr_status status;

	c.to = NULL;
	c.id = partner(w);
	c.func = "crowd.add";
	c.args = xr_value_new_list_of(items, 2);
	if (!remote) {
		status = xr_group_sync(w->t->group, &c, &v, &err);
	} else {
		status = xr_group_remote(w->t->group, &c, &rref, &err);
		if (status == XR_OK)
			status = xr_rref_fetch(rref, XR_SECONDS(20), &v, &err);
		xr_rref_unref(rref);
	}
	xr_value_unref(c.args);
	if (!crowd_judge(w->t, remote ? "rref" : "call", begun, status, &err))
		return false;
	expect_one(remote ? "rref" : "call", v,
		crowd_me + (int64_t)w->seed % 1000);
	return true;
}

static bool
call_function(struct work *w)
{
	return call(w, false);
}

static bool
call_remote(struct work *w)
{
	return call(w, true);
}

/* The keys of who is dead are nobody's; and who has heard of a death has left this
 * group. */
static bool
is_of_dead(const struct work *w, enum xr_status status)
{
	bool dead = false;

	for (uint32_t m = 0; m < w->t->count; m++)
		dead = dead || atomic_load(&crowd->dead[w->t->member[m]]);
	return status == XR_E_NOTFOUND && dead;
}

static bool
call_service(struct work *w)
{
	struct xr_group_call c = XR_GROUP_CALL;
	struct xr_error err = { 0 };
	struct xr_value *v = NULL;
	int64_t begun = crowd_now();
	enum xr_status status;
	char key[16];

	key_of(partner(w), key);
	c.key = key;
	status = xr_group_call_sync(w->t->group, &c, &v, &err);
	if (is_of_dead(w, status))
		return true;
	if (!crowd_judge(w->t, "service", begun, status, &err))
		return false;
	expect_one("service", v, partner(w));
	return true;
}

static bool
read_value(struct work *w)
{
	struct xr_error err = { 0 };
	struct xr_rref *rref = NULL;
	struct xr_value *v = NULL;
	int64_t begun = crowd_now();
	enum xr_status status;
	char key[16];

	key_of(partner(w), key);
	status = xr_group_get_paired(w->t->group, key, &rref, &err);
	if (status == XR_OK)
		status = xr_rref_fetch(rref, XR_SECONDS(20), &v, &err);
	xr_rref_unref(rref);
	if (is_of_dead(w, status))
		return true;
	if (!crowd_judge(w->t, "value", begun, status, &err))
		return false;
	expect_one("value", v, partner(w));
	return true;
}

bool
crowd_hand_out(const struct crowd_team *t)
{
	struct xr_value *v = xr_value_new_i64(crowd_me);
	struct xr_error err = { 0 };
	int64_t begun = crowd_now();
	enum xr_status status;
	char key[16];

	key_of(crowd_me, key);
	status = xr_group_pair(t->group, key, v, &err);
	xr_value_unref(v);
	if (status == XR_OK)
		status = xr_group_register(t->group,
			&(struct xr_group_service){
				.size = sizeof(struct xr_group_service),
				.key = key,
				.fn = who },
			&err);
	return crowd_judge(t, "keys", begun, status, &err);
}

/* --- one of all ------------------------------------------------------------------------ */

bool
crowd_work(const struct crowd_team *t, uint64_t random)
{
	static bool (*const kinds[])(struct work *) = { broadcast, all_reduce,
		reduce, all_gather, gather, scatter, two_at_once, pass_on,
		call_function, call_remote, call_service, read_value };
	const uint32_t count = sizeof(kinds) / sizeof(kinds[0]);
	struct work w = { .t = t };
	uint32_t kind = crowd_draw(&random, count);

	w.root = crowd_draw(&random, t->count);
	w.op = (struct xr_coll_op){ .size = sizeof(w.op),
		.dtype = XR_DT_I32,
		.data = own,
		.count = sizes[crowd_draw(&random,
			sizeof(sizes) / sizeof(sizes[0]))],
		.op = XR_SUM,
		.rank = t->member[w.root] };
	w.seed = random >> 1;
	if (!kinds[kind](&w))
		return false;
	atomic_fetch_add(&crowd->works_done[crowd_me], 1);
	return true;
}
