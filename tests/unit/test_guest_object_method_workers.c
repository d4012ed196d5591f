/* SPDX-License-Identifier: Apache-2.0 */
/* test_guest_object_method_workers.c - who hears what the agent hears, methods of objects
 * as functions, functions of others by name, and who is a member. */
#include <xrun/error.h>

#include "tests/unit/short_memory.h"

#include "tests/unit/wire_rig.h"
#include "worker/rpc/func.h"
#include "worker/rpc/guest.h"
#include "worker/rpc/method.h"
#include "worker/rpc/object.h"

TestSuite(guest, .timeout = 60);
TestSuite(object, .timeout = 60);
TestSuite(method, .timeout = 60);
TestSuite(workers, .timeout = 60, .init = wire_begin, .fini = wire_end);

static struct xr_error err;

/* --- guests ----------------------------------------------------------------------- */

static char heard[64];
static int64_t due[2] = { 500, 300 };
static struct peer somebody;

static void
hear(const char *what)
{
	size_t len = strlen(heard);

	snprintf(heard + len, sizeof(heard) - len, "%s ", what);
}

static void
first_arrived(struct peer *peer, const struct xr_record *record,
	const struct xr_body *body)
{
	cr_expect_eq(peer, &somebody);
	cr_expect_eq(record->corr, 7);
	cr_expect_eq(body->len, 3);
	hear("arrived");
}

static void
first_lost(struct peer *peer)
{
	cr_expect_eq(peer, &somebody);
	hear("lost");
}

static void
second_lost(struct peer *peer)
{
	cr_expect_eq(peer, &somebody);
	hear("lost2");
}

static void
second_cancelled(struct peer *peer, uint64_t corr)
{
	cr_expect_eq(peer, &somebody);
	cr_expect_eq(corr, 9);
	hear("cancelled2");
}

static int64_t
first_expire(int64_t now)
{
	cr_expect_eq(now, 100);
	hear("expire");
	return due[0];
}

static int64_t
second_expire(int64_t now)
{
	cr_expect_eq(now, 100);
	hear("expire2");
	return due[1];
}

static void
second_closed(void)
{
	hear("closed2");
}

static void
fifth_closed(void)
{
	hear("closed5");
}

#define HEARD(text) \
	do { \
		cr_expect_str_eq(heard, text); \
		heard[0] = '\0'; \
	} while (0)

static void
tell_all(void)
{
	const struct xr_record record = { .corr = 7 };
	const struct xr_body body = { .len = 3 };

	guest_arrived(&somebody, &record, &body);
	guest_lost(&somebody);
	guest_cancelled(&somebody, 9);
}

Test(guest, each_hears_what_it_wants_to_hear)
{
	static const struct guest first = { .arrived = first_arrived,
		.lost = first_lost,
		.expire = first_expire };
	static const struct guest second = { .lost = second_lost,
		.cancelled = second_cancelled,
		.expire = second_expire,
		.closed = second_closed };
	static const struct guest nothing[2],
		fifth = { .closed = fifth_closed };

	tell_all();
	guest_closed();
	cr_expect_eq(guest_expire(100), INT64_MAX);
	HEARD("");
	guest_set(&first);
	guest_set(&first);
	guest_set(&second);
	tell_all();
	HEARD("arrived lost lost2 cancelled2 ");
	cr_expect_eq(guest_expire(100), 300);
	HEARD("expire expire2 ");
	due[1] = 600;
	cr_expect_eq(guest_expire(100), 500);
	HEARD("expire expire2 ");
	guest_closed();
	HEARD("closed2 ");
	/* There is room for four. */
	guest_set(&nothing[0]);
	cr_expect_eq(guest_expire(100), 500);
	guest_set(&nothing[1]);
	guest_set(&fifth);
	heard[0] = '\0';
	guest_closed();
	HEARD("closed2 ");
}

/* --- methods of objects ---------------------------------------------------------------- */

static int thing, type_ctx;
static void *object_got, *ctx_got;
static struct xr_call *call_got;

