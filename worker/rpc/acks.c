/* SPDX-License-Identifier: Apache-2.0 */
/* acks.c - a group that changes: who has taken note; see dynamic.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "worker/rpc/agent.h"
#include "worker/rpc/dynamic_inner.h"
#include "worker/rpc/future.h"

#define FIRST_NS (100 * NS_PER_MS) /* for an acknowledgement, then one looks */
#define AGAIN_NS NS_PER_S

/* Those that are waited for. */
struct awaited {
	uint64_t number;
	const struct xr_value *members; /* of whom */
	char (*key)[EPOCH_KEY_MAX];     /* [count] */
	const char **keys;              /* [count]: those of key */
	size_t *place;                  /* in members */
	size_t count;
	struct dynamic_lease *lease; /* [members] */
};

/* Place @from is place @to now. */
static void
keep(struct awaited *a, size_t from, size_t to)
{
	memmove(a->key[to], a->key[from], EPOCH_KEY_MAX);
	a->place[to] = a->place[from];
}

static void
drop_first(struct awaited *a, size_t n)
{
	for (size_t i = n; i < a->count; i++)
		keep(a, i, i - n);
	a->count -= n;
}

/* Those of @a are left that have not acknowledged, and are not gone. */
static void
drop_done(struct awaited *a)
{
	size_t left = 0;
	struct member m;
	bool there = false;

	for (size_t i = 0; i < a->count; i++) {
		if (member_read(xr_value_at(a->members, a->place[i]), &m) &&
			roll_has(&m) &&
			(xr_store_check(dynamic.store, &a->keys[i], 1, &there,
				 NULL) != XR_OK ||
				!there))
			keep(a, i, left++);
	}
	a->count = left;
}

/* The dead among them are buried; a look at one may take a second. */
static void
look_for_dead(struct awaited *a)
{
	struct dynamic_lease *lease;
	struct member m;

	for (size_t i = 0; i < a->count; i++) {
		member_read(xr_value_at(a->members, a->place[i]), &m);
		lease = &a->lease[a->place[i]];
		switch (agent_there(m.addresses, m.id, m.incarnation)) {
		case XR_THERE_NO:
			dead_bury(m.id, m.incarnation);
			break;
		case XR_THERE_SILENT:
			if (dynamic_lease_over(lease))
				dead_bury(m.id, m.incarnation);
			break;
		case XR_THERE_YES:
		case XR_THERE_UNKNOWN:
			*lease = (struct dynamic_lease){ 0 };
			break;
		}
	}
}

static enum xr_status
name_late(const struct awaited *a, struct xr_error *err)
{
	char text[160] = "";
	struct member m;
	size_t n = 0;

	for (size_t i = 0; i < a->count && n < sizeof(text) - 40; i++) {
		member_read(xr_value_at(a->members, a->place[i]), &m);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.30s",
			i > 0 ? ", " : "", m.name);
	}
	return fail(err, XR_E_TIMEOUT,
		"%zu members have not taken note in time: %s", a->count, text);
}

static enum xr_status
await_all(struct awaited *a, int64_t deadline, struct xr_error *err)
{
	int64_t patience = FIRST_NS, left;
	enum xr_status status;
	size_t n;

	while (a->count > 0) {
		n = a->count < XR_STORE_KEYS_MAX ? a->count : XR_STORE_KEYS_MAX;
		left = future_left(deadline);
		status = xr_store_wait(dynamic.store, a->keys, n,
			left < patience ? left : patience, err);
		if (status != XR_OK && status != XR_E_TIMEOUT &&
			status != XR_E_NOTFOUND)
			return status;
		if (status == XR_OK) {
			drop_first(a, n);
			continue;
		}
		drop_done(a);
		if (a->count > 0 && left == 0)
			return name_late(a, err);
		look_for_dead(a);
		drop_done(a);
		patience = AGAIN_NS;
	}
	return XR_OK;
}

static bool
list_awaited(struct awaited *a)
{
	size_t count = xr_value_count(a->members) + 1;
	struct member m;

	a->key = calloc(count, sizeof(*a->key));
	a->keys = calloc(count, sizeof(*a->keys));
	a->place = calloc(count, sizeof(*a->place));
	a->lease = calloc(count, sizeof(*a->lease));
	if (a->key == NULL || a->keys == NULL || a->place == NULL ||
		a->lease == NULL)
		return false;
	for (size_t i = 0; i + 1 < count; i++) {
		if (!member_read(xr_value_at(a->members, i), &m) ||
			dynamic_is_self(&m))
			continue;
		epoch_ack_key(a->number, m.id, a->key[a->count]);
		a->keys[a->count] = a->key[a->count];
		a->place[a->count++] = i;
	}
	return true;
}

static void
clear_acks(const struct epoch *mine)
{
	char key[EPOCH_KEY_MAX];
	struct member m;

	for (size_t i = 0; i < xr_value_count(mine->members); i++) {
		if (!member_read(xr_value_at(mine->members, i), &m) ||
			dynamic_is_self(&m))
			continue;
		epoch_ack_key(mine->number, m.id, key);
		if (xr_store_delete(dynamic.store, key, NULL, NULL) != XR_OK)
			return;
	}
}

enum xr_status
acks_await(const struct epoch *mine, int64_t deadline, struct xr_error *err)
{
	struct awaited a = { .number = mine->number, .members = mine->members };
	enum xr_status status = list_awaited(&a) ?
		await_all(&a, deadline, err) :
		fail(err, XR_E_NOMEM, "out of memory");

	free(a.key);
	free(a.keys);
	free(a.place);
	free(a.lease);
	if (status == XR_OK)
		clear_acks(mine);
	return status;
}
