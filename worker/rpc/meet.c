/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meet.c - where meetings are collected; see meet.h.
 *
 * A report is a question whose body is a LIST (enum meet_item). The collector answers
 * with what came of all, or with an error. Its own report goes the same way.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/queue.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/future.h"
#include "worker/rpc/lead.h"
#include "worker/rpc/meet.h"
#include "worker/rpc/meet_inner.h"
#include "worker/rpc/message.h"
#include "worker/rpc/values.h"

#define ERROR_TEXT 400 /* bytes */

/* A member's report that waits for its answer. */
struct report {
	const char *name;  /* among the meeting's names */
	struct peer *from; /* NULL: not here yet */
	uint64_t corr;
	int64_t deadline; /* of the one who asks, on our clock */
	bool answered;
	struct xr_value *value;
};

/* On the collector. */
struct meeting {
	LIST_ENTRY(meeting) list;
	struct meet_key key;
	bool least;
	struct xr_value *names; /* BYTES */
	struct xr_value *error; /* it failed: who comes now has that; or NULL */
	size_t count, here;
	struct report report[]; /* [count], in the order of names */
};
LIST_HEAD(meeting_list, meeting);

static struct {
	pthread_mutex_t lock;
	struct meeting_list meetings;
} m = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --- answers ----------------------------------------------- */

/* What is sent when the lock is given away. */
struct reply {
	struct peer *to;
	uint64_t corr;
};

static void
send_one(const struct reply *to, enum message_kind kind,
	struct xr_value *result)
{
	struct values_out out = { 0 };
	struct xr_message msg = {
		.record = { .kind = (uint8_t)kind,
			.flags = MESSAGE_VALUE,
			.corr = to->corr },
	};

	if (result == NULL || values_pack(result, to->to, &out, NULL) != XR_OK)
		return; /* he will hear of it by his own clock */
	msg.parts = out.parts;
	msg.count = out.count;
	msg.loans = out.loans;
	msg.loan_count = out.loan_count;
	if (peer_send(to->to, &msg, NULL, out.parcel, NULL) != XR_OK)
		refs_out_undo(&out.refs);
	values_out_fini(&out);
}

/* Ourselves last: who waits here may be about to leave, and others could not be told
 * any more. */
static void
send_result(const struct reply *to, size_t count, enum message_kind kind,
	struct xr_value *result)
{
	for (size_t i = 0; i < count; i++)
		if (!to[i].to->self)
			send_one(&to[i], kind, result);
	for (size_t i = 0; i < count; i++)
		if (to[i].to->self)
			send_one(&to[i], kind, result);
}

static struct xr_value *
all_values(const struct meeting *mt)
{
	struct xr_value *all = xr_value_new_dict();
	enum xr_status status = all != NULL ? XR_OK : XR_E_NOMEM;

	for (size_t i = 0; i < mt->count && status == XR_OK; i++)
		status = xr_value_put(all, mt->report[i].name,
			strlen(mt->report[i].name),
			xr_value_ref(mt->report[i].value));
	if (status == XR_OK)
		return all;
	xr_value_unref(all);
	return NULL;
}

static struct xr_value *
least_value(const struct meeting *mt)
{
	uint64_t least = UINT64_MAX, said;

	for (size_t i = 0; i < mt->count; i++) {
		if (xr_value_get_u64(mt->report[i].value, &said) != XR_OK)
			said = 0;
		least = said < least ? said : least;
	}
	return xr_value_new_u64(least);
}

/* The ranks whose reports are missing when the time is over. */
static struct xr_value *
late_error(const struct meeting *mt)
{
	char text[ERROR_TEXT] = "these did not come in time: ";
	size_t begin = strlen(text), n = begin, left = 0;

	for (size_t i = 0; i < mt->count; i++) {
		const char *name = mt->report[i].name;

		if (mt->report[i].from != NULL)
			continue;
		if (n + strlen(name) + 40 > sizeof(text))
			left++;
		else
			n += (size_t)snprintf(text + n, sizeof(text) - n,
				"%s%s", n > begin ? ", " : "", name);
	}
	if (left > 0)
		snprintf(text + n, sizeof(text) - n, " and %zu more", left);
	return failure_new(XR_E_TIMEOUT, "%s", text);
}

