/* SPDX-License-Identifier: Apache-2.0 */
/* meet_ask.c - a member that comes to a meeting; see meet.h. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <sys/queue.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/ask.h"
#include "worker/rpc/local.h"
#include "worker/rpc/meet.h"
#include "worker/rpc/meet_inner.h"
#include "worker/rpc/message.h"
#include "worker/rpc/values.h"

#define GRACE_NS \
	NS_PER_S /* for the collector's word, behind the asker's time */

/* How many meetings of a set there were. */
struct series {
	LIST_ENTRY(series) list;
	struct set_id set;
	uint64_t next;
};
LIST_HEAD(series_list, series);

#define BUCKETS 1024 /* a program may make groups without end */

static struct {
	pthread_mutex_t lock;
	struct series_list series[BUCKETS]; /* by their hash */
} past = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --- sets ----------------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
stir(struct set_id *id, const void *data, size_t len)
{
	const uint64_t prime = UINT64_C(0x100000001b3);
	const uint8_t *at = data;

	for (size_t i = 0; i < len; i++) {
		id->a = (id->a ^ at[i]) * prime;
		id->b = (id->b ^ at[i]) * prime;
	}
}

/* FNV-1a from two beginnings over lengths and names: none can be read as two. With
 * the lives of their bearers: who comes again begins to count anew. */
static struct set_id
id_of(struct peer *const *who, size_t count, const struct meet_label *label)
{
	struct set_id id = { UINT64_C(0xcbf29ce484222325),
		UINT64_C(0x9ae16a3b2f90404f) };
	uint8_t first = (uint8_t)label->what;

	stir(&id, &first, sizeof(first));
	if (label->salt != NULL)
		stir(&id, label->salt, strlen(label->salt) + 1);

	for (size_t i = 0; i < count; i++) {
		uint8_t len = (uint8_t)strlen(who[i]->name);

		stir(&id, &len, sizeof(len));
		stir(&id, who[i]->name, len);
		stir(&id, &who[i]->incarnation, sizeof(who[i]->incarnation));
	}
	return id;
}

/* UINT64_MAX: no memory. */
static uint64_t
next_number(struct set_id set)
{
	struct series_list *bucket = &past.series[set.b % BUCKETS];
	struct series *s;
	uint64_t n;

	pthread_mutex_lock(&past.lock);
	LIST_FOREACH(s, bucket, list)
	if (meet_same(s->set, set))
		break;
	if (s == NULL) {
		s = calloc(1, sizeof(*s));
		if (s != NULL) {
			s->set = set;
			LIST_INSERT_HEAD(bucket, s, list);
		}
	}
	n = s != NULL ? s->next++ : UINT64_MAX;
	pthread_mutex_unlock(&past.lock);
	return n;
}

void
meet_forget_series(void)
{
	struct series *s;

	pthread_mutex_lock(&past.lock);
	for (size_t i = 0; i < BUCKETS; i++)
		while ((s = LIST_FIRST(&past.series[i])) != NULL) {
			LIST_REMOVE(s, list);
			free(s);
		}
	pthread_mutex_unlock(&past.lock);
}

/* --- a member ------------------------------------------------------------- */

/* Each with its 0. NULL: no memory. */
static struct xr_value *
names_of(struct peer *const *who, size_t count)
{
	size_t len = 0, at = 0, n;
	struct xr_value *names;
	char *text;

	for (size_t i = 0; i < count; i++)
		len += strlen(who[i]->name) + 1;
	text = malloc(len + 1);
	if (text == NULL)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		n = strlen(who[i]->name) + 1;
		memcpy(text + at, who[i]->name, n);
		at += n;
	}
	names = xr_value_new_bytes(text, len);
	free(text);
	return names;
}

/* A meeting, as this member knows it. */
struct coming {
	struct meet_key key;
	struct peer *const *who;
	size_t count;
	int64_t timeout;
	bool least; /* of what all say, and not all of it, is to be told */
};

static struct xr_value *
report_of(const struct coming *c, struct xr_value *value)
{
	struct xr_value *items[MEET_ITEMS] = {
		[MEET_SET_A] = xr_value_new_u64(c->key.set.a),
		[MEET_SET_B] = xr_value_new_u64(c->key.set.b),
		[MEET_NUMBER] = xr_value_new_u64(c->key.number),
		[MEET_TIMEOUT] = xr_value_new_i64(c->timeout),
		[MEET_LEAST] = xr_value_new_bool(c->least),
		[MEET_NAMES] = names_of(c->who, c->count),
		[MEET_VALUE] = xr_value_ref(value),
	};

	return xr_value_new_list_of(items, MEET_ITEMS);
}

static struct xr_value *
read_result(struct peer *from, const struct xr_record *record,
	const struct xr_body *body, struct xr_error *err)
{
	struct xr_value *v = NULL;

	(void)record;
	return values_unpack(body, from, &v, err) == XR_OK ? v : NULL;
}

/* A collector that lost a member ends its program, and is lost itself. If the collector is
 * gone, the error names the member that was lost first. */
