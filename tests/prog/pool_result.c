/* SPDX-License-Identifier: Apache-2.0 */
/* pool_result.c - pools, by the acceptance checks: what comes back. */
#include <pthread.h>
#include <signal.h>

#include <sys/resource.h>

#include <xrun/tensor.h>

#include "tests/prog/late.h"
#include "tests/prog/pool_rig.h"

/* --- callbacks ------------------------------------------------------------------------ */

struct heard {
	_Atomic uint32_t values, errors;
	_Atomic int64_t sum;
	_Atomic bool was_ready;
	struct xr_future *_Atomic future;
	enum xr_status ends_with;
};

static enum xr_status
on_value(struct xr_value *value, void *ctx)
{
	struct heard *h = ctx;
	struct xr_future *future = atomic_load(&h->future);

	atomic_fetch_add(&h->values, 1);
	if (future != NULL && xr_future_done(future))
		atomic_store(&h->was_ready, true);
	atomic_fetch_add(&h->sum, (int64_t)xr_value_count(value));
	return h->ends_with;
}

static enum xr_status
on_error(struct xr_value *value, void *ctx)
{
	struct xr_failure f = { .size = sizeof(f) };
	struct heard *h = ctx;

	EXPECT(xr_value_failure(value, &f) == XR_OK);
	atomic_fetch_add(&h->errors, 1);
	if (h->ends_with == XR_E_CLOSED)
		pthread_exit(NULL);
	return h->ends_with;
}

static struct xr_future *
submit_heard(struct xr_pool *pool, const char *name, int64_t i,
	struct heard *heard)
{
	struct xr_pool_task t = rig_task(name, rig_one(i));
	struct xr_future *future = NULL;

	t.callback = on_value;
	t.error_callback = on_error;
	t.ctx = heard;
	/* It may be called before this one is known. */
	atomic_store(&heard->future, NULL);
	EXPECT(xr_pool_apply_async(pool, &t, &future, &rig_err) == XR_OK);
	atomic_store(&heard->future, future);
	rig_done(&t);
	return future;
}

static void
callbacks(void)
{
	struct xr_pool *pool = rig_pool();
	struct heard h = { 0 };

	for (uint32_t n = 1; n <= 100; n++) {
		struct xr_future *future = submit_heard(pool, "fails", 3, &h);

		EXPECT(rig_get(future) == 3);
		EXPECT(atomic_load(&h.values) == n && h.errors == 0);
	}
	for (uint32_t n = 1; n <= 100; n++) {
		struct xr_future *future = submit_heard(pool, "fails", 1, &h);

		EXPECT(rig_fails(future) == XR_E_CONFLICT);
		EXPECT(atomic_load(&h.errors) == n && h.values == 100);
	}
	EXPECT(!atomic_load(&h.was_ready));
	rig_end(pool);
}

/* One that fails, and one that ends its thread. */
static void
bad_callbacks(void)
{
	struct xr_pool *pool = rig_pool();
	struct heard h = { .ends_with = XR_E_NOMEM };

	EXPECT(rig_get(submit_heard(pool, "weigh", 2, &h)) == 40);
	h.ends_with = XR_E_CLOSED;
	EXPECT(rig_fails(submit_heard(pool, "fails", 1, &h)) == XR_E_CONFLICT);
	EXPECT(rig_fails(submit_heard(pool, "fails", 1, &h)) == XR_E_CONFLICT);
	h.ends_with = XR_OK;
	EXPECT(rig_get(submit_heard(pool, "weigh", 3, &h)) == 60);
	EXPECT(h.values == 2 && h.errors == 2);
	rig_end(pool);
}

/* It is at a callback until it is told. */
static enum xr_status
linger(struct xr_value *value, void *ctx)
{
	const bool *ends = ctx;

	(void)value;
	rig_post(0);
	rig_await(1, 1);
	if (*ends)
		pthread_exit(NULL);
	return XR_OK;
}

static struct xr_future *
submit_lingering(struct xr_pool *pool, bool *ends)
{
	struct xr_pool_task t = rig_task("weigh", rig_one(1));
	struct xr_future *future = NULL;

	t.callback = linger;
	t.ctx = ends;
	EXPECT(xr_pool_apply_async(pool, &t, &future, &rig_err) == XR_OK);
	rig_await(0, 1);
	rig_done(&t);
	return future;
}

static void *
free_pool(void *pool)
{
	xr_pool_free(pool);
	return NULL;
}

