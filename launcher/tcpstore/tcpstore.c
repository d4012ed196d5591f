/* SPDX-License-Identifier: Apache-2.0 */
/* tcpstore.c - see tcpstore.h. */
#include <stdlib.h>
#include <string.h>

#include <sys/queue.h>
#include <sys/random.h>

#include "base/status.h"
#include "launcher/tcpstore/tcpstore_internal.h"

/* TCPStoreBackend.hpp, validationMagicNumber */
#define MAGIC UINT32_C(0x3c85f7ce)

#define BYTES    (256 << 20) /* of keys and values */
#define KEYS     (1 << 17)   /* MAX_KEY_COUNT of TCPStoreLibUvBackend.cpp */
#define WAITS    (1 << 20)
#define KEYS_MAX (1 << 14) /* of one request */

enum reply_wait { STOP_WAITING, WAIT_CANCELED };
enum reply_check { READY, NOT_READY };

/* --- reading a request ------------------------------------------------------ */

static const void *
tcpstore_read(struct tcpstore_reader *r, size_t len)
{
	const char *at = r->at;

	if ((size_t)(r->end - r->at) < len) {
		r->is_short = true;
		return NULL;
	}
	r->at += len;
	return at;
}

/* 0 if the request is incomplete. */
static uint64_t
tcpstore_read_number(struct tcpstore_reader *r)
{
	const void *at = tcpstore_read(r, sizeof(uint64_t));
	uint64_t number = 0;

	if (at != NULL)
		memcpy(&number, at, sizeof(number));
	return number;
}

static struct span
tcpstore_read_bytes(struct tcpstore_reader *r, size_t most)
{
	uint64_t len = tcpstore_read_number(r);
	struct span bytes = { 0 };

	if (len > most)
		r->is_bad = true;
	else if (!r->is_short)
		bytes = (struct span){ tcpstore_read(r, len), len };
	return bytes;
}

struct span
tcpstore_read_key(struct tcpstore_reader *r)
{
	return tcpstore_read_bytes(r, STORE_KEY_MAX);
}

struct span
tcpstore_read_value(struct tcpstore_reader *r)
{
	return tcpstore_read_bytes(r, STORE_VALUE_MAX);
}

enum tcpstore_verdict
tcpstore_read_end(const struct tcpstore_reader *r)
{
	if (r->is_bad)
		return TCPSTORE_BAD;
	return r->is_short ? TCPSTORE_MORE : TCPSTORE_DONE;
}

/* A number of keys, each followed by a value if @values is not NULL. The caller
 * frees both lists, also if the request is incomplete. */
static size_t
tcpstore_read_list(struct tcpstore_reader *r, struct span **keys,
	struct span **values)
{
	uint64_t count = tcpstore_read_number(r);

	/* Each takes 8 bytes at least: nothing is allocated for what is not there. */
	if (count > KEYS_MAX)
		r->is_bad = true;
	else if (count > (size_t)(r->end - r->at) / sizeof(uint64_t))
		r->is_short = true;
	if (tcpstore_read_end(r) != TCPSTORE_DONE)
		return 0;
	*keys = calloc(count + 1, sizeof(**keys));
	if (values != NULL)
		*values = calloc(count + 1, sizeof(**values));
	r->is_bad = *keys == NULL || (values != NULL && *values == NULL);
	for (size_t i = 0; i < count && tcpstore_read_end(r) == TCPSTORE_DONE;
		i++) {
		(*keys)[i] = tcpstore_read_key(r);
		if (values != NULL)
			(*values)[i] = tcpstore_read_value(r);
	}
	return count;
}

/* --- replies ---------------------------------------------------------------- */

static void
tcpstore_put_byte(struct tcpstore_client *c, uint8_t byte)
{
	buf_put(&c->out, &byte, sizeof(byte));
}

void
tcpstore_put_number(struct tcpstore_client *c, int64_t number)
{
	buf_put(&c->out, &number, sizeof(number));
}

void
tcpstore_put_bytes(struct tcpstore_client *c, struct span bytes)
{
	tcpstore_put_number(c, (int64_t)bytes.len);
	buf_put(&c->out, bytes.at, bytes.len);
}

