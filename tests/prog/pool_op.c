/* SPDX-License-Identifier: Apache-2.0 */
/* pool_op.c - pools, by the acceptance checks: what takes the place of what they do. */
#include <signal.h>

#include <xrun/proc.h>

#include "tests/prog/pool_rig.h"

/* Which were called, and how often; what they do instead. */
static struct {
	_Atomic uint32_t setups, puts, gets, populates, maintains, terminates,
		joins;
	_Atomic bool closes;  /* outqueue_get() says that there is no more */
	_Atomic uint32_t nos; /* so often inqueue_put() has no room */
} op;

static enum xr_status
setup(struct xr_pool *pool, struct xr_pool_queues *queues, void *ctx,
	struct xr_error *err)
{
	EXPECT(ctx == &op);
	op.setups++;
	return xr_pool_setup_queues(pool, queues, err);
}

static enum xr_status
put(struct xr_pool *pool, struct xr_pool_item *item, void *ctx,
	struct xr_error *err)
{
	struct xr_pool_item_info info = { .size = sizeof(info) };

	EXPECT(ctx == &op);
	EXPECT(xr_pool_item_info(item, &info) == XR_OK);
	EXPECT(info.count > 0 && info.job > 0 && info.func != NULL);
	op.puts++;
	if (op.nos > 0) {
		op.nos--;
		return XR_E_AGAIN;
	}
	return xr_pool_inqueue_put(pool, item, err);
}

static enum xr_status
get(struct xr_pool *pool, int64_t timeout, struct xr_pool_item **item,
	void *ctx, struct xr_error *err)
{
	EXPECT(ctx == &op);
	op.gets++;
	if (op.closes)
		return xr_error_set(err, XR_E_CLOSED, "no more of this");
	return xr_pool_outqueue_get(pool, timeout, item, err);
}

static enum xr_status
populate(struct xr_pool *pool, void *ctx, struct xr_error *err)
{
	EXPECT(ctx == &op);
	op.populates++;
	return xr_pool_repopulate(pool, err);
}

static enum xr_status
maintain(struct xr_pool *pool, void *ctx, struct xr_error *err)
{
	EXPECT(ctx == &op);
	op.maintains++;
	return xr_pool_maintain(pool, err);
}

static enum xr_status
terminate(struct xr_pool *pool, int64_t grace, void *ctx, struct xr_error *err)
{
	EXPECT(ctx == &op);
	op.terminates++;
	return xr_pool_terminate_workers(pool, grace, err);
}

static enum xr_status
join(struct xr_pool *pool, int64_t timeout, void *ctx, struct xr_error *err)
{
	EXPECT(ctx == &op);
	op.joins++;
	return xr_pool_join_workers(pool, timeout, err);
}

/* Beside what any worker does it tells of itself. */
static enum xr_status
work(uint32_t ordinal, struct xr_value *arg, void *ctx, struct xr_error *err)
{
	EXPECT(ordinal < WORKERS);
	rig_post(3000);
	return xr_pool_worker(ordinal, arg, ctx, err);
}

__attribute__((constructor)) static void
make_known(void)
{
	EXPECT(xr_proc_register("rig.worker", work, NULL, &rig_err) == XR_OK);
}

static struct xr_pool *
pool_with(const struct xr_pool_ops *ops)
{
	struct xr_pool_opts o = rig_opts();

	o.ops = ops;
	return rig_pool_of(&o);
}

/* All calls of a life, beside what was replaced. */
static void
live(struct xr_pool *pool)
{
	struct xr_pool_task t = rig_task("weigh", rig_numbers(10));
	struct xr_value *values = NULL;

	EXPECT(rig_call(pool, "weigh", 3) == 60);
	EXPECT(xr_pool_map(pool, &t, SOON, &values, &rig_err) == XR_OK);
	for (size_t i = 0; i < 10; i++)
		EXPECT(rig_result(xr_value_at(values, i)) == 20 * (int64_t)i);
	xr_value_unref(values);
	rig_done(&t);
	rig_get(rig_async(pool, "weigh", 1));
}

#define OPS(...) \
	&(struct xr_pool_ops) \
	{ \
		.size = sizeof(struct xr_pool_ops), .ctx = &op, __VA_ARGS__ \
	}

static void
each(void)
{
	struct xr_pool *pool = pool_with(OPS(.setup_queues = setup));

	live(pool);
	rig_end(pool);
	EXPECT(op.setups == 1);
	pool = pool_with(OPS(.inqueue_put = put));
	live(pool);
	rig_end(pool);
	EXPECT(op.puts >= 3);
	pool = pool_with(OPS(.outqueue_get = get));
	live(pool);
	rig_end(pool);
	EXPECT(op.gets >= 3);
	pool = pool_with(OPS(.repopulate = populate));
	live(pool);
	rig_end(pool);
	EXPECT(op.populates >= 1);
	pool = pool_with(OPS(.maintain = maintain));
	live(pool);
	rig_end(pool);
	EXPECT(op.maintains >= 1);
	pool = pool_with(OPS(.terminate_workers = terminate));
	live(pool);
	EXPECT(op.terminates == 0);
	EXPECT(xr_pool_terminate(pool, SOON, &rig_err) == XR_OK);
	EXPECT(op.terminates == 1);
	xr_pool_free(pool);
	pool = pool_with(OPS(.join_workers = join));
	live(pool);
	EXPECT(op.joins == 0);
	rig_end(pool);
	EXPECT(op.joins >= 1);
	pool = pool_with(OPS(.worker = "rig.worker"));
	live(pool);
	rig_end(pool);
	EXPECT(atomic_load(&rig_word[3000]) == WORKERS);
}

