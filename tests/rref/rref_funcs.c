/* SPDX-License-Identifier: Apache-2.0 */
/* rref_funcs.c - see rref.h: what ranks call, and how. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/rref/rref.h"

struct xr_error last_err;
_Atomic uint64_t things_made, things_freed;

void
check(bool holds, const char *what, const char *file, int line)
{
	if (holds)
		return;
	fprintf(stderr, "rank %u: %s:%d: not so: %s (%s)\n", xr_job_rank(),
		file, line, what, last_err.text);
	_exit(9);
}

void
expect(enum xr_status got, enum xr_status want, const char *what,
	const char *file, int line)
{
	if (got == want)
		return;
	fprintf(stderr, "rank %u: %s:%d: %s gave %s, not %s: %s\n",
		xr_job_rank(), file, line, what, xr_status_name(got),
		xr_status_name(want), last_err.text);
	_exit(9);
}

/* --- calls ---------------------------------------------------------------------- */

struct xr_value *
of_int(int64_t i)
{
	return xr_value_new_i64(i);
}

struct xr_value *
of_rref(struct xr_rref *rref)
{
	return xr_value_new_rref(rref);
}

int64_t
as_int(struct xr_value *value)
{
	int64_t i = -1;

	CHECK(value != NULL);
	EXPECT(xr_value_get_i64(value, &i), XR_OK);
	xr_value_unref(value);
	return i;
}

struct xr_value *
list(struct xr_value *a, struct xr_value *b, struct xr_value *c)
{
	struct xr_value *items[] = { a, b, c };
	size_t n = a == NULL ? 0 : b == NULL ? 1 : c == NULL ? 2 : 3;

	return xr_value_new_list_of(items, n);
}

enum xr_status
try_call(uint32_t rank, const char *func, struct xr_value *args,
	struct xr_value **value)
{
	struct xr_rpc_call c = XR_RPC_CALL;
	enum xr_status status;

	c.id = rank;
	c.func = func;
	c.args = args;
	last_err = (struct xr_error){ 0 };
	status = xr_rpc_sync(&c, value, &last_err);
	xr_value_unref(args);
	return status;
}

struct xr_value *
call(uint32_t rank, const char *func, struct xr_value *args)
{
	struct xr_value *value = NULL;

	EXPECT(try_call(rank, func, args, &value), XR_OK);
	return value;
}

enum xr_status
try_remote(uint32_t rank, const char *func, struct xr_value *args,
	int64_t timeout, struct xr_rref **rref)
{
	struct xr_rpc_call c = XR_RPC_CALL;
	enum xr_status status;

	c.id = rank;
	c.func = func;
	c.args = args;
	c.timeout = timeout;
	last_err = (struct xr_error){ 0 };
	status = xr_rpc_remote(&c, rref, &last_err);
	xr_value_unref(args);
	return status;
}

struct xr_rref *
remote(uint32_t rank, const char *func, struct xr_value *args)
{
	struct xr_rref *rref = NULL;

	EXPECT(try_remote(rank, func, args, XR_TIMEOUT_DEFAULT, &rref), XR_OK);
	return rref;
}

int64_t
fetch_int(struct xr_rref *rref)
{
	struct xr_value *value = NULL;

	last_err = (struct xr_error){ 0 };
	EXPECT(xr_rref_fetch(rref, XR_TIMEOUT_DEFAULT, &value, &last_err),
		XR_OK);
	return as_int(value);
}

void
barrier(void)
{
	EXPECT(xr_rpc_barrier(NULL, &last_err), XR_OK);
}

/* --- functions ------------------------------------------------------------------ */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool go;
	struct xr_rref *kept;
} mine = { .lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER };

static struct xr_value *
arg(struct xr_value *args, size_t i)
{
	return xr_value_at(args, i);
}

static int64_t
int_arg(struct xr_value *args, size_t i)
{
	int64_t n = 0;

	xr_value_get_i64(arg(args, i), &n);
	return n;
}

