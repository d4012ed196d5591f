/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.c - fuzz target: the rendezvous store against a plain one.
 *
 * Input: a line an operation: a letter, then words behind blanks. K is a key by
 * its first byte, '-' an empty text, O an owner by its first byte.
 *
 *	s K TEXT   set                   x, x K     clear all, or one
 *	g K        get                   k          cancel who waits longest
 *	w K...     wait                  o O, q O   close an owner, or drop him
 *	a K N      add                   e          close the store
 *	c K T U    compare T, set U
 *	d K        delete
 *
 * Claims: status, value, answers and their order, and what is counted are those
 * of a store made of arrays that looks at everything each time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "store/store.h"
#include "tests/fuzz/fuzz.h"

#define LINES_MAX  100
#define KEYS       26
#define OWNERS     3
#define WAITERS    LINES_MAX
#define WORDS      6
#define VALUE_MAX  12
#define KEY_PREFIX "key/" /* before the letter */
#define KEY_LEN    5

static const struct store_limits limits = {
	.bytes = 120,
	.value = VALUE_MAX,
	.keys = 9,
	.waits = 12,
	.owner = 5,
};

/* One who waits, in the plain store. */
struct plain {
	bool open, get;
	int owner;
	unsigned missing[KEYS]; /* how often */
	struct store_waiter *waiter;
};

static struct {
	struct store *store;
	struct store_owner owners[OWNERS];
	char *values[KEYS]; /* NULL: none */
	struct plain waiters[WAITERS];
	int count; /* of waiters; the id of the next */
	struct buf heard, want;
} t;

/* --- what is to be --------------------------------------------------------- */

static size_t
plain_waits(const struct plain *w)
{
	size_t sum = 0;

	for (int k = 0; w->open && k < KEYS; k++)
		sum += w->missing[k];
	return sum;
}

static bool
is_awaited(int key)
{
	for (int i = 0; i < t.count; i++)
		if (t.waiters[i].open && t.waiters[i].missing[key] > 0)
			return true;
	return false;
}

static size_t
plain_keys(void)
{
	size_t n = 0;

	for (int k = 0; k < KEYS; k++)
		n += t.values[k] != NULL;
	return n;
}

static size_t
plain_bytes(void)
{
	size_t sum = 0;

	for (int k = 0; k < KEYS; k++) {
		if (t.values[k] != NULL)
			sum += strlen(t.values[k]);
		if (t.values[k] != NULL || is_awaited(k))
			sum += KEY_LEN;
	}
	return sum;
}

static enum xr_status
plain_set(int key, const char *value)
{
	char *old = t.values[key];
	size_t bytes = plain_bytes() + strlen(value);

	if (strlen(value) > VALUE_MAX)
		return XR_E_RANGE;
	if (old == NULL && plain_keys() == limits.keys)
		return XR_E_NOMEM;
	bytes -= old == NULL ? 0 : strlen(old);
	bytes += old == NULL && !is_awaited(key) ? KEY_LEN : 0;
	if (bytes > limits.bytes)
		return XR_E_NOMEM;
	t.values[key] = xstrdup(value);
	free(old);
	for (int i = 0; i < t.count; i++) {
		struct plain *w = &t.waiters[i];

		if (!w->open || w->missing[key] == 0)
			continue;
		w->missing[key] = 0;
		if (plain_waits(w) > 0)
			continue;
		w->open = false;
		buf_fmt(&t.want, "%d=%s ", i, w->get ? value : "");
	}
	return XR_OK;
}

/* The plain waiter of @keys, and what asking for them returns. */
static enum xr_status
plain_wait(struct plain *w, const int *keys, int n)
{
	size_t all = 0, own = 0, more = 0, bytes = plain_bytes();

	w->open = true;
	for (int i = 0; i < n; i++)
		if (t.values[keys[i]] == NULL) {
			bool first = w->missing[keys[i]]++ == 0;

			more += first && !is_awaited(keys[i]) ? KEY_LEN : 0;
		}
	w->open = plain_waits(w) > 0;
	if (!w->open)
		return XR_OK;
	for (int i = 0; i < t.count; i++) {
		all += plain_waits(&t.waiters[i]);
		own += t.waiters[i].open && t.waiters[i].owner == w->owner;
	}
	if (t.owners[w->owner].closed)
		return XR_E_CLOSED;
	if (own >= limits.owner || all + plain_waits(w) > limits.waits)
		return XR_E_AGAIN;
	return bytes + more > limits.bytes ? XR_E_NOMEM : XR_OK;
}

