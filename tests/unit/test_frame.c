/* SPDX-License-Identifier: Apache-2.0 */
/* test_frame.c - a store's requests and replies as bytes, and its files'. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "store/frame.h"
#include "store/record.h"
#include "tests/unit/short_memory.h"

static struct span part[FRAME_PARTS];
static struct frame f;
static struct buf bytes;
static struct xr_error err;

static void
begin(void)
{
	f = (struct frame){ .part = part };
}

static void
end(void)
{
	buf_fini(&bytes);
}

TestSuite(frame, .init = begin, .fini = end);

static enum xr_status
read_all(size_t len)
{
	return frame_read((struct span){ bytes.data, len }, &f, &err);
}

Test(frame, the_bytes_are_these)
{
	static const char want[] = "\x2c\0\0\0" /* what follows */
				   "\x01\0\x02\0"
				   "\x07\0\0\0\0\0\0\0"
				   "\0\0\0\0\0\0\0\0"
				   "\0\0\0\0"
				   "\x05\0\0\0\x07\0\0\0"
				   "p/key"
				   "a value";
	struct store_request q = {
		.op = STORE_SET,
		.id = 7,
		.key = span_of("p/key"),
		.value = store_value_new("a value", 7),
	};

	frame_put_request(&bytes, &q);
	store_value_unref(q.value);
	cr_assert_eq(bytes.len, sizeof(want) - 1);
	cr_expect_eq(memcmp(bytes.data, want, bytes.len), 0);
}

static const struct store_request *
sample(int op)
{
	static struct span keys[3];
	static struct store_request q;

	keys[0] = span_of("a/1");
	keys[1] = span_of("");
	keys[2] = span_of("a/3");
	q = (struct store_request){ .op = (enum store_op)op, .id = -5 };
	if (op == STORE_WAIT || op == STORE_CHECK) {
		q.keys = keys;
		q.count = 3;
	} else {
		q.key = span_of("p/k");
	}
	if (op == STORE_ADD)
		q.number = INT64_MIN;
	if (op == STORE_GET || op == STORE_WAIT)
		q.patience = DESK_NEVER;
	if (op == STORE_COMPARE_SET)
		q.expected = span_of("old");
	if (op == STORE_SET || op == STORE_COMPARE_SET)
		q.value = store_value_new("new", 3);
	return &q;
}

