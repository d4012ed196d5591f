/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - see xrun/store.h: what is asked is checked, gets its prefix, and
 * goes to the driver of the address. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/store.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/timeout.h"
#include "base/utf8.h"
#include "worker/store/driver.h"
#include "worker/store/reach.h"

#define PATIENCE (60 * NS_PER_S)
#define SLACK    NS_PER_S /* for the store to say itself that time is over */

struct xr_store {
	struct driver *driver;
	struct store_address address;
	pid_t owner; /* the process that opened it */
	int64_t timeout;
	char *prefix; /* with its '/' */
	size_t prefix_len;
	pthread_mutex_t lock;
	pthread_cond_t idle;
	unsigned users; /* in calls of it */
	bool closed;
};

const char *
store_host(const struct xr_store *store)
{
	return store->address.place == STORE_AT_TCP && !store->address.local ?
		store->address.host :
		NULL;
}

bool
store_is_open(const struct xr_store *store)
{
	return store->address.place == STORE_AT_TCP && store->address.open;
}

bool
store_is_jobs(const struct xr_store *store)
{
	return store->address.place == STORE_AT_CONTROL &&
		store->address.path[0] == '\0' && store->prefix_len == 1;
}

/* --- opening --------------------------------------------------------------- */

static const char *
variable(const char *name, void *ctx)
{
	(void)ctx;
	return getenv(name);
}

static bool
is_text(const char *text)
{
	size_t left = strlen(text), n;

	for (; left > 0; text += n, left -= n) {
		n = utf8_step(text, left);
		if (n == 0)
			return false;
	}
	return true;
}

static enum xr_status
check_options(const struct xr_store_options *o, struct xr_error *err)
{
	if (o->size < sizeof(*o))
		return fail(err, XR_E_INVAL,
			"store: options without their size");
	if (timeout_check(o->timeout, err) != XR_OK)
		return XR_E_INVAL;
	if (o->prefix == NULL)
		return XR_OK;
	if (strlen(o->prefix) > STORE_KEY_MAX / 2)
		return fail(err, XR_E_RANGE,
			"store: a prefix of %zu bytes, at most %d",
			strlen(o->prefix), STORE_KEY_MAX / 2);
	if (strchr(o->prefix, '/') != NULL || !is_text(o->prefix))
		return fail(err, XR_E_INVAL,
			"store: the prefix '%.60s' has a / or is no UTF-8",
			o->prefix);
	return XR_OK;
}

static enum xr_status
find(struct xr_store *s, const char *address, const struct xr_store_options *o,
	struct xr_error *err)
{
	struct store_address_ask ask = {
		.text = address,
		.rank = o->rank,
		.size = o->world_size,
		.dynamic = o->dynamic,
		.variable = variable,
	};
	int64_t until = XR_TIMEOUT_NEVER;
	enum xr_status status = store_address_parse(&s->address, &ask, err);

	if (status != XR_OK)
		return status;
	if (__builtin_add_overflow(clock_now(), s->timeout, &until))
		until = XR_TIMEOUT_NEVER;
	switch (s->address.place) {
	case STORE_AT_CONTROL:
		return control_open(&s->address, until, &s->driver, err);
	case STORE_AT_TCP:
		return s->address.local ?
			loopback_file_open(&s->address, until, &s->driver,
				err) :
			tcp_open(&s->address, until, &s->driver, err);
	case STORE_AT_FILE:
		return file_open(&s->address, NULL, until, &s->driver, err);
	}
	return XR_E_INVAL;
}

static bool
set_prefix(struct xr_store *s, const char *prefix)
{
	size_t len = prefix == NULL ? 0 : strlen(prefix);

	s->prefix = malloc(len + 2);
	if (s->prefix == NULL)
		return false;
	if (len > 0)
		memcpy(s->prefix, prefix, len);
	s->prefix[len] = '/';
	s->prefix[len + 1] = '\0';
	s->prefix_len = len + 1;
	return true;
}

XR_EXPORT enum xr_status
xr_store_open(const char *address, const struct xr_store_options *options,
	struct xr_store **store, struct xr_error *err)
{
	static const struct xr_store_options none = XR_STORE_OPTIONS;
	const struct xr_store_options *o = options == NULL ? &none : options;
	struct xr_error own = { 0 };
	enum xr_status status = check_options(o, err);
	struct xr_store *s;

	if (status != XR_OK)
		return status;
	s = calloc(1, sizeof(*s));
	if (s == NULL || !set_prefix(s, o->prefix)) {
		free(s);
		return fail(err, XR_E_NOMEM, "store: out of memory");
	}
	s->owner = getpid();
	s->timeout = o->timeout;
	timeout_field(&s->timeout, PATIENCE, NULL);
	status = find(s, address, o, err == NULL ? &own : err);
	if (status != XR_OK) {
		free(s->prefix);
		free(s);
		return status;
	}
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->idle, NULL);
	*store = s;
	return XR_OK;
}

XR_EXPORT int64_t
xr_store_rank(const struct xr_store *store)
{
	return store->address.rank;
}

XR_EXPORT int64_t
xr_store_size(const struct xr_store *store)
{
	return store->address.size;
}

