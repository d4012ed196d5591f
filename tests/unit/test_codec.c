/* SPDX-License-Identifier: Apache-2.0 */
/* test_codec.c - values as messages: what comes back, in which bytes, and what
 * cannot. */
#include "tests/unit/codec_rig.h"
#include "tests/unit/value_golden.h"

TestSuite(codec, .init = begin, .fini = end);

/* --- every kind ------------------------------------------------------------ */

Test(codec, AC_K1_every_kind_comes_back)
{
	for (int k = 0; k < KINDS; k++) {
		struct xr_value *v = of_kind((enum xr_kind)k), *got = NULL;
		struct message m = message_of(v, &for_call);

		cr_assert_eq(read_in_call(m, &got), XR_OK, "%s: %s",
			xr_kind_name(k), err.text);
		cr_expect(xr_value_equal(v, got), "%s", xr_kind_name(k));
		free(m.data);
		xr_value_unref(v);
		xr_value_unref(got);
	}
}

Test(codec, AC_K1_all_kinds_come_back_in_one_message)
{
	struct xr_value *v = of_every_kind(), *got = NULL;
	struct message m = message_of(v, &for_call);

	cr_assert_eq(read_in_call(m, &got), XR_OK, "%s", err.text);
	cr_expect(xr_value_equal(v, got));
	free(m.data);
	xr_value_unref(v);
	xr_value_unref(got);
}

/* @depth of what @tag begins in each other, and a nil. */
static struct message
hand_nested(int depth, const void *tag, size_t len)
{
	hand_begin();
	for (int i = 0; i < depth; i++)
		hand_put(tag, len);
	hand8(XR_NIL);
	return hand_finish(0);
}

Test(codec, AC_K1_sixty_four_deep_and_no_deeper)
{
	static const char list[] = "\x08\x01\0\0\0";
	static const char dict[] = "\x09\x01\0\0\0\0\0\0\0";
	static const char func[] = "\x0f\x01\x01"
				   "f";
	static const struct {
		const char *at;
		size_t len;
	} rows[] = { { list, 5 }, { dict, 9 }, { func, 4 } };
	struct xr_value *v = nested(XR_VALUE_DEPTH_MAX, i64(1)), *got;

	cr_assert_not_null(v);
	got = again(v);
	cr_expect(xr_value_equal(v, got));
	xr_value_unref(v);
	xr_value_unref(got);
	for (size_t i = 0; i < 3; i++) {
		got = NULL;
		cr_expect_eq(read_message(hand_nested(64, rows[i].at,
						  rows[i].len),
				     &got),
			XR_OK, "%s", err.text);
		xr_value_unref(got);
		refused_as(hand_nested(65, rows[i].at, rows[i].len), XR_E_RANGE,
			"more than 64 in each other");
		refused_as(hand_nested(5000, rows[i].at, rows[i].len),
			XR_E_RANGE, "more than 64 in each other");
	}
}

Test(codec, AC_K1_causes_of_causes_are_as_many_as_were_made)
{
	struct xr_value *error = some_error(NULL), *next, *got;

	for (int i = 0; i < XR_VALUE_DEPTH_MAX; i++) {
		next = some_error(error);
		cr_assert_not_null(next);
		xr_value_unref(error);
		error = next;
	}
	got = again(error);
	cr_expect(xr_value_equal(error, got));
	xr_value_unref(error);
	xr_value_unref(got);
}

Test(codec, numbers_and_texts_at_their_edges_come_back)
{
	char longest[3000];
	struct xr_value *items[16], *v, *got;
	size_t n = 0;

	memset(longest, 'x', sizeof(longest));
	items[n++] = i64(INT64_MIN);
	items[n++] = i64(INT64_MAX);
	items[n++] = xr_value_new_u64(0);
	items[n++] = xr_value_new_bool(false);
	items[n++] = xr_value_new_f64(-0.0);
	items[n++] = xr_value_new_f64(5e-324);
	for (size_t len = 1023; len < 1026; len++) {
		items[n++] = xr_value_new_bytes(longest, len);
		items[n++] = xr_value_new_text(longest, len);
	}
	items[n++] = text("");
	items[n++] = xr_value_new_bytes(NULL, 0);
	items[n++] = xr_value_new_list();
	items[n++] = xr_value_new_dict();
	v = xr_value_new_list_of(items, n);
	cr_assert_not_null(v);
	got = again(v);
	cr_expect(xr_value_equal(v, got));
	for (size_t i = 6; i < 14; i++) {
		size_t len;
		const char *data = xr_value_data(xr_value_at(got, i), &len);

		cr_expect_eq(data[len], '\0', "%zu", i);
	}
	xr_value_unref(v);
	xr_value_unref(got);
}

