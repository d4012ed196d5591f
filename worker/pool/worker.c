/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - see xrun/pool.h: the life of a worker that is a process. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/pool.h>
#include <xrun/proc.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/pool/ledger.h"
#include "worker/pool/mate.h"
#include "worker/pool/page.h"
#include "worker/pool/run.h"
#include "worker/pool/told.h"
#include "worker/proc/given.h"
#include "worker/queue/queue_inner.h"
#include "worker/rpc/future.h"

struct worker {
	struct ledger ledger;
	struct pages pages;
	struct xr_queue *in, *out;
	struct ledger_who who;
	uint64_t flags, tasks_left; /* 0: for ever */
	struct xr_value *context;   /* NULL: functions take none */
	struct hand hand;
	char name[200];

	/* what came last */
	struct taker taker;
	struct xr_queue_buf buf;
	struct task_head task;
	struct xr_value *item, *list; /* of XR_ENC_SHARE */
	bool is_mine;
};

/* --- coming ------------------------------------------------------------------- */

static enum xr_status
open_queue(struct xr_queue **queue, const int *fds, uint32_t not_us,
	struct xr_error *err)
{
	enum xr_status status = xr_queue_adopt(fds, queue, err);

	if (status == XR_OK)
		xr_queue_leave(*queue, not_us);
	return status;
}

static enum xr_status
open_all(struct worker *w, struct xr_error *err)
{
	uint32_t count;
	const int *fds = given_fds(&count);
	enum xr_status status;

	if (count != TOLD_FDS)
		return fail(err, XR_E_STATE, "that is for workers of a pool");
	status = ledger_open(&w->ledger, fds[TOLD_LEDGER], err);
	if (status == XR_OK)
		status =
			open_queue(&w->in, &fds[TOLD_IN], XR_QUEUE_WRITER, err);
	if (status == XR_OK)
		status = open_queue(&w->out, &fds[TOLD_OUT], XR_QUEUE_READER,
			err);
	w->pages.book = fds[TOLD_BOOK];
	return status;
}

static uint64_t
told_number(const struct xr_value *arg, enum told which)
{
	uint64_t u = 0;

	xr_value_get_u64(xr_value_at(arg, which), &u);
	return u;
}

static bool
is_cancelled(const struct hand *h)
{
	const struct worker *w = h->ctx;
	uint32_t index = w->task.index;

	return atomic_load(&w->ledger.head->ended) != 0 ||
		(index < w->ledger.tasks &&
			atomic_load(&w->ledger.task[index].cancelled) ==
				w->task.gen + 1);
}

static enum xr_status
listen(struct worker *w, uint32_t place, struct xr_value *arg,
	struct xr_error *err)
{
	const char *name =
		xr_value_data(xr_value_at(arg, TOLD_NAME), &(size_t){ 0 });

	if (xr_value_count(arg) != TOLD_COUNT || name == NULL)
		return fail(err, XR_E_STATE, "that is for workers of a pool");
	w->who.place = place;
	w->who.life = (uint32_t)told_number(arg, TOLD_LIFE);
	w->flags = told_number(arg, TOLD_FLAGS);
	w->tasks_left = told_number(arg, TOLD_MAX_TASKS);
	if ((w->flags & TOLD_CONTEXTS) != 0)
		w->context = xr_value_at(arg, TOLD_CONTEXT);
	snprintf(w->name, sizeof(w->name), "%.127s/%u, process %d", name, place,
		(int)getpid());
	w->hand = (struct hand){
		.name = w->name,
		.is_cancelled = is_cancelled,
		.ctx = w,
	};
	return open_all(w, err);
}

/* What it calls first. Its error is the process's report. */
static enum xr_status
initialise(struct worker *w, const struct xr_value *arg, struct xr_error *err)
{
	const char *name =
		xr_value_data(xr_value_at(arg, TOLD_INIT), &(size_t){ 0 });
	struct run_plan plan = { .context = w->context };
	struct xr_value *result = NULL;
	enum xr_status status;
	bool ok;

	if (name == NULL)
		return XR_OK;
	status = hand_find(name, &plan.func, err);
	if (status != XR_OK)
		return status;
	ok = run_apply(&w->hand, &plan, xr_value_at(arg, TOLD_INIT_ARGS),
		&result);
	if (!ok)
		return result != NULL ? xr_proc_raise(result, err) :
					fail(err, XR_E_NOMEM, "out of memory");
	xr_value_unref(result);
	return XR_OK;
}

/* --- answering ---------------------------------------------------------------- */

/* A result on its way. */
struct reply {
	struct worker *w;
	struct load load;
	struct result_head head;
	struct xr_value *list; /* where something is not plain: all */
	struct xr_value *error;
	uint8_t *failed; /* [count], of ITEM_EACH */
	int64_t began;
};

