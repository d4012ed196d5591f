/* SPDX-License-Identifier: Apache-2.0 */
/* test_value.c - values: what they are, who has them, and when they are equal. */
#include <inttypes.h>
#include <math.h>

#include "tests/unit/short_memory.h"
#include "tests/unit/value_rig.h"
#include "wire/value/seen.h"

TestSuite(value, .init = begin, .fini = end);

/* --- what it is ------------------------------------------------------------ */

Test(value, each_kind_has_a_name)
{
	cr_expect(eq(str, (char *)xr_kind_name(XR_NIL), "nil"));
	cr_expect(eq(str, (char *)xr_kind_name(XR_LIST), "list"));
	cr_expect(eq(str, (char *)xr_kind_name(XR_FUNC), "func"));
	cr_expect(eq(str, (char *)xr_kind_name((enum xr_kind)16), "?"));
	cr_expect(eq(str, (char *)xr_kind_name((enum xr_kind) - 1), "?"));
}

/* What each getter says of a value: a bit a kind. */
static unsigned
answers(const struct xr_value *v)
{
	double f, g;
	uint64_t u;
	int64_t i;
	bool b;
	unsigned bits = 0;

	bits |= (unsigned)(xr_value_get_bool(v, &b) == XR_OK) << XR_BOOL;
	bits |= (unsigned)(xr_value_get_c128(v, &f, &g) == XR_OK) << XR_C128;
	bits |= (unsigned)(xr_value_worker(v, NULL) != NULL) << XR_WORKER;
	bits |= (unsigned)(xr_value_object(v, NULL) != NULL) << XR_OPAQUE;
	bits |= (unsigned)(xr_value_type(v) != NULL) << XR_OPAQUE;
	bits |= (unsigned)(xr_value_func(v, NULL) != NULL) << XR_FUNC;
	bits |= (unsigned)(xr_value_rref(v) != NULL) << XR_RREF;
	bits |= (unsigned)(xr_tensor_data(v, NULL) != NULL) << XR_TENSOR;
	bits |= (unsigned)(xr_value_get_i64(v, &i) == XR_OK) << 16;
	bits |= (unsigned)(xr_value_get_u64(v, &u) == XR_OK) << 17;
	bits |= (unsigned)(xr_value_get_f64(v, &f) == XR_OK) << 18;
	bits |= (unsigned)(xr_value_data(v, NULL) != NULL) << 19;
	bits |= (unsigned)(xr_value_at(v, 0) != NULL) << 20;
	bits |= (unsigned)(xr_value_key(v, 0, NULL) != NULL) << 21;
	return bits;
}

Test(value, no_kind_answers_for_another)
{
	static const unsigned want[KINDS] = {
		[XR_BOOL] = 1U << XR_BOOL,
		[XR_I64] = 5U << 16, /* -2: an I64, and an F64 */
		[XR_U64] = 1U << 17,
		[XR_F64] = 1U << 18,
		[XR_C128] = 1U << XR_C128,
		[XR_BYTES] = 1U << 19,
		[XR_TEXT] = 1U << 19,
		[XR_LIST] = 1U << 20,
		[XR_DICT] = 3U << 20,
		[XR_TENSOR] = 1U << XR_TENSOR,
		[XR_RREF] = 1U << XR_RREF,
		[XR_WORKER] = 1U << XR_WORKER,
		[XR_OPAQUE] = 1U << XR_OPAQUE,
		[XR_FUNC] = 1U << XR_FUNC,
	};

	for (int k = 0; k < KINDS; k++) {
		struct xr_value *v = of_kind((enum xr_kind)k);
		struct xr_failure failure = { .size = sizeof(failure) };

		cr_assert_not_null(v, "%d", k);
		cr_expect_eq(xr_value_kind(v), (enum xr_kind)k);
		cr_expect_eq(answers(v), want[k], "%s", xr_kind_name(k));
		cr_expect_eq(xr_value_failure(v, &failure) == XR_OK,
			k == XR_ERROR, "%s", xr_kind_name(k));
		xr_value_unref(v);
	}
}

Test(value, null_is_no_kind)
{
	struct xr_failure failure = { .size = sizeof(failure) };
	size_t len = 9;

	cr_expect(eq(u32, answers(NULL), 0));
	cr_expect_eq(xr_value_failure(NULL, &failure), XR_E_SCHEMA);
	cr_expect_null(xr_value_data(NULL, &len));
	cr_expect(eq(sz, len, 0));
	cr_expect(eq(sz, xr_value_count(NULL), 0));
	cr_expect_null(xr_value_find(NULL, "k", 1));
	cr_expect_null(xr_value_ref(NULL));
	xr_value_unref(NULL);
}

