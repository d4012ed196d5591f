/* SPDX-License-Identifier: Apache-2.0 */
/* move.c - see far.h: items to a queue of another machine, and from it. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <xrun/future.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/queue/far/far.h"
#include "worker/queue/far/wire.h"

#define MOST_BYTES (UINT64_C(1) << 40) /* of a message */

static int64_t
after(int64_t timeout)
{
	int64_t now = clock_now();

	return timeout < INT64_MAX - now ? now + timeout : INT64_MAX;
}

static int64_t
left(int64_t deadline)
{
	int64_t now = clock_now();

	if (deadline == INT64_MAX)
		return INT64_MAX;
	return deadline > now ? deadline - now : 0;
}

/* The reply to a call of @bytes is awaited until then. */
static int64_t
patience(int64_t timeout, uint64_t bytes)
{
	int64_t more = timeout == 0 ? FAR_LOOK_NS : FAR_SLACK_NS;

	more += (int64_t)(bytes * (NS_PER_S / FAR_RATE));
	return after(timeout < INT64_MAX - more ? timeout + more : INT64_MAX);
}

/* Of sending something that is waited for until @until: as much as there is. */
static int64_t
limit_of(int64_t until)
{
	int64_t ns = left(until);

	return ns > 0 ? ns : 1;
}

static void
put_head(struct far_call *c, size_t count, int64_t timeout)
{
	uint32_t n = (uint32_t)count;

	memcpy(c->ask + offsetof(struct far_ask, count), &n, sizeof(n));
	memcpy(c->ask + offsetof(struct far_ask, timeout), &timeout,
		sizeof(timeout));
}

static struct far_answer
head_of(const struct far_call *c)
{
	struct far_answer a;
	size_t len;

	memcpy(&a, xr_value_data(c->answer, &len), sizeof(a));
	return a;
}

/* --- in ------------------------------------------------------------------------------- */

static void
write_items(uint8_t *at, const struct letter *letters, size_t count)
{
	uint8_t *body = at + count * sizeof(struct far_item);

	for (size_t i = 0; i < count; i++) {
		const struct letter *l = &letters[i];
		const struct far_item item = { .kind = (uint32_t)l->kind,
			.len = l->len };

		memcpy(at + i * sizeof(item), &item, sizeof(item));
		for (size_t k = 0; k < l->count; k++) {
			if (l->parts[k].len > 0)
				memcpy(body, l->parts[k].data, l->parts[k].len);
			body += l->parts[k].len;
		}
	}
}

static uint64_t
bytes_of(const struct letter *letters, size_t count)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += letters[i].len;
	return bytes;
}

static struct far_call *
put_of(const struct xr_queue *q, enum far_op op, const struct letter *letters,
	size_t count)
{
	size_t len = count * sizeof(struct far_item);
	struct far_call *c;

	for (size_t i = 0; i < count; i++)
		len += letters[i].len;
	c = far_call_new(q, op, len);
	if (c != NULL)
		write_items(c->ask + sizeof(struct far_ask), letters, count);
	return c;
}

/* There is time for the word of who serves. */
static enum xr_status
give_for_ever(struct xr_queue *q, const struct letter *letters, size_t *count,
	struct xr_error *err)
{
	struct far_call *c = put_of(q, FAR_PUT, letters, *count);
	size_t want = *count;
	enum xr_status status;

	*count = 0;
	if (c == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	put_head(c, want, INT64_MAX);
	status = far_send(q->far, c, err);
	if (status == XR_OK)
		status = far_await(c, INT64_MAX, err);
	if (status == XR_OK) {
		*count = head_of(c).count < want ? head_of(c).count : want;
		status = far_said(c, err);
	}
	far_call_unref(c);
	return status;
}

struct giving {
	struct xr_queue *q;
	const struct letter *letters; /* [count] that are left */
	size_t count;
	int64_t deadline, until;
};

/* @c is its future's, which ends some time; false: it is not, there is no memory. */
static bool
leave_behind(struct far *f, struct far_call *c, xr_then_fn *fn)
{
	struct xr_future *future = xr_future_ref(c->future);
	enum xr_status status;

	far_come(f);
	c->far = f;
	/* Once it is heard, it is gone. */
	status = xr_future_then(future, fn, c, XR_THEN, NULL);
	xr_future_unref(future);
	return status == XR_OK;
}

static enum xr_status
hear_room(struct xr_future *future, void *ctx, struct xr_value **result,
	struct xr_error *err)
{
	struct far_call *c = ctx;
	struct far_answer a = { .status = XR_E_TIMEOUT };

