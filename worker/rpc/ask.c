/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - see ask.h. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/zalloc.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/crew.h"
#include "worker/rpc/due.h"
#include "worker/rpc/figures.h"
#include "worker/rpc/func.h"
#include "worker/rpc/future.h"
#include "worker/rpc/held.h"
#include "worker/rpc/inside.h"
#include "worker/rpc/method.h"
#include "worker/rpc/parcel.h"
#include "worker/rpc/pending.h"
#include "worker/rpc/prof.h"
#include "worker/rpc/rref.h"
#include "worker/rpc/tally.h"
#include "worker/rpc/values.h"

static struct wait_site site; /* of all who wait for answers */
static struct tally active;

uint32_t
ask_active(void)
{
	return tally_count(&active);
}

uint64_t
ask_begun(void)
{
	return tally_ever(&active);
}

static void
call_begins(void)
{
	tally_up(&active);
}

static void
call_over(void)
{
	tally_down(&active);
}

enum xr_status
ask_await_idle(int64_t deadline, struct xr_error *err)
{
	const struct peer *to;

	if (tally_await(&active, deadline))
		return XR_OK;
	to = pending_first();
	if (to == NULL)
		return fail(err, XR_E_TIMEOUT,
			"%u calls are answered, and their callbacks run yet",
			ask_active());
	return fail(err, XR_E_TIMEOUT,
		"%u calls are not answered, one by %s (%u)", ask_active(),
		to->name, to->id);
}

/* --- sending -------------------------------------------------------------- */

/* The name goes along until the callee has answered to it; of a method always, as
 * it is found by that. */
static bool
names_it(const struct question *q)
{
	return q->method != NULL &&
		((q->flags & MESSAGE_METHOD) != 0 ||
			!peer_knows(q->to, q->method->place));
}

/* @flags: beside @q's. */
static enum xr_status
send_named(const struct question *q, uint64_t corr, uint8_t flags,
	struct due *due, struct xr_error *err)
{
	struct xr_part parts[QUESTION_PARTS], *all = parts;
	enum xr_status status;
	struct xr_message m = {
		.record = {
			.kind = (uint8_t)q->kind,
			.flags = q->flags | flags,
			.method = q->method != NULL ? q->method->hash : 0,
			.corr = corr,
		},
		.parts = q->parts,
		.count = q->count,
		.lent = q->lent && !q->apart,
		.loans = q->loans,
		.loan_count = q->loan_count,
	};

	if (names_it(q)) {
		if (q->count + 1 > QUESTION_PARTS)
			all = calloc(q->count + 1, sizeof(*all));
		if (all == NULL)
			return fail(err, XR_E_NOMEM, "out of memory");
		m.record.flags |= MESSAGE_NAMED;
		all[0] = (struct xr_part){ q->method->prefix,
			q->method->prefix_len };
		memcpy(all + 1, q->parts, q->count * sizeof(*all));
		m.parts = all;
		m.count = q->count + 1;
	}
	/* Who shuts down ends what is pending; that was before, or is told. */
	inside_order();
	status = agent_state() == AGENT_CLOSING ?
		fail(err, XR_E_CLOSED, "the agent was shut down") :
		peer_send(q->to, &m, due, q->parcel, err);
	if (all != parts)
		free(all);
	return status;
}

static enum xr_status
send_question(const struct question *q, uint64_t corr, uint8_t flags,
	struct due *due, struct xr_error *err)
{
	enum xr_status status = send_named(q, corr, flags, due, err);

	if (status != XR_OK && q->refs != NULL)
		refs_out_undo(q->refs);
	return status;
}

/* Best effort: the callee may go on. It is not worth a wait. */
static void
cancel(struct peer *to, uint64_t corr)
{
	ask_tell(&(struct question){ .to = to,
			 .kind = MESSAGE_CANCEL,
			 .corr = corr },
		NULL);
}

/* A call of the program's that is under way, for figures and profiles. */
struct run {
	int64_t begun; /* tick_now() */
	struct prof_call *prof;
};

/* Before it can end; gives a flag for its message. */
static uint8_t
record(struct run *run, const struct question *q, const struct pending *p,
	const char *mode)
{
	if (!q->call || !prof_is_on())
		return 0;
	run->prof = prof_call_open(q, pending_name(p), mode);
	return run->prof != NULL && prof_call_travels(run->prof) ?
		MESSAGE_PROFILE :
		0;
}

static void
run_over(struct peer *p, const struct run *run, enum xr_status status)
{
	figures_call(run->begun, status);
	if (run->prof != NULL)
		prof_call_close(run->prof);
	if (status != XR_OK)
		atomic_fetch_add_explicit(&p->errors, 1, memory_order_relaxed);
}

