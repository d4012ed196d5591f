/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_pool_worker.c - a worker that has no memory, or is told what is wrong.
 *
 * It runs in the test's process, for a pool that has no other one, and ends after as
 * many tasks as there are.
 */
#include <xrun/func.h>
#include <xrun/pool.h>
#include <xrun/proc.h>

#include "tests/kit/entries.h"
#include "tests/unit/forked.h"
#include "tests/unit/short_memory.h"
#include "wire/value/node.h"
#include "worker/pool/job.h"
#include "worker/pool/take.h"
#include "worker/pool/told.h"
#include "worker/proc/given.h"
#include "worker/rpc/future.h"

TestSuite(pool_worker, .timeout = 120);

#define SOON        XR_SECONDS(20)
#define ALLOCATIONS 2000 /* there are less */
#define GIVEN       200  /* the first of the worker's descriptors */
#define ITEMS       4

static struct xr_pool *pool;
static struct xr_error error;
static _Atomic bool takes; /* results may be taken */

/* --- functions ------------------------------------------------------------------------- */

static enum xr_status
reply(struct xr_call *call, struct xr_value *value)
{
	return value != NULL ? xr_reply(call, value) : XR_E_NOMEM;
}

/* Behind what stands before it: a number, a dict, nil, or none. */
static enum xr_status
mixed(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t n = 0;

	(void)ctx;
	xr_value_get_i64(xr_value_at(args, xr_value_count(args) - 1), &n);
	switch (n) {
	case 1:
		return reply(call, xr_value_new_dict());
	case 2:
		return reply(call, xr_value_new_nil());
	case 3:
		return xr_reply_fail(call, XR_E_CLOSED, "three");
	default:
		return reply(call, xr_value_new_i64(n));
	}
}

/* How many arguments it has, with the named ones. */
static enum xr_status
counts(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	return reply(call,
		xr_value_new_i64((int64_t)(xr_value_count(args) +
			xr_value_count(xr_call_named(call)))));
}

static struct xr_value *kept[2];

/* Its arguments and the named ones stay with the test. */
static enum xr_status
keeps(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)ctx;
	kept[0] = xr_value_ref(args);
	kept[1] = xr_value_ref(xr_call_named(call));
	return reply(call, xr_value_new_nil());
}

static struct xr_future *of_looks;
static int seen[3];

static enum xr_status
looks(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	seen[0] = xr_call_cancelled(call);
	if (of_looks != NULL)
		EXPECT_EQ(xr_future_cancel(of_looks), XR_OK);
	seen[1] = xr_call_cancelled(call);
	if (of_looks == NULL)
		xr_pool_terminate(pool, 0, NULL);
	seen[2] = xr_call_cancelled(call);
	return reply(call, xr_value_new_nil());
}

static void
register_all(void)
{
	const struct xr_func funcs[] = {
		{ .size = sizeof(funcs[0]), .name = "mixed", .fn = mixed },
		{ .size = sizeof(funcs[0]), .name = "counts", .fn = counts },
		{ .size = sizeof(funcs[0]), .name = "looks", .fn = looks },
		{ .size = sizeof(funcs[0]), .name = "keeps", .fn = keeps },
	};

	NEED(xr_module_static(funcs, 4, NULL) == XR_OK);
	for (int i = 0; i < TOLD_FDS; i++)
		given_add(GIVEN + i);
}

/* --- the pool -------------------------------------------------------------------------- */

static enum xr_status
start_none(struct xr_pool *p, void *ctx, struct xr_error *err)
{
	(void)p;
	(void)ctx;
	(void)err;
	return XR_OK;
}

/* Nobody allocates for results while the worker does. */
static enum xr_status
get_later(struct xr_pool *p, int64_t timeout, struct xr_pool_item **item,
	void *ctx, struct xr_error *err)
{
	(void)ctx;
	return atomic_load(&takes) ?
		xr_pool_outqueue_get(p, timeout, item, err) :
		XR_E_TIMEOUT;
}