/* --- numbers --------------------------------------------------------------- */

Test(value, integers_are_each_other_where_they_fit)
{
	static const struct {
		bool is_signed;
		uint64_t bits;
		bool i, u, f;
	} rows[] = {
		{ true, 0, true, true, true },
		{ true, (uint64_t)-1, true, false, true },
		{ true, INT64_MAX, true, true, false },
		{ true, (uint64_t)INT64_MIN, true, false, true },
		{ true, UINT64_C(1) << 53, true, true, true },
		{ true, (UINT64_C(1) << 53) + 1, true, true, false },
		{ false, 7, true, true, true },
		{ false, INT64_MAX, true, true, false },
		{ false, UINT64_C(1) << 63, false, true, true },
		{ false, UINT64_MAX, false, true, false },
		{ false, (UINT64_C(1) << 53) + 1, true, true, false },
	};

	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		struct xr_value *v = rows[r].is_signed ?
			xr_value_new_i64((int64_t)rows[r].bits) :
			xr_value_new_u64(rows[r].bits);
		int64_t i = 5;
		uint64_t u = 5;
		double f = 5;

		cr_expect_eq(xr_value_get_i64(v, &i) == XR_OK, rows[r].i, "%zu",
			r);
		cr_expect_eq(i, rows[r].i ? (int64_t)rows[r].bits : 5, "%zu",
			r);
		cr_expect_eq(xr_value_get_u64(v, &u) == XR_OK, rows[r].u, "%zu",
			r);
		cr_expect_eq(u, rows[r].u ? rows[r].bits : 5, "%zu", r);
		cr_expect_eq(xr_value_get_f64(v, &f) == XR_OK, rows[r].f, "%zu",
			r);
		if (rows[r].f && rows[r].is_signed)
			cr_expect_eq((int64_t)f, (int64_t)rows[r].bits);
		if (!rows[r].f)
			cr_expect_eq(f, 5, "%zu", r);
		xr_value_unref(v);
	}
}

/* Those that fit in a pointer, and those that do not. */
static void
is_whole(uint64_t bits)
{
	struct xr_value *i = xr_value_new_i64((int64_t)bits),
			*u = xr_value_new_u64(bits), *f, *again;
	uint64_t got_u = 0, got_bits = 0;
	int64_t got_i = 0;
	double d = 0;

	cr_expect_eq(xr_value_get_i64(i, &got_i), XR_OK);
	cr_expect_eq(got_i, (int64_t)bits, "%" PRIx64, bits);
	cr_expect_eq(xr_value_get_u64(u, &got_u), XR_OK);
	cr_expect_eq(got_u, bits, "%" PRIx64, bits);
	memcpy(&d, &bits, sizeof(d));
	f = xr_value_new_f64(d);
	cr_expect_eq(xr_value_get_f64(f, &d), XR_OK);
	memcpy(&got_bits, &d, sizeof(d));
	cr_expect_eq(got_bits, bits, "%" PRIx64, bits);
	cr_expect_not(xr_value_equal(i, u));
	cr_expect_not(xr_value_equal(u, f));
	again = xr_value_new_u64(bits ^ UINT64_C(1) << 60);
	cr_expect_not(xr_value_equal(u, again), "%" PRIx64, bits);
	xr_value_unref(again);
	again = xr_value_ref(xr_value_new_i64((int64_t)bits));
	cr_expect(xr_value_equal(i, again));
	xr_value_unref(again);
	xr_value_unref(again);
	xr_value_unref(i);
	xr_value_unref(u);
	xr_value_unref(f);
}

Test(value, a_number_is_what_it_was_made_of_however_long)
{
	for (unsigned shift = 0; shift < 64; shift++)
		for (uint64_t near = 0; near < 3; near++) {
			is_whole((UINT64_C(1) << shift) - 1 + near);
			is_whole(-((UINT64_C(1) << shift) - 1 + near));
		}
}

Test(value, only_a_long_number_needs_memory)
{
	struct xr_value *v;

	until_short = 1;
	v = xr_value_new_i64(-(INT64_C(1) << 59));
	cr_expect_not_null(v);
	cr_expect_not_null(xr_value_new_f64(0.1f));
	cr_expect_not_null(xr_value_new_bool(true));
	cr_expect_not_null(xr_value_new_nil());
	cr_expect_null(xr_value_new_i64(INT64_C(1) << 59));
	until_short = 1;
	cr_expect_null(xr_value_new_f64(0.1));
	until_short = 0;
	cr_expect_eq(xr_value_kind(v), XR_I64);
}

