/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.c - see xrun/queue.h: items that are plain bytes. */
#include <stdlib.h>

#include "base/status.h"
#include "worker/queue/queue_inner.h"

#define FEW 32 /* that need no memory of their own */

static struct letter
letter_of(const struct xr_part *part)
{
	return (struct letter){ .parts = part,
		.count = 1,
		.len = part->len,
		.kind = CELL_BYTES };
}

XR_EXPORT enum xr_status
xr_queue_put_bytes(struct xr_queue *queue, const void *data, size_t len,
	int64_t timeout, struct xr_error *err)
{
	const struct xr_part part = { data, len };
	struct letter letter = letter_of(&part);
	size_t count = 1;

	return give_all(queue, &letter, &count, timeout, err);
}

XR_EXPORT enum xr_status
xr_queue_put_many_bytes(struct xr_queue *queue, const struct xr_part *items,
	size_t *count, int64_t timeout, struct xr_error *err)
{
	struct letter few[FEW], *letters = few;
	enum xr_status status;

	if (*count > FEW)
		letters = calloc(*count, sizeof(*letters));
	if (letters == NULL) {
		*count = 0;
		return fail(err, XR_E_NOMEM, "out of memory");
	}
	for (size_t i = 0; i < *count; i++)
		letters[i] = letter_of(&items[i]);
	status = give_all(queue, letters, count, timeout, err);
	if (letters != few)
		free(letters);
	return status;
}

/* What was made and not used is freed, what was used is the caller's. */
static void
settle(struct taker *t, bool is_used)
{
	if (!is_used)
		free(t->made);
	else if (t->buf->data == NULL)
		t->buf->data = t->made;
}

XR_EXPORT enum xr_status
xr_queue_get_bytes(struct xr_queue *queue, struct xr_queue_buf *buf,
	int64_t timeout, struct xr_error *err)
{
	struct taker taker = { .buf = buf };
	size_t count = 1;
	enum xr_status status = take_some(queue, &taker, &count, timeout, err);

	settle(&taker, count > 0);
	return status;
}

XR_EXPORT enum xr_status
xr_queue_get_many_bytes(struct xr_queue *queue, struct xr_queue_buf *bufs,
	size_t *count, int64_t timeout, struct xr_error *err)
{
	struct taker few[FEW] = { { 0 } }, *takers = few;
	size_t want = *count;
	enum xr_status status;

	if (want > FEW)
		takers = calloc(want, sizeof(*takers));
	if (takers == NULL) {
		*count = 0;
		return fail(err, XR_E_NOMEM, "out of memory");
	}
	for (size_t i = 0; i < want; i++)
		takers[i] = (struct taker){ .buf = &bufs[i] };
	status = take_some(queue, takers, count, timeout, err);
	for (size_t i = 0; i < want; i++)
		settle(&takers[i], i < *count);
	if (takers != few)
		free(takers);
	return status;
}
