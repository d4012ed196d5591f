/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_rig.h - a store, somebody who asks it, and what he hears.
 */
#ifndef TESTS_UNIT_STORE_RIG_H
#define TESTS_UNIT_STORE_RIG_H

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "store/store.h"

static struct store *store;
static struct store_owner owner;
static struct buf said;
static struct xr_error error;
static void (*in_answer)(const struct store_answer *answer);

/* "7=value " of a get, "7 " of a wait, "7!key " of what was closed. */
static inline void
hear(const struct store_answer *answer, void *ctx)
{
	const struct store_value *v = answer->value;

	cr_assert_eq(ctx, &said);
	buf_fmt(&said, "%" PRIu64, answer->id);
	if (answer->status == XR_E_CLOSED)
		buf_fmt(&said, "!%.*s", QUOTED(answer->key));
	else if (v != NULL)
		buf_fmt(&said, "=%.*s", (int)v->len, v->data);
	buf_put_char(&said, ' ');
	if (in_answer != NULL)
		in_answer(answer);
}

static const struct store_limits wide = { 1 << 30, STORE_VALUE_MAX, 1 << 20,
	1 << 20, 64 };

static inline void
open_store(const struct store_limits *limits)
{
	struct store_setup setup = {
		.limits = *limits,
		.seed = { { 0x0706050403020100, 0x0f0e0d0c0b0a0908 } },
		.answer = hear,
		.ctx = &said,
	};

	store_free(store);
	store = store_new(&setup);
	cr_assert_not_null(store);
	store_owner_init(&owner, NULL);
}

static inline void
begin(void)
{
	open_store(&wide);
}

static inline void
end(void)
{
	store_free(store);
	buf_fini(&said);
}

static inline const char *
heard(void)
{
	static char text[4096];

	snprintf(text, sizeof(text), "%s", buf_text(&said));
	buf_clear(&said);
	return text;
}

#define HEARD(text) cr_assert(eq(str, (char *)heard(), (char *)(text)))

static inline enum xr_status
set_bytes(struct span key, struct span bytes)
{
	struct store_value *v = store_value_new(bytes.at, bytes.len);
	enum xr_status status = XR_E_NOMEM;

	error = (struct xr_error){ 0 };
	if (v != NULL)
		status = store_set(store, key, v, &error);
	store_value_unref(v);
	return status;
}

static inline enum xr_status
set(const char *key, const char *text)
{
	return set_bytes(span_of(key), span_of(text));
}

/* The value of @key, "(none)" if there is none. */
static inline const char *
value_of(const char *key)
{
	static char text[128];
	struct store_value *v = NULL;

	if (store_get(store, span_of(key), NULL, &v, NULL) != XR_OK)
		return "(none)";
	snprintf(text, sizeof(text), "%.*s", (int)v->len, v->data);
	store_value_unref(v);
	return text;
}

#define VALUE(key, text) \
	cr_expect(eq(str, (char *)value_of(key), (char *)(text)))

/* A get that has to wait; its waiter. */
static inline struct store_waiter *
blocked(struct store_owner *who, uint64_t id, const char *key)
{
	struct store_ask ask = { .owner = who, .id = id };
	struct store_value *v = NULL;

	cr_assert(store_get(store, span_of(key), &ask, &v, &error) == XR_OK);
	cr_assert_null(v);
	cr_assert_not_null(ask.waiter);
	return ask.waiter;
}

/* A wait for keys that are named with commas; NULL: all were there. */
static inline struct store_waiter *
awaiting(struct store_owner *who, uint64_t id, const char *names)
{
	struct store_ask ask = { .owner = who, .id = id };
	struct span rest = span_of(names), keys[8];
	size_t n = 0;

	while (rest.at != NULL)
		keys[n++] = span_next(&rest, ',');
	cr_assert(store_wait(store, keys, n, &ask, &error) == XR_OK);
	return ask.waiter;
}

static inline enum xr_status
add(const char *key, int64_t by, int64_t *sum)
{
	error = (struct xr_error){ 0 };
	return store_add(store, span_of(key), by, sum, &error);
}

/* What compare_set says is there afterwards. */
static inline const char *
swapped(const char *key, const char *expected, const char *desired)
{
	static char text[64];
	struct store_value *now = NULL;
	struct store_swap swap = {
		.key = span_of(key),
		.expected = span_of(expected),
		.desired = store_value_new(desired, strlen(desired)),
	};

	cr_assert(store_compare_set(store, &swap, &now, NULL) == XR_OK);
	store_value_unref(swap.desired);
	if (now == NULL)
		return "(none)";
	snprintf(text, sizeof(text), "%.*s", (int)now->len, now->data);
	store_value_unref(now);
	return text;
}

#define SWAPPED(key, expected, desired, now) \
	cr_expect(eq(str, (char *)swapped(key, expected, desired), \
		(char *)(now)))

#endif /* TESTS_UNIT_STORE_RIG_H */