Test(value, an_f64_is_no_integer)
{
	struct xr_value *v = xr_value_new_f64(3);
	double f = 0;
	int64_t i;

	cr_expect_eq(xr_value_get_i64(v, &i), XR_E_SCHEMA);
	cr_expect_eq(xr_value_get_f64(v, &f), XR_OK);
	cr_expect_eq(f, 3);
	xr_value_unref(v);
}

Test(value, both_parts_of_a_complex_number_are_kept)
{
	struct xr_value *v = xr_value_new_c128(-0.25, 8);
	double re = 0, im = 0;

	cr_expect_eq(xr_value_get_c128(v, &re, &im), XR_OK);
	cr_expect_eq(re, -0.25);
	cr_expect_eq(im, 8);
	xr_value_unref(v);
}

/* --- bytes and text -------------------------------------------------------- */

Test(value, bytes_and_text_are_copied_and_have_a_nul_behind_them)
{
	char data[3000];
	static const size_t lens[] = { 0, 1, 1023, 1024, sizeof(data) };

	memset(data, 'x', sizeof(data));
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct xr_value *pair[] = {
			xr_value_new_bytes(data, lens[i]),
			xr_value_new_text(data, lens[i]),
		};

		for (int k = 0; k < 2; k++) {
			size_t len = 0;
			const char *got = xr_value_data(pair[k], &len);

			cr_assert(eq(sz, len, lens[i]));
			cr_expect_neq(got, data);
			cr_expect_eq(memcmp(got, data, len), 0);
			cr_expect_eq(got[len], '\0');
			xr_value_unref(pair[k]);
		}
	}
}