Test(codec, long_bytes_are_once_in_a_message)
{
	char data[5000];
	struct xr_value *bytes, *v, *got;
	struct message m;

	memset(data, 'b', sizeof(data));
	for (int as_text = 0; as_text < 2; as_text++) {
		bytes = as_text ? xr_value_new_text(data, sizeof(data)) :
				  xr_value_new_bytes(data, sizeof(data));
		v = xr_value_new_list();
		for (int i = 0; i < 100; i++)
			xr_value_append(v, xr_value_ref(bytes));
		xr_value_unref(bytes);
		m = message_of(v, NULL);
		cr_expect(lt(sz, m.len, 6000));
		most_asked = 0;
		cr_assert_eq(read_message(m, &got), XR_OK, "%s", err.text);
		cr_expect(xr_value_equal(v, got));
		cr_expect_eq(xr_value_data(xr_value_at(got, 0), NULL),
			xr_value_data(xr_value_at(got, 99), NULL),
			"one copy of them is made");
		free(m.data);
		xr_value_unref(v);
		xr_value_unref(got);
	}
}

Test(codec, the_same_memory_may_be_different_bytes)
{
	static const char data[3000] = { 1 };
	struct xr_value *items[] = {
		xr_value_wrap_bytes(data, 3000, NULL, NULL),
		xr_value_wrap_bytes(data, 2000, NULL, NULL),
		xr_value_wrap_bytes(data, 10, NULL, NULL),
	};
	struct xr_value *v, *got;

	for (int i = 0; i < 3; i++)
		xr_value_ref(items[i]);
	v = xr_value_new_list_of(items, 3);
	got = again(v);
	cr_expect(xr_value_equal(v, got));
	xr_value_unref(v);
	xr_value_unref(got);
	for (int i = 0; i < 3; i++)
		xr_value_unref(items[i]);
}

Test(codec, a_message_keeps_its_value)
{
	struct xr_encoded *e = NULL;
	struct xr_value *v = watched();
	struct xr_value *list = xr_value_new_list_of(&v, 1);

	cr_assert_eq(xr_encode(list, NULL, &e, &err), XR_OK);
	cr_expect_eq(xr_value_append(list, i64(1)), XR_E_STATE);
	xr_value_unref(list);
	cr_expect(eq(int, freed, 0));
	xr_encoded_free(e);
	cr_expect(eq(int, freed, 1));
	xr_encoded_free(NULL);
}

/* --- bytes ----------------------------------------------------------------- */

Test(codec, AC_K9_the_bytes_are_these)
{
	for (int k = 0; k < KINDS; k++) {
		struct xr_value *v = of_kind((enum xr_kind)k), *got = NULL;
		struct message m = message_of(v, &for_call);
		struct message old = { (uint8_t *)golden[k].data,
			golden[k].len };

		cr_expect_eq(m.len, old.len, "%s", xr_kind_name(k));
		cr_expect_eq(memcmp(m.data, old.data, old.len), 0, "%s",
			xr_kind_name(k));
		cr_assert_eq(read_in_call(old, &got), XR_OK, "%s: %s",
			xr_kind_name(k), err.text);
		cr_expect(xr_value_equal(v, got));
		free(m.data);
		xr_value_unref(v);
		xr_value_unref(got);
	}
}

static void
reverse(uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len / 2; i++) {
		uint8_t c = p[i];

		p[i] = p[len - 1 - i];
		p[len - 1 - i] = c;
	}
}

Test(codec, AC_K9_big_endian_messages_are_refused)
{
	static const char nil[] = "XRV1\0\1\0\0\0\0\0\0\0\0\0\x21"
				  "\0\0\0\x21\0\0\0\0\0\0\0\0\0\0\0\0";
	struct message m = { (uint8_t *)nil, sizeof(nil) };
	uint8_t data[256];

	cr_assert(eq(sz, m.len, 33));
	refused_as(m, XR_E_DECODE, "(big-endian)");
	for (int k = 0; k < KINDS; k++) {
		memcpy(data, golden[k].data, golden[k].len);
		reverse(data + 4, 2);
		reverse(data + 6, 2);
		reverse(data + 8, 8);
		for (int i = 16; i < 32; i += 4)
			reverse(data + i, 4);
		m = (struct message){ data, golden[k].len };
		refused_as(m, XR_E_DECODE, "(big-endian)");
		memcpy(data, golden[k].data, golden[k].len);
		reverse(data, 4);
		refused_as(m, XR_E_DECODE, "no message of values");
	}
}

