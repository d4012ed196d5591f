/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_short.c - pools while memory is short. */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>

#include <xrun/func.h>
#include <xrun/pool.h>
#include <xrun/proc.h>

#include "base/clock.h"
#include "tests/unit/forked.h"
#include "tests/unit/short_memory.h"
#include "worker/pool/book.h"
#include "worker/pool/page.h"

TestSuite(pool_short, .timeout = 120);

#define SOON        XR_SECONDS(10)
#define ALLOCATIONS 1000 /* there are less */
#define ITEMS       10
#define CALLS       3

static _Atomic uint32_t heard; /* callbacks */
static struct xr_error error;

/* --- functions ------------------------------------------------------------------------- */

static enum xr_status
add_one(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_value *sum;
	int64_t n = 0;

	(void)ctx;
	xr_value_get_i64(xr_value_at(args, 0), &n);
	sum = xr_value_new_i64(n + 1);
	return sum != NULL ? xr_reply(call, sum) : XR_E_NOMEM;
}

static enum xr_status
hear(struct xr_value *value, void *ctx)
{
	(void)value;
	(void)ctx;
	atomic_fetch_add(&heard, 1);
	return XR_OK;
}

/* --- what is left ---------------------------------------------------------------------- */

static int
entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	NEED(dir != NULL);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

struct rest {
	int fds, threads;
};

static struct rest
rest_now(void)
{
	return (struct rest){ .fds = entries("/proc/self/fd"),
		.threads = entries("/proc/self/task") };
}

/* No more than there was; threads take a moment to end. */
static bool
is_clean(const struct rest *before)
{
	int64_t until = clock_now() + SOON;
	struct rest now;

	do {
		now = rest_now();
		if (now.fds <= before->fds && now.threads <= before->threads)
			return true;
		sched_yield();
	} while (clock_now() < until);
	return false;
}

/* --- what is done ---------------------------------------------------------------------- */

static enum xr_pool_kind kind;

/* NULL: no memory. */
static struct xr_value *
list_of(int64_t count)
{
	struct xr_value *list = xr_value_new_list();

	for (int64_t i = 0; i < count && list != NULL; i++)
		if (xr_value_append(list, xr_value_new_i64(i)) != XR_OK) {
			xr_value_unref(list);
			list = NULL;
		}
	return list;
}

static bool
is_number(const struct xr_value *value, int64_t want)
{
	int64_t n = -1;

	return xr_value_get_i64(value, &n) == XR_OK && n == want;
}

/* The future ends, well, and with that; or for want of memory. */
static enum xr_status
end_one(struct xr_future *future)
{
	struct xr_value *value = NULL;
	enum xr_status status = xr_future_wait(future, SOON, &value, &error);

	EXPECT(status != XR_OK || is_number(value, 1));
	xr_value_unref(value);
	xr_future_unref(future);
	return status;
}

/* Of several none is lost, whatever became of the others. */
static enum xr_status
call(struct xr_pool *pool)
{
	struct xr_pool_task t = { .size = sizeof(t),
		.name = "add_one",
		.callback = hear,
		.error_callback = hear };
	enum xr_status first = XR_OK, status;
	struct xr_future *future[CALLS];
	uint32_t n = 0;

	t.args = list_of(1);
	if (t.args == NULL)
		return XR_E_NOMEM;
	atomic_store(&heard, 0);
	for (int i = 0; i < CALLS; i++) {
		status = xr_pool_apply_async(pool, &t, &future[n], &error);
		first = first == XR_OK ? status : first;
		n += status == XR_OK;
	}
	for (uint32_t i = 0; i < n; i++) {
		status = end_one(future[i]);
		first = first == XR_OK ? status : first;
	}
	xr_value_unref(t.args);
	EXPECT_EQ(heard, n);
	return first;
}

