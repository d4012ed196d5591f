/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker_timeout.c - timeouts of futures, events, processes, queues and stores. */
#include <xrun/event.h>
#include <xrun/future.h>
#include <xrun/proc.h>
#include <xrun/queue.h>
#include <xrun/spawn.h>
#include <xrun/store.h>

#include "tests/unit/timeout_rig.h"

TestSuite(timeout, .timeout = 200);

/* --- futures and events ----------------------------------------------------------------- */

static void
set_future(void *future)
{
	xr_future_set(future, xr_value_new_nil());
}

static enum xr_status
future_wait(enum state state, int64_t timeout)
{
	struct xr_future *f = xr_future_new(NULL);
	enum xr_status status;
	struct helper h;

	helper_begin(&h, state, set_future, f);
	status = xr_future_wait(f, timeout, NULL, &err);
	helper_end(&h, state);
	xr_future_unref(f);
	return status;
}

static enum xr_status
future_wait_all(enum state state, int64_t timeout)
{
	struct xr_future *f = xr_future_new(NULL);
	enum xr_status status;
	struct helper h;

	helper_begin(&h, state, set_future, f);
	status = xr_future_wait_all(&f, 1, timeout, NULL, &err);
	helper_end(&h, state);
	xr_future_unref(f);
	return status;
}

static enum xr_status
wait_any(enum state state, int64_t timeout)
{
	struct xr_event *e = xr_event_new();
	enum xr_status status;
	struct helper h;

	helper_begin(&h, state, set_event, e);
	status = xr_wait_any(&e, 1, timeout, NULL, &err);
	helper_end(&h, state);
	xr_event_unref(e);
	return status;
}

static enum xr_status
wait_all(enum state state, int64_t timeout)
{
	struct xr_event *e = xr_event_new();
	enum xr_status status;
	struct helper h;

	helper_begin(&h, state, set_event, e);
	status = xr_wait_all(&e, 1, timeout, &err);
	helper_end(&h, state);
	xr_event_unref(e);
	return status;
}

/* --- threads and processes -------------------------------------------------------------- */

static enum xr_status
thread_body(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *error)
{
	struct xr_event *e = ctx;

	(void)ordinal;
	(void)arg;
	return xr_wait_any(&e, 1, XR_TIMEOUT_NEVER, NULL, error);
}

static enum xr_status
with_thread(enum state state, int64_t timeout, bool watches)
{
	struct xr_event *e = xr_event_new();
	const struct xr_thread_opts opts = { .size = sizeof(opts),
		.fn = thread_body,
		.ctx = e };
	struct xr_thread *t = NULL;
	enum xr_status status;
	struct helper h;

	cr_assert_eq(xr_thread_start(&opts, &t, &err), XR_OK);
	helper_begin(&h, state, set_event, e);
	if (state == READY)
		xr_thread_wait(t, XR_TIMEOUT_NEVER, NULL);
	status = watches ? xr_thread_watch(t, timeout, &err) :
			   xr_thread_wait(t, timeout, &err);
	helper_end(&h, state);
	xr_thread_free(t);
	xr_event_unref(e);
	return status;
}

static enum xr_status
thread_wait(enum state state, int64_t timeout)
{
	return with_thread(state, timeout, false);
}

static enum xr_status
thread_watch(enum state state, int64_t timeout)
{
	return with_thread(state, timeout, true);
}

/* A process ends when its pipe is closed. */
static int process_pipe[2];

static enum xr_status
process_body(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *error)
{
	char byte;

	(void)ordinal;
	(void)arg;
	(void)ctx;
	(void)error;
	close(process_pipe[1]);
	return read(process_pipe[0], &byte, 1) == 0 ? XR_OK : XR_E_SYS;
}

static void
end_process(void *ctx)
{
	(void)ctx;
	close(process_pipe[1]);
}

static void
begin_process(void)
{
	xr_proc_register("process_body", process_body, NULL, NULL);
	cr_assert_eq(xr_init(&err), XR_OK, "%s", err.text);
	cr_assert_eq(pipe(process_pipe), 0);
}

