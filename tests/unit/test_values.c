/* SPDX-License-Identifier: Apache-2.0 */
/* test_values.c - values in the bodies of messages (worker/rpc/values.h). */
#include "tests/unit/wire_rig.h"
#include "worker/rpc/parcel.h"
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
