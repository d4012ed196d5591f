/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch.c - see epoch.h.
 *
 * Old records are deleted, and so their numbers could be claimed once more, by
 * somebody who was stopped between reading and claiming. So a claim that succeeded
 * counts only if the newest record, to which the head leads, shows it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "worker/rpc/epoch.h"
#include "worker/rpc/shelf.h"

#define KEPT 32 /* records */
#define HEAD "rpc/dynamic/head"

static void
key_of(uint64_t number, char key[EPOCH_KEY_MAX])
{
	snprintf(key, EPOCH_KEY_MAX, "rpc/dynamic/%" PRIu64, number);
}

void
epoch_ack_key(uint64_t number, uint32_t id, char key[EPOCH_KEY_MAX])
{
	snprintf(key, EPOCH_KEY_MAX, "rpc/dynamic/%" PRIu64 "/ack/%u", number,
		id);
}

void
epoch_fini(struct epoch *e)
{
	xr_value_unref(e->members);
	xr_value_unref(e->lost);
	*e = (struct epoch){ 0 };
}

/* --- a record ------------------------------------------------------------- */

static struct xr_value *
to_value(const struct epoch *e)
{
	struct xr_value *d = xr_value_new_dict();
	enum xr_status status = d != NULL ? XR_OK : XR_E_NOMEM;

	if (status == XR_OK)
		status =
			xr_value_put(d, "members", 7, xr_value_ref(e->members));
	if (status == XR_OK)
		status = xr_value_put(d, "lost", 4, xr_value_ref(e->lost));
	if (status == XR_OK)
		status = xr_value_put(d, "asks", 4, xr_value_new_bool(e->asks));
	if (status == XR_OK)
		return d;
	xr_value_unref(d);
	return NULL;
}

static struct xr_value *
list_in(const struct xr_value *d, const char *key)
{
	struct xr_value *v = xr_value_find(d, key, strlen(key));

	return xr_value_kind(v) == XR_LIST ? xr_value_ref(v) : NULL;
}

static enum xr_status
from_value(const struct xr_value *d, uint64_t number, struct epoch *e,
	struct xr_error *err)
{
	bool asks = false;

	if (xr_value_get_bool(xr_value_find(d, "asks", 4), &asks) != XR_OK)
		return fail(err, XR_E_PROTO, "that is no list of members");
	*e = (struct epoch){
		.number = number,
		.members = list_in(d, "members"),
		.lost = list_in(d, "lost"),
		.asks = asks,
	};
	if (e->members != NULL && e->lost != NULL)
		return XR_OK;
	epoch_fini(e);
	return fail(err, XR_E_PROTO, "that is no list of members");
}

static enum xr_status
nobody(struct epoch *e, struct xr_error *err)
{
	*e = (struct epoch){
		.members = xr_value_new_list(),
		.lost = xr_value_new_list(),
	};
	if (e->members != NULL && e->lost != NULL)
		return XR_OK;
	epoch_fini(e);
	return fail(err, XR_E_NOMEM, "out of memory");
}

static enum xr_status
get(struct xr_store *store, uint64_t number, int64_t timeout, struct epoch *e,
	struct xr_error *err)
{
	struct xr_value *d = NULL;
	enum xr_status status;
	char key[EPOCH_KEY_MAX];

	key_of(number, key);
	status = shelf_get(store, key, timeout, &d, err);
	if (status == XR_OK)
		status = from_value(d, number, e, err);
	xr_value_unref(d);
	return status;
}

/* --- the newest ----------------------------------------------------------- */

/* 0: there is none. */
static enum xr_status
head_of(struct xr_store *store, uint64_t *number, struct xr_error *err)
{
	struct xr_store_value v = { 0 };
	enum xr_status status = xr_store_get(store, HEAD, 0, &v, err);

	*number = 0;
	if (status == XR_OK)
		*number = strtoull(v.data, NULL, 10);
	xr_store_value_free(&v);
	return status == XR_E_NOTFOUND ? XR_OK : status;
}

/* Record @number; XR_E_NOTFOUND: it is older than those that are kept. */
static enum xr_status
get_or_nobody(struct xr_store *store, uint64_t number, struct epoch *e,
	struct xr_error *err)
{
	return number == 0 ? nobody(e, err) : get(store, number, 0, e, err);
}

enum xr_status
epoch_newest(struct xr_store *store, struct epoch *e, struct xr_error *err)
{
	struct epoch next = { 0 };
	enum xr_status status;
	uint64_t number;

	do {
		status = head_of(store, &number, err);
		if (status == XR_OK)
			status = get_or_nobody(store, number, e, err);
	} while (status == XR_E_NOTFOUND && number > 0);
	while (status == XR_OK) {
		status = get(store, e->number + 1, 0, &next, err);
		if (status == XR_E_NOTFOUND)
			return XR_OK;
		if (status != XR_OK)
			break;
		epoch_fini(e);
		*e = next;
	}
	epoch_fini(e);
	return status;
}

