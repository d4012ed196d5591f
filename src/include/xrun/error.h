/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xrun/error.h - what to tell a person about a failure.
 *
 * A struct xr_error lives on the caller's stack and never allocates, so that
 * reporting an error cannot fail. Functions that take one accept NULL. It is
 * written only on failure, and only by the function that first knew the cause.
 */
#ifndef XRUN_ERROR_H
#define XRUN_ERROR_H

#include <stdint.h>

#include "xrun/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xr_error {
	enum xr_status status;
	int32_t sys; /* errno at the point of failure, or 0 */
	char text
		[232]; /* one line, always terminated; what to try, if anything,
			 * stands at its end, behind a tab */
};

/*
 * xr_error_set() - fill @err and give @status back, so that failing is one
 * statement: return xr_error_set(err, XR_E_INVAL, "shape has no rows");
 *
 * @err:    may be NULL
 * @status: what to return; XR_E_SYS also keeps errno
 * @text:   borrowed, cut at 231 bytes
 *
 * Returns  @status
 * Thread   any.  Blocks: no.  Keeps errno.
 */
enum xr_status xr_error_set(struct xr_error *err, enum xr_status status,
	const char *text);

#ifdef __cplusplus
}
#endif

#endif /* XRUN_ERROR_H */
