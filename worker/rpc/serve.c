/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - see serve.h. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "base/zalloc.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/figures.h"
#include "worker/rpc/guest.h"
#include "worker/rpc/held.h"
#include "worker/rpc/inside.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/message.h"
#include "worker/rpc/object.h"
#include "worker/rpc/prof.h"
#include "worker/rpc/serve.h"
#include "worker/rpc/serve_inner.h"
#include "worker/rpc/values.h"

LIST_HEAD(call_list, xr_call);

/* Those that were kept, for figures, and for who cancels. */
static struct {
	pthread_mutex_t lock;
	struct call_list calls;
} open_calls = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --- life ----------------------------------------------------------------- */

static void
list(struct xr_call *call)
{
	pthread_mutex_lock(&open_calls.lock);
	LIST_INSERT_HEAD(&open_calls.calls, call, list);
	pthread_mutex_unlock(&open_calls.lock);
}

static struct xr_call *
call_new(const struct xr_call *from)
{
	struct xr_call *call = zalloc(sizeof(*call));

	if (call == NULL)
		return NULL;
	*call = *from;
	atomic_store(&call->refs, 1);
	prof_ref(call->prof);
	if (call->args != NULL)
		xr_value_ref(call->args);
	if (call->named != NULL)
		xr_value_ref(call->named);
	call->rrefs = NULL;
	list(call);
	return call;
}

/* A function may defer the call that it was given on its caller's stack. */
struct xr_call *
call_keep(struct xr_call *call)
{
	if (call->kept != NULL)
		call = call->kept;
	if (atomic_load(&call->refs) > 0) {
		atomic_fetch_add(&call->refs, 1);
		return call;
	}
	call->kept = call_new(call);
	if (call->kept == NULL)
		return NULL;
	/* One is the stack's, until the function returned. */
	atomic_store(&call->kept->refs, 2);
	call->kept->whole = NULL;
	call->kept->deferred = true;
	call->deferred = true;
	return call->kept;
}

void
call_unref(struct xr_call *call)
{
	if (atomic_fetch_sub(&call->refs, 1) != 1)
		return;
	if (!atomic_load(&call->answered))
		call_refuse(call, XR_E_CANCELLED,
			"the call was dropped without an answer");
	pthread_mutex_lock(&open_calls.lock);
	LIST_REMOVE(call, list);
	pthread_mutex_unlock(&open_calls.lock);
	xr_value_unref(call->args);
	xr_value_unref(call->named);
	held_unref(call->held);
	prof_unref(call->prof);
	xr_value_unref(call->object);
	refs_free(call->rrefs);
	free(call->method);
	free(call);
}

bool
call_take_answer(struct xr_call *call)
{
	if (inside_not_forked(NULL) != XR_OK)
		return false;
	/* One on the stack is this thread's. */
	if (call->kept == NULL &&
		atomic_load_explicit(&call->refs, memory_order_relaxed) == 0) {
		if (atomic_load_explicit(&call->answered, memory_order_relaxed))
			return false;
		atomic_store_explicit(&call->answered, true,
			memory_order_relaxed);
		return true;
	}
	if (call->kept != NULL && atomic_exchange(&call->kept->answered, true))
		return false;
	return !atomic_exchange(&call->answered, true);
}

uint32_t
serve_count(bool deferred)
{
	struct xr_call *call;
	uint32_t n = 0;

	pthread_mutex_lock(&open_calls.lock);
	LIST_FOREACH(call, &open_calls.calls, list)
	n += call->desk == NULL && !atomic_load(&call->answered) &&
		!atomic_load(&call->orphan) &&
		(!deferred || !atomic_load(&call->runs));
	pthread_mutex_unlock(&open_calls.lock);
	return n;
}

/* --- running -------------------------------------------------------------- */

/* A function that returns has answered, will answer, or is answered for. */
static void
finish(struct xr_call *call, enum xr_status status)
{
	if (status != XR_OK)
		xr_reply_fail(call, status, xr_status_text(status));
	else if (!atomic_load(&call->answered) && !call->deferred)
		call_done(call);
}