static enum xr_status
f_add(struct xr_call *c, struct xr_value *args, void *ctx)
{
	return xr_reply(c, of_int(int_arg(args, 0) + int_arg(args, 1)));
}

static enum xr_status
f_fail(struct xr_call *c, struct xr_value *args, void *ctx)
{
	return xr_reply_fail(c, XR_E_RANGE, "on purpose");
}

/* hold() - its argument, when go() was called. */
static enum xr_status
f_hold(struct xr_call *c, struct xr_value *args, void *ctx)
{
	pthread_mutex_lock(&mine.lock);
	while (!mine.go)
		pthread_cond_wait(&mine.changed, &mine.lock);
	mine.go = false;
	pthread_mutex_unlock(&mine.lock);
	return xr_reply(c, xr_value_ref(arg(args, 0)));
}

static enum xr_status
f_go(struct xr_call *c, struct xr_value *args, void *ctx)
{
	pthread_mutex_lock(&mine.lock);
	mine.go = true;
	pthread_cond_broadcast(&mine.changed);
	pthread_mutex_unlock(&mine.lock);
	return XR_OK;
}

/* value_of() - what the reference stands for; confirmed() - is it? */
static enum xr_status
f_value_of(struct xr_call *c, struct xr_value *args, void *ctx)
{
	struct xr_rref *rref = xr_value_rref(arg(args, 0));
	struct xr_value *value = NULL;
	struct xr_error err = { 0 };
	enum xr_status status =
		xr_rref_fetch(rref, XR_TIMEOUT_DEFAULT, &value, &err);

	return status == XR_OK ? xr_reply(c, value) :
				 xr_reply_fail(c, status, err.text);
}

static enum xr_status
f_confirmed(struct xr_call *c, struct xr_value *args, void *ctx)
{
	return xr_reply(c,
		xr_value_new_i64(xr_rref_confirmed(xr_value_rref(arg(args,
			0)))));
}

static void
keep(struct xr_rref *rref)
{
	struct xr_rref *old;

	pthread_mutex_lock(&mine.lock);
	old = mine.kept;
	mine.kept = rref;
	pthread_mutex_unlock(&mine.lock);
	xr_rref_unref(old);
}

static struct xr_rref *
kept(void)
{
	struct xr_rref *rref;

	pthread_mutex_lock(&mine.lock);
	rref = mine.kept != NULL ? xr_rref_ref(mine.kept) : NULL;
	pthread_mutex_unlock(&mine.lock);
	return rref;
}

/* keep() - a reference of its own; drop() releases it; kept() fetches; give()
 * answers with it. */
static enum xr_status
f_keep(struct xr_call *c, struct xr_value *args, void *ctx)
{
	keep(xr_rref_ref(xr_value_rref(arg(args, 0))));
	return XR_OK;
}

static enum xr_status
f_drop(struct xr_call *c, struct xr_value *args, void *ctx)
{
	keep(NULL);
	return XR_OK;
}

static enum xr_status
f_kept(struct xr_call *c, struct xr_value *args, void *ctx)
{
	struct xr_rref *rref = kept();
	struct xr_value *value = NULL;
	struct xr_error err = { 0 };
	enum xr_status status =
		xr_rref_fetch(rref, XR_TIMEOUT_DEFAULT, &value, &err);

	xr_rref_unref(rref);
	return status == XR_OK ? xr_reply(c, value) :
				 xr_reply_fail(c, status, err.text);
}

static enum xr_status
f_give(struct xr_call *c, struct xr_value *args, void *ctx)
{
	struct xr_rref *rref = kept();
	enum xr_status status = xr_reply(c, of_rref(rref));

	xr_rref_unref(rref);
	return status;
}

/* own() - a new reference to its argument. */
static enum xr_status
f_own(struct xr_call *c, struct xr_value *args, void *ctx)
{
	struct xr_rref *rref = NULL;
	enum xr_status status =
		xr_rref_from_value(xr_value_ref(arg(args, 0)), &rref, NULL);

	if (status == XR_OK)
		status = xr_reply(c, of_rref(rref));
	xr_rref_unref(rref);
	return status;
}