static void
tcpstore_put_value(struct tcpstore_client *c, const struct store_value *value)
{
	tcpstore_put_bytes(c,
		value == NULL ? (struct span){ 0 } :
				(struct span){ value->data, value->len });
}

static enum tcpstore_verdict
tcpstore_no_memory(struct xr_error *err)
{
	fail(err, XR_E_NOMEM, "out of memory");
	return TCPSTORE_BAD;
}

/* --- waiting ---------------------------------------------------------------- */

/* What it waits for exists, or the wait was cancelled. */
static void
tcpstore_wait_is_over(struct tcpstore_client *c)
{
	if (c->waiter != NULL)
		TAILQ_REMOVE(&c->store->waiting, c, list);
	c->waiter = NULL;
	free(c->wait_key);
	c->wait_key = NULL;
}

static void
tcpstore_cancel(struct tcpstore_client *c)
{
	if (c->waiter != NULL)
		store_cancel(c->store->keys, c->waiter);
	tcpstore_wait_is_over(c);
}

static void
tcpstore_on_answer(const struct store_answer *answer, void *ctx)
{
	struct tcpstore_client *c = answer->owner->of;

	(void)ctx;
	tcpstore_wait_is_over(c);
	tcpstore_put_byte(c, STOP_WAITING);
	c->store->ready(c, c->of);
}

void
tcpstore_wake_one(struct tcpstore *s, struct span key)
{
	struct tcpstore_client *c;

	TAILQ_FOREACH(c, &s->waiting, list)
	if (c->wait_key != NULL && c->wait_len == key.len &&
		memcmp(c->wait_key, key.at, key.len) == 0) {
		tcpstore_cancel(c);
		tcpstore_put_byte(c, STOP_WAITING);
		s->ready(c, c->of);
		return;
	}
}

/* Returns true if each key has a value, or a queue with items. */
static bool
tcpstore_exist(const struct tcpstore *s, const struct span *keys, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!store_check(s->keys, &keys[i], 1) &&
			tcpstore_queue_length(s, keys[i]) == 0)
			return false;
	return true;
}

static enum tcpstore_verdict
tcpstore_wait(struct tcpstore_client *c, const struct span *keys, size_t count,
	struct xr_error *err)
{
	struct store_ask ask = { .owner = &c->owner };
	char *key = NULL;

	/* A client that waits again has given up its last wait. */
	tcpstore_cancel(c);
	if (tcpstore_exist(c->store, keys, count)) {
		tcpstore_put_byte(c, STOP_WAITING);
		return TCPSTORE_DONE;
	}
	/* A queue wakes a client that waits for it alone. */
	if (count == 1) {
		key = malloc(keys[0].len + 1);
		if (key == NULL)
			return tcpstore_no_memory(err);
		memcpy(key, keys[0].at, keys[0].len);
	}
	if (store_wait(c->store->keys, keys, count, &ask, err) != XR_OK) {
		free(key);
		return TCPSTORE_BAD;
	}
	c->waiter = ask.waiter;
	TAILQ_INSERT_TAIL(&c->store->waiting, c, list);
	c->wait_len = keys[0].len;
	c->wait_key = key;
	return TCPSTORE_DONE;
}

/* --- requests --------------------------------------------------------------- */

static enum tcpstore_verdict
tcpstore_store(struct tcpstore_client *c, struct span key, struct span bytes,
	struct xr_error *err)
{
	struct store_value *value = store_value_new(bytes.at, bytes.len);
	enum xr_status status;

	if (value == NULL)
		return tcpstore_no_memory(err);
	status = store_set(c->store->keys, key, value, err);
	store_value_unref(value);
	return status == XR_OK ? TCPSTORE_DONE : TCPSTORE_BAD;
}

static enum tcpstore_verdict
tcpstore_on_validate(struct tcpstore_client *c, struct tcpstore_reader *r,
	struct xr_error *err)
{
	const void *at = tcpstore_read(r, sizeof(uint32_t));
	uint32_t magic = MAGIC;

	(void)c;
	if (at != NULL)
		memcpy(&magic, at, sizeof(magic));
	if (magic != MAGIC) {
		fail(err, XR_E_PROTO, "wrong magic number");
		return TCPSTORE_BAD;
	}
	return tcpstore_read_end(r);
}