static enum xr_status
run(struct xr_call *call, void *object, struct xr_value *args, void *ctx)
{
	call_got = call;
	object_got = object;
	ctx_got = ctx;
	return xr_value_count(args) == 0 ? XR_OK : XR_E_INVAL;
}

static const struct xr_method methods[] = {
	{ .size = sizeof(struct xr_method),
		.name = "grow",
		.schema = "i*",
		.fn = run,
		.flags = XR_FN_SHORT },
	{ .size = sizeof(struct xr_method),
		.name = "make",
		.fn = run,
		.is_static = true },
};

static struct xr_value *
thing_value(void)
{
	static const struct xr_type type = { .size = sizeof(type),
		.name = "object.Thing",
		.methods = methods,
		.method_count = 2,
		.ctx = &type_ctx };

	xr_type_register(&type, &err);
	return xr_value_new_opaque("object.Thing", &thing);
}

Test(object, a_method_is_a_function_once)
{
	struct xr_value *v = thing_value(), *args = xr_value_new_list();
	struct xr_call *call = (struct xr_call *)&thing;
	const struct func *grow = NULL, *make = NULL, *again = NULL;

	cr_assert_not_null(v);
	until_short = 1;
	cr_expect_eq(object_method(v, "grow", &grow, &err), XR_E_NOMEM);
	cr_expect_str_eq(err.text, "out of memory");
	cr_expect_null(grow);
	cr_assert_eq(object_method(v, "grow", &grow, &err), XR_OK);
	cr_assert_eq(object_method(v, "make", &make, &err), XR_OK);
	cr_assert_eq(object_method(v, "grow", &again, &err), XR_OK);
	cr_expect_eq(again, grow);
	cr_expect_neq(make, grow);
	cr_expect_eq(grow->f.size, sizeof(grow->f));
	cr_expect_str_eq(grow->f.name, "grow");
	cr_expect_str_eq(grow->f.schema, "i*");
	cr_expect_eq(grow->f.flags, XR_FN_SHORT);
	cr_expect_eq(grow->name_len, 4);
	cr_expect_eq(grow->hash, func_hash("grow", 4));
	cr_expect_null(make->f.schema);
	cr_expect_eq(object_run(grow, call, v, args), XR_OK);
	cr_expect_eq(call_got, call);
	cr_expect_eq(object_got, &thing);
	cr_expect_eq(ctx_got, &type_ctx);
	cr_expect_eq(object_run(make, call, v, args), XR_OK);
	cr_expect_null(object_got);
	cr_expect_eq(ctx_got, &type_ctx);
	xr_value_unref(args);
	xr_value_unref(v);
}

Test(object, what_has_no_such_method_is_named)
{
	struct xr_value *v = thing_value(), *n = xr_value_new_i64(1);
	const struct func *func = NULL;

	cr_expect_eq(object_method(v, "shrink", &func, &err), XR_E_NO_FUNCTION);
	cr_expect_str_eq(err.text, "type object.Thing has no method shrink");
	cr_expect_eq(object_method(n, "grow", &func, &err), XR_E_NO_FUNCTION);
	cr_expect_str_eq(err.text, "a i64 has no method grow");
	cr_expect_null(func);
	xr_value_unref(v);
	xr_value_unref(n);
}

/* --- functions of others --------------------------------------------------------------- */

Test(method, each_name_has_its_place_and_its_prefix)
{
	const struct method *f, *g;
	uint16_t len;

	cr_expect_null(method_get(NULL));
	cr_expect_null(method_get(""));
	until_short = 1;
	cr_expect_null(method_get("func"));
	f = method_get("func");
	g = method_get("funny1");
	cr_assert(f != NULL && g != NULL);
	cr_expect_eq(method_get("func"), f);
	cr_expect_eq(f->place, 0);
	cr_expect_eq(g->place, 1);
	cr_expect_eq(f->hash, func_hash("func", 4));
	cr_expect_str_eq(f->name, "func");
	memcpy(&len, f->prefix, sizeof(len));
	cr_expect_eq(len, 4);
	cr_expect_eq(memcmp(f->prefix + 2, "func\0\0", 6), 0);
	/* Padded to 8 bytes. */
	cr_expect_eq(f->prefix_len, 8);
	cr_expect_eq(g->prefix_len, 8);
	cr_expect_eq(method_get("funny12")->prefix_len, 16);
}