/* forward(r, n) - to the next rank, n times; the last fetches. */
static enum xr_status
f_forward(struct xr_call *c, struct xr_value *args, void *ctx)
{
	int64_t n = int_arg(args, 1);
	struct xr_value *value = NULL;
	struct xr_error err = { 0 };
	enum xr_status status;
	struct xr_rpc_call next = XR_RPC_CALL;

	if (n == 0)
		return f_value_of(c, args, ctx);
	next.id = (xr_job_rank() + 1) % xr_job_size();
	next.func = "forward";
	next.args = list(xr_value_ref(arg(args, 0)), of_int(n - 1), NULL);
	status = xr_rpc_sync(&next, &value, &err);
	xr_value_unref(next.args);
	return status == XR_OK ? xr_reply(c, value) :
				 xr_reply_fail(c, status, err.text);
}

/* pair() - a list of references to two values that rank @0 makes. */
static enum xr_status
f_pair(struct xr_call *c, struct xr_value *args, void *ctx)
{
	uint32_t to = (uint32_t)int_arg(args, 0);
	struct xr_rref *a = remote(to, "add", list(of_int(1), of_int(2), NULL));
	struct xr_rref *b = remote(to, "add", list(of_int(3), of_int(4), NULL));
	enum xr_status status = xr_reply(c, list(of_rref(a), of_rref(b), NULL));

	xr_rref_unref(a);
	xr_rref_unref(b);
	return status;
}

static enum xr_status
f_die(struct xr_call *c, struct xr_value *args, void *ctx)
{
	raise(SIGKILL);
	return XR_OK;
}

/* table() - how many this rank has in it. */
static enum xr_status
f_table(struct xr_call *c, struct xr_value *args, void *ctx)
{
	static const char *const names[] = {
		[OWNERS] = "num_owner_rrefs",
		[FORKS] = "num_forks",
		[USERS] = "num_user_rrefs",
		[PENDING_USERS] = "num_pending_users",
		[CHILDREN] = "num_pending_children",
		[WANTED] = "num_pending_futures",
	};
	int64_t n = -1;

	xr_metrics_get(names[int_arg(args, 0)], &n);
	return xr_reply(c, of_int(n));
}

/* things() - made, less freed. */
static enum xr_status
f_things(struct xr_call *c, struct xr_value *args, void *ctx)
{
	return xr_reply(c,
		of_int((int64_t)(atomic_load(&things_made) -
			atomic_load(&things_freed))));
}

/* --- answers that come later ------------------------------------------------------ */

static enum xr_status
add_one(struct xr_future *f, void *ctx, struct xr_value **result,
	struct xr_error *err)
{
	struct xr_value *value = NULL;
	enum xr_status status = xr_future_value(f, &value, err);

	if (status == XR_OK)
		*result = of_int(as_int(value) + 1);
	return status;
}

/* then(x, y) - x + y + 1, of a call to the next rank; fresh() - the same, of a
 * future of its own; deferred() - the same, by a reply that comes later. */
static enum xr_status
begin_then(struct xr_value *args, struct xr_future **child)
{
	struct xr_rpc_call next = XR_RPC_CALL;
	struct xr_future *sum = NULL;
	enum xr_status status;

	next.id = (xr_job_rank() + 1) % xr_job_size();
	next.func = "add";
	next.args = args;
	status = xr_rpc_async(&next, &sum, NULL);
	if (status == XR_OK)
		status = xr_future_then(sum, add_one, NULL, XR_SHORT, child);
	xr_future_unref(sum);
	return status;
}

static enum xr_status
f_then(struct xr_call *c, struct xr_value *args, void *ctx)
{
	struct xr_future *child = NULL;
	enum xr_status status = begin_then(args, &child);

	return status == XR_OK ? xr_reply_future(c, child) : status;
}

