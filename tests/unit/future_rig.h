/* SPDX-License-Identifier: Apache-2.0 */
/* future_rig.h - values of futures that are integers. */
#ifndef TESTS_UNIT_FUTURE_RIG_H
#define TESTS_UNIT_FUTURE_RIG_H

#include <criterion/criterion.h>

#include <xrun/future.h>
#include <xrun/value.h>

static inline struct xr_value *
number(int64_t n)
{
	struct xr_value *v = xr_value_new_i64(n);

	cr_assert_not_null(v);
	return v;
}

static inline int64_t
number_of(struct xr_future *f)
{
	struct xr_value *v = NULL;
	int64_t n = -1;

	cr_assert_eq(xr_future_wait(f, XR_SECONDS(10), &v, NULL), XR_OK);
	cr_assert_eq(xr_value_get_i64(v, &n), XR_OK);
	xr_value_unref(v);
	return n;
}

#endif /* TESTS_UNIT_FUTURE_RIG_H */
