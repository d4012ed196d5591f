/* SPDX-License-Identifier: Apache-2.0 */
/* last.c - see last.h. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/status.h"
#include "worker/job/last.h"
#include "worker/job/trace.h"

/* The latest failure of this thread. */
static __thread struct {
	enum xr_status status;
	uint32_t skip; /* innermost frames that belong to the failing itself */
	struct trace trace;
} latest;
static __thread bool is_kept;

/* The hook of fail(), which is the caller; its frames end where it returns. */
static void
keep_place(enum xr_status status)
{
	const void *in_fail = __builtin_return_address(0);
	uint32_t i;

	if (!is_kept)
		return;
	trace_take(&latest.trace);
	for (i = 0; i < latest.trace.count; i++)
		if (latest.trace.at[i] == in_fail)
			break;
	latest.skip = i < latest.trace.count ? i + 1 : 0;
	latest.status = status;
}

bool
last_keep(bool keep)
{
	bool before = is_kept;

	if (keep)
		__atomic_store_n(&status_on_fail, keep_place, __ATOMIC_RELAXED);
	is_kept = keep;
	return before;
}

static bool
is_error_set(const char *at)
{
	Dl_info info;

	return dladdr(at - 1, &info) != 0 && info.dli_sname != NULL &&
		info.dli_saddr == (const void *)xr_error_set;
}

static const char *
device(void)
{
	static const char *const names[] = { "XRUN_DEVICE",
		"XRT_MULTI_PROCESSING_DEVICE" };
	const char *value;

	for (int i = 0; i < 2; i++) {
		value = getenv(names[i]);
		if (value != NULL && value[0] != '\0')
			return value;
	}
	return "cpu";
}

/* The line that says who failed of what; a text that leaves out what the
 * system said gets it. */
static void
tell_cause(const uint32_t *ordinal, const struct xr_error *err)
{
	const char *why = err->sys != 0 ? strerror(err->sys) : NULL;
	char line[LAST_MAX], who[24] = "";
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
static size_t
place_text(enum xr_status status, const struct trace *here, char *out,
	size_t cap)
{
	uint32_t skip = 1;

	if (latest.status == status && latest.trace.count > latest.skip) {
		here = &latest.trace;
		skip = latest.skip;
		if (is_error_set(here->at[skip]))
			skip++;
	}
	return trace_text(here, skip, out, cap);
}

__attribute__((noinline)) size_t
last_place(enum xr_status status, char *out, size_t cap)
{
	struct trace here;

	trace_take(&here);
	return place_text(status, &here, out, cap);
}

__attribute__((noinline)) void
last_words(enum xr_status status, const uint32_t *ordinal, struct xr_error *err)
{
	char text[LAST_MAX];
	struct trace here;
	size_t len;

	trace_take(&here);
	err->text[sizeof(err->text) - 1] = '\0';
	if (err->text[0] == '\0')
		snprintf(err->text, sizeof(err->text), "%s",
			xr_status_text(status));
	fflush(stdout);
	fflush(stderr);
	tell_cause(ordinal, err);
	len = place_text(status, &here, text, sizeof(text));
	fd_write_all(STDERR_FILENO, text, len);
}