/* A pool is freed, the last one or not, while a callback of its is at work, which may end
 * its thread. Another one is made then. */
static void
free_meanwhile(bool is_last, bool ends)
{
	struct heard h = { 0 };
	struct xr_pool *other = is_last ? NULL : rig_pool();
	struct xr_pool *pool = rig_pool();
	struct xr_future *future = submit_lingering(pool, &ends);
	pthread_t thread;

	EXPECT(pthread_create(&thread, NULL, free_pool, pool) == 0);
	/* Long enough, mostly, for it to get where it waits for the callback. */
	for (int i = 0; i < 50 && !xr_future_done(future); i++)
		usleep(1000);
	EXPECT(!xr_future_done(future));
	if (!ends)
		pool = rig_pool();
	rig_post(1);
	EXPECT(rig_get(future) == 20);
	pthread_join(thread, NULL);
	if (ends)
		pool = rig_pool();
	EXPECT(rig_get(submit_heard(pool, "weigh", 2, &h)) == 40);
	EXPECT(h.values == 1);
	rig_end(pool);
	if (other != NULL)
		rig_end(other);
}

static void
freed_meanwhile(void)
{
	free_meanwhile(true, false);
}

static void
freed_and_ended(void)
{
	free_meanwhile(true, true);
}

static void
freed_beside(void)
{
	free_meanwhile(false, false);
}

/* Its callback frees the pool, while we wait for what it gives. */
static enum xr_status
free_it(struct xr_value *value, void *ctx)
{
	(void)value;
	xr_pool_free(ctx);
	return XR_OK;
}

static void
freed_by_callback(void)
{
	for (uint32_t i = 0; i < rig_many(40); i++) {
		struct xr_pool_task t = rig_task("weigh", rig_one(i));
		struct xr_pool *pool = rig_pool();
		struct xr_future *future = NULL;

		t.callback = free_it;
		t.ctx = pool;
		EXPECT(xr_pool_apply_async(pool, &t, &future, &rig_err) ==
			XR_OK);
		EXPECT(rig_get(future) == 20 * i);
		rig_done(&t);
	}
}

/* It has a map's callback, too, once, with the empty list. */
static void
empty(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_pool_task t = rig_task("weigh", xr_value_new_list());
	struct xr_value *values = NULL;
	struct xr_future *future;
	struct xr_pool_iter *iter;
	struct heard h = { 0 };

	t.callback = on_value;
	t.error_callback = on_error;
	t.ctx = &h;
	EXPECT(xr_pool_map_async(pool, &t, &future, &rig_err) == XR_OK);
	EXPECT(xr_future_wait(future, SOON, &values, &rig_err) == XR_OK);
	EXPECT(xr_value_kind(values) == XR_LIST && xr_value_count(values) == 0);
	EXPECT(h.values == 1 && h.errors == 0 && h.sum == 0);
	xr_value_unref(values);
	xr_future_unref(future);
	t.callback = t.error_callback = NULL;
	EXPECT(xr_pool_imap(pool, &t, &iter, &rig_err) == XR_OK);
	EXPECT(xr_pool_iter_next(iter, 0, &values, &rig_err) == XR_E_END);
	rig_done(&t);
	rig_end(pool);
	xr_pool_iter_free(iter);
}

/* --- errors ----------------------------------------------------------------------------- */

static void
errors(void)
{
	struct xr_failure f = { .size = sizeof(f) };
	struct xr_pool *pool = rig_pool();
	struct xr_future *future = rig_async(pool, "fails", 1);
	struct xr_value *error;

	EXPECT(xr_future_wait(future, SOON, NULL, &rig_err) == XR_E_CONFLICT);
	EXPECT(strstr(rig_err.text, "it was one of those") != NULL);
	error = xr_future_error(future);
	EXPECT(xr_value_failure(error, &f) == XR_OK);
	EXPECT(f.status == XR_E_CONFLICT && strcmp(f.func, "fails") == 0);
	EXPECT(strstr(f.worker, flavour->name) != NULL);
	EXPECT(f.worker_id != 0 &&
		(f.worker_id == (uint32_t)getpid()) == rig_threads());
	EXPECT(f.backtrace != NULL && strstr(f.backtrace, "#0") != NULL);
	xr_value_unref(error);
	xr_future_unref(future);
	rig_end(pool);
}