static void
reply_init(struct reply *r, struct worker *w)
{
	load_init(&r->load);
	r->w = w;
	r->head = (struct result_head){
		.index = w->task.index,
		.gen = w->task.gen,
		.place = w->who.place,
	};
	r->list = r->error = NULL;
	r->failed = NULL;
	r->began = clock_now();
	r->head.began = (uint32_t)(r->began / 1000);
}

static void
reply_fini(struct reply *r)
{
	load_fini(&r->load);
	xr_value_unref(r->list);
	xr_value_unref(r->error);
	free(r->failed);
}

/* What was plain so far is a list from now on. */
static bool
make_list(struct reply *r)
{
	struct unpack u = {
		.at = (const uint8_t *)r->load.pack.data,
		.end = (const uint8_t *)r->load.pack.data + r->load.pack.len,
	};

	r->list = xr_value_new_list();
	for (uint32_t i = 0; r->list != NULL && i < r->head.count; i++)
		if (xr_value_append(r->list, unpack_next(&u)) != XR_OK) {
			xr_value_unref(r->list);
			r->list = NULL;
		}
	unpack_fini(&u);
	return r->list != NULL;
}

/* One more value, which is taken; NULL: NIL. False: no memory. */
static bool
reply_add(struct reply *r, struct xr_value *value)
{
	bool ok = true;

	if (r->list == NULL && pack_add(&r->load.pack, value)) {
		xr_value_unref(value);
	} else if (r->list == NULL && !make_list(r)) {
		xr_value_unref(value);
		ok = false;
	} else {
		if (value == NULL)
			value = xr_value_new_nil();
		ok = xr_value_append(r->list, value) == XR_OK;
	}
	r->head.count += ok;
	return ok;
}

static struct xr_value *
no_memory(void)
{
	return failure_new(XR_E_NOMEM, "out of memory");
}

static enum xr_status
put(struct reply *r, struct xr_error *err)
{
	struct letter letter = { .kind = CELL_BYTES };
	enum xr_status status;
	size_t count = 1;

	r->head.ns = (uint64_t)(clock_now() - r->began);
	status = load_head(&r->load, &r->head, sizeof(r->head));
	if (status != XR_OK)
		return status;
	letter.parts = r->load.all;
	letter.count = r->load.count;
	letter.len = r->load.len;
	return give_all(r->w->out, &letter, &count, XR_TIMEOUT_NEVER, err);
}

/* Which of them failed, in front of all. */
static enum xr_status
put_flags(struct reply *r)
{
	struct xr_value *all = xr_value_new_list();
	enum xr_status status = XR_E_NOMEM;

	r->head.flags |= ITEM_EACH;
	if (all != NULL)
		status = xr_value_append(all,
			xr_value_new_bytes(r->failed, r->head.count));
	for (uint32_t i = 0; i < r->head.count && status == XR_OK; i++)
		status = xr_value_append(all,
			xr_value_ref(xr_value_at(r->list, i)));
	if (status == XR_OK && r->error != NULL)
		status = xr_value_append(all, xr_value_ref(r->error));
	xr_value_unref(r->list);
	r->list = all;
	return status;
}