XR_EXPORT void
xr_store_close(struct xr_store *store)
{
	int saved = errno;

	if (store == NULL || store->owner != getpid())
		return;
	pthread_mutex_lock(&store->lock);
	store->closed = true;
	store->driver->ops->close(store->driver);
	pthread_mutex_unlock(&store->lock);
	errno = saved;
}

/* In a forked child the locks are whoever's held them, and what a driver has is
 * the parent's: all of it is left alone. */
XR_EXPORT void
xr_store_free(struct xr_store *store)
{
	int saved = errno;

	if (store == NULL || store->owner != getpid())
		return;
	xr_store_close(store);
	pthread_mutex_lock(&store->lock);
	while (store->users > 0)
		pthread_cond_wait(&store->idle, &store->lock);
	pthread_mutex_unlock(&store->lock);
	store->driver->ops->free(store->driver);
	pthread_mutex_destroy(&store->lock);
	pthread_cond_destroy(&store->idle);
	free(store->prefix);
	free(store);
	errno = saved;
}

/* --- asking ---------------------------------------------------------------- */

static enum xr_status
enter(struct xr_store *s, struct xr_error *err)
{
	bool closed;

	if (s->owner != getpid())
		return fail(err, XR_E_STATE,
			"store: this process was forked: open a store of its own");
	pthread_mutex_lock(&s->lock);
	closed = s->closed;
	s->users += !closed;
	pthread_mutex_unlock(&s->lock);
	return closed ?
		fail(err, XR_E_CLOSED, "store: this handle was closed") :
		XR_OK;
}

static void
leave_call(struct xr_store *s)
{
	pthread_mutex_lock(&s->lock);
	if (--s->users == 0)
		pthread_cond_broadcast(&s->idle);
	pthread_mutex_unlock(&s->lock);
}

/* XR_OK or what went wrong, with words; errno survives. */
static enum xr_status
ask(struct xr_store *s, struct store_request *q, struct store_reply *r,
	struct xr_error *err)
{
	bool waits = q->op == STORE_GET || q->op == STORE_WAIT;
	int64_t time = waits ? q->patience : s->timeout;
	int64_t until;
	int saved = errno;
	enum xr_status status = enter(s, err);

	*r = (struct store_reply){ .status = status };
	if (status != XR_OK)
		return status;
	if (__builtin_add_overflow(clock_now() + SLACK, time, &until))
		until = XR_TIMEOUT_NEVER;
	s->driver->ops->ask(s->driver, q, until, r);
	leave_call(s);
	errno = saved;
	if (r->status != XR_OK && err != NULL) {
		*err = r->err;
		err->status = r->status;
	}
	return r->status;
}

/* @key with the prefix, in @room. */
static enum xr_status
full_key(const struct xr_store *s, const char *key, char *room,
	struct span *out, struct xr_error *err)
{
	size_t len = key == NULL ? 0 : strlen(key);

	if (key == NULL || !is_text(key))
		return fail(err, XR_E_INVAL, "store: a key is no UTF-8");
	if (len > STORE_KEY_MAX - s->prefix_len)
		return fail(err, XR_E_RANGE,
			"store: the key '%.60s...' has %zu bytes, at most %zu",
			key, len, STORE_KEY_MAX - s->prefix_len);
	memcpy(room, s->prefix, s->prefix_len);
	memcpy(room + s->prefix_len, key, len + 1);
	*out = (struct span){ room, s->prefix_len + len };
	return XR_OK;
}

/* A request that has one key, in @room. */
static enum xr_status
ask_key(struct xr_store *s, struct store_request *q, const char *key,
	struct store_reply *r, struct xr_error *err)
{
	char room[STORE_KEY_MAX + 1];
	enum xr_status status = full_key(s, key, room, &q->key, err);

	return status == XR_OK ? ask(s, q, r, err) : status;
}

/* Of a request; the caller's, with one reference. */
static enum xr_status
take_bytes(const void *data, size_t len, struct store_value **v,
	struct xr_error *err)
{
	if (data == NULL && len > 0)
		return fail(err, XR_E_INVAL, "store: a value without data");
	if (len > STORE_VALUE_MAX)
		return fail(err, XR_E_RANGE,
			"store: a value of %zu bytes, at most %d", len,
			STORE_VALUE_MAX);
	*v = store_value_new(data, len);
	return *v == NULL ? fail(err, XR_E_NOMEM, "store: out of memory") :
			    XR_OK;
}

XR_EXPORT enum xr_status
xr_store_set(struct xr_store *store, const char *key, const void *data,
	size_t len, struct xr_error *err)
{
	struct store_request q = { .op = STORE_SET };
	struct store_reply r;
	enum xr_status status = take_bytes(data, len, &q.value, err);

	if (status == XR_OK)
		status = ask_key(store, &q, key, &r, err);
	store_value_unref(q.value);
	return status;
}

/* The library's reference goes with it. */
static void
give_value(struct store_value *v, struct xr_store_value *out)
{
	*out = (struct xr_store_value){ v->data, v->len, v };
}

