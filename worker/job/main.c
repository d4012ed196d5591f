/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - xr_main(): a rank as a function; see xrun/spawn.h. */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/spawn.h>

#include "base/fd.h"
#include "base/status.h"
#include "worker/job/trace.h"

/* One write of at most PIPE_BUF bytes stays whole among the writers of a pipe.
 */
#define WHOLE 4096

/* The latest failure of this thread. */
static __thread struct {
	enum xr_status status;
	uint32_t skip; /* innermost frames that belong to the failing itself */
	struct trace trace;
} latest;

/* The hook of fail(), which is the caller; its frames end where it returns. */
static void
keep_place(enum xr_status status)
{
	const void *in_fail = __builtin_return_address(0);
	uint32_t i;

	trace_take(&latest.trace);
	for (i = 0; i < latest.trace.count; i++)
		if (latest.trace.at[i] == in_fail)
			break;
	latest.skip = i < latest.trace.count ? i + 1 : 0;
	latest.status = status;
}

static bool
is_error_set(const char *at)
{
	Dl_info info;

	return dladdr(at - 1, &info) != 0 && info.dli_sname != NULL &&
		info.dli_saddr == (const void *)xr_error_set;
}

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

static const char *
device(void)
{
	static const char *const names[] = { "XRUN_DEVICE",
		"XRT_MULTI_PROCESSING_DEVICE" };
	const char *name, *value = first_set(names, 2, &name);

	return value == NULL ? "cpu" : value;
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

/* The line that says who failed of what; a text that leaves out what the
 * system said gets it. */
static void
tell_cause(const uint32_t *ordinal, const struct xr_error *err)
{
	const char *why = err->sys != 0 ? strerror(err->sys) : NULL;
	char line[WHOLE], who[24] = "";
	int n;

	if (ordinal != NULL)
		snprintf(who, sizeof(who), "rank %u: ", *ordinal);
	if (why != NULL && strstr(err->text, why) == NULL)
		n = snprintf(line, sizeof(line), "%.200s: %s%s: %.200s\n",
			device(), who, err->text, why);
	else
		n = snprintf(line, sizeof(line), "%.200s: %s%s\n", device(),
			who, err->text);
	fd_write_all(STDERR_FILENO, line, (size_t)n);
}

/* The place of the failure if it was kept, else @here, but for its top. */
static void
tell_place(enum xr_status status, struct trace *here)
{
	char text[WHOLE];
	uint32_t skip = 1;
	size_t len;

	if (latest.status == status && latest.trace.count > latest.skip) {
		here = &latest.trace;
		skip = latest.skip;
		if (is_error_set(here->at[skip]))
			skip++;
	}
	len = trace_text(here, skip, text, sizeof(text));
	fd_write_all(STDERR_FILENO, text, len);
}

__attribute__((noinline)) static int
tell(enum xr_status status, const uint32_t *ordinal, struct xr_error *err)
{
	struct trace here;

	trace_take(&here);
	err->text[sizeof(err->text) - 1] = '\0';
	if (err->text[0] == '\0')
		snprintf(err->text, sizeof(err->text), "%s",
			xr_status_text(status));
	fflush(stdout);
	fflush(stderr);
	tell_cause(ordinal, err);
	tell_place(status, &here);
	return XR_EXIT_RANK_FAILED;
}

XR_EXPORT int
xr_main(xr_main_fn *fn, void *ctx)
{
	struct xr_error err = { 0 };
	uint32_t ordinal = 0;
	enum xr_status status;

	status_on_fail = keep_place;
	status = find_ordinal(&ordinal, &err);
	if (status != XR_OK)
		return tell(status, NULL, &err);
	if (fn == NULL)
		status = fail(&err, XR_E_INVAL, "xr_main: no function given");
	else
		status = fn(ordinal, ctx, &err);
	if (status != XR_OK)
		return tell(status, &ordinal, &err);
	return XR_EXIT_OK;
}
