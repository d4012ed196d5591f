/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_pool_life.c - how a pool is made, closed, given up and freed.
 *
 * The pools have no worker, but for some of threads.
 */
#include <xrun/func.h>
#include <xrun/pool.h>

#include "base/clock.h"
#include "base/status.h"
#include "tests/unit/forked.h"
#include "tests/unit/short_memory.h"
#include "worker/pool/job.h"
#include "worker/rpc/future.h"

TestSuite(pool_life, .timeout = 60);

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define GRACE    12345

static struct xr_pool *pool;
static struct xr_error error;

static enum xr_status
nothing(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	return xr_reply(call, xr_value_new_nil());
}

static unsigned gone;

static void
go(void *object, void *ctx)
{
	(void)ctx;
	gone += object == &gone;
}

static struct xr_value *
as_bytes(void *object, void *ctx)
{
	(void)object;
	(void)ctx;
	return xr_value_new_bytes("", 0);
}

static void *
of_bytes(const void *data, size_t len, void *ctx)
{
	(void)data;
	(void)len;
	(void)ctx;
	return &gone;
}

/* A value of which is known when nobody has it any more. */
static struct xr_value *
kept(void)
{
	static const struct xr_type type = { .size = sizeof(type),
		.name = "test.kept",
		.encode = as_bytes,
		.decode = of_bytes,
		.free = go };

	xr_type_register(&type, NULL);
	return xr_value_new_opaque(type.name, &gone);
}

static struct xr_value *
list_of(struct xr_value *value)
{
	return xr_value_new_list_of(&value, 1);
}

/* --- what the program does --------------------------------------------------------------- */

static struct {
	unsigned terminates, joins;
	int64_t grace, timeout;
	enum xr_status says; /* to terminate */
} seen;

static enum xr_status
start_none(struct xr_pool *p, void *ctx, struct xr_error *err)
{
	(void)p;
	(void)err;
	EXPECT(ctx == &seen);
	return XR_OK;
}

static enum xr_status
terminate(struct xr_pool *p, int64_t grace, void *ctx, struct xr_error *err)
{
	EXPECT(p == pool && ctx == &seen);
	EXPECT_EQ(xr_pool_state(p), XR_POOL_TERMINATED);
	EXPECT_EQ(p->ledger.head->ended, 1);
	EXPECT(p->queues_closed);
	seen.terminates++;
	seen.grace = grace;
	return seen.says == XR_OK ? XR_OK : fail(err, seen.says, "stays");
}

static enum xr_status
join(struct xr_pool *p, int64_t timeout, void *ctx, struct xr_error *err)
{
	EXPECT(p == pool && ctx == &seen);
	seen.joins++;
	seen.timeout = timeout;
	return fail(err, XR_E_TIMEOUT, "not yet");
}

static const struct xr_pool_ops ops = { .size = sizeof(ops),
	.ctx = &seen,
	.repopulate = start_none,
	.terminate_workers = terminate,
	.join_workers = join };

static void
begin_of(struct xr_pool_opts o)
{
	const struct xr_func f = { .size = sizeof(f),
		.name = "nothing",
		.fn = nothing };

	o.size = sizeof(o);
	if (o.ops == NULL)
		o.ops = &ops;
	memset(&seen, 0, sizeof(seen));
	memset(&error, 0, sizeof(error));
	xr_fn_register(&f, NULL);
	NEED(xr_pool_new(&o, &pool, NULL) == XR_OK);
}

static void
begin(void)
{
	begin_of((struct xr_pool_opts){ .workers = 2, .tasks = 4 });
}

static enum xr_status
submit(struct xr_value *args, struct xr_future **f)
{
	const struct xr_pool_task t = { .size = sizeof(t),
		.name = "nothing",
		.args = args };
	struct xr_future *made = NULL;
	enum xr_status status;

	memset(&error, 0, sizeof(error));
	status = xr_pool_apply_async(pool, &t, &made, &error);
	xr_value_unref(args);
	if (f != NULL)
		*f = made;
	else
		xr_future_unref(made);
	return status;
}

static bool
is_closed(struct xr_queue *q)
{
	return xr_queue_put_bytes(q, "", 1, 0, NULL) == XR_E_CLOSED;
}

