/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_pool_reply.c - results that are wrong, and tasks that cannot go.
 *
 * The pools have no worker: the test takes their tasks, and answers as one.
 */
#include <xrun/func.h>
#include <xrun/pool.h>

#include "tests/unit/forked.h"
#include "worker/pool/item.h"
#include "worker/pool/job.h"
#include "worker/rpc/future.h"

TestSuite(pool_reply, .timeout = 60);

#define SOON     XR_SECONDS(20)
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct ledger_who us = { 0, 1 };
static struct xr_pool *pool;
static struct xr_error error;

static enum xr_status
nothing(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	return xr_reply(call, xr_value_new_nil());
}

/* --- pools ----------------------------------------------------------------------------- */

static enum xr_status
start_none(struct xr_pool *p, void *ctx, struct xr_error *err)
{
	(void)p;
	(void)ctx;
	(void)err;
	return XR_OK;
}

/* What came last. */
static struct xr_pool_item_info last = { .size = sizeof(last) };
static _Atomic uint32_t gets;

static enum xr_status
get_item(struct xr_pool *p, int64_t timeout, struct xr_pool_item **item,
	void *ctx, struct xr_error *err)
{
	enum xr_status status = xr_pool_outqueue_get(p, timeout, item, err);

	(void)ctx;
	if (status == XR_OK)
		EXPECT_EQ(xr_pool_item_info(*item, &last), XR_OK);
	atomic_fetch_add(&gets, status == XR_OK);
	return status;
}

static struct xr_pool_ops ops = { .size = sizeof(ops),
	.repopulate = start_none };

static void
begin(enum xr_enc_mode mode)
{
	const struct xr_pool_opts o = { .size = sizeof(o),
		.workers = 1,
		.tasks = 4,
		.mode = mode,
		.ops = &ops };
	const struct xr_func func = { .size = sizeof(func),
		.name = "nothing",
		.fn = nothing };

	xr_fn_register(&func, NULL);
	NEED(xr_pool_new(&o, &pool, NULL) == XR_OK);
}

static void
end(void)
{
	EXPECT_EQ(pool->spare_count, 4);
	EXPECT_EQ(atomic_load(&pool->open), 0);
	xr_pool_free(pool);
}

static struct xr_value *
numbers(uint32_t count)
{
	struct xr_value *list = xr_value_new_list();

	for (uint32_t i = 0; i < count; i++)
		NEED(xr_value_append(list, xr_value_new_i64(i)) == XR_OK);
	return list;
}

static struct xr_future *
post_map(uint32_t count, enum xr_status want)
{
	struct xr_pool_task t = { .size = sizeof(t),
		.name = "nothing",
		.flags = XR_POOL_CHUNK,
		.args = numbers(count),
		.chunk = count };
	struct xr_future *f = NULL;

	EXPECT_EQ(xr_pool_map_async(pool, &t, &f, &error), want);
	xr_value_unref(t.args);
	return f;
}

static struct xr_future *
post_call(enum xr_status want)
{
	const struct xr_pool_task t = { .size = sizeof(t), .name = "nothing" };
	struct xr_future *f = NULL;

	memset(&error, 0, sizeof(error));
	EXPECT_EQ(xr_pool_apply_async(pool, &t, &f, &error), want);
	EXPECT_EQ(f != NULL, want == XR_OK);
	return f;
}

static enum xr_status
outcome(struct xr_future *f, struct xr_value **value)
{
	enum xr_status status;

	memset(&error, 0, sizeof(error));
	status = xr_future_wait(f, SOON, value, &error);
	xr_future_unref(f);
	return status;
}

/* --- the worker -------------------------------------------------------------------------- */

/* The next task, which runs now. */
static struct task_head
take(void)
{
	struct xr_queue_buf buf = { 0 };
	struct task_head head;

	NEED(xr_queue_get_bytes(pool->in[0], &buf, SOON, NULL) == XR_OK);
	NEED(buf.len >= sizeof(head));
	memcpy(&head, buf.data, sizeof(head));
	free(buf.data);
	xr_queue_done(pool->in[0]);
	EXPECT(ledger_take(&pool->ledger, head.index, head.gen, us));
	return head;
}

static void
send(const struct load *l)
{
	char data[2048];
	size_t len = 0;

	for (size_t i = 0; i < l->count; i++) {
		memcpy(data + len, l->all[i].data, l->all[i].len);
		len += l->all[i].len;
	}
	EXPECT_EQ(len, l->len);
	EXPECT_EQ(xr_queue_put_bytes(pool->out, data, len, SOON, NULL), XR_OK);
}

