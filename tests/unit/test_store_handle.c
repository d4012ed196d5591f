/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_handle.c - what a handle of a store checks, and what it asks its driver
 * (worker/store/store.c); the test is the driver. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include <criterion/criterion.h>

#include <xrun/store.h>

#include "base/clock.h"
#include "base/status.h"
#include "tests/unit/noted.h"
#include "tests/unit/short_memory.h"
#include "worker/store/driver.h"
#include "worker/store/reach.h"

#define START (1000 * NS_PER_S)

static struct xr_error err;
static struct xr_store *store;
static int64_t now = START;
static struct store_reply answer; /* of the driver */
static enum xr_status opens;
static atomic_bool blocks, blocked, released;

int64_t __wrap_clock_now(void);

int64_t
__wrap_clock_now(void)
{
	return now;
}

/* --- the driver ------------------------------------------------------------ */

static void
note_time(const char *what, int64_t until)
{
	if (until == INT64_MAX)
		note("%s=never ", what);
	else
		note("%s=%lldms ", what,
			(long long)((until - now) / NS_PER_MS));
}

static void
driver_ask(struct driver *d, struct store_request *q, int64_t until,
	struct store_reply *r)
{
	(void)d;
	if (atomic_load(&blocks)) {
		atomic_store(&blocked, true);
		while (!atomic_load(&released))
			sched_yield();
		for (int i = 0; i < 1000; i++)
			sched_yield();
		note("asked ");
		*r = (struct store_reply){ .status = XR_E_CLOSED };
		return;
	}
	note("%d ", (int)q->op);
	if (q->key.at != NULL)
		note("%.*s ", (int)(q->key.len < 40 ? q->key.len : 40),
			q->key.at);
	for (size_t i = 0; i < q->count && i < 3; i++)
		note("[%.*s] ", (int)q->keys[i].len, q->keys[i].at);
	if (q->count > 0)
		note("n=%zu ", q->count);
	if (q->expected.len > 0)
		note("expected=%zu%c ", q->expected.len, q->expected.at[0]);
	if (q->value != NULL)
		note("value=%.*s ",
			(int)(q->value->len < 9 ? q->value->len : 9),
			q->value->data);
	if (q->number != 0)
		note("by=%lld ", (long long)q->number);
	if (q->patience != 0)
		note_time("patience",
			q->patience == INT64_MAX ? INT64_MAX :
						   now + q->patience);
	note_time("until", until);
	*r = answer;
	errno = EIO;
}

static void
driver_close(struct driver *d)
{
	(void)d;
	note("close ");
	atomic_store(&released, true);
	errno = EIO;
}

static void
driver_free(struct driver *d)
{
	(void)d;
	note("free ");
	errno = EIO;
}

static enum xr_status
open_one(const char *what, const struct store_address *address, int64_t until,
	struct driver **driver, struct xr_error *e)
{
	static const struct driver_ops ops = { driver_ask, driver_close,
		driver_free };
	static struct driver made = { &ops };

	note("%s-%" PRId64 "/%" PRId64 " ", what, address->rank, address->size);
	note_time("until", until);
	if (opens != XR_OK)
		return fail(e, opens, "not there");
	*driver = &made;
	return XR_OK;
}

enum xr_status __wrap_control_open(const struct store_address *address,
	int64_t until, struct driver **driver, struct xr_error *e);
enum xr_status __wrap_tcp_open(const struct store_address *address,
	int64_t until, struct driver **driver, struct xr_error *e);
enum xr_status __wrap_file_open(const struct store_address *address,
	struct file_owner *owner, int64_t until, struct driver **driver,
	struct xr_error *e);
enum xr_status __wrap_loopback_file_open(const struct store_address *address,
	int64_t until, struct driver **driver, struct xr_error *e);

enum xr_status
__wrap_control_open(const struct store_address *address, int64_t until,
	struct driver **driver, struct xr_error *e)
{
	return open_one("control", address, until, driver, e);
}

enum xr_status
__wrap_tcp_open(const struct store_address *address, int64_t until,
	struct driver **driver, struct xr_error *e)
{
	return open_one("tcp", address, until, driver, e);
}

enum xr_status
__wrap_file_open(const struct store_address *address, struct file_owner *owner,
	int64_t until, struct driver **driver, struct xr_error *e)
{
	cr_expect_null(owner);
	return open_one("file", address, until, driver, e);
}

enum xr_status
__wrap_loopback_file_open(const struct store_address *address, int64_t until,
	struct driver **driver, struct xr_error *e)
{
	return open_one("local", address, until, driver, e);
}