/* The first error is that of all, once all chunks are done. */
static void
map_errors(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_pool_task t = rig_task("fails", rig_numbers(6));
	struct xr_value *values = NULL;

	EXPECT(xr_pool_map(pool, &t, SOON, &values, &rig_err) == XR_E_CONFLICT);
	EXPECT(values == NULL);
	rig_done(&t);
	rig_end(pool);
}

static void
successful(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_future *future = rig_async(pool, "wait", 0);
	bool well = false;

	EXPECT(xr_future_successful(future, &well) == XR_E_STATE);
	EXPECT(xr_future_wait(future, XR_SECONDS(0.1), NULL, &rig_err) ==
		XR_E_TIMEOUT);
	rig_post(1);
	EXPECT(xr_future_wait(future, SOON, NULL, &rig_err) == XR_OK);
	EXPECT(xr_future_successful(future, &well) == XR_OK && well);
	EXPECT(rig_get(future) == 0);
	future = rig_async(pool, "fails", 1);
	EXPECT(xr_future_wait(future, SOON, NULL, &rig_err) == XR_E_CONFLICT);
	EXPECT(xr_future_successful(future, &well) == XR_OK && !well);
	xr_future_unref(future);
	rig_end(pool);
}

/* To wait for 0.1 s takes that long, and not for ever. */
static void
late(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_future *future = rig_async(pool, "wait", 0);
	struct late late;
	int64_t from;

	rig_await(0, 1);
	late_begin(&late);
	from = rig_now();
	EXPECT(xr_future_wait(future, XR_SECONDS(0.1), NULL, &rig_err) ==
		XR_E_TIMEOUT);
	EXPECT(rig_now() - from >= XR_SECONDS(0.1));
	EXPECT(late_end(&late) < XR_SECONDS(0.6));
	rig_post(1);
	EXPECT(rig_get(future) == 0);
	rig_end(pool);
}

/* What cannot travel is the submitter's to hear, and the worker stays. */
static void
no_way_back(void)
{
	struct xr_pool_opts o = rig_opts();
	struct xr_pool *pool;
	int64_t pid;

	o.workers = 1;
	o.contexts = NULL;
	o.flags = 0;
	pool = rig_pool_of(&o);
	pid = rig_call(pool, "pid", 0);
	EXPECT(rig_fails(rig_async(pool, "odd", 0)) == XR_E_ENCODE);
	EXPECT(strstr(rig_err.text, "rig.mute") != NULL);
	EXPECT(rig_call(pool, "pid", 0) == pid);
	rig_end(pool);
}

static void
large_results(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_value *value = NULL;
	size_t len;

	for (int64_t mib = 1; mib <= 64; mib *= 8) {
		struct xr_future *future = rig_async(pool, "large", mib);

		if (flavour->contexts)
			EXPECT(true);
		EXPECT(xr_future_wait(future, SOON, &value, &rig_err) == XR_OK);
		EXPECT(xr_value_data(value, &len) != NULL &&
			len == (size_t)mib << 20);
		xr_value_unref(value);
		xr_future_unref(future);
	}
	rig_end(pool);
}

/* --- naps ---------------------------------------------------------------------------------- */

static long
sleeps(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nvcsw;
}

/* Who waits for many short tasks, one after the other, is not woken for each. */
static void
naps(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_future *future[1000];
	long before;

	rig_call(pool, "weigh", 1); /* workers are there */
	before = sleeps();
	for (int i = 0; i < 1000; i++)
		future[i] = rig_async(pool, "toil", 200);
	for (int i = 0; i < 1000; i++) {
		EXPECT(xr_future_wait(future[i], SOON, NULL, &rig_err) ==
			XR_OK);
		xr_future_unref(future[i]);
	}
	before = sleeps() - before;
	if (before >= 400)
		fprintf(stderr, "%ld sleeps for 1000 tasks\n", before);
	EXPECT(before < 400);
	rig_end(pool);
}

/* --- iterators ----------------------------------------------------------------------------- */

static void
expect_items(struct xr_pool_iter *iter, bool ordered, int64_t n)
{
	uint32_t seen[64] = { 0 }, errors = 0;
	struct xr_value *value;
	enum xr_status status;

	for (int64_t k = 0; k < n; k++) {
		status = xr_pool_iter_next(iter, SOON, &value, &rig_err);
		if (status != XR_OK) {
			EXPECT(status == XR_E_CONFLICT);
			EXPECT(!ordered || k % 3 == 1);
			EXPECT(xr_value_kind(value) == XR_ERROR);
			errors++;
		} else {
			int64_t i = rig_result(value);

			EXPECT(i % 3 != 1 && seen[i]++ == 0);
			EXPECT(!ordered || i == k);
		}
		xr_value_unref(value);
	}
	EXPECT(errors == (uint32_t)(n + 1) / 3);
	EXPECT(xr_pool_iter_next(iter, SOON, &value, &rig_err) == XR_E_END);
	EXPECT(value == NULL);
}