static uint64_t took; /* ns, as the worker says */

/* @list is taken: of one that is packed, each item; else all. */
static void
answer(const struct task_head *task, uint32_t count, uint32_t flags,
	struct xr_value *list)
{
	const struct result_head head = { .index = task->index,
		.gen = task->gen,
		.place = 3,
		.count = count,
		.ns = took,
		.flags = flags };
	struct load l;

	load_init(&l);
	if ((flags & ITEM_CODED) != 0)
		EXPECT_EQ(load_code(&l, xr_value_ref(list), NULL), XR_OK);
	for (size_t i = 0; l.encoded == NULL && i < xr_value_count(list); i++)
		EXPECT(pack_add(&l.pack, xr_value_at(list, i)));
	EXPECT_EQ(load_head(&l, &head, sizeof(head)), XR_OK);
	send(&l);
	load_fini(&l);
	xr_value_unref(list);
}

/* --- results that are wrong ---------------------------------------------------------------- */

#define CODED  ITEM_CODED
#define FAILED ITEM_FAILED
#define EACH   ITEM_EACH
#define OOM    XR_E_NOMEM
#define BAD    "its result cannot be read: "
#define NONE   BAD "a result that is none"
#define ANY    BAD "out of memory, or a result that is none"
#define CUT    BAD "a result that is cut short"
#define NO_ERR BAD "an error that is none"

/* The result of a task of two items. */
struct row {
	uint32_t count, flags;
	struct xr_value *list; /* taken */
	enum xr_status status;
	const char *text;
};

static struct xr_value *
lists(struct xr_value *a, struct xr_value *b, struct xr_value *c)
{
	struct xr_value *items[] = { a, b, c };

	return xr_value_new_list_of(items, b == NULL ? 1 : c == NULL ? 2 : 3);
}

static struct xr_value *
failure(const char *text)
{
	return failure_new(XR_E_CLOSED, "%s", text);
}

FORKED_TEST(pool_reply, the_result_of_a_map_is_rejected_if_it_is_wrong)
{
	struct xr_value *one;
	const struct row row[] = {
		{ 2, 0, numbers(2), XR_OK, NULL },
		{ 2, CODED, numbers(2), XR_OK, NULL },
		{ 3, 0, numbers(3), XR_E_PROTO, NONE },
		{ 2, 0, numbers(1), OOM, ANY },
		{ 2, CODED, numbers(1), OOM, ANY },
		{ 1, 0, numbers(1), XR_E_PROTO, CUT },
		{ 0, 0, numbers(0), XR_E_PROTO, CUT },
		{ 1, FAILED, numbers(2), XR_E_PROTO, NO_ERR },
		{ 1, FAILED, numbers(1), XR_E_PROTO, NO_ERR },
		{ 2, CODED | FAILED, numbers(3), XR_E_PROTO, NO_ERR },
		{ 1, CODED | FAILED,
			lists(xr_value_new_i64(0), failure("why"), NULL),
			XR_E_CLOSED, "why" },
		{ 0, CODED | FAILED, lists(failure("why"), NULL, NULL),
			XR_E_CLOSED, "why" },
	};

	begin(XR_ENC_COPY);
	for (size_t i = 0; i < COUNT(row); i++) {
		struct xr_future *f = post_map(2, XR_OK);
		struct task_head task = take();
		struct xr_value *value = NULL;
		enum xr_status status;

		answer(&task, row[i].count, row[i].flags, row[i].list);
		status = outcome(f, &value);
		if (status != row[i].status ||
			(status != XR_OK && strcmp(error.text, row[i].text)))
			forked_note(__LINE__, "row %zu: %s: %s", i,
				xr_status_name(status), error.text);
		one = numbers(2);
		EXPECT(status != XR_OK || xr_value_equal(value, one));
		xr_value_unref(one);
		xr_value_unref(value);
	}
	end();
}

/* What an item takes is a moving average: of a task of which none went well, all that it
 * took. */
