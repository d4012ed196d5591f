/* SPDX-License-Identifier: Apache-2.0 */
/* keys.c - see keys.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/random.h>
#include <sys/stat.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/gate.h"
#include "base/status.h"
#include "launcher/sup/keys.h"
#include "launcher/sup/steer.h"
#include "launcher/sup/sup.h"
#include "store/desk.h"

#define SEALS       (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define EXACT       INT64_C(9007199254740992) /* 2^53: beyond, a text */
#define QUICK_CLOSE (1 << 20)                 /* bytes */
#define NUMBER_MAX  32

struct keys {
	struct job *job;
	struct desk *desk;
	struct timer *due;
};

/* What a message is, taken apart. */
struct asked {
	struct store_request q;
	struct span keys[DESK_KEYS_MAX];
	char expected[KEYS_INLINE + 3];
	const struct job *job;
	struct ctl_client *from;
	struct xr_error err;
};

/* --- values ---------------------------------------------------------------- */

/* The job outlives the store. */
static void
close_value(struct store_value *v)
{
	int fd = (int)(intptr_t)v->ctx;

	if (v->len > QUICK_CLOSE)
		steer_close(NULL, fd);
	else
		fd_close(fd);
}

/* Nothing but the seals may be asked of a file of an unknown kind: it may be on
 * a server that does not answer. Memory has seals, and answers. */
static enum xr_status
check_memory(const struct job *job, int fd, size_t *len, struct xr_error *err)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals == -1 || (seals & SEALS) != SEALS)
		return fail(err, XR_E_INVAL,
			"store: a value that is sent along is a memfd, sealed against writing, growing and shrinking");
	if (fstat(fd, &st) == -1)
		return fail(err, XR_E_SYS, "store: value: %s", strerror(errno));
	if (st.st_size > STORE_VALUE_MAX)
		return fail(err, XR_E_RANGE,
			"store: a value of %lld bytes, at most %d",
			(long long)st.st_size, STORE_VALUE_MAX);
	if (!steer_spares(job, fd))
		return fail(err, XR_E_NOMEM,
			"store: no descriptor is left for a value beyond %d bytes\tdelete keys that nobody needs, or ulimit -n",
			KEYS_INLINE);
	*len = (size_t)st.st_size;
	return XR_OK;
}

/* Takes @fd. */
static struct store_value *
value_of_memory(const struct job *job, int fd, struct xr_error *err)
{
	struct store_value *v = NULL;
	size_t len = 0;

	if (check_memory(job, fd, &len, err) != XR_OK) {
		steer_close(NULL, fd);
		return NULL;
	}
	if (len > KEYS_INLINE)
		v = store_value_wrap(NULL, len, close_value,
			(void *)(intptr_t)fd);
	else
		v = store_value_new(NULL, len);
	if (v == NULL)
		fail(err, XR_E_NOMEM, "store: out of memory");
	else if (len > KEYS_INLINE)
		return v;
	else if (pread(fd, v->data, len, 0) != (ssize_t)len)
		fail(err, XR_E_SYS, "store: value: %s", strerror(errno));
	else
		goto out;
	store_value_unref(v);
	v = NULL;
out:
	fd_close(fd);
	return v;
}

/* Base64 of at most KEYS_INLINE bytes, to @out; NULL is of none. */
static bool
read_bytes(const char *text, char *out, size_t *len, struct xr_error *err)
{
	struct span all = span_of(text);

	if (all.len > base64_len(KEYS_INLINE)) {
		fail(err, XR_E_RANGE,
			"store: a value beyond %d bytes is sent along as a memfd",
			KEYS_INLINE);
		return false;
	}
	if (!base64_get(all, out, len))
		fail(err, XR_E_INVAL, "store: a value is no base64");
	else if (*len > KEYS_INLINE)
		fail(err, XR_E_RANGE,
			"store: a value beyond %d bytes is sent along as a memfd",
			KEYS_INLINE);
	else
		return true;
	return false;
}

static struct store_value *
value_of(struct asked *a, const char *text)
{
	struct xr_error *err = &a->err;
	char bytes[KEYS_INLINE + 3];
	size_t len = 0;
	struct store_value *v;
	int fd;

	if (text == NULL) {
		fd = ctl_take_fd(a->from);
		if (fd != -1)
			return value_of_memory(a->job, fd, err);
		fail(err, XR_E_INVAL,
			"store: there is no value, and no descriptor came along");
		return NULL;
	}
	if (!read_bytes(text, bytes, &len, err))
		return NULL;
	v = store_value_new(bytes, len);
	if (v == NULL)
		fail(err, XR_E_NOMEM, "store: out of memory");
	return v;
}

/* --- requests -------------------------------------------------------------- */

