/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous.c - see xrun/spawn.h: in shared memory, or by the store. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/job.h>
#include <xrun/spawn.h>
#include <xrun/store.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/timeout.h"
#include "worker/proc/meet.h"
#include "worker/proc/rank_process.h"
#include "worker/proc/report.h"

#define TIMEOUT_NS (60 * NS_PER_S) /* the default, as that of stores */

/* How often this process was at a rendezvous of a tag, and what it has left there. */
struct tag {
	struct tag *next;
	uint32_t rounds;
	struct meet_spot left;
	char name[];
};

static struct tag *tags;
static struct xr_store
	*store; /* stays open: rank 0 may be the one that serves it */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* NULL: no memory. */
static struct tag *
find_tag(const char *name)
{
	size_t len = strlen(name) + 1;
	struct tag *t;

	pthread_mutex_lock(&lock);
	for (t = tags; t != NULL && strcmp(t->name, name) != 0; t = t->next)
		continue;
	if (t == NULL) {
		t = calloc(1, sizeof(*t) + len);
		if (t != NULL) {
			memcpy(t->name, name, len);
			t->next = tags;
			tags = t;
		}
	}
	pthread_mutex_unlock(&lock);
	return t;
}

/* --- by the store ----------------------------------------------------------- */

static enum xr_status
open_store(struct xr_error *err)
{
	enum xr_status status = XR_OK;

	pthread_mutex_lock(&lock);
	if (store == NULL)
		status = xr_store_open(NULL, NULL, &store, err);
	pthread_mutex_unlock(&lock);
	return status;
}

static void
key_of(const struct meet *m, uint32_t rank, char *out, size_t cap)
{
	snprintf(out, cap, "rendezvous/%s/%u/%u", m->tag, m->round, rank);
}

/* Its parts in one piece. */
static enum xr_status
store_payload(const struct meet *m, struct xr_value *payload,
	struct xr_error *err)
{
	struct xr_encoded *encoded = NULL;
	enum xr_status status = xr_encode(payload, NULL, &encoded, err);
	const struct xr_part *parts;
	size_t count, len = 0;
	char key[256], *data;

	if (status != XR_OK)
		return status;
	parts = xr_encoded_parts(encoded, &count);
	for (size_t i = 0; i < count; i++)
		len += parts[i].len;
	data = malloc(len);
	len = 0;
	for (size_t i = 0; i < count && data != NULL; i++) {
		memcpy(data + len, parts[i].data, parts[i].len);
		len += parts[i].len;
	}
	key_of(m, xr_job_rank(), key, sizeof(key));
	status = data == NULL ? fail(err, XR_E_NOMEM, "out of memory") :
				xr_store_set(store, key, data, len, err);
	free(data);
	xr_encoded_free(encoded);
	return status;
}

/* XR_E_PEER_LOST names a rank from @first on that has ended and left no payload:
 * what it left is in the store before it ends. */
static enum xr_status
rendezvous_check_ranks(const struct meet *m, uint32_t first,
	struct xr_error *err)
{
	struct xr_store_value found = { 0 };
	uint32_t size = xr_job_size();
	enum xr_status status;
	char key[256];

	for (uint32_t i = first; i < size; i++) {
		if (!rank_process_died(i))
			continue;
		key_of(m, i, key, sizeof(key));
		status = xr_store_get(store, key, 0, &found, NULL);
		xr_store_value_free(&found);
		if (status == XR_E_NOTFOUND || status == XR_E_TIMEOUT)
			return meet_rank_ended(m, i, err);
	}
	return XR_OK;
}

/* The payload of @rank, when it is there; between two waits it is checked who has
 * ended. */
static enum xr_status
await_payload(const struct meet *m, uint32_t rank, struct xr_store_value *found,
	struct xr_error *err)
{
	enum xr_status status;
	int64_t left;
	char key[256];

	key_of(m, rank, key, sizeof(key));
	do {
		left = m->deadline - clock_now();
		status = xr_store_get(store, key,
			left <= 0 ? 0 :
				left < RANK_PROCESS_POLL_NS ?
				    left :
				    RANK_PROCESS_POLL_NS,
			found, err);
		if (status != XR_E_TIMEOUT && status != XR_E_NOTFOUND)
			return status;
		if (rendezvous_check_ranks(m, rank, err) != XR_OK)
			return XR_E_PEER_LOST;
	} while (left > RANK_PROCESS_POLL_NS);
	return status;
}