/* --- making ------------------------------------------------------------------------------ */

FORKED_TEST(pool_life, a_pool_has_queues_for_all_its_tasks_and_some_more)
{
	const struct {
		uint32_t tasks, items;
	} row[] = { { 1, 128 }, { 64, 128 }, { 65, 256 }, { 192, 256 },
		{ 193, 512 }, { 65536, 131072 } };

	for (size_t i = 0; i < COUNT(row); i++) {
		begin_of((struct xr_pool_opts){ .workers = 1,
			.tasks = row[i].tasks,
			.bytes = 1 << 22 });
		EXPECT_EQ(pool->in_count, 1);
		EXPECT_EQ(pool->in[0]->hall->plan.items, row[i].items);
		EXPECT_EQ(pool->out->hall->plan.items, row[i].items);
		EXPECT_EQ(pool->in[0]->hall->plan.block, 4096);
		EXPECT_EQ(pool->out->hall->plan.block, 4096);
		xr_pool_free(pool);
	}
}

FORKED_TEST(pool_life, its_queues_are_as_its_tasks_go)
{
	const struct {
		enum xr_pool_kind kind;
		enum xr_pool_routing routing;
		enum xr_enc_mode mode, has;
		uint32_t count;
		enum xr_queue_kind in;
		bool redeliver;
	} row[] = {
		{ XR_POOL_PROCESSES, XR_POOL_SHARED, XR_ENC_COPY, XR_ENC_COPY,
			1, XR_QUEUE_ANY, true },
		{ XR_POOL_PROCESSES, XR_POOL_P2P, XR_ENC_COPY, XR_ENC_COPY, 2,
			XR_QUEUE_P2P, false },
		{ XR_POOL_PROCESSES, XR_POOL_P2P, XR_ENC_SHARE, XR_ENC_SHARE, 2,
			XR_QUEUE_ANY, true },
		{ XR_POOL_THREADS, XR_POOL_P2P, XR_ENC_SHARE, XR_ENC_COPY, 1,
			XR_QUEUE_ANY, false },
	};

	for (size_t i = 0; i < COUNT(row); i++) {
		begin_of((struct xr_pool_opts){ .workers = 2,
			.tasks = 4,
			.kind = row[i].kind,
			.routing = row[i].routing,
			.mode = row[i].mode });
		EXPECT_EQ(pool->in_count, row[i].count);
		for (uint32_t k = 0; k < pool->in_count; k++) {
			const struct hall_plan *in = &pool->in[k]->hall->plan;

			EXPECT_EQ(in->kind, row[i].in);
			EXPECT_EQ(in->mode, row[i].has);
			EXPECT_EQ(in->redeliver, row[i].redeliver);
		}
		EXPECT_EQ(pool->out->hall->plan.kind, XR_QUEUE_ANY);
		EXPECT_EQ(pool->out->hall->plan.mode, row[i].has);
		EXPECT(!pool->out->hall->plan.redeliver);
		EXPECT_EQ(pool->by_mates, row[i].kind == XR_POOL_THREADS);
		xr_pool_free(pool);
	}
}

FORKED_TEST(pool_life, all_tasks_of_a_new_pool_are_spare_and_lie_in_lines)
{
	begin();
	EXPECT_EQ(pool->spare_count, 4);
	for (uint32_t i = 0; i < 4; i++)
		EXPECT_EQ(pool->spare[i], 3 - i);
	EXPECT_EQ((uintptr_t)pool->task % _Alignof(struct task), 0);
	EXPECT_EQ((uintptr_t)pool->call % _Alignof(struct call), 0);
	EXPECT((struct task *)pool->call == pool->task + 4);
	EXPECT_EQ(pool->ledger.tasks, 4);
	EXPECT_EQ(pool->ledger.places, 2);
	EXPECT_EQ(pool->kill_at, INT64_MAX);
	EXPECT_EQ(xr_pool_state(pool), XR_POOL_RUNNING);
	EXPECT_EQ(xr_pool_size(pool), 0);
	EXPECT_EQ(xr_pool_pids(pool, NULL, 0), 0);
	xr_pool_free(pool);
}

