/* SPDX-License-Identifier: Apache-2.0 */
/* test_values.c - values in the bodies of messages (worker/rpc/values.h). */
#include <xrun/error.h>
#include <xrun/tensor.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "tests/unit/rref_rig.h"
#include "wire/value/value_hooks.h"
#include "worker/rpc/held.h"
#include "worker/rpc/parcel.h"
#include "worker/rpc/serve_inner.h"
#include "worker/rpc/values.h"

TestSuite(values, .timeout = 60, .init = wire_begin, .fini = wire_end);

static size_t
len_of(const struct values_out *out)
{
	size_t len = 0;

	for (uint32_t i = 0; i < out->count; i++)
		len += out->parts[i].len;
	return len;
}

/* Carriers copy a shorter one anyway. */
Test(values, only_a_body_of_more_than_PARCEL_MIN_bytes_has_a_parcel)
{
	static const char data[PARCEL_MIN];
	bool at_most = false, just_above = false;

	for (size_t n = PARCEL_MIN - 256; n <= PARCEL_MIN; n++) {
		struct xr_value *v = xr_value_new_bytes(data, n);
		struct values_out out = { 0 };
		size_t len;

		cr_assert_not_null(v);
		cr_assert_eq(values_pack(v, wire_peer[1], &out, NULL), XR_OK);
		len = len_of(&out);
		cr_expect_eq(out.parcel != NULL, len > PARCEL_MIN, "%zu", len);
		at_most = at_most || len == PARCEL_MIN;
		just_above = just_above || len == PARCEL_MIN + 1;
		values_out_fini(&out);
		xr_value_unref(v);
	}
	cr_expect(at_most && just_above, "both sides of the limit");
}

/* --- loans ---------------------------------------------------------------------- */

bool __wrap_peer_can_lend(struct peer *p, const struct xr_part *part);
struct held *__wrap_held_take(const struct xr_body *body);

static bool can_lend;
static uint32_t lends_to = 1;
static unsigned asked, held; /* how often each was called */

bool
__wrap_peer_can_lend(struct peer *p, const struct xr_part *part)
{
	cr_expect_eq(p, wire_peer[lends_to]);
	cr_expect_geq(part->len, LEND_MIN);
	asked++;
	return can_lend;
}

struct held *
__wrap_held_take(const struct xr_body *body)
{
	(void)body;
	held++;
	return NULL;
}

static char bytes[LEND_MIN + 1];

/* A list of @count values of @len bytes. */
static struct xr_value *
byte_list(unsigned count, size_t len)
{
	struct xr_value *list = xr_value_new_list();

	for (unsigned i = 0; i < count; i++)
		xr_value_append(list, xr_value_new_bytes(bytes, len));
	return list;
}

/* loans() - how many of them are lent; takes them. */
static uint32_t
loans(struct xr_value *v, struct values_out *out)
{
	*out = (struct values_out){ 0 };
	cr_assert_eq(values_pack(v, wire_peer[1], out, NULL), XR_OK);
	xr_value_unref(v);
	return out->loan_count;
}

Test(values, bytes_are_lent_from_a_length_on_if_the_peer_can_borrow)
{
	struct values_out out;

	cr_expect_eq(loans(byte_list(1, LEND_MIN), &out), 0);
	cr_expect_eq(asked, 1);
	values_out_fini(&out);
	can_lend = true;
	cr_expect_eq(loans(byte_list(1, LEND_MIN - 1), &out), 0);
	cr_expect_eq(asked, 1);
	values_out_fini(&out);
	cr_expect_eq(loans(byte_list(1, LEND_MIN), &out), 1);
	cr_expect_eq(out.loans[0].len, LEND_MIN);
	cr_expect_lt(len_of(&out), PARCEL_MIN);
	/* What is lent is kept as long as it is needed. */
	cr_expect_not_null(out.parcel);
	cr_expect_null(out.encoded);
	cr_expect_null(out.owned);
	values_out_fini(&out);
	cr_expect_eq(loans(byte_list(VALUES_LOANS, LEND_MIN), &out),
		VALUES_LOANS);
	cr_expect_lt(len_of(&out), LEND_MIN);
	values_out_fini(&out);
	cr_expect_eq(loans(byte_list(VALUES_LOANS + 1, LEND_MIN), &out),
		VALUES_LOANS);
	cr_expect_gt(len_of(&out), LEND_MIN);
	values_out_fini(&out);
	cr_expect_eq(asked, 2 + 2 * VALUES_LOANS);
}