static bool
same(struct span a, struct span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

Test(frame, each_request_comes_back_as_it_was)
{
	for (int op = STORE_SET; op < STORE_OPS; op++) {
		const struct store_request *q = sample(op);
		struct store_request back;
		size_t size = 0;

		buf_clear(&bytes);
		frame_put_request(&bytes, q);
		cr_assert_eq(frame_size((struct span){ bytes.data, bytes.len },
				     &size, &err),
			XR_OK);
		cr_expect_eq(size, bytes.len);
		cr_assert_eq(read_all(bytes.len), XR_OK, "%s", err.text);
		cr_assert_eq(frame_request(&f, &back, &err), XR_OK, "%s",
			err.text);
		cr_expect(back.op == q->op && back.id == q->id &&
			back.number == q->number && same(back.key, q->key) &&
			same(back.expected, q->expected));
		if (op != STORE_ADD)
			cr_expect_eq(back.patience, q->patience);
		cr_assert_eq(back.count, q->count);
		for (size_t i = 0; i < q->count; i++)
			cr_expect(same(back.keys[i], q->keys[i]));
		cr_assert_eq(back.value == NULL, q->value == NULL);
		if (q->value != NULL)
			cr_expect_str_eq(back.value->data, "new");
		store_value_unref(back.value);
		store_value_unref(q->value);
	}
}

Test(frame, each_reply_comes_back_as_it_was)
{
	struct store_reply r = { .id = 9, .number = -3 }, back;

	frame_put_reply(&bytes, &r);
	cr_assert_eq(read_all(bytes.len), XR_OK);
	cr_assert_eq(frame_reply(&f, &back, &err), XR_OK);
	cr_expect(back.id == 9 && back.number == -3 && back.value == NULL);

	buf_clear(&bytes);
	r.value = store_value_new("bytes", 5);
	frame_put_reply(&bytes, &r);
	buf_put(&bytes, r.value->data, r.value->len); /* come behind it */
	cr_assert_eq(read_all(bytes.len), XR_OK, "%s", err.text);
	cr_assert_eq(frame_reply(&f, &back, &err), XR_OK);
	cr_expect_str_eq(back.value->data, "bytes");
	store_value_unref(back.value);
	store_value_unref(r.value);

	buf_clear(&bytes);
	r = (struct store_reply){ .status = XR_E_TIMEOUT };
	memcpy(r.err.text, "nobody came", 12);
	frame_put_reply(&bytes, &r);
	cr_assert_eq(read_all(bytes.len), XR_OK);
	cr_assert_eq(frame_reply(&f, &back, &err), XR_OK);
	cr_expect_eq(back.status, XR_E_TIMEOUT);
	cr_expect_str_eq(back.err.text, "nobody came");
}

Test(frame, every_truncation_is_refused)
{
	for (int op = STORE_SET; op < STORE_OPS; op++) {
		const struct store_request *q = sample(op);
		char *copy;

		buf_clear(&bytes);
		frame_put_request(&bytes, q);
		store_value_unref(q->value);
		for (size_t len = 0; len < bytes.len; len++) {
			copy = malloc(len +
				1); /* what is read beyond is seen */
			memcpy(copy, bytes.data, len);
			cr_expect_eq(frame_read((struct span){ copy, len }, &f,
					     &err),
				XR_E_PROTO);
			/* Also if it says that it is whole. */
			if (len >= 4) {
				copy[0] = (char)(len - 4);
				cr_expect_eq(frame_read((struct span){ copy,
								len },
						     &f, &err),
					XR_E_PROTO, "%d %zu", op, len);
			}
			free(copy);
		}
	}
}

Test(frame, what_does_not_add_up_is_refused)
{
	static const struct {
		const char *bytes;
		size_t len;
	} rows[] = {
		{ "\0\0\0\0", 4 },         /* nothing */
		{ "\x17\0\0\0", 4 },       /* less than a head */
		{ "\xff\xff\xff\xff", 4 }, /* more than there can be */
		{ "GET / HTTP/1.1\r\n\r\n", 18 },
	};
	size_t size;
	struct store_request q;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(frame_size((struct span){ rows[i].bytes,
						rows[i].len },
				     &size, &err),
			XR_E_PROTO, "%zu", i);
	for (int type = 0; type < 256; type++) {
		f.type = (uint8_t)type;
		f.count = 5;
		memset(part, 0, sizeof(part));
		f.number = 0;
		cr_expect_eq(frame_request(&f, &q, &err),
			type == STORE_WAIT || type == STORE_CHECK ? XR_OK :
								    XR_E_PROTO,
			"%d", type);
	}
	f.type = STORE_GET;
	f.count = 1;
	f.number = -1;
	cr_expect_eq(frame_request(&f, &q, &err), XR_E_PROTO);
}

/* The counts of a message, and the bytes of its only part. */
static enum xr_status
read_counts(uint32_t count, size_t length, size_t len)
{
	char message[FRAME_HEAD + 4 + 8] = { 0 };

	message[0] = (char)(FRAME_HEAD - 4 + len);
	message[6] = (char)(count & 0xff);
	message[7] = (char)(count >> 8);
	message[FRAME_HEAD] = (char)length;
	return frame_read((struct span){ message, FRAME_HEAD + len }, &f, &err);
}

Test(frame, the_parts_of_a_message_fill_it)
{
	cr_expect_eq(read_counts(1, 8, 12), XR_OK, "%s", err.text);
	cr_expect_eq(f.part[0].len, 8);
	cr_expect_eq(read_counts(1, 7, 12), XR_E_PROTO);
	cr_expect_str_eq(err.text, "store: a message is longer than its parts");
	cr_expect_eq(read_counts(1, 9, 12), XR_E_PROTO);
	cr_expect_str_eq(err.text,
		"store: a message is shorter than its parts");
	cr_expect_eq(read_counts(0, 0, 0), XR_OK, "%s", err.text);
	cr_expect_eq(read_counts(0, 0, 1), XR_E_PROTO);
	cr_expect_eq(read_counts(1, 0, 4), XR_OK, "%s", err.text);
	cr_expect_eq(read_counts(2, 0, 4), XR_E_PROTO);
	cr_expect_str_eq(err.text, "store: a message of 2 parts");
}

/* All lengths are 0, and there are as many as the count says. */
Test(frame, a_message_has_at_most_so_many_parts)
{
	static const size_t most = FRAME_HEAD + 4 * (FRAME_PARTS + 1);
	char *message = calloc(1, most);

	for (uint32_t count = FRAME_PARTS; count <= FRAME_PARTS + 1; count++) {
		size_t len = FRAME_HEAD + 4 * (size_t)count;

		for (int i = 0; i < 4; i++)
			message[i] = (char)((len - 4) >> (8 * i));
		message[6] = (char)(count & 0xff);
		message[7] = (char)(count >> 8);
		cr_expect_eq(frame_read((struct span){ message, len }, &f,
				     &err),
			count == FRAME_PARTS ? XR_OK : XR_E_PROTO, "%u: %s",
			count, err.text);
	}
	free(message);
}

Test(frame, each_field_of_a_hello_is_checked)
{
	static const struct {
		struct frame f;
		enum xr_status status;
		const char *magic;
	} rows[] = {
		{ { .type = FRAME_HELLO, .count = 1 }, XR_OK, FRAME_MAGIC },
		{ { .type = FRAME_HELLO, .count = 3 }, XR_OK, FRAME_MAGIC },
		{ { .type = FRAME_HELLO, .count = 0 }, XR_E_PROTO,
			FRAME_MAGIC },
		{ { .type = FRAME_HELLO, .count = 4 }, XR_E_PROTO,
			FRAME_MAGIC },
		{ { .type = FRAME_HELLO, .count = 1 }, XR_E_PROTO, "xrun" },
		{ { .type = FRAME_PROOF, .count = 1 }, XR_E_PROTO,
			FRAME_MAGIC },
		{ { .type = FRAME_HELLO, .count = 1, .id = 1 }, XR_E_PROTO,
			FRAME_MAGIC },
	};
	struct frame_hello hello;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		f = rows[i].f;
		f.part = part;
		f.number = FRAME_VERSION;
		part[0] = span_of(rows[i].magic);
		cr_expect_eq(frame_read_hello(&f, false, &hello, &err),
			rows[i].status, "%zu", i);
	}
	cr_expect_str_eq(err.text, "store: another program listens there");
}