/* By reference. What is had from there is had while this process lives. */
static enum xr_status
put_shared(struct reply *r, struct xr_error *err)
{
	struct xr_value *item;
	enum xr_status status;

	r->head.ns = (uint64_t)(clock_now() - r->began);
	if (r->list == NULL && !make_list(r))
		return fail(err, XR_E_NOMEM, "out of memory");
	item = share_item(&r->head, sizeof(r->head), xr_value_ref(r->list));
	if (item == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	status = xr_queue_put(r->w->out, item, XR_TIMEOUT_NEVER, err);
	xr_value_unref(item);
	return status;
}

static bool
shares(const struct worker *w)
{
	return (w->flags & TOLD_SHARES) != 0;
}

/* All that there is, and at last what went wrong. */
static enum xr_status
reply_put(struct reply *r, struct xr_error *err)
{
	enum xr_status status = XR_OK;

	r->head.flags = 0;
	if (r->error != NULL) {
		r->head.flags |= ITEM_FAILED;
		if (r->list == NULL && !make_list(r))
			return fail(err, XR_E_NOMEM, "out of memory");
		if (r->failed == NULL)
			status = xr_value_append(r->list,
				xr_value_ref(r->error));
	}
	if (r->failed != NULL)
		status = put_flags(r);
	if (status == XR_OK && shares(r->w))
		return put_shared(r, err);
	if (status == XR_OK && r->list != NULL) {
		r->head.flags |= ITEM_CODED;
		status = load_code(&r->load, xr_value_ref(r->list), err);
	}
	return status == XR_OK ? put(r, err) : status;
}

/* The error instead of all, as it cannot travel. */
static enum xr_status
reply_excuse(struct reply *r, enum xr_status status, const char *why,
	struct xr_error *err)
{
	reply_fini(r);
	reply_init(r, r->w);
	r->error =
		failure_new(status, "what it answered cannot travel: %s", why);
	if (r->error == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	return reply_put(r, err);
}

static enum xr_status
reply_send(struct reply *r, struct xr_error *err)
{
	struct xr_error why = { 0 };
	enum xr_status status = reply_put(r, &why);

	if (status == XR_E_CLOSED || status == XR_OK) {
		if (err != NULL && status != XR_OK)
			*err = why;
		return status;
	}
	return reply_excuse(r, status, why.text, err);
}

/* --- tasks -------------------------------------------------------------------- */

/* Flags of those that failed stand before the values. */
static bool
note_failure(struct reply *r, struct xr_value *error)
{
	uint32_t count = r->w->task.count;

	if (r->failed == NULL)
		r->failed = calloc(count + 1, 1);
	if (r->failed == NULL || (r->list == NULL && !make_list(r))) {
		xr_value_unref(error);
		return false;
	}
	r->failed[r->head.count] = 1;
	return reply_add(r, error);
}

/* False: that was it. */
static bool
run_next(struct reply *r, struct run_plan *plan, struct xr_value *item)
{
	struct xr_value *result = NULL;

	if (run_item(&r->w->hand, plan, item, &result)) {
		if (reply_add(r, result))
			return true;
		r->error = no_memory();
		return false;
	}
	if ((r->w->task.flags & ITEM_EACH) == 0 || result == NULL) {
		r->error = result != NULL ? result : no_memory();
		return false;
	}
	if (note_failure(r, result))
		return true;
	r->error = no_memory();
	return false;
}

static void
run_map(struct reply *r, struct run_plan *plan, struct unload *u)
{
	struct xr_value *item;
	bool goes_on = true;

	for (uint32_t i = 0; i < r->w->task.count && goes_on; i++) {
		item = unload_next(u);
		if (item == NULL) {
			r->error = no_memory();
			break;
		}
		goes_on = run_next(r, plan, item);
		xr_value_unref(item);
	}
	run_end(plan);
}

static struct xr_value *
take_args(struct unload *u, uint32_t count)
{
	struct xr_value *args = xr_value_new_list();

	for (uint32_t i = 0; args != NULL && i < count; i++)
		if (xr_value_append(args, unload_next(u)) != XR_OK) {
			xr_value_unref(args);
			args = NULL;
		}
	return args;
}

static void
run_one(struct reply *r, struct run_plan *plan, struct unload *u)
{
	struct xr_value *args = take_args(u, r->w->task.count);
	struct xr_value *result = NULL;

	if ((r->w->task.flags & ITEM_NAMED) != 0)
		plan->named = unload_next(u);
	if (args == NULL)
		r->error = no_memory();
	else if (!run_apply(&r->w->hand, plan, args, &result))
		r->error = result != NULL ? result : no_memory();
	else if (!reply_add(r, result))
		r->error = no_memory();
	xr_value_unref(args);
	xr_value_unref(plan->named);
}

static void
run_task(struct reply *r)
{
	struct worker *w = r->w;
	const char *data = w->buf.data != NULL ? w->buf.data : w->taker.made;
	const struct page *page = pages_find(&w->pages, &w->task);
	struct xr_error err = { 0 };
	enum xr_status status;
	struct run_plan plan;
	struct unload u;

	status = page == NULL ? fail(&err, XR_E_NOMEM, "out of memory") :
				page->status;
	if (page != NULL && status != XR_OK)
		err = page->err;
	if (status == XR_OK && w->item != NULL)
		unload_list(&u, w->list);
	else if (status == XR_OK)
		status = unload_init(&u, data + sizeof(w->task),
			w->buf.len - sizeof(w->task), w->task.flags, &err);
	if (status != XR_OK) {
		r->error = failure_new(status, "%s", err.text);
		return;
	}
	plan = (struct run_plan){
		.func = page->func,
		.form = (enum item_form)w->task.form,
		.context = w->context,
		.bound = page->bound,
	};
	if (w->task.form == ITEM_APPLY)
		run_one(r, &plan, &u);
	else
		run_map(r, &plan, &u);
	unload_fini(&u);
}

/* While the queue's cell is our claim: whoever is killed here has it in hand, or leaves
 * it to another. */
static void
claim(struct taker *t)
{
	struct worker *w = t->ctx;

	w->is_mine = false;
	if (t->buf->len < sizeof(w->task))
		return;
	memcpy(&w->task, t->made, sizeof(w->task));
	w->is_mine =
		ledger_take(&w->ledger, w->task.index, w->task.gen, w->who);
}

static enum xr_status
next_shared(struct worker *w, struct xr_error *err)
{
	enum xr_status status;

	xr_value_unref(w->item);
	w->item = NULL;
	status = xr_queue_get(w->in, &w->item, XR_TIMEOUT_NEVER, err);
	w->is_mine = status == XR_OK &&
		share_head(w->item, &w->task, sizeof(w->task), &w->list) &&
		ledger_take(&w->ledger, w->task.index, w->task.gen, w->who);
	xr_queue_done(w->in);
	return status;
}

/* Nobody can have by reference what this process has put, when it is gone. */
static void
await_taken(struct worker *w)
{
	struct spell s;

	if (!shares(w) || w->out == NULL)
		return;
	spell_init(&s, w->out->hall, &w->out->hall->head->space_wake,
		XR_TIMEOUT_NEVER);
	while (lent_is_any(w->out->hall) && spell_turn(&s, NULL) == XR_OK)
		;
	spell_end(&s);
	if (w->who.place < w->ledger.places)
		atomic_store(&w->ledger.place[w->who.place].done,
			w->who.life + 1);
}

static enum xr_status
next_task(struct worker *w, struct xr_error *err)
{
	enum xr_status status;
	size_t count = 1;

	if (shares(w))
		return next_shared(w, err);
	w->taker.buf = &w->buf;
	w->taker.before = claim;
	w->taker.ctx = w;
	status = take_some(w->in, &w->taker, &count, XR_TIMEOUT_NEVER, err);
	if (status == XR_OK && w->in->hall->plan.redeliver)
		xr_queue_done(w->in);
	return status;
}

/* Nobody waits for what it took: no result tells that there is room for another. */
static void
tell_room(struct worker *w)
{
	struct ledger_head *head = w->ledger.head;

	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&head->starved) == 0 ||
		atomic_exchange(&head->starved, 0) == 0)
		return;
	wake_ring(&w->out->hall->head->items_wake, UINT32_MAX);
	hall_light(w->out->hall);
}