static void
run_values(struct xr_call *call, const struct xr_body *body)
{
	const struct xr_func *f = &call->func->f;
	struct xr_error err = { 0 };
	enum xr_status status;

	status = values_unpack_call(call, body, &err);
	if (status == XR_OK)
		status = func_check(f->schema, call->args, &err);
	if (status != XR_OK)
		call_refuse(call, status, err.text);
	else if (call->object != NULL)
		finish(call,
			object_run(call->func, call, call->object, call->args));
	else
		finish(call, f->fn(call, call->args, f->ctx));
}

static void
run_function(struct xr_call *call, const struct xr_body *body)
{
	const struct xr_func *f = &call->func->f;

	if (call->values)
		run_values(call, body);
	else
		finish(call, f->raw(call, body->data, body->len, f->ctx));
}

static void
run_call(struct xr_call *call, const struct xr_body *body)
{
	struct prof_run run;

	if (!prof_is_on()) {
		run_function(call, body);
		return;
	}
	prof_run_begin(&run, call);
	run_function(call, body);
	prof_run_end(&run, call->func->f.name);
}

static struct xr_call *
call_of(struct work *work)
{
	return (struct xr_call *)((char *)work -
		offsetof(struct xr_call, work));
}

/* It will not run. */
static void
give_up(struct xr_call *call, enum xr_status status, const char *why)
{
	call_refuse(call, status, why);
	call_unref(call);
}

static void
run_work(struct work *work)
{
	struct xr_call *call = call_of(work);

	if (atomic_load(&call->cancelled))
		call_refuse(call, XR_E_CANCELLED, "canceled");
	else
		run_call(call, &call->body);
	call->runs = false;
	call_unref(call);
}

/* Its function did that. */
static void
thread_ended(struct work *work)
{
	struct xr_call *call = call_of(work);

	prof_run_left();
	if (!call->deferred)
		xr_reply_fail(call, XR_E_STATE,
			"it has ended its thread (pthread_exit), which is the agent's");
	call->runs = false;
	call_unref(call);
}

static void
refuse_work(struct work *work, const char *why)
{
	give_up(call_of(work), XR_E_NOMEM, why);
}

/* On the stack of whoever reads. */
static void
run_short(struct xr_call *call, const struct xr_body *body)
{
	run_call(call, body);
	if (call->kept != NULL) {
		atomic_store(&call->kept->runs, false);
		call_unref(call->kept);
	}
	xr_value_unref(call->args);
	xr_value_unref(call->named);
}

/* @body is the end of what came. NULL: no memory, as the caller knows. */
static struct xr_call *
keep(struct xr_call *from, const struct xr_body *body)
{
	const struct xr_body *whole = from->whole;
	struct xr_call *call = call_new(from);

	if (call != NULL) {
		call->whole = NULL;
		call->rrefs = from->rrefs;
		from->rrefs = NULL;
		from->method = NULL;
	}
	if (call != NULL && whole->len > 0) {
		call->held = held_take(whole);
		call->body.len = body->len;
	}
	if (call == NULL || (whole->len > 0 && call->held == NULL)) {
		call_refuse(call != NULL ? call : from, XR_E_NOMEM,
			"out of memory");
		if (call != NULL)
			call_unref(call);
		return NULL;
	}
	if (call->held != NULL)
		call->body.data = (const char *)held_data(call->held) +
			(whole->len - body->len);
	call->work.run = run_work;
	call->work.ended_thread = thread_ended;
	call->work.refuse = refuse_work;
	return call;
}

static void
refs_ready(void *ctx, enum xr_status status, const char *why)
{
	struct xr_call *call = ctx;

	if (status != XR_OK)
		give_up(call, status, why);
	else if (!crew_post(&call->work))
		give_up(call, XR_E_CLOSED, "the agent was shut down");
}

/* As soon as the owners of all references among the arguments know of them. */
static void
post(struct xr_call *call)
{
	if (!refs_await(call->rrefs, refs_ready, call))
		refs_ready(call, XR_OK, NULL);
}

/* --- methods -------------------------------------------------------------- */

static void
object_there(void *ctx, struct xr_value *object, struct xr_value *error)
{
	struct xr_error err = { 0 };
	struct xr_call *call = ctx;
	enum xr_status status;

	call->object = object;
	if (error != NULL) {
		xr_reply_error(call, error);
		call_unref(call);
		return;
	}
	status = object_method(object, call->method, &call->func, &err);
	if (status == XR_OK)
		post(call);
	else
		give_up(call, status, err.text);
}