FORKED_TEST(pool_reply, how_long_an_item_takes_is_learned_from_each_task)
{
	static const struct {
		uint64_t ns;
		uint32_t done; /* of two */
		double item;   /* ns */
		uint64_t task;
	} row[] = {
		{ 0, 2, 0, 0 },
		{ 1, 2, 0.5, 1 },
		{ 64, 0, 0.5 + 63.5 / 4, (7 * 1 + 64) / 8 },
		{ 16, 1, 16.375 - 0.375 / 4, (7 * 8 + 16) / 8 },
		{ 0, 2, 16.28125, 7 * 9 / 8 },
	};

	begin(XR_ENC_COPY);
	for (size_t i = 0; i < COUNT(row); i++) {
		struct xr_future *f = post_map(2, XR_OK);
		struct task_head task = take();
		const struct entry *func = pool->task[task.index].job->func;
		struct xr_value *list = xr_value_new_list();

		took = row[i].ns;
		for (uint32_t k = 0; k < row[i].done; k++)
			xr_value_append(list, xr_value_new_i64(k));
		if (row[i].done < 2)
			xr_value_append(list, failure("why"));
		answer(&task, row[i].done,
			row[i].done < 2 ? CODED | FAILED : CODED, list);
		EXPECT_EQ(outcome(f, NULL),
			row[i].done < 2 ? XR_E_CLOSED : XR_OK);
		if (!(func->ns == row[i].item) || pool->task_ns != row[i].task)
			forked_note(__LINE__, "row %zu: %g, %llu", i, func->ns,
				(unsigned long long)pool->task_ns);
	}
	end();
}

/* Both of row @number. */
static void
check_items(struct xr_pool_iter *iter, const struct row *row, size_t number)
{
	for (int64_t k = 0; k < 2; k++) {
		struct xr_value *value = NULL;
		int64_t n = k;
		enum xr_status status;

		status = xr_pool_iter_next(iter, SOON, &value, &error);
		if (status != row->status ||
			(status != XR_OK && strcmp(error.text, row->text)))
			forked_note(__LINE__, "row %zu: %s: %s", number,
				xr_status_name(status), error.text);
		if (status == XR_OK)
			xr_value_get_i64(value, &n);
		else
			EXPECT_EQ(xr_value_kind(value), XR_ERROR);
		EXPECT_EQ(n, k);
		xr_value_unref(value);
	}
}

/* Of a task of two: which of them are errors stands before the values. */
FORKED_TEST(pool_reply, the_result_of_an_iterator_is_rejected_if_it_is_wrong)
{
	const struct row row[] = {
		{ 2, CODED | EACH,
			lists(xr_value_new_bytes("\0\0", 2),
				xr_value_new_i64(0), xr_value_new_i64(1)),
			XR_OK, NULL },
		{ 2, 0, numbers(2), XR_OK, NULL },
		{ 2, EACH, lists(xr_value_new_i64(0), numbers(1), numbers(1)),
			XR_E_PROTO, NONE },
		{ 2, CODED | EACH,
			lists(xr_value_new_bytes("\0", 1), xr_value_new_i64(0),
				xr_value_new_i64(1)),
			XR_E_PROTO, NONE },
		{ 2, CODED | EACH,
			lists(xr_value_new_bytes("\0\0\0", 3),
				xr_value_new_i64(0), xr_value_new_i64(1)),
			XR_E_PROTO, NONE },
		{ 2, CODED | EACH,
			lists(xr_value_new_bytes("\1\1", 2), failure("why"),
				failure("why")),
			XR_E_CLOSED, "why" },
		{ 0, EACH | FAILED, numbers(0), XR_E_PROTO, NONE },
		{ 0, FAILED, numbers(0), XR_E_PROTO, NO_ERR },
	};

	begin(XR_ENC_COPY);
	for (size_t i = 0; i < COUNT(row); i++) {
		struct xr_pool_task t = { .size = sizeof(t),
			.name = "nothing",
			.flags = XR_POOL_CHUNK,
			.args = numbers(2),
			.chunk = 2 };
		struct xr_pool_iter *iter = NULL;
		struct task_head task;

		NEED(xr_pool_imap(pool, &t, &iter, NULL) == XR_OK);
		task = take();
		answer(&task, row[i].count, row[i].flags, row[i].list);
		check_items(iter, &row[i], i);
		EXPECT_EQ(xr_pool_iter_next(iter, SOON, NULL, &error),
			XR_E_END);
		xr_pool_iter_free(iter);
		xr_value_unref(t.args);
	}
	end();
}

/* Nor has any of them an effect on the task that it does not name. */
static void
send_strays(const struct task_head *task)
{
	struct task_head stray = *task;
	const struct result_head head = { .index = task->index,
		.gen = task->gen };

	EXPECT_EQ(xr_queue_put_bytes(pool->out, &head, sizeof(head) - 1, SOON,
			  NULL),
		XR_OK);
	stray.index = pool->conf.tasks;
	answer(&stray, 0, 0, numbers(0));
	stray = *task;
	stray.gen++;
	answer(&stray, 0, 0, numbers(0));
	stray = *task;
	stray.index = (stray.index + 1) % pool->conf.tasks;
	answer(&stray, 0, 0, numbers(0));
}