static void
iterators_with_errors(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_pool_task t = rig_task("fails", rig_numbers(31));
	struct xr_pool_iter *iter;

	for (int chunk = 1; chunk < 8; chunk += 3) {
		t.flags = XR_POOL_CHUNK;
		t.chunk = chunk;
		EXPECT(xr_pool_imap(pool, &t, &iter, &rig_err) == XR_OK);
		expect_items(iter, true, 31);
		xr_pool_iter_free(iter);
		EXPECT(xr_pool_imap_unordered(pool, &t, &iter, &rig_err) ==
			XR_OK);
		expect_items(iter, false, 31);
		xr_pool_iter_free(iter);
	}
	rig_done(&t);
	rig_end(pool);
}

#define LONG 4000

struct taker {
	struct xr_pool_iter *iter;
	pthread_t thread;
	int64_t count, sum;
};

static void *
take(void *ctx)
{
	struct taker *t = ctx;
	struct xr_value *value;
	enum xr_status status;

	while ((status = xr_pool_iter_next(t->iter, XR_TIMEOUT_NEVER, &value,
			NULL)) == XR_OK) {
		t->sum += rig_result(value);
		t->count++;
		xr_value_unref(value);
	}
	EXPECT(status == XR_E_END);
	return NULL;
}

static void
two_take(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_pool_task t = rig_task("weigh", rig_numbers(LONG));
	struct taker all[2] = { 0 };
	struct xr_pool_iter *iter;

	for (int turn = 0; turn < 2; turn++) {
		memset(all, 0, sizeof(all));
		EXPECT((turn == 0 ? xr_pool_imap(pool, &t, &iter, &rig_err) :
				    xr_pool_imap_unordered(pool, &t, &iter,
					    &rig_err)) == XR_OK);
		for (int i = 0; i < 2; i++) {
			all[i].iter = iter;
			EXPECT(pthread_create(&all[i].thread, NULL, take,
				       &all[i]) == 0);
		}
		for (int i = 0; i < 2; i++)
			pthread_join(all[i].thread, NULL);
		EXPECT(all[0].count + all[1].count == LONG);
		EXPECT(all[0].sum + all[1].sum ==
			(int64_t)20 * LONG * (LONG - 1) / 2);
		xr_pool_iter_free(iter);
	}
	rig_done(&t);
	rig_end(pool);
}

/* One that is not wanted any more keeps nobody. */
static void
half_taken(void)
{
	struct xr_pool *pool = rig_pool();
	struct xr_pool_task t = rig_task("weigh", rig_numbers(100000));
	struct xr_pool_iter *iter;
	struct xr_value *value;

	t.flags = XR_POOL_CHUNK;
	t.chunk = 1;
	EXPECT(xr_pool_imap(pool, &t, &iter, &rig_err) == XR_OK);
	EXPECT(xr_pool_iter_next(iter, SOON, &value, &rig_err) == XR_OK);
	xr_value_unref(value);
	xr_pool_iter_free(iter);
	rig_done(&t);
	EXPECT(rig_call(pool, "weigh", 5) == 100);
	rig_end(pool);
}

/* --- what travels ------------------------------------------------------------------------------ */

static void
modes(void)
{
	struct xr_pool_opts o = rig_opts();

	for (int mode = XR_ENC_COPY; mode <= XR_ENC_SHARE; mode++) {
		struct xr_value *t = rig_tensor(), *value = NULL;
		struct xr_pool_task task;
		struct xr_pool *pool;

		o.mode = (enum xr_enc_mode)mode;
		o.max_tasks = 1; /* who answers ends at once */
		pool = rig_pool_of(&o);
		task = rig_task("paint", xr_value_new_list());
		EXPECT(xr_value_append(task.args, xr_value_ref(t)) == XR_OK);
		for (int i = 0; i < 4; i++) {
			EXPECT(xr_pool_apply(pool, &task, SOON, &value,
				       &rig_err) == XR_OK);
			EXPECT(rig_result(value) == 77);
			xr_value_unref(value);
		}
		EXPECT(((uint8_t *)xr_tensor_data(t, NULL))[0] ==
			(mode == XR_ENC_SHARE || rig_threads() ? 77 : 1));
		rig_done(&task);
		xr_value_unref(t);
		rig_end(pool);
	}
}