/* Texts of an array that is in the line, which may be written over. */
static bool
read_keys(struct asked *a, struct span array)
{
	struct gate_walk walk = gate_walk(array);
	struct gate_item item;
	char *at;

	a->q.keys = a->keys;
	if (gate_kind(array) != GATE_ARRAY)
		goto odd;
	while (gate_next(&walk, &item)) {
		if (gate_kind(item.value) != GATE_TEXT)
			goto odd;
		if (a->q.count == DESK_KEYS_MAX) {
			fail(&a->err, XR_E_RANGE,
				"store: more than %d keys at once",
				DESK_KEYS_MAX);
			return false;
		}
		at = (char *)item.value.at;
		a->keys[a->q.count].len = gate_unescape(item.value, at);
		a->keys[a->q.count++].at = at;
	}
	return true;
odd:
	fail(&a->err, XR_E_PROTO, "store: keys is not an array of texts");
	return false;
}

static bool
read_number(struct asked *a, struct span value)
{
	char text[NUMBER_MAX], *end;
	size_t quote = gate_kind(value) == GATE_TEXT;

	if (value.len - 2 * quote < sizeof(text)) {
		value.at += quote;
		value.len -= 2 * quote;
		memcpy(text, value.at, value.len);
		text[value.len] = '\0';
		errno = 0;
		a->q.number = strtoll(text, &end, 10);
		if (*end == '\0' && errno == 0 && value.len > 0 &&
			text[strspn(text, "-0123456789")] == '\0')
			return true;
	}
	fail(&a->err, XR_E_INVAL,
		"store_add: by is not a whole number of 64 bits");
	return false;
}

static bool
read_patience(struct asked *a, double seconds)
{
	if (isnan(seconds) || seconds > 9e9) {
		a->q.patience = DESK_NEVER;
		return true;
	}
	if (seconds >= 0) {
		a->q.patience = (int64_t)(seconds * 1e9);
		return true;
	}
	fail(&a->err, XR_E_INVAL, "store: seconds are below 0");
	return false;
}

static bool
read_swap(struct asked *a, const struct control *m)
{
	const char *text = m->store_compare_set.expected;

	a->q.key = span_of(m->store_compare_set.key);
	a->q.expected.at = a->expected;
	if (!read_bytes(text, a->expected, &a->q.expected.len, &a->err))
		return false;
	a->q.value = value_of(a, m->store_compare_set.value);
	return a->q.value != NULL;
}

static bool
read_request(struct asked *a, const struct control *m)
{
	switch (m->type) {
	case CONTROL_STORE_SET:
		a->q.op = STORE_SET;
		a->q.key = span_of(m->store_set.key);
		a->q.value = value_of(a, m->store_set.value);
		return a->q.value != NULL;
	case CONTROL_STORE_GET:
		a->q.op = STORE_GET;
		a->q.key = span_of(m->store_get.key);
		return read_patience(a, m->store_get.seconds);
	case CONTROL_STORE_ADD:
		a->q.op = STORE_ADD;
		a->q.key = span_of(m->store_add.key);
		return read_number(a, m->store_add.by);
	case CONTROL_STORE_COMPARE_SET:
		a->q.op = STORE_COMPARE_SET;
		return read_swap(a, m);
	case CONTROL_STORE_WAIT:
		a->q.op = STORE_WAIT;
		return read_keys(a, m->store_wait.keys) &&
			read_patience(a, m->store_wait.seconds);
	case CONTROL_STORE_CHECK:
		a->q.op = STORE_CHECK;
		return read_keys(a, m->store_check.keys);
	case CONTROL_STORE_DELETE:
		a->q.op = STORE_DELETE;
		a->q.key = span_of(m->store_delete.key);
		return true;
	default:
		return false;
	}
}

bool
keys_is(enum control_type type)
{
	return type >= CONTROL_STORE_SET && type <= CONTROL_STORE_DELETE;
}

/* --- replies --------------------------------------------------------------- */

static void
send_done(struct ctl_client *to, const struct store_reply *r, bool count)
{
	struct control m = control_new(CONTROL_DONE, r->id);

	if (count)
		m.done.count = r->number;
	ctl_send(to, &m);
}

static void
send_sum(struct ctl_client *to, const struct store_reply *r)
{
	struct control m = control_new(CONTROL_STORE_SUM, r->id);
	bool exact = r->number <= EXACT && r->number >= -EXACT;
	char text[NUMBER_MAX];

	snprintf(text, sizeof(text), exact ? "%" PRId64 : "\"%" PRId64 "\"",
		r->number);
	m.store_sum.sum = span_of(text);
	ctl_send(to, &m);
}