static void
ignore_strays(void)
{
	struct xr_value *value = NULL;
	struct task_head task;
	struct xr_future *f;

	begin(XR_ENC_COPY);
	f = post_call(XR_OK);
	task = take();
	send_strays(&task);
	answer(&task, 1, 0, numbers(1));
	EXPECT_EQ(outcome(f, &value), XR_OK);
	EXPECT_EQ(xr_value_kind(value), XR_I64);
	xr_value_unref(value);
}

FORKED_TEST(pool_reply, results_of_no_task_are_ignored)
{
	ignore_strays();
	end();
}

FORKED_TEST(pool_reply, the_program_sees_of_which_task_a_result_is)
{
	struct xr_future *f;
	struct task_head task;
	uint32_t before;

	ops.outqueue_get = get_item;
	ignore_strays();
	EXPECT_EQ(last.worker, 3);
	EXPECT_EQ(last.count, 1);
	EXPECT_EQ(last.job, 1);
	EXPECT(last.func != NULL && strcmp(last.func, "nothing") == 0);
	f = post_map(2, XR_OK);
	task = take();
	task.gen++;
	before = atomic_load(&gets);
	answer(&task, 2, 0, numbers(2));
	while (atomic_load(&gets) == before)
		EXPECT_EQ(xr_future_wait(f, 0, NULL, &error), XR_E_TIMEOUT);
	EXPECT_EQ(last.worker, 3);
	EXPECT_EQ(last.count, 0);
	EXPECT_EQ(last.job, 0);
	EXPECT(last.func == NULL);
	task.gen--;
	answer(&task, 2, 0, numbers(2));
	EXPECT_EQ(outcome(f, NULL), XR_OK);
	EXPECT_EQ(last.count, 2);
	EXPECT_EQ(last.job, 2);
	end();
}

/* --- by reference -------------------------------------------------------------------------- */

static struct task_head
take_shared_task(void)
{
	struct xr_value *item = NULL, *list;
	struct task_head head = { 0 };

	NEED(xr_queue_get(pool->in[0], &item, SOON, NULL) == XR_OK);
	EXPECT(share_head(item, &head, sizeof(head), &list));
	xr_value_unref(item);
	xr_queue_done(pool->in[0]);
	EXPECT(ledger_take(&pool->ledger, head.index, head.gen, us));
	return head;
}

static void
answer_shared(const struct task_head *task, uint32_t count, size_t len)
{
	const struct result_head head = { .index = task->index,
		.gen = task->gen,
		.place = 3,
		.count = count };
	struct xr_value *item = share_item(&head, len, numbers(count));

	EXPECT_EQ(xr_queue_put(pool->out, item, SOON, NULL), XR_OK);
	xr_value_unref(item);
}

static void
share(void)
{
	struct xr_value *value = NULL, *want = numbers(2);
	struct task_head task, stray;
	struct xr_future *f;

	begin(XR_ENC_SHARE);
	f = post_map(2, XR_OK);
	stray = task = take_shared_task();
	answer_shared(&task, 2, sizeof(struct result_head) - 1);
	stray.gen++;
	answer_shared(&stray, 2, sizeof(struct result_head));
	answer_shared(&task, 2, sizeof(struct result_head));
	EXPECT_EQ(outcome(f, &value), XR_OK);
	EXPECT(xr_value_equal(value, want));
	xr_value_unref(value);
	f = post_map(2, XR_OK);
	task = take_shared_task();
	answer_shared(&task, 1, sizeof(struct result_head));
	EXPECT_EQ(outcome(f, NULL), XR_E_PROTO);
	EXPECT_STR(error.text, CUT);
	xr_value_unref(want);
}

FORKED_TEST(pool_reply, shared_results_that_are_wrong_are_rejected)
{
	share();
	end();
}

FORKED_TEST(pool_reply, the_program_takes_shared_results)
{
	ops.outqueue_get = get_item;
	share();
	EXPECT_EQ(last.worker, 3);
	EXPECT_EQ(last.count, 2);
	EXPECT_EQ(last.job, 2);
	end();
}

/* --- no more results ------------------------------------------------------------------------- */

static enum xr_status status_of_get;
static const char *text_of_get;

static enum xr_status
get_none(struct xr_pool *p, int64_t timeout, struct xr_pool_item **item,
	void *ctx, struct xr_error *err)
{
	(void)p;
	(void)timeout;
	(void)item;
	(void)ctx;
	return text_of_get != NULL ?
		xr_error_set(err, status_of_get, text_of_get) :
		status_of_get;
}

