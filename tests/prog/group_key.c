/* SPDX-License-Identifier: Apache-2.0 */
/* group_key.c - cases of group.c: members, values and services. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/prog/group_case.h"
#include "tests/prog/late.h"

/* --- members ------------------------------------------------------------------- */

static void
call_member(void)
{
	struct xr_rpc_call call = XR_RPC_CALL;
	struct xr_future *future = NULL;
	struct xr_rref *rref = NULL;
	struct xr_value *v = NULL;

	call.to = "1";
	call.func = "add";
	call.args = list_of(1, 2);
	EXPECT(xr_group_sync(all, &call, &v, &err) == XR_OK);
	EXPECT(number_of(v) == 3);
	EXPECT(xr_group_async(all, &call, &future, &err) == XR_OK);
	EXPECT(xr_future_wait(future, XR_SECONDS(20), &v, &err) == XR_OK);
	EXPECT(number_of(v) == 3);
	EXPECT(xr_group_remote(all, &call, &rref, &err) == XR_OK);
	EXPECT(xr_rref_fetch(rref, XR_SECONDS(20), &v, &err) == XR_OK);
	EXPECT(number_of(v) == 3);
	call.to = NULL;
	call.id = 1;
	EXPECT(xr_group_sync(all, &call, &v, &err) == XR_OK);
	EXPECT(number_of(v) == 3);
	xr_value_unref(call.args);
	xr_future_unref(future);
	xr_rref_unref(rref);
}

static void
call_outsider(void)
{
	static const char *const some[] = { "0", "1" };
	struct xr_rpc_call call = XR_RPC_CALL;
	struct xr_future *future = NULL;
	struct xr_rref *rref = NULL;
	struct xr_group *g = NULL;
	int64_t sent;

	if (rank == 2) {
		meet_all();
		return;
	}
	EXPECT(make_group("some", some, 2, &g) == XR_OK);
	call.func = "add";
	call.args = list_of(1, 2);
	sent = bytes_out();
	for (int i = 0; i < 2; i++) {
		call.to = i == 0 ? "2" : NULL;
		call.id = 2;
		EXPECT(xr_group_sync(g, &call, NULL, &err) == XR_E_NOTMEMBER);
		EXPECT(xr_group_async(g, &call, &future, &err) ==
			XR_E_NOTMEMBER);
		EXPECT(xr_group_remote(g, &call, &rref, &err) ==
			XR_E_NOTMEMBER);
	}
	EXPECT(bytes_out() == sent);
	printf("rank %u: %s\n", rank, err.text);
	xr_value_unref(call.args);
	meet_all();
	xr_group_free(g);
}

/* --- values ------------------------------------------------------------------------ */

static bool
is_paired(const char *key)
{
	bool is = false;

	EXPECT(xr_group_is_paired(all, key, &is, &err) == XR_OK);
	return is;
}

static bool
is_registered(const char *key)
{
	bool is = false;

	EXPECT(xr_group_is_registered(all, key, &is, &err) == XR_OK);
	return is;
}

static enum xr_status
pair(const char *key, int64_t number)
{
	struct xr_value *v = xr_value_new_i64(number);
	enum xr_status status = xr_group_pair(all, key, v, &err);

	xr_value_unref(v);
	return status;
}

static enum xr_status
read_paired(struct xr_group *g, const char *key, int64_t *number)
{
	struct xr_rref *rref = NULL;
	struct xr_value *v = NULL;
	enum xr_status status = xr_group_get_paired(g, key, &rref, &err);

	if (status != XR_OK)
		return status;
	status = xr_rref_fetch(rref, XR_SECONDS(20), &v, &err);
	xr_rref_unref(rref);
	if (status == XR_OK)
		*number = number_of(v);
	return status;
}

static void
pair_twice(void)
{
	if (rank == 1) {
		EXPECT(pair("k", 1) == XR_OK);
		EXPECT(pair("k", 2) == XR_E_EXISTS);
	}
	meet_all();
	EXPECT(pair("k", 3) == XR_E_EXISTS);
	printf("rank %u: %s\n", rank, err.text);
	meet_all();
	EXPECT(pair("", 3) == XR_E_INVAL);
	EXPECT(pair("\xff", 3) == XR_E_INVAL);
}

