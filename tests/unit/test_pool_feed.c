/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_feed.c - which tasks of a pool are put next, as what, and what becomes of those that
 * cannot go. */
#include "base/status.h"
#include "tests/unit/made_pool.h"
#include "tests/unit/short_memory.h"

TestSuite(pool_feed, .timeout = 60);

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* --- the program puts them ----------------------------------------------------------------- */

#define PUTS 20

static struct xr_pool_item_info info[PUTS];
static enum xr_status says[PUTS]; /* of each, in turn */
static unsigned puts_made;
static bool starved[PUTS], hungry[PUTS]; /* when it was put */

static enum xr_status
put(struct xr_pool *pool, struct xr_pool_item *item, void *ctx,
	struct xr_error *err)
{
	unsigned n = puts_made++;

	EXPECT(pool == &made && ctx == info);
	NEED(n < PUTS);
	info[n].size = sizeof(info[n]);
	EXPECT_EQ(xr_pool_item_info(item, &info[n]), XR_OK);
	EXPECT_EQ(ledger_phase(made.ledger.task[item->index].word),
		LEDGER_WAITING);
	EXPECT(!made.starves || made.ledger.head->starved == 1);
	starved[n] = made.starves;
	hungry[n] = made.hungry;
	return says[n] == XR_OK ? XR_OK : fail(err, says[n], "put %u", n);
}

static void
begin(void)
{
	make_pool();
	made.ops.inqueue_put = put;
	made.ops.ctx = info;
	memset(info, 0, sizeof(info));
	memset(says, 0, sizeof(says));
	puts_made = 0;
}

static struct job *
listed(enum job_kind kind, size_t count, size_t chunk)
{
	struct job *job = made_job(kind, count, chunk);

	job_list(job);
	return job;
}

static void
abandon(struct job *job)
{
	job_nobody(job);
	xr_future_unref(job->mine);
	job_unref(job);
}

FORKED_TEST(pool_feed, calls_go_before_maps_and_both_in_their_order)
{
	static const uint64_t want[] = { 2, 4, 1, 1, 1, 3 };
	static const uint64_t first[] = { 0, 0, 0, 2, 4, 0 };
	static const uint32_t count[] = { 1, 1, 2, 2, 1, 1 };
	struct job *job[4];

	begin();
	job[0] = listed(JOB_MAP, 5, 2);
	job[1] = listed(JOB_APPLY, 0, 1);
	job[2] = listed(JOB_MAP, 1, 7);
	job[3] = listed(JOB_APPLY, 0, 1);
	EXPECT_EQ(made.unfed, 6);
	__real_feed(&made);
	EXPECT_EQ(puts_made, 6);
	for (size_t i = 0; i < COUNT(want); i++) {
		EXPECT_EQ(info[i].size, sizeof(info[i]));
		EXPECT_EQ(info[i].job, want[i]);
		EXPECT_EQ(info[i].first, first[i]);
		EXPECT_EQ(info[i].count, count[i]);
		EXPECT_STR(info[i].func, "made");
		EXPECT_EQ(info[i].worker, i % 2);
		EXPECT(!starved[i]);
	}
	EXPECT(!made.hungry && TAILQ_EMPTY(&made.waiting));
	EXPECT_EQ(made.unfed, 0);
	EXPECT_EQ(made.open, 6);
	EXPECT_EQ(made_row.open, 6);
	EXPECT_EQ(made.map_tasks, 4);
	for (int i = 0; i < 4; i++) {
		EXPECT(!job[i]->is_waiting);
		abandon(job[i]);
	}
	unmake_pool();
}

/* So many tasks are of maps. */
FORKED_TEST(pool_feed, some_tasks_are_left_to_calls)
{
	const struct {
		uint32_t workers, tasks, most;
	} row[] = { { 2, 8, 6 }, { 2, 9, 7 }, { 2, 1000, 64 }, { 4, 1000, 64 },
		{ 5, 1000, 80 }, { 10, 100, 75 }, { 1, 1, 1 } };
	struct job *job;

	for (size_t i = 0; i < COUNT(row); i++) {
		begin();
		job = listed(JOB_MAP, 3, 1);
		made.conf.workers = row[i].workers;
		made.conf.tasks = row[i].tasks;
		made.map_tasks = row[i].most;
		__real_feed(&made);
		EXPECT_EQ(puts_made, 0);
		EXPECT(made.hungry && job->is_waiting);
		made.map_tasks = row[i].most - 1;
		__real_feed(&made);
		EXPECT_EQ(puts_made, 1);
		EXPECT_EQ(job->next, 1);
		made.map_tasks = 1;
		made.conf.workers = MADE_WORKERS;
		made.conf.tasks = MADE_TASKS;
		abandon(job);
		unmake_pool();
	}
}