	(void)result;
	(void)err;
	if (xr_future_value(future, &c->answer, NULL) == XR_OK &&
		far_check(c, NULL) == XR_OK)
		a = head_of(c);
	if (a.status == XR_OK)
		far_tell(c->far, FAR_REVOKE, a.number);
	far_call_unref(c);
	return XR_OK;
}

static enum xr_status
hear_put(struct xr_future *future, void *ctx, struct xr_value **result,
	struct xr_error *err)
{
	(void)future;
	(void)result;
	(void)err;
	far_call_unref(ctx);
	return XR_OK;
}

/* It is put now, whenever that is heard there; to hear of it there is as much time as
 * was given. Takes @c. */
static enum xr_status
commit(const struct giving *g, struct far_call *c, uint64_t number,
	struct xr_error *err)
{
	enum xr_status status;

	memcpy(c->ask + offsetof(struct far_ask, number), &number,
		sizeof(number));
	status = far_send(g->q->far, c, err);
	if (status == XR_OK)
		status = far_await(c, g->until, err);
	if (status == XR_E_AGAIN && leave_behind(g->q->far, c, hear_put))
		return XR_OK;
	if (status == XR_E_AGAIN)
		status = far_await(c, INT64_MAX, err);
	if (status == XR_OK)
		status = far_said(c, err);
	far_call_unref(c);
	return status;
}

/* Some of what is left: as many as there is room for. @c is what is asked, and @done what is
 * said when there is. Takes both. */
static enum xr_status
give_some(struct giving *g, struct far_call *c, struct far_call *done,
	struct xr_error *err)
{
	enum xr_status status;
	size_t n = 0;