static void
unpair(void)
{
	if (rank == 1)
		EXPECT(pair("k", 1) == XR_OK);
	meet_all();
	if (rank != 1) {
		EXPECT(xr_group_unpair(all, "k", &err) == XR_E_NOTFOUND);
		printf("rank %u: %s\n", rank, err.text);
	}
	EXPECT(is_paired("k"));
	meet_all();
	if (rank == 1) {
		EXPECT(xr_group_unpair(all, "k", &err) == XR_OK);
		EXPECT(xr_group_unpair(all, "k", &err) == XR_E_NOTFOUND);
	}
	meet_all();
	EXPECT(!is_paired("k"));
	meet_all();
	if (rank == 2)
		EXPECT(pair("k", 5) == XR_OK);
	meet_all();
	EXPECT(is_paired("k"));
	meet_all();
}

static void
unknown_key(void)
{
	struct xr_rref *rref = NULL;

	EXPECT(xr_group_get_paired(all, "nothing", &rref, &err) ==
		XR_E_NOTFOUND);
	EXPECT(rref == NULL);
	printf("rank %u: %s\n", rank, err.text);
}

static void
paired_counter(void)
{
	int64_t n = 0;

	if (rank == 0)
		EXPECT(pair("counter", 20) == XR_OK);
	meet_all();
	EXPECT(read_paired(all, "counter", &n) == XR_OK && n == 20);
	meet_all();
}

/* --- services ------------------------------------------------------------------------ */

static _Atomic int64_t counter = 20;

static enum xr_status
count(struct xr_call *call, struct xr_value *args, void *ctx)
{
	_Atomic int64_t *at = ctx;

	(void)args;
	return xr_reply(call, xr_value_new_i64(atomic_fetch_add(at, 1) + 1));
}

static enum xr_status
fails(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	return xr_reply_fail(call, XR_E_RANGE, "that is too much");
}

/* Answers nobody, until its caller has lost patience. */
static enum xr_status
waits(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	for (int i = 0; i < 2000 && !xr_call_cancelled(call); i++)
		usleep(1000);
	return XR_OK;
}

static enum xr_status
serve_as(struct xr_group *g, const char *key, xr_func_fn *fn, uint32_t flags)
{
	return xr_group_register(g,
		&(struct xr_group_service){
			.size = sizeof(struct xr_group_service),
			.key = key,
			.fn = fn,
			.ctx = &counter,
			.flags = flags },
		&err);
}

static enum xr_status
serve(struct xr_group *g, const char *key, xr_func_fn *fn)
{
	return serve_as(g, key, fn, 0);
}

#define CALL(k, t) \
	(&(struct xr_group_call){ .size = sizeof(struct xr_group_call), \
		.key = (k), \
		.timeout = (t) })

static void
service_counter(void)
{
	struct xr_future *future = NULL;
	struct xr_rref *rref = NULL;
	struct xr_value *v = NULL;

	if (rank == 0)
		EXPECT(serve(all, "count", count) == XR_OK);
	meet_all();
	if (rank == 1) {
		EXPECT(xr_group_call_sync(all, CALL("count", -1), &v, &err) ==
			XR_OK);
		EXPECT(number_of(v) == 21);
		EXPECT(xr_group_call_async(all, CALL("count", -1), &future,
			       &err) == XR_OK);
		EXPECT(xr_future_wait(future, XR_SECONDS(20), &v, &err) ==
			XR_OK);
		EXPECT(number_of(v) == 22);
		EXPECT(xr_group_call_remote(all, CALL("count", -1), &rref,
			       &err) == XR_OK);
		EXPECT(xr_rref_fetch(rref, XR_SECONDS(20), &v, &err) == XR_OK);
		EXPECT(number_of(v) == 23);
		xr_future_unref(future);
		xr_rref_unref(rref);
	}
	meet_all();
	EXPECT(rank != 0 || counter == 23);
}

/* With what another service will answer. */
static enum xr_status
later(struct xr_call *call, struct xr_value *args, void *ctx)
{
	struct xr_future *future = NULL;
	struct xr_error own = { 0 };

	(void)args;
	(void)ctx;
	EXPECT(xr_group_call_async(all, CALL("count", -1), &future, &own) ==
		XR_OK);
	return xr_reply_future(call, future);
}