static bool
plain_number(const char *text, int64_t *number)
{
	size_t sign = *text == '-';
	char *end;

	if (text[sign] == '\0' ||
		text[sign + strspn(text + sign, "0123456789")] != '\0')
		return false;
	*number = strtoll(text, &end, 10); /* 12 digits at most */
	return true;
}

/* --- operations ------------------------------------------------------------ */

static void
hear(const struct store_answer *a, void *ctx)
{
	HOLDS(a->owner == &t.owners[t.waiters[a->id].owner]);
	if (a->status == XR_OK)
		buf_fmt(&t.heard, "%" PRIu64 "=%.*s ", a->id,
			a->value == NULL ? 0 : (int)a->value->len,
			a->value == NULL ? "" : a->value->data);
	else
		buf_fmt(&t.heard, "%" PRIu64 "! ", a->id);
	HOLDS((a->status == XR_OK) == (a->key.at == NULL));
}

static struct span
key_of(int key)
{
	static char texts[KEYS][KEY_LEN + 1];

	if (texts[key][0] == '\0')
		snprintf(texts[key], sizeof(texts[key]), KEY_PREFIX "%c",
			'a' + key);
	return (struct span){ texts[key], KEY_LEN };
}

static const char *
text_of(const char *word)
{
	return strcmp(word, "-") == 0 ? "" : word;
}

static struct store_value *
value_of(const char *text)
{
	struct store_value *v = store_value_new(text, strlen(text));

	HOLDS(v != NULL);
	return v;
}

static void
is_value(const struct store_value *v, const char *text)
{
	HOLDS((v == NULL) == (text == NULL));
	if (v != NULL)
		HOLDS(v->len == strlen(text) &&
			memcmp(v->data, text, v->len) == 0);
}

static void
try_set(int key, const char *text)
{
	struct store_value *v = value_of(text);

	HOLDS(store_set(t.store, key_of(key), v, NULL) == plain_set(key, text));
	store_value_unref(v);
}

static void
try_wait(bool get, int owner, const int *keys, int n)
{
	struct plain *w = &t.waiters[t.count];
	struct store_ask ask = { &t.owners[owner], (uint64_t)t.count, NULL };
	struct store_value *v = NULL;
	struct span names[WORDS];
	enum xr_status want, status;

	*w = (struct plain){ .get = get, .owner = owner };
	want = plain_wait(w, keys, n);
	for (int i = 0; i < n; i++)
		names[i] = key_of(keys[i]);
	status = get ? store_get(t.store, names[0], &ask, &v, NULL) :
		       store_wait(t.store, names, (size_t)n, &ask, NULL);
	HOLDS(status == want);
	if (get && status == XR_OK)
		is_value(v, t.values[keys[0]]);
	store_value_unref(v);
	w->open = w->open && status == XR_OK;
	HOLDS(status != XR_OK || w->open == (ask.waiter != NULL));
	w->waiter = ask.waiter;
	t.count++;
}

static void
try_add(int key, int64_t by)
{
	int64_t now = 0, sum = 0;
	enum xr_status want = XR_OK;
	char text[32];

	if (t.values[key] != NULL && !plain_number(t.values[key], &now))
		want = XR_E_INVAL;
	snprintf(text, sizeof(text), "%" PRId64, now + by);
	if (want == XR_OK)
		want = plain_set(key, text);
	HOLDS(store_add(t.store, key_of(key), by, &sum, NULL) == want);
	HOLDS(want != XR_OK || sum == now + by);
}

static void
try_swap(int key, const char *expected, const char *desired)
{
	struct store_value *now = NULL;
	struct store_swap swap = {
		key_of(key),
		span_of(expected),
		value_of(desired),
	};
	const char *old = t.values[key] == NULL ? "" : t.values[key];
	enum xr_status want = XR_OK;

	if (strcmp(old, expected) == 0)
		want = plain_set(key, desired);
	HOLDS(store_compare_set(t.store, &swap, &now, NULL) == want);
	if (want == XR_OK)
		is_value(now, t.values[key]);
	store_value_unref(now);
	store_value_unref(swap.desired);
}

static void
try_delete(int key)
{
	HOLDS(store_delete(t.store, key_of(key)) == (t.values[key] != NULL));
	free(t.values[key]);
	t.values[key] = NULL;
}