static void
serve_method(struct xr_call *from, const struct xr_body *body, struct span name)
{
	struct rref_wire target;
	struct xr_call *call;

	if (name.at == NULL || refs_target(from->rrefs) == NULL) {
		xr_reply_fail(from, XR_E_PROTO, "that is no call of a method");
		return;
	}
	target = *refs_target(from->rrefs);
	from->method = strndup(name.at, name.len);
	if (from->method == NULL)
		xr_reply_fail(from, XR_E_NOMEM, "out of memory");
	call = from->method != NULL ? keep(from, body) : NULL;
	if (call != NULL)
		rref_object(call->peer, &target, object_there, call);
	else
		free(from->method);
}

/* --- requests ------------------------------------------------------------- */

/* Cuts the name off that a body begins with. False: it is cut short. */
static bool
take_name(struct xr_body *body, struct span *name)
{
	uint16_t len;

	if (body->len < sizeof(len))
		return false;
	memcpy(&len, body->data, sizeof(len));
	if (body->len - sizeof(len) < len)
		return false;
	name->at = (const char *)body->data + sizeof(len);
	name->len = len;
	/* What follows is aligned as the body is. */
	len = (uint16_t)((sizeof(len) + len + 7) & ~7u);
	if (body->len < len)
		return false;
	body->data = (const char *)body->data + len;
	body->len -= len;
	return true;
}

static enum xr_status
find_function(struct xr_call *call, const struct xr_record *record,
	struct span name, struct xr_error *err)
{
	const struct func *f = func_find(record->method);

	if (f == NULL ||
		(name.at != NULL &&
			(f->name_len != name.len ||
				memcmp(f->f.name, name.at, name.len) != 0)))
		return fail(err, XR_E_NO_FUNCTION,
			"%s (%u) has no function %.*s: it registers what others may call",
			agent_self()->name, agent_self()->id,
			name.at != NULL ? (int)name.len : -1,
			name.at != NULL ? name.at : "of that name");
	if (call->values != (f->f.fn != NULL))
		return fail(err, XR_E_SCHEMA, "%s takes %s", f->f.name,
			call->values ? "bytes" : "values");
	call->func = f;
	return XR_OK;
}

/* The references in front of the value. */
static enum xr_status
take_refs(struct xr_call *call, struct xr_body *body, struct xr_error *err)
{
	enum xr_status status = refs_take(body, call->peer, &call->rrefs, err);
	const struct rref_wire *birth = refs_birth(call->rrefs);

	if (status == XR_OK && (call->flags & MESSAGE_REMOTE) != 0) {
		status = XR_E_PROTO;
		if (birth != NULL) {
			call->birth = *birth;
			status = rref_begin(call->peer, birth);
		}
	}
	if (status != XR_OK && status != XR_E_EXISTS)
		/* There is nothing that its answer could be put into. */
		call->flags &= ~(uint32_t)MESSAGE_REMOTE;
	return status == XR_OK ?
		XR_OK :
		fail(err, status, "%s", xr_status_text(status));
}

/* What a call on the stack has yet. */
static void
give_back(struct xr_call *call)
{
	refs_free(call->rrefs);
	if (call->prof != NULL)
		prof_unref(call->prof);
}

static void
serve_later(struct xr_call *from, const struct xr_body *body)
{
	struct xr_call *call = keep(from, body);

	if (call != NULL)
		post(call);
}