static void
end_fresh(struct xr_future *sum, void *ctx)
{
	struct xr_future *fresh = ctx;
	struct xr_value *value = NULL;

	if (xr_future_value(sum, &value, NULL) == XR_OK)
		xr_future_set(fresh, value);
	else
		xr_future_fail_with(fresh, XR_E_RANGE, "no sum");
	xr_future_unref(fresh);
}

static enum xr_status
f_fresh(struct xr_call *c, struct xr_value *args, void *ctx)
{
	struct xr_future *sum = NULL, *fresh = xr_future_new(NULL);

	if (begin_then(args, &sum) != XR_OK)
		return XR_E_NOMEM;
	xr_future_on_done(sum, end_fresh, xr_future_ref(fresh));
	xr_future_unref(sum);
	return xr_reply_future(c, fresh);
}

static void
end_deferred(struct xr_future *sum, void *ctx)
{
	struct xr_call *c = ctx;
	struct xr_value *value = NULL;

	if (xr_future_value(sum, &value, NULL) == XR_OK)
		xr_reply(c, value);
	xr_call_drop(c);
}

static enum xr_status
f_deferred(struct xr_call *c, struct xr_value *args, void *ctx)
{
	struct xr_future *sum = NULL;

	if (begin_then(args, &sum) != XR_OK)
		return XR_E_NOMEM;
	xr_future_on_done(sum, end_deferred, xr_call_defer(c));
	xr_future_unref(sum);
	return XR_OK;
}

static enum xr_status
f_dropped(struct xr_call *c, struct xr_value *args, void *ctx)
{
	xr_call_drop(xr_call_defer(c));
	return XR_OK;
}

/* --- a type ------------------------------------------------------------------------ */

struct thing {
	int64_t number;
};

static struct xr_value *
encode_thing(void *object, void *ctx)
{
	return xr_value_new_bytes(object, sizeof(struct thing));
}

static void *
new_thing(int64_t number)
{
	struct thing *t = malloc(sizeof(*t));

	t->number = number;
	atomic_fetch_add(&things_made, 1);
	return t;
}

static void *
decode_thing(const void *data, size_t len, void *ctx)
{
	struct thing t;

	if (len != sizeof(t))
		return NULL;
	memcpy(&t, data, len);
	return new_thing(t.number);
}

static void
free_thing(void *object, void *ctx)
{
	atomic_fetch_add(&things_freed, 1);
	free(object);
}

/* thing(n) - an object; number(r) - of one, fetched. */
static enum xr_status
f_thing(struct xr_call *c, struct xr_value *args, void *ctx)
{
	return xr_reply(c,
		xr_value_new_opaque("thing", new_thing(int_arg(args, 0))));
}

static enum xr_status
f_number(struct xr_call *c, struct xr_value *args, void *ctx)
{
	struct xr_rref *rref = xr_value_rref(arg(args, 0));
	struct xr_value *value = NULL;
	struct xr_error err = { 0 };
	enum xr_status status =
		xr_rref_fetch(rref, XR_TIMEOUT_DEFAULT, &value, &err);
	const struct thing *t = xr_value_object(value, "thing");
	int64_t number = t != NULL ? t->number : -1;

	xr_value_unref(value);
	return status == XR_OK ? xr_reply(c, of_int(number)) :
				 xr_reply_fail(c, status, err.text);
}

static enum xr_status
m_plus(struct xr_call *c, void *self, struct xr_value *args, void *ctx)
{
	return xr_reply(c,
		of_int(((struct thing *)self)->number + int_arg(args, 0)));
}

static enum xr_status
m_double(struct xr_call *c, void *self, struct xr_value *args, void *ctx)
{
	if (self != NULL)
		return XR_E_STATE;
	return xr_reply(c, of_int(2 * int_arg(args, 0)));
}

static enum xr_status
m_hold(struct xr_call *c, void *self, struct xr_value *args, void *ctx)
{
	return f_hold(c, args, ctx);
}