Test(value, text_is_utf8_without_a_nul)
{
	static const char *const good[] = { "", "plain and longer than a word",
		"gr\xc3\xbc\xc3\x9f", "12345678\xe2\x82\xac",
		"\xf0\x9f\x98\x80" };
	static const struct {
		const char *at;
		size_t len;
	} bad[] = {
		{ "a\0b", 3 },
		{ "\0", 1 },
		{ "12345678\0", 9 },
		{ "1234567\0x", 9 },
		{ "\xff", 1 },
		{ "\xc3", 1 },
		{ "abcdefg\xc3", 8 },
		{ "\xed\xa0\x80", 3 },
		{ "\xc0\x80", 2 },
		{ "\xf4\x90\x80\x80", 4 },
		{ NULL, 1 },
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct xr_value *v = text(good[i]);

		cr_assert_not_null(v, "%s", good[i]);
		cr_expect_str_eq(xr_value_data(v, NULL), good[i]);
		xr_value_unref(v);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_null(xr_value_new_text(bad[i].at, bad[i].len), "%zu",
			i);
	cr_expect_null(xr_value_new_bytes(NULL, 1));
}

Test(value, wrapped_bytes_stay_where_they_are_and_are_freed_once)
{
	static const char data[] = "somebody's";
	struct xr_value *v = xr_value_wrap_bytes(data, 8, count_free, &one);
	struct xr_value *again = xr_value_ref(v);
	size_t len = 0;

	cr_expect_eq(xr_value_data(v, &len), data);
	cr_expect(eq(sz, len, 8));
	xr_value_unref(v);
	cr_expect(eq(int, freed, 0));
	xr_value_unref(again);
	cr_expect(eq(int, freed, 1));
	v = xr_value_wrap_bytes(data, 1, NULL, NULL);
	cr_assert_not_null(v);
	xr_value_unref(v);
	cr_expect_null(xr_value_wrap_bytes(NULL, 1, count_free, &one));
	cr_expect(eq(int, freed, 1));
}

Test(value, too_long_is_refused_before_anything_is_made)
{
	size_t len = (size_t)XR_VALUE_BYTES_MAX + 1;

	most_asked = 0;
	cr_expect_null(xr_value_new_bytes("x", len));
	cr_expect_null(xr_value_new_text("x", len));
	cr_expect_null(xr_value_wrap_bytes("x", len, count_free, &one));
	cr_expect(eq(sz, most_asked, 0));
	cr_expect(eq(int, freed, 0));
}

/* --- equality -------------------------------------------------------------- */

Test(value, each_kind_equals_itself_and_no_other)
{
	struct xr_value *a = of_every_kind(), *b = of_every_kind();

	for (int i = 0; i < KINDS; i++)
		for (int k = 0; k < KINDS; k++)
			cr_expect_eq(xr_value_equal(xr_value_at(a, (size_t)i),
					     xr_value_at(b, (size_t)k)),
				i == k, "%s, %s", xr_kind_name(i),
				xr_kind_name(k));
	cr_expect(xr_value_equal(a, b));
	cr_expect_not(xr_value_equal(a, NULL));
	cr_expect_not(xr_value_equal(NULL, b));
	xr_value_unref(a);
	xr_value_unref(b);
}

/* Takes both. */
static bool
equal(struct xr_value *a, struct xr_value *b)
{
	bool same = xr_value_equal(a, b) && xr_value_equal(b, a);

	cr_assert_not_null(a);
	cr_assert_not_null(b);
	xr_value_unref(a);
	xr_value_unref(b);
	return same;
}

static struct xr_value *
pair(const char *k, int64_t x, const char *l, int64_t y)
{
	struct xr_value *d = xr_value_new_dict();

	xr_value_put(d, k, strlen(k), i64(x));
	xr_value_put(d, l, strlen(l), i64(y));
	return d;
}

static struct xr_value *
failed(enum xr_status status, const char *type, const char *worker)
{
	return xr_value_new_error(&(struct xr_failure){
		.size = sizeof(struct xr_failure),
		.status = status,
		.type = type,
		.worker = worker,
	});
}

static struct xr_value *
point(int32_t x)
{
	return xr_value_new_opaque("geo.Point", point_new(x, 0));
}

Test(value, what_differs_is_not_equal)
{
	struct xr_rref eight = { .id = 8 }, seven = { .id = 7 };

	cr_expect_not(equal(i64(1), i64(2)));
	cr_expect_not(equal(i64(1), xr_value_new_u64(1)));
	cr_expect_not(equal(xr_value_new_bool(true), xr_value_new_bool(false)));
	cr_expect(equal(xr_value_new_f64((double)NAN),
		xr_value_new_f64((double)NAN)));
	cr_expect_not(equal(xr_value_new_f64(0.0), xr_value_new_f64(-0.0)));
	cr_expect_not(equal(xr_value_new_c128(1, 2), xr_value_new_c128(1, 3)));
	cr_expect_not(equal(xr_value_new_c128(1, 2), xr_value_new_c128(2, 2)));
	cr_expect_not(equal(text("a"), text("b")));
	cr_expect_not(equal(text("a"), text("ab")));
	cr_expect_not(equal(text("a"), xr_value_new_bytes("a", 1)));
	cr_expect(equal(pair("k", 1, "l", 2), pair("l", 2, "k", 1)),
		"whatever came first");
	cr_expect_not(equal(pair("k", 1, "l", 2), pair("k", 1, "l", 3)));
	cr_expect_not(equal(pair("k", 1, "l", 2), pair("k", 1, "m", 2)));
	cr_expect_not(equal(pair("k", 1, "l", 2), pair("k", 1, "k", 2)));
	cr_expect_not(equal(some_list(), nested(1, i64(1))));
	cr_expect_not(equal(nested(1, i64(2)), nested(1, i64(1))));
	cr_expect_not(equal(xr_value_new_worker("a", 1),
		xr_value_new_worker("a", 2)));
	cr_expect_not(equal(xr_value_new_worker("a", 1),
		xr_value_new_worker("b", 1)));
	cr_expect_not(equal(failed(XR_E_RANGE, NULL, NULL),
		failed(XR_E_INVAL, NULL, NULL)));
	cr_expect_not(equal(failed(XR_E_RANGE, "a", NULL),
		failed(XR_E_RANGE, NULL, NULL)));
	cr_expect_not(equal(failed(XR_E_RANGE, "a", "w"),
		failed(XR_E_RANGE, "a", "v")));
	cr_expect_not(equal(xr_fn_bind("f", NULL), xr_fn_bind("g", NULL)));
	cr_expect_not(equal(xr_fn_bind("f", NULL), xr_fn_bind("f", i64(1))));
	cr_expect_not(equal(xr_fn_bind("f", i64(2)), xr_fn_bind("f", i64(1))));
	cr_expect(equal(point(1), point(1)));
	cr_expect_not(equal(point(1), point(2)));
	cr_expect(equal(xr_value_new_rref(&rref_seven),
		xr_value_new_rref(&seven)));
	cr_expect_not(equal(xr_value_new_rref(&rref_seven),
		xr_value_new_rref(&eight)));
}

/* --- memory ---------------------------------------------------------------- */

Test(value, without_memory_there_is_no_value_and_nothing_is_lost)
{
	struct xr_value *v;
	unsigned n = 0;

	do {
		was_short = false;
		until_short = ++n;
		v = of_every_kind();
		until_short = 0;
		cr_assert_eq(v == NULL, was_short, "%u", n);
		xr_value_unref(v);
		cr_assert_eq(points, 0, "%u", n);
		cr_assert_eq(rref_seven.handles, 0, "%u", n);
	} while (was_short);
	cr_expect(gt(u32, n, 20));
}

Test(value, a_long_value_without_memory_is_none)
{
	static char data[5000];
	struct xr_value *v;
	unsigned n = 0;
	size_t len = 0;

	memset(data, 'x', sizeof(data));
	do {
		was_short = false;
		until_short = ++n;
		v = xr_value_new_bytes(data, sizeof(data));
		until_short = 0;
		cr_assert_eq(v == NULL, was_short, "%u", n);
	} while (was_short);
	cr_expect(gt(u32, n, 2));
	cr_expect_eq(memcmp(xr_value_data(v, &len), data, sizeof(data)), 0);
	cr_expect_eq(len, sizeof(data));
	cr_expect_eq(((const char *)xr_value_data(v, &len))[len], '\0');
	xr_value_unref(v);
}

Test(value, a_failure_is_what_it_was_made_of)
{
	struct xr_failure first = { .size = sizeof(first),
		.status = XR_E_RANGE,
		.type = "ValueError",
		.text = "too much",
		.func = "f",
		.worker = "w0",
		.worker_id = 9,
		.backtrace = "a\nb\n" };
	struct xr_failure got = { .size = sizeof(got) };
	struct xr_value *v = xr_value_new_error(&first), *outer;

	cr_assert_not_null(v);
	cr_assert_eq(xr_value_failure(v, &got), XR_OK);
	cr_expect_eq(got.status, XR_E_RANGE);
	cr_expect_str_eq(got.type, "ValueError");
	cr_expect_str_eq(got.text, "too much");
	cr_expect_str_eq(got.func, "f");
	cr_expect_str_eq(got.worker, "w0");
	cr_expect_eq(got.worker_id, 9);
	cr_expect_str_eq(got.backtrace, "a\nb\n");
	cr_expect_null(got.cause);
	first = (struct xr_failure){ .size = sizeof(first),
		.text = "",
		.cause = v };
	outer = xr_value_new_error(&first);
	xr_value_unref(v);
	cr_assert_eq(xr_value_failure(outer, &got), XR_OK);
	cr_expect_eq(got.status, XR_OK);
	cr_expect_null(got.type);
	cr_expect_str_eq(got.text, "");
	cr_expect_null(got.func);
	cr_expect_null(got.worker);
	cr_expect_eq(got.worker_id, 0);
	cr_expect_null(got.backtrace);
	cr_expect_eq(got.cause, v);
	got.size--;
	cr_expect_eq(xr_value_failure(outer, &got), XR_E_INVAL);
	got.size += 2; /* of a newer version */
	cr_expect_eq(xr_value_failure(outer, &got), XR_OK);
	xr_value_unref(outer);
}

/* --- what was met before (wire/value/seen.h) -------------------------------- */

Test(value, each_address_has_the_number_that_it_was_given)
{
	struct seen seen = { 0 };
	uint32_t number = 77;
	size_t slots = 0;

	cr_expect_not(seen_find(&seen, &seen, &number));
	for (uintptr_t i = 1; i <= 1000; i++) {
		const void *at = (const void *)(i * 16);

		cr_expect_not(seen_find(&seen, at, &number));
		if (slots == 0)
			slots = 16;
		else if (2 * (i - 1) >= slots)
			slots *= 2;
		cr_assert(seen_add(&seen, at, (uint32_t)i + 5));
		cr_assert_eq(seen.count, i);
		cr_assert_eq(seen.slots, slots);
	}
	cr_expect_eq(number, 77);
	/* Without memory what is there stays. */
	while (2 * seen.count < seen.slots)
		cr_assert(seen_add(&seen, (const void *)((seen.count + 1) * 16),
			0));
	until_short = 1;
	cr_expect_not(seen_add(&seen, &seen, 1));
	until_short = 0;
	for (uintptr_t i = 1; i <= 1000; i++) {
		cr_assert(seen_find(&seen, (const void *)(i * 16), &number));
		cr_assert_eq(number, i + 5);
	}
	cr_expect_not(seen_find(&seen, &seen, &number));
	seen_fini(&seen);
	cr_expect_null(seen.rows);
	cr_expect_eq(seen.slots, 0);
}