static uint64_t numbers[4], lengths[4];
static unsigned borrowed;

static void *
borrow(void *ctx, uint64_t number, uint64_t len)
{
	const struct values_out *out = ctx;

	numbers[borrowed] = number;
	lengths[borrowed++] = len;
	return (void *)out->loans[number].data;
}

static void
nothing(void *owner)
{
	(void)owner;
}

Test(values, loans_have_numbers_in_their_order)
{
	struct xr_value *list = byte_list(2, LEND_MIN), *back = NULL;
	struct values_out out;
	const struct value_owner owner = { .owner = &out,
		.stable = true,
		.ref = nothing,
		.unref = nothing };
	const struct value_codec_ctx ctx = { .ctx = &out, .borrow = borrow };
	struct value_reader reader = { .owner = &owner, .ctx = &ctx };

	xr_value_append(list, xr_value_new_bytes(bytes, LEND_MIN + 1));
	can_lend = true;
	cr_expect_eq(loans(list, &out), 3);
	reader.parts = out.parts;
	reader.count = out.count;
	cr_assert_eq(value_decode(&reader, &back, NULL), XR_OK);
	cr_expect_eq(borrowed, 3);
	for (unsigned i = 0; i < 3; i++) {
		cr_expect_eq(numbers[i], i);
		cr_expect_eq(lengths[i], LEND_MIN + (i == 2));
	}
	xr_value_unref(back);
	values_out_fini(&out);
}

static struct xr_value *
tensor(void)
{
	const struct xr_tensor_desc d = { .size = sizeof(d),
		.dtype = XR_DT_U8,
		.ndim = 1,
		.shape = { LEND_MIN } };
	struct xr_value *v = NULL;

	cr_assert_eq(xr_tensor_new(&d, &v, NULL), XR_OK);
	return v;
}

/* The program may write to it meanwhile. */
Test(values, tensors_are_lent_if_they_are_shared)
{
	struct func sharing = { .f = { .flags = XR_FN_SHARE } };
	struct xr_call call = { .peer = wire_peer[1] };
	struct xr_value *v = tensor();
	struct values_out out;

	can_lend = true;
	cr_expect_eq(loans(xr_value_ref(v), &out), 0);
	values_out_fini(&out);
	out = (struct values_out){ 0 };
	cr_assert_eq(values_pack_shared(v, wire_peer[1], &out, NULL), XR_OK);
	cr_expect_eq(out.loan_count, 1);
	values_out_fini(&out);
	for (int i = 0; i < 3; i++) {
		call.func = i == 1 ? &sharing : NULL;
		call.promises = i == 2 ? XR_FN_SHARE : 0;
		out = (struct values_out){ 0 };
		cr_assert_eq(values_pack_answer(v, &call, &out, NULL), XR_OK);
		cr_expect_eq(out.loan_count, i > 0);
		values_out_fini(&out);
	}
	xr_value_unref(v);
}

/* --- references, and memory ------------------------------------------------------- */

Test(values, references_stand_in_front_of_a_value)
{
	struct xr_rref *h = handle_from(1, word(1, 5, 1, 6, RREF_CONFIRMED));
	struct xr_value *v = xr_value_new_rref(h);
	struct values_out out = { 0 };
	uint32_t head[3];
	uint32_t count;

	cr_assert_not_null(v);
	cr_assert_eq(values_pack(v, wire_peer[2], &out, NULL), XR_OK);
	cr_expect_eq(out.parts, out.owned);
	cr_expect_eq(out.parts[0].len, 128);
	memcpy(head, out.parts[0].data, sizeof(head));
	cr_expect_eq(head[0], MAGIC);
	cr_expect_eq(head[2], 1);
	cr_expect_eq(FIGURE(PENDING_CHILDREN), 1);
	count = out.count;
	refs_out_undo(&out.refs);
	values_out_fini(&out);
	cr_expect_eq(FIGURE(PENDING_CHILDREN), 0);
	cr_expect_null(out.parts);
	xr_value_unref(v);
	v = xr_value_new_i64(7);
	cr_assert_eq(values_pack(v, wire_peer[2], &out, NULL), XR_OK);
	cr_expect_eq(out.count, 1);
	cr_expect_eq(count, 2);
	cr_expect_null(out.owned);
	cr_expect_null(out.parcel);
	values_out_fini(&out);
	xr_value_unref(v);
	xr_rref_unref(h);
}