static enum xr_status
meet_blame(const struct coming *c, struct xr_error *err)
{
	struct peer *to = c->who[0], *first;
	struct xr_error own = { 0 };

	peer_lost_error(to, &own);
	if (err == NULL || strcmp(err->text, own.text) != 0)
		return XR_E_PEER_LOST;
	first = peer_first_lost(c->who, c->count);
	return first != NULL && first != to ? peer_lost_error(first, err) :
					      XR_E_PEER_LOST;
}

static enum xr_status
ask_collector(const struct coming *c, struct xr_value *report,
	struct xr_value **all, struct xr_error *err)
{
	static struct wait_site crowd = { .is_long = true };
	struct peer *to = c->who[0];
	struct ask_sync a = { .read = read_result };
	struct question q = {
		.to = to,
		.kind = MESSAGE_MEET,
		.flags = MESSAGE_VALUE,
		.timeout = c->timeout > INT64_MAX - GRACE_NS ?
			INT64_MAX :
			c->timeout + GRACE_NS,
		/* Others need the processor in order to come at all. */
		.site = c->count > local_cpus() ? &crowd : NULL,
	};
	struct values_out out = { 0 };
	enum xr_status status;

	status = values_pack(report, to, &out, err);
	q.parts = out.parts;
	q.count = out.count;
	q.parcel = out.parcel;
	q.refs = &out.refs;
	q.loans = out.loans;
	q.loan_count = out.loan_count;
	if (status == XR_OK)
		status = ask_wait(&q, &a, err);
	values_out_fini(&out);
	xr_value_unref(a.error);
	if (status == XR_E_PEER_LOST)
		status = meet_blame(c, err);
	if (status == XR_OK && all != NULL)
		*all = a.value;
	else
		xr_value_unref(a.value);
	return status;
}

/* The bearers of @sorted, each once, and this process among them. */
static enum xr_status
find_all(const char *const *sorted, size_t count, struct peer **who,
	struct xr_error *err)
{
	enum xr_status status = XR_OK;
	bool member = false;

	for (size_t i = 0; i < count && status == XR_OK; i++) {
		if (i > 0 && strcmp(sorted[i], sorted[i - 1]) == 0)
			return fail(err, XR_E_INVAL, "%s is named twice",
				sorted[i]);
		status = agent_peer(sorted[i], 0, &who[i], err);
		member = member || (status == XR_OK && who[i]->self);
	}
	if (status != XR_OK || member)
		return status;
	return fail(err, XR_E_INVAL, "%s is not one of those who meet",
		agent_self()->name);
}

static enum xr_status
come(const struct coming *c, struct xr_value *value, struct xr_value **result,
	struct xr_error *err)
{
	struct xr_value *report =
		c->key.number != UINT64_MAX ? report_of(c, value) : NULL;
	enum xr_status status = report != NULL ?
		ask_collector(c, report, result, err) :
		fail(err, XR_E_NOMEM, "out of memory");

	xr_value_unref(report);
	return status;
}

enum xr_status
meet_as(const struct meet_label *label, const struct xr_rpc_meeting *meeting,
	struct xr_value *value, struct xr_value **all, struct xr_error *err)
{
	size_t count = meeting->count;
	const char **sorted = calloc(count + 1, sizeof(*sorted));
	struct peer **who = calloc(count + 1, sizeof(*who));
	struct coming c = { .who = who,
		.count = count,
		.timeout = meeting->timeout };
	enum xr_status status = XR_OK;

	if (sorted == NULL || who == NULL)
		status = fail(err, XR_E_NOMEM, "out of memory");
	if (status == XR_OK) {
		memcpy(sorted, meeting->names, count * sizeof(*sorted));
		qsort(sorted, count, sizeof(*sorted), compare);
		status = find_all(sorted, count, who, err);
	}
	if (status == XR_OK) {
		c.key.set = id_of(who, count, label);
		c.key.number = label->past != NULL ?
			atomic_fetch_add(label->past, 1) :
			next_number(c.key.set);
		status = come(&c, value, all, err);
	}
	free(sorted);
	free(who);
	return status;
}

enum xr_status
meet_least(const struct meet_team *team, uint64_t *number, struct xr_error *err)
{
	const struct coming c = {
		.key = { .set = { team->id, MEET_TEAM } },
		.who = team->peer,
		.count = team->count,
		.timeout = team->timeout,
		.least = true,
	};
	struct xr_value *mine = xr_value_new_u64(*number), *least = NULL;
	enum xr_status status = mine != NULL ?
		come(&c, mine, &least, err) :
		fail(err, XR_E_NOMEM, "out of memory");

	if (status == XR_OK && xr_value_get_u64(least, number) != XR_OK)
		status = fail(err, XR_E_PROTO, "%s did not answer a number",
			team->peer[0]->name);
	xr_value_unref(least);
	xr_value_unref(mine);
	return status;
}

enum xr_status
meet(const struct xr_rpc_meeting *meeting, enum meet_for what,
	struct xr_value *value, struct xr_value **all, struct xr_error *err)
{
	return meet_as(&(struct meet_label){ .what = what }, meeting, value,
		all, err);
}
