/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.c - events and threads under the thread sanitizer: some set and clear, at
 * random, what others wait for; each who waits is let go in the end, by a last one.
 *
 * XRUN_TEST_CYCLES is how many times each of them sets or clears.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <xrun/event.h>
#include <xrun/proc.h>

#define CYCLES 100000
#define EVENTS 6
#define SETS   3
#define WAITS  4

static struct xr_event *events[EVENTS], *over;
static long cycles = CYCLES;
static _Atomic long met;

static enum xr_status
set_some(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *err)
{
	unsigned seed = ordinal;

	(void)arg;
	(void)ctx;
	(void)err;
	for (long i = 0; i < cycles; i++) {
		struct xr_event *e = events[rand_r(&seed) % EVENTS];

		if (rand_r(&seed) % 2)
			xr_event_set(e);
		else
			xr_event_clear(e);
	}
	return XR_OK;
}

static enum xr_status
wait_for_some(uint32_t ordinal, struct xr_value *arg, void *ctx,
	struct xr_error *err)
{
	struct xr_event *all = xr_event_new_all(events, 1 + ordinal % EVENTS);
	struct xr_event *parts[] = { all, over };
	enum xr_status status = XR_OK;

	(void)arg;
	(void)ctx;
	while (status == XR_OK && !xr_event_is_set(over)) {
		status = xr_wait_any(parts, 2, XR_SECONDS(60), NULL, err);
		atomic_fetch_add(&met, 1);
	}
	xr_event_unref(all);
	return status;
}

static struct xr_thread *
start(xr_proc_fn *fn, uint32_t ordinal)
{
	struct xr_thread_opts o = {
		.size = sizeof(o),
		.fn = fn,
		.ordinal = ordinal,
	};
	struct xr_thread *t = NULL;

	if (xr_thread_start(&o, &t, NULL) != XR_OK)
		abort();
	return t;
}

static bool
run(void)
{
	struct xr_thread *threads[SETS + WAITS];
	struct xr_error err = { 0 };
	bool ok = true;

	for (int i = 0; i < SETS + WAITS; i++)
		threads[i] =
			start(i < SETS ? set_some : wait_for_some, (uint32_t)i);
	for (int i = 0; i < SETS; i++)
		xr_thread_wait(threads[i], XR_TIMEOUT_NEVER, NULL);
	xr_event_set(over);
	for (int i = 0; i < SETS + WAITS; i++) {
		if (xr_thread_watch(threads[i], XR_SECONDS(60), &err) !=
			XR_OK) {
			printf("# %s\n", err.text);
			ok = false;
		}
		xr_thread_free(threads[i]);
	}
	return ok;
}

int
main(void)
{
	const char *text = getenv("XRUN_TEST_CYCLES");
	bool ok;

	if (text != NULL)
		cycles = strtol(text, NULL, 10);
	printf("1..1\n");
	for (int i = 0; i < EVENTS; i++)
		events[i] = xr_event_new();
	over = xr_event_new();
	ok = run();
	for (int i = 0; i < EVENTS; i++)
		xr_event_unref(events[i]);
	xr_event_unref(over);
	printf("%sok 1 - events are set and waited for, and %ld were met\n",
		ok ? "" : "not ", atomic_load(&met));
	return !ok;
}