static bool
is_gone(const struct peer *p)
{
	return peer_is_gone(p) || atomic_load(&p->state) >= PEER_LOST;
}

/* Returns true if the member at @i has not reported and never will: it is lost, has left,
 * or is unknown. @err says which. */
static bool
will_not_come(const struct meeting *mt, size_t i, struct xr_error *err)
{
	const struct report *r = &mt->report[i];
	struct peer *p;

	if (r->from != NULL)
		return false;
	p = agent_find(r->name);
	if (p == NULL)
		fail(err, XR_E_NOTFOUND, "%s is no member of the group",
			r->name);
	else if (is_gone(p))
		peer_lost_error(p, err);
	return p == NULL || is_gone(p);
}

/* Members that are lost or have left. Others may be on their way, and are not named. */
static struct xr_value *
lost_error(const struct meeting *mt)
{
	char text[ERROR_TEXT] = "";
	struct xr_error one;
	size_t n = 0, left = 0;

	for (size_t i = 0; i < mt->count; i++) {
		if (!will_not_come(mt, i, &one))
			continue;
		if (n + strlen(one.text) + 40 > sizeof(text))
			left++;
		else
			n += (size_t)snprintf(text + n, sizeof(text) - n,
				"%s%s", n > 0 ? "; " : "", one.text);
	}
	if (left > 0)
		snprintf(text + n, sizeof(text) - n, " and %zu more", left);
	return failure_new(XR_E_PEER_LOST, "%s", text);
}

static void
forget(struct meeting *mt)
{
	LIST_REMOVE(mt, list);
	for (size_t i = 0; i < mt->count; i++)
		xr_value_unref(mt->report[i].value);
	xr_value_unref(mt->names);
	xr_value_unref(mt->error);
	free(mt);
}

/* Those of @mt that wait for an answer, which they are to have; the lock is held. */
static size_t
take_waiting(struct meeting *mt, struct reply *out)
{
	size_t n = 0;

	for (size_t i = 0; i < mt->count; i++) {
		struct report *r = &mt->report[i];

		if (r->from == NULL || r->answered)
			continue;
		r->answered = true;
		out[n++] = (struct reply){ r->from, r->corr };
	}
	return n;
}

/* When the first of them loses patience. */
static int64_t
due(const struct meeting *mt)
{
	int64_t first = INT64_MAX;

	for (size_t i = 0; i < mt->count; i++)
		if (mt->report[i].from != NULL && !mt->report[i].answered &&
			mt->report[i].deadline < first)
			first = mt->report[i].deadline;
	return first;
}

/* --- reports ----------------------------------------------- */

struct incoming {
	struct meet_key key;
	int64_t timeout;
	bool least;
	size_t count;                   /* of names */
	struct xr_value *names, *value; /* borrowed */
};

/* 0: those are no names. */
static size_t
count_names(const struct xr_value *names)
{
	size_t len, count = 0;
	const char *text = xr_value_data(names, &len);

	if (xr_value_kind(names) != XR_BYTES || len == 0 ||
		text[len - 1] != '\0')
		return 0;
	for (size_t i = 0; i < len; i++)
		count += text[i] == '\0';
	return count;
}

static bool
parse(const struct xr_value *v, struct incoming *in)
{
	if (xr_value_kind(v) != XR_LIST || xr_value_count(v) != MEET_ITEMS)
		return false;
	in->names = xr_value_at(v, MEET_NAMES);
	in->value = xr_value_at(v, MEET_VALUE);
	in->count = count_names(in->names);
	return in->count > 0 &&
		xr_value_get_u64(xr_value_at(v, MEET_SET_A), &in->key.set.a) ==
		XR_OK &&
		xr_value_get_u64(xr_value_at(v, MEET_SET_B), &in->key.set.b) ==
		XR_OK &&
		xr_value_get_u64(xr_value_at(v, MEET_NUMBER),
			&in->key.number) == XR_OK &&
		xr_value_get_i64(xr_value_at(v, MEET_TIMEOUT), &in->timeout) ==
		XR_OK &&
		xr_value_get_bool(xr_value_at(v, MEET_LEAST), &in->least) ==
		XR_OK &&
		in->timeout >= 0;
}

