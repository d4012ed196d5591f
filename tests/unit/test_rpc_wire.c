/* SPDX-License-Identifier: Apache-2.0 */
/* test_rpc_wire.c - calls with values, as a peer that the test plays sees them, and what
 * becomes of its answers. */
#include <xrun/error.h>

#define SHORT_MEMORY_THREAD
#include "tests/unit/short_memory.h"

#include "tests/unit/rref_rig.h"
#include "wire/value/node.h"
#include "worker/rpc/ask.h"

TestSuite(rpc_wire, .timeout = 60, .init = wire_begin, .fini = wire_end);

static struct xr_error err;

/* --- what is sent --------------------------------------------------------------------- */

static struct xr_rpc_call
call_of(struct xr_value *args, struct xr_value *named)
{
	struct xr_rpc_call call = XR_RPC_CALL;

	call.to = "one";
	call.func = "f";
	call.args = args;
	call.named = named;
	call.timeout = HOUR;
	return call;
}

/* where() - where the value begins: behind the name, which is padded, and @blocks of
 * references. */
static size_t
where(const struct wire_message *m, size_t blocks)
{
	size_t at = blocks * sizeof(struct rref_wire);

	if ((m->record.flags & MESSAGE_NAMED) != 0)
		at += (2 + m->data[0] + 7) & ~(size_t)7;
	return at;
}

/* body() - the value of a request. */
static struct xr_value *
body(const struct wire_message *m, size_t blocks)
{
	size_t at = where(m, blocks);
	const struct xr_part part = { m->data + at, m->len - at };
	struct xr_value *v = NULL;

	cr_assert_eq(xr_decode(&part, 1, NULL, &v, &err), XR_OK, "%s",
		err.text);
	return v;
}

/* sent() - the next request to one, which has these flags beside its name's. */
static const struct wire_message *
sent(uint8_t flags)
{
	const struct wire_message *m = wire_sent(MESSAGE_REQUEST, 1);

	cr_assert_not_null(m);
	cr_expect_eq(m->record.flags & ~MESSAGE_NAMED, flags);
	cr_expect_eq(wire_left(), 0);
	return m;
}

static struct xr_value *
ints(int64_t n)
{
	struct xr_value *v = xr_value_new_i64(n);

	return xr_value_new_list_of(&v, 1);
}

Test(rpc_wire, a_call_has_its_arguments_named_ones_and_what_is_bound)
{
	struct xr_value *args = ints(7), *named = xr_value_new_dict(), *v;
	struct xr_rpc_call call[3] = { call_of(NULL, NULL), call_of(args, NULL),
		call_of(args, named) };

	xr_value_put(named, "k", 1, xr_value_new_i64(1));
	for (int i = 0; i < 3; i++) {
		struct xr_future *f = NULL;

		cr_assert_eq(xr_rpc_async(&call[i], &f, &err), XR_OK);
		v = body(sent(MESSAGE_VALUE), 0);
		cr_assert_eq(xr_value_kind(v), XR_LIST);
		cr_expect_eq(xr_value_count(v), 3);
		cr_expect_eq(xr_value_kind(xr_value_at(v, 0)), XR_LIST);
		if (i == 0)
			cr_expect_eq(xr_value_count(xr_value_at(v, 0)), 0);
		else
			cr_expect(xr_value_equal(xr_value_at(v, 0), args));
		if (i < 2)
			cr_expect_eq(xr_value_kind(xr_value_at(v, 1)), XR_NIL);
		else
			cr_expect(xr_value_equal(xr_value_at(v, 1), named));
		cr_expect_eq(xr_value_kind(xr_value_at(v, 2)), XR_NIL);
		xr_value_unref(v);
		xr_future_cancel(f);
		xr_future_unref(f);
		wire_forget();
	}
	xr_value_unref(args);
	xr_value_unref(named);
}

Test(rpc_wire, a_function_that_is_bound_brings_its_name_and_what_it_is_bound_to)
{
	struct xr_value *seven = xr_value_new_i64(7), *v;
	struct xr_rpc_call call = call_of(NULL, NULL);
	const struct wire_message *m;
	struct xr_future *f = NULL;

	call.func = NULL;
	call.bound =
		func_new((struct span){ "bound.f", 7 }, xr_value_ref(seven));
	cr_assert_not_null(call.bound);
	cr_assert_eq(xr_rpc_async(&call, &f, &err), XR_OK, "%s", err.text);
	m = sent(MESSAGE_VALUE);
	cr_expect_eq(m->data[0], 7);
	cr_expect_eq(memcmp(m->data + 2, "bound.f", 7), 0);
	v = body(m, 0);
	cr_expect_eq(xr_value_count(xr_value_at(v, 0)), 0);
	cr_expect(xr_value_equal(xr_value_at(v, 2), seven));
	xr_value_unref(v);
	xr_future_cancel(f);
	xr_future_unref(f);
	xr_value_unref(call.bound);
	xr_value_unref(seven);
}