FORKED_TEST(pool_feed, what_finds_no_room_is_put_again_once_and_then_waits)
{
	struct job *job;
	struct task *t;

	begin();
	job = listed(JOB_MAP, 2, 1);
	says[0] = says[1] = XR_E_AGAIN;
	__real_feed(&made);
	EXPECT_EQ(puts_made, 2);
	EXPECT(!starved[0] && starved[1]);
	EXPECT_EQ(info[1].first, 0);
	t = TAILQ_FIRST(&made.again);
	NEED(t != NULL);
	EXPECT(t->is_again && made.hungry);
	EXPECT_EQ(ledger_phase(made.ledger.task[t - made_task].word),
		LEDGER_FREE);
	EXPECT_EQ(job->next, 1);
	EXPECT_EQ(t->feeding, 0);
	feed_room(&made);
	EXPECT_EQ(puts_made, 4);
	EXPECT(!starved[2] && !starved[3] && !made.starves);
	EXPECT_EQ(info[2].first, 0);
	EXPECT_EQ(info[3].first, 1);
	EXPECT(!t->is_again && TAILQ_EMPTY(&made.again) && !made.hungry);
	EXPECT_EQ(nudges, 1);
	abandon(job);
	unmake_pool();
}

/* That somebody else looks, too. */
FORKED_TEST(pool_feed, there_is_something_to_be_put_until_all_is)
{
	struct task *t[2];
	struct job *call, *map;

	begin();
	map = listed(JOB_MAP, 3, 1);
	call = listed(JOB_APPLY, 0, 1);
	for (int i = 0; i < 2; i++) {
		t[i] = made_take(map);
		t[i]->is_again = true;
		TAILQ_INSERT_TAIL(&made.again, t[i], list);
	}
	made.spare_count = 0;
	__real_feed(&made);
	EXPECT_EQ(puts_made, 2);
	EXPECT(made.hungry && call->is_waiting && map->is_waiting);
	made.spare_count = 1;
	__real_feed(&made);
	EXPECT_EQ(puts_made, 3);
	EXPECT_EQ(info[2].job, 2);
	EXPECT(made.hungry && !call->is_waiting && map->is_waiting);
	TAILQ_REMOVE(&made.waiting, map, waits);
	map->is_waiting = false;
	for (int i = 0; i < 2; i++) {
		t[i]->is_again = true;
		TAILQ_INSERT_TAIL(&made.again, t[i], list);
	}
	__real_feed(&made);
	EXPECT_EQ(puts_made, 5);
	EXPECT(hungry[3] && !hungry[4] && !made.hungry);
	made.unfed = 0;
	made_row.open -= 1;
	made.spare_count = MADE_TASKS - 3;
	abandon(map);
	abandon(call);
	unmake_pool();
}

FORKED_TEST(pool_feed, all_who_wait_for_room_try_again_when_there_may_be_some)
{
	struct room a = { .need = 1 }, b = { .need = 8 };

	begin();
	feed_starve(&made);
	EXPECT(made.starves && made.ledger.head->starved == 1);
	feed_told(&made);
	EXPECT(made.starves);
	TAILQ_INSERT_TAIL(&made.rooms, &a, list);
	TAILQ_INSERT_TAIL(&made.rooms, &b, list);
	made.ledger.head->starved = 0;
	feed_told(&made);
	EXPECT(!made.starves && TAILQ_EMPTY(&made.rooms));
	EXPECT(waiter_is_done(&a.waiter) && waiter_is_done(&b.waiter));
	EXPECT_EQ(nudges, 1);
	feed_told(&made);
	EXPECT_EQ(nudges, 1);
	unmake_pool();
}

/* A closed queue is what ended the pool; and the program's, if nothing has. */
FORKED_TEST(pool_feed, a_task_that_cannot_go_ends_with_the_reason)
{
	const struct {
		enum xr_status says;
		enum xr_pool_state state;
		bool failed;
		enum xr_status want;
		const char *text;
	} row[] = {
		{ XR_E_SYS, XR_POOL_RUNNING, false, XR_E_SYS, "put 0" },
		{ XR_E_SYS, XR_POOL_TERMINATED, true, XR_E_SYS, "put 0" },
		{ XR_E_CLOSED, XR_POOL_CLOSED, false, XR_E_CLOSED, "put 0" },
		{ XR_E_CLOSED, XR_POOL_TERMINATED, false, XR_E_CANCELLED,
			"the pool was terminated" },
		{ XR_E_CLOSED, XR_POOL_TERMINATED, true, XR_E_STATE, "broken" },
	};
	struct job *job;

	for (size_t i = 0; i < COUNT(row); i++) {
		begin();
		job = listed(JOB_MAP, 2, 1);
		says[0] = row[i].says;
		made.state = row[i].state;
		if (row[i].failed)
			made.failure = failure_new(XR_E_STATE, "broken");
		__real_feed(&made);
		EXPECT_EQ(puts_made, 2);
		EXPECT_EQ(job->left, 1);
		EXPECT_EQ(job->tasks, 1);
		memset(&error, 0, sizeof(error));
		EXPECT_EQ(failure_status(job->error, &error), row[i].want);
		EXPECT_STR(error.text, row[i].text);
		abandon(job);
		xr_value_unref(made.failure);
		unmake_pool();
	}
}