/* (10 items, 2 workers) are chunks of 2, of 5 tasks. */
static void
chunks(void)
{
	struct xr_pool *pool = pool_with(OPS(.inqueue_put = put));
	struct xr_pool_task t = rig_task("weigh", rig_numbers(10));
	struct xr_value *values = NULL;

	EXPECT(xr_pool_map(pool, &t, SOON, &values, &rig_err) == XR_OK);
	EXPECT(op.puts == 5);
	xr_value_unref(values);
	t.flags = XR_POOL_CHUNK;
	t.chunk = 3;
	EXPECT(xr_pool_map(pool, &t, SOON, &values, &rig_err) == XR_OK);
	EXPECT(op.puts == 9);
	xr_value_unref(values);
	rig_done(&t);
	rig_end(pool);
}

/* No room for some tasks of a map, while others end: they are put again. */
static void
no_room(void)
{
	struct xr_pool *pool = pool_with(OPS(.inqueue_put = put));
	struct xr_pool_task t = rig_task("weigh", rig_numbers(100));
	struct xr_value *values = NULL;
	struct xr_future *first = rig_async(pool, "wait", 0), *map;

	rig_await(0, 1);
	op.nos = 1;
	EXPECT(xr_pool_map_async(pool, &t, &map, &rig_err) == XR_OK);
	rig_post(1);
	EXPECT(rig_get(first) == 0);
	EXPECT(xr_future_wait(map, SOON, &values, &rig_err) == XR_OK);
	EXPECT(xr_value_count(values) == 100);
	xr_value_unref(values);
	xr_future_unref(map);
	rig_done(&t);
	rig_end(pool);
}

/* What takes results says that there will be none: so it is for all, and at once. */
static void
closed(void)
{
	struct xr_pool *pool = pool_with(OPS(.outqueue_get = get));
	struct xr_pool_task t = rig_task("weigh", rig_one(1));
	struct xr_future *futures[10];
	struct xr_pool_item *item = NULL;
	int64_t from = rig_now();

	EXPECT(xr_pool_outqueue_get(pool, XR_SECONDS(0.1), &item, &rig_err) ==
		XR_E_TIMEOUT);
	EXPECT(item == NULL && rig_now() - from >= XR_SECONDS(0.1));
	for (int64_t i = 0; i < 10; i++)
		futures[i] = rig_async(pool, "wait", i);
	rig_await(0, 1);
	op.closes = true;
	rig_post(1);
	for (int64_t i = 0; i < 10; i++)
		EXPECT(rig_fails(futures[i]) == XR_E_CLOSED);
	EXPECT(strstr(rig_err.text, "no more of this") != NULL);
	EXPECT(xr_pool_apply_async(pool, &t, &futures[0], &rig_err) ==
		XR_E_CLOSED);
	EXPECT(op.gets < 100);
	for (uint32_t i = 1; i < 10; i++) /* of threads, those that began */
		rig_post(2 * i + 1);
	EXPECT(xr_pool_join(pool, SOON, &rig_err) == XR_OK);
	rig_done(&t);
	xr_pool_free(pool);
}

/* The end of a worker is that of the pool, or is made up for. */
static void
on_error(void)
{
	struct xr_pool_opts o = rig_opts();
	struct xr_pool_task t = rig_task("weigh", rig_one(1));
	struct xr_future *first, *bad;
	struct xr_pool *pool;

	o.ops = OPS(0);
	o.on_worker_error = XR_POOL_TERMINATE;
	pool = rig_pool_of(&o);
	first = rig_async(pool, "wait", 0);
	rig_await(0, 1);
	bad = rig_async(pool, rig_threads() ? "leave-thread" : "leave", 3);
	EXPECT(rig_fails(bad) == XR_E_WORKER_LOST);
	EXPECT(rig_fails(first) == XR_E_WORKER_LOST);
	EXPECT(xr_pool_apply_async(pool, &t, &bad, &rig_err) ==
		XR_E_WORKER_LOST);
	EXPECT(xr_pool_state(pool) == XR_POOL_TERMINATED);
	rig_post(1);
	EXPECT(xr_pool_join(pool, SOON, &rig_err) == XR_OK);
	xr_pool_free(pool);
	o.on_worker_error = XR_POOL_REPLACE;
	pool = rig_pool_of(&o);
	bad = rig_async(pool, rig_threads() ? "leave-thread" : "leave", 3);
	EXPECT(rig_fails(bad) == XR_E_WORKER_LOST);
	rig_until(xr_pool_size(pool) == WORKERS);
	EXPECT(rig_call(pool, "weigh", 4) == 80);
	rig_end(pool);
	rig_done(&t);
}

const struct rig_case op_cases[] = {
	{ "each-op", each },
	{ "chunks", chunks },
	{ "no-room", no_room },
	{ "op-closed", closed },
	{ "on-worker-error", on_error },
	{ NULL, NULL },
};
