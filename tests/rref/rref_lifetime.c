/* SPDX-License-Identifier: Apache-2.0 */
/* rref_lifetime.c - scenes of rref.c: for how long a value is there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/wait.h>

#include "tests/rref/rref.h"

static uint32_t
next(void)
{
	return (xr_job_rank() + 1) % xr_job_size();
}

/* Until @rank has as many objects as @want: all of them were freed, once. */
static void
await_things(uint32_t rank, int64_t want)
{
	int64_t got;
	time_t begin = time(NULL);

	do {
		got = as_int(call(rank, "things", NULL));
	} while (got != want && time(NULL) - begin < 20);
	snprintf(last_err.text, sizeof(last_err.text), "rank %u has %lld", rank,
		(long long)got);
	CHECK(got == want);
}

/* AC-Q3 */
static void
a_local_one_is_shared(void)
{
	struct xr_rref *r = NULL;

	if (xr_job_rank() != 0)
		return;
	EXPECT(xr_rref_from_value(of_int(7), &r, &last_err), XR_OK);
	await_table(0, OWNERS, 0);
	xr_value_unref(call(1, "keep", list(of_rref(r), NULL, NULL)));
	await_table(0, OWNERS, 1);
	CHECK(as_int(call(1, "kept", NULL)) == 7);
	xr_value_unref(call(1, "drop", NULL));
	await_table(0, OWNERS, 0);
	CHECK(fetch_int(r) == 7);
	xr_rref_unref(r);
}

/* AC-Q4 */
static void
two_of_remote_calls(void)
{
	struct xr_rref *a, *b;

	if (xr_job_rank() != 0)
		return;
	a = remote(1, "thing", list(of_int(1), NULL, NULL));
	b = remote(1, "thing", list(of_int(2), NULL, NULL));
	await_table(1, OWNERS, 2);
	await_things(1, 2);
	xr_rref_unref(a);
	await_things(1, 1);
	xr_rref_unref(b);
	await_things(1, 0);
	await_table(1, OWNERS, 0);
}

/* AC-Q5: to the owner, to a third, and from the owner. */
static void
share_in_all_ways(int64_t number)
{
	struct xr_rref *r, *own = NULL;

	r = remote(1, "thing", list(of_int(number), NULL, NULL));
	CHECK(as_int(call(1, "number", list(of_rref(r), NULL, NULL))) ==
		number);
	CHECK(as_int(call(2, "number", list(of_rref(r), NULL, NULL))) ==
		number);
	CHECK(as_int(call(0, "number", list(of_rref(r), NULL, NULL))) ==
		number);
	xr_rref_unref(r);
	EXPECT(xr_rref_from_value(of_int(number), &own, &last_err), XR_OK);
	CHECK(as_int(call(1, "value_of", list(of_rref(own), NULL, NULL))) ==
		number);
	CHECK(as_int(call(1, "forward", list(of_rref(own), of_int(3), NULL))) ==
		number);
	xr_rref_unref(own);
}

static void
shared_in_all_ways(void)
{
	if (xr_job_rank() != 0)
		return;
	for (int i = 0; i < 10; i++)
		share_in_all_ways(100 + i);
	for (uint32_t rank = 0; rank < 3; rank++)
		await_things(rank, 0);
	await_empty();
}

/* AC-Q6 */
static void
a_chain_of_forwards(void)
{
	struct xr_rref *r;

	r = remote(next(), "add", list(of_int(40), of_int(2), NULL));
	CHECK(as_int(call(next(), "forward",
		      list(of_rref(r), of_int(8), NULL))) == 42);
	xr_rref_unref(r);
}

/* AC-Q7 */
static void
confirmed_in_a_function(void)
{
	struct xr_rref *r, *made;

	if (xr_job_rank() != 0)
		return;
	for (int i = 0; i < 50; i++) {
		/* Of a call that has not even reached its owner. */
		r = remote(1, "add", list(of_int(1), of_int(2), NULL));
		CHECK(as_int(call(2,
			      i % 2 == 0 ? "confirmed" : "confirmed.short",
			      list(of_rref(r), NULL, NULL))) == 1);
		made = remote(2, "confirmed", list(of_rref(r), NULL, NULL));
		CHECK(fetch_int(made) == 1);
		xr_rref_unref(r);
		xr_rref_unref(made);
	}
}

