/* SPDX-License-Identifier: Apache-2.0 */
/* join.c - see join.h. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/random.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/rpc/future.h"
#include "worker/rpc/join.h"
#include "worker/rpc/member.h"
#include "worker/rpc/shelf.h"

#define KEY_MAX    96
#define RESERVE_NS (500 * NS_PER_MS) /* of the time, for rank 0's verdict */

/* --- keys ----------------------------------------------------------------- */

static void
key_of(const struct join *j, const char *what, char out[KEY_MAX])
{
	snprintf(out, KEY_MAX, "rpc/%u/%s", j->cycle, what);
}

static void
rank_key(const struct join *j, uint32_t rank, char out[KEY_MAX])
{
	snprintf(out, KEY_MAX, "rpc/%u/member/%u", j->cycle, rank);
}

static int64_t
left(const struct join *j)
{
	return future_left(j->deadline);
}

/* --- the secret ----------------------------------------------------------- */

enum xr_status
join_new_secret(uint8_t out[JOIN_SECRET], struct xr_error *err)
{
	return getrandom(out, JOIN_SECRET, 0) == JOIN_SECRET ?
		XR_OK :
		fail(err, XR_E_SYS, "getrandom");
}

enum xr_status
join_secret(const struct join *j, uint8_t out[JOIN_SECRET],
	struct xr_error *err)
{
	struct xr_store_value bytes = { 0 };
	enum xr_status status;
	char key[KEY_MAX];

	key_of(j, "secret", key);
	if (j->rank == 0) {
		status = join_new_secret(out, err);
		if (status != XR_OK)
			return status;
		return xr_store_set(j->store, key, out, JOIN_SECRET, err);
	}
	status = xr_store_get(j->store, key, left(j), &bytes, err);
	if (status == XR_E_TIMEOUT)
		status = fail(err, XR_E_TIMEOUT, "rank 0 did not come in time");
	else if (status == XR_OK && bytes.len != JOIN_SECRET)
		status = fail(err, XR_E_PROTO, "that is no secret");
	if (status == XR_OK)
		memcpy(out, bytes.data, JOIN_SECRET);
	if (bytes.data != NULL)
		explicit_bzero(bytes.data, bytes.len);
	xr_store_value_free(&bytes);
	return status;
}

/* --- kinds ---------------------------------------------------------------- */

enum xr_status
join_kind(struct xr_store *store, bool is_static, struct xr_error *err)
{
	const char *kind = is_static ? "static" : "dynamic";
	struct xr_store_swap swap = {
		.size = sizeof(swap),
		.key = "rpc/kind",
		.desired = kind,
		.desired_len = strlen(kind),
	};
	struct xr_store_value now = { 0 };
	enum xr_status status;
	bool there = false;

	status = xr_store_compare_set(store, &swap, &now, &there, err);
	if (status == XR_OK && there && strcmp(now.data, kind) != 0)
		status = fail(err, XR_E_CONFLICT,
			"the group of this store is %s, and this member's is %s: world_size is %s there",
			(const char *)now.data, kind,
			is_static ? "0" : "not 0");
	xr_store_value_free(&now);
	return status;
}

/* --- telling -------------------------------------------------------------- */

static const char *
name_in(const struct xr_value *info)
{
	struct member m;

	return member_read(info, &m) ? m.name : "?";
}

enum xr_status
join_tell(const struct join *j, struct xr_value *info, struct xr_error *err)
{
	struct xr_value *other = NULL;
	enum xr_status status;
	char key[KEY_MAX];
	bool won = false;

	rank_key(j, j->rank, key);
	status = shelf_claim(j->store, key, info, &won, err);
	if (status != XR_OK || won)
		return status;
	if (shelf_get(j->store, key, 0, &other, NULL) != XR_OK)
		other = NULL;
	status = fail(err, XR_E_EXISTS,
		"%s and %s both say that they are rank %u", name_in(info),
		name_in(other), j->rank);
	xr_value_unref(other);
	return status;
}

/* --- meeting -------------------------------------------------------------- */

void
join_late_text(const struct join *j, uint32_t first, join_there_fn *is_there,
	char *text, size_t cap)
{
	size_t n = (size_t)snprintf(text, cap,
		"these ranks of %u did not come in time: ", j->size);
	size_t begin = n;

	for (uint32_t r = first; r < j->size && n + 16 < cap; r++)
		if (!is_there(j, r))
			n += (size_t)snprintf(text + n, cap - n, "%s%u",
				n > begin ? ", " : "", r);
}

/* Or it cannot be known. */
static bool
has_told(const struct join *j, uint32_t rank)
{
	char key[KEY_MAX];
	const char *one = key;
	bool there;

	rank_key(j, rank, key);
	return xr_store_check(j->store, &one, 1, &there, NULL) != XR_OK ||
		there;
}