Test(method, a_name_has_255_bytes_at_most)
{
	const struct method *m;
	char name[258];

	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	cr_expect_null(method_get(name));
	name[255] = '\0';
	m = method_get(name);
	cr_assert_not_null(m);
	cr_expect_str_eq(m->name, name);
	cr_expect_eq(m->prefix_len, 264);
	name[254] = '\0';
	cr_expect_eq(method_get(name)->prefix_len, 256);
}

Test(method, many_share_the_buckets)
{
	const struct method *m[600];
	char name[16];

	for (uint32_t i = 0; i < 600; i++) {
		snprintf(name, sizeof(name), "m%u", i);
		m[i] = method_get(name);
		cr_assert_not_null(m[i]);
		cr_expect_eq(m[i]->place, i);
	}
	for (uint32_t i = 0; i < 600; i++) {
		snprintf(name, sizeof(name), "m%u", i);
		cr_expect_eq(method_get(name), m[i]);
		cr_expect_str_eq(m[i]->name, name);
	}
}

/* --- members ---------------------------------------------------------------------------- */

static void
is_worker(const struct xr_worker *w, uint32_t id, const char *name)
{
	cr_expect_eq(w->id, id);
	cr_expect_str_eq(w->name, name);
}

Test(workers, all_are_listed_by_their_numbers)
{
	struct xr_worker w[5] = { { .size = sizeof(w[0]) } };
	size_t count = 0;

	agent_add(&(struct agent_member){ "last", XR_WORKER_ID_MAX, 1,
		"wire:there", NULL, 0 });
	w[3].id = 99;
	cr_expect_eq(xr_worker_list(w, 3, &count, &err), XR_OK);
	cr_expect_eq(count, 5);
	is_worker(&w[0], 0, "self");
	is_worker(&w[2], 2, "two");
	cr_expect_eq(w[3].id, 99);
	cr_expect_eq(xr_worker_list(w, 5, &count, &err), XR_OK);
	is_worker(&w[3], 3, "three");
	is_worker(&w[4], XR_WORKER_ID_MAX, "last");
}

Test(workers, one_is_found_by_its_name_or_number)
{
	struct xr_worker w = { .size = sizeof(w) }, small = w;

	cr_expect_eq(xr_worker_self(&w, &err), XR_OK);
	is_worker(&w, 0, "self");
	cr_expect_eq(xr_worker_find("two", &w, &err), XR_OK);
	is_worker(&w, 2, "two");
	cr_expect_eq(xr_worker_find_id(3, &w, &err), XR_OK);
	is_worker(&w, 3, "three");
	cr_expect_eq(xr_worker_find("four", &w, &err), XR_E_NOTFOUND);
	cr_expect_eq(xr_worker_find_id(4, &w, &err), XR_E_NOTFOUND);
	cr_expect_eq(xr_worker_find(NULL, &w, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "no name");
	small.size--;
	cr_expect_eq(xr_worker_self(&small, &err), XR_E_INVAL);
	cr_expect_str_eq(err.text, "struct xr_worker: its size");
	cr_expect_eq(xr_worker_find("two", NULL, &err), XR_E_INVAL);
	is_worker(&w, 3, "three");
	wire_end();
	cr_expect_eq(xr_worker_self(&w, &err), XR_E_STATE);
	cr_expect_eq(xr_worker_find("two", &w, &err), XR_E_STATE);
	cr_expect_eq(xr_worker_list(&w, 1, &(size_t){ 0 }, &err), XR_E_STATE);
	wire_begin();
}