/* AC-Q10 */
static void
the_parent_ends_first(void)
{
	struct xr_rpc_call c = XR_RPC_CALL;
	struct xr_future *f = NULL;
	struct xr_rref *r;

	if (xr_job_rank() != 0)
		return;
	for (int i = 0; i < 50; i++) {
		r = remote(1, "thing", list(of_int(i), NULL, NULL));
		c.id = 2;
		c.func = "keep";
		c.args = list(of_rref(r), NULL, NULL);
		EXPECT(xr_rpc_async(&c, &f, &last_err), XR_OK);
		xr_value_unref(c.args);
		xr_rref_unref(r);
		EXPECT(xr_future_wait(f, XR_SECONDS(30), NULL, &last_err),
			XR_OK);
		xr_future_unref(f);
		/* Nobody else has it. */
		await_things(1, 1);
		xr_value_unref(call(2, i % 2 == 0 ? "drop" : "drop.short",
			NULL));
		await_things(1, 0);
	}
	await_empty();
}

/* AC-Q18, D-Q2: a child of rank 1 with a handle of rank 0's value is killed. */
static void
a_user_is_killed(void)
{
	struct xr_rref *r = NULL;
	struct xr_value *value = NULL;

	if (xr_job_rank() != 0) {
		if (xr_job_rank() == 1)
			pause();
		return;
	}
	EXPECT(xr_rref_from_value(of_int(7), &r, &last_err), XR_OK);
	xr_value_unref(call(1, "keep", list(of_rref(r), NULL, NULL)));
	await_table(0, FORKS, 1);
	EXPECT(try_call(1, "die", NULL, &value), XR_E_PEER_LOST);
	await_table(0, FORKS, 0);
	await_table(0, OWNERS, 0);
	CHECK(fetch_int(r) == 7);
	xr_rref_unref(r);
	printf("its handle is gone\n");
	EXPECT(xr_rpc_shutdown(XR_SHUTDOWN_IMMEDIATE, 0, &last_err), XR_OK);
}

/* AC-Q22, D-Q1: the owner is killed while a call of it makes a value. */
static void
the_owner_is_killed(void)
{
	struct xr_rref *r[2];
	struct xr_value *value = NULL;
	struct xr_future *waits = NULL;
	time_t begin;

	if (xr_job_rank() != 0) {
		if (xr_job_rank() == 1)
			pause();
		return;
	}
	for (int i = 0; i < 2; i++)
		r[i] = remote(1, "hold", list(of_int(5), NULL, NULL));
	EXPECT(xr_rref_fetch_async(r[0], XR_TIMEOUT_NEVER, &waits, &last_err),
		XR_OK);
	EXPECT(try_call(1, "die", NULL, &value), XR_E_PEER_LOST);
	EXPECT(xr_future_wait(waits, XR_SECONDS(20), NULL, &last_err),
		XR_E_PEER_LOST);
	for (int i = 0; i < 2; i++) {
		EXPECT(xr_rref_fetch(r[i], XR_TIMEOUT_NEVER, &value, &last_err),
			XR_E_PEER_LOST);
		CHECK(strstr(last_err.text, "worker1 (1)") != NULL);
		EXPECT(try_call(0, "value_of", list(of_rref(r[i]), NULL, NULL),
			       &value),
			XR_E_PEER_LOST);
		xr_rref_unref(r[i]);
	}
	xr_future_unref(waits);
	await_table(0, PENDING_USERS, 0);
	await_table(0, USERS, 0);
	begin = time(NULL);
	EXPECT(xr_rpc_shutdown(XR_SHUTDOWN_GRACEFUL, XR_SECONDS(60), &last_err),
		XR_E_PEER_LOST);
	CHECK(time(NULL) - begin < 20);
	printf("it left at once\n");
}