static void
expect_refused(const char *key, const char *why)
{
	EXPECT(xr_group_call_sync(all, CALL(key, -1), NULL, &err) ==
		XR_E_REMOTE);
	EXPECT(strstr(err.text, why) != NULL);
}

static void
service_later(void)
{
	struct xr_future *future = NULL;
	struct xr_rref *rref = NULL;
	struct xr_value *v = NULL;

	if (rank == 0) {
		EXPECT(serve_as(all, "later", later, XR_FN_ASYNC) == XR_OK);
		EXPECT(serve_as(all, "no promise", later, 0) == XR_OK);
		EXPECT(serve_as(all, "broken", count, XR_FN_ASYNC) == XR_OK);
		EXPECT(serve_as(all, "short", count, XR_FN_SHORT) ==
			XR_E_INVAL);
	} else if (rank == 1) {
		EXPECT(serve(all, "count", count) == XR_OK);
	}
	meet_all();
	if (rank == 2) {
		EXPECT(xr_group_call_sync(all, CALL("later", -1), &v, &err) ==
			XR_OK);
		EXPECT(number_of(v) == 21);
		EXPECT(xr_group_call_async(all, CALL("later", -1), &future,
			       &err) == XR_OK);
		EXPECT(xr_future_wait(future, XR_SECONDS(20), &v, &err) ==
			XR_OK);
		EXPECT(number_of(v) == 22);
		EXPECT(xr_group_call_remote(all, CALL("later", -1), &rref,
			       &err) == XR_OK);
		EXPECT(xr_rref_fetch(rref, XR_SECONDS(20), &v, &err) == XR_OK);
		EXPECT(number_of(v) == 23);
		xr_future_unref(future);
		xr_rref_unref(rref);
		expect_refused("no promise",
			"is not marked XR_FN_ASYNC, and answered with a future");
		expect_refused("broken", "must answer with a future");
	}
	meet_all();
}

static void
value_and_service(void)
{
	struct xr_value *v = NULL;
	int64_t n = 0;

	if (rank == 0)
		EXPECT(pair("both", 7) == XR_OK);
	meet_all();
	EXPECT(is_paired("both") && !is_registered("both"));
	meet_all();
	if (rank == 1)
		EXPECT(serve(all, "both", count) == XR_OK);
	meet_all();
	EXPECT(read_paired(all, "both", &n) == XR_OK && n == 7);
	EXPECT(xr_group_call_sync(all, CALL("both", -1), &v, &err) == XR_OK);
	EXPECT(number_of(v) > 20);
	meet_all();
	if (rank == 0)
		EXPECT(xr_group_unpair(all, "both", &err) == XR_OK);
	meet_all();
	EXPECT(!is_paired("both") && is_registered("both"));
	meet_all();
}

/* A group of 0 and 1, which 2 has as a value. */
static struct xr_group *
group_of_two(const char *name)
{
	static const char *const some[] = { "0", "1" };
	struct xr_value *own, *dict = NULL;
	struct xr_group *g = NULL;

	if (rank != 2)
		EXPECT(make_group(name, some, 2, &g) == XR_OK);
	own = g != NULL ? xr_group_value(g) : xr_value_new_nil();
	EXPECT(xr_rpc_allgather(NULL, own, &dict, &err) == XR_OK);
	if (rank == 2)
		EXPECT(xr_group_of_value(xr_value_find(dict, "0", 1), &g,
			       &err) == XR_OK);
	xr_value_unref(own);
	xr_value_unref(dict);
	return g;
}

static void
outside_caller(void)
{
	struct xr_group *g = group_of_two("two");
	struct xr_value *v = NULL;

	if (rank == 0)
		EXPECT(serve(g, "count", count) == XR_OK);
	meet_all();
	if (rank == 2) {
		EXPECT(xr_group_call_sync(g, CALL("count", -1), &v, &err) ==
			XR_OK);
		EXPECT(number_of(v) == 21);
		EXPECT(serve(g, "mine", count) == XR_E_NOTMEMBER);
		printf("rank 2: %s\n", err.text);
		EXPECT(xr_group_deregister(g, "count", &err) == XR_E_NOTMEMBER);
	}
	meet_all();
	xr_group_free(g);
}