void
serve_request(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body)
{
	struct xr_call call = {
		.peer = peer,
		.corr = record->corr,
		.flags = record->flags,
		.oneway = record->kind == MESSAGE_ONEWAY,
		.values = (record->flags & MESSAGE_VALUE) != 0,
		.runs = true,
		.whole = body,
	};
	struct span name = { NULL, 0 };
	struct xr_body rest = *body;
	struct xr_error err; /* read where it was written */
	enum xr_status status = XR_OK;

	figures_add(FIGURE_SERVED, 1);
	if ((record->flags & MESSAGE_PROFILE) != 0 && !call.oneway)
		call.prof = prof_new();
	if ((record->flags & MESSAGE_NAMED) != 0 && !take_name(&rest, &name))
		status = fail(&err, XR_E_PROTO, "a call is cut short");
	if (status == XR_OK && call.values)
		status = take_refs(&call, &rest, &err);
	if (status == XR_E_EXISTS) { /* it came before */
		give_back(&call);
		return;
	}
	if (status == XR_OK && (call.flags & MESSAGE_METHOD) == 0)
		status = find_function(&call, record, name, &err);
	if (status != XR_OK)
		call_refuse(&call, status, err.text);
	else if ((call.flags & MESSAGE_METHOD) != 0)
		serve_method(&call, &rest, name);
	else if ((call.func->f.flags & XR_FN_SHORT) != 0 &&
		refs_known(call.rrefs))
		run_short(&call, &rest);
	else
		serve_later(&call, &rest);
	give_back(&call);
}

void
serve_tell_running(void)
{
	const struct peer *self = agent_self();
	char text[1024];
	struct xr_call *call;
	size_t n = 0;

	pthread_mutex_lock(&open_calls.lock);
	LIST_FOREACH(call, &open_calls.calls, list)
	if (call->desk == NULL && atomic_load(&call->runs) && n < sizeof(text))
		n += (size_t)snprintf(text + n, sizeof(text) - n,
			"%s%s, called by %s (%u)", n > 0 ? "; " : "",
			call->func != NULL ? call->func->f.name : "a method",
			call->peer->name, call->peer->id);
	pthread_mutex_unlock(&open_calls.lock);
	if (n > 0)
		dprintf(STDERR_FILENO,
			"xrun: %s (%u) cannot leave: these functions have not returned: %s\n",
			self->name, self->id, text);
}

void
serve_cancel(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body)
{
	struct xr_call *call;

	(void)body;
	rref_cancel(peer, record->corr);
	guest_cancelled(peer, record->corr);
	pthread_mutex_lock(&open_calls.lock);
	LIST_FOREACH(call, &open_calls.calls, list)
	if (call->desk == NULL && call->peer == peer &&
		call->corr == record->corr)
		atomic_store(&call->cancelled, true);
	pthread_mutex_unlock(&open_calls.lock);
}

void
serve_lost(const struct peer *peer)
{
	struct xr_call *call;

	pthread_mutex_lock(&open_calls.lock);
	LIST_FOREACH(call, &open_calls.calls, list)
	if (call->desk == NULL && call->peer == peer)
		atomic_store(&call->cancelled, true);
	pthread_mutex_unlock(&open_calls.lock);
}

void
serve_forget_all(void)
{
	struct xr_call *call;

	pthread_mutex_lock(&open_calls.lock);
	LIST_FOREACH(call, &open_calls.calls, list)
	if (call->desk == NULL) {
		atomic_store(&call->cancelled, true);
		atomic_store(&call->orphan, true);
	}
	pthread_mutex_unlock(&open_calls.lock);
}

/* --- what a function asks of its call ------------------------------------- */

XR_EXPORT const char *
xr_call_caller(const struct xr_call *call, uint32_t *id)
{
	if (atomic_load(&call->orphan) || call->desk != NULL)
		return "";
	if (id != NULL)
		*id = call->peer->id;
	return call->peer->name;
}

XR_EXPORT const char *
xr_call_func(const struct xr_call *call)
{
	return call->func->f.name;
}

XR_EXPORT struct xr_value *
xr_call_named(const struct xr_call *call)
{
	return call->named;
}

XR_EXPORT bool
xr_call_cancelled(const struct xr_call *call)
{
	if (call->desk != NULL)
		return !atomic_load(&call->answered) &&
			call->desk->is_cancelled(call);
	return atomic_load(&(call->kept != NULL ? call->kept : call)
			->cancelled);
}

XR_EXPORT struct xr_call *
xr_call_defer(struct xr_call *call)
{
	struct xr_call *kept =
		inside_not_forked(NULL) == XR_OK ? call_keep(call) : NULL;

	if (kept != NULL)
		call->deferred = kept->deferred = true;
	return kept;
}

XR_EXPORT void
xr_call_drop(struct xr_call *call)
{
	if (call != NULL && inside_not_forked(NULL) == XR_OK)
		call_unref(call);
}