static void
try_clear(int key, bool all)
{
	struct span prefix = all ? span_of("key") : key_of(key);
	size_t n = all ? plain_keys() : t.values[key] != NULL;

	HOLDS(store_count(t.store, prefix) == n);
	HOLDS(store_clear(t.store, prefix) == n);
	for (int k = 0; k < KEYS; k++)
		if (all || k == key) {
			free(t.values[k]);
			t.values[k] = NULL;
		}
}

/* The one that waits longest. */
static void
try_cancel(void)
{
	for (int i = 0; i < t.count; i++) {
		struct plain *w = &t.waiters[i];
		struct span key;

		if (!w->open)
			continue;
		key = store_waiter_key(w->waiter);
		HOLDS(key.len == KEY_LEN && w->missing[key.at[4] - 'a'] > 0);
		store_cancel(t.store, w->waiter);
		w->open = false;
		return;
	}
}

/* @owner, or all if it is -1. */
static void
try_close(int owner, bool word)
{
	for (int i = 0; i < t.count; i++) {
		struct plain *w = &t.waiters[i];

		if (!w->open || (owner != -1 && w->owner != owner))
			continue;
		w->open = false;
		if (word)
			buf_fmt(&t.want, "%d! ", i);
	}
	if (owner == -1)
		store_close(t.store);
	else if (word)
		store_owner_close(t.store, &t.owners[owner]);
	else
		store_owner_drop(t.store, &t.owners[owner]);
	for (int i = 0; i < OWNERS; i++)
		t.owners[i].closed |= owner == -1;
}

static void
operate(char what, char *const *words, int n)
{
	int keys[WORDS], owner = t.count % OWNERS;
	const char *text[3] = { "", "", "" };

	for (int i = 0; i < n; i++) {
		keys[i] = (unsigned char)words[i][0] % KEYS;
		if (i < 3)
			text[i] = text_of(words[i]);
	}
	if (n == 0)
		keys[0] = 0;
	switch (what) {
	case 's':
		try_set(keys[0], text[1]);
		break;
	case 'g':
		try_wait(true, owner, keys, 1);
		break;
	case 'w':
		try_wait(false, owner, keys, n);
		break;
	case 'a':
		try_add(keys[0], strtol(text[1], NULL, 10) % 1000000);
		break;
	case 'c':
		try_swap(keys[0], text[1], text[2]);
		break;
	case 'd':
		try_delete(keys[0]);
		break;
	case 'x':
		try_clear(keys[0], n == 0);
		break;
	case 'k':
		try_cancel();
		break;
	case 'o':
	case 'q':
		try_close(keys[0] % OWNERS, what == 'o');
		break;
	case 'e':
		try_close(-1, true);
		break;
	default:
		break;
	}
}

static void
check(void)
{
	HOLDS(store_bytes(t.store) == plain_bytes());
	HOLDS(store_count(t.store, span_of("")) == plain_keys());
	HOLDS(strcmp(buf_text(&t.heard), buf_text(&t.want)) == 0);
	for (int k = 0; k < KEYS; k++) {
		struct store_value *v = NULL;
		struct span key = key_of(k);

		store_get(t.store, key, NULL, &v, NULL);
		is_value(v, t.values[k]);
		store_value_unref(v);
		HOLDS(store_check(t.store, &key, 1) == (t.values[k] != NULL));
	}
}

static void
run_line(char *line)
{
	char *words[WORDS];
	int n = 0;
	char what = *line;

	line += strcspn(line, " ");
	while (n < WORDS && *(line += strspn(line, " ")) != '\0') {
		size_t len = strcspn(line, " ");

		words[n++] = line;
		line += len;
		if (*line != '\0')
			*line++ = '\0';
	}
	operate(what, words, n);
	check();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_lines lines = fuzz_lines(data, size, LINES_MAX);
	struct store_setup setup = {
		.limits = limits,
		.seed = { { size, 7 } },
		.answer = hear,
	};

	memset(&t, 0, sizeof(t));
	t.store = store_new(&setup);
	HOLDS(t.store != NULL);
	for (int i = 0; i < OWNERS; i++)
		store_owner_init(&t.owners[i], NULL);
	for (size_t i = 0; i < lines.n; i++)
		run_line(lines.at[i]);
	store_free(t.store);
	for (int k = 0; k < KEYS; k++)
		free(t.values[k]);
	buf_fini(&t.heard);
	buf_fini(&t.want);
	fuzz_lines_free(&lines);
	return 0;
}