static void
group_by_value(void)
{
	struct xr_group *g = group_of_two("sent");
	struct xr_rpc_call call = XR_RPC_CALL;
	struct xr_value *v = xr_value_new_i64(rank + 40);
	const char *name[2] = { 0 };
	int64_t n = 0;

	if (rank == 1)
		EXPECT(xr_group_pair(g, "forty-one", v, &err) == XR_OK);
	meet_all();
	EXPECT(strcmp(xr_group_name(g), "sent") == 0);
	EXPECT(xr_group_size(g) == 2 && xr_group_members(g, name, 2) == 2);
	EXPECT(name[0][0] == '0' && name[1][0] == '1');
	EXPECT(xr_group_is_member(g, NULL) == (rank != 2));
	EXPECT(read_paired(g, "forty-one", &n) == XR_OK && n == 41);
	if (rank == 2) {
		EXPECT(xr_group_pair(g, "x", v, &err) == XR_E_NOTMEMBER);
		EXPECT(xr_group_barrier(g, XR_TIMEOUT_DEFAULT, &err) ==
			XR_E_NOTMEMBER);
		EXPECT(xr_group_of_value(v, &g, &err) == XR_E_SCHEMA);
		xr_value_unref(v);
		call.to = "1";
		call.func = "add";
		call.args = list_of(1, 2);
		EXPECT(xr_group_sync(g, &call, &v, &err) == XR_OK);
		xr_value_unref(call.args);
		EXPECT(number_of(xr_value_ref(v)) == 3);
	}
	xr_value_unref(v);
	meet_all();
	xr_group_free(g);
}

/* Where it was, all know; then it is nowhere, then with another. */
static void
stale_location(void)
{
	struct xr_future *future = NULL;
	struct xr_value *v = NULL;

	if (rank == 0)
		EXPECT(serve(all, "moves", count) == XR_OK);
	EXPECT(rank != 1 || pair("moves", 1) == XR_OK);
	meet_all();
	EXPECT(xr_group_call_sync(all, CALL("moves", -1), NULL, &err) == XR_OK);
	meet_all();
	if (rank == 0)
		EXPECT(xr_group_deregister(all, "moves", &err) == XR_OK);
	meet_all();
	EXPECT(xr_group_call_sync(all, CALL("moves", -1), NULL, &err) ==
		XR_E_NOTFOUND);
	EXPECT(!is_registered("moves") && is_paired("moves"));
	printf("rank %u: %s\n", rank, err.text);
	meet_all();
	if (rank == 2)
		EXPECT(serve(all, "moves", count) == XR_OK);
	meet_all();
	EXPECT(xr_group_call_sync(all, CALL("moves", -1), NULL, &err) == XR_OK);
	meet_all();
	if (rank == 2)
		EXPECT(xr_group_deregister(all, "moves", &err) == XR_OK);
	meet_all();
	if (rank == 0)
		EXPECT(serve(all, "moves", count) == XR_OK);
	meet_all();
	/* All know that it is with 2, which is not so. */
	EXPECT(xr_group_call_async(all, CALL("moves", -1), &future, &err) ==
		XR_OK);
	EXPECT(xr_future_wait(future, XR_SECONDS(20), &v, &err) == XR_OK);
	EXPECT(number_of(v) > 20);
	xr_future_unref(future);
	meet_all();
}

static void
service_fails(void)
{
	struct xr_failure f = { .size = sizeof(f) };
	struct xr_future *future = NULL;
	struct xr_value *error;

	if (rank == 1)
		EXPECT(serve(all, "fails", fails) == XR_OK);
	meet_all();
	EXPECT(xr_group_call_sync(all, CALL("fails", -1), NULL, &err) ==
		XR_E_REMOTE);
	printf("rank %u: %s\n", rank, err.text);
	EXPECT(xr_group_call_async(all, CALL("fails", -1), &future, &err) ==
		XR_OK);
	EXPECT(xr_future_wait(future, XR_SECONDS(20), NULL, &err) ==
		XR_E_REMOTE);
	error = xr_future_error(future);
	EXPECT(xr_value_failure(error, &f) == XR_OK);
	EXPECT(f.status == XR_E_REMOTE && f.cause != NULL);
	EXPECT(xr_value_failure(f.cause, &f) == XR_OK);
	EXPECT(f.status == XR_E_RANGE);
	EXPECT(strcmp(f.text, "that is too much") == 0);
	xr_value_unref(error);
	xr_future_unref(future);
	meet_all();
}