/* --- opening --------------------------------------------------------------- */

TestSuite(store_handle, .timeout = 60);

static enum xr_status
open_it(const char *address, const struct xr_store_options *o)
{
	done[0] = '\0';
	err = (struct xr_error){ 0 };
	store = NULL;
	return xr_store_open(address, o, &store, &err);
}

/* With a prefix of one byte, and a timeout of 5 s. */
static void
begin(void)
{
	struct xr_store_options o = XR_STORE_OPTIONS;

	o.prefix = "p";
	o.timeout = XR_SECONDS(5);
	cr_assert_eq(open_it("file:///f?rank=1&world_size=2", &o), XR_OK);
	done[0] = '\0';
}

static void
end(void)
{
	if (store != NULL)
		xr_store_free(store);
}

TestSuite(store_asks, .init = begin, .fini = end, .timeout = 60);

Test(store_handle, each_address_has_its_driver)
{
	static const struct {
		const char *address, *done, *host;
		bool open, job;
	} rows[] = {
		{ "control:/run/x", "control--1/-1 until=60000ms ", NULL, false,
			false },
		{ "tcp://h:1?rank=1&world_size=2", "tcp-1/2 until=60000ms ",
			"h", false, false },
		{ "tcp://h:1?rank=1&world_size=2&auth=none",
			"tcp-1/2 until=60000ms ", "h", true, false },
		{ "file:///f?rank=1&world_size=2", "file-1/2 until=60000ms ",
			NULL, false, false },
		{ "env://", "local-1/2 until=60000ms ", NULL, false, false },
	};

	unsetenv("XRUN_STORE");
	setenv("MASTER_ADDR", "localhost", 1);
	setenv("MASTER_PORT", "7", 1);
	setenv("RANK", "1", 1);
	setenv("WORLD_SIZE", "2", 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_assert_eq(open_it(rows[i].address, NULL), XR_OK, "%s",
			err.text);
		cr_expect_str_eq(done, rows[i].done);
		if (rows[i].host == NULL)
			cr_expect_null(store_host(store));
		else
			cr_expect_str_eq(store_host(store), rows[i].host);
		cr_expect_eq(store_is_open(store), rows[i].open, "%zu", i);
		cr_expect_eq(store_is_jobs(store), rows[i].job, "%zu", i);
		done[0] = '\0';
		errno = ENOTTY;
		xr_store_free(store);
		cr_expect_eq(errno, ENOTTY);
		cr_expect_str_eq(done, "close free ");
	}
	xr_store_free(NULL);
	xr_store_close(NULL);
}

Test(store_handle, the_jobs_own_store_has_no_prefix)
{
	struct xr_store_options o = XR_STORE_OPTIONS;

	setenv("XRUN_STORE", "control:", 1);
	setenv("XRUN_RANK", "3", 1);
	setenv("XRUN_SIZE", "4", 1);
	cr_assert_eq(open_it("env://", &o), XR_OK, "%s", err.text);
	cr_expect_str_eq(done, "control-3/4 until=60000ms ");
	cr_expect(store_is_jobs(store));
	cr_expect_eq(xr_store_rank(store), 3);
	cr_expect_eq(xr_store_size(store), 4);
	xr_store_free(store);
	o.prefix = "x";
	cr_assert_eq(open_it("env://", &o), XR_OK, "%s", err.text);
	cr_expect_not(store_is_jobs(store));
	xr_store_free(store);
}