Test(codec, a_sum_finds_every_bit_that_turned)
{
	struct value_encoding how = { .checksum = true };
	struct xr_value *list = some_list(), *v, *got = NULL;
	struct xr_enc_opts opts = { .size = sizeof(opts), .checksum = 1 };
	struct xr_value *items[] = { list, numbers(2, 2) };
	struct xr_encoded *e = NULL;
	struct message m;
	size_t head;

	v = xr_value_new_list_of(items, 2);
	m = message_of(v, &how);
	head = format_get32(m.data + FORMAT_AT_HEAD);
	cr_assert_eq(read_message(m, &got), XR_OK, "%s", err.text);
	cr_expect(xr_value_equal(v, got));
	xr_value_unref(got);
	for (size_t bit = 0; bit < 8 * head; bit++) {
		m.data[bit / 8] ^= (uint8_t)(1U << bit % 8);
		got = NULL;
		cr_expect_neq(read_message(m, &got), XR_OK, "bit %zu", bit);
		cr_expect_null(got);
		m.data[bit / 8] ^= (uint8_t)(1U << bit % 8);
	}
	free(m.data);
	cr_assert_eq(xr_encode(v, &opts, &e, &err), XR_OK);
	m = joined(e);
	cr_expect_neq(format_get32(m.data + FORMAT_AT_SUM), 0);
	xr_encoded_free(e);
	free(m.data);
	xr_value_unref(v);
}

/* --- functions and types --------------------------------------------------- */

Test(codec, AC_K10_a_function_that_nobody_registered_comes_back)
{
	struct xr_value *v = xr_fn_bind("nobody.knows", i64(1)), *bound;
	struct xr_value *got = again(v);

	cr_expect_str_eq(xr_value_func(got, &bound), "nobody.knows");
	cr_expect(xr_value_equal(v, got));
	xr_value_unref(v);
	xr_value_unref(got);
}

static struct xr_value *
encode_text(void *object, void *ctx)
{
	(void)ctx;
	return xr_value_new_text(object, strlen(object));
}

static struct xr_value *
encode_none(void *object, void *ctx)
{
	(void)object, (void)ctx;
	return NULL;
}

static void *
decode_none(const void *data, size_t len, void *ctx)
{
	(void)data, (void)len;
	return ctx;
}

/* Types that can do half of it: an object of each. */
static struct xr_value *
half(const char *name, struct xr_value *(*encode)(void *, void *),
	void *(*decode)(const void *, size_t, void *))
{
	const struct xr_type type = {
		.size = sizeof(type),
		.name = name,
		.encode = encode,
		.decode = decode,
	};

	cr_assert_eq(xr_type_register(&type, NULL), XR_OK);
	return xr_value_new_opaque(name, "object");
}

static void
hand_object(const char *name)
{
	hand_begin();
	hand8(XR_OPAQUE);
	hand8((uint8_t)strlen(name));
	hand_put(name, strlen(name));
	hand8(XR_BYTES);
	hand32(0);
}

Test(codec, AC_K11_a_type_without_decoder_is_named)
{
	xr_value_unref(half("only.encode", encode_text, NULL));
	xr_value_unref(half("no.luck", encode_text, decode_none));
	hand_object("geo.Unknown");
	refused_as(hand_finish(0), XR_E_DECODE,
		"type 'geo.Unknown' has no decoder here");
	hand_object("only.encode");
	refused_as(hand_finish(0), XR_E_DECODE,
		"type 'only.encode' has no decoder here");
	hand_object("no.luck");
	refused_as(hand_finish(0), XR_E_DECODE,
		"the decoder of type no.luck failed");
	hand_object("a\nb");
	refused_as(hand_finish(0), XR_E_DECODE, "a type without a name");
	hand_object("geo.Point");
	refused_as(hand_finish(0), XR_E_DECODE,
		"the decoder of type geo.Point failed");
}

/* @v, which is let go, cannot be encoded. */
static void
not_encoded(struct xr_value *v, const char *said)
{
	struct xr_encoded *e = NULL;

	err.text[0] = '\0';
	cr_expect_eq(xr_encode(v, NULL, &e, &err), XR_E_ENCODE, "%s", said);
	cr_expect_null(e);
	cr_expect_str_eq(err.text, said);
	xr_value_unref(v);
}