static enum xr_status
with_process(enum state state, int64_t timeout, bool watches)
{
	const struct xr_proc_opts opts = { .size = sizeof(opts),
		.func = "process_body",
		.method = "fork" };
	struct xr_proc *p = NULL;
	enum xr_status status;
	struct helper h;

	begin_process();
	cr_assert_eq(xr_proc_start(&opts, &p, &err), XR_OK, "%s", err.text);
	helper_begin(&h, state, end_process, NULL);
	if (state == READY)
		xr_proc_wait(p, XR_TIMEOUT_NEVER, NULL, NULL);
	status = watches ? xr_proc_watch(p, timeout, &err) :
			   xr_proc_wait(p, timeout, NULL, &err);
	helper_end(&h, state);
	xr_proc_free(p);
	close(process_pipe[0]);
	return status;
}

static enum xr_status
proc_wait(enum state state, int64_t timeout)
{
	return with_process(state, timeout, false);
}

static enum xr_status
proc_watch(enum state state, int64_t timeout)
{
	return with_process(state, timeout, true);
}

static enum xr_status
procset_join(enum state state, int64_t timeout)
{
	const struct xr_spawn_opts opts = { .size = sizeof(opts),
		.flags = XR_SPAWN_NO_JOIN,
		.nprocs = 2,
		.method = "fork" };
	struct xr_procset *set = NULL;
	enum xr_status status;
	struct helper h;

	begin_process();
	cr_assert_eq(xr_spawn("process_body", NULL, &opts, &set, &err), XR_OK,
		"%s", err.text);
	helper_begin(&h, state, end_process, NULL);
	if (state == READY)
		xr_procset_join(set, XR_TIMEOUT_NEVER, NULL, NULL);
	status = xr_procset_join(set, timeout, NULL, &err);
	helper_end(&h, state);
	xr_procset_free(set);
	close(process_pipe[0]);
	return status;
}

/* A process without ranks is alone, so only the checks of the timeout are seen. */
static enum xr_status
rendezvous(enum state state, int64_t timeout)
{
	struct xr_value *all = NULL;
	enum xr_status status =
		xr_rendezvous("timeout", NULL, timeout, &all, &err);

	xr_value_unref(all);
	return state == ABSENT && timeout == 0 ? XR_E_TIMEOUT : status;
}

static enum xr_status
spawn_grace(enum state state, int64_t timeout)
{
	const struct xr_spawn_opts opts = { .size = sizeof(opts),
		.flags = XR_SPAWN_NO_JOIN,
		.nprocs = 2,
		.method = "fork",
		.grace = timeout };
	struct xr_procset *set = NULL;
	enum xr_status status;

	(void)state;
	begin_process();
	status = xr_spawn("process_body", NULL, &opts, &set, &err);
	end_process(NULL);
	if (status == XR_OK)
		status = xr_procset_join(set, XR_TIMEOUT_NEVER, NULL, &err);
	xr_procset_free(set);
	close(process_pipe[0]);
	return status;
}

/* --- queues ----------------------------------------------------------------------------- */

static struct xr_queue *
small_queue(void)
{
	const struct xr_queue_opts opts = { .size = sizeof(opts), .items = 1 };
	struct xr_queue *q = NULL;

	cr_assert_eq(xr_queue_new(&opts, &q, &err), XR_OK, "%s", err.text);
	return q;
}

static void
put_one(void *queue)
{
	cr_expect_eq(xr_queue_put_bytes(queue, "a", 1, XR_SECONDS(50), NULL),
		XR_OK);
}

static void
get_one(void *queue)
{
	struct xr_queue_buf buf = { 0 };

	cr_expect_eq(xr_queue_get_bytes(queue, &buf, XR_SECONDS(50), NULL),
		XR_OK);
	free(buf.data);
}

static enum xr_status
get_value(struct xr_queue *q, int64_t timeout)
{
	struct xr_value *v = NULL;
	enum xr_status status = xr_queue_get(q, &v, timeout, &err);

	xr_value_unref(v);
	return status;
}