static enum xr_status
fail_late(const struct join *j, uint32_t first, struct xr_error *err)
{
	char text[sizeof(err->text)];

	join_late_text(j, first, has_told, text, sizeof(text));
	return fail(err, XR_E_TIMEOUT, "%s", text);
}

/* An info that is an ERROR is that of a member that could not begin. */
enum xr_status
join_check(uint32_t rank, const struct xr_value *info, struct xr_error *err)
{
	struct xr_failure f = { .size = sizeof(f) };

	if (xr_value_failure(info, &f) != XR_OK)
		return XR_OK;
	return fail(err, XR_E_PEER_LOST, "rank %u could not join: %s: %s", rank,
		xr_status_name(f.status), f.text != NULL ? f.text : "");
}

/* On rank 0. */
static enum xr_status
collect(const struct join *j, struct xr_value *infos, struct xr_error *err)
{
	enum xr_status status = XR_OK;
	struct xr_value *info;
	char key[KEY_MAX];
	int64_t time;

	for (uint32_t r = 0; r < j->size && status == XR_OK; r++) {
		info = NULL;
		time = left(j);
		if (time != XR_TIMEOUT_NEVER)
			time = time > RESERVE_NS ? time - RESERVE_NS : 1;
		rank_key(j, r, key);
		status = shelf_get(j->store, key, time, &info, err);
		if (status == XR_E_TIMEOUT)
			return fail_late(j, r, err);
		if (status == XR_OK)
			status = join_check(r, info, err);
		if (status == XR_OK)
			status = xr_value_append(infos, info);
		else
			xr_value_unref(info);
	}
	return status;
}

/* For all: the LIST, or an ERROR. */
static void
publish(const struct join *j, enum xr_status status, struct xr_value *infos,
	const struct xr_error *err)
{
	struct xr_value *verdict = status == XR_OK ?
		xr_value_ref(infos) :
		failure_new(status, "%s", err->text);
	char key[KEY_MAX];

	key_of(j, "all", key);
	if (verdict != NULL)
		shelf_set(j->store, key, verdict, NULL);
	xr_value_unref(verdict);
}

static enum xr_status
lead_meeting(const struct join *j, join_judge_fn *judge, void *ctx,
	struct xr_value **infos, struct xr_error *err)
{
	struct xr_value *list = xr_value_new_list();
	struct xr_error why = { 0 };
	enum xr_status status;

	status = list == NULL ? fail(&why, XR_E_NOMEM, "out of memory") :
				collect(j, list, &why);
	if (status == XR_OK)
		status = judge(list, ctx, &why);
	publish(j, status, list, &why);
	if (status == XR_OK) {
		*infos = list;
		return XR_OK;
	}
	xr_value_unref(list);
	return fail(err, status, "%s", why.text);
}

void
join_give_up(const struct join *j, enum xr_status status,
	const struct xr_error *err)
{
	struct xr_error why = { 0 };

	fail(&why, XR_E_PEER_LOST, "rank 0 could not join: %s: %s",
		xr_status_name(status), err->text);
	publish(j, XR_E_PEER_LOST, NULL, &why);
}

enum xr_status
join_meet(const struct join *j, join_judge_fn *judge, void *ctx,
	struct xr_value **infos, struct xr_error *err)
{
	struct xr_value *verdict = NULL;
	enum xr_status status;
	char key[KEY_MAX];

	if (j->rank == 0)
		return lead_meeting(j, judge, ctx, infos, err);
	key_of(j, "all", key);
	status = shelf_get(j->store, key, left(j), &verdict, err);
	if (status == XR_E_TIMEOUT)
		return fail(err, status, "no word from rank 0");
	if (status != XR_OK)
		return status;
	if (xr_value_kind(verdict) != XR_LIST) {
		status = failure_status(verdict, err);
		xr_value_unref(verdict);
		return status;
	}
	*infos = verdict;
	return XR_OK;
}

enum xr_status
join_ready(const struct join *j, struct xr_error *err)
{
	char ready[KEY_MAX], go[KEY_MAX];
	struct xr_store_value none = { 0 };
	enum xr_status status;
	int64_t sum = 0;

	key_of(j, "ready", ready);
	key_of(j, "go", go);
	status = xr_store_add(j->store, ready, 1, &sum, err);
	if (status == XR_OK && sum == (int64_t)j->size)
		return xr_store_set(j->store, go, "1", 1, err);
	if (status == XR_OK)
		status = xr_store_get(j->store, go, left(j), &none, err);
	xr_store_value_free(&none);
	if (status == XR_E_TIMEOUT)
		return fail(err, status, "%lld of %u were not ready in time",
			(long long)(j->size - sum), j->size);
	return status;
}