Test(rpc_wire, a_method_goes_with_its_reference_and_a_birth_with_its_own)
{
	struct rref_wire wire = word(1, 5, 1, 6, RREF_CONFIRMED), block[3];
	struct xr_rref *h = handle_from(1, wire), *made = NULL;
	struct xr_rref_call call = { .size = sizeof(call),
		.rref = h,
		.method = "m",
		.timeout = HOUR };
	struct xr_rpc_call plain = call_of(NULL, NULL);
	const struct wire_message *m;
	struct xr_future *f = NULL;
	uint32_t head[3];

	cr_assert_eq(xr_rref_call_async(&call, &f, &err), XR_OK);
	m = sent(MESSAGE_VALUE | MESSAGE_METHOD);
	xr_value_unref(body(m, 2));
	memcpy(block, m->data + where(m, 0), sizeof(block[0]) * 2);
	memcpy(head, block, sizeof(head));
	cr_expect_eq(head[1], 2);
	cr_expect_eq(head[2], 0);
	cr_expect_eq(block[1].fork_local, 6);
	cr_expect_eq(block[1].id_local, 5);
	xr_future_cancel(f);
	xr_future_unref(f);
	wire_forget();
	cr_assert_eq(xr_rref_call_remote(&call, &made, &err), XR_OK);
	m = sent(MESSAGE_VALUE | MESSAGE_METHOD | MESSAGE_REMOTE);
	xr_value_unref(body(m, 3));
	memcpy(block, m->data + where(m, 0), sizeof(block));
	memcpy(head, block, sizeof(head));
	cr_expect_eq(head[1], 3);
	cr_expect_eq(block[1].id_worker, 0);
	cr_expect_eq(block[2].id_local, 5);
	say(1, MESSAGE_RREF_CONFIRM, block[1]);
	xr_rref_unref(made);
	wire_forget();
	cr_assert_eq(xr_rpc_remote(&plain, &made, &err), XR_OK);
	m = sent(MESSAGE_VALUE | MESSAGE_REMOTE);
	xr_value_unref(body(m, 2));
	memcpy(block, m->data + where(m, 0), sizeof(block[0]) * 2);
	memcpy(head, block, sizeof(head));
	cr_expect_eq(head[1], 1);
	say(1, MESSAGE_RREF_CONFIRM, block[1]);
	xr_rref_unref(made);
	xr_rref_unref(h);
	cr_expect_eq(FIGURE(USERS), 0);
}

/* --- what is answered -------------------------------------------------------------------- */

static struct xr_value *(*to_answer)(void);

/* Answers the next call; without a value by bytes. */
static void *
answer(void *unused)
{
	const struct wire_message *m;

	(void)unused;
	wire_await(1);
	m = wire_sent(MESSAGE_REQUEST, 1);
	if (to_answer != NULL)
		wire_reply(1, MESSAGE_REPLY, m->record.corr, to_answer());
	else
		wire_say(1, MESSAGE_REPLY, m->record.corr, "x", 1);
	return NULL;
}

static struct xr_value *
forty_two(void)
{
	return xr_value_new_i64(42);
}

static enum xr_status
call_sync(struct xr_value **v)
{
	struct xr_rpc_call call = call_of(NULL, NULL);
	enum xr_status status;
	pthread_t thread;

	wire_forget();
	cr_assert_eq(pthread_create(&thread, NULL, answer, NULL), 0);
	status = xr_rpc_sync(&call, v, &err);
	pthread_join(thread, NULL);
	return status;
}

Test(rpc_wire, a_call_gives_the_value_of_its_answer)
{
	struct xr_value *v = NULL;
	int64_t n = 0;

	to_answer = forty_two;
	cr_expect_eq(call_sync(&v), XR_OK);
	cr_expect_eq(xr_value_get_i64(v, &n), XR_OK);
	cr_expect_eq(n, 42);
	xr_value_unref(v);
	cr_expect_eq(call_sync(NULL), XR_OK);
	/* Bytes are none. */
	to_answer = NULL;
	v = NULL;
	cr_expect_eq(call_sync(&v), XR_E_PROTO);
	cr_expect_str_eq(err.text, "one (1) answered with bytes");
	cr_expect_null(v);
	cr_expect_eq(ask_active(), 0);
}