XR_EXPORT void
xr_store_value_free(struct xr_store_value *value)
{
	if (value == NULL)
		return;
	store_value_unref(value->own);
	*value = (struct xr_store_value){ NULL, 0, NULL };
}

static enum xr_status
set_patience(const struct xr_store *s, int64_t timeout, struct store_request *q,
	struct xr_error *err)
{
	q->patience = timeout;
	return timeout_argument(&q->patience, s->timeout, err);
}

XR_EXPORT enum xr_status
xr_store_get(struct xr_store *store, const char *key, int64_t timeout,
	struct xr_store_value *value, struct xr_error *err)
{
	struct store_request q = { .op = STORE_GET };
	struct store_reply r;
	enum xr_status status = set_patience(store, timeout, &q, err);

	if (status == XR_OK)
		status = ask_key(store, &q, key, &r, err);
	if (status != XR_OK)
		return status;
	if (r.value == NULL)
		return fail(err, XR_E_PROTO, "store: a get without a value");
	give_value(r.value, value);
	return XR_OK;
}

XR_EXPORT enum xr_status
xr_store_add(struct xr_store *store, const char *key, int64_t by, int64_t *sum,
	struct xr_error *err)
{
	struct store_request q = { .op = STORE_ADD, .number = by };
	struct store_reply r;
	enum xr_status status = ask_key(store, &q, key, &r, err);

	if (status == XR_OK && sum != NULL)
		*sum = r.number;
	return status;
}

XR_EXPORT enum xr_status
xr_store_compare_set(struct xr_store *store, const struct xr_store_swap *swap,
	struct xr_store_value *now, bool *there, struct xr_error *err)
{
	struct store_request q = { .op = STORE_COMPARE_SET };
	struct store_reply r;
	enum xr_status status;

	if (swap == NULL || swap->size < sizeof(*swap) ||
		(swap->expected == NULL && swap->expected_len > 0))
		return fail(err, XR_E_INVAL, "store: a swap without its parts");
	if (swap->expected_len > XR_STORE_EXPECTED_MAX)
		return fail(err, XR_E_RANGE,
			"store: %zu bytes are expected, at most %d",
			swap->expected_len, XR_STORE_EXPECTED_MAX);
	q.expected = (struct span){ swap->expected, swap->expected_len };
	status = take_bytes(swap->desired, swap->desired_len, &q.value, err);
	if (status == XR_OK)
		status = ask_key(store, &q, swap->key, &r, err);
	store_value_unref(q.value);
	if (status != XR_OK)
		return status;
	if (there != NULL)
		*there = r.value != NULL;
	if (r.value != NULL && now != NULL)
		give_value(r.value, now);
	else
		store_value_unref(r.value);
	return XR_OK;
}

/* A request that has many keys. */
static enum xr_status
ask_keys(struct xr_store *s, struct store_request *q, const char *const *keys,
	struct store_reply *r, struct xr_error *err)
{
	size_t room = 0;
	char *text = NULL;
	struct span *full = NULL;
	enum xr_status status = XR_OK;

	if (q->count > XR_STORE_KEYS_MAX)
		return fail(err, XR_E_RANGE,
			"store: %zu keys at once, at most %d", q->count,
			XR_STORE_KEYS_MAX);
	for (size_t i = 0; i < q->count; i++)
		room += s->prefix_len + 1 +
			(keys[i] == NULL ? 0 : strlen(keys[i]));
	text = malloc(room + 1);
	full = calloc(q->count + 1, sizeof(*full));
	if (text == NULL || full == NULL)
		status = fail(err, XR_E_NOMEM, "store: out of memory");
	q->keys = full;
	room = 0;
	for (size_t i = 0; i < q->count && status == XR_OK; i++) {
		status = full_key(s, keys[i], text + room, &full[i], err);
		room += full[i].len + 1;
	}
	if (status == XR_OK)
		status = ask(s, q, r, err);
	free(text);
	free(full);
	return status;
}

XR_EXPORT enum xr_status
xr_store_wait(struct xr_store *store, const char *const *keys, size_t count,
	int64_t timeout, struct xr_error *err)
{
	struct store_request q = { .op = STORE_WAIT, .count = count };
	struct store_reply r;
	enum xr_status status = set_patience(store, timeout, &q, err);

	return status == XR_OK ? ask_keys(store, &q, keys, &r, err) : status;
}

XR_EXPORT enum xr_status
xr_store_check(struct xr_store *store, const char *const *keys, size_t count,
	bool *there, struct xr_error *err)
{
	struct store_request q = { .op = STORE_CHECK, .count = count };
	struct store_reply r;
	enum xr_status status = ask_keys(store, &q, keys, &r, err);

	if (status == XR_OK)
		*there = (size_t)r.number == count;
	return status;
}

XR_EXPORT enum xr_status
xr_store_delete(struct xr_store *store, const char *key, bool *was,
	struct xr_error *err)
{
	struct store_request q = { .op = STORE_DELETE };
	struct store_reply r;
	enum xr_status status = ask_key(store, &q, key, &r, err);

	if (status == XR_OK && was != NULL)
		*was = r.number > 0;
	return status;
}