/* Nothing is left of what was packed; without memory for a parcel all is copied. */
Test(values, a_value_without_memory_is_not_packed)
{
	struct xr_rref *h = handle_from(1, word(1, 5, 1, 6, RREF_CONFIRMED));
	struct xr_value *list = byte_list(2, LEND_MIN);
	bool whole = false;
	unsigned at = 0, failed = 0, copied = 0;
	struct xr_error err;

	xr_value_append(list, xr_value_new_rref(h));
	lends_to = 2;
	while (!whole && at < 30) {
		struct values_out out = { 0 };
		enum xr_status status;

		was_short = false;
		until_short = ++at;
		status = values_pack(list, wire_peer[2], &out, &err);
		until_short = 0;
		whole = !was_short;
		if (status == XR_OK) {
			copied += out.parcel == NULL;
			cr_expect_eq(out.parcel == NULL, out.encoded != NULL);
			cr_expect_eq(FIGURE(PENDING_CHILDREN), 1);
			refs_out_undo(&out.refs);
		} else {
			cr_expect_eq(status, XR_E_NOMEM);
			cr_expect_neq(err.text[0], '\0');
			cr_expect_null(out.parts);
			cr_expect_eq(out.count, 0);
			failed++;
		}
		cr_expect_eq(FIGURE(PENDING_CHILDREN), 0);
		values_out_fini(&out);
	}
	cr_expect(failed > 3 && at < 30, "%u of %u", failed, at);
	cr_expect_eq(copied, 2);
	xr_value_unref(list);
	xr_rref_unref(h);
}

/* --- what comes ----------------------------------------------------------------------- */

static uint8_t body_data[8192];

/* body_of() - @v as a body; takes it. */
static struct xr_body
body_of(struct xr_value *v)
{
	struct xr_body body = { .data = body_data };

	body.len = wire_encode(v, body_data, sizeof(body_data));
	return body;
}

/* A body of exactly @len bytes. */
static struct xr_body
body_with(size_t len)
{
	struct xr_body body;

	for (size_t n = len - 200; n < len; n++) {
		body = body_of(xr_value_new_bytes(bytes, n));
		if (body.len == len)
			return body;
	}
	cr_assert(false, "no body of %zu bytes", len);
	return body;
}

/* There may be long parts in it, which stay where they are. */
Test(values, a_body_of_2_KiB_or_with_loans_is_kept)
{
	struct xr_call call = { .peer = wire_peer[1] };
	struct xr_body body = body_with(2047);
	struct xr_value *v = NULL;
	struct xr_error err;

	cr_expect_eq(values_unpack(&body, wire_peer[1], &v, &err), XR_OK);
	cr_expect_eq(xr_value_kind(v), XR_BYTES);
	xr_value_unref(v);
	call.whole = &body;
	cr_expect_eq(values_unpack_call(&call, &body, &err), XR_E_PROTO);
	cr_expect_str_eq(err.text, "that is no call");
	cr_expect_eq(held, 0);
	body.loan_count = 1;
	cr_expect_eq(values_unpack(&body, wire_peer[1], &v, &err), XR_E_NOMEM);
	cr_expect_str_eq(err.text, "no memory for a message");
	cr_expect_eq(held, 1);
	cr_expect_eq(values_unpack_call(&call, &body, &err), XR_E_NOMEM);
	cr_expect_eq(held, 2);
	body = body_with(2048);
	cr_expect_eq(values_unpack(&body, wire_peer[1], &v, &err), XR_E_NOMEM);
	cr_expect_eq(held, 3);
	cr_expect_eq(values_unpack_call(&call, &body, &err), XR_E_NOMEM);
	cr_expect_eq(held, 4);
}