static void
begin(enum xr_enc_mode mode)
{
	const struct xr_pool_ops ops = { .size = sizeof(ops),
		.repopulate = start_none,
		.outqueue_get = get_later };
	const struct xr_pool_opts o = { .size = sizeof(o),
		.workers = 1,
		.tasks = 16,
		.mode = mode,
		.ops = &ops };
	int fd[TOLD_FDS];

	NEED(xr_pool_new(&o, &pool, NULL) == XR_OK);
	fd[TOLD_LEDGER] = pool->ledger.fd;
	fd[TOLD_BOOK] = pool->book.fd;
	xr_queue_fds(pool->in[0], &fd[TOLD_IN]);
	xr_queue_fds(pool->out, &fd[TOLD_OUT]);
	for (int i = 0; i < TOLD_FDS; i++)
		NEED(dup3(fd[i], GIVEN + i, O_CLOEXEC) != -1);
	atomic_store(&takes, false);
}

/* What it is told; @name, @init: NULL is NIL. */
static struct xr_value *
told(uint64_t flags, uint64_t tasks, const char *name, const char *init)
{
	struct xr_value *items[TOLD_COUNT] = {
		[TOLD_LIFE] = xr_value_new_u64(1),
		[TOLD_FLAGS] = xr_value_new_u64(flags),
		[TOLD_MAX_TASKS] = xr_value_new_u64(tasks),
		[TOLD_NAME] = name != NULL ?
			xr_value_new_text(name, strlen(name)) :
			xr_value_new_nil(),
		[TOLD_INIT] = init != NULL ?
			xr_value_new_text(init, strlen(init)) :
			xr_value_new_nil(),
		[TOLD_INIT_ARGS] = xr_value_new_list(),
		[TOLD_CONTEXT] = xr_value_new_text("context", 7),
	};

	EXPECT_EQ(xr_value_append(items[TOLD_INIT_ARGS], xr_value_new_i64(3)),
		XR_OK);
	return xr_value_new_list_of(items, TOLD_COUNT);
}

/* @arg is taken. */
static enum xr_status
work(struct xr_value *arg)
{
	enum xr_status status;

	memset(&error, 0, sizeof(error));
	status = xr_pool_worker(0, arg, NULL, &error);
	until_short = 0;
	xr_value_unref(arg);
	return status;
}

static struct xr_value *
numbers(int64_t first, int64_t count)
{
	struct xr_value *list = xr_value_new_list();

	for (int64_t i = first; i < first + count; i++)
		NEED(xr_value_append(list, xr_value_new_i64(i)) == XR_OK);
	return list;
}

/* --- what is submitted ------------------------------------------------------------------- */

enum {
	NUMBER,
	DICT,
	FAILURE,
	NAMED,
	MAP,
	STARMAP,
	FUTURES,
	TASKS = FUTURES + 1, /* that of the iterator */
};

static struct xr_future *future[FUTURES];
static struct xr_pool_iter *iter;

static void
submit(int which, const char *name, struct xr_value *args,
	struct xr_value *named)
{
	struct xr_pool_task t = { .size = sizeof(t),
		.name = name,
		.args = args,
		.named = named };
	enum xr_status status;

	if (which >= MAP) {
		t.flags = XR_POOL_CHUNK;
		t.chunk = ITEMS;
	}
	status = which == MAP ?
		xr_pool_map_async(pool, &t, &future[which], &error) :
		which == STARMAP ?
		xr_pool_starmap_async(pool, &t, &future[which], &error) :
		which == FUTURES ?
		xr_pool_imap(pool, &t, &iter, &error) :
		xr_pool_apply_async(pool, &t, &future[which], &error);
	NEED(status == XR_OK);
	xr_value_unref(args);
	xr_value_unref(named);
}

static struct xr_value *
pairs(int64_t count)
{
	struct xr_value *list = xr_value_new_list();

	for (int64_t i = 0; i < count; i++)
		NEED(xr_value_append(list, numbers(i, 2)) == XR_OK);
	return list;
}