FORKED_TEST(pool_life, workers_that_are_threads_have_no_process_id)
{
	const struct xr_pool_opts o = { .size = sizeof(o),
		.kind = XR_POOL_THREADS,
		.workers = 2,
		.tasks = 4 };
	int32_t pids[3] = { -1, -1, -1 };

	NEED(xr_pool_new(&o, &pool, NULL) == XR_OK);
	EXPECT_EQ(xr_pool_size(pool), 2);
	EXPECT_EQ(xr_pool_pids(pool, pids, 1), 2);
	EXPECT(pids[0] == 0 && pids[1] == -1);
	EXPECT_EQ(xr_pool_pids(pool, pids, 3), 2);
	EXPECT(pids[1] == 0 && pids[2] == -1);
	xr_pool_close(pool);
	EXPECT_EQ(xr_pool_state(pool), XR_POOL_CLOSED);
	EXPECT_EQ(xr_pool_join(pool, XR_TIMEOUT_NEVER, NULL), XR_OK);
	EXPECT_EQ(xr_pool_size(pool), 0);
	EXPECT_EQ(xr_pool_pids(pool, pids, 3), 0);
	xr_pool_free(pool);
}

/* --- ending ------------------------------------------------------------------------------ */

FORKED_TEST(pool_life,
	a_closed_pool_closes_its_queues_when_nothing_is_to_be_done)
{
	struct xr_future *f;

	begin();
	EXPECT_EQ(submit(NULL, &f), XR_OK);
	xr_pool_close(pool);
	EXPECT(pool->stirs && !pool->queues_closed);
	EXPECT(!is_closed(pool->in[0]));
	EXPECT_EQ(xr_future_cancel(f), XR_OK);
	EXPECT(pool->queues_closed && is_closed(pool->in[0]));
	EXPECT(!is_closed(pool->out));
	xr_pool_close(pool);
	EXPECT_EQ(xr_pool_state(pool), XR_POOL_CLOSED);
	xr_future_unref(f);
	xr_pool_free(pool);
	begin();
	xr_pool_close(pool);
	EXPECT(pool->queues_closed && is_closed(pool->in[0]));
	xr_pool_free(pool);
}

FORKED_TEST(pool_life, a_pool_that_is_terminated_ends_all_and_then_its_workers)
{
	struct room r = { .need = 9 };
	struct xr_future *f;

	begin();
	EXPECT_EQ(submit(NULL, &f), XR_OK);
	TAILQ_INSERT_TAIL(&pool->rooms, &r, list);
	EXPECT_EQ(xr_pool_terminate(pool, GRACE, &error), XR_E_TIMEOUT);
	EXPECT_STR(error.text, "not yet");
	EXPECT(waiter_is_done(&r.waiter) && TAILQ_EMPTY(&pool->rooms));
	EXPECT(pool->stirs);
	EXPECT_EQ(seen.terminates, 1);
	EXPECT_EQ(seen.grace, GRACE);
	EXPECT_EQ(seen.joins, 1);
	EXPECT_EQ(seen.timeout, XR_TIMEOUT_NEVER);
	EXPECT_EQ(xr_future_wait(f, 0, NULL, &error), XR_E_CANCELLED);
	EXPECT_STR(error.text, "the pool was terminated");
	xr_future_unref(f);
	EXPECT_EQ(submit(NULL, &f), XR_E_STATE);
	EXPECT_STR(error.text, "the pool was terminated");
	seen.says = XR_E_SYS;
	EXPECT_EQ(xr_pool_terminate(pool, XR_TIMEOUT_DEFAULT, &error),
		XR_E_SYS);
	EXPECT_STR(error.text, "stays");
	EXPECT_EQ(seen.grace, XR_POOL_GRACE);
	EXPECT_EQ(seen.joins, 1);
	EXPECT_EQ(xr_pool_join(pool, 77, &error), XR_E_TIMEOUT);
	EXPECT_EQ(seen.timeout, 77);
	EXPECT_EQ(xr_pool_join(pool, XR_TIMEOUT_DEFAULT, &error), XR_E_TIMEOUT);
	EXPECT_EQ(seen.timeout, XR_TIMEOUT_NEVER);
	xr_pool_free(pool);
	EXPECT_EQ(seen.terminates, 3);
	EXPECT_EQ(seen.grace, 0);
}