static struct xr_value *
three(struct xr_value *args, struct xr_value *named, struct xr_value *bound)
{
	struct xr_value *items[3] = { args, named, bound };

	return xr_value_new_list_of(items, 3);
}

static struct xr_value *
ints(int64_t a, int64_t b)
{
	struct xr_value *items[2] = { xr_value_new_i64(a),
		xr_value_new_i64(b) };

	return xr_value_new_list_of(items, 2);
}

static enum xr_status
unpack(struct xr_call *call, struct xr_value *v, struct xr_error *err)
{
	struct xr_body body = body_of(v);

	*call = (struct xr_call){ .peer = wire_peer[1], .whole = &body };
	return values_unpack_call(call, &body, err);
}

static void
expect_ints(const struct xr_value *list, size_t count, const int64_t *want)
{
	int64_t n;

	cr_expect_eq(xr_value_count(list), count);
	for (size_t i = 0; i < count; i++) {
		n = 0;
		xr_value_get_i64(xr_value_at(list, i), &n);
		cr_expect_eq(n, want[i]);
	}
}

Test(values, a_call_is_a_list_of_arguments_named_ones_and_what_is_bound)
{
	struct xr_error err;
	struct xr_call call;

	cr_expect_eq(unpack(&call,
			     three(ints(1, 2), xr_value_new_nil(),
				     xr_value_new_nil()),
			     &err),
		XR_OK);
	expect_ints(call.args, 2, (const int64_t[]){ 1, 2 });
	cr_expect_null(call.named);
	xr_value_unref(call.args);
	/* What is bound comes first. */
	cr_expect_eq(unpack(&call,
			     three(ints(1, 2), xr_value_new_dict(),
				     xr_value_new_i64(0)),
			     &err),
		XR_OK);
	expect_ints(call.args, 3, (const int64_t[]){ 0, 1, 2 });
	cr_expect_eq(xr_value_kind(call.named), XR_DICT);
	xr_value_unref(call.args);
	xr_value_unref(call.named);
}

Test(values, what_is_of_another_form_is_no_call)
{
	struct xr_value *bad[] = {
		xr_value_new_nil(),
		xr_value_new_list(),
		ints(1, 2),
		three(xr_value_new_nil(), xr_value_new_nil(),
			xr_value_new_nil()),
		three(xr_value_new_dict(), xr_value_new_nil(),
			xr_value_new_nil()),
		three(xr_value_new_list(), xr_value_new_list(),
			xr_value_new_nil()),
		three(xr_value_new_list(), xr_value_new_i64(1),
			xr_value_new_nil()),
		xr_value_new_dict(),
	};
	struct xr_value *four = three(xr_value_new_list(), xr_value_new_nil(),
		xr_value_new_nil());
	struct xr_error err;
	struct xr_call call;

	xr_value_append(four, xr_value_new_nil());
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_expect_eq(unpack(&call, bad[i], &err), XR_E_PROTO, "row %zu",
			i);
		cr_expect_str_eq(err.text, "that is no call");
		cr_expect_null(call.args);
	}
	cr_expect_eq(unpack(&call, four, &err), XR_E_PROTO);
}

Test(values, a_call_without_memory_has_no_arguments)
{
	struct xr_body body = body_of(three(ints(1, 2), xr_value_new_nil(),
		xr_value_new_i64(0)));
	enum xr_status status = XR_E_NOMEM;
	unsigned at = 0;

	while (status != XR_OK && at < 30) {
		struct xr_call call = { .peer = wire_peer[1], .whole = &body };
		struct xr_error err = { 0 };

		until_short = ++at;
		status = values_unpack_call(&call, &body, &err);
		until_short = 0;
		cr_expect_eq(call.args != NULL, status == XR_OK);
		if (status != XR_OK) {
			cr_expect_eq(status, XR_E_NOMEM);
			cr_expect_neq(err.text[0], '\0');
		}
		xr_value_unref(call.args);
	}
	cr_expect(at > 3 && at < 30, "%u", at);
}
