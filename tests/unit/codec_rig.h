/* SPDX-License-Identifier: Apache-2.0 */
/* codec_rig.h - what tests of messages share: one as a block of bytes, and one
 * that is written by hand. */
#ifndef TESTS_UNIT_CODEC_RIG_H
#define TESTS_UNIT_CODEC_RIG_H

#include <stdarg.h>

#include "base/status.h"
#include "tests/unit/short_memory.h"
#include "tests/unit/value_rig.h"
#include "wire/value/format.h"

static struct xr_error err;

/* --- references in messages ------------------------------------------------- */

static enum xr_status
rref_pack(void *ctx, struct xr_rref *rref, uint8_t out[VALUE_RREF_BYTES],
	struct xr_error *e)
{
	(void)ctx, (void)e;
	for (int i = 0; i < VALUE_RREF_BYTES; i++)
		out[i] = (uint8_t)(rref->id + i);
	return XR_OK;
}

static enum xr_status
rref_unpack(void *ctx, const uint8_t in[VALUE_RREF_BYTES],
	struct xr_rref **rref, struct xr_error *e)
{
	(void)ctx;
	for (int i = 0; i < VALUE_RREF_BYTES; i++)
		if (in[i] != (uint8_t)(7 + i))
			return fail(e, XR_E_DECODE, "rref: nobody has it");
	*rref = rref_ref(&rref_seven);
	return XR_OK;
}

static const struct value_codec_ctx in_call = {
	.rref_pack = rref_pack,
	.rref_unpack = rref_unpack,
};

static const struct value_encoding for_call = { .ctx = &in_call };

/* --- there and back --------------------------------------------------------- */

/* A message in memory of exactly its size, as it would be received. */
struct message {
	uint8_t *data;
	size_t len;
};

/* The parts, one behind the other. */
static inline struct message
joined(const struct xr_encoded *e)
{
	struct message m = { 0 };
	const struct xr_part *parts;
	size_t count;

	parts = xr_encoded_parts(e, &count);
	for (size_t i = 0; i < count; i++)
		m.len += parts[i].len;
	cr_assert_eq(posix_memalign((void **)&m.data, 64, m.len), 0);
	m.len = 0;
	for (size_t i = 0; i < count; i++) {
		memcpy(m.data + m.len, parts[i].data, parts[i].len);
		m.len += parts[i].len;
	}
	return m;
}

static inline struct message
message_of(struct xr_value *value, const struct value_encoding *how)
{
	static const struct value_encoding plain;
	struct xr_encoded *e = NULL;
	struct message m;

	err.text[0] = '\0';
	cr_assert_eq(value_encode(value, how == NULL ? &plain : how, &e, &err),
		XR_OK, "%s", err.text);
	m = joined(e);
	xr_encoded_free(e);
	return m;
}

static inline enum xr_status
read_message(struct message m, struct xr_value **value)
{
	struct xr_part part = { m.data, m.len };

	err.text[0] = '\0';
	return xr_decode(&part, 1, NULL, value, &err);
}

static inline enum xr_status
read_in_call(struct message m, struct xr_value **value)
{
	struct xr_part part = { m.data, m.len };
	const struct value_reader reader = {
		.parts = &part,
		.count = 1,
		.ctx = &in_call,
	};

	err.text[0] = '\0';
	return value_decode(&reader, value, &err);
}

/* Through a message. */
static inline struct xr_value *
again(struct xr_value *value)
{
	struct message m = message_of(value, NULL);
	struct xr_value *got = NULL;

	cr_assert_eq(read_message(m, &got), XR_OK, "%s", err.text);
	free(m.data);
	return got;
}

/* A view of f32 elements; its strides are of elements. */
static inline struct xr_value *
view(struct xr_value *of, const int64_t shape[2], const int64_t strides[2],
	uint64_t offset)
{
	struct xr_tensor_desc d = {
		.size = sizeof(d),
		.dtype = XR_DT_F32,
		.ndim = 2,
		.shape = { shape[0], shape[1] },
		.strides = { strides[0], strides[1] },
		.offset = offset,
	};
	struct xr_value *v = NULL;

	cr_assert_eq(xr_tensor_view(of, &d, &v, &err), XR_OK, "%s", err.text);
	return v;
}

#define PAIR(...) \
	(const int64_t[]) \
	{ \
		__VA_ARGS__ \
	}

/* --- by hand --------------------------------------------------------------- */

/* A message being written: its header is put right by hand_finish(). */
struct hand {
	uint8_t data[1 << 16];
	size_t len;
	uint32_t buffers;
};

static struct hand hand;

static inline void
hand_begin(void)
{
	memset(&hand, 0, sizeof(hand));
	memcpy(hand.data, FORMAT_MAGIC, 4);
	format_put16(hand.data + FORMAT_AT_VERSION, FORMAT_VERSION);
	hand.len = FORMAT_HEADER;
}

static inline void
hand_put(const void *data, size_t len)
{
	cr_assert(len <= sizeof(hand.data) - hand.len);
	memcpy(hand.data + hand.len, data, len);
	hand.len += len;
}

static inline void
hand8(uint8_t u)
{
	hand_put(&u, 1);
}

static inline void
hand32(uint32_t u)
{
	uint8_t p[4];

	format_put32(p, u);
	hand_put(p, 4);
}

static inline void
hand64(uint64_t u)
{
	uint8_t p[8];

	format_put64(p, u);
	hand_put(p, 8);
}

/* An entry of the table: before the value. */
static inline void
hand_entry(enum format_place place, enum format_use use, uint64_t len)
{
	uint8_t p[FORMAT_ENTRY] = { (uint8_t)place, (uint8_t)use };

	format_put64(p + 8, len);
	hand_put(p, sizeof(p));
	hand.buffers++;
}

/* @behind bytes of buffers follow the head, aligned. */
static inline struct message
hand_finish(size_t behind)
{
	size_t head = hand.len;
	size_t total = behind == 0 ? head : format_align(head) + behind;

	format_put32(hand.data + FORMAT_AT_HEAD, (uint32_t)head);
	format_put32(hand.data + FORMAT_AT_BUFFERS, hand.buffers);
	format_put64(hand.data + FORMAT_AT_TOTAL, total);
	return (struct message){ hand.data, total };
}

/* It is refused so; @text: NULL, or what is said of it. */
static inline void
refused_as(struct message m, enum xr_status status, const char *said)
{
	struct xr_value *value = NULL;

	cr_expect_eq(read_message(m, &value), status, "%s: %s", said, err.text);
	cr_expect_null(value);
	cr_expect_neq(err.text[0], '\0');
	if (said != NULL)
		cr_expect_not_null(strstr(err.text, said),
			"'%s' is not in '%s'", said, err.text);
	xr_value_unref(value);
}

#endif /* TESTS_UNIT_CODEC_RIG_H */