static void
send_value(struct ctl_client *to, const struct store_reply *r)
{
	struct control m = control_new(CONTROL_STORE_VALUE, r->id);
	char text[(KEYS_INLINE + 2) / 3 * 4 + 1];
	struct store_value *v = r->value;
	struct xr_error err = { 0 };

	if (v != NULL && v->data != NULL) {
		base64_put((struct span){ v->data, v->len }, text);
		m.store_value.value = text;
	} else if (v != NULL) {
		m.store_value.size = (int64_t)v->len;
	}
	if (v == NULL || v->data != NULL)
		ctl_send(to, &m);
	else if (!ctl_send_fd(to, &m, (int)(intptr_t)v->ctx))
		ctl_refuse(to, r->id,
			fail(&err, XR_E_AGAIN,
				"store: no descriptor is left to send a large value along"),
			&err);
}

/* What a reply to such a request is. A get's has a value, even in silence. */
static void
send_reply(struct ctl_client *to, enum store_op op, struct store_reply *r)
{
	if (r->status != XR_OK)
		ctl_refuse(to, r->id, r->status, &r->err);
	else if (op == STORE_GET || op == STORE_COMPARE_SET)
		send_value(to, r);
	else if (op == STORE_ADD)
		send_sum(to, r);
	else
		send_done(to, r, op == STORE_CHECK || op == STORE_DELETE);
	store_value_unref(r->value);
}

/* --- serving --------------------------------------------------------------- */

static void
arm(struct keys *k)
{
	int64_t due = desk_due(k->desk), left;

	if (due == DESK_NEVER) {
		timer_disarm(k->due);
		return;
	}
	left = due - clock_now();
	timer_arm(k->due, left > 0 ? left : 0);
}

static void
on_due(void *ctx)
{
	struct keys *k = ctx;

	desk_turn(k->desk, clock_now());
	arm(k);
}

static void
on_ready(struct desk_guest *guest, void *ctx)
{
	(void)ctx;
	ctl_want(guest->of);
}

static struct keys *
keys_open(struct job *job)
{
	struct desk_setup setup = {
		.limits = {
			.bytes = KEYS_BYTES,
			.value = STORE_VALUE_MAX,
			.keys = KEYS_MOST,
			.waits = KEYS_WAITS,
			.owner = KEYS_A_GUEST,
		},
		.ready = on_ready,
	};
	struct keys *k = calloc(1, sizeof(*k));

	if (k == NULL)
		return NULL;
	k->job = job;
	/* What it could not give, time and place do. */
	if (getrandom(&setup.seed, sizeof(setup.seed), GRND_NONBLOCK) == -1)
		setup.seed = (struct hash_seed){ { (uint64_t)clock_now(),
			(uintptr_t)k } };
	k->desk = desk_new(&setup);
	k->due = timer_open(job->sup->loop, on_due, k);
	if (k->desk != NULL && k->due != NULL)
		return k;
	timer_close(k->due);
	desk_free(k->desk);
	free(k);
	return NULL;
}

/* NULL: no memory. */
static struct desk_guest *
guest_of(struct job *job, struct ctl_client *client)
{
	void **of = ctl_of(client);

	if (job->sup->keys == NULL)
		job->sup->keys = keys_open(job);
	if (job->sup->keys == NULL)
		return NULL;
	if (*of == NULL && (*of = malloc(sizeof(struct desk_guest))) != NULL)
		desk_enter(*of, client);
	return *of;
}

void
keys_asked(struct job *job, struct ctl_client *from, const struct control *m)
{
	static struct asked a; /* the loop's */
	struct desk_guest *guest = guest_of(job, from);
	struct store_reply reply = { 0 };

	memset(&a.q, 0, sizeof(a.q));
	a.q.id = m->id;
	a.job = job;
	a.from = from;
	if (guest == NULL) {
		ctl_refuse(from, m->id,
			fail(&a.err, XR_E_NOMEM, "store: out of memory"),
			&a.err);
		return;
	}
	if (!read_request(&a, m)) {
		ctl_refuse(from, m->id, a.err.status, &a.err);
	} else if (desk_ask(job->sup->keys->desk, guest, &a.q, clock_now(),
			   &reply)) {
		send_reply(from, a.q.op, &reply);
	} else {
		ctl_hold(from, 1);
		arm(job->sup->keys);
	}
	store_value_unref(a.q.value);
}

void
keys_more(struct job *job, struct ctl_client *client)
{
	struct desk_guest *guest = *ctl_of(client);
	struct store_reply reply;

	(void)job;
	if (guest == NULL || !desk_take(guest, &reply))
		return;
	ctl_hold(client, -1);
	send_reply(client, reply.value != NULL ? STORE_GET : STORE_WAIT,
		&reply);
	if (desk_has(guest))
		ctl_want(client);
}

void
keys_gone(struct job *job, struct ctl_client *client)
{
	void **of = ctl_of(client);

	if (*of == NULL)
		return;
	desk_leave(job->sup->keys->desk, *of);
	free(*of);
	*of = NULL;
	arm(job->sup->keys);
}

void
keys_close(struct job *job)
{
	struct keys *k = job->sup->keys;

	if (k == NULL)
		return;
	timer_close(k->due);
	desk_free(k->desk);
	free(k);
	job->sup->keys = NULL;
}
