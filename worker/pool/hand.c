/* SPDX-License-Identifier: Apache-2.0 */
/* hand.c - see hand.h. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "wire/value/many.h"
#include "worker/job/trace.h"
#include "worker/pool/hand.h"
#include "worker/rpc/future.h"
#include "worker/rpc/serve_inner.h"
#include "worker/rpc/word.h"

/* With what it lacks of where it happened; taken. */
static struct xr_value *
placed(const struct xr_call *call, struct xr_value *error)
{
	const struct hand *h = call->ctx;
	struct xr_failure f = { .size = sizeof(f) };
	char where[200], text[4096] = { 0 };
	struct xr_value *made;
	struct trace trace;

	if (error == NULL || xr_value_failure(error, &f) != XR_OK)
		return error;
	snprintf(where, sizeof(where), "%.150s", h->name);
	if (f.backtrace == NULL) {
		trace_take(&trace);
		trace_text(&trace, 0, text, sizeof(text) - 1);
		f.backtrace = text;
	}
	f.func = f.func != NULL ? f.func : call->func->f.name;
	if (f.worker == NULL) {
		f.worker = where;
		f.worker_id = (uint32_t)getpid();
	}
	f.size = sizeof(f);
	made = xr_value_new_error(&f);
	if (made == NULL)
		return error;
	xr_value_unref(error);
	return made;
}

static void
answer(struct xr_call *call, struct xr_value *value, bool failed)
{
	struct hand *h = call->ctx;

	h->value = failed ? placed(call, value) : value;
	h->failed = failed;
	/* By its function, and so nobody waits for it. */
	if (call == &h->call && call->kept == NULL)
		return;
	if (atomic_exchange(&h->answered, 1) == 2)
		word_wake(&h->answered, 1);
}

static bool
is_cancelled(const struct xr_call *call)
{
	const struct hand *h = call->ctx;

	return h->is_cancelled != NULL && h->is_cancelled(h);
}

static const struct call_desk desk = {
	.answer = answer,
	.is_cancelled = is_cancelled,
};

/* Of one that was deferred: somebody will, or drops it. */
static void
await(struct hand *h)
{
	uint32_t none = 0;

	if (!atomic_compare_exchange_strong(&h->answered, &none, 2))
		return;
	do
		word_sleep(&h->answered, 2, INT64_MAX);
	while (atomic_load(&h->answered) != 1);
}

/* Its function has returned. */
static void
finish(struct hand *h, struct xr_call *call, enum xr_status status)
{
	if (status != XR_OK)
		xr_reply_fail(call, status, xr_status_text(status));
	if (call->kept == NULL)
		return;
	atomic_store(&call->kept->runs, false);
	call_unref(call->kept); /* by the last one it has an answer */
	await(h);
	call->desk = NULL;
}

/* What is the same for all, and made anew after one that somebody has kept. */
static void
prepare(struct hand *h)
{
	h->call = (struct xr_call){
		.desk = &desk,
		.ctx = h,
		.values = true,
		.runs = true,
	};
}

bool
hand_run(struct hand *h, const struct func *func, struct xr_value *args,
	struct xr_value *named, struct xr_value **result)
{
	const struct xr_func *f = &func->f;
	struct xr_call *call = &h->call;
	struct xr_error err;

	if (call->desk == NULL)
		prepare(h);
	call->func = func;
	call->args = args;
	call->named = named;
	atomic_store_explicit(&call->answered, false, memory_order_relaxed);
	h->value = NULL;
	h->failed = false;
	h->args = args;
	atomic_store_explicit(&h->answered, 0, memory_order_relaxed);
	if (f->schema != NULL && func_check(f->schema, args, &err) != XR_OK)
		call_refuse(call, XR_E_SCHEMA, err.text);
	else
		finish(h, call, f->fn(call, args, f->ctx));
	h->args = NULL;
	*result = h->value;
	return !h->failed;
}

void
hand_let_go(struct hand *h)
{
	if (h->lent > 0)
		many_return(h->args, h->lent - 1);
	xr_value_unref(h->args);
	h->args = NULL;
	h->lent = 0;
}

bool
hand_left(struct hand *h, struct xr_value **result)
{
	struct xr_call *call = &h->call;

	if (call->kept == NULL)
		xr_reply_fail(call, XR_E_STATE,
			"it has ended its thread (pthread_exit), which is the pool's");
	finish(h, call, XR_OK);
	hand_let_go(h);
	*result = h->value;
	return !h->failed;
}

enum xr_status
hand_find(const char *name, const struct func **func, struct xr_error *err)
{
	const struct func *f = func_find(func_hash(name, strlen(name)));

	if (f == NULL || strcmp(f->f.name, name) != 0)
		return fail(err, XR_E_NO_FUNCTION,
			"%.200s is not registered, or after xr_init()", name);
	if (f->f.fn == NULL)
		return fail(err, XR_E_SCHEMA, "%.200s takes bytes", name);
	*func = f;
	return XR_OK;
}