	put_head(c, g->count, left(g->deadline));
	c->limit = limit_of(g->until);
	status = far_send(g->q->far, c, err);
	if (status == XR_OK)
		status = far_await(c, g->until, err);
	if (status == XR_E_AGAIN && leave_behind(g->q->far, c, hear_room)) {
		far_call_unref(done);
		return fail(err, XR_E_TIMEOUT,
			"there was no word in time of who serves the queue");
	}
	if (status == XR_E_AGAIN)
		status = far_await(c, INT64_MAX, err);
	if (status == XR_OK)
		status = far_said(c, err);
	if (status == XR_OK) {
		n = head_of(c).count < g->count ? head_of(c).count : g->count;
		status = commit(g, done, head_of(c).number, err);
	} else {
		far_call_unref(done);
	}
	far_call_unref(c);
	if (status != XR_OK)
		return status;
	g->letters += n;
	g->count -= n;
	return XR_OK;
}

enum xr_status
far_give(struct xr_queue *q, struct letter *letters, size_t *count,
	int64_t timeout, struct xr_error *err)
{
	struct giving g = { .q = q,
		.letters = letters,
		.count = *count,
		.deadline = after(timeout),
		.until = patience(timeout, bytes_of(letters, *count)) };
	enum xr_status status;

	if (g.count == 0)
		return XR_OK;
	if (g.deadline == INT64_MAX)
		return give_for_ever(q, letters, count, err);
	do {
		struct far_call *c = put_of(q, FAR_OFFER, g.letters, g.count);
		struct far_call *done = far_call_new(q, FAR_COMMIT, 0);

		if (c != NULL && done != NULL) {
			status = give_some(&g, c, done, err);
			continue;
		}
		far_call_unref(c);
		far_call_unref(done);
		status = fail(err, XR_E_NOMEM, "out of memory");
	} while (status == XR_OK && g.count > 0);
	*count -= g.count;
	return status;
}

/* --- out ------------------------------------------------------------------------------ */

struct taking {
	struct xr_queue *q;
	struct taker *takers; /* [want] */
	size_t want, count;
	int64_t deadline, until;
	uint64_t
		bytes; /* that @until allows for, as the server announced them */
};

static enum xr_status
too_late(struct xr_error *err)
{
	return fail(err, XR_E_TIMEOUT,
		"nothing came in time, nor a word of who serves the queue");
}

static struct far_call *
get_of(const struct taking *t)
{
	struct far_call *c =
		far_call_new(t->q, FAR_GET, t->want * sizeof(uint64_t));

	for (size_t i = 0; c != NULL && i < t->want; i++) {
		const struct xr_queue_buf *buf = t->takers[i].buf;
		uint64_t room = buf->data != NULL ? buf->room : FAR_ANY_ROOM;

		memcpy(c->ask + sizeof(struct far_ask) + i * sizeof(room),
			&room, sizeof(room));
	}
	if (c == NULL)
		return NULL;
	put_head(c, t->want, left(t->deadline));
	memcpy(c->ask + offsetof(struct far_ask, number), &t->bytes,
		sizeof(t->bytes));
	c->until = t->bytes > 0 ? t->until : 0;
	return c;
}

/* What an earlier get was late for comes first: it was before all else. And what is being
 * given back is to be there before anything is asked for. */
static enum xr_status
take_late(const struct taking *t, struct far_call **call, struct xr_error *err)
{
	struct far_call *c;

	while ((c = late_pop(t->q)) != NULL && c->back != NULL) {
		if (!late_is_back(c, t->until)) {
			late_push(t->q, c);
			return too_late(err);
		}
		far_call_unref(c);
	}
	*call = c;
	return XR_OK;
}

static enum xr_status
begin(const struct taking *t, struct far_call **call, struct xr_error *err)
{
	enum xr_status status = take_late(t, call, err);
	struct far_call *c;

	if (status != XR_OK || *call != NULL)
		return status;
	c = get_of(t);
	if (c == NULL)
		return fail(err, XR_E_NOMEM, "out of memory");
	c->limit = limit_of(t->until);
	status = far_send(t->q->far, c, err);
	if (status == XR_OK)
		*call = c;
	else
		far_call_unref(c);
	return status;
}

/* What has come may be forgotten where it was got. */
static void
acknowledge(struct far *f, struct far_call *c)
{
	uint64_t number = head_of(c).number;

	if (number == 0 || c->is_kept)
		return;
	c->is_kept = true;
	atomic_store(&f->acked, number);
	far_tell(f, FAR_ACK, number);
}

/* One item of an answer to one who gets. */
static enum xr_status
copy_out(struct taker *t, const struct far_item *item, const uint8_t *body)
{
	void *out = t->buf->data;

	t->buf->len = item->len;
	t->kind = (enum cell_kind)item->kind;
	if (out != NULL && item->len > t->buf->room)
		return XR_E_RANGE;
	if (out == NULL) {
		out = malloc(item->len > 0 ? item->len : 1);
		if (out == NULL)
			return XR_E_NOMEM;
		free(t->made);
		t->made = out;
		t->made_room = item->len;
	}
	if (item->len > 0)
		memcpy(out, body, item->len);
	return XR_OK;
}

/* The next of @c's; XR_E_AGAIN: there is none. */
static enum xr_status
hand_one(struct taking *t, struct far_call *c)
{
	const struct far_answer a = head_of(c);
	size_t len, head = sizeof(a) + a.count * sizeof(struct far_item);
	const uint8_t *data = xr_value_data(c->answer, &len);
	struct far_item item;
	enum xr_status status;

	if (c->next == a.count)
		return XR_E_AGAIN;
	if (c->next == 0)
		c->at = head;
	if (head > len)
		return XR_E_PROTO;
	memcpy(&item, data + sizeof(a) + c->next * sizeof(item), sizeof(item));
	if (item.len > len - c->at)
		return XR_E_PROTO;
	status = copy_out(&t->takers[t->count], &item, data + c->at);
	if (status != XR_OK)
		return status;
	c->next++;
	c->at += item.len;
	t->count++;
	return XR_OK;
}

static enum xr_status
say(enum xr_status status, const struct taking *t, struct xr_error *err)
{
	if (status != XR_E_RANGE && status != XR_E_NOMEM)
		return fail(err, XR_E_PROTO,
			"who serves the queue answers nonsense");
	return take_said(status, t->takers, err);
}

/* Takes @c. What does not fit stays where it was got; what was not asked for now is
 * there the next time. */
static enum xr_status
hand_out(struct taking *t, struct far_call *c, struct xr_error *err)
{
	enum xr_status status = XR_OK;

	while (status == XR_OK && t->count < t->want)
		status = hand_one(t, c);
	if (t->count > 0)
		acknowledge(t->q->far, c);
	else if (head_of(c).number != 0)
		late_return(t->q, c, t->until);
	/* What has no number is not held where it was got. */
	c->is_kept |= head_of(c).number == 0;
	if (c->next < head_of(c).count && status != XR_E_PROTO && c->is_kept)
		late_push(t->q, c);
	else
		far_call_unref(c);
	return t->count > 0 ? XR_OK : say(status, t, err);
}

/* @bytes wait at the server: the next answer is awaited for as long as they need. */
static void
move_allow_for(struct taking *t, uint64_t bytes)
{
	int64_t until;

	if (bytes > MOST_BYTES)
		bytes = MOST_BYTES;
	until = patience(0, bytes);
	if (until > t->until)
		t->until = until;
	if (bytes > t->bytes)
		t->bytes = bytes;
}

/* Takes @c, which said that there is nothing, or what is wrong. XR_E_AGAIN: that was
 * said to another one, who had other room, and another time; or the bytes that wait
 * need more time, which they have now. */
static enum xr_status
refuse(struct taking *t, struct far_call *c, struct xr_error *err)
{
	enum xr_status status = far_said(c, err);
	bool is_late = c->is_late;

	if (status == XR_E_RANGE)
		t->takers[0].buf->len = head_of(c).number;
	if (status == XR_E_AGAIN)
		move_allow_for(t, head_of(c).number);
	far_call_unref(c);
	if (is_late && (status == XR_E_TIMEOUT || status == XR_E_RANGE))
		return XR_E_AGAIN;
	if (status == XR_E_TIMEOUT || status == XR_E_CLOSED)
		far_darken(t->q->far, status == XR_E_CLOSED);
	return status;
}

static enum xr_status
take_once(struct taking *t, struct xr_error *err)
{
	struct far_call *c = NULL;
	enum xr_status status = begin(t, &c, err);

	if (status != XR_OK)
		return status;
	if (c->until > t->until)
		t->until = c->until;
	status = far_await(c, t->until, err);
	if (status == XR_E_AGAIN) {
		late_push(t->q, c);
		return too_late(err);
	}
	if (status != XR_OK) {
		far_call_unref(c);
		return status;
	}
	if (far_said(c, err) != XR_OK)
		return refuse(t, c, err);
	return hand_out(t, c, err);
}

enum xr_status
far_take(struct xr_queue *q, struct taker *takers, size_t *count,
	int64_t timeout, struct xr_error *err)
{
	struct taking t = { .q = q,
		.takers = takers,
		.want = *count,
		.deadline = after(timeout),
		.until = patience(timeout, 0) };
	enum xr_status status = XR_OK;

	*count = 0;
	if (t.want == 0)
		return XR_OK;
	do
		status = take_once(&t, err);
	while (status == XR_E_AGAIN);
	*count = t.count;
	return status;
}