static enum tcpstore_verdict
tcpstore_on_set(struct tcpstore_client *c, struct tcpstore_reader *r,
	struct xr_error *err)
{
	struct span key = tcpstore_read_key(r);
	struct span value = tcpstore_read_value(r);
	enum tcpstore_verdict verdict = tcpstore_read_end(r);

	return verdict == TCPSTORE_DONE ? tcpstore_store(c, key, value, err) :
					  verdict;
}

/* A key that does not exist and is expected to have a value keeps its state, and the
 * reply is the expected value, as in PyTorch. */
static enum tcpstore_verdict
tcpstore_on_compare_set(struct tcpstore_client *c, struct tcpstore_reader *r,
	struct xr_error *err)
{
	struct store_swap swap = { .key = tcpstore_read_key(r),
		.expected = tcpstore_read_value(r) };
	struct span desired = tcpstore_read_value(r);
	enum tcpstore_verdict verdict = tcpstore_read_end(r);
	struct store_value *now = NULL;
	enum xr_status status;

	if (verdict != TCPSTORE_DONE)
		return verdict;
	swap.desired = store_value_new(desired.at, desired.len);
	status = swap.desired == NULL ?
		fail(err, XR_E_NOMEM, "out of memory") :
		store_compare_set(c->store->keys, &swap, &now, err);
	if (status == XR_OK && now == NULL)
		tcpstore_put_bytes(c, swap.expected);
	else if (status == XR_OK)
		tcpstore_put_value(c, now);
	store_value_unref(now);
	store_value_unref(swap.desired);
	return status == XR_OK ? TCPSTORE_DONE : TCPSTORE_BAD;
}

static enum tcpstore_verdict
tcpstore_on_get(struct tcpstore_client *c, struct tcpstore_reader *r,
	struct xr_error *err)
{
	struct span key = tcpstore_read_key(r);
	enum tcpstore_verdict verdict = tcpstore_read_end(r);
	struct store_value *value = NULL;

	(void)err;
	if (verdict != TCPSTORE_DONE)
		return verdict;
	store_get(c->store->keys, key, NULL, &value, NULL);
	tcpstore_put_value(c, value);
	store_value_unref(value);
	return TCPSTORE_DONE;
}

static enum tcpstore_verdict
tcpstore_on_add(struct tcpstore_client *c, struct tcpstore_reader *r,
	struct xr_error *err)
{
	struct span key = tcpstore_read_key(r);
	int64_t by = (int64_t)tcpstore_read_number(r), sum;
	enum tcpstore_verdict verdict = tcpstore_read_end(r);

	if (verdict != TCPSTORE_DONE)
		return verdict;
	if (store_add(c->store->keys, key, by, &sum, err) != XR_OK)
		return TCPSTORE_BAD;
	tcpstore_put_number(c, sum);
	return TCPSTORE_DONE;
}

static enum tcpstore_verdict
tcpstore_on_check(struct tcpstore_client *c, struct tcpstore_reader *r,
	struct xr_error *err)
{
	struct span *keys = NULL;
	size_t count = tcpstore_read_list(r, &keys, NULL);
	enum tcpstore_verdict verdict = tcpstore_read_end(r);

	(void)err;
	if (verdict == TCPSTORE_DONE)
		tcpstore_put_byte(c,
			tcpstore_exist(c->store, keys, count) ? READY :
								NOT_READY);
	free(keys);
	return verdict;
}

static enum tcpstore_verdict
tcpstore_on_wait(struct tcpstore_client *c, struct tcpstore_reader *r,
	struct xr_error *err)
{
	struct span *keys = NULL;
	size_t count = tcpstore_read_list(r, &keys, NULL);
	enum tcpstore_verdict verdict = tcpstore_read_end(r);

	if (verdict == TCPSTORE_DONE)
		verdict = tcpstore_wait(c, keys, count, err);
	free(keys);
	return verdict;
}