/* --- what is put ---------------------------------------------------------------------------- */

static struct xr_queue *queue[3]; /* two in, one out */

static void
begin_queues(enum xr_queue_kind kind)
{
	const struct xr_queue_opts o = { .size = sizeof(o),
		.kind = kind,
		.items = 64 };

	make_pool();
	for (int i = 0; i < 2; i++)
		NEED(xr_queue_new(&o, &queue[i], NULL) == XR_OK);
	made.in = queue;
	made_entry.at = 4096;
	made_entry.len = 77;
	made_entry.index = 5;
	made_entry.serial = 9;
	for (int i = 0; i < 2; i++)
		pthread_mutex_init(&made_place[i].puts, NULL);
}

static void
end_queues(void)
{
	for (int i = 0; i < 2; i++)
		xr_queue_free(queue[i]);
	unmake_pool();
}

static struct task_head
get(struct xr_queue *q, struct unload *u, struct xr_queue_buf *buf)
{
	struct task_head head = { 0 };

	NEED(xr_queue_get_bytes(q, buf, 0, &error) == XR_OK);
	NEED(buf->len >= sizeof(head));
	memcpy(&head, buf->data, sizeof(head));
	EXPECT_EQ(unload_init(u, (char *)buf->data + sizeof(head),
			  buf->len - sizeof(head), head.flags, NULL),
		XR_OK);
	return head;
}

static int64_t
next(struct unload *u)
{
	struct xr_value *v = unload_next(u);
	int64_t n = -1;

	EXPECT_EQ(xr_value_get_i64(v, &n), XR_OK);
	xr_value_unref(v);
	return n;
}

static void
expect_head(const struct task_head *h, uint32_t index, uint32_t count,
	enum item_form form, uint32_t flags)
{
	EXPECT_EQ(h->index, index);
	EXPECT_EQ(h->gen, made_task[index].gen);
	EXPECT_EQ(h->at, 4096);
	EXPECT_EQ(h->len, 77);
	EXPECT_EQ(h->entry, 5);
	EXPECT_EQ(h->serial, 9);
	EXPECT_EQ(h->count, count);
	EXPECT_EQ(h->form, form);
	EXPECT_EQ(h->flags, flags);
}

/* Of a list of items from 0 on, or of all arguments of a call. */
static void
put_and_see(struct job *job, struct xr_queue *in, uint32_t flags,
	uint32_t count)
{
	struct task *t = made_take(job);
	uint32_t index = (uint32_t)(t - made_task);
	struct xr_queue_buf buf = { 0 };
	struct xr_value *named;
	struct task_head head;
	struct unload u;

	EXPECT_EQ(feed_one(&made, index, &error), XR_OK);
	head = get(in, &u, &buf);
	expect_head(&head, index, count, job->form, flags);
	for (uint32_t i = 0; i < count; i++)
		EXPECT_EQ(next(&u), (int64_t)(t->first + i));
	if ((flags & ITEM_NAMED) != 0) {
		named = unload_next(&u);
		EXPECT_EQ(xr_value_kind(named), XR_DICT);
		xr_value_unref(named);
	}
	EXPECT(unload_next(&u) == NULL);
	unload_fini(&u);
	free(buf.data);
}

FORKED_TEST(pool_feed, a_task_says_of_which_function_it_is_and_has_its_values)
{
	struct job *map, *call, *iter;

	begin_queues(XR_QUEUE_ANY);
	map = made_job(JOB_MAP, 5, 2);
	call = made_job(JOB_APPLY, 3, 1);
	call->form = ITEM_APPLY;
	iter = made_job(JOB_ITER, 2, 2);
	iter->form = ITEM_STARMAP;
	put_and_see(map, queue[0], 0, 2);
	put_and_see(call, queue[1], 0, 3);
	put_and_see(map, queue[0], 0, 2);
	put_and_see(map, queue[1], 0, 1);
	made.in_count = 1;
	made_task[4].place = 1; /* of an earlier one */
	put_and_see(iter, queue[0], ITEM_EACH, 2);
	feed_give_back(&made, 4);
	made.in_count = 2;
	for (uint32_t i = 0; i < 4; i++)
		feed_give_back(&made, i);
	job_give_up(map);
	job_give_up(call);
	job_unref(iter);
	end_queues();
}