static struct meeting *
meeting_new(const struct incoming *in)
{
	struct meeting *mt =
		calloc(1, sizeof(*mt) + in->count * sizeof(mt->report[0]));
	const char *name;
	size_t len;

	if (mt == NULL)
		return NULL;
	mt->key = in->key;
	mt->least = in->least;
	mt->names = xr_value_ref(in->names);
	mt->count = in->count;
	name = xr_value_data(mt->names, &len);
	for (size_t i = 0; i < mt->count; i++) {
		mt->report[i].name = name;
		name += strlen(name) + 1;
	}
	LIST_INSERT_HEAD(&m.meetings, mt, list);
	return mt;
}

static struct meeting *
find(const struct incoming *in, bool *is_new)
{
	struct meeting *mt;

	LIST_FOREACH(mt, &m.meetings, list)
	if (meet_same(mt->key.set, in->key.set) &&
		mt->key.number == in->key.number)
		break;
	*is_new = mt == NULL;
	return mt != NULL ? mt : meeting_new(in);
}

static struct report *
place_of(struct meeting *mt, const struct peer *from)
{
	for (size_t i = 0; i < mt->count; i++)
		if (strcmp(mt->report[i].name, from->name) == 0)
			return &mt->report[i];
	return NULL;
}

static const char no_memory[] = "out of memory";

static void
refuse(struct peer *peer, uint64_t corr, const char *why)
{
	struct xr_value *error =
		failure_new(why == no_memory ? XR_E_NOMEM : XR_E_INVAL, "%s",
			why);

	send_result(&(struct reply){ peer, corr }, 1, MESSAGE_ERROR, error);
	xr_value_unref(error);
}

/* The lock is held. Gives why it is refused; NULL: it is noted. */
static const char *
note(struct meeting *mt, struct peer *peer, uint64_t corr,
	const struct incoming *in)
{
	struct report *r = place_of(mt, peer);
	int64_t now = clock_now();

	if (r == NULL || in->count != mt->count)
		return "the meeting is of others";
	if (r->from != NULL)
		return "reported twice to one meeting";
	r->from = peer;
	r->corr = corr;
	r->value = xr_value_ref(in->value);
	r->deadline =
		in->timeout > INT64_MAX - now ? INT64_MAX : now + in->timeout;
	mt->here++;
	if (r->deadline != INT64_MAX)
		lead_due(r->deadline);
	return NULL;
}

/* Returns true if a member that has not reported is lost or has left. */
static bool
lacks_one(const struct meeting *mt)
{
	for (size_t i = 0; i < mt->count; i++)
		if (will_not_come(mt, i, NULL))
			return true;
	return false;
}

/* Who dies before anybody has spoken to him is heard of, too. */
static void
reach_members(const struct incoming *in)
{
	struct peer *p;
	size_t len;
	const char *name = xr_value_data(in->names, &len);

	for (size_t i = 0; i < in->count; i++) {
		p = agent_find(name);
		name += strlen(name) + 1;
		if (p == NULL || atomic_load(&p->state) != PEER_NEW)
			continue;
		peer_reach(p);
		if (atomic_load(&p->state) >= PEER_LOST)
			meet_lost(p);
	}
}

