/* SPDX-License-Identifier: Apache-2.0 */
/* unstored.c - see unstored.h. */
#include <stdlib.h>
#include <string.h>

#include "launcher/log/unstored.h"

struct unstored *
unstored_new(uint64_t *total)
{
	struct unstored *u = calloc(1, sizeof(*u));

	if (u != NULL)
		u->total = total;
	return u;
}

void
unstored_free(struct unstored *u)
{
	if (u == NULL)
		return;
	buf_fini(&u->fresh);
	buf_fini(&u->data);
	free(u);
}

/* Empties @buf, whose bytes are counted no more. */
static void
unstored_discard(struct unstored *u, struct buf *buf)
{
	__atomic_fetch_sub(u->total, buf->len, __ATOMIC_RELAXED);
	buf_fini(buf);
}

static size_t
unstored_room(const struct unstored *u)
{
	uint64_t total = __atomic_load_n(u->total, __ATOMIC_RELAXED);
	size_t left = UNSTORED_MAX - u->fresh.len;

	if (total >= UNSTORED_ALL)
		return 0;
	return left < UNSTORED_ALL - total ? left :
					     (size_t)(UNSTORED_ALL - total);
}

/* Appends what has room. Returns how many bytes. */
static size_t
unstored_append(struct unstored *u, struct span data)
{
	size_t room = unstored_room(u), n = data.len < room ? data.len : room;

	buf_put(&u->fresh, data.at, n);
	if (u->fresh.bad != XR_OK) {
		if (u->fresh_dropped)
			__atomic_fetch_sub(&u->left, u->fresh.len,
				__ATOMIC_RELEASE);
		unstored_discard(u, &u->fresh);
		return 0;
	}
	__atomic_fetch_add(u->total, n, __ATOMIC_RELAXED);
	return n;
}

static size_t
unstored_add_pending(struct unstored *u, uint64_t at, struct span data)
{
	uint64_t from = u->pending > at ? u->pending : at;

	if (__atomic_load_n(&u->left, __ATOMIC_ACQUIRE) > 0 ||
		from - at >= data.len)
		return 0;
	data.at += from - at;
	data.len -= from - at;
	/* What was not taken over and is not followed by @data is stored.
	 * Dropped bytes that were not taken over are counted in left. */
	if (u->fresh_at + u->fresh.len != from)
		unstored_discard(u, &u->fresh);
	if (u->fresh.len == 0)
		u->fresh_at = from;
	u->fresh_dropped = false;
	data.len = unstored_append(u, data);
	if (data.len > 0)
		u->pending = from + data.len;
	return data.len;
}

/* Bytes that were displayed as pending have an offset that the dropped bytes
 * would take; dropped bytes of another offset are still to be delivered. */
static size_t
unstored_add_dropped(struct unstored *u, uint64_t at, struct span data)
{
	uint64_t left = __atomic_load_n(&u->left, __ATOMIC_ACQUIRE);

	if (u->pending > at || (left > 0 && u->fresh_at != at) ||
		left >= UNSTORED_MAX)
		return 0;
	if (!u->fresh_dropped)
		unstored_discard(u, &u->fresh);
	u->fresh_at = at;
	u->fresh_dropped = true;
	if (data.len > UNSTORED_MAX - left)
		data.len = (size_t)(UNSTORED_MAX - left);
	data.len = unstored_append(u, data);
	__atomic_fetch_add(&u->left, data.len, __ATOMIC_RELEASE);
	return data.len;
}

size_t
unstored_add(struct unstored *u, uint64_t at, struct span data, bool dropped)
{
	return dropped ? unstored_add_dropped(u, at, data) :
			 unstored_add_pending(u, at, data);
}

/* Returns true if @fresh continues @data. If not, @data is stored or delivered. */
static bool
unstored_continues(const struct unstored *u)
{
	return u->dropped == u->fresh_dropped &&
		u->fresh_at == u->at + (u->dropped ? 0 : u->data.len);
}

void
unstored_take(struct unstored *u)
{
	size_t n = u->fresh.len;

	if (n == 0)
		return;
	if (u->data.len > 0 && unstored_continues(u)) {
		buf_put(&u->data, u->fresh.data, n);
		buf_fini(&u->fresh);
	} else {
		unstored_discard(u, &u->data);
		u->data = u->fresh;
		u->fresh = (struct buf){ 0 };
		u->at = u->fresh_at;
		u->dropped = u->fresh_dropped;
	}
	if (u->data.bad == XR_OK)
		return;
	/* Without memory pending bytes wait until they are stored. */
	__atomic_fetch_sub(u->total, n, __ATOMIC_RELAXED);
	unstored_discard(u, &u->data);
	__atomic_store_n(&u->left, 0, __ATOMIC_RELEASE);
}

void
unstored_delivered(struct unstored *u, size_t count)
{
	size_t rest = u->data.len - count;

	if (u->dropped)
		__atomic_fetch_sub(&u->left, count, __ATOMIC_RELEASE);
	else
		u->at += count;
	if (rest == 0) {
		unstored_discard(u, &u->data);
		return;
	}
	memmove(u->data.data, u->data.data + count, rest);
	u->data.len = rest;
	__atomic_fetch_sub(u->total, count, __ATOMIC_RELAXED);
}