static enum xr_status
map(struct xr_pool *pool)
{
	struct xr_pool_task t = { .size = sizeof(t),
		.name = "add_one",
		.flags = XR_POOL_CHUNK,
		.chunk = 3 };
	struct xr_future *future;
	struct xr_value *value = NULL;
	enum xr_status status;

	t.args = list_of(ITEMS);
	if (t.args == NULL)
		return XR_E_NOMEM;
	status = xr_pool_map_async(pool, &t, &future, &error);
	if (status == XR_OK) {
		status = xr_future_wait(future, SOON, &value, &error);
		for (int64_t i = 0; i < ITEMS && status == XR_OK; i++)
			EXPECT(is_number(xr_value_at(value, (size_t)i), i + 1));
		xr_value_unref(value);
		xr_future_unref(future);
	}
	xr_value_unref(t.args);
	return status;
}

/* Each item once, or its error. */
static enum xr_status
iterate(struct xr_pool *pool)
{
	struct xr_pool_task t = { .size = sizeof(t), .name = "add_one" };
	struct xr_pool_iter *iter;
	enum xr_status status, first = XR_OK;
	struct xr_value *value;
	uint32_t n = 0;

	t.args = list_of(ITEMS);
	if (t.args == NULL)
		return XR_E_NOMEM;
	status = xr_pool_imap(pool, &t, &iter, &error);
	xr_value_unref(t.args);
	if (status != XR_OK)
		return status;
	for (;;) {
		value = NULL;
		status = xr_pool_iter_next(iter, SOON, &value, &error);
		if (status == XR_E_END || status == XR_E_TIMEOUT)
			break;
		EXPECT(status != XR_OK || is_number(value, n + 1));
		first = first == XR_OK ? status : first;
		xr_value_unref(value);
		n++;
	}
	EXPECT_EQ(status, XR_E_END);
	EXPECT_EQ(n, ITEMS);
	xr_pool_iter_free(iter);
	return first;
}

static enum xr_status
all_of_it(void)
{
	const struct xr_pool_opts opts = {
		.size = sizeof(opts),
		.kind = kind,
		.workers = 2,
		.method = kind == XR_POOL_PROCESSES ? "fork" : NULL,
	};
	enum xr_status status, next;
	struct xr_pool *pool;

	status = xr_pool_new(&opts, &pool, &error);
	if (status != XR_OK)
		return status;
	status = call(pool);
	next = map(pool);
	status = status == XR_OK ? next : status;
	next = iterate(pool);
	status = status == XR_OK ? next : status;
	xr_pool_close(pool);
	next = xr_pool_join(pool, SOON, &error);
	status = status == XR_OK ? next : status;
	xr_pool_free(pool);
	return status;
}

/* Those of workers are their own. */
static void
have_enough(void)
{
	until_short = 0;
}

static void
fail_each(void)
{
	const struct xr_func func = { .size = sizeof(func),
		.name = "add_one",
		.fn = add_one };
	unsigned failed = 0, n = 1;
	enum xr_status status;
	struct rest before;

	pthread_atfork(NULL, NULL, have_enough);
	EXPECT_EQ(xr_fn_register(&func, NULL), XR_OK);
	EXPECT_EQ(all_of_it(), XR_OK);
	before = rest_now();
	do {
		was_short = false;
		until_short = n++;
		status = all_of_it();
		until_short = 0;
		if (status != XR_OK && (status != XR_E_NOMEM || !was_short))
			forked_note(__LINE__, "allocation %u: %s: %s", n - 1,
				xr_status_name(status), error.text);
		if (!is_clean(&before))
			forked_note(__LINE__, "allocation %u: left", n - 1);
		failed += status != XR_OK;
	} while (was_short && n < ALLOCATIONS && forked_wrong < 10);
	EXPECT(!was_short);
	EXPECT(failed > 40);
	EXPECT_EQ(all_of_it(), XR_OK);
}

FORKED_TEST(pool_short, of_threads_each_allocation_may_fail)
{
	kind = XR_POOL_THREADS;
	fail_each();
}

FORKED_TEST(pool_short, of_processes_each_allocation_may_fail)
{
	kind = XR_POOL_PROCESSES;
	fail_each();
}

/* --- what a worker reads ---------------------------------------------------------------- */