static enum tcpstore_verdict
tcpstore_on_cancel_wait(struct tcpstore_client *c, struct tcpstore_reader *r,
	struct xr_error *err)
{
	(void)r;
	(void)err;
	tcpstore_cancel(c);
	tcpstore_put_byte(c, WAIT_CANCELED);
	return TCPSTORE_DONE;
}

static enum tcpstore_verdict
tcpstore_on_count(struct tcpstore_client *c, struct tcpstore_reader *r,
	struct xr_error *err)
{
	(void)r;
	(void)err;
	tcpstore_put_number(c,
		(int64_t)store_count(c->store->keys, (struct span){ 0 }));
	return TCPSTORE_DONE;
}

static enum tcpstore_verdict
tcpstore_on_delete(struct tcpstore_client *c, struct tcpstore_reader *r,
	struct xr_error *err)
{
	struct span key = tcpstore_read_key(r);
	enum tcpstore_verdict verdict = tcpstore_read_end(r);

	(void)err;
	if (verdict == TCPSTORE_DONE)
		tcpstore_put_number(c, store_delete(c->store->keys, key));
	return verdict;
}

static enum tcpstore_verdict
tcpstore_on_append(struct tcpstore_client *c, struct tcpstore_reader *r,
	struct xr_error *err)
{
	struct span key = tcpstore_read_key(r);
	struct span more = tcpstore_read_value(r);
	enum tcpstore_verdict verdict = tcpstore_read_end(r);
	struct store_value *old = NULL;
	struct buf all = { 0 };

	if (verdict != TCPSTORE_DONE)
		return verdict;
	store_get(c->store->keys, key, NULL, &old, NULL);
	if (old != NULL)
		buf_put(&all, old->data, old->len);
	buf_put(&all, more.at, more.len);
	if (all.bad == XR_OK)
		verdict = tcpstore_store(c, key,
			(struct span){ all.data, all.len }, err);
	else
		verdict = tcpstore_no_memory(err);
	buf_fini(&all);
	store_value_unref(old);
	return verdict;
}

static enum tcpstore_verdict
tcpstore_on_multi_get(struct tcpstore_client *c, struct tcpstore_reader *r,
	struct xr_error *err)
{
	struct span *keys = NULL;
	size_t count = tcpstore_read_list(r, &keys, NULL);
	enum tcpstore_verdict verdict = tcpstore_read_end(r);

	(void)err;
	for (size_t i = 0; i < count && verdict == TCPSTORE_DONE; i++) {
		struct store_value *value = NULL;

		store_get(c->store->keys, keys[i], NULL, &value, NULL);
		tcpstore_put_value(c, value);
		store_value_unref(value);
	}
	free(keys);
	return verdict;
}

static enum tcpstore_verdict
tcpstore_on_multi_set(struct tcpstore_client *c, struct tcpstore_reader *r,
	struct xr_error *err)
{
	struct span *keys = NULL, *values = NULL;
	size_t count = tcpstore_read_list(r, &keys, &values);
	enum tcpstore_verdict verdict = tcpstore_read_end(r);

	for (size_t i = 0; i < count && verdict == TCPSTORE_DONE; i++)
		verdict = tcpstore_store(c, keys[i], values[i], err);
	free(keys);
	free(values);
	return verdict;
}

static enum tcpstore_verdict
tcpstore_on_ping(struct tcpstore_client *c, struct tcpstore_reader *r,
	struct xr_error *err)
{
	const void *nonce = tcpstore_read(r, sizeof(uint32_t));

	(void)err;
	if (nonce != NULL)
		buf_put(&c->out, nonce, sizeof(uint32_t));
	return tcpstore_read_end(r);
}

typedef enum tcpstore_verdict request_fn(struct tcpstore_client *c,
	struct tcpstore_reader *r, struct xr_error *err);

/* The number of a request is its place. */
static request_fn *const since_2_2[] = { tcpstore_on_validate, tcpstore_on_set,
	tcpstore_on_compare_set, tcpstore_on_get, tcpstore_on_add,
	tcpstore_on_check, tcpstore_on_wait, tcpstore_on_count,
	tcpstore_on_delete, tcpstore_on_append, tcpstore_on_multi_get,
	tcpstore_on_multi_set, tcpstore_on_cancel_wait, tcpstore_on_ping,
	tcpstore_on_queue_push, tcpstore_on_queue_pop, tcpstore_on_queue_len };