/* AC-Q19 */
static void
after_shutdown(void)
{
	struct xr_rref *own = NULL, *user, *kept_long;
	char name[32];
	struct xr_value *value = NULL;
	struct xr_future *f = NULL;

	EXPECT(xr_rref_from_value(of_int(7), &own, &last_err), XR_OK);
	user = remote(next(), "add", list(of_int(1), of_int(2), NULL));
	kept_long = remote(next(), "add", list(of_int(1), of_int(2), NULL));
	CHECK(fetch_int(user) == 3);
	EXPECT(xr_rpc_shutdown(XR_SHUTDOWN_GRACEFUL, XR_SECONDS(60), &last_err),
		XR_OK);
	EXPECT(xr_rref_fetch(user, XR_TIMEOUT_NEVER, &value, &last_err),
		XR_E_CLOSED);
	EXPECT(xr_rref_fetch(own, XR_TIMEOUT_NEVER, &value, &last_err),
		XR_E_CLOSED);
	EXPECT(xr_rref_local(own, XR_TIMEOUT_NEVER, &value, &last_err),
		XR_E_CLOSED);
	EXPECT(xr_rref_fetch_async(user, XR_TIMEOUT_NEVER, &f, &last_err),
		XR_E_CLOSED);
	CHECK(!xr_rref_confirmed(user));
	xr_rref_unref(user);
	xr_rref_unref(own);
	/* In another life it is none of that life's. */
	snprintf(name, sizeof(name), "again%u", xr_job_rank());
	EXPECT(xr_rpc_init(name, -1, -1, NULL, &last_err), XR_OK);
	EXPECT(xr_rref_fetch(kept_long, XR_TIMEOUT_NEVER, &value, &last_err),
		XR_E_CLOSED);
	value = of_rref(kept_long);
	EXPECT(try_call(next(), "value_of", list(value, NULL, NULL), NULL),
		XR_E_CLOSED);
	xr_rref_unref(kept_long);
	user = remote(next(), "add", list(of_int(1), of_int(2), NULL));
	CHECK(fetch_int(user) == 3);
	xr_rref_unref(user);
	EXPECT(xr_rpc_shutdown(XR_SHUTDOWN_STRICT, XR_SECONDS(60), &last_err),
		XR_OK);
	if (xr_job_rank() == 0)
		printf("closed\n");
}

/* AC-Q20 */
static void
leak(uint32_t flags, enum xr_status want)
{
	struct xr_rref_id id, fork;
	struct xr_rref *user = NULL;
	char text[80];

	if (xr_job_rank() == 0) {
		user = remote(1, "add", list(of_int(1), of_int(2), NULL));
		CHECK(fetch_int(user) == 3);
	}
	last_err = (struct xr_error){ 0 };
	EXPECT(xr_rpc_shutdown(flags, XR_SECONDS(60), &last_err),
		user != NULL ? want : XR_OK);
	if (user == NULL)
		return;
	xr_rref_id(user, &id, &fork);
	snprintf(text, sizeof(text), "(%u, %llu) by fork (%u, %llu)", id.worker,
		(unsigned long long)id.local, fork.worker,
		(unsigned long long)fork.local);
	CHECK(want == XR_OK || strstr(last_err.text, text) != NULL);
	printf("leaked %s\n", text);
	xr_rref_unref(user);
}

static void
leak_by_default(void)
{
	leak(XR_SHUTDOWN_GRACEFUL, XR_OK);
}

static void
leak_strictly(void)
{
	leak(XR_SHUTDOWN_STRICT, XR_E_EXISTS);
}

/* A reply to a later call may arrive before the confirmation: the owner sends a
 * confirmation again if it cannot send it at once. */
static void
await_confirmed(const struct xr_rref *r)
{
	time_t begin = time(NULL);

	while (!xr_rref_confirmed(r) && time(NULL) - begin < 20)
		xr_value_unref(call(1, "add.short",
			list(of_int(1), of_int(2), NULL)));
	CHECK(xr_rref_confirmed(r));
}

/* AC-Q23, D-Q8: while its function runs; with RREF_LATE, when it has ended. */
static void
confirmed_while_it_runs(void)
{
	bool late = getenv("RREF_LATE") != NULL;
	struct xr_future *created = NULL;
	struct xr_rref *r;

	if (xr_job_rank() != 0)
		return;
	r = remote(1, "hold", list(of_int(5), NULL, NULL));
	CHECK(as_int(call(1, "add.short", list(of_int(1), of_int(2), NULL))) ==
		3);
	if (late)
		CHECK(!xr_rref_confirmed(r));
	else
		await_confirmed(r);
	xr_value_unref(call(1, "go", NULL));
	CHECK(fetch_int(r) == 5);
	EXPECT(xr_rref_created(r, &created), XR_OK);
	EXPECT(xr_future_wait(created, XR_SECONDS(30), NULL, &last_err), XR_OK);
	CHECK(xr_rref_confirmed(r));
	xr_future_unref(created);
	xr_rref_unref(r);
}

