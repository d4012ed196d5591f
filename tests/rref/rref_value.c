/* SPDX-License-Identifier: Apache-2.0 */
/* rref_value.c - scenes of rref.c: what a reference stands for. */
#include <stdio.h>
#include <string.h>

#include "tests/rref/rref.h"

static uint32_t
next(void)
{
	return (xr_job_rank() + 1) % xr_job_size();
}

/* AC-Q1 */
static void
fetch_of_next_and_self(void)
{
	const uint32_t to[] = { next(), xr_job_rank() };
	struct xr_worker who = { .size = sizeof(who) };
	struct xr_rref *r;

	for (int i = 0; i < 2; i++) {
		r = remote(to[i], "add", list(of_int(40), of_int(2), NULL));
		CHECK(fetch_int(r) == 42);
		CHECK(fetch_int(r) == 42);
		CHECK(xr_rref_is_owner(r) == (to[i] == xr_job_rank()));
		EXPECT(xr_rref_owner(r, &who), XR_OK);
		CHECK(who.id == to[i]);
		xr_rref_unref(r);
	}
}

/* AC-Q2 */
static void
local_on_a_user(void)
{
	struct xr_value *value = NULL;
	struct xr_rref *r;

	if (xr_job_rank() != 0)
		return;
	r = remote(1, "add", list(of_int(1), of_int(2), NULL));
	EXPECT(xr_rref_local(r, XR_SECONDS(10), &value, &last_err), XR_E_INVAL);
	CHECK(strstr(last_err.text, "worker0 (0)") != NULL);
	CHECK(strstr(last_err.text, "worker1 (1)") != NULL);
	xr_rref_unref(r);
}

/* Of the owner the value itself, and no copy. */
static void
local_is_no_copy(void)
{
	struct xr_value *value = of_int(7), *got = NULL, *fetched = NULL;
	struct xr_rref *r = NULL;

	EXPECT(xr_rref_from_value(xr_value_ref(value), &r, &last_err), XR_OK);
	EXPECT(xr_rref_local(r, XR_TIMEOUT_NEVER, &got, &last_err), XR_OK);
	EXPECT(xr_rref_fetch(r, XR_TIMEOUT_NEVER, &fetched, &last_err), XR_OK);
	CHECK(got == value && fetched == value);
	CHECK(xr_rref_confirmed(r) && xr_rref_is_owner(r));
	xr_value_unref(got);
	xr_value_unref(fetched);
	xr_value_unref(value);
	xr_rref_unref(r);
}

/* The first id is 0; a remote call takes two. */
static void
ids_and_text(void)
{
	struct xr_rref_id id, fork;
	struct xr_rref *local = NULL, *user;
	char text[200], want[200];
	size_t len;

	EXPECT(xr_rref_from_value(of_int(7), &local, &last_err), XR_OK);
	user = remote(next(), "add", list(of_int(1), of_int(2), NULL));
	xr_rref_id(local, &id, &fork);
	CHECK(id.worker == xr_job_rank() && id.local == 0);
	CHECK(fork.worker == id.worker && fork.local == 0);
	xr_rref_id(user, &id, &fork);
	CHECK(id.local == 1 && fork.local == 2);
	len = xr_rref_text(user, text, sizeof(text));
	snprintf(want, sizeof(want),
		"UserRRef(RRefId = GloballyUniqueId(created_on=%u, local_id=1), ForkId = GloballyUniqueId(created_on=%u, local_id=2))",
		xr_job_rank(), xr_job_rank());
	CHECK(strcmp(text, want) == 0 && len == strlen(want));
	CHECK(xr_rref_text(user, text, 5) == len && strcmp(text, "User") == 0);
	xr_rref_text(local, text, sizeof(text));
	CHECK(strstr(text, "OwnerRRef(") == text);
	xr_rref_unref(user);
	xr_rref_unref(local);
}

/* AC-Q12 */
static void
its_function_fails(void)
{
	struct xr_value *value = NULL;
	struct xr_future *created = NULL;
	struct xr_rref *r;

	for (uint32_t to = 0; to < xr_job_size(); to++) {
		r = remote(to, "fail", NULL);
		for (int i = 0; i < 2; i++) {
			EXPECT(xr_rref_fetch(r, XR_TIMEOUT_DEFAULT, &value,
				       &last_err),
				XR_E_REMOTE);
			CHECK(strstr(last_err.text, "on purpose") != NULL);
		}
		EXPECT(xr_rref_created(r, &created), XR_OK);
		EXPECT(xr_future_wait(created, XR_SECONDS(10), NULL, &last_err),
			XR_E_REMOTE);
		xr_future_unref(created);
		EXPECT(try_call(next(), "value_of",
			       list(of_rref(r), NULL, NULL), &value),
			XR_E_REMOTE);
		CHECK(strstr(last_err.text, "on purpose") != NULL);
		xr_rref_unref(r);
	}
	r = remote(next(), "no.such", NULL);
	EXPECT(xr_rref_fetch(r, XR_TIMEOUT_DEFAULT, &value, &last_err),
		XR_E_NO_FUNCTION);
	xr_rref_unref(r);
}

