/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - xr_main(): a rank as a function; see xrun/spawn.h. */
#include <stdlib.h>

#include <xrun/proc.h>
#include <xrun/spawn.h>

#include "base/status.h"
#include "worker/job/last.h"

static const char *
first_set(const char *const *names, size_t count, const char **name)
{
	const char *value;
	size_t i;

	for (i = 0; i < count; i++) {
		value = getenv(names[i]);
		if (value != NULL && value[0] != '\0') {
			*name = names[i];
			return value;
		}
	}
	return NULL;
}

static enum xr_status
find_ordinal(uint32_t *ordinal, struct xr_error *err)
{
	static const char *const names[] = { "XRUN_RANK", "RANK",
		"XRT_SHARD_ORDINAL" };
	const char *name, *text = first_set(names, 3, &name);
	uint64_t n = 0;
	const char *p;

	for (p = text; p != NULL && *p >= '0' && *p <= '9'; p++) {
		n = n * 10 + (uint64_t)(*p - '0');
		if (n > UINT32_MAX)
			break;
	}
	if (p != NULL && *p != '\0')
		return fail(err, XR_E_INVAL, "%s: '%.100s' is not a rank", name,
			text);
	*ordinal = (uint32_t)n;
	return XR_OK;
}

XR_EXPORT int
xr_main(xr_main_fn *fn, void *ctx)
{
	struct xr_error err = { 0 };
	uint32_t ordinal = 0;
	enum xr_status status;

	last_keep(true);
	status = xr_init(&err);
	if (status == XR_OK)
		status = find_ordinal(&ordinal, &err);
	if (status != XR_OK) {
		last_words(status, NULL, &err);
		return XR_EXIT_RANK_FAILED;
	}
	if (fn == NULL)
		status = fail(&err, XR_E_INVAL, "xr_main: no function given");
	else
		status = fn(ordinal, ctx, &err);
	if (status == XR_OK)
		return XR_EXIT_OK;
	last_words(status, &ordinal, &err);
	return XR_EXIT_RANK_FAILED;
}