/* What has no memory of its worker's is had, though that has ended meanwhile. */
static void
answered(void)
{
	struct xr_pool_opts o = rig_opts();
	struct xr_pool *pool;

	o.mode = XR_ENC_SHARE;
	pool = rig_pool_of(&o);
	for (int i = 0; i < 100; i++) {
		struct xr_future *calls[20], *end;

		for (int k = 0; k < 20; k++)
			calls[k] = rig_async(pool, "weigh", k);
		end = rig_async(pool, "leave", 3);
		for (int k = 0; k < 20; k++)
			EXPECT(rig_get(calls[k]) == 20 * k);
		EXPECT(rig_fails(end) == XR_E_WORKER_LOST);
	}
	rig_end(pool);
}

/* What has some is had, or lost: whoever ends, and however. */
static void
lent(void)
{
	struct xr_pool_opts o = rig_opts();
	struct xr_pool *pool;

	o.mode = XR_ENC_SHARE;
	o.workers = 1;
	pool = rig_pool_of(&o);
	for (int i = 0; i < 40; i++) {
		struct xr_future *calls[6];

		for (int k = 0; k < 6; k++)
			calls[k] = rig_async(pool, k < 5 ? "canvas" : "leave",
				i % 2);
		for (int k = 0; k < 6; k++) {
			enum xr_status status =
				xr_future_wait(calls[k], SOON, NULL, &rig_err);

			EXPECT(status == XR_E_WORKER_LOST ||
				(status == XR_OK && k < 5));
			xr_future_unref(calls[k]);
		}
	}
	rig_end(pool);
}

/* What a function is bound to is read once by each worker. */
static void
bound_once(void)
{
	struct xr_pool_opts o = rig_opts();
	struct xr_pool *pool = rig_pool_of(&o);
	static char object;
	struct xr_pool_task t = {
		.size = sizeof(t),
		.func = xr_fn_bind("decodes",
			xr_value_new_opaque("rig.count", &object)),
		.args = rig_numbers(500),
		.flags = XR_POOL_CHUNK,
		.chunk = 1,
	};
	struct xr_value *values = NULL;

	for (int turn = 0; turn < 3; turn++) {
		EXPECT(xr_pool_map(pool, &t, SOON, &values, &rig_err) == XR_OK);
		for (size_t i = 0; i < 500; i++)
			EXPECT(rig_result(xr_value_at(values, i)) ==
				(int64_t)i + (rig_threads() ? 0 : 1000));
		xr_value_unref(values);
	}
	rig_done(&t);
	rig_end(pool);
}

/* More functions than are kept. */
static void
many_bound(void)
{
	struct xr_pool *pool = rig_pool();

	for (int64_t i = 0; i < 300; i++) {
		struct xr_pool_task t = {
			.size = sizeof(t),
			.func = xr_fn_bind("plus", xr_value_new_i64(i)),
			.args = rig_one(1000),
		};
		struct xr_value *value = NULL;

		EXPECT(xr_pool_apply(pool, &t, SOON, &value, &rig_err) ==
			XR_OK);
		EXPECT(rig_result(value) == 1000 + i);
		xr_value_unref(value);
		rig_done(&t);
	}
	rig_end(pool);
}

const struct rig_case result_cases[] = {
	{ "callbacks", callbacks },
	{ "bad-callbacks", bad_callbacks },
	{ "freed-meanwhile", freed_meanwhile },
	{ "freed-and-ended", freed_and_ended },
	{ "freed-beside", freed_beside },
	{ "freed-by-callback", freed_by_callback },
	{ "empty", empty },
	{ "errors", errors },
	{ "map-errors", map_errors },
	{ "successful", successful },
	{ "late", late },
	{ "answered", answered },
	{ "lent", lent },
	{ "no-way-back", no_way_back },
	{ "large-results", large_results },
	{ "naps", naps },
	{ "iterators-with-errors", iterators_with_errors },
	{ "two-take", two_take },
	{ "half-taken", half_taken },
	{ "modes", modes },
	{ "bound-once", bound_once },
	{ "many-bound", many_bound },
	{ NULL, NULL },
};