static void
submit_all(void)
{
	struct xr_value *named = xr_value_new_dict();

	NEED(xr_value_put(named, "key", 3, xr_value_new_i64(1)) == XR_OK);
	submit(NUMBER, "mixed", numbers(7, 1), NULL);
	submit(DICT, "mixed", numbers(1, 1), NULL);
	submit(FAILURE, "mixed", numbers(3, 1), NULL);
	submit(NAMED, "counts", numbers(0, 2), named);
	submit(MAP, "mixed", numbers(0, 3), NULL);
	submit(STARMAP, "counts", pairs(2), NULL);
	submit(FUTURES, "mixed", numbers(0, ITEMS), NULL);
}

/* --- what comes of it ---------------------------------------------------------------------- */

static bool
is_number(const struct xr_value *value, int64_t want)
{
	int64_t n = -1;

	return xr_value_get_i64(value, &n) == XR_OK && n == want;
}

static bool
is_mixed(const struct xr_value *value, int64_t n)
{
	return n == 1  ? xr_value_kind(value) == XR_DICT :
		n == 2 ? xr_value_kind(value) == XR_NIL :
			 is_number(value, n);
}

/* @more: contexts before their arguments. */
static bool
is_right(int which, const struct xr_value *value, int64_t more)
{
	switch (which) {
	case NUMBER:
		return is_number(value, 7);
	case DICT:
		return is_mixed(value, 1);
	case NAMED:
		return is_number(value, 3 + more);
	case MAP:
		return xr_value_count(value) == 3 &&
			is_mixed(xr_value_at(value, 0), 0) &&
			is_mixed(xr_value_at(value, 1), 1) &&
			is_mixed(xr_value_at(value, 2), 2);
	case STARMAP:
		return xr_value_count(value) == 2 &&
			is_number(xr_value_at(value, 0), 2 + more) &&
			is_number(xr_value_at(value, 1), 2 + more);
	default:
		return false;
	}
}

/* Its own, or for want of memory; and XR_E_CANCELLED if its worker has failed. */
static bool
is_expected(enum xr_status status, enum xr_status want, bool failed)
{
	return status == want || (was_short && status == XR_E_NOMEM) ||
		(failed && status == XR_E_CANCELLED);
}

static void
check_items(bool failed, unsigned n)
{
	struct xr_value *value;
	enum xr_status status;

	for (int64_t i = 0; i < ITEMS; i++) {
		status = xr_pool_iter_next(iter, SOON, &value, &error);
		if (!is_expected(status, i == 3 ? XR_E_CLOSED : XR_OK,
			    failed) ||
			(status == XR_OK && !is_mixed(value, i)))
			forked_note(__LINE__, "%u: item %d: %s: %s", n, (int)i,
				xr_status_name(status), error.text);
		xr_value_unref(value);
	}
	xr_pool_iter_free(iter);
}

/* All of it, where allocation @n fails; 0: none. */
static enum xr_status
do_all(enum xr_enc_mode mode, uint64_t flags, unsigned n)
{
	enum xr_status status, worker;
	struct xr_value *value, *arg;

	begin(mode);
	submit_all();
	arg = told(flags | (mode == XR_ENC_SHARE ? TOLD_SHARES : 0), TASKS,
		"pool", NULL);
	was_short = false;
	until_short = n;
	worker = work(arg);
	if (worker != XR_OK && (worker != XR_E_NOMEM || !was_short))
		forked_note(__LINE__, "%u: worker: %s: %s", n,
			xr_status_name(worker), error.text);
	atomic_store(&takes, true);
	if (worker != XR_OK) {
		while (hook_take(pool, 0))
			;
		xr_pool_terminate(pool, 0, NULL);
	}
	for (int i = 0; i < FUTURES; i++) {
		value = NULL;
		status = xr_future_wait(future[i], SOON, &value, &error);
		if (!is_expected(status, i == FAILURE ? XR_E_CLOSED : XR_OK,
			    worker != XR_OK) ||
			(status == XR_OK && !is_right(i, value, flags != 0)))
			forked_note(__LINE__, "%u: future %d: %s: %s", n, i,
				xr_status_name(status), error.text);
		xr_value_unref(value);
		xr_future_unref(future[i]);
	}
	check_items(worker != XR_OK, n);
	xr_pool_free(pool);
	return worker;
}