Test(frame, each_field_of_a_reply_is_checked)
{
	static const struct frame rows[] = {
		{ .type = FRAME_REPLY, .count = 2 },
		{ .type = FRAME_REPLY, .status = 1 },
		{ .type = FRAME_PROOF },
	};
	struct store_reply r;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		f = rows[i];
		f.part = part;
		part[0] = part[1] = (struct span){ "", 0 };
		cr_expect_eq(frame_reply(&f, &r, &err), XR_E_PROTO, "%zu", i);
		cr_expect_str_eq(err.text, "store: that is no reply");
	}
}

/* Of a server that says why, in a text that fits, and of one that does not. */
Test(frame, a_reply_has_the_text_of_its_error_as_far_as_it_fits)
{
	char text[sizeof(err.text) + 1];
	struct store_reply r;

	memset(text, 'x', sizeof(text));
	f.type = FRAME_REPLY;
	f.status = XR_E_RANGE;
	cr_assert_eq(frame_reply(&f, &r, &err), XR_OK);
	cr_expect_eq(r.status, XR_E_RANGE);
	cr_expect_str_eq(r.err.text, "");
	f.count = 1;
	for (size_t len = 1; len <= sizeof(text); len++) {
		part[0] = (struct span){ text, len };
		cr_assert_eq(frame_reply(&f, &r, &err), XR_OK);
		cr_expect_eq(r.status, XR_E_RANGE);
		cr_expect_eq(strlen(r.err.text),
			len < sizeof(err.text) ? len : sizeof(err.text) - 1,
			"%zu", len);
	}
}