static enum xr_status
read_page(int book, const struct task_head *task)
{
	struct pages pages = { .book = book };
	const struct page *page = pages_find(&pages, task);
	enum xr_status status = page == NULL ? XR_E_NOMEM : page->status;

	EXPECT(status != XR_OK || page->func != NULL);
	pages_fini(&pages);
	return status;
}

FORKED_TEST(pool_short, a_worker_reads_a_function_or_has_no_memory)
{
	const struct xr_func func = { .size = sizeof(func),
		.name = "add_one",
		.fn = add_one };
	struct entry *entry;
	struct book book;
	struct task_head task;
	unsigned n = 1;

	NEED(xr_fn_register(&func, NULL) == XR_OK);
	NEED(book_init(&book, NULL) == XR_OK);
	NEED(book_find(&book, "add_one", NULL, &entry, NULL) == XR_OK);
	task = (struct task_head){ .at = entry->at,
		.len = entry->len,
		.entry = entry->index,
		.serial = entry->serial };
	EXPECT_EQ(read_page(book.fd, &task), XR_OK);
	do {
		was_short = false;
		until_short = n++;
		EXPECT_EQ(read_page(book.fd, &task),
			was_short ? XR_E_NOMEM : XR_OK);
		until_short = 0;
	} while (was_short && n < ALLOCATIONS);
	EXPECT(n > 3);
	EXPECT_EQ(ftruncate(book.fd, (off_t)(entry->at + entry->len - 1)), 0);
	EXPECT_EQ(read_page(book.fd, &task), XR_E_PROTO);
	book_release(entry);
	book_fini(&book);
}

/* --- what a call costs ------------------------------------------------------------------ */

static _Atomic bool is_held, holds;

static enum xr_status
hold(struct xr_call *call, struct xr_value *args, void *ctx)
{
	int64_t until = clock_now() + SOON;

	(void)args;
	(void)ctx;
	atomic_store(&holds, true);
	while (atomic_load(&is_held) && clock_now() < until)
		sched_yield();
	return xr_reply(call, xr_value_new_nil());
}

/* Of a call that waits, while no thread of the pool does anything. */
static unsigned
allocations_of(struct xr_pool *pool, xr_pool_fn *callback)
{
	struct xr_pool_task t = { .size = sizeof(t),
		.name = "hold",
		.callback = callback };
	struct xr_future *held, *next;
	int64_t until = clock_now() + SOON;
	unsigned n;

	atomic_store(&is_held, true);
	atomic_store(&holds, false);
	NEED(xr_pool_apply_async(pool, &t, &held, &error) == XR_OK);
	while (!atomic_load(&holds) && clock_now() < until)
		sched_yield();
	until_short = ALLOCATIONS;
	NEED(xr_pool_apply_async(pool, &t, &next, &error) == XR_OK);
	n = ALLOCATIONS - until_short;
	until_short = 0;
	atomic_store(&is_held, false);
	EXPECT_EQ(xr_future_wait(held, SOON, NULL, &error), XR_OK);
	EXPECT_EQ(xr_future_wait(next, SOON, NULL, &error), XR_OK);
	xr_future_unref(held);
	xr_future_unref(next);
	return n;
}

FORKED_TEST(pool_short, a_call_without_callbacks_allocates_a_future_only)
{
	const struct xr_func func = { .size = sizeof(func),
		.name = "hold",
		.fn = hold };
	const struct xr_pool_opts opts = { .size = sizeof(opts),
		.kind = XR_POOL_THREADS,
		.workers = 1 };
	struct xr_pool *pool;

	NEED(xr_fn_register(&func, NULL) == XR_OK);
	NEED(xr_pool_new(&opts, &pool, &error) == XR_OK);
	EXPECT_EQ(allocations_of(pool, NULL), 1);
	EXPECT(allocations_of(pool, hear) > 1);
	xr_pool_close(pool);
	EXPECT_EQ(xr_pool_join(pool, SOON, &error), XR_OK);
	xr_pool_free(pool);
}
