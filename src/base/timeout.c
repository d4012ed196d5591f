/* SPDX-License-Identifier: Apache-2.0 */
/* timeout.c - checks and resolves the special values of timeouts. */
#include "base/timeout.h"

#include "base/status.h"

enum xr_status
timeout_check(int64_t timeout, struct xr_error *err)
{
	if (timeout >= 0 || timeout == XR_TIMEOUT_DEFAULT)
		return XR_OK;
	return fail(err, XR_E_INVAL,
		"timeout: %lld ns is negative and not XR_TIMEOUT_DEFAULT",
		(long long)timeout);
}

enum xr_status
timeout_argument(int64_t *timeout, int64_t dflt, struct xr_error *err)
{
	enum xr_status status = timeout_check(*timeout, err);

	if (status == XR_OK && *timeout == XR_TIMEOUT_DEFAULT)
		*timeout = dflt;
	return status;
}

enum xr_status
timeout_field(int64_t *timeout, int64_t dflt, struct xr_error *err)
{
	if (*timeout == 0)
		*timeout = XR_TIMEOUT_DEFAULT;
	return timeout_argument(timeout, dflt, err);
}
