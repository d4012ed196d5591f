/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - what is asked of a store; who waits is in wait.c. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "store/store_inner.h"

#define NUMBER_MAX 21 /* "-9223372036854775808" */

struct store *
store_new(const struct store_setup *setup)
{
	struct store *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	if (!table_init(&s->table, &setup->seed)) {
		free(s);
		return NULL;
	}
	s->setup = *setup;
	TAILQ_INIT(&s->waiting);
	TAILQ_INIT(&s->ready);
	return s;
}

void
store_free(struct store *s)
{
	int saved = errno;

	if (s == NULL)
		return;
	store_drop_all(s);
	if (s->calls > 0) {
		s->gone = true;
		return;
	}
	table_fini(&s->table);
	free(s);
	errno = saved;
}

/* --- keys ------------------------------------------------------------------ */

enum xr_status
store_key(struct span key, struct xr_error *err)
{
	if (key.len <= STORE_KEY_MAX)
		return XR_OK;
	return fail(err, XR_E_RANGE,
		"store: the key '%.*s...' has %zu bytes, at most %d",
		QUOTED(key), key.len, STORE_KEY_MAX);
}

static enum xr_status
no_memory(struct span key, struct xr_error *err)
{
	return fail(err, XR_E_NOMEM, "store: key '%.*s': out of memory",
		QUOTED(key));
}

/* Is there room for @more bytes in place of @less? */
static enum xr_status
has_room(const struct store *s, struct span key, size_t less, size_t more,
	struct xr_error *err)
{
	size_t max = s->setup.limits.bytes;

	if (more <= max && s->bytes - less <= max - more)
		return XR_OK;
	return fail(err, XR_E_NOMEM,
		"store: no room for the key '%.*s': %zu of %zu bytes are taken, %zu more are needed\tdelete keys that nobody needs",
		QUOTED(key), s->bytes, max, more - less);
}

enum xr_status
store_entry_new(struct store *s, struct span key, size_t more,
	struct store_entry **entry, struct xr_error *err)
{
	enum xr_status status = has_room(s, key, 0, key.len + more, err);
	struct store_entry *e;

	if (status != XR_OK)
		return status;
	e = table_add(&s->table, key);
	if (e == NULL)
		return no_memory(key, err);
	s->bytes += key.len;
	*entry = e;
	return XR_OK;
}

void
store_entry_leave(struct store *s, struct store_entry *e)
{
	if (e->value != NULL || !TAILQ_EMPTY(&e->waits))
		return;
	s->bytes -= e->len;
	table_drop(&s->table, e);
}

/* --- one value in another's place ------------------------------------------ */

/* An entry for @key in @e, which may have one already, if it and @value are
 * within all limits. */
static enum xr_status
prepare(struct store *s, struct span key, const struct store_value *value,
	struct store_entry **e, struct xr_error *err)
{
	const struct store_limits *max = &s->setup.limits;
	bool fresh = *e == NULL || (*e)->value == NULL;
	enum xr_status status = store_key(key, err);

	if (status != XR_OK)
		return status;
	if (value->len > max->value)
		return fail(err, XR_E_RANGE,
			"store: key '%.*s': a value of %zu bytes, at most %zu",
			QUOTED(key), value->len, max->value);
	if (fresh && s->keys >= max->keys)
		return fail(err, XR_E_NOMEM,
			"store: no room for the key '%.*s': there are %zu keys, the most there can be\tdelete keys that nobody needs",
			QUOTED(key), s->keys);
	if (*e == NULL)
		return store_entry_new(s, key, value->len, e, err);
	return has_room(s, key, fresh ? 0 : (*e)->value->len, value->len, err);
}

/* @e is what the key has now, or NULL. The caller answers. */
static enum xr_status
put(struct store *s, struct span key, struct store_entry *e,
	struct store_value *value, struct xr_error *err)
{
	enum xr_status status = prepare(s, key, value, &e, err);
	struct store_value *old;

	if (status != XR_OK)
		return status;
	old = e->value;
	e->value = store_value_ref(value);
	s->bytes += value->len;
	if (old != NULL) {
		s->bytes -= old->len;
		store_value_unref(old);
	} else {
		s->keys++;
		store_wake(s, e);
	}
	return XR_OK;
}

static void
take(struct store *s, struct store_entry *e)
{
	s->keys--;
	s->bytes -= e->value->len;
	store_value_unref(e->value);
	e->value = NULL;
	store_entry_leave(s, e);
}

/* --- operations ------------------------------------------------------------ */

enum xr_status
store_set(struct store *s, struct span key, struct store_value *value,
	struct xr_error *err)
{
	enum xr_status status;