/* With named arguments, or in more bytes than are packed. */
FORKED_TEST(pool_feed, what_is_not_plain_is_coded)
{
	static char data[(1 << 17) + 1];
	struct xr_value *items[4];
	struct xr_queue_buf buf = { 0 };
	struct task_head head;
	struct xr_value *v;
	struct unload u;
	struct job *job;
	size_t len = 0;

	begin_queues(XR_QUEUE_P2P);
	job = made_job(JOB_APPLY, 2, 1);
	job->form = ITEM_APPLY;
	job->named = xr_value_new_dict();
	put_and_see(job, queue[0], ITEM_CODED | ITEM_NAMED, 2);
	EXPECT_EQ(pthread_mutex_trylock(&made_place[0].puts), 0);
	pthread_mutex_unlock(&made_place[0].puts);
	feed_give_back(&made, 0);
	job_give_up(job);
	/* The second and third of four. */
	for (size_t i = 0; i < COUNT(items); i++)
		items[i] = xr_value_new_bytes(data, sizeof(data) + 1 - i);
	job = made_job_of(JOB_MAP, xr_value_new_list_of(items, COUNT(items)),
		2);
	job->next = 1;
	made_take(job);
	EXPECT_EQ(feed_one(&made, 0, &error), XR_OK);
	head = get(queue[0], &u, &buf);
	expect_head(&head, 0, 2, ITEM_MAP, ITEM_CODED);
	for (size_t i = 0; i < 2; i++) {
		v = unload_next(&u);
		EXPECT(xr_value_data(v, &len) != NULL);
		EXPECT_EQ(len, sizeof(data) - i);
		xr_value_unref(v);
	}
	EXPECT(unload_next(&u) == NULL);
	unload_fini(&u);
	free(buf.data);
	feed_give_back(&made, 0);
	job_give_up(job);
	end_queues();
}

FORKED_TEST(pool_feed, of_a_mates_task_the_head_is_put)
{
	struct xr_queue_buf buf = { 0 };
	struct task_head head;
	struct unload u;
	struct job *job;

	begin_queues(XR_QUEUE_ANY);
	made.by_mates = true;
	job = made_job(JOB_MAP, 3, 3);
	made_take(job);
	EXPECT_EQ(feed_one(&made, 0, &error), XR_OK);
	head = get(queue[0], &u, &buf);
	expect_head(&head, 0, 3, ITEM_MAP, 0);
	EXPECT_EQ(buf.len, sizeof(head));
	free(buf.data);
	/* There is room for 64. */
	for (int i = 0; i < 64; i++)
		NEED(xr_queue_put_bytes(queue[0], "", 1, 0, NULL) == XR_OK);
	EXPECT_EQ(feed_one(&made, 0, &error), XR_E_AGAIN);
	made.by_mates = false;
	EXPECT_EQ(feed_one(&made, 0, &error), XR_E_AGAIN);
	made.conf.mode = XR_ENC_SHARE;
	EXPECT_EQ(feed_one(&made, 0, &error), XR_E_AGAIN);
	feed_give_back(&made, 0);
	job_give_up(job);
	end_queues();
}

FORKED_TEST(pool_feed, a_shared_task_has_a_head_and_its_values)
{
	struct xr_value *item = NULL, *list = NULL;
	struct task_head head;
	struct job *job;

	begin_queues(XR_QUEUE_ANY);
	made.conf.mode = XR_ENC_SHARE;
	job = made_job(JOB_MAP, 3, 2);
	job->next = 1;
	made_place[0].tasks = 1;
	made_take(job);
	EXPECT_EQ(feed_one(&made, 0, &error), XR_OK);
	NEED(xr_queue_get(queue[1], &item, 0, NULL) == XR_OK);
	NEED(share_head(item, &head, sizeof(head), &list));
	expect_head(&head, 0, 2, ITEM_MAP, 0);
	EXPECT_EQ(xr_value_count(list), 2);
	xr_value_unref(item);
	for (unsigned n = 1; n < 4; n++) {
		until_short = n;
		EXPECT_EQ(feed_one(&made, 0, &error), XR_E_NOMEM);
		until_short = 0;
		EXPECT_STR(error.text, "out of memory");
	}
	feed_give_back(&made, 0);
	made_place[0].tasks = 0;
	job_give_up(job);
	end_queues();
}
