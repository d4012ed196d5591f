/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeout_rig.h - tables of functions and fields with a timeout, and their checks.
 *
 * Each row is one function or one field. A row runs its function in one of three
 * states: its condition never holds, it holds already, or another thread makes it hold
 * soon. A new function or field with a timeout of the public headers needs a row.
 */
#ifndef TESTS_UNIT_TIMEOUT_RIG_H
#define TESTS_UNIT_TIMEOUT_RIG_H

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include <xrun/error.h>
#include <xrun/event.h>
#include <xrun/time.h>

enum state { ABSENT, READY, SOON };

static struct xr_error err;

/* --- the thread that makes the condition hold ------------------------------------------- */

struct helper {
	pthread_t thread;
	void (*fn)(void *object);
	void *object;
	bool is_running;
};

static inline void *
helper_main(void *arg)
{
	struct helper *h = arg;

	usleep(20000);
	h->fn(h->object);
	return NULL;
}

/* Calls @fn now if @state is READY, and by another thread if it is SOON. */
static inline void
helper_begin(struct helper *h, enum state state, void (*fn)(void *),
	void *object)
{
	*h = (struct helper){ .fn = fn, .object = object };
	if (state == READY)
		fn(object);
	if (state != SOON)
		return;
	h->is_running = true;
	cr_assert_eq(pthread_create(&h->thread, NULL, helper_main, h), 0);
}

/* Afterwards the condition holds in every state. */
static inline void
helper_end(struct helper *h, enum state state)
{
	if (h->is_running)
		pthread_join(h->thread, NULL);
	if (state == ABSENT)
		h->fn(h->object);
}

static inline void
set_event(void *event)
{
	xr_event_set(event);
}

/* --- the tables ------------------------------------------------------------------------- */

struct row {
	const char *name;
	enum xr_status (*fn)(enum state state, int64_t timeout);
	/* With 0, while the condition does not hold; of fields, by their default. XR_OK if
	 * it is not tested. */
	enum xr_status late;
	bool never_at_once; /* its condition takes a moment to hold */
};

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* In a child, which has one thread at first, as the method fork requires, and an agent of
 * its own. */
static inline enum xr_status
run(const struct row *r, enum state state, int64_t timeout)
{
	struct result {
		enum xr_status status;
		struct xr_error err;
	} result = { XR_OK, { 0 } };
	int how, out[2];
	pid_t pid;

	cr_assert_eq(pipe(out), 0);
	pid = fork();
	if (pid == 0) {
		alarm(30);
		result.status = r->fn(state, timeout);
		result.err = err;
		_exit(write(out[1], &result, sizeof(result)) < 0);
	}
	close(out[1]);
	cr_expect_eq(read(out[0], &result, sizeof(result)), sizeof(result),
		"%s in state %d with %lld: no result", r->name, state,
		(long long)timeout);
	close(out[0]);
	cr_assert_eq(waitpid(pid, &how, 0), pid);
	err = result.err;
	return result.status;
}

static inline void
expect(const struct row *r, enum state state, int64_t timeout,
	enum xr_status wanted)
{
	enum xr_status status = run(r, state, timeout);

	cr_expect_eq(status, wanted, "%s in state %d with %lld: %s, not %s: %s",
		r->name, state, (long long)timeout, xr_status_name(status),
		xr_status_name(wanted), err.text);
}

static inline void
expect_common(const struct row *r)
{
	const int64_t wrong[] = { -2, INT64_MIN };

	for (size_t i = 0; i < ROWS(wrong); i++) {
		expect(r, ABSENT, wrong[i], XR_E_INVAL);
		expect(r, READY, wrong[i], XR_E_INVAL);
	}
	expect(r, READY, XR_TIMEOUT_DEFAULT, XR_OK);
	expect(r, READY, XR_TIMEOUT_NEVER, XR_OK);
	expect(r, SOON, XR_TIMEOUT_DEFAULT, XR_OK);
	expect(r, SOON, XR_TIMEOUT_NEVER, XR_OK);
}

static inline void
expect_arguments(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		expect_common(&rows[i]);
		if (rows[i].late != XR_OK)
			expect(&rows[i], ABSENT, 0, rows[i].late);
		if (!rows[i].never_at_once)
			expect(&rows[i], READY, 0, XR_OK);
	}
}

static inline void
expect_fields(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		expect_common(&rows[i]);
		expect(&rows[i], READY, 0, XR_OK);
		expect(&rows[i], SOON, 0, XR_OK);
		if (rows[i].late != XR_OK)
			expect(&rows[i], ABSENT, 0, rows[i].late);
	}
}

#endif /* TESTS_UNIT_TIMEOUT_RIG_H */