Test(codec, what_cannot_be_encoded_is_told)
{
	struct xr_enc_opts opts = { .size = sizeof(opts), .mode = 2 };
	struct xr_value *deep = nested(3, xr_value_new_rref(&rref_seven));
	struct xr_encoded *e = NULL;

	not_encoded(half("only.decode", NULL, point_decode),
		"value: type only.decode has no encoder");
	not_encoded(half("as.text", encode_text, NULL),
		"value: the encoder of type as.text failed");
	not_encoded(half("as.none", encode_none, NULL),
		"value: the encoder of type as.none failed");
	not_encoded(deep, "value: a reference outside of a call");
	cr_expect_eq(xr_encode(NULL, NULL, &e, &err), XR_E_INVAL);
	deep = i64(1);
	cr_expect_eq(xr_encode(deep, &opts, &e, &err), XR_E_INVAL);
	opts = (struct xr_enc_opts){ .size = sizeof(opts) - 1 };
	cr_expect_eq(xr_encode(deep, &opts, &e, &err), XR_E_INVAL);
	cr_expect_null(e);
	xr_value_unref(deep);
}

/* --- references ------------------------------------------------------------ */

static enum xr_status
never_packed(void *ctx, struct xr_rref *rref, uint8_t out[VALUE_RREF_BYTES],
	struct xr_error *e)
{
	(void)ctx, (void)rref, (void)out;
	return fail(e, XR_E_STATE, "rref: not now");
}

Test(codec, what_the_agent_says_of_a_reference_is_passed_on)
{
	const struct value_codec_ctx refuses = { .rref_pack = never_packed };
	const struct value_encoding how = { .ctx = &refuses };
	struct xr_value *v = xr_value_new_rref(&rref_seven), *got = NULL;
	struct xr_encoded *e = NULL;
	struct message m = message_of(v, &for_call);

	cr_expect_eq(value_encode(v, &how, &e, &err), XR_E_STATE);
	cr_expect_str_eq(err.text, "rref: not now");
	cr_expect_eq(read_message(m, &got), XR_E_DECODE);
	cr_expect_str_eq(err.text,
		"value: byte 97: a reference outside of a call");
	m.data[40]++;
	cr_expect_eq(read_in_call(m, &got), XR_E_DECODE);
	cr_expect_str_eq(err.text, "rref: nobody has it");
	cr_expect_null(got);
	free(m.data);
	xr_value_unref(v);
}

/* --- memory ---------------------------------------------------------------- */

/* One of each kind, long bytes and text, an object with a long encoding, and
 * tensors that share, are trimmed and are packed. */
static struct xr_value *
much(void)
{
	static char data[4000];
	struct xr_value *of = numbers(100, 100);
	struct xr_value *items[] = {
		of_every_kind(),
		xr_value_new_bytes(data, sizeof(data)),
		view(of, PAIR(10, 1), PAIR(100, 1), 0),
		numbers(2000, 2),
		numbers(1, 2),
		xr_value_ref(of),
		of,
		xr_value_new_text(memset(data, 't', 4000), sizeof(data)),
	};

	return xr_value_new_list_of(items, sizeof(items) / sizeof(items[0]));
}

Test(codec, without_memory_there_is_no_message_and_nothing_is_lost)
{
	struct xr_value *v = much();
	enum xr_status status;
	unsigned n = 0;
	bool failed;

	do {
		struct xr_encoded *e = NULL;

		was_short = false;
		until_short = ++n;
		status = value_encode(v, &for_call, &e, &err);
		until_short = 0;
		cr_assert_eq(e == NULL, was_short);
		/* The encoder of a type cannot say why. */
		failed = status == XR_E_NOMEM || status == XR_E_ENCODE;
		cr_assert_eq(failed, was_short);
		xr_encoded_free(e);
	} while (was_short);
	cr_expect(gt(u32, n, 8));
	xr_value_unref(v);
}

Test(codec, without_memory_there_is_no_value_and_nothing_is_lost)
{
	struct xr_value *v = much(), *got;
	struct message m = message_of(v, &for_call);
	enum xr_status status;
	unsigned n = 0;
	bool failed;

	do {
		got = NULL;
		was_short = false;
		until_short = ++n;
		status = read_in_call(m, &got);
		until_short = 0;
		cr_assert_eq(got == NULL, status != XR_OK);
		/* The decoder of a type cannot say why. */
		failed = status == XR_E_NOMEM || status == XR_E_DECODE;
		cr_assert_neq(failed, xr_value_equal(v, got));
		xr_value_unref(got);
		cr_assert_eq(rref_seven.handles, 1, "%u", n);
		cr_assert_eq(points, 1, "%u", n);
	} while (was_short);
	cr_expect(gt(u32, n, 30));
	free(m.data);
	xr_value_unref(v);
}