void
meet_on_report(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body)
{
	struct xr_value *v = NULL, *all = NULL, *error = NULL;
	struct reply *out = NULL;
	struct meeting *mt = NULL;
	enum xr_status status;
	const char *why;
	struct incoming in;
	bool is_new = false;
	size_t n = 0;

	status = values_unpack(body, peer, &v, NULL);
	if (status != XR_OK || !parse(v, &in)) {
		refuse(peer, record->corr,
			status == XR_E_NOMEM ? no_memory : "that is no report");
		xr_value_unref(v);
		return;
	}
	pthread_mutex_lock(&m.lock);
	/* Since the lock is held, meet_lost() has been, or will be. */
	why = is_gone(peer) ? "it is lost" : no_memory;
	if (!is_gone(peer))
		mt = find(&in, &is_new);
	/* Of a meeting that is known, not of the report: a faulty one names others. */
	if (mt != NULL)
		out = calloc(mt->count, sizeof(*out));
	if (out != NULL)
		why = note(mt, peer, record->corr, &in);
	if (mt != NULL && why != NULL && is_new)
		forget(mt);
	if (why != NULL && (is_new || out == NULL))
		mt = NULL;
	is_new = is_new && mt != NULL;
	if (mt != NULL && mt->error == NULL && lacks_one(mt))
		mt->error = lost_error(mt);
	if (mt != NULL && mt->error != NULL) {
		error = xr_value_ref(mt->error);
		n = take_waiting(mt, out);
	} else if (mt != NULL && mt->here == mt->count) {
		all = mt->least ? least_value(mt) : all_values(mt);
		n = take_waiting(mt, out);
	}
	if (mt != NULL && mt->here == mt->count)
		forget(mt);
	pthread_mutex_unlock(&m.lock);
	if (why != NULL)
		refuse(peer, record->corr, why);
	if (is_new)
		reach_members(&in);
	send_result(out, n, error != NULL ? MESSAGE_ERROR : MESSAGE_REPLY,
		error != NULL ? error : all);
	xr_value_unref(error);
	xr_value_unref(all);
	xr_value_unref(v);
	free(out);
}

/* --- who is missing ---------------------------------------- */

/* Every member that has reported receives the meeting's error, and so does every member
 * that reports later. The lock is held; gives what is to be sent when it is not. */
static size_t
break_up(struct meeting *mt, bool is_late, struct reply **out)
{
	*out = calloc(mt->count, sizeof(**out));
	if (*out == NULL)
		return 0;
	mt->error = is_late ? late_error(mt) : lost_error(mt);
	return take_waiting(mt, *out);
}

static void
send_broken(struct reply *out, size_t n, struct xr_value *error)
{
	send_result(out, n, MESSAGE_ERROR, error);
	xr_value_unref(error);
	free(out);
}

/* False: none was overdue; @next: when the next will be. */
static bool
expire_one(int64_t now, int64_t *next)
{
	struct xr_value *error = NULL;
	struct reply *out = NULL;
	struct meeting *mt;
	size_t n = 0;

	*next = INT64_MAX;
	pthread_mutex_lock(&m.lock);
	LIST_FOREACH(mt, &m.meetings, list)
	{
		int64_t when = due(mt);

		if (when <= now) {
			n = break_up(mt, true, &out);
			break;
		}
		if (when < *next)
			*next = when;
	}
	if (n > 0)
		error = xr_value_ref(mt->error);
	pthread_mutex_unlock(&m.lock);
	send_broken(out, n, error);
	return n > 0;
}

int64_t
meet_expire(int64_t now)
{
	int64_t next;

	while (expire_one(now, &next))
		continue;
	return next;
}

/* Who is lost takes back what he reported: those who know of it do not come, and
 * are not to be waited for. The lock is held. */
static void
withdraw(struct meeting *mt, struct report *r)
{
	if (r->from == NULL)
		return;
	xr_value_unref(r->value);
	*r = (struct report){ .name = r->name };
	mt->here--;
}

/* A member that is lost comes to none: the others need not wait. */
static bool
lose_one(const struct peer *peer)
{
	struct xr_value *error = NULL;
	struct reply *out = NULL;
	struct meeting *mt;
	struct report *r;
	size_t n = 0;

	pthread_mutex_lock(&m.lock);
	LIST_FOREACH(mt, &m.meetings, list)
	{
		r = place_of(mt, peer);
		if (r == NULL || r->answered || mt->error != NULL)
			continue;
		withdraw(mt, r);
		n = break_up(mt, false, &out);
		if (n > 0) {
			error = xr_value_ref(mt->error);
			break;
		}
		free(out);
		out = NULL;
	}
	pthread_mutex_unlock(&m.lock);
	send_broken(out, n, error);
	return n > 0;
}

void
meet_lost(const struct peer *peer)
{
	while (lose_one(peer))
		continue;
}

void
meet_forget_all(void)
{
	struct meeting *mt;

	pthread_mutex_lock(&m.lock);
	while ((mt = LIST_FIRST(&m.meetings)) != NULL)
		forget(mt);
	pthread_mutex_unlock(&m.lock);
	meet_forget_series();
}