static enum xr_status
m_then(struct xr_call *c, void *self, struct xr_value *args, void *ctx)
{
	return self != NULL ? f_then(c, args, ctx) : XR_E_STATE;
}

#define METHOD(a_name, a_schema, a_flags, is_static_, f) \
	{ .size = sizeof(struct xr_method), \
		.name = (a_name), \
		.schema = (a_schema), \
		.flags = (a_flags), \
		.is_static = (is_static_), \
		.fn = (f) }

static const struct xr_method methods[] = {
	METHOD("plus", "i", 0, false, m_plus),
	METHOD("double", "i", 0, true, m_double),
	METHOD("hold", "i", 0, false, m_hold),
	METHOD("then", "ii", XR_FN_ASYNC, false, m_then),
};

static const struct xr_type thing_type = {
	.size = sizeof(thing_type),
	.name = "thing",
	.encode = encode_thing,
	.decode = decode_thing,
	.free = free_thing,
	.methods = methods,
	.method_count = sizeof(methods) / sizeof(methods[0]),
};

/* --- all of them --------------------------------------------------------------------- */

#define FUNC(a_name, a_schema, a_flags, f) \
	{ .size = sizeof(struct xr_func), \
		.name = (a_name), \
		.schema = (a_schema), \
		.flags = (a_flags), \
		.fn = (f) }

static const struct xr_func functions[] = {
	FUNC("add", "ii", 0, f_add),
	FUNC("add.short", "ii", XR_FN_SHORT, f_add),
	FUNC("fail", "", 0, f_fail),
	FUNC("hold", "?", 0, f_hold),
	FUNC("go", "", XR_FN_SHORT, f_go),
	FUNC("value_of", "r", 0, f_value_of),
	FUNC("confirmed", "r", 0, f_confirmed),
	FUNC("confirmed.short", "r", XR_FN_SHORT, f_confirmed),
	FUNC("keep", "r", 0, f_keep),
	FUNC("drop", "", 0, f_drop),
	FUNC("drop.short", "", XR_FN_SHORT, f_drop),
	FUNC("kept", "", 0, f_kept),
	FUNC("give", "", 0, f_give),
	FUNC("own", "?", 0, f_own),
	FUNC("forward", "ri", 0, f_forward),
	FUNC("pair", "i", 0, f_pair),
	FUNC("die", "", XR_FN_SHORT, f_die),
	FUNC("table", "i", XR_FN_SHORT, f_table),
	FUNC("things", "", XR_FN_SHORT, f_things),
	FUNC("then", "ii", XR_FN_ASYNC, f_then),
	FUNC("fresh", "ii", XR_FN_ASYNC, f_fresh),
	FUNC("deferred", "ii", 0, f_deferred),
	FUNC("dropped", "", 0, f_dropped),
	FUNC("thing", "i", 0, f_thing),
	FUNC("number", "r", 0, f_number),
};

void
register_functions(void)
{
	EXPECT(xr_type_register(&thing_type, &last_err), XR_OK);
	EXPECT(xr_module_static(functions,
		       sizeof(functions) / sizeof(functions[0]), &last_err),
		XR_OK);
}

/* --- tables ---------------------------------------------------------------------------- */

/* Nobody tells when it changes: it is asked, for 20 s at most. */
void
await_table(uint32_t rank, enum table table, int64_t want)
{
	struct timespec begin, now;
	int64_t got;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		got = as_int(call(rank, "table",
			list(of_int(table), NULL, NULL)));
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (got != want && now.tv_sec - begin.tv_sec < 20);
	if (got == want)
		return;
	snprintf(last_err.text, sizeof(last_err.text),
		"table %d of rank %u has %lld, not %lld", table, rank,
		(long long)got, (long long)want);
	CHECK(got == want);
}

void
await_empty(void)
{
	for (uint32_t rank = 0; rank < xr_job_size(); rank++)
		for (int table = 0; table < TABLES; table++)
			await_table(rank, table, 0);
}