static enum xr_status
do_task(struct worker *w, struct xr_error *err)
{
	const _Atomic uint64_t *lent = &w->out->hall->lent_count;
	uint64_t before = atomic_load(lent);
	enum xr_status status;
	struct reply r;

	reply_init(&r, w);
	ledger_since(&w->ledger, w->who.place, r.began);
	run_task(&r);
	ledger_since(&w->ledger, w->who.place, 0);
	status = reply_send(&r, err);
	if (status == XR_OK)
		ledger_answer(&w->ledger, w->task.index, w->task.gen, w->who,
			atomic_load(lent) != before);
	reply_fini(&r);
	return status;
}

/* A function has ended its thread, and the process is to end with that, whatever other
 * threads it has. */
static void
thread_left(void *unused)
{
	(void)unused;
	exit(0);
}

static enum xr_status
do_all(struct worker *w, struct xr_error *err)
{
	enum xr_status status;

	for (;;) {
		status = next_task(w, err);
		if (status != XR_OK)
			break;
		if (!w->is_mine) {
			tell_room(w);
			continue;
		}
		status = do_task(w, err);
		if (status != XR_OK ||
			(w->tasks_left > 0 && --w->tasks_left == 0))
			break;
	}
	return status == XR_E_CLOSED ? XR_OK : status;
}

static enum xr_status
work(struct worker *w, struct xr_error *err)
{
	enum xr_status status;

	pthread_cleanup_push(thread_left, NULL);
	status = do_all(w, err);
	pthread_cleanup_pop(0);
	return status;
}

static void
leave(struct worker *w)
{
	await_taken(w);
	free(w->taker.made);
	xr_value_unref(w->item);
	pages_fini(&w->pages);
	xr_queue_free(w->in);
	xr_queue_free(w->out);
	ledger_fini(&w->ledger);
	free(w);
}

XR_EXPORT enum xr_status
xr_pool_worker(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *err)
{
	struct xr_pool *pool = xr_pool_of(arg);
	enum xr_status status;
	struct worker *w;

	(void)ctx;
	if (pool != NULL)
		return XR_KEEP_FRAME(mate_work(pool, ordinal, err));
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	w->ledger.fd = -1;
	status = listen(w, ordinal, arg, err);
	if (status == XR_OK)
		status = initialise(w, arg, err);
	if (status == XR_OK) {
		ledger_since(&w->ledger, ordinal, 0);
		if (ordinal < w->ledger.places)
			atomic_store(&w->ledger.place[ordinal].ready,
				w->who.life + 1);
		status = work(w, err);
	}
	leave(w);
	return status;
}

/* Whichever program it is that a worker is started of. */
__attribute__((constructor)) static void
make_known(void)
{
	xr_proc_register(TOLD_FUNCTION, xr_pool_worker, NULL, NULL);
}