Test(store_handle, options_are_checked)
{
	static char prefix[STORE_KEY_MAX];
	struct xr_store_options o = XR_STORE_OPTIONS;
	char words[64];

	o.size--;
	cr_expect_eq(open_it("env://", &o), XR_E_INVAL);
	cr_expect_str_eq(err.text, "store: options without their size");
	o.size += 2; /* of a newer version */
	o.timeout = -2;
	cr_expect_eq(open_it("file:///f", &o), XR_E_INVAL);
	cr_expect_str_eq(err.text,
		"timeout: -2 ns is negative and not XR_TIMEOUT_DEFAULT");
	o.timeout = 0;
	o.rank = 5;
	o.dynamic = true;
	cr_expect_eq(open_it("file:///f", &o), XR_OK, "%s", err.text);
	cr_expect_str_eq(done, "file-5/-1 until=60000ms ");
	xr_store_free(store);
	o.timeout = XR_TIMEOUT_NEVER;
	cr_expect_eq(open_it("file:///f", &o), XR_OK, "%s", err.text);
	cr_expect_str_eq(done, "file-5/-1 until=never ");
	xr_store_free(store);
	memset(prefix, 'p', STORE_KEY_MAX / 2);
	o.prefix = prefix;
	cr_expect_eq(open_it("file:///f", &o), XR_OK, "%s", err.text);
	xr_store_free(store);
	prefix[STORE_KEY_MAX / 2] = 'p';
	cr_expect_eq(open_it("file:///f", &o), XR_E_RANGE);
	snprintf(words, sizeof(words),
		"store: a prefix of %d bytes, at most %d",
		STORE_KEY_MAX / 2 + 1, STORE_KEY_MAX / 2);
	cr_expect_str_eq(err.text, words);
	o.prefix = "a/b";
	cr_expect_eq(open_it("file:///f", &o), XR_E_INVAL);
	cr_expect_str_eq(err.text,
		"store: the prefix 'a/b' has a / or is no UTF-8");
	o.prefix = "\xff";
	cr_expect_eq(open_it("file:///f", &o), XR_E_INVAL);
	cr_expect_str_eq(done, "");
	o.prefix = "";
	opens = XR_E_TIMEOUT;
	cr_expect_eq(open_it("file:///f", &o), XR_E_TIMEOUT);
	cr_expect_str_eq(err.text, "not there");
	cr_expect_null(store);
	cr_expect_eq(xr_store_open("file:///f", &o, &store, NULL),
		XR_E_TIMEOUT);
	cr_expect_eq(open_it("nothing:", &o), XR_E_NOTFOUND);
	opens = XR_OK;
	for (unsigned n = 1; n <= 2; n++) {
		until_short = n;
		cr_expect_eq(open_it("file:///f", &o), XR_E_NOMEM);
		cr_expect_str_eq(err.text, "store: out of memory");
		cr_expect_str_eq(done, "");
	}
	until_short = 0;
}

/* --- asking ---------------------------------------------------------------- */

/* The driver was asked this, or nothing. */
static void
expect_asked(const char *what)
{
	cr_expect_str_eq(done, what);
	done[0] = '\0';
}

Test(store_asks, each_request_goes_to_the_driver)
{
	struct xr_store_value v = { 0 };

	errno = ENOTTY;
	cr_expect_eq(xr_store_set(store, "k", "value", 5, &err), XR_OK);
	cr_expect_eq(errno, ENOTTY);
	expect_asked("1 p/k value=value until=6000ms ");
	cr_expect_eq(xr_store_set(store, "", NULL, 0, &err), XR_OK);
	expect_asked("1 p/ value= until=6000ms ");
	answer.value = store_value_new("got", 3);
	cr_expect_eq(xr_store_get(store, "k", XR_SECONDS(2), &v, &err), XR_OK);
	cr_expect_str_eq(v.data, "got");
	cr_expect_eq(v.len, 3);
	xr_store_value_free(&v);
	cr_expect_null(v.data);
	cr_expect_eq(v.len, 0);
	cr_expect_null(v.own);
	xr_store_value_free(&v);
	xr_store_value_free(NULL);
	expect_asked("2 p/k patience=2000ms until=3000ms ");
	answer.value = NULL;
	cr_expect_eq(xr_store_get(store, "k", XR_TIMEOUT_NEVER, &v, &err),
		XR_E_PROTO);
	cr_expect_str_eq(err.text, "store: a get without a value");
	expect_asked("2 p/k patience=never until=never ");
	xr_store_get(store, "k", 0, &v, &err);
	expect_asked("2 p/k until=1000ms ");
	xr_store_get(store, "k", XR_TIMEOUT_DEFAULT, &v, &err);
	expect_asked("2 p/k patience=5000ms until=6000ms ");
	cr_expect_eq(xr_store_get(store, "k", -3, &v, &err), XR_E_INVAL);
}