static void
fail_each(enum xr_enc_mode mode, uint64_t flags)
{
	unsigned n = 0, fds;

	register_all();
	EXPECT_EQ(do_all(mode, flags, 0), XR_OK);
	fds = entries("/proc/self/fd");
	do
		do_all(mode, flags, ++n);
	while (was_short && n < ALLOCATIONS && forked_wrong < 10);
	EXPECT(!was_short);
	EXPECT(n > 60);
	EXPECT_EQ(entries("/proc/self/fd"), fds);
}

FORKED_TEST(pool_worker, each_allocation_of_a_worker_may_fail)
{
	fail_each(XR_ENC_COPY, 0);
}

FORKED_TEST(pool_worker, each_allocation_of_a_worker_with_a_context_may_fail)
{
	fail_each(XR_ENC_COPY, TOLD_CONTEXTS);
}

FORKED_TEST(pool_worker, each_allocation_of_a_worker_that_shares_may_fail)
{
	fail_each(XR_ENC_SHARE, 0);
}

/* --- what it is told ------------------------------------------------------------------------ */

#define NO_WORKER "that is for workers of a pool"

FORKED_TEST(pool_worker, what_is_told_to_no_worker_is_rejected)
{
	struct xr_value *more = told(0, 1, "pool", NULL);

	EXPECT_EQ(work(told(0, 1, "pool", NULL)), XR_E_STATE);
	EXPECT_STR(error.text, NO_WORKER);
	register_all();
	begin(XR_ENC_COPY);
	EXPECT_EQ(work(told(0, 1, NULL, NULL)), XR_E_STATE);
	EXPECT_STR(error.text, NO_WORKER);
	EXPECT_EQ(xr_value_append(more, xr_value_new_nil()), XR_OK);
	EXPECT_EQ(work(more), XR_E_STATE);
	EXPECT_STR(error.text, NO_WORKER);
	EXPECT_EQ(work(told(0, 1, "pool", "unknown")), XR_E_NO_FUNCTION);
	EXPECT_EQ(work(told(0, 1, "pool", "mixed")), XR_E_CLOSED);
	EXPECT_STR(error.text, "three");
	EXPECT_EQ(atomic_load(&pool->ledger.place[0].ready), 0);
	for (int i = 0; i < TOLD_FDS; i++) {
		if (i == TOLD_BOOK)
			continue;
		NEED(dup3(pool->book.fd, GIVEN + i, O_CLOEXEC) != -1);
		EXPECT(work(told(0, 1, "pool", NULL)) != XR_OK);
		xr_pool_free(pool);
		begin(XR_ENC_COPY);
	}
	xr_pool_free(pool);
}

FORKED_TEST(pool_worker, a_worker_that_has_come_has_nothing_in_hand)
{
	register_all();
	begin(XR_ENC_COPY);
	atomic_store(&pool->ledger.place[0].since, 7);
	xr_queue_close(pool->in[0]);
	EXPECT_EQ(work(told(0, 1, "pool", NULL)), XR_OK);
	EXPECT_EQ(atomic_load(&pool->ledger.place[0].ready), 2);
	EXPECT_EQ(atomic_load(&pool->ledger.place[0].since), 0);
	xr_pool_free(pool);
}

/* --- tasks ---------------------------------------------------------------------------------- */