static enum xr_status
fetch_payload(const struct meet *m, uint32_t rank, struct xr_value **value,
	struct xr_error *err)
{
	struct xr_dec_opts opts = { .size = sizeof(opts) };
	struct xr_store_value found = { 0 };
	struct xr_part part;
	enum xr_status status = await_payload(m, rank, &found, err);

	if (status == XR_E_TIMEOUT || status == XR_E_NOTFOUND)
		return fail(err, XR_E_TIMEOUT,
			"rendezvous %.100s: rank %u did not come in time",
			m->tag, rank);
	if (status != XR_OK)
		return status;
	part = (struct xr_part){ found.data, found.len };
	status = xr_decode(&part, 1, &opts, value, err);
	xr_store_value_free(&found);
	return status;
}

/* All have come to this round, so none is at the one before. */
static void
forget_round(const struct meet *m)
{
	struct meet former = *m;
	char key[256];

	if (m->round == 0)
		return;
	former.round--;
	key_of(&former, xr_job_rank(), key, sizeof(key));
	xr_store_delete(store, key, NULL, NULL);
}

static enum xr_status
meet_by_store(const struct meet *m, struct xr_value *payload,
	struct xr_value **all, struct xr_error *err)
{
	struct xr_value *list, *one = NULL;
	enum xr_status status = open_store(err);
	uint32_t size = xr_job_size();

	if (status == XR_OK)
		status = store_payload(m, payload, err);
	if (status != XR_OK)
		return status;
	list = xr_value_new_list();
	if (list == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	for (uint32_t i = 0; i < size && status == XR_OK; i++) {
		status = fetch_payload(m, i, &one, err);
		if (status == XR_OK)
			status = xr_value_append(list, one);
	}
	if (status != XR_OK) {
		xr_value_unref(list);
		return status;
	}
	*all = list;
	forget_round(m);
	return XR_OK;
}

/* ---------------------------------------------------------------------------- */

static enum xr_status
meet_here(struct tag *t, struct meet *m, struct xr_value *payload,
	struct xr_value **all, struct xr_error *err)
{
	enum xr_status status = meet_leave(m, payload, err);

	if (status == XR_OK)
		status = meet_collect(m, all, err);
	if (status != XR_OK)
		return status;
	meet_drop(t->left); /* as forget_round() */
	t->left = m->left;
	return XR_OK;
}

static enum xr_status
meet(struct tag *t, struct meet *m, struct xr_value *payload,
	struct xr_value **all, struct xr_error *err)
{
	if (meet_is_here())
		return meet_here(t, m, payload, all, err);
	if (xr_job_size() > 1)
		return meet_by_store(m, payload, all, err);
	xr_value_ref(payload);
	*all = xr_value_new_list_of(&payload, 1);
	return *all != NULL ? XR_OK : fail(err, XR_E_NOMEM, "out of memory");
}

XR_EXPORT enum xr_status
xr_rendezvous(const char *tag, struct xr_value *payload, int64_t timeout,
	struct xr_value **all, struct xr_error *err)
{
	size_t len = tag != NULL ? strnlen(tag, MEET_TAG_MAX + 1) : 0;
	struct meet m = { .tag = tag };
	enum xr_status status = timeout_argument(&timeout, TIMEOUT_NS, err);
	struct tag *t;

	if (status != XR_OK)
		return status;
	if (len == 0 || len > MEET_TAG_MAX)
		return fail(err, XR_E_INVAL,
			"xr_rendezvous: the tag has %zu bytes or more, not 1 to %d",
			len, MEET_TAG_MAX);
	run_deadline(timeout, &m.deadline, NULL);
	t = find_tag(tag);
	payload = payload != NULL ? xr_value_ref(payload) : xr_value_new_nil();
	if (payload == NULL || t == NULL) {
		xr_value_unref(payload);
		return fail(err, XR_E_NOMEM, "out of memory");
	}
	m.round = t->rounds; /* who comes again, comes to the same */
	status = meet(t, &m, payload, all, err);
	if (status == XR_OK)
		t->rounds++;
	xr_value_unref(payload);
	return status;
}