Test(store_asks, each_other_request_goes_to_the_driver_too)
{
	const char *keys[] = { "a", "bc", "" };
	struct xr_store_swap swap = { sizeof(swap), "k", "old", 3, "new", 3 };
	struct xr_store_value v = { 0 };
	bool there = false;
	int64_t sum = 0;

	answer.number = -7;
	cr_expect_eq(xr_store_add(store, "n", 9, &sum, &err), XR_OK);
	cr_expect_eq(sum, -7);
	cr_expect_eq(xr_store_add(store, "n", 9, NULL, &err), XR_OK);
	done[strlen(done) / 2] = '\0';
	expect_asked("3 p/n by=9 until=6000ms ");
	answer.value = store_value_new("new", 3);
	cr_expect_eq(xr_store_compare_set(store, &swap, &v, &there, &err),
		XR_OK);
	cr_expect(there);
	cr_expect_str_eq(v.data, "new");
	xr_store_value_free(&v);
	expect_asked("4 p/k expected=3o value=new until=6000ms ");
	answer.value = NULL;
	cr_expect_eq(xr_store_compare_set(store, &swap, &v, &there, &err),
		XR_OK);
	cr_expect_not(there);
	cr_expect_null(v.data);
	done[0] = '\0';
	cr_expect_eq(xr_store_wait(store, keys, 3, XR_SECONDS(2), &err), XR_OK);
	expect_asked("5 [p/a] [p/bc] [p/] n=3 patience=2000ms until=3000ms ");
	cr_expect_eq(xr_store_wait(store, keys, 3, -3, &err), XR_E_INVAL);
	expect_asked("");
	answer.number = 2;
	cr_expect_eq(xr_store_check(store, keys, 2, &there, &err), XR_OK);
	cr_expect(there);
	expect_asked("6 [p/a] [p/bc] n=2 until=6000ms ");
	cr_expect_eq(xr_store_check(store, keys, 3, &there, &err), XR_OK);
	cr_expect_not(there);
	done[0] = '\0';
	answer.number = 1;
	cr_expect_eq(xr_store_delete(store, "k", &there, &err), XR_OK);
	cr_expect(there);
	expect_asked("7 p/k until=6000ms ");
	answer.number = 0;
	cr_expect_eq(xr_store_delete(store, "k", &there, &err), XR_OK);
	cr_expect_not(there);
	cr_expect_eq(xr_store_delete(store, "k", NULL, &err), XR_OK);
}

Test(store_asks, what_the_driver_says_is_what_the_caller_hears)
{
	bool there = true;
	int64_t sum = 5;

	answer.number = 1;
	answer.status = XR_E_RANGE;
	answer.err.sys = 3;
	snprintf(answer.err.text, sizeof(answer.err.text), "too much");
	cr_expect_eq(xr_store_add(store, "n", 1, &sum, &err), XR_E_RANGE);
	cr_expect_eq(sum, 5);
	cr_expect_eq(err.status, XR_E_RANGE);
	cr_expect_eq(err.sys, 3);
	cr_expect_str_eq(err.text, "too much");
	cr_expect_eq(xr_store_add(store, "n", 1, &sum, NULL), XR_E_RANGE);
	cr_expect_eq(xr_store_delete(store, "n", &there, &err), XR_E_RANGE);
	cr_expect(there);
	there = false;
	cr_expect_eq(xr_store_check(store, NULL, 0, &there, &err), XR_E_RANGE);
	cr_expect_not(there);
}