static enum xr_status
get_many(struct xr_queue *q, int64_t timeout)
{
	struct xr_value *v = NULL;
	size_t count = 1;
	enum xr_status status = xr_queue_get_many(q, &v, &count, timeout, &err);

	xr_value_unref(v);
	return status;
}

static enum xr_status
get_bytes(struct xr_queue *q, int64_t timeout)
{
	struct xr_queue_buf buf = { 0 };
	enum xr_status status = xr_queue_get_bytes(q, &buf, timeout, &err);

	free(buf.data);
	return status;
}

static enum xr_status
get_many_bytes(struct xr_queue *q, int64_t timeout)
{
	struct xr_queue_buf buf = { 0 };
	size_t count = 1;
	enum xr_status status =
		xr_queue_get_many_bytes(q, &buf, &count, timeout, &err);

	free(buf.data);
	return status;
}

static enum xr_status
put_value(struct xr_queue *q, int64_t timeout)
{
	struct xr_value *v = xr_value_new_nil();
	enum xr_status status = xr_queue_put(q, v, timeout, &err);

	xr_value_unref(v);
	return status;
}

static enum xr_status
put_many(struct xr_queue *q, int64_t timeout)
{
	struct xr_value *v = xr_value_new_nil();
	size_t count = 1;
	enum xr_status status = xr_queue_put_many(q, &v, &count, timeout, &err);

	xr_value_unref(v);
	return status;
}

static enum xr_status
put_bytes(struct xr_queue *q, int64_t timeout)
{
	return xr_queue_put_bytes(q, "b", 1, timeout, &err);
}

static enum xr_status
put_many_bytes(struct xr_queue *q, int64_t timeout)
{
	const struct xr_part part = { "b", 1 };
	size_t count = 1;

	return xr_queue_put_many_bytes(q, &part, &count, timeout, &err);
}

/* Every get waits for an item, and every put for room. */
static enum xr_status
with_queue(enum state state, int64_t timeout, bool is_put,
	enum xr_status (*fn)(struct xr_queue *, int64_t))
{
	struct xr_queue *q = small_queue();
	enum xr_status status;
	struct helper h;

	if (is_put)
		put_one(q);
	helper_begin(&h, state, is_put ? get_one : put_one, q);
	status = fn(q, timeout);
	helper_end(&h, state);
	xr_queue_free(q);
	return status;
}

#define QUEUE_ROW(name, is_put) \
	static enum xr_status queue_##name(enum state state, int64_t timeout) \
	{ \
		return with_queue(state, timeout, is_put, name); \
	}

QUEUE_ROW(get_value, false)
QUEUE_ROW(get_many, false)
QUEUE_ROW(get_bytes, false)
QUEUE_ROW(get_many_bytes, false)
QUEUE_ROW(put_value, true)
QUEUE_ROW(put_many, true)
QUEUE_ROW(put_bytes, true)
QUEUE_ROW(put_many_bytes, true)

/* --- stores ----------------------------------------------------------------------------- */

static char store_path[64];

static struct xr_store *
open_store(int64_t timeout, enum xr_status *status)
{
	struct xr_store_options opts = XR_STORE_OPTIONS;
	struct xr_store *store = NULL;
	char address[100];

	if (store_path[0] == '\0') {
		snprintf(store_path, sizeof(store_path),
			"/tmp/xrun-timeout-XXXXXX");
		close(mkstemp(store_path));
	}
	unlink(store_path);
	snprintf(address, sizeof(address), "file://%s", store_path);
	opts.rank = 0;
	opts.world_size = 1;
	opts.timeout = timeout;
	*status = xr_store_open(address, &opts, &store, &err);
	return store;
}

static void
close_store(struct xr_store *store)
{
	xr_store_free(store);
	unlink(store_path);
}

static void
set_key(void *store)
{
	cr_expect_eq(xr_store_set(store, "key", "1", 1, NULL), XR_OK);
}