Test(frame, a_value_without_memory_is_told)
{
	struct store_request q;
	struct store_reply r;

	part[0] = span_of("key");
	part[1] = span_of("value");
	f = (struct frame){ .type = STORE_SET, .count = 2, .part = part };
	until_short = 1;
	cr_expect_eq(frame_request(&f, &q, &err), XR_E_NOMEM);
	cr_expect_str_eq(err.text, "store: out of memory");
	cr_expect_null(q.value);
	f = (struct frame){ .type = FRAME_REPLY, .count = 1, .part = part };
	until_short = 1;
	cr_expect_eq(frame_reply(&f, &r, &err), XR_E_NOMEM);
	cr_expect_null(r.value);
	cr_expect_eq(frame_reply(&f, &r, &err), XR_OK);
	cr_expect_str_eq(r.value->data, "key");
	store_value_unref(r.value);
}

Test(frame, a_hello_of_one_side_is_none_of_the_other)
{
	struct frame_hello hello = { 0 };

	frame_put_hello(&bytes, &hello);
	cr_assert_eq(read_all(bytes.len), XR_OK);
	cr_expect_eq(frame_read_hello(&f, false, &hello, &err), XR_OK);
	cr_expect_eq(hello.nonce.len, 0);
	cr_expect_eq(hello.proof.len, 0);
	cr_expect_eq(frame_read_hello(&f, true, &hello, &err), XR_E_PROTO);
	f.number++;
	cr_expect_eq(frame_read_hello(&f, false, &hello, &err), XR_E_VERSION);
	f.type = STORE_GET;
	cr_expect_eq(frame_read_hello(&f, false, &hello, &err), XR_E_PROTO);
}

Test(frame, a_hello_keeps_its_nonce_and_proof)
{
	struct frame_hello put = { true, XR_E_AUTH, { "nonce", 5 },
		{ "proof!", 6 } };
	struct frame_hello got = { 0 };

	frame_put_hello(&bytes, &put);
	cr_assert_eq(read_all(bytes.len), XR_OK);
	cr_assert_eq(frame_read_hello(&f, true, &got, &err), XR_OK);
	cr_expect_eq(got.status, XR_E_AUTH);
	cr_expect(span_is(got.nonce, "nonce"));
	cr_expect(span_is(got.proof, "proof!"));
}

/* --- files ----------------------------------------------------------------- */

Test(frame, a_record_comes_back_as_it_was)
{
	struct record r;

	record_put(&bytes, RECORD_SET, span_of("p/key"), 1 << 20);
	cr_assert_eq(bytes.len, RECORD_HEAD + 5);
	cr_assert_eq(record_read(bytes.data, &r, &err), XR_OK);
	cr_expect(r.op == RECORD_SET && r.key_len == 5 &&
		r.value_len == 1 << 20);
	cr_expect_eq(memcmp(bytes.data + RECORD_HEAD, "p/key", 5), 0);
}

Test(frame, a_record_with_a_byte_of_another_is_none)
{
	struct record r;

	record_put(&bytes, RECORD_DELETE, span_of("p/key"), 0);
	for (size_t i = 0; i < RECORD_HEAD; i++) {
		if (i >= 5 && i < 8)
			continue; /* says nothing yet */
		for (int bit = 0; bit < 8; bit++) {
			bytes.data[i] ^= (char)(1 << bit);
			if (i != 4 || bytes.data[i] != RECORD_SET)
				cr_expect_eq(record_read(bytes.data, &r, &err),
					XR_E_PROTO, "%zu %d", i, bit);
			bytes.data[i] ^= (char)(1 << bit);
		}
	}
}