Test(rpc_wire, a_future_gives_the_value_of_its_answer)
{
	struct xr_rpc_call call = call_of(NULL, NULL);
	struct xr_future *f = NULL;
	struct xr_value *v = NULL;
	const struct wire_message *m;
	int64_t n = 0;

	cr_assert_eq(xr_rpc_async(&call, &f, &err), XR_OK);
	m = sent(MESSAGE_VALUE);
	wire_reply(1, MESSAGE_REPLY, m->record.corr, forty_two());
	cr_expect_eq(xr_future_wait(f, 0, &v, &err), XR_OK);
	xr_value_get_i64(v, &n);
	cr_expect_eq(n, 42);
	xr_value_unref(v);
	xr_future_unref(f);
	cr_assert_eq(xr_rpc_async(&call, &f, &err), XR_OK);
	m = sent(MESSAGE_VALUE);
	wire_say(1, MESSAGE_REPLY, m->record.corr, "x", 1);
	cr_expect_eq(xr_future_wait(f, 0, &v, &err), XR_E_PROTO);
	cr_expect_str_eq(err.text, "one (1) answered with bytes");
	xr_future_unref(f);
}

Test(rpc_wire, calls_of_a_block_are_waited_for_and_no_others)
{
	struct xr_rpc_call call = call_of(NULL, NULL);
	const struct wire_message *m;
	struct xr_rref *made = NULL;
	struct xr_future *f = NULL;

	cr_assert_eq(xr_rpc_wait_begin(&err), XR_OK);
	cr_assert_eq(xr_rpc_remote(&call, &made, &err), XR_OK);
	rref_unborn(made);
	cr_expect_eq(xr_rpc_wait_end(0, &err), XR_OK);
	cr_assert_eq(xr_rpc_wait_begin(&err), XR_OK);
	wire_forget();
	cr_assert_eq(xr_rpc_async(&call, &f, &err), XR_OK);
	m = sent(MESSAGE_VALUE);
	cr_expect_eq(xr_rpc_wait_end(0, &err), XR_E_TIMEOUT);
	wire_reply(1, MESSAGE_REPLY, m->record.corr, forty_two());
	xr_future_unref(f);
}

/* --- what is not sent ----------------------------------------------------------------------- */

Test(rpc_wire, a_call_that_cannot_be_begun_is_told_at_once)
{
	struct xr_rpc_call call = call_of(NULL, NULL);
	struct xr_rref *made = NULL;
	struct xr_future *f = NULL;
	struct xr_value *v = NULL;
	char name[258];

	call.timeout = -7;
	cr_expect_eq(xr_rpc_sync(&call, &v, &err), XR_E_INVAL);
	cr_expect_eq(xr_rpc_async(&call, &f, &err), XR_E_INVAL);
	cr_expect_eq(xr_rpc_remote(&call, &made, &err), XR_E_INVAL);
	call.timeout = HOUR;
	call.to = "nobody";
	cr_expect_eq(xr_rpc_async(&call, &f, &err), XR_E_NOTFOUND);
	cr_expect_eq(xr_rpc_remote(&call, &made, &err), XR_E_NOTFOUND);
	call.to = "one";
	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	for (int i = 0; i < 2; i++) {
		call.func = i == 0 ? name : "";
		cr_expect_eq(xr_rpc_async(&call, &f, &err), XR_E_INVAL);
		cr_expect_str_eq(err.text,
			"a function's name is 1 to 255 bytes");
	}
	cr_expect_null(f);
	cr_expect_null(made);
	cr_expect_null(v);
	cr_expect_eq(wire_left(), 0);
	cr_expect_eq(FIGURE(USERS), 0);
	name[255] = '\0';
	call.func = name;
	cr_expect_eq(xr_rpc_async(&call, &f, &err), XR_OK);
	sent(MESSAGE_VALUE);
	xr_future_cancel(f);
	xr_future_unref(f);
	wire_end();
	cr_expect_eq(xr_rpc_sync(&call, &v, &err), XR_E_STATE);
	cr_expect_eq(xr_rpc_async(&call, &f, &err), XR_E_STATE);
	cr_expect_eq(xr_rpc_remote(&call, &made, &err), XR_E_STATE);
	wire_begin();
}

/* Of one that was sent its future says what became of it. */
Test(rpc_wire, a_call_without_memory_leaves_nothing)
{
	struct xr_value *args = ints(7);
	struct xr_rpc_call call = call_of(args, NULL);
	bool whole = false;
	unsigned at = 0, failed = 0;

	while (!whole && at < 60) {
		struct xr_future *f = NULL;
		enum xr_status status;

		was_short = false;
		err = (struct xr_error){ 0 };
		until_short = ++at;
		status = xr_rpc_async(&call, &f, &err);
		until_short = 0;
		whole = !was_short;
		if (status == XR_OK) {
			cr_assert_not_null(f);
			xr_future_cancel(f);
			xr_future_unref(f);
		} else {
			failed++;
			cr_expect_eq(status, XR_E_NOMEM, "%u: %s", at,
				err.text);
			cr_expect_neq(err.text[0], '\0', "%u", at);
			cr_expect_null(f);
		}
		cr_expect_eq(ask_active(), 0);
		wire_forget();
	}
	cr_expect(failed > 3 && at < 60, "%u of %u", failed, at);
	xr_value_unref(args);
}