FORKED_TEST(pool_worker, a_function_sees_that_nobody_waits_for_it)
{
	register_all();
	for (int i = 0; i < 2; i++) {
		struct xr_pool_task t = { .size = sizeof(t), .name = "looks" };
		struct xr_future *f = NULL;

		begin(XR_ENC_COPY);
		NEED(xr_pool_apply_async(pool, &t, &f, NULL) == XR_OK);
		of_looks = i == 0 ? f : NULL;
		work(told(0, 1, "pool", NULL));
		EXPECT_EQ(seen[0], false);
		EXPECT_EQ(seen[1], i == 0);
		EXPECT_EQ(seen[2], true);
		atomic_store(&takes, true);
		EXPECT_EQ(xr_future_wait(f, SOON, NULL, NULL), XR_E_CANCELLED);
		xr_future_unref(f);
		xr_pool_free(pool);
	}
}

/* Nobody else has the arguments of a call once its worker is done. */
static void
expect_kept_alone(enum xr_enc_mode mode, uint64_t flags)
{
	struct xr_value *named = xr_value_new_dict();

	NEED(xr_value_put(named, "key", 3, xr_value_new_i64(1)) == XR_OK);
	begin(mode);
	submit(NAMED, "keeps", numbers(0, 2), named);
	EXPECT_EQ(work(told(flags, 1, "pool", NULL)), XR_OK);
	EXPECT_EQ(xr_value_count(kept[0]), flags == TOLD_CONTEXTS ? 3 : 2);
	EXPECT_EQ(xr_value_count(kept[1]), 1);
	for (int i = 0; i < 2; i++) {
		EXPECT(!node_several(kept[i]));
		xr_value_unref(kept[i]);
	}
	atomic_store(&takes, true);
	EXPECT_EQ(xr_future_wait(future[NAMED], SOON, NULL, &error), XR_OK);
	xr_future_unref(future[NAMED]);
	xr_pool_free(pool);
}

FORKED_TEST(pool_worker, a_worker_gives_up_the_arguments_of_a_call)
{
	register_all();
	expect_kept_alone(XR_ENC_COPY, 0);
	expect_kept_alone(XR_ENC_COPY, TOLD_CONTEXTS);
	expect_kept_alone(XR_ENC_SHARE, TOLD_SHARES);
}

/* Bytes that are no task, and tasks that are not there. */
FORKED_TEST(pool_worker, a_worker_passes_over_what_is_no_task)
{
	const struct xr_pool_task t = { .size = sizeof(t), .name = "counts" };
	struct task_head idle = { .index = 15 }, none = { .index = 16 }, head;
	struct xr_queue_buf buf = { .data = &head, .room = sizeof(head) };
	const struct xr_part strays[] = { { &idle, sizeof(idle) },
		{ &none, sizeof(none) }, { &head, sizeof(head) - 1 },
		{ &head, sizeof(head) } };
	struct xr_future *f = NULL;
	struct xr_value *value = NULL;

	register_all();
	begin(XR_ENC_COPY);
	NEED(xr_pool_apply_async(pool, &t, &f, NULL) == XR_OK);
	NEED(xr_queue_get_bytes(pool->in[0], &buf, 0, NULL) == XR_OK);
	xr_queue_done(pool->in[0]);
	EXPECT_EQ(buf.len, sizeof(head));
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(xr_queue_put_bytes(pool->in[0], strays[i].data,
				  strays[i].len, 0, NULL),
			XR_OK);
	atomic_store(&pool->ledger.head->starved, 1);
	EXPECT_EQ(work(told(0, 1, "pool", NULL)), XR_OK);
	EXPECT_EQ(atomic_load(&pool->ledger.head->starved), 0);
	EXPECT_EQ(xr_queue_count(pool->in[0]), 0);
	EXPECT_EQ(atomic_load(&pool->ledger.place[0].ready), 2);
	EXPECT_EQ(atomic_load(&pool->ledger.place[0].since), 0);
	atomic_store(&takes, true);
	EXPECT_EQ(xr_future_wait(f, SOON, &value, &error), XR_OK);
	EXPECT(is_number(value, 0));
	xr_value_unref(value);
	xr_future_unref(f);
	xr_pool_free(pool);
}
