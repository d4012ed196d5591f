/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeout.h - timeouts of public functions and option structs.
 *
 * Two rules hold for all of them (xrun/time.h): an argument of 0 does not wait, and a
 * field of 0 selects the field's default. XR_TIMEOUT_DEFAULT selects the default in
 * both, and other negative values are errors. Public functions resolve a timeout once,
 * so that inner functions receive 0 or more, or XR_TIMEOUT_NEVER.
 */
#ifndef BASE_TIMEOUT_H
#define BASE_TIMEOUT_H

#include <xrun/error.h>
#include <xrun/time.h>

/* timeout_argument() - replaces XR_TIMEOUT_DEFAULT in @timeout by @dflt, in ns. Returns
 * XR_OK, or XR_E_INVAL if @timeout is another negative value. */
enum xr_status timeout_argument(int64_t *timeout, int64_t dflt,
	struct xr_error *err);

/* timeout_field() - the same, and replaces 0 by @dflt, too. */
enum xr_status timeout_field(int64_t *timeout, int64_t dflt,
	struct xr_error *err);

/* timeout_check() - Returns XR_OK, or XR_E_INVAL if @timeout is negative and not
 * XR_TIMEOUT_DEFAULT. */
enum xr_status timeout_check(int64_t timeout, struct xr_error *err);

#endif /* BASE_TIMEOUT_H */