/* --- errors that came ----------------------------------------------------- */

/* Of MESSAGE_ERROR: the ERROR that it brings, or one of its status. */
static struct xr_value *
error_in(struct peer *from, const struct xr_record *record,
	const struct xr_body *body)
{
	struct xr_value *error = NULL;
	struct xr_error err = { 0 };
	int32_t status = XR_E_PROTO;

	if ((record->flags & MESSAGE_VALUE) == 0) {
		if (body->len == sizeof(status))
			memcpy(&status, body->data, sizeof(status));
		return failure_new(status < 0 ? status : XR_E_PROTO,
			"%s (%u): %s", from->name, from->id,
			xr_status_text(status));
	}
	status = values_unpack(body, from, &error, &err);
	if (status != XR_OK)
		return failure_new(status == XR_E_NOMEM ? status : XR_E_DECODE,
			"the error of %s (%u): %s", from->name, from->id,
			err.text);
	if (xr_value_kind(error) == XR_ERROR)
		return error;
	xr_value_unref(error);
	return failure_new(XR_E_PROTO, "%s (%u) sent no error as one",
		from->name, from->id);
}

/* --- who waits ------------------------------------------------------------ */

static void
sync_done(struct ask_sync *a, enum xr_status status)
{
	a->status = status;
	waiter_done(&a->waiter);
}

static void
take_bytes(struct ask_sync *a, const struct xr_body *body)
{
	a->len = body->len;
	if (a->into != NULL) {
		memcpy(a->into, body->data,
			body->len < a->cap ? body->len : a->cap);
		a->data = a->into;
		return;
	}
	if (body->len > 0)
		a->held = held_take(body);
	if (a->held != NULL)
		a->data = held_data(a->held);
	if (body->len > 0 && a->held == NULL)
		a->error = failure_new(XR_E_NOMEM, "no memory for an answer");
}

static void
sync_answered(struct pending *p, const struct xr_record *record,
	const struct xr_body *body)
{
	struct ask_sync *a = p->ctx;
	struct xr_error err;

	/* Not all of it: zeroing takes as long as the rest. */
	err.status = XR_E_PROTO;
	err.text[0] = '\0';
	if (record->kind == MESSAGE_ERROR) {
		a->error = error_in(pending_peer(p), record, body);
	} else if (a->read != NULL) {
		a->value = a->read(pending_peer(p), record, body, &err);
		if (a->value == NULL)
			a->error = failure_new(err.status, "%s", err.text);
	} else {
		take_bytes(a, body);
	}
	sync_done(a, a->error == NULL ? XR_OK : failure_status(a->error, NULL));
}

static void
sync_failed(struct pending *p, struct xr_value *error)
{
	struct ask_sync *a = p->ctx;

	a->error = error;
	sync_done(a, failure_status(error, NULL));
}

static const struct pending_ops sync_ops = { false, sync_answered,
	sync_failed };
static const struct pending_ops sync_call_ops = { true, sync_answered,
	sync_failed };

/* Of the answer and of the end of its time one came first. An answer that has arrived and
 * was not read yet came first. */
static enum xr_status
sync_late(const struct question *q, struct ask_sync *a, uint64_t corr,
	struct xr_error *err)
{
	struct pending *p;

	lead_catch_up();
	p = pending_claim(corr, q->to);
	if (p == NULL) {
		lead_wait(&a->waiter, NULL, INT64_MAX);
		return a->status;
	}
	pending_put(p);
	/* What comes yet is to be read, and what came since we looked last. */
	lead_asked();
	lead_decline();
	cancel(q->to, corr);
	return fail(err, XR_E_TIMEOUT, "no answer from %s (%u) within %lld ms",
		q->to->name, q->to->id, (long long)(q->timeout / NS_PER_MS));
}