static enum xr_status
with_store(enum state state, int64_t of_store, int64_t timeout, bool gets)
{
	static const char *const keys[] = { "key" };
	struct xr_store_value value = { 0 };
	enum xr_status status;
	struct xr_store *s = open_store(of_store, &status);
	struct helper h;

	if (status != XR_OK)
		return status;
	helper_begin(&h, state, set_key, s);
	status = gets ? xr_store_get(s, keys[0], timeout, &value, &err) :
			xr_store_wait(s, keys, 1, timeout, &err);
	helper_end(&h, state);
	xr_store_value_free(&value);
	close_store(s);
	return status;
}

static enum xr_status
store_get(enum state state, int64_t timeout)
{
	return with_store(state, XR_SECONDS(50), timeout, true);
}

static enum xr_status
store_wait(enum state state, int64_t timeout)
{
	return with_store(state, XR_SECONDS(50), timeout, false);
}

static enum xr_status
store_options(enum state state, int64_t timeout)
{
	return with_store(state, timeout, XR_TIMEOUT_DEFAULT, true);
}

static void
share_queue(void *store)
{
	static struct xr_queue *q;

	if (q == NULL)
		q = small_queue();
	cr_expect_eq(xr_queue_share(q, store, "queue", &err), XR_OK, "%s",
		err.text);
}

static enum xr_status
queue_find(enum state state, int64_t timeout)
{
	enum xr_status status;
	struct xr_store *s = open_store(XR_SECONDS(50), &status);
	struct xr_queue *q = NULL;
	struct helper h;

	helper_begin(&h, state, share_queue, s);
	status = xr_queue_find(s, "queue", timeout, &q, &err);
	helper_end(&h, state);
	xr_queue_free(q);
	close_store(s);
	return status;
}

static const struct row arguments[] = {
	{ "xr_future_wait", future_wait, XR_E_TIMEOUT, false },
	{ "xr_future_wait_all", future_wait_all, XR_E_TIMEOUT, false },
	{ "xr_wait_any", wait_any, XR_E_TIMEOUT, false },
	{ "xr_wait_all", wait_all, XR_E_TIMEOUT, false },
	{ "xr_thread_wait", thread_wait, XR_E_TIMEOUT, false },
	{ "xr_thread_watch", thread_watch, XR_E_TIMEOUT, false },
	{ "xr_proc_wait", proc_wait, XR_E_TIMEOUT, false },
	{ "xr_proc_watch", proc_watch, XR_E_TIMEOUT, false },
	{ "xr_procset_join", procset_join, XR_E_TIMEOUT, false },
	{ "xr_rendezvous", rendezvous, XR_E_TIMEOUT, false },
	{ "xr_queue_get", queue_get_value, XR_E_TIMEOUT, false },
	{ "xr_queue_get_many", queue_get_many, XR_E_TIMEOUT, false },
	{ "xr_queue_get_bytes", queue_get_bytes, XR_E_TIMEOUT, false },
	{ "xr_queue_get_many_bytes", queue_get_many_bytes, XR_E_TIMEOUT,
		false },
	{ "xr_queue_put", queue_put_value, XR_E_TIMEOUT, false },
	{ "xr_queue_put_many", queue_put_many, XR_E_TIMEOUT, false },
	{ "xr_queue_put_bytes", queue_put_bytes, XR_E_TIMEOUT, false },
	{ "xr_queue_put_many_bytes", queue_put_many_bytes, XR_E_TIMEOUT,
		false },
	{ "xr_queue_find", queue_find, XR_E_NOTFOUND, false },
	{ "xr_store_get", store_get, XR_E_NOTFOUND, false },
	{ "xr_store_wait", store_wait, XR_E_NOTFOUND, false },
};

static const struct row fields[] = {
	{ "struct xr_store_options", store_options, XR_OK, false },
	{ "struct xr_spawn_opts grace", spawn_grace, XR_OK, false },
};

Test(timeout, an_argument_of_0_does_not_wait)
{
	expect_arguments(arguments, ROWS(arguments));
}

Test(timeout, a_field_of_0_selects_the_default)
{
	expect_fields(fields, ROWS(fields));
}