/* AC-Q14 and, of the owner, AC-Q15. */
static void
slow(uint32_t to)
{
	struct xr_rref *r = remote(to, "hold", list(of_int(5), NULL, NULL));
	struct xr_future *f = NULL, *created = NULL;
	struct xr_value *value = NULL;

	EXPECT(xr_rref_fetch(r, XR_SECONDS(0.01), &value, &last_err),
		XR_E_TIMEOUT);
	EXPECT(xr_rref_fetch_async(r, XR_SECONDS(0.01), &f, &last_err), XR_OK);
	EXPECT(xr_future_wait(f, XR_SECONDS(20), NULL, &last_err),
		XR_E_TIMEOUT);
	xr_future_unref(f);
	EXPECT(xr_rref_created(r, &created), XR_OK);
	CHECK(!xr_future_done(created));
	EXPECT(xr_rref_fetch_async(r, XR_TIMEOUT_DEFAULT, &f, &last_err),
		XR_OK);
	xr_value_unref(call(to, "go", NULL));
	CHECK(fetch_int(r) == 5);
	EXPECT(xr_future_wait(f, XR_SECONDS(20), &value, &last_err), XR_OK);
	CHECK(as_int(value) == 5);
	EXPECT(xr_future_wait(created, XR_SECONDS(20), NULL, &last_err), XR_OK);
	xr_future_unref(created);
	xr_future_unref(f);
	xr_rref_unref(r);
	await_table(to, WANTED, 0);
}

static void
fetch_of_a_slow_value(void)
{
	if (xr_job_rank() == 0)
		slow(1);
}

static void
fetch_of_a_slow_value_here(void)
{
	if (xr_job_rank() == 0)
		slow(0);
}

static struct xr_rref_call
method_of(struct xr_rref *r, const char *method, struct xr_value *args)
{
	return (struct xr_rref_call){ .size = sizeof(struct xr_rref_call),
		.rref = r,
		.method = method,
		.args = args,
		.timeout = XR_TIMEOUT_DEFAULT };
}

static int64_t
call_method(struct xr_rref *r, const char *method, int64_t n)
{
	struct xr_value *args = list(of_int(n), NULL, NULL), *value = NULL;
	struct xr_rref_call c = method_of(r, method, args);

	EXPECT(xr_rref_call_sync(&c, &value, &last_err), XR_OK);
	xr_value_unref(args);
	return as_int(value);
}

/* AC-Q16 */
static void
methods_of(uint32_t to)
{
	struct xr_rref *r = remote(to, "thing", list(of_int(10), NULL, NULL));
	struct xr_rref *number;
	struct xr_value *args = list(of_int(4), NULL, NULL), *value = NULL;
	struct xr_rref_call c = method_of(r, "plus", args);

	for (int i = 0; i < 3; i++)
		CHECK(call_method(r, "plus", i) == 10 + i);
	CHECK(call_method(r, "double", 21) == 42);
	c.method = "no.such";
	EXPECT(xr_rref_call_sync(&c, &value, &last_err), XR_E_NO_FUNCTION);
	CHECK(strstr(last_err.text, "thing") != NULL);
	number = remote(to, "add", list(of_int(1), of_int(2), NULL));
	c = method_of(number, "plus", args);
	EXPECT(xr_rref_call_sync(&c, &value, &last_err), XR_E_NO_FUNCTION);
	c = method_of(r, "plus", NULL);
	EXPECT(xr_rref_call_sync(&c, &value, &last_err), XR_E_SCHEMA);
	xr_value_unref(args);
	xr_rref_unref(number);
	xr_rref_unref(r);
}

static void
methods_of_both(void)
{
	methods_of(next());
	methods_of(xr_job_rank());
}

/* AC-Q17: a method that takes too long, then one that does not. */
static void
a_slow_method(void)
{
	struct xr_value *args = list(of_int(4), NULL, NULL), *value = NULL;
	struct xr_rref_call c;
	struct xr_rref *r;

	if (xr_job_rank() == 0) {
		r = remote(1, "thing", list(of_int(10), NULL, NULL));
		c = method_of(r, "hold", args);
		c.timeout = XR_SECONDS(0.05);
		EXPECT(xr_rref_call_sync(&c, &value, &last_err), XR_E_TIMEOUT);
		CHECK(call_method(r, "plus", 1) == 11);
		xr_value_unref(call(1, "go", NULL));
		CHECK(call_method(r, "plus", 2) == 12);
		xr_rref_unref(r);
	}
	xr_value_unref(args);
}