Test(store_asks, keys_are_checked)
{
	static char key[STORE_KEY_MAX];
	static const char *many[XR_STORE_KEYS_MAX + 1];
	const char *keys[] = { "a", NULL }, *odd[] = { "a", "\xc3" };
	char words[160];

	cr_expect_eq(xr_store_add(store, NULL, 1, NULL, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "store: a key is no UTF-8");
	cr_expect_eq(xr_store_add(store, "a\xc3", 1, NULL, &err), XR_E_INVAL);
	cr_expect_eq(xr_store_wait(store, keys, 2, 0, &err), XR_E_INVAL);
	cr_expect_eq(xr_store_wait(store, odd, 2, 0, &err), XR_E_INVAL);
	expect_asked("");
	/* With its prefix it has as many bytes as a key may have. */
	memset(key, 'k', STORE_KEY_MAX - 2);
	cr_expect_eq(xr_store_add(store, key, 1, NULL, &err), XR_OK);
	done[0] = '\0';
	key[STORE_KEY_MAX - 2] = 'k';
	cr_expect_eq(xr_store_add(store, key, 1, NULL, &err), XR_E_RANGE);
	snprintf(words, sizeof(words),
		"store: the key '%.60s...' has %d bytes, at most %d", key,
		STORE_KEY_MAX - 1, STORE_KEY_MAX - 2);
	cr_expect_str_eq(err.text, words);
	expect_asked("");
	for (int i = 0; i <= XR_STORE_KEYS_MAX; i++)
		many[i] = "m";
	cr_expect_eq(xr_store_wait(store, many, XR_STORE_KEYS_MAX + 1, 0, &err),
		XR_E_RANGE);
	cr_expect_str_eq(err.text, "store: 1025 keys at once, at most 1024");
	expect_asked("");
	cr_expect_eq(xr_store_wait(store, many, XR_STORE_KEYS_MAX, 0, &err),
		XR_OK);
	expect_asked("5 [p/m] [p/m] [p/m] n=1024 until=1000ms ");
	cr_expect_eq(xr_store_wait(store, NULL, 0, 0, &err), XR_OK);
	expect_asked("5 until=1000ms ");
}

Test(store_asks, values_are_checked)
{
	static char bytes[XR_STORE_EXPECTED_MAX + 1];
	struct xr_store_swap swap = { sizeof(swap), "k", bytes, sizeof(bytes),
		"new", 3 };

	cr_expect_eq(xr_store_set(store, "k", NULL, 1, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "store: a value without data");
	cr_expect_eq(xr_store_set(store, "k", bytes, STORE_VALUE_MAX + 1, &err),
		XR_E_RANGE);
	cr_expect_str_eq(err.text,
		"store: a value of 67108865 bytes, at most 67108864");
	bytes[0] = 'b';
	most_asked = 0;
	until_short = 1; /* the longest is asked for */
	cr_expect_eq(xr_store_set(store, "k", bytes, STORE_VALUE_MAX, &err),
		XR_E_NOMEM);
	cr_expect_gt(most_asked, STORE_VALUE_MAX);
	until_short = 0;
	cr_expect_eq(xr_store_compare_set(store, &swap, NULL, NULL, &err),
		XR_E_RANGE);
	cr_expect_str_eq(err.text,
		"store: 32769 bytes are expected, at most 32768");
	swap.expected_len--;
	expect_asked("");
	cr_expect_eq(xr_store_compare_set(store, &swap, NULL, NULL, &err),
		XR_OK);
	expect_asked("4 p/k expected=32768b value=new until=6000ms ");
	swap.expected = NULL;
	cr_expect_eq(xr_store_compare_set(store, &swap, NULL, NULL, &err),
		XR_E_INVAL);
	cr_expect_str_eq(err.text, "store: a swap without its parts");
	swap.expected_len = 0;
	cr_expect_eq(xr_store_compare_set(store, &swap, NULL, NULL, &err),
		XR_OK);
	expect_asked("4 p/k value=new until=6000ms ");
	swap.size--;
	cr_expect_eq(xr_store_compare_set(store, &swap, NULL, NULL, &err),
		XR_E_INVAL);
	cr_expect_eq(xr_store_compare_set(store, NULL, NULL, NULL, &err),
		XR_E_INVAL);
	swap.size++;
	swap.desired = NULL;
	cr_expect_eq(xr_store_compare_set(store, &swap, NULL, NULL, &err),
		XR_E_INVAL);
	cr_expect_str_eq(err.text, "store: a value without data");
	expect_asked("");
}

Test(store_asks, a_request_without_memory_is_not_made)
{
	const char *keys[] = { "a" };
	bool there;

	for (unsigned n = 1; n <= 2; n++) {
		until_short = n;
		cr_expect_eq(xr_store_check(store, keys, 1, &there, &err),
			XR_E_NOMEM);
		cr_expect_str_eq(err.text, "store: out of memory");
		until_short = 0;
	}
	until_short = 1;
	cr_expect_eq(xr_store_set(store, "k", "v", 1, &err), XR_E_NOMEM);
	until_short = 0;
	expect_asked("");
}

/* --- closing --------------------------------------------------------------- */

Test(store_asks, a_handle_that_was_closed_asks_nothing)
{
	errno = ENOTTY;
	xr_store_close(store);
	cr_expect_eq(errno, ENOTTY);
	expect_asked("close ");
	cr_expect_eq(xr_store_add(store, "n", 1, NULL, &err), XR_E_CLOSED);
	cr_expect_str_eq(err.text, "store: this handle was closed");
	expect_asked("");
}

Test(store_asks, a_child_has_no_handle)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		xr_store_close(store);
		xr_store_free(store);
		_exit(xr_store_add(store, "n", 1, NULL, &err) != XR_E_STATE ||
			strcmp(err.text,
				"store: this process was forked: open a store of its own") !=
				0 ||
			done[0] != '\0');
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
}

static void *
ask_long(void *ctx)
{
	(void)ctx;
	cr_expect_eq(xr_store_add(store, "n", 1, NULL, NULL), XR_E_CLOSED);
	return NULL;
}

Test(store_asks, freeing_waits_for_who_is_asking)
{
	pthread_t thread;

	atomic_store(&blocks, true);
	cr_assert_eq(pthread_create(&thread, NULL, ask_long, NULL), 0);
	while (!atomic_load(&blocked))
		sched_yield();
	xr_store_free(store);
	cr_expect_str_eq(done, "close asked free ");
	pthread_join(thread, NULL);
	store = NULL;
}