enum xr_status
ask_wait(const struct question *q, struct ask_sync *a, struct xr_error *err)
{
	const struct wait_hint hint = { q->to->cpu,
		q->site != NULL ? q->site : &site };
	struct due due = { .timeout = q->timeout };
	struct run run = { .begun = tick_now() };
	struct pending *p;
	enum xr_status status;
	uint64_t corr;
	uint8_t flags;

	if (lead_delivers())
		return fail(err, XR_E_STATE,
			"a short function or callback may not wait");
	p = pending_new();
	if (p == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	p->timeout = q->timeout;
	p->ops = q->call ? &sync_call_ops : &sync_ops;
	p->ctx = a;
	if (q->call)
		call_begins();
	flags = record(&run, q, p, "sync");
	/* Whoever waits looks after its time. */
	corr = pending_open(p, q->to, INT64_MAX);
	lead_expect();
	status = send_question(q, corr, flags, &due, err);
	if (status != XR_OK) {
		lead_decline();
		p = pending_claim(corr, q->to);
		if (p != NULL)
			pending_put(p);
		else
			lead_wait(&a->waiter, NULL, INT64_MAX);
		xr_value_unref(a->error);
		a->error = NULL;
	} else {
		crew_wait_begin();
		status = lead_wait(&a->waiter, &hint, due_at(&due)) ?
			a->status :
			sync_late(q, a, corr, err);
		crew_wait_end();
		if (a->error != NULL)
			failure_status(a->error, err);
	}
	if (status == XR_OK && q->method != NULL)
		peer_learns(q->to, q->method->place);
	if (q->call) {
		run_over(q->to, &run, status);
		call_over();
	}
	return status;
}

/* --- who has a future ----------------------------------------------------- */

/* Who fails a question while it is being sent leaves its end to who sends it, as a
 * carrier may be given the memory yet. */
enum asked_state {
	ASKED_NEW,
	ASKED_SENDING,
	ASKED_SENT,
	ASKED_FAILED,
};

struct asked {
	struct xr_future *future; /* a reference, until it ended */
	ask_read_fn *read;
	const struct method *method;
	struct peer *to;
	struct parcel *parcel; /* of what is lent; NULL */
	uint64_t corr;
	struct run run;
	uint8_t flags; /* beside the question's */
	bool call;
	_Atomic uint32_t state; /* enum asked_state */
	struct xr_value *error; /* of one that failed */
	void (*ended)(void *ctx);
	void *ctx;
};

static struct xr_value *
read_bytes(struct peer *from, const struct xr_record *record,
	const struct xr_body *body, struct xr_error *err)
{
	struct xr_value *v = xr_value_new_bytes(body->data, body->len);

	(void)from;
	(void)record;
	if (v == NULL)
		fail(err, XR_E_NOMEM, "no memory for an answer");
	return v;
}

/* The program may have its memory again. */
static void
end_loan(struct asked *a)
{
	parcel_end(a->parcel, a->to);
	a->parcel = NULL;
	if (a->ended != NULL)
		a->ended(a->ctx);
}

static void
future_ends(struct asked *a, struct xr_value *result, bool failed)
{
	struct xr_future *future = a->future;

	if (a->call)
		run_over(a->to, &a->run,
			failed ? failure_status(result, NULL) : XR_OK);
	if (!failed && a->method != NULL)
		peer_learns(a->to, a->method->place);
	end_loan(a);
	future_finish(future, result, failed);
}

static void
future_answered(struct pending *p, const struct xr_record *record,
	const struct xr_body *body)
{
	struct xr_value *result = NULL;
	struct asked *a = p->ctx;
	struct xr_error err = { 0 };
	bool failed = record->kind == MESSAGE_ERROR;

	if (failed)
		result = error_in(pending_peer(p), record, body);
	else
		result = (a->read != NULL ? a->read :
					    read_bytes)(pending_peer(p), record,
			body, &err);
	if (result == NULL && !failed) {
		result = failure_new(err.status, "%s", err.text);
		failed = true;
	}
	lead_answered();
	future_ends(a, result, failed);
}

/* It has failed, and @went: the answer of a peer that is there may come yet, unless
 * that hears in time that nobody waits for it. */
static void
failed_ends(struct asked *a, bool went)
{
	enum xr_status status = failure_status(a->error, NULL);

	if (went && (status == XR_E_TIMEOUT || status == XR_E_CANCELLED))
		cancel(a->to, a->corr);
	else
		lead_answered();
	future_ends(a, a->error, true);
}

/* By who claimed the question. */
static void
future_failed(struct pending *p, struct xr_value *error)
{
	struct asked *a = p->ctx;
	uint32_t was;

	a->error = error;
	was = atomic_exchange(&a->state, ASKED_FAILED);
	if (was == ASKED_SENT)
		failed_ends(a, true);
	else if (was == ASKED_NEW)
		future_ends(a, error, true);
}

static const struct pending_ops future_ops = { false, future_answered,
	future_failed };
static const struct pending_ops future_call_ops = { true, future_answered,
	future_failed };

static void
asked_settled(void *ctx)
{
	struct asked *a = ctx;

	if (a->call)
		call_over();
}

/* If nobody else claimed the question, nobody will. */
static bool
asked_cancel(struct xr_future *future, void *ctx)
{
	struct asked *a = ctx;
	struct pending *p = NULL;

	(void)future;
	if (agent_enter(NULL) != XR_OK)
		return false; /* it is ended by who shuts down */
	p = pending_claim(a->corr, a->to);
	if (p != NULL) {
		future_failed(p, failure_new(XR_E_CANCELLED, "canceled"));
		pending_put(p);
	}
	agent_leave();
	return p != NULL;
}

static const struct future_maker asked_maker = {
	.cancel = asked_cancel,
	.settled = asked_settled,
	.free = free,
};

struct asked *
ask_open(const struct question *q, ask_read_fn *read, struct xr_future **future)
{
	struct due due = { .timeout = q->timeout };
	struct asked *a = zalloc(sizeof(*a));
	struct pending *p = a != NULL ? pending_new() : NULL;
	struct xr_future *f = p != NULL ? future_new(&asked_maker, a) : NULL;

	if (f == NULL) {
		if (p != NULL)
			pending_put(p);
		free(a);
		return NULL;
	}
	*a = (struct asked){ .future = xr_future_ref(f),
		.read = read,
		.method = q->method,
		.to = q->to,
		.run = { .begun = tick_now() },
		.parcel = q->lent && q->parcel != NULL ? parcel_ref(q->parcel) :
							 NULL,
		.call = q->call,
		.ended = q->ended,
		.ctx = q->ctx };
	p->timeout = q->timeout;
	p->ops = q->call ? &future_call_ops : &future_ops;
	p->ctx = a;
	if (q->call)
		call_begins();
	a->corr = pending_name(p);
	a->flags = record(&a->run, q, p, "async");
	*future = f;
	pending_open(p, q->to, due_at(&due));
	return a;
}

/* No answer will come. */
static void
fail_unsent(struct asked *a, enum xr_status status, const char *why)
{
	struct pending *p = pending_claim(a->corr, a->to);

	if (p == NULL)
		return;
	a->error = failure_new(status, "%s", why);
	failed_ends(a, false);
	pending_put(p);
}

void
ask_fail(struct asked *a, enum xr_status status, const char *why)
{
	struct pending *p = pending_claim(a->corr, a->to);

	if (p == NULL)
		return;
	future_failed(p, failure_new(status, "%s", why));
	pending_put(p);
}

enum xr_status
ask_send(struct asked *a, const struct question *q, struct xr_error *err)
{
	struct due sending = { .timeout =
				       q->limit > 0 ? q->limit : q->timeout };
	uint32_t was = ASKED_NEW;
	struct xr_error why = { 0 };
	enum xr_status status;

	if (!atomic_compare_exchange_strong(&a->state, &was, ASKED_SENDING))
		return XR_OK;
	lead_asked();
	status = send_question(q, a->corr, a->flags, &sending, &why);
	was = ASKED_SENDING;
	if (!atomic_compare_exchange_strong(&a->state, &was, ASKED_SENT))
		failed_ends(a, status == XR_OK);
	else if (status != XR_OK)
		fail_unsent(a, status, why.text);
	return sending.no_room ? fail(err, status, "%s", why.text) : XR_OK;
}

enum xr_status
ask_future(const struct question *q, ask_read_fn *read,
	struct xr_future **future, struct xr_error *err)
{
	struct due due = { .timeout = q->timeout };
	int64_t deadline = due_at(&due);
	struct asked *a = ask_open(q, read, future);

	if (a == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	/* The future reports all other failures. */
	if (ask_send(a, q, err) != XR_OK) {
		xr_future_unref(*future);
		*future = NULL;
		return XR_E_TIMEOUT;
	}
	if (deadline != INT64_MAX)
		lead_due(deadline);
	return XR_OK;
}

enum xr_status
ask_tell(const struct question *q, struct xr_error *err)
{
	struct due due = { .timeout = q->timeout };
	struct prof_call *prof = NULL;
	enum xr_status status;

	if (q->call) {
		figures_add(FIGURE_ONEWAY, 1);
		if (prof_is_on())
			prof = prof_call_open(q, q->corr, "oneway");
	}
	status = send_question(q, q->corr, 0, &due, err);
	prof_call_close(prof);
	return status;
}

void
ask_answered(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body)
{
	struct pending *p = pending_claim(record->corr, peer);

	if (p == NULL) { /* too late */
		if ((record->flags & MESSAGE_VALUE) != 0)
			refs_discard(peer, body);
		return;
	}
	p->ops->answer(p, record, body);
	pending_put(p);
}