/* AC-A16: of a method that answers with a future, in all three ways. */
static void
a_method_that_answers_later(void)
{
	struct xr_value *args = list(of_int(1), of_int(2), NULL), *value = NULL;
	struct xr_rref *r =
		remote(next(), "thing", list(of_int(1), NULL, NULL));
	struct xr_rref_call c = method_of(r, "then", args);
	struct xr_future *f = NULL;
	struct xr_rref *made = NULL;

	EXPECT(xr_rref_call_sync(&c, &value, &last_err), XR_OK);
	CHECK(as_int(value) == 4);
	EXPECT(xr_rref_call_async(&c, &f, &last_err), XR_OK);
	EXPECT(xr_future_wait(f, XR_SECONDS(20), &value, &last_err), XR_OK);
	CHECK(as_int(value) == 4);
	EXPECT(xr_rref_call_remote(&c, &made, &last_err), XR_OK);
	CHECK(fetch_int(made) == 4);
	xr_future_unref(f);
	xr_rref_unref(made);
	xr_rref_unref(r);
	xr_value_unref(args);
}

/* AC-A5, AC-A6: functions that answer later, by remote calls. */
static void
remote_of_functions_that_answer_later(void)
{
	const char *const names[] = { "then", "fresh", "deferred" };
	struct xr_value *value = NULL;
	struct xr_rref *r;

	for (int i = 0; i < 3; i++)
		for (uint32_t to = 0; to < xr_job_size(); to++) {
			r = remote(to, names[i],
				list(of_int(1), of_int(1), NULL));
			CHECK(fetch_int(r) == 3);
			xr_rref_unref(r);
		}
	r = remote(next(), "dropped", NULL);
	EXPECT(xr_rref_fetch(r, XR_SECONDS(20), &value, &last_err),
		XR_E_CANCELLED);
	xr_rref_unref(r);
	r = remote(next(), "add.short", list(of_int(1), of_int(1), NULL));
	CHECK(fetch_int(r) == 2);
	xr_rref_unref(r);
}

/* AC-Q21: references to pairs of references. */
#define PAIRS 20

static void
references_of_references(void)
{
	struct xr_rref *r[PAIRS];
	struct xr_value *pair = NULL;
	uint32_t third = (xr_job_rank() + 2) % xr_job_size();

	for (int i = 0; i < PAIRS; i++)
		r[i] = remote(next(), "pair", list(of_int(third), NULL, NULL));
	for (int i = 0; i < PAIRS; i++) {
		EXPECT(xr_rref_fetch(r[i], XR_TIMEOUT_DEFAULT, &pair,
			       &last_err),
			XR_OK);
		CHECK(xr_value_count(pair) == 2);
		CHECK(fetch_int(xr_value_rref(xr_value_at(pair, 0))) == 3);
		CHECK(fetch_int(xr_value_rref(xr_value_at(pair, 1))) == 7);
		xr_value_unref(pair);
		xr_rref_unref(r[i]);
	}
}

/* A reference is nothing outside of a call. */
static void
outside_of_a_call(void)
{
	struct xr_encoded *encoded = NULL;
	struct xr_rref *r = NULL;
	struct xr_value *v, *w;

	EXPECT(xr_rref_from_value(of_int(7), &r, &last_err), XR_OK);
	v = of_rref(r);
	w = of_rref(r);
	EXPECT(xr_encode(v, NULL, &encoded, &last_err), XR_E_ENCODE);
	CHECK(xr_value_rref(v) == r && xr_value_equal(v, w));
	xr_value_unref(v);
	xr_value_unref(w);
	xr_rref_unref(r);
}

const struct scene value_scenes[] = {
	{ "fetch", fetch_of_next_and_self },
	{ "local-on-user", local_on_a_user },
	{ "local", local_is_no_copy },
	{ "ids", ids_and_text },
	{ "fails", its_function_fails },
	{ "slow", fetch_of_a_slow_value },
	{ "slow-here", fetch_of_a_slow_value_here },
	{ "methods", methods_of_both },
	{ "slow-method", a_slow_method },
	{ "later-method", a_method_that_answers_later },
	{ "later", remote_of_functions_that_answer_later },
	{ "pairs", references_of_references },
	{ "outside", outside_of_a_call },
	{ NULL, NULL },
};