static request_fn *const before_2_2[] = { tcpstore_on_set,
	tcpstore_on_compare_set, tcpstore_on_get, tcpstore_on_add,
	tcpstore_on_check, tcpstore_on_wait, tcpstore_on_count, NULL,
	tcpstore_on_delete, tcpstore_on_append, tcpstore_on_multi_get,
	tcpstore_on_multi_set, tcpstore_on_cancel_wait };

/* A first SET of the old dialect has the same first byte as VALIDATE; the length of its
 * key is not the magic number. Returns TCPSTORE_MORE if the bytes do not tell yet. */
static enum tcpstore_verdict
tcpstore_tell_dialect(struct tcpstore_client *c, struct span in)
{
	uint32_t word;

	if (in.at[0] == 0 && in.len < 1 + sizeof(word))
		return TCPSTORE_MORE;
	memcpy(&word, in.at + 1, in.at[0] == 0 ? sizeof(word) : 0);
	c->dialect = in.at[0] == 0 && word == MAGIC ? TCPSTORE_SINCE_2_2 :
						      TCPSTORE_BEFORE_2_2;
	return TCPSTORE_DONE;
}

static request_fn *
tcpstore_find_request(const struct tcpstore_client *c, uint8_t number)
{
	if (c->dialect == TCPSTORE_SINCE_2_2)
		return number < sizeof(since_2_2) / sizeof(since_2_2[0]) ?
			since_2_2[number] :
			NULL;
	return number < sizeof(before_2_2) / sizeof(before_2_2[0]) ?
		before_2_2[number] :
		NULL;
}

enum tcpstore_verdict
tcpstore_take(struct tcpstore_client *c, struct span in, size_t *used,
	struct xr_error *err)
{
	enum tcpstore_verdict verdict;
	struct tcpstore_reader r = { 0 };
	request_fn *request;

	if (in.len == 0 ||
		(c->dialect == TCPSTORE_UNKNOWN &&
			tcpstore_tell_dialect(c, in) == TCPSTORE_MORE))
		return TCPSTORE_MORE;
	r.at = in.at + 1;
	r.end = in.at + in.len;
	request = tcpstore_find_request(c, (uint8_t)in.at[0]);
	if (request == NULL) {
		fail(err, XR_E_PROTO, "unknown request %u",
			(unsigned)(uint8_t)in.at[0]);
		return TCPSTORE_BAD;
	}
	verdict = request(c, &r, err);
	if (r.is_bad)
		fail(err, XR_E_RANGE, "a key or a value is too long");
	if (c->out.bad != XR_OK)
		return tcpstore_no_memory(err);
	*used = (size_t)(r.at - in.at);
	return verdict;
}

/* --- life ------------------------------------------------------------------- */

struct tcpstore *
tcpstore_new(tcpstore_ready_fn *ready)
{
	struct store_setup setup = {
		.limits = { BYTES, STORE_VALUE_MAX, KEYS, WAITS, 1 },
		.answer = tcpstore_on_answer,
	};
	struct tcpstore *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	TAILQ_INIT(&s->waiting);
	LIST_INIT(&s->queues);
	s->ready = ready;
	if (getrandom(&setup.seed, sizeof(setup.seed), GRND_NONBLOCK) ==
		sizeof(setup.seed))
		s->keys = store_new(&setup);
	if (s->keys != NULL)
		return s;
	free(s);
	return NULL;
}

void
tcpstore_free(struct tcpstore *s)
{
	if (s == NULL)
		return;
	tcpstore_queues_free(s);
	store_free(s->keys);
	free(s);
}

struct tcpstore_client *
tcpstore_enter(struct tcpstore *s, void *of)
{
	struct tcpstore_client *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->store = s;
	c->of = of;
	store_owner_init(&c->owner, c);
	return c;
}

void
tcpstore_leave(struct tcpstore_client *c)
{
	tcpstore_cancel(c);
	store_owner_drop(c->store->keys, &c->owner);
	buf_fini(&c->out);
	free(c);
}

struct buf *
tcpstore_out(struct tcpstore_client *c)
{
	return &c->out;
}