FORKED_TEST(pool_life, threads_have_the_time_that_a_pool_is_given_to_end)
{
	begin_of((struct xr_pool_opts){ .workers = 2,
		.tasks = 4,
		.kind = XR_POOL_THREADS });
	EXPECT_EQ(xr_pool_terminate(pool, GRACE, NULL), XR_E_TIMEOUT);
	EXPECT_EQ(seen.timeout, GRACE);
	xr_pool_free(pool);
}

/* Once; without memory for the reason, for that. */
FORKED_TEST(pool_life, a_pool_that_gives_up_says_why)
{
	struct room r = { .need = 9 };
	struct xr_future *f;

	begin();
	EXPECT_EQ(submit(list_of(kept()), &f), XR_OK);
	TAILQ_INSERT_TAIL(&pool->rooms, &r, list);
	pool_give_up(pool, failure_new(XR_E_SYS, "broken"));
	EXPECT_EQ(gone, 1);
	EXPECT(waiter_is_done(&r.waiter));
	EXPECT_EQ(xr_pool_state(pool), XR_POOL_TERMINATED);
	EXPECT_EQ(seen.terminates, 1);
	EXPECT_EQ(seen.grace, NS_PER_S);
	EXPECT_EQ(seen.joins, 0);
	EXPECT_EQ(xr_future_wait(f, 0, NULL, &error), XR_E_SYS);
	EXPECT_STR(error.text, "broken");
	xr_future_unref(f);
	pool_give_up(pool, kept());
	EXPECT_EQ(gone, 2);
	EXPECT_EQ(seen.terminates, 1);
	EXPECT_EQ(submit(NULL, &f), XR_E_SYS);
	EXPECT_STR(error.text, "broken");
	xr_pool_free(pool);
	begin();
	pool_give_up(pool, NULL);
	EXPECT_EQ(submit(NULL, &f), XR_E_NOMEM);
	EXPECT_STR(error.text, "out of memory");
	xr_pool_free(pool);
	begin();
	EXPECT_EQ(xr_pool_terminate(pool, 0, NULL), XR_E_TIMEOUT);
	pool_give_up(pool, kept());
	EXPECT_EQ(gone, 3);
	EXPECT_EQ(seen.terminates, 1);
	EXPECT(pool->failure == NULL);
	xr_pool_free(pool);
}

/* --- what it has --------------------------------------------------------------------------- */

/* Without memory for their error calls do not end; they are gone with the pool. */
FORKED_TEST(pool_life, what_a_pool_has_is_gone_when_nobody_knows_it)
{
	struct xr_value *initargs = list_of(kept());
	struct xr_pool_task t = { .size = sizeof(t),
		.name = "nothing",
		.args = list_of(kept()) };
	const struct ledger_who who = { 0, 1 };
	struct xr_future *f[2];
	uint32_t gen;

	begin_of((struct xr_pool_opts){ .workers = 2,
		.tasks = 4,
		.initializer = "nothing",
		.initargs = initargs });
	xr_value_unref(initargs);
	EXPECT_EQ(submit(list_of(kept()), &f[0]), XR_OK);
	EXPECT_EQ(xr_pool_map_async(pool, &t, &f[1], NULL), XR_OK);
	xr_value_unref(t.args);
	for (uint32_t i = 0; i < 2; i++) {
		gen = pool->task[i].gen;
		EXPECT(ledger_take(&pool->ledger, i, gen, who));
	}
	xr_pool_free(pool);
	EXPECT_EQ(gone, 1);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(xr_future_wait(f[i], 0, NULL, NULL), XR_E_CANCELLED);
		xr_future_unref(f[i]);
	}
	EXPECT_EQ(gone, 3);
}

FORKED_TEST(pool_life, a_pool_is_a_value_that_does_not_travel)
{
	struct xr_encoded *encoded = NULL;
	struct xr_value *v;

	begin();
	v = xr_pool_value(pool);
	EXPECT(v != NULL && xr_pool_of(v) == pool);
	EXPECT(xr_encode(v, NULL, &encoded, NULL) != XR_OK);
	xr_value_unref(v);
	xr_pool_free(pool);
}