FORKED_TEST(pool_reply, without_results_all_that_is_open_fails_with_the_reason)
{
	const struct {
		enum xr_status status;
		const char *text, *want;
	} row[] = {
		{ XR_E_SYS, "no queue", "no queue" },
		{ XR_E_PROTO, NULL, NULL },
	};

	for (size_t i = 0; i < COUNT(row); i++) {
		struct xr_future *f;

		ops.outqueue_get = get_none;
		status_of_get = row[i].status;
		text_of_get = row[i].text;
		begin(XR_ENC_COPY);
		f = post_call(XR_OK);
		EXPECT_EQ(outcome(f, NULL), row[i].status);
		EXPECT_STR(error.text,
			row[i].want != NULL ? row[i].want :
					      xr_status_text(row[i].status));
		EXPECT_EQ(xr_pool_state(pool), XR_POOL_TERMINATED);
		EXPECT(post_call(row[i].status) == NULL);
		xr_pool_free(pool);
	}
}

/* --- tasks that cannot go ---------------------------------------------------------------------- */

static enum {
	REFUSE,
	REFUSE_AND_RUN, /* a worker has it all the same */
	CANCEL,
	CANCEL_AND_REFUSE,
	CANCEL_AND_RUN,
} act;

static enum xr_status status_of_put;

/* As one that has a task of an earlier process. */
static enum xr_status
put_otherwise(struct xr_pool *p, struct xr_pool_item *item, void *ctx,
	struct xr_error *err)
{
	enum xr_status status = XR_OK;
	struct job *job;

	(void)ctx;
	if (act != REFUSE && act != CANCEL_AND_REFUSE)
		status = xr_pool_inqueue_put(p, item, err);
	if (act == REFUSE_AND_RUN || act == CANCEL_AND_RUN)
		take();
	if (act >= CANCEL) {
		job = p->task[item->index].job;
		EXPECT_EQ(xr_future_cancel(job->future), XR_OK);
	}
	return act == CANCEL || act == CANCEL_AND_RUN ?
		status :
		xr_error_set(err, status_of_put, "it does not go");
}

FORKED_TEST(pool_reply, a_task_that_cannot_be_put_ends_with_the_reason)
{
	const enum xr_status statuses[] = { XR_E_SYS, XR_E_CLOSED };
	struct xr_future *f;

	ops.inqueue_put = put_otherwise;
	begin(XR_ENC_COPY);
	for (size_t i = 0; i < COUNT(statuses); i++) {
		act = REFUSE;
		status_of_put = statuses[i];
		post_call(statuses[i]);
		EXPECT_STR(error.text, "it does not go");
		f = post_map(2, XR_OK);
		EXPECT_EQ(outcome(f, NULL), statuses[i]);
		EXPECT_STR(error.text, "it does not go");
	}
	end();
}

FORKED_TEST(pool_reply, a_task_that_a_worker_has_was_put)
{
	struct task_head task = { 0 };
	struct xr_future *f;

	ops.inqueue_put = put_otherwise;
	begin(XR_ENC_COPY);
	act = REFUSE_AND_RUN;
	status_of_put = XR_E_SYS;
	f = post_call(XR_OK);
	task.index = pool->spare[pool->spare_count];
	task.gen = pool->task[task.index].gen;
	answer(&task, 1, 0, numbers(1));
	EXPECT_EQ(outcome(f, NULL), XR_OK);
	end();
}

FORKED_TEST(pool_reply, a_call_that_is_cancelled_while_it_is_put_is_spare_again)
{
	ops.inqueue_put = put_otherwise;
	status_of_put = XR_E_SYS;
	for (act = CANCEL; act <= CANCEL_AND_REFUSE; act++) {
		begin(XR_ENC_COPY);
		for (int i = 0; i < 2; i++)
			EXPECT_EQ(outcome(post_call(XR_OK), NULL),
				XR_E_CANCELLED);
		end();
	}
}

/* Until its worker answers, which nobody waits for. */
FORKED_TEST(pool_reply, a_call_that_is_cancelled_while_it_runs_is_not_spare)
{
	struct task_head task = { 0 };

	ops.inqueue_put = put_otherwise;
	act = CANCEL_AND_RUN;
	begin(XR_ENC_COPY);
	EXPECT_EQ(outcome(post_call(XR_OK), NULL), XR_E_CANCELLED);
	EXPECT_EQ(pool->spare_count, 3);
	task.index = pool->spare[3];
	task.gen = pool->task[task.index].gen;
	answer(&task, 1, 0, numbers(1));
	xr_pool_free(pool);
}
