/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prof_trace.c - a profile as Chrome and Perfetto read it.
 *
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU:
 * complete events, "X", times in microseconds. A worker is a process there. Of tasks of
 * pools there is a counter, "C", too, of what is before ": " in their keys; of what is in a
 * queue there is but that.
 */
#include <string.h>

#include <xrun/prof.h>

#include "base/json.h"
#include "base/status.h"

#define WORKERS_MAX 64 /* that get a name */

static int64_t
number_in(const struct xr_value *event, const char *key)
{
	int64_t n = 0;

	xr_value_get_i64(xr_value_find(event, key, strlen(key)), &n);
	return n;
}

static bool
is_event(const struct xr_value *v)
{
	size_t len;

	return xr_value_kind(v) == XR_DICT &&
		xr_value_data(xr_value_find(v, "key", 3), &len) != NULL &&
		xr_value_kind(xr_value_find(v, "start", 5)) == XR_I64 &&
		xr_value_kind(xr_value_find(v, "end", 3)) == XR_I64;
}

static void
put_event(struct json *j, const struct xr_value *event)
{
	const int64_t start = number_in(event, "start");
	bool remote = false;
	size_t len = 0;
	const char *key = xr_value_data(xr_value_find(event, "key", 3), &len);

	xr_value_get_bool(xr_value_find(event, "remote", 6), &remote);
	json_open_object(j, NULL);
	json_bytes(j, "name", (struct span){ key, len });
	json_text(j, "cat", remote ? "remote" : "local");
	json_text(j, "ph", "X");
	json_real(j, "ts", (double)start / 1000);
	json_real(j, "dur", (double)(number_in(event, "end") - start) / 1000);
	json_int(j, "pid", number_in(event, "worker"));
	json_int(j, "tid", number_in(event, "thread"));
	json_close_object(j);
}

static bool
has(const struct xr_value *event, const char *key)
{
	return xr_value_kind(xr_value_find(event, key, strlen(key))) == XR_I64;
}

/* How many tasks of the pool were open when this one was over; how many items there were. */
static void
put_counter(struct json *j, const struct xr_value *event, const char *what)
{
	size_t len = 0;
	const char *key = xr_value_data(xr_value_find(event, "key", 3), &len);
	const char *stop = memmem(key, len, ": ", 2);

	if (stop != NULL)
		len = (size_t)(stop - key);
	json_open_object(j, NULL);
	json_bytes(j, "name", (struct span){ key, len });
	json_text(j, "ph", "C");
	json_real(j, "ts", (double)number_in(event, "end") / 1000);
	json_int(j, "pid", number_in(event, "worker"));
	json_open_object(j, "args");
	json_int(j, what, number_in(event, what));
	json_close_object(j);
	json_close_object(j);
}

static void
put_name(struct json *j, int64_t worker)
{
	struct buf name = { 0 };

	buf_fmt(&name, "worker %lld", (long long)worker);
	json_open_object(j, NULL);
	json_text(j, "name", "process_name");
	json_text(j, "ph", "M");
	json_int(j, "pid", worker);
	json_open_object(j, "args");
	json_text(j, "name", buf_text(&name));
	json_close_object(j);
	json_close_object(j);
	buf_fini(&name);
}

static void
put_names(struct json *j, const struct xr_value *events)
{
	int64_t seen[WORKERS_MAX];
	size_t count = 0, k;

	for (size_t i = 0; i < xr_value_count(events); i++) {
		int64_t w = number_in(xr_value_at(events, i), "worker");

		for (k = 0; k < count && seen[k] != w; k++)
			continue;
		if (k < count || count == WORKERS_MAX)
			continue;
		seen[count++] = w;
		put_name(j, w);
	}
}

XR_EXPORT enum xr_status
xr_prof_trace(const struct xr_value *events, struct xr_value **json,
	struct xr_error *err)
{
	struct buf out = { .max = 1 << 30 };
	struct json j;

	if (events == NULL || xr_value_kind(events) != XR_LIST)
		return fail(err, XR_E_INVAL, "no events of a profile");
	for (size_t i = 0; i < xr_value_count(events); i++)
		if (!is_event(xr_value_at(events, i)))
			return fail(err, XR_E_INVAL,
				"item %zu is no event of a profile", i);
	json_init(&j, &out);
	json_open_object(&j, NULL);
	json_open_array(&j, "traceEvents");
	put_names(&j, events);
	for (size_t i = 0; i < xr_value_count(events); i++) {
		const struct xr_value *event = xr_value_at(events, i);

		if (has(event, "items")) {
			put_counter(&j, event, "items");
			continue;
		}
		put_event(&j, event);
		if (has(event, "open"))
			put_counter(&j, event, "open");
	}
	json_close_array(&j);
	json_text(&j, "displayTimeUnit", "ns");
	json_close_object(&j);
	*json = out.bad == XR_OK ? xr_value_new_text(out.data, out.len) : NULL;
	buf_fini(&out);
	return *json != NULL ? XR_OK : fail(err, XR_E_NOMEM, "out of memory");
}