enum xr_status
epoch_await(struct xr_store *store, uint64_t known, struct epoch *e,
	struct xr_error *err)
{
	struct epoch next = { 0 };
	enum xr_status status;
	uint64_t number;

	status = head_of(store, &number, err);
	if (status == XR_OK && number <= known)
		status = get(store, known + 1, XR_TIMEOUT_NEVER, &next, err);
	epoch_fini(&next);
	/* By now there are others, perhaps, and the first of them not any more. */
	return status == XR_OK ? epoch_newest(store, e, err) : status;
}

/* --- changing ------------------------------------------------------------- */

/* The head is @number at least. */
static enum xr_status
move_head(struct xr_store *store, uint64_t number, struct xr_error *err)
{
	char is[32] = "", next[32];
	struct xr_store_swap swap = {
		.size = sizeof(swap),
		.key = HEAD,
		.expected = is,
		.desired = next,
	};
	struct xr_store_value now = { 0 };
	enum xr_status status;
	bool there = false;

	swap.desired_len =
		(size_t)snprintf(next, sizeof(next), "%" PRIu64, number);
	for (;;) {
		status = xr_store_compare_set(store, &swap, &now, &there, err);
		if (status != XR_OK || !there)
			return status;
		snprintf(is, sizeof(is), "%s", (const char *)now.data);
		swap.expected_len = strlen(is);
		xr_store_value_free(&now);
		if (strtoull(is, NULL, 10) >= number)
			return XR_OK;
	}
}

/* Those that nobody looks for any more. */
static void
prune(struct xr_store *store, uint64_t number)
{
	char key[EPOCH_KEY_MAX];
	bool was = true;

	for (; number > KEPT && was; number--) {
		key_of(number - KEPT, key);
		if (xr_store_delete(store, key, &was, NULL) != XR_OK)
			return;
	}
}

static enum xr_status
claim(struct xr_store *store, const struct epoch *e, bool *won,
	struct xr_error *err)
{
	struct xr_value *d = to_value(e);
	enum xr_status status;
	char key[EPOCH_KEY_MAX];

	if (d == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	key_of(e->number, key);
	status = shelf_claim(store, key, d, won, err);
	xr_value_unref(d);
	if (status == XR_OK && *won)
		status = move_head(store, e->number, err);
	if (status == XR_OK && *won)
		prune(store, e->number);
	return status;
}

/* It was claimed when all others were far beyond, and is nothing. */
static void
take_back(struct xr_store *store, const struct epoch *mine,
	const struct epoch *now)
{
	char key[EPOCH_KEY_MAX];

	if (mine->number == 0 || now->number <= mine->number + KEPT)
		return;
	key_of(mine->number, key);
	xr_store_delete(store, key, NULL, NULL);
}

/* One try. XR_E_AGAIN: there was nothing to do. */
static enum xr_status
change_once(struct xr_store *store, const struct epoch_change *what,
	const struct epoch *now, struct epoch *mine, struct xr_error *err)
{
	struct epoch next = { .number = now->number + 1 };
	enum xr_status status = what->edit(now, &next, what->ctx, err);
	bool won = false;

	if (status == XR_OK)
		status = claim(store, &next, &won, err);
	if (status == XR_OK && won) {
		epoch_fini(mine);
		*mine = next;
		return XR_OK;
	}
	epoch_fini(&next);
	return status;
}

enum xr_status
epoch_change(struct xr_store *store, const struct epoch_change *what,
	struct epoch *result, struct epoch *mine, struct xr_error *err)
{
	struct epoch own = { 0 };
	enum xr_status status;

	do {
		*result = (struct epoch){ 0 };
		status = epoch_newest(store, result, err);
		if (status != XR_OK)
			break;
		take_back(store, &own, result);
		status = change_once(store, what, result, &own, err);
		if (status != XR_E_AGAIN)
			epoch_fini(result);
	} while (status == XR_OK);
	if (status == XR_E_AGAIN && mine != NULL)
		*mine = own;
	else
		epoch_fini(&own);
	return status == XR_E_AGAIN ? XR_OK : status;
}

enum xr_status
epoch_ack(struct xr_store *store, uint64_t number, uint32_t id,
	struct xr_error *err)
{
	char key[EPOCH_KEY_MAX];

	epoch_ack_key(number, id, key);
	return xr_store_set(store, key, "1", 1, err);
}