	store_begin(s);
	status = put(s, key, table_find(&s->table, key), value, err);
	store_end(s);
	return status;
}

/* The whole of it, with a sign or none. */
static bool
read_number(const struct store_value *v, int64_t *number)
{
	bool minus = v->data != NULL && v->len > 0 && v->data[0] == '-';
	int64_t sum = 0;

	if (v->data == NULL || v->len == minus)
		return false;
	for (size_t i = minus; i < v->len; i++) {
		int digit = v->data[i] - '0';

		if (digit < 0 || digit > 9 ||
			__builtin_mul_overflow(sum, 10, &sum) ||
			__builtin_add_overflow(sum, minus ? -digit : digit,
				&sum))
			return false;
	}
	*number = sum;
	return true;
}

/* The value that @e has, and @by. */
static enum xr_status
add_up(const struct store_entry *e, int64_t by, int64_t *sum,
	struct xr_error *err)
{
	int64_t now = 0;

	if (e != NULL && e->value != NULL && !read_number(e->value, &now)) {
		struct span text = { e->value->data, e->value->len };

		if (text.at == NULL)
			text = span_of("(large)");

		return fail(err, XR_E_INVAL,
			"store: the key '%.*s' is '%.*s', not a number of 64 bits",
			QUOTED(entry_key(e)), QUOTED(text));
	}
	if (__builtin_add_overflow(now, by, sum))
		return fail(err, XR_E_RANGE,
			"store: the key '%.*s' is %" PRId64 ", and %" PRId64
			" more is beyond 64 bits",
			QUOTED(entry_key(e)), now, by);
	return XR_OK;
}

enum xr_status
store_add(struct store *s, struct span key, int64_t by, int64_t *sum,
	struct xr_error *err)
{
	struct store_entry *e = table_find(&s->table, key);
	struct store_value *value;
	char text[NUMBER_MAX];
	int64_t number = 0;
	enum xr_status status = add_up(e, by, &number, err);

	if (status != XR_OK)
		return status;
	snprintf(text, sizeof(text), "%" PRId64, number);
	value = store_value_new(text, strlen(text));
	if (value == NULL)
		return no_memory(key, err);
	store_begin(s);
	status = put(s, key, e, value, err);
	if (status == XR_OK)
		*sum = number;
	store_value_unref(value);
	store_end(s);
	return status;
}

static bool
is_expected(const struct store_entry *e, struct span expected)
{
	if (e == NULL || e->value == NULL || e->value->len == 0)
		return expected.len == 0;
	return e->value->len == expected.len && e->value->data != NULL &&
		memcmp(e->value->data, expected.at, expected.len) == 0;
}

enum xr_status
store_compare_set(struct store *s, const struct store_swap *swap,
	struct store_value **now, struct xr_error *err)
{
	struct store_entry *e = table_find(&s->table, swap->key);
	enum xr_status status = store_key(swap->key, err);
	struct store_value *value = e == NULL ? NULL : e->value;

	if (status != XR_OK)
		return status;
	store_begin(s);
	if (is_expected(e, swap->expected)) {
		value = swap->desired;
		status = put(s, swap->key, e, value, err);
	}
	if (status == XR_OK)
		*now = value == NULL ? NULL : store_value_ref(value);
	store_end(s);
	return status;
}

bool
store_delete(struct store *s, struct span key)
{
	struct store_entry *e = table_find(&s->table, key);

	if (e == NULL || e->value == NULL)
		return false;
	take(s, e);
	return true;
}

static bool
is_under(const struct store_entry *e, struct span prefix)
{
	return e->value != NULL && e->len >= prefix.len &&
		(prefix.len == 0 || memcmp(e->key, prefix.at, prefix.len) == 0);
}

size_t
store_clear(struct store *s, struct span prefix)
{
	struct store_entry *e, *next;
	size_t count = 0;

	for (e = table_next(&s->table, NULL); e != NULL; e = next) {
		next = table_next(&s->table, e);
		if (!is_under(e, prefix))
			continue;
		take(s, e);
		count++;
	}
	return count;
}

size_t
store_count(const struct store *s, struct span prefix)
{
	const struct store_entry *e = NULL;
	size_t count = 0;

	if (prefix.len == 0)
		return s->keys;
	while ((e = table_next(&s->table, e)) != NULL)
		count += is_under(e, prefix);
	return count;
}

bool
store_each(const struct store *s, store_each_fn *fn, void *ctx)
{
	const struct store_entry *e = NULL;

	while ((e = table_next(&s->table, e)) != NULL)
		if (e->value != NULL && !fn(entry_key(e), e->value, ctx))
			return false;
	return true;
}

size_t
store_bytes(const struct store *s)
{
	return s->bytes;
}
