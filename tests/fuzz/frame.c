/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.c - fuzz target: a store's requests and replies as bytes, and the
 * records of its files.
 *
 * Input: a letter, then bytes. "f": they are a stream of frames; "w": one frame,
 * whose length is put right first, so that more of it is reached; "r": the head
 * of a record.
 *
 * Claims: a refusal has words; what was read lies in the input and is written
 * again as the same bytes, but for what says nothing; a request and a reply come
 * back from what they are written as.
 */
#include <stdlib.h>
#include <string.h>

#include "store/frame.h"
#include "store/record.h"
#include "tests/fuzz/fuzz.h"

static struct span part[FRAME_PARTS], again_part[FRAME_PARTS];

static bool
same(struct span a, struct span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static void
check_request(const struct frame *f)
{
	struct store_request q = { .value = NULL }, back = { .value = NULL };
	struct frame again = { .part = again_part };
	struct buf out = { 0 };
	struct xr_error err = { 0 };
	enum xr_status status = frame_request(f, &q, &err);

	fuzz_error(status, &err);
	if (status != XR_OK)
		return;
	HOLDS(q.op > 0 && q.op < STORE_OPS);
	HOLDS(q.patience >= 0 || q.op == STORE_ADD);
	frame_put_request(&out, &q);
	HOLDS(frame_read((struct span){ out.data, out.len }, &again, NULL) ==
		XR_OK);
	HOLDS(frame_request(&again, &back, NULL) == XR_OK);
	HOLDS(back.op == q.op && back.id == q.id && back.number == q.number &&
		back.count == q.count && same(back.key, q.key) &&
		same(back.expected, q.expected));
	for (size_t i = 0; i < q.count; i++)
		HOLDS(same(back.keys[i], q.keys[i]));
	HOLDS((back.value == NULL) == (q.value == NULL));
	if (q.value != NULL)
		HOLDS(same((struct span){ q.value->data, q.value->len },
			(struct span){ back.value->data, back.value->len }));
	store_value_unref(q.value);
	store_value_unref(back.value);
	buf_fini(&out);
}

static void
check_reply(const struct frame *f)
{
	struct store_reply r = { .value = NULL };
	struct xr_error err = { 0 };
	enum xr_status status = frame_reply(f, &r, &err);

	fuzz_error(status, &err);
	if (status != XR_OK)
		return;
	HOLDS(r.status <= XR_OK && r.id == f->id && r.number == f->number);
	HOLDS(memchr(r.err.text, '\0', sizeof(r.err.text)) != NULL);
	HOLDS(r.value == NULL || r.status == XR_OK);
	if (r.value != NULL)
		HOLDS(same((struct span){ r.value->data, r.value->len },
			f->part[0]));
	store_value_unref(r.value);
}

static void
check_frame(struct span in)
{
	struct frame f = { .part = part };
	struct frame_hello hello;
	struct buf out = { 0 };
	struct xr_error err = { 0 };
	enum xr_status status = frame_read(in, &f, &err);

	fuzz_error(status, &err);
	if (status != XR_OK)
		return;
	HOLDS(f.count <= FRAME_PARTS);
	for (uint32_t i = 0; i < f.count; i++)
		HOLDS(part[i].at >= in.at &&
			part[i].at + part[i].len <= in.at + in.len);
	frame_put(&out, &f, 0);
	HOLDS(out.len == in.len && memcmp(out.data, in.at, 5) == 0 &&
		memcmp(out.data + 6, in.at + 6, in.len - 6) == 0);
	buf_fini(&out);
	check_request(&f);
	check_reply(&f);
	frame_read_hello(&f, f.id == 1, &hello, NULL);
}

static void
check_stream(struct span in)
{
	struct xr_error err = { 0 };
	size_t size = 0;

	while (frame_size(in, &size, &err) == XR_OK && size > 0 &&
		size <= in.len) {
		HOLDS(size >= FRAME_HEAD && size <= FRAME_MAX);
		check_frame((struct span){ in.at, size });
		in.at += size;
		in.len -= size;
	}
}

static void
check_record(const char *head)
{
	struct record r = { 0 };
	struct buf out = { 0 };
	static const char key[STORE_KEY_MAX];
	struct xr_error err = { 0 };
	enum xr_status status = record_read(head, &r, &err);

	fuzz_error(status, &err);
	if (status != XR_OK)
		return;
	HOLDS(r.key_len <= STORE_KEY_MAX && r.value_len <= STORE_VALUE_MAX);
	record_put(&out, r.op, (struct span){ key, r.key_len }, r.value_len);
	HOLDS(memcmp(out.data, head, 5) == 0 &&
		memcmp(out.data + 8, head + 8, RECORD_HEAD - 8) == 0);
	buf_fini(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t len = size > 0 ? size - 1 : 0;
	char *copy =
		malloc(len + 1); /* of its own size, so that more is seen */

	HOLDS(copy != NULL);
	if (len > 0)
		memcpy(copy, data + 1, len);
	copy = realloc(copy, len > 0 ? len : 1);
	if (size > 0 && data[0] == 'f')
		check_stream((struct span){ copy, len });
	if (size > 0 && data[0] == 'w' && len >= FRAME_HEAD) {
		for (int i = 0; i < 4; i++)
			copy[i] = (char)((len - 4) >> 8 * i);
		check_frame((struct span){ copy, len });
	}
	if (size > 0 && data[0] == 'r' && len >= RECORD_HEAD)
		check_record(copy);
	free(copy);
	return 0;
}