/* With RREF_LATE the limit of the call is the function's; else it is not. */
static void
limit_of_a_remote_call(void)
{
	bool late = getenv("RREF_LATE") != NULL;
	struct xr_rref *r = NULL;
	struct xr_value *value = NULL;
	struct xr_future *waits = NULL, *created = NULL;

	if (xr_job_rank() != 0)
		return;
	EXPECT(try_remote(1, "hold", list(of_int(5), NULL, NULL),
		       XR_SECONDS(late ? 0.1 : 10), &r),
		XR_OK);
	/* D-Q5: who waits already hears of it, too. */
	EXPECT(xr_rref_fetch_async(r, XR_TIMEOUT_NEVER, &waits, &last_err),
		XR_OK);
	EXPECT(xr_rref_created(r, &created), XR_OK);
	if (late) {
		EXPECT(xr_future_wait(created, XR_SECONDS(30), NULL, &last_err),
			XR_E_TIMEOUT);
		EXPECT(xr_rref_fetch(r, XR_TIMEOUT_NEVER, &value, &last_err),
			XR_E_TIMEOUT);
		CHECK(xr_future_wait(waits, XR_SECONDS(30), NULL, &last_err) !=
			XR_OK);
		CHECK(last_err.status != XR_E_TIMEOUT);
		EXPECT(try_call(2, "value_of", list(of_rref(r), NULL, NULL),
			       &value),
			XR_E_TIMEOUT);
		xr_value_unref(call(1, "go", NULL));
	} else {
		xr_value_unref(call(1, "go", NULL));
		EXPECT(xr_future_wait(waits, XR_SECONDS(30), NULL, &last_err),
			XR_OK);
		EXPECT(xr_future_wait(created, XR_SECONDS(30), NULL, &last_err),
			XR_OK);
	}
	xr_future_unref(waits);
	xr_future_unref(created);
	xr_rref_unref(r);
	await_table(1, OWNERS, 0);
	await_table(0, USERS, 0);
}

/* AC-Q24 */
static long
resident_kib(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long size = 0, resident = 0;

	CHECK(f != NULL && fscanf(f, "%ld %ld", &size, &resident) == 2);
	fclose(f);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void
create_and_release(long count, uint64_t *last_id)
{
	struct xr_rref_id id, fork;
	struct xr_rref *r;

	for (long i = 0; i < count; i++) {
		r = remote(next(), "add.short",
			list(of_int(i), of_int(1), NULL));
		xr_rref_id(r, &id, &fork);
		CHECK(id.local >= *last_id && fork.local > id.local);
		*last_id = fork.local + 1;
		if (i % 16 == 0)
			CHECK(fetch_int(r) == i + 1);
		xr_rref_unref(r);
	}
}

static void
many(void)
{
	const char *count_text = getenv("RREF_MANY");
	long count = count_text != NULL ? strtol(count_text, NULL, 10) : 100000,
	     before, after;
	uint64_t last_id = 0;

	count /= xr_job_size();
	create_and_release(count, &last_id);
	barrier();
	await_table(next(), OWNERS, 0);
	barrier();
	before = resident_kib();
	create_and_release(count, &last_id);
	create_and_release(count, &last_id);
	barrier();
	await_table(next(), OWNERS, 0);
	await_table(xr_job_rank(), USERS, 0);
	after = resident_kib();
	/* 64 bytes a cycle would show. */
	snprintf(last_err.text, sizeof(last_err.text), "%ld KiB, then %ld",
		before, after);
	CHECK(after - before < 1024 + 2 * count / 16);
}

const struct scene lifetime_scenes[] = {
	{ "local-shared", a_local_one_is_shared },
	{ "two", two_of_remote_calls },
	{ "share", shared_in_all_ways },
	{ "chain", a_chain_of_forwards },
	{ "confirmed", confirmed_in_a_function },
	{ "parent-first", the_parent_ends_first },
	{ "user-killed", a_user_is_killed },
	{ "owner-killed", the_owner_is_killed },
	{ "closed", after_shutdown },
	{ "leak", leak_by_default },
	{ "leak-strict", leak_strictly },
	{ "confirmed-early", confirmed_while_it_runs },
	{ "limit", limit_of_a_remote_call },
	{ "many", many },
	{ NULL, NULL },
};