static void
call_timeout(void)
{
	struct late late;

	if (rank == 1)
		EXPECT(serve(all, "waits", waits) == XR_OK);
	meet_all();
	late_begin(&late);
	EXPECT(xr_group_call_sync(all, CALL("waits", XR_SECONDS(0.2)), NULL,
		       &err) == XR_E_TIMEOUT);
	EXPECT(late_end(&late) < XR_SECONDS(1.5));
	printf("rank %u: %s\n", rank, err.text);
	meet_all();
}

/* --- who wins, who dies --------------------------------------------------------------- */

static _Atomic int won;

static void *
pair_one(void *key)
{
	struct xr_error why = { 0 };
	struct xr_value *v = xr_value_new_i64(rank);
	enum xr_status status = xr_group_pair(all, key, v, &why);

	EXPECT(status == XR_OK || status == XR_E_EXISTS);
	atomic_fetch_add(&won, status == XR_OK);
	xr_value_unref(v);
	return NULL;
}

static void
one_wins(void)
{
	struct xr_value *own, *dict = NULL;
	int64_t sum = 0;
	char key[16];

	for (int i = 0; i < 50; i++) {
		pthread_t thread[2];

		snprintf(key, sizeof(key), "key%d", i);
		meet_all();
		for (int t = 0; t < 2; t++)
			EXPECT(pthread_create(&thread[t], NULL, pair_one,
				       key) == 0);
		for (int t = 0; t < 2; t++)
			pthread_join(thread[t], NULL);
	}
	own = xr_value_new_i64(won);
	EXPECT(xr_rpc_allgather(NULL, own, &dict, &err) == XR_OK);
	xr_value_unref(own);
	for (size_t i = 0; i < size; i++)
		sum += number_of(xr_value_ref(xr_value_at(dict, i)));
	xr_value_unref(dict);
	EXPECT(sum == 50);
}

static void
holder_dies(void)
{
	static const char *const names[] = { "0", "2" };
	const struct xr_rpc_meeting left = { .size = sizeof(left),
		.names = names,
		.count = 2,
		.timeout = XR_SECONDS(20) };
	enum xr_status status = XR_OK;
	int64_t begun, n = 0;

	if (rank == 1) {
		EXPECT(pair("value", 1) == XR_OK);
		EXPECT(serve(all, "waits", waits) == XR_OK);
		EXPECT(serve(all, "count", count) == XR_OK);
	}
	meet_all();
	EXPECT(xr_group_call_sync(all, CALL("count", -1), NULL, &err) == XR_OK);
	meet_all();
	if (rank == 1) {
		usleep(200000);
		kill(getpid(), SIGKILL);
	}
	begun = now();
	status = xr_group_call_sync(all, CALL("waits", XR_SECONDS(30)), NULL,
		&err);
	EXPECT(status == XR_E_PEER_LOST);
	while ((status = read_paired(all, "value", &n)) != XR_E_NOTFOUND)
		EXPECT(status == XR_E_PEER_LOST && now() - begun < 5000000000);
	EXPECT(!is_paired("value") && !is_registered("waits"));
	status = xr_group_call_sync(all, CALL("count", -1), NULL, &err);
	EXPECT(status == XR_E_PEER_LOST || status == XR_E_NOTFOUND);
	EXPECT(xr_rpc_barrier(&left, &err) == XR_OK);
	if (rank == 0)
		EXPECT(pair("value", 2) == XR_OK);
	EXPECT(xr_rpc_barrier(&left, &err) == XR_OK);
	EXPECT(read_paired(all, "value", &n) == XR_OK && n == 2);
	EXPECT(xr_rpc_barrier(&left, &err) == XR_OK);
	printf("rank %u: the keys of 1 are free\n", rank);
	_exit(0);
}

const struct group_case key_cases[] = {
	{ "call", call_member },
	{ "call-outsider", call_outsider },
	{ "pair-twice", pair_twice },
	{ "unpair", unpair },
	{ "unknown", unknown_key },
	{ "paired", paired_counter },
	{ "service", service_counter },
	{ "later", service_later },
	{ "both", value_and_service },
	{ "outside-caller", outside_caller },
	{ "by-value", group_by_value },
	{ "stale", stale_location },
	{ "fails", service_fails },
	{ "timeout", call_timeout },
	{ "one-wins", one_wins },
	{ "dies", holder_dies },
	{ NULL, NULL },
};
