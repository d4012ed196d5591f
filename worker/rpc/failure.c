/* SPDX-License-Identifier: Apache-2.0 */
/* failure.c - see future.h: what failed, as a value and as a status. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "worker/rpc/future.h"

struct xr_value *
failure_new(enum xr_status status, const char *fmt, ...)
{
	struct xr_failure f = { .size = sizeof(f), .status = status };
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	f.text = text;
	return xr_value_new_error(&f);
}

enum xr_status
failure_status(const struct xr_value *error, struct xr_error *err)
{
	struct xr_failure f = { .size = sizeof(f) };
	const char *text;
	size_t len;

	if (error == NULL || xr_value_failure(error, &f) != XR_OK)
		return fail(err, XR_E_NOMEM, "out of memory");
	text = f.text != NULL ? f.text + strspn(f.text, "\n") : "";
	len = strcspn(text, "\n");
	/* A peer may have sent one without words. */
	if (len == 0)
		return fail(err, f.status, "%s", xr_status_text(f.status));
	return fail(err, f.status, "%.*s", (int)len, text);
}
